// What a mask or a pattern is painted on: a head's own as it stands without the edit, whole or, of a long text, in rows.
import { range } from "../core/dom.js";
import { request } from "../core/store.js";

const ROWS = 64; // of a long text that come together

/** The ground under an edit: {shape, mask, row(r), load(first, last)}, as views/painted.py sends it. */
export function ground(edit, own, data) {
  const [layer, head] = [edit.layer ?? 0, edit.heads?.[0] ?? 0];
  const query = { painted: own.cross ? "cross_attn" : "attn", side: own.stack ?? "", layer, head, without: data.number, trace: data.trace };
  return request(query).then((answer) => (answer.arrays.bits ? new Long(query, answer) : whole(answer.arrays)));
}

const whole = ({ mask, pattern }) => drawn(mask.shape, mask.data, pattern.data);

/** A ground that is there as a whole: lists row by row. */
export function drawn([rows, cols], mask, pattern = []) {
  const weights = Float32Array.from(pattern);
  return new Ground([rows, cols], Uint8Array.from(mask), range(0, rows).map((r) => weights.subarray(r * cols, (r + 1) * cols)));
}

class Ground {
  constructor(shape, mask, rows) {
    Object.assign(this, { shape, mask, rows });
  }

  /** The weights of a row, by column; undefined where they are still to come. */
  row(r) {
    return this.rows[r];
  }

  /** A promise of rows that are not there yet; null where they are. */
  load() {
    return null;
  }
}

/** Of a long text the mask comes in bits, and the pattern a few rows at a time. */
class Long extends Ground {
  constructor(query, { arrays: { bits }, shape }) {
    const mask = Uint8Array.from({ length: shape[0] * shape[1] }, (_, i) => (bits.data[i >> 3] >> (i & 7)) & 1);
    super(shape, mask, []);
    this.query = query;
  }

  load(first, last) {
    const parts = range(Math.floor(first / ROWS), Math.floor(last / ROWS) + 1).map((part) => part * ROWS);
    const missing = parts.filter((start) => !this.rows[start]);
    return missing.length ? Promise.all(missing.map((start) => this.fetch(start))) : null;
  }

  async fetch(start) {
    const [rows, cols] = this.shape;
    const end = Math.min(start + ROWS, rows);
    const { arrays } = await request({ ...this.query, rows: [start, end] });
    for (const r of range(start, end)) this.rows[r] = arrays.pattern.data.subarray((r - start) * cols, (r - start + 1) * cols);
  }
}

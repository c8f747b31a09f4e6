// What is painted in the form of an edit: a mask, allowed or blocked, or a pattern of weights, on what the head has of its own. Ours,
// because no widget paints cells by dragging.
import { make, range } from "../core/dom.js";
import { percent } from "../core/format.js";
import { colour } from "../core/palette.js";
import { request } from "../core/store.js";
import { Grid, soon } from "./painter_grid.js";

/**
 * @typedef {import("./painter_grid.js").Edit} Edit
 * @typedef {import("./painter_grid.js").Own} Own
 * @typedef {{ mode: "mask" | "pattern", edit: Edit, own: Own, row?: number, number?: number | null, trace: string, brush?: number }} Data
 * @typedef {Pick<Data, "number" | "trace">} Asked
 * @typedef {(event: "painted", fields: Partial<Edit>) => void} Emit
 */

const PAINTED = ["cells", "rows", "columns", "allowed", "weights", "drawn", "free"]; // fields of an edit that are written here

/**
 * data: {mode: "mask" | "pattern", edit, own: the attention, row: what is looked at, number: that of the edit, trace, brush}, as
 * pages/controls/what_if/edit_form.py sends it. Emits "painted", those fields of the edit that are painted.
 * @param {HTMLElement} root
 * @param {Data} data
 * @param {Emit} emit
 */
export function mount(root, data, emit) {
  const element = make("div", "painting");
  root.append(element);
  const edit = { ...data.edit };
  let [drawn, told] = ["", ""];
  /** @type {ReturnType<typeof maskGrid> | ReturnType<typeof weightGrid>} */
  let grid;
  const changed = () => {
    const painted = Object.fromEntries(PAINTED.filter((name) => name in edit).map((name) => [name, edit[name]]));
    const said = JSON.stringify(painted);
    if (said !== told) emit("painted", painted);
    told = said;
  };
  /** @param {Data} next */
  const update = (next) => {
    const rest = Object.entries(next.edit).filter(([name]) => !PAINTED.includes(name) && name !== "brush");
    const ground = JSON.stringify([next.mode, rest, next.own, next.number, next.trace]);
    if (ground === drawn && next.edit.free === edit.free) {
      const another = edit.brush !== next.edit.brush;
      edit.brush = next.edit.brush;
      if (another) grid.then((shown) => shown.explain());
      return;
    }
    drawn = ground;
    for (const name of Object.keys(edit)) delete edit[name];
    Object.assign(edit, next.edit);
    grid = next.mode === "mask" ? maskGrid(edit, next) : weightGrid(edit, next);
    idle(element, () => element.replaceChildren(soon(grid, changed)));
  };
  update(data);
  return { update, destroy: () => root.replaceChildren() };
}

/**
 * Does `act` once nothing in `element` is being dragged.
 * @param {HTMLElement} element
 * @param {() => void} act
 */
function idle(element, act) {
  if (!element.querySelector("canvas:active")) return act();
  return addEventListener("pointerup", () => setTimeout(act), { once: true });
}

/** @typedef {import("../core/store.js").Query<"edit_ground">} GroundQuery */

const ROWS = 64; // of a long text that come together

/**
 * The ground under an edit: {shape, mask, row(r), load(first, last)}, as views/what_if/paint_ground.py sends it.
 * @param {Edit} edit
 * @param {Own} own
 * @param {Asked} data
 */
function ground(edit, own, data) {
  const [layer, head] = [edit.layer ?? 0, edit.heads?.[0] ?? 0];
  const focus = own.cross ? "cross_attn" : "attn";
  const place = { focus, side: own.stack ?? "", layer, head };
  /** @type {GroundQuery} */
  const query = { ask: "edit_ground", ...place, without: data.number, trace: data.trace };
  return request(query).then((answer) => (answer.arrays.bits ? new Long(query, answer) : whole(answer.arrays)));
}

/** @param {Record<string, import("../core/payload.js").NamedArray>} arrays */
const whole = ({ mask, pattern }) => drawn(mask.shape, mask.data, pattern.data);

/**
 * A ground that is there as a whole: lists row by row.
 * @param {number[]} shape
 * @param {ArrayLike<number>} mask
 * @param {ArrayLike<number>} [pattern]
 */
function drawn([rows, cols], mask, pattern = []) {
  const weights = Float32Array.from(pattern);
  return new Ground(
    [rows, cols],
    Uint8Array.from(mask),
    range(0, rows).map((r) => weights.subarray(r * cols, (r + 1) * cols)),
  );
}

class Ground {
  /**
   * @param {[rows: number, cols: number]} shape
   * @param {Uint8Array} mask
   * @param {Float32Array[]} rows
   */
  constructor(shape, mask, rows) {
    this.shape = shape;
    this.mask = mask;
    this.rows = rows;
  }

  /**
   * The weights of a row, by column; undefined where they are still to come.
   * @param {number} r
   */
  row(r) {
    return this.rows[r];
  }

  /**
   * A promise of rows that are not there yet; null where they are.
   * @param {number} [_first]
   * @param {number} [_last]
   * @returns {Promise<any> | null}
   */
  load(_first, _last) {
    return null;
  }
}

/** Of a long text the mask comes in bits, and the pattern a few rows at a time. */
class Long extends Ground {
  /**
   * @param {GroundQuery} query
   * @param {import("../core/store.js").Answers["edit_ground"]} answer
   */
  constructor(query, { arrays: { bits }, shape }) {
    const mask = Uint8Array.from({ length: shape[0] * shape[1] }, (_, i) => (bits.data[i >> 3] >> (i & 7)) & 1);
    super(shape, mask, []);
    this.query = query;
  }

  /**
   * @param {number} first
   * @param {number} last
   */
  load(first, last) {
    const parts = range(Math.floor(first / ROWS), Math.floor(last / ROWS) + 1).map((part) => part * ROWS);
    const missing = parts.filter((start) => !this.rows[start]);
    return missing.length ? Promise.all(missing.map((start) => this.fetch(start))) : null;
  }

  /** @param {number} start */
  async fetch(start) {
    const [rows, cols] = this.shape;
    const end = Math.min(start + ROWS, rows);
    const { arrays } = await request({ ...this.query, rows: [start, end] });
    for (const r of range(start, end))
      this.rows[r] = arrays.pattern.data.subarray((r - start) * cols, (r - start + 1) * cols);
  }
}

// --- A mask to paint on: that of a head as it stands, or one that is drawn whole ---

const WIDEST_MASK_CELL = 19; // CSS pixels of a cell

/**
 * The grid of the form's mask that is written to.
 * @param {Edit} edit
 * @param {Data} data
 */
async function maskGrid(edit, { own, row, ...data }) {
  if ("cells" in edit) return new PaintedMask(edit, own, await ground(edit, own, data), row);
  return new DrawnMask(edit, own, await startMask(edit, own, data), row);
}

/**
 * The mask that is drawn already, or the head's own to begin with.
 * @param {Edit} edit
 * @param {Own} own
 * @param {Asked} data
 */
async function startMask(edit, own, data) {
  const [rows, cols] = [own.rows.length, own.keys.length];
  if (!edit.allowed) return ground(edit, own, data);
  const [down, across] = [edit.allowed.length, edit.allowed[0]?.length ?? 0];
  if (down !== rows || across !== cols)
    throw new Error(
      `This mask was drawn ${down} × ${across}, and the text is ${rows} × ${cols} now; its blocks and heads can be changed here.`,
    );
  return drawn([rows, cols], edit.allowed.flat().map(Number));
}

class MaskGrid extends Grid {
  /**
   * @param {Edit} edit
   * @param {Own} own
   * @param {Ground} ground
   * @param {number | undefined} cursor
   */
  constructor(edit, own, { mask, shape: [rows, cols] }, cursor) {
    super(own, { rows, cols, most: WIDEST_MASK_CELL, edit, cursor });
    this.called = "mask";
    this.base = mask;
    this.painted = new Uint8Array(rows * cols);
  }

  get howTo() {
    return "click or drag over cells; a name takes its whole row or column";
  }

  /**
   * Painting turns a cell into the reverse of what the first one of the stroke is.
   * @param {number} first
   */
  stroke(first) {
    const to = !this.allowed(first);
    return (/** @type {number} */ i) => (this.painted[i] = Number(Boolean(this.base[i]) !== to));
  }

  /** @param {number} i */
  allowed(i) {
    return Boolean(this.base[i] ^ this.painted[i]);
  }

  /**
   * A row or a column: forbids what of it may be seen; where that is nothing, gives back what was there.
   * @param {number[]} cells
   */
  line(cells) {
    const seen = cells.filter((i) => this.allowed(i));
    for (const i of seen) this.painted[i] = this.base[i];
    if (!seen.length) for (const i of cells) this.painted[i] = 0;
  }

  /** @param {number} i */
  marked(i) {
    return this.painted[i];
  }

  /**
   * @param {number} row
   * @param {number} col
   */
  words(row, col) {
    const { rows, keys } = this.own;
    const changed = this.painted.reduce((sum, one) => sum + one, 0);
    return `${this.token(rows, row)} ${this.allowed(this.index({ row, col })) ? "may" : "may not"} see ${this.token(keys, col)} · ${changed.toLocaleString("en")} changed`;
  }

  picture() {
    const scale = /** @type {Scale} */ ("mask");
    return { block: this.block((row, col) => Number(this.allowed(this.index({ row, col })))), scale, max: 1 };
  }

  /**
   * What may be seen and could not before is filled.
   * @param {CanvasRenderingContext2D} context
   * @param {string} edited
   */
  mark(context, edited) {
    const { cell } = this.window;
    context.fillStyle = edited;
    this.each(
      (i, x, y) => this.painted[i] && this.allowed(i) && context.fillRect(x + 0.5, y + 0.5, cell - 1, cell - 1),
    );
  }
}

/** Changes to the mask as it stands: they flip what is painted, or allow it, or forbid it, whatever it was. */
class PaintedMask extends MaskGrid {
  /**
   * @param {Edit} edit
   * @param {Own} own
   * @param {Ground} found
   * @param {number | undefined} cursor
   */
  constructor(edit, own, found, cursor) {
    super(edit, own, found, cursor);
    const { rows, cols } = this.size;
    /**
     * @param {number} r
     * @param {number} c
     */
    const fits = (r, c) => r < rows && c < cols && (this.painted[r * cols + c] = 1);
    for (const [r, c] of edit.cells) fits(r, c);
    for (const r of edit.rows) range(0, cols).forEach((c) => fits(r, c));
    for (const c of edit.columns) range(0, rows).forEach((r) => fits(r, c));
  }

  get flips() {
    return this.edit.to === "flip";
  }

  /** @param {number} first */
  stroke(first) {
    const to = Number(!this.painted[first]);
    return this.flips ? super.stroke(first) : (/** @type {number} */ i) => (this.painted[i] = to);
  }

  /** @param {number} i */
  allowed(i) {
    if (this.flips) return super.allowed(i);
    return this.edit.to === "allow"
      ? Boolean(this.base[i] || this.painted[i])
      : Boolean(this.base[i] && !this.painted[i]);
  }

  /** @param {number[]} cells */
  line(cells) {
    if (this.flips) return super.line(cells);
    const to = Number(!cells.every((i) => this.painted[i]));
    for (const i of cells) this.painted[i] = to;
  }

  /** What is painted as the shortest edit: whole rows, then whole columns, then cells. */
  write() {
    const { rows, cols } = this.size;
    const [across, down] = [new Uint32Array(rows), new Uint32Array(cols)];
    /** @type {[row: number, col: number][]} */
    const painted = [];
    this.painted.forEach((one, i) => {
      if (!one) return;
      /** @type {[row: number, col: number]} */
      const cell = [Math.floor(i / cols), i % cols];
      across[cell[0]]++;
      down[cell[1]]++;
      painted.push(cell);
    });
    this.edit.rows = range(0, rows).filter((r) => across[r] === cols);
    this.edit.columns = range(0, cols).filter((c) => down[c] === rows);
    this.edit.cells = painted.filter(([r, c]) => across[r] !== cols && down[c] !== rows);
  }
}

/** A mask that stands in place of the model's own. */
class DrawnMask extends MaskGrid {
  /**
   * @param {Edit} edit
   * @param {Own} own
   * @param {Ground} found
   * @param {number | undefined} cursor
   */
  constructor(edit, own, found, cursor) {
    super(edit, own, found, cursor);
    this.write();
  }

  write() {
    this.edit.allowed = range(0, this.size.rows).map((r) => this.row(r).map((i) => this.allowed(i)));
  }
}

// --- A pattern to paint on: single weights of a head's own, its rows still summing to 1, or a whole one t ---

const WIDEST_PATTERN_CELL = 30; // CSS pixels of a cell
const SPOKEN = 24; // from which on a cell bears its weight
const WAITING = "…";
const SLACK = 1e-4; // of a row's sum, as engine/edits/patterns.py has it

/**
 * The grid of the form's pattern that is written to.
 * @param {Edit} edit
 * @param {Data} data
 */
async function weightGrid(edit, { own, row, ...data }) {
  if (edit.to === "painted") return new PaintedPattern(edit, own, await ground(edit, own, data), row);
  return new DrawnPattern(edit, own, await startPattern(edit, own, data), row);
}

/**
 * The pattern that is drawn already, or the head's own to begin with.
 * @param {Edit} edit
 * @param {Own} own
 * @param {Asked} data
 */
async function startPattern(edit, own, data) {
  const found = await ground(edit, own, data);
  const [rows, cols] = found.shape;
  if (!edit.drawn) return found;
  const [down, across] = [edit.drawn.length, edit.drawn[0].length];
  if (down !== rows || across !== cols)
    throw new Error(
      `This pattern was drawn ${down} × ${across}, and the text is ${rows} × ${cols} now; its blocks and heads can be changed here.`,
    );
  return drawn(found.shape, found.mask, edit.drawn.flat());
}

class WeightGrid extends Grid {
  /**
   * @param {Edit} edit
   * @param {Own} own
   * @param {Ground} found
   * @param {number | undefined} cursor
   */
  constructor(edit, own, found, cursor) {
    const [rows, cols] = found.shape;
    super(own, { rows, cols, most: WIDEST_PATTERN_CELL, edit, cursor });
    this.called = "pattern";
    this.digits = true;
    this.ground = found;
    this.mask = found.mask;
    /** @type {Map<number, Map<number, number>>} */
    this.given = new Map(); // row -> column -> weight; the others are left to the head
    /** @type {(Float32Array | undefined)[]} */
    this.settled = []; // row -> its weights as the engine makes them
  }

  get howTo() {
    return `click or drag puts ${this.edit.brush ?? 0}, again gives back what was there; the keys 0 to 9 put tenths; a name takes its row or column`;
  }

  /** Asks for the rows in view that are still to come. */
  seen() {
    const { row, rows } = this.view;
    this.ground.load(row, row + rows - 1)?.then(
      () => {
        this.soonDrawn();
        if (this.said.textContent === WAITING) this.tell();
      },
      (error) => (this.said.textContent = error.message),
    );
  }

  /**
   * @param {number} i
   * @param {number | null} weight
   */
  put(i, weight) {
    const [row, col] = [Math.floor(i / this.size.cols), i % this.size.cols];
    const own = this.given.get(row) ?? new Map();
    if (weight === null) own.delete(col);
    else own.set(col, weight);
    if (own.size) this.given.set(row, own);
    else this.given.delete(row);
    delete this.settled[row];
  }

  /**
   * Painting puts the weight of the brush; a stroke that starts where it stands already gives back what was there.
   * @param {number} first
   */
  stroke(first) {
    const weight = Math.fround(this.edit.brush ?? 0);
    const to = this.weight(first) === weight ? null : weight;
    return (/** @type {number} */ i) => this.put(i, to);
  }

  /**
   * What is painted on a cell, undefined where it is the head's.
   * @param {number} i
   */
  weight(i) {
    return this.given.get(Math.floor(i / this.size.cols))?.get(i % this.size.cols);
  }

  /** @param {number} i */
  marked(i) {
    return this.weight(i) !== undefined;
  }

  /**
   * A row: back to the head's, or even over what it may see. A column: the weight of the brush in every row.
   * @param {number[]} cells
   * @param {"row" | "column"} which
   */
  line(cells, which) {
    const clean = !cells.some((i) => this.marked(i));
    const seen = cells.filter((i) => this.mask[i]);
    if (!clean) for (const i of cells) this.put(i, null);
    else if (which === "row") for (const i of seen) this.put(i, 1 / seen.length);
    else for (const i of seen) this.put(i, this.edit.brush ?? 0);
  }

  /**
   * A row as the engine makes it: `summing_to_one` of engine/edits/patterns.py. Undefined until it is there.
   * @param {number} row
   */
  shown(row) {
    const base = this.ground.row(row);
    if (!base || this.settled[row]) return this.settled[row];
    const made = (this.settled[row] = base.slice());
    const painted = this.given.get(row);
    if (!painted) return made;
    for (const [col, weight] of painted) made[col] = weight;
    if (this.edit.free) return made;
    const taken = [...painted.values()].reduce((sum, weight) => sum + weight, 0);
    const left = base.reduce((sum, weight, col) => sum + (painted.has(col) ? 0 : weight), 0);
    const scale = left > 0 ? Math.max(0, 1 - taken) / left : 0;
    made.forEach((weight, col) => painted.has(col) || (made[col] = weight * scale));
    const total = made.reduce((sum, weight) => sum + weight, 0);
    made.forEach((weight, col) => (made[col] = total > 0 ? weight / total : 0));
    return made;
  }

  /**
   * @param {number} row
   * @param {number} col
   */
  words(row, col) {
    const shown = this.shown(row);
    if (!shown) return WAITING;
    const before = this.ground.row(row)[col];
    const was = shown[col] === before ? "" : `, was ${percent(before)}`;
    const sum = shown.reduce((total, one) => total + one, 0);
    return `${this.token(this.own.rows, row)} looks at ${this.token(this.own.keys, col)}: ${percent(shown[col])}${was} · its row sums to ${Number(sum.toFixed(4))}`;
  }

  picture() {
    const block = this.block((row, col) => this.shown(row)?.[col] ?? 0);
    const most = block.data.reduce((top, x) => Math.max(top, Math.abs(x)), 1);
    const signed = block.data.some((x) => x < 0);
    return {
      block,
      scale: /** @type {Scale} */ (signed ? "signed" : "unit"),
      max: most,
      /**
       * @param {number} r
       * @param {number} c
       */
      hidden: (r, c) => !block.data[r * block.cols + c] && !this.mask[this.at(r, c)],
    };
  }

  /**
   * Weights as hundredths, in cells that have room for them.
   * @param {CanvasRenderingContext2D} context
   */
  mark(context) {
    const { cell } = this.window;
    if (cell < SPOKEN) return;
    const [ink, ground] = [colour(this.canvas, "ink"), colour(this.canvas, "ground")];
    context.font = "10.5px ui-monospace, monospace";
    context.textAlign = "center";
    context.textBaseline = "middle";
    this.each((i, left, top) => {
      const x = this.shown(Math.floor(i / this.size.cols))?.[i % this.size.cols] ?? 0;
      const hundredths = Math.round(100 * x);
      if (!hundredths) return;
      context.fillStyle = Math.abs(x) > 0.35 ? ground : ink;
      const text =
        hundredths === 100
          ? "1"
          : `${hundredths < 0 ? "−" : ""}${Math.abs(x) >= 1 ? Math.abs(x).toFixed(1) : `.${String(Math.abs(hundredths)).padStart(2, "0")}`}`;
      context.fillText(text, left + 0.5 * cell, top + 0.5 * cell + 0.5);
    });
  }
}

/** Single weights; the rest of a row is the head's. */
class PaintedPattern extends WeightGrid {
  /**
   * @param {Edit} edit
   * @param {Own} own
   * @param {Ground} found
   * @param {number | undefined} cursor
   */
  constructor(edit, own, found, cursor) {
    super(edit, own, found, cursor);
    const { rows, cols } = this.size;
    edit.cells.forEach(([r, c], n) => r < rows && c < cols && this.put(r * cols + c, edit.weights[n]));
  }

  write() {
    /**
     * @template Value
     * @param {Map<number, Value>} map
     */
    const ordered = (map) => [...map].sort(([a], [b]) => a - b);
    const painted = ordered(this.given).flatMap(([r, own]) => ordered(own).map(([c, weight]) => [r, c, weight]));
    this.edit.cells = painted.map(([r, c]) => [r, c]);
    this.edit.weights = painted.map(([, , weight]) => rounded(weight));
  }
}

/** A pattern that stands in place of the head's, all of it. */
class DrawnPattern extends WeightGrid {
  /**
   * @param {Edit} edit
   * @param {Own} own
   * @param {Ground} found
   * @param {number | undefined} cursor
   */
  constructor(edit, own, found, cursor) {
    super(edit, own, found, cursor);
    const sums = range(0, this.size.rows).map((r) => found.row(r).reduce((sum, x) => sum + x, 0));
    if (!sums.every((sum) => Math.abs(sum - 1) <= SLACK)) edit.free = true; // of a row that sees nothing, for one
    this.write();
  }

  write() {
    this.edit.drawn = range(0, this.size.rows).map((r) =>
      Array.from(/** @type {Float32Array} */ (this.shown(r)), rounded),
    );
  }
}

/** @param {number} x */
function rounded(x) {
  return Number(x.toFixed(6));
}

// The numbers of a long text that are here: tiles of the heads that were looked at, and rows. What is missing is asked for
// once the view stands still; until it comes there is a coarser tile, or the head's overview.

const PATIENCE = 120; // ms without another wish until the server is asked
const KEPT = { tiles: 240, rows: 400 };

export class Numbers {
  /** `page` has request(), and `arrived()` is called with every answer, `failed(sentence)` for none. */
  constructor(page, { arrived, failed }) {
    Object.assign(this, { page, arrived, failed });
    this.tiles = new Map(); // name of a window of a head -> tile, or null while it is on its way
    this.rows = new Map(); // name of a row of a head -> {key, weight, weights, rest, others}, or null
    this.timer = 0;
  }

  /** Another run: only what its payload brought is known. */
  begin(data) {
    clearTimeout(this.timer);
    this.run = data.trace;
    this.tiles.clear();
    this.rows.clear();
    const { first, arrays } = data;
    first.tiles.forEach((one, i) => this.tiles.set(named(first, one.rows, one.columns), tile(first, one, arrays[`tile.${i}.weight`], arrays[`tile.${i}.at`])));
    this.rows.set(`${which(first)} ${first.pos}`, row(first.row, arrays, "row."));
  }

  stop() {
    clearTimeout(this.timer);
  }

  /** The tiles of a head that are here, the coarsest first. */
  of(head) {
    const name = which(head);
    return [...this.tiles.values()].filter((one) => one?.head === name).sort((a, b) => b.high * b.wide - a.high * a.wide);
  }

  row(head, pos) {
    return this.rows.get(`${which(head)} ${pos}`) ?? null;
  }

  /** Asks for what of this is not here, in a moment, unless something else is wanted by then. */
  want(head, windows, pos) {
    clearTimeout(this.timer);
    const missing = windows.filter(({ rows, columns }) => !this.tiles.has(named(head, rows, columns)));
    const unread = !this.rows.has(`${which(head)} ${pos}`);
    if (!missing.length && !unread) return;
    this.timer = setTimeout(() => {
      for (const { rows, columns } of missing) this.fetch(this.tiles, named(head, rows, columns), { ask: "tile", ...head, rows, columns }, (answer) => tile(head, answer, answer.arrays.weight, answer.arrays.at));
      if (unread) this.fetch(this.rows, `${which(head)} ${pos}`, { ask: "row", ...head, pos }, (answer) => row(answer, answer.arrays, ""));
      trim(this.tiles, KEPT.tiles);
      trim(this.rows, KEPT.rows);
    }, PATIENCE);
  }

  async fetch(kept, name, query, read) {
    const { run } = this;
    kept.set(name, null);
    try {
      const answer = await this.page.request(query);
      if (run !== this.run) return;
      kept.delete(name); // the newest stand last
      kept.set(name, read(answer));
      this.arrived();
    } catch (error) {
      if (run !== this.run) return;
      kept.delete(name); // to be asked for again
      this.failed(error.message);
    }
  }
}

/**
 * What the finest of `tiles` (as `Numbers.of` gives them) says of a place: {row, col, weight, high, wide}, the largest weight of a block
 * of `high` rows and `wide` columns, and where that stands. Null where there is no tile.
 */
export function peakAt(tiles, row, col) {
  const found = tiles.findLast(({ rows, columns }) => row >= rows[0] && row < rows[1] && col >= columns[0] && col < columns[1]);
  if (!found) return null;
  const { rows, columns, high, wide, weight, at } = found;
  if (!weight) return { row, col, weight: 0, high, wide };
  const [i, j] = [Math.floor((row - rows[0]) / high), Math.floor((col - columns[0]) / wide)];
  const n = i * found.across + j;
  const inside = at ? at[n] : 0;
  return { row: rows[0] + i * high + Math.floor(inside / wide), col: columns[0] + j * wide + (inside % wide), weight: weight[n], high, wide };
}

/** How many rows, or columns, one tile spans where `visible` of them are in view. */
export function span(visible, { tile: side, across }) {
  let width = side;
  while (visible * side > across * width) width *= 2;
  return width;
}

/** The windows of the tiles along one axis that meet from..to, as wide as each other: the last one reaches back. [[first, end], ...] */
export function spans(from, to, width, size) {
  const found = [];
  for (let at = Math.floor(Math.max(0, from) / width) * width; at < Math.min(to, size); at += width) {
    const first = Math.min(at, Math.max(0, size - width));
    found.push([first, Math.min(first + width, size)]);
  }
  return found;
}

function tile(head, { rows, columns, block: [high, wide] }, weight, at) {
  return { head: which(head), rows, columns, high, wide, across: Math.ceil((columns[1] - columns[0]) / wide), weight: weight?.data ?? null, at: at?.data ?? null };
}

function row({ rest, others }, arrays, prefix) {
  const [key, weight, weights] = ["key", "weight", "weights"].map((name) => arrays[prefix + name].data);
  return { key, weight, weights, rest, others };
}

function which({ side, focus, layer, head }) {
  return [side, focus, layer, head].join();
}

function named(head, rows, columns) {
  return `${which(head)} ${rows} ${columns}`;
}

function trim(kept, most) {
  for (const name of kept.keys()) {
    if (kept.size <= most) return;
    kept.delete(name);
  }
}

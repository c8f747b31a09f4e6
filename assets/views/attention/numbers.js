// The numbers of a long text that are here: tiles of the heads that were looked at, and rows. What is missing is asked for
// once the view stands still; until it comes there is a coarser tile, or the head's overview.

/**
 * @typedef {import("../core/payload.js").NamedArray} NamedArray
 * @typedef {import("../core/store.js").Answers} Answers
 * @typedef {import("../core/store.js").Query<"tile"> | import("../core/store.js").Query<"row">} Query
 * @typedef {import("./state.js").HeadOfRun} HeadOfRun
 * @typedef {[first: number, end: number]} Span
 * @typedef {{ rows: Span, columns: Span }} Window
 * @typedef {"length" | "share"} Kind of what weights move, in place of weights
 * @typedef {{ head: string, rows: Span, columns: Span, high: number, wide: number, across: number, weight: Float32Array | null,
 *   at: Uint8Array | Int32Array | null, edited: Uint8Array | null }} Tile
 * @typedef {{ key: Int32Array, weight: Float32Array, weights: Float32Array, rest: number, others: number, exact: boolean }} Row
 * @typedef {{ row: number, col: number, weight: number | null, high: number, wide: number }} Peak
 * @typedef {{ rows: Span, columns: Span, block: [high: number, wide: number] }} Cut how a tile was made
 * @typedef {{ tile: number, across: number }} Sides cells of a tile, and of what a view shows
 * @typedef {HeadOfRun & { pos: number, row: { rest: number, others: number }, tiles: Cut[] }} First what a payload brought
 * @typedef {{ trace: { length: number }, keys: { length: number }, data?: { tile: number },
 *   request(query: Query): Promise<{ [entry: string]: unknown }>,
 *   moved?: (head: HeadOfRun) => Promise<import("./tiled_source.js").Moved> | null }} Asking a page; `data` is how tiles are cut
 */

const PATIENCE = 120; // ms without another wish until the server is asked
const LISTED = 20; // keys of a row
const KEPT = { tiles: 240, rows: 400 };

export class Numbers {
  /** @type {string | undefined} name of the run */
  run;
  /**
   * `page` has request(), and `arrived()` is called with every answer, `failed(sentence)` for none.
   * @param {Asking} page
   * @param {{ arrived: () => void, failed: (sentence: string) => void }} heard
   */
  constructor(page, { arrived, failed }) {
    this.page = page;
    this.arrived = arrived;
    this.failed = failed;
    /** @type {Map<string, Tile | null>} */
    this.tiles = new Map(); // name of a window of a head -> tile, or null while it is on its way
    /** @type {Map<string, Row | null>} */
    this.rows = new Map(); // name of a row of a head -> {key, weight, weights, rest, others}, or null
    this.timer = 0;
  }

  /**
   * Another run: only what its payload brought is known.
   * @param {{ trace: string, first: First, arrays: Record<string, NamedArray> }} data
   */
  begin(data) {
    clearTimeout(this.timer);
    this.run = data.trace;
    this.tiles.clear();
    this.rows.clear();
    const { first, arrays } = data;
    first.tiles.forEach((one, i) =>
      this.tiles.set(
        named(first, one.rows, one.columns),
        tile(first, one, (part) => arrays[`tile.${i}.${part}`]),
      ),
    );
    this.rows.set(`${which(first)} ${first.pos}`, row(first.row, arrays, "row."));
  }

  stop() {
    clearTimeout(this.timer);
  }

  /**
   * The tiles of a head that are here, the coarsest first; `shows` as in `want`.
   * @param {HeadOfRun} head
   * @param {Kind} [shows]
   * @returns {Tile[]}
   */
  of(head, shows) {
    const name = of(head, shows);
    return [...this.tiles.values()]
      .filter((one) => one !== null)
      .filter((one) => one.head === name)
      .sort((a, b) => b.high * b.wide - a.high * a.wide);
  }

  /**
   * @param {HeadOfRun} head
   * @param {number} pos
   */
  row(head, pos) {
    return this.rows.get(`${which(head)} ${pos}`) ?? null;
  }

  /**
   * Asks for what of this is not here, in a moment, unless something else is wanted by then: windows of a head, of its weights or of what
   * they move, `shows` "length" or "share"; and the weights of row `pos`.
   * @param {HeadOfRun} head
   * @param {Window[]} windows
   * @param {number} pos
   * @param {Kind} [shows]
   */
  want(head, windows, pos, shows) {
    clearTimeout(this.timer);
    const missing = windows.filter(({ rows, columns }) => !this.tiles.has(named(head, rows, columns, shows)));
    const unread = !this.rows.has(`${which(head)} ${pos}`);
    if (!missing.length && !unread) return;
    this.timer = setTimeout(() => {
      for (const { rows, columns } of missing) {
        /** @type {import("../core/store.js").Query<"tile">} */
        const query = { ask: "tile", ...head, rows, columns, ...(shows && { shows }) };
        this.fetch(
          this.tiles,
          named(head, rows, columns, shows),
          query,
          (/** @type {Answers["tile"] & Cut} */ answer) => tile(head, answer, (part) => answer.arrays[part], shows),
          () => this.composedTile(head, rows, columns, shows),
        );
      }
      if (unread)
        this.fetch(
          this.rows,
          `${which(head)} ${pos}`,
          { ask: "row", ...head, pos },
          (/** @type {Answers["row"] & { rest: number, others: number }} */ answer) => row(answer, answer.arrays, ""),
          () => this.composedRow(head, pos),
        );
      trim(this.tiles, KEPT.tiles);
      trim(this.rows, KEPT.rows);
    }, PATIENCE);
  }

  /**
   * {weights, edited} of a window of a head, row by row, put together from tiles of single weights: a file that
   * works alone has those of one head.
   * @param {HeadOfRun} head
   * @param {Span} rows
   * @param {Span} columns
   */
  async region(head, rows, columns) {
    const { trace, keys } = this.page;
    const { tile: side } = /** @type {{ tile: number }} */ (this.page.data);
    const across = columns[1] - columns[0];
    const weights = new Float32Array((rows[1] - rows[0]) * across);
    const edited = new Uint8Array(weights.length);
    for (const down of spans(...rows, side, trace.length)) {
      for (const over of spans(...columns, side, keys.length)) {
        const answer = await this.page.request({ ask: "tile", ...head, rows: down, columns: over });
        const arrays = /** @type {Record<string, NamedArray | undefined>} */ (answer.arrays);
        const wide = over[1] - over[0];
        const [left, right] = [Math.max(over[0], columns[0]), Math.min(over[1], columns[1])];
        for (let row = Math.max(down[0], rows[0]); row < Math.min(down[1], rows[1]); row++) {
          const start = (row - down[0]) * wide;
          for (const [to, from] of /** @type {[Float32Array | Uint8Array, NamedArray | undefined][]} */ ([
            [weights, arrays.weight],
            [edited, arrays.edited],
          ])) {
            if (from)
              to.set(
                from.data.subarray(start + left - over[0], start + right - over[0]),
                (row - rows[0]) * across + left - columns[0],
              );
          }
        }
      }
    }
    return { weights, edited };
  }

  /**
   * @param {HeadOfRun} head
   * @param {number} pos
   */
  async composedRow(head, pos) {
    return listed((await this.region(head, [pos, pos + 1], [0, this.page.keys.length])).weights);
  }

  /**
   * A tile as the server makes it of what is wider than that: of each block its largest weight, and where that stands.
   * @param {HeadOfRun} head
   * @param {Span} rows
   * @param {Span} columns
   * @param {Kind} [shows]
   */
  async composedTile(head, rows, columns, shows) {
    const { tile: side } = /** @type {{ tile: number }} */ (this.page.data);
    const [height, width] = [rows[1] - rows[0], columns[1] - columns[0]];
    const [high, wide] = [Math.ceil(height / side), Math.ceil(width / side)];
    if (high * wide === 1 && !shows) throw new Error("there is nothing finer");
    const { weights, edited } = await this.region(head, rows, columns);
    const moved = shows && (await this.page.moved?.(head));
    if (moved)
      weights.forEach(
        (weight, n) =>
          (weights[n] = moved.of(weight, rows[0] + Math.floor(n / width), columns[0] + (n % width), shows)),
      );
    const [down, across] = [Math.ceil(height / high), Math.ceil(width / wide)];
    const [weight, at, put] = [
      new Float32Array(down * across),
      new Int32Array(down * across),
      new Uint8Array(down * across),
    ];
    for (let row = 0; row < height; row++) {
      for (let col = 0; col < width; col++) {
        const n = Math.floor(row / high) * across + Math.floor(col / wide);
        const value = weights[row * width + col];
        if (value > weight[n]) [weight[n], at[n]] = [value, (row % high) * wide + (col % wide)];
        put[n] |= edited[row * width + col];
      }
    }
    /** @type {Record<string, { data: Cells } | undefined>} */
    const parts = { weight: { data: weight }, at: { data: at }, edited: put.includes(1) ? { data: put } : undefined };
    return tile(head, { rows, columns, block: [high, wide] }, (part) => parts[part], shows);
  }

  /**
   * `instead` is tried where the question is refused.
   * @template Found
   * @template Answer
   * @param {Map<string, Found | null>} kept
   * @param {string} name
   * @param {Query} query
   * @param {(answer: Answer) => Found} read
   * @param {() => Promise<Found>} [instead]
   */
  async fetch(kept, name, query, read, instead) {
    const { run } = this;
    kept.set(name, null);
    try {
      const found = await this.page.request(query).then(
        (answer) => read(/** @type {Answer} */ (answer)),
        (error) => (instead ? instead().catch(() => Promise.reject(error)) : Promise.reject(error)),
      );
      if (run !== this.run) return;
      kept.delete(name); // the newest stand last
      kept.set(name, found);
      this.arrived();
    } catch (error) {
      if (run !== this.run) return;
      kept.delete(name); // to be asked for again
      this.failed(error.message);
    }
  }
}

/**
 * A row of so many weights, as the server would list it.
 * @param {Float32Array} weights
 * @returns {Row}
 */
function listed(weights) {
  const order = Array.from(weights.keys()).sort((a, b) => weights[b] - weights[a] || a - b);
  const key = Int32Array.from(order.slice(0, LISTED));
  const others = order.slice(LISTED).filter((place) => weights[place] > 0);
  return {
    key,
    weight: Float32Array.from(key, (place) => weights[place]),
    weights,
    rest: others.reduce((sum, place) => sum + weights[place], 0),
    others: others.length,
    exact: true,
  };
}

/**
 * What the finest of `tiles` (as `Numbers.of` gives them) says of a place: {row, col, weight, high, wide}, the largest weight of a block
 * of `high` rows and `wide` columns, and where that stands. Null where there is no tile.
 * @param {Tile[]} tiles
 * @param {number} row
 * @param {number} col
 * @returns {Peak | null}
 */
export function peakAt(tiles, row, col) {
  const found = tiles.findLast(
    ({ rows, columns }) => row >= rows[0] && row < rows[1] && col >= columns[0] && col < columns[1],
  );
  if (!found) return null;
  const { rows, columns, high, wide, weight, at } = found;
  if (!weight) return { row, col, weight: 0, high, wide };
  const [i, j] = [Math.floor((row - rows[0]) / high), Math.floor((col - columns[0]) / wide)];
  const n = i * found.across + j;
  const inside = at ? at[n] : 0;
  return {
    row: rows[0] + i * high + Math.floor(inside / wide),
    col: columns[0] + j * wide + (inside % wide),
    weight: weight[n],
    high,
    wide,
  };
}

/**
 * How many rows, or columns, one tile spans where `visible` of them are in view.
 * @param {number} visible
 * @param {Sides} sides
 */
export function span(visible, { tile: side, across }) {
  let width = side;
  while (visible * side > across * width) width *= 2;
  return width;
}

/**
 * The windows of the tiles along one axis that meet from..to, as wide as each other: the last one reaches back. [[first, end], ...]
 * @param {number} from
 * @param {number} to
 * @param {number} width
 * @param {number} size
 */
export function spans(from, to, width, size) {
  /** @type {Span[]} */
  const found = [];
  for (let at = Math.floor(Math.max(0, from) / width) * width; at < Math.min(to, size); at += width) {
    const first = Math.min(at, Math.max(0, size - width));
    found.push([first, Math.min(first + width, size)]);
  }
  return found;
}

/**
 * `part` gives the numbers of "weight", "at" and "edited" where there are any.
 * @param {HeadOfRun} head
 * @param {Cut} cut
 * @param {(name: "weight" | "at" | "edited") => { data: NamedArray["data"] } | undefined} part
 * @param {Kind} [shows]
 * @returns {Tile}
 */
function tile(head, { rows, columns, block: [high, wide] }, part, shows) {
  const [weight, at, edited] = /** @type {const} */ (["weight", "at", "edited"]).map(
    (name) => part(name)?.data ?? null,
  );
  return {
    head: of(head, shows),
    rows,
    columns,
    high,
    wide,
    across: Math.ceil((columns[1] - columns[0]) / wide),
    weight,
    at,
    edited,
  };
}

/**
 * @param {{ rest: number, others: number }} left
 * @param {Record<string, NamedArray>} arrays
 * @param {string} prefix
 * @returns {Row}
 */
function row({ rest, others }, arrays, prefix) {
  const [key, weight, weights] = ["key", "weight", "weights"].map((name) => arrays[prefix + name].data);
  return { key, weight, weights, rest, others, exact: true };
}

/** @param {HeadOfRun} head */
function which({ side, focus, layer, head }) {
  return [side, focus, layer, head].join();
}

/**
 * A head, as what it is shown.
 * @param {HeadOfRun} head
 * @param {Kind} [shows]
 */
function of(head, shows) {
  return shows ? `${which(head)} ${shows}` : which(head);
}

/**
 * @param {HeadOfRun} head
 * @param {Span} rows
 * @param {Span} columns
 * @param {Kind} [shows]
 */
function named(head, rows, columns, shows) {
  return `${of(head, shows)} ${rows} ${columns}`;
}

/**
 * @param {Map<string, unknown>} kept
 * @param {number} most
 */
function trim(kept, most) {
  for (const name of kept.keys()) {
    if (kept.size <= most) return;
    kept.delete(name);
  }
}

// A run on a text too long to be sent whole, as a source (source.js) of the page about attention: overviews of all heads, and tiles and
// rows of those that are looked at, which are asked for. Scores come layer by layer, and what weights move head by head.
import { compared } from "./colours.js";
import { Numbers } from "./numbers.js";
import { heaviest, ROOMY } from "./source.js";
import { clamp } from "./state.js";
import { mount as mountWindow, WINDOWED } from "./window.js";
import { percent } from "../core/format.js";
import { inquire } from "../core/store.js";

/**
 * @typedef {import("./attention.js").TiledPage} Page
 * @typedef {import("./attention.js").TiledData} Data
 * @typedef {import("./attention.js").View} View
 * @typedef {import("./attention.js").ViewModule} ViewModule
 * @typedef {import("./numbers.js").Kind} Kind
 * @typedef {import("./source.js").Column} Column
 * @typedef {import("./state.js").HeadOfRun} HeadOfRun
 * @typedef {import("../core/trace.js").Trace} Trace
 * @typedef {{ done: number, steps: number, scored: number, going: boolean, stalled?: number }} Progress; `scored` are whole layers
 */

const WIDE = [...WINDOWED, "points"]; // views that take all the room there is
const READERS = 5; // queries of a column
const PLACED = "positional";
const STALLED = 3; // answers in a row that go no further

export class TiledSource {
  tiled = /** @type {const} */ (true);
  details = 300; // CSS pixels of the details where they stand beside the view
  /** @type {string | undefined} */
  run;
  /** @type {{ name: string, moved: Moved | null } | undefined} what the weights of the shown head move */
  weighed;

  /** @param {Page} page */
  constructor(page) {
    this.page = page;
    this.numbers = new Numbers(page, { arrived: () => page.arrived(), failed: (sentence) => this.fail(sentence) });
    this.scores = new Scoring(page);
    this.refused = ""; // why what is looked at cannot be had
    this.line = this.line.bind(this); // which views are handed, as is weightsOf
    this.weightsOf = this.weightsOf.bind(this);
  }

  begin() {
    const { data } = this.page;
    if (this.run !== data.trace) this.numbers.begin(data);
    this.run = data.trace;
    this.scores.begin(data);
  }

  stop() {
    this.numbers.stop();
    this.scores.stop();
  }

  /** The chosen row, which a map asks for with its tiles, and what the chosen score needs. */
  bring() {
    const { page } = this;
    if (page.state.view !== "map") this.numbers.want(page.head, [], page.state.query);
    this.scores.go();
  }

  /** How much room at the right leaves some for the details. */
  roomy() {
    return WIDE.includes(this.page.state.view) ? ROOMY.most : ROOMY.some;
  }

  /**
   * The module of a tab: a map is drawn in tiles.
   * @param {string} view
   */
  module(view) {
    return view === "map" ? "tiles" : view;
  }

  /**
   * A view that takes every number of a pattern gets a window of them.
   * @param {ViewModule} module
   * @param {HTMLElement} root
   * @param {string} name
   * @returns {View}
   */
  mount(module, root, name) {
    return WINDOWED.includes(name) ? mountWindow(root, this.page, module) : module.mount(root, this.page);
  }

  /** Another head is looked at; what was refused was of the one before. */
  turn() {
    if (this.refused) this.fail("");
  }

  /**
   * What is looked at cannot be had, and why; "" once something else is.
   * @param {string} sentence
   */
  fail(sentence) {
    const { page } = this;
    this.refused = sentence;
    page.parts.notice(sentence || (page.data.notice ?? ""));
    if (sentence && page.map && "say" in page.map) page.map.say(page.map.window);
    page.details.update();
  }

  /** Lines of several heads say which (share/shown.js); what is taken away of them as data is the shown one's. */
  taken() {
    const { state, trace, keys } = this.page;
    const heads = compared(this.page);
    if (state.view !== "lines" || heads.length < 2) return undefined;
    const weight = this.row(state.query)?.weights[state.key];
    const where = heads.map(([layer, head]) => `block ${layer + 1} head ${head + 1}`).join(", ");
    const sentence = `block ${state.layer + 1} head ${state.head + 1}: ${trace.pieces[state.query]} → ${keys[state.key]}${weight === undefined ? "" : `: ${percent(weight)}`}`;
    return { where: `${trace.side ? `${trace.side} ` : ""}${where}`, sentence };
  }

  /** @param {string} key */
  scoring(key) {
    return this.scores.progress(key);
  }

  /**
   * A head's overview.
   * @param {number} layer
   * @param {number} head
   */
  pattern(layer, head) {
    const { trace, state } = this.page;
    return trace.overview(state.focus, layer, head);
  }

  /**
   * The key that a row of the shown head attends to most, once the row is here.
   * @param {number} row
   */
  strongest(row) {
    return this.row(row)?.key[0] ?? clamp(row, this.page.keys.length);
  }

  /** The row to read first: the server's choice for the head it chose, else the last where it alone has read everything. */
  firstRow() {
    const { data, state, trace } = this.page;
    const { first } = data;
    if (first.side === state.side && first.focus === state.focus) return first.pos;
    return trace.model.mask !== "full" || state.focus === "cross_attn" ? trace.length - 1 : 0;
  }

  /**
   * A row of the shown head as `WholeSource.row` has it, or null while it is on its way.
   * @param {number} pos
   */
  row(pos) {
    return this.numbers.row(this.page.head, pos);
  }

  /**
   * Columns are the server's.
   * @returns {Column | null}
   */
  column() {
    return null;
  }

  /**
   * What asks for a column, its weights with a sentence.
   * @param {number} key
   * @returns {import("../core/store.js").Query<"column">}
   */
  about(key) {
    return { ask: "column", ...this.page.head, key };
  }

  /**
   * A column as `WholeSource.column` has it, of the answer to `about`.
   * @param {{ arrays: Record<string, import("../core/payload.js").NamedArray> }} answer
   * @returns {Column}
   */
  columnIn({ arrays }) {
    const weights = Array.from(/** @type {Cells} */ (arrays.weights.data));
    return { weights, best: heaviest(weights, READERS), exact: true };
  }

  /**
   * Every weight of the chosen row ("out") or column ("in"), or a promise where it is not here.
   * @param {"in" | "out"} way
   */
  line(way) {
    const { page } = this;
    const { query, key } = page.state;
    if (way === "in") return page.request(this.about(key)).then(({ arrays }) => Float64Array.from(arrays.weights.data));
    const found = this.row(query);
    return found
      ? Float64Array.from(found.weights)
      : page
          .request({ ask: "row", ...page.head, pos: query })
          .then(({ arrays }) => Float64Array.from(arrays.weights.data));
  }

  /**
   * Every weight of any row of the shown head; none while they are on their way.
   * @param {number} pos
   */
  weightsOf(pos) {
    const found = this.row(pos);
    if (!found) this.numbers.want(this.page.head, [], pos);
    return Float64Array.from(found?.weights ?? new Float64Array(this.page.keys.length));
  }

  /**
   * What the weights of a head move, a promise; the store asks once.
   * @param {HeadOfRun} head
   */
  async moved(head) {
    const query = /** @type {import("../core/store.js").Query<"moved">} */ ({ ask: "moved", ...head });
    return new Moved(await this.page.request(query));
  }

  /** That of the shown head, or null while it is on its way: then the map is drawn again. */
  movedHere() {
    const { page } = this;
    const name = JSON.stringify([page.trace.trace, page.head]);
    if (this.weighed?.name === name) return this.weighed.moved;
    /** @type {{ name: string, moved: Moved | null }} */
    const found = { name, moved: null };
    this.weighed = found;
    const late = () => found !== this.weighed;
    this.moved(page.head).then(
      (moved) => late() || (Object.assign(found, { moved }), page.arrived()),
      (error) => late() || this.fail(error.message),
    );
    return null;
  }
}

/**
 * The scores of a long text's heads, layer by layer, once one of them is chosen and for as long as it is. Most are of the text's own
 * patterns, and come together; the positional share is of many other texts, so that of it a layer takes several questions.
 */
class Scoring {
  /** @type {Map<string, Progress>} by stack and kind of score */
  known;
  /** @type {Data | null} */
  data = null;

  /** @param {Page} page */
  constructor(page) {
    this.page = page;
  }

  /** Another run: nothing is scored. */
  /** @param {Data} data */
  begin(data) {
    if (data === this.data) return; // another theme
    const { arrays, lanes, scoreTable } = data;
    for (const [side, { model }] of Object.entries(lanes)) {
      for (const { key } of scoreTable)
        arrays[named(side, key)] ??= {
          data: new Float32Array(model.layers * model.heads).fill(NaN),
          dtype: "f32",
          shape: [model.layers, model.heads],
          dims: ["layer", "head"],
        };
    }
    this.data = data;
    this.known = new Map();
  }

  stop() {
    this.data = null;
  }

  /** @param {string} key */
  progress(key) {
    const { trace } = this.page;
    const found = this.of(key);
    return found.scored < trace.model.layers ? found : null;
  }

  /** @param {string} key */
  of(key) {
    const { trace } = this.page;
    const name = `${trace.side} ${key === PLACED}`;
    const found = this.known.get(name) ?? { done: 0, steps: trace.model.layers, scored: 0, going: false };
    this.known.set(name, found);
    return found;
  }

  /** Asks for what the chosen score needs, one answer after the other, until every head has it or another is chosen. */
  async go() {
    const { page, data } = this;
    const { state, trace } = page;
    if (!data || !state.score || state.focus !== "attn") return;
    const placed = state.score === PLACED;
    const found = this.of(state.score);
    if (found.going || found.scored === trace.model.layers) return;
    const wanted = () =>
      data === this.data &&
      page.trace.side === trace.side &&
      state.focus === "attn" &&
      state.score &&
      (state.score === PLACED) === placed;
    found.going = true;
    try {
      while (found.scored < trace.model.layers && wanted()) {
        await (placed ? this.placed(found, trace, data) : this.measured(found, trace, data));
        if (data === this.data) page.scored(found.scored === trace.model.layers);
      }
    } catch (error) {
      if (data === this.data) page.parts.notice(error.message);
    } finally {
      found.going = false;
    }
  }

  /**
   * @param {Progress} found
   * @param {Trace} trace
   * @param {Data} data
   */
  async measured(found, trace, data) {
    const { layers, heads } = trace.model;
    const { arrays } = await this.page.request({ ask: "scores", side: trace.side, layer: found.scored });
    for (const [key, { data: values }] of Object.entries(arrays))
      data.arrays[named(trace.side, key)].data.set(values, found.scored * heads);
    const scored = found.scored + 1;
    Object.assign(found, { done: scored, steps: layers, scored });
  }

  /**
   * @param {Progress} found
   * @param {Trace} trace
   * @param {Data} data
   */
  async placed(found, trace, data) {
    /** @type {import("../core/store.js").Query<"positional">} */
    const query = { ask: PLACED, side: trace.side };
    const whole = () => this.page.request({ ...query, whole: true }); // as a file has it, which has no server that would go on
    const answer = await inquire({ trace: trace.trace, ...query }).catch((error) =>
      whole().catch(() => Promise.reject(error)),
    );
    found.stalled = answer.done > found.done ? 0 : (found.stalled ?? 0) + 1;
    if (found.stalled > STALLED)
      throw new Error(
        "The server has no room to keep what it has read of other orders of this text; LOUPE_TRACE_MEMORY_MIB gives it more.",
      );
    data.arrays[named(trace.side, PLACED)].data.set(answer.arrays[PLACED].data);
    Object.assign(found, { done: answer.done, steps: answer.steps, scored: answer.scored });
    if (found.scored === trace.model.layers) whole().catch(() => {}); // so that a file of this page has it
  }
}

/**
 * @param {string} side
 * @param {string} key
 */
function named(side, key) {
  return `scores.${side && `${side}.`}attn.${key}`;
}

/**
 * What the weights of one head of a long text move, |pattern v W_O|: a length is a weight times one number of its key, and a share is that
 * divided by the row's sum. The server says both; tiles hold elements of the whole as they do of weights. `max`, the largest length, and `overview(kind)` ("length" or "share") as a block of cells.js, 255 = that length or all of a row.
 */
export class Moved {
  /** @param {import("../core/store.js").Answers["moved"]} answer */
  constructor({ max, arrays }) {
    /** @type {number} */
    this.max = max;
    /** @type {Record<string, import("../core/payload.js").NamedArray>} */
    this.arrays = arrays;
  }

  /**
   * What a weight at (row, key) moves, as the server has it.
   * @param {number} weight
   * @param {number} row
   * @param {number} key
   * @param {Kind} kind
   */
  of(weight, row, key, kind) {
    const { moved, total } = this.arrays;
    const length = Math.fround(Math.fround(weight) * moved.data[key]);
    return kind === "share" ? Math.fround(length / total.data[row]) : length;
  }

  /** @param {Kind} kind */
  overview(kind) {
    const { data, shape } = this.arrays[`overview.${kind}`];
    return { block: { data, offset: 0, stride: shape[1], rows: shape[0], cols: shape[1] }, max: 255 };
  }
}

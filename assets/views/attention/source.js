// How much of a run is here, and what of it a view can have: of a run that was sent whole, every pattern. tiled_source.js says the
// same of a long text, of which the browser holds overviews, tiles and rows.
import { downward, measureOf, span } from "./over.js";
import { at } from "../components/cells.js";
import { range } from "../core/dom.js";
import { counted, number, percent } from "../core/format.js";

/**
 * @typedef {import("./attention.js").Page} Page
 * @typedef {import("./attention.js").Data} Data
 * @typedef {import("./attention.js").View} View
 * @typedef {import("./attention.js").ViewModule} ViewModule
 * @typedef {import("./state.js").HeadOfRun} HeadOfRun
 * @typedef {import("../share/shown.js").Found} Found
 * @typedef {Partial<Found> & { where?: string }} Taken what stands in place of the pattern
 * @typedef {{ key: ArrayLike<number>, weight: ArrayLike<number>, weights: ArrayLike<number>, rest: number, others: number,
 *   exact: boolean }} Row
 * @typedef {{ weights: number[], best: number[], exact: boolean, mean?: number, even?: number, count?: number }} Column
 */

const SETTLED = 1000; // ms after new data until the server is asked for the scores that take it some work
const BESIDE = 48; // tokens up to which the map leaves room for the details
export const ROOMY = { some: 780, most: 1140 }; // room at the right in which the details stand beside a map that leaves some, and beside every view
const LISTED = 8; // keys of a row
const READERS = 3; // queries of a column

export class WholeSource {
  tiled = /** @type {const} */ (false);
  details = 280; // CSS pixels of the details where they stand beside the view

  /** @param {Page} page */
  constructor(page) {
    this.page = page;
  }

  /** @param {Data} data */
  begin(data) {
    clearTimeout(this.patience);
    this.patience = setTimeout(() => this.complete(data), SETTLED);
  }

  stop() {
    clearTimeout(this.patience);
  }

  /**
   * Brings the scores that the run alone does not give: they need further runs, or the weights.
   * @param {Data} data
   */
  async complete(data) {
    const { page } = this;
    const late = () => data !== page.data || page.source !== this;
    try {
      const { arrays } = await page.request({ ask: "scores" });
      Object.assign(data.arrays, arrays);
      if (!late()) page.refresh();
    } catch (error) {
      if (!late()) page.parts.notice(error.message);
    }
  }

  /** The numbers of the shown layer, where they are not here. */
  bring() {
    const { page } = this;
    const { trace } = page;
    const { layer } = page.state;
    if (trace.holds(layer)) return;
    const same = () => trace === page.trace && layer === page.state.layer;
    trace.fetch(layer).then(
      () => same() && page.refresh(),
      (error) => same() && page.parts.notice(error.message),
    );
  }

  /** How much room at the right leaves some for the details. */
  roomy() {
    const { trace, keys, state } = this.page;
    const short = !trace.grid && Math.max(trace.length, keys.length) <= BESIDE;
    return state.view === "map" && short ? ROOMY.some : ROOMY.most;
  }

  /** @param {string} view */
  module(view) {
    return view;
  }

  /**
   * @param {ViewModule} module
   * @param {HTMLElement} root
   * @returns {View}
   */
  mount(module, root) {
    return module.mount(root, this.page);
  }

  turn() {}

  taken() {
    return taken(this.page);
  }

  scoring() {
    return null;
  }

  /**
   * Exact where the layer is here, else in steps of 1/255 with `max` 255.
   * @param {number} layer
   * @param {number} head
   */
  pattern(layer, head) {
    const { trace, state } = this.page;
    return trace.pattern(state.focus, layer, head);
  }

  /**
   * The key that a row of the shown head attends to most.
   * @param {number} row
   */
  strongest(row) {
    const { block } = this.shown;
    let best = 0;
    for (let col = 1; col < block.cols; col++) if (at(block, row, col) > at(block, row, best)) best = col;
    return best;
  }

  /** The row to read first: the last where it alone has read everything, else that of the head's largest weight. */
  firstRow() {
    const { block } = this.shown;
    const { trace, state } = this.page;
    if (trace.model.mask !== "full" || state.focus === "cross_attn") return block.rows - 1;
    /** @param {number} row */
    const best = (row) => at(block, row, this.strongest(row));
    return range(0, block.rows).reduce((found, row) => (best(row) > best(found) ? row : found), 0);
  }

  get shown() {
    return this.pattern(this.page.state.layer, this.page.state.head);
  }

  /**
   * {key, weight: of the keys that a row gives most, weights: of all, rest, others: what the others share, exact}.
   * @param {number} pos
   * @returns {Row}
   */
  row(pos) {
    const { block, max } = this.shown;
    const start = block.offset + pos * block.stride;
    const weights = Array.from(block.data.subarray(start, start + block.cols), (w) => w / max);
    const key = heaviest(weights, LISTED);
    const weight = key.map((i) => weights[i]);
    const rest = weight.reduce(
      (left, w) => left - w,
      weights.reduce((sum, w) => sum + w, 0),
    );
    return {
      key,
      weight,
      weights,
      rest: Math.max(0, rest),
      others: weights.filter((w) => w > 0).length - key.length,
      exact: max === 1,
    };
  }

  /**
   * {weights, best: the queries that give a key most, mean, even, count, exact}. `mean` is over the `count` queries that may see the key
   * and another one, and `even` what they would give it if each attended to all that it may see alike.
   * @param {number} key
   * @returns {Column}
   */
  column(key) {
    const { block, max } = this.shown;
    const seen = this.counts(block);
    const weights = range(0, block.rows).map((row) => at(block, row, key) / max);
    const may = range(0, block.rows).filter((row) => seen(row, key) > 1);
    /** @param {(row: number) => number} value */
    const over = (value) => may.reduce((sum, row) => sum + value(row), 0) / (may.length || 1);
    return {
      weights,
      best: heaviest(weights, READERS),
      mean: over((row) => weights[row]),
      even: over((row) => 1 / seen(row, key)),
      count: may.length,
      exact: max === 1,
    };
  }

  /**
   * (row, key) => how many keys a row may see, 0 where not this one. Until the layer's mask is here, those that it gives any weight.
   * @param {Block} block
   * @returns {(row: number, key: number) => number}
   */
  counts(block) {
    const { trace, state } = this.page;
    const name = `blocks.${state.layer}.${state.focus}.mask`;
    const mask = trace.has(name) ? trace.block(name, state.head) : block;
    /** @type {Map<number, number>} */
    const totals = new Map();
    return (row, key) => {
      if (!at(mask, row, key)) return 0;
      const start = mask.offset + row * mask.stride;
      const count = totals.get(row) ?? Array.from(mask.data.subarray(start, start + mask.cols)).filter(Boolean).length;
      totals.set(row, count);
      return count;
    };
  }

  /**
   * What asks for a sentence about a column: of a column that is here that is all there is to ask.
   * @param {number} key
   * @returns {import("../core/store.js").Query<"sink">}
   */
  about(key) {
    return { ask: "sink", ...this.page.head, key };
  }
}

/**
 * Indices of the `count` largest of `weights` that are not 0, largest first.
 * @param {ArrayLike<number>} weights
 * @param {number} count
 */
export function heaviest(weights, count) {
  return range(0, weights.length)
    .filter((i) => weights[i] > 0)
    .sort((a, b) => weights[b] - weights[a] || a - b)
    .slice(0, count);
}

// --- what is exported in place of the pattern ---

/**
 * {tab, sentence, file, where?} of the open tab, or undefined where it shows the pattern. `where` says of which heads.
 * @param {Page} page
 * @returns {Taken | undefined}
 */
function taken(page) {
  const { view, side, focus, layer, head, query, key } = page.state;
  const own = { side, focus, layer, head };
  /** @param {string} name */
  const file = (name) => `${block(page)}-${name}`;
  switch (view) {
    case "lines":
      return lines(page, own, file);
    case "alignment":
      return {
        tab: { ask: "alignment", ...own, by: shiftOf(page) ? "written" : "own" },
        sentence: aligned(page),
        file: file("alignment"),
      };
    case "text":
      return painted(page, own);
    case "points":
      return {
        tab: { ask: "points", ...own, how: page.state.how === "tsne" ? "tsne" : "pca" },
        sentence: points(page),
        file: file("points"),
      };
    case "circuits":
      return {
        tab: { ask: "circuits", ...own },
        sentence:
          "OV: the tokens that each token of the text promotes; QK: the scores between tokens, by content alone",
        file: file("circuits"),
      };
    case "product":
      return { tab: { ask: "product", ...own, pos: query, key }, sentence: product(page), file: file("product") };
    case "steps":
      return { tab: { ask: "steps", ...own }, sentence: steps(page), file: file("steps") };
  }
  return undefined;
}

/** @param {Page} page */
function block({ state, trace }) {
  return trace.named(`blocks.${state.layer}.${state.focus}`).replaceAll(".", "-");
}

/**
 * The lines that are drawn: of which heads, from which weight on, and whose where they are one token's.
 * @param {Page} page
 * @param {HeadOfRun} own
 * @param {(name: string) => string} file
 */
function lines(page, { side, focus }, file) {
  const { view, trace, keys } = page;
  if (!view || !("slider" in view)) return undefined; // it is on its way
  const { compared: heads, only } = view;
  const { curves, cut } = view.drawn();
  const least = cut ?? view.slider.value();
  const one = only && (only.query === undefined ? { key: only.key } : { pos: only.query });
  const whose = !only
    ? ""
    : only.query === undefined
      ? ` into ${keys[only.key]}`
      : ` of what ${trace.pieces[only.query]} reads`;
  const sentence = `${weight(page)}; ${curves.length.toLocaleString("en")} ${curves.length === 1 ? "line" : "lines"}${whose}, for weights from ${percent(least)} on`;
  const stack = trace.side ? `${trace.side} ` : "";
  const where =
    heads.length > 1
      ? { where: stack + heads.map(([layer, head]) => `block ${layer + 1} head ${head + 1}`).join(", ") }
      : {};
  return { tab: { ask: "lines", side, focus, heads, least, ...one }, sentence, file: file("lines"), ...where };
}

/**
 * The cell that is looked at and its weight.
 * @param {Page} page
 */
function weight(page, called = `${page.trace.pieces[page.state.query]} → ${page.keys[page.state.key]}`) {
  const { state } = page;
  const { block, max } = page.pattern(state.layer, state.head);
  return `${called}: ${percent(at(block, state.query, state.key) / max)}`;
}

/**
 * How many rows lie between a word of an alignment and the row that joins it.
 * @param {Page} page
 */
function shiftOf({ view }) {
  return view && "shift" in view ? view.shift : 1;
}

/** @param {Page} page */
function aligned(page) {
  const { state, trace, keys } = page;
  const shift = shiftOf(page);
  const word = trace.pieces[state.query + shift];
  const by = shift ? "a word stands with the row before it, which wrote it" : "a word stands with its own row";
  return word === undefined ? by : `${weight(page, `${word} from ${keys[state.key]}`)}; ${by}`;
}

/**
 * @param {number} count
 * @param {string} noun
 */
function all(count, noun) {
  return count === 1 ? `1 ${noun}` : `all ${counted(count, noun)}`;
}

/**
 * @param {Page} page
 * @param {HeadOfRun} own
 */
function painted(page, { side, focus, layer, head }) {
  const { state, trace } = page;
  const { layers, heads } = trace.model;
  const alone = Boolean(state.alone);
  const [id, label] = measureOf(page);
  const [first, last] = span(state, trace);
  const stack = trace.side ? `${trace.side} ` : "";
  const every = alone ? `head ${head + 1} of each` : all(heads, "head");
  /** @type {Partial<Record<import("./over.js").Measure, Taken>>} */
  const ways = {
    heads: {
      tab: { ask: "average", side, focus, over: "heads", layer, head },
      where: `${stack}block ${layer + 1} of ${layers}, mean of ${counted(heads, "head")}`,
    },
    layers: {
      tab: { ask: "average", side, focus, over: "layers", layer, head, alone },
      where: `${stack}mean of ${counted(layers, "block")}, ${every}`,
    },
    rollout: {
      tab: { ask: "rollout", side, focus, first, last, head: alone ? head : null },
      where: `${stack}blocks ${first + 1} to ${last + 1} of ${layers}, ${every}`,
    },
    flow: {
      tab: downward(page) ? { ask: "flow", side, focus, pos: state.query } : { ask: "flows", side, focus },
      where: `${stack}${all(layers, "block")}, ${all(heads, "head")}`,
    },
    sentences: { tab: { ask: "text_average", side, focus, layer, head } },
  };
  const found = ways[id];
  if (!found) return undefined;
  const of = id === "heads" || id === "sentences" ? block(page) : [trace.side, focus].filter(Boolean).join("-");
  const file = `${of}-${label.replaceAll(" ", "-")}`;
  return id === "sentences" ? { ...found, file, ...many(page) } : { ...found, file, sentence: said(page, label) };
}

/**
 * Of a mean over many texts: what was read, which is not the text of the page, and the cell that is looked at.
 * @param {Page} page
 */
function many({ view, state, trace }) {
  const what = trace.grid ? "pictures" : "texts";
  const answer = view && "averaged" in view && !view.waiting ? view.many : undefined;
  if (!answer) return { read: `many ${what}`, sentence: `mean over many ${what}, position by position` };
  const { pattern, count } = answer;
  const [rows, cols] = pattern.shape;
  const [row, col] = [Math.min(state.query, rows - 1), Math.min(state.key, cols - 1)];
  const value = percent(pattern.data[row * cols + col]);
  const cell = `position ${row + 1} → position ${col + 1}: ${value}, mean of the ${count.data[row].toLocaleString("en")} ${what} that reach it`;
  return {
    read: `${Math.max(...count.data).toLocaleString("en")} ${what} made for the model`,
    sentence: `mean over them, position by position; ${cell}`,
  };
}

/**
 * The measure and its value at the cell that is chosen, where it is painted already.
 * @param {Page} page
 * @param {string} name
 */
function said(page, name) {
  const { state, trace, keys } = page;
  const view = page.view && "averaged" in page.view ? page.view : null;
  const at = view?.way === "in" ? state.query : state.key;
  const between = `${name}, ${trace.pieces[state.query]} → ${keys[state.key]}`;
  const value = view?.waiting ? undefined : view?.line?.[at];
  return !view || value === undefined ? between : `${between}: ${view.spelled(value)}`;
}

/** @param {Page} page */
function points({ view, state, trace, keys }) {
  const way = state.how === "tsne" ? "t-SNE" : "PCA";
  /**
   * @param {import("../core/payload.js").NamedArray} points
   * @param {number} i
   */
  const place = ({ data }, i) => `(${number(data[2 * i])}, ${number(data[2 * i + 1])})`;
  const answer = view && "projection" in view ? view.answer : null;
  const at = answer
    ? `: query ${trace.pieces[state.query]} at ${place(answer.queries, state.query)}, ` +
      `key ${keys[state.key]} at ${place(answer.keys, state.key)}`
    : "";
  return `${way} of queries and keys${at}`;
}

/** @param {Page} page */
function product({ view, state, trace, keys }) {
  const dot = view && "products" in view ? view.found?.chosen?.dot : undefined;
  return `q of ${trace.pieces[state.query]} · k of ${keys[state.key]}${dot === undefined ? "" : ` = ${number(dot)}`}`;
}

/** @param {Page} page */
function steps({ view, state, trace, keys }) {
  const cell = { row: state.query, col: state.key };
  const stages =
    view && "ledger" in view
      ? (view.list ?? []).flatMap((panel) => (panel.block ? [`${panel.title} ${view.spelled(panel, cell)}`] : []))
      : [];
  return [`${trace.pieces[state.query]} → ${keys[state.key]}`, stages.join(", ")].filter(Boolean).join(": ");
}

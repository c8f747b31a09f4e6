// How much of a run is here, and what of it a view can have: of a run that was sent whole, every pattern. tiled_source.js says the
// same of a long text, of which the browser holds overviews, tiles and rows.
import { at } from "../components/cells.js";
import { taken } from "./taken.js";
import { range } from "../core/dom.js";

const SETTLED = 1000; // ms after new data until the server is asked for the scores that take it some work
const BESIDE = 48; // tokens up to which the map leaves room for the details
export const ROOMY = { some: 780, most: 1140 }; // room at the right in which the details stand beside a map that leaves some, and beside every view
const LISTED = 8; // keys of a row
const READERS = 3; // queries of a column

export class WholeSource {
  tiled = false;
  details = 280; // CSS pixels of the details where they stand beside the view

  constructor(page) {
    this.page = page;
  }

  begin(data) {
    clearTimeout(this.patience);
    this.patience = setTimeout(() => this.complete(data), SETTLED);
  }

  stop() {
    clearTimeout(this.patience);
  }

  /** Brings the scores that the run alone does not give: they need further runs, or the weights. */
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
    trace.fetch(layer).then(() => same() && page.refresh(), (error) => same() && page.parts.notice(error.message));
  }

  /** How much room at the right leaves some for the details. */
  roomy() {
    const { trace, keys, state } = this.page;
    const short = !trace.grid && Math.max(trace.length, keys.length) <= BESIDE;
    return state.view === "map" && short ? ROOMY.some : ROOMY.most;
  }

  module(view) {
    return view;
  }

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

  /** Exact where the layer is here, else in steps of 1/255 with `max` 255. */
  pattern(layer, head) {
    const { trace, state } = this.page;
    const exact = `blocks.${layer}.${state.focus}.pattern`;
    return trace.has(exact) ? { block: trace.block(exact, head), max: 1 } : coarse(trace, state.focus, layer, head);
  }

  /** The key that a row of the shown head attends to most. */
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
    const best = (row) => at(block, row, this.strongest(row));
    return range(0, block.rows).reduce((found, row) => (best(row) > best(found) ? row : found), 0);
  }

  get shown() {
    return this.pattern(this.page.state.layer, this.page.state.head);
  }

  /** {key, weight: of the keys that a row gives most, weights: of all, rest, others: what the others share, exact}. */
  row(pos) {
    const { block, max } = this.shown;
    const start = block.offset + pos * block.stride;
    const weights = Array.from(block.data.subarray(start, start + block.cols), (w) => w / max);
    const key = heaviest(weights, LISTED);
    const weight = key.map((i) => weights[i]);
    const rest = weight.reduce((left, w) => left - w, weights.reduce((sum, w) => sum + w, 0));
    return { key, weight, weights, rest: Math.max(0, rest), others: weights.filter((w) => w > 0).length - key.length, exact: max === 1 };
  }

  /**
   * {weights, best: the queries that give a key most, mean, even, count, exact}. `mean` is over the `count` queries that may see the key,
   * and `even` what they would give it if each attended to all that it may see alike.
   */
  column(key) {
    const { block, max } = this.shown;
    const seen = this.counts(block);
    const weights = range(0, block.rows).map((row) => at(block, row, key) / max);
    const may = range(0, block.rows).filter((row) => seen(row, key) > 0);
    const over = (value) => may.reduce((sum, row) => sum + value(row), 0) / (may.length || 1);
    return { weights, best: heaviest(weights, READERS), mean: over((row) => weights[row]), even: over((row) => 1 / seen(row, key)), count: may.length, exact: max === 1 };
  }

  /** (row, key) => how many keys a row may see, 0 where not this one. Until the layer's mask is here, those that it gives any weight. */
  counts(block) {
    const { trace, state } = this.page;
    const name = `blocks.${state.layer}.${state.focus}.mask`;
    const mask = trace.has(name) ? trace.block(name, state.head) : block;
    const totals = new Map();
    return (row, key) => {
      if (!at(mask, row, key)) return 0;
      if (!totals.has(row)) totals.set(row, mask.data.subarray(mask.offset + row * mask.stride, mask.offset + row * mask.stride + mask.cols).reduce((sum, one) => sum + Boolean(one), 0));
      return totals.get(row);
    };
  }

  /** What asks for a sentence about a column: of a column that is here that is all there is to ask. */
  about(key) {
    return { ask: "sink", ...this.page.head, key };
  }
}

/** A head's pattern in bytes, 255 = 1, as a payload has those of all heads. */
export function coarse(trace, focus, layer, head) {
  const { data, shape } = trace.arrays[`patterns.${trace.prefix}${focus}`];
  const [, heads, rows, cols] = shape;
  return { block: { data, offset: (layer * heads + head) * rows * cols, stride: cols, rows, cols }, max: 255 };
}

/** Indices of the `count` largest of `weights` that are not 0, largest first. */
export function heaviest(weights, count) {
  return range(0, weights.length).filter((i) => weights[i] > 0).sort((a, b) => weights[b] - weights[a] || a - b).slice(0, count);
}

// Attention in full: all heads of a model, one of them in several views, and what its rows and columns say. This is the shell:
// it holds what is looked at and hands the drawing to the others, which read `page` (this object) at every update.
import * as address from "../core/address.js";
import { at } from "../components/cells.js";
import { mount as mountDetails } from "./details.js";
import { AttentionPage } from "./page.js";
import { frame, viewsOf } from "./frame.js";
import { mount as mountHeads } from "./heads.js";
import { clamp, led, restore } from "./state.js";
import { CSS } from "./style.js";
import { taken } from "./taken.js";
import { make, range } from "../core/dom.js";
import { Trace } from "../core/trace.js";

const NARROW = 800; // CSS pixels of width below which everything stands in one column
const LEFT = { least: 300, share: 0.265, most: 380 }; // the width of all heads
const DETAILS = 280; // the width of the details where they stand beside the view
const GAP = 28;
const SETTLED = 1000; // ms after new data until the server is asked for the scores that take it some work
const ROOMY = 1140; // room at the right in which every view has its details beside it
const BESIDE = 48; // tokens up to which the map leaves room for the details

/** data is the payload of views/attention.py. */
export function mount(root, data) {
  const page = new Attention(root);
  page.update(data);
  return page;
}

class Attention extends AttentionPage {
  constructor(root) {
    super();
    this.style = make("style", "", CSS);
    this.element = make("div", "attention");
    this.element.loupe = this; // for tests: the numbers behind the picture
    root.append(this.style, this.element);
    this.state = restore(address.read());
    this.hover = null;
    this.edition = 0; // grows with everything that makes every picture another one: data, stack, attention, width, theme
    this.resize = new ResizeObserver(() => this.element.clientWidth !== this.across && this.trace && this.measure());
    this.resize.observe(this.element);
    this.onKey = (event) => this.key(event);
    window.addEventListener("keydown", this.onKey);
    this.unfollow = address.follow((state) => this.trace && this.go(restore(state)));
  }

  destroy() {
    this.resize.disconnect();
    clearTimeout(this.patience);
    window.removeEventListener("keydown", this.onKey);
    this.unfollow();
    this.view?.destroy();
    this.element.remove();
    this.style.remove();
  }

  update(data) {
    const { state } = this;
    const before = this.trace;
    const changed = before?.model.name !== data.model.name;
    const fresh = changed && (before || !state.chosen);
    if (fresh) Object.assign(state, { side: undefined, focus: undefined, layer: 0, head: 0, heads: [] }, data.look);
    this.data = data;
    this.trace = new Trace(data, state.side in data.lanes ? state.side : undefined);
    const same = before?.side === this.trace.side && before.pieces.join("\n") === this.trace.pieces.join("\n");
    if (before && !same) Object.assign(state, { query: data.look.query, key: undefined, pinned: false });
    this.hover = null;
    this.fit();
    if (before && changed) this.remember();
    if (!this.parts) this.build();
    this.parts.notice(data.notice ?? "");
    this.measure();
    clearTimeout(this.patience);
    this.patience = setTimeout(() => this.complete(data), SETTLED);
  }

  /** Brings the scores that the run alone does not give: they need further runs, or the weights. */
  async complete(data) {
    try {
      const { arrays } = await this.request({ ask: "scores" });
      Object.assign(data.arrays, arrays);
      if (data === this.data) this.refresh();
    } catch (error) {
      if (data === this.data) this.parts.notice(error.message);
    }
  }

  build() {
    this.parts = frame(this);
    this.heads = mountHeads(this.parts.heads, this);
    this.details = mountDetails(this.parts.details, this);
    this.element.dataset.ready = "true";
  }

  /** How much room there is, and everything drawn again in it. */
  measure() {
    this.across = this.element.clientWidth;
    if (!this.across) return;
    this.edition++;
    this.refresh();
  }

  lay() {
    this.narrow = this.across < NARROW;
    const left = Math.round(Math.max(LEFT.least, Math.min(LEFT.most, this.across * LEFT.share)));
    const right = this.narrow ? this.across : this.across - left - GAP;
    const short = !this.trace.grid && Math.max(this.trace.length, this.keys.length) <= BESIDE;
    const beside = !this.narrow && (right >= ROOMY || (right >= NARROW && this.state.view === "map" && short));
    this.left = this.narrow ? this.across : left;
    this.width = beside ? right - DETAILS - GAP : right;
    this.element.classList.toggle("narrow", this.narrow);
    this.element.classList.toggle("beside", beside);
    this.element.style.setProperty("--left", `${left}px`);
    this.element.style.setProperty("--details", `${DETAILS}px`);
  }

  /** Puts the state inside what the trace has, and chooses a row and a key where none is. */
  fit() {
    const { state, trace } = this;
    const { layers, heads, crosses } = trace.model;
    state.side = trace.side;
    state.focus = crosses && state.focus !== "attn" ? "cross_attn" : "attn";
    state.layer = clamp(state.layer, layers);
    state.head = clamp(state.head, heads);
    state.heads = led(state.heads.filter(([layer, head]) => layer < layers && head < heads), state.layer, state.head);
    if (!viewsOf(this).some(([name]) => name === state.view)) state.view = "map";
    if (!(state.query < trace.length)) state.query = this.firstRow();
    if (!(state.pinned && state.key < this.keys.length)) Object.assign(state, { key: this.strongest(state.query), pinned: false });
  }

  /** Merges `change` into the state, remembers it in the address, and shows it everywhere. */
  go(change) {
    const { state } = this;
    const turned = (change.side ?? state.side) !== state.side || (change.focus ?? state.focus) !== state.focus;
    if (turned) Object.assign(state, { heads: [], query: undefined, key: undefined, pinned: false });
    if (change.side !== undefined && change.side !== state.side && change.side in this.data.lanes) {
      this.trace = new Trace(this.data, change.side);
      Object.assign(state, { focus: undefined, layer: 0, head: 0 });
    }
    const moved = (change.layer ?? state.layer) !== state.layer || (change.head ?? state.head) !== state.head;
    Object.assign(state, change);
    if (change.key !== undefined && change.key !== null) state.pinned = true;
    if (change.heads?.length && change.layer === undefined && change.head === undefined) [state.layer, state.head] = change.heads[0];
    this.fit();
    this.remember();
    if (turned) this.hover = null;
    if (turned) this.edition++;
    this.refresh();
    if (moved || turned) this.tell(`${this.trace.side ? `${this.trace.side}, ` : ""}block ${state.layer + 1}, head ${state.head + 1}`);
  }

  /** Shows the state everywhere; numbers that are not here yet are fetched, and shown when they are. */
  refresh() {
    this.lay();
    this.parts.show();
    this.heads.update();
    this.details.update();
    if (this.opened === this.state.view) this.view?.update();
    else this.open();
    const { trace } = this;
    const { layer } = this.state;
    if (trace.holds(layer)) return;
    const late = () => trace === this.trace && layer === this.state.layer;
    trace.fetch(layer).then(() => late() && this.refresh(), (error) => late() && this.parts.notice(error.message));
  }

  /** What the open tab shows in place of the pattern (take_shown.js). */
  taken() {
    return taken(this);
  }

  // --- what the views ask ------------------------------------------------------------------------------------------------

  hook(part) {
    return `blocks.${this.state.layer}.${this.state.focus}.${part}`;
  }

  /** A head's pattern as a block of cells.js: exact where it is here, else in steps of 1/255 with `max` 255. */
  pattern(layer, head) {
    const { trace, state } = this;
    const exact = `blocks.${layer}.${state.focus}.pattern`;
    if (trace.has(exact)) return { block: trace.block(exact, head), max: 1 };
    const { data, shape } = trace.arrays[`patterns.${trace.prefix}${state.focus}`];
    const [, heads, rows, cols] = shape;
    return { block: { data, offset: (layer * heads + head) * rows * cols, stride: cols, rows, cols }, max: 255 };
  }

  /** The key that a row of the shown head attends to most. */
  strongest(row) {
    const { block } = this.pattern(this.state.layer, this.state.head);
    let best = 0;
    for (let col = 1; col < block.cols; col++) if (at(block, row, col) > at(block, row, best)) best = col;
    return best;
  }

  /** The row to read first: the last where it alone has read everything, else that of the head's largest weight. */
  firstRow() {
    const { block } = this.pattern(this.state.layer, this.state.head);
    if (this.trace.model.mask !== "full" || this.state.focus === "cross_attn") return block.rows - 1;
    const best = (row) => at(block, row, this.strongest(row));
    return range(0, block.rows).reduce((found, row) => (best(row) > best(found) ? row : found), 0);
  }

  /** The pointer is over a cell, a row ({row, col: null}) or nothing. */
  point(where) {
    this.hover = where;
    this.view?.mark();
    this.details.mark();
  }
}

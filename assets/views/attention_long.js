// Attention of a text too long to be sent whole: all heads as overviews, and one of them in tiles at the zoom in view. The shell, as
// attention.js is for short texts: it holds what is looked at, and the parts read it (`page`) at every update.
import * as address from "./address.js";
import { AttentionPage } from "./attention_page.js";
import { frame, viewsOf } from "./attention_frame.js";
import { mount as mountHeads } from "./attention_heads.js";
import { mount as mountMap } from "./attention_long_map.js";
import { Numbers } from "./attention_long_numbers.js";
import { mount as mountRow } from "./attention_long_row.js";
import { CSS as LONG } from "./attention_long_style.js";
import { CSS as WINDOW, mount as mountWindow, WINDOWED } from "./attention_long_window.js";
import { clamp, restore } from "./attention_state.js";
import { CSS } from "./attention_style.js";
import { make, range } from "./dom.js";
import { Trace } from "./trace.js";

const NARROW = 800; // CSS pixels of width below which everything stands in one column
const LEFT = { least: 300, share: 0.265, most: 380 }; // the width of all heads
const DETAILS = 300; // the width of the row where it stands beside the map
const ROOMY = 780; // room at the right in which it does
const WIDE = [...WINDOWED, "points"]; // views that take all the room there is
const WIDER = 1140; // unless there is as much
const GAP = 28;

/** data is the payload of views/attention_long.py. */
export function mount(root, data) {
  const page = new LongAttention(root);
  page.update(data);
  return page;
}

class LongAttention extends AttentionPage {
  constructor(root) {
    super();
    this.style = make("style", "", CSS + LONG + WINDOW);
    this.element = make("div", "attention long");
    this.element.loupe = this; // for tests: the numbers behind the picture
    root.append(this.style, this.element);
    this.state = restore(address.read());
    this.hover = null;
    this.edition = 0; // grows with everything that makes every picture another one: data, stack, attention, width, theme
    this.numbers = new Numbers(this, { arrived: () => this.arrived(), failed: (sentence) => this.failed(sentence) });
    this.resize = new ResizeObserver(() => this.element.clientWidth !== this.across && this.trace && this.measure());
    this.resize.observe(this.element);
    this.onKey = (event) => this.key(event);
    window.addEventListener("keydown", this.onKey);
    this.unfollow = address.follow((state) => this.trace && this.go({ zoom: undefined, from: undefined, ...restore(state) }));
  }

  destroy() {
    this.resize.disconnect();
    this.numbers.stop();
    this.view?.destroy();
    window.removeEventListener("keydown", this.onKey);
    this.unfollow();
    this.element.remove();
    this.style.remove();
  }

  update(data) {
    const { state } = this;
    const before = this.trace;
    const changed = before?.model.name !== data.model.name;
    if (changed && (before || !state.chosen)) Object.assign(state, { side: undefined, focus: undefined }, data.look);
    this.data = data;
    if (this.run !== data.trace) this.numbers.begin(data);
    this.run = data.trace;
    this.trace = new Trace(data, state.side in data.lanes ? state.side : undefined);
    const same = before?.side === this.trace.side && before.pieces.join("\n") === this.trace.pieces.join("\n");
    if (before && !same) Object.assign(state, { query: data.look.query, key: undefined, pinned: false, zoom: undefined, from: undefined });
    this.unmeasured();
    this.fit();
    if (before && changed) this.remember();
    if (!this.parts) this.build();
    this.parts.notice(data.notice ?? "");
    this.measure();
  }

  build() {
    this.parts = frame(this);
    this.heads = mountHeads(this.parts.heads, this);
    [this.mapped, this.opening] = [make("div"), make("div")];
    this.parts.room.append(this.mapped, this.opening);
    this.map = mountMap(this.mapped, this);
    this.details = mountRow(this.parts.details, this);
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
    const beside = !this.narrow && right >= (WIDE.includes(this.state.view) ? WIDER : ROOMY);
    const before = this.width;
    this.left = this.narrow ? this.across : left;
    this.width = beside ? right - DETAILS - GAP : right;
    if (this.width !== before) this.edition++;
    this.element.classList.toggle("narrow", this.narrow);
    this.element.classList.toggle("beside", beside);
    this.element.classList.toggle("crossing", this.state.focus === "cross_attn");
    this.element.style.setProperty("--left", `${left}px`);
    this.element.style.setProperty("--details", `${DETAILS}px`);
  }

  /** Puts the state inside what the run has. A key that nobody picked is the strongest of its row, once that is here. */
  fit() {
    const { state, trace } = this;
    const { layers, heads, crosses } = trace.model;
    Object.assign(state, { heads: [], side: trace.side });
    state.focus = crosses && state.focus !== "attn" ? "cross_attn" : "attn";
    if (!viewsOf(this).some(([name]) => name === state.view)) state.view = "map";
    state.layer = clamp(state.layer, layers);
    state.head = clamp(state.head, heads);
    if (!(state.query < trace.length)) state.query = this.firstRow();
    if (!(state.pinned && state.key < this.keys.length)) Object.assign(state, { key: this.row()?.key[0] ?? clamp(state.query, this.keys.length), pinned: false });
  }

  /** The row to read first: the server's choice for the head it chose, else the last where it alone has read everything. */
  firstRow() {
    const { first } = this.data;
    if (first.side === this.state.side && first.focus === this.state.focus) return first.pos;
    return this.trace.model.mask !== "full" || this.state.focus === "cross_attn" ? this.trace.length - 1 : 0;
  }

  /** Merges `change` into the state, remembers it in the address, and shows it everywhere; `jump` brings the cell into view. */
  go({ jump = false, heads = [], ...change }) {
    const { state } = this;
    if (heads.length) [change.layer, change.head] = heads[0];
    const turned = (change.side ?? state.side) !== state.side || (change.focus ?? state.focus) !== state.focus;
    const away = change.side !== undefined && change.side !== this.trace.side && change.side in this.data.lanes;
    if (turned) Object.assign(state, { query: undefined, key: undefined, pinned: false, zoom: undefined, from: undefined });
    if (away) {
      this.trace = new Trace(this.data, change.side);
      Object.assign(state, { focus: undefined, layer: 0, head: 0 });
    }
    const moved = (change.layer ?? state.layer) !== state.layer || (change.head ?? state.head) !== state.head;
    Object.assign(state, change);
    if (change.key !== undefined) state.pinned = true;
    else if (change.query !== undefined) state.pinned = false;
    this.fit();
    if (turned) this.edition++;
    if (this.refused && (moved || turned)) this.failed(""); // what was refused was of the head before
    if (jump && state.view === "map") this.map.reveal(state.query, state.key);
    this.remember();
    this.refresh();
    if (moved || turned) this.tell(`${this.trace.side ? `${this.trace.side}, ` : ""}block ${state.layer + 1}, head ${state.head + 1}`);
  }

  refresh() {
    this.lay();
    this.parts.show();
    this.heads.update();
    this.show();
    this.details.update();
    this.score();
  }

  /** Tiles or a row have come. */
  arrived() {
    this.fit();
    this.show();
    this.details.update();
  }

  /** The tab: the map, which stays, or one that is opened beside it. */
  show() {
    const { view, query } = this.state;
    this.mapped.hidden = view !== "map";
    this.opening.hidden = view === "map";
    if (view === "map") return this.map.update();
    this.numbers.want(this.head, [], query);
    if (this.opened === view) this.view?.update();
    else this.open();
  }

  get place() {
    return this.opening;
  }

  /** A view that takes every number of a pattern gets a window of them. */
  mounted(module, root, name) {
    return WINDOWED.includes(name) ? mountWindow(root, this, module) : module.mount(root, this);
  }

  /** The pointer is over a weight, {row, col}, or nothing. */
  point(where) {
    this.hover = where;
    this.view?.mark();
  }

  /** What is looked at cannot be had, and why; "" once something else is. */
  failed(sentence) {
    this.refused = sentence;
    this.parts.notice(sentence || (this.data.notice ?? ""));
    if (sentence && this.state.view === "map") this.map.say(this.map.window);
    this.details.update();
  }

  // --- scores of the heads, layer by layer, once they are asked for -----------------------------------------------------------

  unmeasured() {
    const { arrays, lanes, scoreTable } = this.data;
    for (const [side, { model }] of Object.entries(lanes)) {
      for (const { key } of scoreTable) arrays[`scores.${side && `${side}.`}attn.${key}`] ??= { data: new Float32Array(model.layers * model.heads).fill(NaN) };
    }
    this.measured = new Set(); // stacks whose scores are here or on their way
  }

  async score() {
    const { data, trace, state, measured } = this;
    if (!state.score || state.focus !== "attn" || measured.has(trace.side)) return;
    measured.add(trace.side);
    try {
      for (const layer of range(0, trace.model.layers)) {
        const { arrays } = await this.request({ ask: "scores", side: trace.side, layer });
        if (data !== this.data) return;
        for (const [key, { data: values }] of Object.entries(arrays)) data.arrays[`scores.${trace.prefix}attn.${key}`].data.set(values, layer * trace.model.heads);
        this.heads.update();
      }
      this.edition++; // what is sorted by a score stands otherwise now
      this.refresh();
    } catch (error) {
      if (data !== this.data) return;
      measured.delete(trace.side);
      this.parts.notice(error.message);
    }
  }

  // --- what the parts ask ------------------------------------------------------------------------------------------------

  /** The shown head, as the server names it. */
  get head() {
    const { side, focus, layer, head } = this.state;
    return { side, focus, layer, head };
  }

  /** A head's overview as a block of cells.js. */
  pattern(layer, head) {
    const { data, shape } = this.trace.arrays[`patterns.${this.trace.prefix}${this.state.focus}`];
    const [, heads, rows, cols] = shape;
    return { block: { data, offset: (layer * heads + head) * rows * cols, stride: cols, rows, cols }, max: 255 };
  }

  /** Every weight of the chosen row ("out") or column ("in"), or a promise where it is not here. */
  line(way) {
    const { query, key } = this.state;
    if (way === "in") return this.column(key).then(({ arrays }) => Float64Array.from(arrays.weights.data));
    const found = this.row();
    return found ? Float64Array.from(found.weights) : this.request({ ask: "row", ...this.head, pos: query }).then(({ arrays }) => Float64Array.from(arrays.weights.data));
  }

  /** Every weight of any row of the shown head; none while they are on their way. */
  weightsOf(pos) {
    const found = this.numbers.row(this.head, pos);
    if (!found) this.numbers.want(this.head, [], pos);
    return Float64Array.from(found?.weights ?? new Float64Array(this.keys.length));
  }

  /** Of a key: what each query gives it, and a sentence on why. */
  column(key) {
    return this.request({ ask: "column", ...this.head, key });
  }

  /** The chosen row of the shown head, or null while it is on its way. */
  row() {
    return this.numbers.row(this.head, this.state.query);
  }
}

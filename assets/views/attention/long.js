// Attention of a text too long to be sent whole: all heads as overviews, and one of them in tiles at the zoom in view. The shell, as
// attention.js is for short texts: it holds what is looked at, and the parts read it (`page`) at every update.
import * as address from "../core/address.js";
import { compared } from "./colours.js";
import { AttentionPage } from "./page.js";
import { frame, viewsOf } from "./frame.js";
import { mount as mountHeads } from "./heads.js";
import { mount as mountMap } from "./long_map.js";
import { Moved } from "./long_moved.js";
import { Numbers } from "./long_numbers.js";
import { mount as mountRow } from "./long_row.js";
import { CSS as LONG } from "./long_style.js";
import { CSS as WINDOW, mount as mountWindow, WINDOWED } from "./long_window.js";
import { Scoring } from "./long_scores.js";
import { clamp, led, restore } from "./state.js";
import { CSS } from "./style.js";
import { make } from "../core/dom.js";
import { percent } from "../core/format.js";
import { Trace } from "../core/trace.js";

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
    this.scores = new Scoring(this);
    this.resize = new ResizeObserver(() => this.element.clientWidth !== this.across && this.trace && this.measure());
    this.resize.observe(this.element);
    this.onKey = (event) => this.key(event);
    window.addEventListener("keydown", this.onKey);
    this.unfollow = address.follow((state) => this.trace && this.go({ zoom: undefined, from: undefined, ...restore(state) }));
  }

  destroy() {
    this.resize.disconnect();
    this.numbers.stop();
    this.scores.stop();
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
    if (changed && (before || !state.chosen)) Object.assign(state, { side: undefined, focus: undefined, heads: [] }, data.look);
    this.data = data;
    if (this.run !== data.trace) this.numbers.begin(data);
    this.run = data.trace;
    this.trace = new Trace(data, state.side in data.lanes ? state.side : undefined);
    const same = before?.side === this.trace.side && before.pieces.join("\n") === this.trace.pieces.join("\n");
    if (before && !same) Object.assign(state, { query: data.look.query, key: undefined, pinned: false, zoom: undefined, from: undefined });
    this.scores.begin(data);
    this.fit();
    if (before && changed) this.remember();
    if (!this.parts) this.build();
    this.parts.notice(data.notice ?? "");
    this.measure();
  }

  build() {
    this.parts = frame(this);
    this.heads = mountHeads(this.parts.heads, this);
    this.mapped = make("div");
    this.opening = make("div");
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
    state.side = trace.side;
    state.focus = crosses && state.focus !== "attn" ? "cross_attn" : "attn";
    if (!viewsOf(this).some(([name]) => name === state.view)) state.view = "map";
    state.layer = clamp(state.layer, layers);
    state.head = clamp(state.head, heads);
    state.heads = led(state.heads.filter(([layer, head]) => layer < layers && head < heads), state.layer, state.head);
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
  go({ jump = false, ...change }) {
    const { state } = this;
    if (change.heads?.length && change.layer === undefined && change.head === undefined) [change.layer, change.head] = change.heads[0];
    const turned = (change.side ?? state.side) !== state.side || (change.focus ?? state.focus) !== state.focus;
    const away = change.side !== undefined && change.side !== this.trace.side && change.side in this.data.lanes;
    if (turned) Object.assign(state, { heads: [], query: undefined, key: undefined, pinned: false, zoom: undefined, from: undefined });
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
    this.scores.go();
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

  /** How far a score has come: {done, steps, scored}, `scored` blocks from the first on; null where every head has it. */
  scoring(key) {
    return this.scores.progress(key);
  }

  /** More heads are scored; where it is `all`, what is sorted by that stands otherwise now. */
  scored(all) {
    if (all) this.edition++;
    if (all) this.refresh();
    else this.heads.update();
  }

  // --- what the parts ask ------------------------------------------------------------------------------------------------

  /** The shown head, as the server names it. */
  get head() {
    const { side, focus, layer, head } = this.state;
    return { side, focus, layer, head };
  }

  /** Lines of several heads say which (take_shown.js); what is taken away of them as data is the shown one's. */
  taken() {
    const { state, trace, keys } = this;
    const heads = compared(this);
    if (state.view !== "lines" || heads.length < 2) return undefined;
    const weight = this.row()?.weights[state.key];
    const where = heads.map(([layer, head]) => `block ${layer + 1} head ${head + 1}`).join(", ");
    const sentence = `block ${state.layer + 1} head ${state.head + 1}: ${trace.pieces[state.query]} → ${keys[state.key]}${weight === undefined ? "" : `: ${percent(weight)}`}`;
    return { where: `${trace.side ? `${trace.side} ` : ""}${where}`, sentence };
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

  /** What the weights of a head move, a promise; the store asks once. */
  async moved(head) {
    const query = /** @type {import("../core/store.js").Query<"moved">} */ ({ ask: "moved", ...head });
    return new Moved(await this.request(query));
  }

  /** That of the shown head, or null while it is on its way: then the map is drawn again. */
  movedHere() {
    const name = JSON.stringify([this.trace.trace, this.head]);
    if (this.weighed?.name === name) return this.weighed.moved;
    const found = (this.weighed = { name, moved: null });
    const late = () => found !== this.weighed;
    this.moved(this.head).then((moved) => late() || (Object.assign(found, { moved }), this.arrived()), (error) => late() || this.failed(error.message));
    return null;
  }

  /** The chosen row of the shown head, or null while it is on its way. */
  row() {
    return this.numbers.row(this.head, this.state.query);
  }
}

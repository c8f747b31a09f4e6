// Attention in full: all heads of a model, one of them in several views, and what its rows and columns say. This is the shell:
// it holds what is looked at and hands the drawing to the others, which read `page` (this object) at every update. How much of a
// run is here is its source's affair (source.js; tiled_source.js for a text too long to be sent whole).
import * as address from "../core/address.js";
import { mount as mountDetails } from "./details.js";
import { frame, viewsOf } from "./frame.js";
import { mount as mountHeads } from "./heads.js";
import { WholeSource } from "./source.js";
import { clamp, led, remembered, restore, VIEWS } from "./state.js";
import { make } from "../core/dom.js";
import { observe } from "../core/observe.js";
import { attempt, SourceShell } from "../core/shell.js";
import { request } from "../core/store.js";
import { Trace } from "../core/trace.js";

const LEFT = { least: 300, share: 0.265, most: 380 }; // the width of all heads
const GAP = 28;
const PRINTED = 660; // CSS pixels of one part on paper: letters of 11 px are then 7.2 points high at 17 cm

/**
 * @typedef {import("./state.js").State} State
 * @typedef {import("./state.js").HeadOfRun} HeadOfRun
 * @typedef {import("./axes.js").Place} Place
 * @typedef {import("../core/store.js").Queries} Queries
 * @typedef {import("../core/store.js").Answers} Answers
 * @typedef {import("../core/trace.js").Model} Model
 * @typedef {import("../core/payload.js").NamedArray} NamedArray
 * @typedef {Partial<State> & { jump?: boolean }} Change of the state; `jump` brings the cell into view
 * @typedef {Place & { only?: boolean }} Hovered what the pointer is over; `only` where a key is meant without its row
 * @typedef {{ block: Block, max: number }} Pattern numbers that are full at `max`
 * @typedef {{ pieces: string[], special: boolean[], model: Pick<Model, "layers" | "heads" | "crosses"> }} Lane a stack as it was sent
 * @typedef {{ trace: string, model: Pick<Model, "name">, lanes: Record<string, Lane>,
 *   look: { layer: number, head: number, query?: number }, notice?: string, plotly: string, scoreTable: import("./scores.js").Score[],
 *   arrays: Record<string, NamedArray> }} WholeData
 * @typedef {WholeData & { tile: number, cells: number, across: number, first: import("./numbers.js").First }} TiledData
 * @typedef {WholeData | TiledData} Data
 * @typedef {import("./source.js").WholeSource | import("./tiled_source.js").TiledSource} Source
 * @typedef {Attention} Page
 * @typedef {Page & { data: TiledData, source: import("./tiled_source.js").TiledSource, numbers: import("./numbers.js").Numbers }} TiledPage
 * @typedef {ReturnType<typeof import("./map.js").mount> | ReturnType<typeof import("./tiles.js").mount>} MapView
 * @typedef {MapView | ReturnType<typeof import("./window.js").mount> | ReturnType<typeof import("./lines.js").mount>
 *   | ReturnType<typeof import("./product.js").mount> | ReturnType<typeof import("./steps.js").mount>
 *   | ReturnType<typeof import("./text.js").mount>
 *   | ReturnType<typeof import("./points.js").mount> | ReturnType<typeof import("./circuits.js").mount>
 *   | ReturnType<typeof import("./alignment.js").mount>} View
 * @typedef {{ mount(root: HTMLElement, page: Page): View }} ViewModule
 * @typedef {(way: import("./over.js").Way) => Float64Array | Promise<Float64Array>} LineOf every weight of the chosen row or column
 */

/**
 * data is the payload of views/attention/attention.py, or of views/attention/long.py, which comes with `tile`.
 * @param {HTMLElement} root
 * @param {Data} data
 */
export function mount(root, data) {
  const page = new Attention(root);
  page.update(data);
  return page;
}

/**
 * What a view of one head reads: of this page, of a window into it (window.js), or of a run on a page about several (compare/face.js).
 * @typedef {{ trace: import("./window.js").HeadTrace, state: State, hover: Hovered | null, width: number, narrow: boolean,
 *   edition: number | string, memoize: import("../core/shell.js").View<Data>["memoize"], keys: string[], specialKeys: boolean[], someKeys?: boolean, drawnAgain?: number, page?: object,
 *   line?: LineOf, weightsOf?: (row: number) => Float64Array, hook(part: string): string, pattern(layer: number, head: number): Pattern,
 *   go(change: Change): void, point(where: Hovered | null): void, tip(title: string | null, value?: string): void,
 *   tell(sentence: string): void,
 *   request<Name extends keyof Queries>(query: import("../core/store.js").Query<Name>): Promise<Answers[Name]>,
 *   end?(name: string, own: number): number }} Face
 */

/** @extends {SourceShell<State, import("./frame.js").Parts, Data, Source>} */
class Attention extends SourceShell {
  /** @type {Trace} */
  trace;
  /** @type {Hovered | null} */
  hover = null;
  /** @type {View | null} */
  view = null;
  /** @type {MapView | null} the view, where it is the map */
  map = null;
  /** @type {string | null} module of the open tab */
  opened = null;
  /** @type {number} CSS pixels of all heads */
  left;
  /** @type {number} CSS pixels of the view */
  width;
  /** @type {ReturnType<typeof mountHeads>} */
  heads;
  /** @type {ReturnType<typeof mountDetails>} */
  details;

  /** @param {HTMLElement} root */
  constructor(root) {
    const loadTiled = () => import("./tiled_source.js");
    super(root, "attention", { restore, remembered, Whole: WholeSource, loadTiled });
    observe(this);
  }

  destroy() {
    this.view?.destroy();
    super.destroy();
  }

  /** @param {Partial<State>} state */
  turn(state) {
    this.go({ ...without(Object.keys(this.state)), ...state });
  }

  /**
   * @param {Data} data
   * @param {new (page: object) => Attention["source"]} Source
   */
  take(data, Source) {
    const { state } = this;
    const before = this.trace;
    const changed = before?.model.name !== data.model.name;
    if (changed && (before || !state.chosen))
      Object.assign(state, { side: undefined, focus: undefined, layer: 0, head: 0, heads: [] }, data.look);
    this.data = data;
    if (this.adopt(Source)) {
      this.view?.destroy(); // a view of one source is not that of another
      this.view = this.map = this.opened = null;
    }
    this.trace = new Trace(data, state.side !== undefined && state.side in data.lanes ? state.side : undefined);
    const same = before?.side === this.trace.side && before.pieces.join("\n") === this.trace.pieces.join("\n");
    if (before && !same)
      Object.assign(state, { query: data.look.query, key: undefined, pinned: false, zoom: undefined, from: undefined });
    this.hover = null;
    this.source.begin(data);
    this.fit();
    if (before && changed) this.remember();
    address.show(state);
    if (!this.parts) this.build();
    this.parts.notice(data.notice ?? "");
    this.measure();
  }

  build() {
    this.parts = frame(this);
    this.heads = mountHeads(this.parts.heads, this);
    this.details = mountDetails(this.parts.details, this);
  }

  /** Parts of which a picture can be made, the whole among them. */
  pictures() {
    const tab = VIEWS.find(([name]) => name === this.state.view)?.[1] ?? "";
    return [
      ["", "everything"],
      ["plot", `${tab} alone`],
      ["heads", "all heads"],
    ];
  }

  /**
   * For a picture of one part: it is laid out again, as wide as its letters are legible on paper.
   * @param {boolean} on
   */
  unfold(on, part = "") {
    const { element } = this;
    if (!on) delete element.dataset.part;
    else if (part) element.dataset.part = part;
    if (element.parentElement) element.parentElement.style.maxWidth = on && part ? `${PRINTED}px` : "";
    this.measure();
  }

  lay() {
    const { element, source } = this;
    this.narrow ||= Boolean(element.dataset.part);
    const left = Math.round(Math.max(LEFT.least, Math.min(LEFT.most, this.across * LEFT.share)));
    const right = this.narrow ? this.across : this.across - left - GAP;
    const beside = !this.narrow && right >= source.roomy();
    this.left = this.narrow ? this.across : left;
    this.width = beside ? right - source.details - GAP : right;
    const classes = { narrow: this.narrow, beside, long: source.tiled, crossing: this.state.focus === "cross_attn" };
    for (const [name, on] of Object.entries(classes)) element.classList.toggle(name, on);
    element.style.setProperty("--left", `${left}px`);
    element.style.setProperty("--details", `${source.details}px`);
  }

  /** Puts the state inside what the trace has, and chooses a row and a key where none is. */
  fit() {
    const { state, trace, source } = this;
    const { layers, heads, crosses } = trace.model;
    state.side = trace.side;
    state.focus = crosses && state.focus !== "attn" ? "cross_attn" : "attn";
    state.layer = clamp(state.layer, layers);
    state.head = clamp(state.head, heads);
    state.heads = led(
      state.heads.filter(([layer, head]) => layer < layers && head < heads),
      state.layer,
      state.head,
    );
    if (!viewsOf(this).some(([name]) => name === state.view)) state.view = "map";
    if (!(state.query < trace.length)) state.query = source.firstRow();
    if (!(state.pinned && state.key < this.keys.length))
      Object.assign(state, { key: source.strongest(state.query), pinned: false });
  }

  /**
   * Merges `change` into the state, remembers it in the address, and shows it everywhere; `jump` brings the cell into view.
   * @param {Change} change
   */
  go({ jump = false, ...change }) {
    const { state, source } = this;
    if (change.heads?.length && change.layer === undefined && change.head === undefined)
      [change.layer, change.head] = change.heads[0];
    const turned = (change.side ?? state.side) !== state.side || (change.focus ?? state.focus) !== state.focus;
    if (turned)
      Object.assign(state, {
        heads: [],
        query: undefined,
        key: undefined,
        pinned: false,
        zoom: undefined,
        from: undefined,
      });
    if (change.side !== undefined && change.side !== this.trace.side && change.side in this.data.lanes) {
      this.trace = new Trace(this.data, change.side);
      Object.assign(state, { focus: undefined, layer: 0, head: 0 });
    }
    const moved = (change.layer ?? state.layer) !== state.layer || (change.head ?? state.head) !== state.head;
    Object.assign(state, change);
    if (change.key !== undefined && change.key !== null) state.pinned = true;
    else if (source.tiled && change.query !== undefined) state.pinned = false;
    this.fit();
    if (turned) this.hover = null;
    if (turned) this.edition++;
    if (moved || turned) source.turn();
    if (jump && this.map && "reveal" in this.map) this.map.reveal(state.query, state.key);
    this.remember();
    this.refresh();
    if (moved || turned)
      this.tell(`${this.trace.side ? `${this.trace.side}, ` : ""}block ${state.layer + 1}, head ${state.head + 1}`);
  }

  /** Shows the state everywhere; numbers that are not here yet are asked for, and shown when they are. */
  refresh() {
    this.lay();
    this.parts.show();
    this.heads.update();
    this.show();
    this.element.dataset.ready = this.data.trace;
  }

  /** The open tab and the details. */
  show() {
    const name = this.source.module(this.state.view);
    if (this.opened === name) this.view?.update();
    else this.open(name);
    this.details.update();
    this.source.bring();
  }

  /** Numbers have come: a row or tiles of a long text. */
  arrived() {
    this.fit();
    this.show();
  }

  /**
   * Opens a tab by the name of its module; the one before stays until the module is here.
   * @param {string} name
   */
  async open(name) {
    this.opened = name;
    const root = make("div", `view view-${this.state.view}`);
    const { module, sorry } = await attempt(() => import(`./${name}.js`));
    if (this.opened !== name) return;
    this.view?.destroy();
    this.view = this.map = null;
    this.parts.room.replaceChildren(root);
    if (sorry) return root.append(sorry());
    this.view = this.source.mount(module, root, name);
    if (this.state.view === "map") this.map = /** @type {MapView} */ (this.view);
    this.view.update();
    this.details.update(); // which may say what the map knows
  }

  /**
   * The pointer is over a cell, a row ({row, col: null}) or nothing.
   * @param {Hovered | null} where
   */
  point(where) {
    this.hover = where;
    this.view?.mark();
    this.details.mark();
  }

  /**
   * Asks about the run that is looked at.
   * @template {keyof import("../core/store.js").Queries} Name
   * @param {import("../core/store.js").Query<Name>} query
   */
  request(query) {
    return request({ trace: this.trace.trace, ...query });
  }

  // --- what the views ask ------------------------------------------------------------------------------------------------

  /** Address of plotly.js. */
  get plotly() {
    return this.data.plotly;
  }

  /** The pieces of the columns. */
  get keys() {
    return this.trace.keys(this.state.focus);
  }

  /** Whether each column is a special token. */
  get specialKeys() {
    return ((this.state.focus === "cross_attn" && this.trace.source) || this.trace).special;
  }

  /** The shown head, as the server names it. */
  get head() {
    const { side, focus, layer, head } = this.state;
    return { side, focus, layer, head };
  }

  /** @param {string} part */
  hook(part) {
    return `blocks.${this.state.layer}.${this.state.focus}.${part}`;
  }

  /**
   * A head's pattern as a block of cells.js, whose numbers are full at `max`.
   * @param {number} layer
   * @param {number} head
   * @returns {Pattern}
   */
  pattern(layer, head) {
    return this.source.pattern(layer, head);
  }

  /** The chosen row of the shown head, or null while it is on its way. */
  row() {
    return this.source.row(this.state.query);
  }

  /** What the open tab shows in place of the pattern (share/shown.js). */
  taken() {
    return this.source.taken();
  }

  /**
   * How far a score has come that is asked for block by block: {done, steps, scored}; null where every head has it.
   * @param {string} key
   */
  scoring(key) {
    return this.source.scoring(key);
  }

  // --- of a source that holds no whole pattern -----------------------------------------------------------------------------

  get numbers() {
    return this.source.tiled ? this.source.numbers : undefined;
  }

  get scores() {
    return this.source.tiled ? this.source.scores : undefined;
  }

  get refused() {
    return this.source.tiled ? this.source.refused : "";
  }

  /** Gives every weight of the chosen row ("out") or column ("in"), or a promise of them; undefined where patterns are here. */
  get line() {
    return this.source.tiled ? this.source.line : undefined;
  }

  /** Gives every weight of any row; undefined where patterns are here. */
  get weightsOf() {
    return this.source.tiled ? this.source.weightsOf : undefined;
  }

  /**
   * What the weights of a head move, a promise.
   * @param {HeadOfRun} head
   */
  moved(head) {
    return this.source.tiled ? this.source.moved(head) : null;
  }

  /** That of the shown head, or null while it is on its way. */
  movedHere() {
    return this.source.tiled ? this.source.movedHere() : null;
  }

  /**
   * More heads are scored; where it is `all`, what is sorted by that stands otherwise now.
   * @param {boolean} all
   */
  scored(all) {
    if (all) this.edition++;
    if (all) this.refresh();
    else this.heads.update();
  }
}

/**
 * Entries that are not there, for what the address does not name any more.
 * @param {string[]} names
 */
function without(names) {
  return Object.fromEntries(names.map((name) => [name, undefined]));
}

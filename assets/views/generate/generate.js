// From a distribution to text: what a model writes, token by token. This is the shell of what the page draws itself: it holds the prompt and the tree of what was
// written; the open tab reads `page` (this object) at every update. Which tab is open, and every form and chart, are the page's.
import { bubble } from "../components/bubble.js";
import * as address from "../core/address.js";
import { make } from "../core/dom.js";
import { attempt, isElsewhere, Shell } from "../core/shell.js";
import { inquire, onHeldUp, request, stream } from "../core/store.js";
import { comingOf, comingQuery, Run } from "./streams.js";
import { stepQuery, stepsOf, tokenOf, treeOf } from "./tree.js";

/**
 * @typedef {Generate} Page
 * @typedef {import("../core/payload.js").NamedArray} NamedArray
 * @typedef {import("../core/host.js").Emit} Emit
 * @typedef {import("./tree.js").Settings} Settings
 * @typedef {import("./tree.js").Stop} Stop
 * @typedef {import("./streams.js").Asked} Asked
 * @typedef {import("./streams.js").Part} Part
 * @typedef {{ ids: number[], pieces: string[], special: boolean[], roles?: string[] }} TextOf
 * @typedef {{ rows: number, columns: number, pixels: number }} Pixels
 * @typedef {{ beams: number, penalty: number, [option: string]: unknown }} Wanted
 * @typedef {{ ids?: number[], at?: number | null }} Branch
 * @typedef {{ trace: string, model: string, kind: string, prompt: TextOf, source: TextOf | null, tokens: number, gap: { mask: number, start: number } | null,
 *   spaced: boolean, grid: Pixels | null, ends: number[], left: number, fits: boolean, follows: boolean, missing: Record<string, unknown>,
 *   full: Stop | null, context: number, vocab: number, settings: Settings, view: string, notice?: string, beam: Wanted,
 *   surprise: { reads: string, stride: "half" | "quarter" | "whole", charted: number }, looked?: number, branch: Branch, talks?: boolean, thinking: [open: string, close: string][],
 *   kept?: import("./tree.js").Kept, arrays: Record<string, NamedArray> }} Data
 * @typedef {Record<string, any>} State what the address keeps
 * @typedef {{ where?: string, what?: string, sentence?: string, asks?: { tab?: Asked, tables?: Record<string, Asked> }, file?: string }} Looked
 * @typedef {{ update: () => void, destroy: () => void, key?: (event: KeyboardEvent) => void, stop?: () => boolean, looked?: () => Looked,
 *   unfold?: (on: boolean) => void }} Tab
 */

/** @type {Record<string, [title: string, load?: () => Promise<{ mount: (room: HTMLElement, page: Page) => Tab }>]>} */
const VIEWS = {
  write: ["Write", () => import("./write.js")],
  beam: ["Beam", () => import("./beam.js")],
  cache: ["Cache", () => import("./cache.js")],
  surprise: ["Surprise", () => import("./surprise.js")],
};
const CONTROLS = ["view", "t", "numbers", "prompting", "surprise", "surprise_stride"]; // of the page, which older links have after the #
const PREFIXES = ["beam_", "p_"];
const FIELDS =
  "input, textarea, select, button, a, canvas, [contenteditable], [role=slider], [role=combobox], [role=tab], [role=radio]"; // whose keys are their own
const OWN = ["beam_step", "beam_node"];

/**
 * @param {HTMLElement} root
 * @param {Data} data the payload of views/generate/generate.py
 * @param {(event: string, value: unknown) => void} emit "interrupt": what comes in parts holds up what is asked next; "link": controls that an older link names;
 *   "branch": the branch that is shown; "look": the token that is looked at; "measured": steps that are here; "open": another tab;
 *   "keep": the branch that becomes a turn of the conversation
 */
export function mount(root, data, emit) {
  const page = new Generate(root, emit);
  page.update(data);
  return page;
}

/** @extends {Shell<State, { tip: ReturnType<typeof bubble>["show"], live: HTMLElement }, Data>} */
class Generate extends Shell {
  /** @type {import("./tree.js").Tree} */
  tree;
  /** @type {string} the tab that is open */
  view;
  /** @type {Tab | null} */
  tab;
  /** @type {string} the branch that the page was told, in words */
  reported;

  /**
   * @param {HTMLElement} root
   * @param {Emit} emit
   */
  constructor(root, emit) {
    super(root, "generate", { restore: (entries) => entries, emit });
    this.interrupts = 0;
    this.run = new Run(this);
    this.build();
    this.onHide = () => this.tree?.save(); // a reload asks for no destroy()
    window.addEventListener("pagehide", this.onHide);
    onHeldUp(() => this.isShared || this.interrupt());
  }

  /** @param {State} entries */
  turn(entries) {
    this.state = entries;
    this.adoptLink();
    this.refresh();
  }

  build() {
    this.notice = make("p", "notice");
    this.views = make("div", "views");
    this.room = make("div", "room");
    const [pointed, live] = [bubble(this.element), make("output", "live")];
    this.parts = { tip: pointed.show, live };
    this.element.append(this.notice, this.views, this.room, pointed.element, live);
  }

  destroy() {
    this.emit = null; // the page is left, and nothing need be interrupted
    this.run.leave();
    this.tree.save();
    window.removeEventListener("pagehide", this.onHide);
    this.tab?.destroy();
    super.destroy();
  }

  /** @param {Data} data */
  update(data) {
    const { data: old } = this;
    if (old && old.trace !== data.trace) this.run.forget();
    const before = old?.view;
    this.data = data;
    this.alone = Boolean(data.kept); // in a file, where nothing can be asked that is not there
    this.tree = treeOf(data.trace, data.kept);
    this.element.dataset.trace = data.trace;
    this.notice.textContent = data.notice ?? "";
    this.notice.hidden = !data.notice;
    if (!this.alone) this.view = data.view;
    else this.showViews(this.view ?? data.view);
    if (this.run.active && before === "write" && this.view !== before) this.interrupt(); // and shares the server from then on
    this.measure();
    this.adoptLink();
    this.reportBranch();
  }

  /**
   * Merges `change` into the state, remembers it in the address, and shows it.
   * @param {Partial<State>} change
   */
  go(change) {
    this.remember(change);
    this.refresh();
  }

  /** @param {Partial<State>} change */
  remember(change = {}) {
    this.state = { ...this.state, ...change };
    address.write(change);
  }

  refresh() {
    if (!this.across) return;
    if (this.opened === this.view) this.tab?.update();
    else this.open(this.view);
  }

  /**
   * Draws what the component has of a tab; what was there before stays until the module is here.
   * @param {string} name
   */
  async open(name) {
    this.opened = name;
    const { module, sorry } = await attempt(async () => VIEWS[name]?.[1]?.());
    if (this.opened !== name) return;
    this.tab?.destroy();
    this.tab = null;
    const place = make("div", `view view-${name}`);
    this.room.replaceChildren(place);
    this.element.dataset.ready = name;
    if (sorry) return place.append(sorry());
    this.tab = module?.mount(place, this) ?? null;
    this.tab?.update();
  }

  // --- the page around it --------------------------------------------------------------------------------------------------

  /**
   * A file that works alone has no tabs around it: those that this component draws.
   * @param {string} view
   */
  showViews(view) {
    this.view = view;
    const names = Object.keys(VIEWS).filter((name) => !this.data.missing[name]);
    this.views.replaceChildren(
      ...names.map((name) => {
        const button = make("button", "", VIEWS[name][0]);
        button.type = "button";
        button.setAttribute("aria-pressed", String(name === view));
        button.addEventListener("click", () => {
          this.showViews(name);
          this.refresh();
        });
        return button;
      }),
    );
  }

  /** Controls that an older link, or somebody's hand, has put after the #: the page sets them, and they leave the address. */
  adoptLink() {
    if (this.alone || !this.emit) return;
    /** @param {string} name */
    const named = (name) => this.state[name] !== null && !OWN.includes(name);
    const names = Object.keys(this.state).filter(
      (name) => named(name) && (CONTROLS.includes(name) || PREFIXES.some((one) => name.startsWith(one))),
    );
    if (!names.length) return;
    const linked = Object.fromEntries(names.map((name) => [name, this.state[name]]));
    this.remember(Object.fromEntries(names.map((name) => [name, null])));
    this.emit("link", linked);
  }

  /** What the page draws itself depends on the branch that is shown, and on the token that is looked at. */
  reportBranch() {
    const { data, tree, view } = this;
    if (this.alone || this.run.active || view === "write" || view === "beam" || view === "prompting") return;
    const branch = { ids: tree.ids(), at: view === "temperature" ? tree.at : (data.branch.at ?? null) };
    const said = JSON.stringify([data.trace, branch]);
    if (said === JSON.stringify([data.trace, data.branch]) || said === this.reported) return;
    this.reported = said;
    this.emit?.("branch", { trace: data.trace, ...branch });
  }

  /** @param {string} name */
  openTab(name) {
    if (this.alone) {
      this.showViews(name);
      this.refresh();
    } else this.emit?.("open", name);
  }

  // --- for the tabs --------------------------------------------------------------------------------------------------------

  /**
   * Asks the server about this prompt; the answer is remembered, and stands in a file that works alone.
   * @template {keyof import("../core/store.js").Queries} Name
   * @param {import("../core/store.js").Query<Name>} query
   */
  request(query) {
    return request({ trace: this.data.trace, ...query });
  }

  /**
   * Asks what has another answer each time.
   * @template {keyof import("../core/store.js").Queries} Name
   * @param {import("../core/store.js").Query<Name>} query
   */
  inquire(query) {
    return inquire({ trace: this.data.trace, ...query });
  }

  /**
   * Asks what comes in parts (store.js).
   * @param {() => Asked} query
   * @param {(part: Part) => void} take
   * @param {AbortSignal} signal
   */
  stream(query, take, signal) {
    return stream(() => ({ trace: this.data.trace, ...query() }), take, signal);
  }

  /** Whether a text is written while another tab is open: what comes is broken off soon anyway (views/generate/streaming.py). */
  get isShared() {
    return this.run.active && this.view !== "write";
  }

  /** By the rerun of the page that follows: what comes is broken off, and asked for anew if it is wanted. */
  interrupt() {
    this.emit?.("interrupt", ++this.interrupts);
  }

  /** The ids of the branch that is shown, without the prompt's. */
  get written() {
    return this.tree.ids();
  }

  /**
   * Puts a text (ids after the prompt) into the tree as a branch, and shows it in the tab Write; with `on`, it is continued from there.
   * @param {number[]} ids
   */
  async branch(ids, settings = this.data.settings, on = false) {
    const { tree } = this;
    let [key, known] = tree.follow(ids);
    if (known < ids.length) {
      const answer = await this.request({ ask: "steps", begun: ids.slice(0, known), ids: ids.slice(known), settings });
      stepsOf(answer).forEach(
        (step, i) => (key = tree.add(key, tokenOf(step, { chosen: true, stop: answer.stops[i] }), settings)),
      );
    }
    Object.assign(tree, { shown: key, at: null });
    tree.save();
    this.openTab("write");
    if (on) this.run.begin(key);
  }

  // --- keyboard, export ----------------------------------------------------------------------------------------------------

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key === "Escape" && this.run.active) return this.run.stop();
    if (event.key === "Escape" && this.tab?.stop?.()) return;
    if (this.tab && !isElsewhere(event, FIELDS)) this.tab.key?.(event);
  }

  /** What is looked at, for the panel of share.js. */
  looked() {
    const { where = "", what = "", sentence = "", asks = {}, file = "" } = this.tab?.looked?.() ?? {};
    const title = VIEWS[this.view]?.[0] ?? "";
    return {
      where,
      what: what || title,
      sentence,
      asks: { ...asks, tables: this.tables(asks), file: { of: { kept: this.kept(), branch: this.written } } },
      file: file || this.view,
    };
  }

  /**
   * The question that each table of take.matrices answers: that of the open tab as it is looked at, of the others as they open.
   * @param {NonNullable<Looked["asks"]>} asks
   */
  tables({ tab, tables = {} }) {
    const { written, data } = this;
    const begun = { begun: written };
    return {
      "Write: tokens": { ask: "written", ids: written },
      "Write: one step": { ask: "step", ...begun, settings: data.settings },
      "Beam: hypotheses": { ask: "beam", wanted: data.beam },
      "Beam: best and greedy": { ask: "paths", wanted: data.beam },
      "Cache: keys and values": { ask: "cache", ...begun },
      "Cache: costs by length": { ask: "costs", ...begun },
      "Surprise: tokens": tab?.ask === "surprise" ? tab : { ask: "surprise", written },
      ...tables,
    };
  }

  /** The tree, what came in parts, and what a file alone must know to show each of their steps. */
  kept() {
    const { tree, data } = this;
    const asks = [...tree.nodes.values()]
      .filter(({ key }) => key)
      .map((node) => ({ trace: data.trace, ...stepQuery(tree, node) }));
    const coming = comingOf(data.trace);
    const first = [
      ...Object.values(coming).flat().map(comingQuery),
      { ask: "step", begun: tree.ids(), settings: data.settings },
    ];
    return { ...tree.kept(), coming, asks: [...first.map((one) => ({ trace: data.trace, ...one })), ...asks] };
  }

  missed() {
    return [];
  }

  /**
   * For a picture: what scrolls by itself is drawn as long as it is.
   * @param {boolean} on
   */
  unfold(on) {
    this.tab?.unfold?.(on);
  }
}

// From a distribution to text: what a model writes, token by token. This is the shell: it holds the prompt, the tree of what was written and the
// open tab; the tabs read `page` (this object) at every update.
import * as address from "../core/address.js";
import { CSS as ATTENTION } from "../attention/style.js";
import { bubble } from "../components/bubble.js";
import { make } from "../core/dom.js";
import { comingOf, comingQuery } from "./coming.js";
import { Run } from "./run.js";
import { CSS } from "./style.js";
import { stepQuery, stepsOf, tokenOf } from "./steps.js";
import { known, shownFor, TABS, tabLine } from "./tabs.js";
import { treeOf } from "./tree.js";
import { inquire, onHeldUp, request, stream } from "../core/store.js";

const NARROW = 800; // CSS pixels of width below which everything stands in one column

/** data is the payload of views/generate.py. Emits "interrupt": what comes in parts holds up what is asked next. */
export function mount(root, data, emit) {
  const page = new Generate(root, emit);
  page.update(data);
  return page;
}

class Generate {
  constructor(root, emit) {
    Object.assign(this, { emit, interrupts: 0 });
    this.style = make("style", "", ATTENTION + CSS);
    this.element = make("div", "attention generate");
    this.element.loupe = this; // for tests: the numbers behind the picture
    root.append(this.style, this.element);
    this.state = address.read();
    this.run = new Run(this);
    this.styled = new Set();
    this.build();
    this.resize = new ResizeObserver(() => this.element.clientWidth !== this.across && this.data && this.measure());
    this.resize.observe(this.element);
    this.onKey = (event) => this.key(event);
    window.addEventListener("keydown", this.onKey);
    this.onHide = () => this.tree?.save(); // a reload asks for no destroy()
    window.addEventListener("pagehide", this.onHide);
    onHeldUp(() => this.isShared || this.interrupt());
    this.unfollow = address.follow((state) => {
      this.state = state;
      if (this.data) this.refresh();
    });
  }

  build() {
    this.tabs = tabLine(this);
    this.notice = make("p", "notice");
    this.room = make("div", "room");
    this.room.setAttribute("role", "tabpanel");
    this.pointed = bubble(this.element);
    this.live = make("output", "live");
    this.element.append(this.notice, this.tabs.element, this.room, this.pointed.element, this.live);
  }

  destroy() {
    this.emit = null; // the page is left, and nothing need be interrupted
    this.run.leave();
    this.tree.save();
    this.resize.disconnect();
    window.removeEventListener("keydown", this.onKey);
    window.removeEventListener("pagehide", this.onHide);
    this.unfollow();
    this.tab?.destroy();
    this.element.remove();
    this.style.remove();
  }

  update(data) {
    if (this.data && this.data.trace !== data.trace) this.run.forget();
    this.data = data;
    this.alone = Boolean(data.kept); // in a file, where nothing can be asked that is not there
    this.tree = treeOf(data.trace, data.kept);
    this.notice.textContent = data.notice ?? "";
    this.notice.hidden = !data.notice;
    this.measure();
  }

  /** How much room there is, and everything drawn again in it. */
  measure() {
    this.across = this.element.clientWidth;
    if (!this.across) return;
    this.width = this.across;
    this.narrow = this.across < NARROW;
    this.element.classList.toggle("narrow", this.narrow);
    this.refresh();
  }

  /** The open tab: what the address names, if there is such a tab and it has something to show. */
  get view() {
    return shownFor(this.state.view, this.data);
  }

  /** Merges `change` into the state, remembers it in the address, and shows it. */
  go(change) {
    const { view } = this;
    this.state = { ...this.state, ...change };
    if (this.run.active && view === "write" && this.view !== view) this.interrupt(); // and shares the server from then on
    this.remember();
    this.refresh();
  }

  remember() {
    const { view } = this.state; // what was asked for, whether this prompt has it or not
    address.write({ ...this.state, view: known(view) && view !== TABS[0][0] ? view : null });
  }

  refresh() {
    if (!this.across) return;
    this.tabs.show();
    if (this.opened === this.view) this.tab?.update();
    else this.open(this.view);
  }

  /** Opens a tab; the one before stays until the module is here. */
  async open(name) {
    this.opened = name;
    let module = null;
    let failure = null;
    try {
      module = await TABS.find(([one]) => one === name)[3]();
    } catch (error) {
      failure = error;
    }
    if (this.opened !== name) return;
    if (module?.CSS && !this.styled.has(name)) this.style.textContent += module.CSS;
    this.styled.add(name);
    this.tab?.destroy();
    this.tab = null;
    const place = make("div", `view view-${name}`);
    this.room.replaceChildren(place);
    this.room.setAttribute("aria-label", TABS.find(([one]) => one === name)[1]);
    this.element.dataset.ready = name;
    if (failure) {
      console.error(failure);
      place.append(make("p", "sentence", `This view could not be loaded: ${failure.message}. Reload the page; if it stays, report it.`));
      return;
    }
    this.tab = module.mount(place, this);
    this.tab.update();
  }

  // --- for the tabs --------------------------------------------------------------------------------------------------------

  /** Asks the server about this prompt; the answer is remembered, and stands in a file that works alone. */
  request(query) {
    return request({ trace: this.data.trace, ...query });
  }

  /** Asks what has another answer each time. */
  inquire(query) {
    return inquire({ trace: this.data.trace, ...query });
  }

  /** Asks what comes in parts (store.js). */
  stream(query, take, signal) {
    return stream(() => ({ trace: this.data.trace, ...query() }), take, signal);
  }

  /** Whether a text is written while another tab is open: what comes is broken off soon anyway (views/generate_parts.py). */
  get isShared() {
    return this.run.active && this.view !== "write";
  }

  /** By the rerun of the page that follows: what comes is broken off, and asked for anew if it is wanted. */
  interrupt() {
    this.emit?.("interrupt", ++this.interrupts);
  }

  tip(title, value) {
    this.pointed.show(title, value);
  }

  tell(sentence) {
    this.live.textContent = sentence;
  }

  /** The ids of the branch that is shown, without the prompt's. */
  get written() {
    return this.tree.ids();
  }

  /** Puts a text (ids behind the prompt) into the tree as a branch, and shows it in the tab Write; with `on`, it is written on from there. */
  async branch(ids, settings = this.data.settings, on = false) {
    const { tree } = this;
    let [key, known] = tree.follow(ids);
    if (known < ids.length) {
      const answer = await this.request({ ask: "steps", begun: ids.slice(0, known), ids: ids.slice(known), settings });
      stepsOf(answer).forEach((step, i) => (key = tree.add(key, tokenOf(step, { chosen: true, stop: answer.stops[i] }), settings)));
    }
    Object.assign(tree, { shown: key, at: null });
    tree.save();
    this.go({ view: "write" });
    if (on) this.run.begin(key);
  }

  // --- keyboard, take away -------------------------------------------------------------------------------------------------

  key(event) {
    const target = event.composedPath()[0];
    if (event.key === "Escape" && this.run.active) return this.run.stop();
    if (event.key === "Escape" && this.tab?.stop?.()) return;
    if (!this.tab || event.ctrlKey || event.metaKey || event.altKey || target.closest?.("input, textarea, select, button, a, [contenteditable], [role=slider], [role=combobox]")) return;
    this.tab.key?.(event);
  }

  /** What is looked at, to be taken away (take_shown.js). */
  looked() {
    const { where = "", what = "", sentence = "", asks = {}, file = "" } = this.tab?.looked?.() ?? {};
    const title = TABS.find(([name]) => name === this.view)[1];
    return { where, what: what || title, sentence, asks: { tab: this.view, branch: this.written, ...asks, kept: this.kept() }, file: file || this.view };
  }

  /** The tree, what came in parts, and what a file alone must know to show each of their steps. */
  kept() {
    const { tree, data } = this;
    const asks = [...tree.nodes.values()].filter(({ key }) => key).map((node) => ({ trace: data.trace, ...stepQuery(tree, node) }));
    const coming = comingOf(data.trace);
    const first = [...Object.values(coming).flat().map(comingQuery), { ask: "step", begun: tree.ids(), settings: data.settings }];
    return { ...tree.kept(), coming, asks: [...first.map((one) => ({ trace: data.trace, ...one })), ...asks] };
  }

  missed() {
    return [];
  }

  /** For a picture: what scrolls by itself is drawn as long as it is. */
  unfold(on) {
    this.tab?.unfold?.(on);
  }
}


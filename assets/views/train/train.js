// Train: a model learns, and its whole past can be gone through. This is the shell: it follows a run, holds what is looked at, and
// hands the drawing to the parts, which read `page` (this object) at every update.
import { bubble } from "../components/bubble.js";
import { byArrows } from "../components/tablist.js";
import * as address from "../core/address.js";
import { make } from "../core/dom.js";
import { observe } from "../core/observe.js";
import { isElsewhere } from "../core/shell.js";
import { inquire } from "../core/store.js";
import * as curves from "./curves.js";
import * as probe from "./probe.js";
import { Follower, Overlays, Run, upTo } from "./run.js";
import * as share from "./share.js";
import * as transport from "./transport.js";
import * as two from "./two_steps.js";
import * as watch from "./watch.js";

/**
 * @import { Entries } from "../core/address.js"
 * @import { NamedArray } from "../core/payload.js"
 * @import { Query } from "../core/store.js"
 * @import { Curves } from "./curves.js"
 * @import { AttentionKey, Update } from "./run.js"
 */

/**
 * @typedef {TrainView} Page
 * @typedef {StreamlitComponent["setTriggerValue"]} Emit
 * @typedef {"two" | "gradients" | "weights" | "activations"} Tab
 * @typedef {{ step: number | "live", other: number | null, attention: AttentionKey | undefined, layer: number, head: number,
 *   position: number | null, tab: Tab, log: boolean, curve: string, chosen: boolean }} State
 * @typedef {{ name: string, line: string, problem: string, asks: boolean, recipe: string, seconds: number | null }} Plan
 * @typedef {{ run: string, recorded: string, plan: Plan, overlays: string[], commands: number, plotly: string,
 *   templates: Record<string, object>, arrays: Record<string, NamedArray> }} CommonData
 * @typedef {CommonData & { told?: undefined }} LiveData
 * @typedef {CommonData & { told: Omit<Update, "arrays"> & { note: string }, laid: { name: string, columns: string[] }[] }} Recording
 * @typedef {LiveData | Recording} Data
 * @typedef {{ update: () => void, mark?: () => void, destroy?: () => void }} Part
 * @typedef {Required<Part> & { live: HTMLElement, curves: Curves, tip: (title: string | null, value?: string) => void,
 *   say: (sentence: string) => void, play: () => unknown }} Parts
 * @typedef {Omit<Query<"order">, "run"> | Omit<Query<"fork">, "run"> | Omit<Query<"probe">, "run">} Order
 */

const FIELDS = "input, textarea, select, button, summary, a, [contenteditable]"; // whose keys are their own

/**
 * data is the payload of pages/train/train.py. Emits "look" (a run's name), "overlay" (names), "command" (its name) and "order" (a column).
 * @param {HTMLElement} root
 * @param {Data} data
 * @param {Emit} emit
 */
export function mount(root, data, emit) {
  const page = new TrainView(root, emit);
  page.update(data);
  return page;
}

class TrainView extends Run {
  /** @type {Entries | null} by the link with which the page was opened */
  asked;
  /** @type {Update[] | null} what is told while a picture is taken */
  held;

  /**
   * @param {HTMLElement} root
   * @param {Emit} emit
   */
  constructor(root, emit) {
    super(root, "train", { restore, emit });
    this.asked = address.read();
    this.held = null;
    this.trouble = ""; // why the page is not told of the run just now
    this.follower = new Follower(
      (answer) => this.receive(answer),
      (sentence) => this.reportTrouble(sentence),
    );
    this.others = new Overlays((name, sentence) => this.updateOverlay(name, sentence));
    if (this.asked.runs) emit("order", String(this.asked.runs)); // in links of an earlier version
    observe(this);
  }

  destroy() {
    this.follower.close();
    this.others.close();
    this.parts?.destroy();
    super.destroy();
  }

  /** @param {Data} data */
  update(data) {
    const { data: before } = this;
    this.data = data;
    if (!this.parts) this.build();
    if (data.told) return this.showExport(data, !before);
    const another = data.run ? data.run !== before?.run && data.run !== this.run : data.recorded !== before?.recorded;
    if (!before || another || (before.run && !data.run)) this.follow(data.run);
    else if (data.commands !== before.commands) this.follower.soon(); // what the page below told a run to do
    this.others.show(data.overlays.filter((name) => name !== this.run));
    this.measure();
  }

  build() {
    this.parts = frame(this);
    this.element.dataset.ready = "true";
  }

  /**
   * Looks at another run, whose numbers are on their way.
   * @param {string} run
   */
  follow(run) {
    if (this.run !== null) Object.assign(this.state, { step: "live", other: null });
    this.forget(run);
    this.remember();
    this.follower.follow(run || this.data.recorded ? run : null);
  }

  /**
   * Looks at a run that has just begun, and has it stand in the address; `beside` are overlaid.
   * @param {string} run
   * @param {string[] | null} beside
   */
  look(run, beside = null) {
    this.follow(run);
    this.follower.soon();
    if (beside)
      this.emit(
        "overlay",
        [...new Set([...this.data.overlays, ...beside])].filter((name) => name !== run),
      );
    this.emit("look", run);
    this.refresh();
  }

  /**
   * In a file of its own: all that is known came with it.
   * @param {Recording} recording
   * @param {boolean} first
   */
  showExport({ told, laid, arrays, run }, first) {
    if (first) {
      this.element.classList.add("alone");
      this.run = run;
      this.others.hold(laid, arrays);
      this.receive({ ...told, arrays });
      this.parts.say(told.note);
    }
    this.measure();
  }

  /** @param {Update} answer */
  receive(answer) {
    if (this.held) return void this.held.push(answer);
    this.take(answer);
    this.reportMissing();
    this.fit();
    this.others.follow(answer.status);
    this.element.dataset.state = answer.status.state;
    this.refresh();
  }

  /** Says once what the link asked for in vain. */
  reportMissing() {
    const parts = this.asked ? share.missed(this.asked, this) : [];
    this.asked = null;
    if (parts.length) this.parts.say(`Not all of this link could be restored: ${parts.join("; ")}.`);
  }

  /** @param {string} sentence */
  reportTrouble(sentence) {
    if (sentence === this.trouble) return;
    this.trouble = sentence;
    this.refresh();
  }

  /**
   * @param {string} name
   * @param {string} sentence
   */
  updateOverlay(name, sentence) {
    if (sentence) this.parts.say(`${name}: ${sentence}`);
    this.refresh();
  }

  /** Plotly's template in the present shade. */
  get template() {
    return this.data.templates[this.element.closest("[data-theme]")?.dataset.theme ?? "light"];
  }

  get overlays() {
    return this.others.metrics;
  }

  /** Puts the state inside what the run has. */
  fit() {
    const { state, attentions } = this;
    if (!attentions.length) return;
    if (!state.chosen) this.suggest();
    const shown = attentions.find(({ key }) => key === state.attention) ?? attentions[attentions.length - 1];
    state.attention = shown.key;
    Object.assign(state, {
      layer: Math.min(state.layer, shown.layers - 1),
      head: Math.min(state.head, shown.heads - 1),
    });
  }

  /** Where nobody has chosen a head and the run has ended, the head that formed is the one to look at. */
  suggest() {
    const formed = this.marks.find(({ kind }) => kind === "head");
    if (formed && !this.active) Object.assign(this.state, this.whereOf(formed));
  }

  /**
   * Merges `change` into the state, remembers it in the address, and shows it everywhere.
   * @param {Partial<State>} change
   */
  go(change) {
    const { state } = this;
    const names = /** @type {const} */ (["attention", "layer", "head"]);
    if (names.some((name) => name in change && change[name] !== state[name])) state.chosen = true;
    Object.assign(state, change);
    this.fit();
    this.remember();
    this.refresh();
  }

  remember() {
    address.write(remembered(this.state));
  }

  refresh() {
    if (!this.parts || !this.across) return;
    this.place();
    this.parts.update();
  }

  /** Finds the frames at the handles: that of their step, or the last before. */
  place() {
    const { state, steps } = this;
    /** @param {number} step */
    const found = (step) => this.frames.get(steps[Math.max(0, upTo(steps, steps.length, step))]) ?? null;
    this.frame = found(state.step === "live" ? Infinity : state.step);
    this.second = state.other === null ? null : found(state.other);
    this.shown = this.frame?.step ?? Math.min(state.step === "live" ? Infinity : state.step, this.metrics.last);
  }

  // --- what is taken away ----------------------------------------------------------------------------------------------------

  /** @returns {[value: string, title: string][]} */
  pictures() {
    return share.parts(this);
  }

  looked() {
    return share.looked(this);
  }

  /** @returns {string[]} */
  missed() {
    return []; // what a link asks for in vain is known when the run is, and said then
  }

  /**
   * For a picture of all of it or of one part: without buttons, and nothing changes meanwhile.
   * @param {boolean} on
   */
  unfold(on, part = "") {
    const held = this.held ?? [];
    this.held = on ? held : null;
    this.element.classList.toggle("pictured", on);
    if (on && part) this.element.dataset.part = part;
    else delete this.element.dataset.part;
    for (const answer of on ? [] : held) this.receive(answer);
    this.measure();
  }

  // --- what the parts ask ----------------------------------------------------------------------------------------------------

  /** Trains the recipe of the controls as a new run. */
  start() {
    return this.inquire({ ask: "start" });
  }

  /**
   * Tells the run that is looked at what to do.
   * @param {Order} query
   */
  order(query) {
    return this.inquire({ run: this.run ?? "", ...query });
  }

  /**
   * Asks the server for what is to be done; what follows from it is asked at once. Rejects with a sentence.
   * @param {Query<"start"> | Query<"order"> | Query<"fork"> | Query<"probe">} query
   */
  async inquire(query) {
    const answer = await inquire(query);
    if (answer.run === this.run) this.follower.soon();
    this.emit("command", query.ask); // the table of runs shows another state soon
    return answer;
  }

  /**
   * The pointer is over something that other parts may mark too; null where it is over nothing.
   * @param {object | null} where
   */
  point(where) {
    this.hover = where;
    this.parts.mark();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (!this.data || isElsewhere(event, FIELDS)) return;
    if (event.key === "l") this.go({ step: "live" });
    else if (event.key === " " && !event.repeat) this.parts.play();
    else return;
    event.preventDefault();
  }
}

// --- what stands where: transport, curves with the track, the probe, and below it one of four tabs -------------------------------

const TITLES = { two: "Two steps", gradients: "Gradients", weights: "Weights", activations: "Activations" };

const LATER = 120; // ms

/**
 * Builds the frame in `page.element`: {live, tip, say(sentence), play(), update(), mark(), destroy()}.
 * @param {Page} page
 * @returns {Parts}
 */
export function frame(page) {
  const notice = make("p", "notice");
  notice.setAttribute("role", "status");
  notice.hidden = true;
  const places = Object.fromEntries(
    ["transport", "curves", "probe", "answer"].map((name) => [name, make("div", `train-${name}`)]),
  );
  const body = make("div", "train-body");
  body.append(places.curves, places.probe, places.answer);
  const below = make("div", "train-below");
  const tip = bubble(page.element);
  const live = make("output", "live");
  page.element.replaceChildren(places.transport, notice, body, below, tip.element, live);
  /** @param {string} sentence */
  const say = (sentence) => {
    notice.textContent = sentence;
    notice.hidden = !sentence;
  };
  const top = transport.mount(places.transport, page, say);
  const drawn = curves.mount(places.curves, page);
  /** @type {Part[]} */
  const parts = [top, drawn, probe.mount(places.probe, page, places.answer), tabbed(below, page)];
  const show = () => {
    const known = page.status !== null;
    for (const one of [places.probe, places.answer]) one.classList.toggle("unknown", !known);
    below.hidden = !known;
  };
  return {
    live,
    curves: drawn, // for tests: where a step stands
    tip: tip.show,
    say,
    play: () => top.play(),
    update() {
      show();
      for (const part of parts) part.update();
    },
    mark: () => parts.forEach((part) => part.mark?.()),
    destroy: () => parts.forEach((part) => part.destroy?.()),
  };
}

/**
 * The line of tabs, and the part that the state names.
 * @param {HTMLElement} root
 * @param {Page} page
 */
function tabbed(root, page) {
  const line = make("div", "tabs");
  line.setAttribute("role", "tablist");
  const room = make("div", "train-room");
  room.id = "train-room";
  room.setAttribute("role", "tabpanel");
  const tabs = TABS.map((name) => tab(page, name));
  line.append(...tabs);
  byArrows(line, () => tabs);
  root.append(line, room);
  let opened = "";
  /** @type {Part | undefined} */
  let part;
  /** @param {Tab} name */
  const open = (name) => {
    part?.destroy?.();
    const place = make("div", `train-tab train-tab-${name}`);
    room.replaceChildren(place);
    part = name === "two" ? two.mount(place, page) : watch.mount(place, page, name);
    opened = name;
  };
  const seen = whenSeen(room, () => page.status !== null && part?.update());
  const update = () => {
    if (page.status === null) return;
    for (const one of tabs) {
      one.setAttribute("aria-selected", String(one.dataset.tab === page.state.tab));
      one.tabIndex = one.dataset.tab === page.state.tab ? 0 : -1;
    }
    room.setAttribute("aria-label", TITLES[page.state.tab]);
    const anew = opened !== page.state.tab;
    if (anew) open(page.state.tab);
    seen.draw(anew || Boolean(page.held));
  };
  const destroy = () => {
    seen.close();
    part?.destroy?.();
  };
  return { update, mark: () => part?.mark?.(), destroy };
}

/**
 * Draws what is in sight at once, and what is not when nothing has moved for a while.
 * @param {HTMLElement} element
 * @param {() => void} draw
 */
function whenSeen(element, draw) {
  let [inSight, timer] = [true, 0];
  const now = () => {
    clearTimeout(timer);
    timer = 0;
    draw();
  };
  const sight = new IntersectionObserver(
    ([entry]) => {
      inSight = entry.isIntersecting;
      if (inSight && timer) now();
    },
    { rootMargin: "100px" },
  );
  sight.observe(element);
  return {
    /** @param {boolean} atOnce */
    draw(atOnce) {
      if (inSight || atOnce) return now();
      clearTimeout(timer);
      timer = setTimeout(now, LATER);
    },
    close() {
      clearTimeout(timer);
      sight.disconnect();
    },
  };
}

/**
 * @param {Page} page
 * @param {Tab} name
 * @returns {HTMLButtonElement}
 */
function tab(page, name) {
  const one = make("button", "tab", TITLES[name]);
  one.type = "button";
  one.dataset.tab = name;
  one.dataset.title = TITLES[name];
  one.setAttribute("role", "tab");
  one.setAttribute("aria-controls", "train-room");
  one.addEventListener("click", () => page.go({ tab: name }));
  return one;
}

// --- what only the browser needs to know, and how it stands in the address after the # -------------------------------------------

/** @type {Tab[]} */
const TABS = ["two", "gradients", "weights", "activations"];

/**
 * The state that the address names; what makes no sense there is left out.
 * @param {Entries} said
 * @returns {State}
 */
function restore(said) {
  /** @param {unknown} x */
  const whole = (x) => (typeof x === "number" && Number.isInteger(x) && x >= 0 ? x : undefined);
  const { attention } = said;
  return {
    step: whole(said.step) ?? "live",
    other: whole(said.other) ?? null,
    attention: ["attn", "encoder", "cross_attn"].includes(attention) ? attention : undefined,
    layer: whole(said.layer) ?? 0,
    head: whole(said.head) ?? 0,
    position: whole(said.position) ?? null,
    tab: TABS.includes(said.tab) ? said.tab : "two",
    log: said.x === "log",
    curve: typeof said.curve === "string" ? said.curve : "lr",
    chosen: attention !== undefined || said.head !== undefined || said.layer !== undefined,
  };
}

/**
 * The same for the address: what is the default does not stand there.
 * @param {State} state
 */
function remembered(state) {
  return {
    step: state.step === "live" ? null : state.step,
    other: state.other,
    attention: state.chosen ? state.attention : null,
    layer: state.chosen ? state.layer : null,
    head: state.chosen ? state.head : null,
    position: state.position,
    tab: state.tab === "two" ? null : state.tab,
    x: state.log ? "log" : null,
    curve: state.curve === "lr" ? null : state.curve,
  };
}

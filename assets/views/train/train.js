// Train: a model learns, and its whole past can be gone through. This is the shell: it follows a run, holds what is looked at, and
// hands the drawing to the parts, which read `lab` (this object) at every update.
import * as address from "../core/address.js";
import { CSS as ATTENTION } from "../attention/style.js";
import { make } from "../core/dom.js";
import { upTo } from "./metrics.js";
import { Follower } from "./follow.js";
import { frame } from "./frame.js";
import { Run } from "./run.js";
import { remembered, restore } from "./state.js";
import { CSS } from "./style.js";
import { Overlays } from "./overlays.js";
import { ORDERED } from "./runs.js";
import { inquire } from "../core/store.js";
import * as taken from "./taken.js";

const NARROW = 800; // CSS pixels of width below which everything stands in one column

/** data is the payload of pages/train/lab.py. Emits "look" (a run's name) and "overlay" (names). */
export function mount(root, data, emit) {
  const lab = new Lab(root, emit);
  lab.update(data);
  return lab;
}

class Lab extends Run {
  constructor(root, emit) {
    super();
    this.emit = emit;
    this.style = make("style", "", ATTENTION + CSS + taken.CSS);
    this.element = make("div", "attention lab");
    this.element.loupe = this; // for tests: the numbers behind the picture
    root.append(this.style, this.element);
    this.state = restore(address.read());
    this.asked = address.read(); // by the link with which the page was opened
    this.held = null; // what is told while a picture is taken
    this.edition = 0; // grows with what makes every picture another one: run, width, theme
    this.trouble = ""; // why the page is not told of the run just now
    this.follower = new Follower((answer) => this.heard(answer), (sentence) => this.failed(sentence));
    this.others = new Overlays((name, sentence) => this.overlaid(name, sentence));
    this.resize = new ResizeObserver(() => this.element.clientWidth !== this.across && this.data && this.measure());
    this.resize.observe(this.element);
    this.onKey = (event) => this.key(event);
    window.addEventListener("keydown", this.onKey);
    this.onOrdered = () => this.follower.soon(); // what the table of runs told a run to do
    window.addEventListener(ORDERED, this.onOrdered);
    this.unfollow = address.follow((state) => this.data && this.go(restore(state)));
  }

  destroy() {
    this.follower.close();
    this.others.close();
    this.resize.disconnect();
    window.removeEventListener("keydown", this.onKey);
    window.removeEventListener(ORDERED, this.onOrdered);
    this.unfollow();
    this.parts?.destroy();
    this.element.remove();
    this.style.remove();
  }

  update(data) {
    const before = this.data;
    this.data = data;
    if (!this.parts) this.build();
    if (data.told) return this.alone(!before);
    if (!before || (data.run !== before.run && data.run !== this.run)) this.follow(data.run);
    this.others.show(data.overlays.filter((name) => name !== this.run));
    this.measure();
  }

  build() {
    this.parts = frame(this);
    this.element.dataset.ready = "true";
  }

  /** Looks at another run, whose numbers are on their way. */
  follow(run) {
    if (this.run !== null) Object.assign(this.state, { step: "live", other: null });
    this.forget(run);
    this.edition++;
    this.remember();
    this.follower.follow(run || this.data.recorded ? run : null);
  }

  /** Looks at a run that has just begun, and has it stand in the address; `beside` are overlaid. */
  look(run, beside = null) {
    this.follow(run);
    this.follower.soon();
    if (beside) this.emit("overlay", [...new Set([...this.data.overlays, ...beside])].filter((name) => name !== run));
    this.emit("look", run);
    this.refresh();
  }

  /** In a file of its own: all that is known came with it. */
  alone(first) {
    const { told, laid, arrays, run } = this.data;
    if (first) {
      this.element.classList.add("alone");
      this.run = run;
      this.others.hold(laid, arrays);
      this.heard({ ...told, arrays });
      this.parts.say(told.note);
    }
    this.measure();
  }

  heard(answer) {
    if (this.held) return void this.held.push(answer);
    this.take(answer);
    this.lost();
    this.fit();
    this.others.follow(this.status);
    this.element.dataset.state = this.status.state;
    this.refresh();
  }

  /** Says once what the link asked for in vain. */
  lost() {
    const parts = this.asked ? taken.missed(this.asked, this) : [];
    this.asked = null;
    if (parts.length) this.parts.say(`Not all of this link could be restored: ${parts.join("; ")}.`);
  }

  failed(sentence) {
    if (sentence === this.trouble) return;
    this.trouble = sentence;
    this.refresh();
  }

  overlaid(name, sentence) {
    if (sentence) this.parts.say(`${name}: ${sentence}`);
    this.refresh();
  }

  get overlays() {
    return this.others.metrics;
  }

  measure() {
    this.across = this.element.clientWidth;
    if (!this.across) return;
    this.narrow = this.across < NARROW;
    this.element.classList.toggle("narrow", this.narrow);
    this.edition++;
    this.refresh();
  }

  /** Puts the state inside what the run has. */
  fit() {
    const { state, attentions } = this;
    if (!attentions.length) return;
    if (!state.chosen) this.suggest();
    const shown = attentions.find(({ key }) => key === state.attention) ?? attentions.at(-1);
    state.attention = shown.key;
    Object.assign(state, { layer: Math.min(state.layer, shown.layers - 1), head: Math.min(state.head, shown.heads - 1) });
  }

  /** Where nobody has chosen a head and the run has ended, the head that formed is the one to look at. */
  suggest() {
    const formed = this.marks.find(({ kind }) => kind === "head");
    if (formed && !this.active) Object.assign(this.state, this.whereOf(formed));
  }

  /** Merges `change` into the state, remembers it in the address, and shows it everywhere. */
  go(change) {
    const { state } = this;
    if (["attention", "layer", "head"].some((name) => name in change && change[name] !== state[name])) state.chosen = true;
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
    const found = (step) => (steps.length ? this.frames.get(steps[Math.max(0, upTo(steps, steps.length, step))]) : null);
    this.frame = found(state.step === "live" ? Infinity : state.step);
    this.second = state.other === null ? null : found(state.other);
    this.shown = this.frame?.step ?? Math.min(state.step === "live" ? Infinity : state.step, this.metrics.last);
  }

  // --- what is taken away ----------------------------------------------------------------------------------------------------

  pictures() {
    return taken.parts(this);
  }

  looked() {
    return taken.looked(this);
  }

  missed() {
    return []; // what a link asks for in vain is known when the run is, and said then
  }

  /** For a picture of all of it or of one part: without buttons, and nothing changes meanwhile. */
  unfold(on, part = "") {
    const held = this.held ?? [];
    this.held = on ? held : null;
    this.element.classList.toggle("pictured", on);
    if (on && part) this.element.dataset.part = part;
    else delete this.element.dataset.part;
    for (const answer of on ? [] : held) this.heard(answer);
    this.measure();
  }

  // --- what the parts ask ----------------------------------------------------------------------------------------------------

  /** Asks the server for what is to be done; what follows from it is asked at once. Rejects with a sentence. */
  async order(query) {
    const answer = await inquire({ run: this.run, ...query });
    if (answer.run === this.run) this.follower.soon();
    return answer;
  }

  inquire(query) {
    return this.order(query);
  }

  /** The pointer is over something that other parts may mark too; null where it is over nothing. */
  point(where) {
    this.hover = where;
    this.parts.mark();
  }

  tip(title, value) {
    this.parts.tip(title, value);
  }

  tell(sentence) {
    this.parts.live.textContent = sentence;
  }

  key(event) {
    const target = event.composedPath()[0];
    if (!this.data || event.ctrlKey || event.metaKey || event.altKey) return;
    if (target.closest?.("input, textarea, select, button, summary, a, [contenteditable]")) return;
    if (event.key === "l") this.go({ step: "live" });
    else if (event.key === " " && !event.repeat) this.parts.play();
    else return;
    event.preventDefault();
  }
}

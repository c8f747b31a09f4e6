// The curves of a run, others laid over them, and under them the track of the time machine, which is their axis.
import { choices } from "../components/choices.js";
import { make } from "../core/dom.js";
import * as marks from "./marks.js";
import { across, extent, ticks } from "./scale.js";
import { measured, Strip } from "./strip.js";
import { lineAt, Panel } from "./panel.js";
import * as track from "./track.js";
import { whole } from "./words.js";
import { svg } from "../components/stack.js";

const MARGIN = { left: 40, right: 74, narrow: 48 };
const TITLE = 24; // px above each panel
const HEIGHTS = { loss: 170, accuracy: 96, strip: 52 };
const FIRST = "Press Play: the model of the recipe above is trained here, and its loss, its attention and its answers are drawn as it learns.";
const TRACK = 62; // px: flags, the track, its steps

export function mount(root, lab) {
  return new Curves(root, lab);
}

class Curves {
  constructor(root, lab) {
    Object.assign(this, { root, lab, drawn: "", hovered: null });
    this.box = make("div", "curves-box");
    this.picture = svg("svg", { role: "group", "aria-label": "curves of the training over its steps" });
    const runKinds = (name) => [[name, "thin", "train"], [`held_out_${name}`, "bold", "held out"]];
    this.panels = {
      loss: new Panel(this.picture, { title: "loss, nats", kinds: runKinds("loss"), most: boundOfLoss, written: (x) => x.toFixed(4), ticks: 4 }),
      accuracy: new Panel(this.picture, { title: "accuracy", kinds: runKinds("accuracy"), most: () => 1, written: (x) => x.toFixed(4), ticks: 2 }),
      strip: new Strip(this.picture, lab, bound),
    };
    this.pointer = this.picture.appendChild(svg("line", { class: "hover-line", visibility: "hidden" }));
    this.axis = this.picture.appendChild(svg("g"));
    this.empty = make("p", "curves-empty");
    this.box.append(this.picture, ...Object.values(this.panels).map(({ title }) => title), this.empty);
    this.head = heading(lab);
    this.track = track.mount(this.box, lab, this.picture);
    this.list = marks.list(lab);
    root.append(this.head.element, this.box, this.list.element);
    this.box.addEventListener("pointermove", (event) => this.hover(event));
    this.box.addEventListener("pointerleave", () => this.hover(null));
  }

  /** Where everything stands in the present width. */
  room() {
    const width = this.root.clientWidth;
    const { lab } = this;
    const [left, right] = [MARGIN.left, width - (lab.narrow ? MARGIN.narrow : MARGIN.right)];
    let top = 0;
    const rooms = {};
    for (const [name, height] of Object.entries(HEIGHTS)) {
      rooms[name] = { left, right, top: top + TITLE + 4, bottom: top + TITLE + height, width, narrow: lab.narrow };
      this.panels[name].title.style.top = `${top}px`;
      top += TITLE + height + 8;
    }
    return { width, left, right, rooms, track: top, height: top + TRACK };
  }

  update() {
    const { lab } = this;
    const { metrics, marks: marked, frames, status } = lab.editions;
    const known = [lab.edition, metrics, marked, frames, status, lab.others.edition, lab.state.log, lab.state.curve].join();
    if (known !== this.drawn) this.draw();
    this.drawn = known;
    this.head.update();
    this.list.update();
    this.track.move();
    this.tell();
  }

  draw() {
    const { lab, picture } = this;
    const at = (this.at = this.room());
    if (!at.width) return;
    const runs = shown(lab);
    const last = Math.max(lab.status?.step ?? 0, ...runs.map(({ metrics }) => metrics.last));
    const most = extent(last, Math.max(lab.status?.steps ?? 0, last), lab.active || !last);
    this.scale = across(most, [at.left, at.right], lab.state.log);
    picture.setAttribute("width", at.width);
    picture.setAttribute("height", at.height);
    this.box.style.height = `${at.height}px`;
    for (const [name, panel] of Object.entries(this.panels)) panel.draw(runs, this.scale.to, at.rooms[name]);
    this.steps(most);
    this.track.draw({ ...at, most, scale: this.scale });
    const waits = !lab.status && !lab.run && !lab.data.plan.problem;
    this.empty.textContent = waits ? FIRST : "";
    this.empty.hidden = !this.empty.textContent;
  }

  steps(most) {
    const { at, lab } = this;
    const key = [most, at.left, at.right, at.track, lab.state.log].join();
    if (key === this.ticked) return;
    this.ticked = key;
    const y = at.track + TRACK - 6;
    const texts = ticks(most, lab.narrow ? 4 : 6, { log: lab.state.log, whole: true }).map((step) => {
      return svg("text", { x: this.scale.to(step), y, class: "tick", "text-anchor": "middle" }, whole(step));
    });
    this.axis.replaceChildren(...texts, svg("text", { x: at.right + (lab.narrow ? 24 : 34), y, class: "label" }, "step"));
  }

  /** The numbers at the pointer, or else at the handle. */
  tell() {
    const { lab } = this;
    const step = this.hovered ?? (lab.metrics.length ? lab.shown : 0);
    for (const panel of Object.values(this.panels)) panel.tell(lab.metrics, step);
  }

  hover(event) {
    const { lab, at } = this;
    const inside = event && at && event.buttons === 0 && lab.metrics.length > 0;
    const px = inside ? event.clientX - this.box.getBoundingClientRect().left : NaN;
    if (!(px >= at?.left - 3 && px <= at?.right + 3)) {
      if (this.hovered === null) return;
      this.hovered = null;
      this.pointer.setAttribute("visibility", "hidden");
      return this.tell();
    }
    const { step } = lab.metrics.columns;
    this.hovered = step[Math.max(0, lineAt(lab.metrics, this.scale.from(px) + 0.5))];
    const x = this.scale.to(this.hovered);
    set(this.pointer, { x1: x, x2: x, y1: TITLE, y2: at.track + 20, visibility: "visible" });
    this.tell();
  }

  mark() {}

  destroy() {
    this.track.destroy();
  }
}

/** The run that is looked at and those that are overlaid, each with its colour. */
function shown(lab) {
  const others = Array.from(lab.overlays, ([name, metrics], i) => ({ name: `other ${name}`, title: name, metrics, role: `head-${(i % 11) + 2}` }));
  return [{ name: "own", title: lab.run || "recorded", metrics: lab.metrics, role: "attention" }, ...others.filter(({ metrics }) => metrics.length)];
}

/** A round number from all finite values on. */
function bound(columns) {
  let most = 0;
  for (const values of columns) for (const value of values) if (value > most && Number.isFinite(value)) most = value;
  return most > 0 ? rounded(most) : 1;
}

/** The same, but a loss far above that of the beginning would flatten all the rest, and leaves the picture. */
function boundOfLoss(columns) {
  const first = Math.max(...columns.map((values) => values.find(Number.isFinite) ?? 0));
  return first > 0 ? Math.min(bound(columns), rounded(2 * first)) : 1;
}

/** The next of 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10 times a power of ten. */
function rounded(x) {
  const power = 10 ** Math.floor(Math.log10(x));
  return [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((each) => each * power).find((each) => each >= x * 0.999);
}

function heading(lab) {
  const element = make("div", "curves-head");
  const scale = choices("scale of the steps", [["linear", "linear"], ["log", "log"]], (value) => lab.go({ log: value === "log" }));
  const strip = make("label", "curves-strip", "third curve ");
  const choice = make("select");
  choice.addEventListener("change", () => lab.go({ curve: choice.value }));
  strip.append(choice);
  const live = make("button", "chip live-button", "live");
  live.type = "button";
  live.title = "the handle follows the newest step  l";
  live.addEventListener("click", () => lab.go({ step: "live" }));
  const beside = make("div", "curves-others");
  element.append(scale.element, strip, live, beside);
  let known = "";
  const update = () => {
    scale.show(lab.state.log ? "log" : "linear");
    live.setAttribute("aria-pressed", String(lab.state.step === "live"));
    const kinds = measured(lab.metrics);
    const key = kinds.map(([value]) => value).join();
    if (key !== known) choice.replaceChildren(...kinds.map(([value, { title }]) => new Option(title, value)));
    known = key;
    choice.value = kinds.some(([value]) => value === lab.state.curve) ? lab.state.curve : "lr";
    others(beside, lab);
  };
  return { element, update };
}

/** The names of the runs that are overlaid, each to be taken away again. */
function others(root, lab) {
  const names = [...lab.overlays.keys()];
  if (root.dataset.names === names.join("\n")) return;
  root.dataset.names = names.join("\n");
  const chips = names.map((name, i) => {
    const chip = make("button", "chip other-run", `${name} ×`);
    chip.type = "button";
    chip.style.setProperty("--chosen", `var(--head-${(i % 11) + 2})`);
    chip.setAttribute("aria-label", `take ${name} away from the curves`);
    chip.addEventListener("click", () => lab.emit("overlay", lab.data.overlays.filter((one) => one !== name)));
    return chip;
  });
  root.replaceChildren(...chips);
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
}

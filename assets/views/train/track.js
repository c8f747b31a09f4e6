// The track of the time machine: all steps that were seen, those that were kept, a handle that goes back to any of them, and flags for
// what happened. Ours, because a handle moves through every frame of a run without a message to the server.
import { svg } from "../components/stack.js";
import { make, range } from "../core/dom.js";
import { inside } from "../core/place.js";
import { computed } from "../vendor/signals-core.js";
import { upTo } from "./run.js";
import { whole } from "./transport.js";

/**
 * @import { StepScale } from "./charts.js"
 * @import { Place } from "./curves.js"
 * @import { Mark, MarkKind } from "./run.js"
 * @import { Page } from "./train.js"
 */

/**
 * @typedef {"step" | "other"} HandleName
 * @typedef {Place & { range: number[], log: boolean, scale: StepScale }} Axis
 */

const RAIL = 30; // px from the top of the track to its rail, with room for the flags above
const FAR = 10; // frames that Shift and an arrow go

/**
 * `root` holds the curves; a press anywhere in them takes the handle there, unless `zooming()` says that a drag is the chart's.
 * @param {HTMLElement} root
 * @param {Page} page
 * @param {() => boolean} zooming
 */
export function mount(root, page, zooming) {
  return new Track(root, page, zooming);
}

class Track {
  /** @type {Axis | null} */
  at = null;
  /** @type {HandleName | null} */
  dragged = null;

  /**
   * @param {HTMLElement} root
   * @param {Page} page
   * @param {() => boolean} zooming
   */
  constructor(root, page, zooming) {
    this.root = root;
    this.page = page;
    this.zooming = zooming;
    this.picture = svg("svg", { class: "track-picture", "aria-hidden": "true" });
    this.group = this.picture.appendChild(svg("g", { class: "track" }));
    this.handles = {
      step: this.handle("step", "step that is looked at"),
      other: this.handle("other", "second step, compared with the first"),
    };
    this.flags = flags(page);
    root.append(
      this.picture,
      this.flags.element,
      this.handles.other.line,
      this.handles.step.line,
      this.handles.other.grip,
      this.handles.step.grip,
    );
    root.addEventListener("pointerdown", (event) => this.press(event));
    root.addEventListener("pointermove", (event) => this.drag(event));
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"])
      root.addEventListener(name, () => this.release());
  }

  /**
   * @param {HandleName} name
   * @param {string} label
   * @returns {{ line: HTMLElement, grip: HTMLElement }}
   */
  handle(name, label) {
    /** @type {HTMLElement[]} */
    const [line, grip] = [make("div", `handle-line ${name}`), make("div", `handle ${name}`)];
    grip.tabIndex = 0;
    grip.setAttribute("role", "slider");
    grip.setAttribute("aria-label", label);
    grip.addEventListener("keydown", (event) => this.key(event, name));
    return { line, grip };
  }

  /** The steps at which something can be seen: of the frames, or of the curves alone. */
  get steps() {
    const { page } = this;
    return page.steps.length ? page.steps : page.metrics.column("step");
  }

  /** @param {Axis} at */
  draw(at) {
    this.at = at;
    const { page } = this;
    const { scale, track, left, right } = at;
    const rail = track + RAIL;
    const done = scale.to(Math.max(page.status?.step ?? 0, page.metrics.last));
    /** @type {SVGElement[]} */
    const parts = [svg("line", { x1: left, x2: right, y1: rail, y2: rail, class: "rail" })];
    if (page.status)
      parts.push(svg("line", { x1: left, x2: Math.min(done, right), y1: rail, y2: rail, class: "rail done" }));
    const kept = new Set(page.status?.snapshots ?? []);
    parts.push(
      ticked(
        page.steps.filter((step) => !kept.has(step)),
        scale,
        rail,
        "seen",
        3,
      ),
      ticked([...kept], scale, rail, "kept", 7),
    );
    this.picture.setAttribute("width", String(at.width));
    this.picture.setAttribute("height", String(at.height));
    this.group.replaceChildren(...parts);
    this.flags.draw({ ...at, rail });
  }

  move() {
    const { at, page, steps } = this;
    const { status } = page;
    if (!at?.width) return;
    const last = steps.length ? steps[steps.length - 1] : 0;
    /** @type {Record<string, number | null>} */
    const places = { step: page.shown, other: page.second?.step ?? page.state.other };
    for (const [name, { line, grip }] of Object.entries(this.handles)) {
      const step = places[name];
      const hidden = !status || !steps.length || step === null;
      line.hidden = grip.hidden = hidden;
      if (hidden) continue;
      const x = Math.max(at.left, Math.min(at.right, at.scale.to(step)));
      line.style.transform = `translateX(${x}px)`;
      line.style.height = `${at.track + RAIL - at.rooms.loss.top}px`;
      line.style.top = `${at.rooms.loss.top}px`;
      grip.style.transform = `translate(${x}px, ${at.track + RAIL}px)`;
      aria(grip, {
        valuemin: steps[0],
        valuemax: last,
        valuenow: step,
        valuetext: `step ${whole(step)} of ${whole(status.steps)}`,
      });
    }
    this.flags.move();
  }

  /** @param {PointerEvent} event */
  press(event) {
    const { at, page } = this;
    const [target] = event.composedPath();
    if (
      event.button !== 0 ||
      !at?.scale ||
      !this.steps.length ||
      (target instanceof Element && target.closest("button, select, label, .modebar-container"))
    )
      return;
    const { x, y } = inside(event, this.root);
    if (x < at.left - 12 || x > at.right + 12 || y > at.height || (y < at.track && this.zooming())) return;
    const other =
      page.state.other !== null &&
      Math.abs(at.scale.to(page.second?.step ?? page.state.other) - x) < 10 &&
      Math.abs(at.scale.to(page.shown) - x) > 10;
    this.dragged = other ? "other" : "step";
    this.root.setPointerCapture(event.pointerId);
    this.root.classList.add("dragged");
    this.handles[this.dragged].grip.focus({ preventScroll: true });
    event.preventDefault();
    this.drag(event);
  }

  /** @param {PointerEvent} event */
  drag(event) {
    if (!this.at || !this.dragged) return;
    const wanted = this.at.scale.from(inside(event, this.root).x);
    this.to(this.dragged, nearest(this.steps, wanted));
  }

  release() {
    this.dragged = null;
    this.root.classList.remove("dragged");
  }

  /**
   * Takes a handle to the frame of that number; the newest is followed.
   * @param {HandleName} name
   * @param {number} index
   */
  to(name, index) {
    const { steps, page } = this;
    const step = steps[Math.max(0, Math.min(steps.length - 1, index))];
    const wanted = name === "step" && index >= steps.length - 1 ? "live" : step;
    if (page.state[name] !== wanted) page.go({ [name]: wanted });
  }

  /**
   * @param {KeyboardEvent} event
   * @param {HandleName} name
   */
  key(event, name) {
    const { steps, page } = this;
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -FAR, PageUp: FAR }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || (!by && event.key !== "Home" && event.key !== "End")) return;
    event.preventDefault();
    const here = upTo(steps, steps.length, name === "step" ? page.shown : (page.second?.step ?? page.state.other ?? 0));
    if (by) this.to(name, Math.max(0, here + by * (event.shiftKey && Math.abs(by) === 1 ? FAR : 1)));
    else this.to(name, event.key === "Home" ? 0 : steps.length - 1);
  }

  destroy() {
    this.release();
  }
}

/**
 * Ticks under the rail as one path; of those in one pixel one is drawn.
 * @param {number[]} steps
 * @param {StepScale} scale
 * @param {number} rail
 * @param {string} className
 * @param {number} length
 */
function ticked(steps, scale, rail, className, length) {
  const places = new Set(steps.map((step) => Math.round(scale.to(step))));
  return svg("path", {
    d: Array.from(places, (x) => `M${x} ${rail + 3}v${length}`).join(""),
    class: `track-tick ${className}`,
  });
}

/**
 * The index of the number nearest to `x` among ascending ones.
 * @param {ArrayLike<number>} steps
 * @param {number} x
 */
function nearest(steps, x) {
  const below = upTo(steps, steps.length, x);
  return range(below, below + 2)
    .filter((i) => i >= 0 && i < steps.length)
    .reduce((best, i) => (Math.abs(steps[i] - x) < Math.abs(steps[best] - x) ? i : best), Math.max(0, below));
}

/**
 * @param {HTMLElement} element
 * @param {Record<string, string | number>} values
 */
function aria(element, values) {
  for (const [name, value] of Object.entries(values)) {
    if (element.getAttribute(`aria-${name}`) !== String(value)) element.setAttribute(`aria-${name}`, String(value));
  }
}

// --- what happened while the model learned: flags on the track, and the same as a list of sentences ------------------------------

/** @type {Record<MarkKind, [role: string, letter: string, called: string]>} */
const KINDS = {
  head: ["attention", "H", "head"],
  plateau: ["residual", "P", "plateau ends"],
  grokking: ["value", "G", "grokking"],
  overfitting: ["key", "O", "overfitting"],
  learned: ["value", "L", "learned"],
  spike: ["mlp", "S", "spike"],
};
const SOON =
  "Nothing yet. Events appear here: a head forming, the end of a plateau, grokking, overfitting, jumps of the gradient.";
const NOTHING = "Nothing that stands out was found in the curves and the attention.";
const WIDTH = 17; // px that a flag takes
const LEVEL = 13; // px between two flags above each other
const LEVELS = 2; // that there is room for

/**
 * Goes to where it happened, and to the head that it tells of.
 * @param {Page} page
 * @param {Mark} mark
 */
function look(page, mark) {
  page.go({ step: mark.step, ...page.whereOf(mark) });
  page.tell(mark.sentence);
}

/**
 * @param {Mark} mark
 * @returns {HTMLElement}
 */
function flag({ kind }) {
  const [role, letter, called] = KINDS[kind];
  const sign = make("span", "flag-sign", letter);
  sign.style.background = `var(--${role})`;
  sign.title = called;
  return sign;
}

/**
 * {element, draw(at), move()}: a button for each mark above the rail.
 * @param {Page} page
 */
export function flags(page) {
  const element = make("div", "flags");
  const told = make("p", "flag-told");
  told.hidden = true;
  element.append(told);
  /** @type {{ button: HTMLButtonElement, mark: Mark }[]} */
  let buttons = [];
  /**
   * @param {HTMLButtonElement} button
   * @param {Mark} mark
   * @param {Axis} at
   */
  const say = (button, mark, at) => {
    told.textContent = mark.sentence;
    told.hidden = false;
    const width = Math.min(330, at.width - 16);
    told.style.width = `${width}px`;
    told.style.left = `${Math.max(8, Math.min(at.width - width - 8, at.scale.to(mark.step) - width / 2))}px`;
    told.style.bottom = `${at.height - button.offsetTop + 8}px`;
  };
  const hide = () => (told.hidden = true);
  const draw = page.memoize((/** @type {Axis & { rail: number }} */ at) => {
    const focused = buttons.findIndex(({ button }) => button.matches(":focus"));
    const taken = Array(LEVELS).fill(-Infinity);
    hide();
    buttons = page.marks.map((mark) => {
      const x = at.scale.to(mark.step);
      const level = Math.max(
        0,
        taken.findIndex((end) => end <= x),
      );
      taken[level] = x + WIDTH;
      const button = make("button", "flag");
      button.type = "button";
      button.append(flag(mark));
      button.setAttribute("aria-label", mark.sentence);
      button.style.left = `${x}px`;
      button.style.top = `${at.track + 2 + (LEVELS - 1 - level) * LEVEL}px`;
      button.style.height = `${at.rail - at.track - 2 - (LEVELS - 1 - level) * LEVEL}px`;
      button.addEventListener("click", () => look(page, mark));
      button.addEventListener("pointerenter", () => say(button, mark, at));
      button.addEventListener("pointerleave", hide);
      button.addEventListener("focus", () => say(button, mark, at));
      button.addEventListener("blur", hide);
      return { button, mark };
    });
    element.replaceChildren(...buttons.map(({ button }) => button), told);
    buttons[focused]?.button.focus({ preventScroll: true });
  });
  const move = () => {
    for (const { button, mark } of buttons) button.classList.toggle("here", mark.step === page.shown);
  };
  return { element, draw, move };
}

/**
 * {element, update()}: the sentences, each leading to its step.
 * @param {Page} page
 */
export function list(page) {
  const element = make("section", "happened");
  const heading = make("h3", "", "What happened");
  const items = make("ol", "happened-list");
  element.append(heading, items);
  /** @type {{ button: HTMLButtonElement, mark: Mark }[]} */
  let buttons = [];
  const waits = computed(() => page.active || !page.metrics.length); // nothing can have happened yet, or more may
  const drawn = computed(() => {
    buttons = page.marks.map((mark) => {
      const button = make("button", "happening");
      button.type = "button";
      button.append(flag(mark), make("span", "happening-step", whole(mark.step)), make("span", "", mark.sentence));
      button.addEventListener("click", () => look(page, mark));
      return { button, mark };
    });
    const rows = buttons.map(({ button }) => {
      const row = make("li");
      row.append(button);
      return row;
    });
    const nothing = make("li", "sentence", waits.value ? SOON : NOTHING);
    items.replaceChildren(...(rows.length ? rows : [nothing]));
    return buttons;
  });
  const update = () => {
    element.hidden = page.status === null;
    for (const { button, mark } of drawn.value) button.setAttribute("aria-current", String(mark.step === page.shown));
  };
  return { element, update };
}

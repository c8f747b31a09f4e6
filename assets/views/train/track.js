// The track of the time machine: all steps that were seen, those that were kept, and a handle that goes back to any of them.
import { make, range } from "../core/dom.js";
import { upTo } from "./metrics.js";
import { flags } from "./marks.js";
import { whole } from "./words.js";
import { svg } from "../components/stack.js";

const RAIL = 30; // px from the top of the track to its rail, with room for the flags above
const FAR = 10; // frames that Shift and an arrow go

/** `root` holds the curves' `picture`; a press anywhere in them takes the handle there. */
export function mount(root, lab, picture) {
  return new Track(root, lab, picture);
}

class Track {
  constructor(root, lab, picture) {
    Object.assign(this, { root, lab, at: null, dragged: null });
    this.group = picture.appendChild(svg("g", { class: "track" }));
    this.handles = {
      step: this.handle("step", "step that is looked at"),
      other: this.handle("other", "second step, compared with the first"),
    };
    this.flags = flags(lab);
    root.append(this.flags.element, this.handles.other.line, this.handles.step.line, this.handles.other.grip, this.handles.step.grip);
    root.addEventListener("pointerdown", (event) => this.press(event));
    root.addEventListener("pointermove", (event) => this.dragged && this.drag(event));
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) root.addEventListener(name, () => this.release());
  }

  handle(name, label) {
    const [line, grip] = [make("div", `handle-line ${name}`), make("div", `handle ${name}`)];
    grip.tabIndex = 0;
    grip.setAttribute("role", "slider");
    grip.setAttribute("aria-label", label);
    grip.addEventListener("keydown", (event) => this.key(event, name));
    return { line, grip };
  }

  /** The steps at which something can be seen: of the frames, or of the curves alone. */
  get steps() {
    const { lab } = this;
    return lab.steps.length ? lab.steps : lab.metrics.column("step");
  }

  draw(at) {
    this.at = at;
    const { lab } = this;
    const { scale, track, left, right } = at;
    const rail = track + RAIL;
    const done = scale.to(Math.max(lab.status?.step ?? 0, lab.metrics.last));
    const parts = [svg("line", { x1: left, x2: right, y1: rail, y2: rail, class: "rail" })];
    if (lab.status) parts.push(svg("line", { x1: left, x2: Math.min(done, right), y1: rail, y2: rail, class: "rail done" }));
    const kept = new Set(lab.status?.snapshots ?? []);
    parts.push(ticked(lab.steps.filter((step) => !kept.has(step)), scale, rail, "seen", 3), ticked([...kept], scale, rail, "kept", 7));
    this.group.replaceChildren(...parts);
    this.flags.draw({ ...at, rail });
  }

  move() {
    const { lab, at } = this;
    if (!at?.width) return;
    const { steps } = this;
    const last = steps.length ? steps[steps.length - 1] : 0;
    const places = { step: lab.shown, other: lab.second?.step ?? lab.state.other };
    for (const [name, { line, grip }] of Object.entries(this.handles)) {
      const step = places[name];
      const hidden = !lab.status || !steps.length || (name === "other" && lab.state.other === null);
      line.hidden = grip.hidden = hidden;
      if (hidden) continue;
      const x = Math.max(at.left, Math.min(at.right, at.scale.to(step)));
      line.style.transform = `translateX(${x}px)`;
      line.style.height = `${at.track + RAIL - at.rooms.loss.top}px`;
      line.style.top = `${at.rooms.loss.top}px`;
      grip.style.transform = `translate(${x}px, ${at.track + RAIL}px)`;
      aria(grip, { valuemin: steps[0], valuemax: last, valuenow: step, valuetext: `step ${whole(step)} of ${whole(lab.status.steps)}` });
    }
    this.flags.move();
  }

  press(event) {
    const { at, lab } = this;
    if (event.button !== 0 || !at?.scale || !this.steps.length || event.composedPath()[0].closest?.("button, select, label")) return;
    const [x, y] = this.inside(event);
    if (x < at.left - 12 || x > at.right + 12 || y > at.height) return;
    const other = lab.state.other !== null && Math.abs(at.scale.to(lab.second?.step ?? lab.state.other) - x) < 10 && Math.abs(at.scale.to(lab.shown) - x) > 10;
    this.dragged = other ? "other" : "step";
    this.root.setPointerCapture(event.pointerId);
    this.root.classList.add("dragged");
    this.handles[this.dragged].grip.focus({ preventScroll: true });
    event.preventDefault();
    this.drag(event);
  }

  drag(event) {
    const wanted = this.at.scale.from(this.inside(event)[0]);
    this.to(this.dragged, nearest(this.steps, wanted));
  }

  release() {
    this.dragged = null;
    this.root.classList.remove("dragged");
  }

  inside(event) {
    const box = this.root.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  /** Takes a handle to the frame of that number; the newest is followed. */
  to(name, index) {
    const { steps, lab } = this;
    const step = steps[Math.max(0, Math.min(steps.length - 1, index))];
    const wanted = name === "step" && index >= steps.length - 1 ? "live" : step;
    if (lab.state[name] !== wanted) lab.go({ [name]: wanted });
  }

  key(event, name) {
    const { steps, lab } = this;
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -FAR, PageUp: FAR }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || (!by && event.key !== "Home" && event.key !== "End")) return;
    event.preventDefault();
    const here = upTo(steps, steps.length, name === "step" ? lab.shown : (lab.second?.step ?? lab.state.other));
    if (by) this.to(name, Math.max(0, here + by * (event.shiftKey && Math.abs(by) === 1 ? FAR : 1)));
    else this.to(name, event.key === "Home" ? 0 : steps.length - 1);
  }

  destroy() {
    this.release();
  }
}

/** Ticks under the rail as one path; of those in one pixel one is drawn. */
function ticked(steps, scale, rail, className, length) {
  const places = new Set(steps.map((step) => Math.round(scale.to(step))));
  return svg("path", { d: Array.from(places, (x) => `M${x} ${rail + 3}v${length}`).join(""), class: `track-tick ${className}` });
}

/** The index of the number nearest to `x` among ascending ones. */
function nearest(steps, x) {
  const below = upTo(steps, steps.length, x);
  return range(below, below + 2)
    .filter((i) => i >= 0 && i < steps.length)
    .reduce((best, i) => (Math.abs(steps[i] - x) < Math.abs(steps[best] - x) ? i : best), Math.max(0, below));
}

function aria(element, values) {
  for (const [name, value] of Object.entries(values)) {
    if (element.getAttribute(`aria-${name}`) !== String(value)) element.setAttribute(`aria-${name}`, value);
  }
}

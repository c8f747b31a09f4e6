// What the edits of a run did: the run before them beside the one after. Nothing at all where there are none.
import { make, range } from "../core/dom.js";
import { continuation } from "./effects_continuation.js";
import { distribution, headline, Shifts } from "./effects_distribution.js";
import { Guess } from "./effects_guess.js";
import { CSS } from "./effects_style.js";
import { heads, positions } from "./effects_where.js";
import { number } from "../core/format.js";
import { request } from "../core/store.js";

const NARROW = 700; // CSS pixels

/** data: a decoded payload of views/effects.py. Emits "reveal" (the run that was guessed at). */
export function mount(root, data, emit) {
  const style = make("style", "", CSS);
  const element = make("section", "effects");
  element.setAttribute("aria-label", "what the edits did");
  root.append(style, element);
  const view = new Effects(element, emit);
  view.update(data);
  return {
    update: (next) => view.update(next),
    destroy() {
      view.watch.disconnect();
      root.replaceChildren();
    },
  };
}

class Effects {
  constructor(root, emit) {
    this.root = root;
    this.root.loupe = this; // for tests
    this.emit = emit;
    this.open = true;
    this.row = null; // the position that a person chose; null follows the payload
    this.guess = new Guess(() => this.emit("reveal", this.data.trace));
    this.watch = new ResizeObserver(([{ contentRect }]) => {
      if (Math.abs(contentRect.width - this.width) > 1 && this.data?.trace) this.draw();
    });
    this.watch.observe(root);
    this.width = 0;
  }

  update(data) {
    const text = (one) => JSON.stringify(one?.lanes?.map(({ pieces }) => pieces));
    if (text(data) !== text(this.data)) this.row = null;
    this.data = data;
    this.shifts = data.head ? new Shifts(data) : null;
    this.missing = null; // what is said of the heads while they are asked for
    if (data.later && data.trace && !data.hidden) this.fetchHeads();
    else this.draw();
  }

  /** Of a long text the patterns take longer than all the rest: they come when that stands there, a block at a time. */
  async fetchHeads() {
    const { data } = this;
    for (const attention of data.later) {
      const { layers, heads, crossHeads } = data.lanes.find(({ side }) => side === attention.split(".").at(-2)) ?? data.lanes.at(-1);
      const shape = [layers, attention.endsWith("cross_attn") ? crossHeads : heads];
      const moved = (data.arrays[`pattern.${attention}`] = { shape, data: new Float32Array(shape[0] * shape[1]) });
      for (const layer of range(0, layers)) {
        this.missing = `comparing block ${layer + 1} of ${layers} …`;
        this.draw();
        try {
          const { arrays } = await request({ effects: "heads", attention, layer, trace: data.trace });
          moved.data.set(arrays.moved.data, layer * shape[1]);
        } catch (error) {
          this.missing = error.message;
          return this.data === data && this.draw();
        }
        if (this.data !== data) return null;
      }
    }
    this.missing = null;
    return this.draw();
  }

  /** The position whose distribution is shown. */
  get shown() {
    return this.row ?? this.data.head.row;
  }

  async choose(row) {
    const { trace } = this.data;
    this.row = row;
    try {
      await this.shifts.fetch(row);
      this.failed = "";
    } catch (error) {
      this.failed = error.message;
    }
    if (this.data.trace === trace) this.draw();
  }

  draw() {
    const { root, data } = this;
    root.hidden = !data.trace;
    if (!data.trace) return root.replaceChildren();
    this.width = root.clientWidth;
    root.classList.toggle("narrow", this.width < NARROW);
    if (data.hidden) return root.replaceChildren(this.guess.ask(data, this.shifts));
    if (data.head && !this.shifts.has(this.shown)) {
      this.choose(this.shown);
      return;
    }
    const verdict = this.guess.verdict(data, this.shifts);
    const focused = root.getRootNode().activeElement?.dataset?.name;
    this.waiting = [];
    root.replaceChildren(this.top(), ...(verdict ? [verdict] : []), ...(this.open ? this.panels() : []));
    for (const act of this.waiting) act();
    if (focused) root.querySelector(`[data-name="${focused}"]`)?.focus({ preventScroll: true });
  }

  /** Does `act` once what is being built stands in the page. */
  later(act) {
    this.waiting.push(act);
  }

  top() {
    const row = make("div", "summary");
    const fold = make("button", "fold", this.open ? "▾" : "▸");
    fold.type = "button";
    fold.dataset.name = "fold";
    fold.setAttribute("aria-expanded", String(this.open));
    fold.setAttribute("aria-label", this.open ? "show less of what changed" : "show what changed");
    fold.addEventListener("click", () => {
      this.open = !this.open;
      this.draw();
    });
    row.append(fold, this.data.head ? headline(this) : make("span", "", "This model has no head: what changed stands in its attention and its stream."));
    row.append(make("span", "took", took(this.data.took)));
    return row;
  }

  panels() {
    const panels = make("div", "panels");
    if (this.data.head) panels.append(distribution(this));
    panels.append(positions(this), heads(this));
    return this.data.writes === "never" ? [panels] : [panels, continuation(this)];
  }
}

/** "blocks 3 to 4 of 4 computed again in 3.1 ms" */
function took({ start, layers, seconds }) {
  const time = seconds < 0.01 ? `${number(Math.round(seconds * 1e4) / 10)} ms` : seconds < 1 ? `${Math.round(seconds * 1e3)} ms` : `${seconds.toFixed(1)} s`;
  if (start > layers) return "nothing computed again";
  if (start === layers) return `only what follows the last block computed again in ${trimmed(time)}`;
  const which = start === 0 ? `all ${layers} blocks` : start + 1 === layers ? `block ${layers} of ${layers}` : `blocks ${start + 1} to ${layers} of ${layers}`;
  return `${which} computed again in ${trimmed(time)}`;
}

function trimmed(time) {
  return time.replace(/(\.\d)\d+/, "$1");
}

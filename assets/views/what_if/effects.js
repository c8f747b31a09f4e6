// What the edits of a run did: the run before them beside the one after. Nothing at all where there are none.
// Ours, because a click in its maps moves what stands beside them and asks nothing of the server.
import { boundary, paintPixels } from "../components/picture.js";
import { make, pencil, range } from "../core/dom.js";
import { number } from "../core/format.js";
import { colour } from "../core/palette.js";
import { request } from "../core/store.js";
import { distribution, Guess, headLane, headline, Shifts } from "./effects_distribution.js";
import { heads, positions } from "./effects_where.js";

const NARROW = 700; // CSS pixels

/**
 * @typedef {import("./effects_distribution.js").Data} Data
 * @typedef {import("./effects_distribution.js").Headed} Headed
 * @typedef {import("../core/payload.js").NamedArray} NamedArray
 * @typedef {import("../core/host.js").Emit} Emit
 * @typedef {Effects} Page
 */

/**
 * data: a decoded payload of views/what_if/effects.py. Emits "reveal" (the run that was guessed at).
 * @param {HTMLElement} root
 * @param {Data} data
 * @param {Emit} emit
 */
export function mount(root, data, emit) {
  const element = make("section", "effects");
  element.setAttribute("aria-label", "what the edits did");
  root.append(element);
  const view = new Effects(element, emit);
  view.update(data);
  return {
    /** @param {Data} next */
    update: (next) => view.update(next),
    destroy() {
      view.watch.disconnect();
      root.replaceChildren();
    },
  };
}

class Effects {
  /** @type {(() => void)[]} what is done once that stands in the page which is being built */
  waiting = [];
  /** @type {Data} */
  data;
  /** @type {Shifts | null} */
  shifts;
  /** @type {string | undefined} the run on whose greedy text somebody has asked for */
  wrote;

  /**
   * @param {HTMLElement} root
   * @param {Emit} emit
   */
  constructor(root, emit) {
    this.root = root;
    this.root.loupe = this; // for tests
    this.emit = emit;
    this.open = true;
    /** @type {number | null} */
    this.row = null; // the position that a person chose; null follows the payload
    this.guess = new Guess(() => this.emit("reveal", this.data.trace));
    this.watch = new ResizeObserver(([{ contentRect }]) => {
      if (Math.abs(contentRect.width - this.width) > 1 && this.data?.trace) this.draw();
    });
    this.watch.observe(root);
    this.width = 0;
  }

  /** @param {Data} data */
  update(data) {
    /** @param {Data | undefined} one */
    const text = (one) => JSON.stringify(one?.lanes?.map(({ pieces }) => pieces));
    if (text(data) !== text(this.data)) this.row = null;
    this.data = data;
    this.shifts = data.head ? new Shifts({ ...data, head: data.head }) : null;
    /** @type {string | null} */
    this.missing = null; // what is said of the heads while they are asked for
    if (data.later && data.trace && !data.hidden) this.fetchHeads();
    else this.draw();
  }

  /** Of a long text the patterns take longer than all the rest: they come when that stands there, a block at a time. */
  async fetchHeads() {
    const { data } = this;
    for (const attention of data.later ?? []) {
      const { layers, heads, crossHeads } =
        data.lanes.find(({ side }) => side === attention.split(".").at(-2)) ?? headLane(data.lanes);
      const shape = [layers, attention.endsWith("cross_attn") ? crossHeads : heads];
      const moved = { shape, data: new Float32Array(shape[0] * shape[1]), dtype: "f32", dims: ["layer", "head"] };
      data.arrays[`pattern.${attention}`] = moved;
      for (const layer of range(0, layers)) {
        this.missing = `comparing block ${layer + 1} of ${layers} …`;
        this.draw();
        try {
          const { arrays } = await request({ ask: "edit_heads", attention, layer, trace: data.trace });
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
    return this.row ?? /** @type {Headed["data"]} */ (this.data).head.row;
  }

  /** @param {number} row */
  async choose(row) {
    const { trace } = this.data;
    this.row = row;
    try {
      await this.shifts?.fetch(row);
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
    if (this.shifts && !this.shifts.has(this.shown)) {
      this.choose(this.shown);
      return;
    }
    const verdict = this.guess.verdict(data);
    const { activeElement } = /** @type {ShadowRoot | Document} */ (root.getRootNode());
    const focused = activeElement instanceof HTMLElement ? activeElement.dataset.name : undefined;
    this.waiting = [];
    root.replaceChildren(this.top(), ...(verdict ? [verdict] : []), ...(this.open ? this.panels() : []));
    for (const act of this.waiting) act();
    if (focused)
      /** @type {HTMLElement | null} */ (root.querySelector(`[data-name="${focused}"]`))?.focus({
        preventScroll: true,
      });
  }

  /**
   * Does `act` once what is being built stands in the page.
   * @param {() => void} act
   */
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
    row.append(
      fold,
      this.data.head
        ? headline(/** @type {Headed} */ (this))
        : make("span", "", "This model has no head: see the changes in its attention and its residual stream."),
    );
    row.append(make("span", "took", took(this.data.took)));
    return row;
  }

  panels() {
    const panels = make("div", "panels");
    if (this.data.head) panels.append(distribution(/** @type {Headed} */ (this)));
    panels.append(positions(this), heads(this));
    return this.data.writes === "never" ? [panels] : [panels, continuation(this)];
  }
}

/**
 * "blocks 3 to 4 of 4 computed again in 3.1 ms"
 * @param {Data["took"]} took
 */
function took({ start, layers, seconds }) {
  const time =
    seconds < 0.01
      ? `${number(Math.round(seconds * 1e4) / 10)} ms`
      : seconds < 1
        ? `${Math.round(seconds * 1e3)} ms`
        : `${seconds.toFixed(1)} s`;
  if (start > layers) return "nothing computed again";
  if (start === layers) return `only what follows the last block computed again in ${trimmed(time)}`;
  const which =
    start === 0
      ? layers === 1
        ? "the one block"
        : `all ${layers} blocks`
      : start + 1 === layers
        ? `block ${layers} of ${layers}`
        : `blocks ${start + 1} to ${layers} of ${layers}`;
  return `${which} computed again in ${trimmed(time)}`;
}

/** @param {string} time */
function trimmed(time) {
  return time.replace(/(\.\d)\d+/, "$1");
}

// --- What the model writes greedily, without the edits and with them ---

/** @param {Page} page */
export function continuation(page) {
  const element = make("section", "continuation");
  const { data } = page;
  /** @type {import("../core/store.js").Query<"edit_continuation">} */
  const query = { ask: "edit_continuation", trace: data.trace };
  const body = make("div", "written");
  const drawn = headLane(data.lanes).grid?.predicts;
  const what = drawn ? "Greedy completion" : "Greedy continuation";
  element.append(make("h4", "", what), body);
  const write = () => {
    body.replaceChildren(make("p", "told", "…"));
    request(query).then(
      (found) =>
        page.data.trace === data.trace &&
        body.replaceChildren(...(drawn ? [pictures(page.root, found)] : lines(found))),
      (error) => body.replaceChildren(make("p", "told", error.message)),
    );
  };
  if (data.writes === "at once" || page.wrote === data.trace) write();
  else {
    const go = make("button", "chip", drawn ? "complete it" : "write on");
    go.type = "button";
    go.addEventListener("click", () => {
      page.wrote = data.trace;
      write();
    });
    body.append(go);
  }
  return element;
}

/** @param {import("../core/store.js").Answers["edit_continuation"] & { before?: string[], after?: string[] }} answer */
function lines({ before = [], after = [] }) {
  const apart = before.findIndex((piece, i) => piece !== after[i]);
  const from =
    apart < 0 ? (before.length === after.length ? before.length : Math.min(before.length, after.length)) : apart;
  return /** @type {[name: string, pieces: string[]][]} */ ([
    ["before", before],
    ["after", after],
  ]).map(([name, pieces]) => {
    const line = make("p", `line ${name}`);
    line.append(make("span", "run", name));
    pieces.forEach((piece, i) =>
      line.append(make("bdi", i >= from && name === "after" ? "token other" : "token", piece)),
    );
    if (!pieces.length) line.append(make("span", "soft", "nothing: the text ends here, or fills the context"));
    else if (name === "after" && from === pieces.length && before.length === after.length)
      line.append(make("span", "soft", "the same"));
    return line;
  });
}

// --- A picture that a model completes, without the edits and with them: the pixels that are others are fr ---

const WIDTH = 132; // CSS pixels of a picture

/**
 * The answer has pictures height width channel, of which `given` pixels were shown.
 * @param {HTMLElement} root
 * @param {import("../core/store.js").Answers["edit_continuation"]} answer
 */
export function pictures(root, { given, arrays }) {
  const [before, after] = [arrays.before, arrays.after];
  const [height, across, channels] = before.shape;
  /** @param {number} i */
  const same = (i) =>
    Array.from({ length: channels }, (_, c) => before.data[i * channels + c] === after.data[i * channels + c]).every(
      Boolean,
    );
  const others = Array.from({ length: height * across }, (_, i) => i).filter((i) => !same(i));
  const drawn = height * across - given;
  const row = make("div", "completed");
  for (const [name, pixels, framed] of /** @type {[name: string, pixels: NamedArray, framed: number[]][]} */ ([
    ["before", before, []],
    ["after", after, others],
  ])) {
    const figure = make("figure");
    const said =
      name === "before"
        ? `before: the ${given} pixels given, completed`
        : `after: ${others.length} of ${drawn} drawn pixels are others`;
    const canvas = picture(root, pixels, given, framed);
    canvas.setAttribute("aria-label", said);
    figure.append(canvas, make("figcaption", "", said));
    row.append(figure);
  }
  return row;
}

/**
 * @param {HTMLElement} root
 * @param {NamedArray} pixels
 * @param {number} given
 * @param {number[]} framed
 */
function picture(root, pixels, given, framed) {
  const canvas = make("canvas");
  canvas.setAttribute("role", "img");
  const [height, across] = pixels.shape;
  const dpr = devicePixelRatio || 1;
  const cell = WIDTH / across;
  canvas.width = Math.round(WIDTH * dpr);
  canvas.height = Math.round(cell * height * dpr);
  Object.assign(canvas.style, { width: `${WIDTH}px`, height: `${cell * height}px` });
  const context = pencil(canvas);
  context.scale(dpr, dpr);
  paintPixels(context, root, pixels, 0, 0, across, WIDTH);
  context.strokeStyle = colour(root, "edited");
  context.lineWidth = Math.max(1, Math.min(2.5, cell / 6));
  const inside = context.lineWidth / 2;
  for (const i of framed)
    context.strokeRect(
      (i % across) * cell + inside,
      Math.floor(i / across) * cell + inside,
      cell - 2 * inside,
      cell - 2 * inside,
    );
  boundary(context, root, { side: across, given }, cell);
  return canvas;
}

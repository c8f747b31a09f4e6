// Which source words the target was made from: two lines of words, and between them the cross-attention of one head.
import { choices } from "../components/choices.js";
import { make, pencil, range } from "../core/dom.js";
import { percent } from "../core/format.js";
import { colour } from "../core/palette.js";
import { begins } from "../components/prose.js";

/**
 * @typedef {import("./attention.js").Face} Face
 * @typedef {"source" | "target"} Text
 * @typedef {{ source?: number, target?: number }} Alone a word that is looked at alone
 */

const SIZES = [30, 26, 23, 20, 17]; // of letters, CSS pixels: the largest at which both lines have room
const COLUMN = [
  [16, 19],
  [40, 17],
  [Infinity, 15],
]; // where they have none, the texts stand side by side, downward: up to so many tokens, letters of that size
const DRAWN = 0.01; // the smallest weight with a curve
const THICK = 0.5; // of the letters' size, for a weight of 1
const FADED = 0.07;
const BY = {
  written:
    "Each target word is joined by the row that wrote it: the row of the word before, which is where the model decided what comes next.",
  own: "Each target word is joined by its own row: what the model reads at that word in order to write the next one.",
};

/**
 * @param {HTMLElement} root
 * @param {Face} page
 */
export function mount(root, page) {
  return new Alignment(root, page);
}

class Alignment {
  /** @type {{ source: string[], target: string[] }} */
  pieces;
  /** @type {{ source: HTMLElement[], target: HTMLElement[] }} */
  words;
  /** @type {{ source: number[], target: number[] }} the middles of the words, CSS pixels */
  places;
  /** @type {(row: number, key: number) => number} */
  weight;
  /** @type {number} of the letters, CSS pixels */
  size;
  /** @type {number} CSS pixels of the canvas */
  wide;
  /** @type {number} */
  tall;
  /** @type {boolean} whether the texts stand side by side */
  downward;
  /** @type {string | undefined} */
  built;

  /**
   * @param {HTMLElement} root
   * @param {Face} page
   */
  constructor(root, page) {
    this.page = page;
    /** @type {Alone | null} */
    this.pointed = null;
    root.classList.add("alignment");
    this.by = choices(
      "which row",
      [
        ["written", "by the row that wrote it"],
        ["own", "by its own row"],
      ],
      (by) => page.go({ by: by === "written" ? undefined : by }),
    );
    this.stage = make("div", "aligned");
    this.stage.tabIndex = 0;
    this.stage.setAttribute("role", "group");
    this.source = make("div", "line-of source-words");
    this.target = make("div", "line-of target-words");
    this.canvas = make("canvas");
    this.canvas.setAttribute("role", "img");
    this.stage.append(this.source, this.canvas, this.target);
    this.meaning = make("p", "alignment-meaning");
    root.append(this.by.element, this.stage, this.meaning);
    this.listen();
  }

  /** How many rows lie between a target word and the row that joins it. */
  get shift() {
    return this.page.state.by === "own" ? 0 : 1;
  }

  update() {
    const { page } = this;
    const { trace, state } = page;
    this.by.show(this.shift ? "written" : "own");
    this.meaning.textContent = BY[this.shift ? "written" : "own"];
    const built = [trace.trace, page.width, page.narrow].join();
    if (built !== this.built) this.build();
    this.built = built;
    const { block, max } = page.pattern(state.layer, state.head);
    this.weight = (row, key) => block.data[block.offset + row * block.stride + key] / max;
    this.words.target.forEach((word, i) => {
      word.classList.toggle("unjoined", this.rowOf(i) < 0);
      word.setAttribute("aria-label", this.spoken(i));
    });
    this.canvas.setAttribute(
      "aria-label",
      `curves of head ${state.head + 1} of block ${state.layer + 1} from target words to source words`,
    );
    this.mark();
  }

  /**
   * The row of the pattern that joins target word i; -1 where no row wrote it.
   * @param {number} i
   */
  rowOf(i) {
    return i - this.shift;
  }

  build() {
    const { page } = this;
    const { pieces, special } = page.trace;
    const source = page.trace.source ?? page.trace; // an alignment is one of two texts
    this.pieces = { source: source.pieces, target: pieces };
    this.words = {
      source: write(this.source, source.pieces, source.special),
      target: write(this.target, pieces, special),
    };
    /** @param {number} size */
    const fits = (size) => {
      this.stage.style.fontSize = `${size}px`;
      return Math.max(this.source.scrollWidth, this.target.scrollWidth) <= page.width;
    };
    this.stage.classList.remove("downward");
    this.stage.style.width = `${page.width}px`;
    const found = SIZES.find(fits);
    this.downward = found === undefined;
    this.stage.classList.toggle("downward", this.downward);
    const count = Math.max(pieces.length, source.pieces.length);
    this.size = found ?? COLUMN.find(([most]) => count <= most)?.[1] ?? SIZES[0];
    this.stage.style.fontSize = `${this.size}px`;
    /** @param {HTMLElement[]} words */
    const places = (words) => words.map((word) => middle(word, this.downward));
    this.places = { source: places(this.words.source), target: places(this.words.target) };
    this.room();
  }

  /** The canvas between the two lines. */
  room() {
    const ratio = window.devicePixelRatio || 1;
    const wide = this.downward
      ? this.target.offsetLeft - this.source.offsetLeft - this.source.offsetWidth
      : this.stage.clientWidth;
    const tall = this.downward
      ? Math.max(this.source.offsetHeight, this.target.offsetHeight)
      : this.target.offsetTop - this.source.offsetTop - this.source.offsetHeight;
    this.wide = wide;
    this.tall = tall;
    this.canvas.width = Math.round(wide * ratio);
    this.canvas.height = Math.round(tall * ratio);
    Object.assign(this.canvas.style, {
      width: `${wide}px`,
      height: `${tall}px`,
      left: this.downward ? `${this.source.offsetLeft + this.source.offsetWidth}px` : "0",
      top: this.downward ? "0" : `${this.source.offsetTop + this.source.offsetHeight}px`,
    });
  }

  /**
   * What is looked at alone: {target} or {source}, null for all together.
   * @returns {Alone | null}
   */
  get alone() {
    const { hover, state } = this.page;
    if (this.pointed) return this.pointed;
    if (hover && hover.row !== null && hover.row + this.shift < this.words.target.length)
      return { target: hover.row + this.shift };
    if (this.stage.matches(":focus-visible"))
      return { target: Math.min(this.words.target.length - 1, state.query + this.shift) };
    return null;
  }

  mark() {
    if (!this.words) return;
    const { alone } = this;
    const { state } = this.page;
    this.draw(alone);
    for (const of of /** @type {const} */ (["source", "target"])) {
      this.words[of].forEach((word, i) => {
        const weight = this.share(alone, of, i) ?? 0;
        const share = word.querySelector(".share");
        if (share) share.textContent = weight >= DRAWN ? percent(weight) : "";
        word.classList.toggle("alone", alone?.[of] === i);
        word.classList.toggle("faint", alone !== null && alone[of] !== i && !(weight >= DRAWN));
        word.classList.toggle("chosen", of === "target" && this.rowOf(i) === state.query);
      });
    }
  }

  /**
   * The weight between a word and the one that is looked at alone; null where the two are of one text, or no row joins them.
   * @param {Alone | null} alone
   * @param {Text} of
   * @param {number} i
   */
  share(alone, of, i) {
    const [target, source] = of === "source" ? [alone?.target, i] : [i, alone?.source];
    if (alone?.[of] !== undefined || target === undefined || source === undefined || this.rowOf(target) < 0)
      return null;
    return this.weight(this.rowOf(target), source);
  }

  /** @param {Alone | null} alone */
  draw(alone) {
    const context = pencil(this.canvas);
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.wide, this.tall);
    context.strokeStyle = colour(this.stage, "attention");
    context.lineCap = "butt";
    const { source, target } = this.places;
    target.forEach((to, i) => {
      const row = this.rowOf(i);
      if (row < 0) return;
      source.forEach((from, key) => {
        const weight = this.weight(row, key);
        if (!(weight >= DRAWN)) return;
        const lit = !alone || alone.target === i || alone.source === key;
        context.globalAlpha = lit ? 0.12 + 0.8 * weight : FADED;
        context.lineWidth = Math.max(1, THICK * this.size * weight);
        context.beginPath();
        this.curve(context, from, to);
        context.stroke();
      });
    });
    context.globalAlpha = 1;
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} from
   * @param {number} to
   */
  curve(context, from, to) {
    const { wide, tall } = this;
    if (this.downward) {
      context.moveTo(0, from);
      context.bezierCurveTo(wide / 2, from, wide / 2, to, wide, to);
    } else {
      context.moveTo(from, 0);
      context.bezierCurveTo(from, tall / 2, to, tall / 2, to, tall);
    }
  }

  /** @param {number} i */
  spoken(i) {
    const row = this.rowOf(i);
    if (row < 0)
      return `${this.pieces.target[i]}: ${this.page.trace.rows?.[0] ? "the row that wrote it is not in this window" : "no row wrote it"}`;
    const best = this.pieces.source.reduce(
      (most, _, key) => (this.weight(row, key) > this.weight(row, most) ? key : most),
      0,
    );
    return `${this.pieces.target[i]}: most from ${this.pieces.source[best]}, ${percent(this.weight(row, best))}`;
  }

  listen() {
    /**
     * @param {Event} event
     * @returns {Alone | null}
     */
    const found = ({ target }) => {
      const pointed = target instanceof Element ? target.closest(".word-of") : null;
      for (const of of /** @type {const} */ (["target", "source"])) {
        const i = this.words?.[of].findIndex((word) => word === pointed) ?? -1;
        if (i >= 0) return { [of]: i };
      }
      return null;
    };
    this.stage.addEventListener(
      "pointermove",
      (/** @type {PointerEvent} */ event) => event.pointerType !== "touch" && this.point(found(event)),
    );
    this.stage.addEventListener("pointerleave", () => this.point(null));
    this.stage.addEventListener("click", (/** @type {MouseEvent} */ event) => {
      const word = found(event);
      if (word?.target !== undefined && this.rowOf(word.target) >= 0) this.page.go({ query: this.rowOf(word.target) });
      else if (word?.source !== undefined) this.page.go({ key: word.source });
    });
    this.stage.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.step(event));
    this.stage.addEventListener("focus", () => this.mark());
    this.stage.addEventListener("blur", () => this.mark());
  }

  /** @param {Alone | null} word */
  point(word) {
    if (word?.target === this.pointed?.target && word?.source === this.pointed?.source) return;
    this.pointed = word;
    const row = word?.target === undefined ? -1 : this.rowOf(word.target);
    this.page.point(row >= 0 ? { row, col: null } : null);
    this.mark();
  }

  /** @param {KeyboardEvent} event */
  step(event) {
    const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const last = this.words.target.length - 1 - this.shift;
    const query = Math.max(0, Math.min(last, this.page.state.query + by));
    this.page.go({ query });
    this.page.tell(this.spoken(query + this.shift));
  }

  destroy() {
    this.page.tip(null);
  }
}

/**
 * @param {HTMLElement} root
 * @param {string[]} pieces
 * @param {boolean[]} special
 * @returns {HTMLElement[]}
 */
function write(root, pieces, special) {
  const starts = begins(pieces, special);
  const words = range(0, pieces.length).map((i) => {
    const word = make("span", `word-of${starts[i] ? "" : " goes-on"}`);
    word.append(make("bdi", special[i] ? "special" : "", pieces[i]), make("span", "share"));
    return word;
  });
  root.replaceChildren(...words);
  return words;
}

/**
 * The middle of a word along its line, CSS pixels.
 * @param {HTMLElement} word
 * @param {boolean} downward
 */
function middle(word, downward) {
  return downward ? word.offsetTop + word.offsetHeight / 2 : word.offsetLeft + word.offsetWidth / 2;
}

// What each kind of attention keeps of a head's pattern. Ours because one cursor marks the same cell in five maps of
// 16,384 cells at once, without a message to the server.
import * as address from "../core/address.js";
import { at, mountCells } from "../components/cells.js";
import { make, range } from "../core/dom.js";
import { counted, percent } from "../core/format.js";
import { curve, css, ramp, STEPS } from "../core/palette.js";
import { View } from "../core/shell.js";
import { request } from "../core/store.js";

const GAP = 18; // CSS pixels between two maps, as .panels has it
const SMALLEST = 150; // side of a map
const LARGEST = 260;
/** @type {Record<string, number[]>} rows and columns that a key moves by */
const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/**
 * @typedef {{name: "full" | "window" | "blocks" | "nearest" | "quantized", title: string, mass: number, cells: number}} Kept
 * @typedef {import("../core/store.js").Answers["kept"] & { kept: Kept[] }} Answer
 * @typedef {Answer & {trace: string, heads: number[], look: {layer: number, head: number}, pieces: string[],
 *   grid: number[], brightest: number}} Payload
 * @typedef {Record<string, number>} Look
 * @typedef {Pick<Answer, "kept" | "arrays">} Shown
 */

/**
 * @param {HTMLElement} root
 * @param {Payload} data of views/long_sequences/patterns.py
 */
export function mount(root, data) {
  const view = new KeptPatterns(root);
  view.update(data);
  return view;
}

/** @extends {View<Payload>} */
class KeptPatterns extends View {
  /** @type {Map<string, Shown>} layer and head -> what is kept of that pattern */
  answers;

  /** @param {HTMLElement} root */
  constructor(root) {
    super(root, "kept-patterns");
    this.state = address.read();
    this.unfollow = address.follow((state) => this.turn(state));
  }

  destroy() {
    this.unfollow();
    super.destroy();
  }

  /** @param {Payload} data */
  update(data) {
    this.data = data;
    const { kept, arrays, look } = data;
    this.answers = new Map([[`${look.layer} ${look.head}`, { kept, arrays }]]);
    this.fit();
    this.ask();
  }

  /**
   * Sentences for what the address asks for and this view does not have.
   * @param {Look} state
   */
  missed(state) {
    const [layers, heads] = this.data.heads;
    const size = this.data.pieces.length;
    /** @type {Record<string, [string, number]>} */
    const sizes = { layer: ["block", layers], head: ["head", heads], query: ["row", size], key: ["column", size] };
    return Object.entries(sizes)
      .filter(([name, [, most]]) => state[name] !== undefined && !isIndex(state[name], most))
      .map(([name, [word, most]]) => {
        const asked = Number.isInteger(state[name]) ? state[name] + 1 : JSON.stringify(state[name]);
        return `${word} ${asked} is not here, there are ${most}`;
      });
  }

  /** Moves head and cell inside what there is. */
  fit() {
    const { data, state } = this;
    const [layers, heads] = data.heads;
    const size = data.pieces.length;
    if (!isIndex(state.layer, layers)) state.layer = data.look.layer;
    if (!isIndex(state.head, heads)) state.head = data.look.head;
    if (!isIndex(state.query, size)) state.query = size - 1;
    if (!isIndex(state.key, size)) state.key = undefined; // the strongest of the row, once it is here
  }

  /** @param {Look} change */
  turn(change) {
    Object.assign(this.state, change);
    this.fit();
    this.pick();
    this.ask();
  }

  remember() {
    const { layer, head, query, key } = this.state;
    address.write({ layer, head, query, key });
  }

  async ask() {
    const { data, state } = this;
    const { layer, head } = state;
    const name = `${layer} ${head}`;
    const isCurrent = () => data === this.data && name === `${state.layer} ${state.head}`;
    this.element.classList.toggle("waiting", !this.answers.has(name));
    try {
      const answer =
        this.answers.get(name) ??
        /** @type {Answer} */ (await request({ trace: data.trace, ask: "kept", layer, head }));
      if (data === this.data) this.answers.set(name, answer);
      if (isCurrent()) this.show(answer, "");
    } catch (error) {
      if (isCurrent()) this.show(null, error.message);
    }
  }

  /**
   * Draws an answer, or the sentence that says why there is none.
   * @param {Shown | null} answer
   * @param {string} sentence
   */
  show(answer, sentence) {
    this.shown = answer;
    this.sentence = sentence;
    this.element.classList.remove("waiting");
    this.measure();
  }

  refresh() {
    if (!(this.shown || this.sentence)) return;
    const active = this.element.getRootNode().activeElement;
    const focused = this.element.contains(active) && active.className;
    const heading = make("div", "heading");
    heading.append(make("h3", "", "What each keeps"), this.chooser(), this.legend());
    const row = make("div", "panels");
    row.tabIndex = 0;
    row.setAttribute("role", "group");
    row.setAttribute("aria-label", "the patterns; arrow keys move the chosen cell in all of them");
    row.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.key(event));
    this.between = make("p", "between");
    this.between.setAttribute("aria-live", "polite");
    const [high, wide] = this.data.grid;
    const note = `One head on the first ${counted(this.data.pieces.length, "token")} of the text: each query is a row, each key a \
column, and where a query may not look the map is empty. What is left of a row is divided by its sum. For 2-D blocks the \
text is laid out as an image of ${counted(high, "row")} of ${wide}.`;
    const body = this.sentence ? make("p", "refused", this.sentence) : row;
    this.element.replaceChildren(heading, body, this.between, make("p", "note", note));
    const { shown } = this;
    // once the row is in the page, which has the colours
    this.panels = shown ? shown.kept.map((part) => this.panel(shown, row, part)) : [];
    if (focused) this.element.querySelector(`.${focused}`)?.focus({ preventScroll: true });
    this.pick();
    this.element.dataset.ready = "true";
  }

  chooser() {
    const [layers, heads] = this.data.heads;
    const select = make("select", "chooser");
    select.setAttribute("aria-label", "head");
    for (const layer of range(0, layers)) {
      for (const head of range(0, heads)) {
        const option = make("option", "", `block ${layer + 1}, head ${head + 1}`);
        select.append(Object.assign(option, { value: layer * heads + head }));
      }
    }
    select.value = this.state.layer * heads + this.state.head;
    select.addEventListener("change", () => {
      const place = Number(select.value);
      Object.assign(this.state, { layer: Math.floor(place / heads), head: place % heads, key: undefined });
      this.remember();
      this.ask();
    });
    return select;
  }

  legend() {
    const element = make("p", "legend");
    const table = ramp(this.element, "attention", "unit");
    const stops = range(0, 9).map((i) => css(table[Math.round(curve(i / 8) ** 2 * (STEPS - 1))]));
    const bar = make("span", "bar");
    bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    element.append("0", bar, `${this.data.brightest} and more`);
    return element;
  }

  /**
   * @param {Shown} shown
   * @param {HTMLElement} row
   * @param {Kept} part
   */
  panel(shown, row, part) {
    const count = shown.kept.length;
    const fits = Math.max(1, Math.min(count, Math.floor((this.across + GAP) / (SMALLEST + GAP))));
    const width = Math.min(LARGEST, Math.floor((this.across + GAP) / fits) - GAP);
    const figure = make("figure", "pattern");
    figure.style.width = `${width}px`;
    row.append(figure);
    const place = make("div");
    const title = make("div", "title");
    const weight = make("output", "weight");
    title.append(make("strong", "", part.title), weight);
    const share = `keeps ${percent(part.mass)} of the attention in ${percent(part.cells)} of the cells`;
    figure.append(title, place, make("figcaption", "", share));
    const { data, shape } = shown.arrays[`pattern.${part.name}`];
    const [rows, cols] = shape;
    const block = { data, offset: 0, stride: cols, rows, cols };
    const pitch = width / rows;
    const label = `${part.title}: ${counted(rows, "query", "queries")} down, ${counted(cols, "key")} across`;
    const scale = /** @type {Scale} */ ("unit");
    const look = { role: "attention", scale, max: this.data.brightest, width, pitch, height: pitch, label };
    /**
     * @param {number} r
     * @param {number} c
     */
    const hidden = (r, c) => Number.isNaN(at(block, r, c));
    const cells = mountCells(place, { block, hidden, ...look }, (event, where) => this.point(event, where));
    return { cells, block, weight };
  }

  /**
   * @param {"hover" | "pick"} event
   * @param {import("../components/cells.js").Where | null} where
   */
  point(event, where) {
    if (event === "pick" && where) {
      Object.assign(this.state, { query: where.row, key: where.col });
      this.remember();
    }
    this.hover = event === "hover" ? where : null;
    this.pick();
  }

  /** Marks the cell that is pointed at, else the chosen one, in every pattern. */
  pick() {
    if (!this.panels?.length) return;
    const { state } = this;
    if (state.key === undefined) state.key = strongestKey(this.panels[0].block, state.query);
    const [row, col] = this.hover ? [this.hover.row, this.hover.col] : [state.query, state.key];
    for (const { cells, block, weight } of this.panels) {
      cells.mark({ picked: { row, col }, lit: col, row });
      const value = at(block, row, col);
      weight.textContent = Number.isNaN(value) ? "masked" : percent(value);
    }
    const { pieces } = this.data;
    /**
     * @param {string} role
     * @param {string} piece
     * @param {number} place
     */
    const end = (role, piece, place) => {
      const named = make("span", `role-${role}`);
      named.append(make("bdi", "", piece), make("small", "", ` ${place}`));
      return named;
    };
    this.between.replaceChildren("query ", end("query", pieces[row], row), " → key ", end("key", pieces[col], col));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (!(event.key in ARROWS)) return;
    const [down, across] = ARROWS[event.key];
    event.preventDefault();
    /** @param {number} place */
    const inside = (place) => Math.max(0, Math.min(this.data.pieces.length - 1, place));
    const by = event.shiftKey ? 10 : 1;
    const { query, key } = this.state;
    Object.assign(this.state, { query: inside(query + by * down), key: inside(key + by * across) });
    this.hover = null;
    this.remember();
    this.pick();
  }

  /** What Share & export says of the picture, and asks the server for. */
  looked() {
    const { layer, head } = this.state;
    return {
      where: "",
      what: "",
      sentence: `Patterns of block ${layer + 1}, head ${head + 1}.`,
      asks: { of: { layer, head } },
    };
  }
}

/**
 * @param {Block} block
 * @param {number} row
 */
function strongestKey(block, row) {
  const values = range(0, block.cols).map((col) => at(block, row, col));
  return values.reduce((best, value, col) => (value > values[best] ? col : best), 0);
}

/**
 * @param {unknown} value
 * @param {number} size
 */
function isIndex(value, size) {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value < size;
}

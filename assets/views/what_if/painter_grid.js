// Cells to paint on: a grid of two axes, seen whole or through a window of it. Ours, because no widget paints.
import { counted } from "../core/format.js";
import { paint } from "../components/cells.js";
import { axis } from "../components/legend.js";
import { make, pencil, range } from "../core/dom.js";
import { colour } from "../core/palette.js";
import { inside, windowSize } from "../core/place.js";

/**
 * @typedef {import("../components/cells.js").Where} Where
 * @typedef {{ rows: number, cols: number }} Size
 * @typedef {{ layer?: number, heads?: number[], to: string, brush?: number, free?: boolean, cells: [row: number, col: number][], rows: number[],
 *   columns: number[], weights: number[], allowed?: boolean[][], drawn?: number[][], [field: string]: unknown }} Edit as its kind has the fields
 * @typedef {{ rows: string[], keys: string[], stack: string | null, cross: boolean }} Own the attention, with the tokens of its rows and columns
 * @typedef {{ size: Size, own: Own, most: number, edit: Edit, picked: (which: "row" | "column", i: number) => void, moved: () => void }} Framed
 * @typedef {Size & { most: number, edit: Edit, cursor?: number }} Begun
 */

const LEAST = 6; // CSS pixels of a cell
const NAMED = 11; // from which on rows and columns bear their tokens
const ROOMY = 14; // of a cell in a window
const NAMES = 92;
const WIDEST = 760;
const TALLEST = 480;
const WHOLE = 256; // rows or columns up to which every cell is shown
const AXIS = 52;
/** @type {Record<string, number[]>} rows and columns that a key moves by */
const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

const places = new WeakMap(); // an edit -> where its window stood, for when its form is drawn again

/** {size, own, most, edit, picked(cells of a name), moved()}: `view` is what is seen, in rows and columns. */
export class Window {
  /** @param {Framed} of */
  constructor({ size, own, most, edit, picked, moved }) {
    this.size = size;
    this.own = own;
    this.picked = picked;
    this.moved = moved;
    this.edit = edit;
    const wide = Math.min(WIDEST, windowSize().width - 90) - NAMES;
    this.scrolls = Math.max(size.rows, size.cols) > WHOLE;
    this.cell = this.scrolls ? ROOMY : Math.max(LEAST, Math.min(most, Math.floor(wide / size.cols)));
    /**
     * @param {number} count
     * @param {number} room
     */
    const seen = (count, room) => (this.scrolls ? Math.min(count, Math.floor(room / this.cell)) : count);
    this.view = { row: 0, col: 0, rows: seen(size.rows, TALLEST), cols: seen(size.cols, wide) };
    this.canvas = make("canvas");
    this.names = make("div", "mask-rows");
    this.body = make("div", "mask-body");
    this.below = make("div");
    this.below.style.display = "contents";
    this.body.append(this.canvas, this.below);
    this.frame = make("div", "mask");
    this.element = this.scrolls ? this.scrolling() : this.frame;
    this.element.classList.add("mask");
    if (!this.scrolls) this.frame.append(this.names, this.body);
    this.label();
  }

  /** The window stays in place, over a space as large as the matrix. */
  scrolling() {
    const { view, cell, size, frame } = this;
    const [outside, space] = [make("div"), make("div")];
    frame.className = "mask-window";
    frame.append(this.names, this.body);
    Object.assign(space.style, { width: `${NAMES + size.cols * cell}px`, height: `${size.rows * cell + AXIS}px` });
    Object.assign(outside.style, {
      display: "block",
      maxHeight: "none",
      height: `${view.rows * cell + AXIS + 18}px`,
      width: `${Math.min(NAMES + view.cols * cell + 18, NAMES + size.cols * cell + 18)}px`,
    });
    space.append(frame);
    outside.append(space);
    outside.tabIndex = -1;
    outside.addEventListener("scroll", () => {
      const [row, col] = [Math.round(outside.scrollTop / cell), Math.round(outside.scrollLeft / cell)];
      this.place(row, col);
    });
    return outside;
  }

  /**
   * Shows the window that begins there, as far as the matrix goes.
   * @param {number} row
   * @param {number} col
   */
  place(row, col) {
    const { view, size } = this;
    /**
     * @param {number} first
     * @param {number} seen
     * @param {number} count
     */
    const within = (first, seen, count) => Math.max(0, Math.min(first, count - seen));
    [view.row, view.col] = [within(row, view.rows, size.rows), within(col, view.cols, size.cols)];
    places.set(this.edit, [view.row, view.col]);
    this.label();
    this.moved();
  }

  /**
   * Brings a cell into the window; `middle` into its middle.
   * @param {Where} cell
   */
  reveal({ row, col }, middle = false) {
    if (!this.scrolls) return;
    const { view, cell, element } = this;
    /**
     * @param {number} at
     * @param {number} start
     * @param {number} seen
     */
    const first = (at, start, seen) =>
      middle ? at - Math.floor(seen / 2) : at < start ? at : at >= start + seen ? at - seen + 1 : start;
    const [top, left] = [first(row, view.row, view.rows), first(col, view.col, view.cols)];
    if (top === view.row && left === view.col) return;
    element.scrollTo(left * cell, top * cell);
    this.place(top, left);
  }

  /**
   * Where it stood when this edit was last shown, or around `cell`. Once the element stands in the page.
   * @param {Where} cell
   */
  restore(cell) {
    if (!this.scrolls) return;
    const [row, col] = places.get(this.edit) ?? [];
    if (row === undefined) return this.reveal(cell, true);
    this.element.scrollTo(col * this.cell, row * this.cell);
    this.place(row, col);
  }

  /** The names of what is seen. */
  label() {
    const { view, cell, own } = this;
    const every = Math.ceil(NAMED / cell); // of the names there is room for
    const shown = range(0, view.rows).filter((r) => r % every === 0);
    this.names.replaceChildren(...shown.map((r) => this.named(view.row + r, Math.min(every, view.rows - r))));
    const keys = own.keys.slice(view.col, view.col + view.cols);
    const below = axis(keys, cell * view.cols);
    below.labels.forEach((label, c) => {
      label.hidden = c % every !== 0;
      label.title = `${keys[c]}${this.number(view.col + c)}: the whole column`;
      label.addEventListener("click", () => this.picked("column", view.col + c));
    });
    below.element.style.width = `${cell * view.cols}px`;
    this.below.replaceChildren(below.element); // beside the canvas, which keeps the focus
  }

  /**
   * The name of a row, `high` rows high.
   * @param {number} r
   * @param {number} high
   */
  named(r, high) {
    const name = make("button", "", this.own.rows[r]);
    name.type = "button";
    name.style.height = `${this.cell * high}px`;
    name.setAttribute("aria-label", `all of row ${r}, ${this.own.rows[r]}`);
    name.title = `${this.own.rows[r]}${this.number(r)}: the whole row`;
    name.addEventListener("click", () => this.picked("row", r));
    return name;
  }

  /** @param {number} i */
  number(i) {
    return this.scrolls ? ` (${i})` : "";
  }

  /**
   * {row, col} of the matrix under the pointer, null outside.
   * @param {PointerEvent} event
   */
  under(event) {
    const { view, cell } = this;
    const { x, y } = inside(event, this.canvas);
    const [row, col] = [Math.floor(y / cell), Math.floor(x / cell)];
    return row >= 0 && col >= 0 && row < view.rows && col < view.cols
      ? { row: view.row + row, col: view.col + col }
      : null;
  }

  /**
   * Fields that bring a row and a column into the window, by their numbers; nothing where all are seen.
   * @param {(which: "row" | "col", i: number) => void} act
   */
  goTo(act) {
    if (!this.scrolls) return [];
    const line = make("div", "go-to");
    /**
     * @param {string} label
     * @param {number} count
     * @param {"row" | "col"} which
     */
    const field = (label, count, which) => {
      const box = make("input");
      Object.assign(box, { type: "number", min: 0, max: count - 1, step: 1, placeholder: `0 to ${count - 1}` });
      box.dataset.name = `go to ${which}`;
      box.addEventListener(
        "keydown",
        (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && event.preventDefault(),
      ); // it is not the form's
      box.addEventListener("input", () => box.value !== "" && box.checkValidity() && act(which, Number(box.value)));
      const whole = make("label", "", `${label} `);
      whole.append(box);
      return whole;
    };
    line.append(field("go to row", this.size.rows, "row"), field("column", this.size.cols, "col"));
    return [line];
  }
}

// --- A matrix to paint on by click, drag or keyboard, its rows and columns by their names. What painting  ---

const LINED = 11; // CSS pixels of a cell from which on each has an outline

/**
 * An element that fills once its promise of a Grid, or of a sentence, is there; `changed()` hears of what is painted.
 * @param {Promise<Grid>} promise
 * @param {() => void} changed
 */
export function soon(promise, changed) {
  const element = make("div", "painter");
  const wait = make("p", "note", "…");
  element.append(wait);
  promise.then(
    (grid) => {
      element.replaceChildren(...grid.elements);
      grid.changed = changed;
      grid.start();
      changed();
    },
    (error) => (wait.textContent = error.message),
  );
  return element;
}

/** What a subclass paints, it says in the methods at the end. */
export class Grid {
  called = "grid";
  digits = false; // whether a key 0 to 9 paints

  /**
   * @param {Own} own
   * @param {Begun} of
   */
  constructor(own, { rows, cols, most, edit, cursor }) {
    this.own = own;
    this.edit = edit;
    this.size = { rows, cols };
    this.cursor = { row: Math.min(cursor ?? rows - 1, rows - 1), col: 0 };
    /**
     * @param {"row" | "column"} which
     * @param {number} i
     */
    const picked = (which, i) => this.done(() => this.line(which === "row" ? this.row(i) : this.column(i), which));
    const moved = () => {
      this.seen?.();
      this.soonDrawn();
    };
    this.window = new Window({ size: this.size, own, most, edit, picked, moved });
    this.canvas = this.window.canvas;
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.said = make("p", "note");
    this.said.setAttribute("aria-live", "polite");
    requestAnimationFrame(() => (this.said.textContent ||= this.howTo));
    const goTo = this.window.goTo((which, i) => {
      this.cursor[which] = i;
      this.window.reveal(this.cursor, true);
      this.done(() => {});
    });
    this.elements = [...goTo, this.window.element, this.said];
    this.listen();
  }

  /** Once the elements stand in the page. */
  start() {
    this.window.restore({ row: this.cursor.row, col: Math.min(this.cursor.row, this.size.cols - 1) });
    this.seen?.();
    this.draw();
  }

  get view() {
    return this.window.view;
  }

  /** @param {Where} cell */
  index({ row, col }) {
    return row * this.size.cols + col;
  }

  /**
   * The index of a cell of the view.
   * @param {number} r
   * @param {number} c
   */
  at(r, c) {
    return (this.view.row + r) * this.size.cols + this.view.col + c;
  }

  /** @param {number} r */
  row(r) {
    return range(r * this.size.cols, (r + 1) * this.size.cols);
  }

  /** @param {number} c */
  column(c) {
    return range(0, this.size.rows).map((r) => r * this.size.cols + c);
  }

  /**
   * "“the”", with its number where not all are seen.
   * @param {string[]} pieces
   * @param {number} i
   */
  token(pieces, i) {
    return `“${pieces[i]}”${this.window.number(i)}`;
  }

  /**
   * What the view shows of a function of a cell's row and column, as a block.
   * @param {(row: number, col: number) => number} value
   */
  block(value) {
    const { row, col, rows, cols } = this.view;
    const data = new Float32Array(rows * cols);
    for (let r = 0, i = 0; r < rows; r++) for (let c = 0; c < cols; c++, i++) data[i] = value(row + r, col + c);
    return { data, offset: 0, stride: cols, rows, cols };
  }

  /** Says how to paint. */
  explain() {
    this.said.textContent = this.howTo;
  }

  /** @returns {string} how to paint, in words */
  get howTo() {
    return "";
  }

  /**
   * Paints, writes the edit and shows it.
   * @param {() => void} act
   */
  done(act) {
    act();
    this.write();
    this.changed();
    this.draw();
    this.tell();
  }

  listen() {
    /** @type {((index: number) => void) | null} */
    let act = null; // what the drag does to a cell
    /** @param {PointerEvent} event */
    const brush = (event) => {
      const found = this.window.under(event);
      if (!found) return;
      this.cursor = found;
      act ??= this.stroke(this.index(found));
      act(this.index(found));
      this.soonDrawn();
      this.tell();
    };
    const end = () => {
      if (act) {
        this.write();
        this.changed();
      }
      act = null;
    };
    this.canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
      if (event.button) return;
      this.canvas.setPointerCapture(event.pointerId);
      act = null;
      brush(event);
      event.preventDefault();
      this.canvas.focus({ preventScroll: true });
    });
    this.canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      if (event.buttons) return brush(event);
      const found = this.window.under(event);
      if (found) this.tell(found);
    });
    for (const name of ["pointerup", "pointercancel"]) this.canvas.addEventListener(name, end);
    for (const name of ["focus", "blur"]) this.canvas.addEventListener(name, () => this.draw());
    this.canvas.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.key(event));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const move = MOVES[event.key];
    const digit = this.digits && /^\d$/.test(event.key) ? Number(event.key) : null;
    if (!move && event.key !== " " && digit === null) return;
    event.preventDefault();
    /**
     * @param {number} i
     * @param {number} size
     */
    const within = (i, size) => Math.max(0, Math.min(size - 1, i));
    const [i, { row, col }] = [this.index(this.cursor), this.cursor];
    if (move) this.cursor = { row: within(row + move[0], this.size.rows), col: within(col + move[1], this.size.cols) };
    else if (digit === null) this.stroke(i)(i);
    else this.put(i, digit / 10);
    this.window.reveal(this.cursor);
    this.done(() => {});
  }

  tell({ row, col } = this.cursor) {
    this.said.textContent = this.words(row, col);
  }

  /** Once a frame is enough, however fast the pointer is. */
  soonDrawn() {
    this.waits ??= requestAnimationFrame(() => {
      /** @type {number | null} */
      this.waits = null;
      this.draw();
    });
  }

  draw() {
    const { canvas, view, size } = this;
    const { cell } = this.window;
    paint(canvas, canvas, { ...this.picture(), role: "attention", width: view.cols * cell, pitch: cell, height: cell });
    const context = pencil(canvas);
    const dpr = devicePixelRatio || 1;
    context.setTransform(dpr, 0, 0, dpr, 0, 0);
    const [edited, hairline] = [colour(canvas, "edited"), colour(canvas, "hairline")];
    if (cell >= LINED) this.outline(context, hairline, 1, () => true);
    this.mark?.(context, edited);
    this.outline(context, edited, cell >= LINED ? 1.5 : 1, (i) => this.marked(i));
    if (canvas.matches(":focus-visible")) {
      context.strokeStyle = colour(canvas, "ink");
      context.lineWidth = 2;
      context.strokeRect(
        (this.cursor.col - view.col) * cell + 1,
        (this.cursor.row - view.row) * cell + 1,
        cell - 2,
        cell - 2,
      );
    }
    canvas.setAttribute(
      "aria-label",
      `${this.called}, ${counted(size.rows, "row")} by ${counted(size.cols, "column")}; arrows move, space paints${this.digits ? ", 0 to 9 set tenths" : ""}`,
    );
  }

  /**
   * Begins a stroke of the brush.
   * @param {number} _first
   * @returns {(i: number) => void} what is done to every cell that it goes over
   */
  stroke(_first) {
    return () => {};
  }

  /**
   * Paints a whole row or column.
   * @param {number[]} _cells
   * @param {"row" | "column"} _which
   */
  line(_cells, _which) {}

  /**
   * Puts a weight, which a key from 0 to 9 names.
   * @param {number} _i
   * @param {number | null} _weight
   */
  put(_i, _weight) {}

  /** Writes into the edit what is painted. */
  write() {}

  /** @returns {Pick<import("../components/cells_paint.js").Painted, "block" | "scale" | "max" | "hidden">} the view, as it is painted */
  picture() {
    throw new Error(`expected ${this.constructor.name} to say what it paints`);
  }

  /**
   * Draws over the cells.
   * @param {CanvasRenderingContext2D} _context
   * @param {string} _edited
   */
  mark(_context, _edited) {}

  /**
   * @param {number} _i
   * @returns {boolean | number} whether a cell is painted
   */
  marked(_i) {
    return false;
  }

  /**
   * @param {number} _row
   * @param {number} _col
   * @returns {string} what is said of a cell
   */
  words(_row, _col) {
    return "";
  }

  /** Hears that the edit is written. */
  changed() {}

  /** Hears that other rows are looked at. */
  seen() {}

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {string} style
   * @param {number} width
   * @param {(i: number) => boolean | number} which
   */
  outline(context, style, width, which) {
    const { cell } = this.window;
    context.strokeStyle = style;
    context.lineWidth = width;
    this.each((i, x, y) => which(i) && context.strokeRect(x + 0.5, y + 0.5, cell - 1, cell - 1));
  }

  /**
   * Calls act(i, x, y) for every cell of the view.
   * @param {(i: number, x: number, y: number) => unknown} act
   */
  each(act) {
    const { cell } = this.window;
    for (let r = 0; r < this.view.rows; r++)
      for (let c = 0; c < this.view.cols; c++) act(this.at(r, c), c * cell, r * cell);
  }
}

// A matrix to paint on by click, drag or keyboard, its rows and columns by their names. What painting does a subclass says.
import { paint } from "../components/cells.js";
import { make, range } from "../core/dom.js";
import { Window } from "./experiment_window.js";
import { colour } from "../core/palette.js";

const LINED = 11; // CSS pixels of a cell from which on each has an outline

/** "as in block 1, head 1": whose matrix is shown where the edit is of several. */
export function shownOf(edit) {
  const several = edit.layer === null || edit.heads?.length !== 1;
  return several ? `, shown for block ${(edit.layer ?? 0) + 1} head ${(edit.heads?.[0] ?? 0) + 1}` : "";
}

/** An element that fills once its promise of a Grid, or of a sentence, is there. */
export function soon(promise) {
  const element = make("div", "painter");
  const wait = make("p", "note", "…");
  element.append(wait);
  promise.then(
    (grid) => {
      element.replaceChildren(...grid.elements);
      grid.start();
    },
    (error) => (wait.textContent = error.message),
  );
  return element;
}

/**
 * A subclass has: `stroke(i)` -> act(i) for every cell a drag that starts at i goes over; `line(cells)` for a whole row or
 * column; `write()`, after which the edit says what is painted; `picture()` -> {block, scale, max, hidden} of the view;
 * `marked(i)`; `words(row, col)`; `howTo`; `digits`, whether a key 0 to 9 paints; `mark(context, edited)`, which draws over
 * the cells; `seen()`, which hears that other rows are looked at.
 */
export class Grid {
  constructor(own, { rows, cols, most, edit, cursor }) {
    Object.assign(this, { own, edit, size: { rows, cols } });
    this.cursor = { row: Math.min(cursor ?? rows - 1, rows - 1), col: 0 };
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

  index({ row, col }) {
    return row * this.size.cols + col;
  }

  /** The index of a cell of the view. */
  at(r, c) {
    return (this.view.row + r) * this.size.cols + this.view.col + c;
  }

  row(r) {
    return range(r * this.size.cols, (r + 1) * this.size.cols);
  }

  column(c) {
    return range(0, this.size.rows).map((r) => r * this.size.cols + c);
  }

  /** "“the”", with its number where not all are seen. */
  token(pieces, i) {
    return `“${pieces[i]}”${this.window.number(i)}`;
  }

  /** What the view shows of a function of a cell's row and column, as a block. */
  block(value) {
    const { row, col, rows, cols } = this.view;
    const data = new Float32Array(rows * cols);
    for (let r = 0, i = 0; r < rows; r++) for (let c = 0; c < cols; c++, i++) data[i] = value(row + r, col + c);
    return { data, offset: 0, stride: cols, rows, cols };
  }

  /** Paints, writes the edit and shows it. */
  done(act) {
    act();
    this.write();
    this.draw();
    this.tell();
  }

  listen() {
    let act = null; // what the drag does to a cell
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
      if (act) this.write();
      act = null;
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      this.canvas.setPointerCapture(event.pointerId);
      act = null;
      brush(event);
      event.preventDefault();
      this.canvas.focus({ preventScroll: true });
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (event.buttons) return brush(event);
      const found = this.window.under(event);
      if (found) this.tell(found);
    });
    for (const name of ["pointerup", "pointercancel"]) this.canvas.addEventListener(name, end);
    for (const name of ["focus", "blur"]) this.canvas.addEventListener(name, () => this.draw());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const digit = this.digits && /^\d$/.test(event.key) ? Number(event.key) : null;
    if (!move && event.key !== " " && digit === null) return;
    event.preventDefault();
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
      this.waits = null;
      this.draw();
    });
  }

  draw() {
    const { canvas, view, size } = this;
    const { cell } = this.window;
    paint(canvas, canvas, { ...this.picture(), role: "attention", width: view.cols * cell, pitch: cell, height: cell });
    const context = canvas.getContext("2d");
    const dpr = devicePixelRatio || 1;
    context.setTransform(dpr, 0, 0, dpr, 0, 0);
    const [edited, hairline] = [colour(canvas, "edited"), colour(canvas, "hairline")];
    if (cell >= LINED) this.outline(context, hairline, 1, () => true);
    this.mark?.(context, edited);
    this.outline(context, edited, cell >= LINED ? 1.5 : 1, (i) => this.marked(i));
    if (canvas.matches(":focus-visible")) {
      context.strokeStyle = colour(canvas, "ink");
      context.lineWidth = 2;
      context.strokeRect((this.cursor.col - view.col) * cell + 1, (this.cursor.row - view.row) * cell + 1, cell - 2, cell - 2);
    }
    canvas.setAttribute("aria-label", `${this.called}, ${size.rows} rows by ${size.cols} columns; arrows move, space paints${this.digits ? ", 0 to 9 set tenths" : ""}`);
  }

  outline(context, style, width, which) {
    const { cell } = this.window;
    context.strokeStyle = style;
    context.lineWidth = width;
    this.each((i, x, y) => which(i) && context.strokeRect(x + 0.5, y + 0.5, cell - 1, cell - 1));
  }

  /** Calls act(i, x, y) for every cell of the view. */
  each(act) {
    const { cell } = this.window;
    for (let r = 0; r < this.view.rows; r++) for (let c = 0; c < this.view.cols; c++) act(this.at(r, c), c * cell, r * cell);
  }
}

// The frame of a matrix that is painted on: the names of rows and columns around a canvas, and, where not every cell has room, a
// window that scrolls over it.
import { make, range } from "../core/dom.js";
import { axis } from "../components/legend.js";

const LEAST = 6; // CSS pixels of a cell
const NAMED = 11; // from which on rows and columns bear their tokens
const ROOMY = 14; // of a cell in a window
const NAMES = 92;
const WIDEST = 760;
const TALLEST = 480;
const WHOLE = 256; // rows or columns up to which every cell is shown
const AXIS = 52;

const places = new WeakMap(); // an edit -> where its window stood, for when its form is drawn again

/** {size, own, most, edit, picked(cells of a name), moved()}: `view` is what is seen, in rows and columns. */
export class Window {
  constructor({ size, own, most, edit, picked, moved }) {
    Object.assign(this, { size, own, picked, moved, edit });
    const wide = Math.min(WIDEST, innerWidth - 90) - NAMES;
    this.scrolls = Math.max(size.rows, size.cols) > WHOLE;
    this.cell = this.scrolls ? ROOMY : Math.max(LEAST, Math.min(most, Math.floor(wide / size.cols)));
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
    Object.assign(outside.style, { display: "block", maxHeight: "none", height: `${view.rows * cell + AXIS + 18}px`, width: `${Math.min(NAMES + view.cols * cell + 18, NAMES + size.cols * cell + 18)}px` });
    space.append(frame);
    outside.append(space);
    outside.tabIndex = -1;
    outside.addEventListener("scroll", () => {
      const [row, col] = [Math.round(outside.scrollTop / cell), Math.round(outside.scrollLeft / cell)];
      this.place(row, col);
    });
    return outside;
  }

  /** Shows the window that begins there, as far as the matrix goes. */
  place(row, col) {
    const { view, size } = this;
    const within = (first, seen, count) => Math.max(0, Math.min(first, count - seen));
    [view.row, view.col] = [within(row, view.rows, size.rows), within(col, view.cols, size.cols)];
    places.set(this.edit, [view.row, view.col]);
    this.label();
    this.moved();
  }

  /** Brings a cell into the window; `middle` into its middle. */
  reveal({ row, col }, middle = false) {
    if (!this.scrolls) return;
    const { view, cell, element } = this;
    const first = (at, start, seen) => (middle ? at - Math.floor(seen / 2) : at < start ? at : at >= start + seen ? at - seen + 1 : start);
    const [top, left] = [first(row, view.row, view.rows), first(col, view.col, view.cols)];
    if (top === view.row && left === view.col) return;
    element.scrollTo(left * cell, top * cell);
    this.place(top, left);
  }

  /** Where it stood when this edit was last shown, or around `cell`. Once the element stands in the page. */
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

  /** The name of a row, `high` rows high. */
  named(r, high) {
    const name = make("button", "", this.own.rows[r]);
    name.type = "button";
    name.style.height = `${this.cell * high}px`;
    name.setAttribute("aria-label", `all of row ${r}, ${this.own.rows[r]}`);
    name.title = `${this.own.rows[r]}${this.number(r)}: the whole row`;
    name.addEventListener("click", () => this.picked("row", r));
    return name;
  }

  number(i) {
    return this.scrolls ? ` (${i})` : "";
  }

  /** {row, col} of the matrix under the pointer, null outside. */
  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const { view, cell } = this;
    const [row, col] = [Math.floor((event.clientY - box.top) / cell), Math.floor((event.clientX - box.left) / cell)];
    return row >= 0 && col >= 0 && row < view.rows && col < view.cols ? { row: view.row + row, col: view.col + col } : null;
  }

  /** Fields that bring a row and a column into the window, by their numbers; nothing where all are seen. */
  goTo(act) {
    if (!this.scrolls) return [];
    const line = make("div", "go-to");
    const field = (label, count, which) => {
      const box = make("input");
      Object.assign(box, { type: "number", min: 0, max: count - 1, step: 1, placeholder: `0 to ${count - 1}` });
      box.dataset.name = `go to ${which}`;
      box.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault()); // it is not the form's
      box.addEventListener("input", () => box.value !== "" && box.checkValidity() && act(which, Number(box.value)));
      const whole = make("label", "", `${label} `);
      whole.append(box);
      return whole;
    };
    line.append(field("go to row", this.size.rows, "row"), field("column", this.size.cols, "col"));
    return [line];
  }
}

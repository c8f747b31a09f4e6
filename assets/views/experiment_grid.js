// A matrix to paint on by click, drag or keyboard, its rows and columns by their names. What painting does a subclass says.
import { paint } from "./cells.js";
import { make, range } from "./dom.js";
import { axis } from "./legend.js";
import { colour } from "./palette.js";
import { request } from "./store.js";

const LEAST = 6; // CSS pixels of a cell
const NAMED = 11; // from which on rows and columns bear their tokens
const NAMES = 92;
const WIDEST = 760;

/** What a head may see and how it looks, without the edit that is being changed: {mask, pattern}, each {data, shape}. */
export function ground(edit, own, data) {
  const [layer, head] = [edit.layer ?? 0, edit.heads?.[0] ?? 0];
  const query = { painted: own.cross ? "cross_attn" : "attn", side: own.stack ?? "", layer, head, without: data.number, trace: data.trace };
  return request(query).then(({ arrays }) => arrays);
}

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
      grid.draw();
    },
    (error) => (wait.textContent = error.message),
  );
  return element;
}

/**
 * A subclass has: `stroke(i)` -> act(i) for every cell a drag that starts at i goes over; `line(cells)` for a whole row or
 * column; `write()`, after which the edit says what is painted; `picture()` -> {block, scale, max, hidden}; `marked(i)`;
 * `words(row, col)`; `howTo`; `digits`, whether a key 0 to 9 paints; `mark(context, edited)`, which draws over the cells.
 */
export class Grid {
  constructor(own, { rows, cols, most }) {
    Object.assign(this, { own, size: { rows, cols } });
    this.cursor = { row: rows - 1, col: 0 };
    const wide = Math.min(WIDEST, innerWidth - 90) - NAMES;
    this.cell = Math.max(LEAST, Math.min(most, Math.floor(wide / cols)));
    this.canvas = make("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.said = make("p", "note");
    this.said.setAttribute("aria-live", "polite");
    requestAnimationFrame(() => (this.said.textContent ||= this.howTo));
    this.elements = [this.frame(), this.said];
    this.listen();
  }

  index({ row, col }) {
    return row * this.size.cols + col;
  }

  row(r) {
    return range(r * this.size.cols, (r + 1) * this.size.cols);
  }

  column(c) {
    return range(0, this.size.rows).map((r) => r * this.size.cols + c);
  }

  frame() {
    const { rows, cols } = this.size;
    const frame = make("div", "mask");
    const every = Math.ceil(NAMED / this.cell); // of the names there is room for
    const body = make("div", "mask-body");
    const names = make("div", "mask-rows");
    const shown = range(0, rows).filter((r) => r % every === 0);
    names.append(...shown.map((r) => this.named(r, Math.min(every, rows - r))));
    const below = axis(this.own.keys, this.cell * cols);
    below.labels.forEach((label, c) => {
      label.hidden = c % every !== 0;
      label.title = `${this.own.keys[c]}: the whole column`;
      label.addEventListener("click", () => this.done(() => this.line(this.column(c), "column")));
    });
    below.element.style.width = `${this.cell * cols}px`;
    body.append(this.canvas, below.element);
    frame.append(names, body);
    return frame;
  }

  /** The name of a row, `high` rows high. */
  named(r, high) {
    const name = make("button", "", this.own.rows[r]);
    name.type = "button";
    name.style.height = `${this.cell * high}px`;
    name.setAttribute("aria-label", `all of row ${r}, ${this.own.rows[r]}`);
    name.title = `${this.own.rows[r]}: the whole row`;
    name.addEventListener("click", () => this.done(() => this.line(this.row(r), "row")));
    return name;
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
    const place = (event) => {
      const box = this.canvas.getBoundingClientRect();
      const row = Math.floor((event.clientY - box.top) / this.cell);
      const col = Math.floor((event.clientX - box.left) / this.cell);
      return row >= 0 && col >= 0 && row < this.size.rows && col < this.size.cols ? { row, col } : null;
    };
    const brush = (event) => {
      const found = place(event);
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
      const found = place(event);
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
    const { rows, cols } = this.size;
    const { canvas, cell } = this;
    paint(canvas, canvas, { ...this.picture(), role: "attention", width: cols * cell, pitch: cell, height: cell });
    const context = canvas.getContext("2d");
    const dpr = devicePixelRatio || 1;
    context.setTransform(dpr, 0, 0, dpr, 0, 0);
    const [edited, hairline] = [colour(canvas, "edited"), colour(canvas, "hairline")];
    if (cell >= NAMED) this.outline(context, hairline, 1, () => true);
    this.mark?.(context, edited);
    this.outline(context, edited, cell >= NAMED ? 1.5 : 1, (i) => this.marked(i));
    if (canvas.matches(":focus-visible")) {
      context.strokeStyle = colour(canvas, "ink");
      context.lineWidth = 2;
      context.strokeRect(this.cursor.col * cell + 1, this.cursor.row * cell + 1, cell - 2, cell - 2);
    }
    canvas.setAttribute("aria-label", `${this.called}, ${rows} rows by ${cols} columns; arrows move, space paints${this.digits ? ", 0 to 9 set tenths" : ""}`);
  }

  outline(context, style, width, which) {
    const { rows, cols } = this.size;
    context.strokeStyle = style;
    context.lineWidth = width;
    for (let r = 0, i = 0; r < rows; r++) {
      for (let c = 0; c < cols; c++, i++) if (which(i)) context.strokeRect(c * this.cell + 0.5, r * this.cell + 0.5, this.cell - 1, this.cell - 1);
    }
  }
}

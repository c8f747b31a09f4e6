// A mask to paint on: the real one of a head, cells flipped by click, drag or keyboard, rows and columns by their names.
import { at, paint } from "./cells.js";
import { make, range } from "./dom.js";
import { axis } from "./legend.js";
import { colour } from "./palette.js";
import { request } from "./store.js";

const CELL = { least: 4, most: 19, named: 11 }; // CSS pixels
const NAMES = 92;

/** {edit, own}: the PaintMask that is written to, and the attention it is of. */
export function painter({ edit, own }, data) {
  const element = make("div", "painter");
  const wait = make("p", "note", "…");
  element.append(wait);
  const [layer, head] = [edit.layer ?? 0, edit.heads?.[0] ?? 0];
  const query = { mask: own.cross ? "cross_attn" : "attn", side: own.stack ?? "", layer, head, trace: data.trace };
  request(query).then(
    ({ arrays }) => element.replaceChildren(...new Painting(edit, own, arrays.mask, appliedThere(data, own, layer, head)).elements),
    (error) => (wait.textContent = error.message),
  );
  return element;
}

/** The flips that the drawn run has already, where its edit is the one being changed. */
function appliedThere({ applied }, own, layer, head) {
  const there = applied?.edit === "PaintMask" && applied.stack === own.stack && applied.cross === own.cross;
  const hit = there && (applied.layer === null || applied.layer === layer) && (!applied.heads || applied.heads.includes(head));
  return hit ? flips(applied, own) : new Set();
}

/** An edit's cells, rows and columns as "row,column". */
function flips({ cells, rows, columns }, own) {
  const [down, across] = [own.rows.length, own.keys.length];
  return new Set([
    ...cells.map(([r, c]) => `${r},${c}`),
    ...rows.flatMap((r) => range(0, across).map((c) => `${r},${c}`)),
    ...columns.flatMap((c) => range(0, down).map((r) => `${r},${c}`)),
  ]);
}

class Painting {
  constructor(edit, own, mask, applied) {
    Object.assign(this, { edit, own });
    const [rows, cols] = mask.shape;
    this.base = Uint8Array.from(mask.data);
    this.size = { rows, cols };
    for (const cell of applied) this.base[this.index(cell)] ^= 1;
    this.flipped = flips(edit, own);
    this.cursor = { row: rows - 1, col: 0 };
    const wide = Math.min(760, innerWidth - 90) - NAMES;
    this.cell = Math.max(CELL.least, Math.min(CELL.most, Math.floor(wide / cols)));
    this.canvas = make("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.said = make("p", "note");
    this.said.setAttribute("aria-live", "polite");
    this.listen();
    this.elements = [this.frame(), this.said];
    requestAnimationFrame(() => this.draw());
  }

  index(cell) {
    const [r, c] = cell.split(",").map(Number);
    return r * this.size.cols + c;
  }

  frame() {
    const { rows, cols } = this.size;
    const frame = make("div", "mask");
    const names = make("div", "mask-rows");
    const named = this.cell >= CELL.named;
    names.append(...range(0, rows).map((r) => {
      const name = make("button", "", named ? this.own.rows[r] : "");
      name.type = "button";
      name.style.height = `${this.cell}px`;
      name.setAttribute("aria-label", `all of row ${r + 1}, ${this.own.rows[r]}`);
      name.title = `${this.own.rows[r]}: the whole row`;
      name.tabIndex = named ? 0 : -1;
      name.addEventListener("click", () => this.line(range(0, cols).map((c) => `${r},${c}`)));
      return name;
    }));
    const body = make("div", "mask-body");
    body.append(this.canvas);
    if (named) {
      const below = axis(this.own.keys, this.cell * cols);
      below.labels.forEach((label, c) => {
        label.title = `${this.own.keys[c]}: the whole column`;
        label.addEventListener("click", () => this.line(range(0, rows).map((r) => `${r},${c}`)));
      });
      below.element.style.width = `${this.cell * cols}px`;
      body.append(below.element);
    }
    frame.append(names, body);
    return frame;
  }

  /** A row or a column: forbids what of it may be seen; where that is nothing, gives back what was there. */
  line(cells) {
    const seen = cells.filter((cell) => this.allowed(cell));
    if (seen.length) for (const cell of seen) this.set(cell, false);
    else for (const cell of cells) this.flipped.delete(cell);
    this.write();
  }

  allowed(cell) {
    return Boolean(this.base[this.index(cell)] ^ this.flipped.has(cell));
  }

  set(cell, allowed) {
    if (Boolean(this.base[this.index(cell)]) === allowed) this.flipped.delete(cell);
    else this.flipped.add(cell);
  }

  listen() {
    let to = null; // what a drag paints
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
      const cell = `${found.row},${found.col}`;
      to ??= !this.allowed(cell);
      this.set(cell, to);
      this.write();
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      to = null;
      brush(event);
      event.preventDefault();
      this.canvas.focus();
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (event.buttons) return brush(event);
      const found = place(event);
      if (found) this.tell(found);
    });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!move && event.key !== " ") return;
    event.preventDefault();
    const { row, col } = this.cursor;
    if (move) {
      this.cursor = { row: Math.max(0, Math.min(this.size.rows - 1, row + move[0])), col: Math.max(0, Math.min(this.size.cols - 1, col + move[1])) };
    } else {
      this.set(`${row},${col}`, !this.allowed(`${row},${col}`));
      this.write();
    }
    this.draw();
    this.tell(this.cursor);
  }

  tell({ row, col }) {
    const { rows, keys } = this.own;
    this.said.textContent = `“${rows[row]}” ${this.allowed(`${row},${col}`) ? "may" : "may not"} see “${keys[col]}” · ${this.flipped.size} changed`;
  }

  /** The flips as the shortest edit: whole rows, then whole columns, then cells. */
  write() {
    const { rows, cols } = this.size;
    const left = new Set(this.flipped);
    const whole = (cells) => cells.every((cell) => this.flipped.has(cell)) && (cells.forEach((cell) => left.delete(cell)), true);
    this.edit.rows = range(0, rows).filter((r) => whole(range(0, cols).map((c) => `${r},${c}`)));
    this.edit.columns = range(0, cols).filter((c) => whole(range(0, rows).map((r) => `${r},${c}`)));
    this.edit.cells = [...left].map((cell) => cell.split(",").map(Number)).sort(([a, b], [c, d]) => a - c || b - d);
    this.draw();
    this.tell(this.cursor);
  }

  draw() {
    const { rows, cols } = this.size;
    const shown = this.base.map((is, i) => is ^ this.flipped.has(`${Math.floor(i / cols)},${i % cols}`));
    const block = { data: shown, offset: 0, stride: cols, rows, cols };
    paint(this.canvas, this.canvas, { block, role: "attention", scale: "mask", max: 1, width: cols * this.cell, pitch: this.cell, height: this.cell });
    const context = this.canvas.getContext("2d");
    const dpr = devicePixelRatio || 1;
    context.setTransform(dpr, 0, 0, dpr, 0, 0);
    const [edited, hairline] = [colour(this.canvas, "edited"), colour(this.canvas, "hairline")];
    for (let r = 0; r < rows; r++) {
      for (let c = 0; c < cols; c++) {
        const changed = this.flipped.has(`${r},${c}`);
        const [x, y, side] = [c * this.cell + 0.5, r * this.cell + 0.5, this.cell - 1];
        if (changed && at(block, r, c)) {
          context.fillStyle = edited;
          context.fillRect(x, y, side, side);
        }
        context.strokeStyle = changed ? edited : hairline;
        context.lineWidth = changed ? 1.5 : 1;
        if (changed || this.cell >= CELL.named) context.strokeRect(x, y, side, side);
      }
    }
    if (this.canvas.matches(":focus-visible")) {
      context.strokeStyle = colour(this.canvas, "ink");
      context.lineWidth = 2;
      context.strokeRect(this.cursor.col * this.cell + 1, this.cursor.row * this.cell + 1, this.cell - 2, this.cell - 2);
    }
    this.canvas.setAttribute("aria-label", `mask of ${rows} rows by ${cols} columns, ${this.flipped.size} cells changed; arrows move, space flips`);
  }
}

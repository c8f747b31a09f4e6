// A mask to paint on: that of a head as it stands, or one that is drawn whole.
import { range } from "../core/dom.js";
import { Grid, soon } from "./experiment_grid.js";
import { drawn, ground } from "./experiment_ground.js";
import { looked } from "./experiment_places.js";

const MOST = 19; // CSS pixels of a cell

/** {edit, own}: the PaintMask or DrawMask that is written to, and the attention it is of. */
export function painter({ edit, own }, data) {
  const cursor = looked(data).row;
  if (edit.edit === "PaintMask") return soon(ground(edit, own, data).then((found) => new Painted(edit, own, found, cursor)));
  return soon(start(edit, own, data).then((found) => new Drawn(edit, own, found, cursor)));
}

/** The mask that is drawn already, or the head's own to begin with. */
async function start(edit, own, data) {
  const [rows, cols] = [own.rows.length, own.keys.length];
  if (!edit.allowed) return ground(edit, own, data);
  const [down, across] = [edit.allowed.length, edit.allowed[0]?.length ?? 0];
  if (down !== rows || across !== cols) throw new Error(`This mask was drawn ${down} × ${across}, and the text is ${rows} × ${cols} now; its blocks and heads can be changed here.`);
  return drawn([rows, cols], edit.allowed.flat());
}

class MaskGrid extends Grid {
  constructor(edit, own, { mask, shape: [rows, cols] }, cursor) {
    super(own, { rows, cols, most: MOST, edit, cursor });
    this.called = "mask";
    this.howTo = "click or drag over cells; a name takes its whole row or column";
    this.base = mask;
    this.painted = new Uint8Array(rows * cols);
  }

  /** Painting turns a cell into the reverse of what the first one of the stroke is. */
  stroke(first) {
    const to = !this.allowed(first);
    return (i) => (this.painted[i] = Number(Boolean(this.base[i]) !== to));
  }

  allowed(i) {
    return Boolean(this.base[i] ^ this.painted[i]);
  }

  /** A row or a column: forbids what of it may be seen; where that is nothing, gives back what was there. */
  line(cells) {
    const seen = cells.filter((i) => this.allowed(i));
    for (const i of seen) this.painted[i] = this.base[i];
    if (!seen.length) for (const i of cells) this.painted[i] = 0;
  }

  marked(i) {
    return this.painted[i];
  }

  words(row, col) {
    const { rows, keys } = this.own;
    const changed = this.painted.reduce((sum, one) => sum + one, 0);
    return `${this.token(rows, row)} ${this.allowed(this.index({ row, col })) ? "may" : "may not"} see ${this.token(keys, col)} · ${changed.toLocaleString("en")} changed`;
  }

  picture() {
    return { block: this.block((row, col) => Number(this.allowed(this.index({ row, col })))), scale: "mask", max: 1 };
  }

  /** What may be seen and could not before is filled. */
  mark(context, edited) {
    const { cell } = this.window;
    context.fillStyle = edited;
    this.each((i, x, y) => this.painted[i] && this.allowed(i) && context.fillRect(x + 0.5, y + 0.5, cell - 1, cell - 1));
  }
}

/** Changes to the mask as it stands: they flip what is painted, or allow it, or forbid it, whatever it was. */
class Painted extends MaskGrid {
  constructor(edit, own, found, cursor) {
    super(edit, own, found, cursor);
    const { rows, cols } = this.size;
    const fits = (r, c) => r < rows && c < cols && (this.painted[r * cols + c] = 1);
    for (const [r, c] of edit.cells) fits(r, c);
    for (const r of edit.rows) range(0, cols).forEach((c) => fits(r, c));
    for (const c of edit.columns) range(0, rows).forEach((r) => fits(r, c));
  }

  get flips() {
    return this.edit.to === "flip";
  }

  stroke(first) {
    const to = Number(!this.painted[first]);
    return this.flips ? super.stroke(first) : (i) => (this.painted[i] = to);
  }

  allowed(i) {
    if (this.flips) return super.allowed(i);
    return this.edit.to === "allow" ? Boolean(this.base[i] || this.painted[i]) : Boolean(this.base[i] && !this.painted[i]);
  }

  line(cells) {
    if (this.flips) return super.line(cells);
    const to = Number(!cells.every((i) => this.painted[i]));
    for (const i of cells) this.painted[i] = to;
  }

  /** What is painted as the shortest edit: whole rows, then whole columns, then cells. */
  write() {
    const { rows, cols } = this.size;
    const [across, down] = [new Uint32Array(rows), new Uint32Array(cols)];
    const painted = [];
    this.painted.forEach((one, i) => {
      if (!one) return;
      const cell = [Math.floor(i / cols), i % cols];
      across[cell[0]]++;
      down[cell[1]]++;
      painted.push(cell);
    });
    this.edit.rows = range(0, rows).filter((r) => across[r] === cols);
    this.edit.columns = range(0, cols).filter((c) => down[c] === rows);
    this.edit.cells = painted.filter(([r, c]) => across[r] !== cols && down[c] !== rows);
  }
}

/** A mask that stands in place of the model's own. */
class Drawn extends MaskGrid {
  constructor(edit, own, found, cursor) {
    super(edit, own, found, cursor);
    this.write();
  }

  write() {
    this.edit.allowed = range(0, this.size.rows).map((r) => this.row(r).map((i) => this.allowed(i)));
  }
}

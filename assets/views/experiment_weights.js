// A pattern to paint on: single weights of a head's own, its rows still summing to 1, or a whole one that is drawn.
import { range } from "./dom.js";
import { Grid, ground, soon } from "./experiment_grid.js";
import { percent } from "./format.js";
import { colour } from "./palette.js";

const MOST = 30; // CSS pixels of a cell
const SPOKEN = 24; // from which on a cell bears its weight
const SLACK = 1e-4; // of a row's sum, as engine/edits/patterns.py has it

/** {edit, own}: the form's pattern that is written to, and the attention it is of. */
export function weights({ edit, own }, data) {
  if (edit.to === "painted") return soon(ground(edit, own, data).then((found) => new Painted(edit, own, found)));
  return soon(start(edit, own, data).then((found) => new Drawn(edit, own, found)));
}

/** The pattern that is drawn already, or the head's own to begin with. */
async function start(edit, own, data) {
  const found = await ground(edit, own, data);
  const [rows, cols] = found.pattern.shape;
  if (!edit.drawn) return found;
  const [down, across] = [edit.drawn.length, edit.drawn[0].length];
  if (down !== rows || across !== cols) throw new Error(`This pattern was drawn ${down} × ${across}, and the text is ${rows} × ${cols} now; its blocks and heads can be changed here.`);
  return { ...found, pattern: { data: edit.drawn.flat(), shape: [rows, cols] } };
}

class WeightGrid extends Grid {
  constructor(edit, own, { pattern, mask }) {
    const [rows, cols] = pattern.shape;
    super(own, { rows, cols, most: MOST });
    Object.assign(this, { edit, called: "pattern", digits: true, mask: mask.data });
    this.howTo = "click or drag puts the weight, again gives back what was there; the keys 0 to 9 put tenths; a name takes its row or column";
    this.base = Float32Array.from(pattern.data);
    this.given = new Float32Array(rows * cols).fill(NaN); // NaN: left to the head
    this.shown = this.base.slice();
  }

  put(i, weight) {
    this.given[i] = weight;
    this.settle(Math.floor(i / this.size.cols));
  }

  /** Painting puts the weight of the brush; a stroke that starts where it stands already gives back what was there. */
  stroke(first) {
    const weight = Math.fround(this.edit.brush ?? 0);
    const to = this.given[first] === weight ? NaN : weight;
    return (i) => this.put(i, to);
  }

  /** A row: back to the head's, or even over what it may see. A column: the weight of the brush in every row. */
  line(cells, which) {
    const clean = cells.every((i) => Number.isNaN(this.given[i]));
    const seen = cells.filter((i) => this.mask[i]);
    if (!clean) for (const i of cells) this.put(i, NaN);
    else if (which === "row") for (const i of seen) this.put(i, 1 / seen.length);
    else for (const i of seen) this.put(i, this.edit.brush ?? 0);
  }

  /** A row as the engine makes it: `summing_to_one` of engine/edits/patterns.py. */
  settle(row) {
    const cells = this.row(row);
    const painted = cells.filter((i) => !Number.isNaN(this.given[i]));
    for (const i of cells) this.shown[i] = Number.isNaN(this.given[i]) ? this.base[i] : this.given[i];
    if (this.edit.free || !painted.length) return;
    const taken = painted.reduce((sum, i) => sum + this.given[i], 0);
    const left = cells.reduce((sum, i) => sum + (Number.isNaN(this.given[i]) ? this.base[i] : 0), 0);
    const scale = left > 0 ? Math.max(0, 1 - taken) / left : 0;
    for (const i of cells) if (Number.isNaN(this.given[i])) this.shown[i] *= scale;
    const total = cells.reduce((sum, i) => sum + this.shown[i], 0);
    for (const i of cells) this.shown[i] = total > 0 ? this.shown[i] / total : 0;
  }

  settleAll() {
    range(0, this.size.rows).forEach((row) => this.settle(row));
  }

  marked(i) {
    return !Number.isNaN(this.given[i]);
  }

  words(row, col) {
    const i = this.index({ row, col });
    const was = this.shown[i] === this.base[i] ? "" : `, was ${percent(this.base[i])}`;
    const sum = this.row(row).reduce((total, one) => total + this.shown[one], 0);
    return `“${this.own.rows[row]}” looks at “${this.own.keys[col]}”: ${percent(this.shown[i])}${was} · its row sums to ${Number(sum.toFixed(4))}`;
  }

  picture() {
    const { rows, cols } = this.size;
    const block = { data: this.shown, offset: 0, stride: cols, rows, cols };
    const most = this.shown.reduce((top, x) => Math.max(top, Math.abs(x)), 1);
    const signed = this.shown.some((x) => x < 0);
    return { block, scale: signed ? "signed" : "unit", max: most, hidden: (r, c) => !this.shown[r * cols + c] && !this.mask[r * cols + c] };
  }

  /** Weights as hundredths, in cells that have room for them. */
  mark(context) {
    const { size: { cols }, cell } = this;
    if (cell < SPOKEN) return;
    const [ink, ground] = [colour(this.canvas, "ink"), colour(this.canvas, "ground")];
    context.font = "10.5px ui-monospace, monospace";
    context.textAlign = "center";
    context.textBaseline = "middle";
    this.shown.forEach((x, i) => {
      const hundredths = Math.round(100 * x);
      if (!hundredths) return;
      context.fillStyle = Math.abs(x) > 0.35 ? ground : ink;
      const text = hundredths === 100 ? "1" : `${hundredths < 0 ? "−" : ""}${Math.abs(x) >= 1 ? Math.abs(x).toFixed(1) : `.${String(Math.abs(hundredths)).padStart(2, "0")}`}`;
      context.fillText(text, (i % cols + 0.5) * cell, (Math.floor(i / cols) + 0.5) * cell + 0.5);
    });
  }
}

/** Single weights; the rest of a row is the head's. */
class Painted extends WeightGrid {
  constructor(edit, own, found) {
    super(edit, own, found);
    const { rows, cols } = this.size;
    edit.cells.forEach(([r, c], n) => r < rows && c < cols && (this.given[r * cols + c] = edit.weights[n]));
    this.settleAll();
  }

  write() {
    const { cols } = this.size;
    const painted = range(0, this.given.length).filter((i) => this.marked(i));
    this.edit.cells = painted.map((i) => [Math.floor(i / cols), i % cols]);
    this.edit.weights = painted.map((i) => rounded(this.given[i]));
  }
}

/** A pattern that stands in place of the head's, all of it. */
class Drawn extends WeightGrid {
  constructor(edit, own, found) {
    super(edit, own, found);
    const whole = range(0, this.size.rows).every((r) => Math.abs(this.row(r).reduce((sum, i) => sum + this.base[i], 0) - 1) <= SLACK);
    if (!whole) edit.free = true; // of a row that sees nothing, for one
    this.write();
  }

  write() {
    this.edit.drawn = range(0, this.size.rows).map((r) => this.row(r).map((i) => rounded(this.shown[i])));
  }
}

function rounded(x) {
  return Number(x.toFixed(6));
}

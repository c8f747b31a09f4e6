// A pattern to paint on: single weights of a head's own, its rows still summing to 1, or a whole one that is drawn.
import { range } from "../core/dom.js";
import { Grid, soon } from "./experiment_grid.js";
import { drawn, ground } from "./experiment_ground.js";
import { looked } from "./experiment_places.js";
import { percent } from "../core/format.js";
import { colour } from "../core/palette.js";

const MOST = 30; // CSS pixels of a cell
const SPOKEN = 24; // from which on a cell bears its weight
const WAITING = "…";
const SLACK = 1e-4; // of a row's sum, as engine/edits/patterns.py has it

/** {edit, own}: the form's pattern that is written to, and the attention it is of. */
export function weights({ edit, own }, data) {
  const cursor = looked(data).row;
  if (edit.to === "painted") return soon(ground(edit, own, data).then((found) => new Painted(edit, own, found, cursor)));
  return soon(start(edit, own, data).then((found) => new Drawn(edit, own, found, cursor)));
}

/** The pattern that is drawn already, or the head's own to begin with. */
async function start(edit, own, data) {
  const found = await ground(edit, own, data);
  const [rows, cols] = found.shape;
  if (!edit.drawn) return found;
  const [down, across] = [edit.drawn.length, edit.drawn[0].length];
  if (down !== rows || across !== cols) throw new Error(`This pattern was drawn ${down} × ${across}, and the text is ${rows} × ${cols} now; its blocks and heads can be changed here.`);
  return drawn(found.shape, found.mask, edit.drawn.flat());
}

class WeightGrid extends Grid {
  constructor(edit, own, found, cursor) {
    const [rows, cols] = found.shape;
    super(own, { rows, cols, most: MOST, edit, cursor });
    Object.assign(this, { called: "pattern", digits: true, ground: found, mask: found.mask });
    this.howTo = "click or drag puts the weight, again gives back what was there; the keys 0 to 9 put tenths; a name takes its row or column";
    this.given = new Map(); // row -> column -> weight; the others are left to the head
    this.settled = []; // row -> its weights as the engine makes them
  }

  /** Asks for the rows in view that are still to come. */
  seen() {
    const { row, rows } = this.view;
    this.ground.load(row, row + rows - 1)?.then(
      () => {
        this.soonDrawn();
        if (this.said.textContent === WAITING) this.tell();
      },
      (error) => (this.said.textContent = error.message),
    );
  }

  put(i, weight) {
    const [row, col] = [Math.floor(i / this.size.cols), i % this.size.cols];
    const own = this.given.get(row) ?? new Map();
    if (weight === null) own.delete(col);
    else own.set(col, weight);
    if (own.size) this.given.set(row, own);
    else this.given.delete(row);
    delete this.settled[row];
  }

  /** Painting puts the weight of the brush; a stroke that starts where it stands already gives back what was there. */
  stroke(first) {
    const weight = Math.fround(this.edit.brush ?? 0);
    const to = this.weight(first) === weight ? null : weight;
    return (i) => this.put(i, to);
  }

  /** What is painted on a cell, undefined where it is the head's. */
  weight(i) {
    return this.given.get(Math.floor(i / this.size.cols))?.get(i % this.size.cols);
  }

  marked(i) {
    return this.weight(i) !== undefined;
  }

  /** A row: back to the head's, or even over what it may see. A column: the weight of the brush in every row. */
  line(cells, which) {
    const clean = !cells.some((i) => this.marked(i));
    const seen = cells.filter((i) => this.mask[i]);
    if (!clean) for (const i of cells) this.put(i, null);
    else if (which === "row") for (const i of seen) this.put(i, 1 / seen.length);
    else for (const i of seen) this.put(i, this.edit.brush ?? 0);
  }

  /** A row as the engine makes it: `summing_to_one` of engine/edits/patterns.py. Undefined until it is there. */
  shown(row) {
    const base = this.ground.row(row);
    if (!base || this.settled[row]) return this.settled[row];
    const made = (this.settled[row] = base.slice());
    const painted = this.given.get(row);
    if (!painted) return made;
    for (const [col, weight] of painted) made[col] = weight;
    if (this.edit.free) return made;
    const taken = [...painted.values()].reduce((sum, weight) => sum + weight, 0);
    const left = base.reduce((sum, weight, col) => sum + (painted.has(col) ? 0 : weight), 0);
    const scale = left > 0 ? Math.max(0, 1 - taken) / left : 0;
    made.forEach((weight, col) => painted.has(col) || (made[col] = weight * scale));
    const total = made.reduce((sum, weight) => sum + weight, 0);
    made.forEach((weight, col) => (made[col] = total > 0 ? weight / total : 0));
    return made;
  }

  words(row, col) {
    const shown = this.shown(row);
    if (!shown) return WAITING;
    const before = this.ground.row(row)[col];
    const was = shown[col] === before ? "" : `, was ${percent(before)}`;
    const sum = shown.reduce((total, one) => total + one, 0);
    return `${this.token(this.own.rows, row)} looks at ${this.token(this.own.keys, col)}: ${percent(shown[col])}${was} · its row sums to ${Number(sum.toFixed(4))}`;
  }

  picture() {
    const block = this.block((row, col) => this.shown(row)?.[col] ?? 0);
    const most = block.data.reduce((top, x) => Math.max(top, Math.abs(x)), 1);
    const signed = block.data.some((x) => x < 0);
    return { block, scale: signed ? "signed" : "unit", max: most, hidden: (r, c) => !block.data[r * block.cols + c] && !this.mask[this.at(r, c)] };
  }

  /** Weights as hundredths, in cells that have room for them. */
  mark(context) {
    const { cell } = this.window;
    if (cell < SPOKEN) return;
    const [ink, ground] = [colour(this.canvas, "ink"), colour(this.canvas, "ground")];
    context.font = "10.5px ui-monospace, monospace";
    context.textAlign = "center";
    context.textBaseline = "middle";
    this.each((i, left, top) => {
      const x = this.shown(Math.floor(i / this.size.cols))?.[i % this.size.cols] ?? 0;
      const hundredths = Math.round(100 * x);
      if (!hundredths) return;
      context.fillStyle = Math.abs(x) > 0.35 ? ground : ink;
      const text = hundredths === 100 ? "1" : `${hundredths < 0 ? "−" : ""}${Math.abs(x) >= 1 ? Math.abs(x).toFixed(1) : `.${String(Math.abs(hundredths)).padStart(2, "0")}`}`;
      context.fillText(text, left + 0.5 * cell, top + 0.5 * cell + 0.5);
    });
  }
}

/** Single weights; the rest of a row is the head's. */
class Painted extends WeightGrid {
  constructor(edit, own, found, cursor) {
    super(edit, own, found, cursor);
    const { rows, cols } = this.size;
    edit.cells.forEach(([r, c], n) => r < rows && c < cols && this.put(r * cols + c, edit.weights[n]));
  }

  write() {
    const ordered = (map) => [...map].sort(([a], [b]) => a - b);
    const painted = ordered(this.given).flatMap(([r, own]) => ordered(own).map(([c, weight]) => [r, c, weight]));
    this.edit.cells = painted.map(([r, c]) => [r, c]);
    this.edit.weights = painted.map(([, , weight]) => rounded(weight));
  }
}

/** A pattern that stands in place of the head's, all of it. */
class Drawn extends WeightGrid {
  constructor(edit, own, found, cursor) {
    super(edit, own, found, cursor);
    const sums = range(0, this.size.rows).map((r) => found.row(r).reduce((sum, x) => sum + x, 0));
    if (!sums.every((sum) => Math.abs(sum - 1) <= SLACK)) edit.free = true; // of a row that sees nothing, for one
    this.write();
  }

  write() {
    this.edit.drawn = range(0, this.size.rows).map((r) => Array.from(this.shown(r), rounded));
  }
}

function rounded(x) {
  return Number(x.toFixed(6));
}

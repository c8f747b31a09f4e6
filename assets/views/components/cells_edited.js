// What edits changed of a matrix, within a dashed line in their colour: the line says it to those who do not see the colour.
import { colour } from "../core/palette.js";

const DASH = [4, 2.5]; // CSS pixels
const THICK = { line: 1.6, ground: 3.4 }; // the line lies on a wider one of the page's own ground, and stands out on any cell

/**
 * Draws the border of the cells that are 1 in the block `edited`; the canvas shows `block` as cells_paint.js painted it.
 * @param {CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D} context
 * @param {Element} root
 * @param {Pick<import("./cells.js").Picture, "block" | "width" | "pitch"> & { edited: Block }} shown
 * @param {number} dpr
 */
export function outline(context, root, { block, edited, width, pitch }, dpr) {
  const wide = width / block.cols;
  const path = new Borders(wide, pitch);
  /**
   * @param {number} r
   * @param {number} c
   */
  const on = (r, c) =>
    r >= 0 &&
    c >= 0 &&
    r < edited.rows &&
    c < edited.cols &&
    Boolean(edited.data[edited.offset + r * edited.stride + c]);
  for (let r = 0; r <= edited.rows; r++) path.across(r, edited.cols, (c) => on(r - 1, c) !== on(r, c));
  for (let c = 0; c <= edited.cols; c++) path.down(c, edited.rows, (r) => on(r, c - 1) !== on(r, c));
  context.setTransform(dpr, 0, 0, dpr, 0, 0);
  for (const { role, thick, dash } of [
    { role: "ground", thick: THICK.ground, dash: [] },
    { role: "edited", thick: THICK.line, dash: wide * pitch < 30 ? [] : DASH },
  ]) {
    context.strokeStyle = colour(root, role);
    context.lineWidth = thick;
    context.setLineDash(dash);
    context.beginPath();
    for (const [x, y, toX, toY] of path.lines) {
      context.moveTo(...inside(x, y, width, pitch * block.rows));
      context.lineTo(...inside(toX, toY, width, pitch * block.rows));
    }
    context.stroke();
  }
  context.setLineDash([]);
}

/** Straight pieces of a border, each as long as it goes. */
class Borders {
  /**
   * @param {number} wide
   * @param {number} pitch
   */
  constructor(wide, pitch) {
    this.wide = wide;
    this.pitch = pitch;
    /** @type {[x: number, y: number, toX: number, toY: number][]} */
    this.lines = [];
  }

  /**
   * @param {number} row
   * @param {number} count
   * @param {(col: number) => boolean} is
   */
  across(row, count, is) {
    runs(count, is, (from, to) =>
      this.lines.push([from * this.wide, row * this.pitch, to * this.wide, row * this.pitch]),
    );
  }

  /**
   * @param {number} col
   * @param {number} count
   * @param {(row: number) => boolean} is
   */
  down(col, count, is) {
    runs(count, is, (from, to) =>
      this.lines.push([col * this.wide, from * this.pitch, col * this.wide, to * this.pitch]),
    );
  }
}

/**
 * @param {number} count
 * @param {(i: number) => boolean} is
 * @param {(from: number, to: number) => void} found
 */
function runs(count, is, found) {
  for (let from = 0, to; from < count; from = to + 1) {
    for (to = from; to < count && is(to); to++);
    if (to > from) found(from, to);
  }
}

/**
 * A border at the edge of the canvas is drawn on it and not half beside it.
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {number} tall
 * @returns {[number, number]}
 */
function inside(x, y, width, tall) {
  const half = THICK.line / 2;
  return [Math.max(half, Math.min(width - half, x)), Math.max(half, Math.min(tall - half, y))];
}

// The painting of a block: cells as colours, apart where they are wide enough, hidden ones as dots, edited ones within a line.
import { outline } from "./cells_edited.js";
import { pencil } from "../core/dom.js";
import { css, ramp, STEPS } from "../core/palette.js";

const APART_FROM = 7; // CSS pixels: cells at least this wide are drawn apart, narrower ones side by side
const ROUND = { from: 12, most: 1200 }; // wide and few enough for round corners, which cost a path a cell
const FAINT = 40; // the step of the ramp in which a hidden cell's dot is drawn
/** @typedef {Omit<import("./cells.js").Picture, "label">} Painted */

/** @type {OffscreenCanvas | null} */
let scratch = null; // one pixel a cell, and reused: a canvas costs more than what is drawn on it

/**
 * Paints a block (see mountCells of cells.js for what is given); also used for thumbnails, which nobody points at.
 * @param {HTMLCanvasElement} canvas
 * @param {Element} root
 * @param {Painted} shown
 */
export function paint(canvas, root, shown) {
  const { block, role, scale, width, pitch } = shown;
  const dpr = window.devicePixelRatio || 1;
  const context = emptied(canvas, width, pitch * block.rows);
  const table = ramp(root, role, scale);
  const wide = width / block.cols;
  if (wide >= ROUND.from && block.rows * block.cols <= ROUND.most) drawRound(context, table, shown, wide, dpr);
  else {
    drawTogether(context, table, shown, dpr);
    if (wide >= APART_FROM) drawGaps(context, table, shown, wide, dpr);
  }
  const { edited } = shown;
  if (edited) outline(context, root, { ...shown, edited }, dpr);
}

/**
 * The context of a canvas of this size, CSS pixels, with nothing on it.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} tall
 */
export function emptied(canvas, width, tall) {
  const dpr = window.devicePixelRatio || 1;
  const [across, down] = [Math.max(1, Math.round(width * dpr)), Math.max(1, Math.round(tall * dpr))];
  const context = pencil(canvas);
  if (canvas.width === across && canvas.height === down) {
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, across, down);
  } else Object.assign(canvas, { width: across, height: down });
  Object.assign(canvas.style, { width: `${width}px`, height: `${tall}px` });
  return context;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Uint32Array} table
 * @param {Painted} shown
 * @param {number} wide
 * @param {number} dpr
 */
function drawRound(context, table, { block, scale, max, pitch, height, hidden }, wide, dpr) {
  context.setTransform(dpr, 0, 0, dpr, 0, 0);
  const gap = (pitch - height) / 2;
  const steps = indices(block, scale, max);
  for (let r = 0, i = 0; r < block.rows; r++) {
    for (let c = 0; c < block.cols; c++, i++) {
      const x = c * wide;
      const y = r * pitch + gap;
      context.beginPath();
      if (hidden?.(r, c)) {
        context.fillStyle = css(table[FAINT]);
        context.arc(x + wide / 2, y + height / 2, 1.2, 0, 7);
      } else {
        context.fillStyle = css(table[steps[i]]);
        context.roundRect(x + 1, y, wide - 2, height, 2);
      }
      context.fill();
    }
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Uint32Array} table
 * @param {Painted} shown
 * @param {number} wide
 * @param {number} dpr
 */
function drawGaps(context, table, { block, pitch, hidden }, wide, dpr) {
  context.setTransform(dpr, 0, 0, dpr, 0, 0);
  const between = wide >= ROUND.from ? 2 : 1;
  for (let c = 0; c <= block.cols; c++) context.clearRect(c * wide - between / 2, 0, between, pitch * block.rows);
  if (!hidden) return;
  context.fillStyle = css(table[FAINT]);
  for (let r = 0; r < block.rows; r++) {
    for (let c = 0; c < block.cols; c++)
      if (hidden(r, c)) context.fillRect((c + 0.5) * wide - 1, (r + 0.5) * pitch - 1, 2, 2);
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Uint32Array} table
 * @param {Painted} shown
 * @param {number} dpr
 */
function drawTogether(context, table, { block, scale, max, pitch, height, hidden }, dpr) {
  const { rows, cols } = block;
  const { canvas } = context;
  const image = new ImageData(cols, rows);
  const pixels = new Uint32Array(image.data.buffer);
  const steps = indices(block, scale, max);
  for (let i = 0; i < pixels.length; i++) pixels[i] = table[steps[i]];
  if (hidden) for (let r = 0, i = 0; r < rows; r++) for (let c = 0; c < cols; c++, i++) if (hidden(r, c)) pixels[i] = 0;
  const source = pixelled(image);
  context.imageSmoothingEnabled = false; // what is drawn is an element, never a mean of several
  context.drawImage(source, 0, 0, cols, rows, 0, 0, canvas.width, canvas.height);
  if (pitch === height) return;
  const gap = ((pitch - height) / 2) * dpr;
  for (let r = 0, above = 0; r <= rows; r++) {
    const top = r < rows ? Math.round(r * pitch * dpr + gap) : canvas.height;
    if (top > above) context.clearRect(0, above, canvas.width, top - above);
    above = top + Math.round(height * dpr);
  }
}

/**
 * The step of the ramp of every cell, row by row: `step` of palette.js, without a call a cell.
 * @param {Block} block
 * @param {Scale} scale
 * @param {number} max
 */
function indices({ data, offset, stride, rows, cols }, scale, max) {
  const signed = scale === "signed";
  const top = STEPS - 1;
  const steps = new Uint8Array(rows * cols);
  for (let r = 0, i = 0; r < rows; r++) {
    const start = offset + r * stride;
    for (let at = start; at < start + cols; at++, i++) {
      const t = signed ? 0.5 + data[at] / (2 * max) : data[at] / max;
      steps[i] = t >= 1 ? top : t > 0 ? Math.round(t * top) : 0;
    }
  }
  return steps;
}

/** @param {ImageData} image */
function pixelled(image) {
  if (!scratch || scratch.width < image.width || scratch.height < image.height) {
    scratch = new OffscreenCanvas(
      Math.max(image.width, scratch?.width ?? 0),
      Math.max(image.height, scratch?.height ?? 0),
    );
  }
  scratch.getContext("2d")?.putImageData(image, 0, 0);
  return scratch;
}

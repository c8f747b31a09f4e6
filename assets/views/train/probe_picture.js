// A picture that is learned from: itself, where the chosen row of the head looks on it, and, pixel by pixel, what each costs.
import { at } from "../components/cells.js";
import { emptied } from "../components/cells_paint.js";
import { make } from "../core/dom.js";
import { evenly } from "./probe_answers.js";
import { right } from "./frames.js";
import { colour, css, curve, ramp } from "../core/palette.js";
import { fraction } from "../core/place.js";

/**
 * @import { Kind } from "./frames.js"
 * @import { HeadMap } from "./probe.js"
 * @import { Frame, Grid } from "./run.js"
 * @import { Page } from "./train.js"
 */

const SIDE = { most: 150, gap: 18 }; // CSS pixels
const FAINT = 0.14; // of the picture that shows through where all attention lies
const TITLES = { plain: "the picture", looks: "where this row looks", cost: "loss at each pixel" };

/**
 * {element, update(frame, kind, shown, row, most, room)}: `shown` of probe.js's `headOf`, `row` that whose attention is drawn.
 * @param {Page} page
 * @param {(row: number) => void} pick
 */
export function picture(page, pick) {
  const element = make("section", "probe-picture");
  const figures = { plain: figure(TITLES.plain), looks: figure(TITLES.looks), cost: figure(TITLES.cost) };
  const note = make("p", "probe-cost");
  element.append(...Object.values(figures).map((one) => one.element), note);
  /** @type {{ grid: Grid, side: number, rows: number } | undefined} */
  let seen;
  figures.looks.canvas.addEventListener("click", (event) => {
    if (!seen) return;
    const { grid } = seen;
    const at = fraction(event, figures.looks.canvas);
    /** @param {number} x */
    const cell = (x) => Math.max(0, Math.min(grid.side - 1, Math.floor(x * grid.side)));
    const row = cell(at.y) * grid.side + cell(at.x) + grid.before;
    if (row < seen.rows) pick(row);
  });
  /**
   * @param {Frame} frame
   * @param {Kind} kind
   * @param {HeadMap} shown
   * @param {number} row
   * @param {number} most
   * @param {number} room
   */
  const update = (frame, kind, shown, row, most, room) => {
    const { probe } = page;
    element.hidden = !probe?.pixels;
    if (!probe?.pixels) return;
    const { pixels, grid } = probe;
    figures.cost.element.hidden = kind !== "pixels";
    const side = Math.floor(Math.min(SIDE.most, (room - 2 * SIDE.gap) / (kind === "pixels" ? 3 : 2)));
    seen = { grid, side, rows: shown.rows.length };
    draw(figures.plain.canvas, pixels, side);
    const context = draw(figures.looks.canvas, pixels, side);
    looks(context, page, grid, shown.block, row, side, kind === "pixels");
    if (kind === "pixels") costs(figures.cost.canvas, page, grid, frame, side, most);
    const before = share(shown.block, row, grid.before);
    note.textContent =
      before > 0.002
        ? `≈ ${(100 * before).toFixed(0)}\u00a0% of this row’s attention goes to ${shown.rows[0].label}, which is no part of the picture`
        : "\u00a0";
    figures.looks.canvas.setAttribute("aria-label", `where row ${shown.rows[row].label} looks on the picture`);
  };
  return { element, update };
}

/**
 * @param {string} title
 * @returns {{ element: HTMLElement, canvas: HTMLCanvasElement }}
 */
function figure(title) {
  const element = make("figure");
  const canvas = make("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", title);
  element.append(canvas, make("figcaption", "", title));
  return { element, canvas };
}

/**
 * The share of a row that goes to the first `end` keys.
 * @param {Block} block
 * @param {number} row
 * @param {number} end
 */
function share(block, row, end) {
  let sum = 0;
  for (let c = 0; c < end; c++) sum += at(block, row, c);
  return sum / 255;
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {number[][]} pixels
 * @param {number} side
 */
function draw(canvas, pixels, side) {
  const context = emptied(canvas, side, side);
  const dpr = window.devicePixelRatio || 1;
  context.setTransform(dpr, 0, 0, dpr, 0, 0);
  const flat = pixels.flat();
  const [low, high] = [Math.min(...flat), Math.max(...flat)];
  const cell = side / pixels.length;
  pixels.forEach((line, y) =>
    line.forEach((value, x) => {
      const grey = Math.round((255 * (value - low)) / (high - low || 1));
      context.fillStyle = `rgb(${grey} ${grey} ${grey})`;
      context.fillRect(x * cell, y * cell, cell + 0.5, cell + 0.5);
    }),
  );
  return context;
}

/**
 * One row of attention over the picture; the row's own place in its colour, and what it predicts.
 * @param {CanvasRenderingContext2D} context
 * @param {Page} page
 * @param {Grid} grid
 * @param {Block} block
 * @param {number} row
 * @param {number} side
 * @param {boolean} predicts
 */
function looks(context, page, grid, block, row, side, predicts) {
  const cell = side / grid.side;
  /**
   * @param {number} i
   * @returns {[x: number, y: number]}
   */
  const place = (i) => [(i % grid.side) * cell, Math.floor(i / grid.side) * cell];
  let most = 1;
  for (let c = grid.before; c < block.cols; c++) most = Math.max(most, at(block, row, c));
  context.fillStyle = colour(page.element, "attention");
  for (let c = grid.before; c < block.cols; c++) {
    context.globalAlpha = curve(at(block, row, c) / most) * (1 - FAINT);
    context.fillRect(...place(c - grid.before), cell, cell);
  }
  context.globalAlpha = 1;
  /**
   * @param {number} i
   * @param {string} role
   */
  const framed = (i, role) => {
    if (i < 0 || i >= grid.side ** 2) return;
    const [x, y] = place(i);
    context.strokeStyle = colour(page.element, role);
    context.lineWidth = 2.5;
    context.strokeRect(x + 1.25, y + 1.25, cell - 2.5, cell - 2.5);
  };
  framed(row - grid.before, "query");
  if (predicts) framed(row - grid.before + 1, "probability");
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Page} page
 * @param {Grid} grid
 * @param {Frame} frame
 * @param {number} side
 * @param {number} most
 */
function costs(canvas, page, grid, frame, side, most) {
  const context = emptied(canvas, side, side);
  const dpr = window.devicePixelRatio || 1;
  context.setTransform(dpr, 0, 0, dpr, 0, 0);
  const table = ramp(page.element, "probability", "unit");
  const cell = side / grid.side;
  for (let i = 0; i < grid.side ** 2; i++) {
    const answer = right(frame, i);
    if (!answer) continue;
    context.fillStyle = css(table[evenly(answer.loss / most)]);
    context.fillRect((i % grid.side) * cell, Math.floor(i / grid.side) * cell, cell + 0.5, cell + 0.5);
  }
}

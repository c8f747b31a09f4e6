// A picture a model reads, cell by cell, and where one row of attention looks on it.
import { make, pencil } from "../core/dom.js";
import { percent } from "../core/format.js";
import { colour, curve } from "../core/palette.js";
import { fraction } from "../core/place.js";

/**
 * @typedef {import("../core/payload.js").NamedArray} Pixels
 * @typedef {{ side: number, offset: number, predicts?: boolean, first?: string, given?: number }} Grid
 * @typedef {{ picture: Pixels, original?: Pixels | null, grid: Grid, weights: Cells, top?: number, query: number, width: number }} Looked
 * @typedef {(event: "hover" | "pick", where: { row: number } | null) => unknown} Emit
 */

const FAINT = 0.16; // of the picture under the attention

/**
 * data = {picture, grid, weights, top?, query, width}: `picture` is an array height width channel in 0..1 (-1: nothing there),
 * `grid` {side, offset, predicts}: its cells in rows of `side`, cell i being row i + offset of the model. `weights` is one row
 * of a pattern, and the colour is full at `top`, or at the largest of them. Emits "hover" {row} | null and "pick" {row}.
 * @param {HTMLElement} root
 * @param {Looked} data
 * @param {Emit} emit
 */
export function mount(root, data, emit) {
  root.classList.add("picture");
  const canvas = make("canvas");
  canvas.setAttribute("role", "img");
  const note = make("p", "picture-note");
  const plain = make("div", "picture-plain");
  root.append(canvas, note, plain);
  let shown = data;
  /** @param {MouseEvent} event */
  const where = (event) => {
    const { grid, weights } = shown;
    const { x, y } = fraction(event, canvas);
    /** @param {number} at */
    const cell = (at) => Math.max(0, Math.min(grid.side - 1, Math.floor(at * grid.side)));
    const row = cell(y) * grid.side + cell(x) + grid.offset;
    return row < weights.length ? { row } : null;
  };
  canvas.addEventListener(
    "pointermove",
    (/** @type {PointerEvent} */ event) => event.pointerType !== "touch" && emit("hover", where(event)),
  );
  canvas.addEventListener("pointerleave", () => emit("hover", null));
  canvas.addEventListener("click", (/** @type {MouseEvent} */ event) => where(event) && emit("pick", where(event)));

  const view = {
    /** @param {Looked} next */
    update(next) {
      shown = next;
      draw(canvas, root, next);
      const { weights, query, grid } = next;
      const best = weights.indexOf(Math.max(...weights));
      canvas.setAttribute("aria-label", `row ${query} looks most at row ${best}: ${percent(weights[best])}`);
      const before = range(weights, grid.offset);
      plain.replaceChildren(...small(root, next));
      note.textContent =
        before > 0.0005
          ? `${percent(before)} of this row’s attention goes to ${grid.first}, which is no part of the picture`
          : "";
    },
    destroy: () => root.replaceChildren(),
  };
  view.update(data);
  return view;
}

/**
 * The picture itself, and where a model completed it the one it was given part of.
 * @param {Element} root
 * @param {Looked} shown
 */
function small(root, { picture, original, grid }) {
  /** @type {[Pixels, string][]} */
  const named = original
    ? [
        [picture, `${grid.given} given, completed`],
        [original, "the original"],
      ]
    : [[picture, "the picture"]];
  return named.map(([pixels, name]) => {
    const figure = make("figure");
    const canvas = make("canvas");
    const dpr = window.devicePixelRatio || 1;
    canvas.width = canvas.height = Math.round(SMALL * dpr);
    canvas.style.width = canvas.style.height = `${SMALL}px`;
    const context = pencil(canvas);
    context.scale(dpr, dpr);
    paintPixels(context, root, pixels, 0, 0, pixels.shape[0], SMALL);
    if (original && pixels === picture) boundary(context, root, grid, SMALL / grid.side);
    figure.append(canvas, make("figcaption", "", name));
    return figure;
  });
}

/**
 * The line between the pixels that were given and those that were drawn.
 * @param {CanvasRenderingContext2D} context
 * @param {Element} root
 * @param {Pick<Grid, "side" | "given">} grid
 * @param {number} cell
 */
export function boundary(context, root, { side, given = 0 }, cell) {
  const [rows, rest] = [Math.floor(given / side), given % side];
  context.strokeStyle = colour(root, "probability");
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(0, (rows + (rest ? 1 : 0)) * cell);
  context.lineTo(rest * cell, (rows + (rest ? 1 : 0)) * cell);
  context.lineTo(rest * cell, rows * cell);
  context.lineTo(side * cell, rows * cell);
  context.stroke();
}

const SMALL = 100; // CSS pixels

/**
 * @param {Cells} weights
 * @param {number} end
 */
function range(weights, end) {
  let total = 0;
  for (let i = 0; i < end; i++) total += weights[i];
  return total;
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Element} root
 * @param {Looked} shown
 */
function draw(canvas, root, { picture, grid, weights, top, query, width }) {
  const dpr = window.devicePixelRatio || 1;
  canvas.width = canvas.height = Math.round(width * dpr);
  canvas.style.width = canvas.style.height = `${width}px`;
  const context = pencil(canvas);
  context.scale(dpr, dpr);
  const hue = colour(root, "attention");
  paintPixels(context, root, picture, 0, 0, picture.shape[0], width);
  const cell = width / grid.side;
  const full = top ?? Math.max(...weights.slice(grid.offset), 1e-9);
  for (let i = grid.offset; i < weights.length; i++) {
    const [x, y] = at(i - grid.offset, grid, cell);
    context.fillStyle = hue;
    context.globalAlpha = curve(weights[i] / full) * (1 - FAINT);
    context.fillRect(x, y, cell, cell);
  }
  context.globalAlpha = 1;
  outline(context, root, grid, cell, query - grid.offset, "query");
  if (grid.predicts) outline(context, root, grid, cell, query - grid.offset + 1, "probability");
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Element} root
 * @param {Grid} grid
 * @param {number} cell
 * @param {number} i
 * @param {string} role
 */
function outline(context, root, grid, cell, i, role) {
  if (i < 0 || i >= grid.side ** 2) return;
  const [x, y] = at(i, grid, cell);
  context.strokeStyle = colour(root, role);
  context.lineWidth = 2.5;
  context.strokeRect(x + 1.25, y + 1.25, cell - 2.5, cell - 2.5);
}

/**
 * @param {number} i
 * @param {Grid} grid
 * @param {number} cell
 * @returns {[number, number]}
 */
function at(i, grid, cell) {
  return [(i % grid.side) * cell, Math.floor(i / grid.side) * cell];
}

/**
 * Pixels of a square part of a picture, from (left, top) on, `size` pixels a side, drawn `width` wide.
 * @param {CanvasRenderingContext2D} context
 * @param {Element} root
 * @param {Pixels} pixels
 * @param {number} left
 * @param {number} top
 * @param {number} size
 * @param {number} width
 */
export function paintPixels(context, root, { data, shape }, left, top, size, width) {
  const [, across, channels] = shape;
  const step = width / size;
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      const i = ((top + y) * across + left + x) * channels;
      if (data[i] < 0) {
        context.fillStyle = colour(root, "hairline");
        context.fillRect(x * step + step * 0.42, y * step + step * 0.42, step * 0.16, step * 0.16);
        continue;
      }
      const [r, g, b] = channels === 3 ? [data[i], data[i + 1], data[i + 2]] : [data[i], data[i], data[i]];
      context.fillStyle = `rgb(${255 * r} ${255 * g} ${255 * b})`;
      context.fillRect(x * step, y * step, step + 0.5, step + 0.5);
    }
  }
}

/**
 * The cell that row `i` of the model stands for, as a small canvas; null for a row that is no part of the picture.
 * @param {Pixels} picture
 * @param {Grid} grid
 * @param {number} i
 */
export function swatch(picture, grid, i) {
  const cell = i - grid.offset;
  if (cell < 0) return null;
  const size = picture.shape[0] / grid.side;
  const canvas = make("canvas", "swatch");
  const dpr = window.devicePixelRatio || 1;
  canvas.width = canvas.height = Math.round(SWATCH * dpr);
  const context = pencil(canvas);
  context.scale(dpr, dpr);
  paintPixels(
    context,
    document.documentElement,
    picture,
    (cell % grid.side) * size,
    Math.floor(cell / grid.side) * size,
    size,
    SWATCH,
  );
  return canvas;
}

const SWATCH = 16; // CSS pixels

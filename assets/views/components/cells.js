// The one painter of numbers as colour, behind vector strips and matrices: rows x cols cells read from a typed array by
// offset and stride, so that a head is looked at without a copy.
//
// block = {data, offset, stride, rows, cols}: the element of row r and column c is data[offset + r * stride + c].
import { paint } from "./cells_paint.js";
import { canvas as unused } from "./cells_spare.js";
import { fraction } from "../core/place.js";

export { extent, largest } from "../core/cells_extent.js";
export { paint } from "./cells_paint.js";

/**
 * @typedef {{ row: number, col: number }} Where
 * @typedef {(...said: [event: "hover", where: Where | null] | [event: "pick", where: Where]) => unknown} Emit
 * @typedef {(row: number, col: number) => boolean} Hidden
 * @typedef {{ block: Block, role: string, scale: Scale, max: number, width: number, pitch: number, height: number, label: string,
 *   hidden?: Hidden, edited?: Block }} Picture
 */

/**
 * Element (r, c) of a block.
 * @param {Block} block
 * @param {number} r
 * @param {number} c
 */
export function at(block, r, c) {
  return block.data[block.offset + r * block.stride + c];
}

/**
 * Mounts a canvas of cells in `root`.
 *
 * data = {block, role, scale: "signed" | "unit" | "mask", max, width, pitch, height, label, hidden?: (r, c) => boolean, edited?}
 * with `pitch` the distance of two rows and `height` that of a cell, in CSS pixels. Hidden cells are drawn as a dot, those of
 * `edited` (a block of 0 and 1) within a dashed line.
 * Emits "hover" {row, col} | null and "pick" {row, col}. `mark({picked: {row, col}, lit, row})` outlines a cell and lights a column
 * and a row.
 * @param {HTMLElement} root
 * @param {Picture} data
 * @param {Emit} emit
 */
export function mountCells(root, data, emit) {
  const canvas = unused(data.width, data.pitch * data.block.rows);
  canvas.setAttribute("role", "img");
  const line = overlay("lit-row");
  const column = overlay("lit-column");
  const cell = overlay("picked-cell");
  root.classList.add("cells");
  root.append(canvas, line, column, cell);
  let shown = data;

  /** @param {PointerEvent | MouseEvent} event */
  const place = (event) => {
    const { rows, cols } = shown.block;
    const { x, y } = fraction(event, canvas);
    return { row: clamp(Math.floor(y * rows), rows), col: clamp(Math.floor(x * cols), cols) };
  };
  /** @type {Where | null} */
  let hovered = null; // a click has whole pixels only, so what is picked is what the hover said
  /** @param {Where | null} where */
  const hover = (where) => emit("hover", (hovered = where));
  Object.assign(canvas, {
    /** @param {PointerEvent} event */
    onpointermove: (event) => event.pointerType !== "touch" && hover(place(event)),
    onpointerleave: () => hover(null),
    /** @param {MouseEvent} event */
    onclick: (event) => emit("pick", hovered ?? place(event)),
  }); // in place of what it did in an earlier picture

  const view = {
    /** @param {Picture} next */
    update(next) {
      shown = next;
      canvas.setAttribute("aria-label", next.label);
      paint(canvas, root, next);
    },
    /** @param {{ picked?: Where | null, lit?: number | null, row?: number | null }} marks */
    mark({ picked = null, lit = null, row = null }) {
      const { block, width, pitch, height } = shown;
      const wide = width / block.cols;
      const gap = (pitch - height) / 2;
      const least = Math.max(wide, 5);
      const { row: r, col: c } = picked ?? { row: 0, col: 0 };
      show(line, row !== null && row < block.rows, 0, (row ?? 0) * pitch, width, pitch);
      show(column, lit !== null && lit < block.cols, (lit ?? 0) * wide, 0, wide, pitch * block.rows);
      show(cell, picked !== null, c * wide - (least - wide) / 2, r * pitch + gap - 1, least, height + 2);
    },
    destroy() {
      root.replaceChildren();
    },
  };
  view.update(data);
  return view;
}

/** @param {string} name */
function overlay(name) {
  const element = document.createElement("div");
  element.className = name;
  element.hidden = true;
  return element;
}

/**
 * @param {HTMLElement} element
 * @param {boolean} visible
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {number} height
 */
function show(element, visible, x, y, width, height) {
  element.hidden = !visible;
  if (!visible) return;
  element.style.transform = `translate(${x}px, ${y}px)`;
  element.style.width = `${width}px`;
  element.style.height = `${height}px`;
}

/**
 * @param {number} i
 * @param {number} size
 */
function clamp(i, size) {
  return Math.max(0, Math.min(size - 1, i));
}

// The one painter of numbers as colour, behind vector strips and matrices: rows x cols cells read from a typed array by
// offset and stride, so that a head is looked at without a copy.
//
// block = {data, offset, stride, rows, cols}: the element of row r and column c is data[offset + r * stride + c].
import { css, ramp, step } from "./palette.js";

const APART_FROM = 7; // CSS pixels: cells at least this wide are drawn apart, narrower ones side by side
const ROUND = { from: 12, most: 1200 }; // wide and few enough for round corners, which cost a path a cell

/** Element (r, c) of a block. */
export function at(block, r, c) {
  return block.data[block.offset + r * block.stride + c];
}

/** Where the ramp of a block ends: the |element| that all but 1 in 100 stay below, so that one outlier fades nothing. */
export function extent(block) {
  const sizes = new Float32Array(block.rows * block.cols);
  let n = 0;
  for (let r = 0; r < block.rows; r++) {
    const start = block.offset + r * block.stride;
    for (let i = start; i < start + block.cols; i++) {
      const size = Math.abs(block.data[i]);
      if (size < Infinity) sizes[n++] = size;
    }
  }
  if (!n) return 1;
  const sorted = sizes.subarray(0, n).sort();
  return sorted[Math.min(n - 1, Math.floor(0.99 * n))] || sorted[n - 1] || 1;
}

/**
 * Mounts a canvas of cells in `root`.
 *
 * data = {block, role, scale: "signed" | "unit" | "mask", max, width, pitch, height, label, hidden?: (r, c) => boolean}
 * with `pitch` the distance of two rows and `height` that of a cell, in CSS pixels. Hidden cells are drawn as a dot.
 * Emits "hover" {row, col} | null and "pick" {row, col}. `mark({picked: {row, col}, lit, row})` outlines a cell and lights a column
 * and a row.
 */
export function mountCells(root, data, emit) {
  const canvas = document.createElement("canvas");
  canvas.setAttribute("role", "img");
  const line = overlay("lit-row");
  const column = overlay("lit-column");
  const cell = overlay("picked-cell");
  root.classList.add("cells");
  root.append(canvas, line, column, cell);
  let shown = data;

  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    const { block, pitch } = shown;
    const row = Math.floor((event.clientY - box.top) / pitch);
    const col = Math.floor(((event.clientX - box.left) / box.width) * block.cols);
    return { row: clamp(row, block.rows), col: clamp(col, block.cols) };
  };
  let hovered = null; // a click has whole pixels only, so what is picked is what the hover said
  const hover = (where) => emit("hover", (hovered = where));
  const listen = {
    pointermove: (event) => event.pointerType !== "touch" && hover(place(event)),
    pointerleave: () => hover(null),
    click: (event) => emit("pick", hovered ?? place(event)),
  };
  for (const [name, heard] of Object.entries(listen)) canvas.addEventListener(name, heard);

  const view = {
    update(next) {
      shown = next;
      canvas.setAttribute("aria-label", next.label);
      paint(canvas, root, next);
    },
    mark({ picked = null, lit = null, row = null }) {
      const { block, width, pitch, height } = shown;
      const wide = width / block.cols;
      const gap = (pitch - height) / 2;
      show(line, row !== null && row < block.rows, 0, row * pitch, width, pitch);
      show(column, lit !== null && lit < block.cols, lit * wide, 0, wide, pitch * block.rows);
      const least = Math.max(wide, 5);
      show(cell, picked, picked?.col * wide - (least - wide) / 2, picked?.row * pitch + gap - 1, least, height + 2);
    },
    destroy() {
      root.replaceChildren();
    },
  };
  view.update(data);
  return view;
}

/** Paints a block; also used for thumbnails, which nobody points at. */
export function paint(canvas, root, { block, role, scale, max, width, pitch, height, hidden }) {
  const dpr = window.devicePixelRatio || 1;
  const tall = pitch * block.rows;
  canvas.width = Math.max(1, Math.round(width * dpr));
  canvas.height = Math.max(1, Math.round(tall * dpr));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${tall}px`;
  const context = canvas.getContext("2d");
  const table = ramp(root, role, scale);
  const wide = width / block.cols;
  if (wide >= ROUND.from && block.rows * block.cols <= ROUND.most) drawRound();
  else {
    drawTogether();
    if (wide >= APART_FROM) drawGaps();
  }

  function drawRound() {
    context.scale(dpr, dpr);
    const gap = (pitch - height) / 2;
    for (let r = 0; r < block.rows; r++) {
      for (let c = 0; c < block.cols; c++) {
        const x = c * wide;
        const y = r * pitch + gap;
        if (hidden?.(r, c)) {
          context.fillStyle = css(table[40]);
          context.beginPath();
          context.arc(x + wide / 2, y + height / 2, 1.2, 0, 7);
        } else {
          context.fillStyle = css(table[step(at(block, r, c), scale, max)]);
          context.beginPath();
          context.roundRect(x + 1, y, wide - 2, height, 2);
        }
        context.fill();
      }
    }
  }

  function drawGaps() {
    context.setTransform(dpr, 0, 0, dpr, 0, 0);
    const between = wide >= ROUND.from ? 2 : 1;
    for (let c = 0; c <= block.cols; c++) context.clearRect(c * wide - between / 2, 0, between, tall);
    if (!hidden) return;
    context.fillStyle = css(table[40]);
    for (let r = 0; r < block.rows; r++) {
      for (let c = 0; c < block.cols; c++) if (hidden(r, c)) context.fillRect((c + 0.5) * wide - 1, (r + 0.5) * pitch - 1, 2, 2);
    }
  }

  function drawTogether() {
    const image = new ImageData(block.cols, block.rows);
    const pixels = new Uint32Array(image.data.buffer);
    for (let r = 0, i = 0; r < block.rows; r++) {
      for (let c = 0; c < block.cols; c++, i++) {
        pixels[i] = hidden?.(r, c) ? 0 : table[step(at(block, r, c), scale, max)];
      }
    }
    const source = new OffscreenCanvas(block.cols, block.rows);
    source.getContext("2d").putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false; // what is drawn is an element, never a mean of several
    if (pitch === height) return context.drawImage(source, 0, 0, canvas.width, canvas.height);
    const gap = ((pitch - height) / 2) * dpr;
    for (let r = 0; r < block.rows; r++) {
      context.drawImage(source, 0, r, block.cols, 1, 0, Math.round(r * pitch * dpr + gap), canvas.width, Math.round(height * dpr));
    }
  }
}

function overlay(name) {
  const element = document.createElement("div");
  element.className = name;
  element.hidden = true;
  return element;
}

function show(element, visible, x, y, width, height) {
  element.hidden = !visible;
  if (!visible) return;
  element.style.transform = `translate(${x}px, ${y}px)`;
  element.style.width = `${width}px`;
  element.style.height = `${height}px`;
}

function clamp(i, size) {
  return Math.max(0, Math.min(size - 1, i));
}

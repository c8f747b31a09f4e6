// Paints what is in view of a long map: the head's overview, over it the tiles that are here, the coarsest first.
import { drawEdited } from "./long_edited.js";
import { at } from "../components/cells.js";
import { ramp, step } from "../core/palette.js";

const APART = 7; // CSS pixels of a weight, from which on weights are drawn apart

export class Painter {
  /** `root` is where the theme's colours are read. */
  constructor(canvas, root) {
    this.canvas = canvas;
    this.root = root;
    this.images = new WeakMap();
  }

  /**
   * view = {rows, cols, width, height: of the whole; top, left, across, down: what is in view; wide, tall: of a weight; overview: {block, max}
   * with `cells` a side, or null; role: whose colour; max: of a tile, where the ramp ends; tiles, which are no finer than a pixel; apart: whether a cell is one weight; cell: {high, wide} weights of one; edition}, in weights and CSS pixels.
   */
  paint(view) {
    const { canvas } = this;
    const { top, left, wide, tall, rows, cols, edition } = view;
    const dpr = window.devicePixelRatio || 1;
    canvas.width = Math.max(1, Math.round(view.width * dpr));
    canvas.height = Math.max(1, Math.round(view.height * dpr));
    Object.assign(canvas.style, { width: `${view.width}px`, height: `${view.height}px` });
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = false; // what is drawn is an element, never a mean of several
    const x = (col) => Math.round((col - left) * wide * dpr);
    const y = (row) => Math.round((row - top) * tall * dpr);
    const put = (image, [first, last], [begin, end], high, breadth) => {
      context.clearRect(x(begin), y(first), x(end) - x(begin), y(last) - y(first));
      if (image) context.drawImage(image, x(begin), y(first), x(begin + image.width * breadth) - x(begin), y(first + image.height * high) - y(first));
    };
    this.role = view.role;
    if (view.overview) put(this.image(view.overview.block, view.overview.max), [0, rows], [0, cols], Math.ceil(rows / view.cells), Math.ceil(cols / view.cells));
    for (const one of view.tiles) put(this.tileImage(one, edition, view.max), one.rows, one.columns, one.high, one.wide);
    if (view.apart) gaps(context, view, { x, y, dpr });
    drawEdited(context, this.root, view);
  }

  tileImage(one, edition, max) {
    if (!one.weight) return null;
    const kept = this.images.get(one);
    if (kept?.edition === edition) return kept.image;
    const image = this.image({ data: one.weight, offset: 0, stride: one.across, rows: one.weight.length / one.across, cols: one.across }, max);
    this.images.set(one, { edition, image });
    return image;
  }

  /** A block as a picture, one pixel a cell; what is exactly zero stays empty. */
  image(block, max) {
    const table = ramp(this.root, this.role, "unit");
    const image = new ImageData(block.cols, block.rows);
    const pixels = new Uint32Array(image.data.buffer);
    for (let r = 0, i = 0; r < block.rows; r++) {
      for (let c = 0; c < block.cols; c++, i++) {
        const weight = at(block, r, c);
        if (weight > 0) pixels[i] = table[step(weight, "unit", max)];
      }
    }
    const canvas = new OffscreenCanvas(block.cols, block.rows);
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
  }
}

function gaps(context, { top, left, across, down, wide, tall }, { x, y, dpr }) {
  const { width, height } = context.canvas;
  const line = Math.max(1, Math.round(dpr));
  if (wide >= APART) for (let col = Math.ceil(left); col <= left + across; col++) context.clearRect(x(col) - Math.floor(line / 2), 0, line, height);
  if (tall >= APART) for (let row = Math.ceil(top); row <= top + down; row++) context.clearRect(0, y(row) - Math.floor(line / 2), width, line);
}

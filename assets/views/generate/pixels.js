// A picture that is drawn pixel by pixel: what was given, what was written, and which pixel is looked at.
import { make } from "../core/dom.js";
import { percent } from "../core/format.js";

const LARGEST = 340; // CSS pixels a side

export function mount(root, page, look) {
  return new Pixels(root, page, look);
}

/** The colour of a pixel as CSS. */
export function colourOf(data, id) {
  const { palette } = data.arrays;
  const channels = palette.shape[1];
  const rgb = Array.from({ length: 3 }, (_, c) => Math.round(255 * palette.data[id * channels + (channels === 3 ? c : 0)]));
  return `rgb(${rgb.join(" ")})`;
}

class Pixels {
  constructor(root, page, look) {
    Object.assign(this, { root, page, look });
    this.canvas = make("canvas");
    this.mark = make("span", "pixel-mark");
    this.frame = make("div", "pixel-frame");
    this.frame.append(this.canvas, this.mark);
    this.note = make("p", "sentence");
    root.append(this.frame, this.note);
    this.canvas.addEventListener("click", (event) => {
      const at = this.at(event);
      if (at !== null) look(at);
    });
    this.canvas.addEventListener("pointermove", (event) => this.hover(this.at(event)));
    this.canvas.addEventListener("pointerleave", () => page.tip(null));
  }

  /** The pixels before the first that is written; the start token is none. */
  get given() {
    return this.page.data.prompt.ids.slice(1);
  }

  /** Which of the written pixels the pointer is on. */
  at(event) {
    const { rows, columns } = this.page.data.grid;
    const box = this.canvas.getBoundingClientRect();
    const [col, row] = [Math.floor(((event.clientX - box.left) * columns) / box.width), Math.floor(((event.clientY - box.top) * rows) / box.height)];
    const at = row * columns + col - this.given.length;
    return col >= 0 && col < columns && at >= 0 && at <= this.page.tree.path().length ? at : null;
  }

  hover(at) {
    const node = at === null ? null : this.page.tree.path()[at];
    if (node) this.page.tip(`${this.place(at)}: ${node.piece}`, percent(node.p));
    else this.page.tip(null);
  }

  place(at) {
    const cell = at + this.given.length;
    const { columns } = this.page.data.grid;
    return `row ${Math.floor(cell / columns) + 1}, column ${(cell % columns) + 1}`;
  }

  update() {
    const { page, canvas, given } = this;
    const { data, tree } = page;
    const { rows, columns } = data.grid;
    const side = Math.max(2, Math.floor(Math.min(LARGEST, page.width - 40) / columns));
    const path = tree.path();
    const ids = [...given, ...path.map(({ id }) => id)];
    const scale = window.devicePixelRatio || 1;
    Object.assign(canvas, { width: columns * side * scale, height: rows * side * scale });
    canvas.style.width = `${columns * side}px`;
    canvas.style.height = `${rows * side}px`;
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    ids.slice(0, rows * columns).forEach((id, cell) => {
      context.fillStyle = colourOf(data, id);
      context.fillRect((cell % columns) * side, Math.floor(cell / columns) * side, side, side);
    });
    const at = Math.min(tree.at ?? Math.max(0, path.length - 1), path.length) + given.length;
    this.mark.hidden = at >= rows * columns;
    this.mark.style.cssText = `left: ${(at % columns) * side}px; top: ${Math.floor(at / columns) * side}px; width: ${side}px; height: ${side}px`;
    this.bounds(context, side, columns, given.length);
    this.note.textContent = `${given.length} pixels given, ${path.length} of ${data.left} written; click one for its step.`;
  }

  /** The line between what was given and what is written. */
  bounds(context, side, columns, count) {
    const [row, col] = [Math.floor(count / columns), count % columns];
    if (!count) return;
    context.strokeStyle = getComputedStyle(this.root).getPropertyValue("--probability");
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(0, (row + (col ? 1 : 0)) * side);
    if (col) {
      context.lineTo(col * side, (row + 1) * side);
      context.lineTo(col * side, row * side);
    }
    context.lineTo(columns * side, row * side);
    context.stroke();
  }
}

// The KV cache as a grid: blocks and heads down, positions across; a cell is the key (above) and the value (below) of one head at one position.
import { make } from "../core/dom.js";
import { number } from "../core/format.js";
import { colour, css, ramp, step, STEPS } from "../core/palette.js";

const CELL = { least: 4, most: 26 }; // CSS pixels of width
const ROW = { least: 6, most: 20, all: 420 };
const GAP = 5; // between blocks
const TURNED = 13; // of a cell's width from which tokens stand above it
const AXIS = 58;
const BUNCH = 32; // positions for which the width of a cell stays as it is

/** `look(cell | null)` is told what the pointer or the arrow keys stand on. */
export class CacheGrid {
  constructor(page, look) {
    Object.assign(this, { page, look });
    this.element = make("div", "cache-grid");
    this.names = make("div", "cache-names");
    this.scroller = make("div", "cache-scroll");
    this.axis = make("div", "cache-axis");
    this.canvas = make("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.frame = make("div", "cache-frame");
    this.mark = make("span", "cache-mark");
    this.mark.hidden = true;
    this.frame.append(this.canvas, this.mark);
    this.under = make("div", "cache-under");
    this.scroller.append(this.axis, this.frame, this.under);
    this.element.append(this.names, this.scroller);
    this.canvas.addEventListener("pointermove", (event) => this.point(this.at(event)));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.canvas.addEventListener("blur", () => this.point(null));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  /** `what` = {title, k, v, pieces, heads, layers}; the first `shown` positions are there, those from `fresh` on are new. */
  draw(what, shown, fresh) {
    Object.assign(this, { what, shown, fresh });
    const { layers, heads, pieces } = what;
    const room = this.page.width - (this.page.narrow ? 66 : 84);
    const slots = Math.max(pieces.length, Math.min(this.page.data.context, Math.ceil(pieces.length / BUNCH) * BUNCH));
    this.across = Math.max(CELL.least, Math.min(CELL.most, Math.floor(room / slots)));
    this.down = Math.max(ROW.least, Math.min(ROW.most, Math.floor(ROW.all / (layers * heads))));
    this.paint();
    this.label();
    this.canvas.setAttribute("aria-label", `${what.title}: ${layers} blocks of ${heads} heads, ${shown} positions; arrow keys go from cell to cell`);
    if (this.cell && this.cell.position >= shown) this.point(null);
  }

  top(layer, head) {
    return layer * (this.what.heads * this.down + GAP) + head * this.down;
  }

  paint() {
    const { what, across, down, canvas, shown, fresh } = this;
    const { layers, heads, pieces } = what;
    const [width, height] = [pieces.length * across, this.top(layers - 1, heads - 1) + down];
    const dpr = window.devicePixelRatio || 1;
    Object.assign(canvas, { width: Math.round(width * dpr), height: Math.round(height * dpr) });
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    const context = canvas.getContext("2d");
    context.scale(dpr, dpr);
    const tables = { k: colours(canvas, "key"), v: colours(canvas, "value") };
    this.ends = { k: most(what.k.data), v: most(what.v.data) };
    const between = across > 7 ? 1 : 0;
    const half = (down - (down > 9 ? 2 : 1)) / 2;
    context.strokeStyle = colour(canvas, "hairline");
    for (let layer = 0; layer < layers; layer++) {
      for (let head = 0; head < heads; head++) {
        const y = this.top(layer, head);
        for (let position = 0; position < pieces.length; position++) {
          const x = position * across;
          if (position >= shown) {
            if (across > 7) context.strokeRect(x + 0.5, y + 0.5, across - 2, down - 2);
            continue;
          }
          const i = (layer * heads + head) * pieces.length + position;
          context.fillStyle = tables.k[step(what.k.data[i], "unit", this.ends.k)];
          context.fillRect(x, y, across - between, half);
          context.fillStyle = tables.v[step(what.v.data[i], "unit", this.ends.v)];
          context.fillRect(x, y + half, across - between, half);
        }
      }
    }
    if (fresh < shown) this.frameNew(context, fresh * across, (shown - fresh) * across - between, height);
  }

  frameNew(context, left, width, height) {
    context.strokeStyle = colour(this.canvas, "attention");
    context.lineWidth = 2;
    context.strokeRect(left + 1, 1, Math.max(1, width - 2), height - 2);
    context.lineWidth = 1;
  }

  label() {
    const { layers, heads, pieces } = this.what;
    const turned = this.across >= TURNED;
    this.axis.style.height = turned ? `${AXIS}px` : "0";
    this.axis.style.width = `${pieces.length * this.across + (turned ? 30 : 0)}px`;
    this.axis.replaceChildren(...(turned ? pieces.map((piece, i) => this.over(piece, i)) : []));
    this.names.style.paddingTop = turned ? `${AXIS}px` : "0";
    this.names.replaceChildren(...Array.from({ length: layers }, (_, layer) => {
      const name = make("div", "cache-block", `block ${layer + 1}`);
      Object.assign(name.style, { height: `${heads * this.down}px`, marginBottom: `${GAP}px` });
      return name;
    }));
  }

  /** Rows below the grid, a position as wide as there: [{name, canvas}]. */
  below(strips) {
    this.under.replaceChildren(...strips.map(({ canvas }) => canvas));
    this.names.append(...strips.map(({ name }) => make("div", "cache-strip-name", name)));
  }

  over(piece, i) {
    const label = make("bdi", i >= this.shown ? "is-later" : i >= this.fresh ? "is-new" : "", piece);
    label.style.left = `${(i + 0.5) * this.across}px`;
    return label;
  }

  // --- pointer and keyboard ------------------------------------------------------------------------------------------------

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const position = Math.floor((event.clientX - box.left) / this.across);
    const { layers, heads } = this.what;
    const y = event.clientY - box.top;
    const layer = Math.min(layers - 1, Math.floor(y / (heads * this.down + GAP)));
    const head = Math.floor((y - this.top(layer, 0)) / this.down);
    return position >= 0 && position < this.shown && head >= 0 && head < heads ? { layer, head, position } : null;
  }

  key(event) {
    const [across, down] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [0, 0];
    if (!(across || down)) return;
    event.preventDefault();
    event.stopPropagation();
    const { layers, heads } = this.what;
    const old = this.cell ?? { layer: 0, head: 0, position: this.shown - 1 - across };
    const row = Math.max(0, Math.min(layers * heads - 1, old.layer * heads + old.head + (this.cell ? down : 0)));
    const position = Math.max(0, Math.min(this.shown - 1, old.position + across));
    this.point({ layer: Math.floor(row / heads), head: row % heads, position });
    const x = position * this.across;
    if (x < this.scroller.scrollLeft || x + this.across > this.scroller.scrollLeft + this.scroller.clientWidth) this.scroller.scrollLeft = x - 60;
  }

  point(cell) {
    this.cell = cell;
    this.mark.hidden = !cell;
    if (!cell) return this.look(null);
    const { layer, head, position } = cell;
    Object.assign(this.mark.style, { left: `${position * this.across}px`, top: `${this.top(layer, head)}px`, width: `${this.across}px`, height: `${this.down}px` });
    const i = (layer * this.what.heads + head) * this.what.pieces.length + position;
    this.look({ ...cell, piece: this.what.pieces[position], k: this.what.k.data[i], v: this.what.v.data[i], what: this.what });
  }
}

/** A cell in words. */
export function saidOf({ layer, head, position, piece, k, v, what }) {
  return `block ${layer + 1}, head ${head + 1}, position ${position + 1} “${piece}”: |k| ${number(k)}, |v| ${number(v)}, ${what.cell} bytes`;
}

function colours(canvas, role) {
  const table = ramp(canvas, role, "unit");
  return Array.from({ length: STEPS }, (_, i) => css(table[i]));
}

export function most(data) {
  return data.reduce((high, value) => Math.max(high, value), 0) || 1;
}

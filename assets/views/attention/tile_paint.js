// Paints what is in view of a map in tiles: the head's overview, over it the tiles that are here, the coarsest first; what edits put
// there within a dashed line, as on a map in cells; the names beside it; and the whole head, small.
import { named } from "./axes.js";
import { at, paint } from "../components/cells.js";
import { outline } from "../components/cells_edited.js";
import { make, pencil } from "../core/dom.js";
import { ramp, step } from "../core/palette.js";
import { fraction } from "../core/place.js";

/**
 * @typedef {import("./numbers.js").Tile} Tile
 * @typedef {import("./numbers.js").Span} Span
 * @typedef {import("./tiles.js").Part} Part
 * @typedef {import("./tiles.js").Seen} Seen
 * @typedef {import("./tiles.js").Page} Page
 * @typedef {{ block: Block, max: number, role: string, name: string }} Small the whole head; `name` is of what
 * @typedef {{ high: number, wide: number }} Cell weights that it stands for
 * @typedef {Part & { wide: number, tall: number, rows: number, cols: number, width: number, height: number,
 *   overview: { block: Block, max: number } | null, cells: number, role: string, max: number, tiles: Tile[], apart: boolean,
 *   cell: Cell, edition: number | string }} Picture
 * @typedef {Part & { wide: number, tall: number, lit: { row: number, col: number } }} Named
 */

const APART = 7; // CSS pixels of a weight, from which on weights are drawn apart
const TALL = 46; // CSS pixels of the whole head, small
const WIDE = { least: 28, most: 168 };
const TEXT = 15; // CSS pixels between two names at the left
const NAMED = 13; // the width of a column from which on every one has its name on top
const NUMBER = 44; // between two numbers on top

export class Painter {
  /** @type {string} whose colour tiles have */
  role;

  /**
   * `root` is where the theme's colours are read.
   * @param {HTMLCanvasElement} canvas
   * @param {HTMLElement} root
   */
  constructor(canvas, root) {
    this.canvas = canvas;
    this.root = root;
    /** @type {WeakMap<Tile, { edition: number | string, image: OffscreenCanvas }>} */
    this.images = new WeakMap();
  }

  /**
   * view = {rows, cols, width, height: of the whole; top, left, across, down: what is in view; wide, tall: of a weight; overview: {block, max}
   * with `cells` a side, or null; role: whose colour; max: of a tile, where the ramp ends; tiles, which are no finer than a pixel; apart: whether a cell is one weight; cell: {high, wide} weights of one; edition}, in weights and CSS pixels.
   * @param {Picture} view
   */
  paint(view) {
    const { canvas } = this;
    const { top, left, wide, tall, rows, cols, edition } = view;
    const dpr = window.devicePixelRatio || 1;
    canvas.width = Math.max(1, Math.round(view.width * dpr));
    canvas.height = Math.max(1, Math.round(view.height * dpr));
    Object.assign(canvas.style, { width: `${view.width}px`, height: `${view.height}px` });
    const context = pencil(canvas);
    context.imageSmoothingEnabled = false; // what is drawn is an element, never a mean of several
    /** @param {number} col */
    const x = (col) => Math.round((col - left) * wide * dpr);
    /** @param {number} row */
    const y = (row) => Math.round((row - top) * tall * dpr);
    /**
     * @param {OffscreenCanvas | null} image
     * @param {Span} rows
     * @param {Span} columns
     * @param {number} high
     * @param {number} breadth
     */
    const put = (image, [first, last], [begin, end], high, breadth) => {
      context.clearRect(x(begin), y(first), x(end) - x(begin), y(last) - y(first));
      if (image)
        context.drawImage(
          image,
          x(begin),
          y(first),
          x(begin + image.width * breadth) - x(begin),
          y(first + image.height * high) - y(first),
        );
    };
    this.role = view.role;
    if (view.overview)
      put(
        this.image(view.overview.block, view.overview.max),
        [0, rows],
        [0, cols],
        Math.ceil(rows / view.cells),
        Math.ceil(cols / view.cells),
      );
    for (const one of view.tiles)
      put(this.tileImage(one, edition, view.max), one.rows, one.columns, one.high, one.wide);
    if (view.apart) gaps(context, view, { x, y, dpr });
    drawEdited(context, this.root, view);
  }

  /**
   * @param {Tile} one
   * @param {number | string} edition
   * @param {number} max
   */
  tileImage(one, edition, max) {
    if (!one.weight) return null;
    const kept = this.images.get(one);
    if (kept?.edition === edition) return kept.image;
    const image = this.image(
      { data: one.weight, offset: 0, stride: one.across, rows: one.weight.length / one.across, cols: one.across },
      max,
    );
    this.images.set(one, { edition, image });
    return image;
  }

  /**
   * A block as a picture, one pixel a cell; what is exactly zero stays empty.
   * @param {Block} block
   * @param {number} max
   */
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
    canvas.getContext("2d")?.putImageData(image, 0, 0);
    return canvas;
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Picture} view
 * @param {{ x: (col: number) => number, y: (row: number) => number, dpr: number }} scale
 */
function gaps(context, { top, left, across, down, wide, tall }, { x, y, dpr }) {
  const { width, height } = context.canvas;
  const line = Math.max(1, Math.round(dpr));
  if (wide >= APART)
    for (let col = Math.ceil(left); col <= left + across; col++)
      context.clearRect(x(col) - Math.floor(line / 2), 0, line, height);
  if (tall >= APART)
    for (let row = Math.ceil(top); row <= top + down; row++)
      context.clearRect(0, y(row) - Math.floor(line / 2), width, line);
}

/**
 * Draws on the painted map where `view.tiles` (numbers.js, the coarsest first) hold edited cells; `view` is what
 * the painter is given, `view.cell` {high, wide} the weights that a cell stands for. A finer tile counts before a coarser one.
 * @param {CanvasRenderingContext2D} context
 * @param {HTMLElement} root
 * @param {Picture} view
 */
function drawEdited(context, root, view) {
  if (!view.tiles.some(({ edited }) => edited)) return;
  const { top, left, across, down, wide, tall, rows, cols, cell } = view;
  const dpr = window.devicePixelRatio || 1;
  const [firstRow, countRows] = around(top, down, cell.high, rows);
  const [firstCol, countCols] = around(left, across, cell.wide, cols);
  const edited = {
    data: new Uint8Array(countRows * countCols),
    offset: 0,
    stride: countCols,
    rows: countRows,
    cols: countCols,
  };
  const known = new Uint8Array(edited.data.length);
  for (const tile of [...view.tiles].reverse()) fill(edited, known, tile, { firstRow, firstCol, cell });
  const [breadth, height] = [cell.wide * wide, cell.high * tall];
  const canvas = new OffscreenCanvas(Math.ceil(countCols * breadth * dpr), Math.ceil(countRows * height * dpr));
  const brush = canvas.getContext("2d");
  if (brush) outline(brush, root, { block: edited, edited, width: countCols * breadth, pitch: height }, dpr);
  context.drawImage(
    canvas,
    Math.round((firstCol * cell.wide - left) * wide * dpr),
    Math.round((firstRow * cell.high - top) * tall * dpr),
  );
}

/**
 * First cell and number of cells of an axis: those in view and one beyond, so that a border is where the edited cells end and not the view.
 * @param {number} from
 * @param {number} count
 * @param {number} size
 * @param {number} all
 */
function around(from, count, size, all) {
  const first = Math.max(0, Math.floor(from / size) - 1);
  return [first, Math.min(Math.ceil(all / size), Math.ceil((from + count) / size) + 1) - first];
}

/**
 * @param {Block} grid
 * @param {Uint8Array} known
 * @param {Tile} tile
 * @param {{ firstRow: number, firstCol: number, cell: Cell }} of
 */
function fill(grid, known, tile, { firstRow, firstCol, cell }) {
  const [startRow, endRow] = cellsOf(tile.rows, cell.high, firstRow, grid.rows);
  const [startCol, endCol] = cellsOf(tile.columns, cell.wide, firstCol, grid.cols);
  for (let r = startRow; r < endRow; r++) {
    for (let c = startCol; c < endCol; c++) {
      const at = r * grid.cols + c;
      if (known[at]) continue;
      known[at] = 1;
      if (tile.edited)
        grid.data[at] = holds(tile, tile.edited, (r + firstRow) * cell.high, (c + firstCol) * cell.wide, cell) ? 1 : 0;
    }
  }
}

/**
 * @param {Span} span
 * @param {number} size
 * @param {number} first
 * @param {number} count
 */
function cellsOf([from, to], size, first, count) {
  return [Math.max(0, Math.floor(from / size) - first), Math.min(count, Math.ceil(to / size) - first)];
}

/**
 * Whether any block of a tile that meets the cell at (row, col), in weights, is edited.
 * @param {Tile} tile
 * @param {Uint8Array} edited
 * @param {number} row
 * @param {number} col
 * @param {Cell} cell
 */
function holds({ rows, columns, high, wide, across }, edited, row, col, cell) {
  /**
   * @param {number} at
   * @param {Span} span
   * @param {number} size
   */
  const block = (at, [from, to], size) => Math.floor((Math.max(from, Math.min(to - 1, at)) - from) / size);
  for (let i = block(row, rows, high); i <= block(row + cell.high - 1, rows, high); i++) {
    for (let j = block(col, columns, wide); j <= block(col + cell.wide - 1, columns, wide); j++)
      if (edited[i * across + j]) return true;
  }
  return false;
}

/**
 * The whole head, small, with a frame around what the map shows; a click or a drag goes there.
 * {element, update(window, rest, shown)}; `shown` is the {block, max, role} to draw, with a `name`. Calls `go(row, col)`
 * with what is to be in the middle.
 * @param {Pick<Page, "edition" | "element" | "state">} page
 * @param {(row: number, col: number) => void} go
 */
export function minimap(page, go) {
  const element = make("div", "minimap");
  const canvas = make("canvas");
  const frame = make("div", "minimap-frame");
  element.append(canvas, frame);
  canvas.setAttribute("role", "img");
  let drawn = "";
  let size = { rows: 1, cols: 1, width: TALL };
  /** @param {PointerEvent} event */
  const jump = (event) => {
    const { x, y } = fraction(event, canvas);
    go(y * size.rows - 0.5, x * size.cols - 0.5);
  };
  canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
    canvas.setPointerCapture(event.pointerId);
    jump(event);
  });
  canvas.addEventListener(
    "pointermove",
    (/** @type {PointerEvent} */ event) => canvas.hasPointerCapture(event.pointerId) && jump(event),
  );

  /**
   * @param {Part & { zoom: number }} window
   * @param {{ rows: number, cols: number }} rest
   * @param {Small} shown
   */
  const update = ({ zoom, top, left, across, down }, { rows, cols }, { block, max, role, name }) => {
    const { state } = page;
    const width = Math.round(Math.max(WIDE.least, Math.min(WIDE.most, (TALL * cols) / rows)));
    size = { rows, cols, width };
    const key = [page.edition, state.side, state.focus, state.layer, state.head, name].join();
    if (key !== drawn) {
      const pitch = TALL / block.rows;
      paint(canvas, page.element, {
        block,
        role,
        scale: "unit",
        max,
        width,
        pitch,
        height: pitch,
        hidden: (r, c) => !block.data[block.offset + r * block.stride + c],
      });
      Object.assign(canvas.style, { width: `${width}px`, height: `${TALL}px` });
    }
    drawn = key;
    element.title = "the whole of this head; click to go there";
    canvas.setAttribute("aria-label", "the whole of this head, and what of it is in view");
    frame.hidden = zoom === 1;
    /**
     * @param {number} x
     * @param {number} all
     * @param {number} to
     */
    const part = (x, all, to) => (x / all) * to;
    Object.assign(frame.style, {
      transform: `translate(${part(left, cols, width)}px, ${part(top, rows, TALL)}px)`,
      width: `${Math.max(5, part(across, cols, width))}px`,
      height: `${Math.max(5, part(down, rows, TALL))}px`,
    });
  };
  return { element, update };
}

/**
 * Of a map in tiles: places at round steps while tokens are too narrow to be named, then every token. {left, top, show(window, page)}: `window` is what tiles.js shows, {top, left, down, across, wide, tall, lit: {row, col}}.
 * @param {Pick<Page, "trace" | "keys" | "specialKeys" | "go">} page
 */
export function tileAxes(page) {
  const [left, top] = [make("div", "long-left"), make("div", "long-top")];
  /** @param {"query" | "key"} name */
  const pick = (name) => (/** @type {MouseEvent} */ event) => {
    const target = /** @type {Element} */ (event.target);
    /** @type {HTMLElement | null} */
    const found = target.closest("[data-i]");
    if (found) page.go({ [name]: Number(found.dataset.i) });
  };
  left.addEventListener("click", pick("query"));
  top.addEventListener("click", pick("key"));
  /** @param {Named} window */
  const show = (window) => {
    left.replaceChildren(...rows(window, page.trace));
    top.replaceChildren(...columns(window, page.keys, page.specialKeys));
  };
  return { left, top, show };
}

/**
 * @param {Named} window
 * @param {{ pieces: string[], special: boolean[] }} trace
 */
function rows({ top, down, tall, lit }, { pieces, special }) {
  /** @param {number} i */
  const y = (i) => Math.max(0, Math.min(down * tall - TEXT, (i + 0.5 - top) * tall - TEXT / 2));
  const ticks = marks(top, down, round(TEXT / tall), lit.row);
  /**
   * @param {number} i
   * @param {number} n
   */
  const apart = (i, n) =>
    i === lit.row ||
    ![lit.row, ticks[n - 1]].some((other) => ticks.includes(other) && Math.abs(y(i) - y(other)) < TEXT - 2);
  return ticks.filter(apart).map((i) => {
    const label = make("span", i === lit.row ? "lit" : "");
    label.dataset.i = i;
    label.append(make("span", "place", i), named(pieces[i], special[i]));
    label.style.top = `${y(i)}px`;
    return label;
  });
}

/**
 * @param {Named} window
 * @param {string[]} pieces
 * @param {boolean[]} special
 */
function columns({ left, across, wide, lit }, pieces, special) {
  const each = wide >= NAMED;
  const ticks = marks(left, across, each ? 1 : round(NUMBER / wide), lit.col);
  return ticks.map((i) => {
    const x = (i + 0.5 - left) * wide;
    const label = each || i === lit.col ? named(pieces[i], special[i]) : make("span", "place", i);
    if (i === lit.col) label.classList.add("lit");
    label.dataset.i = i;
    const end = across * wide;
    if (each) label.style.transform = `translateX(${x + 4}px) rotate(-55deg)`;
    else label.style.transform = `translateX(${x}px) translateX(${x < 20 ? 0 : x > end - 24 ? -100 : -50}%)`;
    return label;
  });
}

/**
 * The places that are named: every `step`th that is in view, and the lit one with room around it.
 * @param {number} from
 * @param {number} count
 * @param {number} step
 * @param {number} lit
 */
function marks(from, count, step, lit) {
  const first = Math.ceil((from - 0.5) / step) * step;
  const found = [];
  for (let i = Math.max(0, first); i + 0.5 <= from + count; i += step) found.push(i);
  const seen = lit + 0.5 >= from && lit + 0.5 <= from + count;
  return seen ? [...found.filter((i) => i !== lit && Math.abs(i - lit) >= (step > 1 ? 0.7 * step : 1)), lit] : found;
}

/**
 * The smallest of 1, 2, 5, 10, 20, ... that is at least `least`.
 * @param {number} least
 */
function round(least) {
  let step = 1;
  while (step < least) {
    const lead = step / 10 ** Math.floor(Math.log10(step));
    step *= lead === 2 ? 2.5 : 2;
  }
  return step;
}

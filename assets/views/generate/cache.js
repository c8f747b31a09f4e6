// The KV cache made visible: a grid with blocks and heads down and positions across, where a cell is the key (above) and the value (below) of one head at one
// position, and what is read for each token with the cache and without it. It is ours because columns come while a text is written, thousands of cells on a canvas.
import { make, pencil } from "../core/dom.js";
import { counted, number } from "../core/format.js";
import { colour, css, ramp, step, STEPS } from "../core/palette.js";
import { inside } from "../core/place.js";

/**
 * @typedef {import("./generate.js").Page} Page
 * @typedef {import("../core/payload.js").NamedArray} NamedArray
 * @typedef {import("../core/store.js").Answers["cache"] & { pieces: string[], given: number, layers: number, heads: number, cell: number, queries: number,
 *   width: number, number: number, dtype: string, cross: { heads: number, cell: number } | null, source: string[], cached: number, again: number }} Found
 * @typedef {{ title: string, k: NamedArray, v: NamedArray, pieces: string[], layers: number, heads: number, cell: number }} Grid
 * @typedef {{ layer: number, head: number, position: number }} Place
 * @typedef {Place & { piece: string, k: number, v: number, what: Grid }} Cell
 */

/**
 * @param {HTMLElement} room
 * @param {Page} page
 */
export function mount(room, page) {
  return new Cache(room, page);
}

class Cache {
  /** @type {CacheGrid} */
  grid;
  /** @type {CacheGrid} what a decoder keeps of its source */
  cross;

  /**
   * @param {HTMLElement} room
   * @param {Page} page
   */
  constructor(room, page) {
    this.page = page;
    this.room = room;
    /** @type {Found | null} */
    this.found = null;
    this.build();
  }

  build() {
    const { page } = this;
    const bar = make("div", "cache-bar");
    this.button = make("button", "cache-button go", "Write");
    this.button.type = "button";
    this.button.addEventListener("click", () => this.toggle());
    this.slider = make("input", "cache-slider");
    Object.assign(this.slider, { type: "range", min: 0, step: 1 });
    this.slider.setAttribute("aria-label", "which step");
    this.slider.addEventListener("input", () => this.go(this.slider.valueAsNumber));
    this.where = make("output", "cache-where");
    bar.append(this.button, this.slider, this.where);
    this.sentence = make("p", "sentence");
    this.sums = make("dl", "cache-sums");
    this.grid = new CacheGrid(page, (cell) => this.look(cell));
    this.crossTitle = make("h3", "", "Keys and values of the source, made once and read at every step");
    this.cross = new CacheGrid(page, (cell) => this.look(cell));
    this.said = make("p", "cache-said");
    this.said.setAttribute("aria-live", "polite");
    this.look(null);
    this.legend = make("p", "cache-legend");
    this.read = make("div", "cache-read");
    this.holder = make("div", "cache-holder");
    this.holder.append(
      this.sums,
      this.legend,
      this.grid.element,
      this.read,
      this.crossTitle,
      this.cross.element,
      this.said,
    );
    this.holder.hidden = true;
    this.room.append(bar, this.sentence, this.holder);
  }

  destroy() {
    this.named = null;
    this.room.replaceChildren();
  }

  // --- asking --------------------------------------------------------------------------------------------------------------

  update() {
    const { page } = this;
    const begun = page.written;
    this.button.textContent = page.run.active ? "Stop" : begun.length ? "Continue" : "Write";
    this.button.disabled = !page.run.active && this.isOver;
    const name = JSON.stringify([page.data.trace, begun]);
    if (name === this.named) return this.draw();
    if (this.waiting) return; // the newest is asked for once the answer is there
    this.ask(name, begun);
  }

  /**
   * @param {string} name
   * @param {number[]} begun
   */
  async ask(name, begun) {
    const { page } = this;
    this.waiting = this.named = name;
    const query = { ask: /** @type {const} */ ("cache"), begun };
    try {
      const found = await (page.run.active ? page.inquire(query) : page.request(query));
      if (this.named === name) this.found = /** @type {Found} */ (found);
      this.sentence.textContent = "";
    } catch (error) {
      if (this.named === name) this.found = null;
      this.sentence.textContent = error.message;
    }
    this.waiting = null;
    if (this.named === null) return; // it was closed
    this.holder.hidden = !this.found;
    this.update();
  }

  get isOver() {
    const { tree, data } = this.page;
    const { stop } = tree.node(tree.shown);
    return Boolean(tree.shown ? stop && ["end", "context", "picture"].includes(stop.kind) : data.full);
  }

  toggle() {
    const { run, tree } = this.page;
    if (run.active) return run.stop();
    this.page.go({ cache_step: null }); // the grid grows with what is written
    run.begin(tree.shown);
  }

  // --- drawing -------------------------------------------------------------------------------------------------------------

  /** The cache, where there is one. */
  get here() {
    return /** @type {Found} */ (this.found);
  }

  /** How many tokens behind the prompt have been read. */
  get steps() {
    return this.here.pieces.length - this.here.given;
  }

  get at() {
    const { cache_step: said } = this.page.state;
    return Number.isInteger(said) && said >= 0 && said < this.steps ? said : this.steps;
  }

  get shown() {
    return this.here.given + this.at;
  }

  draw() {
    const { found } = this;
    if (!found || found.pieces.length < found.given) return;
    const { layers, heads, cell, pieces, arrays, cross, source } = found;
    const { at, shown, steps } = this;
    this.slider.max = steps;
    this.slider.value = at;
    this.slider.disabled = !steps;
    this.where.textContent = at
      ? `token ${at} of ${steps} is read`
      : steps
        ? "the prompt is read"
        : "the prompt is read; write, and a column comes with each token";
    this.grid.draw(
      { title: "keys and values", k: arrays.k, v: arrays.v, pieces, layers, heads, cell },
      shown,
      at ? shown - 1 : 0,
    );
    this.crossTitle.hidden = this.cross.element.hidden = !cross;
    if (cross)
      this.cross.draw(
        {
          title: "keys and values of the source",
          k: arrays["cross.k"],
          v: arrays["cross.v"],
          pieces: source,
          layers,
          heads: cross.heads,
          cell: cross.cell,
        },
        source.length,
        source.length,
      );
    this.showSums();
    this.showLegend();
    const { strips, counts } = readAnew(this.page, found, at, this.grid.across);
    this.grid.below(strips);
    this.read.replaceChildren(counts);
  }

  showSums() {
    const { layers, heads, queries, width, number: size, cell, dtype, cross, source } = this.here;
    const { shown } = this;
    const own = layers * heads * shown * cell;
    const rows = [
      [
        "a cell",
        `k and v of one head at one position: 2 × ${width} numbers × ${size} bytes (${dtype}) = ${cell.toLocaleString("en")} bytes`,
      ],
      [
        "a position",
        `${counted(layers, "block")} × ${counted(heads, "head")} × ${cell} = ${(layers * heads * cell).toLocaleString("en")} bytes`,
      ],
      [
        "all",
        `${shown.toLocaleString("en")} ${shown === 1 ? "position" : "positions"} × ${(layers * heads * cell).toLocaleString("en")} = ${own.toLocaleString("en")} bytes`,
      ],
    ];
    if (cross) {
      const other = layers * cross.heads * source.length * cross.cell;
      rows.push([
        "the source",
        `${counted(source.length, "position")} × ${counted(layers, "block")} × ${counted(cross.heads, "head")} × ${cross.cell} = ${other.toLocaleString("en")} bytes; with it ${(own + other).toLocaleString("en")}`,
      ]);
    }
    if (heads < queries)
      rows.push([
        "grouped",
        `${queries} query heads share ${heads} ${heads === 1 ? "head" : "heads"} of keys and values: ${queries / heads} times less memory`,
      ]);
    this.sums.replaceChildren(...rows.flatMap(([name, text]) => [make("dt", "", name), make("dd", "", text)]));
  }

  showLegend() {
    const { ends } = this.grid;
    /**
     * @param {string} role
     * @param {string} text
     */
    const part = (role, text) => {
      const one = make("span", "");
      const bar = make("i", "cache-ramp");
      bar.style.setProperty("--hue", `var(--${role})`);
      one.append(bar, text);
      return one;
    };
    const fresh = make("span", "");
    fresh.append(make("i", "cache-fresh"), "read in this step");
    this.legend.replaceChildren(
      part("key", `|k|, the length of the key: 0 to ${number(ends.k)}`),
      part("value", `|v|, of the value: 0 to ${number(ends.v)}`),
      fresh,
    );
  }

  /** @param {Cell | null} cell */
  look(cell) {
    this.said.textContent = cell
      ? saidOf(cell)
      : "Point at a cell: the lengths of its vectors, as the cache holds them.";
  }

  // --- keyboard, take away -------------------------------------------------------------------------------------------------

  /** @param {number} at */
  go(at) {
    const to = Math.max(0, Math.min(this.steps, at));
    this.page.go({ cache_step: to === this.steps ? null : to });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!this.found || !by) return;
    event.preventDefault();
    this.go(this.at + by);
  }

  looked() {
    const { found } = this;
    if (!found)
      return { where: "", sentence: "", asks: { tab: { ask: "cache", begun: this.page.written } }, file: "cache" };
    const sentence = `${counted(this.shown, "position")}, ${(found.layers * found.heads * found.cell).toLocaleString("en")} bytes each`;
    return {
      where: this.at ? `token ${this.at} of ${this.steps}` : "the prompt",
      sentence,
      asks: { tab: { ask: "cache", begun: this.page.written } },
      file: "cache",
    };
  }

  /**
   * For a picture: the grids as wide as they are, and nothing that can only be clicked.
   * @param {boolean} on
   */
  unfold(on) {
    const { element } = this.page;
    const wide = this.grid.names.offsetWidth + this.grid.frame.offsetWidth;
    element.classList.toggle("pictured", on);
    element.parentElement.style.minWidth = on ? `${wide}px` : "";
    for (const grid of [this.grid, this.cross]) grid.scroller.classList.toggle("unfolded", on);
  }
}

const CELL = { least: 4, most: 26 }; // CSS pixels of width
const ROW = { least: 6, most: 20, all: 420 };
const GAP = 5; // between blocks
const TURNED = 13; // of a cell's width from which tokens stand above it
const AXIS = 58;
const BUNCH = 32; // positions for which the width of a cell stays as it is

/** `look(cell | null)` is told what the pointer or the arrow keys stand on. */
class CacheGrid {
  /** @type {Grid} */
  what;
  /** @type {number} positions that are there */
  shown;
  /** @type {number} the first of them that is new */
  fresh;
  /** @type {Place | null} */
  cell;
  /** @type {number} CSS pixels of a position */
  across;
  /** @type {number} CSS pixels of a head */
  down;
  /** @type {{ k: number, v: number }} the longest of what is there */
  ends;

  /**
   * @param {Page} page
   * @param {(cell: Cell | null) => void} look
   */
  constructor(page, look) {
    this.page = page;
    this.look = look;
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
    this.canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => this.point(this.at(event)));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.canvas.addEventListener("blur", () => this.point(null));
    this.canvas.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.key(event));
  }

  /**
   * `what` = {title, k, v, pieces, heads, layers}; the first `shown` positions are there, those from `fresh` on are new.
   * @param {Grid} what
   * @param {number} shown
   * @param {number} fresh
   */
  draw(what, shown, fresh) {
    this.what = what;
    this.shown = shown;
    this.fresh = fresh;
    const { layers, heads, pieces } = what;
    const room = this.page.across - (this.page.narrow ? 66 : 84);
    const slots = Math.max(pieces.length, Math.min(this.page.data.context, Math.ceil(pieces.length / BUNCH) * BUNCH));
    this.across = Math.max(CELL.least, Math.min(CELL.most, Math.floor(room / slots)));
    this.down = Math.max(ROW.least, Math.min(ROW.most, Math.floor(ROW.all / (layers * heads))));
    this.paint();
    this.label();
    this.canvas.setAttribute(
      "aria-label",
      `${what.title}: ${counted(layers, "block")} of ${counted(heads, "head")}, ${counted(shown, "position")}; arrow keys go from cell to cell`,
    );
    if (this.cell && this.cell.position >= shown) this.point(null);
  }

  /**
   * @param {number} layer
   * @param {number} head
   */
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
    const context = pencil(canvas);
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

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} left
   * @param {number} width
   * @param {number} height
   */
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
    this.names.replaceChildren(
      ...Array.from({ length: layers }, (_, layer) => {
        const name = make("div", "cache-block", `block ${layer + 1}`);
        Object.assign(name.style, { height: `${heads * this.down}px`, marginBottom: `${GAP}px` });
        return name;
      }),
    );
  }

  /**
   * Rows below the grid, a position as wide as there: [{name, canvas}].
   * @param {{ name: string, canvas: HTMLCanvasElement }[]} strips
   */
  below(strips) {
    this.under.replaceChildren(...strips.map(({ canvas }) => canvas));
    this.names.append(...strips.map(({ name }) => make("div", "cache-strip-name", name)));
  }

  /**
   * @param {string} piece
   * @param {number} i
   */
  over(piece, i) {
    const label = make("bdi", i >= this.shown ? "is-later" : i >= this.fresh ? "is-new" : "", piece);
    label.style.left = `${(i + 0.5) * this.across}px`;
    return label;
  }

  // --- pointer and keyboard ------------------------------------------------------------------------------------------------

  /** @param {MouseEvent} event */
  at(event) {
    const { x, y } = inside(event, this.canvas);
    const position = Math.floor(x / this.across);
    const { layers, heads } = this.what;
    const layer = Math.min(layers - 1, Math.floor(y / (heads * this.down + GAP)));
    const head = Math.floor((y - this.top(layer, 0)) / this.down);
    return position >= 0 && position < this.shown && head >= 0 && head < heads ? { layer, head, position } : null;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const [across, down] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[
      event.key
    ] ?? [0, 0];
    if (!(across || down)) return;
    event.preventDefault();
    event.stopPropagation();
    const { layers, heads } = this.what;
    const old = this.cell ?? { layer: 0, head: 0, position: this.shown - 1 - across };
    const row = Math.max(0, Math.min(layers * heads - 1, old.layer * heads + old.head + (this.cell ? down : 0)));
    const position = Math.max(0, Math.min(this.shown - 1, old.position + across));
    this.point({ layer: Math.floor(row / heads), head: row % heads, position });
    const x = position * this.across;
    if (x < this.scroller.scrollLeft || x + this.across > this.scroller.scrollLeft + this.scroller.clientWidth)
      this.scroller.scrollLeft = x - 60;
  }

  /** @param {Place | null} cell */
  point(cell) {
    this.cell = cell;
    this.mark.hidden = !cell;
    if (!cell) return this.look(null);
    const { layer, head, position } = cell;
    Object.assign(this.mark.style, {
      left: `${position * this.across}px`,
      top: `${this.top(layer, head)}px`,
      width: `${this.across}px`,
      height: `${this.down}px`,
    });
    const i = (layer * this.what.heads + head) * this.what.pieces.length + position;
    this.look({
      ...cell,
      piece: this.what.pieces[position],
      k: this.what.k.data[i],
      v: this.what.v.data[i],
      what: this.what,
    });
  }
}

/**
 * A cell in words.
 * @param {Cell} cell
 */
function saidOf({ layer, head, position, piece, k, v, what }) {
  return `block ${layer + 1}, head ${head + 1}, position ${position + 1} “${piece}”: |k| ${number(k)}, |v| ${number(v)}, ${what.cell} bytes`;
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {string} role
 */
function colours(canvas, role) {
  const table = ramp(canvas, role, "unit");
  return Array.from({ length: STEPS }, (_, i) => css(table[i]));
}

/** @param {Float32Array} data */
function most(data) {
  return data.reduce((high, value) => Math.max(high, value), 0) || 1;
}

const HIGH = 15; // CSS pixels

/**
 * {strips, counts} once `at` tokens behind the prompt are read: a strip of positions for each of the two ways, and both in numbers.
 * @param {Page} page
 * @param {Found} found
 * @param {number} at
 * @param {number} across
 */
function readAnew(page, found, at, across) {
  const shown = found.given + at;
  const fresh = at ? 1 : found.given;
  const whole = Array.from({ length: at + 1 }, (_, i) => found.given + i).reduce((sum, count) => sum + count, 0);
  const strips = /** @type {[name: string, from: number][]} */ ([
    ["cache", shown - fresh],
    ["no cache", 0],
  ]).map(([name, from]) => ({ name, canvas: strip(page, shown, from, across) }));
  const counts = make("dl", "cache-sums");
  /**
   * @param {string} name
   * @param {string} text
   */
  const put = (name, text) => counts.append(make("dt", "", name), make("dd", "", text));
  put(
    at ? "read anew for the next token" : "read for the first token",
    at
      ? `${positions(1)} with the cache, ${positions(shown)} without`
      : `the whole prompt at once, ${positions(shown)}, with the cache or without`,
  );
  put("read so far", `${positions(shown)} with the cache, ${positions(whole)} without`);
  if (at === found.pieces.length - found.given)
    put(
      "multiply-adds",
      `${(at ? found.cached : found.again).toLocaleString("en")} with the cache, ${found.again.toLocaleString("en")} without`,
    );
  return { strips, counts };
}

/** @param {number} count */
function positions(count) {
  return `${count.toLocaleString("en")} ${count === 1 ? "position" : "positions"}`;
}

/**
 * @param {Page} page
 * @param {number} count
 * @param {number} from
 * @param {number} across
 */
function strip(page, count, from, across) {
  const canvas = make("canvas");
  const dpr = window.devicePixelRatio || 1;
  Object.assign(canvas, { width: Math.round(count * across * dpr), height: HIGH * dpr });
  Object.assign(canvas.style, { width: `${count * across}px`, height: `${HIGH}px` });
  const context = pencil(canvas);
  context.scale(dpr, dpr);
  const between = across > 7 ? 2 : across > 4 ? 1 : 0;
  for (let i = 0; i < count; i++) {
    context.fillStyle = colour(page.element, i >= from ? "attention" : "hairline");
    context.fillRect(i * across, 0, across - between, HIGH);
  }
  return canvas;
}

// One head of a long text: the whole of it with every peak in sight, down to single weights under the pointer. A cell stands for a block
// of weights and shows the largest; as one comes nearer, smaller blocks come from the server, and the coarser ones stay until they do.
import { editedSign } from "./colours.js";
import { peakAt, span, spans } from "./numbers.js";
import { minimap, Painter, tileAxes } from "./tile_paint.js";
import { switcher, TILED } from "./values.js";
import { make } from "../core/dom.js";
import { number, percent } from "../core/format.js";
import { inside, windowSize } from "../core/place.js";
import { legend } from "../components/legend.js";

/**
 * @typedef {import("./numbers.js").Kind} Kind
 * @typedef {import("./numbers.js").Tile} Tile
 * @typedef {import("./attention.js").TiledPage} TiledPage
 * @typedef {{ top: number, left: number, across: number, down: number }} Part of the whole, in weights
 * @typedef {{ role: string, scale: Scale, width: number, text: string, title?: string }} Ramp what colours mean
 * @typedef {Part & { zoom: number, wide: number, tall: number }} Seen what is in view, and how large a weight is
 * @typedef {"element" | "width" | "narrow" | "edition" | "memoize" | "trace" | "keys" | "specialKeys" | "head" | "state" | "refused" | "tip" | "tell" |
 *   "go" | "remember" | "pattern" | "row" | "movedHere"} Member of a page that a map reads
 * @typedef {Pick<TiledPage, Member> & { numbers: Pick<TiledPage["numbers"], "want" | "of">,
 *   data: Pick<TiledPage["data"], "tile" | "cells" | "across"> }} Page
 */

const ABOVE = 58; // the axis on top
const THIN = 6; // below this height or width a lit row or column is a line
const STEP = 1.5; // of a zoom by key or button
const CELL = 30; // CSS pixels of a weight, at most
const CHROME = 394; // what stands above and below the map in a window
const LEAST_TALL = 340;
const BESIDE = { wide: 98, narrow: 70 }; // the axis at the left
const OVERHANG = 40; // how far its names reach beyond the map
const STRETCH = 6; // how much taller than wide a weight may be, or wider, where there are far more keys than queries, or fewer
const STILL = 4; // CSS pixels that a click may wander
const WHEEL = { mouse: 0.0018, pinch: 0.012, line: 18 }; // the exponent of the zoom by a pixel of the wheel, and the pixels of a line

/**
 * @param {HTMLElement} root
 * @param {TiledPage} page
 */
export function mount(root, page) {
  return new TileMap(root, page);
}

/** @template {Page} [Of=any] */
export class TileMap {
  /** @type {{ high: number, wide: number }} how many weights a cell stands for, down and across */
  wanted;
  /** @type {{ rows: number, cols: number, wide: number, tall: number, width: number, height: number, beside: number }} all of it in view */
  rest;
  /** @type {Tile[] | undefined} those that are drawn */
  tiles;

  /**
   * @param {HTMLElement} root
   * @param {Of} page
   */
  constructor(root, page) {
    this.root = root;
    this.page = page;
    /** @type {import("./numbers.js").Peak | null} */
    this.hover = null;
    /** @type {{ x: number, y: number } | null} */
    this.pointer = null;
    this.grid = make("div", "long-grid");
    this.box = make("div", "long-map");
    this.box.tabIndex = 0;
    this.box.setAttribute("role", "application");
    this.box.setAttribute(
      "aria-label",
      "the map of this head; arrow keys move the chosen cell, plus and minus zoom, 0 shows the whole",
    );
    this.canvas = make("canvas");
    this.canvas.setAttribute("role", "img");
    this.painter = new Painter(this.canvas, page.element);
    this.marks = ["lit-row", "lit-column", "picked-cell"].map((name) => make("div", name));
    this.box.append(this.canvas, ...this.marks);
    this.axes = tileAxes(page);
    const corner = make("div", "long-corner");
    corner.append(make("span", "role-key", "key →"), make("span", "role-query", "query ↓"));
    this.grid.append(corner, this.axes.top, this.axes.left, this.box);
    this.minimap = minimap(page, (row, col) => this.centre(row, col));
    this.legend = make("div", "long-legend");
    this.explain = page.memoize((/** @type {Ramp} */ { text, title = "", ...ramp }, /** @type {boolean} */ narrow) => {
      const { element } = legend(page.element, ramp);
      element.title = title;
      element.querySelector(".legend-text").textContent = text;
      this.legend.replaceChildren(element, ...this.besideRamp(narrow));
    });
    this.sign = editedSign("cells");
    this.switcher = switcher(make("div", "long-shows"), page, TILED);
    root.append(this.switcher.element, this.zoomLine(), this.grid, this.legend);
    this.stop = gestures(this.box, this);
  }

  destroy() {
    this.stop();
    this.root.replaceChildren();
  }

  zoomLine() {
    const line = make("div", "long-line");
    const zoom = make("div", "long-zoom control");
    /**
     * @param {string} text
     * @param {string} label
     * @param {() => void} act
     */
    const button = (text, label, act) => {
      const made = zoom.appendChild(make("button", "", text));
      made.setAttribute("aria-label", label);
      made.title = label;
      made.addEventListener("click", act);
      return made;
    };
    this.out = button("−", "zoom out  −", () => this.zoomBy(1 / STEP));
    this.in = button("+", "zoom in  +", () => this.zoomBy(STEP));
    this.whole = button("whole", "show the whole pattern  0", () => this.look(1, 0, 0));
    this.where = make("div", "long-where");
    line.append(zoom, this.where, this.minimap.element);
    return line;
  }

  // --- what is in view: as much of the whole as the zoom leaves, from the place that the state of the page names -------------

  /** How large a weight is when the whole pattern is in view. */
  measure() {
    const { page } = this;
    const [rows, cols] = [page.trace.length, page.keys.length];
    const beside = page.narrow ? BESIDE.narrow : BESIDE.wide;
    const room = page.width - beside - (page.narrow ? 4 : OVERHANG);
    let [wide, tall] = [
      Math.min(CELL, room / cols),
      Math.min(CELL, Math.max(LEAST_TALL, windowSize().height - CHROME) / rows),
    ];
    const stretch = rows === cols ? 1 : STRETCH;
    [wide, tall] = [Math.min(wide, stretch * tall), Math.min(tall, stretch * wide)];
    this.rest = { rows, cols, wide, tall, width: Math.round(cols * wide), height: Math.round(rows * tall), beside };
  }

  /** @returns {Seen} */
  get window() {
    const { rows, cols, wide: wideAtRest, tall: tallAtRest, width, height } = this.rest;
    const { state } = this.page;
    const zoom = this.fitting(state.zoom);
    const [wide, tall] = [
      Math.min(Math.max(CELL, wideAtRest), zoom * wideAtRest),
      Math.min(Math.max(CELL, tallAtRest), zoom * tallAtRest),
    ];
    const [across, down] = [Math.min(cols, width / wide), Math.min(rows, height / tall)];
    const [row, col] = isPlace(state.from) ? state.from : [0, 0];
    return { zoom, wide, tall, across, down, top: within(row, rows - down), left: within(col, cols - across) };
  }

  /** @param {unknown} zoom */
  fitting(zoom) {
    return typeof zoom === "number" && Number.isFinite(zoom) ? Math.max(1, Math.min(this.most, zoom)) : 1;
  }

  /** The largest zoom: single weights as large as they get. */
  get most() {
    return Math.max(1, CELL / Math.min(this.rest.wide, this.rest.tall));
  }

  /**
   * Looks at what begins at (row, col).
   * @param {number} zoom
   * @param {number} row
   * @param {number} col
   */
  look(zoom, row, col) {
    const { page } = this;
    page.state.zoom = this.fitting(zoom);
    page.state.from = [row, col];
    const { top, left } = this.window;
    const kept = this.fitting(zoom);
    const whole = kept === 1;
    page.state.from = whole ? undefined : [top, left].map((x) => Number(x.toFixed(2)));
    page.state.zoom = whole ? undefined : Number(kept.toFixed(3));
    page.remember();
    this.show();
  }

  /**
   * Zooms by `factor`; what is at (x, y) of the map, in CSS pixels, stays there.
   * @param {number} factor
   */
  zoomBy(factor, x = this.rest.width / 2, y = this.rest.height / 2) {
    const before = this.window;
    const [row, col] = [before.top + y / before.tall, before.left + x / before.wide];
    const zoom = this.fitting(before.zoom * factor);
    this.page.state.zoom = zoom;
    const { wide, tall } = this.window;
    this.look(zoom, row - y / tall, col - x / wide);
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  move(x, y) {
    const { zoom, top, left, wide, tall } = this.window;
    this.look(zoom, top - y / tall, left - x / wide);
  }

  /**
   * @param {number} row
   * @param {number} col
   */
  centre(row, col) {
    const { zoom, across, down } = this.window;
    this.look(zoom, row + 0.5 - down / 2, col + 0.5 - across / 2);
  }

  /**
   * Moves the window, where it has to, so that a cell is in it.
   * @param {number} row
   * @param {number} col
   */
  reveal(row, col) {
    const { zoom, top, left, across, down } = this.window;
    /**
     * @param {number} at
     * @param {number} from
     * @param {number} count
     */
    const near = (at, from, count) => (at < from || at + 1 > from + count ? at + 0.5 - count / 2 : from);
    this.look(zoom, near(row, top, down), near(col, left, across));
  }

  // --- drawing -----------------------------------------------------------------------------------------------------------

  update() {
    const { page } = this;
    this.measure();
    const { width, height, beside } = this.rest;
    for (const [name, size] of [
      ["beside", beside],
      ["above", ABOVE],
      ["overhang", page.narrow ? 4 : OVERHANG],
      ["map", width],
    ])
      this.root.style.setProperty(`--${name}`, `${size}px`);
    this.switcher.show();
    this.axes.left.style.height = `${height}px`;
    Object.assign(this.box.style, { width: `${width}px`, height: `${height}px` });
    this.explain(this.ramp(), page.narrow);
    this.show();
  }

  show() {
    const { page } = this;
    const seen = this.window;
    this.box.style.touchAction = seen.zoom > 1 ? "none" : "pan-y";
    this.wanted = { high: span(seen.down, page.data), wide: span(seen.across, page.data) };
    page.numbers.want(page.head, this.missing(seen), page.state.query, this.kind);
    this.draw(seen);
    if (this.pointer)
      this.point(this.pointer.x, this.pointer.y); // what lies under it is another cell now
    else this.mark();
    this.minimap.update(seen, this.rest, this.small());
    this.out.disabled = this.whole.disabled = seen.zoom === 1;
    this.in.disabled = seen.zoom >= this.most;
    this.say(seen);
  }

  /** @param {Part} seen */
  missing({ top, left, across, down }) {
    const { rows, cols } = this.rest;
    const { high, wide } = this.wanted;
    return spans(top, top + down, high, rows).flatMap((one) =>
      spans(left, left + across, wide, cols).map((other) => ({ rows: one, columns: other })),
    );
  }

  /**
   * "length" or "share" of what weights move, in place of weights.
   * @returns {Kind | undefined}
   */
  get kind() {
    return shownBy(this.page.state);
  }

  /**
   * The overview of what is shown; of what weights move, the weights' own until it is here.
   * @returns {import("./tile_paint.js").Small}
   */
  small() {
    const { page, kind } = this;
    const moved = kind && page.movedHere();
    const { layer, head } = page.state;
    return moved
      ? { ...moved.overview(kind), role: "value", name: kind }
      : { ...page.pattern(layer, head), role: "attention", name: "" };
  }

  /** @param {Seen} seen */
  draw(seen) {
    const { page, kind } = this;
    const moved = kind && page.movedHere();
    const { tile, cells } = page.data;
    const finest = { high: this.wanted.high / tile, wide: this.wanted.wide / tile };
    const { top, left, across, down } = seen;
    /** @param {import("./numbers.js").Window} window */
    const inView = ({ rows, columns }) =>
      rows[1] > top && rows[0] < top + down && columns[1] > left && columns[0] < left + across;
    this.tiles =
      kind && !moved
        ? []
        : page.numbers
            .of(page.head, kind)
            .filter((one) => one.high >= finest.high && one.wide >= finest.wide && inView(one));
    const overview = kind && !moved ? null : this.small();
    const [role, max] = kind ? ["value", kind === "length" && moved ? moved.max : 1] : ["attention", 1];
    this.painter.paint({
      ...this.rest,
      ...seen,
      overview,
      cells,
      role,
      max,
      tiles: this.tiles,
      apart: finest.high * finest.wide === 1,
      cell: finest,
      edition: page.edition,
    });
    this.sign.hidden = !this.tiles.some(({ edited }) => edited);
  }

  mark() {
    const { page, hover } = this;
    const { top, left, wide, tall } = this.window;
    const { width, height } = this.rest;
    const [row, col] = [hover?.row ?? page.state.query, hover?.col ?? page.state.key];
    /**
     * @param {HTMLElement} element
     * @param {number} x
     * @param {number} y
     * @param {number} across
     * @param {number} down
     */
    const lie = (element, x, y, across, down) =>
      Object.assign(element.style, {
        transform: `translate(${x}px, ${y}px)`,
        width: `${across}px`,
        height: `${down}px`,
      });
    /**
     * @param {number} i
     * @param {number} from
     * @param {number} size
     * @param {number} least
     */
    const band = (i, from, size, least) => [(i + 0.5 - from) * size - Math.max(size, least) / 2, Math.max(size, least)];
    const [[y, high], [x, broad]] = [band(row, top, tall, 1), band(col, left, wide, 1)];
    const [line, column, cell] = this.marks;
    lie(line, 0, y, width, high);
    lie(column, x, 0, broad, height);
    line.classList.toggle("thin", tall < THIN);
    column.classList.toggle("thin", wide < THIN);
    const [[cellY, cellHigh], [cellX, cellWide]] = [
      band(page.state.query, top, tall, 7),
      band(page.state.key, left, wide, 7),
    ];
    lie(cell, cellX, cellY, cellWide, cellHigh);
    this.axes.show({ ...this.window, lit: { row, col } });
  }

  /** @param {Part} seen */
  say({ top, left, across, down }) {
    const { page } = this;
    /**
     * @param {number} from
     * @param {number} count
     */
    const ends = (from, count) => `${Math.floor(from + 1e-6)}–${Math.ceil(from + count - 1e-6) - 1}`;
    const { tile, cells } = page.data;
    const coarse = page.refused && !this.tiles?.length; // there is no more of this head than its overview
    const [high, wide] = coarse
      ? [this.rest.rows, this.rest.cols].map((size) => Math.ceil(size / cells))
      : [this.wanted.high, this.wanted.wide].map((width) => width / tile);
    const strong = make("strong", "", `rows ${ends(top, down)} · keys ${ends(left, across)}`);
    this.where.replaceChildren(
      strong,
      make("br"),
      high * wide === 1 ? "a cell is one weight" : `a cell is the largest of ${high} × ${wide} weights`,
    );
    this.canvas.setAttribute(
      "aria-label",
      `block ${page.state.layer + 1} head ${page.state.head + 1}, ${strong.textContent}`,
    );
  }

  /** @returns {Ramp} */
  ramp() {
    const { page, kind } = this;
    const text = legendText(kind, kind && page.movedHere()?.max);
    return { role: kind ? "value" : "attention", scale: "unit", width: 90, text };
  }

  /**
   * @param {boolean} narrow
   * @returns {HTMLElement[]}
   */
  besideRamp(narrow) {
    const keys = make("span", "long-keys control");
    for (const [name, does] of [
      ["wheel", "or "],
      ["+", " "],
      ["−", " zoom · drag moves · "],
      ["0", " whole"],
    ])
      keys.append(make("kbd", "", name), ` ${does}`);
    return narrow ? [this.sign] : [this.sign, keys];
  }

  // --- looking and picking (gestures calls these) --------------------------------------------------------------------------

  /**
   * The block at (x, y) by its largest weight, or the place alone where no number is here yet.
   * @param {number} x
   * @param {number} y
   * @returns {import("./numbers.js").Peak}
   */
  found(x, y) {
    const { top, left, wide, tall } = this.window;
    const row = Math.max(0, Math.min(this.rest.rows - 1, Math.floor(top + y / tall)));
    const col = Math.max(0, Math.min(this.rest.cols - 1, Math.floor(left + x / wide)));
    return peakAt(this.tiles ?? [], row, col) ?? { row, col, weight: null, high: 1, wide: 1 };
  }

  /** @param {number | null} x null where the pointer is over nothing */
  point(x, y = 0) {
    const { page } = this;
    this.pointer = x === null ? null : { x, y };
    this.hover = this.pointer && this.found(this.pointer.x, y);
    this.mark();
    if (!this.hover) return page.tip(null);
    const { row, col, weight, high, wide } = this.hover;
    const of = high * wide > 1 && weight ? `  largest of ${high} × ${wide}` : "";
    page.tip(
      `${page.trace.pieces[row]} ${row} → ${page.keys[col]} ${col}`,
      weight === null ? "" : `${spelled(weight, this.kind)}${of}`,
    );
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  pick(x, y) {
    const { row, col } = this.found(x, y);
    this.page.go({ query: row, key: col });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { page } = this;
    const { across, down } = this.window;
    const act = {
      "+": () => this.zoomBy(STEP),
      "=": () => this.zoomBy(STEP),
      "-": () => this.zoomBy(1 / STEP),
      0: () => this.look(1, 0, 0),
    }[event.key];
    if (act) return (event.preventDefault(), this.zoomOnCell(act, event.key));
    const [dy, dx] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [
      0, 0,
    ];
    if (!dy && !dx) return;
    event.preventDefault();
    /** @param {number} visible */
    const by = (visible) => (event.shiftKey ? Math.max(1, Math.round(visible / 10)) : 1);
    const query = within(page.state.query + dy * by(down), this.rest.rows - 1);
    const key = within(page.state.key + dx * by(across), this.rest.cols - 1);
    page.go({ query, key, jump: true });
    const said = this.said(query, key);
    page.tell(`${page.trace.pieces[query]} ${query} → ${page.keys[key]} ${key}${said && ": "}${said}`);
  }

  /**
   * What a cell of the chosen row holds, for a caption and for the voice; "" while that is on its way.
   * @param {number} row
   * @param {number} col
   */
  said(row, col) {
    const { page, kind } = this;
    const weights = row === page.state.query ? page.row()?.weights : undefined;
    const moved = kind && page.movedHere();
    if (!weights) return "";
    if (!kind) return percent(weights[col]);
    if (!moved) return "";
    const value = spelled(moved.of(weights[col], row, col, kind), kind);
    return kind === "share" ? `${value} of the row’s lengths of p · v W_O` : `length of p · v W_O ${value}`;
  }

  /**
   * By key one zooms on the chosen cell.
   * @param {() => void} act
   * @param {string} key
   */
  zoomOnCell(act, key) {
    const { state } = this.page;
    if (key !== "-" && key !== "0") this.reveal(state.query, state.key);
    const { top, left, wide, tall } = this.window;
    const [x, y] = [(state.key + 0.5 - left) * wide, (state.query + 0.5 - top) * tall];
    const within = x >= 0 && y >= 0 && x <= this.rest.width && y <= this.rest.height;
    if (key === "0" || !within) act();
    else this.zoomBy(key === "-" ? 1 / STEP : STEP, x, y);
  }
}

/**
 * What the map of a page shows: undefined for the pattern, else "length" or "share".
 * @param {import("./state.js").Own} state
 * @returns {Kind | undefined}
 */
function shownBy({ shows, shares }) {
  if (shows !== "weighted") return undefined;
  return shares ? "share" : "length";
}

/**
 * @param {number} value
 * @param {Kind | undefined} kind
 */
function spelled(value, kind) {
  return kind === "length" ? number(value) : percent(value);
}

/**
 * `max` is the largest length, undefined while that is on its way.
 * @param {Kind | undefined} kind
 * @param {number | undefined} max
 */
function legendText(kind, max) {
  if (!kind) return "0 to 1 of the row; empty: exactly 0";
  const length = `0 to ${max === undefined ? "…" : number(max)}, length of p · v W_O`;
  return `${kind === "share" ? "0 to 1 of the row’s lengths" : length}; empty: 0`;
}

/**
 * @param {unknown} from
 * @returns {from is [row: number, col: number]}
 */
function isPlace(from) {
  return Array.isArray(from) && from.length === 2 && from.every(Number.isFinite);
}

/**
 * @param {number} x
 * @param {number} most
 */
function within(x, most) {
  return Math.max(0, Math.min(Math.max(0, most), x));
}

/**
 * Mouse, wheel, fingers and keys on the map. Calls `map.point(x, y)` (null: nothing), `pick(x, y)`, `move(dx, dy)`, `zoomBy(factor, x, y)` and `key(event)`, in CSS pixels of `box`.
 * Returns how to stop.
 * @param {HTMLElement} box
 * @param {Pick<TileMap<Page>, "point" | "pick" | "move" | "zoomBy" | "key" | "window">} map
 */
function gestures(box, map) {
  /** @type {Map<number, { x: number, y: number }>} */
  const down = new Map(); // pointer -> {x, y} where it was last
  let moved = 0;

  /** @param {MouseEvent} event */
  const place = (event) => inside(event, box);
  const spread = () => {
    const [a, b] = [...down.values()];
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, size: Math.hypot(a.x - b.x, a.y - b.y) || 1 };
  };
  const heard = {
    /** @param {PointerEvent} event */
    pointerdown(event) {
      if (event.button) return;
      if (!down.size) moved = 0;
      down.set(event.pointerId, place(event));
      box.setPointerCapture(event.pointerId);
    },
    /** @param {PointerEvent} event */
    pointermove(event) {
      const now = place(event);
      const last = down.get(event.pointerId);
      if (!last) return void (event.pointerType !== "touch" && map.point(now.x, now.y));
      const before = down.size === 2 ? spread() : null;
      moved += Math.hypot(now.x - last.x, now.y - last.y);
      if (moved <= STILL) return;
      down.set(event.pointerId, now);
      map.point(null);
      box.classList.add("dragging");
      if (!before) return map.move(now.x - last.x, now.y - last.y);
      const after = spread();
      map.move(after.x - before.x, after.y - before.y);
      map.zoomBy(after.size / before.size, after.x, after.y);
    },
    /** @param {PointerEvent} event */
    pointerup(event) {
      const clicked = down.delete(event.pointerId) && moved <= STILL && !down.size;
      box.classList.remove("dragging");
      if (!clicked) return;
      const { x, y } = place(event);
      box.focus({ preventScroll: true });
      map.pick(x, y);
    },
    /** @param {PointerEvent} event */
    pointercancel(event) {
      down.delete(event.pointerId);
      box.classList.remove("dragging");
    },
    pointerleave: () => map.point(null),
    /** @param {WheelEvent} event */
    wheel(event) {
      /** @param {number} x */
      const pixels = (x) => x * (event.deltaMode ? WHEEL.line : 1);
      const [x, y] = [pixels(event.deltaX), pixels(event.deltaY)];
      const { zoom } = map.window;
      const pinch = event.ctrlKey;
      if (zoom === 1 && y >= 0 && !pinch) return; // the page scrolls on
      event.preventDefault();
      const at = place(event);
      if (event.shiftKey || Math.abs(x) > Math.abs(y)) return map.move(-(x || y), 0);
      map.zoomBy(Math.exp(-y * (pinch ? WHEEL.pinch : WHEEL.mouse)), at.x, at.y);
      map.point(at.x, at.y);
    },
    /** @param {KeyboardEvent} event */
    keydown: (event) => event.ctrlKey || event.metaKey || event.altKey || map.key(event),
  };
  const listeners = /** @type {[name: string, act: EventListener][]} */ (Object.entries(heard));
  for (const [name, act] of listeners) box.addEventListener(name, act, { passive: false });
  return () => {
    for (const [name, act] of listeners) box.removeEventListener(name, act);
  };
}

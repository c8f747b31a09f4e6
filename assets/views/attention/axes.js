// The two axes of the map: queries at the left, keys on top, as many of their pieces as can be read, and always the lit ones.
import { make, pencil } from "../core/dom.js";
import { memoize } from "../core/observe.js";
import { band } from "../core/turns.js";

/**
 * @typedef {boolean | string} Special whether a token is special, or what else sets it apart
 * @typedef {{ element: HTMLElement, i: number, thin: boolean }} Label
 * @typedef {{ row: number | null, col: number | null }} Place on one axis or both
 * @typedef {{ trace: { pieces: string[], special: Special[], roles: string[] }, keys: string[], specialKeys: Special[],
 *   narrow: boolean, tallest?: number, above?: number, state?: { focus: string },
 *   go(change: { query?: number, key?: number }): unknown, point(where: Place | null): unknown }} Page what they read of it is observed
 */

const LINE = 13; // CSS pixels between two written pieces
const TEXT = 15; // the height of a piece
const WIDEST = { wide: 172, narrow: 84 }; // of the pieces at the left
const TALLEST = { wide: 110, narrow: 78 }; // of the slanted pieces on top, where the page does not say `tallest`
const RISE = 14; // of a slanted piece beyond what its length makes of it
const [SINE, COSINE] = [0.82, 0.57]; // of the angle of a slanted piece
const KEPT = 4096; // widths that are remembered

/**
 * {place, around(page), above(page, wide), show(size), mark(row, col), reveal(row, col, size)} in a box that scrolls.
 * @param {Page} page
 * @param {HTMLElement} scroll
 */
export function axes(page, scroll) {
  const grid = make("div", "map-grid");
  const corner = make("div", "map-corner");
  corner.append(make("span", "role-key", "key →"), make("span", "role-query", "query ↓"));
  const [top, left, place] = [make("div", "map-top"), make("div", "map-left"), make("div")];
  grid.append(corner, top, left, place);
  scroll.append(grid);
  /** @type {{ rows: Label[], cols: Label[] } | null} what stands there */
  let shown = null;
  /**
   * @param {Event} event
   * @param {Label[]} labels
   */
  const pointed = (event, labels) => labels.findIndex(({ element }) => element === event.target);
  for (const [axis, name] of /** @type {[HTMLElement, "rows" | "cols"][]} */ ([
    [left, "rows"],
    [top, "cols"],
  ])) {
    /** @param {Event} event */
    const where = (event) => {
      const list = shown?.[name] ?? [];
      return list[pointed(event, list)]?.i;
    };
    axis.addEventListener("click", (event) => {
      const i = where(event);
      if (i !== undefined) page.go(name === "rows" ? { query: i } : { key: i });
    });
    axis.addEventListener("pointermove", (event) => {
      const i = where(event);
      if (event.pointerType !== "touch")
        page.point(i === undefined ? null : name === "rows" ? { row: i, col: null } : { row: null, col: i });
    });
    axis.addEventListener("pointerleave", () => page.point(null));
  }

  const show = memoize((/** @type {{ wide: number, width: number, pitch: number }} */ size) => {
    const { pieces, special, roles } = page.trace;
    const tall = Math.max(page.above ?? 0, above(page, size.wide)); // beside other maps as tall as theirs
    const upright = stands(page, size.wide);
    grid.style.setProperty("--beside", `${beside(page)}px`);
    grid.style.setProperty("--above", `${tall}px`);
    grid.style.setProperty("--slanted", upright ? "none" : `${slanted(page)}px`);
    left.style.height = `${size.pitch * pieces.length}px`;
    top.style.width = `${size.width + overhang(page)}px`;
    place.style.width = `${size.width}px`;
    grid.classList.toggle("small-pieces", size.pitch < 16);
    shown = {
      rows: labels(
        left,
        pieces,
        special,
        size.pitch,
        (element, i) =>
          (element.style.top = `${Math.max(0, Math.min(size.pitch * pieces.length - TEXT, (i + 0.5) * size.pitch - TEXT / 2))}px`),
      ),
      cols: labels(
        top,
        page.keys,
        page.specialKeys,
        size.wide,
        (element, i) => (element.style.transform = at((i + 0.5) * size.wide, upright)),
      ),
    };
    if (roles.length && page.state?.focus === "attn") {
      left.append(...band(roles, size.pitch, "top"));
      top.append(...band(roles, size.wide, "left"));
    }
  });
  /**
   * @param {number | null} row
   * @param {number | null} col
   */
  const mark = (row, col) => {
    for (const [list, lit] of /** @type {[Label[], number | null][]} */ ([
      [shown?.rows ?? [], row],
      [shown?.cols ?? [], col],
    ])) {
      for (const { element, i, thin } of list) {
        element.classList.toggle("lit", i === lit);
        element.hidden = thin && i !== lit;
      }
    }
  };
  /**
   * @param {number} row
   * @param {number} col
   * @param {{ wide: number, pitch: number }} size
   */
  const reveal = (row, col, { wide, pitch }) => {
    const [x, y] = [col * wide, row * pitch];
    const [roomX, roomY] = [scroll.clientWidth - left.clientWidth, scroll.clientHeight - top.clientHeight];
    if (x < scroll.scrollLeft || x + wide > scroll.scrollLeft + roomX) scroll.scrollLeft = x - roomX / 2;
    if (y < scroll.scrollTop || y + pitch > scroll.scrollTop + roomY) scroll.scrollTop = y - roomY / 2;
  };
  return { place, around, above, show, mark, reveal };
}

/**
 * The width of both ends of a line.
 * @param {Page} page
 */
function around(page) {
  return beside(page) + overhang(page);
}

/**
 * The width of the axis at the left.
 * @param {Page} page
 */
function beside(page) {
  const most = page.narrow ? WIDEST.narrow : WIDEST.wide;
  return Math.round(Math.min(most, Math.max(58, written(page.trace.pieces) + 16)));
}

/**
 * The height of the axis on top.
 * @param {Page} page
 * @param {number} wide
 */
function above(page, wide) {
  return stands(page, wide) ? 36 : Math.round(Math.max(40, slanted(page) * SINE + RISE));
}

/**
 * How long a slanted piece may be, so that it stands within the axis.
 * @param {Page} page
 */
function slanted(page) {
  return Math.min(
    Math.ceil(written(page.keys)) + 1,
    Math.floor(((page.tallest ?? TALLEST[page.narrow ? "narrow" : "wide"]) - RISE) / SINE),
  );
}

/**
 * How far the last slanted piece reaches beyond its column.
 * @param {Page} page
 */
function overhang(page) {
  return Math.round(slanted(page) * COSINE);
}

/**
 * Whether the pieces on top are short enough to stand upright.
 * @param {Page} page
 * @param {number} wide
 */
function stands(page, wide) {
  return wide >= 16 && page.keys.every((piece) => [...piece].length <= 2);
}

/** @type {Map<string, number>} */
const widths = new Map(); // piece -> CSS pixels
/** @type {CanvasRenderingContext2D | undefined} */
let pen;

/**
 * The width of the longest piece, in the weight of a lit one.
 * @param {string[]} pieces
 */
export function written(pieces) {
  if (widths.size > KEPT) widths.clear();
  return pieces.reduce((most, piece) => Math.max(most, width(piece)), 0);
}

/** @param {string} piece */
function width(piece) {
  const known = widths.get(piece);
  if (known !== undefined) return known;
  pen ??= pencil(document.createElement("canvas"));
  pen.font = `600 13px ${getComputedStyle(document.body).fontFamily}`;
  const found = pen.measureText(piece).width;
  widths.set(piece, found);
  return found;
}

/**
 * @param {number} x
 * @param {boolean} upright
 */
function at(x, upright) {
  return upright ? `translateX(${x}px) translateX(-50%)` : `translateX(${x + 4}px) rotate(-55deg)`;
}

/**
 * One label a piece, of which those that would stand too close are thin: hidden until they are lit.
 * @param {HTMLElement} axis
 * @param {string[]} pieces
 * @param {Special[]} special
 * @param {number} pitch
 * @param {(element: HTMLElement, i: number) => void} put
 */
function labels(axis, pieces, special, pitch, put) {
  const every = Math.ceil(LINE / pitch);
  const list = pieces.map((piece, i) => {
    const element = named(piece, special[i]);
    put(element, i);
    return { element, i, thin: i % every !== 0 };
  });
  axis.replaceChildren(...list.map(({ element }) => element));
  return list;
}

/**
 * `special` is true for a special token, or says what else sets this piece apart.
 * @param {string} text
 * @param {Special} special
 */
export function named(text, special) {
  const element = make("bdi", special ? "special" : "", text);
  element.title = special ? `${text}: ${special === true ? "a special token" : special}` : text;
  return element;
}

/**
 * A cell of a picture as "patch (row, column)" or "pixel (row, column)", from 1; any other piece as it is drawn.
 * @param {Pick<import("../core/trace.js").Trace, "grid" | "ids">} trace
 * @param {string} piece
 */
export function called(trace, piece) {
  if (!trace.grid || !/^\d+, \d+$/.test(piece)) return piece;
  return `${trace.ids.length ? "pixel" : "patch"} (${piece})`;
}

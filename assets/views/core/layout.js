// How wide everything is: one number in (the width of the page), pixel widths out.
import { pencil } from "./dom.js";
import { windowSize } from "./place.js";

/** @typedef {import("./trace.js").Trace} Trace */
/** @typedef {import("../walkthrough/stages.js").Stage} Stage */
/** @typedef {import("../walkthrough/stages.js").Panel} Panel */

export const NARROW = 800; // below this the flow runs downward

const GAP = 9; // between stages
const JOINT = 15; // a gap that holds + or =
const TOKENS = [64, 150];
const AROUND = 136; // titles above the rows and legends below them
const SHORTEST = 316; // the list of next tokens, with what stands below it
const CHROME = 250; // header, controls, and what stands around the thumbnails
const NEXT = { closed: 158, open: 560 };
const STRIP_MOST = 84;
const SQUEEZE = 0.8; // of its least, to which a panel gives way
const CELL_MOST = 34; // of a closed matrix, so that few tokens make a small matrix and not a few wide cells
const TITLE = 48; // what the title over a small matrix needs
const MINI = 12; // another block's strip
export const TIGHT = 1360; // of the page, below which titles are set smaller
const OPEN_LEAST = 112; // of an open panel
/** @type {Record<string, number>} */
const OPEN_CELL = { strip: 5, matrix: 15 };
const OPEN_MOST = 640;

/**
 * Rows get lower as a text gets longer: the distance of two rows and the height of a cell, CSS pixels.
 * @param {number} length
 * @param {boolean} narrow
 */
export function rows(length, narrow) {
  const roomy = length <= 8 ? 34 : length <= 14 ? 28 : length <= 24 ? 24 : length <= 48 ? 20 : 16;
  const fitting = Math.floor((tallest() - AROUND) / length);
  const least = length <= 18 ? 24 : 18; // a name is chosen by hand, as far as there is room
  const pitch = narrow || length > 48 ? roomy : Math.min(roomy, Math.max(least, fitting));
  return { pitch, height: pitch - (pitch > 28 ? 12 : pitch > 20 ? 10 : pitch > 16 ? 7 : 4) };
}

/**
 * How many next tokens each of `lists` has: as many as stand beside the rows without hiding what is drawn below them.
 * @param {number} length
 * @param {boolean} narrow
 */
export function listed(length, narrow, lists = 1) {
  if (lists > 1) return narrow ? 5 : Math.max(3, Math.min(8, Math.floor((height(length) - 250) / 24 / lists)));
  return narrow ? 10 : Math.max(6, Math.min(20, Math.floor((height(length) - 172) / 24)));
}

/**
 * The side of a thumbnail: at most `widest`, and so that all layers are seen without scrolling the page.
 * @param {number} length
 * @param {number} layers
 * @param {number} widest
 * @param {boolean} narrow
 */
export function thumbnail(length, layers, widest, narrow) {
  const room = windowSize().height - CHROME - height(length);
  return Math.max(18, Math.min(56, widest, narrow ? 56 : Math.floor(room / layers) - 8));
}

/**
 * The height of the flow for a text, CSS pixels.
 * @param {number} length
 */
function height(length) {
  return Math.min(Math.max(length * rows(length, false).pitch + AROUND, SHORTEST), tallest());
}

function tallest() {
  return Math.max(FLOW.least, windowSize().height - FLOW.rest);
}

/** The height of the flow, so that all heads and the arithmetic stay in view below it; walkthrough.css has it as variables. */
export const FLOW = { least: 388, rest: 480 };

/**
 * Widths for `stages` (stages.js) in `width` pixels: {tokens, next, minis, panel: Map of panel -> width, lines}.
 * Open panels take what their cells need; the closed ones share what is left, never less than their least.
 * @param {number} width
 * @param {Stage[]} stages
 * @param {Set<string>} open
 * @param {Trace} trace
 * @param {number} layer
 */
export function widths(width, stages, open, trace, layer) {
  const beside = trace.grid ? 62 : trace.positions.length ? 64 : 50; // the id, a cell of the picture, or two positions
  const tokens = Math.max(TOKENS[0], Math.min(TOKENS[1], widest(trace.pieces) + beside));
  const next = !trace.reads ? 0 : open.has("next") ? NEXT.open : NEXT.closed;
  const mini = trace.model.layers > 9 ? MINI + 3 : MINI; // room for two digits
  const minis = (trace.model.layers - 1) * (mini + 3) + 12;
  const panel = new Map();
  const shared = [];
  const titled = titleWidths(width < TIGHT);
  const floor = new Map(); // what a panel's title needs beside the next one's
  let fixed = tokens + next + minis + 58;
  for (const stage of stages) {
    fixed += stage.joint || stage.lines ? JOINT : GAP;
    const shown = open.has(stage.id) ? stage.open : stage.closed;
    for (const one of shown) {
      fixed += shown.length > 1 ? GAP - 3 : 0;
      floor.set(one, titled(shown.length > 1 ? (one.title ?? "") : stage.title) - GAP + 5);
      if (one.open) {
        const size = Math.max(Math.min(OPEN_MOST, opened(one, trace, layer)), floor.get(one));
        panel.set(one, size);
        fixed += size;
      } else shared.push(one);
    }
  }
  const lines = Math.max(30, Math.min(64, width * 0.03));
  fixed += lines;
  const needed = shared.reduce((total, one) => total + one.least, 0);
  const squeeze = Math.max(SQUEEZE, Math.min(1, (width - fixed) / needed)); // before the flow has to scroll sideways
  const spare = Math.max(0, width - fixed - needed);
  const weight = shared.reduce((total, one) => total + one.weight, 0);
  for (const one of shared) {
    const size = Math.max(one.least * squeeze + (spare * one.weight) / weight, floor.get(one));
    panel.set(
      one,
      Math.round(
        Math.min(
          size,
          one.kind === "strip"
            ? STRIP_MOST
            : Math.max(Math.min(one.least, TITLE), trace.keys(one.hook).length * CELL_MOST),
        ),
      ),
    );
  }
  const over = fixed + shared.reduce((total, one) => total + panel.get(one), 0) - width;
  const wide = [...panel.keys()].filter((one) => one.open && panel.get(one) > OPEN_LEAST);
  const most = wide.reduce((total, one) => total + panel.get(one) - OPEN_LEAST, 0);
  if (over > 0)
    for (const one of wide)
      panel.set(one, Math.round(panel.get(one) - (Math.min(over, most) * (panel.get(one) - OPEN_LEAST)) / most));
  return { tokens, next, mini, panel, lines };
}

/**
 * The width of the longest piece as the token column writes it, CSS pixels.
 * @param {string[]} pieces
 */
function widest(pieces) {
  const measured = textWidths("600 14px");
  return Math.max(...pieces.map(measured));
}

/**
 * Measures titles of panels.
 * @param {boolean} tight
 * @returns {(title: string) => number}
 */
function titleWidths(tight) {
  const measured = textWidths(`600 ${tight ? 11 : 12}px`);
  return (title) => measured(title) - (tight ? 0.22 * title.length : 0);
}

/**
 * Measures texts of one line in a font of the page, CSS pixels.
 * @param {string} font
 * @returns {(text: string) => number}
 */
function textWidths(font) {
  const ruler = pencil(document.createElement("canvas"));
  ruler.font = `${font} ${getComputedStyle(document.body).fontFamily}`;
  return (text) => ruler.measureText(text).width;
}

/**
 * A phone's width: every panel as wide as the page allows beside its row labels.
 * @param {number} width
 * @param {Stage[]} stages
 * @param {Set<string>} open
 */
export function stacked(width, stages, open) {
  const panel = new Map();
  for (const stage of stages) {
    for (const one of open.has(stage.id) ? stage.open : stage.closed) panel.set(one, Math.max(120, width - 86));
  }
  return { tokens: width, next: width, mini: MINI, panel, lines: 0 };
}

/**
 * @param {Panel} panel
 * @param {Trace} trace
 * @param {number} layer
 */
function opened(panel, trace, layer) {
  const { cols } = trace.block(panel.hook.replace("{l}", String(layer)), panel.flat ? null : 0);
  return Math.max(
    OPEN_LEAST,
    cols * (panel.kind === "matrix" && trace.length > 40 ? Math.max(3, 600 / trace.length) : OPEN_CELL[panel.kind]),
  );
}

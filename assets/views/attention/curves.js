// What lines draw of weights: curves from the row of a query to the row of a key, and beside a token that is looked at alone small squares,
// one a head, with the number where there is one.
import { at } from "../components/cells.js";
import { percent } from "../core/format.js";
import { colour, curve } from "../core/palette.js";

/**
 * @typedef {import("./attention.js").Pattern} Pattern of a head
 * @typedef {{ head: number, query: number, key: number, weight: number }} Curve
 * @typedef {{ query: number, key?: undefined } | { key: number, query?: undefined }} Alone one token, as a query or as a key
 */

const MOST = 4000; // curves drawn at once; beyond, the strongest ones
const BINS = 2048; // in which weights are sorted coarsely, by their square roots
const FULL = { most: 7, share: 0.4, least: 3 }; // of a weight of 1: CSS pixels, of which it takes this share of a row at most
const DASH = [7, 4]; // CSS pixels, of what an edit put there
const FAINT = { all: 0.14, one: 0.4 }; // opacity of the weakest curve among all, and among those of one token
const SIZE = 13; // CSS pixels of a square
const BETWEEN = 2;
const ASIDE = 7; // between squares and tokens
const NUMBER = 62; // of a percentage
const PHONE = 54; // of all the squares, or of the number alone

/**
 * The curves of several patterns, weakest first.
 *
 * patterns = [{block, max}], one a head; `least` the smallest weight drawn; `only` = {query} | {key} | null keeps the curves of one
 * token. Gives {head, query, key, weight: arrays of `count`, count, left, leftShare, cut}: `left` curves with a weight above
 * 0 are not drawn, which hold `leftShare` of all the weight; `cut` is the smallest weight drawn where there were too many, else null.
 * @param {Pattern[]} patterns
 * @param {number} least
 * @param {Alone | null} [only]
 */
export function choose(patterns, least, only = null) {
  const bins = new Uint32Array(BINS);
  let [nonzero, total] = [0, 0];
  each(patterns, only, (weight) => {
    nonzero++;
    total += weight;
    if (weight >= least) bins[bin(weight)]++;
  });
  const floor = lowest(bins);
  /** @type {Curve[]} */
  const found = [];
  each(
    patterns,
    only,
    (weight, head, query, key) => weight >= least && bin(weight) >= floor && found.push({ head, query, key, weight }),
  );
  found.sort((a, b) => a.weight - b.weight);
  const drawn = found.reduce((sum, { weight }) => sum + weight, 0);
  const left = nonzero - found.length;
  return {
    curves: found,
    left,
    leftShare: left ? Math.max(0, 1 - drawn / total) : 0,
    cut: floor && found.length ? found[0].weight : null,
  };
}

/**
 * @param {Pattern[]} patterns
 * @param {Alone | null} only
 * @param {(weight: number, head: number, query: number, key: number) => void} visit
 */
function each(patterns, only, visit) {
  patterns.forEach(({ block, max }, head) => {
    const [first, last] = only?.query !== undefined ? [only.query, only.query + 1] : [0, block.rows];
    const [from, to] = only?.key !== undefined ? [only.key, only.key + 1] : [0, block.cols];
    for (let query = first; query < last; query++) {
      for (let key = from; key < to; key++) {
        const weight = at(block, query, key) / max;
        if (weight > 0) visit(weight, head, query, key);
      }
    }
  });
}

/** @param {number} weight */
function bin(weight) {
  return Math.min(BINS - 1, Math.floor(Math.sqrt(weight) * BINS));
}

/**
 * The lowest bin of which all weights are drawn; 0 where they all can be.
 * @param {Uint32Array} bins
 */
function lowest(bins) {
  let count = 0;
  for (let i = BINS - 1; i >= 0; i--) {
    if (count && count + bins[i] > MOST) return i + 1;
    count += bins[i];
  }
  return 0;
}

/**
 * Strokes curves from x = `left` to x = `right` into `context`. `hues` are CSS colours, one a head; several heads are drawn
 * side by side within a row. `edited(curve)` says which ones an edit put there: they are dashed, and of one head in the colour `dashed`. `alone` says that they are one token's. `top` is how far the rows are scrolled, `tall` the height that is seen, CSS pixels.
 * @param {CanvasRenderingContext2D} context
 * @param {Curve[]} curves
 * @param {{ hues: string[], pitch: number, left: number, right: number, top: number, tall: number, alone: boolean,
 *   edited?: (curve: Curve) => boolean, dashed?: string }} seen
 */
export function stroke(context, curves, { hues, pitch, left, right, top, tall, alone, edited, dashed }) {
  const full = Math.max(FULL.least, Math.min(FULL.most, pitch * FULL.share, (pitch - 2) / hues.length));
  const faint = alone ? FAINT.one : FAINT.all;
  const room = Math.max(0, pitch - full - 2);
  const shift = hues.map((_, i) => (hues.length === 1 ? 0 : room * (i / (hues.length - 1) - 0.5)));
  const third = (right - left) / 3;
  for (const curve of curves) {
    const { head, query, key, weight } = curve;
    const changed = Boolean(edited?.(curve));
    const from = (query + 0.5) * pitch - top + shift[head];
    const to = (key + 0.5) * pitch - top + shift[head];
    if (Math.max(from, to) < 0 || Math.min(from, to) > tall) continue;
    context.strokeStyle = changed && dashed && hues.length === 1 ? dashed : hues[head];
    context.setLineDash(changed ? DASH : []);
    context.globalAlpha = faint + (1 - faint) * weight;
    context.lineWidth = Math.max(alone ? 1 : 0.6, full * weight);
    context.beginPath();
    context.moveTo(left, from);
    context.bezierCurveTo(left + third, from, right - third, to, right, to);
    context.stroke();
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
}

/**
 * How wide the squares of `count` heads are, CSS pixels.
 * @param {number} count
 * @param {boolean} narrow
 */
export function widthFor(count, narrow) {
  if (narrow) return PHONE;
  return count === 1 ? SIZE + ASIDE + NUMBER : count * (SIZE + BETWEEN) + ASIDE + 4;
}

/**
 * Which head's square is at `x`, counted from the edge of the squares next to the tokens; null between and behind them.
 * @param {number} x
 * @param {number} count
 * @param {boolean} narrow
 */
export function headAt(x, count, narrow) {
  const i = Math.floor((x - ASIDE) / (size(count, narrow) + BETWEEN));
  return i >= 0 && i < count ? i : null;
}

/**
 * Draws the squares of `only` ({query}: beside the keys, at the right; {key}: beside the queries, at the left) for `patterns`, one a
 * head. `squares` is the room at either edge of `width`, `top` how far the rows are scrolled, `tall` what is seen of them.
 * @param {CanvasRenderingContext2D} context
 * @param {Element} root
 * @param {Pattern[]} patterns
 * @param {Alone} only
 * @param {{ hues: string[], pitch: number, width: number, squares: number, top: number, tall: number, narrow: boolean }} seen
 */
export function drawSquares(context, root, patterns, only, { hues, pitch, width, squares, top, tall, narrow }) {
  const { query, key } = only;
  const reads = query !== undefined;
  const count = reads ? patterns[0].block.cols : patterns[0].block.rows;
  const side = Math.min(size(patterns.length, narrow), pitch - 3);
  const [zero, ink, soft, mono] = ["zero", "ink", "soft", "mono"].map((name) => colour(root, name));
  context.font = `${narrow ? 10 : 11}px ${mono}`;
  context.textBaseline = "middle";
  const number = patterns.length === 1;
  const step = (side + BETWEEN) * (reads ? 1 : -1);
  const start = reads ? width - squares + ASIDE : squares - ASIDE - side;
  for (let row = Math.floor(top / pitch); row < Math.min(count, (top + tall) / pitch); row++) {
    const y = (row + 0.5) * pitch - top;
    patterns.forEach(({ block, max }, head) => {
      const weight = (query !== undefined ? at(block, query, row) : at(block, row, key)) / max;
      if (!(number && narrow))
        square(context, start + head * step, y - side / 2, side, { zero, hue: hues[head], weight });
      if (!number) return;
      context.fillStyle = weight >= 0.005 ? ink : soft;
      context.textAlign = reads ? "left" : "right";
      context.fillText(
        `${max === 1 ? "" : "≈"}${percent(weight)}`,
        narrow ? start : start + (reads ? side + 6 : -6),
        y + 0.5,
      );
    });
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} x
 * @param {number} y
 * @param {number} side
 * @param {{ zero: string, hue: string, weight: number }} look
 */
function square(context, x, y, side, { zero, hue, weight }) {
  context.fillStyle = zero;
  context.fillRect(x, y, side, side);
  context.globalAlpha = curve(weight);
  context.fillStyle = hue;
  context.fillRect(x, y, side, side);
  context.globalAlpha = 1;
}

/**
 * @param {number} count
 * @param {boolean} narrow
 */
function size(count, narrow) {
  return narrow ? Math.max(3, Math.min(9, Math.floor((PHONE - ASIDE) / count) - BETWEEN)) : SIZE;
}

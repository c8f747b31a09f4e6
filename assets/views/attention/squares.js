// The weights of one token as small squares beside the tokens at the other side: one a head, and the number where there is one.
import { at } from "../components/cells.js";
import { percent } from "../core/format.js";
import { colour, curve } from "../core/palette.js";

const SIZE = 13; // CSS pixels of a square
const BETWEEN = 2;
const ASIDE = 7; // between squares and tokens
const NUMBER = 62; // of a percentage
const PHONE = 54; // of all the squares, or of the number alone

/** How wide the squares of `count` heads are, CSS pixels. */
export function widthFor(count, narrow) {
  if (narrow) return PHONE;
  return count === 1 ? SIZE + ASIDE + NUMBER : count * (SIZE + BETWEEN) + ASIDE + 4;
}

/** Which head's square is at `x`, counted from the edge of the squares next to the tokens; null between and behind them. */
export function headAt(x, count, narrow) {
  const i = Math.floor((x - ASIDE) / (size(count, narrow) + BETWEEN));
  return i >= 0 && i < count ? i : null;
}

/**
 * Draws the squares of `only` ({query}: beside the keys, at the right; {key}: beside the queries, at the left) for `patterns`, one a
 * head. `squares` is the room at either edge of `width`, `top` how far the rows are scrolled, `tall` what is seen of them.
 */
export function drawn(context, root, patterns, only, { hues, pitch, width, squares, top, tall, narrow }) {
  const reads = only.query !== undefined;
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
      const weight = (reads ? at(block, only.query, row) : at(block, row, only.key)) / max;
      if (!(number && narrow)) square(context, start + head * step, y - side / 2, side, { zero, hue: hues[head], weight });
      if (!number) return;
      context.fillStyle = weight >= 0.005 ? ink : soft;
      context.textAlign = reads ? "left" : "right";
      context.fillText(`${max === 1 ? "" : "≈"}${percent(weight)}`, narrow ? start : start + (reads ? side + 6 : -6), y + 0.5);
    });
  }
}

function square(context, x, y, side, { zero, hue, weight }) {
  context.fillStyle = zero;
  context.fillRect(x, y, side, side);
  context.globalAlpha = curve(weight);
  context.fillStyle = hue;
  context.fillRect(x, y, side, side);
  context.globalAlpha = 1;
}

function size(count, narrow) {
  return narrow ? Math.max(3, Math.min(9, Math.floor((PHONE - ASIDE) / count) - BETWEEN)) : SIZE;
}

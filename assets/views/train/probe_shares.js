// What is written into the cells of a head: whole percents, since a frame knows a weight to within 1 in 510.
import { at } from "../components/cells.js";
import { brightness, inks } from "./probe_inks.js";
import { css, ramp, step } from "../core/palette.js";

const WRITTEN = 22; // CSS pixels from which on a cell holds its number
const SIZE = { least: 10, most: 13, share: 0.38 }; // CSS pixels, and of a cell's width

/** Writes into a canvas that cells.js has just painted: `unit` is what a block's number is of 100 %, `signed` says the sign too. */
export function shares(canvas, root, { block, role, scale, max, hidden, wide }, unit) {
  if (wide < WRITTEN) return;
  const context = canvas.getContext("2d");
  const dpr = window.devicePixelRatio || 1;
  context.setTransform(dpr, 0, 0, dpr, 0, 0);
  context.font = `${Math.max(SIZE.least, Math.min(SIZE.most, wide * SIZE.share))}px ${getComputedStyle(root).getPropertyValue("--mono")}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  const table = ramp(root, role, scale);
  const choose = inks(root);
  for (let r = 0; r < block.rows; r++) {
    for (let c = 0; c < block.cols; c++) {
      if (hidden?.(r, c)) continue;
      const value = at(block, r, c);
      context.fillStyle = choose(brightness(css(table[step(value, scale, max)]))).colour;
      context.fillText(whole((100 * value) / unit, scale === "signed"), (c + 0.5) * wide, (r + 0.5) * wide + 0.5, wide - 2);
    }
  }
}

function whole(percents, signed) {
  const size = Math.round(Math.abs(percents));
  return `${percents < 0 && size ? "−" : signed && size ? "+" : ""}${size}`;
}

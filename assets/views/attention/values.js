// The numbers of a matrix, written into its cells.
import { at } from "../components/cells.js";
import { digits, hundredths } from "./scores.js";
import { ramp, step, STEPS } from "../core/palette.js";

const FONT = { least: 10, most: 13, share: 0.4 }; // CSS pixels, and of a cell's width

/** Writes what `cells.js` has just painted from `data` on `canvas`: `as` "share" in percent, "number" with its sign. */
export function inCells(canvas, root, { block, role, scale, max, width, pitch, hidden }, as) {
  const context = canvas.getContext("2d");
  const table = ramp(root, role, scale);
  const wide = width / block.cols;
  const style = getComputedStyle(root);
  const [ink, ground] = [style.getPropertyValue("--ink").trim(), style.getPropertyValue("--ground").trim()];
  const dpr = window.devicePixelRatio || 1;
  context.setTransform(dpr, 0, 0, dpr, 0, 0);
  context.font = `${Math.max(FONT.least, Math.min(FONT.most, wide * FONT.share))}px ${style.getPropertyValue("--mono")}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  const pens = Array.from(table, (rgba) => (contrast(rgba, ink) >= contrast(rgba, ground) ? ink : ground));
  for (let row = 0; row < block.rows; row++) {
    for (let col = 0; col < block.cols; col++) {
      if (hidden?.(row, col)) continue;
      const value = at(block, row, col);
      context.fillStyle = pens[Math.min(STEPS - 1, step(value, scale, max))];
      context.fillText(as === "share" ? hundredths(value / max) : Number.isFinite(value) ? digits(value) : "−∞", (col + 0.5) * wide, (row + 0.5) * pitch + 0.5, wide - 2);
    }
  }
}

/** The ratio of two luminances (WCAG 2, contrast ratio), of a colour of the ramp and a CSS hex colour. */
function contrast(rgba, hex) {
  const digitsOf = hex.replace("#", "");
  const pair = [[rgba & 255, (rgba >> 8) & 255, (rgba >> 16) & 255], [0, 2, 4].map((i) => parseInt(digitsOf.slice(i, i + 2), 16))].map(luminance);
  return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
}

function luminance(channels) {
  const [red, green, blue] = channels.map((byte) => (byte / 255 <= 0.04045 ? byte / 255 / 12.92 : ((byte / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

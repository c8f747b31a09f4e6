// What colour and place mean, in numbers and words: under every panel.
import { extent } from "./cells.js";
import { make, range } from "../core/dom.js";
import { css, curve, ramp, STEPS } from "../core/palette.js";

/** What the end of a signed scale is, of the absolute values: see `extent`. */
export const PERCENTILE = "99th percentile";
const STOPS = 8; // of the gradient
const WIDEST = 72; // CSS pixels
const CLOSE = 11; // CSS pixels of a key, below which its label is small and steep

/**
 * The keys' pieces under a matrix, slanted: {element, labels}.
 * @param {string[]} pieces
 * @param {number} width
 */
export function axis(pieces, width) {
  const element = make("div", "axis");
  const labels = pieces.map((piece, i) => {
    const label = make("bdi", "", piece);
    label.style.left = `${((i + 0.5) * width) / pieces.length}px`;
    return label;
  });
  element.classList.toggle("close", width / pieces.length < CLOSE);
  element.classList.toggle(
    "upright",
    pieces.every((piece) => [...piece].length <= 2),
  );
  element.append(...labels);
  return { element, labels };
}

/**
 * What a colour means, in numbers: {element, show(block, end)}, `end` where not that of the block itself. `root` is where the theme's colours are read. A narrow one leaves it to who draws it to say what its end is.
 * @param {Element} root
 * @param {{ role: string, scale: Scale, width: number }} what
 */
export function legend(root, { role, scale, width }) {
  const element = make("div", "legend");
  const table = ramp(root, role, scale);
  const unit = scale === "unit";
  const stops = range(0, STOPS + 1).map((i) =>
    css(table[Math.round((unit ? curve(i / STOPS) ** 2 : i / STOPS) * (STEPS - 1))]),
  );
  const bar = make("span", "legend-bar");
  bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  bar.style.width = `${Math.min(width, WIDEST)}px`;
  const text = make("span", "legend-text", "0 to 1");
  element.append(bar, text);
  element.title = unit
    ? "colour grows with the square root of the weight"
    : "from grey (negative) to the hue (positive); of 100 absolute values 99 are within";
  /**
   * @param {Block} block
   * @param {number} [end]
   */
  const show = (block, end = extent(block)) => {
    if (!unit) text.textContent = `±${rounded(end)}${width < WIDEST ? "" : `, ${PERCENTILE}`}`;
  };
  return { element, show };
}

/** @param {number} x */
function rounded(x) {
  return x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x >= 0.01 ? x.toFixed(2) : x.toExponential(1);
}

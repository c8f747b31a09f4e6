// What the cells of a head's map show: choosing it, and the numbers in them.
import { digits, hundredths } from "./scores.js";
import { at } from "../components/cells.js";
import { choices } from "../components/choices.js";
import { make, pencil } from "../core/dom.js";
import { ramp, step, STEPS } from "../core/palette.js";

/** @typedef {{ name: string, title: string, about: string, part: string | null, scale: Scale, role: string }} Kind */
/** @typedef {import("./state.js").Own} Own */

const FONT = { least: 10, most: 13, share: 0.4 }; // CSS pixels, and of a cell's width

/**
 * What a map may show. `part` is the name of the hook, null for what the server multiplies.
 * @type {Kind[]}
 */
export const KINDS = [
  {
    name: "scores",
    title: "raw scores",
    about: "q·k, before the mask",
    part: "scores",
    scale: "signed",
    role: "attention",
  },
  {
    name: "masked",
    title: "masked",
    about: "what enters the softmax",
    part: "masked_scores",
    scale: "signed",
    role: "attention",
  },
  {
    name: "pattern",
    title: "pattern",
    about: "each weight of the head",
    part: "pattern",
    scale: "unit",
    role: "attention",
  },
  {
    name: "weighted",
    title: "value-weighted",
    about: "what each weight moves: the length of p · v W_O",
    part: null,
    scale: "unit",
    role: "value",
  },
];
export const TILED = KINDS.slice(2); // of these a long text has tiles

/**
 * Fills `element` with the choice among `kinds` of what the cells show, and whether as shares of the row: {element, show()}.
 * @param {HTMLElement} element
 * @param {{ state: Own, go(change: { shows?: string, shares?: boolean }): unknown }} page
 * @param {Kind[]} kinds
 */
export function switcher(element, page, kinds) {
  const options = kinds.map(({ name, title, about }) => [name, title, about]);
  const pick = choices("what the cells show", options, (name) =>
    page.go({ shows: name === "pattern" ? undefined : name }),
  );
  const label = make("label", "as-shares");
  const box = make("input");
  box.type = "checkbox";
  box.addEventListener("change", () => page.go({ shares: box.checked || undefined }));
  label.append(box, "shares of the row");
  element.append(pick.element, label);
  const show = () => {
    const { name } = shown(page.state, kinds);
    pick.show(name);
    label.hidden = name !== "weighted";
    box.checked = Boolean(page.state.shares);
  };
  return { element, show };
}

/**
 * The one of `kinds` that the state names, else the pattern.
 * @param {Own} state
 */
export function shown({ shows }, kinds = KINDS) {
  return kinds.find(({ name }) => name === shows) ?? KINDS[2];
}

/**
 * Writes what `cells.js` has just painted from `data` on `canvas`: `as` "share" in percent, "number" with its sign.
 * @param {HTMLCanvasElement | null} canvas
 * @param {Element} root
 * @param {Omit<import("../components/cells.js").Picture, "height" | "label" | "edited">} data
 * @param {string} as
 */
export function inCells(canvas, root, { block, role, scale, max, width, pitch, hidden }, as) {
  if (!canvas) return;
  const context = pencil(canvas);
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
      context.fillText(
        as === "share" ? hundredths(value / max) : Number.isFinite(value) ? digits(value) : "−∞",
        (col + 0.5) * wide,
        (row + 0.5) * pitch + 0.5,
        wide - 2,
      );
    }
  }
}

/**
 * The ratio of two luminances (WCAG 2, contrast ratio), of a colour of the ramp and a CSS hex colour.
 * @param {number} rgba
 * @param {string} hex
 */
function contrast(rgba, hex) {
  const digitsOf = hex.replace("#", "");
  const pair = [
    [rgba & 255, (rgba >> 8) & 255, (rgba >> 16) & 255],
    [0, 2, 4].map((i) => parseInt(digitsOf.slice(i, i + 2), 16)),
  ].map(luminance);
  return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
}

/** @param {number[]} channels */
function luminance(channels) {
  const [red, green, blue] = channels.map((byte) =>
    byte / 255 <= 0.04045 ? byte / 255 / 12.92 : ((byte / 255 + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

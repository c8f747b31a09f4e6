// Text of a page as SVG text, line by line where it stands, in its own letters.
import { pencil } from "../core/dom.js";
import { filled, shape } from "./vector_paint.js";
import { short } from "./vector_canvas.js";

/**
 * @typedef {{ left: number, top: number, unit: number }} Origin
 * @typedef {{ text: string, left: number, right: number }} Letter
 */

const SAME_LINE = 2; // CSS pixels
// eslint-disable-next-line compat/compat -- Firefox before 125 has none, and gets code points
const graphemes = Intl.Segmenter && new Intl.Segmenter(undefined, { granularity: "grapheme" });
/** @type {CanvasRenderingContext2D | undefined} */
let ruler;

/**
 * Draws a text node into `into`, in pixels from `origin`, {left, top, unit} of vector_walk.js: with a line through it where `struck`, with dots where it reaches beyond `limit`.
 * @param {SVGElement} into
 * @param {Text} node
 * @param {CSSStyleDeclaration} style
 * @param {Origin} origin
 * @param {{ struck: boolean, limit: number }} above
 */
export function paintText(into, node, style, origin, { struck, limit }) {
  const fill = filled(style.color);
  if (!fill || !node.data.trim()) return;
  const [ascent, descent] = heights(style);
  for (const { text, left, right, top, bottom } of lines(node, limit, style, origin.unit)) {
    const baseline = top + (bottom - top - ascent - descent) / 2 + ascent;
    const written = transformed(text, style.textTransform);
    const several = [...written].length > 1 && right > left;
    into.append(
      shape(
        "text",
        {
          x: short(left - origin.left),
          y: short(baseline - origin.top),
          "font-family": style.fontFamily,
          "font-size": short(parseFloat(style.fontSize)),
          "font-weight": style.fontWeight === "400" ? undefined : style.fontWeight,
          "font-style": style.fontStyle === "normal" ? undefined : style.fontStyle,
          "text-decoration": struck ? "line-through" : undefined,
          textLength: several ? short(right - left) : undefined,
          ...fill,
          style: `white-space:pre${style.fontVariantNumeric === "normal" ? "" : `;font-variant-numeric:${style.fontVariantNumeric}`}`,
        },
        printable(written),
      ),
    );
  }
}

/**
 * A line of text at a place, for what has no text node of its own.
 * @param {SVGElement} into
 * @param {string} text
 * @param {number} x
 * @param {number} y
 * @param {CSSStyleDeclaration} style
 */
export function write(into, text, x, y, style) {
  const [ascent, descent] = heights(style);
  const fill = filled(style.color);
  if (fill)
    into.append(
      shape(
        "text",
        {
          x: short(x),
          y: short(y + (ascent - descent) / 2),
          "font-family": style.fontFamily,
          "font-size": short(parseFloat(style.fontSize)),
          ...fill,
        },
        printable(text),
      ),
    );
}

/**
 * XML has no place for control characters.
 * @param {string} text
 */
export function printable(text) {
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");
}

/**
 * How far letters of a style reach above and below the line they stand on.
 * @param {CSSStyleDeclaration} style
 */
function heights(style) {
  ruler ??= pencil(document.createElement("canvas"));
  ruler.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  const { fontBoundingBoxAscent, fontBoundingBoxDescent } = ruler.measureText("x");
  return [fontBoundingBoxAscent, fontBoundingBoxDescent];
}

/**
 * How wide a text is in a font, CSS pixels.
 * @param {string} text
 * @param {string} font
 */
export function width(text, font) {
  ruler ??= pencil(document.createElement("canvas"));
  ruler.font = font;
  return ruler.measureText(text).width;
}

/**
 * The lines that a text node is broken into, each with its box; white space that is not drawn is not among them.
 * @param {Text} node
 * @param {number} limit
 * @param {CSSStyleDeclaration} style
 * @param {number} unit
 */
function lines(node, limit, style, unit) {
  const range = document.createRange();
  /** @type {{ letters: Letter[], top: number, bottom: number }[]} */
  const found = [];
  for (const { segment, index } of letters(node.data)) {
    range.setStart(node, index);
    range.setEnd(node, index + segment.length);
    const box = range.getClientRects()[0];
    if (!box || (box.width === 0 && !segment.trim())) continue;
    const [left, right, top, bottom] = [box.left, box.right, box.top, box.bottom].map((pixels) => pixels / unit);
    const letter = { text: segment === "\n" || segment === "\t" ? " " : segment, left, right };
    const line = found.at(-1);
    if (line && Math.abs(line.top - top) < SAME_LINE) line.letters.push(letter);
    else found.push({ letters: [letter], top, bottom });
  }
  return found.map(({ letters, top, bottom }) => ({ top, bottom, ...joined(letters, limit, style) }));
}

/**
 * @param {string} text
 * @returns {Iterable<{ segment: string, index: number }>}
 */
function letters(text) {
  if (graphemes) return graphemes.segment(text);
  return [...text.matchAll(/./gsu)].map(({ 0: segment, index }) => ({ segment, index: Number(index) }));
}

/**
 * Letters as one text, which ends in dots where it would reach beyond `limit`.
 * @param {Letter[]} letters
 * @param {number} limit
 * @param {CSSStyleDeclaration} style
 */
function joined(letters, limit, style) {
  const dots = letters.some(({ right }) => right > limit + 1)
    ? width("…", `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`)
    : 0;
  const kept = dots ? letters.filter(({ right }) => right <= limit - dots) : letters;
  const right = Math.max(letters[0].left, ...kept.map((letter) => letter.right));
  const text = kept.map((letter) => letter.text).join("");
  return { text: dots ? `${text}…` : text, left: Math.min(...letters.map(({ left }) => left)), right: right + dots };
}

/**
 * @param {string} text
 * @param {string} how
 */
function transformed(text, how) {
  if (how === "uppercase") return text.toUpperCase();
  if (how === "lowercase") return text.toLowerCase();
  return how === "capitalize" ? text.replace(/(^|\s)\S/g, (letter) => letter.toUpperCase()) : text;
}

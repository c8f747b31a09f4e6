// The scores of all heads of one attention, read from the payload, and written as text.
import { number, percent } from "../core/format.js";

/**
 * @typedef {"share" | "bits" | "tokens" | "ratio"} Unit
 * @typedef {{ key: string, title: string, unit: Unit, definition: string, source: string, focus?: string }} Score of heads
 * @typedef {Score & { values: number[], low: number, high: number }} Measured of all heads, and the ends of what it is
 * @typedef {import("./attention.js").Face} Face
 */

const ROOMY = 44; // CSS pixels of a thumbnail that has room for a percentage with its sign

/**
 * The scores of the attention in view, in the table's order; `values` is null while they are still on their way.
 * @param {Pick<Face, "trace" | "state">} page
 * @returns {(Measured | (Score & { values: null }))[]}
 */
export function measures(page) {
  const { trace, state } = page;
  /**
   * @param {Score} entry
   * @returns {ReturnType<typeof measures>}
   */
  const read = (entry) => {
    const found = trace.arrays[`scores.${trace.prefix}${state.focus}.${entry.key}`];
    if (entry.focus !== undefined && entry.focus !== state.focus) return [];
    if (!found) return entry.focus === undefined ? [] : [{ ...entry, values: null }];
    const values = Array.from(/** @type {Cells} */ (found.data));
    const numbers = values.filter((x) => !Number.isNaN(x));
    const [low, high] = numbers.length ? [Math.min(...numbers), Math.max(...numbers)] : [0, 0];
    return [{ ...entry, values, low, high }];
  };
  return trace.scoreTable.flatMap(read);
}

/**
 * {key, title, unit, definition, source, values, low, high} of one score, or null where it is not there (yet).
 * @param {Pick<Face, "trace" | "state">} page
 * @param {string | undefined} key
 */
export function measured(page, key) {
  for (const one of measures(page)) if (one.key === key && one.values) return one;
  return null;
}

/**
 * A score with its unit.
 * @param {number} x
 * @param {Unit} unit
 */
export function inColumn(x, unit) {
  if (Number.isNaN(x)) return "–";
  if (unit === "share") return percent(x);
  return unit === "ratio" ? brief(x) : `${brief(x)} ${unit}`;
}

/**
 * Three digits that count.
 * @param {number} x
 */
function brief(x) {
  const size = Math.abs(x);
  if (size < 0.001) return number(x);
  return `${x < 0 ? "−" : ""}${size >= 100 ? size.toFixed(0) : size.toPrecision(3)}`;
}

/**
 * A score in the room under a thumbnail `side` pixels wide: two digits, of a share as a percentage.
 * @param {number} x
 * @param {Unit} unit
 * @param {number} side
 */
export function shortest(x, unit, side) {
  if (Number.isNaN(x)) return "–";
  if (unit !== "share") return digits(x);
  return side >= ROOMY ? `${hundredths(x)} %` : hundredths(x);
}

/**
 * A share as a percentage in two digits; what is not all is not written as 100.
 * @param {number} x
 */
export function hundredths(x) {
  return x < 1 && 100 * x >= 99.5 ? ">99" : digits(100 * x);
}

/**
 * Two digits that count, and none of a number that is too small for three places: "~0" is not 0.
 * @param {number} x
 */
export function digits(x) {
  const size = Math.abs(x);
  if (x === 0) return "0";
  const text = size >= 9.95 ? size.toFixed(0) : size >= 0.995 ? size.toFixed(1) : size.toFixed(2).replace(/^0/, "");
  return size < 0.005 ? "~0" : `${x < 0 ? "−" : ""}${text}`;
}

// How points of queries and keys are coloured, and what the colours mean.
import { make, range } from "../core/dom.js";
import { KINDS, kindsOf } from "../core/token_kinds.js";
import { colour, css, ramp, STEPS } from "../core/palette.js";

/** @typedef {{ pieces: string[], special: boolean[] }} Text */

const PALE = 0.25; // where the colour of the first position starts

/** [id, label] */
export const TINTS = [
  ["role", "query or key"],
  ["position", "position"],
  ["kind", "kind of token"],
];

/**
 * i -> the colour of point i, of all queries and then all keys; `texts` are the {pieces, special} of both.
 * @returns {(i: number) => string}
 * @param {Element} root
 * @param {string} tint
 * @param {Text[]} texts
 */
export function hues(root, tint, texts) {
  const first = texts[0].pieces.length;
  if (tint === "kind") {
    const kinds = texts.map(sorted);
    const roles = new Map(KINDS.map(([kind, , role]) => [kind, colour(root, role)]));
    return (i) => roles.get(i < first ? kinds[0][i] : kinds[1][i - first]) ?? "";
  }
  if (tint === "role") {
    const [query, key] = ["query", "key"].map((role) => colour(root, role));
    return (i) => (i < first ? query : key);
  }
  const tables = ["query", "key"].map((role) => ramp(root, role, "unit"));
  /**
   * @param {number} which
   * @param {number} i
   */
  const along = (which, i) =>
    css(
      tables[which][Math.round((PALE + ((1 - PALE) * i) / Math.max(1, texts[which].pieces.length - 1)) * (STEPS - 1))],
    );
  return (i) => (i < first ? along(0, i) : along(1, i - first));
}

/**
 * The legend, sign by sign: queries are circles and keys squares under every tint.
 * @param {string} tint
 * @param {Text[]} texts
 */
export function signs(tint, texts) {
  if (tint === "kind") {
    /** @type {Set<string>} */
    const present = new Set(texts.flatMap(sorted));
    const kinds = KINDS.filter(([kind]) => present.has(kind)).map(([, words, role]) =>
      sign("bar", words, `var(--${role})`),
    );
    return [sign("round outline", "query", "none"), sign("outline", "key", "none"), ...kinds];
  }
  if (tint === "role") return [sign("round", "query", "var(--query)"), sign("", "key", "var(--key)")];
  /** @param {string} role */
  const run = (role) =>
    `linear-gradient(to right, color-mix(in srgb, var(--${role}) 50%, var(--zero)), var(--${role}))`;
  return [sign("round wide", "query, first to last", run("query")), sign("wide", "key, first to last", run("key"))];
}

/**
 * @param {string} shape
 * @param {string} words
 * @param {string} background
 */
function sign(shape, words, background) {
  const element = make("span", "sign");
  element.appendChild(make("span", `mark ${shape}`)).style.background = background;
  element.append(words);
  return element;
}

/** @param {Text} text */
function sorted({ pieces, special }) {
  return kindsOf(
    pieces,
    range(0, pieces.length).filter((i) => special[i]),
  );
}

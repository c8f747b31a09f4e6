// Lines of arithmetic as the engine writes them, with the digits that make what they print true.
import { equation, number, operand, percent } from "../core/format.js";

/**
 * 1.5, not 1.5000
 * @param {number} x
 */
const setting = (x, more = 0) => String(Number(x.toPrecision(6 + more)));

/**
 * @typedef {{ value: number | string, form: string, strong?: boolean, role?: string | null, text?: undefined }} Value
 * @typedef {{ text: string, role?: string | null, place?: string, strong?: undefined }} Name
 * @typedef {string | Value | Name} Piece what a line is made of
 * @typedef {(values: number[]) => number} Evaluation
 */

/** @type {Record<string, import("../core/format.js").Format>} */
export const FORMS = { number, operand, percent, setting };
/** @type {Record<string, (a: number, b: number) => number>} */
const TIMES = { "×": (a, b) => a * b, "/": (a, b) => a / b };
/** @type {Record<string, (a: number, b: number) => number>} */
const PLUS = { "+": (a, b) => a + b, "−": (a, b) => a - b };
const ENDS = / = $/;
const UNSAID = /… [\d,]+ more|cos|sin/g; // words before a number that is there itself

/**
 * The texts of the numbers in a line, and of a sign that is not =, by their places among its pieces. What stands between the last two signs of equality has the
 * digits with which it gives the result; a line that ends otherwise, or that takes up a number of the line before, has the usual ones.
 * @param {Piece[]} pieces
 */
export function printed(pieces) {
  const texts = pieces.map((part) => (isValue(part) ? FORMS[part.form](Number(part.value)) : null));
  const last = pieces.length - 1;
  const [sign, result] = [pieces[last - 1], pieces[last]];
  if (!isValue(result) || !isEnd(sign)) return texts;
  const begins = pieces.findLastIndex((part, i) => i < last - 1 && isEnd(part)) + 1;
  const left = pieces.slice(begins, last).map((part, i) => (begins + i === last - 1 ? sign.replace(ENDS, "") : part));
  const places = left.flatMap((part, i) => (isValue(part) ? [begins + i] : []));
  const tokens = left.flatMap(
    (part, i) => /** @type {(string | number)[]} */ (isValue(part) ? [places.indexOf(begins + i)] : symbols(part)),
  );
  const f = parse(tokens);
  if (!f) return texts;
  const found = left.filter(isValue);
  const [values, writes] = [found.map(({ value }) => Number(value)), found.map(({ form }) => FORMS[form])];
  const whole = equation(values, (...all) => f(all), Number(result.value), FORMS[result.form], writes);
  places.forEach((place, i) => (texts[place] = whole.texts[i]));
  texts[last - 1] = sign.replace(ENDS, ` ${whole.sign} `);
  return texts;
}

/**
 * @param {Piece} part
 * @returns {part is Value}
 */
function isValue(part) {
  return typeof part === "object" && "form" in part;
}

/**
 * @param {Piece} part
 * @returns {part is string}
 */
function isEnd(part) {
  return typeof part === "string" && ENDS.test(part);
}

/**
 * What is no number in a line: signs, and words, which no arithmetic has.
 * @param {string | Name} part
 * @returns {string[]}
 */
function symbols(part) {
  return typeof part === "string" ? (part.replace(UNSAID, "").match(/e\^|[()+−×/]|[^\s()+−×/]+/g) ?? []) : [part.text];
}

/**
 * Sums, products and powers of e in `tokens`, of which numbers are places in what the function gets; null for anything else.
 * @param {(string | number)[]} tokens
 */
function parse(tokens) {
  let at = 0;
  /** @returns {Evaluation | null} */
  const factor = () => {
    const token = tokens[at++];
    if (typeof token === "number") return (values) => values[token];
    const inner = token === "e^" ? factor() : token === "(" ? sum() : null;
    if (!inner || (token === "(" && tokens[at++] !== ")")) return null;
    return token === "(" ? inner : (values) => Math.exp(inner(values));
  };
  /**
   * @param {() => Evaluation | null} next
   * @param {Record<string, (a: number, b: number) => number>} signs
   */
  const chain = (next, signs) => {
    let left = next();
    while (left && tokens[at] in signs) {
      const [apply, before, after] = [signs[tokens[at++]], left, next()];
      left = after && ((values) => apply(before(values), after(values)));
    }
    return left;
  };
  /** @returns {Evaluation | null} */
  const sum = () => chain(() => chain(factor, TIMES), PLUS);
  const found = sum();
  return at === tokens.length ? found : null;
}

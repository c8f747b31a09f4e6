// Lines of arithmetic as the engine writes them, with the digits that make what they print true.
import { equation, number, operand, percent } from "../core/format.js";

/** 1.5, not 1.5000 */
const setting = (x, more = 0) => String(Number(x.toPrecision(6 + more)));

export const FORMS = { number, operand, percent, setting };
const TIMES = { "×": (a, b) => a * b, "/": (a, b) => a / b };
const PLUS = { "+": (a, b) => a + b, "−": (a, b) => a - b };
const ENDS = / = $/;
const UNSAID = /… [\d,]+ more|cos|sin/g; // words before a number that is there itself

/**
 * The texts of the numbers in a line, and of a sign that is not =, by their places among its pieces. What stands between the last two signs of equality has the
 * digits with which it gives the result; a line that ends otherwise, or that takes up a number of the line before, has the usual ones.
 */
export function printed(pieces) {
  const texts = pieces.map((part) => (part.form ? FORMS[part.form](Number(part.value)) : null));
  const last = pieces.length - 1;
  if (!texts[last] || !ENDS.test(pieces[last - 1])) return texts;
  const begins = pieces.findLastIndex((part, i) => i < last - 1 && ENDS.test(part)) + 1;
  const left = pieces.slice(begins, last).map((part, i) => (begins + i === last - 1 ? part.replace(ENDS, "") : part));
  const places = left.flatMap((part, i) => (part.form ? [begins + i] : []));
  const f = parse(left.flatMap((part, i) => (part.form ? [places.indexOf(begins + i)] : symbols(part))));
  if (!f) return texts;
  const [values, writes] = [places.map((i) => Number(pieces[i].value)), places.map((i) => FORMS[pieces[i].form])];
  const whole = equation(values, (...all) => f(all), Number(pieces[last].value), FORMS[pieces[last].form], writes);
  places.forEach((place, i) => (texts[place] = whole.texts[i]));
  texts[last - 1] = pieces[last - 1].replace(ENDS, ` ${whole.sign} `);
  return texts;
}

/** What is no number in a line: signs, and words, which no arithmetic has. */
function symbols(part) {
  return typeof part === "string" ? (part.replace(UNSAID, "").match(/e\^|[()+−×/]|[^\s()+−×/]+/g) ?? []) : [part.text];
}

/** Sums, products and powers of e in `tokens`, of which numbers are places in what the function gets; null for anything else. */
function parse(tokens) {
  let at = 0;
  const factor = () => {
    const token = tokens[at++];
    if (typeof token === "number") return (values) => values[token];
    const inner = token === "e^" ? factor() : token === "(" ? sum() : null;
    if (!inner || (token === "(" && tokens[at++] !== ")")) return null;
    return token === "(" ? inner : (values) => Math.exp(inner(values));
  };
  const chain = (next, signs) => {
    let left = next();
    while (left && tokens[at] in signs) {
      const [apply, before, after] = [signs[tokens[at++]], left, next()];
      left = after && ((values) => apply(before(values), after(values)));
    }
    return left;
  };
  const sum = () => chain(() => chain(factor, TIMES), PLUS);
  const found = sum();
  return at === tokens.length ? found : null;
}

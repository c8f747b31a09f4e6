// Numbers as text: one precision everywhere, and never rounded to a lie.

/**
 * A signed value with five significant digits, enough to follow a calculation by hand, or `more`; an exponent where it is tiny.
 * @param {number} x
 */
export function number(x, more = 0) {
  if (Number.isNaN(x)) return "not a number";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const size = Math.abs(x);
  if (size === 0) return "0";
  if (size < 0.00095 || size >= 1e6) return exponent(x, 4 + more);
  return minus(x.toFixed(Math.max(1, 4 + more - Math.floor(Math.log10(size)))));
}

/**
 * A value inside a formula: in parentheses where its sign would follow another.
 * @param {number} x
 */
export function operand(x, more = 0) {
  return x < 0 ? `(${number(x, more)})` : number(x, more);
}

/**
 * What a text of `number`, `operand` or `percent` says.
 * @param {string} text
 */
export function read(text) {
  const value = Number(text.replaceAll("−", "-").replace(/[()%\u00a0]/g, ""));
  return text.endsWith("%") ? value / 100 : value;
}

const MORE = 12; // digits, with which a double is nearly itself

/**
 * A printed equation: `f` of `values` is `result`. Each of `texts` has the digits that make it hold: `f` of what is printed, printed
 * as `result` is, is the same text. Where no digits do, as where the model rounds otherwise, `sign` is ≈. `writes` are the formats
 * of the values, one for all or one each, and `write` that of the result; `digits` are how many more each took.
 * @typedef {(x: number, more?: number) => string} Format
 * @param {number[]} values
 * @param {(...values: number[]) => number} f
 * @param {number} result
 * @param {Format} write
 * @param {Format | Format[]} writes
 */
export function equation(values, f, result, write = number, writes = write) {
  /** @param {number[]} digits */
  const print = (digits) => values.map((value, i) => (Array.isArray(writes) ? writes[i] : writes)(value, digits[i]));
  /** @param {number[]} digits */
  const holds = (digits) => write(f(...print(digits).map(read))) === write(result);
  let digits = values.map(() => 0);
  while (digits[0] < MORE && !holds(digits)) digits = digits.map((more) => more + 1);
  if (!holds(digits)) {
    digits = values.map(() => 0);
    return { texts: print(digits), digits, sign: "≈", result: write(result) };
  }
  const enough = Math.max(0, ...digits);
  for (const i of digits.keys())
    for (let more = 0; more < enough; more++) {
      const fewer = digits.with(i, more);
      if (!holds(fewer)) continue;
      digits = fewer;
      break;
    }
  return { texts: print(digits), digits, sign: "=", result: write(result) };
}

/**
 * A share of 1 as a percentage with three significant digits, or `more`, never parted from its sign.
 * @param {number} p
 */
export function percent(p, more = 0) {
  if (!Number.isFinite(p)) return number(p);
  const share = 100 * p;
  if (share === 0) return "0\u00a0%";
  if (share < 0.001) return `${exponent(share, 1 + more)}\u00a0%`;
  const decimals = share >= 10 ? 1 : share >= 1 ? 2 : share >= 0.1 ? 3 : 4;
  const text = share.toFixed(decimals + more);
  return `${Number(text) === 100 && p < 1 ? share.toPrecision(7 + more) : text}\u00a0%`;
}

/**
 * The distance between two values that should be one: 0, or a power of ten.
 * @param {number} x
 */
export function difference(x) {
  if (!Number.isFinite(x)) return number(x);
  return x === 0 ? "0" : exponent(Math.abs(x), 0);
}

/**
 * @param {number} x
 * @param {number} digits
 */
function exponent(x, digits) {
  const [mantissa, power] = x.toExponential(digits).split("e");
  return `${minus(mantissa)}e${minus(power.replace("+", ""))}`;
}

/** @param {string} text */
function minus(text) {
  return text.replace("-", "−");
}

const DIGITS = "₀₁₂₃₄₅₆₇₈₉";

/**
 * 12 -> ₁₂
 * @param {number} n
 */
export function subscript(n) {
  return String(n).replace(/\d/g, (digit) => DIGITS[Number(digit)]);
}

/**
 * The count and the noun in the number it asks for: "1 block", "1,200 blocks"; `plural` is one that no s makes.
 * @param {number} count
 * @param {string} noun
 */
export function counted(count, noun, plural = `${noun}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? noun : plural}`;
}

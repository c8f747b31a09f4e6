// Numbers as text: one precision everywhere, and never rounded to a lie.

/** A signed value with five significant digits, enough to follow a calculation by hand; an exponent where it is tiny. */
export function number(x) {
  if (Number.isNaN(x)) return "not a number";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const size = Math.abs(x);
  if (size === 0) return "0";
  if (size < 0.00095 || size >= 1e6) return exponent(x, 4);
  return minus(x.toFixed(Math.max(1, 4 - Math.floor(Math.log10(size)))));
}

/** A value inside a formula: in parentheses where its sign would follow another. */
export function operand(x) {
  return x < 0 ? `(${number(x)})` : number(x);
}

/** A share of 1 as a percentage with three significant digits, never parted from its sign. */
export function percent(p) {
  if (!Number.isFinite(p)) return number(p);
  const share = 100 * p;
  if (share === 0) return "0\u00a0%";
  if (share < 0.001) return `${exponent(share, 1)}\u00a0%`;
  const decimals = share >= 10 ? 1 : share >= 1 ? 2 : share >= 0.1 ? 3 : 4;
  const text = share.toFixed(decimals);
  return `${text === "100.0" && p < 1 ? share.toPrecision(7) : text}\u00a0%`;
}

/** The distance between two values that should be one: 0, or a power of ten. */
export function difference(x) {
  if (!Number.isFinite(x)) return number(x);
  return x === 0 ? "0" : exponent(Math.abs(x), 0);
}

function exponent(x, digits) {
  const [mantissa, power] = x.toExponential(digits).split("e");
  return `${minus(mantissa)}e${minus(power.replace("+", ""))}`;
}

function minus(text) {
  return text.replace("-", "−");
}

const DIGITS = "₀₁₂₃₄₅₆₇₈₉";

/** 12 -> ₁₂ */
export function subscript(n) {
  return String(n).replace(/\d/g, (digit) => DIGITS[digit]);
}

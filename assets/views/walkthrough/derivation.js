// What derivations are written in: sums of products, and numbers and names with their colours.
import { number } from "../core/format.js";

const SHOWN = 3; // products written out in a line

export function weighted(a, b, { names, heads, equation, bias = null, scale = 1 }) {
  const products = Array.from(a, (x, i) => scale * x * b[i]);
  const recomputed = sum(products) + (bias ?? 0);
  return {
    terms: { a, b, products, names, heads, bias },
    lines: [[...equation, " = ", strong(number(recomputed))]],
    recomputed,
  };
}

export function written(a, b, products) {
  const parts = [];
  const count = Math.min(SHOWN, products.length);
  for (let i = 0; i < count; i++) parts.push(`${i ? " + " : ""}(${number(a[i])} × ${number(b[i])})`);
  const rest = products.length - count;
  if (rest) parts.push(` + … ${rest} more (${number(sum(products.subarray(count)))})`);
  return parts;
}

export function sum(values, f = (x) => x) {
  let total = 0;
  for (const value of values) total += f(value);
  return total;
}

/** A setting as it was set, 1.5 and not 1.5000; float32 noise is taken off. */
export function plain(x) {
  return String(Number(x.toPrecision(6)));
}

export function colour(text, role) {
  return { text, role };
}

export function strong(text, role) {
  return { text, role, strong: true };
}

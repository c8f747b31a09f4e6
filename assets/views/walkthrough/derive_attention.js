// How an attention's numbers came about: a score, what masks and positions do to it, its share of the row, and the mix of values.
import { colour, plain, strong, sum, weighted, written } from "./derivation.js";
import { number, operand, subscript } from "../core/format.js";

/** What the scores of a hook's attention are made of: the names of its queries and keys, turned and normalised or not. */
function operandsOf(trace, hook) {
  const block = hook.replace(/attn\..*/, "attn.");
  const made = (letter) => ["_rotated", "_norm.out", ""].map((end) => `${block}${letter}${end}`).find((name) => trace.has(name));
  return { block, q: made("q"), k: made("k") };
}

export function score(trace, { hook, pos, unit, head }) {
  const names = operandsOf(trace, hook);
  const q = trace.row(names.q, pos, head);
  const k = trace.row(names.k, unit, head);
  const products = Float64Array.from(q, (x, i) => x * k[i]);
  const dot = sum(products);
  const { scale } = trace.model;
  const recomputed = scale === null ? dot / Math.sqrt(q.length) : dot * scale;
  const by = scale === null ? ` / √${q.length}` : scale === 1 ? "" : ` × ${plain(scale)}`;
  return {
    strips: [
      { label: "q", role: "query", values: q },
      { label: "k", role: "key", values: k },
      { label: "q × k", role: "attention", values: products },
    ],
    lines: [
      [colour("q", "query"), "·", colour("k", "key"), " = ", ...written(q, k, products), " = ", strong(number(dot))],
      by ? ["score = ", number(dot), `${by} = `, strong(number(recomputed))] : ["score = q·k, not divided"],
    ],
    recomputed,
  };
}

/** The score, bent towards ±c where the model caps it. */
export function capped(trace, element) {
  const inner = score(trace, element);
  const c = trace.model.softcap;
  if (c === null) return inner;
  const recomputed = c * Math.tanh(inner.recomputed / c);
  const line = ["capped: ", `${plain(c)} × tanh(${number(inner.recomputed)} / ${plain(c)}) = `, strong(number(recomputed))];
  return { ...inner, lines: [...inner.lines, line], recomputed };
}

/** What a position adds to a score: it depends on the distance alone. */
export async function positioned(trace, { hook, pos, unit, head }) {
  const { weights } = await trace.operands(hook, head, pos - unit);
  const distance = pos - unit;
  const where = distance === 0 ? "the token itself" : `${Math.abs(distance)} ${distance > 0 ? "back" : "ahead"}`;
  const what = trace.model.positions === "alibi" ? "minus the head’s slope times the distance" : "what this head learned for that distance";
  return { lines: [[`distance ${distance}, ${where}: `, what, " = ", strong(number(weights[0]))]], recomputed: weights[0] };
}

export function masked(trace, element) {
  const { hook, pos, unit, head } = element;
  const block = hook.replace(/attn\..*/, "attn.");
  const inner = capped(trace, { ...element, hook: `${block}scores` });
  const allowed = trace.element(`${block}mask`, pos, unit, head);
  const lines = [...inner.lines];
  let value = inner.recomputed;
  if (trace.has(`${block}bias`)) {
    const bias = trace.element(`${block}bias`, pos, unit, head);
    lines.push(["+ position bias ", operand(bias), " = ", strong(number(value + bias))]);
    value += bias;
  }
  if (!allowed) value = -Infinity;
  lines.push(["mask: ", allowed ? "allowed, the score stays" : "not allowed, the score becomes −∞"]);
  if (hook.endsWith(".mask")) return { ...inner, lines, recomputed: allowed ? 1 : 0 };
  return { ...inner, lines, recomputed: value };
}

export function attention(trace, element) {
  const { hook, pos, unit, head } = element;
  const block = hook.replace(/attn\..*/, "attn.");
  const before = masked(trace, { ...element, hook: `${block}masked_scores` });
  const scores = trace.row(`${block}masked_scores`, pos, head);
  const temperature = trace.array(`${block}temperature`).data[head];
  const { exponentials, total, shift } = exponentiate(scores, temperature);
  const recomputed = total ? exponentials[unit] / total : 0;
  const over = temperature === 1 ? "" : ` / ${plain(temperature)}`;
  const exponent = `${number(scores[unit])}${over}${shift ? ` − ${operand(shift)}` : ""}`;
  const line = total
    ? ["pattern = e^(", exponent, ") / Σ e^… = ", number(exponentials[unit]), " / ", number(total), " = ", strong(number(recomputed), "attention")]
    : ["no key is allowed in this row, so the whole row is 0"];
  return {
    ...before,
    lines: [...before.lines, temperature === 1 ? [] : ["attention temperature ", strong(plain(temperature))], line].filter((l) => l.length),
    strips: [...before.strips, { label: `e^${over || shift ? `(s${over ? "/T" : ""}${shift ? "−m" : ""})` : "s"}`, role: "attention", values: exponentials, names: trace.keys(hook), chosen: unit }],
    recomputed,
  };
}

/** e^(s / T - shift) of a row; a shift is taken only where e^s would be too large to read. */
function exponentiate(scores, temperature) {
  const scaled = Array.from(scores, (s) => s / temperature);
  const top = scaled.reduce((a, b) => Math.max(a, b), -Infinity);
  const shift = Math.abs(top) > 20 && Number.isFinite(top) ? top : 0;
  const exponentials = scaled.map((s) => Math.exp(s - shift));
  return { exponentials, total: sum(exponentials), shift };
}

export function mixed(trace, { hook, pos, unit, head }) {
  const block = hook.replace(/attn\..*/, "attn.");
  const weights = trace.row(`${block}pattern`, pos, head);
  const values = Array.from(weights, (_, key) => trace.element(`${block}v`, key, unit, head));
  return weighted(weights, values, {
    names: trace.keys(hook).map((piece, i) => `${piece} ${subscript(i)}`),
    heads: [colour("pattern", "attention"), colour(`v[${unit}]`, "value")],
    equation: [colour("z", "value"), " = Σ ", colour("pattern", "attention"), " × ", colour("v", "value")],
  });
}

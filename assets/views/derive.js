// How one element came about: its operands out of the trace (and the model's weights, asked for once), the steps between,
// the value recomputed in double precision from exactly these operands, and the stored value beside it.
//
// An element is {hook, pos, unit, head}: `unit` indexes the row that trace.block(hook, head) gives.
// A derivation is {lines, strips, terms, recomputed, stored}: what arithmetic.js draws.
import { number, operand, percent, subscript } from "./format.js";

const SHOWN = 3; // products written out in a line

/** Element -> Promise of its derivation. Rejects with the server's sentence where weights cannot be had. */
export async function derive(trace, element) {
  const part = element.hook.replace(/^blocks\.\d+\./, "");
  const [, rule] = RULES.find(([pattern]) => pattern.test(part)) ?? [];
  if (!rule) throw new Error(`no arithmetic is known for ${element.hook}`);
  const derivation = await rule(trace, element, part);
  const stored = element.stored ?? trace.element(element.hook, element.pos, element.unit, element.head);
  return { strips: [], terms: null, stored, ...derivation };
}

/** Whether an element can be derived from what is in the browser already. */
export function isLocal(hook) {
  return /\.(scores|mask|masked_scores|pattern|z|bias|resid_mid|resid_post|resid_pre|mlp\.post)$/.test(hook);
}

const RULES = [
  [/^embed\./, lookup],
  [/^resid_pre$/, entering],
  [/^resid_mid$/, (trace, e) => added(trace, e, "resid_pre", "attn.out")],
  [/^resid_post$/, leaving],
  [/^(norm\d\.out|final_norm\.out)$/, normalised],
  [/^attn\.[qk]_rotated$/, rotated],
  [/^attn\.scores$/, (trace, e) => score(trace, e)],
  [/^attn\.mask$/, masked],
  [/^attn\.masked_scores$/, masked],
  [/^attn\.pattern$/, attention],
  [/^attn\.z$/, mixed],
  [/^mlp\.post$/, activated],
  [/^(attn\.([qkv]|out)|mlp\.(pre|up|out)|logits)$/, projected],
];

function score(trace, { hook, pos, unit, head }) {
  const block = hook.replace(/attn\..*/, "attn.");
  const turned = trace.has(`${block}q_rotated`) ? "_rotated" : "";
  const q = trace.row(`${block}q${turned}`, pos, head);
  const k = trace.row(`${block}k${turned}`, unit, head);
  const products = Float64Array.from(q, (x, i) => x * k[i]);
  const dot = sum(products);
  const recomputed = dot / Math.sqrt(q.length);
  return {
    strips: [
      { label: "q", role: "query", values: q },
      { label: "k", role: "key", values: k },
      { label: "q × k", role: "attention", values: products },
    ],
    lines: [
      [colour("q", "query"), "·", colour("k", "key"), " = ", ...written(q, k, products), " = ", strong(number(dot))],
      ["score = ", number(dot), ` / √${q.length} = `, strong(number(recomputed))],
    ],
    recomputed,
  };
}

function masked(trace, element) {
  const { hook, pos, unit, head } = element;
  const block = hook.replace(/attn\..*/, "attn.");
  const inner = score(trace, { ...element, hook: `${block}scores` });
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

function attention(trace, element) {
  const { hook, pos, unit, head } = element;
  const block = hook.replace(/attn\..*/, "attn.");
  const before = masked(trace, { ...element, hook: `${block}masked_scores` });
  const scores = trace.row(`${block}masked_scores`, pos, head);
  const temperature = trace.arrays[`${block}temperature`].data[head];
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
    strips: [...before.strips, { label: `e^${over || shift ? `(s${over ? "/T" : ""}${shift ? "−m" : ""})` : "s"}`, role: "attention", values: exponentials, names: trace.pieces, chosen: unit }],
    recomputed,
  };
}

/** e^(s / T - shift) of a row; a shift is taken only where e^s would be too large to read. */
export function exponentiate(scores, temperature) {
  const scaled = Array.from(scores, (s) => s / temperature);
  const top = scaled.reduce((a, b) => Math.max(a, b), -Infinity);
  const shift = Math.abs(top) > 20 && Number.isFinite(top) ? top : 0;
  const exponentials = scaled.map((s) => Math.exp(s - shift));
  return { exponentials, total: sum(exponentials), shift };
}

function mixed(trace, { hook, pos, unit, head }) {
  const block = hook.replace(/attn\..*/, "attn.");
  const weights = trace.row(`${block}pattern`, pos, head);
  const values = Array.from(weights, (_, key) => trace.element(`${block}v`, key, unit, head));
  return weighted(weights, values, {
    names: trace.pieces.map((piece, i) => `${piece} ${subscript(i)}`),
    heads: [colour("pattern", "attention"), colour(`v[${unit}]`, "value")],
    equation: [colour("z", "value"), " = Σ ", colour("pattern", "attention"), " × ", colour("v", "value")],
  });
}

async function projected(trace, { hook, pos, unit, head }, part) {
  const width = head === null ? 0 : trace.model.d_head;
  const own = head === null ? 0 : /[kv]$/.test(part) ? trace.keyHead(head) : head;
  const { weights, bias } = await trace.operands(hook, unit + own * width);
  const from = trace.input(hook);
  const inputs = trace.row(from, pos);
  const names = part === "attn.out" ? Array.from(inputs, (_, i) => headed(i, trace.model.d_head)) : null;
  const [x, w] = NAMES[part] ?? ["x", "W"];
  return weighted(inputs, weights, {
    names,
    bias,
    heads: [x, `${w}[·, ${part === "logits" ? (trace.names[unit] ?? unit) : unit}]`],
    equation: [part.replace(/^(attn|mlp)\./, ""), ` = ${x} · ${w}`, bias === null ? "" : " + b"],
  });
}

const NAMES = {
  "attn.q": ["x", "W_Q"],
  "attn.k": ["x", "W_K"],
  "attn.v": ["x", "W_V"],
  "attn.out": ["z", "W_O"],
  "mlp.pre": ["x", "W_in"],
  "mlp.up": ["x", "W_up"],
  "mlp.out": ["h", "W_out"],
  logits: ["x", "W_U"],
};

function weighted(a, b, { names, heads, equation, bias = null }) {
  const products = Array.from(a, (x, i) => x * b[i]);
  const recomputed = sum(products) + (bias ?? 0);
  return {
    terms: { a, b, products, names, heads, bias },
    lines: [[...equation, " = ", strong(number(recomputed))]],
    recomputed,
  };
}

function headed(i, width) {
  return `head ${Math.floor(i / width) + 1}, ${i % width}`;
}

function added(trace, { hook, pos, unit }, left, right) {
  const block = hook.replace(/[^.]+$/, "");
  const out = trace.element(block + right, pos, unit);
  if (!trace.model.residual) {
    return { lines: [[`the residual connection is off: only ${right} = `, strong(number(out))]], recomputed: out };
  }
  const stream = trace.element(block + left, pos, unit);
  const recomputed = stream + out;
  const line = [colour(left, "residual"), " + ", colour(right, right.startsWith("mlp") ? "mlp" : "attention"), " = "];
  return { lines: [[...line, number(stream), " + ", operand(out), " = ", strong(number(recomputed))]], recomputed };
}

function leaving(trace, element) {
  const [, layer] = element.hook.match(/blocks\.(\d+)/);
  if (trace.model.d_mlp) return added(trace, element, trace.read(layer), "mlp.out");
  return copied(trace, element, `blocks.${layer}.${trace.read(layer)}`, "this block has no MLP");
}

function entering(trace, element) {
  const layer = Number(element.hook.match(/blocks\.(\d+)/)[1]);
  const { pos, unit } = element;
  if (layer) return copied(trace, element, trace.after(layer - 1), `what block ${layer} passed on`);
  const token = trace.element("embed.tokens", pos, unit);
  if (!trace.has("embed.positions")) return copied(trace, element, "embed.tokens", "the token's embedding");
  const position = trace.element("embed.positions", pos, unit);
  const recomputed = token + position;
  const line = ["embedding + position = ", number(token), " + ", operand(position), " = ", strong(number(recomputed))];
  return { lines: [line], recomputed };
}

async function copied(trace, { pos, unit }, from, why) {
  const [, layer] = from.match(/blocks\.(\d+)/) ?? [];
  if (layer !== undefined) await trace.fetch(Number(layer));
  const recomputed = trace.element(from, pos, unit);
  return { lines: [[`${why}: `, strong(number(recomputed))]], recomputed };
}

async function lookup(trace, { hook, pos, unit }) {
  const tokens = hook === "embed.tokens";
  const row = tokens ? trace.ids[pos] : pos;
  const { weights } = await trace.operands(hook, unit, row);
  const table = tokens ? "W_E" : "W_P";
  return { lines: [[`row ${row} of ${table}, column ${unit}: `, strong(number(weights[0]))]], recomputed: weights[0] };
}

async function normalised(trace, { hook, pos, unit }) {
  const x = trace.row(trace.input(hook), pos);
  const { weights, bias } = await trace.operands(hook, unit);
  const layered = trace.model.norm === "layer";
  const mean = layered ? sum(x) / x.length : 0;
  const variance = sum(x, (value) => (value - mean) ** 2) / x.length;
  const spread = Math.sqrt(variance + trace.model.eps);
  const recomputed = ((x[unit] - mean) / spread) * weights[0] + (bias ?? 0);
  const centred = layered ? `(${number(x[unit])} − ${operand(mean)})` : number(x[unit]);
  return {
    strips: [{ label: "x", role: "residual", values: x, chosen: unit }],
    lines: [
      layered ? ["mean μ = Σx / ", String(x.length), " = ", number(mean)] : [],
      [`scale = √(${layered ? "variance" : "mean of x²"} + ε) = √(${number(variance)} + ${trace.model.eps}) = `, number(spread)],
      [`weight γ = ${number(weights[0])}`, bias === null ? "" : `, bias β = ${number(bias)}`],
      [layered ? "(x − μ)" : "x", " / scale × γ", bias === null ? "" : " + β", " = "],
      [`${centred} / ${number(spread)} × ${operand(weights[0])}`, bias === null ? "" : ` + ${operand(bias)}`, " = ", strong(number(recomputed))],
    ].filter((line) => line.length),
    recomputed,
  };
}

async function rotated(trace, { hook, pos, unit, head }) {
  const before = trace.row(hook.replace("_rotated", ""), pos, head);
  const half = before.length / 2;
  const { weights: [cos, sin] } = await trace.operands(hook, unit, pos);
  const partner = unit < half ? -before[unit + half] : before[unit - half];
  const recomputed = before[unit] * cos + partner * sin;
  return {
    lines: [
      [`turned with its partner at ${unit < half ? unit + half : unit - half}, by the angle of position ${pos}`],
      [`${number(before[unit])} × cos ${operand(cos)} + ${operand(partner)} × sin ${operand(sin)} = `, strong(number(recomputed))],
    ],
    recomputed,
  };
}

function activated(trace, { hook, pos, unit }) {
  const x = trace.element(hook.replace(".post", ".pre"), pos, unit);
  const { activation, gated } = trace.model;
  const [formula, apply] = ACTIVATIONS[activation];
  const value = apply(x);
  const lines = [[`${activation}(x) = ${formula}`], [`${activation}(${number(x)}) = `, strong(number(value))]];
  if (!gated) return { lines, recomputed: value };
  const up = trace.element(hook.replace(".post", ".up"), pos, unit);
  lines.push([`× up ${operand(up)} = `, strong(number(value * up))]);
  return { lines, recomputed: value * up };
}

const ACTIVATIONS = {
  relu: ["max(0, x)", (x) => Math.max(0, x)],
  gelu: ["x Φ(x)", (x) => (x / 2) * (1 + erf(x / Math.SQRT2))],
  gelu_tanh: ["x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))", (x) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)))],
  silu: ["x / (1 + e^−x)", (x) => x / (1 + Math.exp(-x))],
};

/** The error function by its Maclaurin series, and 1 minus its continued fraction where that converges faster. */
function erf(x) {
  const size = Math.abs(x);
  if (size < 3) {
    let term = size;
    let total = size;
    for (let n = 1; n < 60; n++) total += (term *= (-size * size) / n) / (2 * n + 1);
    return (Math.sign(x) * 2 * total) / Math.sqrt(Math.PI);
  }
  let fraction = 0;
  for (let n = 40; n > 0; n--) fraction = n / 2 / (size + fraction);
  return Math.sign(x) * (1 - Math.exp(-size * size) / ((size + fraction) * Math.sqrt(Math.PI)));
}

/** How one candidate came to its probability at position `pos`: its logit, then the stages of sampling. */
export async function deriveCandidate(trace, pos, index) {
  const at = (name) => trace.arrays[`next.${name}`].data[pos * trace.arrays["next.id"].shape[1] + index];
  const logit = await derive(trace, { hook: "logits", pos, unit: at("id"), head: null, stored: at("logit") });
  const sampled = trace.sampling.temperature > 0 ? warm(trace, pos, logit.recomputed, at("in_top_p")) : greedy(index);
  return { ...logit, strips: [], lines: [...logit.lines, ...sampled.lines], recomputed: sampled.share, stored: at("probability") };
}

function greedy(index) {
  const share = index === 0 ? 1 : 0;
  return { share, lines: [["output temperature 0: the largest logit takes everything, so ", strong(percent(share), "probability")]] };
}

function warm(trace, pos, logit, kept) {
  const of = (name) => trace.arrays[`next.${name}`].data[pos];
  const { temperature, top_k: k, top_p: p } = trace.sampling;
  const { vocab } = trace.model;
  const scaled = logit / temperature;
  const exponential = Math.exp(scaled - of("peak"));
  const share = exponential / of("total");
  const all = of("kept_p") === vocab;
  const cuts = [k ? `top-k ${k}` : "", p < 1 ? `top-p ${plain(p)}` : ""].filter(Boolean).join(" and ");
  const lines = [
    temperature === 1 ? [] : [`÷ output temperature ${plain(temperature)} = `, number(scaled)],
    [
      `softmax: e^(${number(scaled)} − ${operand(of("peak"))}) / Σ over ${vocab} tokens = ${number(exponential)} / ${number(of("total"))} = `,
      all ? strong(percent(share), "probability") : percent(share),
    ],
  ].filter((line) => line.length);
  if (all) return { lines, share };
  const left = `${cuts} keep ${of("kept_p")} tokens holding ${percent(of("kept_share"))}: `;
  const final = kept ? share / of("kept_share") : 0;
  lines.push([left, kept ? `${percent(share)} / ${percent(of("kept_share"))} = ` : "this one is cut, ", strong(percent(final), "probability")]);
  return { lines, share: final };
}

function written(a, b, products) {
  const parts = [];
  const count = Math.min(SHOWN, products.length);
  for (let i = 0; i < count; i++) parts.push(`${i ? " + " : ""}(${number(a[i])} × ${number(b[i])})`);
  const rest = products.length - count;
  if (rest) parts.push(` + … ${rest} more (${number(sum(products.subarray(count)))})`);
  return parts;
}

function sum(values, f = (x) => x) {
  let total = 0;
  for (const value of values) total += f(value);
  return total;
}

/** A setting as it was set, 1.5 and not 1.5000; float32 noise is taken off. */
function plain(x) {
  return String(Number(x.toPrecision(6)));
}

function colour(text, role) {
  return { text, role };
}

function strong(text, role) {
  return { text, role, strong: true };
}

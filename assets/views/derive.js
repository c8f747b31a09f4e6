// How one element came about: its operands out of the trace (and the model's weights, asked for once), the steps between,
// the value recomputed in double precision from exactly these operands, and the stored value beside it.
//
// An element is {hook, pos, unit, head}: `unit` indexes the row that trace.block(hook, head) gives.
// A derivation is {lines, strips, terms, recomputed, stored}: what arithmetic.js draws.
import { number, operand, percent, subscript } from "./format.js";
import { column, noun } from "./outcome.js";

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
  return /\.(scores|capped|mask|masked_scores|pattern|z|bias|resid_mid|resid_cross|resid_post|resid_pre|mlp\.post)$/.test(hook);
}

const RULES = [
  [/^embed\.(tokens|segments|positions|within)$/, lookup],
  [/^logits$/, judged],
  [/^head\.mean$/, averaged],
  [/^embed\.patches$/, patched],
  [/^resid_pre$/, entering],
  [/^resid_mid$/, (trace, e) => added(trace, e, "resid_pre", trace.hooks.includes("norm1_after.out") ? "norm1_after.out" : "attn.out")],
  [/^resid_cross$/, (trace, e) => added(trace, e, trace.normsAfter() ? "norm1.out" : "resid_mid", "cross_attn.out")],
  [/^resid_post$/, leaving],
  [/norm\w*\.out$/, normalised],
  [/attn\.[qk]_rotated$/, rotated],
  [/attn\.scores$/, (trace, e) => score(trace, e)],
  [/attn\.capped$/, (trace, e) => capped(trace, e)],
  [/attn\.bias$/, positioned],
  [/attn\.mask$/, masked],
  [/attn\.masked_scores$/, masked],
  [/attn\.pattern$/, attention],
  [/attn\.z$/, mixed],
  [/^(mlp\.post|head\.post|pooler\.out)$/, activated],
  [/^((cross_)?attn\.([qkv]|out)|mlp\.(pre|up|out)|embed\.mapped|head\.(pre|narrow|cls|distilled)|pooler\.pre|next_sentence)$/, projected],
];

/** What the scores of a hook's attention are made of: the names of its queries and keys, turned and normalised or not. */
function operandsOf(trace, hook) {
  const block = hook.replace(/attn\..*/, "attn.");
  const made = (letter) => ["_rotated", "_norm.out", ""].map((end) => `${block}${letter}${end}`).find((name) => trace.has(name));
  return { block, q: made("q"), k: made("k") };
}

function score(trace, { hook, pos, unit, head }) {
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
function capped(trace, element) {
  const inner = score(trace, element);
  const c = trace.model.softcap;
  if (c === null) return inner;
  const recomputed = c * Math.tanh(inner.recomputed / c);
  const line = ["capped: ", `${plain(c)} × tanh(${number(inner.recomputed)} / ${plain(c)}) = `, strong(number(recomputed))];
  return { ...inner, lines: [...inner.lines, line], recomputed };
}

/** What a position adds to a score: it depends on the distance alone. */
async function positioned(trace, { hook, pos, unit, head }) {
  const { weights } = await trace.operands(hook, head, pos - unit);
  const distance = pos - unit;
  const where = distance === 0 ? "the token itself" : `${Math.abs(distance)} ${distance > 0 ? "back" : "ahead"}`;
  const what = trace.model.positions === "alibi" ? "minus the head’s slope times the distance" : "what this head learned for that distance";
  return { lines: [[`distance ${distance}, ${where}: `, what, " = ", strong(number(weights[0]))]], recomputed: weights[0] };
}

function masked(trace, element) {
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

function attention(trace, element) {
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
    names: trace.keys(hook).map((piece, i) => `${piece} ${subscript(i)}`),
    heads: [colour("pattern", "attention"), colour(`v[${unit}]`, "value")],
    equation: [colour("z", "value"), " = Σ ", colour("pattern", "attention"), " × ", colour("v", "value")],
  });
}

async function projected(trace, { hook, pos, unit, head }, part) {
  const width = head === null ? 0 : trace.model.d_head;
  const own = head === null ? 0 : /[kv]$/.test(part) ? trace.keyHead(head) : head;
  const { weights, bias } = await trace.operands(hook, unit + own * width);
  const from = trace.input(hook);
  const inputs = trace.row(from, trace.origin(hook, pos));
  const names = part.endsWith("attn.out") ? Array.from(inputs, (_, i) => headed(i, trace.model.d_head)) : null;
  const [x, w] = NAMES[part.replace("cross_", "")] ?? ["x", "W"];
  const { head_scale: scale, head_softcap: cap } = trace.model;
  const made = weighted(inputs, weights, {
    names,
    bias,
    scale: part === "logits" ? scale : 1,
    heads: [x, `${w}[·, ${column(trace, part, unit)}]`],
    equation: [part.replace(/^(cross_attn|attn|mlp|head|pooler|embed)\./, ""), ` = ${part === "logits" && scale !== 1 ? `${Number(scale.toPrecision(4))} · ` : ""}${x} · ${w}`, bias === null ? "" : " + b"],
  });
  if (part !== "logits" || cap === null) return made;
  const recomputed = cap * Math.tanh(made.recomputed / cap);
  const line = ["capped: ", `${plain(cap)} × tanh(${number(made.recomputed)} / ${plain(cap)}) = `, strong(number(recomputed))];
  return { ...made, lines: [...made.lines, line], recomputed };
}

/** A logit: a row of weights, or the mean of what two heads say. */
async function judged(trace, element, part) {
  if (!trace.model.averaged) return projected(trace, element, part);
  const both = ["head.cls", "head.distilled"].map((name) => trace.element(name, 0, element.unit));
  const recomputed = (both[0] + both[1]) / 2;
  const line = [`mean of what ${trace.pieces[0]} and ${trace.pieces[1]} say: (${number(both[0])} + ${operand(both[1])}) / 2 = `, strong(number(recomputed))];
  return { lines: [line], recomputed };
}

/** One component of the stream, the mean over all positions. */
function averaged(trace, { hook, unit }) {
  const from = trace.input(hook);
  const values = Float64Array.from({ length: trace.length }, (_, pos) => trace.element(from, pos, unit));
  const total = sum(values);
  const recomputed = total / values.length;
  return {
    strips: [{ label: `x[·, ${unit}]`, role: "residual", values, names: trace.pieces }],
    lines: [[`mean of ${values.length} positions: Σ x / ${values.length} = ${number(total)} / ${values.length} = `, strong(number(recomputed))]],
    recomputed,
  };
}

/** A patch's pixels through their weights; what stands before the patches are vectors of their own. */
async function patched(trace, { hook, pos, unit }) {
  const { weights, bias } = await trace.operands(hook, unit, pos);
  const before = trace.grid.offset;
  if (pos < before) return { lines: [[`${trace.pieces[pos]} is a learned vector; its column ${unit}: `, strong(number(weights[0]))]], recomputed: weights[0] };
  return weighted(trace.row(trace.input(hook), pos - before), weights, {
    names: null,
    bias,
    heads: ["pixel", `W[·, ${unit}]`],
    equation: ["embedding = pixels · W + b"],
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

function weighted(a, b, { names, heads, equation, bias = null, scale = 1 }) {
  const products = Array.from(a, (x, i) => scale * x * b[i]);
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
  if (!trace.model.d_mlp) return copied(trace, element, `blocks.${layer}.${trace.read(layer)}`, "this block has no MLP");
  if (trace.beside()) return both(trace, element);
  return added(trace, element, trace.read(layer), trace.hooks.includes("norm2_after.out") ? "norm2_after.out" : "mlp.out");
}

/** Attention and MLP side by side: both outputs are added to the stream that both have read. */
function both(trace, { hook, pos, unit }) {
  const block = hook.replace(/[^.]+$/, "");
  const values = ["resid_pre", "attn.out", "mlp.out"].map((part) => trace.element(block + part, pos, unit));
  const terms = trace.model.residual ? values : values.slice(1);
  const recomputed = sum(terms);
  const [first, ...others] = terms;
  const names = trace.model.residual ? [colour("resid_pre", "residual"), " + "] : [];
  const line = [...names, colour("attn.out", "attention"), " + ", colour("mlp.out", "mlp"), " = ", number(first)];
  return { lines: [[...line, ...others.map((x) => ` + ${operand(x)}`), " = ", strong(number(recomputed))]], recomputed };
}

async function entering(trace, element) {
  const layer = Number(element.hook.match(/blocks\.(\d+)/)[1]);
  const { pos, unit } = element;
  if (layer) return copied(trace, element, trace.after(layer - 1), `what block ${layer} passed on`);
  if (trace.model.mapped === "all") return copied(trace, element, "embed.mapped", "the embedding, as wide as the stream");
  if (trace.has("embed.norm.out")) return copied(trace, element, "embed.norm.out", "the embedding behind its norm");
  const parts = trace.parts();
  if (parts.length === 1) return copied(trace, element, parts[0], parts[0] === "embed.patches" ? "the patch’s embedding" : "the token’s embedding");
  const values = parts.map((name) => trace.element(name, pos, unit));
  const recomputed = sum(values);
  const named = parts.map((name) => WHAT[name]).join(" + ");
  const [first, ...others] = values;
  return { lines: [[`${named} = `, number(first), ...others.map((x) => ` + ${operand(x)}`), " = ", strong(number(recomputed))]], recomputed };
}

const WHAT = {
  "embed.tokens": "embedding",
  "embed.mapped": "embedding, mapped",
  "embed.patches": "patch",
  "embed.segments": "segment",
  "embed.positions": "position",
  "embed.within": "place in the span",
};

async function copied(trace, { pos, unit }, from, why) {
  const [, layer] = from.match(/blocks\.(\d+)/) ?? [];
  if (layer !== undefined) await trace.fetch(Number(layer));
  const recomputed = trace.element(from, pos, unit);
  return { lines: [[`${why}: `, strong(number(recomputed))]], recomputed };
}

async function lookup(trace, { hook, pos, unit }) {
  const two = trace.positions.length > 0;
  const [row, table] = {
    "embed.tokens": [trace.ids[pos], "W_E"],
    "embed.segments": [trace.segments[pos] ?? 0, "W_S"],
    "embed.positions": [two ? trace.positions[0][pos] : pos, "W_P"],
    "embed.within": [two ? trace.positions[1][pos] : pos, "W_B"],
  }[hook];
  const { weights } = await trace.operands(hook, unit, row);
  const scale = hook === "embed.tokens" ? trace.model.embed_scale : 1;
  const recomputed = weights[0] * scale;
  const line = [`row ${row} of ${table}, column ${unit}: `, strong(number(weights[0]))];
  return { lines: [scale === 1 ? line : [...line, ` × ${Number(scale.toPrecision(6))} = `, strong(number(recomputed))]], recomputed };
}

async function normalised(trace, { hook, pos, unit, head = null }) {
  const x = trace.row(trace.input(hook), pos, head);
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
  const plainly = hook.replace("_rotated", "");
  const before = trace.row(trace.has(`${plainly}_norm.out`) ? `${plainly}_norm.out` : plainly, pos, head);
  const { axes, turned, pairs } = trace.model;
  const start = axes === 2 && unit >= before.length / 2 ? before.length / 2 : 0; // the half that the second position turns
  const at = unit - start;
  if (at >= turned) return { lines: [["this component is not turned: ", strong(number(before[unit]))]], recomputed: before[unit] };
  const position = axes === 2 ? trace.positions[start ? 1 : 0][pos] : pos;
  const { weights: [cos, sin] } = await trace.operands(hook, at, position);
  const first = pairs === "neighbours" ? at % 2 === 0 : at < turned / 2;
  const step = pairs === "neighbours" ? 1 : turned / 2;
  const other = unit + (first ? step : -step);
  const partner = first ? -before[other] : before[other];
  const recomputed = before[unit] * cos + partner * sin;
  return {
    lines: [
      [`turned with its partner at ${other}, by the angle of position ${position}${start ? " in the span" : ""}`],
      [`${number(before[unit])} × cos ${operand(cos)} + ${operand(partner)} × sin ${operand(sin)} = `, strong(number(recomputed))],
    ],
    recomputed,
  };
}

function activated(trace, { hook, pos, unit }, part) {
  const before = hook.replace(/\.(post|out)$/, ".pre");
  const x = trace.element(before, pos, unit);
  const { gated } = trace.model;
  const activation = { "head.post": trace.model.head_activation, "pooler.out": trace.model.pooler_activation }[part] ?? trace.model.activation;
  const [formula, apply] = ACTIVATIONS[activation];
  const value = apply(x);
  const lines = [[`${activation}(x) = ${formula}`], [`${activation}(${number(x)}) = `, strong(number(value))]];
  if (!gated || part !== "mlp.post") return { lines, recomputed: value };
  const up = trace.element(hook.replace(".post", ".up"), pos, unit);
  lines.push([`× up ${operand(up)} = `, strong(number(value * up))]);
  return { lines, recomputed: value * up };
}

const ACTIVATIONS = {
  relu: ["max(0, x)", (x) => Math.max(0, x)],
  gelu: ["x Φ(x)", (x) => (x / 2) * (1 + erf(x / Math.SQRT2))],
  gelu_tanh: ["x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))", (x) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)))],
  quick_gelu: ["x / (1 + e^−1.702x)", (x) => x / (1 + Math.exp(-1.702 * x))],
  silu: ["x / (1 + e^−x)", (x) => x / (1 + Math.exp(-x))],
  tanh: ["(e^x − e^−x) / (e^x + e^−x)", Math.tanh],
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

/** How one candidate of a list came to its probability at position `row`: its logit, then the stages of sampling. */
export async function deriveCandidate(trace, row, { candidate: index, list = 0 }) {
  const pos = trace.outcomeRow(row, list);
  const at = (name) => trace.arrays[`next.${name}`].data[pos * trace.arrays["next.id"].shape[1] + index];
  const [place, unit] = trace.reads === "answer" ? [at("id"), list] : [pos, at("id")];
  const logit = await derive(trace, { hook: "logits", pos: place, unit, head: null, stored: at("logit") });
  if (trace.link === "identity") return { ...logit, strips: [] };
  const sampled = trace.link === "logistic" ? logistic(trace, logit.recomputed) : trace.sampling.temperature > 0 ? warm(trace, pos, logit.recomputed, at("in_top_p")) : greedy(index);
  return { ...logit, strips: [], lines: [...logit.lines, ...sampled.lines], recomputed: sampled.share, stored: at("probability") };
}

/** One class, which holds or does not. */
function logistic(trace, logit) {
  const { temperature } = trace.sampling;
  const scaled = temperature ? logit / temperature : Math.sign(logit) * Infinity || 0;
  const share = 1 / (1 + Math.exp(-scaled));
  const lines = [temperature === 1 ? [] : [`÷ output temperature ${plain(temperature)} = `, number(scaled)], [`1 / (1 + e^−(${number(scaled)})) = `, strong(percent(share), "probability")]];
  return { share, lines: lines.filter((line) => line.length) };
}

function greedy(index) {
  const share = index === 0 ? 1 : 0;
  return { share, lines: [["output temperature 0: the largest logit takes everything, so ", strong(percent(share), "probability")]] };
}

function warm(trace, pos, logit, kept) {
  const of = (name) => trace.arrays[`next.${name}`].data[pos];
  const { temperature, top_k: k, top_p: p } = trace.sampling;
  const { count } = trace;
  const scaled = logit / temperature;
  const exponential = Math.exp(scaled - of("peak"));
  const share = exponential / of("total");
  const all = of("kept_p") === count;
  const cuts = [k ? `top-k ${k}` : "", p < 1 ? `top-p ${plain(p)}` : ""].filter(Boolean).join(" and ");
  const lines = [
    temperature === 1 ? [] : [`÷ output temperature ${plain(temperature)} = `, number(scaled)],
    [
      `softmax: e^(${number(scaled)} − ${operand(of("peak"))}) / Σ over ${count} ${noun(trace)} = ${number(exponential)} / ${number(of("total"))} = `,
      all ? strong(percent(share), "probability") : percent(share),
    ],
  ].filter((line) => line.length);
  if (all) return { lines, share };
  const left = `${cuts} keep ${of("kept_p")} ${noun(trace)} holding ${percent(of("kept_share"))}: `;
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

// How one element came about: its operands out of the trace (and the model's weights, asked for once), the steps between,
// the value recomputed in double precision from exactly these operands, and the stored value beside it.
//
// An element is {hook, pos, unit, head}: `unit` indexes the row that trace.block(hook, head) gives.
// A derivation is {lines, strips, terms, recomputed, stored}: what arithmetic.js draws.
import { ACTIVATIONS } from "./activations.js";
import { colour, plain, strong, sum, weighted } from "./derivation.js";
import { attention, capped, masked, mixed, positioned, score } from "./derive_attention.js";
import { number, operand } from "../core/format.js";
import { column } from "./outcome.js";

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

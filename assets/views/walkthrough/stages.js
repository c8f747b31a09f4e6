// The flow, as a table: which stages a stack has, in their order, and which panels each shows closed and open.
//
// A panel is {hook, kind: "strip" | "matrix", role, scale?, title?, weight, least}: `weight` shares out the spare width and
// `least` is what it never goes below, in CSS pixels. `{l}` in a hook is the block that is looked at.
import { counted } from "../core/format.js";

/**
 * @param {string} hook
 * @param {string} role
 * @param {Partial<Panel>} [more]
 * @returns {Panel}
 */
const strip = (hook, role, more = {}) => ({
  hook,
  kind: "strip",
  role,
  scale: "signed",
  weight: 1,
  least: 31,
  ...more,
});
/**
 * @param {string} hook
 * @param {string} role
 * @param {Scale} scale
 * @param {Partial<Panel>} more
 * @returns {Panel}
 */
const matrix = (hook, role, scale, more) => /** @type {Panel} */ ({ hook, kind: "matrix", role, scale, ...more }); // an open one needs no weight
/**
 * @param {Panel} panel
 * @param {string} title
 * @returns {Panel}
 */
const wide = (panel, title) => ({ ...panel, title, open: true });

/**
 * @typedef {import("../core/trace.js").Trace} Trace
 * @typedef {import("../core/trace.js").Model} Model
 * @typedef {import("../core/trace.js").Experts} Experts
 * @typedef {"attn" | "cross_attn"} Attention
 * @typedef {{ hook: string, kind: "strip" | "matrix", role: string, scale: Scale, title?: string, formula?: string, weight: number, least: number,
 *   open?: boolean, flat?: boolean, labels?: boolean, width?: number, rows?: { pitch: number, height: number }, source?: boolean }} Panel
 * @typedef {{ id: string, group: "in" | "block" | "out", title: string, name: string, formula: string, role: string, closed: Panel[], open: Panel[],
 *   joint: string, lines?: boolean, focus?: Attention }} Stage
 * @typedef {(part: string) => boolean} Has whether a block has a hook
 */

/** @type {Record<string, string>} */
const NAMES = {
  mean: "mean of all positions",
  embed: "embedding",
  pos: "position",
  segm: "segment",
  pair: "whether the second text follows",
  resid: "residual stream",
  vector: "vector of the text",
  mask: "mask: who may look at whom",
  z: "mixed values (z)",
  W_O: "the heads joined",
};
/** @type {Record<string, string>} how the vector of a text is pooled */
const SHORT = {
  first: "first",
  last: "last",
  mean: "mean",
  max: "max",
  weighted_mean: "weighted",
  scaled_sum: "sum / √n",
};
/** @type {Record<string, string>} the same in a sentence */
const POOLED = {
  first: "the vector of the first position",
  last: "the vector of the last position",
  mean: "the mean of the last vectors of all positions",
  max: "the greatest number of all positions, component by component",
  weighted_mean: "a mean of the last vectors in which the n-th counts n times",
  scaled_sum: "the sum of the last vectors, divided by √n",
};
/** @type {Record<string, string>} what disentangled positions add to a score, by its hook */
const TERMS = { c2p: "query · distance", p2c: "key · distance" };
const BLOCK = "blocks.{l}.";
const COMPRESSED = { q: "queries", k: "keys", v: "keys" }; // what each is made of in latent attention

/**
 * [{id, group: "in" | "block" | "out", title, formula, role, closed: [panel], open: [panel], joint}] for a trace.
 *
 * Of two attentions in a block, `focus` ("attn" or "cross_attn") is the one shown step by step; the other is its pattern alone.
 * `layer` is the block that is looked at: what it turns by positions, another may not.
 * @param {Trace} trace
 * @param {string} focus
 * @param {number} layer
 * @returns {Stage[]}
 */
export function stages(trace, focus, layer) {
  return [...entering(trace), ...block(trace, focus, layer), ...leaving(trace)].filter((one) => !!one);
}

/**
 * The stage that shows a cell, and which of its panels, either null where nothing does.
 * @param {Stage[]} list
 * @param {import("./arithmetic.js").Cell | null} cell
 * @returns {{ stage: Stage | null, panel: Panel | null }}
 */
export function stageOf(list, cell) {
  if (!cell?.hook) return { stage: null, panel: null };
  /** @param {Panel} panel */
  const shows = (panel) => panel.hook === cell.hook;
  const stage = list.find((one) => one.closed.some(shows) || one.open.some(shows)) ?? null;
  return { stage, panel: stage && ([...stage.closed, ...stage.open].find(shows) ?? null) };
}

/** @param {Trace} trace */
function entering(trace) {
  const { model } = trace;
  const scale = model.embed_scale === 1 ? "" : Number(model.embed_scale.toPrecision(3));
  const read = scale ? `W_E·${scale}` : model.token_dropout ? "W_E[id]·f" : "W_E[id]";
  /**
   * @param {string} id
   * @param {string} title
   * @param {string} formula
   * @param {string} hook
   * @param {string} joint
   */
  const one = (id, title, formula, hook, joint) =>
    trace.has(hook) && stage(id, title, formula, "residual", [strip(hook, "residual")], { group: "in", joint });
  const learned = model.positions === "sinusoidal" ? "sin, cos" : "W_P[i]";
  /**
   * @param {string} when
   * @param {string} joint
   */
  const map = (when, joint) => model.mapped === when && one("embed_map", "map", "x · W", "embed.mapped", joint);
  return [
    one("embed", "embed", read, "embed.tokens", ""),
    trace.has("embed.patches") &&
      stage("patches", "embed", "pixels · W", "residual", [strip("embed.patches", "residual", { least: 42 })], {
        group: "in",
      }),
    map("tokens", "→"),
    one("segments", "segm", "W_S[s]", "embed.segments", "+"),
    one("position", "pos", learned, "embed.positions", "+"),
    one("within", "in span", "W_B[j]", "embed.within", "+"),
    one("embed_norm", "norm", normFormula(model), "embed.norm.out", "="),
    map("all", "→"),
  ];
}

/**
 * @param {Trace} trace
 * @param {string} focus
 * @param {number} layer
 */
function block(trace, focus, layer) {
  const { model } = trace;
  /** @param {string} part */
  const has = (part) =>
    trace.hooks.includes(part) &&
    (turned(model, layer) || !part.endsWith("_rotated")) &&
    (model.first_norm || layer > 0 || !part.startsWith("norm1."));
  const before = model.norm_place !== "after";
  /** @param {string} id */
  const norm = (id, title = "norm") =>
    has(`${id}.out`) && stage(id, title, normFormula(model), "residual", [strip(`${BLOCK}${id}.out`, "residual")]);
  /**
   * @param {string} id
   * @param {string} formula
   * @param {...string} added
   */
  const resid = (id, formula, ...added) =>
    has(id) &&
    stage(id, "resid", formula, "residual", [strip(`${BLOCK}${id}`, "residual")], {
      joint: model.residual ? "+" : "",
      open: [...added.filter(has), id].map((part) =>
        wide(strip(`${BLOCK}${part}`, "residual"), part === id ? "resid" : "added"),
      ),
    });
  const sign = model.residual ? "+" : "=";
  const by = times(model);
  /** @param {Attention} kind */
  const attentions = (kind) => (model.crosses && kind !== focus ? [condensed(kind)] : full(trace, kind, has));
  return [
    stage("resid_pre", "resid", "x", "residual", [strip(`${BLOCK}resid_pre`, "residual")], { joint: "=" }),
    before && norm("norm1"),
    ...attentions("attn"),
    norm("norm1_after"),
    resid("resid_mid", `${sign} ${by}attn`, "added1"),
    !before && norm("norm1"),
    ...(model.crosses
      ? [
          before && norm("norm_cross"),
          ...attentions("cross_attn"),
          resid("resid_cross", `${sign} ${by}src`, "added_cross"),
          !before && norm("norm_cross"),
        ]
      : []),
    before && norm("norm2"),
    ...(model.d_mlp
      ? [
          ...(trace.isRouted(layer) ? [router(model), experts(model, has)] : [mlp(model, has)]),
          norm("norm2_after"),
          resid(
            "resid_post",
            trace.beside() ? `${sign} ${by}attn ${sign} ${by}mlp` : `${sign} ${by}mlp`,
            ...(trace.beside() ? ["added1", "added2"] : ["added2"]),
          ),
        ]
      : []),
    !before && norm("norm2"),
  ];
}

/**
 * One attention, step by step.
 * @param {Trace} trace
 * @param {Attention} kind
 * @param {Has} has
 */
function full(trace, kind, has) {
  const { model } = trace;
  const at = `${BLOCK}${kind}.`;
  const crosses = kind === "cross_attn";
  /**
   * @param {"q" | "k" | "v"} letter
   * @param {string} title
   * @param {string} role
   */
  const projection = (letter, title, role) => {
    const made = has(`${kind}.${letter}_rotated`)
      ? `${letter}_rotated`
      : has(`${kind}.${letter}_norm.out`)
        ? `${letter}_norm.out`
        : null;
    const formula = `x W_${letter.toUpperCase()}${model.bias ? " + b" : ""}`;
    return stage(letter, title, formula, role, [strip(`${at}${letter}`, role)], {
      open: [
        has(`${kind}.latent.${COMPRESSED[letter]}`) &&
          wide(strip(`${at}latent.${COMPRESSED[letter]}`, role), "compressed"),
        wide(strip(`${at}${letter}`, role), title),
        has(`${kind}.${letter}_norm.out`) && wide(strip(`${at}${letter}_norm.out`, role), "normalised"),
        made?.endsWith("rotated") && wide(strip(`${at}${made}`, role), "rotated"),
      ],
    });
  };
  return [
    projection("q", "query", "query"),
    ...(crosses ? [] : [projection("k", "key", "key"), projection("v", "value", "value")]), // the source's stand beside it
    attention(at, model, has, kind),
    stage("z", "z", "Σ p · v", "value", [strip(`${at}z`, "value")], { lines: !crosses }),
    stage("out", "W_O", "joined", "attention", [strip(`${at}out`, "attention")], {
      open: [
        wide(strip(`${at}z`, "value", { flat: true }), "z of all heads"),
        wide(strip(`${at}out`, "attention"), "attention out"),
      ],
    }),
  ];
}

/**
 * The attention that is not in focus: its pattern, which a click brings into focus.
 * @param {Attention} kind
 */
function condensed(kind) {
  const crosses = kind === "cross_attn";
  const pattern = matrix(`${BLOCK}${kind}.pattern`, "attention", "unit", { weight: 1.2, least: 62, labels: true });
  const title = crosses ? "cross" : "self";
  return {
    ...stage(kind, title, crosses ? "to the source" : "to itself", "attention", [pattern]),
    name: `${title}-attention`,
    focus: kind,
  };
}

/**
 * @param {string} at
 * @param {Model} model
 * @param {Has} has
 * @param {Attention} kind
 */
function attention(at, model, has, kind) {
  const root =
    model.scale === null ? ` / ${divisor(model)}` : model.scale === 1 ? "" : ` · ${Number(model.scale.toPrecision(3))}`;
  const bias = has(`${kind}.bias`);
  const terms = Object.entries(TERMS).filter(([term]) => has(`${kind}.${term}`));
  const scores = matrix(`${at}scores`, "attention", "signed", {
    title: "scores",
    formula: `q·k${root}`,
    weight: 2.2,
    least: 56,
  });
  const mask = matrix(`${at}mask`, "soft", "mask", { title: "mask", formula: "0, −∞", weight: 1, least: 33 });
  const pattern = matrix(`${at}pattern`, "attention", "unit", {
    title: "pattern",
    formula: "softmax",
    weight: 4.4,
    least: 120,
    labels: true,
  });
  const masked = matrix(`${at}masked_scores`, "attention", "signed", {
    title: `scores${bias ? " + bias" : ""}${terms.map(([term]) => ` + ${term}`).join("")}, masked`,
    open: true,
  });
  const capped = has(`${kind}.capped`) && matrix(`${at}capped`, "attention", "signed", { title: "capped", open: true });
  const added = bias && matrix(`${at}bias`, "attention", "signed", { title: "position bias", open: true });
  const ofDistances = terms.map(([term, title]) =>
    matrix(`${at}${term}`, "attention", "signed", { title, open: true }),
  );
  const name = kind === "cross_attn" ? "cross-attention" : "attention";
  return {
    ...stage("attention", name, "", "attention", [scores, mask, pattern]),
    open: [scores, capped, added, ...ofDistances, mask, masked, pattern]
      .filter((panel) => !!panel)
      .map((panel) => ({ ...panel, open: true, labels: true })),
  };
}

/**
 * @param {Model} model
 * @param {Has} has
 */
function mlp(model, has) {
  return stage("mlp", "MLP", `via ${model.d_mlp}`, "mlp", [strip(`${BLOCK}mlp.out`, "mlp", { weight: 1.15 })], {
    open: [
      wide(strip(`${BLOCK}mlp.pre`, "mlp"), "before activation"),
      has("mlp.up") && wide(strip(`${BLOCK}mlp.up`, "mlp"), "gate’s other side"),
      wide(strip(`${BLOCK}mlp.post`, "mlp"), `after ${model.activation}`),
      wide(strip(`${BLOCK}mlp.out`, "mlp"), "MLP out"),
    ],
  });
}

/**
 * Which experts each token is sent to, and with what weight.
 * @param {Model} model
 */
function router(model) {
  const { count, used } = /** @type {Experts} */ (model.experts);
  const at = `${BLOCK}mlp.router.`;
  const probs = strip(`${at}probs`, "mlp", { scale: "unit", least: 42 });
  return stage("router", "router", `${used} of ${count}`, "mlp", [probs], {
    open: [
      wide(strip(`${at}logits`, "mlp"), "logits"),
      wide(probs, "probabilities"),
      wide(strip(`${at}chosen`, "soft"), "chosen"),
      wide(strip(`${at}weights`, "mlp", { scale: "unit" }), "weights"),
    ],
  });
}

/**
 * @param {Model} model
 * @param {Has} has
 */
function experts(model, has) {
  const at = `${BLOCK}mlp.`;
  /**
   * @param {string} hook
   * @param {string} title
   */
  const inside = (hook, title) => has(`mlp.${hook}`) && wide(strip(`${at}${hook}`, "mlp", { flat: true }), title);
  return stage("experts", "experts", "Σ w E(x)", "mlp", [strip(`${at}out`, "mlp", { weight: 1.15 })], {
    open: [
      inside("experts.pre", "before activation"),
      inside("experts.up", "gate’s other side"),
      inside("experts.post", `after ${model.activation}`),
      inside("shared.post", "shared, inside"),
      inside("shared.out", "shared out"),
      wide(strip(`${at}out`, "mlp"), "added up"),
    ],
  });
}

/** @param {Trace} trace */
function leaving(trace) {
  /** @type {(id: string, title: string, formula: string, hook: string, role?: string, options?: { least?: number, open?: (Panel | false | undefined)[] }) => Stage | false} */
  const out = (id, title, formula, hook, role = "residual", { least = 31, ...more } = {}) =>
    trace.has(hook) && stage(id, title, formula, role, [strip(hook, role, { least })], { group: "out", ...more });
  const narrow = out("narrow", "map", "x · W", "head.narrow");
  const list = [out("final_norm", "norm", "final", "final_norm.out")];
  const { vector } = trace.model;
  const gathered = trace.has("vector.pooled") && wide(strip("vector.pooled", "residual"), "pooled");
  const maps = (vector?.maps ?? []).flatMap(({ activation }, at) => [
    trace.has(`vector.maps.${at}.pre`) && wide(strip(`vector.maps.${at}.pre`, "residual"), `map ${at + 1}`),
    wide(strip(`vector.maps.${at}.out`, "residual"), activation === "identity" ? `map ${at + 1}` : activation),
  ]);
  const whole = out(
    "vector",
    "vector",
    vector?.pooled.map((kind) => SHORT[kind]).join(", ") ?? "",
    "vector.out",
    "probability",
    {
      least: 52,
      open: [gathered, ...maps, wide(strip("vector.out", "probability"), vector?.unit ? "length 1" : "vector")],
    },
  );
  if (!trace.reads) return [...list, narrow, whole];
  const { head_activation: activation, pooler_activation: pooled } = trace.model;
  /**
   * @param {string} prefix
   * @param {[part: string, title: string][]} names
   */
  const steps = (prefix, names) =>
    names.map(([part, title]) => trace.has(`${prefix}${part}`) && wide(strip(`${prefix}${part}`, "residual"), title));
  const pooler = steps("pooler.", [
    ["pre", `${trace.pieces[trace.speaker()]}, dense`],
    ["out", pooled],
  ]);
  const normed = trace.has("head.norm.out");
  return [
    ...list,
    out("mean", "mean", "of all", "head.mean"),
    narrow,
    out("transform", "head", "dense", normed ? "head.norm.out" : "head.post", "residual", {
      open: steps("head.", [
        ["pre", "dense"],
        ["post", activation],
        ["norm.out", "norm"],
      ]),
    }),
    trace.has("next_sentence")
      ? out("follows", "pair", "yes, no", "next_sentence", "probability", {
          least: 40,
          open: [...pooler, wide(strip("next_sentence", "probability"), "yes, no")],
        })
      : out("pooler", "pooler", pooled, "pooler.out", "residual", { open: pooler }),
    out("cls", trace.pieces[0], "logits", "head.cls", "probability", { least: 40 }),
    out("distilled", trace.pieces[1], "logits", "head.distilled", "probability", { least: 40 }),
    out(
      "logits",
      "logits",
      trace.reads === "answer" ? "start, end" : trace.count > 1 ? "classes" : "",
      "logits",
      "probability",
      { least: 52 },
    ),
    whole,
  ];
}

/** @param {Model} model */
function normFormula(model) {
  return { rms: "RMS(x)", batch: "BN(x)" }[model.norm] ?? "LN(x)";
}

/**
 * The keys and values that cross-attention makes of the source: rows are the source's, so they stand beside its tokens.
 * @param {number} width
 * @param {{ pitch: number, height: number }} rows
 */
export function sources(width, rows) {
  /**
   * @param {string} letter
   * @param {string} role
   * @param {string} title
   */
  const panel = (letter, role, title) =>
    strip(`${BLOCK}cross_attn.${letter}`, role, { title, width, rows, source: true });
  return [panel("k", "key", "key"), panel("v", "value", "value")];
}

/**
 * @param {string} id
 * @param {string} title
 * @param {string} formula
 * @param {string} role
 * @param {Panel[]} closed
 * @param {{ group?: Stage["group"], open?: (Panel | false | undefined)[], joint?: string, lines?: boolean }} [options]
 * @returns {Stage}
 */
function stage(id, title, formula, role, closed, { group = "block", open, ...more } = {}) {
  const opened = (open ?? closed.map((panel) => wide(panel, title))).filter((panel) => !!panel);
  return { id, group, title, name: NAMES[title] ?? title, formula, role, closed, open: opened, joint: "", ...more };
}

// --- what a stage does, in two sentences and a formula ------------------------------------------------------------------

/** @typedef {{ formula: string, text: string }} About */

/**
 * What the stage `id` computes: its formula and two sentences. `hook` is that of the panel that is looked at, where a stage
 * has several steps, and `layer` the block.
 * @param {Trace} trace
 * @param {string} id
 * @param {string} hook
 * @param {number} layer
 * @returns {About}
 */
export function about(trace, id, hook, layer) {
  const { model } = trace;
  const step = id === "attention" ? ATTENTION_STEPS[hook.split(".").at(-1) ?? ""] : null;
  return (step ?? ABOUT[id])(model, trace, layer);
}

/** @param {Model} model */
const times = (model) =>
  model.layer_scale ? "λ · " : model.residual_scale === 1 ? "" : `${+model.residual_scale.toPrecision(3)} · `;
/**
 * @param {Model} model
 * @param {...string} parts
 */
const plus = (model, ...parts) => {
  const sum = parts.join(" + ");
  const gives = times(model) + (times(model) && parts.length > 1 ? `(${sum})` : sum);
  return model.residual ? `x + ${gives}` : gives;
};
/**
 * @param {Model} model
 * @param {string} from
 */
const added = (model, from) =>
  model.residual
    ? `What ${from} gives${times(model) && (model.layer_scale ? ", each component times a learned number λ," : ", times a fixed number,")} is added to the residual stream. Nothing that stood there is overwritten; later blocks read the sum.`
    : `This model has no residual connections: what ${from} gives takes the place of the stream. What stood there is lost to later blocks.`;
/**
 * @param {Model} model
 * @param {string} use
 */
const normed = (model, use) => ({
  formula:
    (model.norm === "rms" ? "x / √(mean(x²) + ε)" : "(x − mean) / √(variance + ε)") +
    (model.norm_learned.includes("γ") ? " · γ" : "") +
    (model.norm_learned.includes("β") ? " + β" : ""),
  text:
    model.norm === "batch"
      ? `Each feature is brought to one scale by its mean and variance over all tokens of all texts: training keeps running averages of both, and here those are used; learned weights γ then stretch each feature. ${use}`
      : `Every token’s vector is brought to one scale over its own features, never across tokens${model.norm_learned ? "; learned weights γ then stretch each feature" : ""}. ${use}`,
});
/**
 * What a score is divided by: the root of a head's width, times the terms that add up to it where there are several.
 * @param {Model} model
 */
const divisor = ({ d_head, terms }) => (terms === 1 ? `√${d_head}` : `√(${terms}·${d_head})`);
/** @param {Model} model */
const scaled = (model) =>
  model.scale === null
    ? `q · k / ${divisor(model)}`
    : model.scale === 1
      ? "q · k"
      : `q · k · ${+model.scale.toPrecision(3)}`;
/**
 * @param {Model} model
 * @param {number} layer
 */
const turned = (model, layer) => model.positions === "rotary" && !model.unturned.includes(layer);
/** @param {Model} model */
const mlpFormula = ({ activation, gated, mlp_bias }) => {
  const b = mlp_bias ? " + b" : "";
  const inner = gated ? `(${activation}(x W_in${b}) · (x W_up${b}))` : `${activation}(x W_in${b})`;
  return `${inner} W_out${b}`;
};

/** @type {Record<string, (model: Model) => About>} the panels of an attention, by the last word of their hook */
const ATTENTION_STEPS = {
  scores: (model) => ({
    formula: `score = ${scaled(model)}`,
    text:
      "A score is the dot product of one token’s query with another token’s key: how well they match. " +
      (model.scale === null
        ? "Dividing by √d keeps the scores of wide heads from growing, which would leave the softmax a single winner."
        : "Rows are the tokens that ask, columns those that are asked."),
  }),
  capped: (model) => ({
    formula: `${model.softcap} · tanh(score / ${model.softcap})`,
    text: "Scores are bent so that none is larger than the cap. Small scores stay nearly as they are.",
  }),
  bias: (model) => ({
    formula: "score + bias(distance)",
    text:
      "A bias that depends on the distance between two tokens is added to their score. " +
      (model.positions === "learned"
        ? "Together with the vectors of positions it is how this model knows the order of tokens."
        : "It is how this model knows the order of tokens."),
  }),
  c2p: (model) => ({
    formula: `c2p = q · k of the distance / ${divisor(model)}`,
    text: "Each distance between two tokens has a learned vector. Its key meets the query of the token that asks: how much this query looks that far back or ahead, whatever stands there. It is added to the score.",
  }),
  p2c: (model) => ({
    formula: `p2c = k · q of the distance / ${divisor(model)}`,
    text: "The vector of the distance has a query too, which meets the key of the token that is asked: how much this key is looked at from that far away, whoever asks. It is added to the score.",
  }),
  mask: () => ({
    formula: "0, or −∞ where a token may not be seen",
    text: "Filled cells may be attended to; every other score is replaced by −∞, of which the softmax makes a weight of exactly 0. In a causal model a token sees itself and the tokens before it.",
  }),
  masked_scores: () => ({
    formula: "score + mask",
    text: "These are the numbers that the softmax reads, each row by itself. A score of −∞ has been closed by the mask.",
  }),
  pattern: ({ sinks }) => ({
    formula: `pattern = softmax(score + mask${sinks ? ", sink" : ""})`,
    text:
      `Softmax turns each row of scores into weights between 0 and 1${sinks ? "" : " that sum to 1"}. They are the shares in which the row’s token receives the values of the others.` +
      (sinks
        ? " A learned score of the head, its sink, takes the share that is missing from 1: so a head can attend to little."
        : ""),
  }),
};

/** @type {Record<string, (model: Model, trace: Trace, layer: number) => About>} */
const ABOUT = {
  attention: ATTENTION_STEPS.pattern,
  attn: () => ({
    formula: "softmax(q · k / √d) v",
    text: "In self-attention the target’s tokens look at each other. Choose it to see its steps in place of those of cross-attention.",
  }),
  cross_attn: () => ({
    formula: "softmax(q · k / √d) v",
    text: "In cross-attention queries come from the target, keys and values from the source. Choose it to see its steps.",
  }),
  tokens: () => ({
    formula: "text → ids",
    text: "The tokenizer cuts the text into pieces of its vocabulary and replaces each by its number. A “·” at the start of a piece is the space before it.",
  }),
  embed: (model) => ({
    formula: `x = ${model.embed_scale === 1 ? "" : `${+model.embed_scale.toPrecision(3)} · `}W_E[id]${model.token_dropout ? " · f" : ""}`,
    text:
      "A token’s number picks one row of the embedding table W_E. That learned vector is all the model knows of the token by itself." +
      (model.token_dropout
        ? " The vector of a mask is left out, and the factor f makes up for the share of masks in the text."
        : ""),
  }),
  patches: () => ({
    formula: "x = pixels · W + b",
    text: "The pixels of each patch are multiplied by a learned matrix, which makes one vector of them. From here on a picture is a row of vectors, as a text is.",
  }),
  embed_map: () => ({
    formula: "x · W",
    text: "Token vectors are narrower than the residual stream. A learned matrix makes them as wide.",
  }),
  segments: () => ({
    formula: "x + W_S[segment]",
    text: "A learned vector says whether a token belongs to the first text or to the second. It is added to the token’s own vector.",
  }),
  position: (model) =>
    model.positions === "sinusoidal"
      ? {
          formula: "x + sin, cos(pos / 10000^(2i/d))",
          text: "Attention by itself does not know the order of tokens. Sines and cosines of the position, at wavelengths from short to long, are added; nothing about them is trained.",
        }
      : {
          formula: "x + W_P[pos]",
          text: "Attention by itself does not know the order of tokens. A learned vector for each position is added, so that the same token differs from place to place.",
        },
  within: () => ({
    formula: "x + W_B[j]",
    text: "A learned vector gives a written token's place in its gap. Tokens of the given text have j = 0.",
  }),
  embed_norm: (model) => normed(model, "The blocks begin with what it gives."),
  resid_pre: () => ({
    formula: "x",
    text: "The residual stream carries one vector for each token through all blocks. Every sublayer reads it and adds what it found.",
  }),
  norm1: (model) =>
    normed(
      model,
      model.norm_place === "after" ? "Here it follows attention." : "Queries, keys and values are made from it.",
    ),
  norm1_after: (model) => normed(model, "Here it follows attention, before its result is added."),
  norm_cross: (model) =>
    normed(
      model,
      model.norm_place === "after" ? "Here it follows cross-attention." : "Cross-attention’s queries are made from it.",
    ),
  norm2: (model) => normed(model, model.norm_place === "after" ? "Here it follows the MLP." : "The MLP reads it."),
  norm2_after: (model) => normed(model, "Here it follows the MLP, before its result is added."),
  final_norm: (model, trace) =>
    normed(
      model,
      trace.side === "encoder"
        ? "Cross-attention’s keys and values are made from it."
        : "The head reads the last stream through it.",
    ),
  q: (model, _, layer) => ({
    formula: `q = x W_Q${model.bias ? " + b" : ""}${turned(model, layer) ? ", rotated by its position" : ""}`,
    text:
      "A token’s query says what this head looks for. " +
      (turned(model, layer)
        ? "RoPE rotates it by an angle that grows with its position, so that scores depend on distance."
        : "It is compared with the key of every token that may be seen."),
  }),
  k: (model, _, layer) => ({
    formula: `k = x W_K${model.bias ? " + b" : ""}${turned(model, layer) ? ", rotated by its position" : ""}`,
    text: "A token’s key says what it can be found by. A query that points the same way gives it a high score.",
  }),
  v: (model) => ({
    formula: `v = x W_V${model.bias ? " + b" : ""}`,
    text: "A token’s value is what it hands over when it is attended to. How much of it another token receives, the pattern decides.",
  }),
  z: () => ({
    formula: "z = Σ p · v",
    text: "The values of all tokens are added up, each times its weight in this row of the pattern. The sum is what this head read for the token.",
  }),
  out: (model) => ({
    formula: `[z of ${counted(model.heads, "head")}] W_O${model.out_bias ? " + b" : ""}`,
    text: `The results of all heads are put side by side and mapped to the width of the stream. This is what attention adds to it${times(model) && `, times ${times(model).split(" ")[0]}`}.`,
  }),
  resid_mid: (model) => ({ formula: plus(model, "attention"), text: added(model, "attention") }),
  resid_cross: (model) => ({ formula: plus(model, "cross-attention"), text: added(model, "cross-attention") }),
  resid_post: (model, trace) => ({
    formula: plus(model, ...(trace.beside() ? ["attention", "MLP"] : ["MLP"])),
    text: added(model, trace.beside() ? "each of the two" : "the MLP"),
  }),
  mlp: (model) => ({
    formula: mlpFormula(model),
    text: `Each token’s vector is widened to ${model.d_mlp} features, passed through ${model.activation} and mapped back. The MLP works on every token alone; only attention moves something from one token to another.`,
  }),
  router: (model) => {
    const { count, used, scores, renormalised } = /** @type {Experts} */ (model.experts);
    return {
      formula: scores === "softmax" ? "p = softmax(x W_R)" : "p = 1 / (1 + e^−x W_R)",
      text:
        `Each token is sent to the ${used} of ${counted(count, "expert")} that the router gives the most. ` +
        `What they write counts by these probabilities${renormalised ? ", divided by their sum" : ""}.`,
    };
  },
  experts: (model) => ({
    formula: `Σ weight · expert(x)${/** @type {Experts} */ (model.experts).shared ? " + shared(x)" : ""}`,
    text:
      `An expert is an MLP of ${model.d_mlp} neurons that computes for the tokens that were sent to it and no others. ` +
      `What a token’s experts write is added up${/** @type {Experts} */ (model.experts).shared ? ", with that of an expert that all tokens see" : ""}.`,
  }),
  transform: (model) => ({
    formula: `${model.head_norm ? "norm(" : ""}${model.head_activation}(x W${model.dense_bias ? " + b" : ""})${model.head_norm ? ")" : ""}`,
    text:
      model.head === "masked"
        ? "One more dense layer prepares the stream for the vocabulary. Its result is compared with every token’s vector."
        : "One more dense layer stands before the classes, which read its result.",
  }),
  mean: () => ({
    formula: "Σ x / n",
    text: "The last vectors of all positions are averaged. That one vector stands for the whole.",
  }),
  narrow: () => ({
    formula: "x · W",
    text: "The stream is mapped back to the width of the token vectors. The head works at that width.",
  }),
  pooler: (model) => ({
    formula: `${model.pooler_activation}(x W + b)`,
    text: "The vector of one position goes through a dense layer. What it gives stands for the whole text.",
  }),
  vector: ({ vector }) => {
    const { pooled, maps, unit } = /** @type {import("../core/trace.js").TextVector} */ (vector);
    const made = pooled.map((kind) => POOLED[kind]).join(", then ");
    const mapped = maps.length ? ` It goes through ${counted(maps.length, "map")}.` : "";
    const by = unit ? " Its length is made 1, so that the product of two is their cosine." : "";
    return {
      formula: unit ? "x / |x|" : "x",
      text: pooled.length
        ? `What stands for the whole text, and is compared with other texts: ${made}.${mapped}${by}`
        : `Each token keeps a vector of its own, which is compared with those of another text.${mapped}${by}`,
    };
  },
  follows: () => ({
    formula: "pooled · W + b",
    text: "A second head judges whether the second text follows the first. Its two scores are for yes and for no.",
  }),
  cls: () => ({
    formula: "x · W + b",
    text: "The first classifier reads the class token. Its scores and those of the second one are averaged.",
  }),
  distilled: () => ({
    formula: "x · W + b",
    text: "The second classifier reads the distillation token, which learned from a teacher model. Its scores and those of the first one are averaged.",
  }),
  logits: () => ({
    formula: "x · W + b",
    text: "The head gives a score for every class.",
  }),
  next: (model, trace) => ({
    formula:
      trace.link === "logistic"
        ? "1 / (1 + e^−logit)"
        : trace.link === "identity"
          ? "x · W + b"
          : "softmax(logits / T)",
    text:
      trace.reads === "next"
        ? "The last vector of the row is compared with every token of the vocabulary, which gives the logits; softmax makes probabilities of them. Temperature, top-k and top-p say from which of them the next token is drawn."
        : trace.reads === "answer"
          ? "Every token has a score for being the start of the answer and one for being its end. Softmax over all positions makes probabilities of them."
          : "The head gives a score for everything it can choose from. The bars are the probabilities that these scores stand for.",
  }),
};

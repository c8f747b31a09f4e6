// The flow, as a table: which stages a stack has, in their order, and which panels each shows closed and open.
//
// A panel is {hook, kind: "strip" | "matrix", role, scale?, title?, weight, least}: `weight` shares out the spare width and
// `least` is what it never goes below, in CSS pixels. `{l}` in a hook is the block that is looked at.

const strip = (hook, role, more = {}) => ({
  hook,
  kind: "strip",
  role,
  scale: "signed",
  weight: 1,
  least: 31,
  ...more,
});
const matrix = (hook, role, scale, more) => ({ hook, kind: "matrix", role, scale, ...more });
const wide = (panel, title) => ({ ...panel, title, open: true });

const NAMES = {
  mean: "mean of all positions",
  embed: "embedding",
  pos: "position",
  segm: "segment",
  pair: "whether the second text follows",
  resid: "residual stream",
  mask: "mask: who may look at whom",
  z: "mixed values (z)",
  W_O: "the heads joined",
};
const BLOCK = "blocks.{l}.";

/**
 * [{id, group: "in" | "block" | "out", title, formula, role, closed: [panel], open: [panel], joint}] for a trace.
 *
 * Of two attentions in a block, `focus` ("attn" or "cross_attn") is the one shown step by step; the other is its pattern alone.
 */
export function stages(trace, focus) {
  return [...entering(trace), ...block(trace, focus), ...leaving(trace)].filter(Boolean);
}

function entering(trace) {
  const { model } = trace;
  const read = model.embed_scale === 1 ? "W_E[id]" : `W_E·${Number(model.embed_scale.toPrecision(3))}`;
  const one = (id, title, formula, hook, joint) =>
    trace.has(hook) && stage(id, title, formula, "residual", [strip(hook, "residual")], { group: "in", joint });
  const learned = model.positions === "learned" ? "W_P[i]" : "sin, cos";
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

function block(trace, focus) {
  const { model } = trace;
  const has = (part) => trace.hooks.includes(part);
  const before = model.norm_place !== "after";
  const norm = (id, title = "norm") =>
    has(`${id}.out`) && stage(id, title, normFormula(model), "residual", [strip(`${BLOCK}${id}.out`, "residual")]);
  const resid = (id, formula) =>
    has(id) &&
    stage(id, "resid", formula, "residual", [strip(`${BLOCK}${id}`, "residual")], { joint: model.residual ? "+" : "" });
  const sign = model.residual ? "+" : "=";
  const attentions = (kind) => (model.crosses && kind !== focus ? [condensed(kind)] : full(trace, kind, has));
  return [
    stage("resid_pre", "resid", "x", "residual", [strip(`${BLOCK}resid_pre`, "residual")], { joint: "=" }),
    before && norm("norm1"),
    ...attentions("attn"),
    norm("norm1_after"),
    resid("resid_mid", `${sign} attn`),
    !before && norm("norm1"),
    ...(model.crosses
      ? [
          before && norm("norm_cross"),
          ...attentions("cross_attn"),
          resid("resid_cross", `${sign} src`),
          !before && norm("norm_cross"),
        ]
      : []),
    before && norm("norm2"),
    ...(model.d_mlp
      ? [
          mlp(model, has),
          norm("norm2_after"),
          resid("resid_post", trace.beside() ? `${sign} attn ${sign} mlp` : `${sign} mlp`),
        ]
      : []),
    !before && norm("norm2"),
  ];
}

/** One attention, step by step. */
function full(trace, kind, has) {
  const { model } = trace;
  const at = `${BLOCK}${kind}.`;
  const crosses = kind === "cross_attn";
  const projection = (letter, title, role) => {
    const made = has(`${kind}.${letter}_rotated`)
      ? `${letter}_rotated`
      : has(`${kind}.${letter}_norm.out`)
        ? `${letter}_norm.out`
        : null;
    return stage(letter, title, `x W_${letter.toUpperCase()}`, role, [strip(`${at}${letter}`, role)], {
      open: [
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

/** The attention that is not in focus: its pattern, which a click brings into focus. */
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

function attention(at, model, has, kind) {
  const root =
    model.scale === null ? ` / √${model.d_head}` : model.scale === 1 ? "" : ` · ${Number(model.scale.toPrecision(3))}`;
  const bias = has(`${kind}.bias`);
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
    title: `scores${bias ? " + bias" : ""}, masked`,
    open: true,
  });
  const capped = has(`${kind}.capped`) && matrix(`${at}capped`, "attention", "signed", { title: "capped", open: true });
  const added = bias && matrix(`${at}bias`, "attention", "signed", { title: "position bias", open: true });
  const name = kind === "cross_attn" ? "cross-attention" : "attention";
  return {
    ...stage("attention", name, "", "attention", [scores, mask, pattern]),
    open: [scores, capped, added, mask, masked, pattern]
      .filter(Boolean)
      .map((panel) => ({ ...panel, open: true, labels: true })),
  };
}

function mlp(model, has) {
  return stage("mlp", "MLP", `via ${model.d_mlp}`, "mlp", [strip(`${BLOCK}mlp.out`, "mlp", { weight: 1.15 })], {
    open: [
      wide(strip(`${BLOCK}mlp.pre`, "mlp"), "before the activation"),
      has("mlp.up") && wide(strip(`${BLOCK}mlp.up`, "mlp"), "gate’s other side"),
      wide(strip(`${BLOCK}mlp.post`, "mlp"), `after ${model.activation}`),
      wide(strip(`${BLOCK}mlp.out`, "mlp"), "MLP out"),
    ],
  });
}

function leaving(trace) {
  /** @type {(id: string, title: string, formula: string, hook: string, role?: string, options?: { least?: number, open?: any[] }) => any} */
  const out = (id, title, formula, hook, role = "residual", { least = 31, ...more } = {}) =>
    trace.has(hook) && stage(id, title, formula, role, [strip(hook, role, { least })], { group: "out", ...more });
  const narrow = out("narrow", "map", "x · W", "head.narrow");
  const list = [out("final_norm", "norm", "final", "final_norm.out")];
  if (!trace.reads) return [...list, narrow];
  const { head_activation: activation, pooler_activation: pooled } = trace.model;
  const steps = (prefix, names) =>
    names.map(([part, title]) => trace.has(`${prefix}${part}`) && wide(strip(`${prefix}${part}`, "residual"), title));
  const pooler = steps("pooler.", [
    ["pre", `${trace.pieces[trace.speaker()]}, dense`],
    ["out", pooled],
  ]);
  const normed = trace.has("head.norm.out");
  return [
    ...list,
    out("transform", "head", "dense", normed ? "head.norm.out" : "head.post", "residual", {
      open: steps("head.", [
        ["pre", "dense"],
        ["post", activation],
        ["norm.out", "norm"],
      ]),
    }),
    out("mean", "mean", "of all", "head.mean"),
    narrow,
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
      { answer: "start, end" }[trace.reads] ?? (trace.count > 1 ? "classes" : ""),
      "logits",
      "probability",
      { least: 52 },
    ),
  ];
}

function normFormula(model) {
  return model.norm === "rms" ? "RMS(x)" : "LN(x)";
}

/** The keys and values that cross-attention makes of the source: rows are the source's, so they stand beside its tokens. */
export function sources(width, rows) {
  const panel = (letter, role, title) =>
    strip(`${BLOCK}cross_attn.${letter}`, role, { title, width, rows, source: true });
  return [panel("k", "key", "key"), panel("v", "value", "value")];
}

/**
 * @param {string} id
 * @param {string} title
 * @param {string} formula
 * @param {string} role
 * @param {any[]} closed
 * @param {{ group?: string, open?: any[], joint?: string, lines?: boolean }} [options]
 */
function stage(id, title, formula, role, closed, { group = "block", open = null, ...more } = {}) {
  const opened = (open ?? closed.map((panel) => wide(panel, title))).filter(Boolean);
  return { id, group, title, name: NAMES[title] ?? title, formula, role, closed, open: opened, joint: "", ...more };
}

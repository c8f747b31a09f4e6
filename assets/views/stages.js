// The flow, as a table: which stages a model has, in their order, and which panels each shows closed and open.
//
// A panel is {hook, kind: "strip" | "matrix", role, scale?, title?, weight, least}: `weight` shares out the spare width and
// `least` is what it never goes below, in CSS pixels. `{l}` in a hook is the block that is looked at.

const strip = (hook, role, more = {}) => ({ hook, kind: "strip", role, scale: "signed", weight: 1, least: 31, ...more });
const matrix = (hook, role, scale, more) => ({ hook, kind: "matrix", role, scale, ...more });
const wide = (panel, title) => ({ ...panel, title, open: true });

const NAMES = { embed: "embedding", pos: "position", resid: "residual stream", z: "z, the mixed values", W_O: "the heads joined" };

/** [{id, group: "in" | "block" | "out", title, formula, role, closed: [panel], open: [panel], joint}] for a trace. */
export function stages(trace) {
  const { model } = trace;
  const has = (part) => trace.hooks.includes(part);
  const before = model.norm_place === "before";
  const block = "blocks.{l}.";
  const root = `√${model.d_head}`;
  const bias = has("attn.bias") ? " + bias" : "";

  const norm = (n) => has(`norm${n}.out`) && stage(`norm${n}`, "norm", model.norm === "rms" ? "RMS(x)" : "LN(x)", "residual", [
    strip(`${block}norm${n}.out`, "residual"),
  ]);
  const projection = (letter, title, role) => stage(letter, title, `x W_${letter.toUpperCase()}`, role, [strip(`${block}attn.${letter}`, role)], {
    open: [wide(strip(`${block}attn.${letter}`, role), title), has(`attn.${letter}_rotated`) && wide(strip(`${block}attn.${letter}_rotated`, role), "rotated")],
  });
  const list = [
    stage("embed", "embed", "W_E[id]", "residual", [strip("embed.tokens", "residual")], { group: "in" }),
    trace.has("embed.positions") &&
      stage("position", "pos", model.positions === "learned" ? "W_P[i]" : "sin, cos", "residual", [strip("embed.positions", "residual")], { group: "in", joint: "+" }),
    stage("resid_pre", "resid", "x", "residual", [strip(`${block}resid_pre`, "residual")], { joint: "=" }),
    before && norm(1),
    projection("q", "query", "query"),
    projection("k", "key", "key"),
    projection("v", "value", "value"),
    attention(block, root, bias, has),
    stage("z", "z", "Σ p · v", "value", [strip(`${block}attn.z`, "value")], { lines: true }),
    stage("out", "W_O", "joined", "attention", [strip(`${block}attn.out`, "attention")], {
      open: [wide(strip(`${block}attn.z`, "value", { flat: true }), "z of all heads"), wide(strip(`${block}attn.out`, "attention"), "attention out")],
    }),
    stage("resid_mid", "resid", model.residual ? "+ attn" : "= attn", "residual", [strip(`${block}resid_mid`, "residual")], { joint: model.residual ? "+" : "" }),
    !before && norm(1),
    ...(model.d_mlp ? mlp(block, model, has, before ? norm(2) : null) : []),
    !before && norm(2),
    trace.has("final_norm.out") &&
      stage("final_norm", "norm", "final", "residual", [strip("final_norm.out", "residual")], { group: "out" }),
  ];
  return list.filter(Boolean);
}

function attention(block, root, bias, has) {
  const scores = matrix(`${block}attn.scores`, "attention", "signed", { title: "scores", formula: `q·k / ${root}`, weight: 2.2, least: 56 });
  const mask = matrix(`${block}attn.mask`, "soft", "mask", { title: "mask", formula: "sees", weight: 1, least: 33 });
  const pattern = matrix(`${block}attn.pattern`, "attention", "unit", { title: "pattern", formula: "softmax", weight: 4.4, least: 120, labels: true });
  const masked = matrix(`${block}attn.masked_scores`, "attention", "signed", { title: `scores${bias}, masked`, open: true });
  const added = has("attn.bias") && matrix(`${block}attn.bias`, "attention", "signed", { title: "position bias", open: true });
  return {
    ...stage("attention", "attention", "", "attention", [scores, mask, pattern]),
    open: [scores, added, mask, masked, pattern].filter(Boolean).map((panel) => ({ ...panel, open: true, labels: true })),
  };
}

function mlp(block, model, has, norm) {
  return [
    norm,
    stage("mlp", "MLP", `via ${model.d_mlp}`, "mlp", [strip(`${block}mlp.out`, "mlp", { weight: 1.15 })], {
      open: [
        wide(strip(`${block}mlp.pre`, "mlp"), "before the activation"),
        has("mlp.up") && wide(strip(`${block}mlp.up`, "mlp"), "gate’s other side"),
        wide(strip(`${block}mlp.post`, "mlp"), `after ${model.activation}`),
        wide(strip(`${block}mlp.out`, "mlp"), "MLP out"),
      ],
    }),
    stage("resid_post", "resid", model.residual ? "+ mlp" : "= mlp", "residual", [strip(`${block}resid_post`, "residual")], { joint: model.residual ? "+" : "" }),
  ];
}

function stage(id, title, formula, role, closed, { group = "block", open = null, ...more } = {}) {
  const opened = (open ?? closed.map((panel) => wide(panel, title))).filter(Boolean);
  return { id, group, title, name: NAMES[title] ?? title, formula, role, closed, open: opened, joint: "", ...more };
}

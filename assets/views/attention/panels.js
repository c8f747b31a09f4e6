// The matrices that lead from products to weights, in their order: what each holds, how it is coloured, what it is made of.
import { at } from "../components/cells.js";
import { factor, factorText, plain, temperatureOf } from "./row.js";

/**
 * The steps of the shown head: [{id, title, formula, block, role, scale, made?}]. `made` says in words what is not stored but
 * computed here from tensors that are.
 */
export function panels(page) {
  const { trace, state } = page;
  const { head } = state;
  const stored = (part) => trace.block(page.hook(part), head);
  const width = trace.block(page.hook("q"), head).cols;
  const by = factorText(trace, width);
  const scores = stored("scores");
  const list = [{ id: "scores", title: "scores", formula: by ? `q·k ${by}` : "q·k, not scaled", block: scores, role: "attention", scale: "signed" }];
  if (by) {
    const scale = factor(trace, width);
    list.unshift({ id: "raw", title: "raw", formula: "q·k", block: once(scores, `/ ${scale}`, (x) => x / scale), role: "attention", scale: "signed", made: `the stored scores ${inverse(trace, width)}` });
  }
  let before = scores;
  if (trace.has(page.hook("capped"))) {
    before = stored("capped");
    const cap = plain(trace.model.softcap);
    list.push({ id: "capped", title: "capped", formula: `${cap} tanh(s / ${cap})`, block: before, role: "attention", scale: "signed" });
  }
  if (trace.has(page.hook("bias"))) {
    const bias = stored("bias");
    const sum = once(before, "biased", (x, r, c) => x + at(bias, r, c));
    list.push({ id: "biased", title: "+ bias", formula: "s + position bias", block: sum, role: "attention", scale: "signed", made: `stored ${before === scores ? "scores" : "capped scores"} + stored bias` });
  }
  const mask = stored("mask");
  const hidden = (r, c) => !at(mask, r, c);
  const temperature = temperatureOf(trace, page.hook(""), head);
  const e = temperature === 1 ? "e^s" : `e^(s / ${plain(temperature)})`;
  list.push({ id: "masked", title: "masked", formula: "−∞ where not allowed", block: stored("masked_scores"), role: "attention", scale: "signed", hidden });
  list.push({ id: "pattern", title: "softmax", formula: `${e} / Σ ${temperature === 1 ? e : "e^…"}`, block: stored("pattern"), role: "attention", scale: "unit", hidden });
  return list;
}

/** The last step, for which the server multiplies: how long what each key hands over is. `arrays` are what it answered. */
export function weightedPanel(page, arrays) {
  const { data, shape } = arrays.weighted;
  const [, rows, cols] = shape;
  const block = { data, offset: page.state.head * rows * cols, stride: cols, rows, cols };
  const mask = page.trace.block(page.hook("mask"), page.state.head);
  return { id: "weighted", title: "weighted values", formula: "|p · v W_O|", block, role: "value", scale: "length", hidden: (r, c) => !at(mask, r, c) };
}

function inverse(trace, width) {
  return trace.model.scale === null ? `× √${width}` : `/ ${plain(trace.model.scale)}`;
}

const computed = new WeakMap(); // numbers of a trace -> Map of what was made of which part of them

/** `block` with f(element, row, column) in place of each element, made once a `name`. */
function once(block, name, f) {
  const { data, offset, stride, rows, cols } = block;
  if (!computed.has(data)) computed.set(data, new Map());
  const kept = computed.get(data);
  const key = `${name} ${offset}`;
  if (!kept.has(key)) {
    const made = new Float32Array(rows * cols);
    for (let r = 0, i = 0; r < rows; r++) {
      const start = offset + r * stride;
      for (let c = 0; c < cols; c++, i++) made[i] = f(data[start + c], r, c);
    }
    kept.set(key, { data: made, offset: 0, stride: cols, rows, cols });
  }
  return kept.get(key);
}

// The arithmetic of one head in double precision, from what its tensors hold: a query and a key to a score, scores to weights; and the
// matrices that lead from products to weights, in their order: what each holds, how it is coloured, what it is made of.
import { at } from "../components/cells.js";

/**
 * @typedef {import("../core/trace.js").Trace} Trace
 * @typedef {import("./window.js").HeadTrace} HeadTrace
 * @typedef {import("./attention.js").Face} Face
 * @typedef {{ masked: Float64Array, top: number, exponentials: Float64Array, total: number, weights: Float64Array,
 *   temperature: number }} Softmax
 * @typedef {{ id: string, title: string, formula: string, block: Block, role: string, scale: Scale | "length", made?: string,
 *   hidden?: import("../components/cells.js").Hidden }} Panel
 */

/**
 * The hooks that a query ("q") or a key ("k") went through, in order; the scores are made of the last. `block` ends in "attn.".
 * @param {Trace} trace
 * @param {string} block
 * @param {"q" | "k"} letter
 */
export function passed(trace, block, letter) {
  return [`${block}${letter}`, `${block}${letter}_norm.out`, `${block}${letter}_rotated`].filter((name) =>
    trace.has(name),
  );
}

/**
 * What a dot product is multiplied by to be a score.
 * @param {Trace} trace
 * @param {number} width
 */
export function factor(trace, width) {
  const { scale, terms } = trace.model;
  return scale === null ? 1 / Math.sqrt(width * terms) : scale;
}

/**
 * The factor as it is written: "/ √16", "× 0.125", or "" where it is 1.
 * @param {Trace} trace
 * @param {number} width
 */
export function factorText(trace, width) {
  const { scale } = trace.model;
  if (scale === null) return `/ ${root(trace, width)}`;
  return scale === 1 ? "" : `× ${plain(scale)}`;
}

/**
 * The root of a head's width, times the terms that add up to a score where there are several.
 * @param {Trace} trace
 * @param {number} width
 */
function root({ model }, width) {
  return model.terms === 1 ? `√${width}` : `√(${model.terms}·${width})`;
}

/**
 * q k element by element, and its sum: {q, k, products, dot, score}. `names` = {q, k}: the hooks that the scores are made of.
 * @param {Trace} trace
 * @param {{ q: string, k: string }} names
 * @param {number} row
 * @param {number} col
 * @param {number} head
 */
export function product(trace, names, row, col, head) {
  const q = trace.row(names.q, row, head);
  const k = trace.row(names.k, col, head);
  const products = Float64Array.from(q, (x, i) => x * k[i]);
  const dot = products.reduce((sum, x) => sum + x, 0);
  return { q, k, products, dot, score: dot * factor(trace, q.length) };
}

/**
 * What a head's scores are divided by before its softmax.
 * @param {Trace} trace
 * @param {string} block
 * @param {number} head
 * @returns {number}
 */
export function temperatureOf(trace, block, head) {
  return trace.array(`${block}temperature`)?.data[head] ?? 1;
}

/**
 * The softmax of row `row` over its stored masked scores: {masked, top, exponentials, total, weights, temperature}, with `top` the
 * largest score that is taken off all of them, each score and `top` divided by the temperature. A row without keys has `total` 0. Of a
 * trace that holds a window only (window.js), `top` and `total` are those of the whole row.
 * @param {HeadTrace} trace
 * @param {string} block
 * @param {number} row
 * @param {number} head
 * @returns {Softmax}
 */
export function softmaxRow(trace, block, row, head) {
  const temperature = temperatureOf(trace, block, head);
  const masked = Float64Array.from(trace.row(`${block}masked_scores`, row, head), (s) => s / temperature);
  const outside = trace.outside?.(row) ?? { top: -Infinity, total: 0 };
  const top = masked.reduce((a, b) => Math.max(a, b), outside.top);
  const exponentials = masked.map((s) => (Number.isFinite(top) ? Math.exp(s - top) : 0));
  const total = exponentials.reduce((sum, x) => sum + x, outside.total);
  return { masked, top, exponentials, total, weights: exponentials.map((x) => (total ? x / total : 0)), temperature };
}

/**
 * Indices of the `count` largest of `weights`, largest first, with `chosen` among them.
 * @param {Float64Array} weights
 * @param {number} count
 * @param {number} chosen
 */
export function topKeys(weights, count, chosen) {
  const order = [...weights.keys()].sort((a, b) => weights[b] - weights[a] || a - b).slice(0, count);
  return order.includes(chosen) ? order : [...order.slice(0, count - 1), chosen];
}

/**
 * Brings the shown layer's numbers; true where they are here. `late` is called when they have come, `say` with a sentence if not.
 * @param {Face} page
 * @param {() => void} late
 * @param {(sentence: string) => void} say
 */
export function here(page, late, say) {
  const { trace } = page;
  const name = page.hook("scores");
  if (trace.has(name)) return true;
  const same = () => trace === page.trace && name === page.hook("scores");
  trace.fetch(page.state.layer).then(
    () =>
      same() &&
      (trace.has(name)
        ? late()
        : say(`This run keeps no scores of block ${page.state.layer + 1}, so there is nothing to take apart.`)),
    (error) => same() && say(error.message),
  );
  return false;
}

/**
 * A setting as it was set, 1.5 and not 1.5000; float32 noise is taken off.
 * @param {number} x
 */
export function plain(x) {
  return String(Number(x.toPrecision(6)));
}

// --- the matrices of the steps ---

const ADDED = [
  { part: "bias", id: "biased", formula: "s + position bias" },
  { part: "c2p", id: "c2p", formula: "s + q · distance" },
  { part: "p2c", id: "p2c", formula: "s + k · distance" },
]; // to a score, in their order

/**
 * The steps of the shown head: [{id, title, formula, block, role, scale, made?}]. `made` says in words what is not stored but
 * computed here from tensors that are.
 * @param {Face} page
 */
export function panels(page) {
  const { trace, state } = page;
  const { head } = state;
  /** @param {string} part */
  const stored = (part) => trace.block(page.hook(part), head);
  const width = trace.block(page.hook("q"), head).cols;
  const by = factorText(trace, width);
  const scores = stored("scores");
  /** @type {Panel[]} */
  const list = [
    {
      id: "scores",
      title: "scores",
      formula: by ? `q·k ${by}` : "q·k, not scaled",
      block: scores,
      role: "attention",
      scale: "signed",
    },
  ];
  if (by) {
    const scale = factor(trace, width);
    list.unshift({
      id: "raw",
      title: "raw",
      formula: "q·k",
      block: once(scores, `/ ${scale}`, (x) => x / scale),
      role: "attention",
      scale: "signed",
      made: `the stored scores ${inverse(trace, width)}`,
    });
  }
  let before = scores;
  const { softcap } = trace.model;
  if (softcap !== null && trace.has(page.hook("capped"))) {
    before = stored("capped");
    const cap = plain(softcap);
    list.push({
      id: "capped",
      title: "capped",
      formula: `${cap} tanh(s / ${cap})`,
      block: before,
      role: "attention",
      scale: "signed",
    });
  }
  let sum = before === scores ? "stored scores" : "stored capped scores";
  for (const { part, id, formula } of ADDED.filter((one) => trace.has(page.hook(one.part)))) {
    const added = stored(part);
    before = once(before, id, (x, r, c) => x + at(added, r, c));
    sum += ` + stored ${part}`;
    list.push({ id, title: `+ ${part}`, formula, block: before, role: "attention", scale: "signed", made: sum });
  }
  const mask = stored("mask");
  /**
   * @param {number} r
   * @param {number} c
   */
  const hidden = (r, c) => !at(mask, r, c);
  const temperature = temperatureOf(trace, page.hook(""), head);
  const e = temperature === 1 ? "e^s" : `e^(s / ${plain(temperature)})`;
  list.push({
    id: "masked",
    title: "masked",
    formula: "−∞ where not allowed",
    block: stored("masked_scores"),
    role: "attention",
    scale: "signed",
    hidden,
  });
  list.push({
    id: "pattern",
    title: "softmax",
    formula: `${e} / Σ ${temperature === 1 ? e : "e^…"}`,
    block: stored("pattern"),
    role: "attention",
    scale: "unit",
    hidden,
  });
  return list;
}

/**
 * The last step, for which the server multiplies: how long what each key hands over is. `arrays` are what it answered.
 * @param {Face} page
 * @param {import("../core/store.js").Answers["weighted"]["arrays"]} arrays
 * @returns {Panel}
 */
export function weightedPanel(page, arrays) {
  const { data, shape } = arrays.weighted;
  const [, rows, cols] = shape;
  const block = { data, offset: page.state.head * rows * cols, stride: cols, rows, cols };
  const mask = page.trace.block(page.hook("mask"), page.state.head);
  return {
    id: "weighted",
    title: "weighted values",
    formula: "|p · v W_O|",
    block,
    role: "value",
    scale: "length",
    hidden: (r, c) => !at(mask, r, c),
  };
}

/**
 * @param {Trace} trace
 * @param {number} width
 */
function inverse(trace, width) {
  return trace.model.scale === null ? `× ${root(trace, width)}` : `/ ${plain(trace.model.scale)}`;
}

/** @type {WeakMap<Cells, Map<string, Block>>} */
const computed = new WeakMap(); // numbers of a trace -> Map of what was made of which part of them

/**
 * `block` with f(element, row, column) in place of each element, made once a `name`.
 * @param {Block} block
 * @param {string} name
 * @param {(x: number, row: number, col: number) => number} f
 * @returns {Block}
 */
function once(block, name, f) {
  const { data, offset, stride, rows, cols } = block;
  const kept = computed.get(data) ?? new Map();
  computed.set(data, kept);
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

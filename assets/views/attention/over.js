// What may be painted over a text: the ways to say how much one token attends to another, each with its definition.
import { counted } from "../core/format.js";
import { at } from "../components/cells.js";
import { range } from "../core/dom.js";

/**
 * @typedef {import("./attention.js").Face} Face
 * @typedef {import("../core/store.js").Queries} Queries
 * @typedef {import("../core/payload.js").NamedArray} NamedArray
 * @typedef {"head" | "heads" | "layers" | "rollout" | "flow" | "sentences"} Measure
 * @typedef {"out" | "in"} Way
 * @typedef {(block: Block, max?: number) => Float64Array} Line gives the row or the column that is looked at
 */

const SOURCE = "Abnar and Zuidema 2020";

/** @type {[id: Measure, label: string, definition: (page: Face) => string][]} the definition is a sentence */
export const MEASURES = [
  ["head", "this head", () => "The weights of this head: after the softmax, each row adds up to 1."],
  [
    "heads",
    "mean of heads",
    ({ state, trace }) =>
      `The mean of ${counted(trace.model.heads, "head")} of block ${state.layer + 1}, cell by cell.`,
  ],
  [
    "layers",
    "mean of layers",
    ({ state, trace }) =>
      state.alone
        ? `The mean of head ${state.head + 1} over ${counted(trace.model.layers, "block")}, cell by cell. Heads of one number have nothing else in common: which one does what is chance.`
        : `The mean over all heads (${counted(trace.model.heads, "head")} in each of ${counted(trace.model.layers, "block")}), cell by cell: each counts as much as any other.`,
  ],
  [
    "rollout",
    "rollout",
    ({ state, trace }) =>
      state.focus === "cross_attn"
        ? `Attention rollout (${SOURCE}) through both stacks: in each decoder block, from ${span(state, trace)[0] + 1} to ${span(state, trace)[1] + 1}, half of a row comes from the source as the encoder has mixed it, a quarter from the target by self-attention and a quarter from the residual stream that passes by. Painted is the part that comes from the source.`
        : `Attention rollout (${SOURCE}): in each block half of every row is its attention and half the residual stream that passes by; these matrices multiplied, from block ${span(state, trace)[0] + 1} to block ${span(state, trace)[1] + 1}, say which tokens a row is mixed from. What values and MLPs do is left out.`,
  ],
  [
    "flow",
    "flow",
    ({ state, trace }) =>
      state.focus === "cross_attn"
        ? `Attention flow (${SOURCE}) through both stacks: weights, with the residual stream, are the capacities of pipes, and cross-attention joins each decoder block to the encoder’s output; this is the most that can flow from a target token’s last row down to each source token, each asked for alone, so that they add up to no total.`
        : `Attention flow (${SOURCE}): weights, with the residual stream, are the capacities of pipes; this is the most that can flow from a token’s last row down to each token${trace.side ? ` of the ${trace.called}` : ""}, each asked for alone, so that they add up to no total.`,
  ],
  [
    "sentences",
    "over many texts",
    ({ state, trace }) =>
      `Head ${state.head + 1} of block ${state.layer + 1} averaged over many ${trace.grid ? "pictures, position by position: what they show" : "texts, position by position: which words stood there"} is averaged out.`,
  ],
];

/**
 * The measure that the state names.
 * @param {Face} page
 */
export function measureOf(page) {
  return MEASURES.find(([id]) => id === page.state.over) ?? MEASURES[0];
}

/**
 * "out": what the chosen token looks at; "in": what looks at it, which a flow that comes a token at a time cannot say.
 * @param {Face} page
 * @returns {Way}
 */
export function wayOf(page) {
  return page.state.way === "in" && !downward(page) ? "in" : "out";
}

/** @type {Set<string>} */
const rowByRow = new Set(); // the runs and attentions of which the server gives no more than a row of the flow at a time

/**
 * Whether what is painted can be asked for a token at a time alone, and downward.
 * @param {Face} page
 */
export function downward(page) {
  return measureOf(page)[0] === "flow" && rowByRow.has(named(page));
}

/** @param {Face} page */
function named({ trace, state }) {
  return [trace.trace, state.side, state.focus].join();
}

/**
 * First and last block of the rollout.
 * @param {import("./state.js").Own} own
 * @param {Pick<import("../core/trace.js").Trace, "model">} trace
 * @returns {[first: number, last: number]}
 */
export function span({ first, last }, { model }) {
  /**
   * @param {unknown} layer
   * @param {number} otherwise
   */
  const inside = (layer, otherwise) =>
    typeof layer === "number" && Number.isInteger(layer) && layer >= 0 && layer < model.layers ? layer : otherwise;
  const start = inside(first, 0);
  return [start, Math.max(start, inside(last, model.layers - 1))];
}

/**
 * One row ("out") or one column ("in") of the measure: a Float64Array, or a promise where the server has to be asked.
 * @param {Face} page
 * @returns {Float64Array | Promise<Float64Array>}
 */
export function weights(page) {
  const { state, trace } = page;
  const { layer, head, focus, side } = state;
  /** @type {Line} */
  const line = (block, max = 1) => along(block, wayOf(page), page.state, max);
  const { heads, layers } = trace.model;
  switch (measureOf(page)[0]) {
    case "head": {
      if (page.line) return page.line(wayOf(page));
      const { block, max } = page.pattern(layer, head);
      return line(block, max);
    }
    case "heads":
      return (
        mean(
          page,
          range(0, heads).map((one) => /** @type {import("./state.js").Pair} */ ([layer, one])),
          line,
        ) ?? answered(page, { ask: "average", side, focus, over: "heads", layer, head }, "pattern", line)
      );
    case "layers": {
      const counted = range(0, layers * heads)
        .map((one) => /** @type {import("./state.js").Pair} */ ([Math.floor(one / heads), one % heads]))
        .filter(([, one]) => !state.alone || one === head);
      return (
        mean(page, counted, line) ??
        answered(
          page,
          { ask: "average", side, focus, over: "layers", layer, head, alone: Boolean(state.alone) },
          "pattern",
          line,
        )
      );
    }
    case "rollout": {
      const [first, last] = span(state, trace);
      return answered(
        page,
        { ask: "rollout", side, focus, first, last, head: state.alone ? head : null },
        "rollout",
        line,
      );
    }
    default:
      return flowed(page, line);
  }
}

/**
 * All rows of the flow at once where that is quick, else the chosen one; rows that came are kept by the store.
 * @param {Face} page
 * @param {Line} line
 */
async function flowed(page, line) {
  const { side, focus, query } = page.state;
  const name = named(page);
  const { arrays } = await page.request({ ask: "flows", side, focus });
  if (arrays.flow) {
    const { data, shape } = arrays.flow;
    return line({ data, offset: 0, stride: shape[1], rows: shape[0], cols: shape[1] });
  }
  rowByRow.add(name);
  const row = await page.request({ ask: "flow", side, focus, pos: query });
  return Float64Array.from(row.arrays.flow.data);
}

/**
 * @param {Block} block
 * @param {Way} way
 * @param {{ query: number, key: number }} place
 * @param {number} max
 */
function along(block, way, { query, key }, max) {
  if (way === "out") return Float64Array.from(range(0, block.cols), (col) => at(block, query, col) / max);
  return Float64Array.from(range(0, block.rows), (row) => at(block, row, key) / max);
}

/**
 * The mean of the lines of several heads; null where one of them is not here to the last digit.
 * @param {Face} page
 * @param {import("./state.js").Pair[]} heads
 * @param {Line} line
 */
function mean(page, heads, line) {
  const { trace, state } = page;
  /** @param {number} layer */
  const name = (layer) => `blocks.${layer}.${state.focus}.pattern`;
  if (!heads.every(([layer]) => trace.has(name(layer)))) return null;
  const lines = heads.map(([layer, head]) => line(trace.block(name(layer), head)));
  return lines[0].map((_, i) => lines.reduce((sum, one) => sum + one[i], 0) / lines.length);
}

/**
 * Of a long text, whose patterns stay with the server, the row or column is asked for alone.
 * @param {Face} page
 * @param {import("../core/store.js").Query<"average"> | import("../core/store.js").Query<"rollout">} query
 * @param {"pattern" | "rollout"} name
 * @param {Line} line
 */
async function answered(page, query, name, line) {
  if (page.line) {
    const where = wayOf(page) === "out" ? { pos: page.state.query } : { key: page.state.key };
    return Float64Array.from((await page.request({ ...query, ...where })).arrays.line.data);
  }
  /** @type {Record<string, NamedArray>} */
  const arrays = (await page.request(query)).arrays;
  const { data, shape } = arrays[name];
  return line({ data, offset: 0, stride: shape[1], rows: shape[0], cols: shape[1] });
}

// How heads and cells are marked: which colour each of the compared heads has, which it keeps while others come and go; what edits
// changed, which magenta says and a shape with it; and where a ramp ends.
import { MOST_HEADS } from "./state.js";
import { make } from "../core/dom.js";

/**
 * @typedef {import("./state.js").Pair} Pair
 * @typedef {import("../core/trace.js").Trace} Trace
 * @typedef {{ trace: Trace, state: { focus: string } }} Attended whose edits are looked for
 */

/** @type {WeakMap<object, Map<string, number>>} */
const given = new WeakMap(); // page -> Map of "layer.head" -> number of its colour; a window has those of the page that it is in

/**
 * The heads that are compared, [[layer, head], ...], the shown one first.
 * @param {{ state: { layer: number, head: number, heads?: Pair[] } }} page
 */
export function compared(page) {
  const { layer, head, heads = [] } = page.state;
  const others = heads.filter(([l, h]) => l !== layer || h !== head);
  /** @type {Pair[]} */
  const leading = [[layer, head], ...others];
  return leading.slice(0, MOST_HEADS);
}

/**
 * The role (a colour of tokens.json) of each of `heads`: attention's own where there is one only.
 * @param {import("./attention.js").Face} page
 * @param {Pair[]} heads
 */
export function roles(page, heads) {
  if (heads.length === 1) return ["attention"];
  const owner = page.page ?? page;
  const colours = given.get(owner) ?? new Map();
  given.set(owner, colours);
  const names = heads.map((head) => head.join("."));
  for (const name of colours.keys()) if (!names.includes(name)) colours.delete(name);
  for (const name of [...names].sort()) {
    if (colours.has(name)) continue;
    const taken = new Set(colours.values());
    for (let n = 1; !colours.has(name); n++) if (!taken.has(n)) colours.set(name, n);
  }
  return names.map((name) => `head-${colours.get(name)}`);
}

/**
 * The value at which the ramp, or the bar, of what is called `name` is full; `own` is that of the run of `page` by itself. On a page
 * about several runs (compare/ends.js) it is the largest of theirs, so that the same colour is the same number in all of them.
 * @param {Pick<import("./attention.js").Face, "end">} page
 * @param {string} name
 * @param {number} own
 */
export function endOf(page, name, own) {
  return page.end ? page.end(name, own) : own;
}

// --- edits ---

/**
 * Whether an edit reaches into a head of the attention in view.
 * @param {Attended} page
 * @param {number} layer
 * @param {number} head
 */
export function isEdited({ trace, state }, layer, head) {
  return (trace.editedHeads?.[`${trace.prefix}${state.focus}`] ?? []).some(([l, h]) => l === layer && h === head);
}

const STAGES = ["scores", "capped", "bias", "c2p", "p2c", "mask", "masked_scores", "pattern"]; // as engine/analysis/edit_extent.py counts them, from 1
/** @type {WeakMap<Uint8Array, Map<string, Block | undefined>>} */
const made = new WeakMap(); // numbers of a trace -> Map of "head stage" -> block

/**
 * The cells of a head that edits put there, at `stage` or before it, as a block of 0 and 1 (cells.js); undefined where there is
 * none, or the layer is not here.
 * @param {Attended} page
 * @param {number} layer
 * @param {number} head
 */
export function editedCells({ trace, state }, layer, head, stage = "pattern") {
  const found = trace.array(`blocks.${layer}.${state.focus}.edited`);
  if (!found) return undefined;
  /** @type {Uint8Array} */
  const stages = found.data;
  const kept = made.get(stages) ?? new Map();
  made.set(stages, kept);
  const name = `${head} ${stage}`;
  if (!kept.has(name)) {
    const [, rows, cols] = found.shape;
    const last = STAGES.indexOf(stage) + 1;
    const part = stages.subarray(head * rows * cols, (head + 1) * rows * cols);
    const data = part.map((stage) => Number(stage > 0 && stage <= last));
    kept.set(name, data.some(Boolean) ? { data, offset: 0, stride: cols, rows, cols } : undefined);
  }
  return kept.get(name);
}

/**
 * The word of a legend: `shape` is "cells" for a dashed border, "line" for a dashed line, "head" for the corner of a thumbnail.
 * @param {"cells" | "line" | "head"} shape
 */
export function editedSign(shape, text = "edited") {
  const element = make("span", "edited-sign");
  element.append(make("span", `edited-${shape}`), text);
  return element;
}

// What edits changed of the heads that are looked at: which of them, and which cells. Magenta says it, and a shape with it.
import { make } from "../core/dom.js";

/** Whether an edit reaches into a head of the attention in view. */
export function isEdited({ trace, state }, layer, head) {
  return (trace.editedHeads?.[`${trace.prefix}${state.focus}`] ?? []).some(([l, h]) => l === layer && h === head);
}

const STAGES = ["scores", "capped", "bias", "mask", "masked_scores", "pattern"]; // as engine/analysis/touched.py counts them, from 1
const made = new WeakMap(); // numbers of a trace -> Map of "head stage" -> block

/**
 * The cells of a head that edits put there, at `stage` or before it, as a block of 0 and 1 (cells.js); undefined where there is
 * none, or the layer is not here.
 */
export function editedCells({ trace, state }, layer, head, stage = "pattern") {
  const found = trace.array(`blocks.${layer}.${state.focus}.edited`);
  if (!found) return undefined;
  if (!made.has(found.data)) made.set(found.data, new Map());
  const kept = made.get(found.data);
  const name = `${head} ${stage}`;
  if (!kept.has(name)) {
    const [, rows, cols] = found.shape;
    const last = STAGES.indexOf(stage) + 1;
    const data = found.data.subarray(head * rows * cols, (head + 1) * rows * cols).map((one) => one > 0 && one <= last);
    kept.set(name, data.some(Boolean) ? { data, offset: 0, stride: cols, rows, cols } : undefined);
  }
  return kept.get(name);
}

/** The word of a legend: `shape` is "cells" for a dashed border, "line" for a dashed line, "head" for the corner of a thumbnail. */
export function editedSign(shape, text = "edited") {
  const element = make("span", "edited-sign");
  element.append(make("span", `edited-${shape}`), text);
  return element;
}

export const EDITED = `
.edited-sign { display: inline-flex; align-items: center; gap: 6px; font: 11.5px/14px var(--mono); color: var(--edited); white-space: nowrap; }
.edited-cells { width: 15px; height: 11px; border: 1.6px dashed var(--edited); }
.edited-line { width: 24px; border-top: 2px dashed var(--edited); }
.edited-head { width: 10px; height: 10px; background: var(--edited); clip-path: polygon(0 0, 100% 0, 100% 100%); }
.edited-tag { font-size: 12.5px; line-height: 20px; font-weight: 600; color: var(--edited); border: 1.5px dashed var(--edited); border-radius: 6px; padding: 0 7px; }
`;

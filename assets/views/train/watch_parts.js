// The parts of a model as watch.jsonl names them: their order, what a person calls them, and whose colour they have.
import { number } from "../core/format.js";

const PART = /^(?:(encoder|decoder)\.)?blocks\.(\d+)(?:\.(attn|mlp))?$/;
const INSIDE = { attn: "attention", mlp: "MLP" };
const ROLES = { attn: "attention", mlp: "mlp" };

/** "encoder.blocks.0.attn" -> "encoder block 1 · attention". */
export function titleOf(part) {
  const [found, stack, block, inside] = part.match(PART) ?? [];
  if (!found) return part === "embed" ? "embedding" : part;
  return `${stack ? `${stack} ` : ""}block ${Number(block) + 1}${inside ? ` · ${INSIDE[inside]}` : ""}`;
}

/** The role whose colour the part has: what is written into the residual stream has the stream's. */
export function roleOf(part) {
  if (part === "head") return "probability";
  return ROLES[part.match(PART)?.[3]] ?? "residual";
}

/** A number of the watched as it stands in a column: four digits, "–" where there is none. */
export function said(value) {
  return value === undefined ? "–" : number(value).replace(/(\.\d+?)\d$/, "$1");
}

/** All parts that `lines` have under `name`, from the embedding up to the head. */
export function partsOf(lines, name) {
  const found = new Set(lines.flatMap((line) => Object.keys(line[name])));
  return [...found].sort((a, b) => place(a) - place(b));
}

function place(part) {
  const [found, stack, block, inside] = part.match(PART) ?? [];
  if (!found) return part === "embed" ? -1 : 1e9;
  return (stack === "encoder" ? 0 : 1e6) + 4 * Number(block) + (inside === "mlp" ? 1 : 0);
}

/** The index of the line whose step is nearest to `step`, -1 where there are none; of two as near, the earlier. */
export function nearest(lines, step) {
  let [low, high] = [0, lines.length - 1];
  if (high < 0) return -1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lines[middle].step < step) low = middle + 1;
    else high = middle;
  }
  return low > 0 && step - lines[low - 1].step <= lines[low].step - step ? low - 1 : low;
}

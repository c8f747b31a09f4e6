// The form of what heads attend to: its shapes, another head's, or weights by hand. What is sent is made of them.
import { drawable } from "./experiment_fields.js";
import { shownOf } from "./experiment_grid.js";
import { attentionOf, blocks, numbers, parsed, prefix, select, whichAttention, whichBlock, whichHeads, whichTokens } from "./experiment_places.js";

const SHAPES = [
  ["uniform", "evenly to all they may see"],
  ["previous", "to the previous token"],
  ["first", "to the first token"],
  ["itself", "to the token itself"],
  ["position", "to one token"],
  ["other", "as another head does"],
  ["painted", "weights painted by hand"],
  ["drawn", "weights drawn whole, in place of its own"],
];
const OF_SAME_TEXT = ["previous", "itself"];

/** What the form holds: `to` is the shape, `from` the other head, `brush` the weight that is painted. */
export function patternBlank(where) {
  return { edit: "Pattern", to: "previous", position: 0, from: { layer: 0, head: 0 }, cells: [], weights: [], drawn: null, brush: 1, free: false, ...where };
}

export function patternFields(edit, data) {
  const own = attentionOf(edit, data);
  const fits = ([to]) => !(edit.cross && OF_SAME_TEXT.includes(to)) && (to !== "drawn" || edit.drawn || drawable(own));
  const shapes = SHAPES.filter(fits);
  if (!shapes.some(([to]) => to === edit.to)) edit.to = "uniform";
  const [other, byHand] = [edit.to === "other", edit.to === "painted" || edit.to === "drawn"];
  if (other) Object.assign(edit, { layer: edit.layer ?? 0, heads: [edit.heads?.[0] ?? 0] });
  edit.position = Math.min(edit.position, own.keys.length - 1);
  edit.from.layer = Math.min(edit.from.layer, own.layers - 1);
  edit.from.head = Math.min(edit.from.head, own.heads - 1);
  return [
    select("attend", shapes, edit.to, (to) => (edit.to = to)),
    whichAttention(edit, data),
    whichBlock(edit, own.layers, !other),
    { ...whichHeads(edit, data, other ? "" : "all"), single: other },
    other && select("as in block", blocks(own.layers), edit.from.layer, (layer) => (edit.from.layer = layer)),
    other && select("its head", numbers(own.heads).map((text, i) => [i, text]), edit.from.head, (head) => (edit.from.head = head)),
    edit.to === "position" && whichTokens("to", own.keys, [edit.position], ([i]) => (edit.position = i), { single: true }),
    byHand && { type: "number", label: "weight to paint", value: edit.brush, min: edit.free ? undefined : 0, max: edit.free ? undefined : 1, step: "any", set: (weight) => (edit.brush = weight) },
    byHand && select("rows", [[false, "go on summing to 1"], [true, "as painted, whatever their sum"]], edit.free, (free) => (edit.free = free)),
    byHand && { type: "weights", label: `how much each token (row) looks at each (column)${shownOf(edit)}`, edit, own },
  ];
}

export function patternSent({ to, position, from, cells, weights, drawn, free, layer, heads, stack, cross }) {
  const where = { layer, heads, stack, cross };
  if (to === "painted") return { edit: "PaintPattern", cells, weights, free, ...where };
  if (to === "drawn") return { edit: "DrawPattern", weights: drawn, free, ...where };
  if (to !== "other") return { edit: "SetPattern", to, position: to === "position" ? position : null, ...where };
  const hook = (block) => `${prefix(stack)}blocks.${block}.${cross ? "cross_attn" : "attn"}.pattern`;
  const one = { hook: hook(layer), source: null, source_hook: hook(from.layer), source_at: { head: from.head } };
  return { edit: "Patch", ...one, at: { head: heads[0] } };
}

/** The form's view of an edit of a pattern. */
export function patternRead(edit) {
  const { layer, heads, stack, cross } = edit;
  const made = patternBlank({ layer, heads, stack, cross });
  if (edit.edit === "SetPattern") return { ...made, to: edit.to, position: edit.position ?? 0 };
  if (edit.edit === "PaintPattern") return { ...made, to: "painted", cells: edit.cells, weights: edit.weights, free: edit.free };
  if (edit.edit === "DrawPattern") return { ...made, to: "drawn", drawn: edit.weights, free: edit.free };
  const [here, there] = [parsed(edit.hook), parsed(edit.source_hook)];
  const from = { layer: there.layer, head: edit.source_at.head };
  return { ...made, to: "other", from, layer: here.layer, heads: [edit.at.head], stack: here.stack, cross: here.part.startsWith("cross_attn") };
}

const isOtherHead = (edit) => edit.edit === "Patch" && edit.source === null && /\.pattern$/.test(edit.source_hook ?? "") && Number.isInteger(edit.at.head) && Number.isInteger(edit.source_at?.head);

export const isPattern = (edit) => ["SetPattern", "PaintPattern", "DrawPattern"].includes(edit.edit) || isOtherHead(edit);

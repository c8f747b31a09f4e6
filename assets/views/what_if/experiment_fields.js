// The forms of edits of masks, positions and tokens.
import { attentionOf, select, stackOf, whichAttention, whichBlock, whichHeads, whichStack, whichTokens } from "./experiment_places.js";
import { shownOf } from "./experiment_grid.js";

const PRESETS = [
  ["causal", "causal: what came before"],
  ["full", "full: everything"],
  ["window", "window: what is near"],
  ["causal window", "window of what came before"],
  ["prefix", "prefix: its first tokens for all"],
];
const PAINTS = [
  ["flip", "is turned round"],
  ["allow", "may be seen"],
  ["forbid", "may not be seen"],
];
export const DRAWN = 64; // tokens up to which a whole matrix is drawn, as every cell of it stands in the address

/** Whether a matrix can be drawn whole, which one that is drawn already stays. */
export const drawable = ({ rows, keys }) => Math.max(rows.length, keys.length) <= DRAWN;

export function maskFields(edit, data) {
  const kind = { PaintMask: "paint", DrawMask: "draw" }[edit.edit] ?? edit.kind;
  const change = (to) => {
    const { layer, heads, stack, cross } = edit;
    for (const name of Object.keys(edit)) delete edit[name];
    const made = { paint: { edit: "PaintMask", cells: [], rows: [], columns: [], to: "flip" }, draw: { edit: "DrawMask" } }[to];
    Object.assign(edit, made ?? { edit: "PresetMask", kind: to, size: sized(to) ? 3 : null }, { layer, heads, stack, cross });
  };
  const own = attentionOf(edit, data);
  const whole = drawable(own) || kind === "draw" ? [["draw", "drawn whole, in place of its own"]] : [];
  return [
    select("mask", [["paint", "painted by hand"], ...whole, ...PRESETS], kind, change),
    kind === "paint" && select("what is painted", PAINTS, edit.to, (to) => (edit.to = to)),
    sized(kind) && { type: "number", label: kind === "prefix" ? "tokens" : "reach", value: edit.size, min: 1, step: 1, set: (size) => (edit.size = size) },
    whichAttention(edit, data),
    whichBlock(edit, own.layers),
    whichHeads(edit, data),
    (kind === "paint" || kind === "draw") && { type: "paint", label: `who (row) may see whom (column)${shownOf(edit)}`, edit, own },
  ];
}

const sized = (kind) => ["window", "causal window", "prefix"].includes(kind);

export function positionFields(edit, data) {
  const own = stackOf(edit, data);
  const change = (kind) => {
    const { layer, stack } = edit;
    for (const name of Object.keys(edit)) delete edit[name];
    const all = { SwapPositions: { first: 0, second: Math.min(1, own.pieces.length - 1) }, DropPositions: { positions: null }, ShiftPositions: { by: 1, positions: null } };
    Object.assign(edit, { edit: kind, layer, stack }, all[kind]);
  };
  const swaps = edit.edit === "SwapPositions";
  const some = (chosen) => (edit.positions = chosen.length ? chosen : null);
  return [
    select("do", [["SwapPositions", "swap two tokens' positions"], ["DropPositions", "take positions away"], ["ShiftPositions", "shift positions"]], edit.edit, change),
    whichStack(edit, data),
    own.turned && whichBlock(edit, own.layers),
    edit.edit === "ShiftPositions" && { type: "number", label: "by", value: edit.by, step: 1, set: (by) => (edit.by = by) },
    swaps && whichTokens("one", own.pieces, [edit.first], ([i]) => (edit.first = i), { single: true }),
    swaps && whichTokens("other", own.pieces, [edit.second], ([i]) => (edit.second = i), { single: true }),
    !swaps && whichTokens("tokens", own.pieces, edit.positions ?? [], some, { none: "all" }),
  ];
}

export function tokenFields(edit, data) {
  const own = stackOf(edit, data);
  edit.position = Math.min(edit.position, own.pieces.length - 1);
  return [
    whichStack(edit, data),
    { type: "text", label: "becomes", value: edit.token.text, set: (text) => (edit.token = { text }), hint: "one token" },
    { type: "number", label: "share of it", value: edit.share, step: "any", set: (share) => (edit.share = share) },
    whichTokens("token", own.pieces, [edit.position], ([i]) => (edit.position = i), { single: true }),
  ];
}


// The forms of those kinds of edits that take more than a line, and what is sent for those whose form is no edit itself.
import { attentionOf, blocks, numbers, parsed, prefix, select, stackOf, whichAttention, whichBlock, whichHeads, whichHook, whichStack, whichTokens } from "./experiment_places.js";

const PRESETS = [
  ["causal", "causal: what came before"],
  ["full", "full: everything"],
  ["window", "window: what is near"],
  ["causal window", "window of what came before"],
  ["prefix", "prefix: its first tokens for all"],
];

export function maskFields(edit, data) {
  const kind = edit.edit === "PaintMask" ? "paint" : edit.kind;
  const change = (to) => {
    const { layer, heads, stack, cross } = edit;
    for (const name of Object.keys(edit)) delete edit[name];
    const painted = { edit: "PaintMask", cells: [], rows: [], columns: [], to: "flip" };
    Object.assign(edit, to === "paint" ? painted : { edit: "PresetMask", kind: to, size: sized(to) ? 3 : null }, { layer, heads, stack, cross });
  };
  const own = attentionOf(edit, data);
  return [
    select("mask", [["paint", "painted by hand"], ...PRESETS], kind, change),
    sized(kind) && { type: "number", label: kind === "prefix" ? "tokens" : "reach", value: edit.size, min: 1, step: 1, set: (size) => (edit.size = size) },
    whichAttention(edit, data),
    whichBlock(edit, own.layers),
    whichHeads(edit, data),
    kind === "paint" && { type: "paint", label: "who (row) may see whom (column)", edit, own },
  ];
}

const sized = (kind) => ["window", "causal window", "prefix"].includes(kind);

const SHAPES = [
  ["uniform", "evenly to all they may see"],
  ["previous", "to the previous token"],
  ["first", "to the first token"],
  ["itself", "to the token itself"],
  ["other", "as another head does"],
];

/** `to` is the shape, `from` the other head: what is sent is made of them. */
export function patternFields(edit, data) {
  const own = attentionOf(edit, data);
  const shapes = edit.cross ? SHAPES.filter(([to]) => to !== "previous" && to !== "itself") : SHAPES;
  if (!shapes.some(([to]) => to === edit.to)) edit.to = "uniform";
  const other = edit.to === "other";
  if (other) Object.assign(edit, { layer: edit.layer ?? 0, heads: [edit.heads?.[0] ?? 0] });
  return [
    select("attend", shapes, edit.to, (to) => (edit.to = to)),
    whichAttention(edit, data),
    whichBlock(edit, own.layers, !other),
    { ...whichHeads(edit, data, other ? "" : "all"), single: other },
    other && select("as in block", blocks(own.layers), edit.from.layer, (layer) => (edit.from.layer = layer)),
    other && select("its head", numbers(own.heads).map((text, i) => [i, text]), edit.from.head, (head) => (edit.from.head = head)),
  ];
}

export function patternSent({ to, from, layer, heads, stack, cross }) {
  if (to !== "other") return { edit: "SetPattern", to, layer, heads, stack, cross };
  const hook = (block) => `${prefix(stack)}blocks.${block}.${cross ? "cross_attn" : "attn"}.pattern`;
  const one = { hook: hook(layer), source: null, source_hook: hook(from.layer), source_at: { head: from.head } };
  return { edit: "Patch", ...one, at: { head: heads[0] } };
}

/** The form's view of an edit of a pattern. */
export function patternRead(edit) {
  if (edit.edit === "SetPattern") return { ...edit, edit: "Pattern", from: { layer: 0, head: 0 } };
  const [here, there] = [parsed(edit.hook), parsed(edit.source_hook)];
  const cross = here.part.startsWith("cross_attn");
  const from = { layer: there.layer, head: edit.source_at.head };
  return { edit: "Pattern", to: "other", from, layer: here.layer, heads: [edit.at.head], stack: here.stack, cross };
}

export const isOtherHead = (edit) => edit.edit === "Patch" && edit.source === null && /\.pattern$/.test(edit.source_hook ?? "") && Number.isInteger(edit.at.head) && Number.isInteger(edit.source_at?.head);

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

export function patchFields(edit, data) {
  const options = (stack) => stack.patched.map(({ part }) => [part, part]);
  const where = parsed(edit.hook);
  const own = data.stacks.find((one) => one.stack === where.stack) ?? data.stacks.at(-1);
  const axes = own.patched.find(({ part }) => part === where.part)?.axes ?? [];
  if (!axes.includes("head")) delete edit.at.head;
  const at = (axis) => (chosen) => (chosen.length ? (edit.at[axis] = chosen) : delete edit.at[axis]);
  const listed = (axis) => [edit.at[axis] ?? []].flat();
  const other = edit.source !== null;
  const from = edit.source_at?.pos ?? null;
  const move = (pos) => (edit.source_at = pos === null ? null : { pos: Math.round(pos) });
  return [
    ...whichHook(edit, data, "value", options),
    axes.includes("head") && { type: "toggles", label: "heads", options: numbers(own.heads), value: listed("head"), set: at("head"), none: "all" },
    select("taken from", [[true, "another text"], [false, "this text, without edits"]], other, (is) => (edit.source = is ? { text: "" } : null)),
    other && { type: "text", label: "the other text", value: edit.source.text, set: (text) => (edit.source = { text }), hint: "the same text with another word in it" },
    other && { type: "number", label: "its token number", value: from, min: 0, step: 1, set: move, hint: "same" },
    whichTokens("at", own.pieces, listed("pos"), at("pos"), { none: "every token" }),
  ];
}

/** Heads are those of `at` there as well: only the token may be another one. */
export function patchSent(edit) {
  return edit.source_at ? { ...edit, source_at: { ...edit.at, pos: edit.source_at.pos } } : edit;
}

export function steerFields(edit, data) {
  const options = (stack) => stack.steered.map((part) => [part, part]);
  const own = data.stacks.find((one) => one.stack === parsed(edit.hook).stack) ?? data.stacks.at(-1);
  const some = (chosen) => (chosen.length ? (edit.at.pos = chosen) : delete edit.at.pos);
  return [
    ...whichHook(edit, data, "value", options),
    { type: "text", label: "toward", value: edit.toward.text, set: (text) => (edit.toward = { text }), hint: "a text such as: Love" },
    { type: "text", label: "away from", value: edit.away.text, set: (text) => (edit.away = { text }), hint: "a text such as: Hate" },
    { type: "number", label: "times", value: edit.factor, step: "any", set: (factor) => (edit.factor = factor) },
    select("read", [["last", "at the last token"], ["mean", "as the mean over tokens"]], edit.read, (read) => (edit.read = read)),
    whichTokens("added at", own.pieces, [edit.at.pos ?? []].flat(), some, { none: "every token" }),
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


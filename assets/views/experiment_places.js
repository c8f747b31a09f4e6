// Where an edit is made: the fields that choose a stack, an attention, a block, heads, tokens or a hook.
import * as address from "./address.js";
import { range } from "./dom.js";

const ALL = "every block";

/** The block, head, row and attention that the page looks at now, as far as this model has them. */
export function looked(data) {
  const { side, focus, layer = 0, head = 0, query } = { ...data.look, ...address.read() };
  const last = data.stacks.at(-1);
  const found = data.attentions.find((one) => one.stack === (side ?? last.stack) && one.cross === (focus === "cross_attn"));
  const attention = found ?? data.attentions.at(data.stacks.length > 1 ? -2 : -1);
  const rows = attention.rows.length;
  return {
    attention,
    layer: Math.min(Number(layer) || 0, attention.layers - 1),
    head: Math.min(Number(head) || 0, attention.heads - 1),
    row: Number.isInteger(query) && query >= 0 && query < rows ? query : rows - 1,
  };
}

export function place({ attention, layer }) {
  return { layer, heads: null, stack: attention.stack, cross: attention.cross };
}

export function attentionOf(edit, data) {
  return data.attentions.find((one) => one.stack === edit.stack && one.cross === edit.cross) ?? data.attentions.at(-1);
}

export function stackOf(edit, data) {
  return data.stacks.find((one) => one.stack === edit.stack) ?? data.stacks.at(-1);
}

export const select = (label, options, value, set) => ({ type: "select", label, options, value, set });
export const blocks = (layers) => range(0, layers).map((layer) => [layer, `block ${layer + 1} of ${layers}`]);
export const numbers = (count) => range(1, count + 1).map(String);

export function whichAttention(edit, data) {
  if (data.attentions.length < 2) return null;
  const now = data.attentions.indexOf(attentionOf(edit, data));
  return select("attention", data.attentions.map((one, i) => [i, one.label]), now, (i) => {
    const { stack, cross, layers } = data.attentions[i];
    Object.assign(edit, { stack, cross, heads: null, layer: edit.layer === null ? null : Math.min(edit.layer, layers - 1) });
    for (const painted of ["cells", "rows", "columns"]) if (painted in edit) edit[painted] = [];
  });
}

export function whichStack(edit, data) {
  if (data.stacks.length < 2) return null;
  return select("stack", data.stacks.map(({ stack }) => [stack, stack]), stackOf(edit, data).stack, (stack) => Object.assign(edit, { stack }));
}

export function whichBlock(edit, layers, every = true) {
  return select("block", [...(every ? [[null, ALL]] : []), ...blocks(layers)], edit.layer, (layer) => Object.assign(edit, { layer }));
}

export function whichHeads(edit, data, none = "all") {
  const { heads } = attentionOf(edit, data);
  const set = (chosen) => (edit.heads = chosen.length ? chosen : none ? null : edit.heads);
  return { type: "toggles", label: "heads", options: numbers(heads), value: edit.heads ?? [], set, none };
}

export function whichTokens(label, pieces, value, set, more = {}) {
  return { type: "tokens", label, options: pieces, value, set, ...more };
}

export const prefix = (stack) => (stack ? `${stack}.` : "");

/** {stack, layer, part} of a hook's name. */
export function parsed(hook) {
  const [, stack = "", layer = "0", part = ""] = hook.match(/^(?:(\w+)\.)?blocks\.(\d+)\.(.+)$/) ?? [];
  return { stack: stack || null, layer: Number(layer), part };
}

/** The fields that choose a hook inside a block: `parts` are the options of its last part, [name, text], by layer. */
export function whichHook(edit, data, label, parts) {
  const where = parsed(edit.hook);
  const write = (change) => {
    const { stack, layer, part } = { ...where, ...change };
    const found = data.stacks.find((one) => one.stack === stack) ?? data.stacks.at(-1);
    const kept = Math.min(layer, found.layers - 1);
    const options = parts(found, kept);
    const held = options.some(([name]) => name === part) ? part : options[0][0];
    edit.hook = `${prefix(found.stack)}blocks.${kept}.${held}`;
  };
  const own = data.stacks.find((one) => one.stack === where.stack) ?? data.stacks.at(-1);
  return [
    data.stacks.length > 1 && select("stack", data.stacks.map(({ stack }) => [stack, stack]), own.stack, (stack) => write({ stack })),
    select("block", blocks(own.layers), where.layer, (layer) => write({ layer })),
    select(label, parts(own, where.layer), where.part, (part) => write({ part })),
  ];
}

const inBlock = (hook, { stack }, layer) => hook.slice(`${prefix(stack)}blocks.${layer}.`.length);
export const weighed = (stack, layer) => Object.entries(stack.parts[layer]).map(([name, hook]) => [inBlock(hook, stack, layer), name]);

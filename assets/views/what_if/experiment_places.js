// Where an edit is made: the fields that choose a stack, an attention, a block, heads, tokens or a hook.
import * as address from "../core/address.js";
import { range } from "../core/dom.js";

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
    for (const painted of ["cells", "rows", "columns", "weights"]) if (painted in edit) edit[painted] = [];
    for (const drawn of ["allowed", "drawn"]) if (drawn in edit) edit[drawn] = null;
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

const OUTSIDE = "outside of the blocks";

/** {stack, layer, part} of a hook's name: of layer "*" it is every block's, of null no block's. */
export function parsed(hook) {
  const inside = hook.match(/^(?:(\w+)\.)?blocks\.(\d+|\*)\.(.+)$/);
  if (inside) return { stack: inside[1] ?? null, layer: inside[2] === "*" ? "*" : Number(inside[2]), part: inside[3] };
  const [, stack = null, part] = hook.match(/^(?:(encoder|decoder)\.)?(.+)$/);
  return { stack, layer: null, part };
}

/** A hook of this model by its name: {hook, part, axes: [[axis, size]], stack, layer}, undefined where it has none. */
export function hookOf(name, data) {
  const { stack, layer, part } = parsed(name);
  const holds = data.stacks.find((one) => one.stack === stack) ?? data.stacks.at(-1);
  if (layer === null) {
    const found = holds.outer.find(({ hook }) => hook === name);
    return found && { ...found, stack: holds, layer };
  }
  const found = holds.inner.find((one) => one.part === part);
  return found && holds.stack === stack && (layer === "*" || layer < holds.layers) ? { ...found, hook: name, stack: holds, layer } : undefined;
}

/** The fields that choose a hook: `choose({inner, outer})` leaves those that fit; `moved()` hears that it is another. */
export function whichHook(edit, data, label, choose, moved = () => {}) {
  const where = parsed(edit.hook);
  const own = data.stacks.find((one) => one.stack === where.stack) ?? data.stacks.at(-1);
  const fitting = choose(own);
  const of = (stack, layer) => (layer === null ? choose(stack).outer : choose(stack).inner);
  const write = (change) => {
    const { stack, layer, part } = { ...where, ...change };
    const found = data.stacks.find((one) => one.stack === stack) ?? data.stacks.at(-1);
    const options = of(found, layer);
    const block = typeof layer === "number" ? Math.min(layer, found.layers - 1) : layer;
    const held = options.find((one) => one.part === part) ?? options[layer === null ? 0 : options.length - 1];
    edit.hook = layer === null ? held.hook : `${prefix(found.stack)}blocks.${block}.${held.part}`;
    moved();
  };
  const places = [["*", ALL], ...blocks(own.layers), ...(fitting.outer.length ? [[null, OUTSIDE]] : [])];
  return [
    data.stacks.length > 1 && select("stack", data.stacks.map(({ stack }) => [stack, stack]), own.stack, (stack) => write({ stack })),
    select("block", places, where.layer, (layer) => write({ layer })),
    select(label, of(own, where.layer).map(({ part }) => [part, part]), where.part, (part) => write({ part })),
  ];
}

/** The fields that choose a part of a block, which `stack.parts` lists by layer. */
export function whichPiece(edit, data) {
  const { stack: named, layer } = parsed(edit.hook);
  const own = data.stacks.find((one) => one.stack === named) ?? data.stacks.at(-1);
  const now = Object.entries(own.parts[layer]).find(([, hook]) => hook === edit.hook)?.[0];
  const write = (stack, block, name) => {
    const found = stack.parts[Math.min(block, stack.layers - 1)];
    edit.hook = found[name] ?? Object.values(found)[0];
  };
  const stacked = (stack) => data.stacks.find((one) => one.stack === stack);
  return [
    data.stacks.length > 1 && select("stack", data.stacks.map(({ stack }) => [stack, stack]), own.stack, (stack) => write(stacked(stack), layer, now)),
    select("block", blocks(own.layers), layer, (block) => write(own, block, now)),
    select("part", Object.keys(own.parts[layer]).map((name) => [name, name]), now, (name) => write(own, layer, name)),
  ];
}

/** The indices of an axis of `size`, counted from 0, that an edit names: one, several or none. */
export const listed = (indices, size) => [indices ?? []].flat().map((i) => (i < 0 ? i + size : i));

/** [0, 1, 2, 7] -> "0-2, 7" */
export function wholes(indices) {
  const runs = [];
  for (const i of indices) {
    if (runs.at(-1)?.[1] === i - 1) runs.at(-1)[1] = i;
    else runs.push([i, i]);
  }
  return runs.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(", ");
}

/** "0-2, 7" -> [0, 1, 2, 7], as far as an axis of `size` has them; null where the text says something else. */
export function within(text, size) {
  const found = text.split(/[,\s]+/).filter(Boolean).map((one) => one.match(/^(\d+)(?:-(\d+))?$/));
  if (!found.every(Boolean)) return null;
  const all = found.flatMap(([, from, to = from]) => range(Number(from), Math.min(Number(to), size - 1) + 1));
  return [...new Set(all)].filter((i) => i < size).sort((a, b) => a - b);
}

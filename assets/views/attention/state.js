// What the page about attention looks at, as it stands in the address: read whatever somebody typed there, and written.

export const MOST_HEADS = 12; // compared at a time: as many colours as tokens.json has for them
const OWN = ["side", "focus", "layer", "head", "heads", "query", "key", "view", "score", "order", "threshold"];

/** The tabs: name, title, what each shows. */
export const VIEWS = [
  ["map", "Map", "every weight of this head: queries down, keys across"],
  ["lines", "Lines", "every weight as a line from a token to the tokens that it reads"],
  ["product", "q·k", "how query and key make one score, component by component"],
  ["steps", "Steps", "one row from scores through mask and softmax to the mix of values"],
  ["text", "Text", "the text itself, coloured by attention"],
  ["points", "Points", "queries and keys as points of one space"],
  ["circuits", "Circuits", "what the head's weights do to any token: OV and QK"],
  ["alignment", "Alignment", "which source words the target was made from"],
];

/** State from the address. `chosen` says that a head is named there, else the example says where to look. */
export function restore(address) {
  const { side, focus, layer, head, heads, query, key, view, score, order, threshold } = address;
  const more = Object.entries(address).filter(([name]) => !OWN.includes(name)); // the views' own: each checks its own
  return {
    ...Object.fromEntries(more),
    chosen: [layer, head].some((i) => whole(i) !== undefined) || typeof side === "string" || typeof focus === "string",
    side: typeof side === "string" ? side : undefined,
    focus: focus === "attn" ? focus : undefined,
    layer: whole(layer) ?? 0,
    head: whole(head) ?? 0,
    heads: Array.isArray(heads) ? heads.filter(isHead) : [],
    query: whole(query),
    key: whole(key),
    pinned: whole(key) !== undefined, // a key that was picked stays; one that was not follows the strongest of its row
    view: typeof view === "string" ? view : "map",
    score: typeof score === "string" ? score : undefined,
    order: order === "largest" || order === "smallest" ? order : undefined,
    threshold: Number.isFinite(threshold) ? threshold : undefined,
  };
}

/** What goes into the address; undefined takes an entry out. */
export function remembered(state, { trace }) {
  const { chosen, pinned, side, focus, heads, key, view, ...rest } = state;
  return {
    ...rest,
    side: side === trace.sides.at(-1) ? undefined : side,
    focus: trace.model.crosses && focus === "attn" ? focus : undefined,
    heads: heads.length > 1 ? heads : undefined,
    key: pinned ? key : undefined,
    view: view === "map" ? undefined : view,
  };
}

/** The compared heads after the shown one became [layer, head]: it leads; where it was among them, none leaves. */
export function led(heads, layer, head) {
  const others = heads.filter((one) => !same(one, [layer, head]));
  return [[layer, head], ...(others.length < heads.length ? others : others.slice(1))].slice(0, MOST_HEADS);
}

/** The compared heads with one more at their end, or without it where it was among them; the last one stays. */
export function toggled(heads, layer, head) {
  const others = heads.filter((one) => !same(one, [layer, head]));
  if (others.length < heads.length) return others.length ? others : heads;
  return heads.length < MOST_HEADS ? [...heads, [layer, head]] : heads;
}

export function clamp(i, size) {
  return Math.max(0, Math.min(size - 1, i));
}

function same([layer, head], [otherLayer, otherHead]) {
  return layer === otherLayer && head === otherHead;
}

function isHead(one) {
  return Array.isArray(one) && one.length === 2 && one.every((i) => whole(i) !== undefined);
}

function whole(value) {
  return Number.isInteger(value) && value >= 0 ? value : undefined;
}

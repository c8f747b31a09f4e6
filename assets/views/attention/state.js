// What the page about attention looks at, as it stands in the address: read whatever somebody typed there, and written.

/**
 * @typedef {import("../components/headgrid.js").Pair} Pair
 * @typedef {import("../core/address.js").Entries} Entries
 * @typedef {{ side: string, focus: string, layer: number, head: number }} HeadOfRun as the server names it
 * @typedef {"shows" | "shares" | "zoom" | "from" | "isolated" | "least" | "sorted" | "over" | "way" | "first" | "last" | "alone" | "by" |
 *   "how" | "tint"} OwnName
 * @typedef {Partial<Record<OwnName, unknown>>} Own entries of the views, whatever somebody typed: each checks its own
 * @typedef {HeadOfRun & Own & { heads: Pair[], query: number, key: number, pinned: boolean, view: string, chosen?: boolean, score?: string,
 *   order?: "largest" | "smallest", threshold?: number }} State of a page, once `fit` has put it inside what the run has
 */

export const MOST_HEADS = 12; // compared at a time: as many colours as tokens.json has for them
const OWN = ["side", "focus", "layer", "head", "heads", "query", "key", "view", "score", "order", "threshold"];

/**
 * The tabs: name, title, what each shows.
 * @type {[name: string, title: string, about: string][]}
 */
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

/**
 * State from the address. `chosen` says that a head is named there, else the example says where to look.
 * @param {Entries} address
 */
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

/**
 * What goes into the address; undefined takes an entry out.
 * @param {State} state
 * @param {{ trace: import("../core/trace.js").Trace }} page
 */
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

/**
 * The compared heads after the shown one became [layer, head]: it leads; where it was among them, none leaves.
 * @param {Pair[]} heads
 * @param {number} layer
 * @param {number} head
 */
export function led(heads, layer, head) {
  const others = heads.filter((one) => !same(one, [layer, head]));
  /** @type {Pair[]} */
  const leading = [[layer, head], ...(others.length < heads.length ? others : others.slice(1))];
  return leading.slice(0, MOST_HEADS);
}

/**
 * The compared heads with one more at their end, or without it where it was among them; the last one stays.
 * @param {Pair[]} heads
 * @param {number} layer
 * @param {number} head
 * @returns {Pair[]}
 */
export function toggled(heads, layer, head) {
  const others = heads.filter((one) => !same(one, [layer, head]));
  if (others.length < heads.length) return others.length ? others : heads;
  return heads.length < MOST_HEADS ? [...heads, [layer, head]] : heads;
}

/**
 * @param {number} i
 * @param {number} size
 */
export function clamp(i, size) {
  return Math.max(0, Math.min(size - 1, i));
}

/**
 * @param {Pair} one
 * @param {Pair} other
 */
function same([layer, head], [otherLayer, otherHead]) {
  return layer === otherLayer && head === otherHead;
}

/**
 * @param {unknown} one
 * @returns {one is Pair}
 */
function isHead(one) {
  return Array.isArray(one) && one.length === 2 && one.every((i) => whole(i) !== undefined);
}

/** @param {unknown} value */
function whole(value) {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : undefined;
}

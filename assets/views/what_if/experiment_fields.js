// The kinds of edits that a person can make here: what each is called, where it starts, and the fields of its form.
// An edit is what engine/edits reads from JSON, but that texts stand where it has ids (views/what_if/experiment.py turns them).
import * as address from "../core/address.js";
import { range } from "../core/dom.js";
import { shownOf } from "./experiment_grid.js";

const ALL = "every block";

/** The block, head, row and attention that the page looks at now, as far as this model has them. */
export function viewed(data) {
  const { side, focus, layer = 0, head = 0, query } = { ...data.look, ...address.read() };
  const last = data.stacks.at(-1);
  const found = data.attentions.find(
    (one) => one.stack === (side ?? last.stack) && one.cross === (focus === "cross_attn"),
  );
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
  return select(
    "attention",
    data.attentions.map((one, i) => [i, one.label]),
    now,
    (i) => {
      const { stack, cross, layers } = data.attentions[i];
      Object.assign(edit, {
        stack,
        cross,
        heads: null,
        layer: edit.layer === null ? null : Math.min(edit.layer, layers - 1),
      });
      for (const painted of ["cells", "rows", "columns", "weights"]) if (painted in edit) edit[painted] = [];
      for (const drawn of ["allowed", "drawn"]) if (drawn in edit) edit[drawn] = null;
    },
  );
}

export function whichStack(edit, data) {
  if (data.stacks.length < 2) return null;
  return select(
    "stack",
    data.stacks.map(({ stack }) => [stack, stack]),
    stackOf(edit, data).stack,
    (stack) => Object.assign(edit, { stack }),
  );
}

export function whichBlock(edit, layers, every = true) {
  return select("block", [...(every ? [[null, ALL]] : []), ...blocks(layers)], edit.layer, (layer) =>
    Object.assign(edit, { layer }),
  );
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
  return found && holds.stack === stack && (layer === "*" || layer < holds.layers)
    ? { ...found, hook: name, stack: holds, layer }
    : undefined;
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
    data.stacks.length > 1 &&
      select(
        "stack",
        data.stacks.map(({ stack }) => [stack, stack]),
        own.stack,
        (stack) => write({ stack }),
      ),
    select("block", places, where.layer, (layer) => write({ layer })),
    select(
      label,
      of(own, where.layer).map(({ part }) => [part, part]),
      where.part,
      (part) => write({ part }),
    ),
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
    data.stacks.length > 1 &&
      select(
        "stack",
        data.stacks.map(({ stack }) => [stack, stack]),
        own.stack,
        (stack) => write(stacked(stack), layer, now),
      ),
    select("block", blocks(own.layers), layer, (block) => write(own, block, now)),
    select(
      "part",
      Object.keys(own.parts[layer]).map((name) => [name, name]),
      now,
      (name) => write(own, layer, name),
    ),
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
  const found = text
    .split(/[,\s]+/)
    .filter(Boolean)
    .map((one) => one.match(/^(\d+)(?:-(\d+))?$/));
  if (!found.every(Boolean)) return null;
  const all = found.flatMap(([, from, to = from]) => range(Number(from), Math.min(Number(to), size - 1) + 1));
  return [...new Set(all)].filter((i) => i < size).sort((a, b) => a - b);
}

// --- Where an edit takes its values from: the fields that choose another text, or another picture ---

const NUMBERED = /^picture (\d+)$/; // as views/edit_sources.py names a shipped one

/** What a form begins with for another run. */
export const blankSource = (data) =>
  data.others === "texts" ? { text: "" } : { picture: Math.min(1, data.pictures - 1) };

/** A picture that has a number is chosen by it; any other stays what it is. */
export function sourceRead(source) {
  const number = source?.name?.match(NUMBERED)?.[1];
  return number === undefined ? source : { picture: Number(number) };
}

/** The fields of one source; `set(source)` puts another in its place, `called` is the name of its text field. */
export function sourceFields(source, set, data, called, hint) {
  if (data.others === "texts")
    return [{ type: "text", label: called, value: source.text, set: (text) => set({ text }), hint }];
  const numbered = Number.isInteger(source.picture);
  const now = numbered ? "number" : "picture" in source ? "shown" : "kept";
  const ways = [
    ["number", "a picture by its number"],
    ["shown", `the one shown now: ${data.shown}`],
  ];
  if (now === "kept") ways.push(["kept", source.name || "a picture that the link brought"]);
  const made = {
    number: () => blankSource(data),
    shown: () => ({ picture: null, name: data.shown }),
    kept: () => source,
  };
  return [
    select(called, ways, now, (to) => set(made[to]())),
    numbered && {
      type: "number",
      label: `number, 0 to ${data.pictures - 1}`,
      name: `${called} number`,
      value: source.picture,
      min: 0,
      max: data.pictures - 1,
      step: 1,
      set: (picture) => set({ picture }),
    },
    now === "shown" && { type: "note", text: "It stays in the edit when another picture is chosen above." },
  ];
}

// --- The forms of edits of masks, positions and tokens ---

const PRESETS = [
  ["causal", "causal: what came before"],
  ["full", "full: everything"],
  ["window", "window: what is near"],
  ["causal window", "window of what came before"],
  ["prefix", "prefix: its first tokens for all"],
];
const PAINTS = [
  ["flip", "allow / block"],
  ["allow", "allow"],
  ["forbid", "block"],
];
export const DRAWN = 64; // tokens up to which a whole matrix is drawn, as every cell of it stands in the address

/** Whether a matrix can be drawn whole, which one that is drawn already stays. */
export const drawable = ({ rows, keys }) => Math.max(rows.length, keys.length) <= DRAWN;

export function maskFields(edit, data) {
  const kind = { PaintMask: "paint", DrawMask: "draw" }[edit.edit] ?? edit.kind;
  const change = (to) => {
    const { layer, heads, stack, cross } = edit;
    for (const name of Object.keys(edit)) delete edit[name];
    const made = {
      paint: { edit: "PaintMask", cells: [], rows: [], columns: [], to: "flip" },
      draw: { edit: "DrawMask" },
    }[to];
    Object.assign(edit, made ?? { edit: "PresetMask", kind: to, size: sized(to) ? 3 : null }, {
      layer,
      heads,
      stack,
      cross,
    });
  };
  const own = attentionOf(edit, data);
  const whole = drawable(own) || kind === "draw" ? [["draw", "drawn whole, in place of its own"]] : [];
  return [
    select("mask", [["paint", "painted by hand"], ...whole, ...PRESETS], kind, change),
    kind === "paint" && select("what is painted", PAINTS, edit.to, (to) => (edit.to = to)),
    sized(kind) && {
      type: "number",
      label: kind === "prefix" ? "tokens" : "reach",
      value: edit.size,
      min: 1,
      step: 1,
      set: (size) => (edit.size = size),
    },
    whichAttention(edit, data),
    whichBlock(edit, own.layers),
    whichHeads(edit, data),
    (kind === "paint" || kind === "draw") && {
      type: "paint",
      label: `who (row) may see whom (column)${shownOf(edit)}`,
      edit,
      own,
    },
  ];
}

const sized = (kind) => ["window", "causal window", "prefix"].includes(kind);

export function positionFields(edit, data) {
  const own = stackOf(edit, data);
  const change = (kind) => {
    const { layer, stack } = edit;
    for (const name of Object.keys(edit)) delete edit[name];
    const all = {
      SwapPositions: { first: 0, second: Math.min(1, own.pieces.length - 1) },
      DropPositions: { positions: null },
      ShiftPositions: { by: 1, positions: null },
    };
    Object.assign(edit, { edit: kind, layer, stack }, all[kind]);
  };
  const swaps = edit.edit === "SwapPositions";
  const some = (chosen) => (edit.positions = chosen.length ? chosen : null);
  return [
    select(
      "do",
      [
        ["SwapPositions", "swap two tokens' positions"],
        ["DropPositions", "remove positions"],
        ["ShiftPositions", "shift positions"],
      ],
      edit.edit,
      change,
    ),
    whichStack(edit, data),
    own.turned && whichBlock(edit, own.layers),
    edit.edit === "ShiftPositions" && {
      type: "number",
      label: "by",
      value: edit.by,
      step: 1,
      set: (by) => (edit.by = by),
    },
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
    {
      type: "text",
      label: "becomes",
      value: edit.token.text,
      set: (text) => (edit.token = { text }),
      hint: "one token",
    },
    {
      type: "number",
      label: "mix (1 = replace)",
      value: edit.share,
      step: "any",
      set: (share) => (edit.share = share),
    },
    whichTokens("token", own.pieces, [edit.position], ([i]) => (edit.position = i), { single: true }),
  ];
}

// --- The form of what heads attend to: its shapes, another head's, or weights by hand. What is sent is ma ---

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
  return {
    edit: "Pattern",
    to: "previous",
    position: 0,
    from: { layer: 0, head: 0 },
    cells: [],
    weights: [],
    drawn: null,
    brush: 1,
    free: false,
    ...where,
  };
}

export function patternFields(edit, data) {
  const own = attentionOf(edit, data);
  /** @param {string[]} shape */
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
    other &&
      select(
        "its head",
        numbers(own.heads).map((text, i) => [i, text]),
        edit.from.head,
        (head) => (edit.from.head = head),
      ),
    edit.to === "position" &&
      whichTokens("to", own.keys, [edit.position], ([i]) => (edit.position = i), { single: true }),
    byHand && {
      type: "number",
      label: "weight to paint",
      value: edit.brush,
      min: edit.free ? undefined : 0,
      max: edit.free ? undefined : 1,
      step: "any",
      set: (weight) => (edit.brush = weight),
    },
    byHand &&
      select(
        "rows",
        [
          [false, "go on summing to 1"],
          [true, "as painted, whatever their sum"],
        ],
        edit.free,
        (free) => (edit.free = free),
      ),
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
  if (edit.edit === "PaintPattern")
    return { ...made, to: "painted", cells: edit.cells, weights: edit.weights, free: edit.free };
  if (edit.edit === "DrawPattern") return { ...made, to: "drawn", drawn: edit.weights, free: edit.free };
  const [here, there] = [parsed(edit.hook), parsed(edit.source_hook)];
  const from = { layer: there.layer, head: edit.source_at.head };
  return {
    ...made,
    to: "other",
    from,
    layer: here.layer,
    heads: [edit.at.head],
    stack: here.stack,
    cross: here.part.startsWith("cross_attn"),
  };
}

const isOtherHead = (edit) =>
  edit.edit === "Patch" &&
  edit.source === null &&
  /\.pattern$/.test(edit.source_hook ?? "") &&
  Number.isInteger(edit.at.head) &&
  Number.isInteger(edit.source_at?.head);

export const isPattern = (edit) =>
  ["SetPattern", "PaintPattern", "DrawPattern"].includes(edit.edit) || isOtherHead(edit);

// --- The forms of edits of any hook: patched from another run, steered, scaled, or replaced by numbers ---

/** What of a hook is meant, an axis at a time: heads and tokens to press, the others as numbers. */
function whichPart(edit, data, verb) {
  const hook = hookOf(edit.hook, data);
  if (!hook) return [];
  const { stack, axes } = hook;
  for (const axis of Object.keys(edit.at)) if (!axes.some(([name]) => name === axis)) delete edit.at[axis];
  const crosses = hook.part.startsWith("cross_attn");
  const pieces = { pos: stack.pieces, key: crosses ? data.stacks[0].pieces : stack.pieces };
  const wide = ([axis, size]) => Number(pieces[axis]?.length === size); // tokens take lines of their own, below the rest
  return axes
    .toSorted((a, b) => wide(a) - wide(b))
    .map(([axis, size]) => {
      const set = (chosen) => (chosen.length ? (edit.at[axis] = chosen) : delete edit.at[axis]);
      const value = listed(edit.at[axis], size);
      if (axis === "head") return { type: "toggles", label: "heads", options: numbers(size), value, set, none: "all" };
      const named = pieces[axis]?.length === size;
      if (named)
        return {
          type: "tokens",
          label: axis === "pos" ? verb : "of what is viewed at",
          options: pieces[axis],
          value,
          set,
          none: "every token",
        };
      const read = (text) => {
        const found = within(text, size);
        if (found) set(found);
        return found ? "" : `write numbers from 0 to ${size - 1}, such as 0-3, 7`;
      };
      return { type: "checked", label: axis, value: wholes(value), hint: `all ${size}`, set: read };
    });
}

const everywhere = (edit) => Object.keys(edit.at).forEach((axis) => delete edit.at[axis]);
const any = ({ inner, outer }) => ({ inner, outer });

/** Scaled, or replaced by a number or by several. */
export function valueFields(edit, data) {
  const does = edit.edit === "Scale" ? "scale" : Array.isArray(edit.value) ? "numbers" : "number";
  const change = (to) => {
    const { hook, at } = edit;
    for (const name of Object.keys(edit)) delete edit[name];
    Object.assign(
      edit,
      to === "scale"
        ? { edit: "Scale", hook, factor: 0, at }
        : { edit: "Replace", hook, value: to === "number" ? 0 : [0, 0], at },
    );
  };
  const last = hookOf(edit.hook, data)?.axes.findLast(([axis]) => !Number.isInteger(edit.at[axis]));
  return [
    select(
      "do",
      [
        ["number", "set to"],
        ["numbers", "set to several numbers"],
        ["scale", "multiply"],
      ],
      does,
      change,
    ),
    ...whichHook(edit, data, "value", any, () => everywhere(edit)),
    does === "scale" && {
      type: "number",
      label: "multiply by (0 removes)",
      value: edit.factor,
      step: "any",
      set: (factor) => (edit.factor = factor),
    },
    does === "number" && {
      type: "number",
      label: "number",
      value: edit.value,
      step: "any",
      set: (value) => (edit.value = value),
    },
    does === "numbers" && {
      type: "checked",
      label: `numbers${last ? `, along ${last[0]} (${last[1]})` : ""}`,
      value: bare(edit.value),
      hint: "0, 0.5, 1",
      wide: true,
      set: (text) => readNumbers(edit, text),
    },
    ...whichPart(edit, data, "at"),
  ];
}

const bare = (value) =>
  JSON.stringify(value)
    .replace(/^\[([^[]*)\]$/, "$1")
    .replaceAll(",", ", ");

/** "0, 0.5" or lists in lists as JSON has them, into the edit; what is wrong with the text otherwise. */
function readNumbers(edit, text) {
  try {
    const found = JSON.parse(text.trim().startsWith("[") ? text : `[${text}]`);
    if (!found.flat(Infinity).every(Number.isFinite) || !found.length) throw new SyntaxError("no numbers");
    edit.value = found;
    return "";
  } catch {
    return "write numbers such as 0, 0.5, 1";
  }
}

export function patchFields(edit, data) {
  const from = edit.source_at?.pos ?? null;
  const move = (pos) => (edit.source_at = pos === null ? null : { pos: Math.round(pos) });
  const what = data.others === "texts" ? "text" : "picture";
  const other = edit.source !== null;
  const hook = hookOf(edit.hook, data);
  const fields = () =>
    sourceFields(
      edit.source,
      (source) => (edit.source = source),
      data,
      `the other ${what}`,
      "the same text with another word in it",
    );
  return [
    ...whichHook(
      edit,
      data,
      "value",
      any,
      () => (everywhere(edit), (edit.source_at = null), (edit.source_hook = null)),
    ),
    select(
      "taken from",
      [
        [true, `another ${what}`],
        [false, `this ${what}, without edits`],
      ],
      other,
      (is) => (edit.source = is ? blankSource(data) : null),
    ),
    ...(other ? fields() : []),
    hook && hook.layer !== null && whichOther(edit, hook),
    hook?.axes[0]?.[0] === "pos" &&
      edit.at.pos && {
        type: "number",
        label: "its token number",
        value: from,
        min: 0,
        step: 1,
        set: move,
        hint: "same",
      },
    ...whichPart(edit, data, "at"),
  ];
}

/** What of the other run is put there: the same value, or one of the same shape. */
function whichOther(edit, { stack, layer, axes }) {
  const alike = stack.inner.filter((one) => JSON.stringify(one.axes) === JSON.stringify(axes));
  const named = (block, { part }) => `${stack.stack ? `${stack.stack}.` : ""}blocks.${block}.${part}`;
  const all = stack.parts.flatMap((_, block) =>
    alike.map((one) => [named(block, one), `block ${block + 1}, ${one.part}`]),
  );
  const others = all.filter(([name]) => name !== edit.hook || layer === "*");
  return select(
    "its value",
    [[null, "the same"], ...others],
    edit.source_hook ?? null,
    (name) => (edit.source_hook = name),
  );
}

/** Heads and the like are those of `at` there as well: only the token may be another one. */
export function patchSent(edit) {
  return edit.source_at ? { ...edit, source_at: { ...edit.at, pos: edit.source_at.pos } } : edit;
}

/** The form's view: of where it is taken from it asks the token alone. */
export const isPatch = (edit, data) => {
  const { pos, ...rest } = edit.source_at ?? {};
  const { pos: _, ...own } = edit.at ?? {};
  const token = pos === undefined || Number.isInteger(pos);
  const same = edit.source_at === null || JSON.stringify(rest) === JSON.stringify(own);
  return (
    edit.edit === "Patch" &&
    token &&
    same &&
    Boolean(hookOf(edit.hook, data)) &&
    (!edit.source_hook || Number.isInteger(parsed(edit.source_hook).layer))
  );
};

export function steerFields(edit, data) {
  const some = (hooks) => hooks.filter(({ axes }) => axes[0]?.[0] === "pos" && !axes.some(([axis]) => axis === "key"));
  const last = data.others === "texts" ? "at the last token" : "at the last place";
  return [
    ...whichHook(
      edit,
      data,
      "value",
      ({ inner, outer }) => ({ inner: some(inner), outer: some(outer) }),
      () => everywhere(edit),
    ),
    ...sourceFields(edit.toward, (source) => (edit.toward = source), data, "toward", "a text such as: Love"),
    ...sourceFields(edit.away, (source) => (edit.away = source), data, "away from", "a text such as: Hate"),
    { type: "number", label: "times", value: edit.factor, step: "any", set: (factor) => (edit.factor = factor) },
    select(
      "read",
      [
        ["last", last],
        ["mean", `as the mean over ${data.others === "texts" ? "tokens" : "all places"}`],
      ],
      edit.read,
      (read) => (edit.read = read),
    ),
    ...whichPart(edit, data, "added at"),
  ];
}

/** The forms' views: pictures by their numbers. */
export const patchRead = (edit) => ({ ...structuredClone(edit), source: sourceRead(edit.source) });
export const steerRead = (edit) => ({
  ...structuredClone(edit),
  toward: sourceRead(edit.toward),
  away: sourceRead(edit.away),
});

// --- The kinds of edits that a person can make here: what each is called, where it starts, and the fields ---

const steerBlank = (data) => {
  const texts = data.others === "texts";
  const [toward, away] = texts ? [{ text: "" }, { text: "" }] : [blankSource(data), { picture: 0 }];
  return { toward, away, factor: texts ? 4 : 1, read: texts && !data.closed ? "last" : "mean" };
};
const asIs = (edit) => edit;
const always = () => true;
const last = (data) => data.stacks.at(-1);
const inBlock = (data, part) => `${prefix(last(data).stack)}blocks.${layerOf(data)}.${part}`;
const layerOf = (data) => Math.min(viewed(data).layer, last(data).layers - 1);

/**
 * {id, title, about, fits(data), without?, reads(edit), read?(edit), blank(data), fields(edit, data), sent(edit)} in the order they
 * are offered; `without` says why a kind does not fit.
 */
export const KINDS = [
  {
    id: "mask",
    title: "Mask",
    about: "who may see whom",
    fits: always,
    sent: asIs,
    fields: maskFields,
    reads: ({ edit }) => ["PresetMask", "PaintMask", "DrawMask"].includes(edit),
    blank: (data) => ({ edit: "PaintMask", cells: [], rows: [], columns: [], to: "flip", ...place(viewed(data)) }),
  },
  {
    id: "temperature",
    title: "Attention temperature",
    about: "sharper or flatter",
    fits: always,
    sent: asIs,
    reads: ({ edit }) => edit === "AttentionTemperature",
    blank: (data) => ({ edit: "AttentionTemperature", value: 2, ...place(viewed(data)) }),
    fields: (edit, data) => [
      {
        type: "number",
        label: "temperature",
        value: edit.value,
        min: 0,
        step: "any",
        set: (value) => (edit.value = value),
      },
      whichAttention(edit, data),
      whichBlock(edit, attentionOf(edit, data).layers),
      whichHeads(edit, data),
    ],
  },
  {
    id: "silence",
    title: "Silence heads",
    about: "zero, mean, uniform",
    fits: always,
    sent: asIs,
    reads: ({ edit }) => edit === "SilenceHeads",
    blank: (data) => ({ edit: "SilenceHeads", how: "zero", ...place(viewed(data)), heads: [viewed(data).head] }),
    fields: (edit, data) => {
      edit.heads ??= [0];
      const ways = [
        ["zero", "their output is 0"],
        ["mean", "their mean over the text"],
        ["uniform", "they attend evenly"],
      ];
      const how = select("how", ways, edit.how, (to) => (edit.how = to));
      return [
        whichAttention(edit, data),
        whichBlock(edit, attentionOf(edit, data).layers, false),
        whichHeads(edit, data, ""),
        how,
      ];
    },
  },
  {
    id: "pattern",
    title: "Pattern",
    about: "say what heads attend to",
    fits: always,
    sent: patternSent,
    fields: patternFields,
    reads: isPattern,
    read: patternRead,
    blank: (data) => patternBlank({ ...place(viewed(data)), heads: [viewed(data).head] }),
  },
  {
    id: "parts",
    title: "Sublayer, residual, norm",
    about: "take out or scale",
    fits: always,
    sent: asIs,
    reads: ({ edit, hook, at }, data) =>
      edit === "Scale" &&
      !Object.keys(at).length &&
      data.stacks.some(({ parts }) => parts.some((one) => Object.values(one).includes(hook))),
    blank: (data) => ({
      edit: "Scale",
      hook: last(data).parts[layerOf(data)].MLP ?? Object.values(last(data).parts[0])[0],
      factor: 0,
      at: {},
    }),
    fields: (edit, data) => [
      ...whichPiece(edit, data),
      {
        type: "number",
        label: "multiply by (0 removes)",
        value: edit.factor,
        step: "any",
        set: (factor) => (edit.factor = factor),
      },
    ],
  },
  {
    id: "positions",
    title: "Positions",
    about: "swap, drop, shift",
    sent: asIs,
    fields: positionFields,
    fits: (data) => data.stacks.some(({ positions }) => positions),
    without: "this model has none to change; it tells its tokens apart by their order under the mask alone.",
    reads: ({ edit }) => ["SwapPositions", "DropPositions", "ShiftPositions"].includes(edit),
    blank: (data) => ({
      ...(last(data).pieces.length > 1
        ? { edit: "SwapPositions", first: 0, second: 1 }
        : { edit: "DropPositions", positions: null }),
      layer: null,
      stack: last(data).stack,
    }),
  },
  {
    id: "token",
    title: "Token",
    about: "exchange or mix an embedding",
    sent: asIs,
    fields: tokenFields,
    fits: (data) => data.stacks.some(({ tokens }) => tokens),
    without:
      "this model reads patches and has no tokens to exchange; Patch puts another picture’s patch there: its value embed.patches, outside of the blocks.",
    reads: ({ edit }) => edit === "ChangeToken",
    blank: (data) => ({ edit: "ChangeToken", position: 0, token: { text: "" }, share: 1, stack: last(data).stack }),
  },
  {
    id: "patch",
    title: "Patch",
    about: "a value from another run",
    sent: patchSent,
    fields: patchFields,
    fits: always,
    reads: isPatch,
    read: patchRead,
    blank: (data) => ({
      edit: "Patch",
      hook: inBlock(data, "resid_post"),
      source: blankSource(data),
      at: { pos: [Math.min(viewed(data).row, last(data).pieces.length - 1)] },
      source_hook: null,
      source_at: null,
    }),
  },
  {
    id: "steer",
    title: "Steering vector",
    about: "the difference of two runs",
    fits: always,
    sent: asIs,
    fields: steerFields,
    read: steerRead,
    reads: ({ edit, hook }, data) => edit === "Steer" && Boolean(hookOf(hook, data)),
    blank: (data) => ({ edit: "Steer", hook: inBlock(data, "resid_pre"), ...steerBlank(data), at: {} }),
  },
  {
    id: "value",
    title: "Any value",
    about: "set or scale what a hook holds",
    fits: always,
    sent: asIs,
    fields: valueFields,
    reads: ({ edit, hook }, data) => (edit === "Scale" || edit === "Replace") && Boolean(hookOf(hook, data)),
    blank: (data) => ({ edit: "Replace", hook: inBlock(data, "resid_post"), value: 0, at: {} }),
  },
];

/** The kind whose form shows an edit, undefined where none does. */
export function kindOf(edit, data) {
  return KINDS.find((kind) => kind.reads(edit, data));
}

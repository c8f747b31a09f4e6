// The forms of edits of any hook: patched from another run, steered, scaled, or replaced by numbers.
import { hookOf, listed, numbers, parsed, select, whichHook, wholes, within } from "./experiment_places.js";
import { blankSource, sourceFields, sourceRead } from "./experiment_sources.js";

/** What of a hook is meant, an axis at a time: heads and tokens to press, the others as numbers. */
function whichPart(edit, data, verb) {
  const hook = hookOf(edit.hook, data);
  if (!hook) return [];
  const { stack, axes } = hook;
  for (const axis of Object.keys(edit.at)) if (!axes.some(([name]) => name === axis)) delete edit.at[axis];
  const crosses = hook.part.startsWith("cross_attn");
  const pieces = { pos: stack.pieces, key: crosses ? data.stacks[0].pieces : stack.pieces };
  const wide = ([axis, size]) => Number(pieces[axis]?.length === size); // tokens take lines of their own, below the rest
  return axes.toSorted((a, b) => wide(a) - wide(b)).map(([axis, size]) => {
    const set = (chosen) => (chosen.length ? (edit.at[axis] = chosen) : delete edit.at[axis]);
    const value = listed(edit.at[axis], size);
    if (axis === "head") return { type: "toggles", label: "heads", options: numbers(size), value, set, none: "all" };
    const named = pieces[axis]?.length === size;
    if (named) return { type: "tokens", label: axis === "pos" ? verb : "of what is looked at", options: pieces[axis], value, set, none: "every token" };
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
    Object.assign(edit, to === "scale" ? { edit: "Scale", hook, factor: 0, at } : { edit: "Replace", hook, value: to === "number" ? 0 : [0, 0], at });
  };
  const last = hookOf(edit.hook, data)?.axes.findLast(([axis]) => !Number.isInteger(edit.at[axis]));
  return [
    select("do", [["number", "put a number in its place"], ["numbers", "put several numbers there"], ["scale", "multiply it"]], does, change),
    ...whichHook(edit, data, "value", any, () => everywhere(edit)),
    does === "scale" && { type: "number", label: "times (0 takes it out)", value: edit.factor, step: "any", set: (factor) => (edit.factor = factor) },
    does === "number" && { type: "number", label: "number", value: edit.value, step: "any", set: (value) => (edit.value = value) },
    does === "numbers" && { type: "checked", label: `numbers${last ? `, along ${last[0]} (${last[1]})` : ""}`, value: bare(edit.value), hint: "0, 0.5, 1", wide: true, set: (text) => readNumbers(edit, text) },
    ...whichPart(edit, data, "at"),
  ];
}

const bare = (value) => JSON.stringify(value).replace(/^\[([^[]*)\]$/, "$1").replaceAll(",", ", ");

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
  const fields = () => sourceFields(edit.source, (source) => (edit.source = source), data, `the other ${what}`, "the same text with another word in it");
  return [
    ...whichHook(edit, data, "value", any, () => (everywhere(edit), (edit.source_at = null), (edit.source_hook = null))),
    select("taken from", [[true, `another ${what}`], [false, `this ${what}, without edits`]], other, (is) => (edit.source = is ? blankSource(data) : null)),
    ...(other ? fields() : []),
    hook && hook.layer !== null && whichOther(edit, hook),
    hook?.axes[0]?.[0] === "pos" && edit.at.pos && { type: "number", label: "its token number", value: from, min: 0, step: 1, set: move, hint: "same" },
    ...whichPart(edit, data, "at"),
  ];
}

/** What of the other run is put there: the same value, or one of the same shape. */
function whichOther(edit, { stack, layer, axes }) {
  const alike = stack.inner.filter((one) => JSON.stringify(one.axes) === JSON.stringify(axes));
  const named = (block, { part }) => `${stack.stack ? `${stack.stack}.` : ""}blocks.${block}.${part}`;
  const all = stack.parts.flatMap((_, block) => alike.map((one) => [named(block, one), `block ${block + 1}, ${one.part}`]));
  const others = all.filter(([name]) => name !== edit.hook || layer === "*");
  return select("its value", [[null, "the same"], ...others], edit.source_hook ?? null, (name) => (edit.source_hook = name));
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
  return edit.edit === "Patch" && token && same && Boolean(hookOf(edit.hook, data)) && (!edit.source_hook || Number.isInteger(parsed(edit.source_hook).layer));
};

export function steerFields(edit, data) {
  const some = (hooks) => hooks.filter(({ axes }) => axes[0]?.[0] === "pos" && !axes.some(([axis]) => axis === "key"));
  const last = data.others === "texts" ? "at the last token" : "at the last place";
  return [
    ...whichHook(edit, data, "value", ({ inner, outer }) => ({ inner: some(inner), outer: some(outer) }), () => everywhere(edit)),
    ...sourceFields(edit.toward, (source) => (edit.toward = source), data, "toward", "a text such as: Love"),
    ...sourceFields(edit.away, (source) => (edit.away = source), data, "away from", "a text such as: Hate"),
    { type: "number", label: "times", value: edit.factor, step: "any", set: (factor) => (edit.factor = factor) },
    select("read", [["last", last], ["mean", `as the mean over ${data.others === "texts" ? "tokens" : "all places"}`]], edit.read, (read) => (edit.read = read)),
    ...whichPart(edit, data, "added at"),
  ];
}

/** The forms' views: pictures by their numbers. */
export const patchRead = (edit) => ({ ...structuredClone(edit), source: sourceRead(edit.source) });
export const steerRead = (edit) => ({ ...structuredClone(edit), toward: sourceRead(edit.toward), away: sourceRead(edit.away) });

// The kinds of edits that a person can make here: what each is called, where it starts, and the fields of its form.
// An edit is what engine/edits reads from JSON, but that texts stand where it has ids (views/experiment.py turns them).
import { maskFields, positionFields, tokenFields } from "./experiment_fields.js";
import { isPattern, patternBlank, patternFields, patternRead, patternSent } from "./experiment_pattern.js";
import { attentionOf, hookOf, looked, place, prefix, select, whichAttention, whichBlock, whichHeads, whichPiece } from "./experiment_places.js";
import { blankSource } from "./experiment_sources.js";
import { isPatch, patchFields, patchRead, patchSent, steerFields, steerRead, valueFields } from "./experiment_values.js";

const steerBlank = (data) => {
  const texts = data.others === "texts";
  const [toward, away] = texts ? [{ text: "" }, { text: "" }] : [blankSource(data), { picture: 0 }];
  return { toward, away, factor: texts ? 4 : 1, read: texts && !data.closed ? "last" : "mean" };
};
const asIs = (edit) => edit;
const always = () => true;
const last = (data) => data.stacks.at(-1);
const inBlock = (data, part) => `${prefix(last(data).stack)}blocks.${layerOf(data)}.${part}`;
const layerOf = (data) => Math.min(looked(data).layer, last(data).layers - 1);

/**
 * {id, title, about, fits(data), without?, reads(edit), read?(edit), blank(data), fields(edit, data), sent(edit)} in the order they
 * are offered; `without` says why a kind does not fit.
 */
export const KINDS = [
  {
    id: "mask", title: "Mask", about: "who may see whom", fits: always, sent: asIs, fields: maskFields,
    reads: ({ edit }) => ["PresetMask", "PaintMask", "DrawMask"].includes(edit),
    blank: (data) => ({ edit: "PaintMask", cells: [], rows: [], columns: [], to: "flip", ...place(looked(data)) }),
  },
  {
    id: "temperature", title: "Attention temperature", about: "sharper or flatter", fits: always, sent: asIs,
    reads: ({ edit }) => edit === "AttentionTemperature",
    blank: (data) => ({ edit: "AttentionTemperature", value: 2, ...place(looked(data)) }),
    fields: (edit, data) => [
      { type: "number", label: "temperature", value: edit.value, min: 0, step: "any", set: (value) => (edit.value = value) },
      whichAttention(edit, data),
      whichBlock(edit, attentionOf(edit, data).layers),
      whichHeads(edit, data),
    ],
  },
  {
    id: "silence", title: "Silence heads", about: "zero, mean, uniform", fits: always, sent: asIs,
    reads: ({ edit }) => edit === "SilenceHeads",
    blank: (data) => ({ edit: "SilenceHeads", how: "zero", ...place(looked(data)), heads: [looked(data).head] }),
    fields: (edit, data) => {
      edit.heads ??= [0];
      const ways = [["zero", "their output is 0"], ["mean", "their mean over the text"], ["uniform", "they attend evenly"]];
      const how = select("how", ways, edit.how, (to) => (edit.how = to));
      return [whichAttention(edit, data), whichBlock(edit, attentionOf(edit, data).layers, false), whichHeads(edit, data, ""), how];
    },
  },
  {
    id: "pattern", title: "Pattern", about: "say what heads attend to", fits: always, sent: patternSent, fields: patternFields,
    reads: isPattern,
    read: patternRead,
    blank: (data) => patternBlank({ ...place(looked(data)), heads: [looked(data).head] }),
  },
  {
    id: "parts", title: "Sublayer, residual, norm", about: "take out or scale", fits: always, sent: asIs,
    reads: ({ edit, hook, at }, data) => edit === "Scale" && !Object.keys(at).length && data.stacks.some(({ parts }) => parts.some((one) => Object.values(one).includes(hook))),
    blank: (data) => ({ edit: "Scale", hook: last(data).parts[layerOf(data)].MLP ?? Object.values(last(data).parts[0])[0], factor: 0, at: {} }),
    fields: (edit, data) => [
      ...whichPiece(edit, data),
      { type: "number", label: "times (0 takes it out)", value: edit.factor, step: "any", set: (factor) => (edit.factor = factor) },
    ],
  },
  {
    id: "positions", title: "Positions", about: "swap, drop, shift", sent: asIs, fields: positionFields,
    fits: (data) => data.stacks.some(({ positions }) => positions),
    without: "this model has none to change; it tells its tokens apart by their order under the mask alone.",
    reads: ({ edit }) => ["SwapPositions", "DropPositions", "ShiftPositions"].includes(edit),
    blank: (data) => ({ ...(last(data).pieces.length > 1 ? { edit: "SwapPositions", first: 0, second: 1 } : { edit: "DropPositions", positions: null }), layer: null, stack: last(data).stack }),
  },
  {
    id: "token", title: "Token", about: "exchange or mix an embedding", sent: asIs, fields: tokenFields,
    fits: (data) => data.stacks.some(({ tokens }) => tokens),
    without: "this model reads patches and has no tokens to exchange; Patch puts another picture’s patch there: its value embed.patches, outside of the blocks.",
    reads: ({ edit }) => edit === "ChangeToken",
    blank: (data) => ({ edit: "ChangeToken", position: 0, token: { text: "" }, share: 1, stack: last(data).stack }),
  },
  {
    id: "patch", title: "Patch", about: "a value from another run", sent: patchSent, fields: patchFields,
    fits: always,
    reads: isPatch,
    read: patchRead,
    blank: (data) => ({ edit: "Patch", hook: inBlock(data, "resid_post"), source: blankSource(data), at: { pos: [Math.min(looked(data).row, last(data).pieces.length - 1)] }, source_hook: null, source_at: null }),
  },
  {
    id: "steer", title: "Steering vector", about: "the difference of two runs", fits: always, sent: asIs, fields: steerFields,
    read: steerRead,
    reads: ({ edit, hook }, data) => edit === "Steer" && Boolean(hookOf(hook, data)),
    blank: (data) => ({ edit: "Steer", hook: inBlock(data, "resid_pre"), ...steerBlank(data), at: {} }),
  },
  {
    id: "value", title: "Any value", about: "set or scale what a hook holds", fits: always, sent: asIs, fields: valueFields,
    reads: ({ edit, hook }, data) => (edit === "Scale" || edit === "Replace") && Boolean(hookOf(hook, data)),
    blank: (data) => ({ edit: "Replace", hook: inBlock(data, "resid_post"), value: 0, at: {} }),
  },
];

/** The kind whose form shows an edit, undefined where none does. */
export function kindOf(edit, data) {
  return KINDS.find((kind) => kind.reads(edit, data));
}

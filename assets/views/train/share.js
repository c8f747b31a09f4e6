// What of a training can be shared: what is looked at, in words for a caption and as the server asks for it, and its parts as pictures.
import { cost, count, kindOf, positionOf } from "./frames.js";
import { whole } from "./transport.js";

/**
 * @import { Entries } from "../core/address.js"
 * @import { Attention } from "./run.js"
 * @import { Page, State } from "./train.js"
 */

/**
 * What can be a picture by itself, [name, title].
 * @param {Page} page
 * @returns {[name: string, title: string][]}
 */
export function parts({ state }) {
  const below = { two: "two steps", gradients: "gradients", weights: "weights", activations: "activations" }[state.tab];
  return [
    ["", "all of it"],
    ["curves", "curves and marks"],
    ["example", "the example"],
    ["below", below],
  ];
}

/**
 * For the toolbar: {where, what, sentence} of a caption, `asks` for the server, and what a file is called.
 * @param {Page} page
 */
export function looked(page) {
  const { state, frame, status } = page;
  if (!status) return { where: "", what: "", sentence: "" };
  const attention = page.attentions.find(({ key }) => key === state.attention);
  const where = [`step ${whole(page.shown)} of ${whole(status.steps)}`, attention && headOf(attention, state)]
    .filter(Boolean)
    .join(", ");
  const told = { where, what: "", sentence: example(page) };
  if (!frame || !attention) return told;
  const other = page.second?.step ?? page.steps[0];
  const { layer, head } = state;
  const now = String(page.answers); // a run goes on: what was told of it before is not what it is now
  return {
    ...told,
    asks: {
      of: {
        step: frame.step,
        other,
        attention: attention.key,
        layer,
        head,
        position: count(frame) ? positionOf(page, frame, kindOf(page, frame)) : null,
        now,
      },
    },
    file: `step-${frame.step}`,
  };
}

/**
 * @param {Attention} attention
 * @param {State} state
 */
function headOf({ title, layers, heads }, { layer, head }) {
  return `${title} block ${layer + 1} of ${layers}, head ${head + 1} of ${heads}`;
}

/** @param {Page} page */
function example({ probe, frame }) {
  if (!probe) return "";
  const { text, target, picture } = probe;
  const said =
    picture === null
      ? [text, target]
          .filter(Boolean)
          .map((one) => `“${one}”`)
          .join(" → ")
      : `picture ${picture} of those held out`;
  const { mean, asked } = frame ? cost(frame) : { mean: NaN, asked: 0 };
  return `The example: ${said}${asked ? `, loss ${mean.toPrecision(4)} nats a position` : ""}`;
}

/**
 * What the part of the address behind the # asks for and this run does not have, a part of a sentence each.
 * @param {Entries} said
 * @param {Page} page
 */
export function missed(said, page) {
  const { attentions, steps, status, metrics } = page;
  /** @type {string[]} */
  const found = [];
  const last = Math.max(status?.step ?? 0, metrics.last);
  for (const [name, word] of [
    ["step", "step"],
    ["other", "the second step"],
  ]) {
    if (Number.isInteger(said[name]) && said[name] > last)
      found.push(`${word} ${whole(said[name])} is not here, the run has come to ${whole(last)}`);
  }
  if (!steps.length || !attentions.length) return found;
  const shown = attentions.find(({ key }) => key === said.attention);
  if (said.attention !== undefined && !shown) found.push(`there is no attention “${said.attention}” here`);
  const sizes = shown ?? attentions[attentions.length - 1];
  for (const [name, word, many] of /** @type {const} */ ([
    ["layer", "block", "layers"],
    ["head", "head", "heads"],
  ])) {
    const value = said[name];
    if (Number.isInteger(value) && value >= sizes[many])
      found.push(`${word} ${value + 1} is not here, there ${sizes[many] === 1 ? "is 1" : `are ${sizes[many]}`}`);
  }
  return found;
}

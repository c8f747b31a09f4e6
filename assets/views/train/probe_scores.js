// What is measured of each head on the probe, under the names that people have for it.
import { percent } from "../core/format.js";

const SIDES = { attn: "", encoder: "encoder.", cross_attn: "cross." };

/** [key, name, unit, what it is]: engine.analysis.heads, and for translators that copy or reverse engine.training.probe_frame. */
const NAMES = [
  ["aligned", "same place", "share", "attention to the source’s token at the same place"],
  ["mirrored", "same place from the end", "share", "attention to the source’s token that is as far from its end"],
  ["previous", "previous token", "share", "attention to the token just before"],
  ["induction", "induction", "share", "attention to what followed an earlier occurrence of the token; of a model that reads from left to right, on a random sequence read twice"],
  ["duplicate", "same token", "share", "attention to other occurrences of the same token"],
  ["strongest", "strongest", "share", "the largest share that goes to one token of the source, averaged over the target"],
  ["first", "first token", "share", "attention to the first token"],
  ["last", "last token", "share", "attention to the last token of the source"],
  ["own", "own place", "share", "attention to the position itself"],
  ["entropy", "entropy", "bits", "0 for one key, log₂ n for n keys alike"],
  ["distance", "distance", "tokens", "how far away the attended keys stand, on average"],
];

/** [{key, name, text, title, value}] of one head, without what is not defined on this example. */
export function scoresOf({ arrays }, attention, layer, head) {
  return NAMES.flatMap(([key, name, unit, title]) => {
    const array = arrays[`scores.${SIDES[attention.key]}${key}`];
    const value = array?.data[layer * array.shape[1] + head] ?? NaN;
    if (Number.isNaN(value)) return [];
    return [{ key, name, title, value, text: unit === "share" ? percent(value) : `${value.toFixed(2)} ${unit}` }];
  });
}

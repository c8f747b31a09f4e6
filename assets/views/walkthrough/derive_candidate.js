// How one candidate came to its probability: its logit, then the stages of sampling.
import { plain, strong } from "./derivation.js";
import { derive } from "./derive.js";
import { number, operand, percent } from "../core/format.js";
import { noun } from "./outcome.js";

/** How one candidate of a list came to its probability at position `row`: its logit, then the stages of sampling. */
export async function deriveCandidate(trace, row, { candidate: index, list = 0 }) {
  const pos = trace.outcomeRow(row, list);
  const at = (name) => trace.arrays[`next.${name}`].data[pos * trace.arrays["next.id"].shape[1] + index];
  const [place, unit] = trace.reads === "answer" ? [at("id"), list] : [pos, at("id")];
  const logit = await derive(trace, { hook: "logits", pos: place, unit, head: null, stored: at("logit") });
  if (trace.link === "identity") return { ...logit, strips: [] };
  const sampled = trace.link === "logistic" ? logistic(trace, logit.recomputed) : trace.sampling.temperature > 0 ? warm(trace, pos, logit.recomputed, at("in_top_p")) : greedy(index);
  return { ...logit, strips: [], lines: [...logit.lines, ...sampled.lines], recomputed: sampled.share, stored: at("probability") };
}

/** One class, which holds or does not. */
function logistic(trace, logit) {
  const { temperature } = trace.sampling;
  const scaled = temperature ? logit / temperature : Math.sign(logit) * Infinity || 0;
  const share = 1 / (1 + Math.exp(-scaled));
  const lines = [temperature === 1 ? [] : [`÷ output temperature ${plain(temperature)} = `, number(scaled)], [`1 / (1 + e^−(${number(scaled)})) = `, strong(percent(share), "probability")]];
  return { share, lines: lines.filter((line) => line.length) };
}

function greedy(index) {
  const share = index === 0 ? 1 : 0;
  return { share, lines: [["output temperature 0: the largest logit takes everything, so ", strong(percent(share), "probability")]] };
}

function warm(trace, pos, logit, kept) {
  const of = (name) => trace.arrays[`next.${name}`].data[pos];
  const { temperature, top_k: k, top_p: p } = trace.sampling;
  const { count } = trace;
  const scaled = logit / temperature;
  const exponential = Math.exp(scaled - of("peak"));
  const share = exponential / of("total");
  const all = of("kept_p") === count;
  const cuts = [k ? `top-k ${k}` : "", p < 1 ? `top-p ${plain(p)}` : ""].filter(Boolean).join(" and ");
  const lines = [
    temperature === 1 ? [] : [`÷ output temperature ${plain(temperature)} = `, number(scaled)],
    [
      `softmax: e^(${number(scaled)} − ${operand(of("peak"))}) / Σ over ${count} ${noun(trace)} = ${number(exponential)} / ${number(of("total"))} = `,
      all ? strong(percent(share), "probability") : percent(share),
    ],
  ].filter((line) => line.length);
  if (all) return { lines, share };
  const left = `${cuts} keep ${of("kept_p")} ${noun(trace)} holding ${percent(of("kept_share"))}: `;
  const final = kept ? share / of("kept_share") : 0;
  lines.push([left, kept ? `${percent(share)} / ${percent(of("kept_share"))} = ` : "this one is cut, ", strong(percent(final), "probability")]);
  return { lines, share: final };
}

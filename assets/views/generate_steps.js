// The steps of a text as the server tells them: what each token was chosen from, stage by stage.

export const STAGES = ["logits", "own", "penalized", "scaled", "shares", "probabilities"];
export const CUTS = [["in_top_k", "top-k"], ["in_top_p", "top-p"], ["in_min_p", "min-p"], ["in_typical", "typical"]];

/**
 * An answer to "write" or "step" -> [{id, piece, rows, chosen, others, kept, entropy, choices, candidates}]. `rows` are the most probable
 * tokens, {id, piece, rank, own, log_own, logits, penalized, scaled, shares, in_top_k, ..., probabilities}, `chosen` is the one of the token itself; `others` is what all
 * that are not there have of `own`, of `shares` and of `probabilities`; `kept` has {count, share} of each cut; entropy (bits) and choices are those of `own` and `probabilities`.
 */
export function stepsOf({ arrays, pieces }) {
  if (!arrays.id) return [];
  const names = Object.keys(arrays).filter((name) => name.startsWith("top."));
  const width = arrays["top.id"].shape[1];
  return Array.from(arrays.id.data, (id, s) => {
    const all = Array.from({ length: width }, (_, r) => {
      const row = Object.fromEntries(names.map((name) => [name.slice(4), arrays[name].data[s * width + r]]));
      return { ...row, piece: pieces[row.id] };
    });
    const chosen = all.pop();
    return { id, piece: pieces[id], rows: all, chosen, ...whole(arrays, s), candidates: candidates(arrays, pieces, s) };
  });
}

function whole(arrays, s) {
  const rows = (name) => Array.from(arrays[name].data.subarray(s * arrays[name].shape[1], (s + 1) * arrays[name].shape[1]));
  const shares = rows("kept_share");
  const [own, tempered, probabilities] = rows("rest");
  return {
    kept: rows("kept").map((count, i) => ({ count, share: shares[i] })),
    others: { own, shares: tempered, probabilities },
    entropy: rows("entropy"),
    choices: rows("choices"),
  };
}

/** Of contrastive search, the chosen one first: [{id, piece, confidence, penalty, score}]. */
function candidates(arrays, pieces, s) {
  if (!arrays["candidate.id"]) return [];
  const width = arrays["candidate.id"].shape[1];
  return Array.from({ length: width }, (_, r) => {
    const at = (name) => arrays[`candidate.${name}`].data[s * width + r];
    return { id: at("id"), piece: pieces[at("id")], confidence: at("confidence"), penalty: at("penalty"), score: at("score") };
  });
}

/** What the tree keeps of a step. */
export function tokenOf(step, more = {}) {
  const { chosen } = step;
  return { id: step.id, piece: step.piece, p: chosen.own, log: chosen.log_own, drawn: chosen.probabilities, rank: chosen.rank, step, ...more };
}

/** What is asked to see the step at which a token of the tree was chosen. */
export function stepQuery(tree, node) {
  return { ask: "step", begun: tree.ids(node.parent), settings: tree.settingsOf(node), id: node.id };
}

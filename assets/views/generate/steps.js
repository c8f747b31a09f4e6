// The steps of a text as the server tells them: what each token was chosen from, stage by stage.

export const STAGES = ["logits", "own", "penalized", "scaled", "shares", "probabilities"];
export const CUTS = [["in_top_k", "top-k"], ["in_top_p", "top-p"], ["in_min_p", "min-p"], ["in_typical", "typical"]];

/**
 * An answer to "write" or "step" -> [{id, piece, rows, chosen, others, kept, entropy, choices, candidates}]. `rows` are the most probable
 * tokens, {id, piece, rank, own, log_own, logits, penalized, scaled, shares, in_top_k, ..., probabilities}, `chosen` is the one of the token itself; `others` is what all
 * that are not there have of `own`, of `shares` and of `probabilities`; `kept` has {count, share} of each cut; entropy (bits) and choices are those of `own` and `probabilities`.
 */
export function stepsOf({ arrays, pieces }) {
  return Array.from(arrays.id?.data ?? [], (id, place) => new Step(arrays, pieces, place));
}

/** What is looked at is read from the arrays then: of a text that comes, most steps never are. */
class Step {
  constructor(arrays, pieces, place) {
    Object.assign(this, { arrays, pieces, place, id: arrays.id.data[place], width: arrays["top.id"].shape[1] });
    this.piece = pieces[this.id];
    this.chosen = this.row(this.width - 1);
  }

  row(rank) {
    const row = {};
    for (const name in this.arrays) if (name.startsWith("top.")) row[name.slice(4)] = this.arrays[name].data[this.place * this.width + rank];
    row.piece = this.pieces[row.id];
    return row;
  }

  get rows() {
    return (this.found ??= Array.from({ length: this.width - 1 }, (_, rank) => this.row(rank)));
  }

  own(name) {
    const { data, shape } = this.arrays[name];
    return Array.from(data.subarray(this.place * shape[1], (this.place + 1) * shape[1]));
  }

  get kept() {
    const shares = this.own("kept_share");
    return this.own("kept").map((count, i) => ({ count, share: shares[i] }));
  }

  get others() {
    const [own, shares, probabilities] = this.own("rest");
    return { own, shares, probabilities };
  }

  get entropy() {
    return this.own("entropy");
  }

  get choices() {
    return this.own("choices");
  }

  /** Of contrastive search, the chosen one first: [{id, piece, confidence, penalty, score}]. */
  get candidates() {
    if (!this.arrays["candidate.id"]) return [];
    const [ids, ...numbers] = ["id", "confidence", "penalty", "score"].map((name) => this.own(`candidate.${name}`));
    return ids.map((id, i) => ({ id, piece: this.pieces[id], confidence: numbers[0][i], penalty: numbers[1][i], score: numbers[2][i] }));
  }
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

// What was written from one prompt: a tree of tokens with the steps in which they were chosen. Two texts share what they have in common, and each leaf is a
// branch. It is ours because it holds what streams in, and outlives the page: as long as the browser's tab is open, and in its session storage for a reload.

/**
 * @typedef {import("../core/payload.js").NamedArray} NamedArray
 * @typedef {{ kind: string, sentence: string }} Stop why a text ends
 * @typedef {{ method: string, most: number, seed: number, temperature: number, top_k: number, top_p: number, min_p: number, typical_p: number,
 *   repetition_penalty: number, [other: string]: unknown }} Settings
 * @typedef {{ id: number, piece: string, p: number, log: number, drawn: number, rank: number, step?: Step | null, stop?: Stop | null, chosen?: boolean,
 *   shift?: number }} Written
 * @typedef {Written & { key: number, parent: number | null, children: number[], said: number }} Token that was written, by its place in the tree
 * @typedef {{ nodes: unknown[][], shown: number, settings: Settings[], coming?: Record<string, { query: import("./streams.js").Asked, steps: number | null }[]> }} Kept
 * @typedef {{ id: number, piece: string, rank: number, own: number, log_own: number, logits: number, penalized: number, scaled: number, shares: number,
 *   in_top_k: number, in_top_p: number, in_min_p: number, in_typical: number, probabilities: number }} Row
 * @typedef {"in_top_k" | "in_top_p" | "in_min_p" | "in_typical"} Cut
 */

const STORED = "loupe generate "; // and which prompt
const MOST = 12; // trees that are kept; those not looked at longest go
/** @type {(keyof Token)[]} */
const FIELDS = ["parent", "id", "piece", "p", "log", "drawn", "rank", "said", "shift", "chosen", "stop"];

/** @type {Map<string, Tree>} */
const trees = new Map(); // what the page calls model and prompt -> Tree, the newest last

/**
 * The tree of a prompt by its name, as it was left. `kept` is what a file that works alone brings along.
 * @param {string} made
 * @param {Kept | undefined} kept
 */
export function treeOf(made, kept) {
  let tree = trees.get(made);
  if (!tree) {
    tree = new Tree(made);
    tree.restore(kept ?? read(made));
  }
  trees.delete(made);
  trees.set(made, tree);
  for (const old of trees.keys()) if (trees.size > MOST) trees.delete(old);
  return tree;
}

/** @param {string} made */
function read(made) {
  try {
    return JSON.parse(sessionStorage.getItem(STORED + made) ?? "null");
  } catch (error) {
    if (error instanceof DOMException || error instanceof SyntaxError) return null; // no storage here, or of another hand
    throw error;
  }
}

export class Tree {
  /** @type {Map<number, Token>} */
  nodes;
  /** @type {number} the key of the token that comes next */
  next;
  /** @type {number} the last token of the branch that is shown */
  shown;

  /** @param {string} made */
  constructor(made) {
    this.made = made;
    this.clear();
  }

  /** Nothing but the prompt. `shown` is the last token of the branch that is shown, `at` which of its tokens is looked at (null: the newest). */
  clear() {
    const prompt = /** @type {Token} */ (/** @type {Partial<Token>} */ ({ key: 0, parent: null, children: [] })); // which was not written
    this.nodes = new Map([[0, prompt]]);
    this.next = 1;
    this.shown = 0;
    /** @type {number | null} */
    this.at = null;
    /** @type {Settings[]} */
    this.settings = []; // those that tokens were written with
  }

  /**
   * The token of a key, which is one of the tree's.
   * @param {number} key
   */
  node(key) {
    const node = this.nodes.get(key);
    if (!node) throw new Error(`expected the key of a token that was written, got ${key}`);
    return node;
  }

  get isEmpty() {
    return this.nodes.size === 1;
  }

  /**
   * Puts a token behind the node `parent` and returns its key; one that is there already is written anew. `token` is {id, piece, p, log, drawn, rank,
   * step, stop, chosen, shift}: its probability in the model's own distribution, the logarithm of that, the probability in what it was drawn from.
   * @param {number} parent
   * @param {Written} token
   * @param {Settings} settings
   */
  add(parent, token, settings) {
    const siblings = this.node(parent).children;
    let key = siblings.find((one) => this.node(one).id === token.id);
    if (key === undefined) {
      key = this.next++;
      siblings.push(key);
      this.nodes.set(key, { ...token, key, parent, children: [], said: 0 });
    }
    const said = this.remember(settings);
    Object.assign(this.node(key), { chosen: false, stop: null, shift: 0, ...token, said });
    return key;
  }

  /** @param {Settings} settings */
  remember(settings) {
    const text = JSON.stringify(settings);
    const known = this.settings.findIndex((one) => JSON.stringify(one) === text);
    return known >= 0 ? known : this.settings.push(settings) - 1;
  }

  /** The tokens from the prompt to a node. */
  path(key = this.shown) {
    /** @type {Token[]} */
    const found = [];
    for (let node = this.node(key); node.parent !== null; node = this.node(node.parent)) found.push(node);
    return found.reverse();
  }

  /**
   * [the last node of a text that is here, how many of its ids that are].
   * @param {number[]} ids
   */
  follow(ids) {
    let key = 0;
    for (const [count, id] of ids.entries()) {
      const next = this.node(key).children.find((one) => this.node(one).id === id);
      if (next === undefined) return [key, count];
      key = next;
    }
    return [key, ids.length];
  }

  ids(key = this.shown) {
    return this.path(key).map(({ id }) => id);
  }

  /** @param {Token} node */
  settingsOf(node) {
    return this.settings[node.said];
  }

  /** The last tokens of all branches, in the order in which they hang on the tree. */
  leaves() {
    const found = [];
    const walk = [0];
    for (let key = walk.pop(); key !== undefined; key = walk.pop()) {
      const { children } = this.node(key);
      if (!children.length && key) found.push(key);
      walk.push(...children.toReversed());
    }
    return found;
  }

  /**
   * The last token of the branch that goes on from a node, by its newest turns.
   * @param {number} key
   */
  leafOf(key) {
    let node = this.node(key);
    while (node.children.length) node = this.node(node.children[node.children.length - 1]);
    return node.key;
  }

  /**
   * Takes a branch away: its last token, and all before that no other branch has.
   * @param {number} leaf
   */
  remove(leaf) {
    const onPath = this.path().some(({ key }) => key === leaf);
    let node = this.node(leaf);
    while (node.parent !== null && !node.children.length) {
      const { key } = node;
      const parent = this.node(node.parent);
      parent.children = parent.children.filter((one) => one !== key);
      this.nodes.delete(key);
      node = parent;
    }
    if (onPath || !this.nodes.has(this.shown)) Object.assign(this, { shown: this.leafOf(node.key), at: null });
  }

  /** {count, sum, perplexity} of what was written up to a node, by the model's own distribution. */
  measure(key = this.shown) {
    const path = this.path(key);
    const sum = path.reduce((total, { log }) => total + log, 0);
    return { count: path.length, sum, perplexity: Math.exp(-sum / path.length) };
  }

  // --- kept ----------------------------------------------------------------------------------------------------------------

  /** As JSON: the tokens without the steps in which they were written, which can be asked again. */
  kept() {
    const order = [...this.nodes.keys()];
    const place = new Map(order.map((key, i) => [key, i]));
    const nodes = order.slice(1).map((key) => {
      const node = this.node(key);
      return FIELDS.map((field) => (field === "parent" ? place.get(node.parent ?? 0) : node[field]));
    });
    return { nodes, shown: place.get(this.shown) ?? 0, settings: this.settings };
  }

  /**
   * What `kept` gave; anything else came from elsewhere and is passed over.
   * @param {Kept | null} kept
   */
  restore(kept) {
    this.clear();
    if (!Array.isArray(kept?.nodes) || !Array.isArray(kept.settings)) return;
    this.settings = kept.settings;
    for (const [i, row] of kept.nodes.entries()) {
      const node = /** @type {Omit<Token, "key" | "children">} */ (
        Object.fromEntries(FIELDS.map((field, j) => [field, row[j]]))
      );
      const { parent } = node;
      const fits =
        parent !== null &&
        Number.isInteger(parent) &&
        parent >= 0 &&
        parent <= i &&
        Number.isInteger(node.id) &&
        typeof node.piece === "string";
      if (!fits || !Number.isFinite(node.log) || !(node.said in this.settings)) return this.clear();
      this.nodes.set(i + 1, { ...node, key: i + 1, children: [] });
      this.node(parent).children.push(i + 1);
    }
    this.next = this.nodes.size;
    if (this.nodes.has(kept.shown)) this.shown = kept.shown;
  }

  /** Into the session storage, as far as there is room. */
  save() {
    try {
      if (this.isEmpty) return sessionStorage.removeItem(STORED + this.made);
      sessionStorage.setItem(STORED + this.made, JSON.stringify(this.kept()));
    } catch (error) {
      if (!(error instanceof DOMException)) throw error; // it stays in memory
    }
  }
}

/** @type {[field: Cut, name: string][]} */
export const CUTS = [
  ["in_top_k", "top-k"],
  ["in_top_p", "top-p"],
  ["in_min_p", "min-p"],
  ["in_typical", "typical"],
];

/**
 * An answer to "write" or "step" -> [{id, piece, rows, chosen, others, kept, entropy, choices, candidates}]. `rows` are the most probable
 * tokens, {id, piece, rank, own, log_own, logits, penalized, scaled, shares, in_top_k, ..., probabilities}, `chosen` is the one of the token itself; `others` is what all
 * that are not there have of `own`, of `shares` and of `probabilities`; `kept` has {count, share} of each cut; entropy (bits) and choices are those of `own` and `probabilities`.
 * @param {import("../core/store.js").Answers["write"]} answer
 */
export function stepsOf({ arrays, pieces }) {
  return Array.from(arrays.id?.data ?? [], (id, place) => new Step(arrays, pieces, place));
}

/** What is looked at is read from the arrays then: of a text that comes, most steps never are. */
export class Step {
  /** @type {Row[] | null} its rows */
  found = null;

  /**
   * @param {Record<string, NamedArray>} arrays
   * @param {Record<number, string>} pieces
   * @param {number} place
   */
  constructor(arrays, pieces, place) {
    this.arrays = arrays;
    this.pieces = pieces;
    this.place = place;
    this.id = arrays.id.data[place];
    this.width = arrays["top.id"].shape[1];
    this.piece = pieces[this.id];
    this.chosen = this.row(this.width - 1);
  }

  /** @param {number} rank */
  row(rank) {
    /** @type {Record<string, number>} */
    const row = {};
    for (const name in this.arrays)
      if (name.startsWith("top.")) row[name.slice(4)] = this.arrays[name].data[this.place * this.width + rank];
    return /** @type {Row} */ (/** @type {unknown} */ ({ ...row, piece: this.pieces[row.id] }));
  }

  get rows() {
    return (this.found ??= Array.from({ length: this.width - 1 }, (_, rank) => this.row(rank)));
  }

  /** @param {string} name */
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
    return ids.map((id, i) => ({
      id,
      piece: this.pieces[id],
      confidence: numbers[0][i],
      penalty: numbers[1][i],
      score: numbers[2][i],
    }));
  }
}

/**
 * What the tree keeps of a step.
 * @param {Step} step
 */
export function tokenOf(step, more = {}) {
  const { chosen } = step;
  return {
    id: step.id,
    piece: step.piece,
    p: chosen.own,
    log: chosen.log_own,
    drawn: chosen.probabilities,
    rank: chosen.rank,
    step,
    ...more,
  };
}

/**
 * What is asked to see the step at which a token of the tree was chosen.
 * @param {Tree} tree
 * @param {Token} node
 */
export function stepQuery(tree, node) {
  return {
    ask: /** @type {const} */ ("step"),
    begun: tree.ids(node.parent ?? 0),
    settings: tree.settingsOf(node),
    id: node.id,
  };
}

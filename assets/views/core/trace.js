// One stack of one run as the server sent it: hook name -> numbers, with what is not there yet fetched once and kept.
// Names are the stack's own (`blocks.0.attn.q`); only `encoder.…` may be said from the decoder, which reads it.
import { request } from "./store.js";

/**
 * @typedef {"next" | "here" | "class" | "answer"} Reads where the head reads: after each token, at it, once, or two ends
 * @typedef {{ count: number, used: number, scores: string, renormalised: boolean, shared: number, dense: number[] }} Experts
 * @typedef {{ pooled: string[], maps: { width: number, bias: boolean, activation: string }[], unit: boolean }} TextVector
 * @typedef {{ name: string, d_model: number, vocab: number, context: number, norm: string, norm_place: string, norm_learned: string, eps: number,
 *   residual: boolean, residual_scale: number, layer_scale: boolean, head: string, read: string, averaged: boolean, pooler: boolean, pooler_activation: string,
 *   vector: TextVector | null,
 *   head_scale: number | null, head_softcap: number | null, head_activation: string, embed_scale: number, token_dropout: boolean, mapped: "tokens" | "all" | null,
 *   layers: number, distinct: number, heads: number, kv_heads: number, d_head: number, scale: number | null, terms: number, softcap: number | null, sinks: boolean,
 *   mask: string, crosses: boolean, rereads: boolean, bias: boolean, out_bias: boolean, mlp_bias: boolean, sublayers: string, d_mlp: number | null,
 *   first_norm: boolean, head_norm: boolean, dense_bias: boolean,
 *   activation: string | null, gated: boolean, experts: Experts | null, positions: string, pairs: string, turned: number | null, unturned: number[],
 *   axes: number }} Model
 */

export class Trace {
  /** @type {string} name of the run */
  trace;
  /** @type {Record<string, import("./payload.js").NamedArray>} */
  arrays;
  /** @type {Record<string, { pieces: string[], special: boolean[], [of: string]: unknown }>} the stacks of the model, as they were sent */
  lanes;
  /** @type {string[]} what the tokens say */
  pieces;
  /** @type {number[][]} the two ids of the place of each token, where it has two */
  positions;
  /** @type {boolean[]} which of them are special */
  special;
  /** @type {string[]} whose turn of a conversation each token is part of; none of a text */
  roles;
  /** @type {Record<number, string>} what the candidates of the head are called */
  names;
  /** @type {import("../components/picture.js").Grid | null} of the patches of a picture */
  grid;
  /** @type {(number | string)[]} */
  ids;
  /** @type {string[]} of a block */
  hooks;
  /** @type {import("../components/tokens.js").Letter[]} */
  letters;
  /** @type {Model} */
  model;
  /** @type {{ pieces: string[], special: boolean[] } | null} the encoder's lane, of a decoder */
  source;
  /** @type {Reads | null} */
  reads;
  /** @type {import("../components/bars.js").Link} */
  link;
  /** @type {number} classes or tokens that the head chooses from */
  count;
  /** @type {string} what those are called */
  noun;
  /** @type {{ start: number, end: number, text: string, shares: [number, number] } | null} */
  answer;
  /** @type {number | null} the probability that the second text follows the first */
  follows;
  /** @type {{ id: number, probability: number } | null} */
  sampled;
  /** @type {{ temperature: number, top_k: number, top_p: number }} */
  sampling;
  /** @type {string[]} hooks, with * for any block, that an edit changes */
  edited;
  /** @type {Record<string, [layer: number, head: number][]> | undefined} that an edit reaches into, by attention */
  editedHeads;
  /** @type {import("../attention/scores.js").Score[]} what is measured of each head, on the page about attention */
  scoreTable;
  /** @type {string | undefined} */
  notice;
  /** @type {string} in which the model computes */
  dtype;
  /** @type {boolean | undefined} whether the text is somebody else's to change */
  locked;
  /** @type {boolean | undefined} whether the text fills the model's context */
  full;
  /** @type {number | undefined} the row that is looked at first, where it is not the last */
  row0;
  /** @type {number} blocks and heads whose arithmetic one answer holds */
  together;

  /**
   * `data` is a decoded payload of views/walkthrough or views/attention, `side` the stack: "encoder", "decoder" or "".
   * @param {any} data
   * @param {string} [side] the last one where none is said
   */
  constructor(data, side = Object.keys(data.lanes).at(-1) ?? "") {
    const lane = data.lanes[side];
    Object.assign(this, data, lane); // trace, reads, names, sampled, edited, notice, ...; pieces, ids, hooks, grid, ...
    this.model = { ...data.model, ...lane.model };
    this.side = side;
    this.prefix = side ? `${side}.` : "";
    this.length = lane.pieces.length;
    this.source = side === "decoder" ? data.lanes.encoder : null;
    this.sides = Object.keys(data.lanes);
    this.reads = side === this.sides.at(-1) ? data.reads : null; // only the last stack has the head
  }

  /**
   * The same run, seen from another of its stacks.
   * @param {ConstructorParameters<typeof Trace>[0]} data
   * @param {string} side
   */
  from(data, side) {
    return side === this.side ? this : new Trace({ ...data, arrays: this.arrays }, side);
  }

  /**
   * A name as the engine has it: what belongs to the whole model, or is the encoder's already, stays.
   * @param {string} name
   */
  named(name) {
    return /^(encoder\.|head\.|pooler\.|vector\.|next_sentence|logits)/.test(name) ? name : this.prefix + name;
  }

  /** @param {string} name */
  array(name) {
    return this.arrays[this.named(name)];
  }

  /** @param {string} name */
  has(name) {
    return this.array(name) !== undefined;
  }

  /**
   * Whether a layer's values are here: all that the page draws of it, which is its attention at least.
   * @param {number} layer
   */
  holds(layer) {
    return this.has(`blocks.${layer}.attn.pattern`);
  }

  /**
   * Whether experts stand in place of a layer's MLP.
   * @param {number} layer
   */
  isRouted(layer) {
    const { experts } = this.model;
    return experts !== null && !experts.dense.includes(layer);
  }

  /**
   * Whether a hook's axes are pos slot d_mlp: of each token, for each expert that it was sent to.
   * @param {string} name
   */
  hasSlots(name) {
    return name.includes(".mlp.experts.");
  }

  /**
   * Brings a layer's values here; resolves when they are.
   * @param {number} layer
   */
  async fetch(layer) {
    if (this.holds(layer)) return;
    const { arrays } = await request({ trace: this.trace, ask: "layer", layer, side: this.side });
    Object.assign(this.arrays, arrays);
  }

  /**
   * The head of keys and values that a query head reads (grouped queries share).
   * @param {number} head
   */
  keyHead(head) {
    return Math.floor((head * this.model.kv_heads) / this.model.heads);
  }

  /**
   * What the columns of a matrix of attention are: the source for cross-attention, this stack's own tokens otherwise.
   * @param {string} name
   * @returns {string[]}
   */
  keys(name) {
    return name.includes("cross_attn") && this.source ? this.source.pieces : this.pieces;
  }

  /**
   * What the rows of a hook are.
   * @param {string} name
   * @returns {string[]}
   */
  readers(name) {
    return this.source && /cross_attn\.(k|v|k_norm\.out)$/.test(name) ? this.source.pieces : this.pieces;
  }

  /**
   * The row of `next.*` for row `pos`: a class is said once, and where an answer starts and ends (`list` 0, 1) too.
   * @param {number} pos
   */
  outcomeRow(pos, list = 0) {
    return this.reads === "answer" ? list : Math.min(pos, this.arrays["next.id"].shape[0] - 1);
  }

  /** What this stack reads, in a word. */
  get called() {
    if (!this.side) return "tokens";
    return this.side === "encoder" ? "source" : this.model.rereads ? "text again" : "target";
  }

  /** How many lists of candidates the head gives at a time. */
  get lists() {
    return this.reads === "answer" ? 2 : 1;
  }

  /**
   * A hook as rows x columns (see cells.js): `head` picks one where the hook has heads, null flattens them.
   * @param {string} name
   * @param {number | null} [head]
   * @param {string} name
   * @returns {Block}
   */
  block(name, head = null) {
    const { data, shape } = this.array(name);
    if (shape.length === 2) return { data, offset: 0, stride: shape[1], rows: shape[0], cols: shape[1] };
    if (this.isSquare(name)) {
      const [, rows, cols] = shape;
      return { data, offset: (head ?? 0) * rows * cols, stride: cols, rows, cols };
    }
    const [rows, heads, width] = shape; // pos head d_head
    if (head === null) return { data, offset: 0, stride: heads * width, rows, cols: heads * width };
    const index = heads === this.model.heads ? head : this.keyHead(head);
    return { data, offset: index * width, stride: heads * width, rows, cols: width };
  }

  /**
   * Whether a hook's axes are head pos key.
   * @param {string} name
   */
  isSquare(name) {
    return /\.(scores|capped|mask|bias|c2p|p2c|masked_scores|pattern)$/.test(name);
  }

  /**
   * A head's pattern as a block of cells.js, whose numbers are full at `max`: exact where the layer is here, else in bytes.
   * @param {string} focus
   * @param {number} layer
   * @param {number} head
   */
  pattern(focus, layer, head) {
    const exact = `blocks.${layer}.${focus}.pattern`;
    return this.has(exact) ? { block: this.block(exact, head), max: 1 } : this.overview(focus, layer, head);
  }

  /**
   * The same in bytes, 255 = 1, as a payload has those of all heads: of a long text each the largest of its block.
   * @param {string} focus
   * @param {number} layer
   * @param {number} head
   */
  overview(focus, layer, head) {
    const { data, shape } = this.arrays[`patterns.${this.prefix}${focus}`];
    const [, heads, rows, cols] = shape;
    return { block: { data, offset: (layer * heads + head) * rows * cols, stride: cols, rows, cols }, max: 255 };
  }

  /**
   * Row `pos` of a block as an array view.
   * @param {string} name
   * @param {number} pos
   * @param {number | null} [head]
   * @param {string} name
   * @returns {Cells}
   */
  row(name, pos, head = null) {
    if (name === "embed.sum") return this.embedded(pos);
    const { data, offset, stride, cols } = this.block(name, head);
    const start = offset + pos * stride;
    return data.subarray(start, start + cols);
  }

  /**
   * @param {string} name
   * @param {number} pos
   * @param {number} index
   * @param {number | null} [head]
   */
  element(name, pos, index, head = null) {
    return this.row(name, pos, head)[index];
  }

  /** The parts that are added up for the first residual stream (for what is then mapped to it), those that this model has. */
  parts() {
    const read = this.model.mapped === "tokens" ? "mapped" : "tokens";
    return [read, "patches", "segments", "positions", "within"]
      .map((part) => `embed.${part}`)
      .filter((name) => this.has(name));
  }

  /**
   * Row `pos` of their sum.
   * @param {number} pos
   */
  embedded(pos) {
    const rows = this.parts().map((name) => this.row(name, pos));
    return Float64Array.from(rows[0], (_, i) => rows.reduce((total, row) => total + row[i], 0));
  }

  /**
   * How many rows down a hook begins: what the whole text has once stands beside the token where it was read.
   * @param {string} name
   */
  begins(name) {
    if (this.block(name, 0).rows === this.length) return 0;
    if (name.startsWith("vector.")) return this.model.vector?.pooled[0] === "last" ? this.length - 1 : 0;
    return name === "head.distilled" ? 1 : this.speaker();
  }

  /** The row that speaks for the whole text: its first, or its last where only that has read all. */
  speaker() {
    return this.model.read === "last" ? this.length - 1 : 0;
  }

  /** Whether norms stand after the sublayers, and there are any. */
  normsAfter() {
    return this.model.norm_place === "after" && this.model.norm !== "none";
  }

  /** Whether attention and MLP read the same stream. */
  beside() {
    return this.model.sublayers !== "sequential";
  }

  /**
   * The residual stream that leaves block `l`.
   * @param {number} l
   */
  after(l) {
    if (l < 0) return this.entry();
    const normed = this.normsAfter();
    return `blocks.${l}.${normed && this.model.d_mlp ? "norm2.out" : "resid_post"}`;
  }

  /** The residual stream that enters the first block. */
  entry() {
    if (this.model.mapped === "all") return "embed.mapped";
    return this.has("embed.norm.out") ? "embed.norm.out" : this.parts().length === 1 ? this.parts()[0] : "embed.sum";
  }
}

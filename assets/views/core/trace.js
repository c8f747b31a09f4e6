// One stack of one run as the server sent it: hook name -> numbers, with what is not there yet fetched once and kept.
// Names are the stack's own (`blocks.0.attn.q`); only `encoder.…` may be said from the decoder, which reads it.
import { request } from "./store.js";

export class Trace {
  /** `data` is a decoded payload of views/walkthrough.py or views/attention.py, `side` the stack: "encoder", "decoder" or "". */
  constructor(data, side = Object.keys(data.lanes).at(-1)) {
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

  /** The same run, seen from another of its stacks. */
  from(data, side) {
    return side === this.side ? this : new Trace({ ...data, arrays: this.arrays }, side);
  }

  /** A name as the engine has it: what belongs to the whole model, or is the encoder's already, stays. */
  named(name) {
    return /^(encoder\.|head\.|pooler\.|next_sentence|logits)/.test(name) ? name : this.prefix + name;
  }

  array(name) {
    return this.arrays[this.named(name)];
  }

  has(name) {
    return this.array(name) !== undefined;
  }

  /** Whether a layer's values are here: all that the page draws of it, which is its attention at least. */
  holds(layer) {
    return this.has(`blocks.${layer}.attn.pattern`);
  }

  /** Brings a layer's values here; resolves when they are. */
  async fetch(layer) {
    if (this.holds(layer)) return;
    const { arrays } = await request({ trace: this.trace, ask: "layer", layer, side: this.side });
    Object.assign(this.arrays, arrays);
  }

  /** The model's own numbers behind one element: {weights, bias}. */
  async operands(hook, unit, row = 0) {
    const { arrays, bias } = await request({ trace: this.trace, hook: this.named(hook), unit, row });
    return { weights: arrays.weights.data, bias };
  }

  /** The head of keys and values that a query head reads (grouped queries share). */
  keyHead(head) {
    return Math.floor((head * this.model.kv_heads) / this.model.heads);
  }

  /** What the columns of a matrix of attention are: the source for cross-attention, this stack's own tokens otherwise. */
  keys(name) {
    return name.includes("cross_attn") ? this.source.pieces : this.pieces;
  }

  /** What the rows of a hook are. */
  readers(name) {
    return /cross_attn\.(k|v|k_norm\.out)$/.test(name) ? this.source.pieces : this.pieces;
  }

  /** The row of `next.*` for row `pos`: a class is said once, and where an answer starts and ends (`list` 0, 1) too. */
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

  /** A hook as rows x columns (see cells.js): `head` picks one where the hook has heads, null flattens them. */
  block(name, head = null) {
    const { data, shape } = this.array(name);
    if (shape.length === 2) return { data, offset: 0, stride: shape[1], rows: shape[0], cols: shape[1] };
    if (this.isSquare(name)) {
      const [, rows, cols] = shape;
      return { data, offset: head * rows * cols, stride: cols, rows, cols };
    }
    const [rows, heads, width] = shape; // pos head d_head
    if (head === null) return { data, offset: 0, stride: heads * width, rows, cols: heads * width };
    const index = heads === this.model.heads ? head : this.keyHead(head);
    return { data, offset: index * width, stride: heads * width, rows, cols: width };
  }

  /** Whether a hook's axes are head pos key. */
  isSquare(name) {
    return /\.(scores|capped|mask|bias|masked_scores|pattern)$/.test(name);
  }

  /** Row `pos` of a block as an array view. */
  row(name, pos, head = null) {
    if (name === "embed.sum") return this.embedded(pos);
    const { data, offset, stride, cols } = this.block(name, head);
    const start = offset + pos * stride;
    return data.subarray(start, start + cols);
  }

  element(name, pos, index, head = null) {
    return this.row(name, pos, head)[index];
  }

  /** The parts that are added up for the first residual stream (for what is then mapped to it), those that this model has. */
  parts() {
    const read = this.model.mapped === "tokens" ? "mapped" : "tokens";
    return [read, "patches", "segments", "positions", "within"].map((part) => `embed.${part}`).filter((name) => this.has(name));
  }

  /** Row `pos` of their sum. */
  embedded(pos) {
    const rows = this.parts().map((name) => this.row(name, pos));
    return Float64Array.from(rows[0], (_, i) => rows.reduce((total, row) => total + row[i], 0));
  }

  /** The name of the value that a hook of block `l` is computed from, given the order of this model's norms. */
  input(hook) {
    const [, l, part] = hook.match(/^blocks\.(\d+)\.(.+)$/) ?? [null, null, hook];
    const found = l === null ? this.inputAround(part) : this.inputWithin(Number(l), part);
    if (!found) throw new Error(`nothing is known to go into ${hook}`);
    return found;
  }

  inputAround(part) {
    const { head, pooler, mapped } = this.model;
    const summed = this.has("embed.norm.out") ? "embed.norm.out" : "embed.sum";
    const pooled = head === "sequence" && pooler ? "pooler.out" : this.last();
    const behind = (names) => names.find((name) => this.has(name)) ?? pooled;
    return {
      "embed.mapped": mapped === "tokens" ? "embed.tokens" : summed,
      "embed.patches": "embed.patches.pixels",
      "embed.norm.out": "embed.sum",
      "final_norm.out": this.last(false),
      "head.mean": this.last(),
      "head.pre": behind(["head.narrow"]),
      "head.post": "head.pre",
      "head.norm.out": "head.post",
      "pooler.pre": this.last(),
      "pooler.out": "pooler.pre",
      next_sentence: "pooler.out",
      "head.narrow": behind(["head.mean"]),
      "head.cls": this.last(),
      "head.distilled": this.last(),
      logits: behind(["head.norm.out", "head.post", "head.narrow", "head.mean"]),
    }[part];
  }

  /** The row of its input that row `pos` of a hook is made of: where one position speaks for the whole, that one. */
  origin(hook, pos) {
    if (hook === "head.distilled") return 1;
    const whole = /^(pooler\.pre|head\.cls)$/.test(hook) || (this.model.head === "sequence" && /^(logits|head\.narrow)$/.test(hook));
    if (!whole) return pos;
    return this.array(this.input(hook))?.shape[0] === 1 ? 0 : this.speaker();
  }

  /** How many rows down a hook begins: what the whole text has once stands beside the token where it was read. */
  begins(name) {
    if (this.block(name, 0).rows === this.length) return 0;
    return name === "head.distilled" ? 1 : this.speaker();
  }

  /** The row that speaks for the whole text: its first, or its last where only that has read all. */
  speaker() {
    return this.model.read === "last" ? this.length - 1 : 0;
  }

  inputWithin(l, part) {
    const b = `blocks.${l}.`;
    const post = this.normsAfter();
    const read = (norm, stream) => (!post && this.has(`${b}${norm}.out`) ? `${b}${norm}.out` : stream);
    const stream = this.model.crosses ? `${b}resid_cross` : this.beside() ? `${b}resid_pre` : `${b}resid_mid`;
    const inputs = {
      "norm1.out": post ? `${b}resid_mid` : `${b}resid_pre`,
      "norm_cross.out": post ? `${b}resid_cross` : `${b}resid_mid`,
      "norm2.out": post ? `${b}resid_post` : stream,
      "norm1_after.out": `${b}attn.out`,
      "norm2_after.out": `${b}mlp.out`,
      "attn.q_norm.out": `${b}attn.q`,
      "attn.k_norm.out": `${b}attn.k`,
      "attn.out": `${b}attn.z`,
      "cross_attn.q": post ? `${b}norm1.out` : read("norm_cross", `${b}resid_mid`),
      "cross_attn.out": `${b}cross_attn.z`,
      "mlp.out": `${b}mlp.post`,
    };
    for (const name of ["attn.q", "attn.k", "attn.v"]) inputs[name] = read("norm1", `${b}resid_pre`);
    for (const name of ["cross_attn.k", "cross_attn.v"]) inputs[name] = this.memory();
    const before = post ? b + this.read(l) : this.model.sublayers === "parallel_one_norm" ? read("norm1", stream) : read("norm2", stream);
    for (const name of ["mlp.pre", "mlp.up"]) inputs[name] = before;
    return inputs[part];
  }

  /** Whether norms stand after the sublayers, and there are any. */
  normsAfter() {
    return this.model.norm_place === "after" && this.model.norm !== "none";
  }

  /** Whether attention and MLP read the same stream. */
  beside() {
    return this.model.sublayers !== "sequential";
  }

  /** What the MLP of block `l` is added to. */
  read(l) {
    if (this.normsAfter()) return this.model.crosses ? "norm_cross.out" : "norm1.out";
    return this.model.crosses ? "resid_cross" : "resid_mid";
  }

  /** The residual stream that leaves block `l`. */
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

  /** What leaves the stack, behind its final norm unless that is what is asked for. */
  last(normed = true) {
    return normed && this.has("final_norm.out") ? "final_norm.out" : this.after(this.model.layers - 1);
  }

  /** What cross-attention makes its keys and values of; undefined where there is none. */
  memory() {
    if (!this.source) return undefined;
    const layers = this.source.model.layers;
    const names = ["encoder.final_norm.out", `encoder.blocks.${layers - 1}.norm2.out`, `encoder.blocks.${layers - 1}.resid_post`];
    const after = this.model.norm_place === "after";
    return names.find((name) => this.has(name) && (after || !name.endsWith("norm2.out")));
  }
}

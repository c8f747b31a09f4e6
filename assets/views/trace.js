// One run as the server sent it: hook name -> numbers, with what is not there yet fetched once and kept.
import { request } from "./store.js";

export class Trace {
  /** `data` is a decoded payload of views/walkthrough.py. */
  constructor(data) {
    Object.assign(this, data); // trace, model, pieces, ids, hooks, names, sampled, edited, notice, ...
    this.length = data.ids.length;
  }

  has(name) {
    return name in this.arrays;
  }

  /** Whether a layer's values are here. */
  holds(layer) {
    return this.has(`blocks.${layer}.resid_pre`);
  }

  /** Brings a layer's values here; resolves when they are. */
  async fetch(layer) {
    if (this.holds(layer)) return;
    const { arrays } = await request({ trace: this.trace, layer });
    Object.assign(this.arrays, arrays);
  }

  /** The model's own numbers behind one element: {weights, bias}. */
  async operands(hook, unit, row = 0) {
    const { arrays, bias } = await request({ trace: this.trace, hook, unit, row });
    return { weights: arrays.weights.data, bias };
  }

  /** The head of keys and values that a query head reads (grouped queries share). */
  keyHead(head) {
    return Math.floor((head * this.model.kv_heads) / this.model.heads);
  }

  /** A hook as rows x columns (see cells.js): `head` picks one where the hook has heads, null flattens them. */
  block(name, head = null) {
    const { data, shape } = this.arrays[name];
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
    return /\.(scores|mask|bias|masked_scores|pattern)$/.test(name);
  }

  /** Row `pos` of a block as an array view. */
  row(name, pos, head = null) {
    const { data, offset, stride, cols } = this.block(name, head);
    const start = offset + pos * stride;
    return data.subarray(start, start + cols);
  }

  element(name, pos, index, head = null) {
    return this.row(name, pos, head)[index];
  }

  /** The name of the value that a hook of block `l` is computed from, given the order of this model's norms. */
  input(hook) {
    const [, l, part] = hook.match(/^blocks\.(\d+)\.(.+)$/) ?? [null, null, hook];
    const before = this.model.norm_place === "before";
    const normed = this.model.norm !== "none";
    const last = this.model.layers - 1;
    if (part === "final_norm.out") return last < 0 ? "embed.tokens" : `blocks.${last}.resid_post`;
    if (part === "logits") return this.has("final_norm.out") ? "final_norm.out" : this.after(last);
    if (/^attn\.[qkv]$/.test(part)) return `blocks.${l}.${before && normed ? "norm1.out" : "resid_pre"}`;
    if (part === "norm1.out") return `blocks.${l}.${before ? "resid_pre" : "resid_mid"}`;
    if (part === "norm2.out") return `blocks.${l}.${before ? "resid_mid" : "resid_post"}`;
    if (part === "attn.out") return `blocks.${l}.attn.z`;
    if (part === "mlp.pre" || part === "mlp.up") {
      return `blocks.${l}.${before ? (normed ? "norm2.out" : "resid_mid") : this.read(l)}`;
    }
    if (part === "mlp.out") return `blocks.${l}.mlp.post`;
    throw new Error(`nothing is known to go into ${hook}`);
  }

  /** What the MLP of block `l` is added to. */
  read(l) {
    return this.model.norm_place === "after" && this.model.norm !== "none" ? "norm1.out" : "resid_mid";
  }

  /** The residual stream that leaves block `l`. */
  after(l) {
    const normed = this.model.norm_place === "after" && this.model.norm !== "none";
    return `blocks.${l}.${normed ? (this.model.d_mlp ? "norm2.out" : "norm1.out") : "resid_post"}`;
  }
}

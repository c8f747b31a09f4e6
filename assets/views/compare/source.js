// How much of the runs is here, and what of it a view can have: of runs that were sent whole, every pattern. tiled_source.js says
// the same of long texts, of which every number is asked for once it is looked at.
import { CellMaps } from "./cell_maps.js";
import { between, subtract } from "./merge.js";
import { at } from "../components/cells.js";
import { range } from "../core/dom.js";
import { request } from "../core/store.js";
import { Trace } from "../core/trace.js";

/**
 * @typedef {import("./compare.js").Shell} Shell
 * @typedef {import("./runs.js").Attention} Attention
 * @typedef {import("./face.js").Face} Face
 * @typedef {import("./beside.js").ViewModule} ViewModule
 * @typedef {import("../core/payload.js").NamedArray} NamedArray
 * @typedef {{ shares: number[], seen: (layer: number, head: number) => Block, done: number, all: number, sentence: string, edition: string }} Changes
 * @typedef {Pick<NamedArray, "data" | "shape">} Row
 * @typedef {{ names: Record<number, string>, ids: Row, first: Row, second: Row, kl: Row, variation: Row }} Said
 * @typedef {{ relative: NamedArray, cosine: NamedArray }} Distances
 */

/** A stack of a run of which a view may want all that a layer's attention computed, and not the pattern alone. */
class Detailed extends Trace {
  /** @param {number} layer */
  holds(layer) {
    return this.has(`blocks.${layer}.attn.scores`);
  }

  /** @param {number} layer */
  async fetch(layer) {
    if (this.holds(layer)) return;
    const { arrays } = await request({ trace: this.trace, ask: "layer", layer, side: this.side });
    Object.assign(this.arrays, arrays);
  }
}

export class WholeSource {
  tiled = false;

  /**
   * `shell` is compare.js.
   * @param {Shell} shell
   */
  constructor(shell) {
    this.shell = shell;
  }

  begin() {}

  stop() {}

  watch() {}

  settle() {}

  /** @param {HTMLElement} root */
  mountMaps(root) {
    return new CellMaps(root, this.shell);
  }

  /**
   * @param {string} name
   * @param {ViewModule} module
   * @param {HTMLElement} root
   * @param {Face} face
   */
  mountView(name, module, root, face) {
    return module.mount(root, face);
  }

  /** The first cell to look at: the strongest of A's last row, or of its strongest row where every row has read all. */
  first() {
    const { shell } = this;
    const { block } = /** @type {import("./merge.js").Pattern} */ (this.pattern("A"));
    /** @param {number} row */
    const best = (row) =>
      range(0, block.cols).reduce((found, col) => (at(block, row, col) > at(block, row, found) ? col : found), 0);
    const full = shell.side("A").trace.model.mask === "full" && shell.attention("A")?.focus === "attn";
    /**
     * @param {number} found
     * @param {number} row
     */
    const strongest = (found, row) => (at(block, row, best(row)) > at(block, found, best(found)) ? row : found);
    const rows = range(0, block.rows).filter((row) => shell.shares(row));
    const wanted = rows.find((row) => row === shell.data.look.query) ?? null; // the example's
    const row = wanted ?? (!rows.length ? block.rows - 1 : full ? rows.reduce(strongest) : rows[rows.length - 1]);
    return { letter: "A", row, col: best(row) };
  }

  /** Layers that are not here yet are fetched, and shown when they are. */
  bring() {
    const { shell } = this;
    const { data } = shell;
    for (const { letter, trace } of shell.sides) {
      const layer = shell.headOf(letter)[0];
      if (!shell.attention(letter) || trace.holds(layer)) continue;
      const late = () => data === shell.data;
      trace.fetch(layer).then(
        () => late() && shell.refresh(),
        (error) => late() && shell.parts.notice(error.message),
      );
    }
  }

  /**
   * The stack of a run that is looked at, as the views of one head want it.
   * @param {string} letter
   */
  detailed(letter) {
    const { shell } = this;
    const side = shell.data.sides.find((side) => side.letter === letter);
    return shell.stack(/** @type {import("./runs.js").Side} */ (side), shell.attention(letter)?.side, Detailed);
  }

  /**
   * A run's shown pattern as a block of cells.js: exact where it is here, else in steps of 1/255 with `max` 255.
   * @param {string} letter
   */
  pattern(letter) {
    return this.shell.attention(letter) && this.patternAt(letter, ...this.shell.headOf(letter));
  }

  /**
   * @param {string} letter
   * @param {number} layer
   * @param {number} head
   */
  patternAt(letter, layer, head) {
    return this.shell
      .side(letter)
      .trace.pattern(/** @type {Attention} */ (this.shell.attention(letter)).focus, layer, head);
  }

  /**
   * One weight of a run's shown head; null where the run has no such attention, undefined while it is on its way.
   * @param {string} letter
   * @param {number} row
   * @param {number} col
   */
  weight(letter, row, col) {
    const found = this.pattern(letter);
    return found && at(found.block, row, col) / found.max;
  }

  /**
   * What tokens of a run give together to others, as `weight`: summed over keys, averaged over queries.
   * @param {string} letter
   * @param {number[]} queries
   * @param {number[]} keys
   */
  shared(letter, queries, keys) {
    const found = this.pattern(letter);
    return found && between(found.block, found.max, queries, keys);
  }

  /**
   * (row, col) => whether a run's mask takes the key away; undefined where nothing is known to be masked.
   * @param {string} letter
   * @returns {((row: number, col: number) => boolean) | undefined}
   */
  masked(letter) {
    const { shell } = this;
    const { trace } = shell.side(letter);
    const { focus } = /** @type {Attention} */ (shell.attention(letter));
    const [shown, head] = shell.headOf(letter);
    const layer = [shown, ...range(0, trace.model.layers)].find((l) => trace.has(`blocks.${l}.${focus}.mask`));
    if (layer === undefined) return undefined;
    const mask = trace.block(`blocks.${layer}.${focus}.mask`, head);
    return (row, col) => !at(mask, row, col);
  }

  /**
   * Heads' differences between A and another run, by place: {shares: of the heads that are known, seen(layer, head): |difference| as a
   * block, done, all: blocks, sentence: why there are no more, edition: which others there are as soon as more is known}.
   * @param {string} letter
   */
  changes(letter) {
    const { shell } = this;
    const { data, shape } = shell.data.arrays[`${letter}:${shell.state.attention}.change`];
    /**
     * @param {number} layer
     * @param {number} head
     */
    const seen = (layer, head) => {
      const { queries, keys } = /** @type {import("./runs.js").Pair} */ (shell.pair(letter));
      const [first, second] = ["A", letter].map((one) => this.patternAt(one, layer, head));
      const block = subtract(first, second, queries.entries, keys.entries);
      for (let i = 0; i < block.data.length; i++) block.data[i] = Math.abs(block.data[i]) || 0; // 0 where one lacks the token
      return block;
    };
    const edition = shell.sides.map(({ trace }) => Object.keys(trace.arrays).length).join(" ");
    return { shares: Array.from(data), seen, done: shape[0], all: shape[0], sentence: "", edition };
  }

  /** Whether the server can say which heads are alike. */
  comparable() {
    return true;
  }

  /**
   * What A and another run say at one of the places of `says`: {names, ids, first, second, kl, variation}, of one row each; null while that is on its way.
   * @param {string} letter
   * @param {number} place
   */
  said(letter, place) {
    const { arrays, pairs } = this.shell.data;
    /** @param {string} name */
    const row = (name) => {
      const { data, shape } = arrays[`${letter}:says.${name}`];
      const size = shape[1] ?? 1;
      return { data: data.subarray(place * size, (place + 1) * size), shape: [1, size] };
    };
    return {
      names: pairs[letter].says.names,
      ...Object.fromEntries(["ids", "first", "second", "kl", "variation"].map((name) => [name, row(name)])),
    };
  }

  /**
   * How far the residual streams of A and another run are apart: {relative, cosine}, layer group; undefined where they cannot be compared, null while they are on their way.
   * @param {string} letter
   */
  distances(letter) {
    const { data, state } = this.shell;
    const [relative, cosine] = ["relative", "cosine"].map(
      (name) => data.arrays[`${letter}:${state.attention}.${name}`],
    );
    return relative && { relative, cosine };
  }
}

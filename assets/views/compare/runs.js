// The runs that are compared: their numbers, which head of each is shown, and where a place of one stands in the others.
import { at } from "../components/cells.js";
import { merge } from "./merge.js";
import { SourceShell } from "../core/shell.js";
import { request } from "../core/store.js";
import { Trace } from "../core/trace.js";

/**
 * @typedef {ReturnType<typeof import("./state.js").restore>} Restored
 * @typedef {Omit<Restored, "attention" | "cursor"> & { attention: string, cursor: Place, moved?: boolean }} State
 * @typedef {{ letter: string, row: number, col: number, loose?: boolean }} Place of a run; loose where nobody chose it
 * @typedef {{ letter: string, row: number | null, col: number | null, only?: boolean }} Where a place that may lack an axis
 * @typedef {import("../core/payload.js").NamedArray} NamedArray
 * @typedef {import("./merge.js").Group} Group
 * @typedef {import("./merge.js").Merged} Merged
 * @typedef {{ side: string, focus: string }} Attention
 * @typedef {{ layer: number, heads: number[], cross: boolean, stack: string | null }} Silenced
 * @typedef {{ letter: string, title: string, notice?: string, edits: number, silenced: Silenced[], trace: string, model: import("../core/trace.js").Model,
 *   lanes: Record<string, { pieces: string[], [of: string]: unknown }> }} Side a run as it was sent
 * @typedef {Omit<Side, "trace"> & { trace: Trace }} Run with the stack that is looked at
 * @typedef {{ key: string, first: Attention, second: Attention, queries: Group[], keys: Group[], streams: string, change: boolean, tiles: number[] }} Described
 * @typedef {Omit<Described, "queries" | "keys"> & { queries: Merged, keys: Merged }} Pair
 * @typedef {{ sentence: string, groups: Group[], once: boolean, reads: "next" | "class" | "here", names: Record<number, string> }} Says
 * @typedef {{ trace: string, sides: Side[], pairs: Record<string, { trace: string, same: boolean, attentions: Described[], says: Says }>,
 *   look: { layer: number, head: number, query?: number }, plotly: string, addresses?: Record<string, Record<string, string>>, tile: number, across: number,
 *   cells?: number, arrays: Record<string, NamedArray> }} Data
 * @typedef {{ block: Block, rows?: number, of?: number, sentence?: undefined } | { sentence: string, block?: undefined, rows?: undefined, of?: undefined }} Similar
 * @typedef {import("./compare.js").Shell} Shell
 */

/** @extends {SourceShell<State, import("./frame.js").Parts, Data>} */
export class Runs extends SourceShell {
  /** @type {Run[]} the runs, each with the stack that is looked at */
  sides;
  /** @type {Map<string, Pair | null>} of A and another run, by its letter */
  pairs;
  /** @type {Map<string, Similar | null>} what the server said of how alike heads are */
  similar;
  stacks = new WeakMap(); // payload -> "A decoder Trace" -> that stack
  arrays = new WeakMap(); // payload -> letter -> its arrays

  /** @param {Side} side */
  traced(side) {
    return this.stack(side, this.attention(side.letter)?.side, Trace);
  }

  /**
   * A stack of a run, the same object as long as the data are the same.
   * @param {Side} side
   * @param {string | undefined} name
   * @param {new (data: object, side?: string) => Trace} kind
   */
  stack(side, name, kind) {
    if (!this.stacks.has(this.data)) this.stacks.set(this.data, new Map());
    const [known, key] = [this.stacks.get(this.data), `${side.letter} ${name} ${kind.name}`];
    if (!known.has(key)) known.set(key, new kind({ ...side, arrays: this.arraysOf(side) }, name));
    return known.get(key);
  }

  /**
   * The arrays of a run under their own names; later ones are added to them.
   * @param {Side} side
   */
  arraysOf(side) {
    const prefix = `${side.letter}/`;
    if (!this.arrays.has(this.data)) this.arrays.set(this.data, {});
    const kept = this.arrays.get(this.data);
    kept[side.letter] ??= Object.fromEntries(
      Object.entries(this.data.arrays).flatMap(([name, array]) =>
        name.startsWith(prefix) ? [[name.slice(prefix.length), array]] : [],
      ),
    );
    return kept[side.letter];
  }

  /**
   * The tokens of A and of another run in one order.
   * @param {string} letter
   */
  paired(letter) {
    const found = this.described(letter);
    if (!found) return null;
    const [first, second] = [this.side("A").trace, this.side(letter).trace];
    /**
     * @param {Trace} trace
     * @param {string} focus
     */
    const columns = (trace, focus) => trace.keys(focus);
    return {
      ...found,
      queries: merge(found.queries, first.pieces, second.pieces, ["A", letter]),
      keys: merge(found.keys, columns(first, found.first.focus), columns(second, found.second.focus), ["A", letter]),
    };
  }

  /** @param {string} letter */
  side(letter) {
    return /** @type {Run} */ (this.sides.find((side) => side.letter === letter));
  }

  /**
   * What the server said of A and another run for the attention in view; null where that has none.
   * @param {string} letter
   */
  described(letter) {
    return this.data.pairs[letter].attentions.find(({ key }) => key === this.state.attention) ?? null;
  }

  /**
   * {side, focus} of the attention in view, in one of the runs.
   * @param {string} letter
   */
  attention(letter) {
    const found = this.described(letter === "A" ? this.data.sides[1].letter : letter);
    return found && (letter === "A" ? found.first : found.second);
  }

  /**
   * The pieces of a run's columns.
   * @param {string} letter
   */
  keys(letter) {
    return this.side(letter).trace.keys(/** @type {Attention} */ (this.attention(letter)).focus);
  }

  /** @param {string} letter */
  pair(letter) {
    return this.pairs.get(letter);
  }

  /**
   * [layer, head] of a run: A's own; of another the same one, or the one that is most like it, or one that was picked.
   * @param {string} letter
   * @returns {[layer: number, head: number]}
   */
  headOf(letter) {
    const { layer, head, other, beside } = this.state;
    if (letter === "A") return [layer, head];
    const { layers, heads } = this.side(letter).trace.model;
    /** @param {[layer: number, head: number]} place */
    const fits = ([l, h]) => l < layers && h < heads;
    if (other && letter === beside && fits(other)) return other;
    const found = this.matching(letter) === "alike" ? this.mostAlike(letter) : null;
    return found ?? [Math.min(layer, layers - 1), Math.min(head, heads - 1)];
  }

  /**
   * "same" place, or most "alike": what was chosen, else the place where heads of a place have something in common, or where the most alike are known late.
   * @param {string} letter
   */
  matching(letter) {
    if (!this.sameShape(letter)) return "alike";
    return this.state.match ?? (this.source.tiled || this.related(letter) ? "same" : "alike");
  }

  /**
   * Whether the shown head of a run is the one in A's place, so that the two turn to other heads together.
   * @param {string} letter
   */
  inPlace(letter) {
    const { other, beside } = this.state;
    return letter === "A" || (this.matching(letter) === "same" && !(other && letter === beside));
  }

  /**
   * What of the state changes when a run turns to a head [layer, head].
   * @param {string} letter
   * @param {[layer: number, head: number]} place
   */
  turned(letter, [layer, head]) {
    return this.inPlace(letter) ? { layer, head } : { other: [layer, head], beside: letter };
  }

  /**
   * The heads that views compare, by letter, after one run was given others: runs in its place compare the same ones.
   * @param {string} letter
   * @param {[layer: number, head: number][]} heads
   */
  comparing(letter, heads) {
    /** @param {string} each */
    const together = (each) => each === letter || (this.inPlace(each) && this.inPlace(letter));
    const lists = this.sides.map(({ letter: each }) => [each, together(each) ? heads : this.state.heads[each]]);
    return Object.fromEntries(lists.filter(([, list]) => list?.length > 1));
  }

  /**
   * Whether a run's model is A's, or was once: the same one, or another step of the same training.
   * @param {string} letter
   */
  related(letter) {
    const [one, other] = ["A", letter].map((each) => this.side(each).title.replace(/ · step .*|^run:|@\d+$/g, ""));
    return one === other;
  }

  /** @param {string} letter */
  sameShape(letter) {
    const [one, other] = ["A", letter].map((each) => this.side(each).trace.model);
    return one.layers === other.layers && one.heads === other.heads;
  }

  /**
   * The head of another run that is most like A's shown one; null while that is not known.
   * @param {string} letter
   * @returns {[layer: number, head: number] | null}
   */
  mostAlike(letter) {
    const block = this.similarity(letter);
    if (!block) return null; // on its way, or not to be had
    const row = this.state.layer * this.side("A").trace.model.heads + this.state.head;
    const col = strongest(block, row);
    const { heads } = this.side(letter).trace.model;
    return col === null ? null : [Math.floor(col / heads), col % heads];
  }

  /**
   * A's heads by another run's, as a block; null while it is on its way, or where the server could not say.
   * @param {string} letter
   */
  similarity(letter) {
    if (!this.source.comparable(letter)) return null;
    const name = this.similarName(letter);
    const here = this.data.arrays[`${name}.similarity`];
    if (here && !this.similar.has(name)) this.similar.set(name, { block: matrixOf(here) });
    if (!this.similar.has(name) && this.described(letter)) {
      this.similar.set(name, null);
      const { data } = this;
      /** @param {Similar} found */
      const settle = (found) => {
        if (data !== this.data) return;
        this.similar.set(name, found);
        this.refresh();
      };
      /** @type {import("../core/store.js").Query<"similarity">} */
      const query = {
        ask: "similarity",
        trace: data.pairs[letter].trace,
        attention: this.state.attention,
        over: this.state.over ?? "here",
      };
      request(query).then(
        ({ arrays, rows, of }) => settle({ block: matrixOf(arrays.similarity), rows, of }),
        (error) => settle({ sentence: error.message }),
      );
    }
    return this.similar.get(name)?.block ?? null;
  }

  /** @param {string} letter */
  similarName(letter) {
    return `${letter}:${this.state.attention}${this.state.over ? " over texts" : ""}`;
  }

  /**
   * Why a run or a difference is not drawn.
   * @param {string} letter
   */
  absent(letter) {
    if (!this.described(letter)) return `${letter} has no such attention.`;
    return `A and ${letter} have no tokens that belong together.`;
  }
}

/**
 * An array of two axes as a block of cells.js.
 * @param {NamedArray} array
 */
export function matrixOf({ data, shape }) {
  return { data, offset: 0, stride: shape[1], rows: shape[0], cols: shape[1] };
}

/**
 * The column of a row's largest element; null where no element is a number.
 * @param {Block} block
 * @param {number} row
 * @returns {number | null}
 */
export function strongest(block, row) {
  /** @type {number | null} */
  let best = null;
  for (let col = 0; col < block.cols; col++) {
    const value = at(block, row, col);
    if (!Number.isNaN(value) && (best === null || value > at(block, row, best))) best = col;
  }
  return best;
}

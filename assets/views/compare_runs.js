// The runs that are compared: their numbers, which head of each is shown, and where a place of one stands in the others.
import { at } from "./cells.js";
import { alone, merge } from "./compare_merge.js";
import { range } from "./dom.js";
import { request } from "./store.js";
import { Trace } from "./trace.js";

/** Reads `this.data` (payload of views/compare.py), `this.state` and `this.hover`, which the shell holds, and calls its `refresh()`. */
export class Runs {
  traced(side) {
    const prefix = `${side.letter}/`;
    this.arrays ??= new WeakMap(); // payload -> letter -> its arrays, to which later ones are added
    if (!this.arrays.has(this.data)) this.arrays.set(this.data, {});
    const kept = this.arrays.get(this.data);
    kept[side.letter] ??= Object.fromEntries(Object.entries(this.data.arrays).flatMap(([name, array]) => (name.startsWith(prefix) ? [[name.slice(prefix.length), array]] : [])));
    const stack = this.attention(side.letter)?.side;
    return new Trace({ ...side, arrays: kept[side.letter] }, stack);
  }

  /** The tokens of A and of another run in one order. */
  paired(letter) {
    const found = this.described(letter);
    if (!found) return null;
    const [first, second] = [this.side("A").trace, this.side(letter).trace];
    const columns = (trace, focus) => trace.keys(focus);
    return {
      ...found,
      queries: merge(found.queries, first.pieces, second.pieces, ["A", letter]),
      keys: merge(found.keys, columns(first, found.first.focus), columns(second, found.second.focus), ["A", letter]),
    };
  }

  /** The first cell to look at: the strongest of A's last row, or of its strongest row where every row has read all. */
  first() {
    const { block } = this.pattern("A");
    const best = (row) => range(0, block.cols).reduce((found, col) => (at(block, row, col) > at(block, row, found) ? col : found), 0);
    const { trace } = this.side("A");
    const full = trace.model.mask === "full" && this.attention("A").focus === "attn";
    const strongest = (found, row) => (at(block, row, best(row)) > at(block, found, best(found)) ? row : found);
    const rows = range(0, block.rows).filter((row) => this.shares(row));
    const wanted = rows.includes(this.data.look.query) ? this.data.look.query : null; // the example's
    const row = wanted ?? (!rows.length ? block.rows - 1 : full ? rows.reduce(strongest) : rows.at(-1));
    return { letter: "A", row, col: best(row) };
  }

  side(letter) {
    return this.sides.find((side) => side.letter === letter);
  }

  /** What the server said of A and another run for the attention in view; null where that has none. */
  described(letter) {
    return this.data.pairs[letter].attentions.find(({ key }) => key === this.state.attention) ?? null;
  }

  /** {side, focus} of the attention in view, in one of the runs. */
  attention(letter) {
    const found = this.described(letter === "A" ? this.data.sides[1].letter : letter);
    return found && (letter === "A" ? found.first : found.second);
  }

  /** The pieces of a run's columns. */
  keys(letter) {
    return this.side(letter).trace.keys(this.attention(letter).focus);
  }

  pair(letter) {
    return this.pairs.get(letter);
  }

  /** [layer, head] of a run: A's own; of another the same one, or the one that is most like it, or one that was picked. */
  headOf(letter) {
    const { layer, head, other, beside } = this.state;
    if (letter === "A") return [layer, head];
    const { layers, heads } = this.side(letter).trace.model;
    const fits = ([l, h]) => l < layers && h < heads;
    if (other && letter === beside && fits(other)) return other;
    const found = this.matching(letter) === "alike" ? this.mostAlike(letter) : null;
    return found ?? [Math.min(layer, layers - 1), Math.min(head, heads - 1)];
  }

  /** "same" place, or most "alike": what was chosen, else the place where heads of a place have something in common. */
  matching(letter) {
    if (!this.sameShape(letter)) return "alike";
    return this.state.match ?? (this.related(letter) ? "same" : "alike");
  }

  /** Whether a run's model is A's, or was once: the same one, or another step of the same training. */
  related(letter) {
    const [one, other] = ["A", letter].map((each) => this.side(each).title.split(" · step ")[0]);
    return one === other;
  }

  sameShape(letter) {
    const [one, other] = ["A", letter].map((each) => this.side(each).trace.model);
    return one.layers === other.layers && one.heads === other.heads;
  }

  /** The head of another run that is most like A's shown one; null while that is not known. */
  mostAlike(letter) {
    const block = this.similarity(letter);
    if (!block) return null; // on its way, or not to be had
    const row = this.state.layer * this.side("A").trace.model.heads + this.state.head;
    const col = strongest(block, row);
    const { heads } = this.side(letter).trace.model;
    return col === null ? null : [Math.floor(col / heads), col % heads];
  }

  /** A's heads by another run's, as a block; null while it is on its way, or where the server could not say. */
  similarity(letter) {
    const name = this.similarName(letter);
    const here = this.data.arrays[`${name}.similarity`];
    if (here && !this.similar.has(name)) this.similar.set(name, { block: matrixOf(here) });
    if (!this.similar.has(name) && this.described(letter)) {
      this.similar.set(name, null);
      const { data } = this;
      const settle = (found) => {
        if (data !== this.data) return;
        this.similar.set(name, found);
        this.refresh();
      };
      const query = { ask: "similarity", trace: this.side("A").trace.trace, pair: letter, key: this.state.attention, over: this.state.over ?? "here" };
      request(query).then(({ arrays, rows }) => settle({ block: matrixOf(arrays.similarity), rows }), (error) => settle({ sentence: error.message }));
    }
    return this.similar.get(name)?.block ?? null;
  }

  similarName(letter) {
    return `${letter}:${this.state.attention}${this.state.over ? " over texts" : ""}`;
  }

  /** A run's shown pattern as a block of cells.js: exact where it is here, else in steps of 1/255 with `max` 255. */
  pattern(letter) {
    const attention = this.attention(letter);
    if (!attention) return null;
    const { trace } = this.side(letter);
    const [layer, head] = this.headOf(letter);
    return this.patternAt(letter, layer, head, trace, attention.focus);
  }

  patternAt(letter, layer, head, trace = this.side(letter).trace, focus = this.attention(letter).focus) {
    const exact = `blocks.${layer}.${focus}.pattern`;
    if (trace.has(exact)) return { block: trace.block(exact, head), max: 1 };
    const { data, shape } = trace.arrays[`patterns.${trace.prefix}${focus}`];
    const [, heads, rows, cols] = shape;
    return { block: { data, offset: (layer * heads + head) * rows * cols, stride: cols, rows, cols }, max: 255 };
  }

  /** (row, col) => whether a run's mask takes the key away; undefined where nothing is known to be masked. */
  masked(letter) {
    const { trace } = this.side(letter);
    const { focus } = this.attention(letter);
    const [shown, head] = this.headOf(letter);
    const layer = [shown, ...range(0, trace.model.layers)].find((l) => trace.has(`blocks.${l}.${focus}.mask`));
    if (layer === undefined) return undefined;
    const mask = trace.block(`blocks.${layer}.${focus}.mask`, head);
    return (row, col) => !at(mask, row, col);
  }

  /** Why a run or a difference is not drawn. */
  absent(letter) {
    if (!this.described(letter)) return `${letter} has no such attention.`;
    return `A and ${letter} have no tokens that belong together.`;
  }

  // --- one cursor for all runs -------------------------------------------------------------------------------------------

  /** Whether the run beside A has a token for one of A's rows. */
  shares(row) {
    const merged = this.pair(this.state.beside)?.queries;
    return Boolean(merged) && !alone(merged.entries[merged.mine[row]]);
  }

  /** What the pointer is over, or what was picked: {letter, row, col} in that run's tokens. */
  get cursor() {
    return this.hover ?? this.state.cursor;
  }

  /** A place of one run in the tokens of another: {letter, row, col}, null where that has no such token. */
  carry(letter, { letter: from, row, col }) {
    if (from === letter) return { letter, row, col };
    const [r, c] = [this.entry(from, "queries", row), this.entry(from, "keys", col)];
    const mine = [r?.first[0] ?? null, c?.first[0] ?? null];
    if (letter === "A") return { letter, row: mine[0], col: mine[1] };
    const [there, seen] = from === "A" ? [row, col] : mine;
    return { letter, row: this.partner(letter, "queries", there), col: this.partner(letter, "keys", seen) };
  }

  /** The entry of a position of a run in the order that it shares with A. */
  entry(from, part, position) {
    if (from === "A" || position === null) return null;
    const merged = this.pair(from)?.[part];
    return merged?.entries[merged.theirs[position]] ?? null;
  }

  partner(letter, part, position) {
    const merged = this.pair(letter)?.[part];
    if (!merged || position === null) return null;
    return merged.entries[merged.mine[position]]?.second[0] ?? null;
  }

  /** A place of one run among the entries that another shares with A. */
  merged(letter, cursor) {
    const pair = this.pair(letter);
    if (!pair) return { row: null, col: null };
    const own = cursor.letter === letter;
    const { row, col } = own ? cursor : this.carry("A", cursor);
    const find = (merged, position) => (position === null ? null : ((own ? merged.theirs : merged.mine)[position] ?? null));
    return { row: find(pair.queries, row), col: find(pair.keys, col) };
  }

  /** Entries of a pair as a place of A, or of the other run where A lacks the token. */
  unmerged(letter, { row, col }) {
    const pair = this.pair(letter);
    const [r, c] = [row === null ? null : pair.queries.entries[row], col === null ? null : pair.keys.entries[col]];
    const mine = [r, c].every((entry) => entry === null || entry.first.length);
    const side = mine ? "first" : "second";
    return { letter: mine ? "A" : letter, row: r?.[side][0] ?? null, col: c?.[side][0] ?? null };
  }

  /** What A and another run read where both speak: {number: of the group of tokens, pieces}; null where one lacks the token. */
  spoken(letter) {
    const { groups } = this.data.pairs[letter].says;
    const [first, second] = ["A", letter].map((one) => this.side(one).trace);
    const speaks = first.side === first.sides.at(-1); // an encoder's rows are not those that the head reads
    const { letter: from, row } = this.cursor;
    const position = from === letter ? row : this.carry("A", this.cursor).row;
    const number = speaks ? groups.findIndex((group) => group[from === letter ? 1 : 0].includes(position)) : groups.length - 1;
    if (number < 0) return null;
    const called = (trace, positions) => trace.lanes[trace.sides.at(-1)].pieces[positions.at(-1)];
    return { number, pieces: [called(first, groups[number][0]), called(second, groups[number][1])] };
  }

  /** How a run calls the tokens under the cursor. */
  names(letter, cursor) {
    if (!this.attention(letter)) return { query: null, key: null };
    const { row, col } = this.carry(letter, cursor);
    return { query: row === null ? null : this.side(letter).trace.pieces[row], key: col === null ? null : this.keys(letter)[col] };
  }
}

/** An array of two axes as a block of cells.js. */
export function matrixOf({ data, shape }) {
  return { data, offset: 0, stride: shape[1], rows: shape[0], cols: shape[1] };
}

/** The column of a row's largest element; null where no element is a number. */
export function strongest(block, row) {
  let best = null;
  for (let col = 0; col < block.cols; col++) {
    const value = at(block, row, col);
    if (!Number.isNaN(value) && (best === null || value > at(block, row, best))) best = col;
  }
  return best;
}

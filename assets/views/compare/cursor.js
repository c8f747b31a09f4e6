// One cursor for all runs: where a place of one of them stands in the others.
import { alone } from "./merge.js";
import { Runs } from "./runs.js";
import { range } from "../core/dom.js";

/**
 * @typedef {import("./runs.js").Where} Where
 * @typedef {import("./merge.js").Merged} Merged
 * @typedef {import("./map.js").Cell} Cell
 * @typedef {import("../core/trace.js").Trace} Trace
 */

/** Reads `this.hover` and `this.state.cursor`, {letter, row, col} in the tokens of one run. */
export class Cursor extends Runs {
  /**
   * Whether the run beside A has a token for one of A's rows.
   * @param {number} row
   */
  shares(row) {
    const merged = this.pair(this.state.beside)?.queries;
    return merged !== undefined && !alone(merged.entries[/** @type {number} */ (merged.mine[row])]);
  }

  /** What the pointer is over, or what was picked: {letter, row, col} in that run's tokens. */
  get cursor() {
    return this.hover ?? this.state.cursor;
  }

  /**
   * A place of one run in the tokens of another: {letter, row, col}, null where that has no such token.
   * @param {string} letter
   * @param {Where} place
   * @returns {Where}
   */
  carry(letter, { letter: from, row, col }) {
    if (from === letter) return { letter, row, col };
    const [r, c] = [this.entry(from, "queries", row), this.entry(from, "keys", col)];
    const mine = [r?.first[0] ?? null, c?.first[0] ?? null];
    if (letter === "A") return { letter, row: mine[0], col: mine[1] };
    const [there, seen] = from === "A" ? [row, col] : mine;
    return { letter, row: this.partner(letter, "queries", there), col: this.partner(letter, "keys", seen) };
  }

  /**
   * The same with a token for each of the two: where there is no partner, that of the nearest token before, or behind, which has one.
   * @param {string} letter
   * @param {Where} cursor
   */
  nearest(letter, cursor) {
    const found = this.carry(letter, cursor);
    const most = [this.side(letter).trace.length, this.keys(letter).length];
    const axes = /** @type {const} */ (["row", "col"]);
    return /** @type {{ row: number, col: number }} */ (
      Object.fromEntries(
        axes.map((axis, i) => [
          axis,
          found[axis] ?? this.partnerNear(letter, cursor, axis) ?? Math.min(cursor[axis] ?? 0, most[i] - 1),
        ]),
      )
    );
  }

  /**
   * @param {string} letter
   * @param {Where} cursor
   * @param {"row" | "col"} axis
   * @returns {number | null}
   */
  partnerNear(letter, cursor, axis) {
    const lengths = { row: this.side(cursor.letter).trace.length, col: this.keys(cursor.letter).length };
    const here = cursor[axis] ?? 0;
    const order = [...range(0, here).reverse(), ...range(here + 1, lengths[axis])];
    for (const place of order) {
      const found = this.carry(letter, { ...cursor, [axis]: place })[axis];
      if (found !== null) return found;
    }
    return null;
  }

  /**
   * The entry of a position of a run in the order that it shares with A.
   * @param {string} from
   * @param {"queries" | "keys"} part
   * @param {number | null} position
   */
  entry(from, part, position) {
    if (from === "A" || position === null) return null;
    const merged = this.pair(from)?.[part];
    return merged?.entries[merged.theirs[position] ?? -1] ?? null;
  }

  /**
   * @param {string} letter
   * @param {"queries" | "keys"} part
   * @param {number | null} position
   */
  partner(letter, part, position) {
    const merged = this.pair(letter)?.[part];
    if (!merged || position === null) return null;
    return merged.entries[merged.mine[position] ?? -1]?.second[0] ?? null;
  }

  /**
   * A place of one run among the entries that another shares with A.
   * @param {string} letter
   * @param {Where} cursor
   * @returns {Cell}
   */
  merged(letter, cursor) {
    const pair = this.pair(letter);
    if (!pair) return { row: null, col: null };
    const own = cursor.letter === letter;
    const { row, col } = own ? cursor : this.carry("A", cursor);
    /**
     * @param {Merged} merged
     * @param {number | null} position
     */
    const find = (merged, position) =>
      position === null ? null : ((own ? merged.theirs : merged.mine)[position] ?? null);
    return { row: find(pair.queries, row), col: find(pair.keys, col) };
  }

  /**
   * Entries of a pair as a place of A, or of the other run where A lacks the token.
   * @param {string} letter
   * @param {Cell} cell
   * @returns {Where}
   */
  unmerged(letter, { row, col }) {
    const pair = /** @type {import("./runs.js").Pair} */ (this.pair(letter));
    const [r, c] = [row === null ? null : pair.queries.entries[row], col === null ? null : pair.keys.entries[col]];
    const mine = [r, c].every((entry) => entry === null || entry.first.length);
    const side = mine ? "first" : "second";
    return { letter: mine ? "A" : letter, row: r?.[side][0] ?? null, col: c?.[side][0] ?? null };
  }

  /**
   * What A and another run read where both speak: {number: of the group of tokens, pieces}; null where one lacks the token.
   * @param {string} letter
   */
  spoken(letter) {
    const { groups } = this.data.pairs[letter].says;
    const [first, second] = ["A", letter].map((one) => this.side(one).trace);
    const speaks = first.side === first.sides.at(-1); // an encoder's rows are not those that the head reads
    const { letter: from, row } = this.cursor;
    const position = from === letter ? row : this.carry("A", this.cursor).row;
    const number = speaks
      ? groups.findIndex((group) => group[from === letter ? 1 : 0].includes(position))
      : groups.length - 1;
    if (number < 0) return null;
    /**
     * @param {Trace} trace
     * @param {number[]} positions
     */
    const called = (trace, positions) =>
      trace.lanes[trace.sides[trace.sides.length - 1]].pieces[positions[positions.length - 1]];
    const rows = [groups[number][0], groups[number][1]].map((positions) => positions[positions.length - 1]); // whose predictions are compared
    return { number, rows, pieces: [called(first, groups[number][0]), called(second, groups[number][1])] };
  }

  /**
   * How a run calls the tokens under the cursor.
   * @param {string} letter
   * @param {Where} cursor
   */
  names(letter, cursor) {
    if (!this.attention(letter)) return { query: null, key: null };
    const { row, col } = this.carry(letter, cursor);
    return {
      query: row === null ? null : this.side(letter).trace.pieces[row],
      key: col === null ? null : this.keys(letter)[col],
    };
  }
}

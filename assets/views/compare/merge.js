// The tokens of two runs in one order: those that belong together as one entry, those that only one run has between them.

/**
 * @typedef {[first: number[], second: number[], same: boolean]} Group
 * @typedef {{ first: number[], second: number[], same: boolean, label: string }} Entry
 * @typedef {{ entries: Entry[], mine: (number | null)[], theirs: (number | null)[] }} Merged
 * @typedef {{ block: Block, max: number }} Pattern
 */

/**
 * `groups` are [[positions in the first], [positions in the second], same], rising in both; entries are {first, second, same, label}
 * with no position on the side that lacks the token. `mine` and `theirs` give the entry of a position.
 * @param {Group[]} groups
 * @param {string[]} firstPieces
 * @param {string[]} secondPieces
 * @param {[string, string]} letters
 * @returns {Merged}
 */
export function merge(groups, firstPieces, secondPieces, letters) {
  /** @type {Entry[]} */
  const entries = [];
  let [i, j] = [0, 0];
  /**
   * @param {number} a
   * @param {number} b
   */
  const upTo = (a, b) => {
    for (; i < a; i++)
      entries.push({ first: [i], second: [], same: false, label: `${firstPieces[i]} (${letters[0]})` });
    for (; j < b; j++)
      entries.push({ first: [], second: [j], same: false, label: `${secondPieces[j]} (${letters[1]})` });
  };
  for (const [first, second, same] of groups) {
    upTo(first[0], second[0]);
    const [a, b] = [first.map((p) => firstPieces[p]).join(""), second.map((p) => secondPieces[p]).join("")];
    entries.push({ first, second, same, label: same || a === b ? a : `${a} | ${b}` });
    [i, j] = [first[first.length - 1] + 1, second[second.length - 1] + 1];
  }
  upTo(firstPieces.length, secondPieces.length);
  return {
    entries,
    mine: places(entries, "first", firstPieces.length),
    theirs: places(entries, "second", secondPieces.length),
  };
}

/**
 * @param {Entry[]} entries
 * @param {"first" | "second"} side
 * @param {number} length
 */
function places(entries, side, length) {
  /** @type {(number | null)[]} */
  const found = new Array(length).fill(null);
  entries.forEach((entry, at) => entry[side].forEach((position) => (found[position] = at)));
  return found;
}

/**
 * Attention from group to group of a block (cells.js): summed over keys, averaged over queries; NaN where a side has no token.
 * @param {Block} block
 * @param {number} max
 * @param {number[]} queries
 * @param {number[]} keys
 */
export function between(block, max, queries, keys) {
  if (!queries.length || !keys.length) return NaN;
  let total = 0;
  for (const row of queries) for (const col of keys) total += block.data[block.offset + row * block.stride + col];
  return total / queries.length / max;
}

/**
 * The second run less the first, entry by entry, as a block; NaN where one of them lacks the token.
 * @param {Pattern} first
 * @param {Pattern} second
 * @param {Entry[]} rows
 * @param {Entry[]} cols
 */
export function subtract(first, second, rows, cols) {
  const data = new Float32Array(rows.length * cols.length);
  /** @param {Entry} entry */
  const single = (entry) => entry.first.length === 1 && entry.second.length === 1;
  const alike = cols.map(single);
  const [a, b] = [first.block, second.block];
  rows.forEach((row, r) => {
    const one = single(row);
    const [mine, theirs] = [a.offset + row.first[0] * a.stride, b.offset + row.second[0] * b.stride];
    cols.forEach((col, c) => {
      const plain = one && alike[c]; // most are, and one weight is its own sum and mean
      const before = plain ? a.data[mine + col.first[0]] / first.max : between(a, first.max, row.first, col.first);
      const after = plain
        ? b.data[theirs + col.second[0]] / second.max
        : between(b, second.max, row.second, col.second);
      data[r * cols.length + c] = after - before;
    });
  });
  return { data, offset: 0, stride: cols.length, rows: rows.length, cols: cols.length };
}

/**
 * What takes part in a difference and has no partner: true where an entry lacks a side.
 * @param {Pick<Entry, "first" | "second">} entry
 */
export function alone({ first, second }) {
  return !first.length || !second.length;
}

/**
 * What sets an entry apart on an axis: that its tokens are not the same in both runs; false of any other.
 * @param {Entry} entry
 */
export function mismatch(entry) {
  return !entry.same && !alone(entry) && "different tokens in the two runs";
}

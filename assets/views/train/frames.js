// What a frame of the probe says, read the same way whatever the model is: what stands at the rows and columns of its attention, what
// was to be said at each position, what the model says there, and what that costs.
import { range } from "../core/dom.js";

/**
 * @import { Hidden } from "../components/cells.js"
 * @import { Attention, AttentionKey, Frame, Grid } from "./run.js"
 * @import { Page } from "./train.js"
 */

/**
 * @typedef {"class" | "pixels" | "pair" | "written" | "here" | "text"} Kind of example
 * @typedef {{ id: number, loss: number, p: number }} RightAnswer
 * @typedef {{ row: number | null, right: RightAnswer | null, taught: number | null, free: number | null }} Word
 * @typedef {{ wrong: number, part: number }} Parting
 */

const UNASKED = -100; // engine/training/objectives: nobody knows what is right there
const SPECIAL = /^(<[^<>]+>|\[[A-Z]+\d*\])$/;
const AHEAD = ["next", "repeated", "completion", "infill", "sequence_to_sequence", "next_pixel"]; // these predict what comes next
export const BYTE = 255; // of a pattern, stands for 1

/**
 * How the example is shown: "class", "pixels", "pair", "written" (one stack that writes behind its source), "here" or "text".
 * @param {Pick<Page, "probe" | "task">} page
 * @param {Frame} frame
 * @returns {Kind}
 */
export function kindOf({ probe, task }, { arrays }) {
  if (arrays.p) return "class";
  if (probe?.pixels) return "pixels";
  if (arrays["target.ids"]) return "pair";
  if (arrays["free.ids"]) return "written";
  return task !== null && AHEAD.includes(task.objective) ? "text" : "here";
}

/**
 * Whether all of it looks at a picture, patch by patch or pixel by pixel.
 * @param {Pick<Page, "probe">} page
 */
export function isPicture({ probe }) {
  return Boolean(probe?.pixels);
}

/**
 * Whether a token is one of those that stand for no text.
 * @param {string} piece
 */
export function isSpecial(piece) {
  return SPECIAL.test(piece);
}

/**
 * What a token or a class is called.
 * @param {Pick<Page, "names" | "probe">} page
 * @param {number} id
 * @param {Kind} kind
 */
export function named({ names, probe }, id, kind) {
  if (kind === "class" || (kind === "here" && probe?.labels?.length)) return probe?.labels?.[id] ?? `class ${id}`;
  if (kind === "pixels") return `grey ${id}`;
  return names[id] ?? `#${id}`;
}

/**
 * {pieces, special} of what stands at the "rows" or the "columns" of an attention.
 * @param {Pick<Page, "names" | "probe">} page
 * @param {Frame} frame
 * @param {Attention} attention
 * @param {"rows" | "columns"} side
 */
export function axis(page, frame, attention, side) {
  const { arrays } = frame;
  const { probe } = page;
  const { block } = pattern(frame, attention.key, 0, 0);
  const count = side === "rows" ? block.rows : block.cols;
  if (probe?.pixels) return cells(probe.grid, count, arrays.ids ? "start" : "[CLS]");
  const reads = attention[side] === "read";
  const told = (reads ? probe?.pieces : probe?.target_pieces) ?? [];
  const ids = arrays[reads ? "ids" : "target.ids"]?.data ?? [];
  const pieces =
    told.length === count
      ? told
      : range(0, count).map((i) => (i < ids.length ? named(page, ids[i], "text") : `${i + 1}`));
  return { pieces, special: pieces.map(isSpecial) };
}

/**
 * @param {Grid} grid
 * @param {number} count
 * @param {string} start
 */
function cells({ before, side }, count, start) {
  const pieces = range(0, count).map((i) =>
    i < before
      ? before > 1
        ? `${start} ${i + 1}`
        : start
      : `${Math.floor((i - before) / side) + 1}, ${((i - before) % side) + 1}`,
  );
  return { pieces, special: pieces.map((_, i) => i < before) };
}

/**
 * Whether the frame has this attention.
 * @param {Frame} frame
 * @param {AttentionKey} key
 */
export function holds({ arrays }, key) {
  return `patterns.${key}` in arrays;
}

/**
 * {block, max}: the pattern of one head.
 * @param {Frame} frame
 * @param {AttentionKey} key
 * @param {number} layer
 * @param {number} head
 * @returns {{ block: Block, max: number }}
 */
export function pattern({ arrays }, key, layer, head) {
  const { data, shape } = arrays[`patterns.${key}`];
  const [, heads, rows, cols] = shape;
  return { block: { data, offset: (layer * heads + head) * rows * cols, stride: cols, rows, cols }, max: BYTE };
}

/** @type {WeakMap<Frame, Map<AttentionKey, Uint8Array>>} of an attention a byte a cell, 1 where any of its heads looks */
const looked = new WeakMap();

/**
 * (row, column) => whether no head of this attention looks there: before anything was learned all look at whatever they may, so that
 * such a cell is masked.
 * @param {Pick<Page, "frames" | "steps">} page
 * @param {Frame} frame
 * @param {AttentionKey} key
 * @returns {Hidden}
 */
export function masked(page, frame, key) {
  const early = page.frames.get(page.steps[0]);
  const now = looksAt(frame, key);
  const then = early && holds(early, key) ? looksAt(early, key) : null;
  const { cols } = pattern(frame, key, 0, 0).block;
  const known = then?.length === now.length ? then : now;
  return (r, c) => !now[r * cols + c] && !known[r * cols + c];
}

/**
 * @param {Frame} frame
 * @param {AttentionKey} key
 */
function looksAt(frame, key) {
  const found = looked.get(frame) ?? new Map();
  looked.set(frame, found);
  let cells = found.get(key);
  if (!cells) {
    const { data, shape } = frame.arrays[`patterns.${key}`];
    const size = shape[2] * shape[3];
    cells = new Uint8Array(size);
    for (let i = 0; i < data.length; i++) if (data[i]) cells[i % size] = 1;
    found.set(key, cells);
  }
  return cells;
}

/**
 * How many positions of the model's answer there are; 0 where it gives none.
 * @param {Frame} frame
 */
export function count({ arrays }) {
  return arrays["top.ids"]?.shape[0] ?? 0;
}

/**
 * What was right at a position of the answer: {id, loss, p}, or null where nobody knows.
 * @param {Frame} frame
 * @param {number} row
 * @returns {RightAnswer | null}
 */
export function right({ arrays }, row) {
  const id = arrays.asked?.data[row] ?? UNASKED;
  const loss = arrays.loss?.data[row] ?? NaN;
  return id === UNASKED || Number.isNaN(loss) ? null : { id, loss, p: Math.exp(-loss) };
}

/**
 * The likeliest at a position, [{id, p}], best first.
 * @param {Frame} frame
 * @param {number} row
 */
export function top({ arrays }, row) {
  const { "top.ids": ids, "top.p": p } = arrays;
  if (!ids || !p) return [];
  const [, listed] = ids.shape;
  return range(row * listed, (row + 1) * listed).map((i) => ({ id: ids.data[i], p: p.data[i] }));
}

/** @type {WeakMap<Frame, number>} the greatest loss of a frame */
const dearest = new WeakMap();

/**
 * The greatest loss of any position in all that was seen: where the ramp of losses ends, the same for every step.
 * @param {Pick<Page, "frames">} page
 */
export function most({ frames }) {
  let found = 0;
  for (const frame of frames.values()) {
    const dear = dearest.get(frame) ?? frame.arrays.loss?.data.reduce((top, loss) => (loss > top ? loss : top), 0) ?? 0;
    dearest.set(frame, dear);
    found = Math.max(found, dear);
  }
  return found;
}

/**
 * The loss of the whole example: {sum, mean, asked}.
 * @param {Frame} frame
 */
export function cost(frame) {
  const losses = range(0, count(frame))
    .map((row) => right(frame, row)?.loss)
    .filter((loss) => loss !== undefined);
  const sum = losses.reduce((total, loss) => total + loss, 0);
  return { sum, mean: sum / losses.length, asked: losses.length };
}

/**
 * The first position of the answer that somebody asks about, its last one where none is.
 * @param {Frame} frame
 */
export function first(frame) {
  const rows = range(0, count(frame));
  const found = rows.find((row) => right(frame, row));
  return found ?? rows.length - 1;
}

/**
 * The position that is looked at where nobody chose one.
 * @param {Frame} frame
 * @param {Kind} kind
 */
export function suggested(frame, kind) {
  if (kind !== "text" && kind !== "pixels")
    return Math.max(0, kind === "pair" && !right(frame, first(frame)) ? 0 : first(frame));
  const asked = range(0, count(frame)).filter((row) => right(frame, row));
  return asked.at(-1) ?? count(frame) - 1;
}

/**
 * The chosen position, inside what there is.
 * @param {Pick<Page, "state">} page
 * @param {Frame} frame
 * @param {Kind} kind
 */
export function positionOf(page, frame, kind) {
  return Math.min(page.state.position ?? suggested(frame, kind), Math.max(0, count(frame) - 1));
}

/**
 * The row of this attention that makes the answer at `position`; null where its rows are others'.
 * @param {Page} page
 * @param {Frame} frame
 * @param {Attention} attention
 * @param {number} position
 */
export function rowOf(page, frame, attention, position) {
  const { rows } = pattern(frame, attention.key, 0, 0).block;
  if (attention.key === "encoder") return null;
  return rows === count(frame) ? position : null;
}

/**
 * Word by word: {row, right: {id, loss, p} | null, taught, free}, `taught` what it says after the right words and `free` what it
 * writes by itself, null where it wrote no more. What follows the right words counts where they are `ended` by a token of
 * their own; there is room for the `longest` that it ever wrote.
 * @param {Frame} frame
 * @param {Kind} kind
 * @param {boolean} ended
 * @param {number} longest
 * @returns {Word[]}
 */
export function written(frame, kind, ended, longest) {
  const begins = kind === "pair" ? 0 : first(frame);
  const { "free.ids": own, "top.ids": likeliest } = frame.arrays;
  const known = range(begins, count(frame)).filter((row) => right(frame, row)).length;
  const length = known && !ended ? known : Math.max(count(frame) - begins, longest);
  return range(0, length).map((i) => {
    const row = begins + i < count(frame) ? begins + i : null;
    return {
      row,
      right: row === null ? null : right(frame, row),
      taught: row === null || !likeliest ? null : likeliest.data[row * likeliest.shape[1]],
      free: own?.data[i] ?? null,
    };
  });
}

/**
 * Where what it writes by itself leaves the right words: {wrong, part} as places among `words`, -1 for nowhere. `wrong` is the first
 * wrong word, after which it reads its own; `part` the first place at which the two say something different.
 * @param {Word[]} words
 * @returns {Parting}
 */
export function parting(words) {
  const known = words.filter(({ right: answer }) => answer).length;
  const wrong = words.findIndex(({ right: answer, free }, i) => answer !== null && i < known && free !== answer.id);
  const part = words.findIndex(({ taught, free, row }) => row !== null && free !== taught);
  return { wrong: known ? wrong : -1, part: known ? part : -1 };
}

// How far the residual streams of A and another run are apart, token by token and block by block. Ours because the cursor that all
// pictures of a comparison share is marked here too, and moved from here, without a message to the server.
import { at } from "../components/cells.js";
import { map } from "./map.js";
import { alone } from "./merge.js";
import { make, range } from "../core/dom.js";
import { counted, number } from "../core/format.js";
import { legend } from "../components/legend.js";

/**
 * @typedef {import("./compare.js").Shell} Shell
 * @typedef {import("./runs.js").Pair} Pair
 * @typedef {import("./source.js").Distances} Distances
 * @typedef {import("./merge.js").Entry} Entry
 * @typedef {import("./map.js").Cell} Cell
 */

const CELL = { least: 3, most: 24, low: 7 }; // CSS pixels
const TALL = 400; // that the tokens take together, where that leaves them legible
const MOST = 128; // rows of a long text: more tokens share one

/**
 * @param {HTMLElement} root
 * @param {Shell} shell
 */
export function mount(root, shell) {
  const title = make("h3", "", "Residual stream");
  const about = make("p", "about");
  const box = make("div");
  const colours = make("div");
  root.append(title, about, box, colours);
  let drawn = "";
  /**
   * `at` gives the entry of a cell, `per` is how many entries are in a row.
   * @type {{ block: Block, cosine: Block, entries: Entry[], at: (row: number, col: number) => number, per: number } | null}
   */
  let shown = null;
  /** @type {import("./map.js").Heard} */
  const heard = (event, where) => {
    if (event === "step") return;
    const entry = shown && where && where.row !== null ? shown.at(where.row, where.col ?? 0) : null;
    if (event === "pick" && entry !== null) {
      const { letter, row } = shell.unmerged(shell.state.beside, { row: entry, col: null });
      shell.go({ cursor: { ...shell.state.cursor, letter, row: row ?? 0 } });
    }
    if (event !== "hover") return;
    const { row, col } = where ?? { row: null, col: null };
    shell.point(where && { ...shell.unmerged(shell.state.beside, { row: entry, col: null }), col: null });
    if (!shown || entry === null || row === null || col === null) return shell.tip(null);
    const value = at(shown.block, row, col);
    const called =
      shown.per === 1
        ? shown.entries[entry].label
        : `${shown.entries[entry].label}, the largest of ${counted(shown.per, "token")} from row ${row * shown.per}`;
    if (Number.isNaN(value))
      return shell.tip(called, alone(shown.entries[entry]) ? "no partner" : "several tokens on one side");
    shell.tip(called, `${number(value)} of |A|, cosine ${number(at(shown.cosine, entry, col))}`);
  };
  const one = map(box, heard, [
    ["block →", ""],
    ["token ↓", "role-query"],
  ]);

  const view = {
    update() {
      const { beside, attention } = shell.state;
      const found = shell.source.distances(beside);
      const key = [shell.edition, beside, attention, Boolean(found)].join();
      if (key === drawn) return view.mark(); // it is the same for every head
      drawn = key;
      const pair = shell.pair(beside);
      const entries = pair?.queries.entries ?? [];
      const able = Boolean(found) && entries.some((entry) => !alone(entry));
      box.hidden = colours.hidden = !able;
      const apart = shell.related(beside)
        ? ""
        : " Models that were trained apart share no directions: they are far apart even where they do the same.";
      about.textContent = able
        ? `|${beside} − A| / |A| of what enters block 1 (0), then of what leaves each block.${shell.source.tiled ? ` A row is ${Math.ceil(entries.length / MOST)} tokens, and shows the largest.` : ""}${apart}`
        : found === null && !pair?.streams
          ? "On its way …"
          : missing(pair, beside);
      if (!able) return void (shown = null);
      const whole = spread(found, entries);
      const per = shell.source.tiled ? Math.ceil(entries.length / MOST) : 1;
      shown = { ...together(whole.block, per), cosine: whole.cosine, entries, per };
      const { block } = shown;
      let max = 0;
      for (const x of block.data) if (x > max) max = x;
      /**
       * @param {number} r
       * @param {number} c
       */
      const none = (r, c) => Number.isNaN(at(block, r, c));
      const blank = { rows: range(0, block.rows).map((r) => none(r, 0)), cols: range(0, block.cols).map(() => false) };
      const rows = range(0, block.rows).map((row) => ({
        label: per > 1 ? `${row * per} ${entries[row * per].label}` : entries[row].label,
        special: false,
      }));
      const cols = range(0, block.cols).map((layer) => ({ label: String(layer), special: false }));
      /** @type {import("./map.js").Mapped} */
      const data = {
        rows,
        cols,
        block,
        role: "residual",
        scale: "unit",
        max: max || 1,
        hidden: none,
        blank,
        width: root.clientWidth,
        written: null,
        label: "distance of the residual streams, tokens by blocks",
      };
      const wide = Math.max(CELL.least, Math.min(CELL.most, Math.floor(10 * one.room(data)) / 10));
      one.update(data, wide, Math.max(CELL.low, Math.min(wide, TALL / block.rows)));
      const { element } = legend(shell.element, { role: "residual", scale: "unit", width: 72 });
      element.querySelector(".legend-text").textContent = `0 to ${number(max)} of |A|`;
      colours.replaceChildren(element);
      view.mark();
    },
    mark() {
      const row = shown && shell.merged(shell.state.beside, shell.cursor).row;
      if (shown) one.mark(row === null ? null : Math.floor(row / shown.per), null, false);
    },
    destroy: () => root.replaceChildren(),
  };
  return view;
}

/**
 * The distances and cosines, entry by entry down and block by block across; NaN where one run lacks the token.
 * @param {Distances} found
 * @param {Entry[]} entries
 */
function spread(found, entries) {
  const cols = found.relative.shape[0];
  const groups = entries.flatMap((entry, row) => (alone(entry) ? [] : [row])); // in the server's order
  /** @param {keyof Distances} name */
  const block = (name) => {
    const { data, shape } = found[name];
    const values = new Float32Array(entries.length * cols).fill(NaN);
    groups.forEach((row, group) =>
      range(0, cols).forEach((layer) => (values[row * cols + layer] = data[layer * shape[1] + group])),
    );
    return { data: values, offset: 0, stride: cols, rows: entries.length, cols };
  };
  return { block: block("relative"), cosine: block("cosine") };
}

/**
 * A block of which `per` rows share one, which shows the largest of them: {block, at(row, col): the row that it is of}.
 * @param {Block} whole
 * @param {number} per
 * @returns {{ block: Block, at: (row: number, col: number) => number }}
 */
function together(whole, per) {
  if (per === 1) return { block: whole, at: (row) => row };
  const [rows, { cols }] = [Math.ceil(whole.rows / per), whole];
  const block = { data: new Float32Array(rows * cols).fill(NaN), offset: 0, stride: cols, rows, cols };
  const of = new Int32Array(rows * cols);
  for (let row = 0; row < whole.rows; row++) {
    for (let col = 0; col < cols; col++) {
      const n = Math.floor(row / per) * cols + col;
      const value = at(whole, row, col);
      if (row % per === 0) of[n] = row;
      if (value > block.data[n] || (Number.isNaN(block.data[n]) && !Number.isNaN(value)))
        [block.data[n], of[n]] = [value, row];
    }
  }
  return { block, at: (row, col) => of[row * cols + col] };
}

/**
 * @param {Pair | null | undefined} pair
 * @param {string} beside
 */
function missing(pair, beside) {
  if (pair?.streams) return sentence(pair.streams);
  return pair?.first.focus === "cross_attn"
    ? "The decoder’s residual stream is shown with its self-attention."
    : `A and ${beside} have no tokens that belong together.`;
}

/** @param {string} text */
function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

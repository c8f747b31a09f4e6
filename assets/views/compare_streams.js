// How far the residual streams of A and another run are apart, token by token and block by block.
import { at } from "./cells.js";
import { map } from "./compare_map.js";
import { alone } from "./compare_merge.js";
import { make, range } from "./dom.js";
import { number } from "./format.js";
import { legend } from "./legend.js";

const CELL = { least: 3, most: 24, low: 7 }; // CSS pixels
const TALL = 400; // that the tokens take together, where that leaves them legible

export function mount(root, lab) {
  const title = make("h3", "", "Residual stream");
  const about = make("p", "about");
  const box = make("div");
  const colours = make("div");
  root.append(title, about, box, colours);
  let drawn = "";
  let shown = null; // {block, cosine, entries}
  const heard = (event, where) => {
    if (event === "step") return;
    if (event === "pick" && where.row !== null) lab.go({ cursor: { ...lab.state.cursor, ...lab.unmerged(lab.state.beside, { row: where.row, col: null }), col: lab.state.cursor.col } });
    if (event !== "hover") return;
    const { row, col } = where ?? { row: null, col: null };
    lab.point(where && { ...lab.unmerged(lab.state.beside, { row, col: null }), col: null });
    if (row === null || col === null) return lab.tip(null);
    const value = at(shown.block, row, col);
    if (Number.isNaN(value)) return lab.tip(shown.entries[row].label, alone(shown.entries[row]) ? "no partner" : "several tokens on one side");
    lab.tip(shown.entries[row].label, `${number(value)} of |A|, cosine ${number(at(shown.cosine, row, col))}`);
  };
  const one = map(box, heard, [["block →", ""], ["token ↓", "role-query"]]);

  const view = {
    update() {
      const { beside, attention } = lab.state;
      const key = [lab.edition, beside, attention].join();
      if (key === drawn) return view.mark(); // it is the same for every head
      drawn = key;
      const pair = lab.pair(beside);
      const relative = lab.data.arrays[`${beside}:${attention}.relative`];
      const entries = pair?.queries.entries ?? [];
      const able = Boolean(relative) && entries.some((entry) => !alone(entry));
      box.hidden = colours.hidden = !able;
      const apart = lab.related(beside) ? "" : " Models that were trained apart share no directions: they are far apart even where they do the same.";
      about.textContent = able ? `|${beside} − A| / |A| of what enters block 1 (0), then of what leaves each block.${apart}` : missing(pair, beside);
      if (!able) return void (shown = null);
      shown = { ...spread(lab, entries, pair), entries };
      const { block } = shown;
      let max = 0;
      for (const x of block.data) if (x > max) max = x;
      const none = (r, c) => Number.isNaN(at(block, r, c));
      const blank = { rows: range(0, block.rows).map((r) => none(r, 0)), cols: range(0, block.cols).map(() => false) };
      const rows = entries.map((entry) => ({ label: entry.label, special: false }));
      const cols = range(0, block.cols).map((layer) => ({ label: String(layer), special: false }));
      const data = { rows, cols, block, role: "residual", scale: "unit", max: max || 1, hidden: none, blank, edition: `${lab.edition} ${beside} ${attention}`, width: root.clientWidth, written: null, label: "distance of the residual streams, tokens by blocks" };
      const wide = Math.max(CELL.least, Math.min(CELL.most, Math.floor(10 * one.room(data)) / 10));
      one.update(data, wide, Math.max(CELL.low, Math.min(wide, TALL / block.rows)));
      const { element } = legend(lab.element, { role: "residual", scale: "unit", width: 72 });
      element.querySelector(".legend-text").textContent = `0 to ${number(max)} of |A|`;
      colours.replaceChildren(element);
      view.mark();
    },
    mark() {
      if (shown) one.mark(lab.merged(lab.state.beside, lab.cursor).row, null, false);
    },
    destroy: () => root.replaceChildren(),
  };
  return view;
}

/** The distances and cosines, entry by entry down and block by block across; NaN where one run lacks the token. */
function spread(lab, entries, pair) {
  const { beside, attention } = lab.state;
  const cols = lab.data.arrays[`${beside}:${attention}.relative`].shape[0];
  const groups = entries.flatMap((entry, row) => (alone(entry) ? [] : [row])); // in the server's order
  const block = (name) => {
    const { data, shape } = lab.data.arrays[`${beside}:${pair.key}.${name}`];
    const found = new Float32Array(entries.length * cols).fill(NaN);
    groups.forEach((row, group) => range(0, cols).forEach((layer) => (found[row * cols + layer] = data[layer * shape[1] + group])));
    return { data: found, offset: 0, stride: cols, rows: entries.length, cols };
  };
  return { block: block("relative"), cosine: block("cosine") };
}

function missing(pair, beside) {
  if (pair?.streams) return sentence(pair.streams);
  return pair?.first.focus === "cross_attn" ? "The decoder’s residual stream is shown with its self-attention." : `A and ${beside} have no tokens that belong together.`;
}

function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

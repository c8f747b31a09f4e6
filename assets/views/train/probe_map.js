// One head at one step, large: a row for each position that looks, a column for each that is looked at.
import { at } from "../components/cells.js";
import { map } from "../compare/map.js";
import { make } from "../core/dom.js";
import { percent } from "../core/format.js";
import { shares } from "./probe_shares.js";
import { axis, isPicture, masked, pattern } from "./seen.js";
import { legend } from "../components/legend.js";

const CELL = { least: 3, most: 34 }; // CSS pixels

/** What a map of one head shows: {rows, cols, block, max, hidden, edition}, for `draw`. */
export function headOf(lab, frame, attention) {
  const { layer, head } = lab.state;
  const [rows, cols] = [axis(lab, frame, attention, "rows"), axis(lab, frame, attention, "columns")];
  const listed = ({ pieces, special }) => pieces.map((label, i) => ({ label, special: special[i] }));
  return {
    ...pattern(frame, attention.key, layer, head),
    rows: listed(rows), cols: listed(cols),
    hidden: masked(lab, frame, attention.key),
    edition: JSON.stringify([lab.edition, attention.key, rows.pieces, cols.pieces]),
  };
}

/** {element, update(shown, width, row)}: `shown` of `headOf`, with `role` and `scale` where it is no pattern; `row` is the chosen one.
 * `pick(row)` is called for a row that is chosen. `say(r, c)` is what stands in a cell, in words. */
export function headMap(lab, pick) {
  const element = make("div", "probe-map");
  let [shown, chosen, over] = [null, null, null];
  const heard = (event, where) => {
    if (event === "pick") return where.row !== null && pick(where.row);
    if (event === "step") return chosen !== null && where.row && pick(Math.max(0, Math.min(shown.rows.length - 1, chosen + where.row)));
    over = where;
    mark();
    if (!where || where.row === null || where.col === null) return lab.tip(null);
    lab.tip(`${shown.rows[where.row].label} → ${shown.cols[where.col].label}`, shown.say(where.row, where.col));
  };
  const drawn = map(element, heard);
  const colours = make("div");
  element.append(colours);
  let legended = "";

  const mark = () => drawn.mark(over ? over.row : chosen, over ? over.col : null, Boolean(over));
  const update = (next, width, row) => {
    shown = { say: (r, c) => spoken(next, r, c), ...next };
    chosen = row;
    const { scale = "unit", role = "attention", max, edition } = next;
    const data = { ...next, scale, role, width, label: next.label ?? labelOf(lab, next), written: null };
    const wide = Math.max(CELL.least, Math.min(CELL.most, Math.floor(10 * drawn.room(data)) / 10));
    drawn.update(data, wide);
    shares(element.querySelector("canvas"), element, { ...data, wide }, scale === "unit" ? max : 1);
    mark();
    if (legended !== [edition, scale].join()) {
      legended = [edition, scale].join();
      colours.replaceChildren(legend(lab.element, { role, scale, width: 72 }).element);
    }
    const text = colours.querySelector(".legend-text");
    const said = scale === "unit" ? "0 to 100\u00a0% of the row" : `±${percent(max)}`;
    if (text.textContent !== said) text.textContent = said;
  };
  return { element, update };
}

/** How wide a map would be whose cells are as large as they may be. */
export function widest(shown) {
  return shown.cols.length * CELL.most + 84;
}

/** A byte stands for a weight to within 1 in 510. */
function spoken({ block, hidden }, r, c) {
  return hidden?.(r, c) ? "masked" : `≈ ${((100 * at(block, r, c)) / 255).toFixed(0)}\u00a0%`;
}

function labelOf(lab, { rows, cols }) {
  const { layer, head } = lab.state;
  const what = isPicture(lab) ? "places of the picture" : "tokens";
  return `block ${layer + 1} head ${head + 1}: ${rows.length} by ${cols.length} ${what}`;
}

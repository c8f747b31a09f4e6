// One head averaged over many texts, as a small map: positions down and across, and how many texts stand behind each row.
import { endOf } from "./colours.js";
import { at, mountCells } from "../components/cells.js";
import { make, range } from "../core/dom.js";
import { percent } from "../core/format.js";
import { legend } from "../components/legend.js";

const CELL = { least: 6, most: 15 }; // CSS pixels
const WIDEST = 470; // of the map
const BESIDE = 110; // what stands beside the cells
const LABEL = 13; // CSS pixels that a label needs

/** data = {pattern, count} of the server's answer; `show` draws them. */
export function mountAverage(root, page) {
  root.classList.add("average");
  let answer = null;
  const draw = (next) => {
    answer = next;
    const [rows, cols] = answer.pattern.shape;
    const block = { data: answer.pattern.data, offset: 0, stride: cols, rows, cols };
    const pitch = Math.floor(Math.max(CELL.least, Math.min(CELL.most, Math.min(WIDEST, page.width - BESIDE) / cols)));
    const every = Math.ceil(LABEL / pitch);
    const cells = make("div");
    const top = endOf(page, "averaged", Math.max(0.1, ...answer.pattern.data.filter((weight) => weight <= 1)));
    const data = { block, role: "attention", scale: "unit", max: top, width: pitch * cols, pitch, height: pitch - 1, label: `attention from ${rows} positions to ${cols}, averaged` };
    root.replaceChildren(cells); // where the colours are
    mountCells(cells, data, (event, where) => event === "hover" && said(block, where));
    const numbers = (name, text, role) => {
      const column = make("div", `numbers ${role}`);
      for (const row of range(0, rows)) column.append(make("span", "", row % every ? "" : text(row)));
      column.style.setProperty("--pitch", `${pitch}px`);
      const whole = make("div", "numbered");
      whole.append(make("small", "", name), column);
      return whole;
    };
    const middle = make("div", "numbered");
    const key = legend(root, { role: "attention", scale: "unit", width: 120 }).element;
    key.lastChild.textContent = `0 to ${percent(top)}`;
    middle.append(make("small", "", `to position 1 … ${cols}`), cells, key);
    root.replaceChildren(numbers("from", (row) => row + 1, "as-query"), middle, numbers(page.trace.grid ? "pictures" : "texts", (row) => answer.count.data[row].toLocaleString("en"), "counts"));
  };
  const said = (block, where) => {
    if (!where) return page.tip(null);
    const texts = answer.count.data[where.row].toLocaleString("en");
    page.tip(`position ${where.row + 1} → position ${where.col + 1}, mean of ${texts} ${page.trace.grid ? "pictures" : "texts"}`, percent(at(block, where.row, where.col)));
  };
  return { show: draw };
}

export const AVERAGE = `
.average { display: flex; gap: 10px; overflow-x: auto; }
.average .numbered small { display: block; height: 20px; color: var(--soft); font-size: 12px; white-space: nowrap; }
.average .legend { margin-top: 10px; }
.average .numbers span { display: block; height: var(--pitch); font: 11px/var(--pitch) var(--mono); text-align: right; color: var(--soft); }
`;

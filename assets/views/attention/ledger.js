// One row of attention in numbers: its largest keys side by side, from the raw product down to the weight and the stored one.
import { editedCells } from "./edited.js";
import { largest, plain, softmaxRow } from "./row.js";
import { at } from "../components/cells.js";
import { make } from "../core/dom.js";
import { difference, number, percent } from "../core/format.js";

const MOST = 12; // keys
const NAMES = 104; // CSS pixels of the names of the lines
const COLUMN = 63; // and of a key

/** Writes the row of `page` in `root`; `list` are the steps of attention_panels.js, `pick(key)` hears which key was clicked. */
export function write(root, page, list, pick) {
  const { trace, state } = page;
  const block = page.hook("");
  const row = softmaxRow(trace, block, state.query, state.head);
  const stored = trace.row(page.hook("pattern"), state.query, state.head);
  const fits = Math.max(2, Math.min(MOST, stored.length, Math.floor((page.width - NAMES) / COLUMN)));
  const keys = largest(row.weights, fits, state.key);
  root.replaceChildren(title(page), table(page, list, row, stored, keys, pick), sum(page, row, stored, keys));
  return { keys, row, stored };
}

function title(page) {
  const element = make("h3", "ledger-title");
  element.append("The row of ", make("bdi", "role-query", page.trace.pieces[page.state.query]), " in numbers");
  return element;
}

function table(page, list, row, stored, keys, pick) {
  const element = make("table", "ledger");
  const { query, key } = page.state;
  const line = (name, cells, kind = "") => {
    const tr = make("tr", kind);
    const heading = make("th", "", name);
    heading.scope = "row";
    tr.append(heading, ...cells.map((text, i) => make("td", keys[i] === key ? "chosen" : "", text)));
    return tr;
  };
  const of = (id) => keys.map((col) => brief(at(list.find((panel) => panel.id === id).block, query, col)));
  const shown = list.filter(({ id }) => id !== "pattern" && id !== "weighted");
  const weighted = list.find(({ id }) => id === "weighted");
  const over = row.temperature === 1 ? "" : `/ ${plain(row.temperature)}`;
  const put = replaced(page, keys);
  element.append(
    heads(page, keys, pick),
    ...shown.map(({ id, title: name, formula }) => line({ raw: "raw q·k", scores: `score ${formula.replace("q·k", "").replace(", not scaled", "")}` }[id] ?? name, of(id))),
    ...(over ? [line(`${over} (temperature)`, keys.map((col) => brief(row.masked[col])))] : []),
    line("e^(s − max)", keys.map((col) => brief(row.exponentials[col])), "ruled"),
    line("/ Σ = p", keys.map((col) => (row.total ? percent(row.weights[col]) : "0\u00a0%")), "strong"),
    line(put ? "edited p" : "stored p", keys.map((col) => percent(stored[col])), put ? "edited" : ""),
    line("difference", keys.map((col) => difference(row.weights[col] - stored[col])), "soft"),
    ...(weighted?.block ? [line("|p · v W_O|", of("weighted"), "value")] : []),
  );
  return element;
}

/** Whether an edit put one of these weights there, and not the softmax. */
function replaced(page, keys) {
  const { layer, head, query } = page.state;
  const [all, before] = ["pattern", "masked_scores"].map((stage) => editedCells(page, layer, head, stage));
  return Boolean(all) && keys.some((col) => at(all, query, col) && !(before && at(before, query, col)));
}

function heads(page, keys, pick) {
  const tr = make("tr");
  const cells = keys.map((col) => {
    const cell = make("th");
    const button = make("button", col === page.state.key ? "ledger-key chosen" : "ledger-key");
    button.append(make("bdi", "", page.keys[col]));
    button.title = page.keys[col];
    button.setAttribute("aria-label", `key “${page.keys[col]}”, position ${col}`);
    button.addEventListener("click", () => pick(col));
    cell.append(button);
    return cell;
  });
  tr.append(make("th", "", "key"), ...cells);
  return tr;
}

function sum(page, row, stored, keys) {
  const element = make("p", "ledger-sum");
  if (!row.total) {
    element.textContent = "No key is allowed in this row: its weights are all 0, and what the head hands on is 0.";
    return element;
  }
  const count = stored.length + (page.trace.outside?.(page.state.query).count ?? 0);
  const rest = count - keys.length;
  const held = 1 - keys.reduce((total, col) => total + row.weights[col], 0);
  const others = rest ? ` The other ${rest.toLocaleString("en")} ${rest === 1 ? "key holds" : "keys hold"} ${percent(Math.max(0, held))}.` : "";
  element.textContent = `max = ${number(row.top)}; Σ over ${count.toLocaleString("en")} ${count === 1 ? "key" : "keys"} of e^(s − max) = ${number(row.total)}.${others}`;
  return element;
}


/** A number with four significant digits, so that twelve stand side by side. */
function brief(x) {
  if (!Number.isFinite(x) || x === 0) return number(x);
  const size = Math.abs(x);
  const text = size < 0.00095 || size >= 99999.5 ? x.toExponential(2) : size >= 999.5 ? x.toFixed(0) : x.toPrecision(4);
  return text.replace("e+", "e").replaceAll("-", "−");
}

// How the table of runs is sorted: its headings, and a choice where there is no room for headings.
import { make } from "../core/dom.js";
import { COLUMNS } from "./runs_columns.js";

const CELLS = [["name", "task"], ["state", "step"], ["loss"], ["held"], ["accuracy"], ["parameters"], ["seconds"], ["size"], ["created"]];

/** {element, show(order)}: `pick(order)` is called with a column's key, with a minus for the other way round. */
export function headings(pick) {
  const element = make("div", "runs-row runs-headings");
  element.setAttribute("role", "row");
  const buttons = new Map();
  let present = "";
  element.append(cell("overlay", "runs-tick"));
  for (const keys of CELLS) {
    const columns = keys.map((key) => COLUMNS.find((column) => column.key === key));
    const place = cell("", columns[0].number ? "number" : "");
    for (const { key, title, help } of columns) {
      const button = make("button", "runs-sort", title);
      button.type = "button";
      button.title = help ? `${title}: ${help}; sort by it` : `sort by ${title}`;
      button.addEventListener("click", () => pick(present === key ? `-${key}` : key));
      buttons.set(key, { button, place });
      place.append(button);
    }
    element.append(place);
  }
  element.append(cell("", ""));
  const show = (order) => {
    present = order;
    const [key, back] = [order.replace("-", ""), order.startsWith("-")];
    for (const { button, place } of buttons.values()) {
      button.removeAttribute("data-sorted");
      place.removeAttribute("aria-sort");
    }
    const { button, place } = buttons.get(key);
    const up = Boolean(COLUMNS.find((column) => column.key === key).down) === back;
    button.dataset.sorted = up ? "▲" : "▼";
    place.setAttribute("aria-sort", up ? "ascending" : "descending");
  };
  return { element, show };
}

function cell(text, className) {
  const element = make("span", `runs-cell ${className}`);
  element.setAttribute("role", "columnheader");
  if (text) element.append(make("span", "runs-only-heard", text));
  return element;
}

/** The same as a select. */
export function sorter(pick) {
  const element = make("label", "runs-sorter", "sorted by ");
  const select = make("select");
  for (const { key, title } of COLUMNS) select.append(new Option(title, key));
  select.addEventListener("change", () => pick(select.value));
  element.append(select);
  return { element, show: (order) => (select.value = order.replace("-", "")) };
}

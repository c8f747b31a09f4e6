// A distribution as bars: the likeliest tokens and their probabilities, those that a cut removed struck out.
import { make } from "../core/dom.js";
import { number, percent } from "../core/format.js";

/**
 * @typedef {"softmax" | "logistic" | "identity"} Link
 * @typedef {{ piece: string, id: number, logit: number, scaled: number, share: number, inTopK: boolean, inTopP: boolean,
 *   probability: number }} Row
 * @typedef {{ rows: Row[], open?: boolean, link: Link, chosen?: number | null, idName: string }} Bars
 */

/**
 * data = {rows: [{piece, id, logit, scaled, share, inTopK, inTopP, probability}], open, link, chosen, idName}; emits "pick" {index}.
 * Open, every stage from logit to probability stands in its own column. Under the link "logistic" a bar is a share of 1,
 * under "identity" the one row is a number and no probability.
 * @param {HTMLElement} root
 * @param {Bars} data
 * @param {(event: "pick", where: { index: number }) => unknown} emit
 */
export function mount(root, data, emit) {
  root.classList.add("bars");
  root.addEventListener("click", (event) => {
    const row = /** @type {Element} */ (event.target).closest(".bar-row");
    if (row instanceof HTMLElement) emit("pick", { index: Number(row.dataset.index) });
  });
  const view = {
    /** @param {Bars} next */
    update(next) {
      const most = next.link === "logistic" ? 1 : Math.max(...next.rows.map((row) => row.probability), 1e-9);
      const { activeElement } = /** @type {ShadowRoot | Document} */ (root.getRootNode());
      const focused = activeElement instanceof HTMLElement ? activeElement.dataset.index : undefined;
      const rows = next.rows.map((row, index) => barRow(row, index, most, next));
      root.replaceChildren(...(next.open ? [heading(next.link), ...rows] : rows));
      root.classList.toggle("open", Boolean(next.open));
      if (focused === undefined) return;
      const again = /** @type {HTMLElement | null} */ (root.querySelector(`[data-index="${focused}"]`));
      again?.focus({ preventScroll: true });
    },
    destroy: () => root.replaceChildren(),
  };
  view.update(data);
  return view;
}

/** @type {Record<Link, string[]>} */
const COLUMNS = {
  softmax: ["logit", "÷ temp.", "softmax", "top-k", "top-p"],
  logistic: ["logit", "÷ temp."],
  identity: [],
};

/** @param {Link} link */
function heading(link) {
  const row = make("div", "bar-row heading", "");
  const last = make("span", "share", link === "identity" ? "logit" : "probability");
  row.append(make("span", "piece", ""), ...COLUMNS[link].map((name) => make("span", "stage", name)), last);
  return row;
}

/**
 * @param {Row} row
 * @param {number} index
 * @param {number} most
 * @param {Bars} of
 */
function barRow(row, index, most, { open, link, chosen, idName }) {
  const button = make("button", "bar-row");
  const value = link === "identity" ? number(row.logit) : percent(row.probability);
  button.dataset.index = index;
  button.setAttribute("aria-description", "show the arithmetic");
  button.classList.toggle("cut", !row.inTopP);
  button.classList.toggle("picked", index === chosen);
  const name = make("bdi", "piece", row.piece);
  name.title = `${row.piece} (${idName} ${row.id})`;
  button.append(name);
  if (open) {
    /** @param {boolean} is */
    const kept = (is) => (is ? "kept" : "cut");
    const cells = [
      number(row.logit),
      number(row.scaled),
      percent(row.share),
      kept(row.inTopK),
      row.inTopK ? kept(row.inTopP) : "",
    ];
    button.append(...cells.slice(0, COLUMNS[link].length).map((cell) => make("span", "stage", cell)));
  }
  const track = make("span", "track", "");
  const bar = make("span", "bar", "");
  bar.style.width = `${(100 * row.probability) / most}%`;
  bar.hidden = row.probability === 0 || link === "identity";
  track.append(bar);
  button.append(track, make("span", "share", value));
  return button;
}

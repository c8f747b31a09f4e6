// A distribution as bars: the likeliest tokens and their probabilities, those that a cut removed struck out.
import { make } from "./dom.js";
import { number, percent } from "./format.js";

/**
 * data = {rows: [{piece, id, logit, scaled, share, inTopK, inTopP, probability}], open, chosen}; emits "pick" {index}.
 * Open, every stage from logit to probability stands in its own column.
 */
export function mount(root, data, emit) {
  root.classList.add("bars");
  root.addEventListener("click", (event) => {
    const row = event.target.closest(".bar-row");
    if (row) emit("pick", { index: Number(row.dataset.index) });
  });
  const view = {
    update(next) {
      const most = Math.max(...next.rows.map((row) => row.probability), 1e-9);
      const focused = root.getRootNode().activeElement?.dataset?.index;
      const rows = next.rows.map((row, index) => barRow(row, index, most, next));
      root.replaceChildren(...(next.open ? [heading(), ...rows] : rows));
      root.classList.toggle("open", Boolean(next.open));
      if (focused !== undefined) root.querySelector(`[data-index="${focused}"]`)?.focus({ preventScroll: true });
    },
    destroy: () => root.replaceChildren(),
  };
  view.update(data);
  return view;
}

const COLUMNS = ["logit", "÷ temp.", "softmax", "top-k", "top-p"];

function heading() {
  const row = make("div", "bar-row heading", "");
  row.append(make("span", "piece", ""), ...COLUMNS.map((name) => make("span", "stage", name)), make("span", "share", "probability"));
  return row;
}

function barRow(row, index, most, { open, chosen }) {
  const button = make("button", "bar-row");
  button.dataset.index = index;
  button.setAttribute("aria-label", `${row.piece}, ${percent(row.probability)}, show the arithmetic`);
  button.classList.toggle("cut", !row.inTopP);
  button.classList.toggle("picked", index === chosen);
  const name = make("bdi", "piece", row.piece);
  name.title = `${row.piece} (id ${row.id})`;
  button.append(name);
  if (open) {
    const kept = (is) => (is ? "kept" : "cut");
    const cells = [number(row.logit), number(row.scaled), percent(row.share), kept(row.inTopK), row.inTopK ? kept(row.inTopP) : ""];
    button.append(...cells.map((cell) => make("span", "stage", cell)));
  }
  const track = make("span", "track", "");
  const bar = make("span", "bar", "");
  bar.style.width = `${(100 * row.probability) / most}%`;
  bar.hidden = row.probability === 0;
  track.append(bar);
  button.append(track, make("span", "share", percent(row.probability)));
  return button;
}

// The axes of a long map: places at round steps while tokens are too narrow to be named, then every token.
import { make } from "../core/dom.js";

const LINE = 15; // CSS pixels between two names at the left
const NAMED = 13; // the width of a column from which on every one has its name on top
const NUMBER = 44; // between two numbers on top

/** {left, top, show(window, page)}: `window` is what attention_long_map.js shows, {top, left, down, across, wide, tall, lit: {row, col}}. */
export function axes(page) {
  const [left, top] = [make("div", "long-left"), make("div", "long-top")];
  const pick = (name) => (event) => {
    const found = event.target.closest("[data-i]");
    if (found) page.go({ [name]: Number(found.dataset.i) });
  };
  left.addEventListener("click", pick("query"));
  top.addEventListener("click", pick("key"));
  const show = (window) => {
    left.replaceChildren(...rows(window, page.trace));
    top.replaceChildren(...columns(window, page.keys, page.specialKeys));
  };
  return { left, top, show };
}

function rows({ top, down, tall, lit }, { pieces, special }) {
  const y = (i) => Math.max(0, Math.min(down * tall - LINE, (i + 0.5 - top) * tall - LINE / 2));
  const ticks = marks(top, down, round(LINE / tall), lit.row);
  const apart = (i, n) => i === lit.row || ![lit.row, ticks[n - 1]].some((other) => ticks.includes(other) && Math.abs(y(i) - y(other)) < LINE - 2);
  return ticks.filter(apart).map((i) => {
    const label = make("span", i === lit.row ? "lit" : "");
    label.dataset.i = i;
    label.append(make("span", "place", i), piece(pieces[i], special[i]));
    label.style.top = `${y(i)}px`;
    return label;
  });
}

function columns({ left, across, wide, lit }, pieces, special) {
  const named = wide >= NAMED;
  const ticks = marks(left, across, named ? 1 : round(NUMBER / wide), lit.col);
  return ticks.map((i) => {
    const x = (i + 0.5 - left) * wide;
    const label = named || i === lit.col ? piece(pieces[i], special[i]) : make("span", "place", i);
    if (i === lit.col) label.classList.add("lit");
    label.dataset.i = i;
    const end = across * wide;
    if (named) label.style.transform = `translateX(${x + 4}px) rotate(-55deg)`;
    else label.style.transform = `translateX(${x}px) translateX(${x < 20 ? 0 : x > end - 24 ? -100 : -50}%)`;
    return label;
  });
}

function piece(text, special) {
  const element = make("bdi", special ? "special" : "", text);
  element.title = special ? `${text}: a special token` : text;
  return element;
}

/** The places that are named: every `step`th that is in view, and the lit one with room around it. */
function marks(from, count, step, lit) {
  const first = Math.ceil((from - 0.5) / step) * step;
  const found = [];
  for (let i = Math.max(0, first); i + 0.5 <= from + count; i += step) found.push(i);
  const seen = lit !== null && lit + 0.5 >= from && lit + 0.5 <= from + count;
  return seen ? [...found.filter((i) => i !== lit && Math.abs(i - lit) >= (step > 1 ? 0.7 * step : 1)), lit] : found;
}

/** The smallest of 1, 2, 5, 10, 20, ... that is at least `least`. */
function round(least) {
  let step = 1;
  while (step < least) {
    const lead = step / 10 ** Math.floor(Math.log10(step));
    step *= lead === 2 ? 2.5 : 2;
  }
  return step;
}

// Before and after beside each other: the candidates of one position with their probabilities, and the loss of every position.
import { make, range } from "../core/dom.js";
import { percent } from "../core/format.js";
import { asked, write } from "./probe_next.js";
import { cost, count, named, right, top } from "./seen.js";

const LISTED = 7; // candidates
const BLANK = { name: "", blank: true, bars: [0, 0], texts: ["", "", ""] }; // keeps the room of one

/** {element, update(before, after, kind, position, attention)}: two frames of the same example. */
export function candidates(lab) {
  const { element, title, list } = panel(["", "", "before", "after", "change"]);
  const show = rows(list, "div");
  const update = (before, after, kind, position, attention) => {
    element.hidden = !count(after);
    if (element.hidden) return;
    write(title, asked(lab, after, kind, position, attention));
    const found = paired(before, after, kind, position);
    const answer = right(after, position);
    const largest = Math.max(...found.map(({ was, is }) => Math.max(was.p, is.p)), 1e-9);
    const blank = Array(kind === "class" ? 0 : Math.max(0, LISTED - found.length)).fill(BLANK);
    show([...found.map(({ id, was, is }) => ({
      name: `${named(lab, id, kind)}${answer?.id === id ? " ✓" : ""}`, strong: answer?.id === id,
      bars: [was.p / largest, is.p / largest], vague: [!was.sure, !is.sure],
      texts: [said(was), said(is), was.sure && is.sure ? points(is.p - was.p) : ""],
    })), ...blank]);
  };
  return { element, update };
}

/** [{id, was, is}], each {p, sure}: who is not among the likeliest of a step has at most what the last of those has. */
function paired(before, after, kind, position) {
  const of = [before, after].map((frame) => chances(frame, kind, position));
  const ids = [...new Set(of.flatMap(({ known }) => [...known.keys()]))];
  const p = ({ known, rest }, id) => (known.has(id) ? { p: known.get(id), sure: true } : { p: rest, sure: false });
  const all = ids.map((id) => ({ id, was: p(of[0], id), is: p(of[1], id) }));
  const size = ({ was, is }) => Math.max(was.sure ? was.p : 0, is.sure ? is.p : 0);
  return all.sort((a, b) => size(b) - size(a)).slice(0, LISTED);
}

function chances(frame, kind, position) {
  if (kind === "class") return { known: new Map(Array.from(frame.arrays.p.data, (p, id) => [id, p])), rest: 0 };
  const listed = position < count(frame) ? top(frame, position) : [];
  const known = new Map(listed.map(({ id, p }) => [id, p]));
  const answer = right(frame, position);
  if (answer) known.set(answer.id, answer.p);
  return { known, rest: listed.at(-1)?.p ?? 0 };
}

function said({ p, sure }) {
  return sure ? percent(p) : `≤ ${percent(p)}`;
}

function points(change) {
  return `${change > 0 ? "+" : change < 0 ? "−" : ""}${percent(Math.abs(change)).replace("\u00a0%", "")}`;
}

/** {element, update(before, after, kind, position)}: in nats, position by position and together. */
export function losses(lab) {
  const { element, title, list } = panel(["", "", "before", "after", "change"]);
  title.textContent = "Loss at each position, nats";
  list.classList.add("two-losses");
  let places = [];
  const show = rows(list, "button", (i) => places[i] !== undefined && lab.go({ position: places[i] }));
  const update = (before, after, kind, position) => {
    places = range(0, Math.min(count(before), count(after))).filter((row) => right(before, row) && right(after, row));
    element.hidden = !places.length;
    if (element.hidden) return;
    const pairs = places.map((row) => [right(before, row), right(after, row)]);
    const largest = Math.max(...pairs.flat().map(({ loss }) => loss), 1e-9);
    const lines = pairs.map(([was, is], i) => ({
      name: kind === "pixels" ? `pixel ${places[i] + 1}` : named(lab, is.id, kind), chosen: places[i] === position,
      bars: [was.loss / largest, is.loss / largest],
      texts: [nats(was.loss), nats(is.loss), signed(is.loss - was.loss)],
    }));
    const [was, is] = [before, after].map((frame) => cost(frame).mean);
    show([...lines, { name: "mean", total: true, bars: [was / largest, is / largest], texts: [nats(was), nats(is), signed(is - was)] }]);
  };
  return { element, update };
}

/** Three places, or a power of ten where they would say nothing. */
function nats(x) {
  const size = Math.abs(x);
  return (size && size < 0.0005 ? x.toExponential(1) : x.toFixed(3)).replaceAll("-", "−");
}

function signed(x) {
  return x > 0 ? `+${nats(x)}` : nats(x);
}

function panel(headings) {
  const element = make("section");
  const title = make("h3");
  const heading = make("div", "two-row heading");
  heading.append(...headings.map((text, i) => make("span", i > 1 ? "number" : "", text)));
  const list = make("div", "two-list");
  element.append(title, heading, list);
  return { element, title, list };
}

/** A function that shows rows of {name, chosen, strong, total, bars, texts}, in elements that stay. */
function rows(list, tag, pick = null) {
  let made = [];
  return (said) => {
    while (made.length < said.length) made.push(line(tag, made.length, pick));
    if (list.children.length !== said.length) list.replaceChildren(...made.slice(0, said.length).map(({ element }) => element));
    said.forEach((one, i) => made[i].show(one));
  };
}

function line(tag, i, pick) {
  const element = make(tag, "two-row");
  if (tag === "button") element.type = "button";
  if (pick) element.addEventListener("click", () => pick(i));
  const name = make("bdi");
  const tracks = make("span", "two-tracks");
  const bars = ["before", "after"].map((kind) => tracks.appendChild(make("i", kind)));
  const texts = range(0, 3).map(() => make("span", "number"));
  element.append(name, tracks, ...texts);
  const show = (one) => {
    if (name.textContent !== one.name) name.textContent = name.title = one.name;
    bars.forEach((bar, side) => {
      bar.style.transform = `scaleX(${one.bars[side]})`;
      bar.classList.toggle("vague", Boolean(one.vague?.[side]));
    });
    texts.forEach((text, column) => text.textContent !== one.texts[column] && (text.textContent = one.texts[column]));
    element.style.visibility = one.blank ? "hidden" : "";
    name.classList.toggle("is-right", Boolean(one.strong));
    element.classList.toggle("total", Boolean(one.total));
    element.classList.toggle("chosen", Boolean(one.chosen));
    if (tag === "button") element.disabled = Boolean(one.total);
  };
  return { element, show };
}

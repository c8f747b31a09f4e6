// Two steps of a training beside each other: one head before and after, what changed of it, of the answers and of their cost.
import { make, range } from "../core/dom.js";
import { counted, percent } from "../core/format.js";
import { cost, count, holds, kindOf, named, positionOf, right, rowOf, top } from "./frames.js";
import { headMap, headOf } from "./probe.js";
import { asked, isNumber, write } from "./probe_answers.js";
import { upTo } from "./run.js";

/**
 * @import { Kind } from "./frames.js"
 * @import { DrawnMap, HeadMap } from "./probe.js"
 * @import { Attention, Frame } from "./run.js"
 * @import { Page } from "./train.js"
 */

/**
 * @typedef {{ p: number, sure: boolean }} Chance
 * @typedef {{ known: Map<number, number>, rest: number }} Chances of those that are known by their ids, and the most that any other has
 * @typedef {{ name: string, bars: number[], texts: string[], vague?: boolean[], strong?: boolean, chosen?: boolean, total?: boolean,
 *   blank?: boolean }} Row
 */

const GAP = 24; // CSS pixels between the maps
const LEAST = 0.05; // of a weight: where the ramp of differences ends at least, so that noise does not look like change

/**
 * @param {HTMLElement} root
 * @param {Page} page
 */
export function mount(root, page) {
  return new Two(root, page);
}

class Two {
  /**
   * @param {HTMLElement} root
   * @param {Page} page
   */
  constructor(root, page) {
    this.root = root;
    this.page = page;
    this.width = page.memoize(() => root.clientWidth); // CSS pixels
    this.update = page.memoize(() => this.redraw());
    /** @param {number} row */
    const pick = (row) => {
      const { attention } = this;
      if (page.frame && attention && rowOf(page, page.frame, attention, row) !== null) page.go({ position: row });
    };
    this.line = steps(page);
    const maps = make("div", "two-maps");
    this.maps = range(0, 3).map(() => {
      const place = make("section");
      const [title, map] = [make("h3"), headMap(page, pick)];
      place.append(title, map.element);
      maps.append(place);
      return { place, title, map };
    });
    this.note = make("p", "probe-cost");
    this.lists = { candidates: candidates(page), losses: losses(page) };
    const said = make("div", "two-said");
    said.append(...Object.values(this.lists).map(({ element }) => element));
    this.seen = make("div");
    this.seen.append(maps, said);
    root.append(this.line.element, this.note, this.seen);
  }

  destroy() {
    this.root.replaceChildren();
  }

  mark() {}

  get attention() {
    const { attentions, state } = this.page;
    return attentions.find(({ key }) => key === state.attention) ?? attentions.at(-1);
  }

  redraw() {
    const { page, attention } = this;
    const first = page.frames.get(page.steps[0]) ?? null;
    const other = page.second ?? first;
    const { frame } = page;
    const there = other && frame && attention && [other, frame].every((one) => holds(one, attention.key));
    const pair = there ? [other, frame].sort((a, b) => a.step - b.step) : null;
    this.line.update(pair);
    this.seen.hidden = !there;
    if (pair && attention) this.draw(pair[0], pair[1], attention);
    else
      this.note.textContent = page.frame
        ? "This model has no attention to look at."
        : "There is nothing to compare yet.";
  }

  /**
   * @param {Frame} before
   * @param {Frame} after
   * @param {Attention} attention
   */
  draw(before, after, attention) {
    const { page } = this;
    const kind = kindOf(page, after);
    const position = positionOf(page, after, kind);
    const [first, second] = [headOf(page, before, attention), headOf(page, after, attention)];
    const sides = /** @type {const} */ (["rows", "cols"]);
    const alike = sides.every((side) => JSON.stringify(first[side]) === JSON.stringify(second[side]));
    const width = page.narrow ? this.width() : Math.floor((this.width() - 2 * GAP) / 3);
    const row = rowOf(page, after, attention, position);
    const draws = [first, second, alike ? changed(first, second) : null];
    const names = [
      `Step ${before.step.toLocaleString("en")}`,
      `Step ${after.step.toLocaleString("en")}`,
      "What changed: after − before",
    ];
    this.maps.forEach(({ place, title, map }, i) => {
      const drawn = draws[i];
      place.hidden = drawn === null;
      if (!drawn) return;
      title.textContent = i < 2 ? `${names[i]} · block ${page.state.layer + 1} head ${page.state.head + 1}` : names[i];
      map.update(drawn, width, row !== null && row < drawn.rows.length ? row : null);
    });
    this.note.textContent =
      before === after
        ? "Both are the same step; move the handle, or choose another to compare with."
        : alike
          ? ""
          : "No difference: at the two steps the model read different words here, its own output.";
    this.lists.candidates.update(before, after, kind, position, attention);
    this.lists.losses.update(before, after, kind, position);
  }
}

/**
 * The difference of two patterns as shares of a row, with words for a cell.
 * @param {HeadMap} before
 * @param {HeadMap} after
 * @returns {DrawnMap}
 */
function changed(before, after) {
  const { rows, cols } = after.block;
  const data = new Float32Array(rows * cols);
  for (let r = 0, i = 0; r < rows; r++) {
    for (let c = 0; c < cols; c++, i++) {
      const [a, b] = [before, after].map(({ block }) => block.data[block.offset + r * block.stride + c]);
      data[i] = (b - a) / 255;
    }
  }
  const max = data.reduce((most, x) => Math.max(most, Math.abs(x)), LEAST);
  const { hidden } = after;
  /**
   * @param {number} r
   * @param {number} c
   */
  const say = (r, c) => {
    const x = data[r * cols + c];
    return hidden?.(r, c)
      ? "masked"
      : `≈ ${x > 0 ? "+" : x < 0 ? "−" : ""}${counted(Math.round(100 * Math.abs(x)), "point")}`;
  };
  return {
    ...after,
    block: { data, offset: 0, stride: cols, rows, cols },
    max,
    role: "edited",
    scale: "signed",
    hidden,
    say,
    label: `what changed: ${rows} by ${cols} cells`,
  };
}

/**
 * The line that says which steps these are, and chooses the second.
 * @param {Page} page
 */
function steps(page) {
  const element = make("div", "two-line");
  const said = make("span");
  const place = make("div", "two-steps");
  /**
   * @param {string} name
   * @param {() => number | null} find
   * @returns {HTMLButtonElement}
   */
  const chip = (name, find) => {
    const one = make("button", "chip", name);
    one.type = "button";
    one.addEventListener("click", () => page.go({ other: find() }));
    place.append(one);
    return one;
  };
  const nearest = () => beforeMark(page);
  const first = chip("the first", () => page.steps[0]);
  const mark = chip("before the nearest mark", () => nearest()?.step ?? null);
  const here = chip("this one", () => page.frame?.step ?? null);
  const none = chip("remove", () => null);
  element.append(said, place);
  place.prepend("compare with");
  /** @param {Frame[] | null} pair */
  const update = (pair) => {
    said.textContent = pair
      ? `From step ${pair[0].step.toLocaleString("en")} to step ${pair[1].step.toLocaleString("en")}`
      : "";
    const found = nearest();
    const { other } = page.state;
    first.disabled = here.disabled = !pair;
    mark.disabled = found === null;
    mark.title =
      found === null
        ? "nothing has been noticed in this run so far"
        : `step ${found.step.toLocaleString("en")}: ${found.sentence}`;
    here.title = "the step at the handle: keep it, and move the handle on";
    first.setAttribute("aria-pressed", String(other === page.steps[0] || (other === null && pair !== null)));
    mark.setAttribute("aria-pressed", String(found !== null && other === found.step && other !== page.steps[0]));
    here.setAttribute("aria-pressed", String(other !== null && other === page.frame?.step && other !== page.steps[0]));
    none.hidden = other === null;
    none.title = "remove the second handle from the track";
  };
  return { element, update };
}

/**
 * {step, sentence}: the last frame before the mark that is nearest to the handle; null where none is.
 * @param {Page} page
 */
function beforeMark({ marks, frame, steps }) {
  if (!marks.length || !frame) return null;
  const { step, sentence } = marks.reduce((best, one) =>
    Math.abs(one.step - frame.step) < Math.abs(best.step - frame.step) ? one : best,
  );
  const before = steps[Math.max(0, upTo(steps, steps.length, step - 1))];
  return before === undefined ? null : { step: before, sentence };
}

// --- the candidates of one position with their probabilities, and the loss of every position, before and after -------------------

const LISTED = 7; // candidates
/** @type {Row} */
const BLANK = { name: "", blank: true, bars: [0, 0], texts: ["", "", ""] }; // keeps the room of one

/**
 * {element, update(before, after, kind, position, attention)}: two frames of the same example.
 * @param {Page} page
 */
function candidates(page) {
  const { element, title, list } = panel(["", "", "before", "after", "change"]);
  const show = rows(list, "div");
  /**
   * @param {Frame} before
   * @param {Frame} after
   * @param {Kind} kind
   * @param {number} position
   * @param {Attention} attention
   */
  const update = (before, after, kind, position, attention) => {
    element.hidden = !count(after) || isNumber(after);
    if (element.hidden) return;
    write(title, asked(page, after, kind, position, attention));
    const found = paired(before, after, kind, position);
    const answer = right(after, position);
    const largest = Math.max(...found.map(({ was, is }) => Math.max(was.p, is.p)), 1e-9);
    const blank = Array(kind === "class" ? 0 : Math.max(0, LISTED - found.length)).fill(BLANK);
    show([
      ...found.map(({ id, was, is }) => ({
        name: `${named(page, id, kind)}${answer?.id === id ? " ✓" : ""}`,
        strong: answer?.id === id,
        bars: [was.p / largest, is.p / largest],
        vague: [!was.sure, !is.sure],
        texts: [said(was), said(is), was.sure && is.sure ? points(is.p - was.p) : ""],
      })),
      ...blank,
    ]);
  };
  return { element, update };
}

/**
 * [{id, was, is}], each {p, sure}: who is not among the likeliest of a step has at most what the last of those has.
 * @param {Frame} before
 * @param {Frame} after
 * @param {Kind} kind
 * @param {number} position
 */
function paired(before, after, kind, position) {
  const of = [before, after].map((frame) => chances(frame, kind, position));
  const ids = [...new Set(of.flatMap(({ known }) => [...known.keys()]))];
  /**
   * @param {Chances} chances
   * @param {number} id
   * @returns {Chance}
   */
  const p = ({ known, rest }, id) => ({ p: known.get(id) ?? rest, sure: known.has(id) });
  const all = ids.map((id) => ({ id, was: p(of[0], id), is: p(of[1], id) }));
  /** @param {{ was: Chance, is: Chance }} pair */
  const size = ({ was, is }) => Math.max(was.sure ? was.p : 0, is.sure ? is.p : 0);
  return all.sort((a, b) => size(b) - size(a)).slice(0, LISTED);
}

/**
 * @param {Frame} frame
 * @param {Kind} kind
 * @param {number} position
 * @returns {Chances}
 */
function chances(frame, kind, position) {
  if (kind === "class") return { known: new Map((frame.arrays.p?.data ?? []).entries()), rest: 0 };
  const listed = position < count(frame) ? top(frame, position) : [];
  const known = new Map(listed.map(({ id, p }) => [id, p]));
  const answer = right(frame, position);
  if (answer) known.set(answer.id, answer.p);
  return { known, rest: listed.at(-1)?.p ?? 0 };
}

/** @param {Chance} chance */
function said({ p, sure }) {
  return sure ? percent(p) : `≤ ${percent(p)}`;
}

/** @param {number} change */
function points(change) {
  return `${change > 0 ? "+" : change < 0 ? "−" : ""}${percent(Math.abs(change)).replace("\u00a0%", "")}`;
}

/**
 * {element, update(before, after, kind, position)}: in nats, position by position and together.
 * @param {Page} page
 */
function losses(page) {
  const { element, title, list } = panel(["", "", "before", "after", "change"]);
  title.textContent = "Loss at each position, nats";
  list.classList.add("two-losses");
  /** @type {number[]} */
  let places = [];
  const show = rows(list, "button", (i) => places[i] !== undefined && page.go({ position: places[i] }));
  /**
   * @param {Frame} before
   * @param {Frame} after
   * @param {Kind} kind
   * @param {number} position
   */
  const update = (before, after, kind, position) => {
    const pairs = range(0, Math.min(count(before), count(after))).flatMap((row) => {
      const [was, is] = [right(before, row), right(after, row)];
      return was && is ? [{ row, was, is }] : [];
    });
    places = pairs.map(({ row }) => row);
    element.hidden = !places.length;
    if (element.hidden) return;
    const largest = Math.max(...pairs.flatMap(({ was, is }) => [was.loss, is.loss]), 1e-9);
    const lines = pairs.map(({ row, was, is }) => ({
      name: kind === "pixels" ? `pixel ${row + 1}` : named(page, is.id, kind),
      chosen: row === position,
      bars: [was.loss / largest, is.loss / largest],
      texts: [nats(was.loss), nats(is.loss), signed(is.loss - was.loss)],
    }));
    const [was, is] = [before, after].map((frame) => cost(frame).mean);
    show([
      ...lines,
      {
        name: "mean",
        total: true,
        bars: [was / largest, is / largest],
        texts: [nats(was), nats(is), signed(is - was)],
      },
    ]);
  };
  return { element, update };
}

/**
 * Three places, or a power of ten where they would say nothing.
 * @param {number} x
 */
function nats(x) {
  const size = Math.abs(x);
  return (size && size < 0.0005 ? x.toExponential(1) : x.toFixed(3)).replaceAll("-", "−");
}

/** @param {number} x */
function signed(x) {
  return x > 0 ? `+${nats(x)}` : nats(x);
}

/**
 * @param {string[]} headings
 * @returns {{ element: HTMLElement, title: HTMLElement, list: HTMLElement }}
 */
function panel(headings) {
  const element = make("section");
  const title = make("h3");
  const heading = make("div", "two-row heading");
  heading.append(...headings.map((text, i) => make("span", i > 1 ? "number" : "", text)));
  const list = make("div", "two-list");
  element.append(title, heading, list);
  return { element, title, list };
}

/**
 * A function that shows rows of {name, chosen, strong, total, bars, texts}, in elements that stay.
 * @param {HTMLElement} list
 * @param {"div" | "button"} tag
 * @param {(i: number) => unknown} [pick]
 * @returns {(said: Row[]) => void}
 */
function rows(list, tag, pick) {
  /** @type {ReturnType<typeof line>[]} */
  const made = [];
  return (said) => {
    while (made.length < said.length) made.push(line(tag, made.length, pick));
    if (list.children.length !== said.length)
      list.replaceChildren(...made.slice(0, said.length).map(({ element }) => element));
    said.forEach((one, i) => made[i].show(one));
  };
}

/**
 * @param {"div" | "button"} tag
 * @param {number} i
 * @param {((i: number) => unknown) | undefined} pick
 */
function line(tag, i, pick) {
  const element = make(tag, "two-row");
  if (tag === "button") element.type = "button";
  if (pick) element.addEventListener("click", () => pick(i));
  const name = make("bdi");
  const tracks = make("span", "two-tracks");
  const bars = ["before", "after"].map((kind) => tracks.appendChild(make("i", kind)));
  const texts = range(0, 3).map(() => make("span", "number"));
  element.append(name, tracks, ...texts);
  /** @param {Row} one */
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

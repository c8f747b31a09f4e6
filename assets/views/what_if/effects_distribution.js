// What an edit did to what the head gives: candidate by candidate, the sentence that sums it up, and the guess before it.
// Ours because it follows the position that is pointed at in the strip above it, and a guess is made on it, without the server.
import { swatch } from "../components/picture.js";
import { make, range } from "../core/dom.js";
import { number, percent } from "../core/format.js";
import { request } from "../core/store.js";

/**
 * @typedef {import("../core/payload.js").NamedArray} NamedArray
 * @typedef {{ side: string, pieces: string[], grid: import("../components/picture.js").Grid | null, layers: number, heads: number,
 *   crossHeads: number }} Lane
 * @typedef {{ id: number, logit: Float32Array, p: Float32Array }} Candidate each before and after
 * @typedef {{ candidates: Candidate[], kl: number, variation: number }} Shift
 * @typedef {{ reads: import("../core/trace.js").Reads, link: import("../components/bars.js").Link, names: Record<number, string>, row: number }} Head
 * @typedef {{ side: string, focus: string, layer: number, head: number, row: number, offered: number[] }} Guessed
 * @typedef {{ trace: string, hidden: boolean, took: { start: number, layers: number, seconds: number }, lanes: Lane[], head: Head | null,
 *   guess: Guessed | null, writes: "at once" | "asked" | "never", later?: string[], arrays: Record<string, NamedArray> }} Data
 * @typedef {{ data: Data & { head: Head }, shifts: Shifts, shown: number, failed?: string, choose: (row: number) => unknown }} Headed of a model with a head
 * @typedef {number | boolean} Answer
 * @typedef {(id: string, value: Answer) => void} Choose
 * @typedef {{ lane: Lane, pixels: NamedArray, offered: Set<number> }} Pointed a picture, and the cells of it that may be chosen
 * @typedef {{ id: string, said: (string | Node)[], options: [Answer, string][], picture?: Pointed,
 *   judge(answer: Answer): [right: boolean, sentence: string] }} Question
 */

/**
 * The last lane, which has the head.
 * @param {Lane[]} lanes
 */
export const headLane = (lanes) => lanes[lanes.length - 1];

/**
 * Row `i` of a lane of the payload: “word”, or "the patch at row 2, column 3".
 * @param {Pick<Lane, "pieces" | "grid">} lane
 * @param {number} i
 */
export function nameOf({ pieces, grid }, i) {
  if (!grid || i < grid.offset) return `“${pieces[i]}”`;
  const cell = i - grid.offset;
  return `the ${grid.predicts || !grid.first ? "pixel" : "patch"} at row ${Math.floor(cell / grid.side) + 1}, column ${(cell % grid.side) + 1}`;
}

/**
 * "block 2 head 1", in which attention of which stack where there are several.
 * @param {{ side: string, focus: string, layer: number, head: number }} place
 */
export function headNamed({ side, focus, layer, head }) {
  const which = focus === "cross_attn" ? "cross-attention, " : side ? `${side}, ` : "";
  return `${which}block ${layer + 1} head ${head + 1}`;
}

// --- The distribution before and after, candidate by candidate, and the sentence that sums it up ---

/** The changed distributions of a payload, by row, with those that were asked for since. */
export class Shifts {
  /** @param {Headed["data"]} data */
  constructor({ trace, arrays, head }) {
    this.trace = trace;
    this.head = head;
    this.names = { ...head.names };
    /** @type {Map<number, Shift>} */
    this.rows = new Map();
    this.take(arrays);
  }

  /** @param {Record<string, NamedArray>} arrays */
  take(arrays) {
    const [count, listed] = arrays["shift.id"].shape;
    for (let i = 0; i < count; i++) {
      const candidates = Array.from({ length: listed }, (_, j) => {
        const at = i * listed + j;
        const [logit, p] = ["logit", "p"].map((part) => arrays[`shift.${part}`].data.subarray(2 * at, 2 * at + 2));
        return { id: arrays["shift.id"].data[at], logit, p };
      });
      this.rows.set(arrays["shift.row"].data[i], {
        candidates,
        kl: arrays["shift.kl"].data[i],
        variation: arrays["shift.variation"].data[i],
      });
    }
  }

  /**
   * Whether the change of every one of `count` positions is here.
   * @param {number} count
   */
  complete(count) {
    return this.rows.size >= count;
  }

  /** @param {number} row */
  has(row) {
    return this.rows.has(row);
  }

  /**
   * The change at a row that is here.
   * @param {number} row
   */
  of(row) {
    return /** @type {Shift} */ (this.rows.get(row));
  }

  /** @param {number} row */
  async fetch(row) {
    if (this.has(row)) return;
    const { arrays, names } = await request({ ask: "edit_shift", row, trace: this.trace });
    Object.assign(this.names, names);
    this.take(arrays);
  }

  /** @param {{ id: number }} candidate */
  name({ id }) {
    return this.names[id] ?? `#${id}`;
  }

  /**
   * The likeliest candidate of a run: 0 before, 1 after.
   * @param {number} row
   * @param {number} run
   */
  likeliest(row, run) {
    return this.of(row).candidates.reduce((best, one) => (one.p[run] > best.p[run] ? one : best));
  }
}

/**
 * What the head is asked at a position, in words.
 * @param {{ data: Headed["data"] }} page
 * @param {number} row
 */
export function asked({ data }, row) {
  const { reads, link } = data.head;
  if (link === "identity") return "The score";
  if (reads === "class") return link === "logistic" ? "Each label by itself" : "The class";
  if (reads === "answer") return row ? "Where the answer ends" : "Where the answer starts";
  const piece = nameOf(headLane(data.lanes), row);
  return reads === "next" ? `After ${piece}` : `At ${piece}`;
}

/** @param {Headed} page */
export function headline(page) {
  const { shifts, shown: row, data } = page;
  const element = make("p", "headline");
  if (page.failed) return make("p", "headline", page.failed);
  const { kl, variation, candidates } = shifts.of(row);
  const question = make("span", "asked", `${asked(page, row)}: `);
  if (data.head.link !== "softmax") {
    /**
     * @param {Candidate} candidate
     * @param {number} run
     */
    const value = ({ logit, p }, run) => (data.head.link === "identity" ? number(logit[run]) : percent(p[run]));
    /** @param {Candidate} one */
    const moved = (one) => Math.abs(data.head.link === "identity" ? one.logit[1] - one.logit[0] : one.p[1] - one.p[0]);
    const most = candidates.reduce((best, one) => (moved(one) > moved(best) ? one : best)); // of labels by themselves
    const named = data.head.link === "identity" && candidates.length === 1 ? "" : `${shifts.name(most)} `;
    element.append(question, make("strong", "", `${named}${value(most, 0)} → ${named}${value(most, 1)}`));
    return element;
  }
  const [old, now] = [0, 1].map((run) => shifts.likeliest(row, run));
  /**
   * @param {Candidate} one
   * @param {number} run
   */
  const token = (one, run) => {
    const span = make("span", "likely");
    span.append(make("bdi", "", shifts.name(one)), make("span", "p", percent(one.p[run])));
    return span;
  };
  element.append(question, token(old, 0), make("span", "arrow", "→"), token(now, 1));
  const same = old.id === now.id ? "top prediction unchanged" : "top prediction changed";
  const measured = `${same} · KL ${bits(kl)} · ${percent(variation)} of the probability moved`;
  element.append(make("span", "measured", measured));
  return element;
}

/** @param {number} kl */
function bits(kl) {
  return Number.isFinite(kl) ? `${number(kl)} bits` : `${number(kl)} bits`.replace("∞ bits", "∞");
}

/**
 * The panel of candidates: p before and after as paired bars, the changes as numbers.
 * @param {Headed} page
 */
export function distribution(page) {
  const { shifts, shown: row, data } = page;
  const element = make("section", "distribution");
  const heading = make("h4", "", `${asked(page, row)}: before and after`);
  element.append(heading);
  if (data.head.reads === "answer") element.append(lists(page));
  const { candidates } = shifts.of(row);
  const bare = data.head.link === "identity";
  const most = data.head.link === "logistic" ? 1 : Math.max(...candidates.flatMap(({ p }) => [...p]), 1e-9);
  const table = make("table", "candidates");
  const titles = bare ? ["", "", "before", "after", "Δ logit"] : ["", "", "before", "after", "Δ p", "Δ logit"];
  const first = table.createTHead().insertRow();
  for (const title of titles) first.append(make("th", "", title));
  const body = table.createTBody();
  for (const one of candidates) body.append(line(one, shifts.name(one), most, bare));
  element.append(table, key());
  return element;
}

/**
 * @param {Candidate} candidate
 * @param {string} name
 * @param {number} most
 * @param {boolean} bare
 */
function line({ logit, p }, name, most, bare) {
  const row = make("tr");
  const piece = make("th", "piece");
  piece.scope = "row";
  piece.append(make("bdi", "", name));
  const bars = make("td", "pair");
  for (const [run, kind] of ["before", "after"].entries()) {
    const bar = make("span", `bar ${kind}`);
    bar.style.width = bare ? "0" : `${(100 * p[run]) / most}%`;
    bars.append(bar);
  }
  const shown = bare
    ? [number(logit[0]), number(logit[1])]
    : [percent(p[0]), percent(p[1]), signed(p[1] - p[0], percent)];
  const cells = [...shown, signed(logit[1] - logit[0], number)].map((text) => make("td", "number", text));
  if (!bare) cells[2].classList.add(p[1] >= p[0] ? "more" : "less");
  row.append(piece, bars, ...cells);
  return row;
}

/**
 * @param {number} x
 * @param {(x: number) => string} written
 */
function signed(x, written) {
  return x === 0 ? "0" : `${x > 0 ? "+" : "−"}${written(Math.abs(x))}`;
}

function key() {
  const element = make("p", "key");
  element.append(make("span", "swatch before"), "before", make("span", "swatch after"), "after");
  return element;
}

/** @param {Headed} page */
function lists(page) {
  const row = make("div", "lists");
  ["starts at", "ends at"].forEach((text, list) => {
    const one = make("button", "chip", text);
    one.type = "button";
    one.dataset.name = text;
    one.setAttribute("aria-pressed", String(page.shown === list));
    one.addEventListener("click", () => page.choose(list));
    row.append(one);
  });
  return row;
}

// --- Predict, then reveal: questions about what an edit did, before it is shown, and how the guesses went ---

const tally = { right: 0, all: 0 }; // of this session: a reload begins anew

export class Guess {
  /** @param {() => void} reveal */
  constructor(reveal) {
    this.reveal = reveal;
    /** @type {Record<string, Answer>} */
    this.given = {}; // question -> answer, for the run `trace`
    /** @type {string | null} */
    this.trace = null;
    /** @type {[right: boolean, sentence: string][]} */
    this.judged = [];
  }

  /**
   * The questions about a run whose effects are hidden.
   * @param {Data} data
   * @param {Shifts | null} shifts
   */
  ask(data, shifts) {
    if (this.trace !== data.trace) Object.assign(this, { trace: data.trace, given: {}, judged: [] });
    const element = make("div", "guess");
    element.append(make("h4", "", "What will follow? Guess first."));
    const questions = posed(data, shifts);
    /**
     * @param {string} id
     * @param {Answer} value
     */
    const choose = (id, value) => {
      this.given[id] = value;
      const again = this.ask(data, shifts);
      const name = element.getRootNode().activeElement?.dataset?.name;
      const scrolled = [...element.querySelectorAll(".options")].map(({ scrollTop }) => scrollTop);
      element.replaceWith(again);
      again
        .querySelectorAll(".options")
        .forEach((/** @type {HTMLElement} */ one, /** @type {number} */ i) => (one.scrollTop = scrolled[i]));
      again.querySelector(`[data-name="${name}"]`)?.focus({ preventScroll: true });
    };
    for (const question of questions) element.append(this.question(question, choose));
    if (!questions.length) element.append(make("p", "question", "Nothing that could be asked about has changed."));
    const buttons = make("div", "buttons");
    const show = make("button", "go", "Reveal");
    show.type = "button";
    show.disabled = !questions.some(({ id }) => id in this.given);
    show.addEventListener("click", () => this.judge(questions));
    const skip = make("button", "chip", "show without a guess");
    skip.type = "button";
    skip.addEventListener("click", () => this.reveal());
    buttons.append(show, skip, this.score());
    element.append(buttons);
    return element;
  }

  /**
   * @param {Question} question
   * @param {Choose} choose
   */
  question({ id, said, options, picture }, choose) {
    const box = make("div", "question");
    const line = make("p");
    line.append(...said);
    const row = make("div", "options");
    row.setAttribute("role", "group");
    row.setAttribute("aria-label", line.textContent);
    for (const [value, text] of options) row.append(this.option(id, value, make("bdi", "", text), choose));
    box.append(line, row);
    if (picture) box.append(this.cells(id, picture, choose));
    return box;
  }

  /**
   * @param {string} id
   * @param {Answer} value
   * @param {Node} inside
   * @param {Choose} choose
   */
  option(id, value, inside, choose) {
    const one = make("button", "chip");
    one.type = "button";
    one.dataset.name = `${id} ${value}`;
    one.append(inside);
    one.setAttribute("aria-pressed", String(this.given[id] === value));
    one.addEventListener("click", () => choose(id, value));
    return one;
  }

  /**
   * A picture to point at: its cells that may be chosen are buttons.
   * @param {string} id
   * @param {Pointed} picture
   * @param {Choose} choose
   */
  cells(id, { lane, pixels, offered }, choose) {
    const grid = /** @type {import("../components/picture.js").Grid} */ (lane.grid);
    const box = make("div", "cells-to-choose");
    box.style.gridTemplateColumns = `repeat(${grid.side}, max-content)`;
    for (const row of range(grid.offset, grid.offset + grid.side ** 2)) {
      const shown = swatch(pixels, grid, row);
      if (!offered.has(row)) {
        const away = make("span", "away");
        away.append(shown);
        box.append(away);
        continue;
      }
      const one = this.option(id, row, shown, choose);
      one.className = "cell";
      one.setAttribute("aria-label", nameOf(lane, row));
      one.title = nameOf(lane, row);
      box.append(one);
    }
    return box;
  }

  /** @param {Question[]} questions */
  judge(questions) {
    this.judged = questions.filter(({ id }) => id in this.given).map(({ id, judge }) => judge(this.given[id]));
    tally.all += this.judged.length;
    tally.right += this.judged.filter(([right]) => right).length;
    this.reveal();
  }

  /**
   * How the guesses about this run went; null where none was made.
   * @param {Data} data
   */
  verdict(data) {
    if (this.trace !== data.trace || !this.judged.length) return null;
    const element = make("div", "verdict");
    element.setAttribute("role", "status");
    for (const [right, sentence] of this.judged) {
      const line = make("p", right ? "right" : "wrong");
      line.append(make("strong", "", right ? "✓ Right. " : "✗ Wrong. "), make("bdi", "", sentence));
      element.append(line);
    }
    element.append(this.score());
    return element;
  }

  score() {
    return make("span", "tally", tally.all ? `${tally.right} of ${tally.all} guesses right` : "");
  }
}

/**
 * The questions that this run answers, each {id, said, options, picture?, judge(answer) -> [right, sentence]}.
 * @param {Data} data
 * @param {Shifts | null} shifts
 * @returns {Question[]}
 */
function posed(data, shifts) {
  const found = [];
  const { head, guess } = data;
  if (head && shifts?.has(head.row))
    found.push(head.link === "softmax" ? changes({ ...data, head }, shifts) : rises({ ...data, head }, shifts));
  if (guess) found.push(looks({ ...data, guess }));
  return found.length ? found : [moves(data)].filter((one) => one !== null);
}

/** @param {string} text */
const strong = (text) => make("bdi", "now", text);

/**
 * Whether the likeliest candidate stays.
 * @param {Headed["data"]} data
 * @param {Shifts} shifts
 * @returns {Question}
 */
function changes(data, shifts) {
  const { row } = data.head;
  const [old, now] = [0, 1].map((run) => shifts.likeliest(row, run));
  /** @type {Question["judge"]} */
  const judge = (answer) => {
    const numbers = `${shifts.name(old)} ${percent(old.p[0])} → ${shifts.name(now)} ${percent(now.p[1])}`;
    return [
      (old.id !== now.id) === answer,
      `The most likely one ${old.id === now.id ? "stays" : "changes"}: ${numbers}.`,
    ];
  };
  const said = [
    data.head.reads === "class" ? "The most likely class is " : `${asked({ data }, row)}, the most likely is `,
    strong(shifts.name(old)),
    ` with ${percent(old.p[0])}. Will that change?`,
  ];
  return {
    id: "change",
    said,
    options: [
      [true, "yes, another one"],
      [false, "no, it stays"],
    ],
    judge,
  };
}

/**
 * Which way one number goes: a score, or a probability that stands alone.
 * @param {Headed["data"]} data
 * @param {Shifts} shifts
 * @returns {Question}
 */
function rises(data, shifts) {
  const { row, link } = data.head;
  const [one] = shifts.of(row).candidates;
  const [written, values] = link === "identity" ? [number, one.logit] : [percent, one.p];
  const what = link === "identity" ? "the score" : `“${shifts.name(one)}”`;
  const way = Math.sign(values[1] - values[0]);
  /** @type {(answer: number) => [right: boolean, sentence: string]} */
  const judge = (answer) => [
    way === answer,
    `${link === "identity" ? "The score" : what} ${{ 1: "rises", "-1": "falls", 0: "stays" }[way]}: ${written(values[0])} → ${written(values[1])}.`,
  ];
  const before = link === "identity" ? "" : `${asked({ data }, row)}, `;
  const said = [`${before}${before ? what : "The score"} is `, strong(written(values[0])), ". Where will it go?"];
  return {
    id: "rise",
    said,
    options: [
      [1, "up"],
      [-1, "down"],
      [0, "it stays"],
    ],
    judge,
  };
}

/**
 * What the row of attention that changed most looks at most; only what it may see is offered.
 * @param {Data & { guess: Guessed }} data
 * @returns {Question}
 */
function looks({ guess, arrays, lanes }) {
  const reads = lanes.find(({ side }) => side === guess.side) ?? headLane(lanes);
  const keys = guess.focus === "cross_attn" ? lanes[0] : reads;
  const [reader, head] = [nameOf(reads, guess.row), headNamed(guess)];
  /** @type {(answer: number) => [right: boolean, sentence: string]} */
  const judge = (answer) => {
    const weights = arrays["guess.after"].data;
    const best = Math.max(...weights);
    const key = weights.indexOf(best);
    if (!best) return [false, `From ${reader}, ${head} now looks at nothing.`];
    const right = weights[answer] === best;
    const yours = right ? "" : ` Yours, ${nameOf(keys, answer)}, gets ${percent(weights[answer])}.`;
    return [
      right,
      `From ${reader}, ${head} looks at ${nameOf(keys, key)} most: ${percent(best)}, before ${percent(arrays["guess.before"].data[key])}.${yours}`,
    ];
  };
  const { grid } = keys;
  const pixels = grid && arrays["guess.picture"];
  const outside = guess.offered.filter((key) => !pixels || key < grid.offset);
  const picture = pixels ? { lane: keys, pixels, offered: new Set(guess.offered) } : undefined;
  const said = [`What will ${head} look at most from `, strong(reader), pixels ? "? Point at it." : "?"];
  return { id: "looks", said, options: outside.map((key) => [key, keys.pieces[key]]), picture, judge };
}

/**
 * Where the stream has moved most after the last block: for what changes nothing that is said and no attention.
 * @param {Data} data
 * @returns {Question | null}
 */
function moves({ arrays, lanes }) {
  const lane = headLane(lanes);
  const {
    data,
    shape: [rows, cols],
  } = arrays[`stream.${lane.side ? `${lane.side}.` : ""}relative`];
  const last = data.subarray((rows - 1) * cols);
  const most = Math.max(...last);
  if (!(most > 0)) return null;
  const at = last.indexOf(most);
  /** @type {(answer: number) => [right: boolean, sentence: string]} */
  const judge = (answer) => [
    last[answer] === most,
    `The stream moved most at ${nameOf(lane, at)}: by ${number(most)} times its norm.`,
  ];
  return {
    id: "moves",
    said: [`At which ${lane.grid ? "place" : "token"} will the residual stream have moved most after the last block?`],
    options: lane.pieces.map((piece, i) => [i, piece]),
    judge,
  };
}

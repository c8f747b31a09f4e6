// Predict, then reveal: questions about what an edit did, before it is shown, and how the guesses went.
import { make, range } from "../core/dom.js";
import { called, headNamed } from "./effects_called.js";
import { asked } from "./effects_distribution.js";
import { number, percent } from "../core/format.js";
import { swatch } from "../components/picture.js";

const tally = { right: 0, all: 0 }; // of this session: a reload begins anew

export class Guess {
  constructor(reveal) {
    this.reveal = reveal;
    this.given = {}; // question -> answer, for the run `trace`
    this.trace = null;
    this.judged = [];
  }

  /** The questions about a run whose effects are hidden. */
  ask(data, shifts) {
    if (this.trace !== data.trace) Object.assign(this, { trace: data.trace, given: {}, judged: [] });
    const element = make("div", "guess");
    element.append(make("h4", "", "What will follow? Guess first."));
    const questions = posed(data, shifts);
    const choose = (id, value) => {
      this.given[id] = value;
      const again = this.ask(data, shifts);
      const name = element.getRootNode().activeElement?.dataset?.name;
      const scrolled = [...element.querySelectorAll(".options")].map(({ scrollTop }) => scrollTop);
      element.replaceWith(again);
      again.querySelectorAll(".options").forEach((one, i) => (one.scrollTop = scrolled[i]));
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

  option(id, value, inside, choose) {
    const one = make("button", "chip");
    one.type = "button";
    one.dataset.name = `${id} ${value}`;
    one.append(inside);
    one.setAttribute("aria-pressed", String(this.given[id] === value));
    one.addEventListener("click", () => choose(id, value));
    return one;
  }

  /** A picture to point at: its cells that may be chosen are buttons. */
  cells(id, { lane, pixels, offered }, choose) {
    const { grid } = lane;
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
      one.setAttribute("aria-label", called(lane, row));
      one.title = called(lane, row);
      box.append(one);
    }
    return box;
  }

  judge(questions) {
    this.judged = questions.filter(({ id }) => id in this.given).map(({ id, judge }) => judge(this.given[id]));
    tally.all += this.judged.length;
    tally.right += this.judged.filter(([right]) => right).length;
    this.reveal();
  }

  /** How the guesses about this run went; null where none was made. */
  verdict(data) {
    if (this.trace !== data.trace || !this.judged.length) return null;
    const element = make("div", "verdict");
    element.setAttribute("role", "status");
    for (const [right, sentence] of this.judged) {
      const line = make("p", right ? "right" : "wrong");
      line.append(make("strong", "", right ? "✓ Right. " : "✗ Not so. "), make("bdi", "", sentence));
      element.append(line);
    }
    element.append(this.score());
    return element;
  }

  score() {
    return make("span", "tally", tally.all ? `${tally.right} of ${tally.all} guesses right` : "");
  }
}

/** The questions that this run answers, each {id, said, options, picture?, judge(answer) -> [right, sentence]}. */
function posed(data, shifts) {
  const found = [];
  if (shifts?.has(data.head.row)) found.push(data.head.link === "softmax" ? changes(data, shifts) : rises(data, shifts));
  if (data.guess) found.push(looks(data));
  return found.length ? found : [moves(data)].filter(Boolean);
}

const strong = (text) => make("bdi", "now", text);

/** Whether the likeliest candidate stays. */
function changes(data, shifts) {
  const { row } = data.head;
  const [old, now] = [0, 1].map((run) => shifts.likeliest(row, run));
  const judge = (answer) => {
    const numbers = `${shifts.name(old)} ${percent(old.p[0])} → ${shifts.name(now)} ${percent(now.p[1])}`;
    return [(old.id !== now.id) === answer, `The likeliest ${old.id === now.id ? "stays" : "changes"}: ${numbers}.`];
  };
  const said = [data.head.reads === "class" ? "The likeliest class is " : `${asked({ data }, row)}, the likeliest is `, strong(shifts.name(old)), ` with ${percent(old.p[0])}. Will that change?`];
  return { id: "change", said, options: [[true, "yes, another one"], [false, "no, it stays"]], judge };
}

/** Which way one number goes: a score, or a probability that stands alone. */
function rises(data, shifts) {
  const { row, link } = data.head;
  const [one] = shifts.rows.get(row).candidates;
  const [written, values] = link === "identity" ? [number, one.logit] : [percent, one.p];
  const what = link === "identity" ? "the score" : `“${shifts.name(one)}”`;
  const way = Math.sign(values[1] - values[0]);
  const judge = (answer) => [way === answer, `${link === "identity" ? "The score" : what} ${{ 1: "rises", "-1": "falls", 0: "stays" }[way]}: ${written(values[0])} → ${written(values[1])}.`];
  const before = link === "identity" ? "" : `${asked({ data }, row)}, `;
  const said = [`${before}${before ? what : "The score"} is `, strong(written(values[0])), ". Where will it go?"];
  return { id: "rise", said, options: [[1, "up"], [-1, "down"], [0, "it stays"]], judge };
}

/** What the row of attention that changed most looks at most; only what it may see is offered. */
function looks({ guess, arrays, lanes }) {
  const reads = lanes.find(({ side }) => side === guess.side) ?? lanes.at(-1);
  const keys = guess.focus === "cross_attn" ? lanes[0] : reads;
  const [reader, head] = [called(reads, guess.row), headNamed(guess)];
  const judge = (answer) => {
    const weights = arrays["guess.after"].data;
    const best = Math.max(...weights);
    const key = weights.indexOf(best);
    if (!best) return [false, `From ${reader}, ${head} looks at nothing any more.`];
    const right = weights[answer] === best;
    const yours = right ? "" : ` Yours, ${called(keys, answer)}, gets ${percent(weights[answer])}.`;
    return [right, `From ${reader}, ${head} looks at ${called(keys, key)} most: ${percent(best)}, before ${percent(arrays["guess.before"].data[key])}.${yours}`];
  };
  const pixels = keys.grid && arrays["guess.picture"];
  const outside = guess.offered.filter((key) => !pixels || key < keys.grid.offset);
  const picture = pixels && { lane: keys, pixels, offered: new Set(guess.offered) };
  const said = [`What will ${head} look at most from `, strong(reader), pixels ? "? Point at it." : "?"];
  return { id: "looks", said, options: outside.map((key) => [key, keys.pieces[key]]), picture, judge };
}

/** Where the stream has moved most behind the last block: for what changes nothing that is said and no attention. */
function moves({ arrays, lanes }) {
  const lane = lanes.at(-1);
  const { data, shape: [rows, cols] } = arrays[`stream.${lane.side ? `${lane.side}.` : ""}relative`];
  const last = data.subarray((rows - 1) * cols);
  const most = Math.max(...last);
  if (!(most > 0)) return null;
  const at = last.indexOf(most);
  const judge = (answer) => [last[answer] === most, `The stream moved most at ${called(lane, at)}: by ${number(most)} of its length.`];
  return { id: "moves", said: [`At which ${lane.grid ? "place" : "token"} will the residual stream have moved most behind the last block?`], options: lane.pieces.map((piece, i) => [i, piece]), judge };
}

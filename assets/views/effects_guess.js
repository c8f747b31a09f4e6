// Predict, then reveal: two questions about what an edit did, before it is shown, and how the guesses went.
import { make } from "./dom.js";
import { asked } from "./effects_distribution.js";
import { percent } from "./format.js";

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
    const draw = () => element.replaceWith(this.ask(data, shifts));
    if (this.changes(data, shifts)) element.append(this.change(data, shifts, draw));
    if (data.guess) element.append(this.looks(data, draw));
    const buttons = make("div", "buttons");
    const show = make("button", "go", "Reveal");
    show.type = "button";
    show.disabled = !Object.keys(this.given).length;
    show.addEventListener("click", () => this.judge(data, shifts));
    const skip = make("button", "chip", "show without a guess");
    skip.type = "button";
    skip.addEventListener("click", () => this.reveal());
    buttons.append(show, skip, this.score());
    element.append(buttons);
    return element;
  }

  /** Whether there is a likeliest candidate to ask about. */
  changes(data, shifts) {
    return Boolean(shifts?.has(data.head.row)) && data.head.link === "softmax";
  }

  change(data, shifts, draw) {
    const { row } = data.head;
    const old = shifts.likeliest(row, 0);
    const box = make("div", "question");
    const line = make("p", "", `${asked({ data }, row)}, the likeliest is `);
    line.append(make("bdi", "now", shifts.name(old)), ` with ${percent(old.p[0])}. Will that change?`);
    box.append(line, this.options("change", [[true, "yes, another one"], [false, "no, it stays"]], draw));
    return box;
  }

  looks({ guess }, draw) {
    const box = make("div", "question");
    const side = guess.focus === "cross_attn" ? "cross-attention, " : guess.side ? `${guess.side}, ` : "";
    const line = make("p", "", `Which token will ${side}block ${guess.layer + 1} head ${guess.head + 1} look at most from `);
    line.append(make("bdi", "now", guess.reader), "?");
    box.append(line, this.options("looks", guess.keys.map((piece, i) => [i, piece]), draw));
    return box;
  }

  options(question, options, draw) {
    const row = make("div", "options");
    row.setAttribute("role", "group");
    for (const [value, text] of options) {
      const one = make("button", "chip");
      one.type = "button";
      one.append(make("bdi", "", text));
      one.setAttribute("aria-pressed", String(this.given[question] === value));
      one.addEventListener("click", () => {
        this.given[question] = value;
        draw();
      });
      row.append(one);
    }
    return row;
  }

  judge(data, shifts) {
    this.judged = [];
    if ("change" in this.given) {
      const [old, now] = [0, 1].map((run) => shifts.likeliest(data.head.row, run));
      const numbers = `${shifts.name(old)} ${percent(old.p[0])} → ${shifts.name(now)} ${percent(now.p[1])}`;
      this.judged.push([(old.id !== now.id) === this.given.change, `The likeliest ${old.id === now.id ? "stays" : "changes"}: ${numbers}.`]);
    }
    if ("looks" in this.given) {
      const { guess, arrays } = data;
      const weights = arrays["guess.after"].data;
      const best = Math.max(...weights);
      const key = weights.indexOf(best);
      const was = arrays["guess.before"].data[key];
      const right = weights[this.given.looks] === best;
      const yours = right ? "" : ` Your “${guess.keys[this.given.looks]}” gets ${percent(weights[this.given.looks])}.`;
      this.judged.push([right, `From “${guess.reader}”, block ${guess.layer + 1} head ${guess.head + 1} looks at “${guess.keys[key]}” most: ${percent(best)}, before ${percent(was)}.${yours}`]);
    }
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

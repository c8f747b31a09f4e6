// How surprising each token of a text is to the model, painted on the words, and how that adds up to the loss it was trained on.
import { CHART_CSS } from "./chart.js";
import { choices } from "./choices.js";
import { make } from "./dom.js";
import { number } from "./format.js";
import { mount as mountSum } from "./generate_surprise_sum.js";
import { mount as mountText } from "./generate_surprise_text.js";
import { mount as mountToken } from "./generate_surprise_token.js";
import { mount as mountCurve } from "./generate_surprise_curve.js";
import { CSS as STYLE } from "./generate_surprise_style.js";
import { CSS as WRITE } from "./generate_write_style.js";

export const CSS = `${CHART_CSS}${WRITE}${STYLE}`;

export function mount(room, page) {
  return new Surprise(room, page);
}

class Surprise {
  constructor(room, page) {
    Object.assign(this, { room, page, found: null, tokens: [] });
    const bar = make("div", "s-bar");
    this.which = choices("which text", [
      ["prompt", "as given", "the text above"],
      ["written", "with what was written", "the branch that is shown in the tab Write behind it"],
    ], (value) => page.go({ surprise: value === "written" ? null : value }));
    this.facts = make("dl", "s-facts");
    bar.append(this.which.element, this.facts);
    this.sentence = make("p", "sentence s-sentence");
    this.sentence.setAttribute("role", "status");
    const [left, right, body] = [make("div", "s-left"), make("div", "s-right"), make("div", "s-body")];
    const places = { text: make("section", "s-text"), curve: make("section", "s-curve"), token: make("section", "s-token"), sum: make("section", "s-sum") };
    left.append(places.text, places.curve, places.sum);
    right.append(places.token);
    body.append(left, right);
    this.body = body;
    room.append(bar, this.sentence, body);
    this.parts = [mountText(places.text, this), mountCurve(places.curve, this), mountToken(places.token, this), mountSum(places.sum, this)];
  }

  destroy() {
    this.asked = null;
    this.room.replaceChildren();
  }

  /** The tokens behind the prompt that are read too. */
  get written() {
    return this.page.state.surprise === "prompt" ? [] : this.page.written;
  }

  async update() {
    const { page } = this;
    const { written } = this;
    this.which.element.hidden = page.tree.isEmpty;
    this.which.show(page.state.surprise === "prompt" ? "prompt" : "written");
    if (page.run.active) { // the text is still growing
      if (!this.found) this.wait();
      return;
    }
    const asked = JSON.stringify([page.data.trace, written]);
    if (asked === this.asked) return asked === this.answered && this.draw();
    this.asked = asked;
    try {
      const answer = await page.request({ ask: "surprise", written });
      if (asked !== this.asked) return;
      this.found = answer;
      this.tokens = tokensOf(answer);
      this.answered = asked;
      this.sentence.textContent = "";
    } catch (error) {
      if (asked !== this.asked) return;
      this.found = null;
      this.sentence.textContent = error.message;
    }
    this.draw();
  }

  wait() {
    this.sentence.textContent = "The text is still being written; its surprise is shown once it is done.";
    this.draw();
  }

  draw() {
    this.body.hidden = this.facts.hidden = !this.found;
    if (!this.found) return;
    const { perplexity, mean, total } = this.found;
    const facts = [
      ["tokens asked for", this.tokens.length.toLocaleString("en")],
      ["perplexity", number(perplexity)],
      ["loss", `${number(mean)} nats a token`],
      ["their sum", `${number(total)} nats`],
    ];
    this.facts.replaceChildren(...facts.map(([name, value]) => {
      const fact = make("div");
      fact.append(make("dt", "", name), make("dd", "", value));
      return fact;
    }));
    for (const part of this.parts) part.update();
  }

  /** Which token is looked at, by its place among those that are asked for: the most surprising where nobody chose. */
  get at() {
    const { surprise_at: said } = this.page.state;
    if (Number.isInteger(said) && said >= 0 && said < this.tokens.length) return said;
    return this.tokens.reduce((best, { surprise }, i) => (surprise > this.tokens[best].surprise ? i : best), 0);
  }

  look(at) {
    this.page.go({ surprise_at: Math.max(0, Math.min(this.tokens.length - 1, at)) });
  }

  /** Bits of a guess that knows nothing: the scale of the tint ends here. */
  get blind() {
    return Math.log2(this.page.data.vocab);
  }

  tip(token) {
    if (token) this.page.tip(token.piece, `${token.surprise.toFixed(2)} bits`);
    else this.page.tip(null);
  }

  key(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || !this.found) return;
    event.preventDefault();
    this.look(this.at + by);
  }

  looked() {
    if (!this.found) return { where: "", sentence: this.sentence.textContent, asks: { written: this.written } };
    const token = this.tokens[this.at];
    const sentence = `${this.tokens.length} tokens, perplexity ${number(this.found.perplexity)}, loss ${number(this.found.mean)} nats a token; “${token.piece}” ${token.surprise.toFixed(2)} bits`;
    return { where: `token ${this.at + 1} of ${this.tokens.length}`, sentence, asks: { written: this.written }, file: "surprise" };
  }
}

/** [{id, piece, at, log, surprise, rank, entropy, rows: [{id, piece, probability}], rest}] */
function tokensOf({ arrays, pieces }) {
  const width = arrays["top.id"].shape[1];
  return Array.from(arrays.id.data, (id, t) => ({
    id,
    piece: pieces[id],
    at: arrays.at.data[t],
    log: arrays.log_probability.data[t],
    surprise: arrays.surprise.data[t],
    rank: arrays.rank.data[t],
    entropy: arrays.entropy.data[t],
    rows: Array.from({ length: width }, (_, r) => {
      const top = arrays["top.id"].data[t * width + r];
      return { id: top, piece: pieces[top], probability: arrays["top.probability"].data[t * width + r] };
    }),
    rest: arrays.rest.data[t],
  }));
}

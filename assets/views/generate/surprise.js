// How surprising each token of a text is to the model, painted on the words, and how that adds up to the loss it was trained on.
import { CHART_CSS } from "../components/chart.js";
import { choices } from "../components/choices.js";
import { make } from "../core/dom.js";
import { number } from "../core/format.js";
import { Coming } from "./coming.js";
import { mount as mountSum } from "./surprise_sum.js";
import { mount as mountText } from "./surprise_text.js";
import { mount as mountToken } from "./surprise_token.js";
import { mount as mountCurve } from "./surprise_curve.js";
import { mount as mountWindows, STRIDES } from "./surprise_windows.js";
import { CSS as STYLE } from "./surprise_style.js";
import { CSS as WRITE } from "./write_style.js";

const LONG = 600; // ms after which what was shown makes room for what is awaited

export const CSS = `${CHART_CSS}${WRITE}${STYLE}`;

export function mount(room, page) {
  return new Surprise(room, page);
}

class Surprise {
  constructor(room, page) {
    Object.assign(this, { room, page, shown: null, coming: null, usual: 0, bring: true });
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
    this.windows = mountWindows(this);
    room.append(bar, this.sentence, this.windows.element, body);
    this.parts = [mountText(places.text, this), mountCurve(places.curve, this), mountToken(places.token, this), mountSum(places.sum, this)];
    this.body.hidden = this.facts.hidden = this.windows.element.hidden = true;
  }

  destroy() {
    clearTimeout(this.long);
    this.coming?.leave();
    this.room.replaceChildren();
  }

  /** The tokens behind the prompt that are read too. */
  get written() {
    return this.page.state.surprise === "prompt" ? [] : this.page.written;
  }

  /** How far the windows of a text are apart that is read in windows. */
  get stride() {
    const { surprise_stride: said } = this.page.state;
    return STRIDES.some(([one]) => one === said) ? said : STRIDES[0][0];
  }

  /** What is asked of which text. */
  get reading() {
    return { written: this.written, ...(!this.page.data.fits && this.stride !== STRIDES[0][0] && { stride: this.stride }) };
  }

  update() {
    const { page } = this;
    this.which.element.hidden = page.tree.isEmpty;
    this.which.show(page.state.surprise === "prompt" ? "prompt" : "written");
    if (page.run.active) { // the text is still growing
      if (!this.found) this.wait();
      return;
    }
    const query = { ask: "surprise", ...this.reading };
    const asked = JSON.stringify([page.data.trace, query]);
    if (asked === this.asked) return this.draw();
    this.asked = asked;
    this.coming?.leave();
    clearTimeout(this.long);
    this.long = setTimeout(() => this.clear("Reading …"), LONG);
    this.coming = new Coming(page, query, joined, { take: (coming) => this.take(coming), fail: (error) => this.fail(error) });
    this.windows.update();
    this.coming.begin();
  }

  /** Nothing is shown of a text but a sentence. */
  clear(sentence) {
    this.shown = null;
    this.sentence.textContent = sentence;
    this.draw();
  }

  /** There is more of the text, or it was stopped. Until then, what was shown before stays for a while. */
  take(coming) {
    clearTimeout(this.long);
    if (!coming.found) return this.clear("You stopped it before anything was read.");
    const isNew = this.shown !== coming;
    this.shown = coming;
    if (isNew || !coming.isActive) this.usual = this.mostSurprising();
    this.sentence.textContent = "";
    this.draw();
  }

  fail(error) {
    clearTimeout(this.long);
    if (!this.coming.found) this.shown = null;
    this.sentence.textContent = error.message;
    this.draw();
  }

  get found() {
    return this.shown?.found ?? null;
  }

  get tokens() {
    return this.found?.tokens ?? [];
  }

  get measuring() {
    return Boolean(this.coming?.isActive);
  }

  /** Whether the text that is asked for has nothing to show yet, which the sentence says. */
  get isAwaited() {
    return Boolean(this.coming && !this.found && !this.coming.why && this.sentence.textContent);
  }

  /** What is measured stays; says whether there was something to stop. */
  stop() {
    if (!this.measuring || this.page.alone) return false;
    this.coming.stop();
    return true;
  }

  goOn() {
    this.coming.go();
    if (this.coming.found) this.draw();
    else this.clear("Reading …");
  }

  wait() {
    this.sentence.textContent = "The text is still being written; its surprise is shown once it is done.";
    this.draw();
  }

  draw() {
    this.body.hidden = this.facts.hidden = !this.found;
    this.windows.update();
    if (!this.found) return;
    const { perplexity, mean, total, whole, asked, pseudo } = this.found;
    const count = this.tokens.length.toLocaleString("en");
    const facts = [
      [pseudo ? "tokens masked" : "tokens asked for", whole ? count : `${count} of ${asked.toLocaleString("en")}`],
      [this.named("perplexity"), number(perplexity)],
      [pseudo ? "minus the mean" : "loss", `${number(mean)} nats a token`],
      pseudo ? ["pseudo-log-likelihood", `${number(-total)} nats`] : ["their sum", `${number(total)} nats`],
    ];
    this.facts.replaceChildren(...facts.map(([name, value]) => {
      const fact = make("div");
      fact.append(make("dt", "", name), make("dd", "", value));
      return fact;
    }));
    for (const part of this.parts) part.update();
  }

  /** How many ids are read in all. */
  get length() {
    return this.found.windows.at(-1)[2];
  }

  /** Whether the text comes in several answers, or is drawn as one that does. */
  get inPieces() {
    return this.found.steps > 1;
  }

  /** What a measure is called: of tokens that are masked in turn it is another one. */
  named(measure) {
    return this.found.pseudo ? `pseudo-${measure}` : measure;
  }

  get inWindows() {
    return this.found.windows.length > 1;
  }

  /** Which token is looked at, by its place among those that are asked for: the most surprising where nobody chose. */
  get at() {
    const { surprise_at: said } = this.page.state;
    return Number.isInteger(said) && said >= 0 && said < this.tokens.length ? said : this.usual;
  }

  mostSurprising() {
    return this.tokens.reduce((best, { surprise }, i) => (surprise > this.tokens[best].surprise ? i : best), 0);
  }

  look(at) {
    this.bring = true; // into view, once it is there
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
    if (!this.found) return { where: "", sentence: this.sentence.textContent, asks: this.reading };
    const token = this.tokens[this.at];
    const windows = this.inWindows ? ` in ${this.found.windows.length.toLocaleString("en")} windows` : "";
    const sums = `${this.named("perplexity")} ${number(this.found.perplexity)}, ${this.found.pseudo ? "" : "loss "}${number(this.found.mean)} nats a token`;
    const sentence = `${this.tokens.length.toLocaleString("en")} tokens${windows}, ${sums}; “${token.piece}” ${token.surprise.toFixed(2)} bits`;
    return { where: `token ${this.at + 1} of ${this.tokens.length}`, sentence, asks: { ...this.reading, ...(!this.found.whole && { steps: this.found.count }) }, file: "surprise" };
  }
}

/** A part of an answer to "surprise" behind what is `found` of it, which grows; {tokens, ...} with the first. */
function joined(found, part) {
  if (!found) return { ...part, tokens: tokensOf(part, part) };
  const { count, whole, total, mean, perplexity, training } = part;
  Object.assign(found, { count, whole, total, mean, perplexity, training });
  Object.assign(found.pieces, part.pieces);
  found.tokens.push(...tokensOf(part, found));
  return found;
}

/** [{id, piece, at, log, surprise, rank, entropy, rest, window, rows()}]; rows() are [{id, piece, probability}], `window` is a place in found.windows. */
function tokensOf({ arrays }, { pieces, windows }) {
  const width = arrays["top.id"].shape[1];
  let window = 0;
  const row = (t, r) => {
    const id = arrays["top.id"].data[t * width + r];
    return { id, piece: pieces[id], probability: arrays["top.probability"].data[t * width + r] };
  };
  return Array.from(arrays.id.data, (id, t) => {
    const at = arrays.at.data[t];
    while (at >= windows[window][2] && window + 1 < windows.length) window++;
    return {
      id,
      piece: pieces[id],
      at,
      window,
      log: arrays.log_probability.data[t],
      surprise: arrays.surprise.data[t],
      rank: arrays.rank.data[t],
      entropy: arrays.entropy.data[t],
      rest: arrays.rest.data[t],
      rows: () => Array.from({ length: width }, (_, r) => row(t, r)),
    };
  });
}

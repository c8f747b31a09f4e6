// How surprising each token of a text is to the model, painted on the words, and how that adds up to the loss it was trained on. It is ours because the text is
// painted token by token as it is measured; the curve along it is a chart of the page.
import { make } from "../core/dom.js";
import { counted, difference, equation, number, percent } from "../core/format.js";
import { Coming } from "./streams.js";
import { Painted } from "./surprise_text.js";
import { colourOf } from "./text.js";

/**
 * @typedef {import("./generate.js").Page} Page
 * @typedef {Surprise} Tab
 * @typedef {[begin: number, asked: number, end: number]} Window where it begins, what is predicted first, and its end
 * @typedef {{ id: number, piece: string, at: number, window: number, log: number, surprise: number, rank: number, entropy: number, rest: number,
 *   rows: () => { id: number, piece: string, probability: number }[] }} Measured
 * @typedef {{ arrays: Record<string, import("../core/payload.js").NamedArray>, tokens: Measured[], windows: Window[], read: number[],
 *   pieces: Record<number, string>, count: number, whole: boolean, asked: number, steps: number, total: number, mean: number, perplexity: number,
 *   training: number, pseudo: boolean, taught: string, objective: string }} Reading
 */

const LONG = 600; // ms after which what was shown makes room for what is awaited
const CALM = 250; // ms without another token looked at after which the curve follows

/**
 * @param {HTMLElement} room
 * @param {Page} page
 */
export function mount(room, page) {
  return new Surprise(room, page);
}

class Surprise {
  /** @type {string} the text that is asked for, in words */
  asked;
  /** @type {number | undefined} the token that the curve below was told, or told of */
  followed;

  /**
   * @param {HTMLElement} room
   * @param {Page} page
   */
  constructor(room, page) {
    this.room = room;
    this.page = page;
    /** @type {Coming<Reading> | null} */
    this.shown = null;
    /** @type {Coming<Reading> | null} */
    this.coming = null;
    this.usual = 0;
    this.bring = true;
    this.facts = make("dl", "s-facts");
    this.sentence = make("p", "sentence s-sentence");
    this.sentence.setAttribute("role", "status");
    const [left, right, body] = [make("div", "s-left"), make("div", "s-right"), make("div", "s-body")];
    const places = {
      text: make("section", "s-text"),
      token: make("section", "s-token"),
      sum: make("section", "s-sum"),
    };
    left.append(places.text, places.sum);
    right.append(places.token);
    body.append(left, right);
    this.body = body;
    this.windows = new Windows(this);
    room.append(this.facts, this.sentence, this.windows.element, body);
    this.parts = [new Painted(places.text, this), new Token(places.token, this), new Sum(places.sum, this)];
    this.body.hidden = this.facts.hidden = this.windows.element.hidden = true;
  }

  destroy() {
    clearTimeout(this.long);
    clearTimeout(this.reporting);
    this.coming?.leave();
    this.room.replaceChildren();
  }

  /** What is asked of which text: with what was written after it, unless the page says otherwise, and how far windows are apart. */
  get reading() {
    const { reads, stride } = this.page.data.surprise;
    return { written: reads === "prompt" ? [] : this.page.written, ...(stride !== "half" && { stride }) };
  }

  update() {
    const { page } = this;
    this.follow();
    if (page.run.active) {
      // the text is still growing
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
    this.coming = new Coming(page, query, joined, {
      take: (coming) => this.take(coming),
      fail: (error) => this.fail(error),
    });
    this.windows.update();
    this.coming.begin();
  }

  /** A click in the curve below, which the page tells. */
  follow() {
    const { looked } = this.page.data;
    if (looked === this.followed) return;
    this.followed = looked;
    if (Number.isInteger(looked)) this.page.remember({ surprise_at: looked });
    this.bring = true;
  }

  /** The curve below is drawn by the page: which token is looked at, and how much is measured. */
  report() {
    clearTimeout(this.reporting);
    this.reporting = setTimeout(() => {
      const { data } = this.page;
      if (!this.found || this.measuring) return;
      if (this.here.count !== data.surprise.charted) this.page.emit?.("measured", this.here.count);
      else if (Number.isInteger(this.page.state.surprise_at) && this.at !== data.looked) {
        this.followed = this.at;
        this.page.emit?.("look", this.at);
      }
    }, CALM);
  }

  /**
   * Nothing is shown of a text but a sentence.
   * @param {string} sentence
   */
  clear(sentence) {
    this.shown = null;
    this.sentence.textContent = sentence;
    this.draw();
  }

  /**
   * There is more of the text, or it was stopped. Until then, what was shown before stays for a while.
   * @param {Coming<Reading>} coming
   */
  take(coming) {
    clearTimeout(this.long);
    if (!coming.found) return this.clear("Stopped before anything was read.");
    const isNew = this.shown !== coming;
    this.shown = coming;
    if (isNew || !coming.isActive) this.usual = this.mostSurprising();
    this.sentence.textContent = "";
    this.draw();
  }

  /** @param {Error} error */
  fail(error) {
    clearTimeout(this.long);
    if (!this.coming?.found) this.shown = null;
    this.sentence.textContent = error.message;
    this.draw();
  }

  get found() {
    return this.shown?.found ?? null;
  }

  /** What is read of it, where there is something. */
  get here() {
    return /** @type {Reading} */ (this.found);
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
    this.coming?.stop();
    return true;
  }

  goOn() {
    this.coming?.go();
    if (this.coming?.found) this.draw();
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
      [pseudo ? "tokens masked" : "tokens scored", whole ? count : `${count} of ${asked.toLocaleString("en")}`],
      [this.named("perplexity"), number(perplexity)],
      [pseudo ? "minus the mean" : "loss", `${number(mean)} nats a token`],
      pseudo ? ["pseudo-log-likelihood", `${number(-total)} nats`] : ["their sum", `${number(total)} nats`],
    ];
    this.facts.replaceChildren(
      ...facts.map(([name, value]) => {
        const fact = make("div");
        fact.append(make("dt", "", name), make("dd", "", value));
        return fact;
      }),
    );
    for (const part of this.parts) part.update();
    this.report();
  }

  /** How many ids are read in all. */
  get length() {
    return this.here.windows[this.here.windows.length - 1][2];
  }

  /** Whether the text comes in several answers, or is drawn as one that does. */
  get inPieces() {
    return this.here.steps > 1;
  }

  /**
   * What a measure is called: of tokens that are masked in turn it is another one.
   * @param {string} measure
   */
  named(measure) {
    return this.here.pseudo ? `pseudo-${measure}` : measure;
  }

  get inWindows() {
    return this.here.windows.length > 1;
  }

  /** Which token is looked at, by its place among those that are asked for: the most surprising where nobody chose. */
  get at() {
    const { surprise_at: said } = this.page.state;
    return Number.isInteger(said) && said >= 0 && said < this.tokens.length ? said : this.usual;
  }

  mostSurprising() {
    return this.tokens.reduce((best, { surprise }, i) => (surprise > this.tokens[best].surprise ? i : best), 0);
  }

  /** @param {number} at */
  look(at) {
    this.bring = true; // into view, once it is there
    this.page.go({ surprise_at: Math.max(0, Math.min(this.tokens.length - 1, at)) });
  }

  /** Bits of a guess that knows nothing: the scale of the tint ends here. */
  get blind() {
    return Math.log2(this.page.data.vocab);
  }

  /** @param {Measured | null} token */
  tip(token) {
    if (token) this.page.tip(token.piece, `${token.surprise.toFixed(2)} bits`);
    else this.page.tip(null);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || !this.found) return;
    event.preventDefault();
    this.look(this.at + by);
  }

  looked() {
    if (!this.found)
      return { where: "", sentence: this.sentence.textContent, asks: { tab: { ask: "surprise", ...this.reading } } };
    const token = this.tokens[this.at];
    const windows = this.inWindows ? ` in ${counted(this.here.windows.length, "window")}` : "";
    const sums = `${this.named("perplexity")} ${number(this.here.perplexity)}, ${this.here.pseudo ? "" : "loss "}${number(this.here.mean)} nats a token`;
    const sentence = `${counted(this.tokens.length, "token")}${windows}, ${sums}; “${token.piece}” ${token.surprise.toFixed(2)} bits`;
    return {
      where: `token ${this.at + 1} of ${this.tokens.length}`,
      sentence,
      asks: { tab: { ask: "surprise", ...this.reading, ...(!this.here.whole && { steps: this.here.count }) } },
      file: "surprise",
    };
  }
}

/**
 * A part of an answer to "surprise" behind what is `found` of it, which grows; {tokens, ...} with the first.
 * @param {Reading | null} found
 * @param {import("./streams.js").Part} part
 * @returns {Reading}
 */
function joined(found, part) {
  const read = /** @type {Reading} */ (part);
  if (!found) return { ...read, tokens: tokensOf(read, read) };
  const { count, whole, total, mean, perplexity, training } = read;
  Object.assign(found, { count, whole, total, mean, perplexity, training });
  Object.assign(found.pieces, read.pieces);
  found.tokens.push(...tokensOf(read, found));
  return found;
}

/**
 * [{id, piece, at, log, surprise, rank, entropy, rest, window, rows()}]; rows() are [{id, piece, probability}], `window` is a place in found.windows.
 * @param {Reading} found
 * @param {Reading} found
 */
function tokensOf({ arrays }, { pieces, windows }) {
  const width = arrays["top.id"].shape[1];
  let window = 0;
  /**
   * @param {number} t
   * @param {number} r
   */
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

/** One token: how probable it was, and what the model had expected instead. */
class Token {
  /**
   * @param {HTMLElement} root
   * @param {Tab} tab
   */
  constructor(root, tab) {
    this.root = root;
    this.tab = tab;
    this.title = make("h2", "step-title");
    this.where = make("span", "where");
    this.title.append(this.turn("the token before", "‹", -1), this.where, this.turn("the next token", "›", 1));
    this.facts = make("dl", "step-facts");
    this.rows = make("div", "s-rows");
    root.append(this.title, this.facts, this.rows);
  }

  /**
   * @param {string} label
   * @param {string} text
   * @param {number} by
   */
  turn(label, text, by) {
    const button = make("button", "turn", text);
    button.type = "button";
    button.setAttribute("aria-label", label);
    button.addEventListener("click", () => this.tab.look(this.tab.at + by));
    return button;
  }

  update() {
    const { tab } = this;
    const { data } = tab.page;
    const token = tab.tokens[tab.at];
    const [before, after] = this.title.querySelectorAll(".turn");
    before.disabled = tab.at === 0;
    after.disabled = tab.at === tab.tokens.length - 1;
    this.where.replaceChildren(
      `${data.grid ? "pixel" : "token"} ${(tab.at + 1).toLocaleString("en")} of ${tab.tokens.length.toLocaleString("en")} `,
      make("bdi", "token-chip", token.piece),
    );
    const facts = [
      ["probability", percent(Math.exp(token.log))],
      ["ln p", `${number(token.log)} nats`],
      ["surprise", `${number(token.surprise)} bits`],
      ["rank", `${token.rank.toLocaleString("en")} of ${data.vocab.toLocaleString("en")}`],
      [tab.here.pseudo ? "entropy there" : "entropy before it", `${number(token.entropy)} bits`],
      ...(tab.inWindows ? [["predicted from", this.from(token)]] : []),
    ];
    this.facts.replaceChildren(
      ...facts.map(([name, value]) => {
        const fact = make("div");
        fact.append(make("dt", "", name), make("dd", "", value));
        return fact;
      }),
    );
    const likely = token.rows();
    const inside = likely.some(({ id }) => id === token.id);
    const own = { id: token.id, piece: token.piece, probability: Math.exp(token.log) };
    const most = likely[0].probability;
    const rows = [...likely, ...(inside ? [] : [own])].map((row) => this.row(row, row.id === token.id, most));
    const rest = this.row(
      { id: null, piece: inside ? "all others" : "all others, with it", probability: token.rest },
      false,
      0,
    );
    this.rows.replaceChildren(
      make("h3", "", "What the model expected there"),
      ...rows,
      ...(data.vocab > likely.length ? [rest] : []),
    );
  }

  /**
   * How many tokens before it were read, and in which window.
   * @param {Measured} token
   */
  from({ at, window }) {
    const { windows } = this.tab.here;
    const count = at - windows[window][0];
    return `${count.toLocaleString("en")} ${count === 1 ? "token" : "tokens"}, window ${window + 1}`;
  }

  /**
   * @param {{ id: number | null, piece: string, probability: number }} row
   * @param {boolean} is
   * @param {number} most
   */
  row({ id, piece, probability }, is, most) {
    const row = make("div", "s-row");
    row.classList.toggle("is-chosen", is);
    row.classList.toggle("rest", id === null);
    const name = make("bdi", "piece", piece);
    if (this.tab.page.data.grid && id !== null) {
      const swatch = make("i", "swatch");
      swatch.style.background = colourOf(this.tab.page.data, id);
      name.prepend(swatch);
    }
    const track = make("span", "track");
    const bar = make("i", "bar");
    bar.style.width = most ? `${(100 * probability) / most}%` : "0";
    track.append(bar);
    row.append(name, track, make("span", "share", percent(probability)));
    return row;
  }
}

const [FIRST, LAST] = [24, 4]; // terms that are written out where there are more

/** The loss as an addition over positions, beside the one that training computes on the same text. */
class Sum {
  /**
   * @param {HTMLElement} root
   * @param {Tab} tab
   */
  constructor(root, tab) {
    this.root = root;
    this.tab = tab;
  }

  update() {
    const { tab, root } = this;
    const { found, tokens } = tab;
    if (this.drawn !== found || this.count !== tokens.length) this.build();
    for (const term of /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll(".term")))
      term.classList.toggle("picked", Number(term.dataset.index) === tab.at);
  }

  build() {
    const { tab, root } = this;
    const { here: found, tokens } = tab;
    this.drawn = found;
    this.count = tokens.length;
    const heading = make("h3", "", found.pseudo ? "Minus the pseudo-log-likelihood, added up" : "The loss, added up");
    heading.append(
      make("span", "note", ` −ln p of every token${found.pseudo ? ", with that one masked" : ""}, in nats`),
    );
    const sum = make("p", "s-addition");
    const { length } = tokens;
    const whole = length <= FIRST + LAST + 1;
    const [from, to] = whole ? [length, length] : [FIRST, length - LAST];
    const losses = tokens.map(({ log }) => -log);
    const hidden = losses.slice(from, to).reduce((total, loss) => total + loss, 0);
    const parts = [...losses.slice(0, from), ...(whole ? [] : [hidden]), ...losses.slice(to)];
    const added = equation(parts, (...all) => all.reduce((total, one) => total + one, 0), found.total);
    const shown = added.texts.map((text, i) =>
      !whole && i === from ? this.between(to - from, text) : this.term(i < from ? i : i + length - parts.length, text),
    );
    shown.forEach((term, i) => sum.append(...(i ? [" + ", term] : [term])));
    sum.append(make("b", "", ` ${added.sign} ${added.result}`));
    const count = length.toLocaleString("en");
    const mean = equation([found.total], (total) => total / length, found.mean);
    const power = equation([found.mean], Math.exp, found.perplexity);
    const times = equation([found.training], (one) => one * length, found.training * length);
    const lines = [
      ["divided by their number", `${mean.texts[0]} / ${count} ${mean.sign} ${mean.result} nats a token`],
      [`${tab.named("perplexity")}, its exponential`, `exp ${power.texts[0]} ${power.sign} ${power.result}`],
      [
        `the loss ${found.taught ? "of a training on" : "in training,"} ${found.objective}`,
        `${times.texts[0]} nats a token, times ${count} ${times.sign} ${times.result}`,
      ],
      ["they differ by", difference(found.training - found.mean)],
    ];
    const list = make("dl", "s-lines");
    for (const [name, value] of lines) list.append(make("dt", "", name), make("dd", "", value));
    root.replaceChildren(heading, sum, list, ...(found.taught ? [make("p", "sentence", found.taught)] : []));
  }

  /**
   * @param {number} index
   * @param {string} text
   */
  term(index, text) {
    const { piece } = this.tab.tokens[index];
    const term = make("button", "term", text);
    term.type = "button";
    term.dataset.index = index;
    term.title = piece;
    term.addEventListener("click", () => this.tab.look(index));
    return term;
  }

  /**
   * @param {number} count
   * @param {string} text
   */
  between(count, text) {
    return make("span", "between", `${text} (${count.toLocaleString("en")} more)`);
  }
}

/**
 * How many tokens a window reads, how far apart two begin, and how many tokens at least stand before one that is predicted behind the first.
 * @param {Window[]} windows
 */
function spread(windows) {
  const [, , most] = windows[0];
  const stride = windows[1][0];
  return { most, stride, least: most - stride };
}

/** How a text is read that is not predicted in one go: in windows, or each token masked in turn; how far that is, and a button that stops it. */
class Windows {
  /** @param {Tab} tab */
  constructor(tab) {
    this.tab = tab;
    this.element = make("div", "s-windows");
    this.about = make("p", "s-windows-about");
    this.button = make("button", "write-button quiet");
    this.button.type = "button";
    this.button.addEventListener(
      "click",
      (/** @type {MouseEvent} */ { detail }) => detail < 2 && (tab.measuring ? tab.stop() : tab.goOn()),
    );
    this.told = make("p", "s-windows-told");
    this.told.setAttribute("role", "status");
    const line = make("div", "s-windows-line");
    line.append(this.button, this.told);
    this.line = line;
    this.element.append(this.about, line);
  }

  update() {
    const { tab } = this;
    const { found, page, tokens } = tab;
    this.element.hidden = found ? !(tab.inPieces || tab.inWindows || found.pseudo) : !tab.isAwaited;
    if (this.element.hidden || (found && tab.shown !== tab.coming)) return;
    const about = !found ? "" : tab.inWindows ? windowed(found, tab.length) : found.pseudo ? masked(found) : "";
    if (this.about.textContent !== about) this.about.textContent = about;
    this.line.hidden = Boolean(found?.whole);
    if (this.line.hidden) return;
    this.button.hidden = page.alone;
    this.button.textContent = tab.measuring ? "Stop" : "Continue";
    if (!found) return this.told.replaceChildren();
    const windows = tab.inWindows
      ? `${found.count.toLocaleString("en")} of ${counted(found.windows.length, "window")}, `
      : "";
    const done = `${windows}${tokens.length.toLocaleString("en")} of ${counted(found.asked, "token")}`;
    this.told.textContent = tab.measuring ? `Read so far: ${done}.` : `Stopped after ${done}; the sums are of those.`;
  }
}

/**
 * @param {Reading} found
 * @param {number} length
 */
function windowed({ windows }, length) {
  const { most, stride, least } = spread(windows);
  const [reads, low, high] = [most, least, most - 1].map((one) => one.toLocaleString("en"));
  return `The text has ${counted(length, "token")}, and the model reads ${reads} at a time: it is read in ${counted(windows.length, "window")}, each ${counted(stride, "token")} after the one before. After the first, every token is predicted from the ${low === high ? low : `${low} to ${high}`} ${high === "1" ? "token" : "tokens"} before it.`;
}

/** @param {Reading} found */
function masked({ asked }) {
  const each = asked === 1 ? "its one token is masked" : `each of its ${counted(asked, "token")} is masked in turn`;
  return `The model sees the text from both sides: ${each}, and predicted from everything before and after it. That adds up to the pseudo-log-likelihood (Salazar et al. 2020), which compares with others of its kind and with no loss of a model that writes.`;
}

// One token: how probable it was, and what the model had expected instead.
import { make } from "../core/dom.js";
import { number, percent } from "../core/format.js";
import { colourOf } from "./pixels.js";

export function mount(root, tab) {
  return new Token(root, tab);
}

class Token {
  constructor(root, tab) {
    Object.assign(this, { root, tab });
    this.title = make("h2", "step-title");
    this.where = make("span", "where");
    this.title.append(this.turn("the token before", "‹", -1), this.where, this.turn("the next token", "›", 1));
    this.facts = make("dl", "step-facts");
    this.rows = make("div", "s-rows");
    root.append(this.title, this.facts, this.rows);
  }

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
    this.where.replaceChildren(`${data.grid ? "pixel" : "token"} ${(tab.at + 1).toLocaleString("en")} of ${tab.tokens.length.toLocaleString("en")} `, make("bdi", "token-chip", token.piece));
    const facts = [
      ["probability", percent(Math.exp(token.log))],
      ["ln p", `${number(token.log)} nats`],
      ["surprise", `${number(token.surprise)} bits`],
      ["rank", `${token.rank.toLocaleString("en")} of ${data.vocab.toLocaleString("en")}`],
      [tab.found.pseudo ? "entropy there" : "entropy before it", `${number(token.entropy)} bits`],
      ...(tab.inWindows ? [["predicted from", this.from(token)]] : []),
    ];
    this.facts.replaceChildren(...facts.map(([name, value]) => {
      const fact = make("div");
      fact.append(make("dt", "", name), make("dd", "", value));
      return fact;
    }));
    const likely = token.rows();
    const inside = likely.some(({ id }) => id === token.id);
    const own = { id: token.id, piece: token.piece, probability: Math.exp(token.log) };
    const most = likely[0].probability;
    const rows = [...likely, ...(inside ? [] : [own])].map((row) => this.row(row, row.id === token.id, most));
    const rest = this.row({ id: null, piece: inside ? "all others" : "all others, with it", probability: token.rest }, false, 0);
    this.rows.replaceChildren(make("h3", "", "What the model expected there"), ...rows, ...(data.vocab > likely.length ? [rest] : []));
  }

  /** How many tokens before it were read, and in which window. */
  from({ at, window }) {
    const { windows } = this.tab.found;
    const count = at - windows[window][0];
    return `${count.toLocaleString("en")} ${count === 1 ? "token" : "tokens"}, window ${window + 1}`;
  }

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

// The loss as an addition over positions, beside the one that training computes on the same text.
import { make } from "../core/dom.js";
import { difference, number } from "../core/format.js";

const [FIRST, LAST] = [24, 4]; // terms that are written out where there are more

export function mount(root, tab) {
  return new Sum(root, tab);
}

class Sum {
  constructor(root, tab) {
    Object.assign(this, { root, tab });
  }

  update() {
    const { tab, root } = this;
    const { found, tokens } = tab;
    if (this.drawn !== found || this.count !== tokens.length) this.build();
    for (const term of root.querySelectorAll(".term")) term.classList.toggle("picked", Number(term.dataset.index) === tab.at);
  }

  build() {
    const { tab, root } = this;
    const { found, tokens } = tab;
    Object.assign(this, { drawn: found, count: tokens.length });
    const heading = make("h3", "", found.pseudo ? "Minus the pseudo-log-likelihood, added up" : "The loss, added up");
    heading.append(make("span", "note", ` −ln p of every token${found.pseudo ? ", with that one masked" : ""}, in nats`));
    const sum = make("p", "s-addition");
    const terms = (from, to) => tokens.slice(from, to).map((token, i) => this.term(token, from + i));
    const { length } = tokens;
    const shown = length <= FIRST + LAST + 1 ? terms(0, length) : [...terms(0, FIRST), this.between(length - FIRST - LAST), ...terms(length - LAST, length)];
    shown.forEach((term, i) => sum.append(...(i ? [" + ", term] : [term])));
    sum.append(make("b", "", ` = ${number(found.total)}`));
    const lines = [
      ["divided by their number", `${number(found.total)} / ${tokens.length.toLocaleString("en")} = ${number(found.mean)} nats a token`],
      [`${tab.named("perplexity")}, its exponential`, `exp ${number(found.mean)} = ${number(found.perplexity)}`],
      [`the loss ${found.taught ? "of a training on" : "in training,"} ${found.objective}`, `${number(found.training)} nats a token, times ${tokens.length.toLocaleString("en")} = ${number(found.training * tokens.length)}`],
      ["they differ by", difference(found.training - found.mean)],
    ];
    const list = make("dl", "s-lines");
    for (const [name, value] of lines) list.append(make("dt", "", name), make("dd", "", value));
    root.replaceChildren(heading, sum, list, ...(found.taught ? [make("p", "sentence", found.taught)] : []));
  }

  term({ log, piece }, index) {
    const term = make("button", "term", number(-log));
    term.type = "button";
    term.dataset.index = index;
    term.title = piece;
    term.addEventListener("click", () => this.tab.look(index));
    return term;
  }

  between(count) {
    return make("span", "between", `(${count.toLocaleString("en")} more)`);
  }
}

// How the search goes: the tab's own controls, kept in the address, and links to the examples that are shipped.
import { choices } from "../components/choices.js";
import { make } from "../core/dom.js";

const USUAL = { beams: 4, penalty: 1, best: 3, early: "no", tokens: 20 };
const FIELDS = {
  beams: { title: "beams", min: 1, max: 10, step: 1, about: "how many hypotheses go on at each step" },
  penalty: { title: "length penalty", min: -2, max: 5, step: 0.1, about: "the sum of log-probabilities is divided by the length to this power: 0 favours short texts, greater ones long texts" },
  best: { title: "n best", min: 1, max: 10, step: 1, about: "how many of the finished texts are given" },
  tokens: { title: "most tokens", min: 1, max: 64, step: 1, about: "what is unfinished then counts as finished" },
};
const EARLY = [
  ["no", "no", "it ends when the best that goes on, scored at its length, is behind the worst of the finished"],
  ["yes", "yes", "it ends as soon as as many texts as beams are finished"],
  ["never", "never", "as “no”, but scored at the greatest length where the penalty favours long texts: only this is exact"],
];

/** What the address says of the search, and the usual where it says nothing that makes sense. */
export function wanted(page) {
  const { state, data } = page;
  const found = { early: EARLY.some(([one]) => one === state.beam_early) ? state.beam_early : USUAL.early };
  for (const [name, { min, max, step }] of Object.entries(FIELDS)) {
    const value = state[`beam_${name}`];
    const fits = Number.isFinite(value) && value >= min && value <= max && (step < 1 || Number.isInteger(value));
    found[name] = fits ? value : USUAL[name];
  }
  return { ...found, best: Math.min(found.best, found.beams), stop_at: data.grid ? "" : data.settings.stop_at };
}

export function mount(page) {
  return new Controls(page);
}

class Controls {
  constructor(page) {
    this.page = page;
    this.element = make("div", "beam-controls");
    this.fields = Object.fromEntries(Object.entries(FIELDS).map(([name, field]) => [name, this.field(name, field)]));
    this.early = choices("early stopping", EARLY, (value) => this.set("early", value));
    const early = make("div", "beam-field");
    early.append(make("span", "", "early stopping"), this.early.element);
    this.stops = make("p", "beam-stops");
    this.links = make("p", "beam-links");
    this.element.append(this.fields.beams.label, this.fields.penalty.label, this.fields.best.label, early, this.fields.tokens.label, this.stops, this.links);
  }

  field(name, { title, min, max, step, about }) {
    const label = make("label", "beam-field");
    const input = make("input");
    Object.assign(input, { type: "number", min, max, step, inputMode: "decimal" });
    input.title = about;
    input.addEventListener("change", () => {
      const value = Math.min(Number(input.max), Math.max(min, step < 1 ? input.valueAsNumber : Math.round(input.valueAsNumber)));
      if (Number.isFinite(value)) this.set(name, value);
      else this.update(this.query, this.examples);
    });
    label.append(make("span", "", title), input);
    label.title = about;
    return { label, input };
  }

  /** A step or a node that was looked at belongs to another search. */
  set(name, value) {
    this.page.go({ [`beam_${name}`]: value === USUAL[name] ? null : value, beam_step: null, beam_node: null });
    this.update(this.query, this.examples);
  }

  update(query, examples) {
    Object.assign(this, { query, examples });
    const now = wanted(this.page);
    for (const [name, { input }] of Object.entries(this.fields)) input.value = now[name];
    this.fields.best.input.max = now.beams;
    this.early.show(now.early);
    const strings = now.stop_at.split("|").filter(Boolean).map((one) => `“${one}”`);
    const only = strings.length ? `, only the stop string ${strings.join(" or ")} counts` : ", only a stop string would count";
    const pictures = "All that is finished has one length here, so the length penalty changes no order.";
    this.stops.textContent = this.page.data.grid ? pictures : `The search draws nothing at random: of the row above${only}.`;
    this.showLinks(examples);
  }

  /** Of a file that works alone nobody can go elsewhere. */
  showLinks(examples) {
    const shown = location.protocol === "file:" ? [] : examples;
    const name = JSON.stringify(shown);
    if (name === this.linked) return;
    this.linked = name;
    const links = shown.map(({ model, text, stop_at, tokens, beams }) => {
      const link = make("a", "", model);
      const query = new URLSearchParams({ model, text, ...(stop_at && { stop_at }) });
      const hash = new URLSearchParams({ view: "beam", beam_tokens: tokens, ...(beams !== USUAL.beams && { beam_beams: beams }) });
      link.href = `${location.pathname}?${query}#${hash}`;
      link.title = text;
      return link;
    });
    this.links.replaceChildren(...(links.length ? ["Where greedy misses the best text: ", ...links.flatMap((link, i) => (i ? [" · ", link] : [link]))] : []));
  }
}

// The distribution before and after, candidate by candidate, and the sentence that sums it up.
import { make } from "../core/dom.js";
import { called } from "./effects_called.js";
import { number, percent } from "../core/format.js";
import { request } from "../core/store.js";

/** The changed distributions of a payload, by row, with those that were asked for since. */
export class Shifts {
  constructor({ trace, arrays, head }) {
    Object.assign(this, { trace, head, names: { ...head.names }, rows: new Map() });
    this.take(arrays);
  }

  take(arrays) {
    const [count, listed] = arrays["shift.id"].shape;
    for (let i = 0; i < count; i++) {
      const candidates = Array.from({ length: listed }, (_, j) => {
        const at = i * listed + j;
        const [logit, p] = ["logit", "p"].map((part) => arrays[`shift.${part}`].data.subarray(2 * at, 2 * at + 2));
        return { id: arrays["shift.id"].data[at], logit, p };
      });
      this.rows.set(arrays["shift.row"].data[i], { candidates, kl: arrays["shift.kl"].data[i], variation: arrays["shift.variation"].data[i] });
    }
  }

  /** Whether the change of every one of `count` positions is here. */
  complete(count) {
    return this.rows.size >= count;
  }

  has(row) {
    return this.rows.has(row);
  }

  async fetch(row) {
    if (this.has(row)) return;
    const { arrays, names } = await request({ effects: "row", row, trace: this.trace });
    Object.assign(this.names, names);
    this.take(arrays);
  }

  name({ id }) {
    return this.names[id] ?? `#${id}`;
  }

  /** The likeliest candidate of a run: 0 before, 1 after. */
  likeliest(row, run) {
    return this.rows.get(row).candidates.reduce((best, one) => (one.p[run] > best.p[run] ? one : best));
  }
}

/** What the head is asked at a position, in words. */
export function asked({ data }, row) {
  const { reads, link } = data.head;
  if (link === "identity") return "The score";
  if (reads === "class") return "The class";
  if (reads === "answer") return row ? "Where the answer ends" : "Where the answer starts";
  const piece = called(data.lanes.at(-1), row);
  return reads === "next" ? `After ${piece}` : `At ${piece}`;
}

export function headline(page) {
  const { shifts, shown: row, data } = page;
  const element = make("p", "headline");
  if (page.failed) return make("p", "headline", page.failed);
  const { kl, variation, candidates } = shifts.rows.get(row);
  const question = make("span", "asked", `${asked(page, row)}: `);
  if (data.head.link !== "softmax") {
    const value = ({ logit, p }, run) => (data.head.link === "identity" ? number(logit[run]) : `${shifts.name(candidates[0])} ${percent(p[run])}`);
    element.append(question, make("strong", "", `${value(candidates[0], 0)} → ${value(candidates[0], 1)}`));
    return element;
  }
  const [old, now] = [0, 1].map((run) => shifts.likeliest(row, run));
  const token = (one, run) => {
    const span = make("span", "likely");
    span.append(make("bdi", "", shifts.name(one)), make("span", "p", percent(one.p[run])));
    return span;
  };
  element.append(question, token(old, 0), make("span", "arrow", "→"), token(now, 1));
  const same = old.id === now.id ? "the likeliest stays" : "the likeliest changes";
  const measured = `${same} · KL ${bits(kl)} · ${percent(variation)} of the probability moved`;
  element.append(make("span", "measured", measured));
  return element;
}

function bits(kl) {
  return Number.isFinite(kl) ? `${number(kl)} bits` : `${number(kl)} bits`.replace("∞ bits", "∞");
}

/** The panel of candidates: p before and after as paired bars, the changes as numbers. */
export function distribution(page) {
  const { shifts, shown: row, data } = page;
  const element = make("section", "distribution");
  const heading = make("h4", "", `${asked(page, row)}: before and after`);
  element.append(heading);
  if (data.head.reads === "answer") element.append(lists(page));
  const { candidates } = shifts.rows.get(row);
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
  const shown = bare ? [number(logit[0]), number(logit[1])] : [percent(p[0]), percent(p[1]), signed(p[1] - p[0], percent)];
  const cells = [...shown, signed(logit[1] - logit[0], number)].map((text) => make("td", "number", text));
  if (!bare) cells[2].classList.add(p[1] >= p[0] ? "more" : "less");
  row.append(piece, bars, ...cells);
  return row;
}

function signed(x, written) {
  return x === 0 ? "0" : `${x > 0 ? "+" : "−"}${written(Math.abs(x))}`;
}

function key() {
  const element = make("p", "key");
  element.append(make("span", "swatch before"), "before", make("span", "swatch after"), "after");
  return element;
}

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

// Long sequences: what each kind of attention costs as the length grows, what it keeps of a head's pattern, and what a search finds.
import * as address from "../core/address.js";
import { at, mountCells } from "../components/cells.js";
import { CHART_CSS } from "../components/chart.js";
import { bytes, CostChart, glyph, SERIES, time } from "../components/cost_chart.js";
import { make, range, section } from "../core/dom.js";
import { percent } from "../core/format.js";
import { curve, css, ramp, STEPS } from "../core/palette.js";
import { CSS } from "./style.js";
import { request } from "../core/store.js";

const GAP = 28;
const LEAST = { chart: 420, pattern: 150 }; // CSS pixels
const MOST = 260; // of a pattern
const WRITTEN = { "multiply-adds a query": 0, "look-ups a query": 0, "µs a query": 1, "kept, MB": 2 }; // decimals; 3 of any other

/** data is the payload of views/long_sequences.py. */
export function mount(root, data) {
  const page = new Lengths(root);
  page.update(data);
  return page;
}

class Lengths {
  constructor(root) {
    this.element = make("div", "lengths");
    this.hidden = new Set(); // kinds that are switched off
    this.state = address.read();
    this.charts = make("section", "costs");
    this.patterns = make("section", "kept");
    this.table = make("section", "searches");
    this.element.append(this.charts, this.patterns, this.table);
    root.append(make("style", "", CHART_CSS + CSS), this.element);
    this.resize = new ResizeObserver(() => this.element.clientWidth !== this.width && this.build());
    this.resize.observe(this.element);
    this.unfollow = address.follow((state) => this.turn(state));
  }

  destroy() {
    this.resize.disconnect();
    this.unfollow();
    this.element.remove();
  }

  update(data) {
    this.data = data;
    this.answers = new Map([[`${data.look.layer} ${data.look.head}`, { kept: data.kept, arrays: data.arrays }]]);
    this.fit();
    this.build();
    this.ask();
  }

  /** What the address asks for and is not here. */
  missed(state) {
    const [layers, heads] = this.data.heads;
    const size = this.data.pieces.length;
    const sizes = { layer: ["block", layers], head: ["head", heads], query: ["row", size], key: ["column", size] };
    return Object.entries(sizes)
      .filter(([name, [, most]]) => state[name] !== undefined && !isPlace(state[name], most))
      .map(([name, [word, most]]) => `${word} ${Number.isInteger(state[name]) ? state[name] + 1 : JSON.stringify(state[name])} is not here, there are ${most}`);
  }

  /** Puts what is looked at inside what there is. */
  fit() {
    const { data, state } = this;
    const [layers, heads] = data.heads;
    if (!isPlace(state.layer, layers)) state.layer = data.look.layer;
    if (!isPlace(state.head, heads)) state.head = data.look.head;
    const size = data.pieces.length;
    if (!isPlace(state.query, size)) state.query = size - 1;
    if (!isPlace(state.key, size)) state.key = undefined; // the strongest of the row, once it is here
  }

  turn(change) {
    Object.assign(this.state, change);
    this.fit();
    this.pick();
    this.ask();
  }

  remember() {
    const { layer, head, query, key } = this.state;
    address.write({ layer, head, query, key });
  }

  build() {
    this.width = this.element.clientWidth;
    if (!this.width) return;
    const two = this.width >= 2 * LEAST.chart + GAP;
    this.wide = two ? Math.floor((this.width - GAP) / 2) : this.width;
    this.drawCosts();
    this.drawPatterns();
    this.drawSearches();
    this.element.dataset.ready = "true";
  }

  // --- time and memory ------------------------------------------------------------------------------------------------------

  drawCosts() {
    const { data } = this;
    const row = make("div", "two");
    for (const [what, title, text] of [["seconds", "Time of one layer", time], ["bytes", "Memory at the peak", bytes]]) {
      const part = section(title);
      part.style.width = `${this.wide}px`;
      part.append(new CostChart({ data, what, text, width: this.wide, hidden: this.hidden }).element);
      row.append(part);
    }
    const legend = make("div", "kinds");
    data.kinds.forEach(([, name], i) => {
      const button = make("button", "kind");
      button.type = "button";
      button.style.setProperty("--hue", `var(--${SERIES[i]})`);
      button.setAttribute("aria-pressed", String(!this.hidden.has(name)));
      button.append(glyph(i), make("span", "", name));
      button.addEventListener("click", () => {
        this.hidden.has(name) ? this.hidden.delete(name) : this.hidden.add(name);
        this.drawCosts();
        this.charts.querySelectorAll(".kind")[i].focus();
      });
      legend.append(button);
    });
    const most = data.most / 2 ** 30;
    const note = make("p", "note-of", `Points are measured here, on all heads of one layer, from the queries to the result. Dashes are the formulas, those of time at the rate of the longest point measured. What would take more than ${most} GiB is not measured.`);
    this.charts.replaceChildren(row, legend, note);
  }

  // --- patterns -------------------------------------------------------------------------------------------------------------

  async ask() {
    const { data, state } = this;
    const name = `${state.layer} ${state.head}`;
    const known = this.answers.get(name);
    if (known) return this.show(known);
    this.patterns.classList.add("waiting");
    try {
      const answer = await request({ lengths: data.take.trace, layer: state.layer, head: state.head });
      if (data !== this.data) return;
      this.answers.set(name, answer);
      if (name === `${state.layer} ${state.head}`) this.show(answer);
    } catch (error) {
      if (data === this.data && name === `${state.layer} ${state.head}`) this.refuse(error.message);
    }
  }

  show(answer) {
    this.shown = answer;
    this.refused = "";
    this.patterns.classList.remove("waiting");
    this.drawPatterns();
  }

  refuse(sentence) {
    this.patterns.classList.remove("waiting");
    this.shown = null;
    this.refused = sentence;
    this.drawPatterns();
  }

  drawPatterns() {
    if (!this.width || !(this.shown || this.refused)) return;
    const focused = this.patterns.contains(this.patterns.getRootNode().activeElement) && this.patterns.getRootNode().activeElement.className;
    const heading = make("div", "kept-head");
    heading.append(make("h3", "", "What each keeps"), this.chooser(), this.legend());
    const row = make("div", "panels");
    row.tabIndex = 0;
    row.setAttribute("role", "group");
    row.setAttribute("aria-label", "the patterns; arrow keys move the chosen cell in all of them");
    row.addEventListener("keydown", (event) => this.key(event));
    this.between = make("p", "between");
    this.between.setAttribute("aria-live", "polite");
    const [high, wide] = this.data.grid;
    const note = make("p", "note-of", `One head on the first ${this.data.pieces.length} tokens of the text: each query is a row, each key a column, and where a query may not look there is the ground. What is left of a row is divided by its sum. For the blocks the text is laid out as an image of ${high} rows of ${wide}.`);
    this.patterns.replaceChildren(heading, this.refused ? make("p", "refused", this.refused) : row, this.between, note);
    this.panels = (this.shown?.kept ?? []).map((part) => this.panel(row, part)); // once the row is in the page, which has the colours
    if (focused) this.patterns.querySelector(`.${focused}`)?.focus({ preventScroll: true });
    this.pick();
  }

  chooser() {
    const [layers, heads] = this.data.heads;
    const select = make("select", "head-of");
    select.setAttribute("aria-label", "head");
    for (const layer of range(0, layers)) {
      for (const head of range(0, heads)) select.append(Object.assign(make("option", "", `block ${layer + 1}, head ${head + 1}`), { value: layer * heads + head }));
    }
    select.value = this.state.layer * heads + this.state.head;
    select.addEventListener("change", () => {
      const place = Number(select.value);
      Object.assign(this.state, { layer: Math.floor(place / heads), head: place % heads, key: undefined });
      this.remember();
      this.ask();
    });
    return select;
  }

  legend() {
    const element = make("p", "ramp-of");
    const table = ramp(this.element, "attention", "unit");
    const stops = range(0, 9).map((i) => css(table[Math.round(curve(i / 8) ** 2 * (STEPS - 1))]));
    const bar = make("span", "bar-of");
    bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    element.append("0", bar, `${this.data.brightest} and more`);
    return element;
  }

  panel(row, part) {
    const count = this.shown.kept.length;
    const fits = Math.max(1, Math.min(count, Math.floor((this.width + 18) / (LEAST.pattern + 18))));
    const size = Math.min(MOST, Math.floor((this.width + 18) / fits) - 18);
    const figure = make("figure", "pattern-of");
    figure.style.width = `${size}px`;
    row.append(figure);
    const place = make("div");
    const first = make("div", "first-of");
    const weight = make("output", "weight-of");
    first.append(make("strong", "", part.title), weight);
    const said = make("figcaption", "", `keeps ${percent(part.mass)} of the attention in ${percent(part.cells)} of the cells`);
    figure.append(first, place, said);
    const block = blockOf(this.shown.arrays[`pattern.${part.name}`]);
    const pitch = size / block.rows;
    const label = `${part.title}: ${block.rows} queries down, ${block.cols} keys across`;
    const cells = mountCells(place, {
      block, role: "attention", scale: "unit", max: this.data.brightest, width: size, pitch, height: pitch, label, hidden: (r, c) => Number.isNaN(at(block, r, c)),
    }, (event, where) => this.pointed(event, where));
    return { cells, block, weight };
  }

  pointed(event, where) {
    if (event === "pick") {
      Object.assign(this.state, { query: where.row, key: where.col });
      this.remember();
    }
    this.hover = event === "hover" ? where : null;
    this.pick();
  }

  /** The cell that is pointed at, else the chosen one, in every pattern. */
  pick() {
    if (!this.panels?.length) return;
    const { state } = this;
    if (state.key === undefined) state.key = strongest(this.panels[0].block, state.query);
    const [row, col] = this.hover ? [this.hover.row, this.hover.col] : [state.query, state.key];
    for (const { cells, block, weight } of this.panels) {
      cells.mark({ picked: { row, col }, lit: col, row });
      const value = at(block, row, col);
      weight.textContent = Number.isNaN(value) ? "not seen" : percent(value);
    }
    const { pieces } = this.data;
    const end = (role, piece, place) => {
      const named = make("span", `role-${role}`);
      named.append(make("bdi", "", piece), make("small", "", ` ${place}`));
      return named;
    };
    this.between.replaceChildren("query ", end("query", pieces[row], row), " → key ", end("key", pieces[col], col));
  }

  key(event) {
    const [down, across] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [0, 0];
    if (!(down || across)) return;
    event.preventDefault();
    const inside = (place) => Math.max(0, Math.min(this.data.pieces.length - 1, place));
    const by = event.shiftKey ? 10 : 1;
    Object.assign(this.state, { query: inside(this.state.query + by * down), key: inside(this.state.key + by * across) });
    this.hover = null;
    this.remember();
    this.pick();
  }

  // --- searches -------------------------------------------------------------------------------------------------------------

  drawSearches() {
    const { searches, reached } = this.data;
    const table = make("table");
    const names = Object.keys(searches[0]);
    const head = table.createTHead().insertRow();
    for (const name of names) head.append(Object.assign(make("th", "", name), { scope: "col" }));
    const body = table.createTBody();
    for (const one of searches) {
      const row = body.insertRow();
      names.forEach((name, i) => row.append(make(i ? "td" : "th", "", i ? figure(one[name], WRITTEN[name] ?? 3) : one[name])));
    }
    const box = make("div", "scrolls");
    box.append(table);
    const note = make("p", "note-of", "recall@k: the share of the true k nearest among the k found, over queries of all heads at 128 places in the text. The index can do without the states if nothing is compared again.");
    this.table.replaceChildren(make("h3", "", `What a search finds among ${reached.toLocaleString("en")} states`), box, note);
  }

  // --- to be taken away (take_shown.js) -----------------------------------------------------------------------------------------

  looked() {
    const { layer, head } = this.state;
    const lengths = this.data.measured.map((point) => point.length);
    const measured = `Measured from ${Math.min(...lengths).toLocaleString("en")} to ${Math.max(...lengths).toLocaleString("en")} positions; the patterns are those of block ${layer + 1}, head ${head + 1}.`;
    return { where: "", what: "", sentence: measured, asks: { layer, head } };
  }

}

function blockOf({ data, shape: [rows, cols] }) {
  return { data, offset: 0, stride: cols, rows, cols };
}

function strongest(block, row) {
  const values = range(0, block.cols).map((col) => at(block, row, col));
  return values.reduce((best, value, col) => (value > values[best] ? col : best), 0);
}

function figure(value, decimals) {
  return value === null ? "—" : value.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

function isPlace(value, size) {
  return Number.isInteger(value) && value >= 0 && value < size;
}

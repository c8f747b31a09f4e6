// Zero-, one- and few-shot prompts: rows drawn from a table stand before a query, and the model goes on with it.
import { make } from "../core/dom.js";
import { Accuracy } from "./accuracy.js";
import { Answered } from "./answered.js";
import { inputOf, selectOf } from "./fields.js";

const [MOST_K, OWN, FIRST_K] = [8, "your own", 4];
const [QUERY, SEEDS] = [200, 2 ** 31]; // characters; how many there are
const LONGEST = 4000; // characters of a person's own rows, which stand in the address
const EXAMPLE = "red: rouge\nblue: bleu\ngreen: vert\nwhite: blanc";

export function mount(root, tab) {
  return new Shots(root, tab);
}

class Shots {
  constructor(root, tab) {
    Object.assign(this, { root, tab, page: tab.page });
    this.build();
  }

  build() {
    const { page } = this;
    const bar = make("div", "p-fields");
    this.model = selectOf("model", (value) => page.go({ p_model: value }));
    this.table = selectOf("table", (value) => page.go({ p_table: value, p_query: null }));
    this.query = inputOf("query", "text", (value) => page.go({ p_query: value || null }));
    this.query.input.setAttribute("list", "p-queries");
    this.query.input.maxLength = QUERY;
    this.queries = make("datalist");
    this.queries.id = "p-queries";
    this.k = inputOf("examples K", "range", (value) => page.go({ p_k: Number(value) }));
    this.count = make("output", "p-count");
    this.k.element.append(this.count);
    this.again = make("button", "p-button", "Other examples");
    this.again.type = "button";
    this.again.addEventListener("click", () => page.go({ p_seed: (this.asked.seed + 1) % SEEDS }));
    bar.append(this.model.element, this.table.element, this.query.element, this.queries, this.k.element, this.again);
    const [left, middle, right] = ["p-rows", "p-prompt", "p-measured"].map((name) => make("section", name));
    this.about = make("p", "p-about");
    this.rows = make("div", "p-table");
    this.own = make("textarea", "p-own");
    this.own.rows = 12;
    this.own.maxLength = LONGEST;
    this.own.setAttribute("aria-label", "rows of your own: an input, a colon and its output, a row a line");
    this.own.addEventListener("input", () => this.later(() => page.go({ p_rows: this.own.value })));
    left.append(make("h3", "", "The table"), this.about, this.rows, this.own);
    this.prompt = make("div", "p-text");
    this.said = make("p", "p-said");
    this.answer = new Answered(page, "what the model writes");
    middle.append(make("h3", "", "The prompt, and the model’s answer"), this.prompt, this.said, this.answer.element);
    this.accuracy = new Accuracy(right, this.page);
    const body = make("div", "p-body");
    body.append(left, middle, right);
    this.root.append(bar, body);
  }

  destroy() {
    clearTimeout(this.waiting);
    this.accuracy.stop();
    this.wanted = null;
  }

  later(work) {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(work, 300);
  }

  get tables() {
    return this.tab.offered.tables;
  }

  /** What is asked now, as far as the address makes sense. */
  get asked() {
    const { p_model, p_table, p_k, p_query, p_seed, p_rows } = this.page.state;
    const { models } = this.tab.offered;
    const table = this.tables.find(({ name }) => name === p_table);
    const own = p_table === OWN;
    const text = typeof p_rows === "string" ? p_rows.slice(0, LONGEST) : EXAMPLE;
    const rows = own ? rowsOf(text) : (table ?? this.tables[0]).rows;
    const most = Math.max(0, Math.min(MOST_K, rows.length - 1));
    return {
      model: models.includes(p_model) ? p_model : models[0],
      source: own ? { rows: text } : { table: (table ?? this.tables[0]).name },
      about: own ? "Your own rows: an input, a colon and its output, a row a line." : (table ?? this.tables[0]).about,
      rows,
      most,
      k: Math.min(most, Number.isInteger(p_k) && p_k >= 0 ? p_k : FIRST_K),
      query: (["string", "number"].includes(typeof p_query) && String(p_query).trim().slice(0, QUERY)) || (rows[0]?.[0] ?? ""),
      seed: Number.isInteger(p_seed) && p_seed >= 0 && p_seed < SEEDS ? p_seed : 0,
    };
  }

  update() {
    const { asked } = this;
    const name = asked.source.table ?? OWN;
    this.model.show(this.tab.offered.models, asked.model);
    this.table.show([...this.tables.map((one) => one.name), OWN], name);
    this.query.show(asked.query);
    this.queries.replaceChildren(...asked.rows.map(([input]) => Object.assign(make("option"), { value: input })));
    Object.assign(this.k.input, { min: 0, max: asked.most, step: 1, value: asked.k });
    this.count.textContent = `${asked.k} of ${asked.most}`;
    this.again.disabled = asked.k === 0;
    this.about.textContent = asked.about;
    this.own.hidden = name !== OWN;
    this.rows.hidden = name === OWN;
    if (name === OWN && this.own.getRootNode().activeElement !== this.own) this.own.value = asked.source.rows;
    this.accuracy.update(asked);
    this.ask(asked);
  }

  async ask({ model, source, k, query, seed, rows }) {
    const wanted = JSON.stringify([this.page.data.trace, model, source, k, query, seed]);
    if (wanted === this.wanted) return;
    this.wanted = wanted;
    this.tell(rows, query, []);
    try {
      const answer = await this.page.request({ ask: "few_shot", model, ...source, k, query, seed });
      if (wanted !== this.wanted) return;
      this.tell(rows, query, answer.examples);
      this.show(answer, query);
    } catch (error) {
      if (wanted !== this.wanted) return;
      this.prompt.replaceChildren();
      this.found = null;
      this.said.textContent = error.message;
      this.answer.show(null);
    }
  }

  /** The table's rows; those that stand in the prompt and that of the query are marked. */
  tell(rows, query, examples) {
    const taken = new Set(examples.map(([input]) => input));
    this.rows.replaceChildren(...rows.map(([input, output]) => {
      const row = make("button", "p-row");
      row.type = "button";
      row.classList.toggle("taken", taken.has(input));
      row.classList.toggle("asked", input === query);
      row.title = "ask this one";
      row.append(make("bdi", "", input), make("bdi", "", output));
      row.addEventListener("click", () => this.page.go({ p_query: input }));
      return row;
    }));
  }

  show(answer, query) {
    this.found = answer;
    const lines = answer.examples.map(([input, output]) => {
      const line = make("div", "p-line example");
      line.append(make("bdi", "", input), ": ", make("bdi", "", output));
      return line;
    });
    const last = make("div", "p-line query");
    const mark = answer.expected === null ? "" : answer.written === answer.expected ? " right" : " wrong";
    last.append(make("bdi", "", query), ": ", make("bdi", `p-answer${mark}`, answer.written || "(nothing)"));
    this.prompt.replaceChildren(...lines, last);
    const right = answer.written === answer.expected;
    this.said.textContent = answer.expected === null ? "The query stands in no row, so nothing says what is right." : right ? "Right." : `Wrong: “${answer.expected}” belongs there.`;
    this.answer.show(answer);
  }

  looked() {
    const { model, source, k, query, seed } = this.asked;
    const shown = this.found ? `${model}, ${k} examples, “${query}”: “${this.found.written}”${this.found.written === this.found.expected ? ", right" : ""}` : "";
    return { where: `${source.table ?? OWN}, ${k} examples`, sentence: shown, asks: { part: "shots", model, ...source, k, query, seed, measured: this.accuracy.asks }, file: "prompt" };
  }
}

/** As engine/prompting.py reads them: what is no row is told by the server. */
function rowsOf(text) {
  return text.split("\n").filter((line) => line.includes(":")).map((line) => [line.slice(0, line.indexOf(":")).trim(), line.slice(line.indexOf(":") + 1).trim()]);
}

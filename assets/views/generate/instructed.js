// One text under each instruction that a model knows, and under none; how often it is right on sentences that it never read.
import { make } from "../core/dom.js";
import { percent } from "../core/format.js";
import { Answered } from "./answered.js";
import { inputOf, selectOf } from "./fields.js";

const FIRST = "le chat noir dort";
const LONGEST = 400; // characters

export function mount(root, tab) {
  return new Instructed(root, tab);
}

class Instructed {
  constructor(root, tab) {
    Object.assign(this, { root, tab, page: tab.page, turn: 0, answers: [] });
    const { page } = this;
    const bar = make("div", "p-fields");
    this.model = selectOf("model", (value) => page.go({ p_instructed: value }));
    this.text = inputOf("text", "text", (value) => page.go({ p_text: value || null }));
    this.text.input.maxLength = LONGEST;
    this.text.element.classList.add("wide");
    bar.append(this.model.element, this.text.element);
    this.told = make("p", "sentence");
    this.told.setAttribute("role", "status");
    this.columns = make("div", "p-columns");
    const measure = make("div", "p-measure");
    this.button = make("button", "p-button go");
    this.button.type = "button";
    this.button.addEventListener("click", () => (this.active ? this.stop() : this.measure()));
    this.share = make("p", "p-told");
    measure.append(this.button, this.share);
    this.list = make("div", "p-pairs");
    root.append(bar, this.told, this.columns, make("h3", "p-heading", "On sentences that it never read"), measure, this.list);
  }

  destroy() {
    this.turn++;
    this.wanted = null;
  }

  get names() {
    return Object.keys(this.tab.offered.instructed);
  }

  get asked() {
    const { p_instructed, p_text } = this.page.state;
    const model = this.names.includes(p_instructed) ? p_instructed : this.names[0];
    return { model, text: typeof p_text === "string" && p_text.trim() ? p_text.slice(0, LONGEST) : FIRST };
  }

  update() {
    const { asked } = this;
    if (!asked.model) {
      this.told.textContent = "No model here knows instructions.";
      return;
    }
    this.model.show(this.names, asked.model);
    this.text.show(asked.text);
    if (asked.model !== this.measured) {
      this.stop();
      this.measured = asked.model;
      this.answers = [];
    }
    this.draw();
    this.ask(asked);
  }

  async ask(asked) {
    const wanted = JSON.stringify([this.page.data.trace, asked]);
    if (wanted === this.wanted) return;
    this.wanted = wanted;
    try {
      const answer = await this.page.request({ ask: "instructed", ...asked });
      if (wanted !== this.wanted) return;
      this.told.textContent = "";
      this.found = answer;
      this.show(answer);
    } catch (error) {
      if (wanted !== this.wanted) return;
      this.found = null;
      this.told.textContent = error.message;
      this.columns.replaceChildren();
    }
  }

  show({ tasks, arrays }) {
    this.columns.replaceChildren(...tasks.map((found, number) => {
      const column = make("section", "p-column");
      const heading = make("h3", "", found.task || "no instruction");
      if (!found.task) heading.append(make("span", "note", " the text goes on"));
      const text = make("p", "p-asked");
      text.append(make("bdi", "", this.asked.text), " ");
      if (found.task) text.append(make("span", "p-task", found.task), " ");
      text.append(make("bdi", "p-answer", found.written || "(nothing)"));
      const answered = new Answered(this.page, `what is written under ${found.task || "no instruction"}`);
      answered.show({ ...found, arrays }, `${number}.`);
      column.append(heading, text, answered.element, make("p", "p-stop", found.stop));
      return column;
    }));
  }

  // --- sentences that were held out ----------------------------------------------------------------------------------------

  stop() {
    this.turn++;
    this.active = false;
    this.draw();
  }

  async measure() {
    const turn = ++this.turn;
    this.active = true;
    this.answers = [];
    this.draw();
    try {
      while (this.answers.length < this.tab.offered.pairs) {
        const { answers } = await this.page.request({ ask: "pairs", model: this.asked.model, from: this.answers.length });
        if (turn !== this.turn) return;
        this.answers.push(...answers);
        this.draw();
      }
    } catch (error) {
      if (turn === this.turn) this.told.textContent = error.message;
    }
    this.active = false;
    this.draw();
  }

  draw() {
    const { answers } = this;
    this.button.textContent = this.active ? "Stop" : answers.length ? "Measure again" : `Ask it ${this.tab.offered.pairs} of them`;
    const instructions = [...new Set(answers.map(({ instruction }) => instruction))];
    this.share.textContent = instructions.map((one) => {
      const these = answers.filter(({ instruction }) => instruction === one);
      const right = these.filter((pair) => pair.right).length;
      return `${one} ${right} of ${these.length} right, word for word (${percent(right / these.length)})`;
    }).join(" · ");
    this.list.replaceChildren(...answers.map(({ text, instruction, expected, written, right }) => {
      const row = make("div", "p-pair");
      row.classList.toggle("wrong", !right);
      const said = make("span", "p-said-of");
      said.append(make("bdi", `p-answer ${right ? "right" : "wrong"}`, written || "(nothing)"));
      if (!right) said.append(make("span", "p-expected", ` expected: ${expected}`));
      row.append(make("bdi", "", text), make("span", "p-task", instruction), said);
      return row;
    }));
  }

  looked() {
    const { asked } = this;
    const said = (this.found?.tasks ?? []).map(({ task, written }) => `${task || "no instruction"}: “${written}”`).join("; ");
    return { where: "instructions", sentence: `${asked.model}, “${asked.text}”. ${said}`, asks: { part: "instructed", ...asked }, file: "instructed" };
  }
}

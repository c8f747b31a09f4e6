// How often a model is right as examples are added: measured number by number, and stoppable.
import { chart, path } from "../components/chart.js";
import { make } from "../core/dom.js";
import { percent } from "../core/format.js";
import { svg } from "../components/stack.js";

const KS = [0, 1, 2, 4, 8];
const [HIGH, WIDEST] = [230, 420]; // CSS pixels
const COUNTS = [10, 30, 100]; // queries for each number of examples

export class Accuracy {
  constructor(root, page) {
    Object.assign(this, { root, page, found: new Map(), turn: 0 });
    const bar = make("div", "p-measure");
    this.button = make("button", "p-button go");
    this.button.type = "button";
    this.button.addEventListener("click", () => (this.active ? this.stop() : this.measure()));
    this.count = make("select");
    this.count.setAttribute("aria-label", "queries for each number of examples");
    this.count.append(...COUNTS.map((n) => Object.assign(make("option", "", `${n} queries`), { value: n })));
    this.count.addEventListener("change", () => page.go({ p_n: Number(this.count.value) }));
    bar.append(this.button, this.count);
    this.told = make("p", "p-told");
    this.told.setAttribute("role", "status");
    this.place = make("div", "p-chart");
    this.table = make("div", "p-shares");
    root.append(make("h3", "", "Accuracy as K grows"), bar, this.told, this.place, this.table);
  }

  get n() {
    return COUNTS.includes(this.page.state.p_n) ? this.page.state.p_n : COUNTS[1];
  }

  /** `asked` is what generate_shots.js asks about. */
  update(asked) {
    const what = JSON.stringify([asked.model, asked.source, asked.seed, this.n]);
    this.ks = KS.filter((k) => k <= asked.most);
    this.count.value = String(this.n);
    this.asked = asked;
    if (what !== this.what) {
      this.stop();
      this.what = what;
      this.found = new Map();
      this.told.textContent = "";
    }
    this.draw();
  }

  get asks() {
    return { n: this.n, ks: [...this.found.keys()].filter((k) => this.found.get(k).length === this.n) };
  }

  stop() {
    this.turn++;
    this.active = false;
    if (this.asked) this.draw();
  }

  async measure() {
    const turn = ++this.turn;
    const { asked, n, ks } = this;
    this.active = true;
    this.found = new Map();
    this.told.textContent = "";
    this.draw();
    try {
      for (const k of ks) {
        const answers = [];
        while (answers.length < n) {
          const answer = await this.page.request({ ask: "accuracy", model: asked.model, ...asked.source, k, seed: asked.seed, n, from: answers.length });
          if (turn !== this.turn) return;
          answers.push(...answer.answers);
          this.found.set(k, answers);
          this.draw();
        }
      }
      this.page.tell("measured");
    } catch (error) {
      if (turn === this.turn) this.told.textContent = error.message;
    }
    this.active = false;
    this.draw();
  }

  /** [k, n, share, standard error] of what was measured so far. */
  get points() {
    return [...this.found].map(([k, answers]) => {
      const share = answers.filter(({ right }) => right).length / answers.length;
      return { k, n: answers.length, share, error: Math.sqrt((share * (1 - share)) / answers.length) };
    });
  }

  draw() {
    const { points } = this;
    this.button.textContent = this.active ? "Stop" : points.length ? "Measure again" : "Measure";
    const width = Math.max(260, Math.min(WIDEST, this.root.clientWidth || WIDEST));
    const made = chart({ width, height: HIGH, from: { x: 0, y: 0, ticks: this.ks }, to: { x: Math.max(1, this.ks.at(-1)), y: 1, written: (y) => `${Math.round(100 * y)} %` }, label: "examples K", title: "share of right answers over the number of examples" });
    made.plot.append(svg("path", { class: "p-line-of", d: path(points.map(({ k, share }) => [made.x(k), made.y(share)])) }));
    for (const { k, share, error } of points) {
      const [low, high] = [made.y(Math.max(0, share - error)), made.y(Math.min(1, share + error))];
      made.plot.append(svg("line", { class: "p-error", x1: made.x(k), x2: made.x(k), y1: low, y2: high }));
      made.plot.append(svg("circle", { class: "p-point", cx: made.x(k), cy: made.y(share), r: 4.5 }));
    }
    this.place.replaceChildren(made.element);
    const heading = this.row(["K", "right", "± standard error", "queries"], "heading");
    this.table.replaceChildren(heading, ...points.map(({ k, n, share, error }) => this.row([k, percent(share), percent(error), n])));
    this.table.hidden = !points.length;
  }

  row(cells, name = "") {
    const row = make("div", `p-share ${name}`);
    row.append(...cells.map((text) => make("span", "", String(text))));
    return row;
  }
}

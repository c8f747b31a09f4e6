// Every matrix of a checkpoint: how large its numbers are, layer by layer, and of the one chosen how they are distributed
// and what its singular values are.
import * as address from "../core/address.js";
import { CHART_CSS } from "../components/chart.js";
import { make } from "../core/dom.js";
import { number } from "../core/format.js";
import { css, curve, ramp, STEPS } from "../core/palette.js";
import { request } from "../core/store.js";
import { histogram, spectrum } from "./weights_charts.js";
import { CSS, GAP, LEAST } from "./weights_style.js";

const HUES = [[/queries/, "query"], [/keys/, "key"], [/values/, "value"], [/output|^W_O/, "attention"], [/MLP/, "mlp"], [/head|pooler|next sentence/, "probability"]];

/**
 * data = {checkpoint, matrices: [{name, title, side, layer, shape, heads, circuit}], first}, of views/checkpoint.py; of a
 * small model also {answer, arrays}, what would be asked for first.
 */
export function mount(root, data) {
  const page = new Weights(root);
  page.update(data);
  return page;
}

class Weights {
  constructor(root) {
    this.root = root;
    this.element = make("div", "weights");
    this.map = make("section", "map");
    this.shown = make("section", "shown");
    this.element.append(this.map, this.shown);
    root.append(make("style", "", CHART_CSS + CSS), this.element);
    this.log = false;
    this.resize = new ResizeObserver(() => this.element.clientWidth !== this.width && this.build());
    this.resize.observe(this.element);
    this.map.addEventListener("click", (event) => this.choose(event.target.closest("[data-index]")));
    this.map.addEventListener("keydown", (event) => this.key(event));
    this.map.addEventListener("pointerover", (event) => this.tell(event.target.closest("[data-index]")));
    this.map.addEventListener("pointerleave", () => this.tell(null));
    this.unfollow = address.follow(() => this.read());
  }

  destroy() {
    this.resize.disconnect();
    this.unfollow();
    this.element.remove();
  }

  update(data) {
    if (this.data?.checkpoint !== data.checkpoint) this.sizes = this.answer = this.drawn = null;
    this.data = data;
    this.read();
    this.measure();
    this.build();
  }

  /** What to look at: as the address says, where there is such a matrix. */
  read() {
    const { matrix, head } = address.read();
    const at = this.data.matrices.findIndex((each) => each.name === matrix);
    this.index = at < 0 ? this.data.first : at;
    const { heads } = this.data.matrices[this.index];
    this.head = Number.isInteger(head) && head >= 0 && head < heads ? head : null;
    this.through = this.head !== null && this.data.matrices[this.index].circuit !== "" && address.read().circuit === true;
    this.log = address.read().counts === "log";
    if (this.width) this.ask();
  }

  build() {
    this.width = this.element.clientWidth;
    if (!this.width) return;
    const beside = this.width >= LEAST.map + GAP + LEAST.chart;
    this.element.classList.toggle("beside", beside);
    this.drawMap();
    this.ask();
  }

  async measure() {
    const { checkpoint, arrays } = this.data;
    if (this.sizes) return;
    if (!arrays.rms) {
      const answer = await request({ checkpoint, sizes: true });
      if (this.data.checkpoint !== checkpoint) return;
      this.sizes = answer.arrays.rms.data;
    } else this.sizes = arrays.rms.data;
    this.drawMap();
  }

  drawMap() {
    if (!this.width) return;
    const { matrices } = this.data;
    const families = new Map();
    matrices.forEach((each, index) => {
      const key = each.layer === null ? "" : each.family;
      families.set(key, [...(families.get(key) ?? []), index]);
    });
    const layers = Math.max(0, ...matrices.map((each) => (each.layer ?? -1) + 1));
    const [most, ramps] = [Math.max(...(this.sizes ?? [1])), new Map()];
    const face = (index) => {
      const { role } = hued(matrices[index]);
      if (!ramps.has(role)) ramps.set(role, ramp(this.root, role, "unit"));
      const cell = make("button", "cell");
      cell.type = "button";
      cell.dataset.index = index;
      cell.tabIndex = index === this.index ? 0 : -1;
      const { name, shape } = matrices[index];
      cell.setAttribute("aria-label", `${name}, ${shape.join(" × ")}`);
      cell.classList.toggle("chosen", index === this.index);
      if (this.sizes) cell.style.background = css(ramps.get(role)[Math.round(curve(this.sizes[index] / most) ** 2 * (STEPS - 1)) || 0]);
      return cell;
    };
    const heading = make("h3", "", "Matrices");
    heading.append(make("span", "note", " root mean square of their numbers"));
    const grid = make("div", "grid-of");
    grid.style.setProperty("--layers", Math.max(1, layers));
    for (const [key, indices] of families) {
      if (key === "") continue;
      const { side, title } = matrices[indices[0]];
      const row = make("div", "family");
      row.append(make("span", "named", `${side ? `${side.slice(0, 3)}. ` : ""}${title}`));
      const cells = make("div", "cells-of");
      for (const index of indices) {
        const cell = face(index);
        cell.style.gridColumn = matrices[index].layer + 1;
        cells.append(cell);
      }
      row.append(cells);
      grid.append(row);
    }
    if (layers) {
      const foot = make("div", "family foot-of");
      const numbers = make("div", "cells-of");
      const step = Math.ceil(layers / 12);
      for (let layer = 0; layer < layers; layer++) numbers.append(make("span", "", layer % step === 0 || layer === layers - 1 ? String(layer + 1) : ""));
      foot.append(make("span", "named", "layer"), numbers);
      grid.append(foot);
    }
    const single = make("div", "singles");
    for (const index of families.get("") ?? []) {
      const chip = make("div", "single");
      chip.append(face(index), make("span", "named", `${matrices[index].side ? `${matrices[index].side.slice(0, 3)}. ` : ""}${matrices[index].title}`));
      single.append(chip);
    }
    this.told = make("p", "told", "\u00a0");
    const focused = this.element.getRootNode().activeElement?.dataset?.index;
    this.map.replaceChildren(heading, single, grid, this.legend(most), this.told);
    if (focused !== undefined) this.map.querySelector(`[data-index="${focused}"]`)?.focus({ preventScroll: true });
    this.tell(null);
  }

  legend(most) {
    const element = make("p", "legend-of");
    const bar = make("span", "bar-of");
    const table = ramp(this.root, "attention", "unit");
    const stops = Array.from({ length: 9 }, (_, i) => css(table[Math.round((i / 8) * (STEPS - 1))]));
    bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    element.append("0", bar, this.sizes ? number(most) : "");
    return element;
  }

  tell(cell) {
    const index = cell ? Number(cell.dataset.index) : this.index;
    const { name, shape } = this.data.matrices[index];
    this.told.textContent = `${name}  ${shape.join(" × ")}${this.sizes ? `  ${number(this.sizes[index])}` : ""}`;
  }

  choose(cell) {
    if (!cell) return;
    const index = Number(cell.dataset.index);
    const { heads } = this.data.matrices[index];
    this.pick(index, this.head !== null && this.head < heads ? this.head : null, this.through);
  }

  pick(index, head, through) {
    const { name, circuit } = this.data.matrices[index];
    Object.assign(this, { index, head, through: through && head !== null && circuit !== "" });
    address.write({ matrix: name, head, circuit: this.through || null });
    for (const cell of this.map.querySelectorAll("[data-index]")) {
      const chosen = Number(cell.dataset.index) === index;
      cell.classList.toggle("chosen", chosen);
      cell.tabIndex = chosen ? 0 : -1;
    }
    this.tell(null);
    this.ask();
  }

  key(event) {
    const cell = event.target.closest("[data-index]");
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!cell || !step) return;
    const rows = [...this.map.querySelectorAll(".single, .family")].map((row) => [...row.querySelectorAll("[data-index]")]).filter((row) => row.length);
    const row = rows.findIndex((each) => each.includes(cell));
    const next = rows[(row + step[0] + rows.length) % rows.length];
    const to = next[(Math.min(rows[row].indexOf(cell), next.length - 1) + step[1] + next.length) % next.length];
    to.focus();
    this.choose(to);
    event.preventDefault();
  }

  /** What is looked at, to be taken away (take_shown.js). */
  looked() {
    const chosen = this.data.matrices[this.index];
    const what = heading_of(chosen, this.head, this.through);
    const file = [chosen.name.replaceAll(".", "-"), this.head === null ? "" : `head-${this.head}`, this.through ? "circuit" : ""].filter(Boolean).join("-");
    return { where: "", what, sentence: this.drawn === this.wanted ? this.answer.shape.join(" × ") : "", asks: { of: chosen.name, head: this.head, circuit: this.through }, file };
  }

  missed({ matrix, head }) {
    if (matrix === undefined) return [];
    if (!this.data.matrices.some(({ name }) => name === matrix)) return [`there is no matrix ${JSON.stringify(matrix)} here`];
    return head === undefined || head === this.head ? [] : [`head ${Number.isInteger(head) ? head + 1 : JSON.stringify(head)} is not here, there are ${this.data.matrices[this.index].heads}`];
  }

  /** The numbers of what is chosen; the picture before stays until they are here. */
  async ask() {
    const { checkpoint, matrices } = this.data;
    const query = { checkpoint, matrix: matrices[this.index].name, head: this.head, circuit: this.through };
    this.wanted = JSON.stringify(query);
    const wanted = this.wanted;
    if (this.data.answer && this.index === this.data.first && this.head === null) return this.take({ ...this.data.answer, arrays: this.data.arrays });
    this.shown.classList.add("waiting");
    try {
      const answer = await request(query);
      if (this.wanted === wanted) this.take(answer);
    } catch (error) {
      if (this.wanted !== wanted) return;
      this.shown.replaceChildren(make("p", "refused", error.message));
      this.shown.classList.remove("waiting");
    }
  }

  /** What is drawn is what was asked for last. */
  take(answer) {
    Object.assign(this, { answer, drawn: this.wanted });
    this.shown.classList.remove("waiting");
    this.draw();
  }

  draw() {
    const { matrices } = this.data;
    const chosen = matrices[this.index];
    const { role } = hued(chosen);
    this.shown.style.setProperty("--hue", `var(--${role})`);
    const room = this.shown.clientWidth;
    const two = room >= 2 * LEAST.chart + GAP;
    const wide = two ? Math.floor((room - GAP) / 2) : room;
    const heading = make("h3", "", heading_of(chosen, this.head, this.through));
    heading.append(make("span", "note", ` ${this.answer.shape.join(" × ")}`));
    const charts = make("div", "charts");
    charts.append(histogram(this.answer, wide, this.log, () => this.scale()));
    if (this.answer.arrays.values) charts.append(spectrum(this.answer, wide));
    this.shown.replaceChildren(heading, this.chips(chosen), charts);
    this.element.dataset.ready = "true";
  }

  /** The counts on the other scale. */
  scale() {
    address.write({ counts: this.log ? null : "log" });
    this.log = !this.log;
    if (this.drawn === this.wanted) this.draw(); // else with what comes
  }

  chips({ heads, circuit }) {
    const element = make("div", "chips");
    if (!heads) return element;
    const chip = (label, pressed, act, title) => {
      const button = make("button", "chip", label);
      button.type = "button";
      button.setAttribute("aria-pressed", pressed);
      button.title = title;
      button.addEventListener("click", act);
      element.append(button);
      return button;
    };
    chip("all heads", this.head === null, () => this.pick(this.index, null, false), "the whole matrix");
    for (let head = 0; head < heads; head++) {
      const button = chip(String(head + 1), this.head === head, () => this.pick(this.index, head, this.through), `head ${head + 1} of ${heads}`);
      const share = this.answer.arrays.heads?.data;
      if (share) button.append(bar(share[head] / Math.max(...share)));
    }
    if (circuit) {
      const why = circuit === "qk" ? "W_Q with W_K: what a query looks for in a key" : "W_V with W_O: what a head writes of what it reads";
      const label = circuit === "qk" ? "QK circuit" : "OV circuit";
      chip(label, this.through, () => this.pick(this.index, this.head ?? 0, !this.through), why).classList.add("circuit");
    }
    return element;
  }
}

function bar(share) {
  const element = make("span", "chip-bar");
  element.style.width = `${100 * share}%`;
  return element;
}

function hued({ title, name }) {
  return { role: HUES.find(([pattern]) => pattern.test(title))?.[1] ?? (/embed|relative/.test(name) ? "residual" : "attention") };
}

function heading_of({ title, side, layer, circuit }, head, through) {
  const what = through ? (circuit === "qk" ? "QK circuit" : "OV circuit") : title;
  const where = [side, layer === null ? "" : `layer ${layer + 1}`, head === null ? "" : `head ${head + 1}`].filter(Boolean);
  return [what, ...where].join(" · ");
}

// Every matrix of a checkpoint: how large its numbers are, layer by layer, and of the one chosen how they are distributed
// and what its singular values are.
import * as address from "./address.js";
import { chart, CHART_CSS, path } from "./chart.js";
import { make } from "./dom.js";
import { number } from "./format.js";
import { css, curve, ramp, STEPS } from "./palette.js";
import { request } from "./store.js";

const HIGH = 250; // CSS pixels of a chart
const LEAST = { map: 330, chart: 340 };
const GAP = 32;
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
    if (this.data?.checkpoint !== data.checkpoint) this.sizes = this.answer = null;
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
    return { where: "", what, sentence: this.answer?.shape.join(" × ") ?? "", asks: { of: chosen.name, head: this.head, circuit: this.through }, file };
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
    if (this.data.answer && this.index === this.data.first && this.head === null) {
      this.answer = { ...this.data.answer, arrays: this.data.arrays };
      return this.draw();
    }
    this.shown.classList.add("waiting");
    try {
      const answer = await request(query);
      if (this.wanted !== wanted) return;
      this.answer = answer;
      this.draw();
    } catch (error) {
      if (this.wanted === wanted) this.shown.replaceChildren(make("p", "refused", error.message));
    }
    if (this.wanted === wanted) this.shown.classList.remove("waiting");
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
    charts.append(this.histogram(wide));
    if (this.answer.arrays.values) charts.append(this.spectrum(wide));
    this.shown.replaceChildren(heading, this.chips(chosen), charts);
    this.element.dataset.ready = "true";
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

  histogram(width) {
    const { arrays, stats } = this.answer;
    const [edges, counts] = [arrays.edges.data, arrays.counts.data];
    const most = Math.max(...counts);
    const bins = counts.length;
    const from = { x: edges[0], y: this.log ? 0.8 : 0 };
    const to = { x: edges[bins], y: this.log ? most * 1.6 : most * 1.06, log: this.log };
    const made = chart({ width, height: HIGH, from, to, label: "value", title: "Histogram of the numbers" });
    const base = made.floor;
    const outline = [];
    for (let i = 0; i < bins; i++) {
      const y = counts[i] ? made.y(counts[i]) : base;
      outline.push([made.x(edges[i]), y], [made.x(edges[i + 1]), y]);
    }
    made.plot.append(svgPath(`${path([[made.x(edges[0]), base], ...outline, [made.x(edges[bins]), base]])}Z`, "area"));
    const total = counts.reduce((sum, count) => sum + count, 0);
    const normal = Array.from({ length: 161 }, (_, i) => {
      const value = edges[0] + ((edges[bins] - edges[0]) * i) / 160;
      const density = Math.exp(-0.5 * ((value - stats.mean) / stats.std) ** 2) / (stats.std * Math.sqrt(2 * Math.PI));
      return [value, (total * density * (edges[bins] - edges[0])) / bins];
    }).filter(([, count]) => !this.log || count >= from.y);
    if (stats.std > 0) made.plot.append(svgPath(path(normal.map(([value, count]) => [made.x(value), Math.max(made.y(count), made.top - 40)])), "normal"));
    const width1 = (edges[bins] - edges[0]) / bins;
    made.hover((value) => {
      const bin = Math.min(bins - 1, Math.floor((value - edges[0]) / width1));
      const text = `${number(edges[bin])} to ${number(edges[bin + 1])}: ${counts[bin].toLocaleString("en")}`;
      return { x: edges[bin] + width1 / 2, y: counts[bin] || null, text };
    }, "dashed: normal, same mean and std");
    const heading = make("div", "chart-head");
    const toggle = make("button", "chip", "log counts");
    toggle.type = "button";
    toggle.setAttribute("aria-pressed", this.log);
    toggle.addEventListener("click", () => {
      address.write({ counts: this.log ? null : "log" });
      this.log = !this.log;
      this.draw();
    });
    heading.append(make("h4", "", "How its numbers are distributed"), toggle);
    return panel(heading, made.element, [
      ["mean", number(stats.mean)], ["std", number(stats.std)], ["min", number(stats.min)], ["max", number(stats.max)],
      ["‖W‖F", number(stats.norm)], ["zeros", stats.zeros.toLocaleString("en")],
      ...(stats.outside ? [["beyond the edges", stats.outside.toLocaleString("en")]] : []),
    ]);
  }

  spectrum(width) {
    const { arrays, ranks } = this.answer;
    const all = arrays.values.data;
    const positive = all.filter((value) => value > 0);
    const [largest, least] = [positive[0] ?? 1, Math.max(positive.at(-1) ?? 1, (positive[0] ?? 1) * 1e-7)];
    const from = { x: 1, y: Math.min(least * 0.8, largest / 12) };
    const to = { x: Math.max(2, all.length), y: largest * 1.25, log: true };
    const made = chart({ width, height: HIGH, from, to, label: "i", title: "Singular values, on a logarithmic scale" });
    for (const [at, name] of [[ranks.energy, "90 %"], [ranks.rank, "effective rank"]]) {
      if (!at) continue;
      const end = made.x(at) > width * 0.68;
      made.plot.append(svgPath(`M${made.x(at).toFixed(1)} ${made.floor}V${made.top}`, "marked"));
      const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
      text.textContent = name;
      text.setAttribute("class", "label");
      text.setAttribute("x", made.x(at) + (end ? -5 : 5));
      text.setAttribute("y", name === "90 %" ? made.floor - 8 : made.floor - 24);
      text.setAttribute("text-anchor", end ? "end" : "start");
      made.plot.append(text);
    }
    made.plot.append(svgPath(path(Array.from(positive, (value, i) => [made.x(i + 1), made.y(value)])), "line"));
    made.hover((value) => {
      const i = Math.max(1, Math.min(all.length, Math.round(value)));
      return { x: i, y: all[i - 1] > 0 ? all[i - 1] : null, text: `σ${i} = ${number(all[i - 1])}` };
    }, positive.length < all.length ? `zero from ${positive.length + 1} on` : "\u00a0");
    const heading = make("div", "chart-head");
    heading.append(make("h4", "", "Singular values"));
    return panel(heading, made.element, [
      ["σ₁", number(largest)], ["effective rank", `${ranks.rank.toFixed(1)} of ${all.length}`], ["stable rank", ranks.stable.toFixed(2)],
      ["90 % of ‖W‖²", `${ranks.energy} values`], ["condition", ranks.condition === null ? "∞" : number(ranks.condition)],
    ]);
  }
}

function panel(heading, picture, figures) {
  const element = make("div", "panel-of");
  const list = make("dl", "figures-of");
  for (const [name, value] of figures) {
    const pair = make("div");
    pair.append(make("dt", "", name), make("dd", "", value));
    list.append(pair);
  }
  element.append(heading, picture, list);
  return element;
}

function bar(share) {
  const element = make("span", "chip-bar");
  element.style.width = `${100 * share}%`;
  return element;
}

function svgPath(d, name) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", "path");
  element.setAttribute("d", d);
  element.setAttribute("class", name);
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

const CSS = `
.weights { margin-top: 22px; display: grid; grid-template-columns: minmax(0, 1fr); gap: 24px ${GAP}px; font: 14px/1.4 var(--sans); color: var(--ink); }
.weights.beside { grid-template-columns: minmax(${LEAST.map}px, 400px) minmax(0, 1fr); }
.weights section { min-width: 0; }
.weights button { font: inherit; color: inherit; margin: 0; cursor: pointer; }
.weights :focus-visible { outline: 2px solid var(--ink); outline-offset: 1px; }
.weights h3 { font-size: 16px; font-weight: 600; margin: 0 0 10px; line-height: 24px; }
.weights h3 .note { font-weight: 400; color: var(--soft); font-size: 13px; }
.weights h4 { font-size: 13px; font-weight: 600; margin: 0; color: var(--soft); }
.singles { margin-bottom: 10px; }
.single { display: grid; grid-template-columns: 128px minmax(0, 1fr); gap: 10px; align-items: center; height: 26px; }
.single .cell { order: 2; width: 58px; max-width: 100%; height: 20px; }
.grid-of .family { display: grid; grid-template-columns: 128px minmax(0, 1fr); gap: 10px; align-items: center; height: 26px; }
.weights .named { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; font-size: 13px; }
.cells-of { display: grid; grid-template-columns: repeat(var(--layers), minmax(0, 58px)); gap: 2px; }
.weights .cell { height: 20px; padding: 0; border: 0; border-radius: 2px; background: var(--panel); min-width: 0; }
.weights .cell.chosen { box-shadow: 0 0 0 2px var(--ground), 0 0 0 4px var(--ink); position: relative; z-index: 1; }
.foot-of { color: var(--soft); font-size: 12px; }
.foot-of .cells-of { text-align: center; font: 11px var(--mono); }
.legend-of { display: flex; align-items: center; gap: 8px; margin: 10px 0 0; font: 12px var(--mono); color: var(--soft); }
.legend-of .bar-of { width: 110px; height: 6px; border-radius: 3px; }
.map .told { margin: 6px 0 0; font: 12px/17px var(--mono); color: var(--soft); min-height: 34px; overflow-wrap: anywhere; }
.shown { min-height: 420px; }
.chips { display: flex; flex-wrap: wrap; gap: 4px; min-height: 28px; margin: 0 0 8px; }
.weights .chip { position: relative; overflow: hidden; min-width: 28px; height: 26px; padding: 0 8px; border: 1px solid var(--hairline); border-radius: 5px; background: var(--ground); font-size: 13px; }
.weights .chip:hover { border-color: var(--soft); }
.weights .chip[aria-pressed="true"] { border-color: var(--ink); font-weight: 600; background: var(--panel); }
.weights .chip.circuit { margin-left: 8px; }
.chip-bar { position: absolute; left: 0; bottom: 0; height: 3px; background: var(--hue); }
.charts { display: flex; flex-wrap: wrap; gap: 18px ${GAP}px; }
.panel-of { flex: 1 1 ${LEAST.chart}px; min-width: 0; }
.chart-head { display: flex; align-items: center; justify-content: space-between; height: 28px; }
.chart .area { fill: color-mix(in srgb, var(--hue) 45%, var(--ground)); stroke: var(--hue); stroke-width: 1; }
.chart .normal { fill: none; stroke: var(--ink); stroke-width: 1.3; stroke-dasharray: 5 4; opacity: .7; }
.chart .line { fill: none; stroke: var(--hue); stroke-width: 2.2; stroke-linejoin: round; }
.chart .marked { stroke: var(--soft); stroke-dasharray: 3 4; }
.figures-of { display: grid; grid-template-columns: repeat(auto-fill, minmax(108px, auto)); gap: 6px 14px; margin: 8px 0 0; padding-left: 52px; }
.figures-of dt { font-size: 12px; color: var(--soft); }
.figures-of dd { margin: 0; font: 14px var(--mono); }
.refused { padding: 7px 12px; border-left: 3px solid var(--edited); background: var(--panel); margin: 0; }
`;

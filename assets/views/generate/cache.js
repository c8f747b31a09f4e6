// The KV cache made visible: what is stored, what is read anew for each token with it and without it, and what that costs.
import { CHART_CSS } from "../components/chart.js";
import { make } from "../core/dom.js";
import { number } from "../core/format.js";
import { CacheCharts } from "./cache_charts.js";
import { CacheGrid, saidOf } from "./cache_grid.js";
import { CSS as STYLE } from "./cache_style.js";
import { Measuring } from "./cache_measure.js";
import { readAnew } from "./cache_read.js";

export const CSS = `${CHART_CSS}${STYLE}`;

export function mount(room, page) {
  return new Cache(room, page);
}

class Cache {
  constructor(room, page) {
    Object.assign(this, { page, room, found: null, costs: null });
    this.measure = new Measuring(page, () => this.drawCharts());
    this.build();
  }

  build() {
    const { page } = this;
    const bar = make("div", "cache-bar");
    this.button = make("button", "cache-button go", "Write");
    this.button.type = "button";
    this.button.addEventListener("click", () => this.toggle());
    this.slider = make("input", "cache-slider");
    Object.assign(this.slider, { type: "range", min: 0, step: 1 });
    this.slider.setAttribute("aria-label", "which step");
    this.slider.addEventListener("input", () => this.go(this.slider.valueAsNumber));
    this.where = make("output", "cache-where");
    bar.append(this.button, this.slider, this.where);
    this.sentence = make("p", "sentence");
    this.sums = make("dl", "cache-sums");
    this.grid = new CacheGrid(page, (cell) => this.look(cell));
    this.crossTitle = make("h3", "", "Keys and values of the source, made once and read at every step");
    this.cross = new CacheGrid(page, (cell) => this.look(cell));
    this.said = make("p", "cache-said");
    this.said.setAttribute("aria-live", "polite");
    this.look(null);
    this.legend = make("p", "cache-legend");
    this.read = make("div", "cache-read");
    this.charts = new CacheCharts(page, this.measure);
    this.holder = make("div", "cache-holder");
    this.holder.append(this.sums, this.legend, this.grid.element, this.read, this.crossTitle, this.cross.element, this.said, this.charts.element);
    this.holder.hidden = true;
    this.room.append(bar, this.sentence, this.holder);
  }

  destroy() {
    this.measure.stop();
    this.asked = this.named = null;
    this.room.replaceChildren();
  }

  // --- asking --------------------------------------------------------------------------------------------------------------

  update() {
    const { page } = this;
    const begun = page.written;
    this.button.textContent = page.run.active ? "Stop" : begun.length ? "Write on" : "Write";
    this.button.disabled = !page.run.active && this.isOver;
    this.askCosts();
    const name = JSON.stringify([page.data.trace, begun]);
    if (name === this.named) return this.draw();
    if (this.waiting) return; // the newest is asked for once the answer is there
    this.ask(name, begun);
  }

  async ask(name, begun) {
    const { page } = this;
    this.waiting = this.named = name;
    const query = { ask: "cache", begun };
    try {
      const found = await (page.run.active ? page.inquire(query) : page.request(query));
      if (this.named === name) this.found = found;
      this.sentence.textContent = "";
    } catch (error) {
      if (this.named === name) this.found = null;
      this.sentence.textContent = error.message;
    }
    this.waiting = null;
    if (this.named === null) return; // it was closed
    this.holder.hidden = !this.found;
    this.update();
  }

  async askCosts() {
    const { data } = this.page;
    if (this.asked === data.trace) return;
    this.asked = data.trace;
    this.costs = null;
    try {
      const costs = await this.page.request({ ask: "cache_costs" });
      if (this.asked !== data.trace) return;
      this.costs = costs;
      this.measure.of(data.trace, costs.times);
      this.draw();
    } catch (error) {
      if (this.asked === data.trace) this.sentence.textContent = error.message;
    }
  }

  get isOver() {
    const { tree, data } = this.page;
    const { stop } = tree.nodes.get(tree.shown);
    return Boolean(tree.shown ? stop && ["end", "context", "picture"].includes(stop.kind) : data.full);
  }

  toggle() {
    const { run, tree } = this.page;
    if (run.active) return run.stop();
    this.page.go({ cache_step: null }); // the grid grows with what is written
    run.begin(tree.shown);
  }

  // --- drawing -------------------------------------------------------------------------------------------------------------

  /** How many tokens behind the prompt have been read. */
  get steps() {
    return this.found.pieces.length - this.found.given;
  }

  get at() {
    const { cache_step: said } = this.page.state;
    return Number.isInteger(said) && said >= 0 && said < this.steps ? said : this.steps;
  }

  get shown() {
    return this.found.given + this.at;
  }

  draw() {
    const { found } = this;
    if (!found || found.pieces.length < found.given) return;
    const { layers, heads, cell, pieces, arrays, cross, source } = found;
    const { at, shown, steps } = this;
    this.slider.max = steps;
    this.slider.value = at;
    this.slider.disabled = !steps;
    this.where.textContent = at ? `token ${at} of ${steps} is read` : steps ? "the prompt is read" : "the prompt is read; write, and a column comes with each token";
    this.grid.draw({ title: "keys and values", k: arrays.k, v: arrays.v, pieces, layers, heads, cell }, shown, at ? shown - 1 : 0);
    this.crossTitle.hidden = this.cross.element.hidden = !cross;
    if (cross) this.cross.draw({ title: "keys and values of the source", k: arrays["cross.k"], v: arrays["cross.v"], pieces: source, layers, heads: cross.heads, cell: cross.cell }, source.length, source.length);
    this.showSums();
    this.showLegend();
    const { strips, counts } = readAnew(this.page, found, at, this.grid.across);
    this.grid.below(strips);
    this.read.replaceChildren(counts);
    this.drawCharts();
  }

  drawCharts() {
    this.charts.element.hidden = !this.costs || !this.found;
    if (this.costs && this.found) this.charts.draw(this.costs, this.shown);
  }

  showSums() {
    const { layers, heads, queries, width, number: size, cell, dtype, cross, source } = this.found;
    const { shown } = this;
    const own = layers * heads * shown * cell;
    const rows = [
      ["a cell", `k and v of one head at one position: 2 × ${width} numbers × ${size} bytes (${dtype}) = ${cell.toLocaleString("en")} bytes`],
      ["a position", `${layers} blocks × ${heads} heads × ${cell} = ${(layers * heads * cell).toLocaleString("en")} bytes`],
      ["all", `${shown.toLocaleString("en")} ${shown === 1 ? "position" : "positions"} × ${(layers * heads * cell).toLocaleString("en")} = ${own.toLocaleString("en")} bytes`],
    ];
    if (cross) {
      const other = layers * cross.heads * source.length * cross.cell;
      rows.push(["the source", `${source.length} positions × ${layers} blocks × ${cross.heads} heads × ${cross.cell} = ${other.toLocaleString("en")} bytes; with it ${(own + other).toLocaleString("en")}`]);
    }
    if (heads < queries) rows.push(["grouped", `${queries} query heads share ${heads} ${heads === 1 ? "head" : "heads"} of keys and values: ${queries / heads} times less memory`]);
    this.sums.replaceChildren(...rows.flatMap(([name, text]) => [make("dt", "", name), make("dd", "", text)]));
  }

  showLegend() {
    const { ends } = this.grid;
    const part = (role, text) => {
      const one = make("span", "");
      const bar = make("i", "cache-ramp");
      bar.style.setProperty("--hue", `var(--${role})`);
      one.append(bar, text);
      return one;
    };
    const fresh = make("span", "");
    fresh.append(make("i", "cache-fresh"), "read in this step");
    this.legend.replaceChildren(part("key", `|k|, the length of the key: 0 to ${number(ends.k)}`), part("value", `|v|, of the value: 0 to ${number(ends.v)}`), fresh);
  }

  look(cell) {
    this.said.textContent = cell ? saidOf(cell) : "Point at a cell: the lengths of its vectors, as the cache holds them.";
  }

  // --- keyboard, take away -------------------------------------------------------------------------------------------------

  go(at) {
    const to = Math.max(0, Math.min(this.steps, at));
    this.page.go({ cache_step: to === this.steps ? null : to });
  }

  key(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!this.found || !by) return;
    event.preventDefault();
    this.go(this.at + by);
  }

  looked() {
    const { found } = this;
    if (!found) return { where: "", sentence: "", asks: {}, file: "cache" };
    const sentence = `${this.shown} positions, ${(found.layers * found.heads * found.cell).toLocaleString("en")} bytes each`;
    return { where: this.at ? `token ${this.at} of ${this.steps}` : "the prompt", sentence, asks: { times: this.measure.found }, file: "cache" };
  }

  /** For a picture: the grids as wide as they are, and nothing that can only be clicked. */
  unfold(on) {
    const { element } = this.page;
    const wide = this.grid.names.offsetWidth + this.grid.frame.offsetWidth;
    element.classList.toggle("pictured", on);
    element.parentElement.style.minWidth = on ? `${wide}px` : "";
    for (const grid of [this.grid, this.cross]) grid.scroller.classList.toggle("unfolded", on);
  }
}

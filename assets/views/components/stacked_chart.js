// Amounts by length, one kind on top of the other. The pointer and the arrow keys go along the lengths and from kind to kind; the
// legend reads every kind at the length that is pointed at, and first at the chosen one.
import { chart, path } from "./chart.js";
import { SHAPES } from "./cost_chart.js";
import { make, range } from "../core/dom.js";
import { percent } from "../core/format.js";
import { svg } from "./stack.js";

const HIGH = 280; // CSS pixels
const ROOM = 13; // of a band that has place for a mark
const MARKS = 3; // in a band
const BINARY = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, ""]];
const DECIMAL = [[1e15, "10¹⁵"], [1e12, "trillions"], [1e9, "billions"], [1e6, "millions"], [1e3, "thousands"], [1, ""]];

export class StackedChart {
  /** data = {title, unit, axis, each, lengths, now, parts: [{name, role, pale, amounts}]}: an amount in `unit` for each length. */
  constructor({ data, width }) {
    this.data = data;
    const { lengths, parts } = data;
    this.sums = [lengths.map(() => 0)]; // below the first kind, below the second, ..., above the last
    for (const { amounts } of parts) this.sums.push(this.sums.at(-1).map((sum, j) => sum + amounts[j]));
    const most = Math.max(...this.sums.at(-1)) || 1;
    const [scale, word] = (data.unit === "bytes" ? BINARY : DECIMAL).find(([size]) => most >= size) ?? [1, ""];
    this.scale = scale;
    const title = `${data.title}: ${data.unit} by ${data.axis}; left and right go along it, up and down from part to part`;
    this.chart = chart({ width, height: HIGH, from: { x: lengths[0], y: 0 }, to: { x: lengths.at(-1), y: most / scale }, label: data.axis, title });
    this.element = this.chart.element;
    this.element.prepend(make("p", "unit", [data.unit, word].filter(Boolean).join(", ")));
    this.said = this.element.querySelector(".told");
    this.said.setAttribute("aria-live", "polite");
    this.picture = this.element.querySelector("svg");
    this.bands = parts.map((_, i) => this.band(i));
    parts.forEach((_, i) => this.mark(i));
    this.rule = this.chart.plot.appendChild(svg("line", { class: "now", y1: this.chart.floor, y2: this.chart.top }));
    this.element.append(this.legend());
    this.hear();
    this.tell(this.rest, null);
  }

  get rest() {
    return this.data.lengths.indexOf(this.data.now);
  }

  at(i, j) {
    return [this.chart.x(this.data.lengths[j]), this.chart.y(this.sums[i][j] / this.scale)];
  }

  band(i) {
    const along = range(0, this.data.lengths.length);
    const [low, high] = [i, i + 1].map((edge) => along.map((j) => this.at(edge, j)));
    const d = `${path(high)}L${path(low.reverse()).slice(1)}Z`;
    const { role, pale } = this.data.parts[i];
    return this.chart.plot.appendChild(svg("path", { class: pale ? "band pale" : "band", style: `--hue: var(--${role})`, d }));
  }

  /** A kind's shape in the middle of its band, so that it is known without its hue; where it is thin, once, at its thickest. */
  mark(i) {
    const last = this.data.lengths.length - 1;
    const high = (j) => this.at(i, j)[1] - this.at(i + 1, j)[1];
    const places = range(0, MARKS).map((k) => Math.round(last * ((k + 0.55) / MARKS + 0.02 * ((i % 3) - 1))));
    const wide = places.filter((j) => j <= last && high(j) >= ROOM);
    const thin = Math.max(0, last - 1 - 2 * i);
    for (const j of wide.length ? wide : high(thin) >= 1 ? [thin] : []) {
      const [x, top] = this.at(i + 1, j);
      this.chart.plot.append(svg("path", { class: "sign", d: SHAPES[i % SHAPES.length], transform: `translate(${x.toFixed(1)} ${(top + high(j) / 2).toFixed(1)}) scale(.8)` }));
    }
  }

  legend() {
    const list = make("div", "reading");
    this.values = this.data.parts.map((part, i) => {
      const row = make("div", "one-of");
      const value = make("output", "amount");
      row.append(swatch(part, i), make("span", "", part.name), value);
      list.prepend(row); // as they stand on top of each other
      return { row, value };
    });
    return list;
  }

  hear() {
    const { picture } = this;
    picture.setAttribute("tabindex", "0");
    picture.addEventListener("pointermove", (event) => this.point(event));
    picture.addEventListener("pointerleave", () => this.tell(this.rest, null));
    picture.addEventListener("blur", () => this.tell(this.rest, null));
    picture.addEventListener("keydown", (event) => this.key(event));
  }

  point(event) {
    const box = this.picture.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const far = (j) => Math.abs(this.at(0, j)[0] - x);
    const j = range(0, this.data.lengths.length).reduce((best, one) => (far(one) < far(best) ? one : best), 0);
    const i = this.data.parts.findIndex((_, part) => y <= this.at(part, j)[1] && y >= this.at(part + 1, j)[1]);
    this.tell(j, i < 0 ? null : i);
  }

  key(event) {
    const [along, up] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] ?? [0, 0];
    if (!(along || up)) return;
    event.preventDefault();
    const inside = (place, size) => Math.max(0, Math.min(size - 1, place));
    const part = up ? inside((this.part ?? (up > 0 ? -1 : this.data.parts.length)) + up, this.data.parts.length) : this.part;
    this.tell(inside(this.j + along, this.data.lengths.length), part);
  }

  /** Reads the length number `j`, and there the part number `part` or all. */
  tell(j, part) {
    Object.assign(this, { j, part });
    const { lengths, parts } = this.data;
    const [x] = this.at(0, j);
    this.rule.setAttribute("x1", x);
    this.rule.setAttribute("x2", x);
    const all = this.sums.at(-1)[j];
    this.values.forEach(({ row, value }, i) => {
      value.textContent = written(parts[i].amounts[j]);
      row.classList.toggle("pointed", i === part);
      this.bands[i].classList.toggle("faint", part !== null && i !== part);
    });
    const one = part === null ? "" : ` · ${parts[part].name}: ${written(parts[part].amounts[j])}, ${percent(all ? parts[part].amounts[j] / all : 0)}`;
    this.said.textContent = `${lengths[j].toLocaleString("en")} ${this.data.each}: ${written(all)} ${this.data.unit}${one}`;
  }
}

function swatch({ role, pale }, i) {
  const picture = svg("svg", { width: 24, height: 14, viewBox: "-12 -7 24 14", class: "swatch", "aria-hidden": "true" });
  picture.append(svg("path", { class: pale ? "band pale" : "band", style: `--hue: var(--${role})`, d: "M-12-7H12V7H-12z" }));
  picture.append(svg("path", { class: "sign", d: SHAPES[i % SHAPES.length], transform: "scale(.8)" }));
  return picture;
}

function written(amount) {
  return amount.toLocaleString("en", { maximumFractionDigits: 0 });
}

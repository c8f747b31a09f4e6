// What kinds of attention cost against the length, both logarithmic: points measured, dashed lines the formulas. The pointer, or the
// arrow keys, go from point to point and read each one.
import { chart, path } from "./chart.js";
import { svg } from "./stack.js";

export const SERIES = ["attention", "probability", "residual", "key", "query", "value"]; // hues of the kinds, in their order
const HIGH = 330; // CSS pixels
const NEAR = 36;
const FEW = 480; // of width, below which every second length is written
export const SHAPES = ["M-4.2-4.2h8.4v8.4h-8.4z", "M-1.7-5h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3z", "M0-4.8a4.8 4.8 0 1 0 .01 0z", "M0-6L6 0 0 6-6 0z", "M0-5.6L5.4 4.2H-5.4z", "M0 5.6L5.4-4.2H-5.4z", "M-5.4-2h10.8v4h-10.8z", "M-2-5.4h4v10.8h-4z", "M-4.8-4.8H4.8L-4.8 4.8H4.8z"]; // never told by hue alone

export class CostChart {
  /** `what` is a column of data.measured and data.formulas, `text` writes one of its numbers, `hidden` are kinds that are not drawn. */
  constructor({ data, what, text, width, hidden }) {
    Object.assign(this, { data, what, text });
    const shown = ({ kind }) => !hidden.has(kind);
    const lines = data.formulas.filter((one) => one[what] !== null);
    const all = [...data.measured, ...lines].map((one) => one[what]);
    const lengths = [...new Set(data.formulas.map((one) => one.length))].sort((a, b) => a - b);
    const ticks = width < FEW ? lengths.filter((_, i) => i % 2 === 0) : lengths;
    const from = { x: lengths[0], y: decade(Math.min(...all), Math.floor), log: true, ticks };
    const to = { x: lengths.at(-1), y: decade(Math.max(...all), Math.ceil), log: true, written: text };
    const title = `${what} by length in positions; arrow keys go from point to point`;
    this.chart = chart({ width, height: HIGH, from, to, label: "length, positions", title });
    this.element = this.chart.element;
    this.said = this.element.querySelector(".told");
    this.kinds = data.kinds.map(([, name]) => name);
    this.points = data.measured.filter(shown).map((point) => ({ ...point, x: this.chart.x(point.length), y: this.chart.y(point[what]), series: this.kinds.indexOf(point.kind) }));
    this.kinds.forEach((kind, i) => hidden.has(kind) || this.draw(i, lines.filter((one) => one.kind === kind)));
    this.ring = this.chart.plot.appendChild(svg("circle", { r: 9, class: "ring", visibility: "hidden" }));
    this.hear();
    this.tell(null);
  }

  draw(i, line) {
    const group = svg("g", { class: "series", style: `--hue: var(--${SERIES[i]})` });
    group.append(svg("path", { class: "formula-line", d: path(line.map((one) => [this.chart.x(one.length), this.chart.y(one[this.what])])) }));
    for (const { x, y } of this.points.filter(({ series }) => series === i)) group.append(svg("path", { class: "measured", d: SHAPES[i], transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` }));
    this.chart.plot.append(group);
  }

  hear() {
    const picture = this.element.querySelector("svg");
    picture.setAttribute("tabindex", "0");
    this.said.setAttribute("aria-live", "polite");
    picture.addEventListener("pointermove", (event) => this.tell(this.nearest(picture, event)));
    picture.addEventListener("pointerleave", () => this.tell(null));
    picture.addEventListener("keydown", (event) => this.key(event));
    picture.addEventListener("blur", () => this.tell(null));
  }

  nearest(picture, event) {
    const box = picture.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const far = (point) => Math.hypot(point.x - x, point.y - y);
    const found = this.points.reduce((best, point) => (best && far(best) <= far(point) ? best : point), null);
    return found && far(found) <= NEAR ? found : null;
  }

  /** Left and right to the next length of a kind, up and down to the next kind at a length. */
  key(event) {
    const [across, up] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] ?? [0, 0];
    if (!(across || up) || !this.points.length) return;
    event.preventDefault();
    const { now } = this;
    if (!now) return this.tell(this.points[0]);
    const along = this.points.filter((one) => (across ? one.kind === now.kind : one.length === now.length)).sort((a, b) => (across ? a.length - b.length : a[this.what] - b[this.what]));
    this.tell(along[along.indexOf(now) + across + up] ?? now);
  }

  tell(point) {
    this.now = point;
    this.ring.setAttribute("visibility", point ? "visible" : "hidden");
    if (!point) return this.said.replaceChildren(); // the style sheet says how to read one, which no picture repeats
    this.ring.setAttribute("cx", point.x);
    this.ring.setAttribute("cy", point.y);
    const formula = this.data.formulas.find((one) => one.kind === point.kind && one.length === point.length)[this.what];
    const more = [`${point["multiply-adds"].toLocaleString("en")} multiply-adds`];
    if (point["look-ups"]) more.push(`${point["look-ups"].toLocaleString("en")} look-ups`);
    if (point.recall !== null) more.push(`recall ${point.recall.toFixed(3)}`);
    this.said.textContent = `${point.kind}, ${point.length.toLocaleString("en")} positions: ${this.text(point[this.what])}, by the formula ${this.text(formula)} · ${more.join(" · ")}`;
  }
}

/** The mark of a kind, as it stands in the legend. */
export function glyph(i) {
  const picture = svg("svg", { width: 30, height: 14, viewBox: "-15 -7 30 14", class: "glyph", "aria-hidden": "true" });
  picture.append(svg("path", { class: "formula-line", d: "M-15 0H15" }), svg("path", { class: "measured", d: SHAPES[i] }));
  return picture;
}

export function time(seconds) {
  const [scale, unit] = seconds >= 1 ? [1, "s"] : seconds >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
  return `${short(seconds * scale)} ${unit}`;
}

export function bytes(count) {
  const [scale, unit] = count >= 1e9 ? [1e9, "GB"] : count >= 1e6 ? [1e6, "MB"] : [1e3, "kB"];
  return `${short(count / scale)} ${unit}`;
}

function short(value) {
  return Number(value.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 6 });
}

function decade(value, round) {
  return 10 ** round(Math.log10(value));
}

// A small chart as SVG: two axes with few ticks, a place for marks, and a line that follows the pointer.
import { make } from "../core/dom.js";
import { svg } from "./stack.js";

const MARGIN = { left: 52, right: 14, top: 10, bottom: 36 };

/**
 * {element, plot, x, y, hover}: `plot` takes marks in pixels, `x` and `y` map values to them. `hover(find)` asks
 * find(value of x) for {x, y, text} while the pointer is over the chart, and shows it; x is even then. `from.log` and `to.log` make
 * x and y logarithmic, `to.written` writes the ticks of y.
 */
export function chart({ width, height, from, to, label, title }) {
  const element = make("figure", "chart");
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title });
  const across = [MARGIN.left, width - MARGIN.right];
  const upward = [height - MARGIN.bottom, MARGIN.top];
  const x = scale(from.x, to.x, across, from.log);
  const y = scale(from.y, to.y, upward, to.log);
  for (const tick of to.log ? powers(from.y, to.y) : even(from.y, to.y, 3)) {
    picture.append(svg("line", { x1: across[0], x2: across[1], y1: y(tick), y2: y(tick), class: "grid" }));
    picture.append(svg("text", { x: across[0] - 7, y: y(tick) + 4, class: "tick", "text-anchor": "end" }, (to.written ?? written)(tick)));
  }
  for (const tick of from.ticks ?? even(from.x, to.x, 4)) {
    picture.append(svg("line", { x1: x(tick), x2: x(tick), y1: upward[0], y2: upward[0] + 4, class: "axis-line" }));
    picture.append(svg("text", { x: x(tick), y: upward[0] + 17, class: "tick", "text-anchor": "middle" }, written(tick)));
  }
  picture.append(svg("line", { x1: across[0], x2: across[1], y1: upward[0], y2: upward[0], class: "axis-line" }));
  picture.append(svg("text", { x: across[1], y: height - 4, class: "label", "text-anchor": "end" }, label));
  const plot = picture.appendChild(svg("g"));
  const pointer = picture.appendChild(svg("g", { class: "pointer", visibility: "hidden" }));
  const told = make("figcaption", "told", "\u00a0");
  element.append(picture, told);
  const hover = (find, rest = "\u00a0") => {
    told.textContent = rest;
    picture.onpointermove = (event) => {
      const box = picture.getBoundingClientRect();
      const at = ((event.clientX - box.left) * width) / box.width;
      const value = from.x + ((at - across[0]) / (across[1] - across[0])) * (to.x - from.x);
      const found = find(Math.max(from.x, Math.min(to.x, value)));
      told.textContent = found?.text ?? rest;
      pointer.setAttribute("visibility", found ? "visible" : "hidden");
      if (!found) return;
      pointer.replaceChildren(svg("line", { x1: x(found.x), x2: x(found.x), y1: upward[1], y2: upward[0] }));
      if (found.y !== null) pointer.append(svg("circle", { cx: x(found.x), cy: y(found.y), r: 4 }));
    };
    picture.onpointerleave = () => {
      told.textContent = rest;
      pointer.setAttribute("visibility", "hidden");
    };
  };
  return { element, plot, x, y, hover, floor: upward[0], top: upward[1] };
}

/** A path through points. */
export function path(points) {
  return points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
}

function scale(low, high, [start, end], log) {
  const [from, to] = log ? [Math.log10(low), Math.log10(high)] : [low, high];
  return (value) => start + (((log ? Math.log10(Math.max(value, low)) : value) - from) / (to - from || 1)) * (end - start);
}

/** Round numbers between two, about `count` of them. */
function even(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, i) => (first + i) * step);
}

/** Powers of ten between two numbers; with their doubles and fives where those are few. */
function powers(low, high) {
  const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
  const whole = Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => 10 ** (first + i));
  if (whole.length > 6) return whole.filter((_, i) => i % Math.ceil(whole.length / 5) === 0);
  if (whole.length > 2) return whole;
  const all = Array.from({ length: last - first + 4 }, (_, i) => [1, 2, 5].map((each) => each * 10 ** (first - 1 + i))).flat();
  return all.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
}

function written(x) {
  const size = Math.abs(x);
  if (size !== 0 && (size < 0.001 || size >= 1e6)) return x.toExponential(0).replace("e+", "e").replace("-", "−").replace("e-", "e−");
  return Number(x.toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 6 }).replace("-", "−");
}

export const CHART_CSS = `
.chart { margin: 0; position: relative; }
.chart svg { display: block; width: 100%; height: auto; overflow: visible; font-family: var(--sans); }
.chart .grid { stroke: var(--hairline); }
.chart .axis-line { stroke: var(--soft); }
.chart .tick { font: 11.5px var(--mono); fill: var(--soft); }
.chart .label { font-size: 12.5px; fill: var(--soft); }
.chart .pointer line { stroke: var(--ink); stroke-dasharray: 2 3; }
.chart .pointer circle { fill: var(--ground); stroke: var(--ink); stroke-width: 2; }
.chart .told { font: 12.5px/18px var(--mono); color: var(--soft); min-height: 18px; padding-left: ${MARGIN.left}px; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
`;

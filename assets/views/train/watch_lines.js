// The same norms as lines over the steps, one for each part, on a logarithmic axis.
import { make } from "../core/dom.js";
import { thinned, ticks } from "./scale.js";
import { said, titleOf } from "./watch_parts.js";
import { whole } from "./words.js";
import { svg } from "../components/stack.js";

const [TOP, BOTTOM, LEAST] = [8, 24, 260];
const COLOURS = 12;
const APART = 15; // px between two labels

export function norms() {
  const element = make("div");
  const picture = svg("svg", { "aria-hidden": "true" });
  const [axes, lines, names] = [0, 1, 2].map(() => picture.appendChild(svg("g")));
  const handle = picture.appendChild(svg("line", { class: "watch-handle", y1: TOP - 3 }));
  element.append(picture);
  let [y, texts] = [null, []];

  const draw = (view) => {
    const height = Math.max(LEAST, TOP + BOTTOM + view.parts.length * APART);
    picture.setAttribute("width", view.width);
    picture.setAttribute("height", height);
    handle.setAttribute("y2", height - BOTTOM);
    y = upward(view.range, height);
    axis(view, axes, y, height);
    lines.replaceChildren(...view.parts.map((part, i) => curve(view, part, i, y)));
    texts = label(view, names, y);
    view.legend.replaceChildren(make("span", "", "logarithmic"));
  };
  const place = ({ parts }, line, at) => {
    handle.setAttribute("x1", at);
    handle.setAttribute("x2", at);
    parts.forEach((part, i) => (texts[i].textContent = said(line.gradients[part])));
  };
  /** The part whose line is nearest there. */
  const partAt = ({ parts }, at, { gradients }) => {
    const apart = (part) => (part in gradients ? Math.abs(y(gradients[part]) - at) : Infinity);
    return parts.reduce((best, part) => (apart(part) < apart(best) ? part : best));
  };
  return { element, draw, place, partAt };
}

function upward([low, high], height) {
  const room = height - TOP - BOTTOM;
  return (norm) => TOP + room * (1 - Math.max(0, Math.log(Math.max(norm, low) / low) / Math.log(high / low)));
}

function curve({ lines, x }, part, i, y) {
  const steps = lines.map(({ step }) => step);
  const values = lines.map(({ gradients }) => gradients[part] ?? NaN);
  const path = svg("path", { class: "norm-line", d: thinned(steps, values, steps.length, x.to, y) });
  path.style.stroke = `var(--head-${(i % COLOURS) + 1})`;
  return path;
}

function axis({ lab, left, right, most, x, range: [low, high] }, group, y, height) {
  group.replaceChildren();
  for (let power = Math.ceil(Math.log10(low) - 1e-9); power <= Math.log10(high) + 1e-9; power++) {
    group.append(svg("line", { x1: left, x2: right, y1: y(10 ** power), y2: y(10 ** power), class: "grid" }));
    group.append(svg("text", { x: left - 8, y: y(10 ** power) + 4, class: "tick", "text-anchor": "end" }, String(Number((10 ** power).toPrecision(1)))));
  }
  for (const tick of ticks(most, lab.narrow ? 3 : 6, { log: lab.state.log, whole: true })) {
    group.append(svg("text", { x: x.to(tick), y: height - 7, class: "tick", "text-anchor": tick || lab.state.log ? "middle" : "start" }, whole(tick)));
  }
}

/** The parts' names at the ends of their lines, in their colours, with the numbers at the handle. */
function label({ parts, lines, width, right }, group, y) {
  group.replaceChildren();
  const ends = parts.map((part, i) => ({ part, i, at: y(lines.findLast(({ gradients }) => part in gradients).gradients[part]) }));
  const texts = [];
  let above = TOP - APART;
  for (const { part, i, at } of ends.sort((a, b) => a.at - b.at)) {
    above = Math.max(at, above + APART);
    const name = group.appendChild(svg("text", { x: right + 6, y: above + 4 }, titleOf(part)));
    name.style.fill = `var(--head-${(i % COLOURS) + 1})`;
    texts[i] = group.appendChild(svg("text", { x: width - 2, y: above + 4, class: "norm" }));
  }
  return texts;
}

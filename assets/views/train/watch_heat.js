// The map of gradient norms: a row for each part, from the embedding below to the head above, and the steps from left to right.
// Colour grows with the logarithm.
import { make } from "../core/dom.js";
import { ticks } from "./scale.js";
import { nearest, said, titleOf } from "./watch_parts.js";
import { whole } from "./words.js";
import { css, ramp, STEPS } from "../core/palette.js";
import { svg } from "../components/stack.js";

const ROW = { wide: 24, narrow: 22 };
const [GAP, TOP, BOTTOM] = [2, 4, 24];
const STOPS = 8; // of the legend
const HUE = "residual"; // gradients come back along the stream

/** {element, draw(view, narrow), place(view, line, x of the handle), partAt(view, y, line)}, as lab_watch_lines.js has it. */
export function heat() {
  const element = make("div");
  const canvas = make("canvas");
  canvas.setAttribute("aria-hidden", "true"); // the slider around it says the numbers
  const picture = svg("svg", { "aria-hidden": "true" });
  const below = picture.appendChild(svg("g"));
  const handle = picture.appendChild(svg("line", { class: "watch-handle" }));
  element.append(canvas, picture);
  let [row, texts] = [0, []];

  const draw = (view, narrow) => {
    const { parts, left, right, width } = view;
    row = narrow ? ROW.narrow : ROW.wide;
    const height = TOP + parts.length * row + BOTTOM;
    picture.setAttribute("width", width);
    picture.setAttribute("height", height);
    texts = label(view, below, row);
    handle.setAttribute("y1", TOP - 3);
    handle.setAttribute("y2", TOP + parts.length * row + 3);
    const room = { width: right - left, height: parts.length * row };
    Object.assign(canvas.style, { left: `${left}px`, top: `${TOP}px` });
    paint(canvas, view, row, room);
    explain(view);
  };
  const place = ({ parts }, line, at) => {
    handle.setAttribute("x1", at);
    handle.setAttribute("x2", at);
    parts.forEach((part, i) => {
      const text = said(line.gradients[part]);
      if (texts[i].textContent !== text) texts[i].textContent = text;
    });
  };
  const partAt = ({ parts }, y) => parts[parts.length - 1 - Math.floor((y - TOP) / row)] ?? null;
  return { element, draw, place, partAt };
}

function label({ parts, lab, left, right, width, most, x }, group, row) {
  group.replaceChildren();
  const bottom = TOP + parts.length * row;
  for (const tick of ticks(most, lab.narrow ? 3 : 6, { log: lab.state.log, whole: true })) {
    group.append(svg("line", { x1: x.to(tick), x2: x.to(tick), y1: bottom, y2: bottom + 4, class: "grid" }));
    group.append(svg("text", { x: x.to(tick), y: bottom + 17, class: "tick", "text-anchor": tick || lab.state.log ? "middle" : "start" }, whole(tick)));
  }
  group.append(svg("text", { x: left - 10, y: bottom + 17, class: "tick", "text-anchor": "end" }, "step"));
  return parts.map((part, i) => {
    const y = bottom - (i + 0.5) * row + 4;
    group.append(svg("text", { x: left - 10, y, "text-anchor": "end" }, titleOf(part)));
    return group.appendChild(svg("text", { x: width - 2, y, class: "norm" }));
  });
}

/** One column of pixels after another: each shows the line that is nearest to its step. */
function paint(canvas, { parts, lines, left, x, range, track }, row, room) {
  const dpr = window.devicePixelRatio || 1;
  const [wide, high] = [Math.max(1, Math.round(room.width * dpr)), Math.max(1, Math.round(room.height * dpr))];
  canvas.width = wide;
  canvas.height = high;
  Object.assign(canvas.style, { width: `${room.width}px`, height: `${room.height}px` });
  const context = canvas.getContext("2d");
  const image = context.createImageData(wide, high);
  const pixels = new Uint32Array(image.data.buffer);
  const table = ramp(track, HUE, "unit");
  const last = lines.at(-1).step;
  for (let px = 0; px < wide; px++) {
    const step = x.from(left + (px + 0.5) / dpr);
    if (px && step > last) break; // not there yet
    const { gradients } = lines[nearest(lines, step)];
    parts.forEach((part, i) => {
      if (gradients[part] === undefined) return;
      const colour = table[shade(gradients[part], range)];
      const top = Math.round((parts.length - 1 - i) * row * dpr);
      const end = Math.round(((parts.length - i) * row - GAP) * dpr);
      for (let y = top; y < end; y++) pixels[y * wide + px] = colour;
    });
  }
  context.putImageData(image, 0, 0);
}

/** Where a norm stands in the ramp, whose steps grow with the square root: that is undone, for the logarithm alone to count. */
function shade(norm, [low, high]) {
  const share = Math.max(0, Math.min(1, Math.log(norm / low) / Math.log(high / low)));
  return Math.round(share ** 2 * (STEPS - 1));
}

function explain({ legend, range, track }) {
  const table = ramp(track, HUE, "unit");
  const bar = make("i");
  const stops = Array.from({ length: STOPS + 1 }, (_, i) => css(table[Math.round((i / STOPS) ** 2 * (STEPS - 1))]));
  bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  const [low, high] = range.map((norm) => Number(norm.toPrecision(2)));
  legend.replaceChildren(make("span", "", String(low)), bar, make("span", "", `${high} · logarithmic`));
}

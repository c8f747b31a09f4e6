// A histogram as a hill, and those of earlier steps as lines behind it, the earliest farthest up. All of one part's steps share one axis.
import { range } from "../core/dom.js";
import { roundUp } from "./scale.js";
import { said } from "./watch_parts.js";
import { whole } from "./words.js";
import { svg } from "../components/stack.js";

const [WIDTH, HILL, APART, AXIS] = [260, 74, 11, 18]; // in units of the picture; APART is between two lines
const MOST = 6; // of them
const BASE = HILL + MOST * APART;
const NEEDLE = 1 / 120; // of the axis: how wide a single value is drawn

/**
 * {element, bound(lines), show(line, before) -> [min, std, max] in words}: `of(line)` is [low, high, counts]. `bound` finds the axis, which
 * holds what all `lines` have and ends at round numbers.
 */
export function ridge(lab, of) {
  const element = svg("svg", { viewBox: `0 0 ${WIDTH} ${BASE + AXIS}`, role: "img" });
  const axis = element.appendChild(svg("g"));
  const past = range(0, MOST).map(() => element.appendChild(svg("path", { class: "past" })));
  const hill = element.appendChild(svg("path", { class: "hill" }));
  let [ends, drawn, looked] = [null, "", null];
  const x = (value) => ((value - ends[0]) / (ends[1] - ends[0])) * WIDTH;

  const bound = (lines) => {
    const known = lines.map(of).filter(Boolean);
    ends = outward(Math.min(...known.map(([low]) => low)), Math.max(...known.map(([, high]) => high)));
    if (drawn === ends.join()) return;
    drawn = ends.join();
    axis.replaceChildren(...scale(ends, x));
  };
  const show = (line, before) => {
    looked = of(line);
    const known = before.map(of).filter(Boolean);
    past.forEach((path, i) => path.setAttribute("d", i < known.length ? outline(known[i], x, BASE - (known.length - i) * APART) : ""));
    hill.setAttribute("d", looked ? outline(looked, x, BASE) : "");
    const told = looked ? [looked[0], spread(looked), looked[1]].map(said) : ["–", "–", "–"];
    element.setAttribute("aria-label", `histogram at step ${line.step}: ${told[0]} to ${told[2]}, standard deviation ${told[1]}`);
    return told;
  };
  element.addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch" || !looked) return;
    const box = element.getBoundingClientRect();
    const found = binAt(looked, ends[0] + ((event.clientX - box.left) / box.width) * (ends[1] - ends[0]));
    if (found) lab.tip(found.title, found.value);
    else lab.tip(null);
  });
  element.addEventListener("pointerleave", () => lab.tip(null));
  return { element, bound, show };
}

/** Ends that are multiples of a round number, about an eighth of what lies between. */
function outward(low, high) {
  const apart = roundUp(Math.max((high - low) / 8, Math.abs(high) * 1e-3, 1e-12));
  const ends = [Math.floor(low / apart + 1e-9) * apart, Math.ceil(high / apart - 1e-9) * apart];
  return ends[1] > ends[0] ? ends : [ends[0] - apart, ends[0] + apart];
}

function scale([low, high], x) {
  const made = [svg("line", { x1: 0, x2: WIDTH, y1: BASE, y2: BASE, class: "grid" })];
  const inside = low < 0 && high > 0;
  if (inside) made.push(svg("line", { x1: x(0), x2: x(0), y1: 4, y2: BASE + 4, class: "grid" }));
  const ticks = [[low, "start"], ...(inside && x(0) > 40 && x(0) < WIDTH - 40 ? [[0, "middle"]] : []), [high, "end"]];
  return [...made, ...ticks.map(([at, anchor]) => svg("text", { x: x(at), y: BASE + 15, class: "tick", "text-anchor": anchor }, rounded(at)))];
}

function rounded(x) {
  return String(Number(x.toPrecision(3))).replace("-", "−");
}

/** The density over the axis, standing on `base`, as high as HILL at its peak. */
function outline([low, high, counts], x, base) {
  const most = Math.max(...counts, 1);
  if (low === high) {
    const half = (WIDTH * NEEDLE) / 2;
    return `M${point(x(low) - half, base)}L${point(x(low) - half, base - HILL)}L${point(x(low) + half, base - HILL)}L${point(x(low) + half, base)}Z`;
  }
  const wide = (high - low) / counts.length;
  const tops = counts.map((count, i) => `L${point(x(low + (i + 0.5) * wide), base - (count / most) * HILL)}`);
  return `M${point(x(low), base)}${tops.join("")}L${point(x(high), base)}Z`;
}

function point(x, y) {
  return `${x.toFixed(1)} ${y.toFixed(1)}`;
}

/** The standard deviation, as if all of a bin lay in its middle; less what that itself adds (Sheppard). */
export function spread([low, high, counts]) {
  const wide = (high - low) / counts.length;
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (!total) return undefined;
  const mean = counts.reduce((sum, count, i) => sum + count * (i + 0.5), 0) / total;
  const square = counts.reduce((sum, count, i) => sum + count * (i + 0.5 - mean) ** 2, 0) / total;
  return wide * Math.sqrt(Math.max(0, square - 1 / 12));
}

/** What lies under the pointer: the bin's ends, and how many are in it. */
function binAt([low, high, counts], value) {
  const wide = (high - low) / counts.length;
  const i = wide ? Math.min(counts.length - 1, Math.floor((value - low) / wide)) : 0;
  if (value < low || value > high || i < 0) return null;
  const total = counts.reduce((sum, count) => sum + count, 0);
  return { title: `${said(low + i * wide)} to ${said(low + (i + 1) * wide)}`, value: `${whole(counts[i])} of ${whole(total)}` };
}

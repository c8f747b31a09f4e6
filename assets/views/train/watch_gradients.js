// How long the gradient of each part of the model was over the steps: a map of parts by steps, or a line for each part.
import { choices } from "../components/choices.js";
import { make } from "../core/dom.js";
import { across, extent, roundUp } from "./scale.js";
import { heat } from "./watch_heat.js";
import { norms } from "./watch_lines.js";
import { nearest, partsOf, said, titleOf } from "./watch_parts.js";
import { whole } from "./words.js";

const ABOUT =
  "The Euclidean length of the gradient with respect to all parameters of a part, of the last update before the step, before it is " +
  "clipped. A part that stays far below the others learns little; one that shoots up is about to be unstable.";
const NONE = "No gradient has been measured yet: the first comes with the first steps.";
const NUMBERS = 70; // px of the numbers at the right
const NAMES = { wide: 140, narrow: 104 };
const TICKS = 50;
const MOVES = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity };

let drawnAs = "map"; // remembered while one looks at other tabs

export function mount(root, lab) {
  const element = make("div", "watch gradients");
  const head = make("div", "watch-head");
  const at = make("span", "watch-at");
  const chosen = choices("how the gradients are drawn", [["map", "Map"], ["lines", "Lines"]], (value) => {
    drawnAs = value;
    update();
  });
  const legend = make("div", "watch-legend");
  head.append(make("h3", "", "Gradient norm of each part"), chosen.element, legend);
  const track = make("div", "watch-track");
  track.tabIndex = 0;
  track.setAttribute("role", "slider");
  track.setAttribute("aria-label", "step that is looked at, over the steps at which gradients were measured");
  const none = make("p", "watch-none", NONE);
  element.append(head, make("p", "watch-about", ABOUT), none, track);
  legend.before(at);
  root.append(element);
  const view = { lab, track, legend, drawings: {} };
  let known = "";

  /** The lines with gradients, and where everything stands; drawn anew only where one of these is another. */
  const update = () => {
    const lines = lab.watch.filter(({ gradients }) => Object.keys(gradients).length);
    none.hidden = lines.length > 0;
    for (const part of [track, at, legend, chosen.element]) part.hidden = !lines.length;
    if (!lines.length) return;
    chosen.show(drawnAs);
    const width = element.clientWidth;
    const key = [lab.edition, lab.editions.watch, lab.active, width, lab.state.log, drawnAs, element.closest("[data-theme]")?.dataset.theme].join();
    if (key !== known) {
      known = key;
      Object.assign(view, laid(lab, lines, width));
      show(view, lab.narrow);
    }
    tell(view, at);
  };
  listen(view, update);
  return { update, mark() {}, destroy: () => element.remove() };
}

/** {lines, parts, x, range, left, right}: what is drawn and where. */
function laid(lab, lines, width) {
  const parts = partsOf(lines, "gradients");
  const names = lab.narrow ? NAMES.narrow : NAMES.wide;
  const [left, right] = drawnAs === "map" ? [names, width - NUMBERS] : [TICKS, width - NUMBERS - names];
  const most = extent(lines.at(-1).step, lab.status?.steps ?? 0, lab.active);
  const found = lines.flatMap(({ gradients }) => Object.values(gradients)).filter((norm) => norm > 0);
  const range = found.length ? [Math.min(...found), Math.max(...found)] : [1, 1];
  return { lines, parts, width, left, right, most, x: across(most, [left, right], lab.state.log), range: rounded(range) };
}

/** Round ends, so that colours stay while the range grows a little. */
function rounded([low, high]) {
  const ends = [1 / roundUp(1 / low), roundUp(high)];
  return ends[1] > ends[0] ? ends : [ends[0] / 2, ends[0] * 2];
}

function show(view, narrow) {
  view.drawings[drawnAs] ??= (drawnAs === "map" ? heat : norms)(view);
  const drawing = view.drawings[drawnAs];
  if (view.drawing !== drawing) view.track.replaceChildren((view.drawing = drawing).element);
  drawing.draw(view, narrow);
}

/** The numbers at the handle. */
function tell(view, at) {
  const { lab, lines, parts, track } = view;
  const line = lines[nearest(lines, lab.shown)];
  const key = `${line.step} ${lab.shown}`;
  view.drawing.place(view, line, Math.max(view.left, Math.min(view.right, view.x.to(lab.shown))));
  if (track.dataset.at === key && view.told === line) return;
  view.told = line;
  track.dataset.at = key;
  at.textContent = `step ${whole(line.step)}${line.step === lab.shown ? "" : `, nearest to ${whole(lab.shown)}`}`;
  track.setAttribute("aria-valuemin", lines[0].step);
  track.setAttribute("aria-valuemax", lines.at(-1).step);
  track.setAttribute("aria-valuenow", line.step);
  track.setAttribute("aria-valuetext", `step ${line.step}: ${parts.map((part) => `${titleOf(part)} ${said(line.gradients[part])}`).join(", ")}`);
}

function listen(view, update) {
  const { track, lab } = view;
  const lineAt = (event) => {
    const px = event.clientX - track.getBoundingClientRect().left;
    return view.lines[nearest(view.lines, view.x.from(Math.max(view.left, Math.min(view.right, px))))];
  };
  track.addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch" || !view.lines) return;
    const line = lineAt(event);
    const part = view.drawing.partAt(view, event.clientY - track.getBoundingClientRect().top, line);
    if (part === null) return lab.tip(null);
    lab.tip(`${titleOf(part)} · step ${whole(line.step)}`, said(line.gradients[part]));
  });
  track.addEventListener("pointerleave", () => lab.tip(null));
  track.addEventListener("click", (event) => view.lines && lab.go({ step: lineAt(event).step }));
  track.addEventListener("keydown", (event) => {
    const by = MOVES[event.key];
    if (!by || !view.lines || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const to = nearest(view.lines, lab.shown) + (event.shiftKey ? 10 * by : by);
    lab.go({ step: view.lines[Math.max(0, Math.min(view.lines.length - 1, to))].step });
    update();
  });
}

export const CSS = `
.watch-track { position: relative; cursor: crosshair; touch-action: pan-y; }
.watch-track svg { display: block; overflow: visible; position: relative; z-index: 1; }
.watch-track text { font: 12px var(--sans); fill: var(--ink); }
.watch-track text.tick { font: 11px var(--mono); fill: var(--soft); }
.watch-track text.norm { font: 12px var(--mono); text-anchor: end; }
.watch-track .grid { stroke: var(--hairline); }
.watch-handle { stroke: var(--ink); stroke-width: 2; }
.watch-track .norm-line { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
.watch-track canvas { position: absolute; border-radius: 3px; }
.watch-legend { margin-left: auto; display: flex; align-items: center; gap: 8px; font: 11.5px/14px var(--mono); color: var(--soft); white-space: nowrap; }
.watch-legend i { display: block; width: 96px; height: 8px; border-radius: 2px; }
`;

// The tabs below the probe that look at the model as a whole, as watch.jsonl has it part by part: its gradients, its weights and its
// activations. plotly.js draws them; they are mounted in this view because the time machine's handle moves them without a message.
import { choices } from "../components/choices.js";
import { make } from "../core/dom.js";
import { number, percent } from "../core/format.js";
import { colour, css, ramp, STEPS } from "../core/palette.js";
import { inside } from "../core/place.js";
import { Chart } from "../core/plotly.js";
import { computed, signal } from "../vendor/signals-core.js";
import { axisOfSteps, chartConfig, extent, logged, roundUp, scaleOf } from "./charts.js";
import { whole } from "./transport.js";

/**
 * @import { Plot, StepScale } from "./charts.js"
 * @import { Histogram, WatchLine } from "./run.js"
 * @import { Page, Part, Tab } from "./train.js"
 */

/**
 * @typedef {"weights" | "activations"} HistogramKind
 * @typedef {{ page: Page, track: HTMLElement, handle: HTMLElement, numbers: HTMLElement, plot: Plot, texts: Map<string, HTMLElement>,
 *   lines: WatchLine[], parts: string[], width: number, left: number, right: number, height: number, range: number[],
 *   axis: ReturnType<typeof axisOfSteps>, scale: StepScale }} View of the gradients, where everything stands in it from `left` on in px
 */

/**
 * What one of these tabs shows.
 * @param {HTMLElement} root
 * @param {Page} page
 * @param {Exclude<Tab, "two">} tab
 * @returns {Required<Part>}
 */
export function mount(root, page, tab) {
  return tab === "gradients" ? gradients(root, page) : histograms(root, page, tab);
}

// --- the parts of a model ----------------------------------------------------------------------------------------------------

const PART = /^(?:(encoder|decoder)\.)?blocks\.(\d+)(?:\.(attn|mlp))?$/;
/** @type {Record<string, string>} */
const INSIDE = { attn: "attention", mlp: "MLP" };
/** @type {Record<string, string>} */
const ROLES = { attn: "attention", mlp: "mlp" };

/**
 * "encoder.blocks.0.attn" -> "encoder block 1 · attention".
 * @param {string} part
 */
function titleOf(part) {
  const [found, stack, block, inside] = part.match(PART) ?? [];
  if (!found) return part === "embed" ? "embedding" : part;
  return `${stack ? `${stack} ` : ""}block ${Number(block) + 1}${inside ? ` · ${INSIDE[inside]}` : ""}`;
}

/**
 * The role whose color the part has: what is written into the residual stream has the stream's.
 * @param {string} part
 */
function roleOf(part) {
  if (part === "head") return "probability";
  return ROLES[part.match(PART)?.[3] ?? ""] ?? "residual";
}

/**
 * Four digits of a number, "–" where there is none.
 * @param {number | undefined} value
 */
function formatValue(value) {
  return value === undefined ? "–" : number(value).replace(/(\.\d+?)\d$/, "$1");
}

/**
 * All parts that `lines` have under `name`, from the embedding up to the head.
 * @param {WatchLine[]} lines
 * @param {"gradients" | HistogramKind} name
 */
function partsOf(lines, name) {
  const found = new Set(lines.flatMap((line) => Object.keys(line[name])));
  return [...found].sort((a, b) => rank(a) - rank(b));
}

/** @param {string} part */
function rank(part) {
  const [found, stack, block, inside] = part.match(PART) ?? [];
  if (!found) return part === "embed" ? -1 : 1e9;
  return (stack === "encoder" ? 0 : 1e6) + 4 * Number(block) + (inside === "mlp" ? 1 : 0);
}

/**
 * The index of the line whose step is nearest to `step`, -1 where there are none; of two as near, the earlier.
 * @param {Pick<WatchLine, "step">[]} lines
 * @param {number} step
 */
export function nearest(lines, step) {
  let [low, high] = [0, lines.length - 1];
  if (high < 0) return -1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lines[middle].step < step) low = middle + 1;
    else high = middle;
  }
  return low > 0 && step - lines[low - 1].step <= lines[low].step - step ? low - 1 : low;
}

/**
 * @param {WatchLine} line
 * @param {number} shown
 */
function stepOf({ step }, shown) {
  return `step ${whole(step)}${step === shown ? "" : `, nearest to ${whole(shown)}`}`;
}

// --- gradients: a map of parts by steps, or a line for each part -----------------------------------------------------------------

const ABOUT_GRADIENTS =
  "The Euclidean length of the gradient with respect to all parameters of a part, of the last update before the step, before it is " +
  "clipped. A part that stays far below the others learns little; one that shoots up is about to be unstable.";
const NO_GRADIENTS = "No gradient has been measured yet: the first comes with the first steps.";
const NUMBERS = 70; // px of the numbers at the right
const NAMES = { wide: 140, narrow: 104 };
const [TOP, BOTTOM, ROW, LEAST, APART, TICKS] = [44, 44, 24, 300, 15, 56]; // px
const COLORS = 12;
/** @type {Record<string, number>} */
const MOVES = {
  ArrowLeft: -1,
  ArrowRight: 1,
  ArrowDown: -1,
  ArrowUp: 1,
  PageDown: -10,
  PageUp: 10,
  Home: -Infinity,
  End: Infinity,
};

const drawnAs = signal("map"); // remembered while one looks at other tabs

/**
 * @param {HTMLElement} root
 * @param {Page} page
 * @returns {Required<Part>}
 */
function gradients(root, page) {
  /** @type {HTMLElement} */
  const element = make("div", "watch gradients");
  const head = make("div", "watch-head");
  const at = make("span", "watch-at");
  const chosen = choices(
    "how the gradients are drawn",
    [
      ["map", "Map"],
      ["lines", "Lines"],
    ],
    (value) => {
      drawnAs.value = value;
      update();
    },
  );
  head.append(make("h3", "", "Gradient norm of each part"), chosen.element, at);
  const track = make("div", "watch-track");
  track.tabIndex = 0;
  track.setAttribute("role", "slider");
  track.setAttribute("aria-label", "step that is looked at, over the steps at which gradients were measured");
  const [plot, handle, numbers] = [make("div", "watch-plot"), make("div", "watch-handle"), make("div", "watch-norms")];
  track.append(plot, handle, numbers);
  const none = make("p", "watch-none", NO_GRADIENTS);
  element.append(head, make("p", "watch-about", ABOUT_GRADIENTS), none, track);
  root.append(element);
  const axis = axisOfSteps(1, page.state.log);
  /** @type {View} */
  const view = {
    page,
    track,
    handle,
    numbers,
    plot,
    texts: new Map(),
    lines: [],
    parts: [],
    width: 0,
    left: 0,
    right: 0,
    height: 0,
    range: [0.5, 2],
    axis,
    scale: scaleOf(axis.range, [0, 0], page.state.log),
  };
  /** @param {{ xaxis: { range: number[] } }} layout */
  const drawn = (layout) => {
    view.scale = scaleOf(layout.xaxis.range, [view.left, view.right], page.state.log);
    place(view);
  };
  const chart = new Chart(plot, page.data.plotly, { drawn, failed: (sentence) => page.parts.say(sentence) });
  const measured = computed(() => page.watch.filter((line) => Object.keys(line.gradients).length));
  const redraw = page.memoize(() => {
    lay(view, measured.value, element.clientWidth);
    chart.draw(...(drawnAs.value === "map" ? heatmap(view) : normLines(view)), chartConfig("loupe-gradients"));
    list(view);
  });

  const update = () => {
    const { length } = measured.value;
    none.hidden = length > 0;
    for (const part of [track, at, chosen.element]) part.hidden = !length;
    if (!length) return;
    chosen.show(drawnAs.value);
    redraw();
    tell(view, at);
  };
  listen(view, update);
  return { update, mark() {}, destroy: () => (chart.destroy(), element.remove()) };
}

/**
 * Finds what is drawn and where: `lines`, `parts`, `range` of the norms, `left`, `right`, `height` in px.
 * @param {View} view
 * @param {WatchLine[]} lines
 * @param {number} width
 */
function lay(view, lines, width) {
  const { page } = view;
  const parts = partsOf(lines, "gradients");
  const names = page.narrow ? NAMES.narrow : NAMES.wide;
  const [left, right] = drawnAs.value === "map" ? [names, width - NUMBERS] : [TICKS, width - NUMBERS - names];
  const most = extent(lines[lines.length - 1].step, page.status?.steps ?? 0, page.active);
  const norms = lines.flatMap((line) => Object.values(line.gradients)).filter((norm) => norm > 0);
  const ends = norms.length ? [1 / roundUp(1 / Math.min(...norms)), roundUp(Math.max(...norms))] : [0.5, 2];
  const range = ends[1] > ends[0] ? ends : [ends[0] / 2, ends[0] * 2];
  const height =
    drawnAs.value === "map" ? TOP + parts.length * ROW + BOTTOM : Math.max(LEAST, TOP + BOTTOM + parts.length * APART);
  const axis = axisOfSteps(most, page.state.log);
  Object.assign(view, {
    lines,
    parts,
    width,
    left,
    right,
    height,
    range,
    axis,
    scale: scaleOf(axis.range, [left, right], page.state.log),
  });
}

/**
 * @param {View} view
 * @param {object} yaxis
 */
function layoutOf({ page, width, height, left, right, axis, plot }, yaxis) {
  const margin = { l: left, r: width - right, t: TOP, b: BOTTOM, pad: 0, autoexpand: false };
  const dragmode = plot._fullLayout?.dragmode ?? false;
  return {
    template: page.template,
    width,
    height,
    margin,
    dragmode,
    hovermode: "closest",
    uirevision: `${page.run} ${page.state.log} ${drawnAs.value}`,
    xaxis: axis,
    yaxis,
  };
}

/**
 * A row for each part; the color grows with the logarithm.
 * @param {View} view
 * @returns {[traces: object[], layout: object]}
 */
function heatmap(view) {
  const { page, lines, parts, range, track } = view;
  const x = lines.map(({ step }) => logged(step, page.state.log));
  const norms = parts.map((part) => lines.map((line) => line.gradients[part] ?? null));
  const table = ramp(track, "residual", "unit"); // grows with the square root, which is undone
  const colorscale = Array.from({ length: 10 }, (_, i) => [i / 9, css(table[Math.round((i / 9) ** 2 * (STEPS - 1))])]);
  const [low, high] = range.map(Math.log10);
  const powers = Array.from({ length: Math.floor(high) - Math.ceil(low) + 1 }, (_, i) => Math.ceil(low) + i);
  const colorbar = {
    orientation: "h",
    thickness: 8,
    lenmode: "pixels",
    len: page.narrow ? 150 : 260,
    x: 1,
    xanchor: "right",
    y: 1,
    yanchor: "bottom",
    ypad: 2,
    tickvals: powers,
    ticktext: powers.map((power) => String(Number((10 ** power).toPrecision(1)))),
    outlinewidth: 0,
    title: { text: "gradient norm ", side: "top", font: { size: 11 } },
  };
  const trace = {
    type: "heatmap",
    x,
    y: parts.map(titleOf),
    z: norms.map((row) => row.map((norm) => (norm > 0 ? Math.log10(norm) : null))),
    customdata: norms,
    ygap: 2,
    hoverongaps: false,
    zmin: low,
    zmax: high,
    colorscale,
    colorbar,
    hovertemplate: "%{y} · step %{x:,d}<br><b>%{customdata:.4~g}</b><extra></extra>",
  };
  return [[trace], layoutOf(view, { automargin: false, showgrid: false, fixedrange: true, ticks: "" })];
}

/**
 * A line for each part, on a logarithmic axis.
 * @param {View} view
 * @returns {[traces: object[], layout: object]}
 */
function normLines(view) {
  const { page, lines, parts, range, plot } = view;
  const traces = parts.map((part, i) => {
    const known = lines.filter((line) => part in line.gradients);
    return {
      type: "scatter",
      mode: known.length > 1 ? "lines" : "markers",
      x: known.map(({ step }) => logged(step, page.state.log)),
      y: known.map((line) => line.gradients[part]),
      name: titleOf(part),
      line: { width: 1.6, color: colour(plot, `head-${(i % COLORS) + 1}`) },
      hovertemplate: "step %{x:,d}<br><b>%{y:.4~g}</b>",
      showlegend: false,
    };
  });
  const yaxis = {
    type: "log",
    range: range.map(Math.log10),
    dtick: 1,
    title: { text: "gradient norm", standoff: 4 },
    automargin: false,
    exponentformat: "none",
  };
  return [traces, layoutOf(view, yaxis)];
}

/**
 * Places for the numbers at the handle: at each row of the map, or with the part's name at the end of its line.
 * @param {View} view
 */
function list(view) {
  const { lines, parts, numbers, range, height, right, width } = view;
  const room = height - TOP - BOTTOM;
  /** @param {string} part */
  const ends = (part) => lines.findLast((line) => part in line.gradients)?.gradients[part] ?? NaN;
  /** @param {number} norm */
  const upward = (norm) =>
    TOP + room * (1 - Math.max(0, Math.log(Math.max(norm, range[0]) / range[0]) / Math.log(range[1] / range[0])));
  const map = drawnAs.value === "map";
  const places = parts.map((part, i) => ({
    part,
    i,
    top: map ? TOP + (parts.length - 0.5 - i) * ROW : upward(ends(part)),
  }));
  let above = TOP - APART;
  for (const one of places.sort((a, b) => a.top - b.top))
    one.top = above = map ? one.top : Math.max(one.top, above + APART);
  Object.assign(numbers.style, { left: `${right + 6}px`, width: `${width - right - 6}px` });
  Object.assign(view.handle.style, { top: `${TOP - 3}px`, height: `${room + 6}px` });
  view.texts = new Map();
  const rows = places
    .sort((a, b) => a.i - b.i)
    .map(({ part, i, top }) => {
      const row = make("div", "norm");
      row.style.top = `${top}px`;
      const text = make("output");
      if (!map)
        row.append(Object.assign(make("span", "", titleOf(part)), { style: `color: var(--head-${(i % COLORS) + 1})` }));
      row.append(text);
      view.texts.set(part, text);
      return row;
    });
  numbers.replaceChildren(...rows);
}

/** @param {View} view */
function place({ page, handle, left, right, scale }) {
  handle.style.transform = `translateX(${Math.max(left, Math.min(right, scale.to(page.shown)))}px)`;
}

/**
 * The numbers at the handle.
 * @param {View} view
 * @param {HTMLElement} at
 */
function tell(view, at) {
  const { page, lines, parts, track, texts } = view;
  const line = lines[nearest(lines, page.shown)];
  place(view);
  for (const [part, text] of texts) {
    const shown = formatValue(line.gradients[part]);
    if (text.textContent !== shown) text.textContent = shown;
  }
  at.textContent = stepOf(line, page.shown);
  const valuetext = `step ${line.step}: ${parts.map((part) => `${titleOf(part)} ${formatValue(line.gradients[part])}`).join(", ")}`;
  const values = { valuemin: lines[0].step, valuemax: lines[lines.length - 1].step, valuenow: line.step, valuetext };
  for (const [name, value] of Object.entries(values))
    if (track.getAttribute(`aria-${name}`) !== String(value)) track.setAttribute(`aria-${name}`, String(value));
}

/**
 * @param {View} view
 * @param {() => void} update
 */
function listen(view, update) {
  const { track, plot, page } = view;
  track.addEventListener("click", (event) => {
    const { target } = event;
    if (!view.lines.length || plot._fullLayout?.dragmode) return;
    if (target instanceof Element && target.closest(".modebar")) return;
    const px = inside(event, track).x;
    page.go({
      step: view.lines[nearest(view.lines, view.scale.from(Math.max(view.left, Math.min(view.right, px))))].step,
    });
  });
  track.addEventListener("keydown", (event) => {
    const by = MOVES[event.key];
    if (!by || !view.lines.length || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const to = nearest(view.lines, page.shown) + (event.shiftKey ? 10 * by : by);
    page.go({ step: view.lines[Math.max(0, Math.min(view.lines.length - 1, to))].step });
    update();
  });
}

// --- weights and activations: the hill of the step that is looked at, in front of some steps before it ----------------------------

const BEFORE = 6; // lines of earlier steps, at most
/** @type {Record<HistogramKind, string>} */
const ABOUT = {
  weights:
    "All parameters of a part: how many have which value. The filled hill is the step that is looked at, the lines behind it are steps " +
    "before it; each is as high as its own peak. Normalisations begin at exactly 1 and biases at 0, which shows as needles.",
  activations:
    "The residual stream after each block on the probe, all positions and dimensions. The filled hill is the step that is looked at, the " +
    "lines behind it are steps before it; each is as high as its own peak.",
};
/** @type {[key: "certain" | "quiet", name: string, definition: string][]} */
const SHARES = [
  ["certain", "certain", "the share of the rows of attention that had a choice and give one key more than 99 %"],
  ["quiet", "quiet", "the share of the MLP’s neurons that nowhere on the probe come to 1 % of the layer’s strongest"],
];
/** @type {Record<HistogramKind, string>} */
const NONE = {
  weights: "No weights have been measured yet: the first come with the first snapshot.",
  activations: "No activations have been measured yet: they come with the first snapshot, where the probe can be read.",
};
const [HILL, BETWEEN] = [74, 11]; // px: the highest peak, and between two lines
const HEIGHT = HILL + BEFORE * BETWEEN;
const NEEDLE = 1 / 120; // of the axis: how wide a single value is drawn

/**
 * @param {HTMLElement} root
 * @param {Page} page
 * @param {HistogramKind} what
 * @returns {Required<Part>}
 */
function histograms(root, page, what) {
  /** @type {HTMLElement} */
  const element = make("div", "watch histograms");
  const head = make("div", "watch-head");
  const at = make("span", "watch-at");
  head.append(make("h3", "", what === "weights" ? "Weights of each part" : "Activations after each block"), at);
  const none = make("p", "watch-none", NONE[what]);
  const grid = make("div", "ridges");
  element.append(
    head,
    make("p", "watch-about", ABOUT[what]),
    ...(what === "activations" ? [definitions()] : []),
    none,
    grid,
  );
  root.append(element);
  /** @type {Map<string, ReturnType<typeof panelOf>>} by its part */
  const panels = new Map();
  const sight = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries)
        panels.get(/** @type {HTMLElement} */ (target).dataset.part ?? "")?.see(isIntersecting);
    },
    { rootMargin: "200px" },
  );

  const build = page.memoize(() => {
    const lines = page.watch.filter((line) => Object.keys(line[what]).length);
    const parts = partsOf(lines, what);
    for (const [part, panel] of panels) if (!parts.includes(part)) (panel.destroy(), panels.delete(part));
    const elements = parts.map((part) => {
      let panel = panels.get(part);
      if (!panel) {
        panels.set(part, (panel = panelOf(page, part, what)));
        sight.observe(panel.element);
      }
      panel.bound(lines);
      return panel.element;
    });
    if (elements.some((one, i) => grid.children[i] !== one)) grid.replaceChildren(...elements);
    return lines;
  });
  const show = page.memoize(() => {
    const lines = build();
    const index = nearest(lines, page.shown);
    at.textContent = stepOf(lines[index], page.shown);
    const before = indicesBefore(index).map((i) => lines[i]);
    for (const panel of panels.values()) panel.show(lines[index], before);
  });
  const update = () => {
    const lines = build();
    none.hidden = lines.length > 0;
    at.hidden = grid.hidden = !lines.length;
    if (lines.length) show();
  };
  const destroy = () => {
    sight.disconnect();
    for (const panel of panels.values()) panel.destroy();
    element.remove();
  };
  return { update, mark() {}, destroy };
}

/**
 * Indices before `index`, evenly apart: they stay as they are while lines come, until there are too many.
 * @param {number} index
 */
function indicesBefore(index) {
  let apart = 1;
  while (index / apart > BEFORE) apart *= 2;
  return Array.from({ length: Math.ceil(index / apart) }, (_, i) => i * apart);
}

/**
 * One part: its title, its hill, and its numbers. What is out of sight is drawn when it comes into sight.
 * @param {Page} page
 * @param {string} part
 * @param {HistogramKind} what
 */
function panelOf(page, part, what) {
  /** @type {HTMLElement} */
  const element = make("section", "ridge");
  element.dataset.part = part;
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", titleOf(part));
  const plot = make("div", "ridge-plot");
  plot.setAttribute("role", "img");
  const numbers = make("dl", "ridge-numbers");
  const values = ["min", "std", "max"].map((name) =>
    entryOf(numbers, name, name === "std" ? "standard deviation, from the counts of the bins" : ""),
  );
  const shares = make("dl", "ridge-shares");
  /** @type {[key: "certain" | "quiet", value: HTMLElement][]} */
  const told =
    what === "activations" ? SHARES.map(([key, name, definition]) => [key, entryOf(shares, name, definition)]) : [];
  element.append(make("h4", "", titleOf(part)), plot, numbers, shares);
  const chart = new Chart(plot, page.data.plotly, { failed: (sentence) => page.parts.say(sentence) });
  const role = what === "weights" ? roleOf(part) : "residual";
  let seen = false;
  /** @type {number[]} of the values */
  let ends;
  /** @type {(() => void) | null} */
  let waiting = null;

  /** @param {WatchLine[]} lines */
  const bound = (lines) => {
    const known = lines.map((line) => line[what][part]).filter(Boolean);
    ends = outward(Math.min(...known.map(([low]) => low)), Math.max(...known.map(([, high]) => high)));
  };
  /**
   * @param {WatchLine} line
   * @param {WatchLine[]} before
   */
  const show = (line, before) => {
    /** @type {Histogram | undefined} */
    const found = line[what][part];
    const said = found ? [found[0], spread(found), found[1]].map(formatValue) : ["–", "–", "–"];
    said.forEach((text, i) => (values[i].textContent = text));
    plot.setAttribute(
      "aria-label",
      `histogram at step ${line.step}: ${said[0]} to ${said[2]}, standard deviation ${said[1]}`,
    );
    for (const [key, value] of told) {
      const share = line[key][part];
      if (value.parentElement) value.parentElement.hidden = share === undefined;
      if (share !== undefined) value.textContent = percent(share);
    }
    waiting = () =>
      chart.draw(
        ...ridge(page, plot, role, what, ends, found, before.map((one) => one[what][part]).filter(Boolean)),
        ridgeConfig(part),
      );
    if (seen || page.held) draw();
  };
  const draw = () => {
    waiting?.();
    waiting = null;
  };
  /** @param {boolean} inSight */
  const see = (inSight) => {
    seen = inSight;
    if (seen) draw();
  };
  return { element, bound, show, see, destroy: () => (chart.destroy(), element.remove()) };
}

/**
 * @param {HTMLElement} list
 * @param {string} name
 * @param {string} title
 * @returns {HTMLElement}
 */
function entryOf(list, name, title) {
  const entry = list.appendChild(make("div"));
  if (title) entry.title = title;
  entry.append(make("dt", "", name));
  return entry.appendChild(make("dd"));
}

function definitions() {
  const list = make("p", "watch-about");
  SHARES.forEach(([, name, definition], i) =>
    list.append(make("strong", "", `${i ? " · " : ""}${name}`), ` ${definition}`),
  );
  return list;
}

/** @param {string} part */
function ridgeConfig(part) {
  return { ...chartConfig(`loupe-${part}`), modeBarButtons: [["zoom2d", "resetScale2d"], ["toImage"]] };
}

/**
 * Histograms [low, high, counts] of one part; `before` are those of earlier steps, the earliest farthest up.
 * @param {Page} page
 * @param {HTMLElement} plot
 * @param {string} role
 * @param {HistogramKind} what
 * @param {number[]} ends
 * @param {Histogram | undefined} found
 * @param {Histogram[]} before
 * @returns {[traces: object[], layout: object]}
 */
function ridge(page, plot, role, what, ends, found, before) {
  const ground = colour(plot, "ground");
  /** @param {number} share */
  const hue = (share) => mixed(colour(plot, role), ground, share);
  const past = before.map((one, i) => {
    const base = (before.length - i) * BETWEEN;
    const { x, y } = outline(one, ends);
    const line = { color: hue(0.55), width: 1 };
    return {
      type: "scatter",
      mode: "lines",
      x: [x[0], ...x, x[x.length - 1]],
      y: [base, ...y.map((top) => base + top), base],
      fill: "toself",
      fillcolor: ground,
      line,
      hoverinfo: "skip",
    };
  });
  const hill = found
    ? [
        {
          type: "scatter",
          mode: "lines",
          ...outline(found, ends),
          customdata: binsOf(found),
          fill: "tozeroy",
          fillcolor: hue(0.45),
          line: { color: hue(1), width: 1.5 },
          hovertemplate:
            "%{customdata[0]} to %{customdata[1]}<br><b>%{customdata[2]:,}</b> of %{customdata[3]:,}<extra></extra>",
        },
      ]
    : [];
  const layout = {
    template: page.template,
    width: plot.clientWidth,
    height: HEIGHT + 44,
    margin: { l: 8, r: 8, t: 6, b: 38, pad: 0 },
    showlegend: false,
    hovermode: "x",
    dragmode: false,
    uirevision: ends.join(),
    xaxis: {
      range: ends,
      nticks: 4,
      title: { text: what === "weights" ? "weight" : "activation", standoff: 2, font: { size: 11 } },
      hoverformat: ".4~g",
      automargin: false,
      showgrid: false,
      zeroline: true,
    },
    yaxis: { range: [0, HEIGHT + 4], visible: false, fixedrange: true },
  };
  return [[...past, ...hill], layout];
}

/**
 * The density over the axis, as high as HILL at its peak.
 * @param {Histogram} histogram
 * @param {number[]} ends
 */
function outline([low, high, counts], ends) {
  const most = Math.max(...counts, 1);
  const wide = (high - low) / counts.length;
  if (!wide) {
    const half = ((ends[1] - ends[0]) * NEEDLE) / 2;
    return { x: [low - half, low + half], y: [HILL, HILL] };
  }
  return { x: counts.map((_, i) => low + (i + 0.5) * wide), y: counts.map((count) => (count / most) * HILL) };
}

/**
 * [low, high, count, all] of each bin.
 * @param {Histogram} histogram
 */
function binsOf([low, high, counts]) {
  const total = counts.reduce((sum, count) => sum + count, 0);
  const wide = (high - low) / counts.length;
  if (!wide) return [0, 1].map(() => [formatValue(low), formatValue(high), total, total]);
  return counts.map((count, i) => [formatValue(low + i * wide), formatValue(low + (i + 1) * wide), count, total]);
}

/**
 * Ends that are multiples of a round number, about an eighth of what lies between.
 * @param {number} low
 * @param {number} high
 */
function outward(low, high) {
  const apart = roundUp(Math.max((high - low) / 8, Math.abs(high) * 1e-3, 1e-12));
  const ends = [Math.floor(low / apart + 1e-9) * apart, Math.ceil(high / apart - 1e-9) * apart];
  return ends[1] > ends[0] ? ends : [ends[0] - apart, ends[0] + apart];
}

/**
 * The standard deviation, as if all of a bin lay in its middle; less what that itself adds (Sheppard).
 * @param {Histogram} histogram
 */
export function spread([low, high, counts]) {
  const wide = (high - low) / counts.length;
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (!total) return undefined;
  const mean = counts.reduce((sum, count, i) => sum + count * (i + 0.5), 0) / total;
  const square = counts.reduce((sum, count, i) => sum + count * (i + 0.5 - mean) ** 2, 0) / total;
  return wide * Math.sqrt(Math.max(0, square - 1 / 12));
}

/**
 * `share` of one #rrggbb in another.
 * @param {string} one
 * @param {string} other
 * @param {number} share
 */
function mixed(one, other, share) {
  const channels = [1, 3, 5].map((i) =>
    Math.round(share * parseInt(one.slice(i, i + 2), 16) + (1 - share) * parseInt(other.slice(i, i + 2), 16)),
  );
  return `#${channels.map((channel) => channel.toString(16).padStart(2, "0")).join("")}`;
}

// The curves of a run, others laid over them, and under them the track of the time machine, which is their axis. plotly.js draws the
// curves; it is mounted in this view because the handle moves along them without a message to the server.
import { choices } from "../components/choices.js";
import { make } from "../core/dom.js";
import { colour } from "../core/palette.js";
import { Chart, literal } from "../core/plotly.js";
import { axisOfSteps, chartConfig, extent, logged, scaleOf, valueRange } from "./charts.js";
import { measuredCurves } from "./run.js";
import * as track from "./track.js";

/**
 * @import { Plot, StepScale } from "./charts.js"
 * @import { Curve, CurveLine, Metrics } from "./run.js"
 * @import { Page } from "./train.js"
 */

/**
 * @typedef {Curve & { bound: (columns: Float64Array[]) => number, ticks?: number }} Panel
 * @typedef {{ title: number, top: number, bottom: number }} Room
 * @typedef {{ width: number, left: number, right: number, rooms: Record<string, Room>, end: number, track: number, height: number }} Place
 * @typedef {{ title: string, metrics: Metrics, role: string }} DrawnRun
 * @typedef {{ domain: number[], range: number[], nticks: number, automargin: boolean, hoverformat: string }} ValueAxis
 */

const MARGIN = { left: 44, right: 18, named: 78, bottom: 40 };
const TITLE = 24; // px above each panel
const APART = 8; // px between panels
const HEIGHTS = { loss: 170, accuracy: 96, third: 52 };
const TRACK = 44; // px: flags and rail
const POINTS = 3000; // of a line
const THICK = 2.4; // px of a bold line
const LABEL = 13; // px between two names at the ends of lines
const LONGEST = 26; // letters of such a name
const COLORS = 11; // of runs that are laid over
const FIRST =
  "Press Play: the model of the recipe above is trained here, and its loss, its attention and its answers are drawn as it learns.";
/**
 * @param {string} name
 * @returns {CurveLine[]}
 */
const runKinds = (name) => [
  [name, "train", false],
  [`held_out_${name}`, "held out", true],
];
/** @type {Panel} */
const LOSS = { title: "<b>loss</b>, nats", kinds: runKinds("loss"), format: (x) => x.toFixed(4), bound: boundOfLoss };
/** @type {Panel} */
const ACCURACY = { title: "<b>accuracy</b>", kinds: runKinds("accuracy"), format: (x) => x.toFixed(4), bound: () => 1 };

/**
 * Draws the curves and the track into `root`.
 * @param {HTMLElement} root
 * @param {Page} page
 */
export function mount(root, page) {
  return new Curves(root, page);
}

export class Curves {
  /** @type {Place} where everything stands */
  at;
  /** @type {number} the step at which the axis ends */
  most;
  /** @type {Record<string, Panel>} */
  panels;
  /** @type {StepScale} */
  scale;
  /** @type {HTMLElement} */
  box;
  /** @type {Plot} */
  plot;

  /**
   * @param {HTMLElement} root
   * @param {Page} page
   */
  constructor(root, page) {
    this.root = root;
    this.page = page;
    this.redraw = page.memoize(() => this.draw());
    this.box = make("div", "curves-box");
    this.plot = make("div", "curves-plot");
    this.plot.setAttribute("role", "figure");
    this.plot.setAttribute("aria-label", "curves of the training over its steps");
    this.readouts = Object.fromEntries(Object.keys(HEIGHTS).map((name) => [name, readout()]));
    this.empty = make("p", "curves-empty");
    this.box.append(this.plot, ...Object.values(this.readouts).map(({ element }) => element), this.empty);
    this.head = heading(page);
    this.track = track.mount(this.box, page, () => Boolean(this.plot._fullLayout?.dragmode));
    this.list = track.list(page);
    root.append(this.head.element, this.box, this.list.element);
    this.chart = new Chart(this.plot, page.data.plotly, {
      drawn: (layout) => this.zoomed(layout),
      failed: (sentence) => page.parts.say(sentence),
    });
  }

  /**
   * Where everything stands in the present width: {width, left, right, rooms, track, height}, pixels.
   * @param {boolean} named
   * @returns {Place}
   */
  room(named) {
    const width = this.root.clientWidth;
    const [left, right] = [MARGIN.left, width - (named ? MARGIN.named : MARGIN.right)];
    /** @type {Place["rooms"]} */
    const rooms = {};
    let top = 0;
    for (const [name, height] of Object.entries(HEIGHTS)) {
      rooms[name] = { title: top, top: top + TITLE + 4, bottom: top + TITLE + height };
      top += TITLE + height + APART;
    }
    const end = rooms.third.bottom + MARGIN.bottom;
    return { width, left, right, rooms, end, track: end, height: end + TRACK };
  }

  update() {
    this.redraw();
    this.head.update();
    this.list.update();
    this.track.move();
    this.tell();
  }

  draw() {
    const { page } = this;
    const runs = shownRuns(page);
    const at = (this.at = this.room(runs.length > 1));
    if (!at.width) return;
    const last = Math.max(page.status?.step ?? 0, ...runs.map(({ metrics }) => metrics.last));
    this.most = extent(last, Math.max(page.status?.steps ?? 0, last), page.active || !last);
    this.panels = { loss: LOSS, accuracy: ACCURACY, third: third(page) };
    this.box.style.height = `${at.height}px`;
    for (const [name, { element, show }] of Object.entries(this.readouts)) {
      element.style.top = `${at.rooms[name].title}px`;
      show(this.panels[name].kinds);
    }
    this.rescale(axisOfSteps(this.most, page.state.log).range);
    this.chart.draw(this.traces(runs), this.layout(runs), chartConfig("loupe-curves"));
    this.root.classList.toggle("unmeasured", !runs.some(({ metrics }) => metrics.length)); // axes of nothing say nothing
    const waits = !page.status && !page.run && !page.data.plan.problem;
    this.empty.textContent = waits ? FIRST : "";
    this.empty.hidden = !this.empty.textContent;
  }

  /**
   * One line for each run and measurement; the run that is looked at is drawn last.
   * @param {DrawnRun[]} runs
   */
  traces(runs) {
    const { page, plot } = this;
    return runs.toReversed().flatMap((run) =>
      Object.values(this.panels).flatMap(({ kinds, title }, panel) =>
        kinds
          .filter(([column]) => run.metrics.has(column))
          .map(([column, called, bold, role]) => {
            const { x, y } = finite(run.metrics, column, page.state.log);
            const measure = title.replace(/<\/?b>/g, "").split(",")[0];
            const name = [runs.length > 1 ? literal(run.title) : "", measure, called].filter(Boolean).join(" · ");
            return {
              type: "scatter",
              mode: x.length > 1 ? "lines" : "markers",
              x,
              y,
              name,
              xaxis: "x",
              yaxis: `y${panel ? panel + 1 : ""}`,
              meta: column,
              line: { color: colour(plot, role && runs.length === 1 ? role : run.role), width: bold ? THICK : 1.2 },
              opacity: bold || !called ? 1 : 0.68,
              hovertemplate: "%{y}",
              showlegend: false,
            };
          }),
      ),
    );
  }

  /** @param {DrawnRun[]} runs */
  layout(runs) {
    const { page, at, panels } = this;
    const [top, bottom] = [at.rooms.loss.top, at.rooms.third.bottom];
    /** @param {number} px */
    const share = (px) => (bottom - px) / (bottom - top);
    /** @type {Record<string, ValueAxis>} */
    const axes = {};
    Object.entries(panels).forEach(([name, { kinds, bound, ticks = 2 }], i) => {
      const { top: high, bottom: low } = at.rooms[name];
      const columns = runs.flatMap(({ metrics }) => kinds.map(([column]) => metrics.column(column)));
      axes[`yaxis${i ? i + 1 : ""}`] = {
        domain: [share(low), share(high)],
        range: valueRange(bound(columns), low - high, THICK),
        nticks: name === "loss" ? 5 : ticks + 1,
        automargin: false,
        hoverformat: ".5~g",
      };
    });
    const titles = Object.entries(panels).map(([name, { title }]) => ({
      text: title,
      x: 0,
      xref: "paper",
      xanchor: "left",
      xshift: -at.left,
      y: share(at.rooms[name].top),
      yref: "paper",
      yanchor: "bottom",
      yshift: 5,
      showarrow: false,
      font: { size: 13 },
    }));
    return {
      template: page.template,
      width: at.width,
      height: at.end,
      autosize: false,
      dragmode: this.plot._fullLayout?.dragmode ?? false,
      margin: { l: at.left, r: at.width - at.right, t: top, b: MARGIN.bottom, pad: 0 },
      hovermode: "x unified",
      hoversubplots: "axis",
      uirevision: `${page.run} ${page.state.log} ${this.most}`,
      xaxis: { ...axisOfSteps(this.most, page.state.log), anchor: "y3", unifiedhovertitle: { text: "step %{x:,d}" } },
      ...axes,
      annotations: [...titles, ...this.names(runs, axes)],
    };
  }

  /**
   * Names of the runs at the ends of their lines, where there are several; they make way for each other.
   * @param {DrawnRun[]} runs
   * @param {Record<string, ValueAxis>} axes
   */
  names(runs, axes) {
    if (runs.length < 2) return [];
    const { at } = this;
    return Object.entries(this.panels).flatMap(([name, { kinds }], i) => {
      const { top, bottom } = at.rooms[name];
      const [, high] = axes[`yaxis${i ? i + 1 : ""}`].range;
      const ends = runs.flatMap((run) => {
        const column = kinds.map(([one]) => one).findLast((one) => run.metrics.has(one));
        const value = column === undefined ? NaN : run.metrics.at(column, Infinity);
        return Number.isNaN(value)
          ? []
          : [{ run, at: Math.max(top, bottom - (Math.min(value, high) / high) * (bottom - top)) }];
      });
      let above = top - LABEL;
      return ends
        .sort((a, b) => a.at - b.at)
        .map(({ run, at: end }) => {
          above = Math.max(end, above + LABEL);
          return {
            text: `<b>${literal(shortened(run.title, runs[0].title))}</b>`,
            x: 1,
            xref: "paper",
            xanchor: "left",
            xshift: 4,
            y: 0,
            yref: "paper",
            yanchor: "middle",
            yshift: at.rooms.third.bottom - above,
            showarrow: false,
            font: { size: 11.5, color: colour(this.plot, run.role) },
          };
        });
    });
  }

  /**
   * Takes over what the chart's axis has come to, by a zoom or by more steps.
   * @param {{ xaxis: { range: number[] } }} layout
   */
  zoomed(layout) {
    this.rescale(layout.xaxis.range);
    this.track.move();
  }

  /** @param {number[]} range */
  rescale(range) {
    const { at, page } = this;
    this.scale = scaleOf(range, [at.left, at.right], page.state.log);
    this.track.draw({ ...at, range, log: page.state.log, scale: this.scale });
  }

  /** The numbers at the handle. */
  tell() {
    const { page } = this;
    const step = page.metrics.length ? page.shown : 0;
    for (const [name, { tell }] of Object.entries(this.readouts)) tell(this.panels?.[name], page.metrics, step);
  }

  mark() {}

  destroy() {
    this.track.destroy();
    this.chart.destroy();
  }
}

/**
 * The finite values of a column and their steps; a logarithmic axis begins at step 1.
 * @param {Metrics} metrics
 * @param {string} column
 * @param {boolean} log
 */
function finite(metrics, column, log) {
  const [steps, values] = [metrics.column("step"), metrics.column(column)];
  const [x, y] = /** @type {number[][]} */ ([[], []]);
  for (let i = 0; i < values.length; i++)
    if (Number.isFinite(values[i])) (x.push(logged(steps[i], log)), y.push(values[i]));
  return thin(x, y);
}

/**
 * Of a long line the least and the greatest value of each stretch, in their order: no peak is lost, and a browser draws it at once.
 * @param {number[]} x
 * @param {number[]} y
 */
function thin(x, y) {
  if (y.length <= POINTS) return { x, y };
  const stretches = POINTS / 2;
  const kept = [];
  for (let one = 0; one < stretches; one++) {
    const [start, end] = [Math.floor((one * y.length) / stretches), Math.floor(((one + 1) * y.length) / stretches)];
    let [low, high] = [start, start];
    for (let i = start; i < end; i++) {
      if (y[i] < y[low]) low = i;
      if (y[i] > y[high]) high = i;
    }
    kept.push(...(low === high ? [low] : low < high ? [low, high] : [high, low]));
  }
  return { x: kept.map((i) => x[i]), y: kept.map((i) => y[i]) };
}

/**
 * The third, which can be chosen.
 * @param {Page} page
 * @returns {Panel}
 */
function third(page) {
  const kinds = measuredCurves(page.metrics);
  const [, about] = kinds.find(([name]) => name === page.state.curve) ?? kinds[0];
  return { ...about, title: `<b>${about.title}</b>`, bound, ticks: 1 };
}

/** The legend of a panel with the numbers at the handle, right of its title. */
function readout() {
  const element = make("div", "panel-title");
  /** @type {HTMLElement[]} */
  let outputs = [];
  let known = "";
  /** @param {CurveLine[]} kinds */
  const show = (kinds) => {
    if (JSON.stringify(kinds) === known) return;
    known = JSON.stringify(kinds);
    outputs = kinds.map(() => make("output", "", "–"));
    element.replaceChildren(
      ...kinds.map(([, called, bold, role], i) => {
        const entry = make("span", "panel-told");
        const swatch = make("i", `swatch ${bold ? "bold" : "thin"}`);
        if (role) swatch.style.borderColor = `var(--${role})`;
        entry.append(swatch, called ? `${called} ` : "", outputs[i]);
        return entry;
      }),
    );
  };
  /**
   * @param {Panel | undefined} panel
   * @param {Metrics} metrics
   * @param {number} step
   */
  const tell = (panel, metrics, step) => {
    panel?.kinds.forEach(([column], i) => {
      const value = metrics.at(column, step);
      const text = Number.isNaN(value) ? "–" : panel.format(value);
      if (outputs[i].textContent !== text) outputs[i].textContent = text;
    });
  };
  return { element, show, tell };
}

/**
 * The run that is looked at and those that are overlaid, each with its color.
 * @param {Page} page
 * @returns {DrawnRun[]}
 */
function shownRuns(page) {
  const others = Array.from(page.overlays, ([title, metrics], i) => ({
    title,
    metrics,
    role: `head-${(i % COLORS) + 2}`,
  }));
  return [
    { title: page.run || "recorded", metrics: page.metrics, role: "attention" },
    ...others.filter(({ metrics }) => metrics.length),
  ];
}

/**
 * A run's name without what it has in common with that of the run that is looked at.
 * @param {string} name
 * @param {string} own
 */
function shortened(name, own) {
  const rest = name !== own && name.startsWith(`${own} `) ? name.slice(own.length + 1) : name;
  return rest.length > LONGEST ? `${rest.slice(0, LONGEST - 1)}…` : rest;
}

/**
 * A round number from all finite values on.
 * @param {Float64Array[]} columns
 */
function bound(columns) {
  let most = 0;
  for (const values of columns) for (const value of values) if (value > most && Number.isFinite(value)) most = value;
  return most > 0 ? rounded(most) : 1;
}

/**
 * The same, but a loss far above that of the beginning would flatten all the rest, and leaves the picture.
 * @param {Float64Array[]} columns
 */
function boundOfLoss(columns) {
  const first = Math.max(...columns.map((values) => values.find(Number.isFinite) ?? 0));
  return first > 0 ? Math.min(bound(columns), rounded(2 * first)) : 1;
}

/**
 * The next of 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10 times a power of ten.
 * @param {number} x
 */
function rounded(x) {
  const power = 10 ** Math.floor(Math.log10(x));
  return (
    [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((each) => each * power).find((each) => each >= x * 0.999) ?? 10 * power
  );
}

/** @param {Page} page */
function heading(page) {
  const element = make("div", "curves-head");
  const scale = choices(
    "scale of the steps",
    [
      ["linear", "linear"],
      ["log", "log"],
    ],
    (value) => page.go({ log: value === "log" }),
  );
  const strip = make("label", "curves-strip", "third curve ");
  const choice = make("select");
  choice.addEventListener("change", () => page.go({ curve: choice.value }));
  strip.append(choice);
  const live = make("button", "chip live-button", "live");
  live.type = "button";
  live.title = "the handle follows the newest step  l";
  live.addEventListener("click", () => page.go({ step: "live" }));
  const beside = make("div", "curves-others");
  element.append(scale.element, strip, live, beside);
  let known = "";
  const update = () => {
    scale.show(page.state.log ? "log" : "linear");
    live.setAttribute("aria-pressed", String(page.state.step === "live"));
    const kinds = measuredCurves(page.metrics);
    const key = kinds.map(([value]) => value).join();
    if (key !== known) choice.replaceChildren(...kinds.map(([value, { title }]) => new Option(title, value)));
    known = key;
    choice.value = kinds.some(([value]) => value === page.state.curve) ? page.state.curve : "lr";
    listOverlays(beside, page);
  };
  return { element, update };
}

/**
 * The names of the runs that are overlaid, each to be removed again.
 * @param {HTMLElement} root
 * @param {Page} page
 */
function listOverlays(root, page) {
  const names = [...page.overlays.keys()];
  if (root.dataset.names === names.join("\n")) return;
  root.dataset.names = names.join("\n");
  const chips = names.map((name, i) => {
    const chip = make("button", "chip other-run", `${name} ×`);
    chip.type = "button";
    chip.style.setProperty("--chosen", `var(--head-${(i % COLORS) + 2})`);
    chip.setAttribute("aria-label", `remove ${name} from the curves`);
    chip.addEventListener("click", () =>
      page.emit(
        "overlay",
        page.data.overlays.filter((one) => one !== name),
      ),
    );
    return chip;
  });
  root.replaceChildren(...chips);
}

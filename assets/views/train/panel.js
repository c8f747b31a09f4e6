// One of the curves' panels: a title with the numbers at the handle, an axis, and a line for each run and measurement.
import { make } from "../core/dom.js";
import { thinned, ticks } from "./scale.js";
import { upTo } from "./metrics.js";
import { svg } from "../components/stack.js";

const APART = 13; // px between two labels at the ends of lines
const LONGEST = 26; // letters of such a label
const LETTER = 6.6; // px that one takes, about

/** `kinds` are [column, class, what it is called]; `most(values)` the bound of the axis; `written(value)` a number at the handle. */
export class Panel {
  constructor(picture, { title, kinds, most, written, ticks: count = 3 }) {
    Object.assign(this, { kinds, most, written, count });
    this.group = picture.appendChild(svg("g"));
    this.axis = this.group.appendChild(svg("g"));
    this.lines = this.group.appendChild(svg("svg", { class: "panel-lines" })); // a picture of its own: what leaves it is cut off
    this.labels = this.group.appendChild(svg("g"));
    this.title = make("div", "panel-title");
    this.name = this.title.appendChild(make("strong", "", title));
    this.told = kinds.map(([, className, called]) => this.legend(className, called));
    this.paths = new Map();
  }

  legend(className, called) {
    const entry = make("span", "panel-told");
    const value = make("output", "", "–");
    entry.append(make("i", `swatch ${className}`), called ? `${called} ` : "", value);
    this.title.append(entry);
    return value;
  }

  /** `runs` are [{name, metrics, role}], that which is looked at first; `room` is {top, bottom, left, right}. */
  draw(runs, x, room) {
    this.room = room;
    const high = this.most(runs.map(({ metrics }) => this.kinds.map(([column]) => metrics.column(column))).flat());
    const y = (value) => room.bottom - (value / high) * (room.bottom - room.top);
    const { lines } = this;
    for (const [name, value] of Object.entries(within(room))) lines.setAttribute(name, value);
    this.grid(high, y, room);
    const drawn = new Set();
    const ends = [];
    for (const run of [...runs].reverse()) {
      for (const [column, className, called] of this.kinds) {
        if (!run.metrics.has(column)) continue;
        const key = `${run.name} ${column}`;
        drawn.add(key);
        const path = this.path(key, `curve ${className}`, run.role);
        path.setAttribute("d", thinned(run.metrics.columns.step, run.metrics.columns[column], run.metrics.length, x, y));
        ends.push({ run, called, className, at: end(run.metrics, column, x, y, room) });
      }
    }
    for (const [key, path] of this.paths) if (!drawn.has(key)) (path.remove(), this.paths.delete(key));
    this.label(runs, ends.filter(({ at }) => at));
  }

  path(key, className, role) {
    if (!this.paths.has(key)) this.paths.set(key, this.lines.appendChild(svg("path")));
    const path = this.paths.get(key);
    path.setAttribute("class", className);
    path.style.stroke = `var(--${role})`;
    this.lines.append(path);
    return path;
  }

  grid(high, y, { left, right }) {
    const key = [high, left, right, y(0), y(high)].join();
    if (key === this.drawn) return;
    this.drawn = key;
    this.axis.replaceChildren();
    for (const tick of ticks(high, this.count)) {
      this.axis.append(svg("line", { x1: left, x2: right, y1: y(tick), y2: y(tick), class: tick ? "grid" : "axis-line" }));
      this.axis.append(svg("text", { x: left - 6, y: y(tick) + 4, class: "tick", "text-anchor": "end" }, short(tick)));
    }
  }

  /** Names at the ends of the lines: of runs where there are several, else of what is measured. */
  label(runs, ends) {
    const several = runs.length > 1;
    const few = this.room.narrow ? [] : ends; // the title says what the lines are
    const named = several ? runs.map((run) => ends.findLast((one) => one.run === run)).filter(Boolean) : few;
    const told = named.filter(({ called }) => called).sort((a, b) => a.at.y - b.at.y);
    let above = this.room.top - APART;
    const texts = told.map(({ run, called, at }) => {
      above = Math.max(at.y, above + APART);
      return this.tag(several ? shortened(run.title, runs[0].title) : called, at.x, above, run.role);
    });
    this.labels.replaceChildren(...texts);
  }

  /** Behind the end of its line, as far as there is room. */
  tag(name, x, y, role) {
    const text = svg("text", { x: Math.min(x + 5, this.room.width - name.length * LETTER), y: y + 4, class: "line-end" }, name);
    text.style.fill = `var(--${role})`;
    return text;
  }

  /** The numbers of `metrics` at `step`. */
  tell(metrics, step) {
    this.kinds.forEach(([column], i) => {
      const value = metrics.at(column, step);
      const text = Number.isNaN(value) ? "–" : this.written(value);
      if (this.told[i].textContent !== text) this.told[i].textContent = text;
    });
  }
}

/** The room of the lines, with that of half a line around it, in the pixels of the whole picture. */
function within({ left, right, top, bottom }) {
  const [x, y, width, height] = [left - 2, top - 2, right - left + 4, bottom - top + 4];
  return { x, y, width, height, viewBox: `${x} ${y} ${width} ${height}` };
}

/** A run's name without what it has in common with that of the run that is looked at. */
function shortened(name, own) {
  const rest = name !== own && name.startsWith(`${own} `) ? name.slice(own.length + 1) : name;
  return rest.length > LONGEST ? `${rest.slice(0, LONGEST - 1)}…` : rest;
}

function end(metrics, column, x, y, { top, bottom }) {
  const values = metrics.columns[column];
  for (let i = metrics.length - 1; i >= 0; i--) {
    if (Number.isFinite(values[i])) return { x: x(metrics.columns.step[i]), y: Math.max(top, Math.min(bottom, y(values[i]))) };
  }
  return null;
}

function short(value) {
  if (value >= 1000) return `${Number((value / 1000).toPrecision(3))}k`;
  return value !== 0 && value < 0.001 ? value.toExponential(0).replace("e-", "e−") : String(Number(value.toPrecision(3)));
}

/** The index of the line that stands at `step` or before. */
export function lineAt(metrics, step) {
  return upTo(metrics.columns.step ?? [], metrics.length, step);
}

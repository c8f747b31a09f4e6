// What the cache costs and saves against the length: multiply-adds by formula, bytes exactly, seconds measured here.
import { chart, path } from "../components/chart.js";
import { bytes, time } from "../components/cost_chart.js";
import { make } from "../core/dom.js";
import { svg } from "../components/stack.js";

const HIGH = 230; // CSS pixels
const NAMES = { cached: "with the cache", again: "without" };
const HUES = { cached: "attention", again: "key", bytes: "attention", wide: "value", reference: "soft" };

/** {element, draw(now)}: `now` is the length that is looked at. `measure` = {start(), stop(), found: [{length, cached, again}], active, said}. */
export class CacheCharts {
  constructor(page, measure) {
    Object.assign(this, { page, measure });
    this.element = make("div", "cache-charts");
    this.button = make("button", "cache-button quiet", "Measure here");
    this.button.type = "button";
    this.button.addEventListener("click", () => (measure.active ? measure.stop() : measure.start()));
  }

  draw(costs, now) {
    const wide = this.page.narrow ? this.page.width : Math.floor((this.page.width - 2 * 28) / 3);
    this.element.replaceChildren(this.work(costs, now, wide), this.memory(costs, now, wide), this.times(costs, wide));
  }

  figure(title, note, drawn, lines, more = []) {
    const place = make("section", "cache-chart");
    const legend = make("p", "cache-legend");
    for (const [name, text] of lines) {
      const one = make("span", "");
      const sign = make("i", `cache-sign of-${name}`);
      sign.style.setProperty("--hue", `var(--${HUES[name]})`);
      one.append(sign, text);
      legend.append(one);
    }
    place.append(make("h3", "", title), make("p", "cache-note", note), legend, drawn.element, ...more);
    return place;
  }

  curve(drawn, name, points) {
    drawn.plot.append(svg("path", { class: `cache-line of-${name}`, style: `--hue: var(--${HUES[name]})`, d: path(points.map(([x, y]) => [drawn.x(x), drawn.y(y)])) }));
  }

  rule(drawn, now) {
    drawn.plot.append(svg("line", { class: "cache-now", x1: drawn.x(now), x2: drawn.x(now), y1: drawn.floor, y2: drawn.top }));
  }

  work(costs, now, width) {
    const { lengths, cached, again } = costs;
    const [scale, word] = unit(Math.max(...again));
    const drawn = chart({ width, height: HIGH, from: { x: 1, y: 0 }, to: { x: lengths.at(-1), y: Math.max(...again) / scale }, label: "length, positions", title: "multiply-adds of one token by length" });
    for (const [name, values] of [["again", again], ["cached", cached]]) this.curve(drawn, name, values.map((value, i) => [lengths[i], value / scale]));
    this.rule(drawn, now);
    drawn.hover((x) => {
      const i = nearest(lengths, x);
      return { x: lengths[i], y: null, text: `length ${lengths[i]}: ${cached[i].toLocaleString("en")} with, ${again[i].toLocaleString("en")} without` };
    }, `×${Math.round(again.at(-1) / cached.at(-1)).toLocaleString("en")} at ${lengths.at(-1).toLocaleString("en")} positions`);
    return this.figure("Work of one token", `multiply-adds${word}, by formula`, drawn, Object.entries(NAMES));
  }

  memory(costs, now, width) {
    const { lengths, wide, reference } = costs;
    const series = [["bytes", costs.bytes, "this model"], ...(wide ? [["wide", wide, "if every query head had its own"]] : []), ["reference", reference, "GPT-2 small"]];
    const all = series.flatMap(([, values]) => values);
    const from = 10 ** Math.floor(Math.log10(Math.min(...all)));
    const drawn = chart({ width, height: HIGH, from: { x: 1, y: from }, to: { x: lengths.at(-1), y: 10 ** Math.ceil(Math.log10(Math.max(...all))), log: true, written: bytes }, label: "length, positions", title: "bytes of the cache by length" });
    for (const [name, values] of series) this.curve(drawn, name, values.map((value, i) => [lengths[i], value]));
    this.rule(drawn, now);
    drawn.hover((x) => {
      const i = nearest(lengths, x);
      const others = series.slice(1).map(([, values, title]) => `, ${title} ${values[i].toLocaleString("en")}`).join("");
      return { x: lengths[i], y: costs.bytes[i], text: `length ${lengths[i]}: ${costs.bytes[i].toLocaleString("en")} bytes${others}` };
    }, `${costs.bytes.at(-1).toLocaleString("en")} bytes when the context is full`);
    const more = make("p", "cache-note", `GPT-2 small: ${costs.reference_each.toLocaleString("en")} bytes a position, ${costs.reference_bytes.toLocaleString("en")} at its ${costs.reference_context.toLocaleString("en")}.`);
    return this.figure("Memory", "bytes, exactly; each line ten times the one below", drawn, series.map(([name, , title]) => [name, title]), [more]);
  }

  times(costs, width) {
    const { found, active, said } = this.measure;
    const bar = make("div", "cache-measure");
    bar.append(this.button, make("span", "cache-note", said));
    this.button.textContent = active ? "Stop" : found.length ? "Measure again" : "Measure here";
    if (!found.length) return this.unmeasured(bar);
    const high = Math.max(1e-4, ...found.flatMap(({ cached, again }) => [cached, again]));
    const drawn = chart({ width, height: HIGH, from: { x: 1, y: 0 }, to: { x: costs.lengths.at(-1), y: high, written: (value) => (value ? time(value) : "0") }, label: "length, positions", title: "seconds of one token by length, measured" });
    for (const name of ["again", "cached"]) {
      this.curve(drawn, name, found.map((one) => [one.length, one[name]]));
      for (const one of found) drawn.plot.append(svg("circle", { class: "cache-point", style: `--hue: var(--${HUES[name]})`, cx: drawn.x(one.length), cy: drawn.y(one[name]), r: 3.5 }));
    }
    drawn.hover((x) => {
      const one = found[nearest(found.map(({ length }) => length), x)];
      return { x: one.length, y: null, text: `length ${one.length}: ${time(one.cached)} with, ${time(one.again)} without` };
    }, `×${(found.at(-1).again / found.at(-1).cached).toFixed(1)} at ${found.at(-1).length.toLocaleString("en")} positions`);
    return this.figure("Time of one token", "on this machine, the median of five", drawn, Object.entries(NAMES), [bar]);
  }

  /** What is to be measured, in as much room as its chart takes. */
  unmeasured(bar) {
    const place = make("section", "cache-chart");
    place.append(make("h3", "", "Time of one token"), make("p", "cache-note", "on this machine, the median of five; nothing is measured yet"), bar);
    place.style.minHeight = `${HIGH + 120}px`;
    return place;
  }
}

function nearest(list, x) {
  return list.reduce((best, value, i) => (Math.abs(value - x) < Math.abs(list[best] - x) ? i : best), 0);
}

function unit(most) {
  return [[1e12, ", trillions"], [1e9, ", billions"], [1e6, ", millions"], [1e3, ", thousands"]].find(([size]) => most >= size) ?? [1, ""];
}

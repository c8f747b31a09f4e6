// Two charts of one matrix: how its numbers are distributed, and its singular values.
import { chart, path } from "../components/chart.js";
import { make } from "../core/dom.js";
import { number } from "../core/format.js";

const HIGH = 250; // CSS pixels of a chart

/** `turn` is called to have the counts on the other scale than now, where `log` says that it is the logarithmic. */
export function histogram({ arrays, stats }, width, log, turn) {
  const [edges, counts] = [arrays.edges.data, arrays.counts.data];
  const most = Math.max(...counts);
  const bins = counts.length;
  const from = { x: edges[0], y: log ? 0.8 : 0 };
  const to = { x: edges[bins], y: log ? most * 1.6 : most * 1.06, log };
  const made = chart({ width, height: HIGH, from, to, label: "value", title: "Histogram of the numbers" });
  const base = made.floor;
  const outline = [];
  for (let i = 0; i < bins; i++) {
    const y = counts[i] ? made.y(counts[i]) : base;
    outline.push([made.x(edges[i]), y], [made.x(edges[i + 1]), y]);
  }
  made.plot.append(svgPath(`${path([[made.x(edges[0]), base], ...outline, [made.x(edges[bins]), base]])}Z`, "area"));
  const total = counts.reduce((sum, count) => sum + count, 0);
  const normal = Array.from({ length: 161 }, (_, i) => {
    const value = edges[0] + ((edges[bins] - edges[0]) * i) / 160;
    const density = Math.exp(-0.5 * ((value - stats.mean) / stats.std) ** 2) / (stats.std * Math.sqrt(2 * Math.PI));
    return [value, (total * density * (edges[bins] - edges[0])) / bins];
  }).filter(([, count]) => !log || count >= from.y);
  if (stats.std > 0) made.plot.append(svgPath(path(normal.map(([value, count]) => [made.x(value), Math.max(made.y(count), made.top - 40)])), "normal"));
  const width1 = (edges[bins] - edges[0]) / bins;
  made.hover((value) => {
    const bin = Math.min(bins - 1, Math.floor((value - edges[0]) / width1));
    const text = `${number(edges[bin])} to ${number(edges[bin + 1])}: ${counts[bin].toLocaleString("en")}`;
    return { x: edges[bin] + width1 / 2, y: counts[bin] || null, text };
  }, "dashed: normal, same mean and std");
  const heading = make("div", "chart-head");
  const toggle = make("button", "chip", "log counts");
  toggle.type = "button";
  toggle.setAttribute("aria-pressed", log);
  toggle.addEventListener("click", turn);
  heading.append(make("h4", "", "How its numbers are distributed"), toggle);
  return panel(heading, made.element, [
    ["mean", number(stats.mean)], ["std", number(stats.std)], ["min", number(stats.min)], ["max", number(stats.max)],
    ["‖W‖F", number(stats.norm)], ["zeros", stats.zeros.toLocaleString("en")],
    ...(stats.outside ? [["beyond the edges", stats.outside.toLocaleString("en")]] : []),
  ]);
}

export function spectrum({ arrays, ranks }, width) {
  const all = arrays.values.data;
  const positive = all.filter((value) => value > 0);
  const [largest, least] = [positive[0] ?? 1, Math.max(positive.at(-1) ?? 1, (positive[0] ?? 1) * 1e-7)];
  const from = { x: 1, y: Math.min(least * 0.8, largest / 12) };
  const to = { x: Math.max(2, all.length), y: largest * 1.25, log: true };
  const made = chart({ width, height: HIGH, from, to, label: "i", title: "Singular values, on a logarithmic scale" });
  for (const [at, name] of [[ranks.energy, "90 %"], [ranks.rank, "effective rank"]]) {
    if (!at) continue;
    const end = made.x(at) > width * 0.68;
    made.plot.append(svgPath(`M${made.x(at).toFixed(1)} ${made.floor}V${made.top}`, "marked"));
    const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
    text.textContent = name;
    text.setAttribute("class", "label");
    text.setAttribute("x", made.x(at) + (end ? -5 : 5));
    text.setAttribute("y", name === "90 %" ? made.floor - 8 : made.floor - 24);
    text.setAttribute("text-anchor", end ? "end" : "start");
    made.plot.append(text);
  }
  made.plot.append(svgPath(path(Array.from(positive, (value, i) => [made.x(i + 1), made.y(value)])), "line"));
  made.hover((value) => {
    const i = Math.max(1, Math.min(all.length, Math.round(value)));
    return { x: i, y: all[i - 1] > 0 ? all[i - 1] : null, text: `σ${i} = ${number(all[i - 1])}` };
  }, positive.length < all.length ? `zero from ${positive.length + 1} on` : "\u00a0");
  const heading = make("div", "chart-head");
  heading.append(make("h4", "", "Singular values"));
  return panel(heading, made.element, [
    ["σ₁", number(largest)], ["effective rank", `${ranks.rank.toFixed(1)} of ${all.length}`], ["stable rank", ranks.stable.toFixed(2)],
    ["90 % of ‖W‖²", `${ranks.energy} values`], ["condition", ranks.condition === null ? "∞" : number(ranks.condition)],
  ]);
}

function panel(heading, picture, figures) {
  const element = make("div", "panel-of");
  const list = make("dl", "figures-of");
  for (const [name, value] of figures) {
    const pair = make("div");
    pair.append(make("dt", "", name), make("dd", "", value));
    list.append(pair);
  }
  element.append(heading, picture, list);
  return element;
}

function svgPath(d, name) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", "path");
  element.setAttribute("d", d);
  element.setAttribute("class", name);
  return element;
}

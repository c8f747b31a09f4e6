// One distribution over all temperatures: its probabilities, entropy and effective choices at T, and as curves.
import { chart, path } from "../components/chart.js";
import { make } from "../core/dom.js";
import { percent } from "../core/format.js";
import { svg } from "../components/stack.js";

const HEIGHT = { shares: 190, choices: 130 };

export class Tempered {
  /** `pick(t)`: a temperature is chosen in a chart. */
  constructor(root, page, pick) {
    Object.assign(this, { root, page, pick, found: null });
  }

  fail(sentence) {
    this.found = null;
    this.root.replaceChildren(make("p", "sentence", sentence));
  }

  /** `names` are [name, logit] of every row. */
  take({ arrays, count }, names, t, width, narrow) {
    const rows = names.length;
    const column = (name) => Array.from(arrays[name].data);
    const each = (row) => Array.from(arrays.temperature.data, (_, i) => arrays.probability.data[i * rows + row]);
    this.found = {
      temperatures: Array.from(arrays.temperature.data, (one) => Math.round(one * 100) / 100),
      names,
      curves: names.map((_, row) => each(row)),
      rest: count > rows ? column("rest") : null,
      others: count - rows,
      entropy: column("entropy"),
      choices: column("choices"),
    };
    this.width = null;
    this.show(t, width, narrow);
  }

  show(t, width, narrow) {
    if (!this.found) return;
    const room = Math.floor(narrow ? width : (width - 48) / 2);
    if (this.width !== room) this.build((this.width = room));
    const { found } = this;
    const i = this.index(t);
    this.at = i;
    const most = Math.max(...found.curves.map((curve) => curve[i]), found.rest?.[i] ?? 0, 1e-9);
    this.rows.forEach(({ bar, share }, row) => {
      const p = row < found.curves.length ? found.curves[row][i] : found.rest[i];
      bar.style.width = `${(100 * p) / most}%`;
      share.textContent = percent(p);
    });
    this.bits.textContent = found.entropy[i].toFixed(3);
    this.count.textContent = found.choices[i] < 100 ? found.choices[i].toFixed(2) : Math.round(found.choices[i]).toLocaleString("en");
    if (this.sum) this.sum.textContent = `softmax([${found.names.map(([, value]) => value).join(", ")}] / ${t.toFixed(2)}) = [${found.curves.map((curve) => curve[i].toFixed(3)).join(", ")}]`;
    for (const one of this.charts) this.mark(one, found.temperatures[i], i);
  }

  index(t) {
    return Math.max(0, Math.min(this.found.temperatures.length - 1, Math.round(t / this.found.temperatures[1])));
  }

  build(width) {
    const { found } = this;
    const heading = this.row(null, ["", "logit"]);
    heading.element.classList.add("heading");
    heading.share.textContent = "probability";
    this.rows = found.names.map((name, i) => this.row(i, name));
    if (found.rest) this.rows.push(this.row(null, [`${found.others.toLocaleString("en")} others`, ""], "rest"));
    const table = make("div", "t-rows");
    table.append(heading.element, ...this.rows.map(({ element }) => element));
    const said = make("p", "t-said");
    [this.bits, this.count] = [make("b"), make("b")];
    const part = (name, value, unit) => {
      const one = make("span", "", name);
      one.append(value, unit);
      return one;
    };
    said.append(part("entropy", this.bits, " bits"), part("effective choices", this.count, ""));
    this.sum = found.rest ? null : make("p", "t-sum");
    const charts = make("div", "t-charts");
    this.charts = [this.shares(width), this.uncertainty(width)];
    charts.append(make("h3", "", "probability over T"), this.charts[0].element, make("h3", "", "effective choices over T"), this.charts[1].element);
    this.root.replaceChildren(...(this.sum ? [this.sum] : []), table, said, charts);
  }

  row(i, [name, logit], kind = "") {
    const element = make("div", `t-row ${kind}`);
    const swatch = make("i", "swatch");
    const [track, bar, share] = [make("span", "track"), make("span", "bar"), make("span", "number")];
    const ink = i === null ? (kind ? "var(--negative)" : "transparent") : inkOf(i);
    swatch.style.background = kind || i !== null ? ink : "transparent";
    bar.style.background = ink;
    track.append(bar);
    const label = make("bdi", "", name);
    label.title = name;
    element.append(swatch, label, make("span", "number", logit), track, share);
    return { element, bar, share };
  }

  shares(width) {
    const { found } = this;
    const drawn = chart({ width, height: HEIGHT.shares, from: { x: 0, y: 0 }, to: { x: found.temperatures.at(-1), y: 1, written: (y) => `${Math.round(100 * y)} %` }, label: "temperature", title: "each probability over the temperature" });
    const curves = found.rest ? [...found.curves, found.rest] : found.curves;
    curves.forEach((curve, i) => {
      const line = svg("path", { class: "curve", d: path(curve.map((p, j) => [drawn.x(found.temperatures[j]), drawn.y(p)])) });
      line.style.stroke = i < found.curves.length ? inkOf(i) : "var(--negative)";
      if (i >= found.curves.length) line.style.strokeDasharray = "4 4";
      drawn.plot.append(line);
    });
    return this.pickable({ ...drawn, curves });
  }

  uncertainty(width) {
    const { found } = this;
    const most = Math.max(...found.choices, 2);
    const drawn = chart({ width, height: HEIGHT.choices, from: { x: 0, y: 0 }, to: { x: found.temperatures.at(-1), y: most }, label: "temperature", title: "effective number of choices over the temperature" });
    const line = svg("path", { class: "curve", d: path(found.choices.map((count, j) => [drawn.x(found.temperatures[j]), drawn.y(count)])) });
    line.style.stroke = "var(--probability)";
    drawn.plot.append(line);
    return this.pickable({ ...drawn, curves: [found.choices] });
  }

  /** The temperature follows a pointer that is pressed. */
  pickable(drawn) {
    const picture = drawn.element.querySelector("svg");
    const to = (event) => {
      const box = picture.getBoundingClientRect();
      const [low, high] = [drawn.x(0), drawn.x(this.found.temperatures.at(-1))];
      const at = ((event.clientX - box.left) * this.width) / box.width;
      const i = this.index(((at - low) / (high - low)) * this.found.temperatures.at(-1));
      this.pick(this.found.temperatures[i]);
    };
    picture.addEventListener("pointerdown", (event) => {
      picture.setPointerCapture(event.pointerId);
      to(event);
    });
    picture.addEventListener("pointermove", (event) => picture.hasPointerCapture(event.pointerId) && to(event));
    const mark = svg("g");
    drawn.plot.append(mark);
    return { ...drawn, mark };
  }

  mark({ mark, x, y, floor, top, curves }, t, i) {
    const dots = curves.map((curve, row) => {
      const dot = svg("circle", { class: "dot", cx: x(t), cy: y(curve[i]), r: 4 });
      dot.style.fill = curves.length === 1 ? "var(--probability)" : row < this.found.curves.length ? inkOf(row) : "var(--negative)";
      return dot;
    });
    mark.replaceChildren(svg("line", { class: "at", x1: x(t), x2: x(t), y1: top, y2: floor }), ...dots);
  }

  /** For a caption. */
  said() {
    if (!this.found) return "";
    const { found, at } = this;
    return `${found.names.slice(0, 3).map(([name], i) => `${name} ${percent(found.curves[i][at])}`).join(", ")}; entropy ${found.entropy[at].toFixed(2)} bits`;
  }
}

function inkOf(i) {
  return `var(--head-${i + 1})`;
}

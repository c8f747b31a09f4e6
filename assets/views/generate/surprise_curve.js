// Surprise along the text, and what was to be expected at each place.
import { chart, path } from "../components/chart.js";
import { make } from "../core/dom.js";
import { svg } from "../components/stack.js";

const HIGH = 190; // CSS pixels
const MARGINS = 66; // of the chart, on both sides together
const NARROWEST = 2; // CSS pixels from bar to bar

export function mount(root, tab) {
  return new Curve(root, tab);
}

class Curve {
  constructor(root, tab) {
    Object.assign(this, { root, tab });
  }

  update() {
    const { tab, root } = this;
    const { found, tokens } = tab;
    const width = Math.max(280, Math.floor(root.clientWidth));
    if (this.drawn !== found || this.count !== tokens.length || this.width !== width) this.build(width);
    const bin = Math.floor(tab.at / this.size);
    if (this.picked !== bin) {
      this.rects[this.picked]?.classList.remove("picked");
      this.rects[bin].classList.add("picked");
      this.picked = bin;
    }
    if (this.reads) this.reach();
  }

  build(width) {
    const { tab, root } = this;
    const { tokens, found } = tab;
    const first = tokens[0].at;
    const last = tab.inPieces ? tab.length - 1 : tokens.at(-1).at;
    const size = Math.ceil((last - first + 1) / Math.max(1, Math.floor((width - MARGINS) / NARROWEST))); // tokens a bar
    Object.assign(this, { drawn: found, count: tokens.length, width, size, picked: null, reads: null });
    this.bars = Array.from({ length: Math.ceil(tokens.length / size) }, (_, i) => peak(tokens, i * size, Math.min(tokens.length, (i + 1) * size)));
    const most = Math.max(tab.blind, ...this.bars.map((at) => tokens[at].surprise));
    const title = "surprise in bits along the text; the line is the entropy, what was to be expected";
    const made = (this.chart = chart({ width, height: HIGH, from: { x: first - 0.5, y: 0, ticks: ticks(first, last) }, to: { x: last + 0.5, y: most }, label: "position", title }));
    const wide = Math.max(1, Math.min(18, 0.8 * size * (made.x(1) - made.x(0))));
    this.places = this.bars.map((i) => (size === 1 ? tokens[i].at : tokens[Math.floor(i / size) * size].at + (size - 1) / 2));
    const xs = this.places.map((place) => made.x(place));
    this.rects = this.bars.map((i, bar) => {
      const top = made.y(tokens[i].surprise);
      return made.plot.appendChild(svg("rect", { x: xs[bar] - wide / 2, y: top, width: wide, height: made.floor - top, class: "s-rect" }));
    });
    made.plot.append(svg("path", { d: path(this.bars.map((i, bar) => [xs[bar], made.y(tokens[i].entropy)])), class: "s-entropy" }));
    const near = (value) => this.bars[this.barOf(value)];
    made.hover((value) => {
      const token = tokens[near(value)];
      return { x: token.at, y: token.surprise, text: `“${token.piece}”, position ${token.at}: ${token.surprise.toFixed(2)} bits, expected ${token.entropy.toFixed(2)}` };
    });
    made.element.querySelector("svg").addEventListener("click", (event) => {
      const box = event.currentTarget.getBoundingClientRect();
      const [low, high] = [made.x(first), made.x(last)];
      const at = ((event.clientX - box.left) * width) / box.width;
      tab.look(near(high === low ? first : first + ((at - low) / (high - low)) * (last - first)));
    });
    if (tab.inWindows) this.mark();
    const heading = make("h3", "", "Along the text");
    const bars = size === 1 ? `bars: surprise in bits; line: the entropy ${found.pseudo ? "at each masked" : "before each"} token` : `bars: of each ${size.toLocaleString("en")} tokens the most surprising, in bits; line: the entropy ${found.pseudo ? "there" : "before it"}`;
    heading.append(make("span", "note", ` ${bars}`));
    root.replaceChildren(heading, made.element);
  }

  /** The bar that stands nearest to a position. */
  barOf(value) {
    return this.places.reduce((best, place, bar) => (Math.abs(place - value) < Math.abs(this.places[best] - value) ? bar : best), 0);
  }

  /** A tick below the axis where each window predicts from, and a line over what the chosen token was predicted from. */
  mark() {
    const { chart: made, tab } = this;
    const { floor } = made;
    const d = tab.found.windows.slice(1).map(([, asked]) => `M${made.x(asked - 0.5).toFixed(1)} ${floor}v5`).join("");
    made.plot.append(svg("path", { d, class: "s-opens" }));
    this.reads = made.plot.appendChild(svg("line", { y1: floor + 3, y2: floor + 3, class: "s-reads" }));
  }

  reach() {
    const { chart: made, tab } = this;
    const { at, window } = tab.tokens[tab.at];
    this.reads.setAttribute("x1", made.x(tab.found.windows[window][0] - 0.5));
    this.reads.setAttribute("x2", made.x(at - 0.5));
  }
}

/** The place of the most surprising of the tokens from `first` to `end`. */
function peak(tokens, first, end) {
  let best = first;
  for (let i = first + 1; i < end; i++) if (tokens[i].surprise > tokens[best].surprise) best = i;
  return best;
}

/** A handful of whole positions. */
function ticks(first, last) {
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000].find((one) => (last - first) / one <= 8) ?? 10000;
  const found = [];
  for (let at = Math.ceil(first / step) * step; at <= last; at += step) found.push(at);
  return found;
}

// Surprise along the text, and what was to be expected at each place.
import { chart, path } from "./chart.js";
import { make } from "./dom.js";
import { svg } from "./stack.js";

const HIGH = 190; // CSS pixels

export function mount(root, tab) {
  return new Curve(root, tab);
}

class Curve {
  constructor(root, tab) {
    Object.assign(this, { root, tab });
  }

  update() {
    const { tab, root } = this;
    const { found } = tab;
    const width = Math.max(280, Math.floor(root.clientWidth));
    if (this.drawn !== found || this.width !== width) this.build(width);
    this.rects.forEach((rect, i) => rect.classList.toggle("picked", i === tab.at));
  }

  build(width) {
    const { tab, root } = this;
    const { tokens, found } = tab;
    Object.assign(this, { drawn: found, width });
    const [first, last] = [tokens[0].at, tokens.at(-1).at];
    const most = Math.max(tab.blind, ...tokens.map(({ surprise }) => surprise));
    const title = "surprise in bits along the text; the line is the entropy, what was to be expected";
    const made = (this.chart = chart({ width, height: HIGH, from: { x: first - 0.5, y: 0, ticks: ticks(first, last) }, to: { x: last + 0.5, y: most }, label: "position", title }));
    const wide = Math.max(1, Math.min(18, 0.8 * (made.x(1) - made.x(0))));
    this.rects = tokens.map(({ at, surprise }) => {
      const top = made.y(surprise);
      return made.plot.appendChild(svg("rect", { x: made.x(at) - wide / 2, y: top, width: wide, height: made.floor - top, class: "s-rect" }));
    });
    made.plot.append(svg("path", { d: path(tokens.map(({ at, entropy }) => [made.x(at), made.y(entropy)])), class: "s-entropy" }));
    const near = (x) => tokens.reduce((best, one) => (Math.abs(one.at - x) < Math.abs(best.at - x) ? one : best), tokens[0]);
    made.hover((x) => {
      const token = near(x);
      return { x: token.at, y: token.surprise, text: `“${token.piece}”, position ${token.at}: ${token.surprise.toFixed(2)} bits, expected ${token.entropy.toFixed(2)}` };
    });
    made.element.querySelector("svg").addEventListener("click", (event) => {
      const box = event.currentTarget.getBoundingClientRect();
      const [low, high] = [made.x(first), made.x(last)];
      const at = ((event.clientX - box.left) * width) / box.width;
      const value = high === low ? first : first + ((at - low) / (high - low)) * (last - first);
      tab.look(tokens.indexOf(near(value)));
    });
    const heading = make("h3", "", "Along the text");
    heading.append(make("span", "note", " bars: surprise in bits; line: the entropy before each token"));
    root.replaceChildren(heading, made.element);
  }
}

/** A handful of whole positions. */
function ticks(first, last) {
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((one) => (last - first) / one <= 8) ?? 2000;
  const found = [];
  for (let at = Math.ceil(first / step) * step; at <= last; at += step) found.push(at);
  return found;
}

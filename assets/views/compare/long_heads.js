// Every head's difference between A and another run on long texts, block by block as it is computed; the largest first once all are here.
import { hundredths } from "../attention/scores.js";
import { make, range } from "../core/dom.js";
import { mount as mountGrid } from "../components/headgrid.js";
import { legend } from "../components/legend.js";

const SIDE = 56; // CSS pixels of a thumbnail
const APART = 9; // between two of them, frame included
const MOST = 144; // thumbnails

export function mount(root, lab) {
  return new Heads(root, lab);
}

class Heads {
  constructor(root, lab) {
    this.root = root;
    this.lab = lab;
    this.grid = null;
    this.drawn = "";
    this.about = make("p", "about");
    this.waiting = make("p", "waiting-for");
    this.waiting.setAttribute("role", "status");
    this.place = make("div");
    this.colours = make("div");
    root.append(make("h3", "", "Heads that differ most"), this.about, this.waiting, this.place, this.colours);
  }

  destroy() {
    this.root.replaceChildren();
  }

  update() {
    const { lab } = this;
    const { beside } = lab.state;
    const found = lab.described(beside);
    const able = Boolean(
      found?.change && lab.pair(beside)?.queries.entries.some(({ first, second }) => first.length && second.length),
    );
    this.about.textContent = able
      ? `Head by head in its place: how much of a row’s attention goes elsewhere, half the sum of |difference|, the mean over the rows but the first. Thumbnails show the largest |difference| of every block.${lab.related(beside) ? "" : " Of models that were trained apart a place says nothing; below stands which heads are alike."}`
      : !found
        ? lab.absent(beside)
        : found.change
          ? `A and ${beside} have no tokens that belong together.`
          : `A and ${beside} do not have the same heads, so that no head has its counterpart by place; below stands which are alike.`;
    this.place.hidden = this.colours.hidden = this.waiting.hidden = !able;
    if (!able) return;
    const { layers, all, sentence } = lab.seen.has("heads")
      ? lab.asks.layers(beside)
      : { layers: [], all: 0, sentence: "" };
    this.waiting.hidden = layers.length === all && !sentence;
    this.waiting.textContent = sentence || `Comparing the heads: block ${layers.length} of ${all} …`;
    this.show(layers);
  }

  show(layers) {
    const { lab, root } = this;
    this.place.hidden = this.colours.hidden = !layers.length;
    if (!layers.length) return;
    const shares = layers.flatMap(({ change }) => Array.from(change.data));
    const most = layers.reduce((found, { seen }) => seen.data.reduce((x, y) => Math.max(x, y), found), 0) || 1;
    const data = this.gridData(layers, shares, most);
    const key = [
      lab.edition,
      lab.data.trace,
      lab.state.beside,
      lab.state.attention,
      layers.length,
      root.clientWidth,
    ].join();
    if (!this.grid) this.grid = mountGrid(this.place, data, (event, where) => lab.go(where));
    else if (key !== this.drawn) this.grid.update(data);
    else this.grid.mark(data);
    this.drawn = key;
    const { element } = legend(lab.element, { role: "attention", scale: "unit", width: 60 });
    element.querySelector(".legend-text").textContent = `|difference| of a weight, 0 to ${most.toFixed(2)}`;
    this.colours.replaceChildren(element);
  }

  gridData(known, shares, most) {
    const { lab } = this;
    const { layers, heads } = lab.side("A").trace.model;
    const order = range(0, shares.length)
      .sort((a, b) => (shares[b] || 0) - (shares[a] || 0) || a - b)
      .slice(0, MOST);
    const caption = (l, h) => {
      const value = shares[l * heads + h];
      return { text: Number.isNaN(value) ? "–" : `${hundredths(value)} %`, share: value || 0, dim: false };
    };
    const pattern = (l, h) => {
      const { data, shape } = known[l].seen;
      const [, rows, cols] = shape;
      return { block: { data, offset: h * rows * cols, stride: cols, rows, cols }, max: most };
    };
    const columns = Math.max(1, Math.floor((this.root.clientWidth + 5) / (SIDE + APART)));
    const places = order.map((i) => [Math.floor(i / heads), i % heads]);
    return {
      layers,
      heads,
      side: SIDE,
      pattern,
      layer: lab.state.layer,
      head: lab.state.head,
      order: places,
      columns,
      caption,
    };
  }
}

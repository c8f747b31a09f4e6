// Every head's difference between A and another run, the largest first.
import { subtract } from "./merge.js";
import { make, range } from "../core/dom.js";
import { mount as mountGrid } from "../components/headgrid.js";
import { hundredths } from "../attention/scores.js";
import { legend } from "../components/legend.js";

const SIDE = 56; // CSS pixels of a thumbnail
const APART = 9; // between two of them, frame included
const MOST = 144; // thumbnails

export function mount(root, lab) {
  const title = make("h3", "", "Heads that differ most");
  const about = make("p", "about");
  const place = make("div");
  const colours = make("div");
  root.append(title, about, place, colours);
  let grid = null;
  let drawn = "";
  let most = 1; // the largest difference of all heads
  let kept = new Map(); // head -> its block, of what is drawn

  return {
    update() {
      const { beside, layer, head, attention } = lab.state;
      const change = lab.data.arrays[`${beside}:${attention}.change`];
      const comparable = Boolean(change && lab.pair(beside)?.queries.entries.length);
      place.hidden = colours.hidden = !comparable;
      about.textContent = comparable
        ? `Head by head in its place: how much of a row’s attention goes elsewhere, half the sum of |difference|, the mean over the rows but the first.${lab.related(beside) ? "" : " Of models that were trained apart a place says nothing; below stands which heads are alike."}`
        : !lab.described(beside)
          ? lab.absent(beside)
          : `A and ${beside} do not have the same heads, so that no head has its counterpart by place; below stands which are alike.`;
      if (!comparable) return;
      const key = [
        lab.edition,
        beside,
        attention,
        root.clientWidth,
        lab.sides.map(({ trace }) => Object.keys(trace.arrays).length),
      ].join();
      const data = gridData(change, layer, head);
      if (key !== drawn) measure(data);
      if (!grid) grid = mountGrid(place, data, (event, where) => lab.go(where));
      else if (key !== drawn) grid.update(data);
      else grid.mark(data);
      drawn = key;
      const { element } = legend(lab.element, { role: "attention", scale: "unit", width: 60 });
      element.querySelector(".legend-text").textContent = `|difference| of a weight, 0 to ${most.toFixed(2)}`;
      colours.replaceChildren(element);
    },
    destroy: () => root.replaceChildren(),
  };

  function measure({ order }) {
    kept = new Map(order.map(([l, h]) => [`${l} ${h}`, magnitude(lab, l, h)]));
    most = [...kept.values()].reduce((found, { data }) => data.reduce((x, y) => Math.max(x, y), found), 0) || 1;
  }

  function gridData({ data, shape }, layer, head) {
    const [layers, heads] = shape;
    const order = range(0, layers * heads)
      .sort((a, b) => (data[b] || 0) - (data[a] || 0) || a - b)
      .slice(0, MOST);
    const columns = Math.max(1, Math.floor((root.clientWidth + 5) / (SIDE + APART)));
    const caption = (l, h) => {
      const value = data[l * heads + h];
      return { text: Number.isNaN(value) ? "–" : `${hundredths(value)} %`, share: value || 0, dim: false };
    };
    const places = order.map((i) => [Math.floor(i / heads), i % heads]);
    return {
      layers,
      heads,
      side: SIDE,
      pattern: (l, h) => ({ block: kept.get(`${l} ${h}`), max: most }),
      layer,
      head,
      order: places,
      columns,
      caption,
    };
  }
}

/** |difference| of one head at the tokens that belong together; 0 where one run has no such token. */
function magnitude(lab, layer, head) {
  const { beside } = lab.state;
  const pair = lab.pair(beside);
  const [first, second] = ["A", beside].map((letter) => lab.patternAt(letter, layer, head));
  const block = subtract(first, second, pair.queries.entries, pair.keys.entries);
  for (let i = 0; i < block.data.length; i++) block.data[i] = Math.abs(block.data[i]) || 0;
  return block;
}

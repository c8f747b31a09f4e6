// Every head's difference between A and another run, the largest first; of long texts block by block as it is computed.
import { alone } from "./merge.js";
import { make, range } from "../core/dom.js";
import { mount as mountGrid } from "../components/headgrid.js";
import { hundredths } from "../attention/scores.js";
import { legend } from "../components/legend.js";

/**
 * @typedef {import("./compare.js").Shell} Shell
 * @typedef {import("./source.js").Changes} Changes
 */

const SIDE = 56; // CSS pixels of a thumbnail
const APART = 9; // between two of them, frame included
const MOST = 144; // thumbnails

/**
 * @param {HTMLElement} root
 * @param {Shell} shell
 */
export function mount(root, shell) {
  const title = make("h3", "", "Heads that differ most");
  const about = make("p", "about");
  const waiting = make("p", "waiting-for");
  waiting.setAttribute("role", "status");
  const place = make("div");
  const colours = make("div");
  root.append(title, about, waiting, place, colours);
  /** @type {ReturnType<typeof mountGrid> | undefined} */
  let grid;
  let drawn = "";
  let most = 1; // the largest difference of all heads
  let kept = new Map(); // head -> its block, of what is drawn

  return {
    update() {
      const { beside } = shell.state;
      const able = comparable(beside);
      about.textContent = able ? explained(beside) : missing(beside);
      place.hidden = colours.hidden = waiting.hidden = !able;
      if (!able) return;
      const changes = shell.source.changes(beside);
      const { shares, done, all, sentence } = changes;
      waiting.hidden = done === all && !sentence;
      waiting.textContent = sentence || `Comparing the heads: block ${done} of ${all} …`;
      place.hidden = colours.hidden = !shares.length;
      if (shares.length) show(changes);
    },
    destroy: () => root.replaceChildren(),
  };

  /** @param {string} beside */
  function comparable(beside) {
    return Boolean(
      shell.described(beside)?.change && shell.pair(beside)?.queries.entries.some((entry) => !alone(entry)),
    );
  }

  /** @param {string} beside */
  function explained(beside) {
    const blocks = shell.source.tiled ? " Thumbnails show the largest |difference| of every block." : "";
    const apart = shell.related(beside)
      ? ""
      : " Heads of models trained independently do not match by place; the table below shows which heads are alike.";
    return `Head by head in its place: how much of a row’s attention differs, half the sum of |difference|, the mean over the rows but the first.${blocks}${apart}`;
  }

  /** @param {string} beside */
  function missing(beside) {
    const found = shell.described(beside);
    if (!found || found.change) return shell.absent(beside);
    return `A and ${beside} do not have the same heads, so none matches by place; the table below shows which are alike.`;
  }

  /** @param {Changes} changes */
  function show({ shares, seen, edition }) {
    const { heads } = shell.side("A").trace.model;
    /** @type {[layer: number, head: number][]} */
    const order = range(0, shares.length)
      .sort((a, b) => (shares[b] || 0) - (shares[a] || 0) || a - b)
      .slice(0, MOST)
      .map((i) => [Math.floor(i / heads), i % heads]);
    const key = [shell.edition, shell.state.beside, shell.state.attention, edition, root.clientWidth].join();
    if (key !== drawn) {
      kept = new Map(order.map(([l, h]) => [`${l} ${h}`, seen(l, h)]));
      most =
        [...kept.values()].reduce(
          (found, { data }) => data.reduce((/** @type {number} */ x, /** @type {number} */ y) => Math.max(x, y), found),
          0,
        ) || 1;
    }
    const data = gridData(shares, order);
    if (!grid) grid = mountGrid(place, data, (event, where) => shell.go(where));
    else if (key !== drawn) grid.update(data);
    else grid.mark(data);
    drawn = key;
    const { element } = legend(shell.element, { role: "attention", scale: "unit", width: 60 });
    element.querySelector(".legend-text").textContent = `|difference| of a weight, 0 to ${most.toFixed(2)}`;
    colours.replaceChildren(element);
  }

  /**
   * @param {number[]} shares
   * @param {[layer: number, head: number][]} order
   */
  function gridData(shares, order) {
    const { layers, heads } = shell.side("A").trace.model;
    /**
     * @param {number} l
     * @param {number} h
     */
    const caption = (l, h) => {
      const value = shares[l * heads + h];
      return { text: Number.isNaN(value) ? "–" : `${hundredths(value)} %`, share: value || 0, dim: false };
    };
    return {
      layers,
      heads,
      side: SIDE,
      /**
       * @param {number} l
       * @param {number} h
       */
      pattern: (l, h) => ({ block: kept.get(`${l} ${h}`), max: most }),
      layer: shell.state.layer,
      head: shell.state.head,
      order,
      columns: Math.max(1, Math.floor((root.clientWidth + 5) / (SIDE + APART))),
      caption,
    };
  }
}

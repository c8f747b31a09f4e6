// All heads of one attention as thumbnails. While it learns only the pictures change: the buttons stay.
import { make } from "../core/dom.js";
import * as headgrid from "../components/headgrid.js";
import { scoresOf } from "./probe_scores.js";
import { pattern } from "./seen.js";

const SIDE = { most: 58, least: 22, tall: 236, dense: 80, around: 26, between: 9 }; // CSS pixels; `tall` are all of them

/** {element, update(frame, attention, room)}: `room` is the most that they may take of the page's width, CSS pixels. */
export function heads(lab) {
  const element = make("div", "probe-heads");
  const heard = (_, { layer, head }) => lab.go({ layer, head });
  let [grid, built, place] = [null, "", null];
  let drawn = null; // {frame, attention}

  const pointed = (event) => {
    const button = event.target.closest("button");
    if (!button || !drawn) return lab.tip(null);
    const [layer, head] = [Number(button.dataset.layer), Number(button.dataset.head)];
    const said = scoresOf(drawn.frame, drawn.attention, layer, head).map(({ name, text }) => `${name} ${text}`);
    lab.tip(`block ${layer + 1}, head ${head + 1}`, said.slice(0, 4).join(" · "));
  };
  element.addEventListener("pointerover", (event) => event.pointerType !== "touch" && pointed(event));
  element.addEventListener("pointerleave", () => lab.tip(null));

  const update = (frame, attention, room) => {
    const { layers, heads: count, key } = attention;
    const of = (layer, head) => pattern(frame, key, layer, head);
    const { block } = of(0, 0);
    const across = Math.floor((room - SIDE.around) / count) - SIDE.between;
    const cells = Math.max(block.rows, block.cols);
    const fitting = Math.max(SIDE.least, Math.min(SIDE.most, across, Math.floor(SIDE.tall / layers) - SIDE.between));
    const side = cells > fitting && cells <= Math.min(across, SIDE.dense) ? cells : fitting;
    const structure = [lab.edition, key, layers, count, side, block.rows, block.cols].join();
    const { layer, head } = lab.state;
    const data = { layers, heads: count, side, pattern: of, layer, head };
    if (structure !== built) {
      place = make("div");
      element.replaceChildren(place);
      grid = headgrid.mount(place, data, heard);
      built = structure;
    } else if (drawn.frame !== frame) grid.update(data);
    drawn = { frame, attention };
    grid.mark({ layer, head });
  };
  return { element, update };
}

// Beside the map of a model that reads pictures: the picture, with one row's attention laid over it patch by patch.
import { called } from "./names.js";
import { make } from "../core/dom.js";
import { mount } from "../components/picture.js";

export const PICTURE = { most: 260, share: 0.3, gap: 28 }; // CSS pixels, of the room, and from the map

/** The width of the picture in the room that the page has. */
export function pictureWidth({ narrow, width }) {
  return Math.round(Math.min(PICTURE.most, narrow ? width : width * PICTURE.share));
}

/** {update()}: stands at the end of `root` as long as there is a picture; a click on a patch picks its row. */
export function picture(page, root) {
  let shown = null; // {element, title, view}
  const heard = (event, where) => {
    if (event === "pick") page.go({ query: where.row, key: undefined, pinned: false });
    else page.point(where && { row: where.row, col: null });
  };
  const build = () => {
    const element = make("div", "map-picture");
    const title = make("h3");
    const place = make("div");
    element.append(title, place);
    root.append(element);
    return { element, title, view: mount(place, pictured(page), heard) };
  };
  const update = () => {
    const { trace, state, hover } = page;
    if (!trace.grid || !trace.arrays.picture) {
      shown?.element.remove();
      shown = null;
      return;
    }
    shown ??= build();
    shown.element.style.width = `${pictureWidth(page)}px`;
    shown.title.replaceChildren("Where ", make("bdi", "role-query", called(trace, trace.pieces[hover?.row ?? state.query])), " looks");
    shown.view.update(pictured(page));
  };
  return { update };
}

function pictured(page) {
  const { trace, state, hover } = page;
  const query = hover?.row ?? state.query;
  const { block, max } = page.pattern(state.layer, state.head);
  const start = block.offset + query * block.stride;
  const weights = Float32Array.from(block.data.subarray(start, start + block.cols), (w) => w / max);
  const { picture: pixels, original } = trace.arrays;
  return { picture: pixels, original, grid: trace.grid, weights, query, width: pictureWidth(page) };
}

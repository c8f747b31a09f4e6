// A matrix of query positions (down) by key positions (across): scores, mask, masked scores or pattern.
import { extent, mountCells } from "./cells.js";

/** data = {block, role, scale, width, pitch, height, label, hidden?}; emits "hover" and "pick" with {row, col}. */
export function mount(root, data, emit) {
  const view = mountCells(root, scaled(data), emit);
  return { ...view, update: (next) => view.update(scaled(next)) };
}

function scaled(data) {
  return { max: data.scale === "signed" ? extent(data.block) : 1, ...data };
}

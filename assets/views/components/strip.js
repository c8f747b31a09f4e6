// A vector strip: one row a token, one column a component of its vector. Values are signed, zero is the ground's colour.
import { extent, mountCells } from "./cells.js";

/** data = {block, role, width, pitch, height, label}; emits "hover" and "pick" with {row, col}. */
export function mount(root, data, emit) {
  const view = mountCells(root, signed(data), emit);
  return { ...view, update: (next) => view.update(signed(next)) };
}

function signed(data) {
  return { scale: "signed", max: extent(data.block), ...data };
}

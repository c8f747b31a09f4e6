// A vector strip: one row a token, one column a component of its vector. Values are signed, zero is the ground's colour.
import { extent, mountCells } from "./cells.js";

/** @typedef {import("./cells.js").Emit} Emit */
/** @typedef {Omit<import("./cells.js").Picture, "max" | "scale"> & { max?: number, scale?: Scale }} Strip */

/**
 * data = {block, role, width, pitch, height, label}; emits "hover" and "pick" with {row, col}.
 * @param {HTMLElement} root
 * @param {Strip} data
 * @param {Emit} emit
 */
export function mount(root, data, emit) {
  const view = mountCells(root, signed(data), emit);
  /** @param {Strip} next */
  const update = (next) => view.update(signed(next));
  return { ...view, update };
}

/**
 * @param {Strip} data
 * @returns {import("./cells.js").Picture}
 */
function signed(data) {
  return { scale: "signed", max: extent(data.block), ...data };
}

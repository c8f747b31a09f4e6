// A matrix of query positions (down) by key positions (across): scores, mask, masked scores or pattern.
import { extent, mountCells } from "./cells.js";

/** @typedef {import("./cells.js").Emit} Emit */
/** @typedef {Omit<import("./cells.js").Picture, "max"> & { max?: number }} Matrix */

/**
 * data = {block, role, scale, width, pitch, height, label, hidden?}; emits "hover" and "pick" with {row, col}.
 * @param {HTMLElement} root
 * @param {Matrix} data
 * @param {Emit} emit
 */
export function mount(root, data, emit) {
  const view = mountCells(root, scaled(data), emit);
  /** @param {Matrix} next */
  const update = (next) => view.update(scaled(next));
  return { ...view, update };
}

/**
 * @param {Matrix} data
 * @returns {import("./cells.js").Picture}
 */
function scaled(data) {
  return { max: data.scale === "signed" ? extent(data.block) : 1, ...data };
}

// Room for names beside the points of a chart, given to one after another where they cover neither a point nor a name. Boxes are [left, top,
// right, bottom], CSS pixels.

/** @typedef {[left: number, top: number, right: number, bottom: number]} Box */
/** @typedef {[x: number, y: number]} Spot */

export const LINE = 16; // CSS pixels that a name is high
const EDGE = 4; // CSS pixels that stay free inside the frame

export class Room {
  /**
   * In a chart of a size, around points [[x, y], ...] of a radius.
   * @param {{ width: number, height: number }} size
   * @param {Spot[]} points
   * @param {number} radius
   */
  constructor({ width, height }, points, radius) {
    this.width = width;
    this.height = height;
    this.gap = radius + 4;
    /** @type {Box[]} */
    this.points = points.map(([x, y]) => [x - radius, y - radius, x + radius, y + radius]);
    /** @type {Box[]} */
    this.names = [];
  }

  /**
   * The box of a name beside a point, or undefined. The sides are tried right, left, above, below, then the corners; `leftward` tries the left one first. A name
   * that `may` cover points takes one that covers no other name, and one that `must` stand else the first inside the frame.
   * @param {Spot} spot
   * @param {number} wide
   * @param {{ leftward?: boolean, may?: boolean, must?: boolean }} [how]
   * @returns {Box | undefined}
   */
  find(spot, wide, { leftward = false, may = false, must = false } = {}) {
    const [[x, y], { gap }] = [spot, this];
    const corner = 0.7 * gap;
    const sides = [
      [x + gap, y],
      [x - gap - wide, y],
      [x - wide / 2, y - gap - LINE / 2],
      [x - wide / 2, y + gap + LINE / 2],
      ...[y - corner - LINE / 2, y + corner + LINE / 2].flatMap((middle) => [
        [x + corner, middle],
        [x - corner - wide, middle],
      ]),
    ];
    if (leftward) sides.unshift(...sides.splice(1, 1));
    const boxes = sides
      .map(([left, middle]) => /** @type {Box} */ ([left, middle - LINE / 2, left + wide, middle + LINE / 2]))
      .filter((box) => this.holds(box));
    const clear = boxes.filter((box) => this.names.every((one) => apart(one, box)));
    const free = clear.find((box) => this.points.every((one) => apart(one, box)));
    const box = free ?? (may ? clear[0] : undefined) ?? (must ? boxes[0] : undefined);
    if (box) this.names.push(box);
    return box;
  }

  /** @param {Box} box */
  holds([left, top, right, bottom]) {
    return left >= EDGE && top >= EDGE && right <= this.width - EDGE && bottom <= this.height - EDGE;
  }
}

/**
 * Whether two boxes have nothing in common.
 * @param {Box} one
 * @param {Box} other
 */
export function apart([l, t, r, b], [left, top, right, bottom]) {
  return right <= l || left >= r || bottom <= t || top >= b;
}

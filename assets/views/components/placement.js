// Names beside points, placed one after another where they cover neither a point nor a name.

const EDGE = 4; // CSS pixels that stay free inside the frame
const CELL = 32; // CSS pixels, a side of the squares by which boxes are found
const ACROSS = 4096; // of them in a row, at most

export class Placement {
  constructor({ width, height }) {
    this.width = width;
    this.height = height;
    this.points = new Map();
    this.names = new Map();
  }

  /** Keeps the square around a point free. */
  block(x, y, radius) {
    put(this.points, [x - radius, y - radius, x + radius, y + radius]);
  }

  /**
   * Where a name of a width and height goes beside the point (x, y): {x, y} of its left end and its middle, or null. The
   * sides are tried right, left, above, below; `leftward` tries the left one first. A name that `may` cover points
   * takes one that covers no other name, and one that `must` stand else the first inside the frame.
   */
  find(wide, tall, x, y, gap, { leftward = false, may = false, must = false } = {}) {
    const [right, left] = [
      [x + gap, y],
      [x - gap - wide, y],
    ];
    const sides = [
      ...(leftward ? [left, right] : [right, left]),
      [x - wide / 2, y - gap - tall / 2],
      [x - wide / 2, y + gap + tall / 2],
    ];
    const boxes = sides
      .map(([at, middle]) => [at, middle - tall / 2, at + wide, middle + tall / 2])
      .filter((box) => this.inside(box));
    const clear = boxes.filter((one) => free(one, this.names));
    const box =
      clear.find((one) => free(one, this.points)) ??
      (may || must ? clear[0] : undefined) ??
      (must ? boxes[0] : undefined);
    if (!box) return null;
    put(this.names, box);
    return { x: box[0], y: (box[1] + box[3]) / 2 };
  }

  /** @param {number[]} box */
  inside([left, top, right, bottom]) {
    return left >= EDGE && top >= EDGE && right <= this.width - EDGE && bottom <= this.height - EDGE;
  }
}

function put(taken, box) {
  for (const cell of cells(box)) taken.has(cell) ? taken.get(cell).push(box) : taken.set(cell, [box]);
}

function free(box, taken) {
  const [left, top, right, bottom] = box;
  return cells(box).every((cell) =>
    (taken.get(cell) ?? []).every(([l, t, r, b]) => right <= l || left >= r || bottom <= t || top >= b),
  );
}

/** The squares that a box touches. */
function cells(box) {
  const [left, top, right, bottom] = box.map((x) => Math.floor(x / CELL));
  const found = [];
  for (let row = top; row <= bottom; row++) for (let col = left; col <= right; col++) found.push(row * ACROSS + col);
  return found;
}

// Names beside points, placed one after another where they cover neither a point nor a name: for hundreds of points, not
// for thousands (see `room` in plane.js).

const EDGE = 4; // CSS pixels that stay free inside the frame

export class Placement {
  constructor({ width, height }) {
    Object.assign(this, { width, height, points: [], names: [] });
  }

  /** Keeps the square around a point free. */
  block(x, y, radius) {
    this.points.push([x - radius, y - radius, x + radius, y + radius]);
  }

  /**
   * Where a name of a width and height goes beside the point (x, y): {x, y} of its left end and its middle, or null. The
   * sides are tried right, left, above, below; `leftward` tries the left one first. A name that `may` cover points
   * takes one that covers no other name, and one that `must` stand else the first inside the frame.
   */
  find(wide, tall, x, y, gap, { leftward = false, may = false, must = false } = {}) {
    const [right, left] = [[x + gap, y], [x - gap - wide, y]];
    const sides = [...(leftward ? [left, right] : [right, left]), [x - wide / 2, y - gap - tall / 2], [x - wide / 2, y + gap + tall / 2]];
    const boxes = sides.map(([at, middle]) => [at, middle - tall / 2, at + wide, middle + tall / 2]).filter((box) => this.inside(box));
    const clear = boxes.filter((one) => free(one, this.names));
    const box = clear.find((one) => free(one, this.points)) ?? (may || must ? clear[0] : undefined) ?? (must ? boxes[0] : undefined);
    if (!box) return null;
    this.names.push(box);
    return { x: box[0], y: (box[1] + box[3]) / 2 };
  }

  inside([left, top, right, bottom]) {
    return left >= EDGE && top >= EDGE && right <= this.width - EDGE && bottom <= this.height - EDGE;
  }
}

function free([left, top, right, bottom], taken) {
  return taken.every(([l, t, r, b]) => right <= l || left >= r || bottom <= t || top >= b);
}

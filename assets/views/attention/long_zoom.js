// What of a long map is in view: as much of the whole as the zoom leaves, from the place that the state of the page names.
const CELL = 30; // CSS pixels of a weight, at most
const CHROME = 394; // what stands above and below the map in a window
const LEAST_TALL = 340;
const BESIDE = { wide: 98, narrow: 70 }; // the axis at the left
export const OVERHANG = 40; // how far its names reach beyond the map
const STRETCH = 6; // how much taller than wide a weight may be, or wider, where there are far more keys than queries, or fewer

/** Whoever extends it has `show()`, which draws what is in view. */
export class Zoomed {
  constructor(page) {
    this.page = page;
  }

  /** How large a weight is when the whole pattern is in view. */
  measure() {
    const { page } = this;
    const [rows, cols] = [page.trace.length, page.keys.length];
    const beside = page.narrow ? BESIDE.narrow : BESIDE.wide;
    const room = page.width - beside - (page.narrow ? 4 : OVERHANG);
    let [wide, tall] = [Math.min(CELL, room / cols), Math.min(CELL, Math.max(LEAST_TALL, window.innerHeight - CHROME) / rows)];
    const stretch = rows === cols ? 1 : STRETCH;
    [wide, tall] = [Math.min(wide, stretch * tall), Math.min(tall, stretch * wide)];
    this.rest = { rows, cols, wide, tall, width: Math.round(cols * wide), height: Math.round(rows * tall), beside };
  }

  get window() {
    const { rows, cols, wide: wideAtRest, tall: tallAtRest, width, height } = this.rest;
    const { state } = this.page;
    const zoom = this.fitting(state.zoom);
    const [wide, tall] = [Math.min(Math.max(CELL, wideAtRest), zoom * wideAtRest), Math.min(Math.max(CELL, tallAtRest), zoom * tallAtRest)];
    const [across, down] = [Math.min(cols, width / wide), Math.min(rows, height / tall)];
    const [row, col] = isPlace(state.from) ? state.from : [0, 0];
    return { zoom, wide, tall, across, down, top: inside(row, rows - down), left: inside(col, cols - across) };
  }

  fitting(zoom) {
    return Number.isFinite(zoom) ? Math.max(1, Math.min(this.most, zoom)) : 1;
  }

  /** The largest zoom: single weights as large as they get. */
  get most() {
    return Math.max(1, CELL / Math.min(this.rest.wide, this.rest.tall));
  }

  /** Looks at what begins at (row, col). */
  look(zoom, row, col) {
    const { page } = this;
    page.state.zoom = this.fitting(zoom);
    page.state.from = [row, col];
    const { top, left } = this.window;
    const whole = page.state.zoom === 1;
    page.state.from = whole ? undefined : [top, left].map((x) => Number(x.toFixed(2)));
    page.state.zoom = whole ? undefined : Number(page.state.zoom.toFixed(3));
    page.remember();
    this.show();
  }

  /** Draws what is looked at; whoever extends it does. */
  show() {}

  /** Zooms by `factor`; what is at (x, y) of the map, in CSS pixels, stays there. */
  zoomBy(factor, x = this.rest.width / 2, y = this.rest.height / 2) {
    const before = this.window;
    const [row, col] = [before.top + y / before.tall, before.left + x / before.wide];
    this.page.state.zoom = this.fitting(before.zoom * factor);
    const { wide, tall } = this.window;
    this.look(this.page.state.zoom, row - y / tall, col - x / wide);
  }

  move(x, y) {
    const { zoom, top, left, wide, tall } = this.window;
    this.look(zoom, top - y / tall, left - x / wide);
  }

  centre(row, col) {
    const { zoom, across, down } = this.window;
    this.look(zoom, row + 0.5 - down / 2, col + 0.5 - across / 2);
  }

  /** Moves the window, where it has to, so that a cell is in it. */
  reveal(row, col) {
    const { zoom, top, left, across, down } = this.window;
    const near = (at, from, count) => (at < from || at + 1 > from + count ? at + 0.5 - count / 2 : from);
    this.look(zoom, near(row, top, down), near(col, left, across));
  }
}

function isPlace(from) {
  return Array.isArray(from) && from.length === 2 && from.every(Number.isFinite);
}

export function inside(x, most) {
  return Math.max(0, Math.min(Math.max(0, most), x));
}

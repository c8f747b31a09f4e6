// A plane of points behind a frame: where a point stands on the canvas, moving and zooming, what is pointed at, and
// names that keep clear of one another.

const NEAR = 11; // pixels within which a point is pointed at
const STILL = 4; // pixels that a click may wander
const CELL = { width: 12, height: 15 }; // of the grid by which names keep apart
const LETTER = 7.4;
const MARGIN = { across: 90, up: 50 }; // of a frame, for names at its edge

export class Plane {
  /**
   * `points` says what there is: count(), at(i) -> [x, y], hides(i). `on` hears of moved(), pointed(i) with -1 for none,
   * and picked(i). Until there is a `view` (see `frame`) nothing is heard.
   */
  constructor(canvas, points, on) {
    this.canvas = canvas;
    this.points = points;
    this.on = on;
    this.view = null;
    this.size = null;
    this.drag = null;
    const heard = {
      pointerdown: (event) => this.grasp(event),
      pointermove: (event) => this.view && this.follow(event),
      pointerup: (event) => this.release(event),
      pointerleave: () => this.on.pointed(-1),
      dblclick: (event) => this.view && this.zoom(2, event),
      keydown: (event) => this.key(event),
    };
    for (const [name, hear] of Object.entries(heard)) canvas.addEventListener(name, hear);
    canvas.addEventListener("wheel", (event) => this.turn(event), { passive: false });
  }

  resize(width, height) {
    this.size = { width, height };
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
  }

  /** Shows all between two corners, at one scale for both axes. */
  frame(low, high) {
    const { width, height } = this.size;
    const scale = Math.min(
      (width - MARGIN.across) / (high[0] - low[0] || 1),
      (height - MARGIN.up) / (high[1] - low[1] || 1),
    );
    this.view = {
      scale,
      x: width / 2 - (scale * (low[0] + high[0])) / 2,
      y: height / 2 + (scale * (low[1] + high[1])) / 2,
    };
  }

  /** Where point i stands on the canvas, CSS pixels. */
  at(i) {
    const [x, y] = this.points.at(i);
    return [this.view.x + this.view.scale * x, this.view.y - this.view.scale * y];
  }

  /** An empty canvas to draw on, in CSS pixels. */
  clear() {
    const context = this.canvas.getContext("2d");
    const ratio = this.canvas.width / this.size.width;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.size.width, this.size.height);
    return context;
  }

  /** The point that the pointer is at, or -1. */
  nearest(event) {
    const box = this.canvas.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    let [best, least] = [-1, NEAR ** 2];
    for (let i = 0; i < this.points.count(); i++) {
      if (this.points.hides(i)) continue;
      const [x, y] = this.at(i);
      const far = (x - px) ** 2 + (y - py) ** 2;
      if (far < least) [best, least] = [i, far];
    }
    return best;
  }

  zoom(by, event) {
    const box = this.canvas.getBoundingClientRect();
    const [px, py] = event
      ? [event.clientX - box.left, event.clientY - box.top]
      : [this.size.width / 2, this.size.height / 2];
    this.view.scale *= by;
    this.view.x = px + (this.view.x - px) * by;
    this.view.y = py + (this.view.y - py) * by;
    this.moved();
  }

  moved() {
    this.asked ??= requestAnimationFrame(() => {
      this.asked = null;
      this.on.moved();
    });
  }

  grasp(event) {
    this.drag = { x: event.clientX, y: event.clientY, moved: false };
    this.canvas.setPointerCapture(event.pointerId);
  }

  follow(event) {
    const { drag } = this;
    if (!drag) return this.on.pointed(this.nearest(event));
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.moved && Math.hypot(dx, dy) < STILL) return;
    Object.assign(drag, { x: event.clientX, y: event.clientY, moved: true });
    this.view.x += dx;
    this.view.y += dy;
    this.moved();
  }

  release(event) {
    const moved = this.drag?.moved;
    this.drag = null;
    if (moved || !this.view) return;
    const i = this.nearest(event);
    if (i >= 0) this.on.picked(i);
  }

  /** The wheel scrolls the page until the picture has been clicked. */
  turn(event) {
    if (!this.view || !(event.ctrlKey || this.canvas.getRootNode().activeElement === this.canvas)) return;
    event.preventDefault();
    this.zoom(Math.exp(-event.deltaY / 400), event);
  }

  key(event) {
    const by = { "+": 1.25, "=": 1.25, "-": 0.8 }[event.key];
    if (by && this.view) this.zoom(by);
  }
}

/** (text, x, y) -> whether a name at a point is clear of all that had room before it; then its place is taken. */
export function room({ width, height }) {
  const columns = Math.ceil(width / CELL.width) + 1;
  const taken = new Uint8Array(columns * (Math.ceil(height / CELL.height) + 3));
  return (text, x, y) => {
    if (x < 0 || y < 8 || x > width - 10 || y > height - 4) return false;
    const right = Math.floor((x + 8 + LETTER * text.length) / CELL.width);
    if (right >= columns - 1) return false;
    const left = Math.floor(x / CELL.width);
    const row = Math.floor(y / CELL.height) + 1;
    for (let up = -1; up <= 1; up++) {
      for (let column = Math.max(0, left - 1); column <= right; column++)
        if (taken[(row + up) * columns + column]) return false;
    }
    taken.fill(1, row * columns + left, row * columns + right + 1);
    return true;
  };
}

/** A name beside a point, on a ground of its own. */
export function caption(context, text, x, y, ink, ground, weight) {
  context.font = context.font.replace(/^.*?(?=\d+px)/, weight);
  context.lineWidth = 4;
  context.strokeStyle = ground;
  context.strokeText(text, x + 9, y + 4);
  context.fillStyle = ink;
  context.fillText(text, x + 9, y + 4);
  context.lineWidth = 1;
}

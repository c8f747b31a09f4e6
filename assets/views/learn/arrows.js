// Vectors of tokens as arrows in a plane, and what one of them gathers: each vector, shortened to its weight, set to the end of the one before; the
// arrow to where that leads moves as another token is chosen, with the arrow keys or a click. No library draws arrows that are set to one another
// and move.
import { make } from "../core/dom.js";
import { shape } from "./vectors.js";

const SIDE = 3; // half of the drawing, whatever the plane reaches to
const MOVE = 350; // ms
const LEAST = 0.03; // a weight below it is not drawn

/**
 * @typedef {[x: number, y: number]} Place
 * `begin` is where the row's sum begins; `parts` are what it adds, weights times vectors; null while it is asked for
 * @typedef {{begin: Place, weights: number[], parts: Place[]} | null} Gathered
 * @typedef {{names: string[], vectors: Place[], rows: Gathered[], row: number, reach: number, label: string, told: string}} Arrows
 *   `row` is the token that is chosen to begin with, `told` what is said of one whose sum is asked for
 * @param {HTMLElement} root
 * @param {Arrows} data
 */
export function mount(root, data) {
  const element = root.appendChild(make("div", "plane arrows"));
  const svg = element.appendChild(shape("svg", { viewBox: `${-SIDE} ${-SIDE} ${2 * SIDE} ${2 * SIDE}`, tabindex: 0 }));
  svg.setAttribute("role", "application");
  const live = element.appendChild(make("p", "told"));
  live.setAttribute("aria-live", "polite");
  /** @type {Place | null} */
  let tip = null; // where the moving arrow's end is now
  let frame = 0;
  let chosen = data.row;

  /** @param {number} row */
  const choose = (row) => {
    chosen = (row + data.names.length) % data.names.length;
    go();
  };
  svg.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const way = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (!way) return;
    event.preventDefault();
    choose(chosen + way);
  });
  svg.addEventListener("click", (/** @type {MouseEvent} */ { target }) => {
    const at = target instanceof Element && target.closest("[data-at]")?.getAttribute("data-at");
    if (at) choose(Number(at));
  });

  /** The end of the sum, to which the arrow moves. */
  function go() {
    cancelAnimationFrame(frame);
    const end = sum(data.rows[chosen]);
    const start = tip;
    if (!end || !start || matchMedia("(prefers-reduced-motion: reduce)").matches) {
      tip = end;
      return draw();
    }
    const began = performance.now();
    const step = (/** @type {number} */ now) => {
      const part = Math.min(1, (now - began) / MOVE);
      const eased = part * part * (3 - 2 * part);
      tip = [start[0] + eased * (end[0] - start[0]), start[1] + eased * (end[1] - start[1])];
      draw();
      if (part < 1) frame = requestAnimationFrame(step);
    };
    frame = requestAnimationFrame(step);
  }

  function draw() {
    const scale = SIDE / data.reach;
    /** @param {Place} place */
    const at = ([x, y]) => /** @type {Place} */ ([x * scale, -y * scale]);
    const { names, vectors } = data;
    const gathered = data.rows[chosen];
    svg.setAttribute("aria-label", `${data.label}; ${names[chosen]}`);
    const shapes = [
      shape("line", { x1: -SIDE, x2: SIDE, class: "axis" }),
      shape("line", { y1: -SIDE, y2: SIDE, class: "axis" }),
      ...vectors.flatMap((vector, i) => {
        const one = arrow(
          [0, 0],
          at(vector),
          i === chosen ? "vector chosen" : i < chosen ? "vector" : "vector later",
          0.035,
        );
        one.forEach((part) => part.setAttribute("data-at", String(i)));
        return one;
      }),
    ];
    if (gathered) {
      let from = at(gathered.begin);
      gathered.parts.forEach((part, i) => {
        if (gathered.weights[i] < LEAST) return;
        const by = at(part);
        const to = /** @type {Place} */ ([from[0] + by[0], from[1] + by[1]]);
        shapes.push(...arrow(from, to, "part", 0.02 + 0.05 * gathered.weights[i]));
        from = to;
      });
    }
    if (gathered && tip) shapes.push(...arrow([0, 0], at(tip), "sum", 0.06));
    svg.replaceChildren(...shapes, ...labels(vectors.map(at), names, chosen));
    const end = sum(gathered);
    live.textContent = end ? `${names[chosen]}: (${end.map((part) => part.toFixed(2)).join(", ")})` : data.told;
  }

  tip = sum(data.rows[chosen]);
  draw();
  return {
    /** @param {Arrows} next */
    update(next) {
      if (next.row !== data.row || next.names.join("\n") !== data.names.join("\n")) chosen = next.row;
      data = next;
      go();
    },
    destroy() {
      cancelAnimationFrame(frame);
      element.remove();
    },
  };
}

/**
 * @returns {Place | null}
 * @param {Gathered} gathered
 */
function sum(gathered) {
  if (!gathered) return null;
  return gathered.parts.reduce(([x, y], part) => [x + part[0], y + part[1]], gathered.begin);
}

/**
 * The names beside the ends of their arrows; of two in one place, one below the other.
 * @param {Place[]} ends
 * @param {string[]} names
 * @param {number} row
 */
function labels(ends, names, row) {
  /** @type {Place[]} */
  const taken = [];
  return ends.map(([x, y], i) => {
    const far = Math.hypot(x, y) || 1;
    const place = /** @type {Place} */ ([x + (0.22 * x) / far, y + (0.22 * y) / far + 0.08]);
    while (taken.some(([a, b]) => Math.abs(a - place[0]) < 0.6 && Math.abs(b - place[1]) < 0.27)) place[1] += 0.28;
    taken.push(place);
    const anchor = place[0] > 2.2 ? "end" : place[0] < -2.2 ? "start" : "middle";
    const name = shape("text", {
      x: place[0],
      y: place[1],
      "text-anchor": anchor,
      class: i === row ? "name chosen" : "name",
      "data-at": i,
    });
    name.textContent = names[i];
    return name;
  });
}

/**
 * @param {Place} from
 * @param {Place} to
 * @param {string} kind
 * @param {number} width
 */
function arrow(from, to, kind, width) {
  const [x, y] = [to[0] - from[0], to[1] - from[1]];
  const far = Math.hypot(x, y);
  if (far < 1e-6) return [shape("circle", { cx: to[0], cy: to[1], r: 2 * width, class: kind })];
  const head = Math.min(far, 0.12 + 2 * width);
  const [ux, uy] = [x / far, y / far];
  const neck = [to[0] - head * ux, to[1] - head * uy];
  const wide = head * 0.45;
  const corners = [to, [neck[0] - wide * uy, neck[1] + wide * ux], [neck[0] + wide * uy, neck[1] - wide * ux]];
  return [
    shape("line", { x1: from[0], y1: from[1], x2: neck[0], y2: neck[1], "stroke-width": width, class: kind }),
    shape("polygon", { points: corners.map((one) => one.join(",")).join(" "), class: kind }),
  ];
}

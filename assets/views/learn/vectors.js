// A plane with keys and a query that is dragged, or moved with the arrow keys; while the weights are covered a key is
// picked instead. Emits "move" with [x, y] and "pick" with [key]. No library draws an arrow that can be dragged.
import { make } from "../core/dom.js";
import { fraction } from "../core/place.js";

const SIDE = 3; // half of the drawing, whatever the plane reaches to
const STEPS = 12; // of an arrow key, from the middle to the edge
const PAUSE = 60; // ms between two messages while the query is dragged
/** @type {Record<string, [x: number, y: number]>} */
const ARROWS = { ArrowUp: [0, 1], ArrowDown: [0, -1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

/**
 * @typedef {{keys: [number, number][], names: string[], weights: number[] | null, query: [number, number],
 *   picked: number | null, label: string, reach: number}} Plane `reach` is how far each axis goes, both ways
 * @param {HTMLElement} root
 * @param {Plane} data
 * @param {(event: "move" | "pick", value: number[]) => void} emit
 */
export function mount(root, data, emit) {
  const element = root.appendChild(make("div", "plane"));
  const svg = element.appendChild(shape("svg", { viewBox: `${-SIDE} ${-SIDE} ${2 * SIDE} ${2 * SIDE}`, tabindex: 0 }));
  svg.setAttribute("role", "application");
  let [query, held, timer] = [data.query, false, 0];

  const say = () => {
    if (timer) return;
    timer = setTimeout(() => {
      timer = 0;
      emit("move", query);
    }, PAUSE);
  };
  /** @param {number[]} to */
  const move = (to) => {
    query = [bound(to[0], data.reach), bound(to[1], data.reach)];
    draw();
    say();
  };
  /**
   * @param {PointerEvent} event
   * @returns {[number, number]}
   */
  const place = (event) => {
    const { x, y } = fraction(event, svg);
    /** @param {number} part */
    const at = (part) => (2 * part - 1) * data.reach;
    return [at(x), -at(y)];
  };
  /** @param {number} key */
  const pick = (key) => {
    data = { ...data, picked: key };
    draw();
    emit("pick", [key]);
  };
  svg.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
    if (!data.weights) return pick(nearest(data.keys, place(event)));
    held = true;
    svg.setPointerCapture(event.pointerId);
    move(place(event));
  });
  svg.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => held && move(place(event)));
  svg.addEventListener("pointerup", () => (held = false));
  svg.addEventListener("pointercancel", () => (held = false));
  svg.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const way = ARROWS[event.key];
    if (!way) return;
    event.preventDefault();
    const count = data.keys.length;
    if (!data.weights) return pick(((data.picked ?? -1) + (way[0] + way[1]) + count) % count);
    const step = data.reach / STEPS;
    move([query[0] + step * way[0], query[1] + step * way[1]]);
  });

  function draw() {
    const picked = data.weights ? null : data.picked;
    const said = [
      `${data.label} ${query.map((value) => value.toFixed(2)).join(", ")}`,
      picked === null ? "" : data.names[picked],
    ];
    svg.setAttribute("aria-label", said.filter(Boolean).join("; "));
    svg.classList.toggle("covered", !data.weights);
    const axes = [
      shape("line", { x1: -SIDE, x2: SIDE, class: "axis" }),
      shape("line", { y1: -SIDE, y2: SIDE, class: "axis" }),
    ];
    const scale = SIDE / data.reach;
    const keys = data.keys.flatMap((key, i) => {
      const [x, y] = key.map((part) => part * scale);
      const name = shape("text", { x: x + 0.2, y: -y - 0.25, class: "name" });
      name.textContent = data.names[i];
      const dot = { cx: x, cy: -y, r: 0.09 + 0.28 * Math.sqrt(data.weights?.[i] ?? 1 / data.keys.length) };
      return [
        shape("line", { x2: x, y2: -y, class: "key" }),
        shape("circle", { ...dot, class: i === picked ? "key picked" : "key" }),
        name,
      ];
    });
    const [x, y] = query.map((part) => part * scale);
    const arrow = [
      shape("line", { x2: x, y2: -y, class: "query" }),
      shape("circle", { cx: x, cy: -y, r: 0.16, class: "query" }),
    ];
    svg.replaceChildren(...axes, ...keys, ...arrow);
  }

  draw();
  return {
    /** @param {Plane} next */
    update(next) {
      data = next;
      if (!held && !timer) query = next.query;
      draw();
    },
    destroy() {
      clearTimeout(timer);
      element.remove();
    },
  };
}

/**
 * @returns {number} which of the keys stands nearest to a place
 * @param {[number, number][]} keys
 * @param {number[]} at
 */
function nearest(keys, [x, y]) {
  const far = keys.map((key) => Math.hypot(key[0] - x, key[1] - y));
  return far.indexOf(Math.min(...far));
}

/**
 * @param {number} value
 * @param {number} reach
 */
function bound(value, reach) {
  return Math.round(100 * Math.max(-reach, Math.min(reach, value))) / 100;
}

/**
 * @returns {SVGElement}
 * @param {string} kind
 * @param {Record<string, string | number>} attributes
 */
export function shape(kind, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}

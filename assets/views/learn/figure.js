// The figure of a transformer, after figure 1 of Vaswani et al. 2017, laid on its side: the residual stream below, what stands beside it above. Each
// box holds what one token's vector is there, and the token walks from box to box with the arrow keys. Small, without numbers, it says where one is.
import { make } from "../core/dom.js";
import { shape } from "./vectors.js";

const BOX = { wide: 70, high: 40, gap: 16, cells: 8 };
const ROW = { stream: 92, branch: 30 };
const LANE = 150; // the height of a stack
const COLOURS = /** @type {Record<string, string>} */ ({
  attention: "attention", "cross-attention": "attention", MLP: "mlp", "next token": "probability",
}); // prettier-ignore

/**
 * `values` are the first numbers of the vector (null: asked for), `rows` what it was made of and itself, named; `word` is what is said in its place
 * @typedef {{part: string, title: string, note: string, branch: boolean, inside: boolean, values: (number | null)[], word: string,
 *   rows: {name: string, values: (number | null)[]}[]}} Stop
 * @typedef {{name: string, token: string, block: string, stops: Stop[]}} Lane
 * `lit` are the parts that a small figure lights; `step` [lane, stop] is where the token stands at first
 * @typedef {{lanes: Lane[], lit: string[] | null, step: [lane: number, stop: number], label: string, digits: number}} Figure
 * @param {HTMLElement} root
 * @param {Figure} data
 */
export function mount(root, data) {
  const element = root.appendChild(make("div", "block-figure"));
  const place = element.appendChild(make("div", "drawn"));
  const about = element.appendChild(make("div", "about"));
  about.setAttribute("aria-live", "polite");
  let [lane, at] = data.step;
  /** @type {SVGElement | null} */
  let walker = null;

  /** @param {number} by */
  const go = (by) => {
    const order = data.lanes.flatMap((one, i) => one.stops.map((_stop, j) => [i, j]));
    const now = order.findIndex(([i, j]) => i === lane && j === at);
    [lane, at] = order[Math.max(0, Math.min(order.length - 1, now + by))];
    say();
  };
  place.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!way || data.lit) return;
    event.preventDefault();
    go(way);
  });
  place.addEventListener("click", (/** @type {MouseEvent} */ { target }) => {
    const box = target instanceof Element && target.closest("[data-stop]");
    if (!box || data.lit) return;
    [lane, at] = (box.getAttribute("data-stop") ?? "0 0").split(" ").map(Number);
    say();
  });

  function draw() {
    const count = Math.max(...data.lanes.map((one) => one.stops.length));
    const wide = count * (BOX.wide + BOX.gap) + BOX.gap;
    const high = data.lanes.length * LANE - (data.lit ? 6 : 0);
    const svg = shape("svg", { viewBox: `0 0 ${wide} ${high}`, class: data.lit ? "small" : "whole" });
    if (!data.lit) svg.setAttribute("tabindex", "0");
    svg.setAttribute("role", data.lit ? "img" : "application");
    svg.setAttribute("aria-label", data.label);
    data.lanes.forEach((one, i) => svg.append(...drawLane(one, i, data)));
    if (data.lanes.length === 2) svg.append(...across(data.lanes));
    walker = data.lit ? null : svg.appendChild(shape("g", { class: "walker" }));
    walker?.append(shape("rect", { width: BOX.wide + 8, height: BOX.high + 8, rx: 9 }));
    place.replaceChildren(svg);
    if (data.lit) about.replaceChildren(make("p", "", data.label));
    say();
  }

  function say() {
    if (!walker) return;
    const stop = data.lanes[lane].stops[at];
    const [x, y] = corner(lane, at, stop);
    walker.style.transform = `translate(${x - 4}px, ${y - 4}px)`;
    const table = make("table");
    for (const { name, values } of stop.rows) {
      const row = table.appendChild(make("tr"));
      row.append(make("th", "", name), ...values.map((value) => make("td", "", written(value, data.digits))));
    }
    const title = make("p", "title");
    title.append(make("strong", "", stop.title), ` ${stop.note}`);
    about.replaceChildren(
      title,
      ...(stop.word ? [make("p", "word", stop.word)] : []),
      ...(stop.rows.length ? [table] : []),
    );
  }

  draw();
  return {
    /** @param {Figure} next */
    update(next) {
      const shapeOf = (/** @type {Figure} */ one) =>
        one.lanes.map(({ stops }) => stops.map(({ part }) => part).join()).join(";");
      if (shapeOf(next) !== shapeOf(data) || next.step.join() !== data.step.join()) [lane, at] = next.step;
      data = next;
      const held = place.contains(/** @type {ShadowRoot | Document} */ (place.getRootNode()).activeElement);
      draw();
      if (held) /** @type {SVGElement | null} */ (place.querySelector("svg"))?.focus({ preventScroll: true });
    },
    destroy() {
      element.remove();
    },
  };
}

/**
 * @param {number | null} value
 * @param {number} digits
 */
function written(value, digits) {
  return value === null ? "?" : value.toFixed(digits);
}

/**
 * The upper left corner of a box.
 * @param {number} lane
 * @param {number} at
 * @param {Stop} stop
 */
function corner(lane, at, { branch }) {
  return [BOX.gap + at * (BOX.wide + BOX.gap), lane * LANE + (branch ? ROW.branch : ROW.stream)];
}

/**
 * @param {Lane} lane
 * @param {number} number
 * @param {Figure} data
 */
function drawLane(lane, number, data) {
  const shapes = [];
  const { stops } = lane;
  const middle = number * LANE + ROW.stream + BOX.high / 2;
  const upper = number * LANE + ROW.branch + BOX.high / 2;
  const inside = stops.flatMap(({ inside }, at) => (inside ? [at] : []));
  const step = BOX.wide + BOX.gap;
  if (inside.length) {
    const left = BOX.gap / 2 + inside[0] * step;
    const wide = (inside[inside.length - 1] - inside[0] + 1) * step;
    shapes.push(
      shape("rect", { x: left, y: number * LANE + 18, width: wide, height: LANE - 24, rx: 8, class: "frame" }),
    );
    shapes.push(text(left + 4, number * LANE + 13, lane.block, "block"));
  }
  shapes.push(text(BOX.gap / 2, number * LANE + 13, lane.name, "lane"));
  shapes.push(shape("path", { d: `M${BOX.gap} ${middle}H${stops.length * step}`, class: "stream" }));
  stops.forEach((stop, at) => {
    if (!stop.branch) return;
    const x = BOX.gap + at * step;
    const begins = at === 0 || !stops[at - 1].branch;
    const ends = at + 1 === stops.length || !stops[at + 1].branch;
    const from = begins ? `M${x - BOX.gap / 2} ${middle}V${upper}H${x}` : `M${x - BOX.gap} ${upper}H${x}`;
    const to = ends
      ? `M${x + BOX.wide} ${upper}H${x + BOX.wide + BOX.gap / 2 + BOX.wide / 2}V${middle - BOX.high / 2}`
      : "";
    shapes.push(shape("path", { d: from + to, class: "way" }));
  });
  stops.forEach((stop, at) => shapes.push(drawBox(stop, number, at, data)));
  return shapes;
}

/**
 * @param {Stop} stop
 * @param {number} lane
 * @param {number} at
 * @param {Figure} data
 */
function drawBox(stop, lane, at, data) {
  const [x, y] = corner(lane, at, stop);
  const lit = data.lit?.includes(stop.part);
  const role = COLOURS[stop.part] ?? "residual";
  const group = shape("g", { class: `box ${role}${lit ? " lit" : ""}`, "data-stop": `${lane} ${at}` });
  group.append(shape("rect", { x, y, width: BOX.wide, height: BOX.high, rx: 6 }));
  if (data.lit) return group;
  group.append(text(x + BOX.wide / 2, y + 16, stop.title, "name"));
  if (stop.word) {
    group.append(text(x + BOX.wide / 2, y + 32, stop.word.split(" ")[0], "said"));
    return group;
  }
  const largest = Math.max(1e-9, ...stop.values.map((value) => Math.abs(value ?? 0)));
  const size = (BOX.wide - 12) / BOX.cells;
  stop.values.forEach((value, i) => {
    const cell = shape("rect", {
      x: x + 6 + i * size,
      y: y + 24,
      width: size - 1,
      height: 10,
      class: value === null ? "cell asked" : value < 0 ? "cell below" : "cell",
    });
    if (value !== null) cell.setAttribute("fill-opacity", String(0.12 + 0.88 * Math.min(1, Math.abs(value) / largest)));
    group.append(cell);
  });
  return group;
}

/**
 * From the end of the encoder to the attention that reads it.
 * @param {Lane[]} lanes
 */
function across([encoder, decoder]) {
  const reader = decoder.stops.findIndex(({ part }) => part === "cross-attention");
  if (reader < 0) return [];
  const [x, y] = corner(0, encoder.stops.length - 1, encoder.stops[encoder.stops.length - 1]);
  const [to, top] = corner(1, reader, decoder.stops[reader]);
  const middle = LANE - 2;
  return [
    shape("path", {
      d: `M${x + BOX.wide / 2} ${y + BOX.high}V${middle}H${to + BOX.wide / 2}V${top}`,
      class: "way across",
    }),
  ];
}

/**
 * @param {number} x
 * @param {number} y
 * @param {string} said
 * @param {string} kind
 */
function text(x, y, said, kind) {
  const made = shape("text", { x, y, class: kind });
  made.textContent = said;
  return made;
}

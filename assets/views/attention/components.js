// What a product is drawn of: vectors component by component, one under the other on one axis, each on a scale of its own; and one query
// against all its keys, a row of products for every key under the components they belong to, and their sums.
import { mountCells } from "../components/cells.js";
import { emptied } from "../components/cells_paint.js";
import { make } from "../core/dom.js";
import { counted, percent } from "../core/format.js";
import { colour } from "../core/palette.js";
import { inside } from "../core/place.js";

/**
 * @typedef {{ name: (string | Node)[], note: string, role: string, values: Cells, tall: number, faint?: boolean,
 *   numbered?: boolean, result?: string[] }} Strip
 * @typedef {Strip & { ends: [low: number, high: number] }} Scaled a strip, with from where to where bars could reach
 * @typedef {{ label: number, width: number, tail: number }} Columns CSS pixels
 * @typedef {Columns & { strips: Scaled[], order: number[] }} Strips
 * @typedef {{ name: HTMLElement, canvas: HTMLCanvasElement, result: HTMLElement }} Kept elements of a strip
 * @typedef {{ pieces: string[], special: ArrayLike<unknown>, sums: number[], most: number, weights: ArrayLike<number>,
 *   allowed: ArrayLike<number> }} Sums of keys
 * @typedef {Columns & Sums & { block: Block, max: number, pitch: number }} Keys
 * @typedef {{ name: HTMLButtonElement, piece: HTMLElement, sum: HTMLElement, bar: HTMLElement, value: Text, weight: Text,
 *   shown?: string }} Row
 * @typedef {{ chosen: number | null, hovered: number | null }} Marked rows that have the class
 * @typedef {[event: "hover", where: { row: number, col: number | null } | null] | [event: "pick", where: { row: number }]} Said
 * @typedef {(...said: Said) => unknown} Emit
 */

const FITS = 34; // CSS pixels of a component that its number fits under
const INDEXED = 15; // and its index
const WRITTEN = 15; // the height of a line of numbers
const COLOURS = ["negative", "hairline", "ink", "soft", "mono"];

/**
 * A number in five characters at most; the whole of it stands in the bubble.
 * @param {number} x
 */
export function short(x) {
  const size = Math.abs(x);
  const text =
    size === 0
      ? "0"
      : size >= 9999.5 || size < 0.005
        ? x.toExponential(0)
        : x.toFixed(size >= 99.5 ? 0 : size >= 9.95 ? 1 : 2);
  return text.replace("e+", "e").replaceAll("-", "−");
}

/**
 * Shows strips in `root`; `hover(place | null)` hears which component is under the pointer, counted as drawn.
 * update(data): {strips: [{name, note, role, values, ends, tall, faint?, numbered?, result?}], order, label, width, tail}: `order` are the
 * components from left to right, `label`, `width` and `tail` the three columns in CSS pixels, `ends` from where to where bars could reach, `result` what stands at the right.
 * @param {HTMLElement} root
 * @param {(place: number | null) => void} hover
 */
export function mountComponents(root, hover) {
  const light = make("div", "component-lit");
  const rows = make("div", "components");
  root.append(rows, light);
  /** @type {Strips | null} */
  let shown = null;
  /** @type {Kept[]} */
  let kept = []; // the elements of each strip
  rows.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
    if (!shown) return;
    const x = inside(event, rows).x - shown.label;
    const place = Math.floor((x / shown.width) * shown.order.length);
    hover(place >= 0 && place < shown.order.length ? place : null);
  });
  rows.addEventListener("pointerleave", () => hover(null));
  return {
    /** @param {Strips} data */
    update(data) {
      shown = data;
      const roles = [...new Set(data.strips.map(({ role }) => role)), ...COLOURS];
      const colours = Object.fromEntries(roles.map((role) => [role, colour(root, role)])); // read before anything is written
      rows.style.gridTemplateColumns = `${data.label}px ${data.width}px ${data.tail}px`;
      if (kept.length !== data.strips.length) {
        kept = data.strips.map(empty);
        rows.replaceChildren(...kept.flatMap(({ name, canvas, result }) => [name, canvas, result]));
      }
      data.strips.forEach((strip, i) => fill(kept[i], colours, strip, data));
    },
    /** @param {number | null} place */
    mark(place) {
      light.hidden = place === null || !shown;
      if (place === null || !shown) return;
      const wide = shown.width / shown.order.length;
      light.style.transform = `translateX(${shown.label + place * wide}px)`;
      light.style.width = `${wide}px`;
    },
  };
}

/** @returns {Kept} */
function empty() {
  const canvas = make("canvas");
  canvas.setAttribute("role", "img");
  return { name: make("div", "component-name"), canvas, result: make("div", "component-result") };
}

/**
 * @param {Kept} kept
 * @param {Record<string, string>} colours
 * @param {Scaled} strip
 * @param {{ order: number[], width: number }} data
 */
function fill({ name, canvas, result }, colours, strip, { order, width }) {
  const title = make("span", `role-${strip.role}`);
  title.append(...strip.name);
  name.replaceChildren(title, make("span", "component-note", strip.note));
  canvas.setAttribute("aria-label", `${title.textContent}: ${order.length} components, ${strip.note}`);
  draw(canvas, colours, strip, order, width);
  for (const element of [name, canvas]) element.classList.toggle("before", Boolean(strip.faint));
  result.replaceChildren(...(strip.result ?? []));
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Record<string, string>} colours
 * @param {Scaled} strip
 * @param {number[]} order
 * @param {number} width
 */
function draw(canvas, colours, { role, values, ends: [low, high], tall, numbered }, order, width) {
  const wide = width / order.length;
  const written = wide >= FITS ? WRITTEN : 0;
  const indexed = numbered ? WRITTEN : 0;
  const dpr = window.devicePixelRatio || 1;
  const height = tall + written + indexed;
  const context = emptied(canvas, width, height);
  context.setTransform(dpr, 0, 0, dpr, 0, 0);
  const { [role]: hue, negative, hairline: line, ink, soft, mono } = colours;
  const scale = (tall - 2) / (high - low || 1);
  const zero = 1 + high * scale;
  context.fillStyle = line;
  context.fillRect(0, zero - 0.5, width, 1);
  context.font = `10.5px ${mono}`;
  context.textAlign = "center";
  order.forEach((i, place) => {
    const size = Math.abs(values[i]) * scale;
    const gap = wide > 12 ? 3 : wide > 4 ? 1 : 0.3;
    context.fillStyle = values[i] < 0 ? negative : hue;
    context.fillRect(place * wide + gap / 2, values[i] < 0 ? zero : zero - size, wide - gap, Math.max(size, 0.5));
    const middle = (place + 0.5) * wide;
    context.fillStyle = ink;
    if (written) context.fillText(short(values[i]), middle, tall + 10);
    context.fillStyle = soft;
    if (indexed && (wide >= INDEXED || i % 8 === 0))
      context.fillText(wide >= INDEXED || isEven(order) ? `${i}` : "", middle, tall + written + 11);
  });
}

/**
 * Whether the components stand in their own order, so that every eighth index says where the others are.
 * @param {number[]} order
 */
function isEven(order) {
  return order.every((i, place) => i === place);
}

/**
 * From where to where the bars of a vector reach; 0 is always between.
 * @param {Iterable<number>} values
 * @returns {[low: number, high: number]}
 */
export function ends(values) {
  let [low, high] = [0, 0];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return [low, high];
}

/**
 * What the height of a strip means.
 * @param {Iterable<number>} values
 */
export function scaleNote(values) {
  const [low, high] = ends(values);
  return `${short(low)} to ${short(high)}`;
}

// --- a row for every key ---

/**
 * Shows the rows in `root`; emits "hover" {row, col} | null and "pick" {row}.
 * update(data): {block, max, pieces, special, sums, most, weights, allowed, label, width, tail, pitch, narrow}: `block` is key component (cells.js),
 * whose ramp ends at `max`, `sums` q·k a key, whose bars are full at `most`, `weights` the stored pattern, `allowed` the mask. `mark({key, hovered, place})` frames the chosen key and lights the pointed one and a component.
 * @param {HTMLElement} root
 * @param {Emit} emit
 */
export function mountKeys(root, emit) {
  const names = make("div", "keys-names");
  const canvas = make("div");
  const sums = make("div", "keys-sums");
  const body = make("div", "keys-body");
  const band = make("div", "keys-band");
  body.append(names, canvas, sums, band);
  root.append(body);
  /** @type {Keys | null} */
  let shown = null;
  /** @type {ReturnType<typeof mountCells> | undefined} */
  let cells;
  /** @type {Row[]} */
  let rows = [];
  /** @type {Marked} */
  const marked = { chosen: null, hovered: null };
  const seen = { top: 0, tall: 0 }; // of the box that scrolls: asking it would lay everything out
  root.addEventListener("scroll", () => (seen.top = root.scrollTop), { passive: true });
  /** @type {number | null} */
  let awaited = null; // a key to be revealed once there is a height
  new ResizeObserver(() => {
    Object.assign(seen, { tall: root.clientHeight, top: root.scrollTop });
    if (awaited !== null && seen.tall) reveal(awaited);
  }).observe(root);
  /** @param {number} key */
  const reveal = (key) => {
    awaited = seen.tall ? null : key;
    if (!seen.tall || !shown) return;
    const [from, to] = [key * shown.pitch, (key + 1) * shown.pitch];
    if (from < seen.top) root.scrollTop = seen.top = from;
    else if (to > seen.top + seen.tall) root.scrollTop = seen.top = to - seen.tall;
  };
  /** @param {Event} event */
  const rowOf = ({ target }) =>
    rows.findIndex(({ name, sum }) => target instanceof Node && (name.contains(target) || sum.contains(target)));
  for (const side of /** @type {HTMLElement[]} */ ([names, sums])) {
    side.addEventListener("click", (event) => rowOf(event) >= 0 && emit("pick", { row: rowOf(event) }));
    side.addEventListener(
      "pointermove",
      (event) => rowOf(event) >= 0 && emit("hover", { row: rowOf(event), col: null }),
    );
    side.addEventListener("pointerleave", () => emit("hover", null));
  }
  names.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const row = Math.max(0, Math.min(rows.length - 1, rows.findIndex(({ name }) => name === event.target) + by));
    emit("pick", { row });
    rows[row].name.focus();
  });
  return {
    /** @param {Keys} data */
    update(data) {
      shown = data;
      body.style.setProperty("--pitch", `${data.pitch}px`);
      body.style.setProperty("--letters", `${Math.min(13.5, data.pitch - 2)}px`);
      body.style.gridTemplateColumns = `${data.label}px ${data.width}px ${data.tail}px`;
      if (rows.length !== data.pieces.length) {
        rows = rowsOf(data.pieces.length, names, sums);
        Object.assign(marked, { chosen: null, hovered: null });
      }
      fillRows(rows, data);
      const { block, width, pitch, pieces } = data;
      const label = `q × k of ${counted(pieces.length, "key")}, component by component`;
      const drawn = {
        block,
        role: "attention",
        scale: /** @type {const} */ ("signed"),
        max: data.max,
        width,
        pitch,
        height: pitch - 3,
        label,
      };
      if (cells) cells.update(drawn);
      else cells = mountCells(canvas, drawn, emit);
    },
    /** @param {{ key: number, hovered: number | null, place: number | null }} marks */
    mark({ key, hovered, place }) {
      move(rows, marked, "chosen", key);
      move(rows, marked, "hovered", hovered);
      rows.forEach(({ name }, i) => name.tabIndex === (i === key ? 0 : -1) || (name.tabIndex = i === key ? 0 : -1));
      band.hidden = !shown;
      if (shown)
        Object.assign(band.style, { transform: `translateY(${key * shown.pitch}px)`, height: `${shown.pitch}px` });
      cells?.mark({ picked: place === null ? null : { row: hovered ?? key, col: place }, lit: place });
    },
    /** Scrolls the row of `key` into what is seen. */
    reveal,
  };
}

/**
 * @param {number} count
 * @param {HTMLElement} names
 * @param {HTMLElement} sums
 * @returns {Row[]}
 */
function rowsOf(count, names, sums) {
  const rows = Array.from({ length: count }, () => {
    const name = make("button", "keys-name");
    const piece = make("bdi");
    name.append(piece);
    const sum = make("div", "keys-sum");
    const [track, bar] = [make("span", "keys-track"), make("span", "keys-bar")];
    const [value, weight] = [new Text(" "), new Text(" ")];
    const numbers = [make("span", "keys-value"), make("span", "keys-weight")];
    numbers[0].append(value);
    numbers[1].append(weight);
    track.append(bar);
    sum.append(track, ...numbers);
    return { name, piece, sum, bar, value, weight };
  });
  names.replaceChildren(...rows.map(({ name }) => name));
  sums.replaceChildren(...rows.map(({ sum }) => sum));
  return rows;
}

/**
 * Puts the class `kind` on the name and the sum of row `at`, and takes it from the row that had it.
 * @param {Row[]} rows
 * @param {Marked} marked
 * @param {keyof Marked} kind
 * @param {number | null} at
 */
function move(rows, marked, kind, at) {
  if (marked[kind] === at) return;
  for (const [i, on] of /** @type {[number | null, boolean][]} */ ([
    [marked[kind], false],
    [at, true],
  ])) {
    const row = i === null ? undefined : rows[i];
    if (row) for (const element of [row.name, row.sum]) element.classList.toggle(kind, on);
  }
  marked[kind] = at;
}

/**
 * Writes the rows; what already stands there stays.
 * @param {Row[]} rows
 * @param {Sums} data
 */
function fillRows(rows, { pieces, special, sums, most, weights, allowed }) {
  rows.forEach((row, i) => {
    const { name, piece, sum, bar, value, weight } = row;
    if (row.piece.textContent !== pieces[i]) piece.textContent = name.title = pieces[i];
    const shown = [allowed[i], special[i], sums[i] < 0].map(Boolean).join();
    if (row.shown !== shown) {
      for (const element of [name, sum]) element.classList.toggle("masked", !allowed[i]);
      piece.classList.toggle("special", Boolean(special[i]));
      bar.classList.toggle("below", sums[i] < 0);
    }
    row.shown = shown;
    bar.style.transform = `scaleX(${Math.abs(sums[i]) / (most || 1)})`;
    value.data = short(sums[i]);
    weight.data = allowed[i] ? percent(weights[i]) : "masked";
  });
}

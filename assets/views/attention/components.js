// Vectors component by component, one under the other on one horizontal axis: bars up and down from zero, each vector on a
// scale of its own, and the numbers where they fit.
import { emptied } from "../components/cells_paint.js";
import { make } from "../core/dom.js";
import { colour } from "../core/palette.js";

const FITS = 34; // CSS pixels of a component that its number fits under
const INDEXED = 15; // and its index
const WRITTEN = 15; // the height of a line of numbers
const COLOURS = ["negative", "hairline", "ink", "soft", "mono"];

/** A number in five characters at most; the whole of it stands in the bubble. */
export function short(x) {
  const size = Math.abs(x);
  const text = size === 0 ? "0" : size >= 9999.5 || size < 0.005 ? x.toExponential(0) : x.toFixed(size >= 99.5 ? 0 : size >= 9.95 ? 1 : 2);
  return text.replace("e+", "e").replaceAll("-", "−");
}

/**
 * Shows strips in `root`; `hover(place | null)` hears which component is under the pointer, counted as drawn.
 * update(data): {strips: [{name, note, role, values, ends, tall, faint?, numbered?, result?}], order, label, width, tail}: `order` are the
 * components from left to right, `label`, `width` and `tail` the three columns in CSS pixels, `ends` from where to where bars could reach, `result` what stands at the right.
 */
export function mount(root, hover) {
  const light = make("div", "component-lit");
  const rows = make("div", "components");
  root.append(rows, light);
  let shown = null;
  let kept = []; // the elements of each strip
  rows.addEventListener("pointermove", (event) => {
    const x = event.clientX - rows.getBoundingClientRect().left - shown.label;
    const place = Math.floor((x / shown.width) * shown.order.length);
    hover(place >= 0 && place < shown.order.length ? place : null);
  });
  rows.addEventListener("pointerleave", () => hover(null));
  return {
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
    mark(place) {
      light.hidden = place === null;
      if (place === null) return;
      const wide = shown.width / shown.order.length;
      light.style.transform = `translateX(${shown.label + place * wide}px)`;
      light.style.width = `${wide}px`;
    },
  };
}

function empty() {
  const canvas = make("canvas");
  canvas.setAttribute("role", "img");
  return { name: make("div", "component-name"), canvas, result: make("div", "component-result") };
}

function fill({ name, canvas, result }, colours, strip, { order, width }) {
  const title = make("span", `role-${strip.role}`);
  title.append(...strip.name);
  name.replaceChildren(title, make("span", "component-note", strip.note));
  canvas.setAttribute("aria-label", `${title.textContent}: ${order.length} components, ${strip.note}`);
  draw(canvas, colours, strip, order, width);
  for (const element of [name, canvas]) element.classList.toggle("before", Boolean(strip.faint));
  result.replaceChildren(...(strip.result ?? []));
}

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
    if (indexed && (wide >= INDEXED || i % 8 === 0)) context.fillText(wide >= INDEXED || isEven(order) ? `${i}` : "", middle, tall + written + 11);
  });
}

/** Whether the components stand in their own order, so that every eighth index says where the others are. */
function isEven(order) {
  return order.every((i, place) => i === place);
}

/** From where to where the bars of a vector reach; 0 is always between. */
export function ends(values) {
  let [low, high] = [0, 0];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return [low, high];
}

/** What the height of a strip means. */
export function scaleNote(values) {
  const [low, high] = ends(values);
  return `${short(low)} to ${short(high)}`;
}

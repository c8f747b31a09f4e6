// The boxes of a page as SVG: grounds, gradients, borders, rings. Lengths are CSS pixels.
import { pencil } from "../core/dom.js";
import { short } from "./vector_canvas.js";

/**
 * @typedef {import("./vector_canvas.js").Box} Box
 * @typedef {import("./vector_canvas.js").Attributes} Attributes
 * @typedef {"Top" | "Right" | "Bottom" | "Left"} Side
 */

const SVG = "http://www.w3.org/2000/svg";
/** @type {Side[]} */
const SIDES = ["Top", "Right", "Bottom", "Left"];
/**
 * What `paintBox` reads of a style.
 * @type {(keyof CSSStyleDeclaration & string)[]}
 */
export const LOOK = [
  "borderTopLeftRadius",
  "clipPath",
  "boxShadow",
  "backgroundColor",
  "backgroundImage",
  "backgroundSize",
  "backgroundPosition",
  "outlineStyle",
  "outlineWidth",
  "outlineColor",
  "outlineOffset",
  ...SIDES.flatMap((side) => /** @type {const} */ ([`border${side}Style`, `border${side}Width`, `border${side}Color`])),
];
/** @type {Map<string, [hex: string, opacity: number]>} */
const colours = new Map();
/** @type {CanvasRenderingContext2D | undefined} */
let brush;

/**
 * An SVG element.
 * @param {string | null} [text]
 * @param {string} tag
 */
export function shape(tag, attributes = {}, text = null) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined) element.setAttribute(name, String(value));
  if (text !== null) element.textContent = text;
  return element;
}

/**
 * Any CSS colour -> [#rrggbb, opacity]: painted on one pixel, as every program that reads SVG knows those.
 * @param {string} colour
 */
export function plain(colour) {
  if (!colours.has(colour)) {
    brush ??= pencil(Object.assign(document.createElement("canvas"), { width: 1, height: 1 }), {
      willReadFrequently: true,
    });
    brush.clearRect(0, 0, 1, 1);
    brush.fillStyle = colour;
    brush.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = brush.getImageData(0, 0, 1, 1).data;
    colours.set(colour, [`#${[r, g, b].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`, a / 255]);
  }
  return /** @type {[hex: string, opacity: number]} */ (colours.get(colour));
}

/**
 * {fill, "fill-opacity"}, or null where nothing is seen.
 * @param {string} colour
 */
export function filled(colour, name = "fill") {
  const [hex, opacity] = plain(colour);
  return opacity === 0 ? null : { [name]: hex, ...(opacity < 1 ? { [`${name}-opacity`]: short(opacity) } : {}) };
}

/**
 * Draws what CSS paints of one box {x, y, width, height} into `into`; `defs` takes gradients.
 * @param {SVGElement} into
 * @param {SVGElement} defs
 * @param {Box} box
 * @param {CSSStyleDeclaration} style
 */
export function paintBox(into, defs, box, style) {
  if (box.width <= 0 || box.height <= 0) return;
  if (style.clipPath.startsWith("polygon")) return polygon(into, box, style);
  const radius = Math.min(parseFloat(style.borderTopLeftRadius) || 0, box.width / 2, box.height / 2);
  const shadows = rings(style.boxShadow);
  for (const ring of shadows) if (!ring.inset) frame(into, box, ring.spread, ring.colour, radius, ring.spread / 2);
  const ground = filled(style.backgroundColor);
  if (ground) into.append(shape("rect", { ...rounded(box), rx: radius || undefined, ...ground }));
  if (style.backgroundImage.startsWith("linear-gradient")) gradient(into, defs, box, style, radius);
  borders(into, box, style, radius);
  for (const ring of shadows) if (ring.inset) frame(into, box, ring.spread, ring.colour, radius, -ring.spread / 2);
  const outline = style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth);
  if (outline) frame(into, box, outline, style.outlineColor, radius, parseFloat(style.outlineOffset) + outline / 2);
}

/**
 * The ground of a box that is cut to a polygon, whose corners are in pixels or percent of it.
 * @param {SVGElement} into
 * @param {Box} box
 * @param {CSSStyleDeclaration} style
 */
function polygon(into, box, style) {
  const ground = filled(style.backgroundColor);
  /**
   * @param {string} text
   * @param {number} start
   * @param {number} size
   */
  const along = (text, start, size) =>
    start + (text.endsWith("%") ? (parseFloat(text) / 100) * size : parseFloat(text));
  const corners = style.clipPath
    .slice("polygon(".length, -1)
    .split(", ")
    .map((corner) => corner.split(" "))
    .map(([x, y]) => `${short(along(x, box.x, box.width))},${short(along(y, box.y, box.height))}`);
  if (ground) into.append(shape("polygon", { points: corners.join(" "), ...ground }));
}

/** @param {Box} box */
function rounded(box) {
  return Object.fromEntries(Object.entries(box).map(([name, value]) => [name, short(value)]));
}

/**
 * A line around a box, its middle `out` pixels beyond the edge.
 * @param {SVGElement} into
 * @param {Box} box
 * @param {number} width
 * @param {string} colour
 * @param {number} radius
 * @param {number} out
 * @param {string} [dashes]
 */
function frame(into, box, width, colour, radius, out, dashes) {
  const stroke = filled(colour, "stroke");
  if (!stroke || width <= 0) return;
  const around = {
    x: box.x - out,
    y: box.y - out,
    width: Math.max(0, box.width + 2 * out),
    height: Math.max(0, box.height + 2 * out),
  };
  into.append(
    shape("rect", {
      ...rounded(around),
      rx: radius ? short(Math.max(0, radius + out)) : undefined,
      fill: "none",
      ...stroke,
      "stroke-width": short(width),
      "stroke-dasharray": dashes,
    }),
  );
}

/**
 * @param {SVGElement} into
 * @param {Box} box
 * @param {CSSStyleDeclaration} style
 * @param {number} radius
 */
function borders(into, box, style, radius) {
  const sides = SIDES.map((side) => ({
    width: style[`border${side}Style`] === "none" ? 0 : parseFloat(style[`border${side}Width`]),
    colour: style[`border${side}Color`],
    line: style[`border${side}Style`],
  }));
  const [first] = sides;
  if (
    sides.every(({ width, colour, line }) => width === first.width && colour === first.colour && line === first.line)
  ) {
    return frame(into, box, first.width, first.colour, radius, -first.width / 2, dashed(first));
  }
  const { x, y, width, height } = box;
  const ends = [
    [x, y, x + width, y],
    [x + width, y, x + width, y + height],
    [x, y + height, x + width, y + height],
    [x, y, x, y + height],
  ];
  sides.forEach((side, i) => {
    const stroke = filled(side.colour, "stroke");
    if (!stroke || !side.width) return;
    const [dx, dy] = [
      [0, 1],
      [-1, 0],
      [0, -1],
      [1, 0],
    ][i].map((way) => (way * side.width) / 2);
    const [x1, y1, x2, y2] = ends[i];
    into.append(
      shape("line", {
        x1: short(x1 + dx),
        y1: short(y1 + dy),
        x2: short(x2 + dx),
        y2: short(y2 + dy),
        ...stroke,
        "stroke-width": short(side.width),
        "stroke-dasharray": dashed(side),
      }),
    );
  });
}

/** @param {{ width: number, line: string }} side */
function dashed({ width, line }) {
  if (line === "dashed") return `${2 * width + 1} ${2 * width + 1}`;
  return line === "dotted" ? `${width} ${width}` : undefined;
}

/**
 * Shadows without a blur, which are rings: [{colour, spread, inset}].
 * @param {string} text
 */
function rings(text) {
  if (text === "none") return [];
  return apart(text).flatMap((one) => {
    const colour = one.match(/^(?:[a-z-]+\([^)]*\)|#\w+)/)?.[0] ?? "black";
    const [across, down, blur, spread] =
      one
        .slice(colour.length)
        .match(/-?[\d.]+px/g)
        ?.map(parseFloat) ?? [];
    return across || down || blur || !spread ? [] : [{ colour, spread, inset: one.includes("inset") }];
  });
}

/**
 * @param {SVGElement} into
 * @param {SVGElement} defs
 * @param {Box} box
 * @param {CSSStyleDeclaration} style
 * @param {number} radius
 */
function gradient(into, defs, box, style, radius) {
  const inner = style.backgroundImage.slice("linear-gradient(".length, style.backgroundImage.lastIndexOf(")"));
  const parts = apart(inner);
  const way = /^(to |-?[\d.]+deg)/.test(parts[0]) ? parts.shift() : "to bottom";
  const [x2, y2] = way === "to right" || way === "90deg" ? [1, 0] : [0, 1];
  const id = `gradient-${defs.childElementCount}`;
  const made = shape("linearGradient", { id, x1: 0, y1: 0, x2, y2 });
  parts.forEach((part, i) => {
    const place = part.match(/\s([\d.]+)%$/);
    const colour = place ? part.slice(0, place.index) : part;
    const [hex, opacity] = plain(colour);
    made.append(
      shape("stop", {
        offset: place ? Number(place[1]) / 100 : short(i / Math.max(1, parts.length - 1)),
        "stop-color": hex,
        "stop-opacity": opacity < 1 ? short(opacity) : undefined,
      }),
    );
  });
  defs.append(made);
  const size = style.backgroundSize.split(" ").map((length, i) => {
    const whole = i ? box.height : box.width;
    return length.endsWith("px")
      ? parseFloat(length)
      : length.endsWith("%")
        ? (whole * parseFloat(length)) / 100
        : whole;
  });
  const [width, height] = [size[0], size[1] ?? box.height];
  const [left, top] = style.backgroundPosition
    .split(" ")
    .map((share) => (share.endsWith("%") ? parseFloat(share) / 100 : 0));
  const place = { x: box.x + left * (box.width - width), y: box.y + top * (box.height - height), width, height };
  into.append(shape("rect", { ...rounded(place), rx: radius || undefined, fill: `url(#${id})` }));
}

/**
 * A list at the commas that stand in no parentheses.
 * @param {string} text
 */
function apart(text) {
  return text.split(/,\s*(?![^(]*\))/);
}

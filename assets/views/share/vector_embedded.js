// What has a picture of its own inside a page, as SVG: canvases, SVG elements, and what is written in fields.
import { short } from "./vector_canvas.js";
import { filled, shape } from "./vector_paint.js";
import { write } from "./vector_text.js";

/**
 * @typedef {import("./vector_canvas.js").Box} Box
 * @typedef {import("./vector_canvas.js").Attributes} Attributes
 * @typedef {import("./vector_canvas.js").Drawing} Drawing
 */

const INLINED = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-opacity",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linecap",
  "stroke-linejoin",
  "opacity",
  "visibility",
  "font-family",
  "font-size",
  "font-weight",
  "font-style",
  "text-anchor",
  "dominant-baseline",
  "paint-order",
];
/** @type {Record<string, string>} */
const INITIAL = {
  "fill-opacity": "1",
  "stroke-opacity": "1",
  "stroke-dasharray": "none",
  "stroke-linecap": "butt",
  "stroke-linejoin": "miter",
  opacity: "1",
  visibility: "visible",
  "font-weight": "400",
  "font-style": "normal",
  "text-anchor": "start",
  "dominant-baseline": "auto",
  "paint-order": "normal",
};

/**
 * Draws a canvas into `into`: the shapes that were recorded of it, or its pixels.
 * @param {SVGElement} into
 * @param {SVGElement} defs
 * @param {HTMLCanvasElement} canvas
 * @param {Box} box
 * @param {Drawing | undefined} drawing
 */
export function paintCanvas(into, defs, canvas, box, drawing) {
  if (!box.width || !box.height) return;
  if (!drawing) {
    into.append(
      shape("image", {
        x: short(box.x),
        y: short(box.y),
        width: short(box.width),
        height: short(box.height),
        href: canvas.toDataURL("image/png"),
        preserveAspectRatio: "none",
      }),
    );
    return;
  }
  const scale = `scale(${box.width / canvas.width} ${box.height / canvas.height})`;
  const group = into.appendChild(shape("g", { transform: `translate(${short(box.x)} ${short(box.y)}) ${scale}` }));
  /** @type {SVGElement | null} */
  let holes = null; // what takes away from all that was drawn before
  for (const [tag, attributes, text] of drawing.shapes) {
    if (tag !== "erased") holes = null;
    if (tag === "erased") {
      (holes ??= holed(group, defs, canvas)).append(
        shape("rect", { .../** @type {Attributes} */ (attributes), fill: "black" }),
      );
    } else if (tag === "tiles") group.append(tiled(/** @type {Map<string, string>} */ (attributes)));
    else group.append(shape(tag, /** @type {Attributes} */ (attributes), text ?? null));
  }
}

/**
 * Puts what is in a group behind a mask, and gives the mask, in which black is a hole.
 * @param {SVGElement} group
 * @param {SVGElement} defs
 * @param {HTMLCanvasElement} canvas
 */
function holed(group, defs, canvas) {
  const id = `holes-${defs.childElementCount}`;
  const mask = defs.appendChild(
    shape("mask", { id, maskUnits: "userSpaceOnUse", x: 0, y: 0, width: canvas.width, height: canvas.height }),
  );
  mask.append(shape("rect", { width: canvas.width, height: canvas.height, fill: "white" }));
  const before = shape("g", { mask: `url(#${id})` });
  before.append(...group.childNodes);
  group.append(before);
  return mask;
}

/**
 * Cells side by side, with sharp edges between them.
 * @param {Map<string, string>} tiles
 */
function tiled(tiles) {
  const group = shape("g", { "shape-rendering": "crispEdges" });
  for (const [fill, d] of tiles) group.append(shape("path", { d, fill: filled(fill)?.fill ?? "none" }));
  return group;
}

/**
 * Draws an SVG element, whose look comes from style sheets, as one that needs none.
 * @param {SVGElement} into
 * @param {SVGSVGElement} element
 * @param {Box} box
 */
export function paintSvg(into, element, box) {
  const copy = /** @type {SVGSVGElement} */ (element.cloneNode(true));
  const [from, to] = [
    [element, ...element.querySelectorAll("*")],
    [copy, ...copy.querySelectorAll("*")],
  ];
  from.forEach((one, i) => {
    const style = getComputedStyle(one);
    for (const name of INLINED) {
      const value = style.getPropertyValue(name);
      const isColour = (name === "fill" || name === "stroke") && !/^(none|url|context)/.test(value);
      /** @type {Record<string, string | number>} */
      const said = isColour
        ? (filled(value, name) ?? { [name]: "none" })
        : value && value !== INITIAL[name]
          ? { [name]: value }
          : {};
      for (const [attribute, text] of Object.entries(said)) to[i].setAttribute(attribute, String(text));
    }
    to[i].removeAttribute("class");
    to[i].removeAttribute("style");
  });
  const across = element.viewBox.baseVal;
  /** @type {Attributes} */
  const sizes = {
    x: short(box.x),
    y: short(box.y),
    width: short(box.width),
    height: short(box.height),
    overflow: getComputedStyle(element).overflow,
  };
  if (!across?.width) sizes.viewBox = `0 0 ${short(box.width)} ${short(box.height)}`;
  for (const [name, value] of Object.entries(sizes)) copy.setAttribute(name, String(value));
  into.append(copy);
}

/**
 * Writes what stands in a field, where it stands; a picture has no place for a hint of what might.
 * @param {SVGElement} into
 * @param {HTMLInputElement & HTMLSelectElement} element
 * @param {CSSStyleDeclaration} style
 * @param {Box} box
 */
export function paintControl(into, element, style, box) {
  const text = element.tagName === "SELECT" && element.value ? element.selectedOptions[0].textContent : element.value;
  if (text)
    write(
      into,
      text,
      box.x + parseFloat(style.paddingLeft) + parseFloat(style.borderLeftWidth),
      box.y + box.height / 2,
      style,
    );
}

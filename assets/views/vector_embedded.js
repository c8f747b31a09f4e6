// What has a picture of its own inside a page, as SVG: canvases, SVG elements, and the controls that a browser draws.
import { short } from "./vector_canvas.js";
import { filled, shape } from "./vector_paint.js";
import { write } from "./vector_text.js";

const INLINED = ["fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin",
  "opacity", "visibility", "font-family", "font-size", "font-weight", "font-style", "text-anchor", "dominant-baseline", "paint-order"];
const INITIAL = { "fill-opacity": "1", "stroke-opacity": "1", "stroke-dasharray": "none", "stroke-linecap": "butt", "stroke-linejoin": "miter",
  opacity: "1", visibility: "visible", "font-weight": "400", "font-style": "normal", "text-anchor": "start", "dominant-baseline": "auto", "paint-order": "normal" };

/** Draws a canvas into `into`: the shapes that were recorded of it, or its pixels. */
export function paintCanvas(into, defs, canvas, box, drawing) {
  if (!box.width || !box.height) return;
  if (!drawing) {
    into.append(shape("image", { x: short(box.x), y: short(box.y), width: short(box.width), height: short(box.height), href: canvas.toDataURL("image/png"), preserveAspectRatio: "none" }));
    return;
  }
  const scale = `scale(${box.width / canvas.width} ${box.height / canvas.height})`;
  const group = into.appendChild(shape("g", { transform: `translate(${short(box.x)} ${short(box.y)}) ${scale}` }));
  let holes = null; // what takes away from all that was drawn before
  for (const [tag, attributes, text] of drawing.shapes) {
    if (tag !== "erased") holes = null;
    else holes ??= holed(group, defs, canvas);
    if (tag === "erased") holes.append(shape("rect", { ...attributes, fill: "black" }));
    else if (tag === "tiles") group.append(tiled(attributes));
    else group.append(shape(tag, attributes, text ?? null));
  }
}

/** Puts what is in a group behind a mask, and gives the mask, in which black is a hole. */
function holed(group, defs, canvas) {
  const id = `holes-${defs.childElementCount}`;
  const mask = defs.appendChild(shape("mask", { id, maskUnits: "userSpaceOnUse", x: 0, y: 0, width: canvas.width, height: canvas.height }));
  mask.append(shape("rect", { width: canvas.width, height: canvas.height, fill: "white" }));
  const before = shape("g", { mask: `url(#${id})` });
  before.append(...group.childNodes);
  group.append(before);
  return mask;
}

/** Cells side by side, with sharp edges between them. */
function tiled(tiles) {
  const group = shape("g", { "shape-rendering": "crispEdges" });
  for (const [fill, d] of tiles) group.append(shape("path", { d, fill: filled(fill).fill }));
  return group;
}

/** Draws an SVG element, whose look comes from style sheets, as one that needs none. */
export function paintSvg(into, element, box) {
  const copy = element.cloneNode(true);
  const [from, to] = [[element, ...element.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]];
  from.forEach((one, i) => {
    const style = getComputedStyle(one);
    for (const name of INLINED) {
      const value = style.getPropertyValue(name);
      const isColour = (name === "fill" || name === "stroke") && !/^(none|url|context)/.test(value);
      const said = isColour ? (filled(value, name) ?? { [name]: "none" }) : value && value !== INITIAL[name] ? { [name]: value } : {};
      for (const [attribute, text] of Object.entries(said)) to[i].setAttribute(attribute, text);
    }
    to[i].removeAttribute("class");
    to[i].removeAttribute("style");
  });
  const across = element.viewBox.baseVal;
  const sizes = { x: short(box.x), y: short(box.y), width: short(box.width), height: short(box.height), overflow: getComputedStyle(element).overflow };
  if (!across?.width) sizes.viewBox = `0 0 ${short(box.width)} ${short(box.height)}`;
  for (const [name, value] of Object.entries(sizes)) copy.setAttribute(name, value);
  into.append(copy);
}

/** Draws a control as browsers do; `ground` is the colour of a tick. */
export function paintControl(into, element, style, box, ground) {
  const middle = box.y + box.height / 2;
  const accent = filled(style.accentColor === "auto" ? style.color : style.accentColor)?.fill ?? "#000";
  if (element.type === "checkbox" || element.type === "radio") {
    const inner = { x: box.x + 0.5, y: box.y + 0.5, width: box.width - 1, height: box.height - 1, rx: element.type === "radio" ? box.width / 2 : 2 };
    into.append(shape("rect", { ...inner, fill: element.checked ? accent : "none", stroke: element.checked ? accent : filled(style.color, "stroke").stroke }));
    const [x, y, size] = [box.x, box.y, box.width];
    if (element.checked) into.append(shape("path", { d: `M${x + 0.22 * size} ${y + 0.52 * size}L${x + 0.42 * size} ${y + 0.72 * size}L${x + 0.78 * size} ${y + 0.3 * size}`, fill: "none", stroke: ground.fill, "stroke-width": 1.6 }));
  } else if (element.type === "range") {
    const share = (element.valueAsNumber - element.min) / (element.max - element.min || 1);
    const at = box.x + 7 + share * (box.width - 14);
    into.append(shape("line", { x1: box.x, x2: box.x + box.width, y1: middle, y2: middle, stroke: filled(style.color, "stroke").stroke, "stroke-opacity": 0.25, "stroke-width": 4, "stroke-linecap": "round" }));
    into.append(shape("line", { x1: box.x, x2: at, y1: middle, y2: middle, stroke: accent, "stroke-width": 4, "stroke-linecap": "round" }), shape("circle", { cx: at, cy: middle, r: 7, fill: accent }));
  } else {
    const text = element.tagName === "SELECT" ? (element.selectedOptions[0]?.textContent ?? "") : element.value || element.placeholder;
    if (element.tagName === "SELECT") into.append(shape("path", { d: `M${short(box.x + box.width - 18)} ${short(middle - 2)}l4 4l4 -4`, fill: "none", stroke: filled(style.color, "stroke").stroke, "stroke-width": 1.5 }));
    write(into, text, box.x + parseFloat(style.paddingLeft) + parseFloat(style.borderLeftWidth), middle, style);
  }
}

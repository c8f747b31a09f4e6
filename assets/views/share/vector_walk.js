// The walk through a page's elements: each one's box, texts and drawings become shapes, in the order in which they are painted.
import { short } from "./vector_canvas.js";
import { paintCanvas, paintControl, paintSvg } from "./vector_embedded.js";
import { LOOK, paintBox, shape } from "./vector_paint.js";
import { paintText } from "./vector_text.js";

/**
 * @typedef {import("./vector_canvas.js").Box} Box
 * @typedef {import("./vector_canvas.js").Attributes} Attributes
 * @typedef {import("./vector_canvas.js").Drawing} Drawing
 * @typedef {import("./vector_paint.js").Side} Side
 * @typedef {{ struck: boolean, limit: number, cuts: string[], waiting: Waiting[] }} Above what elements around one say of it: `cuts` are names of cuts
 * @typedef {{ element: HTMLElement, above: Above, z: number, alone?: boolean, paint?: (group: SVGElement) => void }} Waiting what is painted later
 */

const FIELD = /^(INPUT|SELECT|TEXTAREA)$/; // of which a picture has what is said in it, and nothing around that

export class Walk {
  /**
   * @param {HTMLElement} root
   * @param {Map<Element, Drawing>} drawings
   * @param {Map<Element, string>} turns
   */
  constructor(root, drawings, turns) {
    const box = root.getBoundingClientRect();
    this.unit = box.width / root.offsetWidth || 1; // of what is measured, where the page is zoomed: a style's pixels are not
    this.drawings = drawings;
    this.turns = turns;
    this.origin = { left: box.left / this.unit, top: box.top / this.unit, unit: this.unit };
    this.width = box.width / this.unit;
    this.height = box.height / this.unit;
    this.defs = shape("defs");
    this.content = shape("g");
    /** @type {Map<Element, number>} */
    this.order = new Map([root, ...root.querySelectorAll("*")].map((element, i) => [element, i]));
  }

  /**
   * A stacking context (CSS 2, appendix E): what stands in the flow, then what is placed, by z-index and order.
   * @param {HTMLElement} element
   * @param {SVGElement} into
   * @param {Omit<Above, "waiting">} above
   */
  layer(element, into, above) {
    /** @type {Waiting[]} */
    const waiting = [];
    this.visit(element, into, { ...above, waiting });
    /** @param {Waiting} one */
    const turn = ({ element }) => this.order.get(element) ?? 0;
    /**
     * @param {Waiting} one
     * @param {Waiting} other
     */
    const later = (one, other) => one.z - other.z || turn(one) - turn(other);
    while (waiting.length) {
      const first = waiting.reduce((found, one) => (later(one, found) < 0 ? one : found));
      waiting.splice(waiting.indexOf(first), 1);
      const place = first.above.cuts
        .slice(above.cuts.length)
        .reduce((group, id) => group.appendChild(shape("g", { "clip-path": `url(#${id})` })), into);
      if (first.paint) first.paint(place);
      else if (first.alone) this.layer(first.element, place, first.above);
      else this.visit(first.element, place, { ...first.above, waiting });
    }
  }

  /**
   * @param {HTMLElement} element
   * @param {SVGElement} into
   * @param {Above} above
   */
  visit(element, into, above) {
    const style = getComputedStyle(element);
    if (style.display === "none" || style.opacity === "0" || /^(STYLE|SCRIPT)$/.test(element.tagName)) return;
    const box = this.box(element);
    const hides = style.overflowX !== "visible" || style.overflowY !== "visible";
    if (hides && (box.width <= 1 || box.height <= 1)) return;
    const group = this.group(element, style, box, into);
    if (style.visibility === "visible" && !FIELD.test(element.tagName)) {
      paintBox(group, this.defs, box, style);
      this.generated(element, style, box, group, above);
    }
    const struck = above.struck || style.textDecorationLine.includes("line-through");
    const dotted = hides && style.textOverflow === "ellipsis" && element.scrollWidth > element.clientWidth + 1;
    const limit = dotted ? this.origin.left + box.x + element.clientLeft + element.clientWidth : above.limit;
    const cut = hides ? this.cut(element, box) : null;
    const inside = cut ? group.appendChild(shape("g", { "clip-path": `url(#${cut})` })) : group;
    this.fill(element, style, box, inside, { ...above, struck, limit, cuts: cut ? [...above.cuts, cut] : above.cuts });
  }

  /** @param {HTMLElement} element */
  box(element) {
    const { unit, origin } = this;
    const { left, top, width, height } = element.getBoundingClientRect();
    return {
      x: left / unit - origin.left,
      y: top / unit - origin.top,
      width: width / unit,
      height: height / unit,
    };
  }

  /**
   * Where an element's shapes go: into a group of their own where it is turned or lets through what lies behind.
   * @param {HTMLElement} element
   * @param {CSSStyleDeclaration} style
   * @param {Box} box
   * @param {SVGElement} into
   */
  group(element, style, box, into) {
    /** @type {Attributes} */
    const attributes = {};
    if (style.opacity !== "1") attributes.opacity = style.opacity;
    if (style.mixBlendMode !== "normal") attributes.style = `mix-blend-mode:${style.mixBlendMode}`;
    const turn = this.turns.get(element);
    if (turn) {
      const { a, b, c, d, e, f } = new DOMMatrix(turn);
      const [x, y] = style.transformOrigin.split(" ").map(parseFloat);
      const [cx, cy] = [short(box.x + x), short(box.y + y)];
      attributes.transform = `translate(${cx} ${cy}) matrix(${[a, b, c, d, e, f].map((n) => Math.round(1e6 * n) / 1e6).join(" ")}) translate(${-cx} ${-cy})`;
    }
    return Object.keys(attributes).length ? into.appendChild(shape("g", attributes)) : into;
  }

  /**
   * The name of a cut at the inside of a box, where something reaches beyond it.
   * @param {HTMLElement} element
   * @param {Box} box
   */
  cut(element, box) {
    if (element.scrollWidth <= element.clientWidth + 1 && element.scrollHeight <= element.clientHeight + 1) return null;
    const id = `cut-${this.defs.childElementCount}`;
    const path = this.defs.appendChild(shape("clipPath", { id }));
    path.append(
      shape("rect", {
        x: short(box.x + element.clientLeft),
        y: short(box.y + element.clientTop),
        width: element.clientWidth,
        height: element.clientHeight,
      }),
    );
    return id;
  }

  /**
   * @param {HTMLElement} element
   * @param {CSSStyleDeclaration} style
   * @param {Box} box
   * @param {SVGElement} into
   * @param {Above} above
   */
  fill(element, style, box, into, above) {
    const visible = style.visibility === "visible";
    if (element.tagName === "CANVAS")
      return (
        visible &&
        paintCanvas(into, this.defs, /** @type {HTMLCanvasElement} */ (element), box, this.drawings.get(element))
      );
    if (element.tagName === "svg")
      return visible && paintSvg(into, /** @type {SVGSVGElement} */ (/** @type {Element} */ (element)), box);
    if (FIELD.test(element.tagName))
      return visible && paintControl(into, /** @type {HTMLInputElement & HTMLSelectElement} */ (element), style, box);
    const flexible = /flex|grid/.test(style.display);
    for (const child of element.childNodes) {
      if (child instanceof Text) {
        if (visible) paintText(into, child, style, this.origin, above);
      } else if (child.nodeType === Node.ELEMENT_NODE) {
        const inner = /** @type {HTMLElement} */ (child);
        const layer = placed(inner, flexible, this.turns.has(inner));
        if (layer) above.waiting.push({ element: inner, above, ...layer });
        else this.visit(inner, into, above);
      }
    }
  }

  /**
   * Boxes that a style sheet adds before and behind an element's content.
   * @param {HTMLElement} element
   * @param {CSSStyleDeclaration} style
   * @param {Box} box
   * @param {SVGElement} into
   * @param {Above} above
   */
  generated(element, style, box, into, above) {
    for (const which of ["::before", "::after"]) {
      const made = getComputedStyle(element, which);
      if (made.content !== '""' || made.position !== "absolute" || made.display === "none") continue;
      const around =
        style.position === "static" ? this.box(/** @type {HTMLElement} */ (element.offsetParent ?? element)) : box;
      const edge = style.position === "static" ? getComputedStyle(element.offsetParent ?? element) : style;
      const [left, top, width, height] = [made.left, made.top, made.width, made.height].map(parseFloat);
      if (![left, top, width, height].every(Number.isFinite)) continue;
      const own = made.boxSizing === "border-box" ? 0 : 1;
      /**
       * @param {Side} one
       * @param {Side} other
       */
      const more = (one, other) =>
        own * (parseFloat(made[`border${one}Width`]) + parseFloat(made[`border${other}Width`]));
      const place = {
        x: around.x + parseFloat(edge.borderLeftWidth) + left,
        y: around.y + parseFloat(edge.borderTopWidth) + top,
        width: width + more("Left", "Right"),
        height: height + more("Top", "Bottom"),
      };
      const look = /** @type {CSSStyleDeclaration} */ (
        /** @type {unknown} */ (Object.fromEntries(LOOK.map((name) => [name, made[name]])))
      ); // as it is now: a style is live
      if (Number(made.zIndex))
        above.waiting.push({
          element,
          above,
          z: Number(made.zIndex),
          paint: (group) => paintBox(group, this.defs, place, look),
        });
      else paintBox(into, this.defs, place, look);
    }
  }
}

/**
 * {z, alone} of an element that leaves the flow: its height, and whether nothing comes between what stands in it.
 * @param {HTMLElement} element
 * @param {boolean} flexible
 * @param {boolean} turned
 */
function placed(element, flexible, turned) {
  const { position, zIndex, opacity, transform, mixBlendMode } = getComputedStyle(element);
  const lifted = position !== "static" || flexible;
  const alone =
    (lifted && zIndex !== "auto") ||
    /fixed|sticky/.test(position) ||
    opacity !== "1" ||
    transform !== "none" ||
    turned ||
    mixBlendMode !== "normal";
  return position !== "static" || alone ? { z: (lifted && Number(zIndex)) || 0, alone } : null;
}

// Any mounted view as SVG: its boxes, texts and drawings where they stand on the screen, as shapes that print at any size.
import { recorded } from "./vector_canvas.js";
import { WITHOUT } from "./vector_controls.js";
import { Walk } from "./vector_walk.js";

/** @typedef {import("./vector_canvas.js").Drawing} Drawing */

const QUIET = 450; // ms without a change after which a view is drawn to its end: it may fetch and measure meanwhile
const PATIENCE = 6000;
const STILL =
  ".loupe-view, .loupe-view * { transition: none !important; animation: none !important; caret-color: transparent !important; }";

/**
 * {width, height, defs, content} of what `root` shows, in CSS pixels; `redraw` makes the view draw all of it again.
 * What is scrolled out of a box is cut at the box's edge.
 * @param {HTMLElement} root
 * @param {() => unknown} redraw
 */
export async function drawn(root, redraw) {
  const still = /** @type {Node} */ (root.parentNode).appendChild(
    Object.assign(document.createElement("style"), { textContent: STILL + WITHOUT }),
  );
  try {
    const drawings = await recorded(() => {
      redraw();
      return quiet(root);
    });
    return walked(root, drawings);
  } finally {
    still.remove();
  }
}

/**
 * Resolves when nothing under `root` has changed for a while.
 * @param {HTMLElement} root
 * @returns {Promise<void>}
 */
function quiet(root) {
  return new Promise((resolve) => {
    let timer = 0;
    const done = () => {
      observer.disconnect();
      clearTimeout(timer);
      clearTimeout(last);
      resolve();
    };
    const wait = () => {
      clearTimeout(timer);
      timer = setTimeout(done, QUIET);
    };
    const observer = new MutationObserver(wait);
    const last = setTimeout(done, PATIENCE);
    observer.observe(root, { subtree: true, childList: true, attributes: true, characterData: true });
    wait();
  });
}

/**
 * Turned elements are measured as they are before they are turned, which is all that boxes on the screen can say.
 * @param {HTMLElement} root
 * @param {Map<Element, Drawing>} drawings
 */
function walked(root, drawings) {
  const level = [.../** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll("*"))].filter(isTurned);
  const turns = new Map(level.map((element) => [element, getComputedStyle(element).transform]));
  const styles = level.map((element) => element.getAttribute("style"));
  for (const element of level) element.style.setProperty("transform", "none", "important");
  try {
    const walk = new Walk(root, drawings, turns);
    walk.layer(root, walk.content, { struck: false, limit: Infinity, cuts: [] });
    return walk;
  } finally {
    level.forEach((element, i) =>
      styles[i] === null ? element.removeAttribute("style") : element.setAttribute("style", styles[i]),
    );
  }
}

/** @param {HTMLElement} element */
function isTurned(element) {
  const { transform } = getComputedStyle(element);
  if (transform === "none" || element.namespaceURI?.endsWith("svg")) return false;
  const { b, c } = new DOMMatrix(transform);
  return Math.abs(b) > 1e-6 || Math.abs(c) > 1e-6;
}

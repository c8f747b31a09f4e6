// Where the pointer is in an element, and how large the window is, in the element's own CSS pixels: under the projector's `zoom`,
// under a `transform`, and in every browser. The only file that reads places of the window; eslint.config.js keeps it so.

/** @typedef {{ clientX: number, clientY: number }} Pointed */

/**
 * Of an element, the place in the window and the size of one of its pixels. WebKit, and Chromium before 128, leave `zoom` out of
 * the boxes that they measure (CSS Viewport 1, "zoom", has them in).
 * @param {Element} element
 */
function seen(element) {
  const zoom = boxesAreSeen() ? 1 : zoomOf(element);
  const { left, top, width, height } = element.getBoundingClientRect();
  return { left: left * zoom, top: top * zoom, width: width * zoom, height: height * zoom };
}

/** @type {boolean | undefined} */
let measured;

function boxesAreSeen() {
  if (measured === undefined) {
    const probe = document.createElement("div");
    probe.style.cssText = "position: absolute; left: 0; top: 0; width: 10px; height: 0; zoom: 2";
    document.documentElement.append(probe);
    const zoom = zoomOf(document.documentElement);
    measured = zoomOf(probe) === zoom || probe.getBoundingClientRect().width > 15 * zoom;
    probe.remove();
  }
  return measured;
}

/** @param {Element | null} element */
function zoomOf(element) {
  let zoom = 1;
  for (let one = element; one; one = one.parentElement ?? hostOf(one))
    zoom *= Number(getComputedStyle(one).getPropertyValue("zoom")) || 1;
  return zoom;
}

/**
 * The element that a shadow tree belongs to.
 * @param {Element} element
 */
function hostOf(element) {
  const root = element.getRootNode();
  return root instanceof ShadowRoot ? root.host : null;
}

/** @param {Element} element */
function size(element) {
  return element instanceof HTMLElement
    ? { width: element.offsetWidth, height: element.offsetHeight }
    : { width: element.clientWidth, height: element.clientHeight };
}

/**
 * How many pixels of the window one pixel of the element is wide.
 * @param {Element} element
 */
export function scaleOf(element) {
  const { width } = size(element);
  return width ? seen(element).width / width : 1;
}

/**
 * Where the pointer is in an element, as parts of its width and height: 0 to 1 within.
 * @param {Pointed} event
 * @param {Element} element
 */
export function fraction({ clientX, clientY }, element) {
  const { left, top, width, height } = seen(element);
  return { x: (clientX - left) / width, y: (clientY - top) / height };
}

/**
 * Where the pointer is in an element, from its upper left corner on.
 * @param {Pointed} event
 * @param {Element} element
 */
export function inside(event, element) {
  const at = fraction(event, element);
  const { width, height } = size(element);
  return { x: at.x * width, y: at.y * height };
}

/**
 * An element's box from the corner of another on, in pixels of that.
 * @param {Element} element
 * @param {Element} other
 */
export function boxIn(element, other) {
  const [box, from, scale] = [seen(element), seen(other), scaleOf(other)];
  return {
    left: (box.left - from.left) / scale,
    top: (box.top - from.top) / scale,
    width: box.width / scale,
    height: box.height / scale,
  };
}

/**
 * What leads from `clientX - left` and `clientY - top` of a part's measured box to places in it, in pixels of `element`, in which
 * it stands: those times `scale`, and `x` and `y` more. For a library that does this arithmetic itself.
 * @param {Element} part
 * @param {Element} element
 */
export function boxTransform(part, element) {
  const [{ left, top }, at, scale] = [part.getBoundingClientRect(), seen(part), scaleOf(element)];
  return { scale: 1 / scale, x: (left - at.left) / scale, y: (top - at.top) / scale };
}

/** The size of the window, in pixels of an element; of the page where none is named. */
export function windowSize(element = document.querySelector("[data-testid=stApp]") ?? document.documentElement) {
  const scale = scaleOf(element);
  return { width: window.innerWidth / scale, height: window.innerHeight / scale };
}

/**
 * How far below the beginning of the page an element begins, in its own pixels.
 * @param {Element} element
 */
export function pageTop(element) {
  return Math.max(0, seen(element).top + window.scrollY) / scaleOf(element);
}

const AWAY = { x: 14, y: 18 }; // CSS pixels from the pointer to what follows it

/**
 * Puts an element with `position: fixed` beside the pointer: to its left where the window ends before `room` pixels to the right.
 * @param {HTMLElement} element
 * @param {Pointed} event
 */
export function follow(element, event, room = 260) {
  Object.assign(element.style, { left: "0", top: "0", transform: "none" });
  if (element.hidden) return; // it has no box; `show` comes with the next move
  const corner = { clientX: window.innerWidth, clientY: window.innerHeight };
  const [at, end, own] = [inside(event, element), inside(corner, element), size(element)];
  const left = end.x - at.x < room ? at.x - AWAY.x - own.width : at.x + AWAY.x;
  const top = Math.min(at.y + AWAY.y, end.y - own.height - 4);
  element.style.transform = `translate(${Math.max(0, left)}px, ${top}px)`;
}

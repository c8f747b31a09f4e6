// The few lines of DOM that every view needs. Text is always textContent, whatever it holds.

/**
 * An element with a class and a text.
 * @param {any} tag
 * @param {string} className
 * @param {string | number | null} text
 */
export function make(tag, className = "", text = null) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== null) element.textContent = String(text);
  return element;
}

/**
 * What draws on a canvas: every browser has it, until the page holds more canvases than there is memory for.
 * @param {HTMLCanvasElement} canvas
 * @param {CanvasRenderingContext2DSettings} [settings]
 */
export function pencil(canvas, settings) {
  const context = canvas.getContext("2d", settings);
  if (!context) throw new Error("This browser has no memory left for another picture; close other pages and reload.");
  return context;
}

/**
 * A section under a small heading, with a softer note behind it.
 * @param {string} name
 * @param {string} [note]
 */
export function section(name, note) {
  const element = make("section");
  const heading = make("h3", "", name);
  if (note) heading.append(make("span", "note", ` ${note}`));
  element.append(heading);
  return element;
}

/**
 * [from, from + 1, ..., to - 1]
 * @param {number} from
 * @param {number} to
 */
export function range(from, to) {
  return Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
}

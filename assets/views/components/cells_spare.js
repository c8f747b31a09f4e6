// Canvases of a picture that is built anew, for the one that takes its place: to make a canvas and have a browser compose
// it costs more than to draw on it, most of all where no graphics card helps.
const MOST = 64;
/** @type {HTMLCanvasElement[]} */
let spare = [];

/**
 * Takes the canvases of cells in `root`, which is about to be emptied.
 * @param {Element} root
 */
export function leave(root) {
  const canvases = /** @type {NodeListOf<HTMLCanvasElement>} */ (root.querySelectorAll(".cells > canvas"));
  spare = [...canvases].slice(0, MOST);
}

/**
 * A canvas for a picture of this size, CSS pixels: one that was left, of that size if there is any, or a new one.
 * @param {number} width
 * @param {number} tall
 */
export function canvas(width, tall) {
  const dpr = window.devicePixelRatio || 1;
  const [across, down] = [Math.round(width * dpr), Math.round(tall * dpr)];
  const alike = spare.findIndex((one) => one.width === across && one.height === down);
  const [found] = spare.splice(Math.max(0, alike), 1);
  found?.remove();
  return found ?? document.createElement("canvas");
}

/** What nobody took is let go. */
export function forget() {
  spare = [];
}

// Attention as lines: from every key's row to the query's, thickness and opacity by weight.
import { pencil } from "../core/dom.js";
import { colour } from "../core/palette.js";

/** @typedef {{ weights: Cells, query: number, width: number, pitch: number }} Lines */

const FULL = 5; // CSS pixels of a weight of 1

/**
 * data = {weights, query, width, pitch}: `weights` are one row of a pattern, one weight a key.
 * @param {HTMLElement} root
 * @param {Lines} data
 */
export function mount(root, data) {
  const canvas = document.createElement("canvas");
  canvas.setAttribute("aria-hidden", "true"); // the pattern beside it says the same
  root.append(canvas);
  const view = {
    /** @param {Lines} next */
    update({ weights, query, width, pitch }) {
      const dpr = window.devicePixelRatio || 1;
      const tall = weights.length * pitch;
      canvas.width = width * dpr;
      canvas.height = tall * dpr;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${tall}px`;
      const context = pencil(canvas);
      context.scale(dpr, dpr);
      context.strokeStyle = colour(root, "attention");
      const end = (query + 0.5) * pitch;
      weights.forEach((weight, key) => {
        if (!(weight > 0.002)) return;
        const start = (key + 0.5) * pitch;
        context.globalAlpha = Math.min(1, 0.12 + 0.88 * weight);
        context.lineWidth = Math.max(0.5, FULL * weight);
        context.beginPath();
        context.moveTo(0, start);
        context.bezierCurveTo(width * 0.55, start, width * 0.45, end, width, end);
        context.stroke();
      });
    },
    destroy: () => root.replaceChildren(),
  };
  view.update(data);
  return view;
}

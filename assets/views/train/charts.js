// What the charts of a training share: their axis of steps, its pixels, and the options of plotly.js.

const LEAST = 50; // steps that the axis shows at least while a run goes on
const ROUND = [1, 2, 5, 10];
const HANDLE = { width: 16, height: 16, path: "M7 0h2v5a3 3 0 0 1 0 6v5H7v-5a3 3 0 0 1 0-6z" };

/** @typedef {{ to: (step: number) => number, from: (px: number) => number }} StepScale */
/** @typedef {HTMLElement & { _fullLayout?: { dragmode: string | false } }} Plot an element that plotly.js draws in */

/**
 * The next of 1, 2, 5, 10, 20, ... from `x` on.
 * @param {number} x
 */
export function roundUp(x) {
  const power = 10 ** Math.floor(Math.log10(x));
  return ROUND.map((each) => each * power).find((each) => each >= x * 0.9999) ?? 10 * power;
}

/**
 * Up to which step the axis goes: that of the longest run; while one goes on, a round number from there on.
 * @param {number} last
 * @param {number} steps
 * @param {boolean} growing
 */
export function extent(last, steps, growing) {
  if (!growing) return Math.max(last, 1);
  return Math.max(last, Math.min(steps || Infinity, roundUp(Math.max(last, LEAST))));
}

/**
 * A step as it stands on the axis: a logarithmic one begins at 1.
 * @param {number} step
 * @param {boolean} log
 */
export function logged(step, log) {
  return log ? Math.max(step, 1) : step;
}

/**
 * Plotly's axis of steps 0..`most`; a logarithmic one gives every power of ten the same room, from step 1 on.
 * @param {number} most
 * @param {boolean} log
 */
export function axisOfSteps(most, log) {
  const range = log ? [0, Math.log10(Math.max(most, 2))] : [0, most];
  const ticks = log ? { dtick: 1 } : { tickformat: ",d", nticks: 8 };
  return {
    type: log ? "log" : "linear",
    range,
    ...ticks,
    title: { text: "step", standoff: 2, font: { size: 12 } },
    automargin: false,
    showspikes: true,
    spikemode: "across",
    spikethickness: 1,
    spikedash: "dot",
    hoverformat: ",d",
  };
}

/**
 * {to(step) -> px, from(px) -> step} for an axis whose `range` (exponents where it is logarithmic) lies between two pixels.
 * @param {number[]} range
 * @param {number[]} pixels
 * @param {boolean} log
 * @returns {StepScale}
 */
export function scaleOf([first, last], [start, end], log) {
  const apart = (end - start) / (last - first);
  /** @param {number} step */
  const place = (step) => (log ? Math.log10(Math.max(step, 1)) : step);
  /** @param {number} px */
  const back = (px) => first + (px - start) / apart;
  return { to: (step) => start + (place(step) - first) * apart, from: (px) => (log ? 10 ** back(px) : back(px)) };
}

/**
 * Plotly's options. A drag moves the handle until the reader chooses to zoom or to pan.
 * @param {string} filename of the picture that the toolbar downloads
 */
export function chartConfig(filename) {
  const handle = {
    name: "handle",
    title: "Drag moves the handle",
    icon: HANDLE,
    /** @param {HTMLElement} chart */
    click: (chart) => globalThis.Plotly.relayout(chart, { dragmode: false }),
  };
  return {
    displaylogo: false,
    doubleClick: "reset",
    modeBarButtons: [[handle, "zoom2d", "pan2d", "resetScale2d"], ["toImage"]],
    toImageButtonOptions: { format: "svg", filename, scale: 1 },
  };
}

/**
 * Range of an axis from 0 to `most` over so many pixels, in which a line along an edge is drawn in its whole width.
 * @param {number} most
 * @param {number} pixels
 * @param {number} thick
 */
export function valueRange(most, pixels, thick) {
  const rim = (most * thick) / 2 / pixels;
  return [-rim, most + rim];
}

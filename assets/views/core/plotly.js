// plotly.js inside a view, for a chart along which a cursor moves without a message to the server. The library is a file of the pinned
// Python package, loaded when the first chart comes to be drawn; a file that works alone carries it.

import { untracked } from "../vendor/signals-core.js";
import { boxTransform } from "./place.js";

/** @type {Promise<any> | null} */
let library = null;

/**
 * Loads plotly.js once.
 * @param {string} address where views/core/component.py serves it
 * @returns {Promise<any>} rejects with a sentence
 */
export function loadPlotly(address) {
  library ??= fetchLibrary(address).catch((error) => {
    library = null;
    throw new Error(`The chart library could not be loaded (${error.message}). Reload the page.`);
  });
  return library;
}

/** @param {string} address */
async function fetchLibrary(address) {
  const carried = document.getElementById("plotly");
  if (carried)
    document.head.append(
      Object.assign(document.createElement("script"), { textContent: await unzip(carried.textContent) }),
    );
  else await import(new URL(address, location.href).href);
  const { Plotly, moduleName } = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (globalThis));
  return Plotly ?? moduleName;
}

/** @param {string} text gzip as base64 */
async function unzip(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

/**
 * Copies plotly.js's style sheet, which it puts into the document's head, to where a view's own elements see it.
 * @param {Element} element inside the view
 */
export function adoptStyle(element) {
  const root = element.getRootNode();
  const sheet = /** @type {HTMLStyleElement | null} */ (document.getElementById("plotly.js-style-global"))?.sheet;
  if (!(root instanceof ShadowRoot) || !sheet || root.querySelector(".plotly-style")) return;
  const style = document.createElement("style");
  style.className = "plotly-style";
  style.textContent = Array.from(sheet.cssRules, (rule) => rule.cssText).join("\n");
  root.append(style);
}

/**
 * In place of plotly.js 7.1's own, which knows of `transform` and not of `zoom`: how it comes from the window to its pixels.
 * @param {HTMLElement & { _fullLayout: object }} chart
 */
function unscale(chart) {
  const { scale, x, y } = boxTransform(chart.querySelector(".nsewdrag") ?? chart, chart);
  const _invTransform = [
    [scale, 0, 0, x],
    [0, scale, 0, y],
    [0, 0, 1, 0],
    [0, 0, 0, 1],
  ];
  Object.assign(chart._fullLayout, { _invTransform, _invScaleX: scale, _invScaleY: scale });
}

/**
 * A text as it is: plotly.js reads tags.
 * @param {string} text
 */
export function literal(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

/**
 * A chart in `element`, redrawn as often as wanted; draws that come while the library is on its way are one.
 */
export class Chart {
  /**
   * @param {HTMLElement & { _fullLayout?: any, layout?: any, on?: any }} element with what plotly.js adds to it
   * @param {string} address of plotly.js
   * @param {{drawn?: (layout: any) => void, failed?: (sentence: string) => void, on?: Record<string, (event: any) => void>}} heard
   *   `drawn` is called after each drawing and after each zoom, `on` maps Plotly's events to handlers
   */
  constructor(element, address, heard = {}) {
    this.element = element;
    this.address = address;
    this.heard = heard;
    this.library = null;
    this.waiting = null;
    this.closed = false;
    /** @type {Promise<unknown> | undefined} */
    this.drawing = undefined;
  }

  /**
   * @param {any[]} traces
   * @param {any} layout
   * @param {any} config
   */
  draw(traces, layout, config) {
    this.waiting = [traces, layout, config];
    if (this.library) return this.show();
    this.reserve(`${layout.width}px`, `${layout.height}px`);
    if (this.loading) return;
    this.loading = loadPlotly(this.address).then(
      (library) => {
        this.library = library;
        if (!this.closed) this.show();
      },
      (error) => {
        this.loading = null;
        this.reserve("", "");
        this.heard.failed?.(error.message);
      },
    );
  }

  /**
   * Keeps the place of a chart whose library is on its way, so that what stands below it does not jump.
   * @param {string} minWidth
   * @param {string} minHeight
   */
  reserve(minWidth, minHeight) {
    Object.assign(this.element.style, { minWidth, minHeight });
  }

  /**
   * Changes entries of the layout. New shapes take milliseconds: the traces are not drawn again.
   * @param {Record<string, unknown>} change
   */
  relayout(change) {
    if (this.waiting) Object.assign(this.waiting[1], change);
    else if (this.element._fullLayout) this.library.relayout(this.element, change);
  }

  show() {
    if (!this.waiting || !this.element.isConnected) return;
    const [traces, layout, config] = this.waiting;
    this.waiting = null;
    this.reserve("", "");
    const first = !this.element._fullLayout;
    // Only once: buttons of one's own never equal a copy of themselves, for which plotly.js 7.1 would draw anew without an end.
    this.drawing = this.library.react(this.element, traces, layout, first ? config : undefined);
    if (first) {
      adoptStyle(this.element);
      for (const [event, act] of Object.entries(this.heard.on ?? {})) this.element.on(event, act);
      this.element.on("plotly_relayout", () => this.tell());
    }
    this.element._fullLayout._calcInverseTransform = unscale;
    this.tell();
  }

  /** What follows a drawing is no part of what was drawn: what it reads does not draw the chart again. */
  tell() {
    untracked(() => this.heard.drawn?.(this.element.layout));
  }

  /** Takes the chart away: the next drawing begins anew. */
  clear() {
    if (this.element._fullLayout) this.library.purge(this.element);
  }

  /** Plotly draws on for a while, and must find what it draws. */
  async destroy() {
    this.closed = true;
    await this.drawing;
    this.clear();
  }
}

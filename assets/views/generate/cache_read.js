// What a model reads anew for one token: with the cache the new position, without it all of them.
import { make } from "../core/dom.js";
import { colour } from "../core/palette.js";

const HIGH = 15; // CSS pixels

/** {strips, counts} once `at` tokens behind the prompt are read: a strip of positions for each of the two ways, and both in numbers. */
export function readAnew(page, found, at, across) {
  const shown = found.given + at;
  const fresh = at ? 1 : found.given;
  const whole = Array.from({ length: at + 1 }, (_, i) => found.given + i).reduce((sum, count) => sum + count, 0);
  const strips = [["cache", shown - fresh], ["no cache", 0]].map(([name, from]) => ({ name, canvas: strip(page, shown, from, across) }));
  const counts = make("dl", "cache-sums");
  const put = (name, text) => counts.append(make("dt", "", name), make("dd", "", text));
  put(at ? "read anew for the next token" : "read for the first token", at ? `${positions(1)} with the cache, ${positions(shown)} without` : `the whole prompt at once, ${positions(shown)}, with the cache or without`);
  put("read so far", `${positions(shown)} with the cache, ${positions(whole)} without`);
  if (at === found.pieces.length - found.given) put("multiply-adds", `${(at ? found.cached : found.again).toLocaleString("en")} with the cache, ${found.again.toLocaleString("en")} without`);
  return { strips, counts };
}

function positions(count) {
  return `${count.toLocaleString("en")} ${count === 1 ? "position" : "positions"}`;
}

function strip(page, count, from, across) {
  const canvas = make("canvas");
  const dpr = window.devicePixelRatio || 1;
  Object.assign(canvas, { width: Math.round(count * across * dpr), height: HIGH * dpr });
  Object.assign(canvas.style, { width: `${count * across}px`, height: `${HIGH}px` });
  const context = canvas.getContext("2d");
  context.scale(dpr, dpr);
  const between = across > 7 ? 2 : across > 4 ? 1 : 0;
  for (let i = 0; i < count; i++) {
    context.fillStyle = colour(page.element, i >= from ? "attention" : "hairline");
    context.fillRect(i * across, 0, across - between, HIGH);
  }
  return canvas;
}

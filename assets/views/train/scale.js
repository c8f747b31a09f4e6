// From numbers to pixels and back, for the curves: round bounds, so that nothing moves while a run grows within them.

const LEAST = 50; // steps that the axis shows at least while a run goes on
const ROUND = [1, 2, 5, 10];

/** The next of 1, 2, 5, 10, 20, ... from `x` on. */
export function roundUp(x) {
  const power = 10 ** Math.floor(Math.log10(x));
  return ROUND.map((each) => each * power).find((each) => each >= x * 0.9999);
}

/** Up to which step the axis goes: that of the longest run; while one goes on, a round number from there on. */
export function extent(last, steps, growing) {
  if (!growing) return Math.max(last, 1);
  return Math.max(last, Math.min(steps || Infinity, roundUp(Math.max(last, LEAST))));
}

/** {to(step) -> px, from(px) -> step} over 0..`most`; `log` gives every power of ten the same room, from step 1 on. */
export function across(most, [start, end], log) {
  const top = Math.log10(Math.max(most, 2));
  const width = end - start;
  if (!log) return { to: (step) => start + (step / most) * width, from: (px) => ((px - start) / width) * most };
  return { to: (step) => start + (Math.log10(Math.max(step, 1)) / top) * width, from: (px) => 10 ** (((px - start) / width) * top) };
}

/** Round numbers from 0 to `most`, about `count` of them, all whole if so wanted; or powers of ten. */
export function ticks(most, count, { log = false, whole = false } = {}) {
  if (log) return Array.from({ length: Math.floor(Math.log10(most) + 1e-9) + 1 }, (_, i) => 10 ** i);
  const apart = Math.max(roundUp(most / count), whole ? 1 : 0);
  return Array.from({ length: Math.floor(most / apart + 1e-9) + 1 }, (_, i) => i * apart);
}

/**
 * A line through the finite of the first `length` values, as the path of an SVG. Of the points in one column of pixels the first, the
 * least, the greatest and the last are kept: the line looks the same, however many there are.
 */
export function thinned(steps, values, length, x, y) {
  const parts = [];
  let column = NaN;
  let [first, low, high, last] = [-1, -1, -1, -1];
  const draw = (i) => parts.push(parts.length ? "L" : "M", x(steps[i]).toFixed(1), " ", y(values[i]).toFixed(1));
  const flush = () => {
    if (first < 0) return;
    const [one, two] = low < high ? [low, high] : [high, low];
    draw(first);
    if (one !== first) draw(one);
    if (two !== one) draw(two);
    if (last !== two) draw(last);
  };
  for (let i = 0; i < length; i++) {
    const value = values[i];
    if (!Number.isFinite(value)) continue;
    const here = Math.floor(x(steps[i]));
    if (here !== column) {
      flush();
      column = here;
      first = low = high = i;
    } else {
      if (value < values[low]) low = i;
      if (value > values[high]) high = i;
    }
    last = i;
  }
  flush();
  return parts.join("");
}

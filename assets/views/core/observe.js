// A picture follows what it reads: a field of what is observed is a signal, and what `computed` read of it is what makes it run again.
import { computed, signal, untracked } from "../vendor/signals-core.js";

/**
 * Makes a signal of each field that `object` has now; it is read and written as before, and is another one as soon as it holds another
 * value. What changes inside of a value nobody notices: put another one there.
 * @template {object} Fields
 * @param {Fields} object
 */
export function observe(object) {
  for (const [name, { value, get }] of Object.entries(Object.getOwnPropertyDescriptors(object))) {
    if (get) continue;
    const field = signal(value);
    const set = (/** @type {unknown} */ next) => void (field.value = next);
    Object.defineProperty(object, name, { get: () => field.value, set });
  }
  return object;
}

/**
 * Sets the fields of `object` that are not what `values` says, by JSON: who read one that came again as it was does not run again.
 * @template {object} Fields
 * @param {Fields} object
 * @param {Partial<Fields>} values
 */
export function settle(object, values) {
  const before = untracked(() => ({ ...object }));
  for (const name of /** @type {(keyof Fields)[]} */ (Object.keys(values)))
    if (JSON.stringify(values[name]) !== JSON.stringify(before[name])) Object.assign(object, { [name]: values[name] });
}

/**
 * `draw` as a function that runs it once more only where what it is given is another by JSON, or anything observed that it read is another
 * by then; returns what it returned last.
 * @template {unknown[]} Given
 * @template Drawn
 * @param {(...given: Given) => Drawn} draw
 * @returns {(...given: Given) => Drawn}
 */
export function memoize(draw) {
  const held = observe({ given: /** @type {Given} */ (/** @type {unknown} */ (null)) });
  const drawn = computed(() => draw(...held.given));
  return (...given) => {
    settle(held, { given });
    return drawn.value;
  };
}

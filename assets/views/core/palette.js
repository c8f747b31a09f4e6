// Colour from number. Every ramp starts at the colour of zero and ends at the hue of a role (tokens.json), so that a
// picture says whose numbers it shows; negative values go toward grey. 256 steps are looked up, none computed per cell.

export const STEPS = 256;
const MASK = 0.45; // a mask says where, not how much: it stays quieter than any quantity

/**
 * The CSS colour of a role ("query", "key", "residual", ...) under the present theme.
 * @param {Element} root
 * @param {string} role
 */
export function colour(root, role) {
  return getComputedStyle(root).getPropertyValue(`--${role}`).trim();
}

const made = new WeakMap(); // element that has a theme -> {theme, tables}: the ramps that were looked up below it, as long as it stays

/**
 * A lookup table, Uint32 RGBA: "unit" for 0..1, "signed" for -1..1, "mask" for 0 or 1.
 * @param {Element} root
 * @param {string} role
 * @param {Scale} scale
 * @returns {Uint32Array}
 */
export function ramp(root, role, scale) {
  /** @type {HTMLElement | null} */
  const themed = root.closest("[data-theme]");
  if (!themed?.isConnected) return table(root, role, scale);
  const { theme } = themed.dataset;
  if (made.get(themed)?.theme !== theme) made.set(themed, { theme, tables: new Map() });
  const { tables } = made.get(themed);
  const name = `${role} ${scale}`;
  if (tables.has(name)) return tables.get(name);
  const found = table(themed, role, scale);
  if (colour(themed, "zero")) tables.set(name, found); // before the style sheet is here nothing has a colour
  return found;
}

/**
 * @param {Element} root
 * @param {string} role
 * @param {Scale} scale
 */
function table(root, role, scale) {
  const style = getComputedStyle(root);
  const [zero, hue, negative, ground] = ["zero", role, "negative", "ground"].map((name) =>
    channels(style.getPropertyValue(`--${name}`).trim()),
  );
  const steps = new Uint8ClampedArray(STEPS * 4);
  for (let i = 0; i < STEPS; i++) {
    const t = i / (STEPS - 1);
    let rgb;
    if (scale === "signed") rgb = t < 0.5 ? mix(zero, negative, 1 - 2 * t) : mix(zero, hue, 2 * t - 1);
    else if (scale === "mask") rgb = mix(ground, hue, MASK * t);
    else rgb = mix(zero, hue, curve(t));
    steps.set([...rgb, 255], 4 * i);
  }
  return new Uint32Array(steps.buffer);
}

/**
 * Small weights stay visible: the colour of w is the ramp at sqrt(w), and the legend is drawn with the same curve.
 * @param {number} t
 */
export function curve(t) {
  return Math.sqrt(t);
}

/**
 * The index in a ramp for value x, `max` being where the ramp ends.
 * @param {number} x
 * @param {Scale} scale
 * @param {number} max
 */
export function step(x, scale, max) {
  const t = scale === "signed" ? 0.5 + x / (2 * max) : x / max;
  return t <= 0 ? 0 : t >= 1 ? STEPS - 1 : Math.round(t * (STEPS - 1)) || 0;
}

/** @param {number} rgba */
export function css(rgba) {
  return `rgb(${rgba & 255} ${(rgba >> 8) & 255} ${(rgba >> 16) & 255})`;
}

/**
 * @param {number[]} from
 * @param {number[]} to
 * @param {number} t
 */
function mix(from, to, t) {
  return from.map((c, i) => c + (to[i] - c) * t);
}

/** @param {string} hex */
function channels(hex) {
  const digits = hex.replace("#", "");
  return [0, 2, 4].map((i) => parseInt(digits.slice(i, i + 2), 16));
}

// Letters on a coloured ground: which of the theme's two ends is read best there.
import { colour } from "./palette.js";

/**
 * rgba (as in a ramp's table) -> the colour of ink or of the ground, whichever contrasts more with it (WCAG 2, 1.4.3).
 * @param {Element} root
 * @returns {(rgba: number) => string}
 */
export function legible(root) {
  const pair = ["ink", "ground"].map((role) => colour(root, role));
  const lights = pair.map((hex) => light([1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16))));
  return (rgba) => {
    const own = light([rgba & 255, (rgba >> 8) & 255, (rgba >> 16) & 255]);
    const [ink, ground] = lights.map((other) => (Math.max(own, other) + 0.05) / (Math.min(own, other) + 0.05));
    return pair[ink >= ground ? 0 : 1];
  };
}

/** @param {number[]} bytes */
function light(bytes) {
  const [r, g, b] = bytes
    .map((byte) => byte / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

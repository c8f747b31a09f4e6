// Light or dark is decided where the colours come from: the background that Streamlit (or an exported page) has set.
import { pencil } from "./dom.js";

/**
 * Sets data-theme="light" or "dark" on the root of a view, by which tokens.json's CSS variables are chosen,
 * and says whether that changed.
 * @param {HTMLElement} root
 */
export function shade(root) {
  const theme = isDark(getComputedStyle(root).getPropertyValue("--st-background-color").trim()) ? "dark" : "light";
  if (root.dataset.theme === theme) return false;
  root.dataset.theme = theme;
  return true;
}

/**
 * A colour's relative luminance (WCAG) below 0.18, where white text reads better than black.
 * @param {string} colour
 */
function isDark(colour) {
  if (!colour || colour === "unset") return matchMedia("(prefers-color-scheme: dark)").matches;
  const [red, green, blue] = channels(colour).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.18;
}

/**
 * Any CSS colour as [red, green, blue] in 0..1: painted on one pixel, because the browser knows them all.
 * @param {string} colour
 */
function channels(colour) {
  const context = pencil(document.createElement("canvas"), { willReadFrequently: true });
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  return Array.from(context.getImageData(0, 0, 1, 1).data.subarray(0, 3), (byte) => byte / 255);
}

// The ink that can be read on a coloured ground.
import { colour } from "../core/palette.js";

const MIDDLE = 110; // of 0 to 255: grounds above it carry the darker of the two inks

/** brightness of a ground -> {colour, name}: of the theme's ink and ground the one that stands out, as a colour and as a variable. */
export function inks(root) {
  const both = ["ink", "ground"].map((name) => ({ colour: colour(root, name), name: `var(--${name})` }));
  const [dark, bright] = both.sort((a, b) => brightness(a.colour) - brightness(b.colour));
  return (ground) => (ground > MIDDLE ? dark : bright);
}

/** 0 to 255, of "#rrggbb" or "rgb(r g b)". */
export function brightness(said) {
  const [r, g, b] = said.startsWith("#") ? [1, 3, 5].map((i) => parseInt(said.slice(i, i + 2), 16)) : said.match(/\d+/g).map(Number);
  return 0.299 * r + 0.587 * g + 0.114 * b;
}

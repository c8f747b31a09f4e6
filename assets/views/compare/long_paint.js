// Paints a difference of two long heads: signed, empty where it is exactly zero, and chequered where one text lacks the token.
import { Painter } from "../attention/tile_paint.js";
import { at } from "../components/cells.js";
import { colour, ramp, step } from "../core/palette.js";

export class SignedPainter extends Painter {
  /** The ramp ends where that of all maps does (`page.maps.most`). */
  constructor(canvas, root, page) {
    super(canvas, root);
    this.page = page;
    this.signed = new WeakMap();
  }

  tileImage(one, edition) {
    if (!one.weight) return null;
    const max = this.page.maps.most || 1;
    const shows = `${edition} ${max}`;
    const kept = this.signed.get(one);
    if (kept?.shows === shows) return kept.image;
    const block = {
      data: one.weight,
      offset: 0,
      stride: one.across,
      rows: one.weight.length / one.across,
      cols: one.across,
    };
    const image = this.image(block, max);
    this.signed.set(one, { shows, image });
    return image;
  }

  image(block, max) {
    const table = ramp(this.root, "edited", "signed");
    const squares = ["panel", "hairline"].map((name) => rgba(colour(this.root, name)));
    const image = new ImageData(block.cols, block.rows);
    const pixels = new Uint32Array(image.data.buffer);
    for (let r = 0, i = 0; r < block.rows; r++) {
      for (let c = 0; c < block.cols; c++, i++) {
        const value = at(block, r, c);
        if (Number.isNaN(value)) pixels[i] = squares[(r + c) % 2];
        else if (value !== 0) pixels[i] = table[step(value, "signed", max)];
      }
    }
    const canvas = new OffscreenCanvas(block.cols, block.rows);
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
  }
}

function rgba(hex) {
  const [red, green, blue] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

// A picture that a model completes, without the edits and with them: the pixels that are others are framed.
import { make } from "../core/dom.js";
import { colour } from "../core/palette.js";
import { boundary, paintPixels } from "../components/picture.js";

const WIDTH = 132; // CSS pixels of a picture

/** `found` is the answer of views/continuation.py: pictures height width channel, of which `given` pixels were shown. */
export function pictures(root, { given, arrays }) {
  const [before, after] = [arrays.before, arrays.after];
  const [height, across, channels] = before.shape;
  const same = (i) => Array.from({ length: channels }, (_, c) => before.data[i * channels + c] === after.data[i * channels + c]).every(Boolean);
  const others = Array.from({ length: height * across }, (_, i) => i).filter((i) => !same(i));
  const drawn = height * across - given;
  const row = make("div", "completed");
  for (const [name, pixels, framed] of [["before", before, []], ["after", after, others]]) {
    const figure = make("figure");
    const said = name === "before" ? `before: the ${given} pixels given, completed` : `after: ${others.length} of ${drawn} drawn pixels are others`;
    const canvas = picture(root, pixels, given, framed);
    canvas.setAttribute("aria-label", said);
    figure.append(canvas, make("figcaption", "", said));
    row.append(figure);
  }
  return row;
}

function picture(root, pixels, given, framed) {
  const canvas = make("canvas");
  canvas.setAttribute("role", "img");
  const [height, across] = pixels.shape;
  const dpr = devicePixelRatio || 1;
  const cell = WIDTH / across;
  canvas.width = Math.round(WIDTH * dpr);
  canvas.height = Math.round(cell * height * dpr);
  Object.assign(canvas.style, { width: `${WIDTH}px`, height: `${cell * height}px` });
  const context = canvas.getContext("2d");
  context.scale(dpr, dpr);
  paintPixels(context, root, pixels, 0, 0, across, WIDTH);
  context.strokeStyle = colour(root, "edited");
  context.lineWidth = Math.max(1, Math.min(2.5, cell / 6));
  const inside = context.lineWidth / 2;
  for (const i of framed) context.strokeRect((i % across) * cell + inside, Math.floor(i / across) * cell + inside, cell - 2 * inside, cell - 2 * inside);
  boundary(context, root, { side: across, given }, cell);
  return canvas;
}

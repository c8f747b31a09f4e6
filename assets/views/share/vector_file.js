// A picture as a file: SVG at a width in centimetres with a caption under it, and the same as PNG at 300 dots an inch.
import { pencil } from "../core/dom.js";
import { short } from "./vector_canvas.js";
import { filled, shape } from "./vector_paint.js";
import { printable, width as measured } from "./vector_text.js";

/**
 * @typedef {import("./vector_canvas.js").Attributes} Attributes
 * @typedef {{ width: number, height: number, defs: SVGElement, content: SVGElement }} Picture
 * @typedef {{ title: string, lines: string[], mark: string }} Caption
 */

export const DPI = 300;
const INCH = 2.54; // cm
const PAGE = { width: 17, height: 25 }; // centimetres of paper within margins
const LEGIBLE = 0.0068; // centimetres a CSS pixel, at which text is 2.5 points high: no picture is made smaller so that it fits a page
const MARGIN = 16; // CSS pixels around the picture
const LINE = 18;
const SIZE = 13;
const MOST_PIXELS = 2 ** 14; // a side of a canvas that every browser makes

/**
 * {width, note} of a picture of this shape (CSS pixels) that was asked for at a width on paper, centimetres: less wide where it
 * would be taller than a page, and a sentence about that; "" where it fits.
 * @param {number} wide
 * @param {number} high
 * @param {number} asked
 */
export function onPaper(wide, high, asked) {
  const tall = (asked * high) / wide;
  const most = Math.max(PAGE.height, (asked * PAGE.height) / PAGE.width);
  /** @param {number} x */
  const centimetres = (x) => `${Number(x.toFixed(1))} cm`;
  if (tall <= most) return { width: asked, note: "" };
  const width = Math.floor((100 * asked * most) / tall) / 100;
  if (width < LEGIBLE * wide) return { width: asked, note: `${centimetres(tall)} tall, more than a page` };
  return {
    width,
    note: `${centimetres(width)} wide and not ${centimetres(asked)}, so that it fits a page: it would be ${centimetres(tall)} tall`,
  };
}

/**
 * SVG text. `picture` is what vector.js gives, `caption` {title, lines: [text], mark}, `root` the view, whose letters and
 * colours the caption has, `asked` the width on paper in centimetres. Gives {text, note}, the note of `onPaper`.
 * @param {Picture} picture
 * @param {Caption} caption
 * @param {HTMLElement} root
 * @param {number} asked
 */
export function svgFile(picture, caption, root, asked) {
  const style = getComputedStyle(root);
  const [ink, soft, ground] = ["--ink", "--soft", "--ground"].map(
    (name) => filled(style.getPropertyValue(name).trim() || "black")?.fill ?? "none",
  );
  const family = style.getPropertyValue("--sans").trim() || "sans-serif";
  const inner = Math.max(picture.width, 200);
  const lines = caption.lines.flatMap((line) => broken(line, inner, `${SIZE}px ${family}`));
  const [width, height] = [inner + 2 * MARGIN, picture.height + 3 * MARGIN + LINE * (lines.length + 1)];
  const { width: centimetres, note } = onPaper(width, height, asked);
  const size = {
    width: `${centimetres}cm`,
    height: `${short((centimetres * height) / width)}cm`,
    viewBox: `0 0 ${short(width)} ${short(height)}`,
  };
  const svg = shape("svg", {
    ...size,
    role: "img",
    "aria-label": printable(`${caption.title}. ${caption.lines.join(" ")}`),
  });
  const moved = shape("g", { transform: `translate(${MARGIN} ${MARGIN})` });
  moved.append(picture.content);
  svg.append(
    shape("title", {}, printable(caption.title)),
    picture.defs,
    shape("rect", { width: "100%", height: "100%", fill: ground }),
    moved,
  );
  /**
   * @param {string} text
   * @param {number} x
   * @param {number} y
   * @param {Attributes} more
   */
  const put = (text, x, y, more) =>
    svg.append(shape("text", { x, y: short(y), "font-family": family, "font-size": SIZE, ...more }, printable(text)));
  const top = picture.height + 2 * MARGIN + SIZE;
  put(caption.title, MARGIN, top, { fill: ink, "font-weight": 600 });
  put(caption.mark, width - MARGIN, top, { fill: soft, "text-anchor": "end" });
  lines.forEach((line, i) => put(line, MARGIN, top + LINE * (i + 1), { fill: soft }));
  return { text: new XMLSerializer().serializeToString(svg), note };
}

/**
 * The SVG text, drawn as wide as it says at DPI: a Blob.
 * @param {string} svg
 */
export async function pngFile(svg) {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    await image.decode();
    const centimetres = Number(svg.match(/width="([\d.]+)cm"/)?.[1]);
    const [, across, down] = (svg.match(/viewBox="0 0 ([\d.]+) ([\d.]+)"/) ?? []).map(Number);
    const canvas = document.createElement("canvas");
    canvas.width = Math.round((centimetres / INCH) * DPI);
    canvas.height = Math.round((canvas.width * down) / across);
    if (canvas.height > MOST_PIXELS)
      throw new Error(
        `This picture would be ${canvas.height} pixels high at ${centimetres} cm and ${DPI} dpi; choose a smaller width, or the SVG.`,
      );
    pencil(canvas).drawImage(image, 0, 0, canvas.width, canvas.height);
    /** @type {Blob | null} */
    const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    if (!blob) throw new Error("This browser could not make a PNG of that size; choose a smaller width, or the SVG.");
    return new Blob([dense(new Uint8Array(await blob.arrayBuffer()))], { type: "image/png" });
  } finally {
    URL.revokeObjectURL(image.src);
  }
}

/**
 * A PNG that says how many of its pixels make a metre (chunk pHYs, behind the header of 33 bytes).
 * @param {Uint8Array<ArrayBuffer>} png
 */
export function dense(png) {
  const chunk = new Uint8Array(21);
  const view = new DataView(chunk.buffer);
  const dots = Math.round((DPI / INCH) * 100);
  view.setUint32(0, 9);
  chunk.set(new TextEncoder().encode("pHYs"), 4);
  view.setUint32(8, dots);
  view.setUint32(12, dots);
  chunk[16] = 1; // the unit is the metre
  view.setUint32(17, crc(chunk.subarray(4, 17)));
  const whole = new Uint8Array(png.length + chunk.length);
  whole.set(png.subarray(0, 33));
  whole.set(chunk, 33);
  whole.set(png.subarray(33), 33 + chunk.length);
  return whole;
}

/** @param {Uint8Array} bytes */
function crc(bytes) {
  let sum = ~0;
  for (const byte of bytes) {
    sum ^= byte;
    for (let i = 0; i < 8; i++) sum = (sum >>> 1) ^ (0xedb88320 & -(sum & 1));
  }
  return ~sum >>> 0;
}

/**
 * A text in lines no wider than `most`.
 * @param {string} text
 * @param {number} most
 * @param {string} font
 */
function broken(text, most, font) {
  const lines = [""];
  for (const word of text.match(/\S*\s|\S+/g) ?? []) {
    const last = lines[lines.length - 1];
    if (last && measured(last + word, font) > most) lines.push("");
    lines[lines.length - 1] += word;
  }
  return lines.map((line) => line.trimEnd()).filter(Boolean);
}

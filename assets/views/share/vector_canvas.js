// What is drawn on canvases, kept as shapes: while a view draws itself again, every 2-d context also writes down what it is told.
import { pencil } from "../core/dom.js";

/**
 * @typedef {"fill" | "stroke"} Kind
 * @typedef {Record<string, string | number | undefined>} Attributes
 * @typedef {{ x: number, y: number, width: number, height: number }} Box
 * @typedef {[tag: string, attributes: Attributes | Map<string, string>, text?: string]} Shape of "tiles", colour -> path of the cells that have it
 * @typedef {{ d: string, box?: undefined } | { d?: undefined, box: Box & { rx: number } }} Step of a path
 */

const CELLS = 4000; // cells of one canvas that become a rectangle each; beyond, an image of exactly one pixel a cell
const TURN = 2 * Math.PI;
/** @type {Record<string, string>} */
const ANCHORS = { center: "middle", right: "end", end: "end" };
const SILENT = new Set([
  "save",
  "restore",
  "scale",
  "translate",
  "rotate",
  "setTransform",
  "resetTransform",
  "getTransform",
  "measureText",
  "setLineDash",
  "getLineDash",
  "getImageData",
  "isPointInPath",
  "isPointInStroke",
]);

/**
 * Awaits `redraw`; canvas -> what was drawn on it meanwhile, for every canvas that was drawn as a whole.
 * @param {() => unknown} redraw
 */
export async function recorded(redraw) {
  /** @type {Map<HTMLCanvasElement, Drawing>} */
  const found = new Map();
  const resized = new WeakSet();
  const { prototype } = HTMLCanvasElement;
  const { getContext } = prototype;
  const sizes = ["width", "height"].map((name) => ({
    name,
    size: Object.getOwnPropertyDescriptor(prototype, name) ?? {},
  }));
  /**
   * @this {HTMLCanvasElement}
   * @param {string} kind
   * @param {unknown[]} more
   */
  const get = function (kind, ...more) {
    const context = getContext.apply(
      this,
      /** @type {Parameters<typeof getContext>} */ (/** @type {unknown} */ ([kind, ...more])),
    );
    if (kind !== "2d" || !context) return context;
    if (!found.has(this))
      found.set(
        this,
        new Drawing(/** @type {CanvasRenderingContext2D} */ (/** @type {unknown} */ (context)), resized.has(this)),
      );
    return found.get(this)?.face;
  };
  prototype.getContext = /** @type {typeof getContext} */ (get);
  for (const { name, size } of sizes) {
    /**
     * @this {HTMLCanvasElement}
     * @param {number} value
     */
    const set = function (value) {
      size.set?.call(this, value); // which empties the canvas
      resized.add(this);
      found.get(this)?.empty();
    };
    Object.defineProperty(prototype, name, { ...size, set });
  }
  try {
    await redraw();
  } finally {
    prototype.getContext = getContext;
    for (const { name, size } of sizes) Object.defineProperty(prototype, name, size);
    for (const drawing of found.values()) drawing.listens = false;
  }
  return new Map([...found].filter(([, drawing]) => drawing.whole));
}

/** One canvas: `shapes` are [tag, attributes, text?] in the canvas's own pixels; `erased` stands for what lies behind it. */
export class Drawing {
  /**
   * @param {CanvasRenderingContext2D} context
   * @param {boolean} whole
   */
  constructor(context, whole) {
    this.context = context;
    this.whole = whole;
    /** @type {Shape[]} */
    this.shapes = [];
    /** @type {Step[]} */
    this.path = [];
    this.cells = 0;
    this.listens = true;
    this.face = new Proxy(context, {
      get: (target, name) => {
        const value = /** @type {Record<string | symbol, unknown>} */ (/** @type {unknown} */ (target))[name];
        if (typeof value !== "function") return value;
        /** @param {unknown[]} given */
        return (...given) => {
          if (this.listens) this.hear(String(name), given);
          return value.apply(target, given);
        };
      },
      set: (target, name, value) => Reflect.set(target, name, value, target),
    });
  }

  empty() {
    this.whole = true;
    this.shapes = [];
    this.path = [];
    this.cells = 0;
  }

  /**
   * @param {string} name
   * @param {unknown[]} given
   */
  hear(name, given) {
    const says = /** @type {Record<string, (...given: unknown[]) => void>} */ (/** @type {unknown} */ (this.says));
    if (name in says) says[name].call(this, ...given);
    else if (!SILENT.has(name)) this.whole = false; // something that has no shape here
  }

  /**
   * Numbers of a place under the present transformation, as text.
   * @param {number} x
   * @param {number} y
   */
  at(x, y) {
    const { a, b, c, d, e, f } = this.context.getTransform();
    return `${short(a * x + c * y + e)} ${short(b * x + d * y + f)}`;
  }

  /** How much the present transformation enlarges. */
  get scale() {
    const { a, b, c, d } = this.context.getTransform();
    return Math.sqrt(Math.abs(a * d - b * c));
  }

  /**
   * @param {string} tag
   * @param {Attributes} attributes
   * @param {Kind} kind
   * @param {string} [text]
   */
  add(tag, attributes, kind, text) {
    const { context } = this;
    /** @type {Attributes} */
    const painted =
      kind === "stroke" ? { fill: "none", stroke: String(context.strokeStyle) } : { fill: String(context.fillStyle) };
    if (kind === "stroke") {
      painted["stroke-width"] = short(context.lineWidth * this.scale);
      if (context.lineCap !== "butt") painted["stroke-linecap"] = context.lineCap;
      const dashes = context.getLineDash();
      if (dashes.length) painted["stroke-dasharray"] = dashes.map((dash) => short(dash * this.scale)).join(" ");
    }
    if (context.globalAlpha < 1) painted.opacity = short(context.globalAlpha);
    this.shapes.push([tag, { ...attributes, ...painted }, text]);
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {number} width
   * @param {number} height
   */
  box(x, y, width, height) {
    const { a, d, e, f } = this.context.getTransform();
    const [left, right] = [a * x + e, a * (x + width) + e].sort((one, other) => one - other);
    const [top, bottom] = [d * y + f, d * (y + height) + f].sort((one, other) => one - other);
    return { x: short(left), y: short(top), width: short(right - left), height: short(bottom - top) };
  }

  /**
   * @type {Pick<CanvasRenderingContext2D, "beginPath" | "closePath" | "moveTo" | "lineTo" | "bezierCurveTo" | "quadraticCurveTo" | "rect" | "roundRect" |
   *   "arc" | "fill" | "stroke" | "fillRect" | "strokeRect" | "clearRect" | "fillText" | "strokeText" | "drawImage"> & ThisType<Drawing>}
   */
  says = {
    beginPath() {
      this.path = [];
    },
    closePath() {
      this.path.push({ d: "Z" });
    },
    /**
     * @param {number} x
     * @param {number} y
     */
    moveTo(x, y) {
      this.path.push({ d: `M${this.at(x, y)}` });
    },
    /**
     * @param {number} x
     * @param {number} y
     */
    lineTo(x, y) {
      this.path.push({ d: `${this.path.length ? "L" : "M"}${this.at(x, y)}` });
    },
    /**
     * @param {number} ax
     * @param {number} ay
     * @param {number} bx
     * @param {number} by
     * @param {number} x
     * @param {number} y
     */
    bezierCurveTo(ax, ay, bx, by, x, y) {
      this.path.push({ d: `C${this.at(ax, ay)} ${this.at(bx, by)} ${this.at(x, y)}` });
    },
    /**
     * @param {number} ax
     * @param {number} ay
     * @param {number} x
     * @param {number} y
     */
    quadraticCurveTo(ax, ay, x, y) {
      this.path.push({ d: `Q${this.at(ax, ay)} ${this.at(x, y)}` });
    },
    /**
     * @param {number} x
     * @param {number} y
     * @param {number} width
     * @param {number} height
     */
    rect(x, y, width, height) {
      this.path.push({
        d: `M${this.at(x, y)}L${this.at(x + width, y)}L${this.at(x + width, y + height)}L${this.at(x, y + height)}Z`,
      });
    },
    /**
     * @param {number} x
     * @param {number} y
     * @param {number} width
     * @param {number} height
     * @param {number} radius
     */
    roundRect(x, y, width, height, radius) {
      const round = typeof radius === "number" ? radius : (radius?.[0] ?? 0);
      const least = Math.max(0, Math.min(round, width / 2, height / 2));
      this.path.push({ box: { ...this.box(x, y, width, height), rx: short(least * this.scale) } });
    },
    /**
     * @param {number} x
     * @param {number} y
     * @param {number} radius
     * @param {number} start
     * @param {number} end
     */
    arc(x, y, radius, start, end, backward = false) {
      const r = short(radius * this.scale);
      /** @param {number} angle */
      const on = (angle) => this.at(x + radius * Math.cos(angle), y + radius * Math.sin(angle));
      const swept = Math.min(TURN, backward ? start - end : end - start);
      const half = start + (backward ? -swept : swept) / 2;
      const sweep = backward ? 0 : 1;
      const stop = start + (backward ? -swept : swept);
      this.path.push({
        d: `${this.path.length ? "L" : "M"}${on(start)}A${r} ${r} 0 0 ${sweep} ${on(half)}A${r} ${r} 0 0 ${sweep} ${on(stop)}`,
      });
    },
    fill() {
      this.outline("fill");
    },
    stroke() {
      this.outline("stroke");
    },
    /**
     * @param {number} x
     * @param {number} y
     * @param {number} width
     * @param {number} height
     */
    fillRect(x, y, width, height) {
      this.add("rect", this.box(x, y, width, height), "fill");
    },
    /**
     * @param {number} x
     * @param {number} y
     * @param {number} width
     * @param {number} height
     */
    strokeRect(x, y, width, height) {
      this.add("rect", this.box(x, y, width, height), "stroke");
    },
    /**
     * @param {number} x
     * @param {number} y
     * @param {number} width
     * @param {number} height
     */
    clearRect(x, y, width, height) {
      const box = this.box(x, y, width, height);
      const { canvas } = this.context;
      if (box.x <= 0 && box.y <= 0 && box.x + box.width >= canvas.width - 1 && box.y + box.height >= canvas.height - 1)
        return this.empty();
      this.shapes.push(["erased", box]);
    },
    /**
     * @param {string} text
     * @param {number} x
     * @param {number} y
     */
    fillText(text, x, y) {
      this.write(text, x, y, "fill");
    },
    /**
     * @param {string} text
     * @param {number} x
     * @param {number} y
     */
    strokeText(text, x, y) {
      this.write(text, x, y, "stroke");
    },
    /**
     * @param {HTMLCanvasElement | OffscreenCanvas} source
     * @param {...number} numbers
     */
    drawImage(source, ...numbers) {
      const whole = [0, 0, source.width, source.height];
      const [from, to] =
        numbers.length === 8
          ? [numbers.slice(0, 4), numbers.slice(4)]
          : [whole, [...numbers.slice(0, 2), ...(numbers.length === 4 ? numbers.slice(2) : whole.slice(2))]];
      this.picture(source, from, this.box(.../** @type {[number, number, number, number]} */ (to)));
    },
  };

  /** @param {Kind} kind */
  outline(kind) {
    const lines = this.path
      .filter(({ d }) => d)
      .map(({ d }) => d)
      .join("");
    if (lines) this.add("path", { d: lines }, kind);
    for (const { box } of this.path) if (box) this.add("rect", box, kind);
  }

  /**
   * @param {string} text
   * @param {number} x
   * @param {number} y
   * @param {Kind} kind
   */
  write(text, x, y, kind) {
    const { context } = this;
    const { font, textBaseline } = context;
    const above = context.measureText(text).fontBoundingBoxAscent;
    context.textBaseline = "alphabetic";
    const down = context.measureText(text).fontBoundingBoxAscent - above;
    context.textBaseline = textBaseline;
    const [, style = "", size, family] = font.match(/^(.*?)([\d.]+)px(?:\/\S+)?\s+(.*)$/) ?? [];
    const weight = style.match(/bold|\b\d00\b/)?.[0];
    const [px, py] = this.at(x, y + down).split(" ");
    const anchor = ANCHORS[context.textAlign];
    /** @type {Attributes} */
    const upright = { x: px, y: py, "font-family": family, "font-size": short(Number(size) * this.scale) };
    const { a, b } = context.getTransform();
    if (Math.abs(b) > 1e-9) upright.transform = `rotate(${short((Math.atan2(b, a) * 180) / Math.PI)} ${px} ${py})`;
    if (weight) upright["font-weight"] = weight;
    if (style.includes("italic")) upright["font-style"] = "italic";
    if (anchor) upright["text-anchor"] = anchor;
    this.add("text", upright, kind, text);
  }

  /**
   * Pixels of another canvas, each a rectangle of its own colour while they are few.
   * @param {HTMLCanvasElement | OffscreenCanvas} source
   * @param {number[]} part
   * @param {Box} box
   */
  picture(source, [left, top, across, down], box) {
    this.cells += across * down;
    const { data } = /** @type {CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D} */ (
      source.getContext("2d")
    ).getImageData(left, top, across, down);
    if (this.cells > CELLS || this.context.imageSmoothingEnabled) {
      const href = encoded(data, across, down);
      return this.shapes.push([
        "image",
        {
          ...box,
          href,
          preserveAspectRatio: "none",
          ...(this.context.imageSmoothingEnabled ? {} : { style: "image-rendering:pixelated" }),
        },
      ]);
    }
    const pixels = new Uint32Array(data.buffer);
    const [wide, tall] = [box.width / across, box.height / down];
    const tiles = this.tiles();
    for (let row = 0; row < down; row++) {
      for (let col = 0, end; col < across; col = end) {
        for (end = col + 1; end < across && pixels[row * across + end] === pixels[row * across + col]; end++);
        const [r, g, b, alpha] = data.subarray(4 * (row * across + col));
        if (!alpha) continue;
        const [x, y, width, height] = [box.x + col * wide, box.y + row * tall, (end - col) * wide, tall].map(short);
        const fill = `rgb(${r},${g},${b})`;
        tiles.set(fill, `${tiles.get(fill) ?? ""}M${x} ${y}h${width}v${height}h${-width}z`);
      }
    }
  }

  /** Colour -> path of the cells that have it: as they never overlap, one path a colour says it all. */
  tiles() {
    if (this.shapes.at(-1)?.[0] !== "tiles") this.shapes.push(["tiles", new Map()]);
    return /** @type {Map<string, string>} */ (this.shapes[this.shapes.length - 1][1]);
  }
}

/**
 * @param {Uint8ClampedArray<ArrayBuffer>} data
 * @param {number} width
 * @param {number} height
 */
function encoded(data, width, height) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  pencil(canvas).putImageData(new ImageData(data, width, height), 0, 0);
  return canvas.toDataURL("image/png");
}

/**
 * At most three decimals: shorter files, and finer than any printer.
 * @param {number} x
 */
export function short(x) {
  return Math.round(1000 * x) / 1000;
}

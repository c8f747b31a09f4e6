// What is drawn on canvases, kept as shapes: while a view draws itself again, every 2-d context also writes down what it is told.
import { pencil } from "../core/dom.js";

const CELLS = 4000; // cells of one canvas that become a rectangle each; beyond, an image of exactly one pixel a cell
const TURN = 2 * Math.PI;
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

/** Awaits `redraw`; canvas -> what was drawn on it meanwhile, for every canvas that was drawn as a whole. */
export async function recorded(redraw) {
  const found = new Map();
  const resized = new WeakSet();
  const { prototype } = HTMLCanvasElement;
  const { getContext } = prototype;
  const sizes = ["width", "height"].map((name) => ({
    name,
    size: Object.getOwnPropertyDescriptor(prototype, name) ?? {},
  }));
  prototype.getContext = function (kind, ...more) {
    const context = getContext.call(this, kind, ...more);
    if (kind !== "2d" || !context) return context;
    if (!found.has(this)) found.set(this, new Drawing(context, resized.has(this)));
    return found.get(this).face;
  };
  for (const { name, size } of sizes) {
    /** @this {HTMLCanvasElement} */
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
class Drawing {
  constructor(context, whole) {
    this.context = context;
    this.whole = whole;
    this.shapes = [];
    this.path = [];
    this.cells = 0;
    this.listens = true;
    this.face = new Proxy(context, {
      get: (target, name) => {
        const value = target[name];
        if (typeof value !== "function") return value;
        return (...given) => {
          if (this.listens) this.hear(name, given);
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

  hear(name, given) {
    if (name in this.says) this.says[name].call(this, ...given);
    else if (!SILENT.has(name)) this.whole = false; // something that has no shape here
  }

  /** Numbers of a place under the present transformation, as text. */
  at(x, y) {
    const { a, b, c, d, e, f } = this.context.getTransform();
    return `${short(a * x + c * y + e)} ${short(b * x + d * y + f)}`;
  }

  /** How much the present transformation enlarges. */
  get scale() {
    const { a, b, c, d } = this.context.getTransform();
    return Math.sqrt(Math.abs(a * d - b * c));
  }

  add(tag, attributes, kind, text) {
    const { context } = this;
    const painted = kind === "stroke" ? { fill: "none", stroke: context.strokeStyle } : { fill: context.fillStyle };
    if (kind === "stroke") {
      painted["stroke-width"] = short(context.lineWidth * this.scale);
      if (context.lineCap !== "butt") painted["stroke-linecap"] = context.lineCap;
      const dashes = context.getLineDash();
      if (dashes.length) painted["stroke-dasharray"] = dashes.map((dash) => short(dash * this.scale)).join(" ");
    }
    if (context.globalAlpha < 1) painted.opacity = short(context.globalAlpha);
    this.shapes.push([tag, { ...attributes, ...painted }, text]);
  }

  box(x, y, width, height) {
    const { a, d, e, f } = this.context.getTransform();
    const [left, right] = [a * x + e, a * (x + width) + e].sort((one, other) => one - other);
    const [top, bottom] = [d * y + f, d * (y + height) + f].sort((one, other) => one - other);
    return { x: short(left), y: short(top), width: short(right - left), height: short(bottom - top) };
  }

  says = {
    beginPath() {
      this.path = [];
    },
    closePath() {
      this.path.push({ d: "Z" });
    },
    moveTo(x, y) {
      this.path.push({ d: `M${this.at(x, y)}` });
    },
    lineTo(x, y) {
      this.path.push({ d: `${this.path.length ? "L" : "M"}${this.at(x, y)}` });
    },
    bezierCurveTo(ax, ay, bx, by, x, y) {
      this.path.push({ d: `C${this.at(ax, ay)} ${this.at(bx, by)} ${this.at(x, y)}` });
    },
    quadraticCurveTo(ax, ay, x, y) {
      this.path.push({ d: `Q${this.at(ax, ay)} ${this.at(x, y)}` });
    },
    rect(x, y, width, height) {
      this.path.push({
        d: `M${this.at(x, y)}L${this.at(x + width, y)}L${this.at(x + width, y + height)}L${this.at(x, y + height)}Z`,
      });
    },
    roundRect(x, y, width, height, radius) {
      const round = typeof radius === "number" ? radius : (radius?.[0] ?? 0);
      const least = Math.max(0, Math.min(round, width / 2, height / 2));
      this.path.push({ box: { ...this.box(x, y, width, height), rx: short(least * this.scale) } });
    },
    arc(x, y, radius, start, end, backward = false) {
      const r = short(radius * this.scale);
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
    fillRect(x, y, width, height) {
      this.add("rect", this.box(x, y, width, height), "fill");
    },
    strokeRect(x, y, width, height) {
      this.add("rect", this.box(x, y, width, height), "stroke");
    },
    clearRect(x, y, width, height) {
      const box = this.box(x, y, width, height);
      const { canvas } = this.context;
      if (box.x <= 0 && box.y <= 0 && box.x + box.width >= canvas.width - 1 && box.y + box.height >= canvas.height - 1)
        return this.empty();
      this.shapes.push(["erased", box]);
    },
    fillText(text, x, y) {
      this.write(text, x, y, "fill");
    },
    strokeText(text, x, y) {
      this.write(text, x, y, "stroke");
    },
    drawImage(source, ...numbers) {
      const whole = [0, 0, source.width, source.height];
      const [from, to] =
        numbers.length === 8
          ? [numbers.slice(0, 4), numbers.slice(4)]
          : [whole, [...numbers.slice(0, 2), ...(numbers.length === 4 ? numbers.slice(2) : whole.slice(2))]];
      this.picture(source, from, this.box(...to));
    },
  };

  outline(kind) {
    const lines = this.path
      .filter(({ d }) => d)
      .map(({ d }) => d)
      .join("");
    if (lines) this.add("path", { d: lines }, kind);
    for (const { box } of this.path) if (box) this.add("rect", box, kind);
  }

  write(text, x, y, kind) {
    const { context } = this;
    const { font, textBaseline } = context;
    const above = context.measureText(text).fontBoundingBoxAscent;
    context.textBaseline = "alphabetic";
    const down = context.measureText(text).fontBoundingBoxAscent - above;
    context.textBaseline = textBaseline;
    const [, style, size, family] = font.match(/^(.*?)([\d.]+)px(?:\/\S+)?\s+(.*)$/);
    const weight = style.match(/bold|\b\d00\b/)?.[0];
    const [px, py] = this.at(x, y + down).split(" ");
    const anchor = { center: "middle", right: "end", end: "end" }[context.textAlign];
    const upright = { x: px, y: py, "font-family": family, "font-size": short(size * this.scale) };
    const { a, b } = context.getTransform();
    if (Math.abs(b) > 1e-9) upright.transform = `rotate(${short((Math.atan2(b, a) * 180) / Math.PI)} ${px} ${py})`;
    if (weight) upright["font-weight"] = weight;
    if (style.includes("italic")) upright["font-style"] = "italic";
    if (anchor) upright["text-anchor"] = anchor;
    this.add("text", upright, kind, text);
  }

  /** Pixels of another canvas, each a rectangle of its own colour while they are few. */
  picture(source, [left, top, across, down], box) {
    this.cells += across * down;
    const { data } = source.getContext("2d").getImageData(left, top, across, down);
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
    return this.shapes.at(-1)[1];
  }
}

function encoded(data, width, height) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  pencil(canvas).putImageData(new ImageData(data, width, height), 0, 0);
  return canvas.toDataURL("image/png");
}

/** At most three decimals: shorter files, and finer than any printer. */
export function short(x) {
  return Math.round(1000 * x) / 1000;
}

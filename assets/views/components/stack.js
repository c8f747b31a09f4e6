// One stack of a transformer as a drawing: the residual stream runs upward, and what is added to it branches off and
// comes back at a plus. Everything is placed from the bottom; a mirrored stack has its stream on the right.
import { counted } from "../core/format.js";
import { pencil, range } from "../core/dom.js";

/**
 * @typedef {{ mask: "full" | "causal" | "prefix", window: boolean, heads: number, kvHeads: number, dHead: number, notes: string[] }} Attention
 * @typedef {{ title: string, width: number, gated: boolean, note: string }} Mlp
 * @typedef {{ boxes: { id: string, label: string, detail: string }[], tied: boolean, out: string }} Ends
 * @typedef {{ prefix: string, layers: number, shared: boolean, width: number, reads: string, norm: string,
 *   embedding: { id: string, label: string, detail: string }[], embedNorm: boolean, place: "before" | "after" | "around" | "output",
 *   sublayers: "sequential" | "parallel" | "parallel_one_norm", residual: boolean, scale: string, attention: Attention, cross: Attention | null,
 *   mlp: Mlp | null, finalNorm: boolean }} Stack as views/architecture/architecture.py describes it
 * @typedef {{ width: number, mirror?: boolean, ends?: Ends | null, counts: Map<string, number>, marked: Set<string> }} Drawing
 */

const NS = "http://www.w3.org/2000/svg";
const TRUNK = 45; // where the stream runs
const COLUMN = 96; // where the boxes begin
const EDGE = 14; // right of the boxes
const PILL = { width: 84, height: 26 };
const ROW = { height: 34, gap: 7 };
const GAP = 10;
const GLYPH = 48;
const CELLS = 6; // of a mask's picture, a side
const LINE = 19;
const MONO = 0.61; // width of a character of the monospace, in its size

const ruler = pencil(document.createElement("canvas"));

/**
 * Width in CSS pixels of a text in the page's sans.
 * @param {string} text
 * @param {number} size
 */
function measure(text, size, weight = 400) {
  ruler.font = `${weight} ${size}px Inter, system-ui, "Segoe UI", Roboto, Arial, sans-serif`;
  return ruler.measureText(text).width;
}

/**
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string | number>} attributes
 * @param {string | null} text
 */
export function svg(tag, attributes = {}, text = null) {
  const element = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  if (text !== null) element.textContent = text;
  return element;
}

/**
 * {element, height, top, cross}: a group whose bottom is y = 0 and whose top is y = -height; `top` is where the stream
 * ends and `cross` where the encoder's result enters, {x, y} each. `counts` are parameters a block id.
 * @param {Stack} stack
 * @param {Drawing} how
 */
export function drawStack(stack, { width, mirror = false, ends = null, counts, marked }) {
  const pen = new Pen({ width, mirror, counts, marked, prefix: stack.prefix });
  pen.input(stack);
  pen.embedding(stack);
  pen.block(stack);
  if (stack.finalNorm) pen.trunkNorm("final_norm", stack.norm, GAP);
  if (ends) pen.ends(ends);
  else pen.rise(stack.finalNorm ? 22 : 40);
  pen.finish(ends);
  return { element: pen.group, height: -pen.y, top: { x: pen.x(TRUNK), y: pen.y }, cross: pen.cross };
}

class Pen {
  /** @param {Omit<Drawing, "ends"> & { prefix: string }} how */
  constructor({ width, mirror, counts, marked, prefix }) {
    this.width = width;
    this.mirror = mirror;
    this.counts = counts;
    this.marked = marked;
    this.prefix = prefix;
    this.group = svg("g");
    this.below = this.group.appendChild(svg("g")); // the frame
    this.lines = this.group.appendChild(svg("g"));
    this.boxes = this.group.appendChild(svg("g"));
    this.y = 0;
    this.start = 0; // where the stream begins
    this.seam = 0; // from where it is still to be drawn
    /** @type {{ x: number, y: number } | null} */
    this.cross = null;
    this.right = width - EDGE;
  }

  /**
   * A place across, from the side of the stream.
   * @param {number} at
   */
  x(at) {
    return this.mirror ? this.width - at : at;
  }

  /** @param {[number, number][]} points */
  path(points, className = "wire", arrow = false) {
    const d = points.map(([x, y], i) => `${i ? "L" : "M"}${this.x(x)} ${y}`).join("");
    this.lines.append(svg("path", { d, class: className, ...(arrow ? { "marker-end": "url(#tip)" } : {}) }));
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {string} words
   * @param {string} className
   */
  text(x, y, words, className, anchor = "start") {
    return this.boxes.appendChild(svg("text", { x, y, class: className, "text-anchor": anchor }, words));
  }

  /**
   * A block that can be pointed at: a group of its own around what `draw(group, left, top)` puts into it.
   * @param {string} id
   * @param {string} label
   * @param {number} at
   * @param {number} top
   * @param {number} width
   * @param {number} height
   * @param {string} className
   * @param {(group: SVGElement, left: number, top: number, count: number | undefined) => void} draw
   */
  target(id, label, at, top, width, height, className, draw) {
    const left = this.mirror ? this.width - at - width : at;
    const full = this.prefix && !["pooler", "next_sentence", "head", "vector"].includes(id) ? this.prefix + id : id;
    const marked = this.marked.has(id);
    const count = this.counts.get(full);
    const said = `${this.prefix.replace(".", " ")}${label}${count ? `, ${count.toLocaleString("en")} parameters` : ""}${marked ? ", differs" : ""}`;
    const group = svg("g", {
      class: `target ${className}${marked ? " marked" : ""}`,
      tabindex: 0,
      role: "button",
      "aria-description": said,
    });
    group.dataset.block = full;
    group.append(svg("rect", { x: left, y: top, width, height, rx: height < 30 ? height / 2 : 7, class: "face" }));
    draw(group, left, top, count);
    if (marked) {
      group.append(svg("circle", { cx: left + width - 4, cy: top + 3, r: 9, class: "flag" }));
      group.append(
        svg("text", { x: left + width - 4, y: top + 7.5, class: "flag-text", "text-anchor": "middle" }, "≠"),
      );
    }
    this.boxes.append(group);
    return { left, top, width, height };
  }

  /** @param {Stack} stack */
  input({ reads }) {
    const middle = this.x((COLUMN + this.right) / 2);
    this.text(middle, -5, reads, "note", "middle");
    this.y = -24;
  }

  /** @param {Stack} stack */
  embedding({ embedding, embedNorm, norm }) {
    const at = TRUNK + 36;
    const width = this.right - at;
    embedding.forEach((row, i) => {
      const top = this.y - ROW.height;
      const middle = top + ROW.height / 2;
      this.target(row.id, row.label, at, top, width, ROW.height, "role-residual", (group, left) => {
        group.append(svg("text", { x: left + 12, y: middle + 5.5, class: "title row" }, row.label));
        const size = Math.min(13, (width - measure(row.label, 15, 600) - 32) / (row.detail.length * MONO));
        group.append(
          svg(
            "text",
            {
              x: left + width - 12,
              y: middle + 5,
              class: "number",
              "text-anchor": "end",
              style: `font-size:${size}px`,
            },
            row.detail,
          ),
        );
      });
      this.path(
        [
          [at, middle],
          [TRUNK + (i ? 11 : 0), middle],
        ],
        "wire",
        i > 0,
      );
      if (i) this.plus(middle);
      else this.start = middle;
      this.y = top - ROW.gap;
    });
    this.seam = this.start;
    if (embedNorm) this.trunkNorm("embed_norm", norm, 4);
    this.y -= 10;
  }

  /**
   * The frame around what is repeated, and how often.
   * @param {Stack} stack
   */
  block(stack) {
    const bottom = this.y;
    this.y -= 10;
    if (stack.sublayers === "sequential") this.sequential(stack);
    else this.parallel(stack);
    this.y -= 7;
    const height = bottom - this.y;
    const left = this.mirror ? EDGE - 8 : 0;
    this.below.append(
      svg("rect", { x: left, y: this.y, width: this.width - EDGE + 8, height, rx: 12, class: "frame" }),
    );
    this.text(
      this.x(this.right),
      this.y - 9,
      `× ${stack.layers}${stack.shared ? ", shared" : ""}`,
      "times",
      this.mirror ? "start" : "end",
    );
    this.y -= stack.finalNorm ? 0 : 8;
  }

  /** @param {Stack} stack */
  sequential(stack) {
    const { attention, cross, mlp } = stack;
    this.sublayer(
      stack,
      "norm1",
      (at, top, width) => this.attention("attn", "attention", attention, at, top, width),
      heightOfAttention(attention),
    );
    if (cross) {
      /** @type {Parameters<Pen["sublayer"]>[2]} */
      const draw = (at, top, width) => {
        const box = this.attention("cross_attn", "cross-attention", cross, at, top, width);
        this.cross = { x: this.mirror ? box.left : box.left + box.width, y: top + box.height / 2 };
      };
      this.sublayer(stack, "norm_cross", draw, heightOfAttention(cross));
    }
    const { width: d } = stack;
    if (mlp)
      this.sublayer(stack, "norm2", (at, top, width) => this.mlp({ width: d, mlp }, at, top, width), HEIGHT_OF_MLP);
  }

  /**
   * @param {Stack} stack
   * @param {string} norm
   * @param {(at: number, top: number, width: number) => void} draw
   * @param {number} height
   */
  sublayer(stack, norm, draw, height) {
    const middle = COLUMN + PILL.width / 2;
    const leaves = this.y;
    this.path([
      [TRUNK, leaves],
      [middle, leaves],
      [middle, leaves - 12],
    ]);
    this.y -= 12;
    if (stack.norm && normsStream(stack)) this.branchNorm(norm, stack.norm, middle);
    this.y -= height;
    draw(COLUMN, this.y, this.right - COLUMN);
    this.wire(middle, 10);
    if (stack.norm && normsOutput(stack)) this.branchNorm(`${norm}_after`, stack.norm, middle);
    this.join(stack, leaves, middle);
    if (stack.norm && stack.place === "after") this.trunkNorm(norm, stack.norm, 6);
    this.y -= 7;
  }

  /** @param {Stack} stack */
  parallel(stack) {
    const gap = 12;
    const half = (this.right - COLUMN - (stack.mlp ? gap : 0)) / (stack.mlp ? 2 : 1);
    const columns = stack.mlp ? [COLUMN, COLUMN + half + gap] : [COLUMN];
    const middles = columns.map((at) => at + PILL.width / 2);
    const shared = stack.sublayers === "parallel_one_norm";
    const leaves = this.y;
    this.path([
      [TRUNK, leaves],
      [middles[0], leaves],
      [middles[0], leaves - 12],
    ]);
    this.y -= 12;
    const begins = this.y;
    const normed = stack.norm && normsStream(stack);
    if (normed) {
      this.branchNorm("norm1", stack.norm, middles[0]);
      if (!shared && middles[1]) {
        this.y = begins;
        this.path([
          [middles[0], leaves],
          [middles[1], leaves],
          [middles[1], leaves - 12],
        ]);
        this.branchNorm("norm2", stack.norm, middles[1]);
      }
    }
    if (middles[1] && (shared || !normed))
      this.path([
        [middles[0], this.y + 5],
        [middles[1], this.y + 5],
        [middles[1], this.y],
      ]);
    const height = Math.max(heightOfAttention(stack.attention), HEIGHT_OF_MLP + LINE);
    this.y -= height;
    this.attention("attn", "attention", stack.attention, columns[0], this.y, half, height);
    const { width: d, mlp } = stack;
    if (mlp) this.mlp({ width: d, mlp }, columns[1], this.y, half, height);
    const top = this.y;
    for (const [i, middle] of middles.entries()) {
      this.y = top;
      this.wire(middle, 12);
      if (stack.norm && normsOutput(stack)) this.branchNorm(`norm${i + 1}_after`, stack.norm, middle);
    }
    if (middles[1])
      this.path([
        [middles[1], this.y],
        [middles[0], this.y],
      ]);
    this.join(stack, leaves, middles[0]);
    this.y -= 9;
  }

  /**
   * A branch comes back to the stream; without a residual connection it becomes the stream.
   * @param {Stack} stack
   * @param {number} leaves
   * @param {number} middle
   */
  join(stack, leaves, middle) {
    const level = this.y;
    this.stream(leaves);
    if (stack.residual) {
      this.path(
        [
          [middle, level],
          [TRUNK + 11, level],
        ],
        "wire",
        true,
      );
      this.plus(level);
    } else {
      this.path([
        [middle, level],
        [TRUNK, level],
      ]);
      this.seam = level;
    }
    if (stack.scale) this.text(this.x((middle + TRUNK) / 2), level - 6, `× ${stack.scale}`, "note", "middle");
    this.y = level - 10;
  }

  /**
   * @param {string} id
   * @param {string} name
   * @param {number} middle
   */
  branchNorm(id, name, middle) {
    this.y -= PILL.height;
    this.pill(id, name, middle, this.y);
    this.wire(middle, 10);
  }

  /**
   * @param {number} middle
   * @param {number} length
   */
  wire(middle, length) {
    this.path([
      [middle, this.y],
      [middle, this.y - length],
    ]);
    this.y -= length;
  }

  /**
   * @param {string} id
   * @param {string} name
   * @param {number} gap
   */
  trunkNorm(id, name, gap) {
    this.y -= gap;
    this.stream(this.y);
    this.y -= PILL.height;
    this.pill(id, name, TRUNK, this.y);
    this.seam = this.y;
    this.y -= 6;
  }

  /**
   * @param {string} id
   * @param {string} name
   * @param {number} middle
   * @param {number} top
   */
  pill(id, name, middle, top) {
    this.target(
      id,
      id === "final_norm" ? `final ${name}` : name,
      middle - PILL.width / 2,
      top,
      PILL.width,
      PILL.height,
      "role-soft",
      (group, left) => {
        group.append(
          svg("text", { x: left + PILL.width / 2, y: top + 18, class: "pill-text", "text-anchor": "middle" }, name),
        );
      },
    );
  }

  /** @param {number} y */
  plus(y) {
    const x = this.x(TRUNK);
    this.boxes.append(
      svg("circle", { cx: x, cy: y, r: 10, class: "plus" }),
      svg("path", { d: `M${x - 5} ${y}h10M${x} ${y - 5}v10`, class: "plus-sign" }),
    );
  }

  /**
   * The stream, from where it was last drawn up to `y`.
   * @param {number} y
   */
  stream(y) {
    this.path(
      [
        [TRUNK, this.seam],
        [TRUNK, y],
      ],
      "stream",
    );
    this.seam = y;
  }

  /** @param {number} length */
  rise(length) {
    this.y -= length;
    this.stream(this.y);
  }

  /** @param {Ends} ends */
  ends({ boxes, out }) {
    this.y -= 14;
    const [left, right] = [0, this.right];
    const gap = 10;
    if (boxes.length) {
      const width = (right - left - gap * (boxes.length - 1)) / boxes.length;
      const height = 54;
      const middles = boxes.map((_, i) => left + i * (width + gap) + width / 2);
      this.stream(this.y);
      const level = this.y;
      this.y -= 10;
      this.path(
        [
          [TRUNK, level],
          [TRUNK, this.y],
        ],
        boxes.length > 1 ? "wire" : "stream",
      );
      for (const middle of middles.slice(1))
        this.path([
          [TRUNK, level],
          [middle, level],
          [middle, this.y],
        ]);
      this.y -= height;
      boxes.forEach((box, i) => {
        const top = this.y;
        this.target(box.id, box.label, left + i * (width + gap), top, width, height, `role-${box.id}`, (group, at) => {
          group.append(svg("text", { x: at + 12, y: top + 23, class: "title" }, box.label));
          group.append(svg("text", { x: at + 12, y: top + 43, class: "detail" }, box.detail));
        });
      });
      this.path(
        [
          [middles[middles.length - 1], this.y],
          [middles[middles.length - 1], this.y - 18],
        ],
        "wire",
        true,
      );
      this.text(this.x(middles[middles.length - 1]), this.y - 25, out, "note strong", "middle");
      this.y -= 44;
    } else {
      this.rise(10);
      this.text(this.x(TRUNK + 14), this.y + 6, out, "note strong", this.mirror ? "end" : "start");
      this.y -= 12;
    }
  }

  /**
   * The dashed line of a tied head, from it down to the table of tokens.
   * @param {Ends | null} ends
   */
  finish(ends) {
    if (!ends?.tied || this.prefix) return;
    const box = this.boxes.querySelector('[data-block="head"] .face');
    const y = Number(box?.getAttribute("y")) + Number(box?.getAttribute("height")) / 2;
    const outside = this.width - 2;
    this.path(
      [
        [this.right, y],
        [outside, y],
        [outside, this.start],
        [this.right + 3, this.start],
      ],
      "tie",
      true,
    );
  }

  /**
   * @param {string} id
   * @param {string} title
   * @param {Attention} made
   * @param {number} at
   * @param {number} top
   * @param {number} width
   */
  attention(id, title, made, at, top, width, height = heightOfAttention(made)) {
    return this.target(id, title, at, top, width, height, "role-attention", (group, left, y, count) => {
      const place = placed(left, width);
      maskGlyph(group, made, place.glyph, y + 12, place.size);
      const bold = Math.min(16, (16 * place.beside) / measure(title, 16, 600));
      group.append(svg("text", { x: place.text, y: y + 25, class: "title", style: `font-size:${bold}px` }, title));
      if (count && !place.narrow)
        group.append(...numberAt(left + width - 12, y + 25, count, place.room - measure(title, 16, 600) - 10));
      this.detail(group, place.text, y + 25 + LINE, `${counted(made.heads, "head")} × ${made.dHead}`, place.beside);
      headTicks(group, made, place.text, y + 25 + LINE + 8, Math.min(place.room, 190));
      notesOf(made).forEach((note, i) =>
        this.detail(group, place.text, y + 25 + 2 * LINE + 18 + i * 17, note, place.room),
      );
    });
  }

  /**
   * @param {{ width: number, mlp: Mlp }} stack
   * @param {number} at
   * @param {number} top
   * @param {number} width
   */
  mlp({ width: d, mlp }, at, top, width, height = HEIGHT_OF_MLP) {
    this.target("mlp", "MLP", at, top, width, height, "role-mlp", (group, left, y, count) => {
      const place = placed(left, width);
      mlpGlyph(group, d, mlp, place.glyph, y + 12, place.size);
      group.append(svg("text", { x: place.text, y: y + 25, class: "title" }, mlp.title));
      if (count && !place.narrow) group.append(...numberAt(left + width - 12, y + 25, count, place.room - 50));
      const widths = [d, mlp.width, d].map((wide) => wide.toLocaleString("en"));
      this.detail(
        group,
        place.text,
        y + 25 + LINE,
        place.narrow ? `→ ${widths[1]} →` : widths.join(" → "),
        place.beside,
      );
      this.detail(group, place.text, y + 25 + 2 * LINE, mlp.note, place.room);
    });
  }

  /**
   * A line of small text, smaller still where it would not fit into `room`.
   * @param {SVGElement} group
   * @param {number} x
   * @param {number} y
   * @param {string} words
   * @param {number} room
   */
  detail(group, x, y, words, room) {
    const size = Math.min(13.5, (13.5 * room) / measure(words, 13.8));
    group.append(svg("text", { x, y, class: "detail", style: `font-size:${size}px` }, words));
  }
}

/**
 * Where picture and words of a box go: side by side, or, in a narrow one, the picture in the corner behind the title.
 * @param {number} left
 * @param {number} width
 */
function placed(left, width) {
  const narrow = width < NARROW;
  const size = narrow ? 32 : GLYPH;
  const text = left + (narrow ? 12 : GLYPH + 26);
  const room = left + width - 12 - text;
  return {
    narrow,
    size,
    text,
    room,
    beside: narrow ? room - size - 6 : room,
    glyph: left + (narrow ? width - size - 12 : 12),
  };
}

/** @param {Attention} made */
function notesOf(made) {
  return made.kvHeads === made.heads ? made.notes : [`${made.kvHeads} of keys and values`, ...made.notes];
}

const NARROW = 205;
const HEIGHT_OF_MLP = 72;

/**
 * Whether a sublayer reads the stream through a norm.
 * @param {Stack} stack
 */
const normsStream = (stack) => stack.place === "before" || stack.place === "around";

/**
 * Whether a norm stands between a sublayer and the stream that it adds to.
 * @param {Stack} stack
 */
const normsOutput = (stack) => stack.place === "output" || stack.place === "around";

/** @param {Attention} made */
function heightOfAttention(made) {
  const notes = notesOf(made).length;
  return Math.max(GLYPH + 24, 25 + LINE + 8 + 16 + notes * 17 + (notes ? 8 : 4));
}

/**
 * A number that ends at `x`, smaller where there is less room, and none where it could not be read.
 * @param {number} x
 * @param {number} y
 * @param {number} count
 * @param {number} room
 */
function numberAt(x, y, count, room) {
  const words = count.toLocaleString("en");
  const size = Math.min(13, room / (words.length * MONO));
  return size < 9
    ? []
    : [svg("text", { x, y, class: "number", "text-anchor": "end", style: `font-size:${size}px` }, words)];
}

/**
 * Who may attend to whom, in a square of a few tokens: rows are queries, columns keys.
 * @param {SVGElement} group
 * @param {Attention} made
 * @param {number} left
 * @param {number} top
 * @param {number} size
 */
function maskGlyph(group, { mask, window }, left, top, size) {
  const cell = size / CELLS;
  const prefix = CELLS / 2;
  for (const pos of range(0, CELLS)) {
    for (const key of range(0, CELLS)) {
      const back = key <= pos;
      const kind = { full: true, causal: back, prefix: back || key < prefix }[mask];
      const near = !window || Math.abs(pos - key) < 3;
      const shade = kind && near ? "cell seen" : "cell";
      group.append(
        svg("rect", { x: left + key * cell, y: top + pos * cell, width: cell - 1, height: cell - 1, class: shade }),
      );
    }
  }
}

/**
 * How wide the stream and the inner layer are; a gate is a second inner layer, multiplied.
 * @param {SVGElement} group
 * @param {number} d
 * @param {Mlp} mlp
 * @param {number} left
 * @param {number} top
 * @param {number} size
 */
function mlpGlyph(group, d, { width, gated }, left, top, size) {
  const narrow = Math.max(5, Math.min(size, (size * d) / Math.max(width, d)));
  const inner = Math.max(5, Math.min(size, (size * width) / Math.max(width, d)));
  const bar = 8;
  /**
   * @param {number} y
   * @param {number} w
   */
  const line = (y, w, x = left + (size - w) / 2) =>
    group.append(svg("rect", { x, y, width: w, height: bar, rx: 2, class: "bar" }));
  const middle = top + size / 2 - bar / 2;
  line(top, narrow);
  line(top + size - bar, narrow);
  if (gated) {
    line(middle - 6, inner);
    line(middle + 6, inner);
  } else line(middle, inner);
  const [a, b] = [(size - narrow) / 2, (size - inner) / 2];
  const shape = `M${left + a} ${top + bar}L${left + b} ${middle}M${left + size - a} ${top + bar}L${left + size - b} ${middle}M${left + b} ${middle + bar}L${left + a} ${top + size - bar}M${left + size - b} ${middle + bar}L${left + size - a} ${top + size - bar}`;
  if (!gated) group.prepend(svg("path", { d: shape, class: "bar-edge" }));
}

/**
 * A tick for each head's queries, and under them one for each head of keys and values, as wide as those that share it.
 * @param {SVGElement} group
 * @param {Attention} made
 * @param {number} left
 * @param {number} top
 * @param {number} room
 */
function headTicks(group, { heads, kvHeads }, left, top, room) {
  const pitch = Math.min(9, room / heads);
  const gap = pitch > 4 ? 2 : pitch > 2 ? 1 : 0.4;
  const rows = [
    { count: heads, wide: pitch, role: "query" },
    { count: kvHeads, wide: (pitch * heads) / kvHeads, role: "key" },
  ];
  rows.forEach(({ count, wide, role }, i) => {
    for (const head of range(0, count)) {
      group.append(
        svg("rect", { x: left + head * wide, y: top + i * 7, width: wide - gap, height: 5, class: `tick ${role}` }),
      );
    }
  });
}

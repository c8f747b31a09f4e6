// A text painted token by token, each tinted by its probability: what was given, and what was written after it; of a picture, its pixels. It is ours because
// tokens arrive while they are read, and hover, click and arrow keys go along them without a message.
import { make, pencil } from "../core/dom.js";
import { counted, percent } from "../core/format.js";
import { fraction } from "../core/place.js";
import { joinBytes } from "../core/token_kinds.js";
import { heading, turnsOf } from "../core/turns.js";

/**
 * @typedef {import("./generate.js").Page} Page
 * @typedef {import("./generate.js").Data} Data
 * @typedef {import("./generate.js").TextOf} TextOf
 * @typedef {import("./tree.js").Token} Token
 */

const DEEPEST = 54; // percent of the hue, at a probability of 1

/** @param {number} p */
function tint(p) {
  return `${Math.round(DEEPEST * Math.sqrt(p))}%`;
}

/** `look(at)`: a token is clicked, by its place among those that were written; `glance(at)`: the pointer is on it, null for none. */
export class Text {
  /** @type {HTMLElement[]} where what is written for each gap stands */
  gaps;
  /** @type {[ChildNode, HTMLElement][]} tokens of the prompt, each with what stands before it */
  givens = [];
  /** @type {HTMLElement[]} the buttons that fold a thinking part */
  folds = [];
  /** @type {Set<number>} first tokens of the parts that are folded */
  folded = new Set();
  /** @type {number} the gap that the prompt has filled last */
  filled;

  /**
   * @param {HTMLElement} root
   * @param {Page} page
   * @param {(at: number) => void} look
   * @param {(at: number | null) => void} glance
   */
  constructor(root, page, look, glance) {
    this.root = root;
    this.page = page;
    this.look = look;
    this.glance = glance;
    /** @type {{ span: HTMLElement, lead: ChildNode }[]} */
    this.spans = []; // of what was written
    /** @type {{ name: string, keys: number[] } | null} what stands there now */
    this.drawn = null;
    this.root.append(this.legend(), (this.place = make("div", "text-of")));
    this.place.tabIndex = 0;
    this.place.setAttribute("role", "group");
    this.place.addEventListener("click", (/** @type {MouseEvent} */ event) => this.pick(event));
    this.place.addEventListener("pointerover", (/** @type {PointerEvent} */ event) => this.hover(event));
    this.place.addEventListener("pointerleave", () => {
      page.tip(null);
      glance(null);
    });
    this.place.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.key(event));
  }

  legend() {
    const legend = make("p", "text-legend");
    const bar = make("span", "legend-bar");
    const given = make("span", "given-of", "given");
    const chosen = make("span", "chosen-of", "chosen by you");
    legend.append(given, make("span", "", "written, probability 0"), bar, make("span", "", "1"), chosen);
    return legend;
  }

  update() {
    const { page } = this;
    const { data, tree } = page;
    if (data.grid) return this.updatePixels();
    const path = tree.path();
    const name = JSON.stringify([data.trace, page.narrow]);
    const drawn = this.drawn?.name === name ? this.drawn : this.build(name);
    const keys = path.map(({ key }) => key);
    let alike = 0;
    while (alike < keys.length && drawn.keys[alike] === keys[alike]) alike++;
    for (const { span, lead } of this.spans.splice(alike)) for (const part of [lead, span]) part.remove();
    path.slice(alike).forEach((node, i) => this.put(node, alike + i));
    drawn.keys = keys;
    joinBytes(path.map(({ piece }) => piece)).forEach((shown, i) => write(this.spans[i].span, shown));
    this.showThoughts(path);
    this.mark(path);
  }

  updatePixels() {
    if (!this.pixels) {
      this.place.replaceChildren();
      this.pixels = new Pixels(this.place, this.page, this.look);
    }
    this.pixels.update();
  }

  /**
   * The prompt, with a place for what is written; gives what stands there then.
   * @param {string} name
   */
  build(name) {
    const { data } = this.page;
    const drawn = (this.drawn = { name, keys: [] });
    this.pixels = null;
    this.spans = [];
    this.givens = [];
    this.folded.clear();
    this.end = make("span", "caret");
    this.end.title = "what follows";
    this.end.dataset.at = "end";
    this.gaps = [];
    if (data.source)
      this.place.replaceChildren(this.part("source", data.source, []), this.part("target", data.prompt, [this.end]));
    else if (data.gap) this.place.replaceChildren(this.gapped());
    else this.place.replaceChildren(this.part("", data.prompt, [this.end]));
    this.place.setAttribute("aria-label", "the text; left and right go from token to token");
    return drawn;
  }

  /**
   * @param {string} title
   * @param {TextOf} text
   * @param {Node[]} more
   */
  part(title, text, more) {
    const part = make("div", "part");
    if (title) part.append(make("h3", "", title));
    const flow = make("div", "flow-of");
    const pieces = joinBytes(text.pieces);
    const tokens = pieces.map((piece, i) => given(piece, text.special[i], this.page.data.spaced));
    const turns = new Map(turnsOf(text.roles ?? []).map(({ role, first }) => [first, heading(role)]));
    flow.append(...tokens.flatMap((token, i) => [turns.get(i), ...token].filter(Boolean)), ...more);
    if (title !== "source") this.givens = tokens;
    part.append(flow);
    return part;
  }

  /** A text whose gaps are filled where they stand: the words behind the start token go to the first gap, those behind the next one to the next. */
  gapped() {
    const { prompt, spaced } = this.page.data;
    const gap = /** @type {NonNullable<Data["gap"]>} */ (this.page.data.gap);
    const flow = make("div", "flow-of");
    const [from, pieces] = [prompt.ids.indexOf(gap.start), joinBytes(prompt.pieces)];
    const begun = prompt.ids.slice(from);
    prompt.ids.slice(0, from).forEach((id, i) => {
      if (id !== gap.mask) return flow.append(...given(pieces[i], prompt.special[i], spaced));
      const hole = make("span", "gap-of");
      this.gaps.push(hole);
      flow.append(hole);
    });
    if (!this.gaps.length) this.gaps.push(flow.appendChild(make("span", "gap-of")));
    let filled = -1;
    begun.forEach((id, i) => {
      if (id === gap.start) filled++;
      else this.hole(filled).append(...given(pieces[from + i], prompt.special[from + i], spaced));
    });
    this.filled = filled;
    this.hole(filled).append(this.end);
    return flow;
  }

  /** @param {number} number */
  hole(number) {
    return this.gaps[Math.max(0, Math.min(this.gaps.length - 1, number))];
  }

  /**
   * @param {Token} node
   * @param {number} at
   */
  put(node, at) {
    const { data } = this.page;
    const [lead, span] = token(node.piece, data.spaced);
    span.classList.add("written");
    span.classList.toggle("ended", data.ends.includes(node.id));
    span.classList.toggle("chosen", Boolean(node.chosen));
    span.style.setProperty("--tint", tint(node.p));
    span.dataset.at = String(at);
    this.spans.push({ span, lead });
    const { gap } = data;
    if (!gap) return this.end.before(lead, span);
    const before = this.page.tree.path(node.key).filter(({ id }) => id === gap.start).length;
    const hole = this.hole(this.filled + before);
    if (this.end.parentElement !== hole) hole.append(this.end);
    this.end.before(lead, span);
  }

  /**
   * What the model thinks before it answers is one part of the text, which folds: from the mark that opens it to the one that closes it.
   * @param {Token[]} path
   */
  showThoughts(path) {
    const { data } = this.page;
    if (data.gap) return;
    const pieces = [...data.prompt.pieces, ...path.map(({ piece }) => piece)];
    const written = /** @type {typeof this.givens} */ (this.spans.map(({ lead, span }) => [lead, span]));
    const tokens = [...this.givens, ...written];
    for (const button of this.folds) button.remove();
    for (const [, span] of tokens) span.classList.remove("thought", "folded");
    this.folds = thoughtsOf(pieces, data.thinking).map(({ first, end, closed }) => {
      const button = make("button", "thought-fold");
      const folded = closed && this.folded.has(first);
      const within = tokens.slice(first, end);
      button.textContent = `${closed ? "thinking" : "thinking …"} · ${counted(end - first, "token")}`;
      button.setAttribute("aria-expanded", String(!folded));
      button.hidden = !closed;
      button.addEventListener("click", (/** @type {MouseEvent} */ event) => {
        event.stopPropagation();
        this.folded[folded ? "delete" : "add"](first);
        this.showThoughts(path);
      });
      for (const [, span] of within) {
        span.classList.add("thought");
        span.classList.toggle("folded", folded);
      }
      within[0]?.[0].before(button);
      return button;
    });
  }

  /** @param {Token[]} path */
  mark(path) {
    const { tree, run } = this.page;
    const at = tree.at ?? path.length - 1;
    this.picked?.classList.remove("picked");
    this.picked = this.spans[at]?.span;
    this.picked?.classList.add("picked");
    this.end.classList.toggle("picked", at >= path.length || !path.length);
    this.end.classList.toggle("writing", run.active);
    if (run.active) this.place.scrollTop = this.place.scrollHeight;
  }

  // --- pointer and keyboard ------------------------------------------------------------------------------------------------

  /** @param {Event} event */
  pick(event) {
    const { at } =
      /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("[data-at]"))?.dataset ?? {};
    if (at === undefined) return;
    this.look(at === "end" ? this.page.tree.path().length : Number(at));
  }

  /** @param {Event} event */
  hover(event) {
    const { at } =
      /** @type {HTMLElement | null | undefined} */ (/** @type {Element} */ (event.target).closest?.("[data-at]"))
        ?.dataset ?? {};
    const node = at === undefined || at === "end" ? null : this.page.tree.path()[Number(at)];
    if (node) this.page.tip(node.piece, percent(node.p));
    else this.page.tip(null);
    if (this.pixels) return;
    this.glance(node ? Number(at) : null);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { tree } = this.page;
    const count = tree.path().length;
    const at = tree.at ?? Math.max(0, count - 1);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: count }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.look(Math.max(0, Math.min(count, to)));
  }
}

/**
 * Parts of a text that a model thinks, from an opening mark to its closing one, both with them, or to the end: tokens `first` to `end` - 1.
 * @param {string[]} pieces
 * @param {[open: string, close: string][]} marks
 * @returns {{ first: number, end: number, closed: boolean }[]}
 */
export function thoughtsOf(pieces, marks) {
  const text = pieces.join("");
  /** @type {number[]} */
  const starts = [];
  pieces.reduce((at, piece) => (starts.push(at), at + piece.length), 0);
  /** @param {number} at */
  const tokenAt = (at) => starts.findLastIndex((start) => start <= at);
  const found = [];
  for (const [open, close] of marks) {
    for (let from = text.indexOf(open); from >= 0;) {
      const to = text.indexOf(close, from + open.length);
      found.push({
        first: tokenAt(from),
        end: to < 0 ? pieces.length : tokenAt(to + close.length - 1) + 1,
        closed: to >= 0,
      });
      from = to < 0 ? -1 : text.indexOf(open, to + close.length);
    }
  }
  return found;
}

/**
 * A token of the prompt, as `token` makes it.
 * @param {string} piece
 * @param {boolean} special
 * @param {boolean} spaced
 * @returns {[ChildNode, HTMLElement]}
 */
function given(piece, special, spaced) {
  const [lead, span] = token(piece, spaced);
  span.classList.add("given");
  span.classList.toggle("special", Boolean(special));
  return [lead, span];
}

/**
 * [what stands between it and the token before, the token]. The sign for a space is faint, and a line may break there; `spaced` where pieces have no
 * spaces of their own.
 * @param {string} piece
 * @param {boolean} spaced
 * @returns {[ChildNode, HTMLElement]}
 */
export function token(piece, spaced) {
  const span = make("bdi", "tok");
  const lead =
    spaced && !piece.startsWith("##") ? document.createTextNode(" ") : make(piece.startsWith("·") ? "wbr" : "span");
  write(span, piece);
  return [lead, span];
}

/**
 * What a token shows, where that is another text than it has.
 * @param {HTMLElement} span
 * @param {string} piece
 */
function write(span, piece) {
  if (span.dataset.shown === piece) return;
  span.dataset.shown = piece;
  if (piece.startsWith("·") && piece.length > 1) span.replaceChildren(make("i", "", "·"), piece.slice(1));
  else span.textContent = piece;
  if (piece.endsWith("\\n")) span.append(make("br")); // the sign of a line break, and one
}

const LARGEST = 340; // CSS pixels a side

/**
 * The colour of a pixel as CSS.
 * @param {Pick<Data, "arrays">} data
 * @param {number} id
 */
export function colourOf(data, id) {
  const { palette } = data.arrays;
  const channels = palette.shape[1];
  const rgb = Array.from({ length: 3 }, (_, c) =>
    Math.round(255 * palette.data[id * channels + (channels === 3 ? c : 0)]),
  );
  return `rgb(${rgb.join(" ")})`;
}

class Pixels {
  /**
   * @param {HTMLElement} root
   * @param {Page} page
   * @param {(at: number) => void} look
   */
  constructor(root, page, look) {
    this.root = root;
    this.page = page;
    this.look = look;
    this.canvas = make("canvas");
    this.mark = make("span", "pixel-mark");
    this.frame = make("div", "pixel-frame");
    this.frame.append(this.canvas, this.mark);
    this.note = make("p", "sentence");
    root.append(this.frame, this.note);
    this.canvas.addEventListener("click", (/** @type {MouseEvent} */ event) => {
      const at = this.at(event);
      if (at !== null) look(at);
    });
    this.canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => this.hover(this.at(event)));
    this.canvas.addEventListener("pointerleave", () => page.tip(null));
  }

  /** The pixels before the first that is written; the start token is none. */
  get given() {
    return this.page.data.prompt.ids.slice(1);
  }

  /**
   * Which of the written pixels the pointer is on.
   * @param {MouseEvent} event
   */
  at(event) {
    const { rows, columns } = /** @type {import("./generate.js").Pixels} */ (this.page.data.grid);
    const { x, y } = fraction(event, this.canvas);
    const [col, row] = [Math.floor(x * columns), Math.floor(y * rows)];
    const at = row * columns + col - this.given.length;
    return col >= 0 && col < columns && at >= 0 && at <= this.page.tree.path().length ? at : null;
  }

  /** @param {number | null} at */
  hover(at) {
    const node = at === null ? null : this.page.tree.path()[at];
    if (node) this.page.tip(`${this.place(at ?? 0)}: ${node.piece}`, percent(node.p));
    else this.page.tip(null);
  }

  /** @param {number} at */
  place(at) {
    const cell = at + this.given.length;
    const { columns } = /** @type {import("./generate.js").Pixels} */ (this.page.data.grid);
    return `row ${Math.floor(cell / columns) + 1}, column ${(cell % columns) + 1}`;
  }

  update() {
    const { page, canvas, given } = this;
    const { data, tree } = page;
    const { rows, columns } = /** @type {import("./generate.js").Pixels} */ (data.grid);
    const side = Math.max(2, Math.floor(Math.min(LARGEST, page.across - 40) / columns));
    const path = tree.path();
    const ids = [...given, ...path.map(({ id }) => id)];
    const scale = window.devicePixelRatio || 1;
    Object.assign(canvas, { width: columns * side * scale, height: rows * side * scale });
    canvas.style.width = `${columns * side}px`;
    canvas.style.height = `${rows * side}px`;
    const context = pencil(canvas);
    context.scale(scale, scale);
    ids.slice(0, rows * columns).forEach((id, cell) => {
      context.fillStyle = colourOf(data, id);
      context.fillRect((cell % columns) * side, Math.floor(cell / columns) * side, side, side);
    });
    const at = Math.min(tree.at ?? Math.max(0, path.length - 1), path.length) + given.length;
    this.mark.hidden = at >= rows * columns;
    this.mark.style.cssText = `left: ${(at % columns) * side}px; top: ${Math.floor(at / columns) * side}px; width: ${side}px; height: ${side}px`;
    this.bounds(context, side, columns, given.length);
    this.note.textContent = `${given.length} pixels given, ${path.length} of ${data.left} written; click one for its step.`;
  }

  /**
   * The line between what was given and what is written.
   * @param {CanvasRenderingContext2D} context
   * @param {number} side
   * @param {number} columns
   * @param {number} count
   */
  bounds(context, side, columns, count) {
    const [row, col] = [Math.floor(count / columns), count % columns];
    if (!count) return;
    context.strokeStyle = getComputedStyle(this.root).getPropertyValue("--probability");
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(0, (row + (col ? 1 : 0)) * side);
    if (col) {
      context.lineTo(col * side, (row + 1) * side);
      context.lineTo(col * side, row * side);
    }
    context.lineTo(columns * side, row * side);
    context.stroke();
  }
}

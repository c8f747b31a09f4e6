// The lines: queries at the left, keys at the right, and a curve for every weight between them, as thick and as dense as
// the weight is large. Several heads stand side by side, each in its colour; one token keeps its own curves only.
import { compared, editedCells, editedSign, roles } from "./colours.js";
import { choose, drawSquares, headAt, stroke, widthFor } from "./curves.js";
import { MOST_HEADS } from "./state.js";
import { at } from "../components/cells.js";
import { emptied } from "../components/cells_paint.js";
import { swatch } from "../components/picture.js";
import { make, pencil, range } from "../core/dom.js";
import { counted, percent } from "../core/format.js";
import { rows } from "../core/layout.js";
import { colour } from "../core/palette.js";
import { inside } from "../core/place.js";

/**
 * @typedef {import("./attention.js").Face} Face
 * @typedef {import("./attention.js").Change} Change
 * @typedef {import("./curves.js").Alone} Alone
 * @typedef {import("./state.js").Pair} Pair
 * @typedef {"query" | "key"} Kind
 * @typedef {{ hover: (i: number | null) => void, pick: (i: number) => void, release: () => void, across: () => void }} Heard
 * @typedef {{ kind: Kind, pieces: string[], special: ArrayLike<unknown>, pitch: number,
 *   picture: import("../components/picture.js").Pixels | null | undefined, grid: import("../components/picture.js").Grid | null }} Tokens
 */

const LEAST = 0.01; // the smallest weight drawn at first
const STEPS = 200; // of the slider, in the square root of the weight
const TOKENS = [56, 150]; // CSS pixels of a column of tokens
const NAMES = { query: "queries", key: "keys" };

/**
 * The view `Lines` of attention.js.
 * @param {HTMLElement} root
 * @param {Face} page
 */
export function mount(root, page) {
  return new Lines(root, page);
}

class Lines {
  /** @type {Pair[]} the heads */
  compared;
  /** @type {string[]} of which colour each is */
  roles;
  /** @type {number} CSS pixels of a row */
  pitch;
  /** @type {{ squares: number, tokens: number, width: number, left: number, right: number }} across, CSS pixels */
  sizes;
  /** @type {ReturnType<typeof column>} the queries */
  left;
  /** @type {ReturnType<typeof column>} the keys */
  right;
  /** @type {HTMLCanvasElement | undefined} */
  canvas;
  /** @type {number | undefined} where the slider is dragged to */
  dragged;
  /** @type {string | undefined} */
  made;

  /**
   * @param {HTMLElement} root
   * @param {Face} page
   */
  constructor(root, page) {
    this.root = root;
    this.page = page;
    /** @type {Alone | null} */
    this.pointed = null;
    this.frame = 0;
    this.edition = -1;
    this.legend = "";
    root.classList.add("attention-lines");
    root.loupe = this; // for tests: the curves behind the picture
    this.heads = make("div", "lines-bar lines-heads");
    this.slider = this.least();
    this.names = make("div", "lines-names");
    /** @type {HTMLElement} */
    this.scroller = make("div", "lines-scroll");
    this.note = make("p", "lines-note");
    this.sign = editedSign("line", "edited: put there by a what-if");
    root.append(this.heads, this.names, this.scroller, this.sign, this.note);
    this.scroller.addEventListener("scroll", () => this.soon());
    this.resize = new ResizeObserver(() => this.soon());
    this.resize.observe(this.scroller);
  }

  destroy() {
    cancelAnimationFrame(this.frame);
    this.resize.disconnect();
    this.root.classList.remove("attention-lines");
    this.root.replaceChildren();
  }

  update() {
    const { page } = this;
    this.compared = compared(page).sort(([l, h], [m, i]) => l - m || h - i);
    this.roles = roles(page, this.compared);
    const made = [page.edition, page.width, this.compared.length].join();
    if (this.made !== made) this.build();
    this.made = made;
    this.showHeads();
    this.slider.show();
    this.fetch();
    this.soon();
  }

  /** The pointer is elsewhere on the page: a row that it names is isolated here too. */
  mark() {
    this.soon();
  }

  // --- what is looked at -------------------------------------------------------------------------------------------------

  /**
   * The token that keeps its curves: under the pointer, or the one that was picked; null where all are drawn.
   * @returns {Alone | null}
   */
  get only() {
    const { page } = this;
    const { isolated, query, key } = page.state;
    if (this.pointed) return this.pointed;
    const { row = null, col = null, only } = page.hover ?? {};
    if (only && col !== null) return { key: col };
    if (row !== null) return { query: row };
    return isolated === "query" ? { query } : isolated === "key" ? { key } : null;
  }

  get smallest() {
    const { least } = this.page.state;
    return typeof least === "number" && least >= 0 && least <= 1 ? least : LEAST;
  }

  patterns() {
    return this.compared.map(([layer, head]) => this.page.pattern(layer, head));
  }

  /** The curves that are drawn now; for tests too. */
  drawn() {
    return choose(this.patterns(), this.slider.value(), this.only);
  }

  // --- the parts ---------------------------------------------------------------------------------------------------------

  build() {
    const { page, compared: heads } = this;
    const { trace } = page;
    const across = trace.keys(page.hook("pattern"));
    const most = Math.max(trace.length, across.length);
    this.pitch = rows(most, page.narrow).pitch;
    const squares = widthFor(heads.length, page.narrow);
    const tokens = Math.max(
      TOKENS[0],
      Math.min(page.narrow ? 84 : TOKENS[1], widest([...trace.pieces, ...across]) + (trace.grid ? 34 : 18)),
    );
    this.sizes = {
      squares,
      tokens,
      width: page.width,
      left: squares + tokens + 4,
      right: page.width - squares - tokens - 4,
    };
    const canvas = make("canvas");
    canvas.setAttribute("role", "img");
    this.canvas = canvas;
    const inner = make("div", "lines-inner");
    inner.style.gridTemplateColumns = `${squares}px ${tokens}px minmax(0, 1fr) ${tokens}px ${squares}px`;
    inner.style.height = `${most * this.pitch}px`;
    const said = page.state.focus === "cross_attn" ? ["target", "source"] : [trace.called, trace.called];
    this.names.replaceChildren(
      make("span", "", `queries · ${said[0]}`),
      this.slider.element,
      make("span", "", `keys · ${said[1]}`),
    );
    this.names.classList.toggle("stacked", page.narrow);
    this.names.style.setProperty("--aside", `${Math.max(0, squares - 2)}px`);
    this.left = column(this.tokens("query", trace.pieces, trace.special), this.hears("query"));
    this.right = column(this.tokens("key", across, page.specialKeys), this.hears("key"));
    inner.append(canvas, this.left.element, this.right.element);
    this.scroller.replaceChildren(inner);
    inner.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => this.onSquare(event, inner));
    inner.addEventListener("pointerleave", () => this.page.tip(null));
  }

  /**
   * @param {Kind} kind
   * @param {string[]} pieces
   * @param {boolean[]} special
   * @returns {Tokens}
   */
  tokens(kind, pieces, special) {
    const { trace } = this.page;
    const picture = trace.source ? null : trace.arrays.picture;
    return { kind, pieces, special, pitch: this.pitch, picture, grid: trace.grid };
  }

  /**
   * What the tokens of a column do.
   * @param {Kind} kind
   * @returns {Heard}
   */
  hears(kind) {
    const { page } = this;
    /** @param {number} i */
    const row = (i) => (kind === "query" ? { row: i, col: null } : { row: page.state.query, col: i, only: true });
    /** @param {number} i */
    const alone = (i) => (kind === "query" ? { query: i } : { key: i });
    return {
      hover: (i) => {
        this.pointed = i === null ? null : alone(i);
        if (i !== null) this.fetch();
        page.point(i === null ? null : row(i));
      },
      pick: (i) => {
        const again = page.state.isolated === kind && page.state[kind] === i;
        page.go({ [kind]: i, isolated: again ? undefined : kind });
        if (!again) page.tell(this.spoken(alone(i)));
      },
      release: () => page.go({ isolated: undefined }),
      across: () =>
        (kind === "query" ? this.right : this.left).focus(page.state[kind === "query" ? "key" : "query"] ?? 0),
    };
  }

  /** Which lines are drawn, and what squares say, are exact: what is here in bytes only is fetched. */
  fetch() {
    const { trace } = this.page;
    this.compared.forEach(([layer]) => {
      if (trace.has(`blocks.${layer}.${this.page.state.focus}.pattern`)) return;
      trace.fetch(layer).then(
        () => this.soon(),
        (error) => (this.note.textContent = error.message),
      );
    });
  }

  showHeads() {
    const { page, compared: heads } = this;
    const state = JSON.stringify([
      heads,
      page.state.layer,
      page.state.head,
      this.roles,
      page.trace.model.heads,
      page.narrow,
    ]);
    if (state === this.legend) return;
    this.legend = state;
    const chips = heads.map((one, i) => this.chip(one, this.roles[i], heads.length > 1));
    this.heads.replaceChildren(...chips, ...this.shortcuts());
  }

  /**
   * @param {Pair} which
   * @param {string} role
   * @param {boolean} several
   */
  chip([layer, head], role, several) {
    const { page } = this;
    const shown = several && layer === page.state.layer && head === page.state.head;
    const chip = make("span", shown ? "lines-head shown" : "lines-head");
    const name = `block ${layer + 1} · head ${head + 1}`;
    const show = make("button");
    const patch = make("span", "lines-colour");
    patch.style.background = `var(--${role})`;
    show.append(patch, make("span", "", this.compared.length > 6 || page.narrow ? `${layer + 1}.${head + 1}` : name));
    show.setAttribute("aria-label", `${name}: make it the shown one`);
    show.title = name;
    show.addEventListener("click", () => page.go({ layer, head }));
    chip.append(show);
    if (!several) return chip;
    const remove = make("button", "", "×");
    remove.setAttribute("aria-label", `take ${name} out`);
    remove.addEventListener("click", () =>
      page.go({ heads: this.compared.filter(([l, h]) => l !== layer || h !== head) }),
    );
    chip.append(remove);
    return chip;
  }

  shortcuts() {
    const { page } = this;
    const { layer, head } = page.state;
    const { heads } = page.trace.model;
    /**
     * @param {string} text
     * @param {Change} change
     */
    const button = (text, change) => {
      const element = make("button", "lines-more", text);
      element.addEventListener("click", () => page.go(change));
      return element;
    };
    /** @type {Pair[]} */
    const every = range(0, heads).map((one) => [layer, one]);
    const whole = range(0, heads).every((one) => this.compared.some(([l, h]) => l === layer && h === one));
    const all =
      heads > 1 && heads <= MOST_HEADS && !whole ? [button(`all heads of block ${layer + 1}`, { heads: every })] : [];
    return this.compared.length > 1 ? [...all, button("only the shown one", { heads: [[layer, head]] })] : all;
  }

  least() {
    const element = make("label", "lines-least", "draw weights from");
    const input = make("input");
    Object.assign(input, { type: "range", min: 0, max: STEPS, step: 1 });
    input.setAttribute("aria-label", "smallest weight drawn");
    const said = make("output");
    element.append(input, said);
    const value = () => (this.dragged === undefined ? this.smallest : this.dragged);
    const show = () => {
      input.value = Math.round(STEPS * Math.sqrt(value()));
      said.textContent = percent(value());
      input.setAttribute("aria-valuetext", percent(value()));
    };
    input.addEventListener("input", () => {
      this.dragged = (Number(input.value) / STEPS) ** 2;
      show();
      this.soon();
    });
    input.addEventListener("change", () => {
      const least = Number(((Number(input.value) / STEPS) ** 2).toPrecision(4));
      this.dragged = undefined;
      this.page.go({ least: least === LEAST ? undefined : least });
    });
    return { element, show, value };
  }

  // --- the drawing -------------------------------------------------------------------------------------------------------

  /** One drawing a frame, however often something changes. */
  soon() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    if (!this.canvas) return;
    const { only, sizes, pitch } = this;
    const patterns = this.patterns();
    const chosen = choose(patterns, this.slider.value(), only);
    const tall = Math.min(
      this.scroller.clientHeight,
      patterns[0].block.rows > patterns[0].block.cols ? patterns[0].block.rows * pitch : patterns[0].block.cols * pitch,
    );
    const context = fitted(this.canvas, sizes.width, tall);
    /** @type {Parameters<typeof stroke>[2]} */
    const seen = {
      left: sizes.left,
      right: sizes.right,
      hues: this.roles.map((role) => colour(this.root, role)),
      pitch,
      top: this.scroller.scrollTop,
      tall,
      alone: Boolean(only),
      ...this.edited(),
    };
    stroke(context, chosen.curves, seen);
    if (only) drawSquares(context, this.root, patterns, only, { ...seen, ...sizes, narrow: this.page.narrow });
    this.left.light(only ? (only.query ?? null) : this.page.state.query);
    this.right.light(only ? (only.key ?? null) : this.page.state.key);
    this.canvas.setAttribute("aria-label", `${counted(chosen.curves.length, "line")} from queries to keys`);
    this.say(chosen, only);
  }

  /**
   * Which curves are of cells that an edit put there.
   * @returns {Pick<Parameters<typeof stroke>[2], "edited" | "dashed">}
   */
  edited() {
    const blocks = this.compared.map(([layer, head]) => editedCells(this.page, layer, head));
    this.sign.hidden = !blocks.some(Boolean);
    if (this.sign.hidden) return {};
    return {
      edited: ({ head, query, key }) => {
        const block = blocks[head];
        return block !== undefined && at(block, query, key) > 0;
      },
      dashed: colour(this.root, "edited"),
    };
  }

  /**
   * @param {ReturnType<typeof choose>} chosen
   * @param {Alone | null} only
   */
  say({ curves, left, leftShare, cut }, only) {
    const { page } = this;
    const piece = only?.key !== undefined ? page.keys[only.key] : only && page.trace.pieces[only.query];
    const token = `“${piece}”`;
    const of = !only ? "" : only.key === undefined ? ` of what ${token} reads` : ` into ${token}`;
    const drawnNote = make(
      "strong",
      "",
      `${curves.length.toLocaleString("en")} ${curves.length === 1 ? "line" : "lines"}`,
    );
    const why =
      cut === null
        ? `weaker than ${percent(this.slider.value())}`
        : `weaker than ${percent(cut)}, the most that can be told apart`;
    const held = percent(leftShare);
    this.note.replaceChildren(
      drawnNote,
      `${of} drawn; `,
      left
        ? `${left.toLocaleString("en")} left out: ${why}, together ${held} of the weight${page.someKeys ? " on these keys" : ""}.`
        : "none left out.",
    );
    if (!only && !curves.length) this.note.append(" Draw from a smaller weight to see them.");
  }

  /** @param {Alone} only */
  spoken(only) {
    const { curves } = choose(this.patterns(), 0, only);
    const best = curves.at(-1);
    if (!best) return "no attention at all";
    const { page } = this;
    return `“${page.trace.pieces[best.query]}” gives “${page.keys[best.key]}” ${percent(best.weight)}, the most${only.key === undefined ? "" : " into it"}`;
  }

  /**
   * The pointer over a square: whose it is, and its weight.
   * @param {PointerEvent} event
   * @param {HTMLElement} inner
   */
  onSquare(event, inner) {
    const { only, sizes, page } = this;
    const { x, y } = inside(event, inner);
    const row = Math.floor(y / this.pitch);
    const reads = only?.query !== undefined;
    const head =
      only && headAt(reads ? x - sizes.width + sizes.squares : sizes.squares - x, this.compared.length, page.narrow);
    const [query, key] = only?.query !== undefined ? [only.query, row] : [row, only?.key ?? page.keys.length];
    if (head === null || !(query < page.trace.length) || !(key < page.keys.length)) return page.tip(null);
    const { block, max } = this.patterns()[head];
    const [layer, which] = this.compared[head];
    page.tip(
      `${layer + 1}.${which + 1}  ${page.trace.pieces[query]} → ${page.keys[key]}`,
      percent(at(block, query, key) / max),
    );
  }
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
function fitted(canvas, width, height) {
  const context = emptied(canvas, width, height);
  const dpr = window.devicePixelRatio || 1;
  context.setTransform(dpr, 0, 0, dpr, 0, 0);
  return context;
}

/**
 * The width of the widest piece, CSS pixels.
 * @param {string[]} pieces
 */
function widest(pieces) {
  const ruler = pencil(document.createElement("canvas"));
  ruler.font = `600 14px ${getComputedStyle(document.body).fontFamily}`;
  return Math.max(...pieces.map((piece) => ruler.measureText(piece).width));
}

// --- a column of tokens that are pointed at and picked: one of them is in the tab order, arrow keys walk over the others ---

/**
 * data = {kind: "query" | "key", pieces, special, pitch, picture?, grid?}; heard = {hover(i | null), pick(i), release(), across()}.
 * Gives {element, light(i | null), focus(i)}.
 * @param {Tokens} data
 * @param {Heard} heard
 */
function column({ kind, pieces, special, pitch, picture, grid }, heard) {
  /** @type {HTMLElement} */
  const element = make("div", `lines-column of-${kind}`);
  element.setAttribute("role", "listbox");
  element.setAttribute("aria-label", NAMES[kind]);
  const tokens = pieces.map((piece, i) => {
    /** @type {HTMLButtonElement} */
    const token = make("button", "lines-token");
    token.setAttribute("role", "option");
    token.style.height = `${pitch}px`;
    token.style.fontSize = `${Math.min(14, pitch - 3)}px`;
    token.tabIndex = i ? -1 : 0;
    token.title = piece;
    const name = make("bdi", special[i] ? "special" : "", piece);
    const seen = picture && grid && swatch(picture, grid, i);
    token.append(...(seen ? [seen] : []), name);
    return token;
  });
  element.append(...tokens);
  /** @param {Event} event */
  const indexOf = ({ target }) =>
    target instanceof Element ? tokens.findIndex((token) => token === target.closest(".lines-token")) : -1;
  /** @param {number} i */
  const focus = (i) => {
    tokens.forEach((token, j) => (token.tabIndex = i === j ? 0 : -1));
    tokens[i]?.focus();
  };
  /** @type {number | null} */
  let pointed = null;
  /** @param {number | null} i */
  const point = (i) => {
    if (i === pointed) return;
    pointed = i;
    heard.hover(i);
  };
  element.addEventListener(
    "pointermove",
    (event) => event.pointerType !== "touch" && indexOf(event) >= 0 && point(indexOf(event)),
  );
  element.addEventListener("pointerleave", () => point(null));
  element.addEventListener(
    "focusin",
    (event) => event.target instanceof Element && event.target.matches(":focus-visible") && point(indexOf(event)),
  );
  element.addEventListener("focusout", () => point(null));
  element.addEventListener("click", (event) => indexOf(event) >= 0 && heard.pick(indexOf(event)));
  element.addEventListener("keydown", (event) => {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const here = indexOf(event);
    if (by) focus(Math.max(0, Math.min(tokens.length - 1, here + by)));
    else if (event.key === (kind === "query" ? "ArrowRight" : "ArrowLeft")) heard.across();
    else if (event.key === "Escape") heard.release();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  /** @param {number | null} lit */
  const light = (lit) => {
    tokens.forEach((token, i) => {
      token.classList.toggle("lit", i === lit);
      token.setAttribute("aria-selected", String(i === lit));
    });
  };
  return { element, light, focus };
}

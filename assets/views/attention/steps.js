// The steps of one head, side by side: raw products, scores, bias, mask, softmax, and how much each key then hands over. The
// same cell is lit in all of them with its number below, and the row it stands in is written out under them.
import { editedCells, editedSign, endOf } from "./colours.js";
import { factor, here, panels, plain, softmaxRow, topKeys, weightedPanel } from "./row.js";
import { at, extent, largest, mountCells } from "../components/cells.js";
import { axis, legend } from "../components/legend.js";
import { make } from "../core/dom.js";
import { counted, difference, equation, number, percent, read } from "../core/format.js";

/**
 * @typedef {import("./attention.js").Face} Face
 * @typedef {import("./row.js").Panel} Panel a step
 * @typedef {import("./row.js").Softmax} Softmax
 * @typedef {{ id: string, title: string, formula: string, block?: undefined }} Awaited a step that is being computed
 * @typedef {import("../components/cells.js").Where} Where
 * @typedef {import("../core/store.js").Answers["weighted"]["arrays"]} Weighted
 * @typedef {{ element: HTMLElement, update: (next: Panel) => void, cells: ReturnType<typeof mountCells> | null, value: HTMLElement | null,
 *   labels: HTMLElement[], keys: HTMLElement[] }} Shown
 * @typedef {(x: number) => string} Format
 * @typedef {{ score: string, power: string, write: Format, exact: Format }} KeyTexts
 * @typedef {{ top: string, total: string, holds: boolean, columns: KeyTexts[] }} Texts of a softmax
 */

const GAP = 18; // CSS pixels between two panels
const NARROWEST = 146; // a panel, for its title
const CELL = { least: 1, legible: 6.5, most: 36 }; // of a cell's side
const LABELS = { room: 74, from: 9.5 }; // tokens beside the first panel of a line, where rows are this high
const AXIS = 14; // CSS pixels of a cell that its key's name fits under
/** @type {Record<string, string>} */
const STAGES = {
  raw: "scores",
  scores: "scores",
  capped: "capped",
  biased: "bias",
  c2p: "c2p",
  p2c: "p2c",
  masked: "masked_scores",
  pattern: "pattern",
  weighted: "pattern",
};
/** @type {Record<string, [down: number, right: number]>} rows and columns that a key moves by */
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const PATIENCE = 250; // ms until the server is asked for what it multiplies
const MOST = 12; // keys
const MORE = 8; // digits of what all keys of a row share
const NAMES = 104; // CSS pixels of the names of the lines
const COLUMN = 77; // and of a key

/**
 * The view `Steps` of attention.js.
 * @param {HTMLElement} root
 * @param {Face} page
 */
export function mount(root, page) {
  return new Steps(root, page);
}

class Steps {
  /** @type {ReturnType<Steps["sizes"]>} */
  scale;
  /** @type {(Panel | Awaited)[]} the steps */
  list;
  /** @type {string} why the last step cannot be had */
  refused;
  /** @type {string | undefined} of what the last step is */
  about;

  /**
   * @param {HTMLElement} root
   * @param {Face} page
   */
  constructor(root, page) {
    this.root = root;
    this.page = page;
    /** @type {Shown[]} */
    this.shown = [];
    this.made = "";
    this.timer = 0;
    /** @type {Weighted | null} */
    this.answers = null;
    root.classList.add("attention-steps");
    root.loupe = this; // for tests: the numbers behind the picture
    this.title = make("h3", "steps-title");
    this.place = make("div", "steps-panels");
    this.place.tabIndex = 0;
    this.place.setAttribute("role", "group");
    this.place.setAttribute("aria-label", "the steps of this head; arrow keys move the cell");
    this.place.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.key(event));
    this.sign = make("p", "steps-edited");
    this.sign.append(editedSign("cells", "edited: set by a what-if, not computed from what comes before"));
    this.ledger = make("div");
    root.append(this.title, this.place, this.sign, this.ledger);
  }

  destroy() {
    clearTimeout(this.timer);
    this.root.classList.remove("attention-steps");
    this.root.replaceChildren();
  }

  update() {
    const { page } = this;
    if (
      !here(
        page,
        () => this.update(),
        (sentence) => this.refuse(sentence),
      )
    )
      return;
    const about = [page.trace.trace, page.trace.side, page.state.focus, page.state.layer].join();
    if (this.about !== about) this.ask(about);
    /** @type {(Panel | Awaited)[]} */
    const list = [
      ...panels(page),
      this.answers
        ? weightedPanel(page, this.answers)
        : { id: "weighted", title: "weighted values", formula: "|p · v W_O|" },
    ];
    const made = [page.edition, page.width, Boolean(this.answers), this.refused, list.map(({ id }) => id)].join();
    if (this.made !== made) this.build(list);
    else
      this.shown.forEach((panel, i) => {
        const step = list[i];
        if (step.block) panel.update(step);
      });
    this.made = made;
    this.list = list;
    this.written = write(this.ledger, page, list, (key) => page.go({ key }));
    this.sign.hidden = !this.edited();
    this.mark();
  }

  /** The cells that an edit put there, at a step or before it. */
  edited(id = "pattern") {
    const { state } = this.page;
    return editedCells(this.page, state.layer, state.head, STAGES[id]);
  }

  /** @param {string} sentence */
  refuse(sentence) {
    this.title.textContent = sentence;
    this.place.replaceChildren();
    this.ledger.replaceChildren();
    this.made = "";
  }

  /**
   * The lengths of what is handed over: the server multiplies for all heads of a layer at once.
   * @param {string} about
   */
  ask(about) {
    this.about = about;
    this.answers = null;
    this.refused = "";
    clearTimeout(this.timer);
    const { side } = this.page.trace;
    const { focus, layer } = this.page.state;
    /** @param {{ answers: Weighted } | { refused: string }} change */
    const settle = (change) =>
      about === this.about && this.root.isConnected && (Object.assign(this, change), this.update());
    this.timer = setTimeout(() => {
      this.page.request({ ask: "weighted", side, focus, layer }).then(
        ({ arrays }) => settle({ answers: arrays }),
        (error) => settle({ refused: error.message }),
      );
    }, PATIENCE);
  }

  // --- the panels --------------------------------------------------------------------------------------------------------

  /**
   * How large the panels are: as many side by side as stay legible, and never a cell below a pixel.
   * @param {number} count
   */
  sizes(count) {
    const { page } = this;
    const { rows, cols } = page.trace.block(page.hook("pattern"), page.state.head);
    /**
     * @param {number} n
     * @param {number} labels
     */
    const room = (n, labels) => (page.width - labels - (n - 1) * GAP) / n; // for a panel
    const least = Math.max(NARROWEST, cols * Math.max(CELL.least, Math.min(CELL.legible, 220 / cols)));
    let side = count;
    while (side > 1 && room(side, 0) < least) side = side === count && count > 3 ? Math.ceil(count / 2) : side - 1;
    const labelled = room(side, LABELS.room) >= Math.max(NARROWEST, LABELS.from * cols);
    const pitch = Math.max(CELL.least, Math.min(CELL.most, room(side, labelled ? LABELS.room : 0) / cols));
    return { side, pitch, width: pitch * cols, rows, cols, labelled };
  }

  /** @param {(Panel | Awaited)[]} list */
  build(list) {
    this.scale = this.sizes(list.length);
    const { side, width, labelled } = this.scale;
    this.place.style.maxWidth = `${(labelled ? LABELS.room : 0) + side * (Math.max(width, NARROWEST) + GAP)}px`;
    this.place.replaceChildren();
    this.shown = list.map((one, i) => this.panel(one, i % side === 0 && labelled));
  }

  /**
   * One step: its name, its matrix, what the lit cell holds, and what its colours mean.
   * @param {Panel | Awaited} one
   * @param {boolean} labelled
   * @returns {Shown}
   */
  panel(one, labelled) {
    const { page, scale } = this;
    const element = make("section", "steps-panel");
    element.dataset.step = one.id;
    element.style.width = `${Math.max(NARROWEST, scale.width) + (labelled ? LABELS.room : 0)}px`;
    element.style.paddingLeft = labelled ? `${LABELS.room}px` : "";
    const formula = make("p", "steps-formula", one.formula);
    element.append(make("h4", "", one.title), formula);
    this.place.append(element); // its colours are known once it is in the page
    if (!one.block) return this.waiting(element);
    const line = make("div", "steps-line");
    const labels = labelled ? this.labels(page.trace.pieces) : null;
    const room = make("div");
    line.append(...(labels ? [labels.element] : []), room);
    element.append(line);
    const held = { one };
    const cells = mountCells(room, this.drawn(one), (event, where) => this.onCell(event, where, held.one));
    const keys = scale.pitch >= AXIS ? axis(page.keys, scale.width) : null;
    const colours = legend(this.root, { role: one.role, scale: one.scale === "signed" ? "signed" : "unit", width: 72 });
    const value = make("p", "steps-value");
    element.append(...(keys ? [keys.element] : []), value, colours.element);
    if (one.made) element.append(make("p", "steps-made", `made of ${one.made}`));
    /** @param {Panel} next */
    const update = (next) => {
      held.one = next;
      cells.update(this.drawn(next));
      formula.textContent = next.formula;
      this.explain(colours, next);
    };
    this.explain(colours, one);
    return { element, update, cells, value, labels: labels?.labels ?? [], keys: keys?.labels ?? [] };
  }

  /**
   * @param {HTMLElement} element
   * @returns {Shown}
   */
  waiting(element) {
    element.append(make("p", "steps-waits", this.refused || "being computed …"));
    return { element, update() {}, cells: null, value: null, labels: [], keys: [] };
  }

  /** @param {string[]} pieces */
  labels(pieces) {
    const element = make("div", "steps-labels");
    element.style.width = `${LABELS.room}px`;
    const labels = pieces.map((piece) => {
      const label = make("bdi", "", piece);
      Object.assign(label.style, {
        height: `${this.scale.pitch}px`,
        lineHeight: `${this.scale.pitch}px`,
        fontSize: `${Math.min(12.5, this.scale.pitch - 1)}px`,
      });
      return label;
    });
    element.append(...labels);
    return { element, labels };
  }

  /**
   * Where the colours of a step end.
   * @param {Pick<Panel, "id" | "block" | "scale">} panel
   */
  ended({ id, block, scale }) {
    if (scale === "unit") return 1;
    return endOf(this.page, `step ${id}`, scale === "signed" ? extent(block) : largest(block));
  }

  /**
   * @param {Panel} panel
   * @returns {import("../components/cells.js").Picture}
   */
  drawn({ id, block, role, scale, title, hidden }) {
    const { pitch, width } = this.scale;
    const { state } = this.page;
    const max = this.ended({ id, block, scale });
    const label = `${title} of block ${state.layer + 1} head ${state.head + 1}: ${counted(block.rows, "query", "queries")} by ${counted(block.cols, "key")}`;
    return {
      block,
      role,
      scale: scale === "signed" ? "signed" : "unit",
      max,
      width,
      pitch,
      height: pitch >= 12 ? pitch - 2 : pitch >= 7 ? pitch - 1 : pitch,
      label,
      hidden,
      edited: this.edited(id),
    };
  }

  /**
   * @param {ReturnType<typeof legend>} colours
   * @param {Panel} one
   */
  explain(colours, one) {
    const end = this.ended(one);
    colours.show(one.block, end);
    if (one.scale === "length") colours.element.querySelector(".legend-text").textContent = `0 to ${number(end)}`;
  }

  // --- looking and picking -----------------------------------------------------------------------------------------------

  /**
   * The cell that is read: the one under the pointer, or the chosen one.
   * @returns {Where}
   */
  get cell() {
    const { hover, state } = this.page;
    const row = hover?.row ?? state.query;
    return { row, col: hover?.col ?? state.key };
  }

  mark() {
    const { page, cell } = this;
    if (!this.list) return;
    /**
     * @param {string} piece
     * @param {string} role
     */
    const name = (piece, role) => make("bdi", `role-${role}`, piece);
    this.title.replaceChildren(name(page.trace.pieces[cell.row], "query"), " reads ", name(page.keys[cell.col], "key"));
    this.shown.forEach(({ cells, value, labels, keys }, i) => {
      cells?.mark({ picked: cell, lit: cell.col });
      const step = this.list[i];
      if (value && step.block) value.textContent = this.spelled(step, cell);
      lit(labels, cell.row);
      lit(keys, cell.col);
    });
  }

  /**
   * @param {Pick<Panel, "block" | "scale">} panel
   * @param {Where} cell
   */
  spelled({ block, scale }, { row, col }) {
    const value = at(block, row, col);
    return scale === "unit" ? percent(value) : number(value);
  }

  /**
   * @param {"hover" | "pick"} event
   * @param {Where | null} where
   * @param {Panel} panel
   */
  onCell(event, where, panel) {
    const { page } = this;
    if (event === "pick" && where) return page.go({ query: where.row, key: where.col });
    page.point(where);
    if (!where) return page.tip(null);
    page.tip(`${panel.title}  ${page.trace.pieces[where.row]} → ${page.keys[where.col]}`, this.spelled(panel, where));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const move = MOVES[event.key];
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    const { page, scale } = this;
    /**
     * @param {number} i
     * @param {number} size
     */
    const inside = (i, size) => Math.max(0, Math.min(size - 1, i));
    page.go({
      query: inside(page.state.query + move[0], scale.rows),
      key: inside(page.state.key + move[1], scale.cols),
    });
    const weights = this.list.find(({ id }) => id === "pattern");
    if (weights?.block)
      page.tell(
        `“${page.trace.pieces[page.state.query]}” gives “${page.keys[page.state.key]}” ${this.spelled(weights, this.cell)}`,
      );
  }
}

/**
 * Lights one of `labels`, touching only what changes.
 * @param {HTMLElement[]} labels
 * @param {number} at
 */
function lit(labels, at) {
  const before = labels.findIndex((label) => label.classList.contains("lit"));
  if (before === at) return;
  labels[before]?.classList.remove("lit");
  labels[at]?.classList.add("lit");
}

// --- one row in numbers: its largest keys side by side, from the raw product down to the weight and the stored one ---

/**
 * Writes the row of `page` in `root`; `list` are the steps of row.js, `pick(key)` hears which key was clicked.
 * @param {HTMLElement} root
 * @param {Face} page
 * @param {(Panel | Awaited)[]} list
 * @param {(key: number) => void} pick
 */
function write(root, page, list, pick) {
  const { trace, state } = page;
  const block = page.hook("");
  const row = softmaxRow(trace, block, state.query, state.head);
  const stored = trace.row(page.hook("pattern"), state.query, state.head);
  const fits = Math.max(2, Math.min(MOST, stored.length, Math.floor((page.width - NAMES) / COLUMN)));
  const keys = topKeys(row.weights, fits, state.key);
  const texts = softmaxTexts(row, keys);
  root.replaceChildren(
    title(page),
    table(page, list, row, stored, keys, texts, pick),
    sum(page, row, stored, keys, texts),
  );
  return { keys, row, stored };
}

/** @param {Face} page */
function title(page) {
  const element = make("h3", "ledger-title");
  element.append("The row of ", make("bdi", "role-query", page.trace.pieces[page.state.query]), " in numbers");
  return element;
}

/**
 * @param {Face} page
 * @param {(Panel | Awaited)[]} list
 * @param {Softmax} row
 * @param {Cells} stored
 * @param {number[]} keys
 * @param {Texts} texts
 * @param {(key: number) => void} pick
 */
function table(page, list, row, stored, keys, texts, pick) {
  const element = make("table", "ledger");
  const { query, key } = page.state;
  /**
   * @param {string} name
   * @param {string[]} cells
   */
  const line = (name, cells, kind = "") => {
    const tr = make("tr", kind);
    const heading = make("th", "", name);
    heading.scope = "row";
    tr.append(heading, ...cells.map((text, i) => make("td", keys[i] === key ? "chosen" : "", text)));
    return tr;
  };
  /**
   * @param {string} id
   * @param {number} col
   */
  const value = (id, col) => {
    const block = list.find((panel) => panel.id === id)?.block;
    return block ? at(block, query, col) : NaN;
  };
  const scale = factor(page.trace, page.trace.block(page.hook("q"), page.state.head).cols);
  /** @type {Record<string, (col: number, i: number) => string>} */
  const leads = {
    raw: (col) => equation([value("raw", col)], (x) => x * scale, value("scores", col), brief).texts[0],
    masked: (col, i) =>
      equation([value("masked", col)], (s) => s / row.temperature, row.masked[col], texts.columns[i].write, brief)
        .texts[0],
  };
  /** @param {string} id */
  const of = (id) => keys.map(leads[id] ?? ((col) => brief(value(id, col))));
  const shown = list.filter(({ id }) => id !== "pattern" && id !== "weighted");
  const weighted = list.find(({ id }) => id === "weighted");
  const over = row.temperature === 1 ? "" : `/ ${plain(row.temperature)}`;
  const put = replaced(page, keys);
  element.append(
    heads(page, keys, pick),
    ...shown.map(({ id, title: name, formula }) =>
      line(
        { raw: "raw q·k", scores: `score ${formula.replace("q·k", "").replace(", not scaled", "")}` }[id] ?? name,
        of(id),
      ),
    ),
    ...(over
      ? [
          line(
            `${over} (temperature)`,
            texts.columns.map(({ score }) => score),
          ),
        ]
      : []),
    line(
      "e^(s − max)",
      texts.columns.map(({ power }) => power),
      "ruled",
    ),
    line(
      "/ Σ = p",
      keys.map((col) => (row.total ? percent(row.weights[col]) : "0\u00a0%")),
      "strong",
    ),
    line(
      put ? "edited p" : "stored p",
      keys.map((col) => percent(stored[col])),
      put ? "edited" : "",
    ),
    line(
      "difference",
      keys.map((col) => difference(row.weights[col] - stored[col])),
      "soft",
    ),
    ...(weighted?.block ? [line("|p · v W_O|", of("weighted"), "value")] : []),
  );
  return element;
}

/**
 * Whether an edit put one of these weights there, and not the softmax.
 * @param {Face} page
 * @param {number[]} keys
 */
function replaced(page, keys) {
  const { layer, head, query } = page.state;
  const [all, before] = ["pattern", "masked_scores"].map((stage) => editedCells(page, layer, head, stage));
  return all !== undefined && keys.some((col) => at(all, query, col) && !(before && at(before, query, col)));
}

/**
 * @param {Face} page
 * @param {number[]} keys
 * @param {(key: number) => void} pick
 */
function heads(page, keys, pick) {
  const tr = make("tr");
  const cells = keys.map((col) => {
    const cell = make("th");
    const button = make("button", col === page.state.key ? "ledger-key chosen" : "ledger-key");
    button.append(make("bdi", "", page.keys[col]));
    button.title = page.keys[col];
    button.setAttribute("aria-label", `key “${page.keys[col]}”, position ${col}`);
    button.addEventListener("click", () => pick(col));
    cell.append(button);
    return cell;
  });
  tr.append(make("th", "", "key"), ...cells);
  return tr;
}

/**
 * @param {Face} page
 * @param {Softmax} row
 * @param {Cells} stored
 * @param {number[]} keys
 * @param {Texts} texts
 */
function sum(page, row, stored, keys, { top, total }) {
  const element = make("p", "ledger-sum");
  if (!row.total) {
    element.textContent = "No key is allowed in this row: its weights are all 0, and the head's output is 0.";
    return element;
  }
  const count = stored.length + (page.trace.outside?.(page.state.query).count ?? 0);
  const rest = count - keys.length;
  const held = 1 - keys.reduce((all, col) => all + row.weights[col], 0);
  const others = rest
    ? ` The other ${rest.toLocaleString("en")} ${rest === 1 ? "key holds" : "keys hold"} ${percent(Math.max(0, held))}.`
    : "";
  element.textContent = `max = ${top}; Σ over ${count.toLocaleString("en")} ${count === 1 ? "key" : "keys"} of e^(s − max) = ${total}.${others}`;
  return element;
}

/**
 * The texts of a softmax over a row's `keys`, in which each line gives the next one as it is printed: {top, total, holds, columns}, of
 * each key {score, power, write, exact}, with `write` the format of its score and `exact` that of its power.
 * @param {Pick<Softmax, "top" | "total" | "masked" | "exponentials" | "weights">} row
 * @param {number[]} keys
 * @returns {Texts}
 */
export function softmaxTexts(row, keys, more = 0) {
  const [top, total] = [number(row.top, more), number(row.total, more)];
  let holds = true;
  const columns = keys.map((col) => {
    const [score, power, weight] = [row.masked[col], row.exponentials[col], row.weights[col]];
    const last = equation([power], (e) => e / read(total), weight, percent, brief);
    /** @param {number} e */
    const exact = (e) => brief(e, last.digits[0]);
    const first = equation([score], (s) => Math.exp(s - read(top)), power, exact, brief);
    holds &&= !Number.isFinite(score) || (first.sign === "=" && last.sign === "=");
    return {
      score: first.texts[0],
      power: exact(power),
      write: (/** @type {number} */ s) => brief(s, first.digits[0]),
      exact,
    };
  });
  return holds || more === MORE ? { top, total, holds, columns } : softmaxTexts(row, keys, more + 1);
}

/**
 * A number with four significant digits or `more`, so that twelve stand side by side.
 * @param {number} x
 */
function brief(x, more = 0) {
  if (!Number.isFinite(x) || x === 0) return number(x);
  const size = Math.abs(x);
  const text =
    size < 0.00095 || size >= 99999.5
      ? x.toExponential(2 + more)
      : size >= 999.5
        ? x.toFixed(more)
        : x.toPrecision(4 + more);
  return text.replace("e+", "e").replaceAll("-", "−");
}

// The page's skeleton: where every stage, panel, band and label stands. walkthrough.js fills the places and moves the marks.
import { extent, paint } from "../components/cells.js";
import { make, range, section } from "../core/dom.js";
import { number, percent } from "../core/format.js";
import { TIGHT } from "../core/layout.js";
import { follow } from "../core/place.js";
import { axis, legend, PERCENTILE } from "../components/legend.js";
import { mount as mountTokens } from "../components/tokens.js";
import { Trace } from "../core/trace.js";
import { nextStage, titleOf } from "./outcome.js";
import { about, sources, stageOf } from "./stages.js";

/**
 * @typedef {import("./walkthrough.js").Page} Page
 * @typedef {import("./walkthrough.js").State} State
 * @typedef {import("../core/trace.js").Model} Model
 * @typedef {import("./stages.js").Stage} Stage
 * @typedef {import("./stages.js").Panel} Panel
 * @typedef {ReturnType<typeof import("../core/layout.js").rows>} Rows
 * @typedef {{ id: string, hook: string }} Titled the stage whose title it is, and the hook of its panel
 * @typedef {{ panels: { place: HTMLElement, panel: Panel, legend: (block: Block) => void }[], tokens: { place: HTMLElement, ids: boolean }[],
 *   axes: { labels: HTMLElement[], crosses: boolean }[], lines: HTMLElement | null, bars: HTMLElement[], point: (where: Titled | null) => void,
 *   headgrid: HTMLElement, arithmetic: HTMLElement, picture?: HTMLElement, source?: (row: number | null) => void, next?: () => void, flow: HTMLElement,
 *   live: HTMLElement, about: () => void, sheet: (open: boolean) => void, scrollBack: () => void, title: () => void, facts: () => void,
 *   notice: (sentence: string) => void, bands: (pinned: number, hovered: number | null) => void, axis: (key: number | null, crosses: boolean) => void,
 *   tip: (where: string | null, value?: string) => void, show: (id: string) => void, reveal: (row: number) => void }} Parts
 */

/**
 * Builds the page in `page.element` and returns its places and the functions that move its marks.
 * @param {Page} page
 * @param {Stage[]} stages
 */
export function build(page, stages) {
  const scroll = { top: page.parts?.flow.scrollTop ?? 0, left: page.parts?.flow.scrollLeft ?? 0 };
  const { trace, state, narrow } = page;
  const parts = /** @type {Parts} */ (
    /** @type {Partial<Parts>} */ ({ panels: [], tokens: [], axes: [], lines: null, bars: [], point: () => {} })
  ); // the rest comes below
  const flow = make("div", "flow");
  flow.tabIndex = 0;
  flow.setAttribute("role", "group");
  flow.setAttribute(
    "aria-label",
    "the computation; arrow keys move the chosen cell, brackets the head, braces the block",
  );
  const line = make("div", "stages");
  const rowBand = make("div", "band pinned");
  const hoverBand = make("div", "band hovered");
  line.append(rowBand, hoverBand);

  const box = make("div", "block");
  const title = blockTitle(page);
  box.append(title.element);
  /** @type {Record<Stage["group"], HTMLElement[]>} */
  const groups = { in: [], block: [], out: [] };
  for (const stage of stages) groups[stage.group].push(buildStage(page, parts, stage));
  box.append(...groups.block);
  const before = range(0, state.layer).map((l) => mini(page, l));
  const after = range(state.layer + 1, trace.model.layers).map((l) => mini(page, l));
  const next = trace.reads ? nextStage(page, parts) : "";
  if (next) points(next.querySelector("button"), parts, { id: "next", hook: "" });
  if (narrow) line.append(next, jumps(page, stages)); // on a phone what the model gives comes first
  line.append(
    tokenStage(page, parts),
    ...groups.in,
    minis(before, "before"),
    box,
    minis(after, "after"),
    ...groups.out,
  );
  if (!narrow) line.append(next);
  flow.append(line);

  const below = make("div", "below");
  const grid = allHeads(page);
  const arithmetic = make("section", "panel-arithmetic");
  const told = explanation(page, stages);
  parts.point = told.point;
  if (narrow) arithmetic.append(closing(page, arithmetic), told.element);
  const facts = section(`This head, measured on this ${trace.grid ? "picture" : "text"}`, "");
  const list = make("dl", "facts");
  facts.append(list, hint());
  parts.headgrid = grid.appendChild(make("div"));
  grid.append(legend(page.element, { role: "attention", scale: "unit", width: 150 }).element);
  parts.arithmetic = arithmetic.appendChild(make("div"));
  grid.className = "all-heads";
  if (narrow)
    box.before(grid); // in reach of the block that it changes
  else below.append(grid);
  if (trace.grid) below.prepend(pictureSection(parts));
  below.classList.toggle("with-picture", Boolean(trace.grid));
  below.append(...(narrow ? [facts] : [arithmetic, facts]));

  const tip = make("div", "tip");
  tip.hidden = true;
  const live = make("output", "live");
  const notice = make("p", "notice", trace.notice ?? "");
  notice.hidden = !trace.notice;
  page.element.classList.toggle("narrow", narrow);
  page.element.classList.toggle("tight", !narrow && page.across < TIGHT);
  page.element.style.setProperty("--pitch", `${page.rows.pitch}px`);
  const stacksBefore = trace.sides.slice(0, trace.sides.indexOf(trace.side)).map((side) => folded(page, parts, side));
  const stacksAfter = trace.sides.slice(trace.sides.indexOf(trace.side) + 1).map((side) => folded(page, parts, side));
  page.element.replaceChildren(
    notice,
    ...stacksBefore,
    flow,
    ...(narrow ? [] : [told.element]),
    ...stacksAfter,
    below,
    ...(narrow ? [arithmetic] : []),
    tip,
    live,
  );
  flow.addEventListener("pointermove", (/** @type {MouseEvent} */ event) => follow(tip, event, 220));

  Object.assign(parts, {
    flow,
    about: told.show,
    /** @param {boolean} open */
    sheet: (open) => arithmetic.classList.toggle("shut", !open),
    live,
    scrollBack: () => flow.scrollTo(scroll),
    title: title.show,
    facts: () => fillFacts(list, page),
    /** @param {string} sentence */
    notice: (sentence) => {
      notice.textContent = sentence;
      notice.hidden = !sentence;
    },
    /**
     * @param {number} pinned
     * @param {number | null} hovered
     */
    bands: (pinned, hovered) => {
      placeBand(rowBand, pinned, page);
      placeBand(hoverBand, hovered === pinned ? null : hovered, page);
    },
    /**
     * @param {number | null} key
     * @param {boolean} crosses
     */
    axis: (key, crosses) => {
      for (const axis of parts.axes)
        axis.labels.forEach((label, i) => label.classList.toggle("as-key", axis.crosses === crosses && i === key));
    },
    /**
     * @param {string | null} where
     * @param {string} [value]
     */
    tip: (where, value) => {
      tip.hidden = where === null;
      if (where !== null) tip.replaceChildren(make("bdi", "", where), make("strong", "", value));
    },
    /** @param {string} id */
    show: (id) => flow.querySelector(`.stage-${id}`)?.scrollIntoView({ inline: "nearest", block: "nearest" }),
    /** @param {number} row */
    reveal: (row) => {
      const top = row * page.rows.pitch + HEAD;
      if (top < flow.scrollTop + HEAD) flow.scrollTop = top - HEAD;
      if (top + page.rows.pitch > flow.scrollTop + flow.clientHeight)
        flow.scrollTop = top + page.rows.pitch - flow.clientHeight;
    },
  });
  parts.title();
  parts.facts();
  return parts;
}

const LABELLED = 8; // CSS pixels a key must have for its piece to be written below
const HEAD = 66; // CSS pixels above the first row: block title and stage titles

/**
 * @param {Page} page
 * @param {Parts} parts
 * @param {Stage} stage
 */
function buildStage(page, parts, stage) {
  const { sizes, state, narrow, trace } = page;
  const open = state.open.has(stage.id);
  const section = make("section", `stage stage-${stage.id}${open ? " opened" : ""}`);
  const shown = open ? stage.open : stage.closed;
  const single = shown.length === 1;
  if (stage.lines && !narrow) {
    const lines = make("div", "lines");
    parts.lines = lines.appendChild(make("div", "body"));
    lines.prepend(make("div", "stage-head"));
    section.append(lines);
  } else if (stage.joint) section.append(joint(stage.joint));
  for (const [i, panel] of shown.entries()) {
    const column = make("div", "column");
    column.style.width = `${sizes.panel.get(panel)}px`;
    column.append(head(page, parts, stage, panel, single, i === 0));
    const row = make("div", "body");
    if (narrow) parts.tokens.push({ place: row.appendChild(make("div", "row-labels")), ids: false });
    const place = row.appendChild(make("div"));
    if (!narrow && !panel.source) place.style.marginTop = `${trace.begins(page.name(panel)) * page.rows.pitch}px`;
    const { element: below, show } = foot(page, parts, panel);
    column.append(row, below);
    if (narrow && open && i === 0) column.insertBefore(explained(page, stage, panel), row);
    parts.panels.push({ place, panel, legend: show });
    section.append(column);
  }
  return section;
}

/**
 * @param {Page} page
 * @param {Parts} parts
 * @param {Stage} stage
 * @param {Panel} panel
 * @param {boolean} single
 * @param {boolean} first
 */
function head(page, parts, stage, panel, single, first) {
  const element = make("div", "stage-head");
  const button = make("button", `role-${stage.role}`);
  const isOpen = page.state.open.has(stage.id);
  button.setAttribute("aria-expanded", String(isOpen));
  button.textContent = single ? stage.title : panel.title;
  button.title = isOpen ? `close ${stage.name}` : `open ${stage.name}: see its cells one by one`;
  if (stage.focus) button.title = `look at the ${stage.name} step by step`;
  button.dataset.means = ""; // what its term means is added to its title
  const where = { id: stage.id, hook: panel.hook };
  button.addEventListener("click", () => {
    page.explainedTitle = where;
    if (stage.focus) page.go({ focus: stage.focus });
    else page.toggle(stage.id);
  });
  if (first || single) button.dataset.stage = stage.id;
  points(button, parts, where);
  const formula = make("span", "formula", single ? stage.formula : (panel.formula ?? ""));
  if (page.trace.edited.some((hook) => touches(hook, page.trace.named(page.name(panel))))) {
    formula.textContent = "edited";
    formula.classList.add("role-edited");
  }
  element.append(button, formula);
  return element;
}

/**
 * While a title is pointed at or has the focus, what its stage does is explained.
 * @param {HTMLElement} title
 * @param {Parts} parts
 * @param {Titled} where
 */
function points(title, parts, where) {
  for (const event of ["pointerenter", "focus"]) title.addEventListener(event, () => parts.point(where));
  for (const event of ["pointerleave", "blur"]) title.addEventListener(event, () => parts.point(null));
}

/**
 * What the stage in focus does: of the title that is pointed at, or was pressed last, else of the cell that is chosen. {element, show(), point(where)},
 * `where` {id, hook} or null.
 * @param {Page} page
 * @param {Stage[]} stages
 */
function explanation(page, stages) {
  const element = make("section", "about");
  element.setAttribute("aria-label", "what this stage does");
  /** @type {{ id: string, hook: string } | null} */
  let pointed = null;
  const show = () => {
    const { cell } = page.state;
    const chosen = stageOf(stages, cell);
    const title = pointed ?? page.explainedTitle;
    const id = title?.id ?? chosen.stage?.id ?? (cell?.hook ? "v" : "next"); // a source's keys and values have no stage
    const hook = title ? title.hook : (chosen.panel?.hook ?? "");
    const stage = stages.find((one) => one.id === id);
    const panel = stage && [...stage.closed, ...stage.open].find((one) => one.hook === hook && one.title);
    const last = id === "next";
    const name = (id === "attention" && panel?.title) || stage?.name || (last ? titleOf(page.trace) : id);
    const heading = make("strong", `role-${stage?.role ?? (last ? "probability" : "residual")}`, name);
    element.replaceChildren(heading, ...sentences(page, id, hook));
  };
  show();
  /** @param {Titled | null} where */
  const point = (where) => {
    pointed = where;
    show();
  };
  return { element, show, point };
}

/**
 * The formula of a stage and what it does.
 * @param {Page} page
 * @param {string} id
 * @param {string} hook
 */
function sentences(page, id, hook) {
  const { formula, text } = about(page.trace, id, hook, page.state.layer);
  return [make("code", "", formula), make("span", "", text)];
}

/**
 * @param {Page} page
 * @param {Stage} stage
 * @param {Panel} panel
 */
function explained(page, stage, panel) {
  const element = make("p", "about");
  element.append(...sentences(page, stage.id, panel.hook));
  return element;
}

/**
 * On a phone: one button a stage, which leads to it.
 * @param {Page} page
 * @param {Stage[]} stages
 */
function jumps(page, stages) {
  const element = make("nav", "jumps");
  element.setAttribute("aria-label", "stages");
  for (const { id, title, role } of stages) {
    const button = make("button", `role-${role}`, title);
    button.addEventListener("click", () =>
      page.element.querySelector(`.stages .stage-${id}`)?.scrollIntoView({ block: "start" }),
    );
    element.append(button);
  }
  return element;
}

/**
 * Closes the sheet with the arithmetic, which the next cell that is chosen opens again.
 * @param {Page} page
 * @param {HTMLElement} sheet
 */
function closing(page, sheet) {
  const button = make("button", "close", "×");
  button.setAttribute("aria-label", "close the arithmetic");
  button.addEventListener("click", () => page.openSheet(false));
  sheet.classList.toggle("shut", !page.sheet);
  return button;
}

/**
 * Whether an edited hook pattern is what makes this panel's values different: its own, or the temperature of a pattern.
 * @param {string} pattern
 * @param {string} name
 */
function touches(pattern, name) {
  const hook = new RegExp(`^${pattern.replace(/[.]/g, "\\.").replace(/\*/g, ".*")}$`);
  return hook.test(name) || (name.endsWith("attn.pattern") && hook.test(name.replace(/pattern$/, "temperature")));
}

/**
 * What stands under a panel: {element, show(block)}.
 * @param {Page} page
 * @param {Parts} parts
 * @param {Panel} panel
 */
function foot(page, parts, panel) {
  const element = make("div", "foot");
  const width = page.sizes.panel.get(panel);
  const pieces = page.trace.keys(panel.hook);
  if (panel.labels && width / pieces.length >= LABELLED) {
    const keys = axis(pieces, width);
    parts.axes.push({ labels: keys.labels, crosses: panel.hook.includes("cross_attn") });
    element.append(keys.element);
  }
  if (panel.scale === "mask") return { element, show: () => {} };
  const colours = legend(page.element, { ...panel, width });
  element.append(colours.element);
  return { element, show: colours.show };
}

/**
 * @param {Page} page
 * @param {Parts} parts
 */
function tokenStage(page, parts) {
  const section = make("section", "stage stage-tokens");
  const column = make("div", "column");
  column.style.width = page.narrow ? "100%" : `${page.sizes.tokens}px`;
  const element = make("div", "stage-head");
  const { trace } = page;
  const what = trace.grid
    ? ["picture", "its cells in order"]
    : [trace.called, trace.positions.length ? "piece, positions" : "piece and id"];
  const title = make("span", "title", what[0]);
  title.tabIndex = 0;
  points(title, parts, { id: "tokens", hook: "" });
  element.append(title, make("span", "formula", what[1]));
  const body = make("div", "body");
  parts.tokens.push({ place: body, ids: true });
  const foot = make("div", "foot");
  if (!page.narrow) foot.append(make("div", "legend", `scales: ± ${PERCENTILE}`));
  column.append(element, body, foot);
  section.append(column);
  return section;
}

/**
 * Another block, as the residual stream that leaves it; one click looks inside.
 * @param {Page} page
 * @param {number} layer
 */
function mini(page, layer) {
  const { trace, sizes, rows } = page;
  const button = make("button", "mini");
  button.style.width = `${sizes.mini}px`;
  button.title = `look inside block ${layer + 1}`;
  button.setAttribute("aria-label", button.title);
  button.append(make("span", "mini-number", layer + 1));
  if (trace.holds(layer)) {
    const block = trace.block(trace.after(layer));
    const canvas = make("canvas");
    paint(canvas, page.element, {
      block,
      role: "residual",
      scale: "signed",
      max: extent(block),
      width: sizes.mini,
      ...rows,
    });
    button.append(canvas);
  } else button.appendChild(make("span", "mini-unseen")).style.height = `${trace.length * rows.pitch}px`;
  button.addEventListener("click", () => page.go({ layer }));
  return button;
}

/**
 * @param {HTMLElement[]} buttons
 * @param {"before" | "after"} where
 */
function minis(buttons, where) {
  const element = make("div", `minis ${where}`);
  element.append(...buttons);
  element.hidden = !buttons.length;
  return element;
}

/**
 * The line that names block and head, with a button on either side of each: {element, show()}.
 * @param {Page} page
 */
function blockTitle(page) {
  const { layers, heads } = page.trace.model;
  /**
   * @param {string} name
   * @param {string} text
   * @param {(state: State) => Partial<State>} move
   */
  const turn = (name, text, move) => {
    const button = make("button", "turn", text);
    button.setAttribute("aria-label", name);
    button.title = name;
    button.dataset.turn = name;
    button.addEventListener("click", () => page.go(move(page.state)));
    return button;
  };
  /**
   * @param {number} i
   * @param {number} by
   * @param {number} size
   */
  const step = (i, by, size) => (i + by + size) % size;
  const [block, head] = [make("span"), make("span")];
  const element = make("div", "block-title");
  element.append(
    turn("previous block  {", "‹", ({ layer }) => ({ layer: step(layer, -1, layers) })),
    block,
    turn("next block  }", "›", ({ layer }) => ({ layer: step(layer, 1, layers) })),
    make("span", "dot", "·"),
    turn("previous head  [", "‹", ({ head: h }) => ({ head: step(h, -1, heads) })),
    head,
    turn("next head  ]", "›", ({ head: h }) => ({ head: step(h, 1, heads) })),
    ...shared(page.trace.model),
  );
  const show = () => {
    block.textContent = `${page.trace.side ? `${page.trace.side} ` : ""}block ${page.state.layer + 1} of ${layers}`;
    head.textContent = `head ${page.state.head + 1} of ${heads}`;
  };
  return { element, show };
}

/**
 * What is to be known of layers that use the same block.
 * @param {Model} model
 */
function shared({ layers, distinct }) {
  if (distinct === layers) return [];
  const which =
    distinct === 1
      ? `one block, used in all ${layers} layers`
      : `each block used in ${layers / distinct} layers in a row`;
  return [make("span", "shared", which)];
}

/**
 * The thumbnails' section; of two attentions a button each says which one it shows.
 * @param {Page} page
 */
function allHeads(page) {
  const { trace, state } = page;
  if (!trace.model.crosses) return section("All heads", "layer down, head across");
  const grid = section("All heads", "");
  for (const [focus, name] of [
    ["cross_attn", "cross"],
    ["attn", "self"],
  ]) {
    const button = make("button", "choice", name);
    button.setAttribute("aria-pressed", String(state.focus === focus));
    button.addEventListener("click", () => page.go({ focus }));
    grid.firstChild.append(button);
  }
  return grid;
}

/** @param {Parts} parts */
function pictureSection(parts) {
  const element = section("Where this row looks", "brighter: more attention");
  element.className = "where";
  parts.picture = element.appendChild(make("div"));
  return element;
}

/**
 * @param {HTMLElement} list
 * @param {Page} page
 */
function fillFacts(list, { trace, state }) {
  /** @param {string} name */
  const of = (name) =>
    trace.arrays[`scores.${trace.prefix}${state.focus}.${name}`].data[state.layer * trace.model.heads + state.head];
  /**
   * @param {number} x
   * @param {string} otherwise
   */
  const shown = (x, otherwise) => (Number.isNaN(x) ? otherwise : percent(x));
  const alone = "one token only";
  const cell = trace.grid ? "cell" : "token";
  if (state.focus === "cross_attn")
    return fill(list, [
      ["to the source token it gives most", percent(of("strongest"))],
      ["entropy", `${number(of("entropy"))} bits`],
    ]);
  /** @type {[name: string, value: string]} */
  const copied = ["after an earlier copy (induction)", shown(of("induction"), "no repeats")];
  /** @type {[name: string, value: string][]} */
  const rows = [
    [`to the previous ${cell}`, shown(of("previous"), alone)],
    [trace.pieces[0] === "[CLS]" ? "to [CLS]" : `to the first ${cell} (sink)`, shown(of("first"), alone)],
    ["to itself", shown(of("own"), alone)],
    ...(trace.grid ? [] : [copied]),
    ["entropy", Number.isNaN(of("entropy")) ? alone : `${number(of("entropy"))} bits`],
  ];
  fill(list, rows);
}

/**
 * @param {HTMLElement} list
 * @param {[name: string, value: string][]} rows
 */
function fill(list, rows) {
  list.replaceChildren(...rows.flatMap(([name, value]) => [make("dt", "", name), make("dd", "", value)]));
}

function hint() {
  const element = make("p", "hint control");
  /** @param {string} text */
  const keys = (text) => make("kbd", "", text);
  element.append(
    "A “·” in a token is a space. Click any cell for its arithmetic; a title opens its stage. Arrow keys move the cell, ",
    keys("["),
    " ",
    keys("]"),
    " the head, ",
    keys("{"),
    " ",
    keys("}"),
    " the block.",
  );
  return element;
}

/**
 * @param {HTMLElement} band
 * @param {number | null} row
 * @param {{ rows: Rows }} page
 */
function placeBand(band, row, { rows }) {
  band.hidden = row === null;
  if (row !== null) band.style.transform = `translateY(${HEAD + row * rows.pitch}px)`;
}

/** @param {string} text */
function joint(text) {
  const element = make("div", "joint");
  element.append(make("div", "stage-head"), make("div", "joint-sign", text));
  element.setAttribute("aria-hidden", "true");
  return element;
}

// --- the stack that is not in view: its tokens and its residual stream from block to block, each strip a way in -----------

const FOLDED_PITCH = 19; // CSS pixels of a row
const FOLDED_HEIGHT = 12; // of a cell
const STRIP_WIDTHS = [48, 230]; // widths
const KEYS_WIDTH = 96; // width of the keys, and of the values
const TOKENS_WIDTH = 104;
/** @type {Record<string, string>} */
const ROLES = {
  encoder: "reads the source; at the right the keys and values that the decoder makes of it",
  decoder: "writes the target",
};
const AGAIN = "reads the same text again, one token behind"; // a decoder that judges and writes nothing

/**
 * Builds the folded stack `side`; `parts.source(row)` then marks one of an encoder's tokens.
 * @param {Page} page
 * @param {Parts} parts
 * @param {string} side
 */
function folded(page, parts, side) {
  const trace = new Trace(page.data, side);
  const element = make("section", `folded folded-${side}`);
  const title = make("button", "folded-title");
  title.append(make("strong", "", side), ` ${side === "decoder" && trace.model.rereads ? AGAIN : ROLES[side]}`);
  title.title = `look inside the ${side}`;
  title.addEventListener("click", () => page.go({ side, layer: 0 }));
  const line = make("div", "folded-line");
  const tokens = make("div", "folded-tokens");
  tokens.append(make("span", "folded-name", trace.called));
  const labels = mountTokens(
    tokens.appendChild(make("div")),
    { pieces: trace.pieces, ids: null, pitch: FOLDED_PITCH, special: trace.special },
    () => {},
  );
  if (side === "encoder") parts.source = (row) => labels.mark({ key: row });
  /** @type {[name: string, hook: string, layer: number][]} */
  const steps = [["embedding", trace.entry(), 0]];
  for (const l of range(0, trace.model.layers)) steps.push([`block ${l + 1}`, trace.after(l), l]);
  if (trace.has("final_norm.out")) steps.push(["norm", "final_norm.out", trace.model.layers - 1]);
  const room = page.across - TOKENS_WIDTH - (side === "encoder" ? 2 * KEYS_WIDTH + 96 : 20) - 22 * steps.length;
  const width = Math.round(Math.max(STRIP_WIDTHS[0], Math.min(STRIP_WIDTHS[1], room / steps.length)));
  line.append(
    tokens,
    ...steps.map(([name, hook, layer]) => foldedStrip(page, trace, side, { name, hook, layer, width })),
  );
  if (side === "encoder")
    line.append(
      make("span", "folded-arrow", "→"),
      ...sources(KEYS_WIDTH, { pitch: FOLDED_PITCH, height: FOLDED_HEIGHT }).map((panel) =>
        foldedSource(page, parts, panel),
      ),
    );
  element.append(title, line);
  return element;
}

/**
 * The keys or values that the block and head in view make of the memory; its cells open like any others.
 * @param {Page} page
 * @param {Parts} parts
 * @param {Panel} panel
 */
function foldedSource(page, parts, panel) {
  const column = make("div", "folded-strip");
  column.append(make("span", `folded-name role-${panel.role}`, panel.title));
  const place = column.appendChild(make("div"));
  parts.panels.push({ place, panel, legend: () => {} });
  return column;
}

/**
 * @param {Page} page
 * @param {Trace} trace
 * @param {string} side
 * @param {{ name: string, hook: string, layer: number, width: number }} step
 */
function foldedStrip(page, trace, side, { name, hook, layer, width }) {
  const button = make("button", "folded-strip");
  button.style.width = `${width}px`;
  button.title = `look inside ${side} block ${layer + 1}`;
  button.append(make("span", "folded-name", name));
  const block = blockOf(trace, hook);
  if (block) {
    const canvas = make("canvas");
    paint(canvas, page.element, {
      block,
      role: "residual",
      scale: "signed",
      max: extent(block),
      width,
      pitch: FOLDED_PITCH,
      height: FOLDED_HEIGHT,
    });
    button.append(canvas);
  } else button.appendChild(make("span", "mini-unseen")).style.height = `${trace.length * FOLDED_PITCH}px`;
  button.addEventListener("click", () => page.go({ side, layer }));
  return button;
}

/**
 * The residual stream after a step, or null where it was not sent.
 * @param {Trace} trace
 * @param {string} hook
 */
function blockOf(trace, hook) {
  if (trace.has(hook)) return trace.block(hook);
  if (hook !== "embed.sum") return null;
  const rows = range(0, trace.length).map((row) => trace.embedded(row));
  const cols = rows[0].length;
  const data = new Float32Array(rows.length * cols);
  rows.forEach((row, i) => data.set(row, i * cols));
  return { data, offset: 0, stride: cols, rows: rows.length, cols };
}

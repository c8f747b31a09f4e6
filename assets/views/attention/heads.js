// All heads of the attention that is looked at, as thumbnails: measured by a score, sorted by it, those below a value dimmed.
import { counted } from "../core/format.js";
import { compared, editedSign, isEdited, roles } from "./colours.js";
import { toggled, MOST_HEADS } from "./state.js";
import { inColumn, measured, measures, shortest } from "./scores.js";
import { make, range } from "../core/dom.js";
import { mount as mountGrid } from "../components/headgrid.js";
import { legend } from "../components/legend.js";

/**
 * @typedef {import("./attention.js").Page} Page
 * @typedef {import("./scores.js").Measured} Measured
 * @typedef {import("./tiled_source.js").Progress} Progress
 * @typedef {import("./state.js").Pair} Pair
 * @typedef {import("../components/headgrid.js").Place} Place
 * @typedef {NonNullable<import("./state.js").State["order"]>} Order
 */

const BETWEEN = { few: 5, many: 2 }; // CSS pixels between thumbnails
const MANY = 8; // heads in a row from which on they stand closer
const EDGE = 4; // around a thumbnail's canvas
const LABEL = 22; // the number of the layer
const [LEAST, WIDEST] = [18, 72]; // a thumbnail's canvas
const SORTED_LEAST = 40; // a sorted thumbnail has its name above it
const SMALL = 34; // below this captions are set smaller

/**
 * @param {HTMLElement} root
 * @param {Page} page
 */
export function mount(root, page) {
  const parts = build(root, page);
  let adding = false;
  let drawn = "";
  /** @type {ReturnType<typeof mountGrid> | undefined} */
  let grid;

  /** @type {Record<"head" | "add" | "extend", (where: Place) => unknown>} */
  const heard = {
    head: (where) => (adding ? heard.add(where) : page.go(where)),
    add: ({ layer, head }) => page.go({ heads: toggled(page.state.heads, layer, head) }),
    extend: ({ layer, head }) => {
      const others = page.state.heads.filter(([l, h]) => l !== layer || h !== head);
      /** @type {Pair[]} */
      const heads = [[layer, head], ...others];
      page.go({ heads: heads.slice(0, MOST_HEADS) });
    },
  };
  parts.add.addEventListener("click", () => {
    adding = !adding;
    view.update();
  });

  const view = {
    update() {
      const { state } = page;
      const score = measured(page, state.score);
      const waits = score && page.scoring(score.key);
      parts.show(score, adding, waits);
      const order = score && state.order && !waits ? sorted(score, page.trace.model.heads, state.order) : null;
      const key = [page.edition, page.left, score?.key, order && state.order].join();
      const data = gridData(page, score, order, waits);
      if (!grid) grid = mountGrid(parts.grid, data, (event, where) => heard[event](where));
      else if (key !== drawn) grid.update(data);
      else {
        grid.mark(data);
        grid.caption(data.caption);
      }
      parts.grid.classList.toggle("small", data.side < SMALL);
      parts.grid.style.setProperty("--between", `${data.between}px`);
      if (key !== drawn) parts.paintLegend(); // another theme has other colours
      drawn = key;
    },
    destroy: () => root.replaceChildren(),
  };
  return view;
}

/**
 * @param {HTMLElement} root
 * @param {Page} page
 */
function build(root, page) {
  const title = make("div", "heads-title");
  const name = make("h3", "", "All heads ");
  const axes = make("span");
  name.append(axes);
  title.append(name);
  const grid = make("div");
  const measure = measureControls(page);
  const colours = make("div", "heads-legend");
  const chips = make("div", "compared");
  const add = make("button", "control", "+ compare heads");
  add.title = "then a click adds a head to the lines; so does a click with shift or ctrl, or shift with an arrow key";
  root.append(title, measure.element, grid, chips, colours);
  const sign = editedSign("head");
  const paintLegend = () => {
    const { element } = legend(page.element, { role: "attention", scale: "unit", width: 60 });
    element.querySelector(".legend-text").textContent = "weight, 0 to 1";
    colours.replaceChildren(element, sign);
  };
  /**
   * @param {Measured | null} score
   * @param {boolean} adding
   * @param {Progress | null} waits
   */
  const show = (score, adding, waits) => {
    axes.textContent =
      score && page.state.order && !waits
        ? `${page.state.order} ${score.title.toLowerCase()} first`
        : "block down, head across";
    measure.show(score, waits);
    const { layers, heads } = page.trace.model;
    sign.hidden = !range(0, layers * heads).some((i) => isEdited(page, Math.floor(i / heads), i % heads));
    add.setAttribute("aria-pressed", String(adding));
    chips.replaceChildren(add, ...coloured(page).map(([layer, head, role]) => removal(page, layer, head, role)));
  };
  return { grid, add, show, paintLegend };
}

/**
 * @param {Page} page
 * @param {number} layer
 * @param {number} head
 * @param {string} role
 */
function removal(page, layer, head, role) {
  const button = make("button");
  button.append(make("span", "patch"), `${layer + 1}·${head + 1}`, make("span", "control", " ×"));
  button.style.setProperty("--chosen", `var(--${role})`);
  button.setAttribute("aria-label", `remove block ${layer + 1}, head ${head + 1} from the comparison`);
  button.addEventListener("click", () => page.go({ heads: toggled(page.state.heads, layer, head) }));
  return button;
}

/**
 * Which score, in which order, from which value on, and what it means.
 * @param {Page} page
 */
function measureControls(page) {
  const element = make("div");
  const line = make("div", "measure");
  const which = choice("score of the heads", (value) =>
    page.go({ score: value || undefined, threshold: undefined, ...(value ? {} : { order: undefined }) }),
  );
  const order = choice("order of the heads", (value) =>
    page.go({ order: value === "largest" || value === "smallest" ? value : undefined }),
  );
  fill(order, [
    ["", "by block"],
    ["largest", "largest first"],
    ["smallest", "smallest first"],
  ]);
  const least = make("label", "least");
  const slider = make("input");
  Object.assign(slider, { type: "range", min: 0, max: 100 });
  slider.setAttribute("aria-label", "heads with at least this much of the score");
  const said = make("output");
  least.append(slider, said);
  line.append(which, order, least);
  const meaning = make("p", "meaning");
  const progress = scoring(page);
  element.append(line, progress.element, meaning);
  /** @type {ReturnType<typeof measured>} */
  let score = null;
  slider.addEventListener("input", () => {
    if (!score) return;
    const { low, high } = score;
    page.go({
      threshold:
        Number(slider.value) === 0 ? undefined : Number((low + ((high - low) * slider.value) / 100).toPrecision(4)),
    });
  });
  /**
   * @param {Measured | null} next
   * @param {Progress | null} waits
   */
  const show = (next, waits) => {
    score = next;
    progress.show(waits);
    element.hidden = !page.trace.scoreTable.length;
    fill(which, [
      ["", "score of each head …"],
      ...measures(page)
        .filter(({ values }) => values)
        .map(({ key, title }) => /** @type {[string, string]} */ ([key, title])),
    ]);
    which.value = score?.key ?? "";
    order.value = score ? (page.state.order ?? "") : "";
    order.hidden = least.hidden = meaning.hidden = !score;
    if (!score) return;
    meaning.textContent = score.definition;
    meaning.title = score.source;
    const { low, high, values } = score;
    const from = page.state.threshold;
    slider.value = from === undefined || high === low ? 0 : (100 * (from - low)) / (high - low);
    const known = waits ? waits.scored * page.trace.model.heads : values.length;
    const kept = from === undefined ? known : values.filter((x) => x >= from).length;
    said.textContent = `≥ ${inColumn(from ?? low, score.unit)} · ${kept} of ${known}`;
  };
  return { element, show };
}

/**
 * How far a score has come that is asked for layer by layer, and what it does not say yet.
 * @param {Page} page
 */
function scoring(page) {
  const element = make("div", "scoring");
  const bar = make("progress");
  bar.setAttribute("aria-label", "how many of the heads are scored");
  const said = make("p");
  element.append(bar, said);
  /** @param {Progress | null} waits */
  const show = (waits) => {
    element.hidden = !waits;
    if (!waits) return;
    const { layers } = page.trace.model;
    Object.assign(bar, { max: waits.steps, value: waits.done });
    const missing =
      waits.scored + 1 === layers ? `block ${layers} has` : `blocks ${waits.scored + 1} to ${layers} have`;
    const sorted = page.state.order ? ", and are sorted once they do" : "";
    said.textContent = `${waits.scored} of ${counted(layers, "block")} scored; ${missing} none yet (…)${sorted}.`;
  };
  return { element, show };
}

/**
 * @param {string} name
 * @param {(value: string) => void} change
 */
function choice(name, change) {
  const element = make("select");
  element.setAttribute("aria-label", name);
  element.addEventListener("change", () => change(element.value));
  return element;
}

/**
 * Options of a select, replaced only where they changed: an open list stays open.
 * @param {HTMLSelectElement} select
 * @param {[value: string, text: string][]} options
 */
function fill(select, options) {
  const texts = options.flat().join("\n");
  if (select.dataset.options === texts) return;
  select.dataset.options = texts;
  select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
}

/**
 * [[layer, head], ...] by value; where it is not defined at the end.
 * @param {Measured} score
 * @param {number} heads
 * @param {Order} order
 * @returns {Pair[]}
 */
function sorted({ values }, heads, order) {
  const sign = order === "largest" ? -1 : 1;
  /** @param {number} i */
  const rest = (i) => (Number.isNaN(values[i]) ? 1 : 0);
  const places = range(0, values.length).sort((a, b) => rest(a) - rest(b) || sign * (values[a] - values[b]) || a - b);
  return places.map((i) => [Math.floor(i / heads), i % heads]);
}

/**
 * The compared heads with the colours that they have in the lines, [[layer, head, role], ...]; one alone is not compared.
 * @param {Page} page
 * @returns {[layer: number, head: number, role: string][]}
 */
function coloured(page) {
  const heads = compared(page);
  return heads.length < 2 ? [] : roles(page, heads).map((role, i) => [...heads[i], role]);
}

/**
 * @param {Page} page
 * @param {Measured | null} score
 * @param {Pair[] | null} order
 * @param {Progress | null} waits
 */
function gridData(page, score, order, waits) {
  const { trace, state } = page;
  const { layers, heads } = trace.model;
  const room = page.left - (order ? 0 : LABEL);
  const between = !order && heads > MANY ? BETWEEN.many : BETWEEN.few;
  const columns = order
    ? Math.max(1, Math.min(heads, Math.floor((room + between) / (SORTED_LEAST + EDGE + between))))
    : heads;
  const side = Math.max(LEAST, Math.min(WIDEST, Math.floor((room + between) / columns) - between - EDGE));
  const caption =
    score &&
    ((/** @type {number} */ layer, /** @type {number} */ head) => {
      if (waits && layer >= waits.scored) return { text: "…", share: 0, dim: false };
      const value = score.values[layer * heads + head];
      const floor = Math.min(0, score.low);
      const share = Number.isNaN(value) || score.high === floor ? 0 : (value - floor) / (score.high - floor);
      return {
        text: shortest(value, score.unit, side),
        share,
        dim: state.threshold !== undefined && !(value >= state.threshold),
      };
    });
  const chosen = coloured(page);
  return {
    layers,
    heads,
    side,
    pattern: (/** @type {number} */ l, /** @type {number} */ h) => page.pattern(l, h),
    layer: state.layer,
    head: state.head,
    chosen,
    order,
    columns,
    caption,
    between,
    edited: (/** @type {number} */ l, /** @type {number} */ h) => isEdited(page, l, h),
  };
}

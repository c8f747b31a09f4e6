// The page's skeleton: where every stage, panel, band and label stands. walkthrough.js fills the places and moves the marks.
import { paint, extent } from "./cells.js";
import { number, percent } from "./format.js";
import { css, curve, ramp, STEPS } from "./palette.js";

/** Builds the page in `page.element` and returns its places and the functions that move its marks. */
export function build(page, stages) {
  const scroll = { top: page.parts?.flow.scrollTop ?? 0, left: page.parts?.flow.scrollLeft ?? 0 };
  const { trace, state, sizes, narrow } = page;
  const parts = { panels: [], tokens: [], axes: [], lines: null };
  const flow = make("div", "flow");
  flow.tabIndex = 0;
  flow.setAttribute("role", "group");
  flow.setAttribute("aria-label", "the computation; arrow keys move the chosen cell, brackets the head, braces the block");
  const line = make("div", "stages");
  const rowBand = make("div", "band pinned");
  const hoverBand = make("div", "band hovered");
  line.append(rowBand, hoverBand);

  const box = make("div", "block");
  const title = make("div", "block-title");
  box.append(title);
  const groups = { in: [], block: [], out: [] };
  for (const stage of stages) groups[stage.group].push(buildStage(page, parts, stage));
  box.append(...groups.block);
  const before = range(0, state.layer).map((l) => mini(page, l));
  const after = range(state.layer + 1, trace.model.layers).map((l) => mini(page, l));
  line.append(tokenStage(page, parts), ...groups.in, minis(before, "before"), box, minis(after, "after"), ...groups.out, nextStage(page, parts));
  flow.append(line);

  const below = make("div", "below");
  const grid = section("All heads", "layer down, head across");
  const arithmetic = make("section", "panel-arithmetic");
  const facts = section("This head, measured on this text", "");
  const list = make("dl", "facts");
  facts.append(list, hint());
  parts.headgrid = grid.appendChild(make("div"));
  grid.append(legend(page, { role: "attention", scale: "unit", width: 150 }));
  parts.arithmetic = arithmetic.appendChild(make("div"));
  grid.className = "all-heads";
  if (narrow) box.before(grid); // in reach of the block that it changes
  else below.append(grid);
  below.append(arithmetic, facts);

  const tip = make("div", "tip");
  tip.hidden = true;
  const live = make("output", "live");
  const notice = make("p", "notice", trace.notice ?? "");
  notice.hidden = !trace.notice;
  page.element.classList.toggle("narrow", narrow);
  page.element.style.setProperty("--pitch", `${page.rows.pitch}px`);
  page.element.replaceChildren(notice, flow, below, tip, live);
  flow.scrollTop = scroll.top;
  flow.scrollLeft = scroll.left;
  flow.addEventListener("pointermove", (event) => moveTip(tip, event));

  Object.assign(parts, {
    flow,
    live,
    title: () => fillTitle(title, page),
    facts: () => fillFacts(list, page),
    notice: (sentence) => {
      notice.textContent = sentence;
      notice.hidden = !sentence;
    },
    bands: (pinned, hovered) => {
      placeBand(rowBand, pinned, page);
      placeBand(hoverBand, hovered === pinned ? null : hovered, page);
    },
    axis: (key) => {
      for (const axis of parts.axes) axis.forEach((label, i) => label.classList.toggle("as-key", i === key));
    },
    tip: (where, value) => {
      tip.hidden = where === null;
      if (where !== null) tip.replaceChildren(make("bdi", "", where), make("strong", "", value));
    },
    show: (id) => flow.querySelector(`.stage-${id}`)?.scrollIntoView({ inline: "nearest", block: "nearest" }),
    reveal: (row) => {
      const top = row * page.rows.pitch + HEAD;
      if (top < flow.scrollTop + HEAD) flow.scrollTop = top - HEAD;
      if (top + page.rows.pitch > flow.scrollTop + flow.clientHeight) flow.scrollTop = top + page.rows.pitch - flow.clientHeight;
    },
  });
  parts.title();
  parts.facts();
  return parts;
}

const HEAD = 66; // CSS pixels above the first row: block title and stage titles

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
    column.append(head(page, stage, panel, single, i === 0));
    const row = make("div", "body");
    if (narrow) parts.tokens.push({ place: row.appendChild(make("div", "row-labels")), ids: false });
    const place = row.appendChild(make("div"));
    column.append(row);
    column.append(foot(page, parts, panel));
    parts.panels.push({ place, panel, stage });
    section.append(column);
  }
  return section;
}

function head(page, stage, panel, single, first) {
  const element = make("div", "stage-head");
  const button = make("button", `role-${stage.role}`);
  const isOpen = page.state.open.has(stage.id);
  button.setAttribute("aria-expanded", String(isOpen));
  button.textContent = single ? stage.title : panel.title;
  button.title = isOpen ? `close ${stage.name}` : `open ${stage.name}: see its cells one by one`;
  button.addEventListener("click", () => page.toggle(stage.id));
  if (first || single) button.dataset.stage = stage.id;
  const formula = make("span", "formula", single ? stage.formula : (panel.formula ?? ""));
  if (page.trace.edited.some((hook) => touches(hook, page.name(panel)))) {
    formula.textContent = "edited";
    formula.classList.add("role-edited");
  }
  element.append(button, formula);
  return element;
}

/** Whether an edited hook pattern is what makes this panel's values different: its own, or the temperature of a pattern. */
function touches(pattern, name) {
  const hook = new RegExp(`^${pattern.replace(/[.]/g, "\\.").replace(/\*/g, ".*")}$`);
  return hook.test(name) || (name.endsWith("attn.pattern") && hook.test(name.replace(/pattern$/, "temperature")));
}

function foot(page, parts, panel) {
  const element = make("div", "foot");
  const width = page.sizes.panel.get(panel);
  if (panel.labels && width / page.trace.length >= 10) element.append(axis(page, parts, width));
  if (panel.scale !== "mask") element.append(legend(page, { ...panel, width, block: page.block(panel) }));
  return element;
}

/** The keys' pieces under a matrix, slanted. */
function axis(page, parts, width) {
  const element = make("div", "axis");
  const each = width / page.trace.length;
  const labels = page.trace.pieces.map((piece, i) => {
    const label = make("bdi", "", piece);
    label.style.left = `${(i + 0.5) * each}px`;
    return label;
  });
  parts.axes.push(labels);
  element.append(...labels);
  return element;
}

/** What a colour means, in numbers. */
function legend(page, { role, scale, width, block }) {
  const element = make("div", "legend");
  const table = ramp(page.element, role, scale);
  const stops = range(0, 9).map((i) => css(table[Math.round(((scale === "unit" ? curve(i / 8) ** 2 : i / 8)) * (STEPS - 1))]));
  const bar = make("span", "legend-bar");
  bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  bar.style.width = `${Math.min(width, 72)}px`;
  const [low, high] = scale === "unit" ? ["0", "1"] : ["−", `±${rounded(block, page)}`];
  element.append(bar, make("span", "legend-text", scale === "unit" ? `${low} to ${high}` : high));
  element.title = scale === "unit" ? "colour grows with the square root of the weight" : "from grey (negative) to the hue (positive); 1 value in 100 lies beyond";
  return element;
}

function rounded(block) {
  const max = extent(block);
  return max >= 100 ? max.toFixed(0) : max >= 10 ? max.toFixed(1) : max.toFixed(2);
}

function tokenStage(page, parts) {
  const section = make("section", "stage stage-tokens");
  const column = make("div", "column");
  column.style.width = page.narrow ? "100%" : `${page.sizes.tokens}px`;
  const element = make("div", "stage-head");
  element.append(make("span", "title", "tokens"), make("span", "formula", "piece and id"));
  const body = make("div", "body");
  parts.tokens.push({ place: body, ids: true });
  column.append(element, body, make("div", "foot"));
  section.append(column);
  return section;
}

function nextStage(page, parts) {
  const { trace, state, sizes } = page;
  const section = make("section", "stage stage-next");
  const column = make("div", "column");
  column.style.width = page.narrow ? "100%" : `${sizes.next}px`;
  const element = make("div", "stage-head");
  const button = make("button", "role-probability", "next token");
  button.setAttribute("aria-expanded", String(state.open.has("next")));
  button.title = "from logits to probabilities, every stage";
  button.dataset.stage = "next";
  button.addEventListener("click", () => page.toggle("next"));
  const after = make("span", "formula", "after ");
  after.append(make("bdi", "", `“${trace.pieces[state.query]}”`));
  element.append(button, after);
  parts.bars = make("div");
  const left = make("p", "cuts", cuts(page));
  column.append(element, parts.bars, left, drawn(page));
  section.append(column);
  parts.next = () => {
    after.lastChild.textContent = `“${trace.pieces[state.query]}”`;
    left.textContent = cuts(page);
  };
  return section;
}

/** What temperature, top-k and top-p left of the vocabulary at the row that is read. */
function cuts({ trace, state }) {
  const { temperature, top_k: k, top_p: p } = trace.sampling;
  const kept = trace.arrays["next.kept_p"].data[state.query];
  const share = trace.arrays["next.kept_share"].data[state.query];
  const settings = [`temperature ${temperature}`, k ? `top-k ${k}` : "", p < 1 ? `top-p ${p}` : ""].filter(Boolean).join(", ");
  const all = trace.model.vocab.toLocaleString("en");
  if (kept === trace.model.vocab) return `${settings}: all ${all} tokens kept`;
  return `${settings}: ${kept.toLocaleString("en")} of ${all} tokens kept, holding ${percent(share)}`;
}

function drawn({ trace, emit }) {
  const element = make("div", "drawn");
  const { id, probability } = trace.sampled;
  const name = make("bdi", "token-chip", trace.names[id]);
  const line = make("span", "", "drawn: ");
  line.append(name, ` ${percent(probability)}`);
  const append = make("button", "action", "append");
  append.disabled = Boolean(trace.full);
  append.title = trace.full ? "the text fills the model's context" : "put this token behind the text and run again";
  append.addEventListener("click", () => emit("append", id));
  const again = make("button", "action quiet", "draw again");
  again.addEventListener("click", () => emit("again", true));
  element.append(line, append, again);
  return element;
}

/** Another block, as the residual stream that leaves it; one click looks inside. */
function mini(page, layer) {
  const { trace, sizes, rows } = page;
  const button = make("button", "mini");
  button.title = `look inside block ${layer + 1}`;
  button.setAttribute("aria-label", button.title);
  button.append(make("span", "mini-number", layer + 1));
  if (trace.holds(layer)) {
    const block = trace.block(trace.after(layer));
    const canvas = make("canvas");
    paint(canvas, page.element, { block, role: "residual", scale: "signed", max: extent(block), width: sizes.mini, ...rows });
    button.append(canvas);
  } else button.appendChild(make("span", "mini-unseen")).style.height = `${trace.length * rows.pitch}px`;
  button.addEventListener("click", () => page.go({ layer }));
  return button;
}

function minis(buttons, where) {
  const element = make("div", `minis ${where}`);
  element.append(...buttons);
  element.hidden = !buttons.length;
  return element;
}

function fillTitle(title, page) {
  const { layers, heads } = page.trace.model;
  const { layer, head } = page.state;
  const turn = (name, text, change) => {
    const button = make("button", "turn", text);
    button.setAttribute("aria-label", name);
    button.title = name;
    button.addEventListener("click", () => page.go(change));
    return button;
  };
  const step = (i, by, size) => (i + by + size) % size;
  title.replaceChildren(
    turn("previous block  {", "‹", { layer: step(layer, -1, layers) }),
    make("span", "", `block ${layer + 1} of ${layers}`),
    turn("next block  }", "›", { layer: step(layer, 1, layers) }),
    make("span", "dot", "·"),
    turn("previous head  [", "‹", { head: step(head, -1, heads) }),
    make("span", "", `head ${head + 1} of ${heads}`),
    turn("next head  ]", "›", { head: step(head, 1, heads) }),
  );
}

function fillFacts(list, { trace, state }) {
  const of = (name) => trace.arrays[`scores.${name}`].data[state.layer * trace.model.heads + state.head];
  const shown = (x, otherwise) => (Number.isNaN(x) ? otherwise : percent(x));
  const alone = "one token only";
  const rows = [
    ["to the previous token", shown(of("previous"), alone)],
    ["to the first token (sink)", shown(of("first"), alone)],
    ["to itself", shown(of("own"), alone)],
    ["after an earlier copy (induction)", shown(of("induction"), "nothing repeats")],
    ["entropy", `${number(of("entropy"))} bits`],
  ];
  list.replaceChildren(...rows.flatMap(([name, value]) => [make("dt", "", name), make("dd", "", value)]));
}

function hint() {
  const element = make("p", "hint");
  const keys = (text) => make("kbd", "", text);
  element.append("Click any cell for its arithmetic; a title opens its stage. Arrow keys move the cell, ", keys("["), " ", keys("]"), " the head, ", keys("{"), " ", keys("}"), " the block.");
  return element;
}

function placeBand(band, row, { rows }) {
  band.hidden = row === null;
  if (row !== null) band.style.transform = `translateY(${HEAD + row * rows.pitch}px)`;
}

function moveTip(tip, event) {
  const wide = window.innerWidth - event.clientX < 220;
  tip.style.left = wide ? "" : `${event.clientX + 14}px`;
  tip.style.right = wide ? `${window.innerWidth - event.clientX + 14}px` : "";
  tip.style.top = `${event.clientY + 18}px`;
}

function joint(text) {
  const element = make("div", "joint");
  element.append(make("div", "stage-head"), make("div", "joint-sign", text));
  element.setAttribute("aria-hidden", "true");
  return element;
}

function section(name, note) {
  const element = make("section");
  const heading = make("h3", "", name);
  if (note) heading.append(make("span", "note", ` ${note}`));
  element.append(heading);
  return element;
}

export function make(tag, className = "", text = null) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== null) element.textContent = text;
  return element;
}

function range(from, to) {
  return Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
}

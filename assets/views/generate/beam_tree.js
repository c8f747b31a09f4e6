// The tree of a beam search: columns are steps, rows ranks; what was pruned is struck, and the greedy path is drawn through it. It is ours because no library
// draws it at this size while steps arrive, with every hypothesis to be walked by arrow keys.
import { counted } from "../core/format.js";
import { svg } from "../components/stack.js";
import { make } from "../core/dom.js";

/**
 * @typedef {import("./generate.js").Page} Page
 * @typedef {import("./tree.js").Stop} Stop
 * @typedef {import("../core/payload.js").NamedArray} NamedArray
 * @typedef {{ key: string, step: number, rank: number | null, parent: Hypothesis | null, id: number, piece: string, text: string, state: string, log: number,
 *   score: number, own: number, margin?: number, behind?: number, stop: Stop | null, place: number, kids: Hypothesis[], isGreedy: boolean }} Hypothesis
 * @typedef {{ arrays: Record<string, Pick<NamedArray, "data">>, pieces: Record<number, string>, said: string[], found: number[][], best: number[],
 *   greedy_said: string[], greedy_ended: Stop | null, ended: Record<number, Stop>, told: string[], texts: string[], greedy_text: string, over: string,
 *   count: number, room: number, whole: boolean }} Answer to "beam"
 * @typedef {ReturnType<typeof searchOf> & { penalty: number, query: import("./streams.js").Asked, state: "whole" | "going" | "stopped" }} Search
 * @typedef {{ pick: (node: Hypothesis) => void, hover: (node: Hypothesis | null) => void }} On
 */

const SIZE = { wide: { node: 114, gap: 22 }, narrow: { node: 114, gap: 14 } }; // CSS pixels
const HIGH = 36;
const ROW = 42;
const HEAD = 24;
const ROOT = 74; // what stands before the first column
const SPREAD = 250; // ms over which steps that come together are shown, one after the other

/** `on` = {pick(node), hover(node | null)}; `face(node)` draws a token. */
export class TreePicture {
  /** @type {{ node: number, gap: number }} CSS pixels across */
  size;
  /** @type {Search} */
  search;
  /** @type {Hypothesis | null} */
  picked;
  /** @type {number} how many steps are shown */
  at;
  /** @type {number} how many nodes stand below each other */
  rows;
  /** @type {HTMLElement} */
  named;
  /** @type {number} where the path of greedy begins that is not in the beam */
  lane;
  /** @type {{ place: HTMLElement, edges: SVGElement }[]} one a step */
  columns;
  /** @type {SVGElement} the lines between the nodes */
  edges;
  /** @type {Map<string, HTMLElement>} key of a node -> its button */
  drawn;
  /** @type {Map<string, SVGElement>} key of a node -> the line that leads to it */
  joints;

  /**
   * @param {Page} page
   * @param {On} on
   * @param {(token: { id: number, piece: string, given?: boolean }) => HTMLElement} face
   */
  constructor(page, on, face) {
    this.page = page;
    this.on = on;
    this.face = face;
    this.element = make("div", "beam-scroll");
    this.element.tabIndex = -1;
    this.ground = make("div", "beam-ground");
    this.element.append(this.ground);
    this.ground.addEventListener(
      "click",
      (/** @type {MouseEvent} */ event) => this.hit(event) && on.pick(/** @type {Hypothesis} */ (this.hit(event))),
    );
    this.ground.addEventListener("pointerover", (/** @type {PointerEvent} */ event) => this.light(this.hit(event)));
    this.ground.addEventListener("pointerleave", () => this.light(null));
    this.ground.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.key(event));
  }

  /** @param {Event} event */
  hit(event) {
    return this.search?.keys.get(nodeOf(event) ?? "") ?? null;
  }

  /**
   * All that is here, once for a search and a width.
   * @param {Search} search
   */
  draw(search) {
    this.size = this.page.narrow ? SIZE.narrow : SIZE.wide;
    this.rows = search.rows;
    this.lane = HEAD + search.rows * ROW + 10;
    this.edges = svg("svg", { class: "beam-edges", "aria-hidden": "true" });
    this.columns = [];
    this.drawn = new Map();
    this.joints = new Map();
    this.named = this.laneName();
    this.ground.replaceChildren(this.edges, this.root(), this.named);
    this.add(search);
    if (search.state === "going") this.follow(search.steps - 1);
  }

  /**
   * The steps that it has beyond those that are drawn; they come into view where those before are, and in the end that of the best, unless an earlier one is looked at.
   * @param {Search} search
   * @param {boolean} isLast
   */
  grow(search, isLast) {
    if (search.rows !== this.rows) return this.draw(search);
    const { element, size } = this;
    const seen = this.x(this.search.steps - 1) + size.node <= element.scrollLeft + element.clientWidth;
    const more = search.columns > this.columns.length || search.state === "whole";
    this.add(search);
    if (more && seen && isLast) this.follow(search.state === "whole" ? search.best[0].step : search.steps - 1);
  }

  /**
   * While it goes, there is room for all that may come.
   * @param {Search} search
   */
  add(search) {
    this.search = search;
    const going = search.state === "going";
    const before = this.columns.length;
    const apart = search.greedy.some(({ rank }) => rank === null);
    const width = this.x(Math.max(search.columns, going ? search.room : 0) - 1) + this.size.node + this.size.gap;
    const height = this.lane + (apart || going ? ROW : 0);
    Object.assign(this.ground.style, { width: `${width}px`, height: `${height}px` });
    for (const [name, value] of Object.entries({ width, height })) this.edges.setAttribute(name, String(value));
    this.named.hidden = !apart;
    for (let step = before; step < search.columns; step++) this.columns.push(this.column(step));
    for (const node of search.keys.values()) if (node.step >= before) this.put(node);
    this.drawGreedy(search.greedy.slice(before));
    const more = this.columns.slice(before);
    if (going)
      more.forEach(({ place, edges }, i) =>
        [place, edges].forEach(
          ({ style }) => (style.animation = `beam-appear ${(i * SPREAD) / more.length}ms step-end`),
        ),
      );
    this.ground.append(...more.map(({ place }) => place));
    this.mark();
  }

  /** The best of those that are finished, and the path of the first of them. */
  mark() {
    const [best] = this.search.best;
    const line = new Set(best ? lineOf(best).map(({ key }) => key) : []);
    for (const [key, button] of this.drawn) {
      const place = this.search.keys.get(key)?.place;
      button.classList.toggle("is-best", line.has(key));
      this.joints.get(key)?.classList.toggle("is-best", line.has(key));
      const label = button.querySelector(".beam-place");
      if (label) label.textContent = place ? `#${place}` : "";
    }
  }

  /** @param {number} step */
  x(step) {
    return ROOT + this.size.gap + step * (this.size.node + this.size.gap);
  }

  /** @param {Hypothesis} node */
  y(node) {
    return node.rank === null ? this.lane : HEAD + (node.rank - 1) * ROW;
  }

  root() {
    const { prompt } = this.page.data;
    const last = prompt.ids.length - 1;
    const root = make("div", "beam-root");
    root.style.top = `${HEAD}px`;
    root.append(
      make("span", "", "prompt"),
      this.face({ id: prompt.ids[last], piece: `… ${prompt.pieces[last].replaceAll("·", " ").trim()}`, given: true }),
    );
    return root;
  }

  laneName() {
    const name = make("div", "beam-lane", "greedy, not in the beam");
    name.style.top = `${this.lane + 8}px`;
    return name;
  }

  /** @param {number} step */
  column(step) {
    const place = make("div", "beam-column");
    place.style.left = `${this.x(step)}px`;
    const title = make("div", "beam-step", String(step + 1));
    title.style.width = `${this.size.node}px`;
    place.append(title);
    const edges = this.edges.appendChild(svg("g"));
    return { place, edges };
  }

  /** @param {Hypothesis} node */
  put(node) {
    const button = make("button", `beam-node is-${node.state}`);
    button.type = "button";
    button.tabIndex = -1;
    button.dataset.node = node.key;
    Object.assign(button.style, { top: `${this.y(node)}px`, width: `${this.size.node}px`, height: `${HIGH}px` });
    button.classList.toggle("is-greedy", node.isGreedy);
    const numbers = make("span", "beam-numbers", `${nats(node.log)} · ${points(node.score)}`);
    const line = make("span", "beam-token");
    line.append(this.face(node));
    if (node.stop) line.append(make("span", "beam-end", "■"));
    line.append(make("span", "beam-place"));
    button.append(line, numbers);
    button.setAttribute(
      "aria-description", // its name is what is seen of it
      `${node.state}, step ${node.step + 1}${node.rank ? `, rank ${node.rank}` : ""}, log-probability ${nats(node.log)}, score ${points(node.score)}`,
    );
    this.columns[node.step].place.append(button);
    this.drawn.set(node.key, button);
    const edge = svg("path", { class: `beam-edge is-${node.state}`, d: this.bend(node) });
    if (node.rank !== null) this.columns[node.step].edges.append(edge);
    this.joints.set(node.key, edge);
  }

  /** @param {Hypothesis} node */
  bend(node) {
    const [end, top] = [this.x(node.step), this.y(node) + HIGH / 2];
    const from = node.parent ? this.y(node.parent) + HIGH / 2 : HEAD + HIGH / 2;
    const begin = node.parent ? this.x(node.parent.step) + this.size.node : ROOT;
    const half = (end - begin) / 2;
    return `M${begin} ${from}C${begin + half} ${from} ${end - half} ${top} ${end} ${top}`;
  }

  /**
   * On top of the others, and dashed.
   * @param {Hypothesis[]} greedy
   */
  drawGreedy(greedy) {
    for (const node of greedy)
      this.columns[node.step].edges.append(svg("path", { class: "beam-edge greedy-edge", d: this.bend(node) }));
  }

  /**
   * Only the first `at` steps; the best path where all of them are there.
   * @param {number} at
   */
  show(at) {
    this.columns.forEach(({ place, edges }, step) => {
      const later = step >= at;
      place.classList.toggle("is-later", later);
      edges.setAttribute("visibility", later ? "hidden" : "visible");
    });
    this.ground.classList.toggle("is-over", at >= this.search.columns && this.search.state !== "going");
    this.at = at;
  }

  /**
   * Brings a step into view where it is not.
   * @param {number} step
   */
  follow(step) {
    const { element, size } = this;
    const [begin, end] = [this.x(step) - size.gap, this.x(step) + size.node + size.gap];
    if (end > element.scrollLeft + element.clientWidth) element.scrollLeft = end - element.clientWidth;
    else if (begin < element.scrollLeft) element.scrollLeft = step === 0 ? 0 : begin;
  }

  /** @param {Hypothesis | null} node */
  pick(node) {
    this.ground.querySelector(".is-picked")?.classList.remove("is-picked");
    for (const button of this.ground.querySelectorAll('[tabindex="0"]')) button.tabIndex = -1;
    const button = this.drawn.get(node?.key ?? "") ?? this.drawn.values().next().value;
    if (button) button.tabIndex = 0;
    if (node) button?.classList.add("is-picked");
    this.picked = node;
    this.trace(node);
  }

  /** @param {Hypothesis | null} node */
  light(node) {
    const shown = node && node.step < this.at ? node : null;
    this.trace(shown ?? this.picked);
    this.on.hover(shown);
  }

  /**
   * The path to a node stands out.
   * @param {Hypothesis | null} node
   */
  trace(node) {
    for (const one of [...this.ground.querySelectorAll(".is-lit")]) one.classList.remove("is-lit");
    for (const one of node ? lineOf(node) : []) {
      this.drawn.get(one.key)?.classList.add("is-lit");
      this.joints.get(one.key)?.classList.add("is-lit");
    }
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const node = this.hit(event);
    if (!node) return;
    const column = [...this.search.keys.values()]
      .filter(({ step }) => step === node.step)
      .sort((a, b) => (a.rank ?? Infinity) - (b.rank ?? Infinity));
    /** @type {Record<string, () => Hypothesis | null | undefined>} */
    const ways = {
      ArrowLeft: () => node.parent,
      ArrowRight: () => [...this.search.keys.values()].find(({ parent, step }) => parent === node && step < this.at),
      ArrowUp: () => column[column.indexOf(node) - 1],
      ArrowDown: () => column[column.indexOf(node) + 1],
    };
    const to = ways[event.key]?.();
    if (to === undefined && !event.key.startsWith("Arrow")) return;
    event.preventDefault();
    event.stopPropagation();
    if (!to) return;
    this.on.pick(to);
    this.drawn.get(to.key)?.focus({ preventScroll: true });
    this.follow(to.step);
  }
}

/** @param {Event} event */
const nodeOf = ({ target }) =>
  /** @type {HTMLElement | null | undefined} */ (/** @type {Element} */ (target).closest?.("[data-node]"))?.dataset
    .node;

const STATES = ["kept", "finished", "pruned"]; // as views/generate/beam_search.py counts them

/**
 * A part of an answer to "beam" behind what is `found` of it (null: nothing yet).
 * @param {Answer | null} found
 * @param {import("./streams.js").Part} more
 * @returns {Answer}
 */
export function joined(found, more) {
  const part = /** @type {Answer & import("./streams.js").Part} */ (more);
  if (!found) return part;
  /**
   * @template {"said" | "found" | "greedy_said"} Name
   * @param {Name} name
   */
  const both = (name) => /** @type {Answer[Name]} */ ([...found[name], ...part[name]]);
  const arrays = Object.fromEntries(
    Object.entries(part.arrays).map(([name, { data }]) => [name, { data: [...found.arrays[name].data, ...data] }]),
  );
  return {
    ...part,
    arrays,
    said: both("said"),
    found: both("found"),
    greedy_said: both("greedy_said"),
    pieces: { ...found.pieces, ...part.pieces },
    ended: { ...found.ended, ...part.ended },
  };
}

/**
 * All of an answer to "beam" -> {nodes, greedy, steps, rows, columns, found, best, ...}. A node is {key, step, rank, parent, id, piece, text, state, log, score, own,
 * margin, behind, stop, place, kids, isGreedy}: `own` is the log-probability of its token, `place` its rank among the n best (0: none of them).
 * `greedy` are the nodes of the greedy path; those that the search never considered stand nowhere else and have the rank null.
 * @param {Answer} answer
 */
export function searchOf(answer) {
  /**
   * @param {string} name
   * @param {number} i
   */
  const at = (name, i) => answer.arrays[`node.${name}`].data[i];
  /** @type {Hypothesis[]} */
  const nodes = Array.from(answer.arrays["node.id"].data, (id, i) => ({
    key: `${at("step", i) + 1}:${at("rank", i)}`,
    step: at("step", i),
    rank: at("rank", i),
    parent: null,
    id,
    piece: answer.pieces[id],
    text: answer.said[i],
    state: STATES[at("state", i)],
    log: at("log_probability", i),
    score: at("score", i),
    margin: at("margin", i),
    behind: at("behind", i),
    own: 0,
    stop: answer.ended[i] ?? null,
    place: answer.best.indexOf(i) + 1,
    kids: [],
    isGreedy: false,
  }));
  nodes.forEach((node, i) => {
    const parent = at("parent", i);
    node.parent = parent < 0 ? null : nodes[parent];
    node.own = node.log - (node.parent?.log ?? 0);
    node.parent?.kids.push(node);
  });
  const greedy = greedyOf(answer, nodes);
  const steps = answer.found.length;
  /** @param {number[]} list */
  const known = (list) => list.map((i) => nodes[i]);
  return {
    ...answer,
    nodes,
    greedy,
    steps,
    best: known(answer.best),
    leading: nodes.find(({ step, state }) => step === steps - 1 && state === "kept") ?? null, // the most probable that goes on
    found: answer.found.map(known),
    rows: Math.max(...nodes.map(({ rank }) => rank ?? 0)),
    columns: Math.max(steps, greedy.length),
    keys: new Map([...nodes, ...greedy].map((node) => [node.key, node])),
  };
}

/**
 * @param {Answer} answer
 * @param {Hypothesis[]} nodes
 * @returns {Hypothesis[]}
 */
function greedyOf({ arrays, pieces, greedy_said: said, greedy_ended: ended }, nodes) {
  /**
   * @param {string} name
   * @param {number} i
   */
  const at = (name, i) => arrays[`greedy.${name}`].data[i];
  /** @type {Hypothesis | null} */
  let before = null;
  return Array.from(arrays["greedy.id"].data, (id, i) => {
    const place = at("node", i);
    const last = i === arrays["greedy.id"].data.length - 1;
    /** @type {Hypothesis} */
    const apart = {
      key: `${i + 1}:greedy`,
      step: i,
      rank: null,
      parent: before,
      id,
      piece: pieces[id],
      text: said[i],
      state: "greedy",
      log: at("total", i),
      score: at("score", i),
      own: at("own", i),
      stop: last ? ended : null,
      place: 0,
      kids: [],
      isGreedy: true,
    };
    const node = place < 0 ? apart : nodes[place];
    node.isGreedy = true;
    return (before = node);
  });
}

/**
 * The nodes from the first token to this one.
 * @param {Hypothesis} node
 */
export function lineOf(node) {
  const found = [];
  for (let one = /** @type {Hypothesis | null} */ (node); one; one = one.parent) found.push(one);
  return found.reverse();
}

/** @param {Hypothesis} node */
export function idsOf(node) {
  return lineOf(node).map(({ id }) => id);
}

/**
 * Two decimals of a log-probability, three of a score; few digits where they would say nothing.
 * @param {number} value
 */
export function nats(value) {
  return short(value, 2);
}

/** @param {number} value */
export function points(value) {
  return short(value, Math.abs(value) >= 10 ? 2 : 3);
}

/**
 * @param {number} value
 * @param {number} decimals
 */
function short(value, decimals) {
  if (value === 0) return "0";
  const text =
    Math.abs(value) >= 10 ** -decimals
      ? value.toFixed(decimals)
      : Math.abs(value) >= 0.001
        ? value.toFixed(3)
        : value.toExponential(0);
  return text.replaceAll("-", "−");
}

/**
 * Why a hypothesis stands as it does, in a sentence.
 * @param {Hypothesis} node
 * @param {Search} search
 */
export function why(node, search) {
  const count = search.nodes.filter(({ step }) => step === node.step).length;
  const rank = `Rank ${node.rank} of the ${counted(count, "candidate")} of step ${node.step + 1}`;
  if (node.state === "greedy")
    return `The search did not consider it: it had pruned the text before it.${node.stop ? ` ${node.stop.sentence}` : ""}`;
  if (node.state === "kept") return `${rank}: it goes on.`;
  if (node.state === "pruned")
    return `${rank}: pruned, ${nats(node.margin ?? 0)} nats behind rank ${node.behind}, the last that was taken.`;
  return `${rank}: finished. ${node.stop?.sentence}${node.place ? ` Number ${node.place} of the best.` : " It is not among the best."}`;
}

// What stands around the parts of the page about comparisons: which attention, which head, what belongs together.
import { bubble } from "../components/bubble.js";
import { alone } from "./merge.js";
import { tabs as tabLine } from "./tabs.js";
import { make } from "../core/dom.js";

/**
 * @typedef {import("./compare.js").Shell} Shell
 * @typedef {import("./merge.js").Entry} Entry
 * @typedef {{ places: Record<string, HTMLElement>, live: HTMLElement, show: () => void, notice: (sentence: string) => void,
 *   named: (view: string) => string }} Parts
 */

/**
 * Builds the frame in `shell.element`: {places, live, show(), notice(sentence), named(view)}.
 * @param {Shell} shell
 * @returns {Parts}
 */
export function frame(shell) {
  const notice = make("p", "notice");
  const line = make("div", "head-line");
  const title = titleLine(shell);
  const [chips, match] = [make("div", "chips"), matching(shell)];
  line.append(title.element, chips, match.element);
  const belongs = make("p", "belongs");
  const tabs = tabLine(shell);
  const [maps, beside, pointed] = [make("div"), make("div"), make("div")];
  const pairs = make("div", "pairs");
  const panels = make("div", "panels");
  /** @type {Record<string, HTMLElement>} */
  const places = { maps, beside, pointed };
  for (const name of ["heads", "predictions", "streams", "similarity"]) {
    places[name] = make("section", `panel-of ${name === "similarity" ? "wide" : ""} ${name}-of`);
    panels.append(places[name]);
  }
  const tip = bubble(shell.element);
  shell.tip = tip.show;
  const live = make("output", "live");
  shell.element.replaceChildren(
    notice,
    line,
    belongs,
    tabs.element,
    maps,
    beside,
    pointed,
    pairs,
    panels,
    tip.element,
    live,
  );
  /** @param {string} sentence */
  const say = (sentence) => {
    notice.textContent = sentence;
    notice.hidden = !sentence;
  };
  const show = () => {
    say(shell.sides.flatMap(({ letter, notice: said }) => (said ? [`${letter}: ${said}`] : [])).join(" "));
    title.show();
    match.show();
    tabs.show();
    showAttentions(chips, shell);
    belongs.textContent = shell.sides
      .slice(1)
      .map(({ letter }) => counted(shell, letter))
      .join(" ");
    showPairs(pairs, shell);
  };
  return { places, live, show, notice: say, named: tabs.named };
}

/** @param {Shell} shell */
function titleLine(shell) {
  const element = make("h2", "title");
  /** @param {"layer" | "head"} name */
  const count = (name) => shell.side("A").trace.model[/** @type {const} */ (`${name}s`)];
  /**
   * @param {string} label
   * @param {string} text
   * @param {"layer" | "head"} name
   * @param {number} by
   */
  const turn = (label, text, name, by) => {
    const button = make("button", "turn", text);
    button.title = label;
    button.setAttribute("aria-label", label);
    button.addEventListener("click", () => shell.go({ [name]: (shell.state[name] + by + count(name)) % count(name) }));
    return button;
  };
  const [block, head] = [make("span", "where"), make("span", "where")];
  const groups =
    /** @type {[label: HTMLElement, name: "layer" | "head", called: string, less: string, more: string][]} */ ([
      [block, "layer", "block", "{", "}"],
      [head, "head", "head", "[", "]"],
    ]).map(([label, name, called, less, more]) => {
      const group = make("span", "turns");
      group.append(
        turn(`previous ${called}  ${less}`, "‹", name, -1),
        label,
        turn(`next ${called}  ${more}`, "›", name, 1),
      );
      return group;
    });
  element.append(...groups);
  const show = () => {
    const { model, side } = shell.side("A").trace;
    block.textContent = `${side ? `${side} ` : ""}block ${shell.state.layer + 1} of ${model.layers}`;
    head.textContent = `head ${shell.state.head + 1} of ${model.heads}`;
  };
  return { element, show };
}

/**
 * Which head of the other runs stands beside A's.
 * @param {Shell} shell
 */
function matching(shell) {
  const element = make("div", "chips");
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", "which head of the others is shown");
  const options = /** @type {["same" | "alike", string][]} */ ([
    ["same", "same place"],
    ["alike", "most alike"],
  ]).map(([value, text]) => {
    const chip = make("button", "chip", text);
    chip.title =
      value === "same"
        ? "the others show the head of the same block and number"
        : "the others show the head whose attention is most like that of A’s head";
    chip.addEventListener("click", () => shell.go({ match: value, other: null }));
    element.append(chip);
    return { value, chip };
  });
  const show = () => {
    const possible = shell.sides.slice(1).some(({ letter }) => shell.sameShape(letter));
    for (const { value, chip } of options) {
      chip.disabled = value === "same" && !possible;
      const shown = shell.matching(shell.state.beside);
      chip.setAttribute("aria-pressed", String(!shell.state.other && value === shown));
    }
  };
  return { element, show };
}

/**
 * One chip for each attention that the runs share, where there are several.
 * @param {HTMLElement} chips
 * @param {Shell} shell
 */
function showAttentions(chips, shell) {
  const options = shell.data.pairs[shell.data.sides[1].letter].attentions;
  chips.hidden = options.length < 2;
  chips.replaceChildren(
    ...options.map(({ key, first: { side, focus } }) => {
      const chip = make("button", "chip", focus === "cross_attn" ? "cross" : `${side} self`);
      chip.setAttribute("aria-pressed", String(key === shell.state.attention));
      chip.addEventListener("click", () => shell.go({ attention: key }));
      return chip;
    }),
  );
}

/**
 * How many tokens of a run belong to tokens of A, in a sentence.
 * @param {Shell} shell
 * @param {string} letter
 */
function counted(shell, letter) {
  if (shell.data.pairs[letter].same) return `${letter} is the same run as A: change its text, its model or its edits.`;
  const pair = shell.pair(letter);
  if (!pair) return `${letter} has no such attention as the one that is shown.`;
  const { entries } = pair.queries;
  if (shell.side("A").trace.grid && entries.every((entry) => !alone(entry)))
    return `Each row of A stands for the same place as in ${letter}.`;
  /** @param {(entry: Entry) => boolean} which */
  const count = (which) => entries.filter(which).length;
  const both = count((entry) => !alone(entry));
  const same = count((entry) => entry.same);
  const parts = [`${same} ${same === 1 ? "token is" : "tokens are"} the same in A and ${letter}`];
  if (both > same) parts.push(`${both - same} ${both - same === 1 ? "differs" : "differ"} in the same place`);
  for (const [side, name] of /** @type {["first" | "second", string][]} */ ([
    ["second", "A"],
    ["first", letter],
  ])) {
    const left = count((entry) => !entry[side].length);
    if (left) parts.push(`${left} only in ${name}`);
  }
  return `${parts.join(", ")}.`;
}

/**
 * The heading of the panels below: which two runs they are about.
 * @param {HTMLElement} pairs
 * @param {Shell} shell
 */
function showPairs(pairs, shell) {
  const heading = make("h2", "", `A and ${shell.state.beside}`);
  const letters = shell.sides.slice(1).map(({ letter }) => letter);
  const chips =
    letters.length < 2
      ? []
      : letters.map((letter) => {
          const chip = make("button", "chip", `A and ${letter}`);
          chip.setAttribute("aria-pressed", String(letter === shell.state.beside));
          chip.addEventListener("click", () => shell.go({ beside: letter, other: null }));
          return chip;
        });
  if (chips.length) pairs.replaceChildren(...chips);
  else pairs.replaceChildren(heading);
}

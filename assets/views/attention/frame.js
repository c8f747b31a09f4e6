// What stands around the views of the page about attention: all heads at the left, the title, which attention, the tabs.
import { isEdited } from "./colours.js";
import { VIEWS } from "./state.js";
import { bubble } from "../components/bubble.js";
import { make } from "../core/dom.js";
import { byArrows } from "../components/tablist.js";

/**
 * @typedef {import("./attention.js").Page} Page
 * @typedef {{ heads: HTMLElement, room: HTMLElement, details: HTMLElement, live: HTMLElement, show: () => void, tip: Page["tip"],
 *   notice: (sentence: string) => void }} Parts
 */

/**
 * Builds the frame in `page.element`: {heads, room, details, live, show(), tip(title, value), notice(sentence)}.
 * `show` brings title, chips and tabs up to the page's state.
 * @param {Page} page
 * @returns {Parts}
 */
export function frame(page) {
  const notice = make("p", "notice");
  const left = make("aside", "left");
  const right = make("div", "right");
  const title = titleLine(page);
  const chips = make("div", "chips");
  const tabs = tabLine(page);
  const room = make("div", "room");
  room.setAttribute("role", "tabpanel");
  const details = make("aside", "details");
  const pointed = bubble(page.element);
  const live = make("output", "live");
  const top = make("div", "top");
  top.append(title.element, chips);
  const work = make("div", "work");
  work.append(room, details);
  right.append(top, tabs.element, work);
  page.element.replaceChildren(notice, left, right, pointed.element, live);
  /** @param {string} sentence */
  const say = (sentence) => {
    notice.textContent = sentence;
    notice.hidden = !sentence;
  };
  const show = () => {
    title.show();
    showChips(chips, page);
    tabs.show();
    room.setAttribute("aria-label", VIEWS.find(([name]) => name === page.state.view)?.[1] ?? "");
  };
  return { heads: left, room, details, live, show, tip: pointed.show, notice: say };
}

/**
 * The tabs that make sense of what is looked at: an alignment is one of two texts.
 * @param {Page} page
 */
export function viewsOf(page) {
  return VIEWS.filter(([name]) => name !== "alignment" || page.state.focus === "cross_attn");
}

/** @param {Page} page */
function titleLine(page) {
  const element = make("h2", "title");
  /**
   * @param {"layer" | "head"} name
   * @param {number} by
   */
  const step = (name, by) => () => {
    const count = page.trace.model[/** @type {const} */ (`${name}s`)];
    return { [name]: (page.state[name] + by + count) % count };
  };
  /**
   * @param {string} label
   * @param {string} text
   * @param {() => Partial<Record<"layer" | "head", number>>} move
   */
  const turn = (label, text, move) => {
    const button = make("button", "turn", text);
    button.setAttribute("aria-label", label);
    button.title = label;
    button.addEventListener("click", () => page.go(move()));
    return button;
  };
  const [block, head] = [make("span", "where"), make("span", "where")];
  /** @param {Node[]} parts */
  const group = (...parts) => {
    const one = make("span", "turns");
    one.append(...parts);
    return one;
  };
  element.append(
    group(turn("previous block  {", "‹", step("layer", -1)), block, turn("next block  }", "›", step("layer", 1))),
    group(turn("previous head  [", "‹", step("head", -1)), head, turn("next head  ]", "›", step("head", 1))),
  );
  const edited = make("span", "edited-tag", "edited");
  edited.title = "an edit of the what-if reaches into this head";
  element.append(edited);
  const show = () => {
    const { side, model } = page.trace;
    edited.hidden = !isEdited(page, page.state.layer, page.state.head);
    block.textContent = `${side ? `${side} ` : ""}block ${page.state.layer + 1} of ${model.layers}`;
    head.textContent = `head ${page.state.head + 1} of ${model.heads}`;
  };
  return { element, show };
}

/**
 * One chip for each attention of a model that has several.
 * @param {HTMLElement} chips
 * @param {Page} page
 */
function showChips(chips, page) {
  const options = page.trace.sides.flatMap((side) => {
    const crosses = page.data.lanes[side].model.crosses;
    const self = { side, focus: "attn", name: side ? `${side} self` : "self" };
    return crosses ? [self, { side, focus: "cross_attn", name: "cross" }] : [self];
  });
  chips.hidden = options.length < 2;
  if (chips.children.length !== options.length) {
    chips.replaceChildren(
      ...options.map(({ side, focus, name }) => {
        const chip = make("button", "chip", name);
        chip.addEventListener("click", () => page.go({ side, focus }));
        return chip;
      }),
    );
  }
  options.forEach(({ side, focus }, i) =>
    chips.children[i].setAttribute("aria-pressed", String(side === page.trace.side && focus === page.state.focus)),
  );
}

/**
 * The tabs: one is in the tab order, arrow keys move among them.
 * @param {Page} page
 */
function tabLine(page) {
  const element = make("div", "tabs");
  element.setAttribute("role", "tablist");
  element.setAttribute("aria-label", "ways to look at this head");
  const buttons = VIEWS.map(([name, title, about]) => {
    const button = make("button", "tab", title);
    button.setAttribute("role", "tab");
    button.dataset.view = name;
    button.dataset.title = title;
    button.title = about;
    button.addEventListener("click", () => page.go({ view: name }));
    return button;
  });
  element.append(...buttons);
  byArrows(element, () => buttons.filter(({ hidden }) => !hidden));
  const show = () => {
    const names = viewsOf(page).map(([name]) => name);
    for (const button of buttons) {
      if (button.dataset.view === "text") named(button, page.trace.grid);
      const chosen = button.dataset.view === page.state.view;
      button.hidden = !names.includes(button.dataset.view);
      button.setAttribute("aria-selected", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
    }
  };
  return { element, show };
}

/**
 * What is coloured by attention is a text, or a picture.
 * @param {HTMLElement} button
 * @param {import("../components/picture.js").Grid | null} grid
 */
function named(button, grid) {
  const title = grid ? "Picture" : "Text";
  button.textContent = button.dataset.title = title;
  button.title = `the ${title.toLowerCase()} itself, coloured by attention`;
}

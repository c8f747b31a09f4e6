// Terms of the glossary where they stand in titles of views: the first in each title is a link to its entry, with its
// meaning under the pointer. Titles change with what is looked at, so that they are watched.
import { make } from "./dom.js";

const TITLES = "h2, h3, h4, .panel-title, .about > strong, .stage-head > .title";
const MEANS = "[data-means]"; // not links, that say in their own title what their term means
const APART = "a, button, input, label, select, summary, bdi, .note, .formula"; // a bdi is the reader’s text

/** @typedef {{ address: string, meaning: string }} Entry */

/** @type {Map<string, Entry>} By the term in small letters. */
let entries = new Map();
const NOTHING = /(?!)/u; // matches no text, not even an empty one
let pattern = NOTHING;
const roots = new Set();

/**
 * Links terms in the titles of all views, those that are there already too.
 * @param {Record<string, Entry>} terms
 */
export function useTerms(terms) {
  entries = new Map(Object.entries(terms).map(([term, entry]) => [term.toLowerCase(), entry]));
  const longest = Object.keys(terms).sort((a, b) => b.length - a.length);
  const words = longest.map((term) => term.replace(/[$()*+.?[\\\]^{|}]/g, "\\$&")).join("|");
  if (words) pattern = new RegExp(`(?<![\\p{L}\\p{N}_-])(${words})s?(?![\\p{L}\\p{N}_-])`, "iu");
  for (const root of roots) linkWithin(root);
}

/**
 * Links terms in the titles below `root`, now and whenever they change; returns what ends that.
 * @param {HTMLElement} root
 */
export function watchTitles(root) {
  const observer = new MutationObserver((changes) => {
    for (const { target, addedNodes } of changes) {
      const title = target instanceof Element && target.closest(TITLES);
      if (title) linkFirst(title);
      else for (const node of addedNodes) if (node instanceof Element) linkWithin(node);
    }
  });
  observer.observe(root, { childList: true, subtree: true });
  roots.add(root);
  linkWithin(root);
  return () => {
    observer.disconnect();
    roots.delete(root);
  };
}

/** @param {Element} element */
function linkWithin(element) {
  if (element.matches(TITLES)) linkFirst(element);
  for (const title of element.querySelectorAll(TITLES)) linkFirst(title);
  if (element.matches(MEANS)) addMeaning(element);
  for (const named of element.querySelectorAll(MEANS)) addMeaning(named);
}

/** @param {Element} named */
function addMeaning(named) {
  const found = pattern.exec(named.textContent ?? "");
  if (!found || !(named instanceof HTMLElement)) return;
  named.removeAttribute("data-means");
  named.title += `\n${entries.get(found[1].toLowerCase())?.meaning ?? ""}`;
}

/** @param {Element} title */
function linkFirst(title) {
  if (title.querySelector("a.glossary") || title.closest(APART)) return;
  const texts = document.createTreeWalker(title, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    if (!(text instanceof Text) || text.parentElement?.closest(APART)) continue;
    const found = pattern.exec(text.data);
    const entry = found && entries.get(found[1].toLowerCase());
    if (!entry) continue;
    const link = make("a", "glossary", found[0]);
    Object.assign(link, { href: entry.address, title: entry.meaning, target: "_blank", rel: "noopener" });
    const rest = text.splitText(found.index);
    rest.data = rest.data.slice(found[0].length);
    rest.before(link);
    return;
  }
}

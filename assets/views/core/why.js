// A link from a picture to a page that says why: an exact sum over what wrote a logit or a score of a run that is shown, or a sweep.
import { make } from "./dom.js";

const IN_FILE = "given"; // the part that every exported file has: it has no other pages
const FOR_A_CLASS = ["hide", "instruction"]; // which a teacher's link says on every page

/** @typedef {"why_token" | "why_head" | "interventions"} WhyPage */
/** @typedef {Record<string, string | number | undefined>} Place */

/**
 * A link to one of the pages Analyse, for a place in a run; in a file of its own it is hidden. `address` is that of the run, where
 * that is not the page's own.
 * @param {WhyPage} page
 * @param {string} words
 * @param {Place} place
 * @param {Record<string, string>} [address]
 */
export function whyLink(page, words, place, address) {
  const link = /** @type {HTMLAnchorElement} */ (make("a", "why-link", words));
  aim(link, page, place, address);
  link.hidden = Boolean(document.getElementById(IN_FILE));
  return link;
}

/**
 * Leads a link to another place; what of it is "" is left out of the address.
 * @param {HTMLAnchorElement} link
 * @param {WhyPage} page
 * @param {Place} place
 * @param {Record<string, string>} [address]
 */
export function aim(link, page, place, address) {
  const there = new URL(page, document.baseURI); // a frame of a notebook has none of its own
  const own = new URLSearchParams(location.search);
  const query = address ? new URLSearchParams({ v: "1", ...address }) : own;
  for (const name of FOR_A_CLASS) if (own.has(name)) query.set(name, own.get(name) ?? "");
  for (const [name, value] of Object.entries(place)) {
    if (value === "") query.delete(name);
    else if (value !== undefined) query.set(name, String(value));
  }
  there.search = query.toString();
  there.hash = "";
  link.href = there.href;
}

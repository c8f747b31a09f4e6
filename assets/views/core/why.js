// A link from a picture to the page that says why: an exact sum over what wrote a logit or a score of the run that is shown.
import { make } from "./dom.js";

const IN_FILE = "given"; // the part that every exported file has: it has no other pages

/**
 * A link to one of the pages Analyse, for a place in the run that is shown; in a file of its own it is hidden.
 * @param {"why_token" | "why_head"} page
 * @param {string} words
 * @param {Record<string, string | number | undefined>} place
 */
export function whyLink(page, words, place) {
  const link = /** @type {HTMLAnchorElement} */ (make("a", "why-link", words));
  aim(link, page, place);
  link.hidden = Boolean(document.getElementById(IN_FILE));
  return link;
}

/**
 * Leads a link to another place.
 * @param {HTMLAnchorElement} link
 * @param {"why_token" | "why_head"} page
 * @param {Record<string, string | number | undefined>} place
 */
export function aim(link, page, place) {
  const there = new URL(page, location.href);
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(place)) if (value !== undefined) query.set(name, String(value));
  there.search = query.toString();
  there.hash = "";
  link.href = there.href;
}

// The address of what is shown now: model, text and settings as the page says them, the view's own state behind the #.
import { arrived, excess, READABLE } from "../core/address.js";

/**
 * @typedef {import("../core/payload.js").Payload} Payload
 * @typedef {import("./shown.js").View} View
 * @typedef {import("./share.js").Take} Take
 */

const WRITTEN = 250; // ms until address.js has written what it was told
const MOST = 1000; // entries of a query, which Streamlit drops without a word where it names more
/** @type {Record<string, string>} */
const CALLED = { text: "text", second: "second text", target: "target", span: "gap’s words", edits: "edits" };

/**
 * The part behind the #, with where the view stands even if nobody has moved it: an example may change one day.
 * @param {View} view
 */
export async function state(view) {
  view.remember?.();
  await new Promise((resolve) => setTimeout(resolve, WRITTEN));
  return location.hash;
}

/**
 * Raises an Error, with the sentence of `unlinked`, where it would be too long to be read. `hash` is what `state` gives; `shade` fixes light or dark. For a class, `hidden` are controls that the link takes out of sight, and
 * `instruction` stands above the page; with `predict` a guess comes before the picture.
 * @param {Record<string, string>} said
 * @param {string} hash
 * @param {{ hidden?: string[], instruction?: string, predict?: boolean, shade?: string }} [options]
 */
export function link(said, hash, { hidden = [], instruction = "", predict = false, shade = "" } = {}) {
  const more = {
    ...(hidden.length && { hide: hidden.join(",") }),
    ...(instruction && { instruction }),
    ...(predict && { predict: "run" }),
    ...(shade && { embed_options: `${shade}_theme` }),
  };
  const query = queryOf({ ...said, ...more });
  if (excess(query).length) throw new Error(tooLong(query));
  return `${location.origin}${location.pathname}?${query}${hash}`;
}

/**
 * What a person must know of what is shown before they reload the page: a sentence, "" where the address holds all of it.
 * @param {Take} take
 */
export function unlinked(take) {
  const query = queryOf(take.link ?? {});
  return excess(query).length ? tooLong(query) : "";
}

/** @param {Record<string, string>} entries */
function queryOf(entries) {
  return new URLSearchParams(entries).toString().replaceAll("%2C", ",");
}

/** @param {string} query */
function tooLong(query) {
  const names = excess(query).map(called);
  const [is, they, it, stay] =
    names.length > 1 || names[0].endsWith("s") ? ["are", "They", "them", "stay"] : ["is", "It", "it", "stays"];
  const subject = names.join(" and ").replace(/^./, (letter) => letter.toUpperCase());
  const sizes = `the address would have ${written(query.length)} characters after the ?, and at most ${written(READABLE)} are read`;
  return `${subject} ${is} too long for a link: ${sizes}. ${they} ${stay} here until the page is reloaded or closed; paste ${it} again then.`;
}

/**
 * Of an entry of the query: "the text", and of a comparison "the text of A".
 * @param {string} name
 */
function called(name) {
  const [, side, field = name] = name.match(/^(?:([a-d])_)?(.*)$/) ?? [];
  return `the ${CALLED[field] ?? field}${side ? ` of ${side.toUpperCase()}` : ""}`;
}

let untold = arrived;

/** What the address that the page was opened with says in vain because it is too long to be read, a part of a sentence; once. */
export function unread() {
  const [query, names] = [untold, untold.split("&").length];
  untold = "";
  if (query.length <= READABLE && names <= MOST) return [];
  const [has, most, what] = query.length > READABLE ? [query.length, READABLE, "characters"] : [names, MOST, "entries"];
  return [
    `the address had ${written(has)} ${what} after the ? and at most ${written(most)} are read, so all that stood there (text, model, edits) is left out`,
  ];
}

/** @param {number} count */
function written(count) {
  return count.toLocaleString("en");
}

/**
 * What the part behind the # asks for and this run does not have, a part of a sentence each.
 * @param {Record<string, unknown>} state
 * @param {Payload} data
 */
export function missed(state, data) {
  const lanes = data.lanes ?? data.sides?.[0].lanes; // of a comparison, those of the run that the others are compared with
  if (!lanes) return [];
  const sides = Object.keys(lanes);
  const side = typeof state.side === "string" ? state.side : (sides.at(-1) ?? "");
  if (!(side in lanes)) return [`there is no stack “${side}” here`];
  const { model, pieces } = lanes[side];
  const sizes = { layer: ["block", model.layers], head: ["head", model.heads], query: ["row", pieces.length] };
  const found = [];
  for (const [name, [word, size]] of Object.entries(sizes)) {
    const value = state[name];
    if (value === undefined) continue;
    if (typeof value !== "number" || !Number.isInteger(value) || value < 0)
      found.push(`${word} ${JSON.stringify(value)} is no whole number`);
    else if (value >= size)
      found.push(`${word} ${value + 1} is not here, there ${size === 1 ? "is 1" : `are ${size}`}`);
  }
  return found;
}

// View state (layer, head, the chosen cell) in the page's address, after the #, without asking the server.
// Streamlit owns the query string: whenever it changes that, it pushes an address without the part after the #. This
// module sees the change and puts that part back, as long as the page is the same one. What nobody could read again, a
// very long text, it takes out of the query at once.
//
// `#layer=2&head=0&cell=[5,7]`: a value that reads as JSON is JSON, any other is text.

const DELAY = 150; // ms: dragging across heads writes the address once; browsers refuse hundreds of writes a minute
const LONGEST = 20000; // characters
const LED = 500; // ms until a link that turns no page has led
const CARRIED = ["side", "focus", "layer", "head"]; // from one page to the next of those that show the same run
const PAGES_OF_HEADS = ["", "walkthrough", "attention", "compare"];
const SUBJECT = /^([a-d]_)?(model|step|text|second|target|span|picture|given|edits)$/;
const NARROW = "(max-width: 768px)"; // where Streamlit has a drawer in place of menus
/** Characters of a query: Streamlit reads nothing of a longer one, and a browser opens no address above 2 MiB. */
export const READABLE = 2 ** 19;
/** The query that the page was opened with; from another one on it is nobody's business any more. */
export const arrived = location.search.slice(1);
/** Whether this is a frame in a notebook: an address that nobody can write, so what is looked at is kept here alone. */
const framed = location.protocol === "about:";

/** @typedef {Record<string, any>} Entries what stands behind the #, by name: whatever somebody typed there */

let state = parse(location.hash || opened());
let path = location.pathname;
let timer = 0;
let carried = {}; // what was looked at on the last page of heads
/** @type {Record<string, any> | null} */
let led = null; // what the page to come is to look at, whatever was looked at before
let shown = {}; // block, head and row of the picture, which the address may not name
let left = false; // another page is on its way, and whoever still stands here is of the page before
let fresh = false; // whether what changes next begins a step
let entered = false; // whether Enter has ended what was typed
let leaving = false; // whether a link was clicked, and the page has not turned yet
const followers = new Set();
const observers = new Set();

/** What stands in the address now (with what `write` has yet to put there); {} where it makes no sense. */
export function read() {
  return { ...state };
}

/** Block, head and row that are looked at, or on a page without heads were looked at last. */
export function looked() {
  if (path !== location.pathname) turn();
  return pageOfHeads(path) ? { ...shown, ...picked(state) } : carried;
}

/** What is looked at, as it stands behind the # of a link. */
export function linked() {
  return print({ ...looked(), ...state });
}

/**
 * The page to which a link leads now, or this one where it leads nowhere else, looks at what stands behind a #.
 * @param {string} hash
 */
export function lead(hash) {
  led = parse(hash);
  setTimeout(() => {
    if (!led) return; // the page has turned
    [state, led] = [led, null];
    put();
    for (const callback of [...followers, ...observers]) callback(read());
  }, LED);
}

/**
 * Says which block, head and row a page shows, of which its address names what somebody has chosen.
 * @param {Entries} place
 */
export function show(place) {
  shown = { ...picked(place), query: place.query };
  for (const callback of observers) callback();
}

/**
 * Calls `callback()` when `looked` may say something else, by whichever hand. Returns how to stop.
 * @param {(entries?: Entries) => void} callback
 */
export function observe(callback) {
  observers.add(callback);
  return () => observers.delete(callback);
}

/**
 * Merges `patch` into the address; undefined or null takes an entry out. A page that is left says nothing any more.
 * @param {Entries | undefined} patch
 */
export function write(patch) {
  if (path !== location.pathname) turn();
  if (left) return;
  state = Object.fromEntries(
    Object.entries({ ...state, ...patch }).filter(([, value]) => value !== undefined && value !== null),
  );
  clearTimeout(timer);
  timer = setTimeout(put, DELAY);
  for (const callback of observers) callback();
}

/**
 * Calls `callback(object)` when the address changes by other hands: back, forward, an edit. Returns how to stop.
 * @param {(entries: Entries) => void} callback
 */
export function follow(callback) {
  followers.add(callback);
  return () => followers.delete(callback);
}

/** For host.js: a view of the page that stands in the address is drawn. */
export function arrive() {
  if (path !== location.pathname) turn();
  left = false;
}

/**
 * The names of the longest entries of a query (the text behind the ?), without which it can be read; none of most.
 * @param {string} query
 */
export function excess(query) {
  const entries = query.split("&").sort((one, other) => other.length - one.length);
  const found = [];
  for (let left = query.length; left > READABLE; left -= entries[found.length - 1].length + 1)
    found.push(entries[found.length].split("=")[0]);
  return found;
}

/** Takes out of the address what is too long for it; an address that came so is read by nobody, and emptied. */
function shorten() {
  const query = location.search.slice(1);
  const out = excess(query);
  if (!out.length) return;
  const left = query === arrived ? [] : query.split("&").filter((entry) => !out.includes(entry.split("=")[0]));
  history.replaceState(
    history.state,
    "",
    `${location.pathname}${left.length ? "?" : ""}${left.join("&")}${location.hash}`,
  );
}

function put() {
  clearTimeout(timer);
  timer = 0;
  if (framed || path !== location.pathname) return;
  const hash = print(state);
  if (hash === location.hash || hash.length > LONGEST) return;
  history.replaceState(history.state, "", location.pathname + location.search + hash);
}

/** After any change of the address: ours to restore, someone else's to follow, or another page to start afresh. */
function watch() {
  if (framed) return;
  shorten();
  if (path !== location.pathname) return turn();
  if (timer) return; // what waits to be written is newer
  if (!location.hash) return put();
  if (location.hash === print(state)) return;
  adopt();
  for (const callback of [...followers, ...observers]) callback(read());
}

/** What stood there when the page was opened: Streamlit takes a parameter that says the default out of the address, and
 * with it the part after the #, before this module is here. */
function opened() {
  const [entry] = performance.getEntriesByType("navigation");
  const address = entry && new URL(entry.name);
  return address?.pathname === location.pathname ? address.hash : "";
}

/**
 * Another page begins with what stands behind the # there, or with the head that was looked at; whoever follows is of the page
 * before, and is not told.
 */
function turn() {
  if (pageOfHeads(path)) carried = picked(state);
  adopt();
  if (pageOfHeads(location.pathname) && !location.hash) state = led ?? carried;
  if (led) setTimeout(put, DELAY);
  led = null;
  path = location.pathname;
  shown = {};
  left = true;
  closeDrawer();
}

/** @param {Entries} entries */
function picked(entries) {
  return Object.fromEntries(Object.entries(entries).filter(([name]) => CARRIED.includes(name)));
}

/** @param {string} place */
function pageOfHeads(place) {
  return PAGES_OF_HEADS.includes(place.slice(place.lastIndexOf("/") + 1));
}

/** On a phone Streamlit's list of pages stays open, over the page that was chosen in it. */
function closeDrawer() {
  if (!matchMedia(NARROW).matches) return;
  /** @type {HTMLElement | null} */ (document.querySelector('[data-testid="stSidebarCollapseButton"] button'))?.click();
}

/** Streamlit opens its list of pages where it stood open when a page was left: a phone would show that and no page. */
function forgetDrawer() {
  for (const name of Object.keys(localStorage))
    if (name.startsWith("stSidebarCollapsed")) localStorage.removeItem(name);
}

function adopt() {
  clearTimeout(timer);
  timer = 0;
  state = parse(location.hash);
}

/**
 * @param {string} hash
 * @returns {Entries}
 */
function parse(hash) {
  return Object.fromEntries(Array.from(new URLSearchParams(hash.slice(1)), ([name, text]) => [name, value(text)]));
}

/** @param {string} text */
function value(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text; // not JSON: it stands for itself
  }
}

/** @param {Entries} object */
function print(object) {
  const texts = Object.entries(object).map(([name, item]) => [
    name,
    typeof item === "string" && value(item) === item ? item : JSON.stringify(item),
  ]);
  const query = new URLSearchParams(texts)
    .toString()
    .replaceAll("%2C", ",")
    .replaceAll("%5B", "[")
    .replaceAll("%5D", "]");
  return query && `#${query}`;
}

/**
 * Streamlit makes an entry of the browser's history of some changes of a control, and of others none. Here each page has one
 * entry, and one more for every step: another model or input, or an edit, by a hand that has not just changed it already. So
 * the way back takes back what was typed over a text, and leads to the page before as it was left.
 */
function oneEntryPerStep() {
  const [push, replace] = [history.pushState, history.replaceState];
  /** @type {History["pushState"]} */
  const change = (data, unused, url) => {
    const next = new URL(url ?? "", location.href);
    const turns = next.pathname !== location.pathname;
    if (leaving && !turns && next.search !== location.search) return; // of the page to come, before its address stands there
    const changes = subject(next.search) !== subject(location.search);
    const steps = fresh && changes && !turns;
    if (steps) fresh = false;
    if (turns) leaving = false;
    (turns || steps ? push : replace).call(history, data, unused, url);
  };
  history.pushState = change;
  history.replaceState = change;
  document.addEventListener("pointerdown", begin, true);
  document.addEventListener("focusin", ({ target }) => target instanceof HTMLInputElement && begin(), true);
  document.addEventListener("keydown", ({ key }) => (entered ||= key === "Enter"), true);
  document.addEventListener("input", () => entered && begin(), true);
  document.addEventListener("click", ({ target }) => leave(target), true);
}

function begin() {
  fresh = true;
  entered = leaving = false;
}

/** @param {EventTarget | null} target */
function leave(target) {
  const link = target instanceof Element && target.closest("a");
  if (link && link.pathname !== location.pathname && link.target !== "_blank") expectTurn();
}

/** The page turns next, by a link or by the server. */
export function expectTurn() {
  fresh = false;
  leaving = true;
}

/**
 * What of a query is looked at: a model, what it reads, and the edits; of Compare those of every side.
 * @param {string} query
 */
function subject(query) {
  const named = [...new URLSearchParams(query)].filter(([name]) => SUBJECT.test(name));
  return JSON.stringify(named.sort());
}

/** In a notebook what is looked at is told to the cell, which may ask to look elsewhere (assets/notebook/widget.js). */
function speakWithCell() {
  observers.add(() => parent.postMessage({ loupe: { ...looked(), ...state } }, "*"));
  addEventListener("message", ({ data, source }) => {
    if (source !== parent || !data?.loupe) return;
    state = { ...state, ...data.loupe };
    for (const callback of [...followers, ...observers]) callback(read());
  });
}

if (framed) speakWithCell();
oneEntryPerStep();
shorten();
put();
addEventListener("hashchange", watch);
addEventListener("popstate", () => {
  fresh = entered = leaving = false; // what follows is the page's own
  watch();
});
addEventListener("pagehide", () => {
  put();
  forgetDrawer();
});
if (window.navigation)
  navigation.addEventListener("currententrychange", watch); // pushState fires nothing else
else setInterval(watch, 500); // a browser without the Navigation API

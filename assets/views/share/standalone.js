// A view in a file of its own (views/core/export.py): what stands between Streamlit and a view on a page is played here by the file.
import { unpack } from "../core/payload.js";
import { canonical, onRequest, pending, settle } from "../core/store.js";
import { shade } from "../core/theme.js";

const ALONE = "This file has no server behind it; open the link to see this.";
const SAID = 5000; // ms that a sentence stays

const given = JSON.parse(part("given").textContent ?? "");
const place = part("view");
const said = part("said");
let patience = 0;

/**
 * What export.py has written into every such file.
 * @param {string} id
 */
function part(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`This file has no part called ${id}; export it again.`);
  return element;
}

/** @param {string} sentence */
function say(sentence) {
  said.textContent = sentence;
  clearTimeout(patience);
  if (sentence) patience = setTimeout(() => say(""), SAID);
}

/** @param {string} text */
async function unzipped(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Answers every question of the store from what the file holds. */
function serve() {
  const known = new Map(
    /** @type {{ query: object, payload: string }[]} */ (given.answers).map(({ query, payload }) => [
      canonical(query),
      payload,
    ]),
  );
  const asked = new Set();
  onRequest(() => {
    for (const { id, query } of pending()) {
      if (asked.has(id)) continue;
      asked.add(id);
      const payload = known.get(canonical(query));
      if (payload) unzipped(payload).then((bytes) => settle(id, bytes));
      else queueMicrotask(() => settle(id, null, ALONE));
    }
  });
}

/**
 * In a notebook's frame, whose address is about:srcdoc, only the part after the # can be set.
 * @param {string} state
 */
function arriveAt(state) {
  if (location.protocol === "about:") location.hash = state;
  else history.replaceState(null, "", state);
}

async function open() {
  if (given.state && !location.hash) arriveAt(given.state); // before address.js reads it
  serve();
  const module = await import(`../${given.view}.js`);
  const data = unpack(await unzipped(given.payload));
  const root = place.appendChild(document.createElement("div"));
  root.className = "loupe-view";
  shade(root);
  const view = module.mount(root, data, () => say(ALONE));
  const again = () => shade(root) && view.update(data);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  part("shade").addEventListener("click", () => {
    document.documentElement.dataset.shade = root.dataset.theme === "dark" ? "light" : "dark";
    again();
  });
}

open().catch((error) => {
  console.error(error);
  place.textContent = `This view could not be drawn: ${error.message}.`;
});

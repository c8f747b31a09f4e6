// Carries the store's questions to the server and its answers back, through an invisible component that reruns only its
// own fragment. Every message holds all open questions, so that one lost to a rerun of the whole page is simply asked again.
// A page is left once what it has asked is on its way: the fragment would run after the new page, and the browser fails at
// where it stood.
import { unpack } from "./payload.js";
import { hand, hasPending, heldUp, onRequest, pending, settle } from "./store.js";
import { enter, leave, speak, unsent } from "./messages.js";

const FIRST_PATIENCE = 5000; // ms before open questions are asked again; doubles while the server is busy
const LAST_PATIENCE = 60000;

/**
 * A courier; `coming` are the questions that are answered in parts, `parts` what has come of them, by run and place.
 * @typedef {{ patience: number, flying: boolean, timer: number, turn: number, run: number, next: number, hurried: boolean,
 *   coming: Set<number>, parts: Map<number, Map<number, Part>>, emit: StreamlitComponent["setTriggerValue"] | null }} Route
 * @typedef {{ id: number, ended?: boolean, sentence?: string, arrays: Record<string, import("./payload.js").NamedArray> }} Part
 */

/** @type {WeakMap<ShadowRoot, Route>} by the place where each stands */
const routes = new WeakMap();
/** @type {Route} the courier of this page */
let newest;
let path = location.pathname; // of the page that the newest courier stands on

/**
 * Called by Streamlit. A part of an answer comes by the same module: one that is loaded with the first part only may not
 * come, from a server that is just started anew, and a browser does not load again what did not come.
 * @param {string} name
 * @param {StreamlitComponent} component
 */
export async function present(name, component) {
  return name === "courier" ? answer(component) : part(component);
}

/**
 * For every answer, and for every rerun of the page, which may have swallowed a question.
 * @param {StreamlitComponent} component
 */
function answer({ data, parentElement, setTriggerValue }) {
  let route = routes.get(parentElement);
  if (!route) {
    routes.set(
      parentElement,
      (route = {
        patience: FIRST_PATIENCE,
        flying: false,
        timer: 0,
        turn: 0,
        run: 0,
        next: 0,
        hurried: false,
        emit: null,
        coming: new Set(),
        parts: new Map(),
      }),
    );
    enter();
  }
  path = location.pathname;
  const turn = ++route.turn;
  route.emit = setTriggerValue;
  hide(parentElement.host);
  newest = route;
  const { turn: run, answers, arrays, streamed } = unpack(data);
  for (const { id, sentence } of answers) settle(id, arrays[id]?.data, sentence);
  clearTimeout(route.timer);
  if (answers.length) route.patience = FIRST_PATIENCE;
  if (run !== route.run) expect(route, run, streamed);
  route.flying = route.coming.size > 0; // nothing else is asked before all parts are here
  if (route.flying) patiently(route);
  onRequest(() => depart(route));
  return () =>
    setTimeout(() => {
      if (turn !== route.turn || parentElement.host.isConnected) return;
      clearTimeout(route.timer);
      routes.delete(parentElement);
      route.emit = null;
    });
}

/**
 * @param {Route} route
 * @param {number} run
 * @param {number[]} streamed
 */
function expect(route, run, streamed) {
  Object.assign(route, {
    run,
    next: 0,
    hurried: false,
    coming: new Set(streamed),
    parts: new Map([[run, route.parts.get(run) ?? new Map()]]),
  });
  deliver(route);
}

/**
 * For every part of an answer, in any order where several come at once, and again with an old one.
 * @param {StreamlitComponent} component
 */
function part({ data, parentElement }) {
  hide(parentElement.host);
  const route = newest;
  const { turn: run, place, ...said } = unpack(data);
  const parts = route.parts.get(run) ?? new Map();
  route.parts.set(run, parts.set(place, said)); // which may be before the word that it comes
  const { next } = route;
  deliver(route);
  if (route.next === next) return;
  clearTimeout(route.timer);
  route.patience = FIRST_PATIENCE;
  route.flying = route.coming.size > 0;
  if (route.flying) patiently(route);
  else if (hasPending()) depart(route);
}

/**
 * Hands over what has come of this run, in the order in which it was made.
 * @param {Route} route
 */
function deliver(route) {
  const here = route.parts.get(route.run);
  for (let said; (said = here?.get(route.next)); route.next++) {
    const { id, ended, sentence, arrays } = said;
    here?.delete(route.next);
    if (!ended) hand(id, arrays.part.data);
    else if (route.coming.delete(id)) settle(id, null, sentence);
  }
}

/**
 * Nothing to see, so no gap in the page either: neither around the component nor around its fragment.
 * @param {Element} host
 */
function hide(host) {
  const element = '[data-testid="stElementContainer"]';
  const fragment = host.closest('[data-testid="stLayoutWrapper"]');
  const alone = fragment?.querySelectorAll(element).length === 1;
  const outermost = alone ? fragment : host.closest(element);
  if (outermost instanceof HTMLElement) outermost.style.display = "none";
}

/**
 * Once for all that comes now.
 * @param {Route} route
 */
function hurry(route) {
  if (route.coming.size && !route.hurried) route.hurried = heldUp();
}

/** @param {Route} route */
function depart(route) {
  if (route.flying) return hurry(route);
  route.flying = true;
  queueMicrotask(() => ask(route)); // questions asked in one go travel in one message
}

/** @param {Route} route */
function ask(route) {
  route.flying = Boolean(route.emit && hasPending());
  if (!route.flying) return;
  speak("courier", () => route.emit?.("ask", pending()));
  patiently(route);
}

/** @param {Route} route */
function patiently(route) {
  route.timer = setTimeout(() => {
    route.patience = Math.min(2 * route.patience, LAST_PATIENCE);
    ask(route);
  }, route.patience);
}

addEventListener(
  "click",
  (event) => {
    const link = event.composedPath().find((node) => node instanceof HTMLAnchorElement);
    if (!link?.href || link.origin !== location.origin || link.target || link.download) return;
    if (link.pathname === location.pathname) return;
    leave(location.pathname); // with Ctrl too: Streamlit turns the page all the same
    if (!unsent()) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    setTimeout(() => {
      const same = () => document.querySelector(`a[href="${CSS.escape(link.getAttribute("href") ?? "")}"]`); // drawn anew
      (link.isConnected ? link : same())?.dispatchEvent(new MouseEvent("click", event));
    }, unsent());
  },
  true,
);
addEventListener("popstate", () => location.pathname !== path && leave(path));

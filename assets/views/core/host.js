// Stands between Streamlit's components v2 and the view modules. Streamlit calls a component again for every new data,
// for a rerun that brought the same data, and for a new theme; a view hears mount once, update when there is something
// to draw, and destroy once.
import { arrive } from "./address.js";
import { unpack } from "./payload.js";
import { shade } from "./theme.js";
import { watchTitles } from "./terms.js";
import { enter, speak } from "./messages.js";

/**
 * @typedef {Record<string, string>} Styles texts of style sheets, by the name of the module that each stands beside
 * @typedef {import("./payload.js").Payload} Payload
 * @typedef {{ update: (data: Payload) => void, destroy: () => void }} Mounted
 * @typedef {StreamlitComponent["setTriggerValue"]} Emit
 * @typedef {{ mount: (root: HTMLElement, data: Payload, emit: Emit) => Mounted }} Module
 * @typedef {{ root: HTMLElement, sentence: HTMLElement, turn: number, closed: boolean, view: Mounted | null, data: Payload, bytes?: Uint8Array,
 *   module?: Promise<Module>, drawn?: Payload, emit: Emit, unwatch?: () => void, forget: () => void,
 *   offer?: Promise<typeof import("../share/share.js")>, toolbar?: ReturnType<typeof import("../share/share.js").mount> }} Place
 */

/** @type {WeakMap<ShadowRoot, Place>} what is mounted in a root, which outlives reruns */
const places = new WeakMap();

/**
 * Draws `component.data` with the module `name` in `component.parentElement`; returns the clean-up.
 * @param {string} name
 * @param {StreamlitComponent} component
 * @param {Styles} styles
 */
export async function present(name, component, styles) {
  arrive();
  const place = places.get(component.parentElement) ?? open(component.parentElement);
  const turn = ++place.turn;
  place.emit = component.setTriggerValue;
  try {
    const decoded = take(place, component.data);
    const shaded = shade(place.root);
    if (!place.view) {
      place.module ??= import(`../${name}.js`);
      const module = await place.module;
      if (place.closed || place.view) return () => leave(place, turn);
      addStyle(place.root, styles[name]);
      place.drawn = place.data; // the newest, which may have come while the module was loading
      place.view = module.mount(place.root, place.data, (event, value) =>
        speak("page", () => place.closed || place.emit(event, value)),
      );
      place.unwatch = watchTitles(place.root);
      if (place.data.reports)
        requestAnimationFrame(() => speak("page", () => place.closed || place.emit("drawn", true))); // painted
    } else if (decoded || shaded || place.drawn !== place.data) {
      place.drawn = place.data;
      place.view.update(place.data);
    }
    say(place, "");
    if (place.toolbar) place.toolbar.element.hidden = !place.data.take;
    if (place.data.take) offer(place, styles).catch((error) => console.error(error)); // the view stands without it
  } catch (error) {
    console.error(error);
    say(place, `This view ("${name}") could not be drawn: ${error.message}. Reload the page; if it stays, report it.`);
  }
  return () => leave(place, turn);
}

/**
 * What can be taken away stands below the view of a page that says so.
 * @param {Place} place
 * @param {Styles} styles
 */
async function offer(place, styles) {
  place.offer ??= import("../share/share.js");
  const { mount } = await place.offer;
  if (place.closed || !place.view || !place.data.take) return; // it may have changed meanwhile
  if (place.toolbar) place.toolbar.update();
  else {
    addStyle(place.root, styles["share/share"]);
    place.toolbar = mount(/** @type {import("../share/share.js").Place} */ (/** @type {unknown} */ (place)));
  }
}

/**
 * Puts a style sheet behind the view, whose own may stand before it.
 * @param {Element} root
 * @param {string | undefined} text
 */
function addStyle(root, text) {
  if (!text) return;
  const style = document.createElement("style");
  style.className = "loupe-style";
  style.textContent = text;
  root.after(style);
}

/**
 * @param {ShadowRoot} parentElement
 * @returns {Place}
 */
function open(parentElement) {
  enter();
  for (const old of parentElement.querySelectorAll(".loupe-view, .loupe-sentence, .loupe-style")) old.remove();
  const root = document.createElement("div");
  root.className = "loupe-view";
  const sentence = document.createElement("p");
  sentence.className = "loupe-sentence";
  sentence.setAttribute("role", "alert");
  sentence.hidden = true;
  parentElement.append(sentence, root);
  const forget = () => places.delete(parentElement);
  const place = { root, sentence, turn: 0, closed: false, view: null, data: { arrays: {} }, emit: () => {}, forget };
  places.set(parentElement, place);
  return place;
}

/**
 * Decodes new bytes; a rerun that brought the same ones again changes nothing.
 * @param {Place} place
 * @param {Uint8Array} bytes
 */
function take(place, bytes) {
  if (place.bytes && same(place.bytes, bytes)) return false;
  place.data = unpack(bytes);
  place.bytes = bytes;
  return true;
}

/**
 * @param {Uint8Array} a
 * @param {Uint8Array} b
 */
function same(a, b) {
  if (a === b) return true;
  if (a.length !== b?.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/**
 * @param {Place} place
 * @param {string} sentence
 */
function say(place, sentence) {
  place.sentence.textContent = sentence;
  place.sentence.hidden = !sentence;
  place.root.hidden = Boolean(sentence);
}

// Streamlit also runs the clean-up of a call that newer data overtook: only the last call, gone from the page, ends a view.
/**
 * @param {Place} place
 * @param {number} turn
 */
function leave(place, turn) {
  setTimeout(() => {
    if (turn !== place.turn || place.root.isConnected || place.closed) return;
    place.closed = true;
    place.unwatch?.();
    place.forget();
    place.view?.destroy();
  });
}

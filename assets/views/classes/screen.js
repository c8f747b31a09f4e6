// A link to the projector's view, which opens in a window of its own: on the second screen where there is one, and by itself
// when the session has just been started. Streamlit's links cannot say where a window opens.
import { make } from "../core/dom.js";

const WINDOW = "loupe projector"; // its name, and the key under which it is kept which one began by itself

/**
 * @typedef {{address: string, begun: boolean}} Data
 * @param {HTMLElement} root
 * @param {Data} data
 */
export function mount(root, data) {
  const link = /** @type {HTMLAnchorElement} */ (root.appendChild(make("a", "open", "Open the projector’s view")));
  link.target = WINDOW;

  const begin = () => {
    link.href = data.address;
    if (!data.begun || !hasSecond() || sessionStorage.getItem(WINDOW) === data.address) return;
    sessionStorage.setItem(WINDOW, data.address); // once
    open(data.address);
  };
  link.addEventListener("click", (event) => {
    if (!hasSecond()) return;
    event.preventDefault();
    open(data.address);
  });
  begin();
  return {
    /** @param {Data} next */
    update(next) {
      data = next;
      begin();
    },
    destroy() {
      link.remove();
    },
  };
}

/** False too in a browser that cannot know. */
function hasSecond() {
  const { isExtended } = /** @type {any} */ (window.screen);
  return Boolean(isExtended);
}

/**
 * Opens an address on a screen that this window is not on, as large as it. A browser may ask the person first, and opens no
 * window of a click that was long ago; the link stays.
 * @param {string} address
 */
async function open(address) {
  const all = await /** @type {any} */ (window).getScreenDetails?.().catch(() => null);
  const other = all?.screens.find((/** @type {any} */ one) => one !== all.currentScreen);
  const place = other ?? window.screen;
  const [left, top] = [place.availLeft ?? 0, place.availTop ?? 0];
  const size = `left=${left},top=${top},width=${place.availWidth},height=${place.availHeight}`;
  window.open(address, WINDOW, `popup,${size}${other ? ",fullscreen" : ""}`);
}

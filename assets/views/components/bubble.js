// The small bubble beside the pointer: what it stands on, and the number there.
import { make } from "../core/dom.js";
import { follow } from "../core/place.js";

/**
 * {element, show(title, value)}, which follows the pointer over `root`; a title of null hides it.
 * @param {HTMLElement} root
 */
export function bubble(root) {
  const element = make("div", "tip");
  element.hidden = true;
  root.addEventListener("pointermove", (event) => follow(element, event));
  /** @param {string | null} title */
  const show = (title, value = "") => {
    element.hidden = title === null;
    if (title !== null) element.replaceChildren(make("bdi", "", title), make("strong", "", value));
  };
  return { element, show };
}

// The small bubble beside the pointer: what it stands on, and the number there.
import { make } from "../core/dom.js";

/** {element, show(title, value)}, which follows the pointer over `root`; a title of null hides it. */
export function bubble(root) {
  const element = make("div", "tip");
  element.hidden = true;
  root.addEventListener("pointermove", (event) => {
    const wide = window.innerWidth - event.clientX < 260;
    element.style.left = wide ? "" : `${event.clientX + 14}px`;
    element.style.right = wide ? `${window.innerWidth - event.clientX + 14}px` : "";
    element.style.top = `${Math.min(event.clientY + 18, window.innerHeight - 34)}px`;
  });
  const show = (title, value = "") => {
    element.hidden = title === null;
    if (title !== null) element.replaceChildren(make("bdi", "", title), make("strong", "", value));
  };
  return { element, show };
}

// The end of the header: the projector's size, switched on and left. It also gives the list of pages on a phone the roles that
// Streamlit's own elements lack, and views what the terms in their titles mean. Ours, because neither needs the server, and the size outlives pages and reloads of a tab.
import { make } from "./dom.js";
import { useTerms } from "./terms.js";

const KEPT = "loupe projector"; // in the tab's storage
const OPEN = "[data-testid=stPopoverBody], [data-testid=stMainMenuPopover], [role=dialog]"; // which Esc closes first

/**
 * @param {HTMLElement} root
 * @param {{ terms: Record<string, import("./terms.js").Entry> }} data
 */
export function mount(root, data) {
  const button = make("button", "projector");
  button.type = "button";
  if (CSS.supports("zoom", "1.3")) root.append(button); // not in Firefox before 126
  /** @param {boolean} on */
  const show = (on) => {
    document.documentElement.toggleAttribute("data-projector", on);
    button.textContent = on ? "× leave" : "projector";
    button.title = on ? "Back to the usual size (Esc)" : "Projector size: larger type, thicker lines, no margins";
    button.setAttribute("aria-pressed", String(on));
  };
  /** @param {boolean} on */
  const turn = (on) => {
    sessionStorage.setItem(KEPT, on ? "on" : "");
    show(on);
    dispatchEvent(new Event("resize"));
  };
  const isOn = () => document.documentElement.hasAttribute("data-projector");
  /** @param {KeyboardEvent} event */
  const leave = (event) => {
    if (event.key === "Escape" && isOn() && !event.defaultPrevented && !document.querySelector(OPEN)) turn(false);
  };
  button.addEventListener("click", () => turn(!isOn()));
  addEventListener("keydown", leave);
  const kept = sessionStorage.getItem(KEPT); // null until it was switched in this tab
  show(kept === "on" || (kept === null && new URLSearchParams(location.search).has("large"))); // of a link to a lesson
  const drawer = new MutationObserver(nameDrawer);
  const page = document.querySelector("[data-testid=stAppViewContainer]");
  if (page) drawer.observe(page, { childList: true, subtree: true });
  /** @param {{ terms: Record<string, import("./terms.js").Entry> }} data */
  const update = ({ terms }) => {
    nameDrawer();
    useTerms(terms);
  };
  update(data);
  return {
    update,
    destroy() {
      drawer.disconnect();
      removeEventListener("keydown", leave);
      button.remove();
    },
  };
}

/** Its entries stand in a `div` inside the `ul`, which is no list to a screen reader: each group becomes one. */
function nameDrawer() {
  for (const list of document.querySelectorAll("[data-testid=stSidebarNavItems]:not([role])"))
    list.setAttribute("role", "none");
  for (const group of document.querySelectorAll("[data-testid=stSidebarNavItems] > div:not([role])"))
    group.setAttribute("role", "list");
}

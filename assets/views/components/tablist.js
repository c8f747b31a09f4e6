// A row of tabs of which one is in the tab order: left and right go along it.

/**
 * `open()` are the buttons that can be turned to now; the present one says so by aria-selected.
 * @param {HTMLElement} element
 * @param {() => HTMLElement[]} open
 */
export function byArrows(element, open) {
  element.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const buttons = open();
    const here = buttons.findIndex((button) => button.getAttribute("aria-selected") === "true");
    const next = buttons[(here + by + buttons.length) % buttons.length];
    next.click();
    next.focus();
  });
}

// A menu that opens at a button: entries to click, or to go through with the arrows. One is open at a time.
import { make } from "../core/dom.js";

const EDGE = 8; // px to the window's border

export class Menu {
  constructor(root) {
    this.element = make("div", "runs-menu");
    this.element.setAttribute("role", "menu");
    this.element.hidden = true;
    this.button = null;
    root.append(this.element);
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("focusout", (event) => !this.element.contains(event.relatedTarget) && event.relatedTarget && this.close());
    this.away = (event) => {
      const path = event.composedPath();
      if (!path.includes(this.element) && !path.includes(this.button)) this.close();
    };
    this.moved = () => this.follow();
  }

  /** Opens at `button`, or closes if it is open there. `head` is what stands above `entries()`, which are made again where that calls `onChange`.
   * An entry is {label, hint, why, link} or {..., act}; `why` says why it cannot. */
  show(button, menu) {
    const again = this.button === button;
    this.close();
    if (again) return;
    this.button = button;
    button.setAttribute("aria-expanded", "true");
    this.element.setAttribute("aria-label", button.getAttribute("aria-label"));
    this.fill(menu);
    menu.onChange = () => this.fill(menu);
    this.element.hidden = false;
    this.place(button.getBoundingClientRect());
    this.entries[0].focus();
    window.addEventListener("pointerdown", this.away, true);
    window.addEventListener("resize", this.moved);
    window.addEventListener("scroll", this.moved, true);
  }

  fill({ head, entries }) {
    const made = entries().map((entry) => this.entry(entry));
    for (const old of this.entries) old.remove();
    if (!head || this.element.firstChild !== head) this.element.replaceChildren(...(head ? [head] : []));
    this.element.append(...made);
  }

  get entries() {
    return [...this.element.querySelectorAll(".runs-entry")];
  }

  place(at) {
    const { offsetWidth: width, offsetHeight: height } = this.element;
    const below = at.bottom + 4;
    const top = below + height > innerHeight - EDGE ? Math.max(EDGE, at.top - 4 - height) : below;
    this.element.style.left = `${Math.max(EDGE, Math.min(at.right - width, innerWidth - width - EDGE))}px`;
    this.element.style.top = `${top}px`;
  }

  /** Stays at its button while something scrolls, as long as that is in sight. */
  follow() {
    const at = this.button.getBoundingClientRect();
    if (at.bottom < 0 || at.top > innerHeight) this.close();
    else this.place(at);
  }

  entry({ label, hint, why, link, act }) {
    const made = make(link ? "a" : "button", "runs-entry");
    made.append(make("span", "", label), make("small", "", hint ?? ""));
    made.setAttribute("role", "menuitem");
    made.tabIndex = -1;
    if (link) made.href = link;
    else made.type = "button";
    if (why) {
      made.title = why;
      made.setAttribute("aria-disabled", "true");
      return made;
    }
    made.addEventListener("click", () => {
      const { button } = this;
      this.close();
      button?.focus();
      act?.();
    });
    return made;
  }

  close() {
    if (!this.button) return;
    this.button.setAttribute("aria-expanded", "false");
    this.button = null;
    this.element.hidden = true;
    window.removeEventListener("pointerdown", this.away, true);
    window.removeEventListener("resize", this.moved);
    window.removeEventListener("scroll", this.moved, true);
  }

  key(event) {
    if (event.target.tagName === "SELECT" && event.key !== "Escape") return;
    const { entries } = this;
    const at = entries.indexOf(event.target);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (event.key === "Escape" || event.key === "Tab") {
      const { button } = this;
      this.close();
      button?.focus();
      if (event.key === "Tab") return;
    } else if (to !== undefined) entries.at(to % entries.length).focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

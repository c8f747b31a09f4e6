// A column of tokens that are pointed at and picked: one of them is in the tab order, arrow keys walk over the others.
import { make } from "../core/dom.js";
import { swatch } from "../components/picture.js";

const NAMES = { query: "queries", key: "keys" };

/**
 * data = {kind: "query" | "key", pieces, special, pitch, picture?, grid?}; heard = {hover(i | null), pick(i), release(), across()}.
 * Gives {element, light(i | null), focus(i)}.
 */
export function column({ kind, pieces, special, pitch, picture, grid }, heard) {
  const element = make("div", `lines-column of-${kind}`);
  element.setAttribute("role", "listbox");
  element.setAttribute("aria-label", NAMES[kind]);
  const tokens = pieces.map((piece, i) => {
    const token = make("button", "lines-token");
    token.setAttribute("role", "option");
    token.style.height = `${pitch}px`;
    token.style.fontSize = `${Math.min(14, pitch - 3)}px`;
    token.tabIndex = i ? -1 : 0;
    token.title = piece;
    const name = make("bdi", special[i] ? "special" : "", piece);
    const seen = picture && swatch(picture, grid, i);
    token.append(...(seen ? [seen] : []), name);
    return token;
  });
  element.append(...tokens);
  const indexOf = (event) => tokens.indexOf(event.target.closest(".lines-token"));
  const focus = (i) => {
    tokens.forEach((token, j) => (token.tabIndex = i === j ? 0 : -1));
    tokens[i]?.focus();
  };
  let pointed = null;
  const point = (i) => {
    if (i === pointed) return;
    pointed = i;
    heard.hover(i);
  };
  element.addEventListener("pointermove", (event) => event.pointerType !== "touch" && indexOf(event) >= 0 && point(indexOf(event)));
  element.addEventListener("pointerleave", () => point(null));
  element.addEventListener("focusin", (event) => event.target.matches(":focus-visible") && point(indexOf(event)));
  element.addEventListener("focusout", () => point(null));
  element.addEventListener("click", (event) => indexOf(event) >= 0 && heard.pick(indexOf(event)));
  element.addEventListener("keydown", (event) => {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const here = indexOf(event);
    if (by) focus(Math.max(0, Math.min(tokens.length - 1, here + by)));
    else if (event.key === (kind === "query" ? "ArrowRight" : "ArrowLeft")) heard.across();
    else if (event.key === "Escape") heard.release();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  const light = (lit) => {
    tokens.forEach((token, i) => {
      token.classList.toggle("lit", i === lit);
      token.setAttribute("aria-selected", String(i === lit));
    });
  };
  return { element, light, focus };
}

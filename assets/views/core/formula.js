// A formula in the little TeX that engine/analysis/sizes writes, as elements in KaTeX's own letters, which the page has.
import { make } from "./dom.js";

const TOKEN = /\\text\{([^}]*)\}|\\(cdot|left|right|min)|([_^])|([{}])|(\d[\d{},]*\d|\d)|([A-Za-z])|(\s+)|(.)/g;

/**
 * "12 \cdot d_{\text{ff}}^{2}" -> an element.
 * @param {string} tex
 */
export function formula(tex) {
  const root = make("span", "formula");
  const places = [root]; // the element each open brace writes into
  /** @type {HTMLElement | null} */
  let raised = null; // the sub or sup that the next group is
  for (const [whole, text, command, script, brace, digits, letter, space] of tex.matchAll(TOKEN)) {
    const place = places[places.length - 1];
    if (space || command === "left" || command === "right") continue;
    if (script) raised = place.appendChild(make(script === "_" ? "sub" : "sup"));
    else if (brace === "{") {
      places.push(raised ?? place);
      raised = null;
    } else if (brace === "}") places.pop();
    else {
      (raised ?? place).append(written({ text, command, digits, letter, whole }));
      raised = null;
    }
  }
  return root;
}

/** @param {{ text?: string, command?: string, digits?: string, letter?: string, whole: string }} token */
function written({ text, command, digits, letter, whole }) {
  if (text !== undefined) return document.createTextNode(text);
  if (command === "cdot") return make("span", "operator", "·");
  if (command === "min") return document.createTextNode("min");
  if (digits) return document.createTextNode(digits.replace(/[{}]/g, ""));
  if (letter) return make("i", "", letter);
  if (whole === "+" || whole === "-") return make("span", "operator", whole.replace("-", "−"));
  return document.createTextNode(whole === "," ? ", " : whole);
}

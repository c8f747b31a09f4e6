// Fields for text: a line of Streamlit's, and over it an area of ours as soon as the text has several lines, which a browser's line cannot hold.
// What is typed in the area is told to Streamlit as if it had been typed in the line: the server, the address and what is remembered know one field.
import { make } from "../core/dom.js";

const TALLEST = 240; // CSS pixels; a longer text is scrolled
const ECHOES = 50; // of what was told may still come back
const DRAWN = 300; // ms after which Streamlit has drawn what came with the same run
const HINT = "Shift + Enter begins a new line";

/** @typedef {{ fields: Record<string, string>, back: Record<string, string> }} Fields */

/** @type {TextLines | null} */
let lines = null;
let mounted = 0; // one for all: while pages turn, or Streamlit draws anew, two are mounted for a moment

/**
 * data.fields: the name of each field, with its text where that has several lines, else "". data.back: after the browser's way
 * back the text of each that it led to, else nothing. Nothing is drawn in `root`.
 * @param {HTMLElement} root
 * @param {Fields} data
 */
export function mount(root, data) {
  root.className = ""; // no view, for whoever looks for one
  mounted++;
  const shared = (lines ??= new TextLines());
  shared.update(data);
  return {
    /** @param {Fields} next */
    update: (next) => shared.update(next),
    destroy: () => {
      if (--mounted) return;
      shared.destroy();
      lines = null;
    },
  };
}

class TextLines {
  constructor() {
    /** @type {Record<string, string>} */
    this.fields = {};
    /** @type {Map<string, HTMLTextAreaElement>} the area that stands over the line of each field */
    this.areas = new Map();
    /** @type {Map<string, string[]>} what the server has been told of each field, the newest last */
    this.told = new Map();
    /** @param {KeyboardEvent} event */
    this.onKey = (event) => this.key(event);
    /** @param {ClipboardEvent} event */
    this.onPaste = (event) => this.paste(event);
    document.addEventListener("keydown", this.onKey, true); // before Streamlit hears of it
    document.addEventListener("paste", this.onPaste, true);
    this.sizes = new ResizeObserver((entries) =>
      entries.forEach(({ target }) => fit(/** @type {HTMLTextAreaElement} */ (target))),
    ); // a narrower area has more lines
    this.watch = new MutationObserver(() => this.stand());
    this.watch.observe(document.querySelector("[data-testid=stMain]") ?? document.body, {
      childList: true,
      subtree: true,
    });
  }

  destroy() {
    document.removeEventListener("keydown", this.onKey, true);
    document.removeEventListener("paste", this.onPaste, true);
    this.watch.disconnect();
    this.sizes.disconnect();
    for (const field of [...this.areas.keys()]) this.close(field);
  }

  /** @param {Fields} data */
  update(data) {
    for (const field of this.areas.keys()) if (!(field in data.fields)) this.close(field);
    for (const [field, text] of Object.entries(data.fields)) {
      const area = this.areas.get(field);
      if (area && area === document.activeElement && this.told.get(field)?.includes(text)) continue; // what is being written is newer
      this.fields[field] = text;
      if (!text) this.close(field);
      else if (area) put(area, text);
    }
    this.fields = Object.fromEntries(Object.keys(data.fields).map((field) => [field, this.fields[field]]));
    this.stand();
    const here = location.search;
    if (Object.keys(data.back).length) setTimeout(() => location.search === here && this.retype(data.back), DRAWN);
  }

  /**
   * Streamlit's line takes a text that was typed a moment ago for the echo of that, and leaves what was typed after it there.
   * @param {Record<string, string>} texts
   */
  retype(texts) {
    for (const [field, text] of Object.entries(texts)) {
      const line = lineOf(field);
      if (!line || line.value === text.replaceAll("\n", "")) continue;
      typed(line, text);
      apply(line);
    }
  }

  /** Every area where it belongs, after Streamlit has drawn its lines, or drawn them anew. */
  stand() {
    for (const [field, text] of Object.entries(this.fields)) {
      const line = lineOf(field);
      if (line && line.title !== HINT) line.title = HINT;
      if (this.areas.get(field)?.isConnected === false) this.areas.delete(field);
      if (line && text && !this.areas.has(field)) this.open(field, line, text);
    }
  }

  /**
   * @param {string} field
   * @param {HTMLInputElement} line
   * @param {string} text
   */
  open(field, line, text) {
    const area = make("textarea", "loupe-lines");
    area.rows = 1;
    area.setAttribute("aria-label", line.getAttribute("aria-label"));
    area.addEventListener("input", (/** @type {InputEvent} */ event) => {
      fit(area);
      if (!event.isComposing) this.tell(field);
    });
    area.addEventListener("compositionend", () => this.tell(field));
    area.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) apply(lineOf(field));
      event.stopPropagation();
    });
    area.addEventListener("blur", () => {
      apply(lineOf(field));
      if (!area.value.includes("\n")) this.close(field);
    });
    this.areas.set(field, area);
    line.before(area);
    this.sizes.observe(area);
    line.hidden = true;
    put(area, text);
    return area;
  }

  /** @param {string} field */
  close(field) {
    const area = this.areas.get(field);
    const line = lineOf(field);
    this.areas.delete(field);
    area?.remove();
    if (!area || !line) return;
    line.hidden = false;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key === "Enter" && event.shiftKey && !event.isComposing) this.insert(event, "\n");
  }

  /**
   * A line break at the end alone comes along with any line that is copied, and begins no second one.
   * @param {ClipboardEvent} event
   */
  paste(event) {
    const text = (event.clipboardData?.getData("text/plain") ?? "").replaceAll(/\r\n?/g, "\n");
    const line = text.replace(/\n$/, "");
    if (line.includes("\n")) return this.insert(event, text);
    if (line === text || !this.fieldOf(event.target)) return;
    event.preventDefault();
    document.execCommand("insertText", false, line); // a browser would make a space of the line break
  }

  /**
   * Puts a text of several lines where a line has its cursor, and opens the area for it.
   * @param {KeyboardEvent | ClipboardEvent} event
   * @param {string} text
   */
  insert(event, text) {
    const line = /** @type {HTMLInputElement} */ (event.target);
    const field = this.fieldOf(line);
    if (!field) return;
    event.preventDefault();
    event.stopPropagation();
    const [before, behind] = [
      line.value.slice(0, line.selectionStart ?? 0) + text,
      line.value.slice(line.selectionEnd ?? 0),
    ];
    const area = this.open(field, line, before + behind);
    area.focus();
    area.setSelectionRange(before.length, before.length);
    this.tell(field);
  }

  /** @param {EventTarget | null} line */
  fieldOf(line) {
    return Object.keys(this.fields).find((name) => lineOf(name) === line);
  }

  /** @param {string} field */
  tell(field) {
    const { value = "" } = this.areas.get(field) ?? {};
    this.fields[field] = value.includes("\n") ? value : "";
    this.told.set(field, [...(this.told.get(field) ?? []), this.fields[field]].slice(-ECHOES));
    typed(lineOf(field), value);
  }
}

/**
 * @returns {HTMLInputElement | null}
 * @param {string} field
 */
function lineOf(field) {
  return document.querySelector(`.st-key-${field} input`);
}

/**
 * @param {HTMLTextAreaElement} area
 * @param {string} text
 */
function put(area, text) {
  if (area.value !== text) area.value = text;
  fit(area);
}

/** @param {HTMLTextAreaElement} area */
function fit(area) {
  area.style.height = "auto";
  area.style.height = `${Math.min(TALLEST, area.scrollHeight)}px`;
}

/**
 * Types `text` into a line of Streamlit's: React asks the line what it holds, and is told before a browser drops the line breaks.
 * @param {HTMLInputElement | null} line
 * @param {string} text
 */
function typed(line, text) {
  if (!line) return;
  const own = Object.getOwnPropertyDescriptor(line, "value");
  Object.defineProperty(line, "value", { configurable: true, get: () => text, set: () => {} });
  try {
    line.dispatchEvent(new Event("input", { bubbles: true }));
  } finally {
    if (own) Object.defineProperty(line, "value", own);
    else Reflect.deleteProperty(line, "value");
  }
}

/** @param {HTMLInputElement | null} line */
function apply(line) {
  line?.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", code: "Enter", keyCode: 13, bubbles: true }));
}

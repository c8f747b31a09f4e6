// What both pages about attention are, that of a text sent whole and that of a longer one: something to look at, held in `state`,
// that the keyboard turns and the address remembers, with a bubble, a voice, and questions to the server.
import * as address from "../core/address.js";
import { remembered } from "./state.js";
import { make } from "../core/dom.js";
import { request } from "../core/store.js";

/**
 * What the views of a page read of it.
 * @typedef {Record<string, any> & Pick<AttentionPage, "request"> & { trace: any, state: any, width: number, narrow: boolean }} Page
 */

export class AttentionPage {
  /** @type {import("../core/trace.js").Trace} */
  trace;
  /** @type {ReturnType<typeof import("./state.js").restore>} what is looked at */
  state;
  /** @type {HTMLStyleElement} */
  style;
  /** @type {ReturnType<typeof import("./frame.js").frame>} */
  parts;
  styled = new Set(); // views whose look is here

  /** Where the views stand. */
  get place() {
    return this.parts.room;
  }

  /** The pieces of the columns. */
  get keys() {
    return this.trace.keys(this.state.focus);
  }

  /** Whether each column is a special token. */
  get specialKeys() {
    return (this.state.focus === "cross_attn" ? this.trace.source : this.trace).special;
  }

  /** Opens the tab that the state names; the one before stays until the module is here. */
  async open() {
    const name = (this.opened = this.state.view);
    const root = make("div", `view view-${name}`);
    let module = null;
    let failure = null;
    try {
      module = await import(`./${name}.js`);
    } catch (error) {
      failure = error;
    }
    if (this.opened !== name) return;
    this.view?.destroy();
    this.view = null;
    this.place.replaceChildren(root);
    if (failure) {
      console.error(failure);
      root.append(make("p", "sentence", `This view could not be loaded: ${failure.message}. Reload the page; if it stays, report it.`));
      return;
    }
    if (module.CSS && !this.styled.has(name)) this.style.textContent += module.CSS;
    this.styled.add(name);
    this.view = this.mounted(module, root, name);
    this.view.update();
  }

  /** Looks at something else. */
  go(change) {
    throw new Error(`expected a page that goes to ${JSON.stringify(change)}; define go in it`);
  }

  mounted(module, root, _name) {
    return module.mount(root, this);
  }

  tip(title, value) {
    this.parts.tip(title, value);
  }

  /**
   * Asks about the run that is looked at.
   * @template {keyof import("../core/store.js").Queries} Name
   * @param {import("../core/store.js").Query<Name>} query
   */
  request(query) {
    return request({ trace: this.trace.trace, ...query });
  }

  tell(sentence) {
    this.parts.live.textContent = sentence;
  }

  key(event) {
    const target = event.composedPath()[0];
    if (!this.trace || event.ctrlKey || event.metaKey || event.altKey || target.closest?.("input, textarea, select, [contenteditable]")) return;
    const { state, trace } = this;
    const { layers, heads } = trace.model;
    const [head, layer] = [{ "[": -1, "]": 1 }[event.key], { "{": -1, "}": 1 }[event.key]];
    if (head) this.go({ head: (state.head + head + heads) % heads });
    if (layer) this.go({ layer: (state.layer + layer + layers) % layers });
  }

  remember() {
    address.write(remembered(this.state, this.trace));
  }
}

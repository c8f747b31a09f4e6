// What both pages about attention are, that of a text sent whole and that of a longer one: something to look at, held in `state`,
// that the keyboard turns and the address remembers, with a bubble, a voice, and questions to the server.
import * as address from "./address.js";
import { remembered } from "./attention_state.js";
import { request } from "./store.js";

/** Whoever extends it has `trace`, `state`, the `parts` of attention_frame.js, and `go(change)`. */
export class AttentionPage {
  /** The pieces of the columns. */
  get keys() {
    return this.trace.keys(this.state.focus);
  }

  /** Whether each column is a special token. */
  get specialKeys() {
    return (this.state.focus === "cross_attn" ? this.trace.source : this.trace).special;
  }

  tip(title, value) {
    this.parts.tip(title, value);
  }

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

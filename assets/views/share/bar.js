// The bar in the header of every page: what is looked at. Ours, because block and head change without a message to the server.
import * as address from "../core/address.js";
import { make } from "../core/dom.js";

/** @typedef {{model: string, text: string, about: string, look: {layer?: number, head?: number}, assumed: string[]}} Data */

/**
 * @param {HTMLElement} root
 * @param {Data} data
 * `about` says more of the model; `look` is what the page shows where its address says nothing else; `assumed` are keys of a
 * config.json that is not there
 */
export function mount(root, data) {
  const line = make("p", "looked-at");
  const [model, text, place] = ["model", "text", "place"].map((name) => make("span", name));
  const assumed = make("span", "assumed");
  line.append(model, assumed, text, place);
  root.append(line);
  const draw = () => {
    const { layer, head } = { ...data.look, ...address.looked() };
    const [block, one] = [layer, head].map((index) =>
      index !== undefined && Number.isInteger(index) && index >= 0 ? index + 1 : 0,
    );
    model.textContent = data.model;
    assumed.textContent = data.assumed.length ? "assumed" : "";
    assumed.title = `No config.json says ${data.assumed.join(", ")}: open Inspect, Open a model, and confirm or correct it.`;
    text.textContent = data.text;
    place.textContent = [block && `block ${block}`, one && `head ${one}`].filter(Boolean).join(" · ");
    line.title = [data.about, data.text].filter(Boolean).join("\n");
  };
  draw();
  const stop = address.observe(draw);
  return {
    /** @param {Data} next */
    update(next) {
      data = next;
      draw();
    },
    destroy() {
      stop();
      line.remove();
    },
  };
}

// From where to where attention is rolled out, and whose.
import { span } from "./over.js";
import { choices } from "../components/choices.js";
import { make, range } from "../core/dom.js";

/** From which block to which a rollout goes, and whether of one head: {element, show(id)}: of the measure of that name. */
export function mountRange(page) {
  const element = make("div", "blocks-of");
  const blocks = element.appendChild(make("div", "blocks-of"));
  const pick = (name, at, change) => {
    const select = make("select");
    select.setAttribute("aria-label", `${name} block`);
    select.addEventListener("change", () => page.go(change(Number(select.value))));
    blocks.append(make("span", "", name), select);
    return (value, count) => {
      if (select.length !== count) select.replaceChildren(...range(0, count).map((i) => Object.assign(make("option", "", i + 1), { value: i })));
      select.value = String(value[at]);
    };
  };
  const current = () => span(page.state, page.trace);
  const first = pick("from", 0, (start) => ({ first: start, last: Math.max(start, current()[1]) }));
  const last = pick("to", 1, (end) => ({ last: end, first: Math.min(end, current()[0]) }));
  const heads = choices("heads that count", [["all", "heads averaged"], ["one", "this head"]], (which) => page.go({ alone: which === "one" || undefined }));
  element.append(heads.element);
  const show = (id) => {
    element.hidden = id !== "rollout" && id !== "layers";
    blocks.hidden = id !== "rollout";
    for (const one of [first, last]) one(current(), page.trace.model.layers);
    heads.show(page.state.alone ? "one" : "all");
  };
  return { element, show };
}

export const RANGE = `
.over-text .blocks-of { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; font-size: 13px; color: var(--soft); }
.over-text > .blocks-of { margin-top: 14px; }
`;

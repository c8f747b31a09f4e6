// Controls of a tab, each under its name.
import { make } from "../core/dom.js";

/** {element, show(options, value)} */
export function selectOf(name, pick) {
  const element = label(name);
  const select = element.appendChild(make("select"));
  select.addEventListener("change", () => pick(select.value));
  const show = (options, value) => {
    const drawn = options.join("\n");
    if (select.dataset.drawn !== drawn) {
      select.replaceChildren(...options.map((one) => Object.assign(make("option", "", one), { value: one })));
      select.dataset.drawn = drawn;
    }
    select.value = value;
  };
  return { element, show };
}

/** {element, input, show(value)}: what a person is typing in is left alone. */
export function inputOf(name, type, pick) {
  const element = label(name);
  const input = element.appendChild(Object.assign(make("input"), { type }));
  input.addEventListener(type === "range" ? "input" : "change", () => pick(input.value));
  const show = (value) => {
    if (input.getRootNode().activeElement !== input) input.value = value;
  };
  return { element, input, show };
}

function label(name) {
  const element = make("label", "p-field");
  element.append(make("span", "p-name", name));
  return element;
}

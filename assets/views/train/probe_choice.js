// Which head is looked at: one attention of several, and arrows to its block and head.
import { choices } from "../components/choices.js";
import { make } from "../core/dom.js";

/** {element, update(attention)}: a press is `lab.go`. */
export function choice(lab) {
  const element = make("div", "probe-choice");
  const place = make("div");
  const [block, head] = [turns(lab, "block", "layer", "layers"), turns(lab, "head", "head", "heads")];
  element.append(place, block.element, head.element);
  let [offered, pressed] = ["", null];
  const update = (attention) => {
    const keys = lab.attentions.map(({ key }) => key).join();
    if (keys !== offered) {
      offered = keys;
      pressed = choices("which attention", lab.attentions.map(({ key, title }) => [key, title]), (key) => lab.go({ attention: key }));
      place.replaceChildren(pressed.element);
      place.hidden = lab.attentions.length < 2;
    }
    pressed.show(attention.key);
    block.show(lab.state.layer, attention);
    head.show(lab.state.head, attention);
  };
  return { element, update };
}

function turns(lab, name, entry, many) {
  const element = make("span", "turns");
  const text = make("span", "number");
  let all = 1;
  const button = (sign, by) => {
    const one = make("button", "turn", sign);
    one.type = "button";
    one.setAttribute("aria-label", by < 0 ? `the ${name} before` : `the next ${name}`);
    one.addEventListener("click", () => lab.go({ [entry]: (lab.state[entry] + by + all) % all }));
    return one;
  };
  const [before, after] = [button("‹", -1), button("›", 1)];
  element.append(before, text, after);
  const show = (i, attention) => {
    all = attention[many];
    text.textContent = `${name} ${i + 1} of ${all}`;
    before.disabled = after.disabled = all < 2;
  };
  return { element, show };
}

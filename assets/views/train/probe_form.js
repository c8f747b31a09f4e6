// The example that is watched, in fields: another one can be given at any time, and the past is looked at again with it.
import { make } from "../core/dom.js";
import { computed } from "../vendor/signals-core.js";

/**
 * @import { Example, Probe } from "./run.js"
 * @import { Page } from "./train.js"
 */

const COMES =
  "This run came with Loupe and watches the example that it was recorded with; train one of your own to choose another.";
/** @type {Record<string, string>} objective -> what the second field is called; a text that is continued has none */
const ASKS = {
  sequence_to_sequence: "it should write",
  completion: "it should write",
  infill: "in the gap",
  masked: "without gaps",
  classification: "its class",
};

/**
 * {element, update()}.
 * @param {Page} page
 */
export function form(page) {
  /** @type {HTMLFormElement} */
  const element = make("form", "probe-form");
  const fields = {
    text: field("text", "text"),
    target: field("target", ""),
    label: select("its class"),
    picture: field("picture", "picture", "number"),
  };
  Object.assign(fields.picture.input, { min: 0, step: 1 });
  const [before, after] = [turn("‹", "the picture before"), turn("›", "the next picture")];
  fields.picture.element.append(before, after);
  const submit = make("button", "probe-look", "Watch");
  submit.type = "submit";
  const said = make("p", "probe-said");
  said.setAttribute("role", "status");
  element.append(
    fields.text.element,
    fields.target.element,
    fields.label.element,
    fields.picture.element,
    submit,
    said,
  );
  let [waiting, refused] = [false, ""];
  /** @type {{ run: string | null, probe: Probe | null, objective: string | undefined } | undefined} */
  let known;
  const watching = computed(() => ({ run: page.run, probe: page.probe, objective: page.task?.objective }));
  let touched = false; // whether somebody has written here what is not asked yet, or not answered

  const watched = () => JSON.stringify(given(page)) === JSON.stringify(asked());
  /** @returns {Example} */
  const asked = () => {
    if (page.probe?.pixels || page.task?.data === "digits")
      return { text: null, target: null, picture: Number(fields.picture.input.value) };
    const second = fields.label.element.hidden ? fields.target : fields.label;
    return {
      text: fields.text.input.value,
      target: second.element.hidden || !second.input.value ? null : second.input.value,
      picture: null,
    };
  };
  const ask = async () => {
    const { run } = page;
    [touched, waiting, refused] = [true, true, ""];
    tell();
    try {
      await page.order({ ask: "probe", ...asked() });
    } catch (error) {
      if (run === page.run) refused = error.message;
    }
    waiting = false;
    tell();
  };
  /** @param {number} by */
  const move = (by) => {
    const { input } = fields.picture;
    input.value = String(Math.max(0, Math.min(page.pictureCount - 1, (Number(input.value) || 0) + by)));
    ask();
  };
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!submit.disabled) ask();
  });
  element.addEventListener("input", () => {
    touched = true;
    tell();
  });
  fields.label.input.addEventListener("change", ask);
  before.addEventListener("click", () => move(-1));
  after.addEventListener("click", () => move(1));

  const tell = () => {
    const fixed = Boolean(page.status?.recorded);
    const why = fixed
      ? COMES
      : waiting
        ? "on its way"
        : touched && !watched()
          ? ""
          : "this is the example that is watched";
    submit.disabled = Boolean(why);
    submit.title = why || "look at the model with this, at its past steps too";
    const late = page.status?.catching_up ? "Its snapshots are being looked at with the new example …" : "";
    const sentence = refused || page.probe?.error || (waiting ? "On its way …" : late);
    const whole = sentence.charAt(0).toUpperCase() + sentence.slice(1);
    if (whole !== said.textContent) said.textContent = whole;
    said.classList.toggle("refused", Boolean(refused || page.probe?.error));
  };
  const update = () => {
    const now = watching.value;
    if (now !== known) {
      const other = now.run !== known?.run;
      known = now;
      if (other) refused = "";
      if (other || !touched || watched()) show();
    }
    tell();
  };
  const show = () => {
    const { probe, task, status } = page;
    const picture = task?.data === "digits";
    const labels = probe?.labels ?? [];
    const classes = task?.objective === "classification" && !picture && labels.length > 0;
    fields.text.element.hidden = picture;
    fields.picture.element.hidden = !picture;
    fields.label.element.hidden = !classes;
    fields.target.element.hidden = picture || classes || !(task && task.objective in ASKS);
    fields.target.name.textContent = ASKS[task?.objective ?? ""] ?? "";
    fields.label.offer(labels);
    if (picture)
      Object.assign(fields.picture.input, {
        max: page.pictureCount - 1,
        title: `0 to ${page.pictureCount - 1}: a picture that is held out`,
      });
    for (const { input } of Object.values(fields)) input.disabled = Boolean(status?.recorded);
    for (const one of [before, after]) one.disabled = Boolean(status?.recorded);
    fields.text.input.value = probe?.text ?? "";
    fields.target.input.value = probe?.target ?? "";
    fields.label.input.value = probe?.target ?? "";
    fields.picture.input.value = String(probe?.picture ?? 0);
    touched = false;
  };
  return { element, update };
}

/**
 * @param {Page} page
 * @returns {Example}
 */
function given({ probe }) {
  return { text: probe?.text ?? null, target: probe?.target ?? null, picture: probe?.picture ?? null };
}

/**
 * @param {string} name
 * @param {string} title
 * @returns {{ element: HTMLElement, input: HTMLInputElement, name: HTMLElement }}
 */
function field(name, title, type = "text") {
  const element = make("label", `probe-field ${name}`);
  const input = make("input");
  const heading = make("span", "", title);
  Object.assign(input, { type, name, autocomplete: "off", spellcheck: false });
  if (type === "text") input.dir = "auto";
  element.append(heading, input);
  return { element, input, name: heading };
}

/** @param {string} title */
function select(title) {
  /** @type {HTMLElement} */
  const element = make("label", "probe-field label");
  /** @type {HTMLSelectElement} */
  const input = make("select");
  element.append(make("span", "", title), input);
  /** @param {string[]} labels */
  const offer = (labels) => {
    if (input.dataset.offered === labels.join("\n")) return;
    input.dataset.offered = labels.join("\n");
    const nothing = make("option", "", "not known");
    nothing.value = "";
    input.replaceChildren(nothing, ...labels.map((label) => make("option", "", label)));
  };
  return { element, input, offer };
}

/**
 * @param {string} sign
 * @param {string} label
 * @returns {HTMLButtonElement}
 */
function turn(sign, label) {
  const one = make("button", "turn", sign);
  one.type = "button";
  one.setAttribute("aria-label", label);
  return one;
}

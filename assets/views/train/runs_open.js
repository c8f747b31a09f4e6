// Where a run can be opened: any page of Loupe, with the weights of any step that was kept, and two of its steps beside each other.
import * as address from "../core/address.js";
import { make } from "../core/dom.js";
import { upTo } from "./metrics.js";
import { whole } from "./words.js";

const PAGES = [["Walkthrough", "walkthrough"], ["Attention", "attention"], ["Generate", "generate"], ["Compare", "compare"], ["Checkpoint", "checkpoint"], ["Architecture", "architecture"], ["Long sequences", "long_sequences"]];
const NEWEST = ""; // in place of a step: the newest weights, whichever those are when a link is followed

/** {head, entries(), onChange}: what stands above the menu's entries, and these for what is chosen there; `onChange` is called for a choice. */
export function opened(table, run) {
  const { steps, step, other } = stepsOf(table, run);
  const chosen = { step, other };
  const menu = { entries: () => entriesOf(table, run, chosen), onChange: () => {} };
  const choice = (title, name, options) => {
    const label = make("label", "runs-choice", `${title} `);
    const select = make("select");
    select.append(...options.map(([value, text]) => new Option(text, value)));
    select.setAttribute("aria-label", title);
    select.value = chosen[name];
    select.addEventListener("change", () => {
      chosen[name] = select.value === NEWEST ? NEWEST : Number(select.value);
      menu.onChange();
    });
    label.append(select);
    return label;
  };
  const listed = steps.map((one) => [one, `step ${whole(one)}`]);
  menu.head = make("div", "runs-choices");
  menu.head.append(choice("weights of", "step", [[NEWEST, "the newest step"], ...listed.toReversed()]));
  if (comparedWith(table, run) === run && steps.length) menu.head.append(choice("compared with", "other", listed));
  return menu;
}

/** The kept steps, and those that are chosen at first: at the page's handles, where this is the run that is looked at. */
function stepsOf({ data }, run) {
  const { snapshots: steps } = run;
  const handles = run.name === data.run ? address.read() : {};
  const kept = (step) => (Number.isInteger(step) ? steps[upTo(steps, steps.length, step)] : undefined);
  return { steps, step: kept(handles.step) ?? NEWEST, other: kept(handles.other) ?? steps[0] ?? NEWEST };
}

function entriesOf(table, run, { step, other }) {
  const model = `run:${run.name}${step === NEWEST ? "" : `@${step}`}`;
  return PAGES.map(([label, page]) => (page === "compare" ? compared(table, run, step, other) : { label, link: linked(page, { model }) }));
}

/** The run that is looked at, which another one is compared with; this one where it is that. */
function comparedWith({ runs, data }, run) {
  return runs.find(({ name, parameters }) => name === data.run && parameters !== null) ?? run;
}

/** The page about comparisons names a run and its step apart. */
function compared(table, run, step, other) {
  const looked = comparedWith(table, run);
  const last = ({ snapshots }) => snapshots.at(-1) ?? 0;
  const chosen = (which) => (which === NEWEST ? last(run) : which);
  const [a, b] = looked === run ? [chosen(other), chosen(step)] : [last(looked), chosen(step)];
  const link = linked("compare", { a_model: `run: ${looked.name}`, a_step: a, b_model: `run: ${run.name}`, b_step: b });
  if (looked !== run) return { label: "Compare", hint: `${looked.name} | this`, link };
  return { label: "Compare two steps", hint: `${whole(a)} | ${whole(b)}`, link };
}

/** Spaces stand as %20, for links that are copied. */
function linked(page, query) {
  const written = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return new URL(`./${page}?${written.join("&")}`, location.href).href;
}

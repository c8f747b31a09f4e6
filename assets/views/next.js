// The last stage: the distribution over next tokens, what temperature and cuts left of it, and the token drawn from it.
import { make } from "./dom.js";
import { percent } from "./format.js";

const TITLES = { next: "next token", here: "which token", class: "which class" };

/** Builds the stage; `parts.bars` becomes the place of the bars and `parts.next()` follows the row that is read. */
export function nextStage(page, parts) {
  const { trace, state, sizes } = page;
  const section = make("section", "stage stage-next");
  const column = make("div", "column");
  column.style.width = page.narrow ? "100%" : `${sizes.next}px`;
  const element = make("div", "stage-head");
  const button = make("button", "role-probability", trace.grid?.predicts ? "next pixel" : TITLES[trace.reads]);
  button.setAttribute("aria-expanded", String(state.open.has("next")));
  button.title = "from logits to probabilities, every stage";
  button.dataset.stage = "next";
  button.addEventListener("click", () => page.toggle("next"));
  const after = make("span", "formula", { next: "after ", here: "at ", class: "of the whole" }[trace.reads]);
  const whose = make("bdi");
  if (trace.reads !== "class") after.append(whose);
  element.append(button, after);
  parts.bars = make("div");
  const left = make("p", "cuts", cuts(page));
  const second = trace.follows === null ? "" : make("p", "follows", `the second text follows the first: ${percent(trace.follows)}`);
  const { element: sampled, show } = trace.sampled ? drawn(page) : { element: "", show: () => {} };
  column.append(element, parts.bars, left, second, sampled);
  section.append(column);
  parts.next = () => {
    show();
    whose.textContent = `“${trace.pieces[state.query]}”`;
    left.textContent = cuts(page);
  };
  parts.next();
  return section;
}

/** What temperature, top-k and top-p left of the vocabulary at the row that is read. */
function cuts({ trace, state }) {
  const { temperature, top_k: k, top_p: p } = trace.sampling;
  if (temperature === 0) return "temperature 0, greedy: the largest logit takes everything";
  const row = trace.outcomeRow(state.query);
  const kept = trace.arrays["next.kept_p"].data[row];
  const share = trace.arrays["next.kept_share"].data[row];
  const what = trace.reads === "class" ? "classes" : trace.grid ? "colours" : "tokens";
  const settings = [`temperature ${temperature}`, k ? `top-k ${k}` : "", p < 1 ? `top-p ${p}` : ""].filter(Boolean).join(", ");
  const all = trace.model.vocab.toLocaleString("en");
  if (kept === trace.model.vocab) return `${settings}: all ${all} ${what} kept`;
  return `${settings}: ${kept.toLocaleString("en")} of ${all} ${what} kept, holding ${percent(share)}`;
}

/** The token drawn at the end of the text, whichever row is read: {element, show()}. */
function drawn({ trace, state, emit }) {
  const element = make("div", "drawn");
  const { id, probability } = trace.sampled;
  const name = make("bdi", "token-chip", trace.names[id]);
  const line = make("span");
  const where = make("span");
  line.append(where, name, ` ${percent(probability)}`);
  const append = make("button", "action", "append");
  append.disabled = Boolean(trace.full);
  append.title = trace.full ? "the text fills the model's context" : "put this token behind the text and run again";
  append.addEventListener("click", () => emit("append", { id, length: trace.length }));
  const again = make("button", "action quiet", "draw again");
  again.addEventListener("click", () => emit("again", true));
  element.append(line, append, again);
  const show = () => {
    where.textContent = state.query === trace.length - 1 ? "drawn: " : "drawn at the end: ";
  };
  show();
  return { element, show };
}

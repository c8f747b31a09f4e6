// What the head's verdict is called: over what it decides, which question it answers, how the title of one line asks for it.

/** The title of the last stage. */
export function titleOf(trace) {
  if (trace.grid?.predicts) return "next pixel";
  if (trace.link === "logistic") return `${trace.names[0]}?`;
  if (trace.link === "identity") return "score";
  if (trace.model.head === "token") return "which class";
  return { next: "next token", here: "which token", class: "which class", answer: "answer" }[trace.reads];
}

/** What a distribution is over, in the plural. */
export function noun(trace) {
  if (trace.reads === "answer") return "positions";
  if (trace.model.head === "token" || trace.reads === "class") return "classes";
  return trace.grid ? "colours" : "tokens";
}

/** How the candidate called `name` came about, read at `reader`; of an answer in list 0 (start) or 1 (end). */
export function asked(trace, name, reader, list) {
  if (trace.reads === "answer") return `How “${name}” came to be where the answer ${list ? "ends" : "starts"}`;
  if (trace.link === "logistic") return `How “${reader}” came to be ${name}, or not`;
  if (trace.reads === "next") return `How “${name}” came to follow “${reader}”`;
  if (trace.model.head === "token") return `How “${reader}” came to be ${name}`;
  return trace.reads === "here" ? `How “${name}” came to stand at “${reader}”` : `How “${name}” came about`;
}

/** What column `unit` of a hook is called: a class has a name. */
export function column(trace, hook, unit) {
  if (!/^(logits|head\.(cls|distilled))$/.test(hook)) return unit;
  return trace.reads === "answer" ? ["start", "end"][unit] : (trace.names[unit] ?? unit);
}

/** How strongly each row's token is painted, in 0..1; null where the head says nothing of the kind. */
export function painted(trace) {
  if (trace.sides.length > 1) return null; // a decoder that reads the text again is one token behind
  if (trace.answer) return (row) => (row >= trace.answer.start && row <= trace.answer.end ? 1 : 0);
  if (trace.link !== "logistic") return null;
  const { data } = trace.arrays["next.probability"];
  return (row) => data[row];
}

// What of the page about training only the browser needs to know, and how it stands in the address after the #.

export const TABS = ["two", "gradients", "weights", "activations"];

/** The state that the address names; what makes no sense there is left out. */
export function restore(said) {
  const whole = (x) => (Number.isInteger(x) && x >= 0 ? x : undefined);
  const { attention } = said;
  return {
    step: whole(said.step) ?? "live",
    other: whole(said.other) ?? null,
    attention: ["attn", "encoder", "cross_attn"].includes(attention) ? attention : undefined,
    layer: whole(said.layer) ?? 0,
    head: whole(said.head) ?? 0,
    position: whole(said.position) ?? null,
    tab: TABS.includes(said.tab) ? said.tab : "two",
    log: said.x === "log",
    curve: typeof said.curve === "string" ? said.curve : "lr",
    chosen: attention !== undefined || said.head !== undefined || said.layer !== undefined,
  };
}

/** The same for the address: what is the default does not stand there. */
export function remembered(state) {
  return {
    step: state.step === "live" ? null : state.step,
    other: state.other,
    attention: state.chosen ? state.attention : null,
    layer: state.chosen ? state.layer : null,
    head: state.chosen ? state.head : null,
    position: state.position,
    tab: state.tab === "two" ? null : state.tab,
    x: state.log ? "log" : null,
    curve: state.curve === "lr" ? null : state.curve,
  };
}

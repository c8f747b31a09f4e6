// How a run is doing, in words, and what can be done with it just now.

const ENDED = { stopped: "stopped", killed: "ended", failed: "failed" };
const ENDS = { 1: "st", 2: "nd", 3: "rd" };

/** One sentence about the run that is looked at. */
export function told(lab) {
  const { status, data } = lab;
  if (!status && lab.trouble) return "no run is shown";
  if (!status) return lab.run || data.recorded ? "looking for the run …" : "nothing has been trained yet";
  const at = `step ${whole(status.step)} of ${whole(status.steps)}`;
  const { state } = status;
  if (state === "queued") return [status.position ? `waiting: ${ordinal(status.position)} in the queue` : "waiting for its turn", kept(status)].filter(Boolean).join(" · ");
  if (state === "preparing") return "preparing: the data is read and the model is built";
  if (state === "running") return ["training", at, pace(lab), left(status)].filter(Boolean).join(" · ");
  if (state === "paused") return `paused at ${at}`;
  const finished = status.recorded ? "finished, recorded for you" : "finished";
  if (state === "finished") return [finished, `${whole(status.step)} steps`, took(lab)].filter(Boolean).join(" · ");
  if (state === "new") return `at its beginning: ${at}`;
  if (status.error) return `${ENDED[state]} at ${at}: ${status.error}`;
  return `${ENDED[state] ?? state} at ${at}`;
}

/** What of the runs that are before it rests, and could be stopped. */
function kept({ resting }) {
  if (!resting.length) return "";
  const [first, ...others] = resting;
  const named = others.length ? `${first} and ${others.length} more are paused and keep their places; stop them` : `${first} is paused and keeps its place; stop it`;
  return `${named}, or press Play there`;
}

function pace({ metrics }) {
  const speed = metrics.at("tokens_per_second", Infinity);
  return Number.isFinite(speed) ? `${whole(Number(speed.toPrecision(3)))} tokens/s` : "";
}

function left({ seconds_left: seconds }) {
  return seconds === null ? "" : `${span(seconds)} left`;
}

function took({ metrics }) {
  const seconds = metrics.at("seconds", Infinity);
  return Number.isFinite(seconds) ? `${span(seconds)} of training` : "";
}

/** Seconds as a person says them. */
export function span(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

/** A number of steps or tokens. */
export function whole(x) {
  return Math.round(x).toLocaleString("en");
}

function ordinal(n) {
  const end = n % 100 > 10 && n % 100 < 14 ? "th" : (ENDS[n % 10] ?? "th");
  return `${n}${end}`;
}

/** What the large button does now: {label, what, why}; `why` is a sentence where it cannot, `what` an order or "start". */
export function main(lab) {
  const { plan } = lab.data;
  const state = lab.run ? lab.status?.state : "none";
  const unchanged = lab.recipe === plan.recipe;
  if (state === "running" || state === "preparing") return { label: "Pause", what: "pause", why: "" };
  if (state === "queued") return { label: "Pause", what: "pause", why: "It waits for its turn; Stop takes it out of the queue." };
  if (state === "paused") return { label: "Play", what: "play", why: "" };
  if (lab.run && state === undefined && !lab.trouble) return { label: "Play", what: "play", why: "The run is being looked for." };
  if (state === "new" && unchanged) return { label: "Play", what: "play", why: "" };
  if (lab.status?.resumable && lab.run && unchanged) return { label: "Resume", what: "play", why: "" };
  const why = plan.problem || "";
  if (state === "finished" && unchanged) return { label: "Train again", what: "start", why };
  return { label: state === "none" ? "Play" : "Train", what: "start", why };
}

/** For each of the smaller buttons why it cannot act, "" where it can. */
export function hindered(lab) {
  const { status } = lab;
  const none = lab.data.recorded ? "This run came with Loupe and is finished; press Play to train one of your own." : "There is no run yet; press Play.";
  if (!lab.run || !status) return Object.fromEntries(["steps", "stop", "reset", "fork", "rate"].map((name) => [name, none]));
  const finished = status.state === "finished" ? "The run is finished; reset it, or fork it from a step before its end." : "";
  const kept = lab.kept(lab.shown);
  const nowhere = "There is no snapshot at this step or before; the next ones come as it trains.";
  const end = kept >= status.steps ? "This is the last step; go back to an earlier one to go on from there." : "";
  return {
    steps: finished || (status.state === "queued" ? "It waits for its turn." : ""),
    stop: lab.active ? "" : "It is not training.",
    reset: status.state === "new" ? "It is at its first step." : "",
    fork: kept < 0 ? nowhere : end,
    rate: finished,
  };
}

/** A button that cannot act stays in reach, so that its title can say why. */
export function able(button, why, title) {
  button.setAttribute("aria-disabled", String(Boolean(why)));
  if (button.title !== (why || title)) button.title = why || title;
}

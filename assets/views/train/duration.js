// How long a training takes, as it was estimated and as it is measured.

/** @import { Page } from "./train.js" */

/**
 * How long the recipe takes: where the run that is looked at is of it, what that has spent and what is left of it.
 * @param {Pick<Page, "data" | "recipe" | "status" | "metrics">} page
 */
export function planTime({ data: { plan }, recipe, status, metrics }) {
  const own = recipe === plan.recipe && status && !status.recorded ? status.seconds_left : null;
  const measured = own !== null ? own + metrics.at("seconds", Infinity) : plan.seconds;
  return measured !== null && Number.isFinite(measured) ? ` · about ${formatDuration(Math.max(measured, 1))}` : "";
}

/**
 * Seconds as a person says them.
 * @param {number} seconds
 */
export function formatDuration(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

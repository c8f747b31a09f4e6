// The tabs below the probe that look at the model as a whole: its gradients, its weights and its activations, part by part, as
// watch.jsonl has them.
import { CSS as GRADIENTS, mount as mountGradients } from "./watch_gradients.js";
import { CSS as HISTOGRAMS, mount as mountHistograms } from "./watch_histograms.js";

/** `tab` is "gradients", "weights" or "activations". */
export function mount(root, lab, tab) {
  return tab === "gradients" ? mountGradients(root, lab) : mountHistograms(root, lab, tab);
}

export const CSS = `
.watch { font-size: 13px; }
.watch-head { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 20px; margin-bottom: 10px; min-height: 30px; }
.watch-head .watch-at { font-variant-numeric: tabular-nums; min-width: 21ch; }
.watch-about { color: var(--soft); font-size: 12.5px; line-height: 1.5; margin: 0 0 12px !important; max-width: 110ch; }
.watch-none { color: var(--soft); padding: 14px 0; }
${GRADIENTS}${HISTOGRAMS}`;

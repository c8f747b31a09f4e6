// The look of the tab Beam.

export const CSS = `
.beam-controls { display: flex; flex-wrap: wrap; align-items: flex-end; gap: 10px 18px; margin-bottom: 14px; }
.beam-field { display: flex; flex-direction: column; gap: 3px; font-size: 12.5px; color: var(--soft); }
.beam-field input { font: 14px var(--mono); color: var(--ink); background: var(--ground); border: 1px solid var(--hairline); border-radius: 6px; padding: 4px 7px; width: 84px; }
.beam-stops, .beam-links { font-size: 13px; color: var(--soft); align-self: center; }
.beam-stops:empty { display: none; }
.beam-links { flex-basis: 100%; min-height: 1.4em; } /* they come with the first answer, and nothing moves then */
.beam-links a { color: var(--attention); text-underline-offset: 3px; }
.beam-holder.is-old { opacity: .45; }
.beam-early { display: flex; align-items: center; gap: 14px; min-height: 34px; }
.beam-early .sentence { margin: 0 !important; }
.attention .beam-act { padding: 4px 14px; border-radius: 7px; font-weight: 600; font-size: 13.5px; background: var(--probability); color: var(--ground); white-space: nowrap; }
.attention .beam-act:hover { filter: brightness(1.07); }
.beam-act.is-late { animation: beam-appear .6s step-end; }
@keyframes beam-appear { from { visibility: hidden; } }
@media (prefers-reduced-motion: reduce) { .beam-column, .beam-edges g { animation: none !important; } }
.beam-bar { display: flex; align-items: center; gap: 8px; min-height: 34px; }
.beam-now { flex: 1 1 0; min-width: 0; font-size: 13px; color: var(--soft); }
.narrow .beam-bar { flex-wrap: wrap; }
.narrow .beam-slider { flex: 1 1 60px; min-width: 60px; }
.beam-slider { flex: 0 1 320px; }
.beam-where { font: 13px var(--mono); white-space: nowrap; min-width: 13ch; }
.beam-legend { display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: 12.5px; color: var(--soft); margin: 4px 0 8px !important; align-items: center; }
.beam-key { display: inline-flex; align-items: center; gap: 6px; }
.beam-sign { width: 22px; height: 12px; border-radius: 3px; border: 1.5px solid var(--soft); }
.beam-sign.is-finished { border-color: var(--ink); background: var(--panel); }
.beam-sign.is-pruned { border: 1px dashed var(--soft); opacity: .7; }
.beam-sign.is-best { border: 0; height: 0; border-top: 3px solid var(--probability); border-radius: 0; }
.beam-sign.is-greedy { border: 0; height: 0; border-top: 2.5px dashed var(--edited); border-radius: 0; }
.beam-scroll { overflow-x: auto; overflow-y: hidden; scrollbar-width: thin; padding-bottom: 6px; }
.beam-scroll.unfolded { overflow: visible; }
.beam-ground { position: relative; }
.beam-edges { position: absolute; left: 0; top: 0; pointer-events: none; }
.beam-edge { fill: none; stroke: var(--soft); stroke-width: 1.5; opacity: .6; }
.beam-edge.is-pruned { stroke-dasharray: 2 3; stroke-width: 1; opacity: .45; }
.is-over .beam-edge.is-best { stroke: var(--probability); stroke-width: 3.5; opacity: 1; }
.beam-edge.is-lit { stroke: var(--attention); stroke-width: 3; opacity: 1; }
.beam-edge.greedy-edge { stroke: var(--edited); stroke-width: 2; stroke-dasharray: 6 4; opacity: 1; }
.beam-column { position: absolute; top: 0; }
.beam-column.is-later { visibility: hidden; }
.beam-step { font: 12px/18px var(--mono); color: var(--soft); text-align: center; }
.beam-root { position: absolute; left: 0; width: 74px; height: 36px; display: flex; flex-direction: column; justify-content: center; font-size: 11px; color: var(--soft); }
.beam-root .tok { font-size: 13px; overflow: hidden; text-overflow: ellipsis; white-space: pre !important; cursor: default !important; }
.beam-lane { position: absolute; left: 0; width: 92px; font-size: 11px; line-height: 13px; color: var(--edited); }
.attention .beam-node { position: absolute; left: 0; display: flex; flex-direction: column; justify-content: center; padding: 0 7px; border: 1.5px solid var(--soft); border-radius: 6px; background: var(--ground); overflow: hidden; }
.attention .beam-node:hover { background: var(--panel); }
.attention .beam-node.is-finished { border-color: var(--ink); background: var(--panel); }
.attention .beam-node.is-pruned { border: 1px dashed var(--soft); color: var(--soft); }
.beam-node.is-pruned .tok { text-decoration: line-through; text-decoration-thickness: 1.5px; }
.attention .beam-node.is-greedy { border-left: 4px double var(--edited); }
.attention .beam-node.is-state-greedy, .attention .beam-node.is-greedy[data-node$="greedy"] { border: 1.5px dashed var(--edited); border-left: 4px double var(--edited); }
.attention .is-over .beam-node.is-best { border-color: var(--probability); background: color-mix(in srgb, var(--probability) 16%, var(--ground)); }
.attention .is-over .beam-node.is-best.is-greedy { border-left-color: var(--edited); }
.attention .beam-node.is-lit { box-shadow: 0 0 0 1.5px var(--attention); }
.attention .beam-node.is-picked { box-shadow: 0 0 0 3px var(--attention); }
.beam-token { display: flex; align-items: center; gap: 5px; min-width: 0; line-height: 17px; }
.generate .beam-token .tok { font-size: 14px; font-weight: 600; overflow: hidden; text-overflow: ellipsis; white-space: pre; min-width: 0; }
.beam-node.is-pruned .beam-token .tok { font-weight: 400; }
.beam-token .swatch { margin-right: 5px; }
.beam-end { font-size: 9px; flex: none; margin-left: auto; }
.beam-place { font: 600 11px var(--mono); flex: none; color: var(--ink); background: var(--probability); color: var(--ground); border-radius: 4px; padding: 0 4px; visibility: hidden; }
.beam-place:empty { display: none; }
.is-over .beam-place { visibility: visible; }
.beam-numbers { font: 10.5px/14px var(--mono); color: var(--soft); white-space: nowrap; }
.beam-over { font-size: 13px; color: var(--soft); margin: 8px 0 0 !important; min-height: 19px; }
.beam-below { display: grid; grid-template-columns: minmax(0, 1.5fr) minmax(0, 1fr); gap: 20px 40px; margin-top: 14px; padding-top: 14px; border-top: 1px solid var(--hairline); align-items: start; }
.beam-below h3 { font-size: 14.5px !important; color: var(--ink) !important; margin-bottom: 6px !important; }
.beam-why { margin-bottom: 18px; }
.beam-why p { font-size: 14px; margin-bottom: 4px !important; }
.beam-paths { margin-top: 10px; display: grid; grid-template-columns: max-content minmax(0, 1fr) max-content; gap: 8px 12px; }
.beam-path { display: contents; }
.beam-name { font-size: 12.5px; color: var(--soft); align-self: center; }
.beam-path.of-best .beam-name { border-left: 4px solid var(--probability); padding-left: 6px; }
.beam-path.of-greedy .beam-name { border-left: 4px double var(--edited); padding-left: 6px; }
.beam-sum { font: 12.5px var(--mono); align-self: center; white-space: nowrap; }
.beam-chain { display: flex; flex-wrap: wrap; gap: 4px 3px; }
.beam-link { display: inline-flex; flex-direction: column; align-items: center; padding: 1px 5px; border-radius: 5px; background: var(--panel); }
.generate .beam-link .tok { font-size: 14px; cursor: default; white-space: pre; }
.beam-link.is-shared { opacity: .5; }
.beam-link.is-dear { box-shadow: inset 0 -2.5px 0 var(--key); }
.beam-own { font: 11px/14px var(--mono); color: var(--soft); }
.beam-link.is-dear .beam-own { color: var(--ink); font-weight: 600; }
.attention .beam-row { display: grid; grid-template-columns: 52px minmax(0, 1fr) 62px 52px 68px; gap: 0 8px; align-items: center; width: 100%; min-height: 28px; padding: 2px 6px; border-radius: 5px; font-size: 14px; }
.attention button.beam-row:hover { background: var(--panel); }
.attention .beam-row[aria-pressed=true] { background: color-mix(in srgb, var(--attention) 13%, transparent); }
.beam-row.heading { color: var(--soft); font-size: 12px !important; border-bottom: 1px solid var(--hairline); border-radius: 0 !important; min-height: 22px !important; }
.beam-row.heading .number { font: 12px var(--sans); }
.beam-row .number { font: 12.5px var(--mono); text-align: right; white-space: nowrap; }
.beam-row.of-greedy { border-top: 1px dashed var(--edited); border-radius: 0 !important; margin-top: 3px; }
.beam-row .beam-text { white-space: normal !important; overflow-wrap: anywhere; }
.beam-thumb { image-rendering: pixelated; outline: 1px solid var(--hairline); margin: 3px 1px; }
.beam-state { font-size: 13.5px; margin-bottom: 8px !important; }
.beam-whole { font-size: 14px; margin: 10px 0 12px !important; overflow-wrap: anywhere; white-space: pre-wrap; }
.beam-sums { display: grid; grid-template-columns: max-content 1fr; gap: 3px 14px; margin: 12px 0; font-size: 13px; }
.beam-sums dt { color: var(--soft); }
.beam-sums dd { margin: 0; font: 13px var(--mono); }
.beam-acts { display: flex; flex-wrap: wrap; gap: 8px; }
.attention .beam-button { padding: 5px 14px; border-radius: 7px; font-weight: 600; font-size: 13.5px; background: var(--probability); color: var(--ground); }
.attention .beam-button.quiet { background: var(--panel); color: var(--ink); font-weight: 500; }
.attention .beam-button:hover:not(:disabled) { filter: brightness(1.07); }
.attention .beam-button:disabled { opacity: .4; cursor: default; }
.pictured .beam-acts, .pictured .beam-links, .pictured .beam-stops, .pictured .beam-early, .pictured .beam-bar { display: none; }
.narrow .beam-below { display: flex; flex-direction: column; align-items: stretch; }
.narrow .beam-paths { grid-template-columns: max-content minmax(0, 1fr); }
.narrow .beam-sum { grid-column: 2; margin-bottom: 6px; }
.narrow .beam-row { grid-template-columns: 46px minmax(0, 1fr) 50px 34px 56px; gap: 0 5px; }
`;

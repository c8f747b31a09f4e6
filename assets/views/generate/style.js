// The look of the page Generate: the text and its steps, the beam tree, the grid of the KV cache, surprise.

export const CSS = `
.generate { font: 14px/1.4 var(--sans); color: var(--ink); position: relative; }
.generate *, .generate *::before, .generate *::after { box-sizing: border-box; }
.generate [hidden] { display: none !important; }
.generate h2, .generate h3, .generate p { margin: 0; }
.generate h3 { font-size: 13px; font-weight: 600; color: var(--soft); }
.generate h3 .note { font-weight: 400; }
.generate button { font: inherit; color: inherit; background: none; border: 0; padding: 0; margin: 0; cursor: pointer; text-align: left; }
.generate input[type=range] { accent-color: var(--attention); min-width: 0; }
.generate :focus-visible { outline: 2px solid var(--attention); outline-offset: 2px; border-radius: 3px; }
.generate bdi { white-space: pre; unicode-bidi: isolate; }
.generate .sentence { color: var(--soft); }
.generate .turn { width: 26px; height: 26px; line-height: 23px; text-align: center; border-radius: 6px; background: var(--panel); font-weight: 400; }
.generate .turn:hover { background: var(--hairline); }
.generate.narrow .turn { width: 34px; height: 32px; line-height: 29px; }
.notice { padding: 7px 12px; border-left: 3px solid var(--edited); background: var(--panel); }
.legend-bar { height: 7px; border-radius: 2px; display: block; }
.tip { position: fixed; z-index: 20; pointer-events: none; background: var(--ink); color: var(--ground); padding: 4px 9px; border-radius: 6px; font: 13px var(--mono); display: flex; gap: 12px; white-space: pre; max-width: min(60vw, 520px); }
.tip bdi { opacity: .85; overflow: hidden; text-overflow: ellipsis; }
.tip strong:empty { display: none; }
.live { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.views:not(:empty) { display: flex; gap: 22px; margin-bottom: 14px; border-bottom: 1px solid var(--hairline); }
.generate .views button { padding: 6px 0 8px; border-bottom: 2px solid transparent; margin-bottom: -1px; color: var(--soft); }
.generate .views button[aria-pressed=true] { color: var(--ink); font-weight: 600; border-color: var(--attention); }
.generate .notice { margin-bottom: 10px !important; }
.generate .token-chip { font-weight: 600; padding: 1px 6px; border-radius: 4px; background: color-mix(in srgb, var(--probability) 22%, transparent); }
.generate .swatch { display: inline-block; width: 14px; height: 14px; margin-right: 7px; vertical-align: -2px; outline: 1px solid var(--hairline); }
.write-bar { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 14px; min-height: 34px; margin-bottom: 12px; }
.generate .write-button { padding: 5px 16px; border-radius: 7px; font-weight: 600; font-size: 14px; min-width: 92px; text-align: center; }
.generate .write-button.go { background: var(--probability); color: var(--ground); }
.generate .write-button.quiet { background: var(--panel); font-weight: 500; }
.generate .write-button:hover:not(:disabled) { filter: brightness(1.07); }
.generate .write-button:disabled { opacity: .4; cursor: default; }
.write-told { font-size: 13.5px; min-height: 20px; }
.write-speed { margin-left: auto !important; font: 12px var(--mono); color: var(--soft); }
.write-body { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 720px); gap: 24px 36px; align-items: start; }
.write-branches { margin-top: 26px; }
.branch-text .swatch { margin: 0 !important; width: 11px !important; }
.text-legend { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 8px; font-size: 12px; color: var(--soft); margin-bottom: 8px !important; }
.text-legend .legend-bar { width: 64px; height: 9px; background: linear-gradient(to right, transparent, color-mix(in srgb, var(--probability) 27%, transparent) 25%, color-mix(in srgb, var(--probability) 54%, transparent)); border: 1px solid var(--hairline); }
.given-of { padding-right: 6px; border-right: 1px solid var(--hairline); }
.chosen-of { color: var(--edited); font-size: 12px; font-weight: 500; margin-left: 8px; }
.text-of { min-height: 190px; max-height: max(300px, 58vh); overflow: auto; scrollbar-width: thin; border-radius: 6px; outline-offset: 4px; padding: 2px 3px; margin: 0 -3px; }
.flow-of { font-size: 17px; line-height: 1.72; overflow-wrap: anywhere; }
.generate .tok { white-space: pre-wrap; border-radius: 3px; padding: 1px 0; cursor: pointer; unicode-bidi: isolate; }
.tok i { font-style: normal; opacity: .28; }
.tok.given { color: var(--soft); cursor: default; }
.tok.special { font: 13px var(--mono); }
.tok.written { background: color-mix(in srgb, var(--probability) var(--tint, 0%), transparent); }
.tok.written:hover { box-shadow: 0 0 0 1.5px var(--soft); }
.tok.ended { font: 13px var(--mono); color: var(--soft); padding: 1px 3px; }
.tok.chosen { box-shadow: inset 0 -2.5px 0 var(--edited); }
.tok.picked, .tok.picked:hover { box-shadow: 0 0 0 2px var(--attention); position: relative; z-index: 1; }
.caret { display: inline-block; width: 9px; height: 1.15em; vertical-align: -.2em; margin-left: 3px; border-radius: 2px; background: var(--hairline); cursor: pointer; }
.caret:hover { background: var(--soft); }
.caret.picked { box-shadow: 0 0 0 2px var(--attention); }
.caret.writing { background: var(--probability); }
.gap-of { border-bottom: 2px solid var(--probability); padding: 1px 3px; }
.text-of:has(.part + .part) { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 20px; }
.part h3 { margin-bottom: 2px !important; }
.pixel-frame { position: relative; width: max-content; line-height: 0; }
.pixel-frame canvas { outline: 1px solid var(--hairline); cursor: crosshair; image-rendering: pixelated; }
.pixel-mark { position: absolute; box-shadow: 0 0 0 2px var(--attention), inset 0 0 0 1px var(--ground); pointer-events: none; }
.text-of .sentence { font-size: 13px; margin-top: 10px; }
.step-title { display: flex; align-items: center; gap: 10px; font-size: 15px; font-weight: 600; min-height: 28px; }
.step-title .where { min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.generate .turn:disabled { opacity: .35; cursor: default; }
.step-facts { display: grid; grid-template-columns: repeat(4, max-content); gap: 2px 26px; margin: 8px 0 12px; min-height: 40px; }
.step-facts dt { font-size: 12px; color: var(--soft); }
.step-facts dd { margin: 0; font: 13px/20px var(--mono); white-space: nowrap; }
.step-facts strong { font-weight: 600; }
.step-facts .to { color: var(--soft); }
.step-table { overflow-x: auto; scrollbar-width: thin; }
.generate .step-row { display: grid; grid-template-columns: 96px var(--columns) minmax(110px, 1fr); gap: 0 4px; align-items: center; width: 100%; min-height: 23px; border-radius: 4px; padding: 0 4px; }
.generate button.step-row:hover { background: var(--panel); }
.generate button.step-row:focus-visible { outline-offset: -2px; }
.step-row .piece { overflow: hidden; text-overflow: ellipsis; font-size: 14px; }
.step-row .stage { font: 11.5px/16px var(--mono); text-align: right; white-space: nowrap; }
.step-row.heading { align-items: end; min-height: 34px; color: var(--soft); font-size: 12px; border-bottom: 1px solid var(--hairline); border-radius: 0; margin-bottom: 2px; }
.step-row.heading .stage { font: 12px/15px var(--sans); }
.step-row.heading small { display: block; font: 10.5px/13px var(--mono); }
.step-row .off { opacity: .35; }
.step-row .left-of { display: flex; align-items: center; gap: 8px; padding-left: 8px; }
.step-row .track { position: relative; flex: 1; height: 13px; min-width: 30px; }
.step-row .track i { position: absolute; left: 0; top: 0; height: 100%; border-radius: 2px; min-width: 1px; }
.step-row .bar[hidden] { display: none; }
.step-row .bar { background: var(--probability); }
.step-row .before { border: 1px solid color-mix(in srgb, var(--ink) 45%, transparent); }
.step-row .share { font: 11.5px var(--mono); text-align: right; min-width: 58px; white-space: nowrap; }
.step-row.cut .piece, .step-row.cut .share { color: var(--soft); text-decoration: line-through; }
.generate .step-row.is-chosen { background: color-mix(in srgb, var(--attention) 13%, transparent); }
.step-row.is-chosen .piece { font-weight: 700; }
.step-row.outside { border-top: 1px dashed var(--hairline); }
.step-row.others { color: var(--soft); font-size: 12.5px; border-top: 1px solid var(--hairline); border-radius: 0; margin-top: 2px; }
.step-row.others .share { color: var(--soft); }
.step-note { font-size: 13px; margin-top: 8px !important; min-height: 20px; }
.step-candidates { margin-bottom: 14px; }
.candidate { display: grid; grid-template-columns: minmax(80px, 150px) 92px 148px 92px; gap: 0 8px; min-height: 23px; align-items: center; padding: 0 4px; border-radius: 4px; }
.candidate.heading { color: var(--soft); font-size: 12px; border-bottom: 1px solid var(--hairline); border-radius: 0; margin-bottom: 2px; }
.candidate.heading span + span { text-align: right; }
.candidate .number { font: 12px var(--mono); text-align: right; }
.candidate.is-chosen { background: color-mix(in srgb, var(--attention) 13%, transparent); }
.candidate.is-best bdi, .candidate.is-best .number:last-child { font-weight: 700; }
.candidate bdi { overflow: hidden; text-overflow: ellipsis; }
.branches-head { display: flex; align-items: baseline; gap: 16px; padding-top: 14px; border-top: 1px solid var(--hairline); margin-bottom: 4px; }
.generate .quiet-link { font-size: 12.5px; color: var(--soft); text-decoration: underline; text-underline-offset: 3px; }
.generate .quiet-link:hover { color: var(--ink); }
.branches-body { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 0 10px; max-height: 420px; overflow: auto; scrollbar-width: thin; }
.branches-body .line, .branches-body .joint { fill: none; stroke: var(--soft); stroke-width: 1.5; }
.branches-body .end { fill: var(--ground); stroke: var(--soft); stroke-width: 1.5; }
.branches-body .end.is-over { fill: var(--soft); }
.branches-body .fork { fill: var(--edited); }
.branches-body .is-shown { stroke: var(--attention); stroke-width: 2.5; }
.branches-body .end.is-shown { stroke: var(--attention); }
.branches-body .end.is-shown.is-over { fill: var(--attention); }
.branch-line { display: flex; align-items: center; gap: 6px; height: 46px; }
.generate .branch { flex: 1; min-width: 0; padding: 3px 8px; border-radius: 5px; display: block; }
.generate .branch:hover { background: var(--panel); }
.generate .branch[aria-pressed=true] { background: var(--panel); box-shadow: inset 2px 0 0 var(--attention); }
.branch-text { display: block; overflow: hidden; text-overflow: ellipsis; font-size: 14px; line-height: 20px; }
.branch-numbers { display: block; font-size: 12px; line-height: 16px; font-variant-numeric: tabular-nums; color: var(--soft); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.generate .branch-remove { width: 26px; height: 26px; text-align: center; border-radius: 5px; color: var(--soft); font-size: 16px; }
.generate .branch-remove:hover { background: var(--panel); color: var(--ink); }
.narrow .write-body { display: flex; flex-direction: column; align-items: stretch; }
.narrow :is(.write-left, .write-right) { display: contents; }
.narrow .write-branches { order: 3; margin-top: 0; }
.narrow .write-speed { margin-left: 0 !important; flex-basis: 100%; }
.narrow .text-of { min-height: 120px; max-height: 46vh; margin: 0; }
.narrow .candidate { grid-template-columns: minmax(48px, 1fr) 82px 96px 74px; align-items: end; }
.narrow .step-facts { grid-template-columns: repeat(2, max-content); }
.generate.narrow .step-row { grid-template-columns: 84px minmax(150px, 1fr) var(--columns); min-width: max-content; }
.beam-holder.is-old { opacity: .45; }
.beam-early { display: flex; align-items: center; gap: 14px; min-height: 34px; }
.beam-early .sentence { margin: 0 !important; }
.generate .beam-act { padding: 4px 14px; border-radius: 7px; font-weight: 600; font-size: 13.5px; background: var(--probability); color: var(--ground); white-space: nowrap; }
.generate .beam-act:hover { filter: brightness(1.07); }
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
.generate .beam-node { position: absolute; left: 0; display: flex; flex-direction: column; justify-content: center; padding: 0 7px; border: 1.5px solid var(--soft); border-radius: 6px; background: var(--ground); overflow: hidden; }
.generate .beam-node:hover { background: var(--panel); }
.generate .beam-node.is-finished { border-color: var(--ink); background: var(--panel); }
.generate .beam-node.is-pruned { border: 1px dashed var(--soft); color: var(--soft); }
.beam-node.is-pruned .tok { text-decoration: line-through; text-decoration-thickness: 1.5px; }
.generate .beam-node.is-greedy { border-left: 4px double var(--edited); }
.generate .beam-node.is-state-greedy, .generate .beam-node.is-greedy[data-node$="greedy"] { border: 1.5px dashed var(--edited); border-left: 4px double var(--edited); }
.generate .is-over .beam-node.is-best { border-color: var(--probability); background: color-mix(in srgb, var(--probability) 16%, var(--ground)); }
.generate .is-over .beam-node.is-best.is-greedy { border-left-color: var(--edited); }
.generate .beam-node.is-lit { box-shadow: 0 0 0 1.5px var(--attention); }
.generate .beam-node.is-picked { box-shadow: 0 0 0 3px var(--attention); }
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
.generate .beam-row { display: grid; grid-template-columns: 52px minmax(0, 1fr) 62px 52px 68px; gap: 0 8px; align-items: center; width: 100%; min-height: 28px; padding: 2px 6px; border-radius: 5px; font-size: 14px; }
.generate button.beam-row:hover { background: var(--panel); }
.generate .beam-row[aria-pressed=true] { background: color-mix(in srgb, var(--attention) 13%, transparent); }
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
.generate .beam-button { padding: 5px 14px; border-radius: 7px; font-weight: 600; font-size: 13.5px; background: var(--probability); color: var(--ground); }
.generate .beam-button.quiet { background: var(--panel); color: var(--ink); font-weight: 500; }
.generate .beam-button:hover:not(:disabled) { filter: brightness(1.07); }
.generate .beam-button:disabled { opacity: .4; cursor: default; }
.pictured .beam-acts, .pictured .beam-early, .pictured .beam-bar { display: none; }
.narrow .beam-below { display: flex; flex-direction: column; align-items: stretch; }
.narrow .beam-paths { grid-template-columns: max-content minmax(0, 1fr); }
.narrow .beam-sum { grid-column: 2; margin-bottom: 6px; }
.narrow .beam-row { grid-template-columns: 46px minmax(0, 1fr) 50px 34px 56px; gap: 0 5px; }
.cache-bar { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 16px; min-height: 36px; margin-bottom: 10px; }
.generate .cache-button { padding: 5px 16px; border-radius: 7px; font-weight: 600; font-size: 14px; min-width: 92px; text-align: center; background: var(--probability); color: var(--ground); }
.generate .cache-button.quiet { background: var(--panel); color: var(--ink); font-weight: 500; }
.generate .cache-button:hover:not(:disabled) { filter: brightness(1.07); }
.generate .cache-button:disabled { opacity: .4; cursor: default; }
.cache-slider { flex: 0 1 320px; }
.cache-where { font-size: 13.5px; min-width: 20ch; }
.cache-sums { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 3px 16px; margin: 0 0 12px; font-size: 13.5px; }
.cache-sums dt { color: var(--soft); }
.cache-sums dd { margin: 0; font-variant-numeric: tabular-nums; }
.cache-legend { display: flex; flex-wrap: wrap; gap: 4px 20px; font-size: 12.5px; color: var(--soft); margin-bottom: 6px !important; }
.cache-legend span { display: inline-flex; align-items: center; gap: 7px; }
.cache-ramp { width: 56px; height: 9px; background: linear-gradient(to right, var(--zero), color-mix(in srgb, var(--hue) 50%, var(--zero)) 25%, var(--hue)); border: 1px solid var(--hairline); }
.cache-fresh { width: 13px; height: 13px; border: 2px solid var(--attention); }
.cache-grid { display: grid; grid-template-columns: 70px minmax(0, 1fr); }
.narrow .cache-grid { grid-template-columns: 56px minmax(0, 1fr); }
.cache-names { font-size: 12.5px; color: var(--soft); }
.cache-block { display: flex; align-items: center; border-right: 2px solid var(--hairline); margin-right: 8px; }
.cache-scroll { overflow-x: auto; overflow-y: hidden; scrollbar-width: thin; }
.cache-scroll.unfolded { overflow: visible; }
.cache-axis { position: relative; overflow: hidden; }
.cache-axis bdi { position: absolute; bottom: 2px; transform-origin: 0 100%; transform: rotate(-58deg); font-size: 11.5px; line-height: 12px; max-width: 60px; overflow: hidden; text-overflow: ellipsis; color: var(--soft); }
.cache-axis bdi.is-new { color: var(--attention); font-weight: 600; }
.cache-axis bdi.is-later { opacity: .4; }
.cache-frame { position: relative; width: max-content; line-height: 0; }
.cache-frame canvas { cursor: crosshair; }
.cache-mark { position: absolute; box-shadow: 0 0 0 2px var(--ink); pointer-events: none; }
.cache-said { font: 12.5px/18px var(--mono); color: var(--soft); min-height: 18px; margin: 6px 0 12px !important; }
.cache-holder > h3 { margin: 4px 0 4px !important; }
.cache-under { margin-top: 7px; line-height: 0; display: grid; gap: 4px; width: max-content; }
.cache-strip-name { font-size: 12px; line-height: 15px; margin-bottom: 4px; white-space: nowrap; }
.cache-block + .cache-strip-name { margin-top: 2px; }
.cache-read { margin-top: 10px; }
.pictured .cache-bar, .pictured .cache-said { display: none; }
.narrow .cache-sums { grid-template-columns: minmax(0, 1fr); gap: 0; }
.narrow .cache-sums dd { margin-bottom: 5px; }
.s-bar { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 26px; min-height: 44px; margin-bottom: 12px; }
.s-facts { display: flex; flex-wrap: wrap; gap: 4px 30px; margin: 0; }
.s-facts dt { font-size: 12px; color: var(--soft); }
.s-facts dd { margin: 0; font: 600 15px/22px var(--mono); white-space: nowrap; }
.s-sentence:empty { display: none; }
.s-body { display: grid; grid-template-columns: minmax(0, 1fr) minmax(300px, 440px); gap: 26px 40px; align-items: start; }
.s-body[hidden], .s-facts[hidden] { display: none; }
.s-sum { border-top: 1px solid var(--hairline); padding-top: 14px; margin-top: 14px; }
.s-text .text-of { min-height: 64px; }
.tok.surprising, .s-pixel.surprising { background: color-mix(in srgb, var(--ink) var(--tint, 0%), transparent); }
.tok.surprising:hover { box-shadow: 0 0 0 1.5px var(--soft); }
.text-legend .surprise-bar { background: linear-gradient(to right, transparent, color-mix(in srgb, var(--ink) 46%, transparent)); }
.generate .s-windows { margin-bottom: 14px; }
.s-windows[hidden], .s-windows-line[hidden] { display: none; }
.s-windows-about { font-size: 13.5px; max-width: 92ch; }
.s-windows-line { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 14px; margin-top: 8px; }
.s-windows-told { font-size: 13.5px; font-variant-numeric: tabular-nums; }
.s-text .tok.picked, .s-text .tok.picked:hover { position: static; box-shadow: none; outline: 2px solid var(--attention); }
.tok.unread { color: var(--soft); cursor: default; }
.tok.opens { border-left: 2px solid color-mix(in srgb, var(--attention) 60%, transparent); }
.tok.before { box-shadow: inset 0 -1.5px 0 color-mix(in srgb, var(--attention) 55%, transparent); }
.opens-of { border-left: 2px solid color-mix(in srgb, var(--attention) 60%, transparent); padding-left: 5px; margin-left: 8px; }
.before-of { border-bottom: 1.5px solid color-mix(in srgb, var(--attention) 55%, transparent); margin-left: 8px; }
.s-token .step-facts { grid-template-columns: repeat(3, max-content); }
.s-rows { display: grid; gap: 1px; }
.s-row { display: grid; grid-template-columns: minmax(80px, 150px) minmax(40px, 1fr) 78px; gap: 0 10px; align-items: center; min-height: 25px; padding: 0 4px; border-radius: 4px; }
.s-row.is-chosen { background: color-mix(in srgb, var(--attention) 13%, transparent); }
.s-row.is-chosen .piece { font-weight: 700; }
.s-row .piece { overflow: hidden; text-overflow: ellipsis; white-space: pre; font-size: 14px; }
.s-row .track { height: 13px; }
.s-row .bar { display: block; height: 100%; background: var(--probability); border-radius: 2px; min-width: 1px; }
.s-row .share { font: 12px var(--mono); text-align: right; white-space: nowrap; }
.s-row.rest { color: var(--soft); font-size: 12.5px; border-top: 1px solid var(--hairline); border-radius: 0; }
.s-row.rest .bar { display: none; }
.s-addition { font: 13px/24px var(--mono); overflow-wrap: anywhere; }
.generate .s-addition .term { font: inherit; padding: 0 2px; border-radius: 3px; }
.generate .s-addition .term:hover { background: var(--panel); }
.generate .s-addition .term.picked { box-shadow: 0 0 0 2px var(--attention); }
.s-addition .between { color: var(--soft); }
.s-lines { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 4px 22px; margin: 12px 0 0; font-size: 13.5px; }
.s-lines dt { color: var(--soft); }
.s-lines dd { margin: 0; font: 13px/20px var(--mono); }
.s-pixels { display: grid; gap: 2px; width: max-content; }
.s-pixel { position: relative; display: block; cursor: pointer; }
.s-pixel .s-colour { position: absolute; left: 3px; top: 3px; width: 9px; height: 9px; outline: 1px solid var(--hairline); }
.s-pixel { outline: 1px solid var(--hairline); }
.s-pixel.picked { box-shadow: 0 0 0 2px var(--attention); z-index: 1; }
.narrow .s-body { display: flex; flex-direction: column; align-items: stretch; }
.narrow .s-body :is(.s-left, .s-right) { display: contents; }
.narrow .s-sum { order: 4; }
.narrow .s-token { order: 3; }
.narrow .s-text .text-of { margin: 0; }
.narrow :is(.opens-of, .before-of) { margin-left: 0; }
.narrow .s-lines { grid-template-columns: minmax(0, 1fr); }
.narrow .s-lines dd { margin-bottom: 6px; }
.narrow .s-token .step-facts { grid-template-columns: repeat(2, max-content); }
`;

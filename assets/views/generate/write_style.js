// The look of the tab Write.

export const CSS = `
.write-bar { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 14px; min-height: 34px; margin-bottom: 12px; }
.attention .write-button { padding: 5px 16px; border-radius: 7px; font-weight: 600; font-size: 14px; min-width: 92px; text-align: center; }
.attention .write-button.go { background: var(--probability); color: var(--ground); }
.attention .write-button.quiet { background: var(--panel); font-weight: 500; }
.attention .write-button:hover:not(:disabled) { filter: brightness(1.07); }
.attention .write-button:disabled { opacity: .4; cursor: default; }
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
.attention .turn:disabled { opacity: .35; cursor: default; }
.step-facts { display: grid; grid-template-columns: repeat(4, max-content); gap: 2px 26px; margin: 8px 0 12px; min-height: 40px; }
.step-facts dt { font-size: 12px; color: var(--soft); }
.step-facts dd { margin: 0; font: 13px/20px var(--mono); white-space: nowrap; }
.step-facts strong { font-weight: 600; }
.step-facts .to { color: var(--soft); }
.step-table { overflow-x: auto; scrollbar-width: thin; }
.attention .step-row { display: grid; grid-template-columns: 96px var(--columns) minmax(110px, 1fr); gap: 0 4px; align-items: center; width: 100%; min-height: 23px; border-radius: 4px; padding: 0 4px; }
.attention button.step-row:hover { background: var(--panel); }
.attention button.step-row:focus-visible { outline-offset: -2px; }
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
.attention .step-row.is-chosen { background: color-mix(in srgb, var(--attention) 13%, transparent); }
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
.attention .quiet-link { font-size: 12.5px; color: var(--soft); text-decoration: underline; text-underline-offset: 3px; }
.attention .quiet-link:hover { color: var(--ink); }
.branches-body { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 0 10px; max-height: 420px; overflow: auto; scrollbar-width: thin; }
.branches-body .line, .branches-body .joint { fill: none; stroke: var(--soft); stroke-width: 1.5; }
.branches-body .end { fill: var(--ground); stroke: var(--soft); stroke-width: 1.5; }
.branches-body .end.is-over { fill: var(--soft); }
.branches-body .fork { fill: var(--edited); }
.branches-body .is-shown { stroke: var(--attention); stroke-width: 2.5; }
.branches-body .end.is-shown { stroke: var(--attention); }
.branches-body .end.is-shown.is-over { fill: var(--attention); }
.branch-line { display: flex; align-items: center; gap: 6px; height: 46px; }
.attention .branch { flex: 1; min-width: 0; padding: 3px 8px; border-radius: 5px; display: block; }
.attention .branch:hover { background: var(--panel); }
.attention .branch[aria-pressed=true] { background: var(--panel); box-shadow: inset 2px 0 0 var(--attention); }
.branch-text { display: block; overflow: hidden; text-overflow: ellipsis; font-size: 14px; line-height: 20px; }
.branch-numbers { display: block; font-size: 12px; line-height: 16px; font-variant-numeric: tabular-nums; color: var(--soft); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.attention .branch-remove { width: 26px; height: 26px; text-align: center; border-radius: 5px; color: var(--soft); font-size: 16px; }
.attention .branch-remove:hover { background: var(--panel); color: var(--ink); }
.narrow .write-body { display: flex; flex-direction: column; align-items: stretch; }
.narrow :is(.write-left, .write-right) { display: contents; }
.narrow .write-branches { order: 3; margin-top: 0; }
.narrow .write-speed { margin-left: 0 !important; flex-basis: 100%; }
.narrow .text-of { min-height: 120px; max-height: 46vh; margin: 0; }
.narrow .candidate { grid-template-columns: minmax(48px, 1fr) 82px 96px 74px; align-items: end; }
.narrow .step-facts { grid-template-columns: repeat(2, max-content); }
.attention.narrow .step-row { grid-template-columns: 84px minmax(150px, 1fr) var(--columns); min-width: max-content; }
`;

// The look of the tab Surprise.

export const CSS = `
.s-bar { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 26px; min-height: 44px; margin-bottom: 12px; }
.s-facts { display: flex; flex-wrap: wrap; gap: 4px 30px; margin: 0; }
.s-facts dt { font-size: 12px; color: var(--soft); }
.s-facts dd { margin: 0; font: 600 15px/22px var(--mono); white-space: nowrap; }
.s-sentence:empty { display: none; }
.s-body { display: grid; grid-template-columns: minmax(0, 1fr) minmax(300px, 440px); gap: 26px 40px; align-items: start; }
.s-body[hidden], .s-facts[hidden] { display: none; }
.s-sum { border-top: 1px solid var(--hairline); padding-top: 14px; margin-top: 14px; }
.s-text .text-of { min-height: 64px; }
.generate h3 .note { font-weight: 400; }
.tok.surprising, .s-pixel.surprising { background: color-mix(in srgb, var(--ink) var(--tint, 0%), transparent); }
.tok.surprising:hover { box-shadow: 0 0 0 1.5px var(--soft); }
.text-legend .surprise-bar { background: linear-gradient(to right, transparent, color-mix(in srgb, var(--ink) 46%, transparent)); }
.generate .s-windows { margin-bottom: 14px; }
.s-windows[hidden], .s-windows-line[hidden] { display: none; }
.s-windows-about { font-size: 13.5px; max-width: 92ch; }
.generate .s-windows .choices { margin-top: 8px; }
.generate .s-windows .choices[hidden] { display: none; }
.s-windows-line { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 14px; margin-top: 8px; }
.s-windows-told { font-size: 13.5px; font-variant-numeric: tabular-nums; }
.s-text .tok.picked, .s-text .tok.picked:hover { position: static; box-shadow: none; outline: 2px solid var(--attention); }
.tok.unread { color: var(--soft); cursor: default; }
.tok.opens { border-left: 2px solid color-mix(in srgb, var(--attention) 60%, transparent); }
.tok.before { box-shadow: inset 0 -1.5px 0 color-mix(in srgb, var(--attention) 55%, transparent); }
.opens-of { border-left: 2px solid color-mix(in srgb, var(--attention) 60%, transparent); padding-left: 5px; margin-left: 8px; }
.before-of { border-bottom: 1.5px solid color-mix(in srgb, var(--attention) 55%, transparent); margin-left: 8px; }
.s-opens { stroke: var(--attention); stroke-width: 1; }
.s-reads { stroke: var(--attention); stroke-width: 4; }
.s-curve { margin-top: 18px; min-height: 232px; }
.s-curve svg { cursor: pointer; max-width: 100%; height: auto; }
.s-rect { fill: color-mix(in srgb, var(--ink) 46%, var(--ground)); }
.s-entropy { fill: none; stroke: var(--probability); stroke-width: 2; }
.s-rect.picked { fill: var(--attention); }
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
.attention .s-addition .term { font: inherit; padding: 0 2px; border-radius: 3px; }
.attention .s-addition .term:hover { background: var(--panel); }
.attention .s-addition .term.picked { box-shadow: 0 0 0 2px var(--attention); }
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

// The look of the page about training, on top of that of the page about attention.

const FRAME = `
.lab.attention { display: block; min-height: 640px; }
.lab .notice { margin: 10px 0 0 !important; }
.lab-body { display: grid; grid-template-columns: minmax(0, 58fr) minmax(0, 42fr); gap: 0 32px; align-items: start; margin-top: 14px; }
.lab-body > .unknown { visibility: hidden; }
.lab-below { margin-top: 26px; contain: layout; }
.lab.narrow .lab-body { display: block; }
.lab.narrow .lab-answer { grid-template-columns: minmax(0, 1fr); }
.lab.narrow .lab-probe { margin-top: 26px; padding-top: 16px; border-top: 1px solid var(--hairline); }
.lab .tip { white-space: normal; }
.lab .tip bdi { white-space: pre-wrap; }
.lab .chip[aria-disabled=true], .lab .chip:disabled { opacity: .5; cursor: not-allowed; }
`;

const TRANSPORT = `
.transport-line { display: flex; flex-wrap: wrap; align-items: center; gap: 10px 18px; }
.lab .transport-play { display: inline-flex; align-items: center; justify-content: center; gap: 10px; width: 158px; height: 46px; border-radius: 23px; background: var(--attention); color: var(--ground); font-size: 17px; font-weight: 600; }
.lab .transport-play svg { fill: currentColor; flex: none; }
.lab .transport-play:hover { background: color-mix(in srgb, var(--attention) 88%, var(--ink)); }
.lab .transport-play[aria-disabled=true] { opacity: .45; cursor: not-allowed; }
.lab .transport-play[aria-busy=true] { opacity: .7; }
.transport-group { display: flex; gap: 6px; }
.lab .transport-small { height: 34px; padding: 0 13px; border-radius: 17px; background: var(--panel); font-size: 14px; white-space: nowrap; }
.lab .transport-small:hover { background: var(--hairline); }
.lab .transport-small[aria-disabled=true] { color: var(--soft); opacity: .6; cursor: not-allowed; background: var(--panel); }
.lab .transport-line :focus-visible { border-radius: 23px; }
.rate { display: flex; align-items: center; gap: 8px; margin-left: auto; font-size: 13px; color: var(--soft); }
.rate-label { display: flex; align-items: center; gap: 8px; white-space: nowrap; }
.rate input[type=range] { width: 104px; }
.lab .rate input[type=text] { font: 13px var(--mono); width: 76px; color: var(--ink); background: var(--ground); border: 1px solid var(--hairline); border-radius: 6px; padding: 4px 7px; }
.rate input:disabled { opacity: .5; }
.transport-state { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 14px; margin-top: 12px; min-height: 34px; position: relative; padding-bottom: 9px; }
.transport-told { font-size: 16px; line-height: 24px; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
[data-state=failed] .transport-told, [data-state=killed] .transport-told { color: var(--key); }
.transport-trouble { color: var(--soft); font-size: 13px; }
.transport-bar { position: absolute; left: 0; right: 0; bottom: 0; height: 3px; border-radius: 2px; background: var(--hairline); overflow: hidden; }
.transport-done { height: 100%; background: var(--attention); }
.plan { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: 6px 24px; margin-top: 9px; min-height: 28px; font-size: 13px; color: var(--soft); }
.plan-what, .plan-compare { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 12px; min-width: 0; }
.plan-line { overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.plan-line.problem { color: var(--key); }
.lab .plan-start { background: var(--attention); color: var(--ground); }
.plan-compare label { display: flex; flex-wrap: wrap; align-items: center; gap: 2px 8px; }
.lab .plan-compare select { font-size: 13px; max-width: 100%; }
.narrow .transport-play { width: 100%; }
.narrow .rate { margin-left: 0; width: 100%; flex-wrap: wrap; }
.narrow .rate-label { flex: 1 1 100%; }
.narrow .rate-label input { flex: 1; }
`;

const CURVES = `
.curves-head { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 14px; min-height: 30px; margin-bottom: 10px; font-size: 13px; }
.curves-strip { color: var(--soft); display: flex; align-items: center; gap: 6px; }
.lab .curves-strip select { font-size: 13px; }
.curves-others { flex: 1 1 100%; display: flex; flex-wrap: wrap; gap: 6px; min-width: 0; }
.curves-others:empty { display: none; }
.lab .other-run { max-width: 210px; overflow: hidden; text-overflow: ellipsis; }
.other-run::before { content: ""; display: inline-block; width: 9px; height: 9px; border-radius: 2px; background: var(--chosen); margin-right: 7px; }
.lab .live-button { margin-left: auto; }
.curves-box { position: relative; touch-action: pan-y; user-select: none; -webkit-user-select: none; }
.curves-box > svg { display: block; overflow: visible; cursor: crosshair; font-family: var(--sans); }
.curves-box.dragged, .curves-box.dragged > svg { cursor: grabbing; }
.panel-title { position: absolute; left: 0; right: 0; height: 24px; display: flex; align-items: center; gap: 18px; font-size: 13px; pointer-events: none; white-space: nowrap; color: var(--soft); }
.panel-title strong { font-weight: 600; color: var(--ink); min-width: 104px; }
.curves-box .panel-lines { overflow: hidden; }
.panel-told { display: inline-flex; align-items: center; gap: 6px; min-width: 128px; }
.panel-told output { font: 12.5px var(--mono); color: var(--ink); }
.swatch { display: block; width: 16px; height: 0; border-top: 1.25px solid var(--attention); }
.swatch.bold { border-top-width: 3px; }
.lab .curve { fill: none; stroke-linejoin: round; stroke-linecap: round; }
.lab .curve.thin { stroke-width: 1.1; opacity: .62; }
.lab .curve.bold { stroke-width: 2.4; }
.curves-box .grid { stroke: var(--hairline); }
.curves-box .axis-line { stroke: var(--hairline); stroke-width: 1.5; }
.curves-box .tick { font: 11.5px var(--mono); fill: var(--soft); }
.curves-box .label { font-size: 12px; fill: var(--soft); }
.curves-box .line-end { font-size: 11.5px; font-weight: 600; paint-order: stroke; stroke: var(--ground); stroke-width: 3px; }
.curves-box .hover-line { stroke: var(--soft); stroke-dasharray: 2 3; pointer-events: none; }
.curves-empty { position: absolute; left: 40px; right: 74px; top: 60px; padding: 0 24px; text-align: center; font-size: 15px; line-height: 1.5; color: var(--soft); pointer-events: none; }
.rail { stroke: var(--hairline); stroke-width: 5; stroke-linecap: round; }
.rail.done { stroke: color-mix(in srgb, var(--attention) 42%, var(--hairline)); }
.track-tick { stroke: var(--soft); stroke-width: 1; opacity: .55; }
.track-tick.kept { opacity: 1; }
.handle, .handle-line { position: absolute; left: 0; top: 0; }
.handle-line { width: 0; margin-left: -.75px; border-left: 1.5px solid var(--ink); opacity: .75; pointer-events: none; }
.handle-line.other { border-left-style: dashed; }
.handle { width: 20px; height: 20px; margin: -10px 0 0 -10px; border-radius: 50%; background: var(--ink); border: 3px solid var(--ground); outline: 1.5px solid var(--ink); cursor: grab; touch-action: none; }
.handle.other { background: var(--ground); border-color: var(--ground); }
.lab .handle:focus-visible { outline: 3px solid var(--attention); outline-offset: 1px; border-radius: 50%; }
.flags { position: absolute; inset: 0; pointer-events: none; }
.lab .flag { position: absolute; pointer-events: auto; width: 16px; border-left: 1.5px solid var(--soft); border-radius: 0; line-height: 0; vertical-align: top; }
.lab .flag.here { border-left-color: var(--ink); z-index: 1; }
.flag-sign { display: inline-block; flex: none; min-width: 14px; padding: 0 3px; font: 700 9.5px/12px var(--mono); text-align: center; color: var(--ground); border-radius: 0 3px 3px 0; }
.flag.here .flag-sign { outline: 1.5px solid var(--ink); }
.flag-told { position: absolute; z-index: 5; padding: 6px 10px; border-radius: 6px; background: var(--ink); color: var(--ground); font-size: 12.5px; line-height: 1.4; }
.happened { margin-top: 8px; }
.happened h3 { margin-bottom: 4px; }
.happened-list { list-style: none; margin: 0; padding: 0; height: 108px; overflow-y: auto; scrollbar-width: thin; }
.narrow .happened-list { height: auto; max-height: 196px; }
.lab .happening { display: grid; grid-template-columns: 20px 58px minmax(0, 1fr); gap: 8px; align-items: baseline; width: 100%; padding: 4px 6px; border-radius: 5px; font-size: 13px; line-height: 18px; }
.happening .flag-sign { border-radius: 3px; }
.happening-step { font: 12.5px var(--mono); text-align: right; }
.lab .happening:hover { background: var(--panel); }
.lab .happening[aria-current=true] { background: var(--panel); font-weight: 600; }
.happened .sentence { font-size: 13px; padding: 4px 0; }
.narrow .panel-title { gap: 10px; }
.narrow .panel-title strong { min-width: 70px; }
.narrow .panel-told { min-width: 0; }
`;

export const CSS = FRAME + TRANSPORT + CURVES;

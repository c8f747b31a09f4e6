// The look of the page about training, on top of that of the page about attention.
import { PROSE } from "../components/prose.js";

export const CSS = `${PROSE}
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
.plan-what { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 12px; min-width: 0; }
.plan-line { overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.plan-line.problem { color: var(--key); }
.lab .plan-start { background: var(--attention); color: var(--ground); }
.narrow .transport-play { width: 100%; }
.narrow .rate { margin-left: 0; width: 100%; flex-wrap: wrap; }
.narrow .rate-label { flex: 1 1 100%; }
.narrow .rate-label input { flex: 1; }

.curves-head { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 14px; min-height: 30px; margin-bottom: 10px; font-size: 13px; }
.curves-strip { color: var(--soft); display: flex; align-items: center; gap: 6px; }
.lab .curves-strip select { font-size: 13px; }
.curves-others { flex: 1 1 100%; display: flex; flex-wrap: wrap; gap: 6px; min-width: 0; }
.curves-others:empty { display: none; }
.lab .other-run { max-width: 210px; overflow: hidden; text-overflow: ellipsis; }
.other-run::before { content: ""; display: inline-block; width: 9px; height: 9px; border-radius: 2px; background: var(--chosen); margin-right: 7px; }
.lab .live-button { margin-left: auto; }
.curves-box { position: relative; touch-action: pan-y; user-select: none; -webkit-user-select: none; }
.panel-told { display: inline-flex; align-items: center; gap: 6px; min-width: 128px; }
.panel-told output { font: 12.5px var(--mono); color: var(--ink); }
.swatch { display: block; width: 16px; height: 0; border-top: 1.25px solid var(--attention); }
.swatch.bold { border-top-width: 3px; }
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
.narrow .panel-told { min-width: 0; }

.lab .probe-form { display: flex; flex-wrap: wrap; gap: 6px 10px; align-items: end; margin: 0 0 12px; }
.lab .probe-field { display: grid; gap: 2px; flex: 1 1 130px; min-width: 0; font-size: 12px; color: var(--soft); }
.lab .probe-field.text { flex: 2 1 170px; }
.lab .probe-field input, .lab .probe-field select { font: 14px/20px var(--sans); color: var(--ink); background: var(--ground); border: 1px solid var(--hairline); border-radius: 6px; padding: 4px 8px; width: 100%; min-width: 0; }
.lab .probe-field input:focus { border-color: var(--attention); }
.lab .probe-field input:disabled, .lab .probe-field select:disabled { color: var(--soft); background: var(--panel); }
.lab .probe-field.picture { display: flex; align-items: center; gap: 8px; flex: 0 1 auto; font-size: 13px; color: var(--ink); }
.lab .probe-field.picture input { width: 84px; font-variant-numeric: tabular-nums; }
.lab .probe-look { padding: 4px 14px; border-radius: 6px; border: 1px solid var(--hairline); font-weight: 600; line-height: 20px; }
.lab .probe-look:not(:disabled) { background: var(--attention); border-color: var(--attention); color: var(--ground); }
.lab .probe-look:disabled, .lab .turn:disabled { opacity: .5; cursor: not-allowed; }
.lab .probe-said { flex: 1 0 100%; font-size: 12.5px; line-height: 18px; min-height: 18px; color: var(--soft); overflow-wrap: anywhere; }
.lab .probe-said.refused { color: var(--ink); border-left: 3px solid var(--edited); padding-left: 8px; }

.lab .probe-title { display: flex; align-items: baseline; gap: 10px; margin-bottom: 6px; }
.lab .probe-title h2 { font-size: 15px; font-weight: 600; line-height: 24px; }
.lab .probe-title span { font: 13px var(--mono); color: var(--soft); font-variant-numeric: tabular-nums; }
.lab .probe-choice { display: flex; flex-wrap: wrap; gap: 6px 14px; align-items: center; margin-bottom: 10px; font-size: 13px; }
.lab .probe-choice .choices .option { padding: 3px 9px; }
.lab .probe-choice .turn:disabled { display: none; }
.lab .probe-choice .turn:disabled + .number { min-width: 0; }
.lab .turns { display: inline-flex; align-items: center; gap: 6px; white-space: nowrap; }
.lab .turns .number { font-variant-numeric: tabular-nums; min-width: 74px; text-align: center; }
.lab .probe-pictures { display: flex; flex-wrap: wrap; gap: 12px 20px; align-items: flex-start; }
.lab .probe-map { min-width: 0; max-width: 100%; }
.lab .probe-map .map-scroll { overflow: auto; max-width: 100%; width: max-content; max-height: 560px; scrollbar-width: thin; outline-offset: 2px; }
.lab .probe-map .cells { width: max-content; }
.lab .probe-map .legend { margin-top: 8px; }
.lab .headgrid { max-height: 420px; }
.lab .probe-scores { display: flex; flex-wrap: wrap; gap: 0 16px; font-size: 12.5px; line-height: 20px; color: var(--soft); margin: 6px 0 0; min-height: 40px; align-content: flex-start; }
.lab .probe-scores b { font: 12px var(--mono); color: var(--ink); display: inline-block; min-width: 52px; }
.lab .probe-picture { display: flex; flex-wrap: wrap; gap: 8px 18px; }
.lab .probe-picture figure { margin: 0; }
.lab .probe-picture canvas { display: block; border-radius: 4px; outline: 1px solid var(--hairline); }
.lab .probe-picture figure:nth-child(2) canvas { cursor: pointer; }
.lab .probe-picture figcaption { font-size: 12px; line-height: 16px; color: var(--soft); margin-top: 4px; }
.lab .probe-picture .probe-cost { flex: 1 0 100%; }

.lab-answer:not([hidden]) { display: grid; gap: 16px 32px; grid-template-columns: subgrid; grid-column: 1 / -1; align-items: start; margin-top: 22px; }
.lab-answer > [hidden] + .probe-next { grid-column: 2; }
.lab-body:has(> .under) { grid-template-rows: auto 1fr; }
.lab-body:has(> .under) > .lab-probe { grid-row: 1 / span 2; grid-column: 2; }
.lab-answer.under:not([hidden]) { grid-column: 1; grid-template-columns: minmax(0, 1fr); }
.lab-answer.under > .probe-next { grid-column: 1 !important; }
.lab .answer-said { min-width: 0; }
.lab .lab-answer h3 { line-height: 22px; overflow-wrap: anywhere; }
.lab .probe-answer h3 bdi { color: var(--ink); }
.lab .probe-next-line { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 4px 14px; align-items: center; margin-bottom: 4px; min-height: 28px; }
.lab .probe-next-line .turns { font-size: 12.5px; color: var(--soft); }
.lab .probe-next-line .turns .number { min-width: 118px; }
.lab .probe-bars { display: grid; gap: 1px; font-size: 13px; }
.lab .probe-bar { display: grid; grid-template-columns: minmax(58px, 96px) minmax(40px, 1fr) 76px 50px; gap: 8px; align-items: center; height: 22px; }
.lab .probe-bar bdi { overflow: hidden; text-overflow: ellipsis; }
.lab .probe-bar .track { height: 13px; background: var(--panel); border-radius: 2px; overflow: hidden; }
.lab .probe-bar i { display: block; height: 100%; width: 100%; background: var(--probability); transform-origin: left; border-radius: 2px; }
.lab .probe-bar .share { font: 12px var(--mono); text-align: right; white-space: nowrap; }
.lab .probe-bar .tick { font-size: 12px; white-space: nowrap; }
.lab .probe-bar.is-right bdi, .lab .probe-bar.is-right .tick { font-weight: 600; }
.lab .probe-bar.rest { color: var(--soft); }
.lab .probe-bar.rest i { background: var(--hairline); }
.lab .probe-cost { font-size: 12.5px; line-height: 18px; color: var(--soft); min-height: 18px; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.lab .probe-cost bdi { color: var(--ink); font-weight: 600; }
.lab .probe-scale { margin: 6px 0 4px; }
.lab .probe-words .prose { line-height: 1.6; }
.lab .probe-lines { display: grid; gap: 10px; max-height: 420px; overflow: auto; scrollbar-width: thin; padding: 2px; margin: 0 0 0 -2px; }
.lab .probe-line { display: flex; }
.lab .probe-line > * { display: grid; grid-template-rows: repeat(4, 23px); align-items: center; flex: none; }
.lab .probe-line .names { width: 156px; white-space: nowrap; font-size: 12.5px; color: var(--soft); }
.lab .probe-line .word { text-align: center; border-radius: 5px; border-left: 2px solid transparent; }
.lab .probe-line .word.empty, .lab .probe-line:not(:has(.word:not(.empty))) .names { visibility: hidden; }
.lab .probe-line .word:hover { background: var(--panel); }
.lab .probe-line .word[aria-pressed=true] { box-shadow: inset 0 0 0 1.5px var(--query); }
.lab .probe-line .word bdi { display: block; overflow: hidden; text-overflow: ellipsis; padding: 0 3px; font-size: 14px; line-height: 22px; }
.lab .probe-line .word .asked { color: var(--soft); }
.lab .probe-line .word .loss { font: 12px/19px var(--mono); margin: 0 2px; border-radius: 3px; padding: 0; }
.lab .probe-line .wrong { text-decoration: underline 2.5px var(--edited); text-underline-offset: 3px; font-weight: 600; }
.lab .probe-line .parts { border-left-color: var(--edited); }
.lab .probe-parts { font-size: 13px; line-height: 19px; margin-top: 6px; min-height: 57px; overflow-wrap: anywhere; }

.lab .two-line { display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: center; margin-bottom: 14px; font-size: 13px; }
.lab .two-steps { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; }
.lab .two-maps { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 18px 24px; align-items: start; }
.lab .two-maps h3, .lab .two-said h3 { line-height: 22px; margin-bottom: 4px; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.lab .two-maps h3 b { color: var(--ink); }
.lab .two-said { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 18px 40px; margin-top: 22px; align-items: start; }
.lab .two-said h3 bdi { color: var(--ink); }
.lab .two-list { display: grid; font-size: 13px; }
.lab .two-row { display: grid; grid-template-columns: minmax(60px, 110px) minmax(30px, 1fr) 66px 66px 66px; gap: 8px; align-items: center; min-height: 24px; }
.lab .two-row.heading { color: var(--soft); font-size: 12px; }
.lab .two-row bdi { overflow: hidden; text-overflow: ellipsis; }
.lab .two-row .number { font: 12px var(--mono); text-align: right; white-space: nowrap; }
.lab .two-row.heading .number { font: 12px var(--sans); }
.lab .two-row .is-right, .lab .two-row.total { font-weight: 600; }
.lab .two-row.total { border-top: 1px solid var(--hairline); margin-top: 3px; padding-top: 3px; }
.lab .two-row.chosen { box-shadow: inset 2px 0 0 var(--query); padding-left: 8px; margin-left: -8px; }
.lab .two-tracks { display: grid; gap: 2px; }
.lab .two-tracks i { display: block; height: 8px; border-radius: 2px; background: var(--probability); transform-origin: left; }
.lab .two-tracks i.before { background: var(--negative); }
.lab .two-tracks i.vague { opacity: .3; }
.lab .two-losses { max-height: 420px; overflow: auto; scrollbar-width: thin; padding-left: 8px; }
.lab .two-losses button.two-row { width: 100%; }
.lab .two-losses button.two-row:hover { background: var(--panel); }
.lab.narrow .two-maps, .lab.narrow .two-said { grid-template-columns: minmax(0, 1fr); }
.lab.narrow .two-row { grid-template-columns: minmax(50px, 80px) minmax(24px, 1fr) 56px 56px 58px; gap: 6px; }

.watch { font-size: 13px; }
.watch-head { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 20px; margin-bottom: 10px; min-height: 30px; }
.watch-head .watch-at { font-variant-numeric: tabular-nums; min-width: 21ch; }
.watch-about { color: var(--soft); font-size: 12.5px; line-height: 1.5; margin: 0 0 12px !important; max-width: 110ch; }
.watch-none { color: var(--soft); padding: 14px 0; }

.curves-plot { cursor: crosshair; }
.curves-box.dragged, .curves-box.dragged .curves-plot { cursor: grabbing; }
.curves-box .track-picture { position: absolute; left: 0; top: 0; overflow: visible; pointer-events: none; }
.panel-title { position: absolute; left: 118px; right: 0; height: 24px; display: flex; align-items: center; gap: 18px; font-size: 13px; pointer-events: none; white-space: nowrap; color: var(--soft); }
.watch-track { position: relative; cursor: crosshair; touch-action: pan-y; }
.watch-handle { position: absolute; left: 0; width: 0; border-left: 2px solid var(--ink); margin-left: -1px; pointer-events: none; }
.watch-norms { position: absolute; top: 0; bottom: 0; pointer-events: none; font: 12px/16px var(--mono); }
.watch-norms .norm { position: absolute; left: 0; right: 2px; transform: translateY(-50%); display: flex; justify-content: space-between; gap: 8px; white-space: nowrap; }
.watch-norms .norm span { font-family: var(--sans); overflow: hidden; text-overflow: ellipsis; }
.watch-norms .norm output { margin-left: auto; }
.ridges { display: grid; grid-template-columns: repeat(auto-fill, minmax(250px, 1fr)); gap: 22px 30px; }
.ridge { min-width: 0; }
.ridge h4 { margin: 0 0 2px; font-size: 13px; font-weight: 600; line-height: 20px; }
.ridge-plot { height: 184px; }
.ridge-numbers, .ridge-shares { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 0 8px; margin: 2px 0 0; font-size: 12px; line-height: 18px; }
.ridge-shares { grid-template-columns: repeat(2, minmax(0, 1fr)); }
.ridge dl > div { display: flex; gap: 6px; align-items: baseline; white-space: nowrap; }
.ridge dt { color: var(--soft); }
.ridge dd { margin: 0; font: 12px/18px var(--mono); }
.ridge-numbers > div:nth-child(2) { justify-content: center; }
.ridge-numbers > div:nth-child(3) { justify-content: flex-end; }
.narrow .ridges { grid-template-columns: minmax(0, 1fr); }
.lab.alone :is(.transport-line, .plan, .transport-state .chip, .probe-look, .probe-form .turn), .lab.pictured :is(.transport-line, .plan, .transport-state .chip, .probe-look, .probe-form .turn, .live-button, .curves-strip, .curves-head, .two-steps, .turn, .tab:not([aria-selected=true]), .modebar-container) { display: none !important; }
.lab.alone .other-run { pointer-events: none; }
.lab.alone :is(.probe-form, .lab-transport) :focus-visible { outline: none; }
.lab.pictured .handle.step:focus-visible { outline: none; }
.lab[data-part] > :is(.lab-transport, .notice, .lab-body, .lab-below) { display: none; }
.lab[data-part=curves] > .lab-body, .lab[data-part=example] > .lab-body, .lab[data-part=below] > .lab-below { display: block; margin-top: 0; }
.lab[data-part=curves] :is(.lab-probe, .lab-answer), .lab[data-part=example] .lab-curves { display: none; }
.lab.narrow[data-part=example] .lab-probe { margin-top: 0; padding-top: 0; border-top: 0; }
`;

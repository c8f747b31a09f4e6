// The look of the probe.
import { PROSE } from "../components/prose.js";

const FORM = `
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
`;

const HEAD = `
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
`;

const SAID = `
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
.lab .probe-line .names { width: 124px; white-space: nowrap; font-size: 12.5px; color: var(--soft); }
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
`;

export const CSS = PROSE + FORM + HEAD + SAID;

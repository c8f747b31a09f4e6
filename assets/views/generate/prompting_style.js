// The look of the tab Prompting.
import { CHOICES } from "../components/choices.js";

export const CSS = `
${CHOICES}
.generate h3 .note { font-weight: 400; }
.p-bar { margin-bottom: 14px; }
.p-fields { display: flex; flex-wrap: wrap; align-items: flex-end; gap: 10px 18px; margin-bottom: 16px; }
.p-field { display: flex; flex-direction: column; gap: 3px; font-size: 13px; position: relative; }
.p-field.wide { flex: 1 1 320px; }
.p-name { color: var(--soft); font-size: 12px; }
.attention .p-field :is(select, input[type=text]), .attention .p-measure select { font: 14px/20px var(--sans); color: inherit; background: var(--panel); border: 1px solid var(--hairline); border-radius: 7px; padding: 5px 8px; height: 33px; }
.attention .p-field input[type=range] { width: 170px; height: 33px; }
.p-count { position: absolute; right: 0; top: 0; font: 12px var(--mono); }
.attention .p-button { padding: 6px 14px; border-radius: 7px; background: var(--panel); font-size: 13.5px; }
.attention .p-button.go { background: var(--probability); color: var(--ground); font-weight: 600; min-width: 104px; text-align: center; }
.attention .p-button:hover:not(:disabled) { filter: brightness(1.07); }
.attention .p-button:disabled { opacity: .4; cursor: default; }
.p-body { display: grid; grid-template-columns: minmax(190px, 250px) minmax(0, 1fr) minmax(260px, 420px); gap: 24px 40px; align-items: start; }
.p-about { font-size: 13px; color: var(--soft); min-height: 36px; margin-bottom: 8px !important; }
.p-table { max-height: 470px; overflow: auto; scrollbar-width: thin; }
.attention .p-row { display: grid; grid-template-columns: 1fr 1fr; gap: 10px; width: 100%; padding: 2px 6px; font-size: 13.5px; line-height: 20px; border-radius: 3px; }
.attention .p-row:hover { background: var(--panel); }
.attention .p-row.taken { background: color-mix(in srgb, var(--attention) 13%, transparent); }
.attention .p-row.asked { box-shadow: inset 3px 0 0 var(--probability); font-weight: 600; }
.p-row bdi { overflow: hidden; text-overflow: ellipsis; }
.attention .p-own { width: 100%; font: 13px/20px var(--mono); color: inherit; background: var(--ground); border: 1px solid var(--hairline); border-radius: 7px; padding: 8px; resize: vertical; }
.p-text { font: 16px/27px var(--mono); min-height: 245px; padding: 10px 14px; background: var(--panel); border-radius: 8px; overflow-wrap: anywhere; }
.p-line.example { color: var(--soft); }
.p-line.query { font-weight: 600; }
.p-answer { background: color-mix(in srgb, var(--probability) 30%, transparent); border-radius: 3px; padding: 0 4px; font-weight: 600; }
.p-answer.right::after { content: " ✓"; color: var(--value); }
.p-answer.wrong::after { content: " ✕"; color: var(--key); }
.p-said { min-height: 22px; font-size: 14px; margin: 8px 0 !important; }
.answered-tokens { display: flex; flex-wrap: wrap; gap: 3px; margin: 6px 0 8px; }
.attention .answered-token { padding: 2px 6px; border-radius: 4px; font: 14px/20px var(--mono); white-space: pre; background: color-mix(in srgb, var(--probability) var(--tint, 0%), transparent); border: 1px solid var(--hairline); }
.attention .answered-token[aria-pressed=true] { box-shadow: 0 0 0 2px var(--attention); }
.answered-row { display: grid; grid-template-columns: 100px minmax(40px, 1fr) 78px; gap: 0 10px; align-items: center; min-height: 23px; padding: 0 4px; border-radius: 4px; font-size: 14px; }
.answered-row bdi { overflow: hidden; text-overflow: ellipsis; white-space: pre; }
.answered-row .track { height: 12px; }
.answered-row .bar { display: block; height: 100%; background: var(--probability); border-radius: 2px; min-width: 1px; }
.answered-row .share { font: 12px var(--mono); text-align: right; white-space: nowrap; }
.answered-row.is-chosen { background: color-mix(in srgb, var(--attention) 13%, transparent); font-weight: 600; }
.p-measure { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 14px; margin-bottom: 8px; }
.p-told { min-height: 20px; font-size: 13.5px; }
.p-chart { min-height: 250px; }
.p-chart svg { max-width: 100%; height: auto; }
.p-line-of { fill: none; stroke: var(--probability); stroke-width: 2; }
.p-error { stroke: var(--probability); stroke-width: 1.5; }
.p-point { fill: var(--probability); stroke: var(--ground); stroke-width: 1.5; }
.p-share { display: grid; grid-template-columns: 40px 80px 130px 70px; font: 12.5px/22px var(--mono); }
.p-share span { text-align: right; }
.p-share.heading { color: var(--soft); font: 12px/20px var(--sans); }
.p-columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(260px, 1fr)); gap: 22px 40px; }
.p-asked { font-size: 16px; line-height: 27px; min-height: 54px; overflow-wrap: anywhere; }
.p-task { font: 600 13px/20px var(--mono); color: var(--edited); white-space: nowrap; }
.p-stop { font-size: 12.5px; color: var(--soft); min-height: 20px; margin-top: 6px !important; }
.p-heading { margin: 26px 0 8px !important; padding-top: 14px; border-top: 1px solid var(--hairline); }
.p-pairs { max-height: 420px; overflow: auto; scrollbar-width: thin; }
.p-pair { display: grid; grid-template-columns: minmax(0, 1fr) max-content minmax(0, 1.2fr); gap: 0 14px; font-size: 14px; line-height: 25px; border-bottom: 1px solid var(--hairline); }
.p-expected { color: var(--soft); }
.narrow .p-body { display: flex; flex-direction: column; align-items: stretch; }
.narrow .p-prompt { order: -1; }
.narrow .p-table { max-height: 220px; }
.narrow .p-pair { grid-template-columns: minmax(0, 1fr); line-height: 20px; padding: 4px 0; }
`;

// The look of the page about attention: its frame, all heads, the map and the details; colours come from tokens.json.
import { EDITED } from "./colours.js";
import { CHOICES } from "../components/choices.js";

const ROLES = ["query", "key", "value", "attention", "residual", "mlp", "probability", "edited"];

const FRAME = `
.attention { font: 14px/1.4 var(--sans); color: var(--ink); position: relative; min-height: 420px; display: grid; grid-template-columns: var(--left) minmax(0, 1fr); gap: 0 28px; align-items: start; }
.attention *, .attention *::before, .attention *::after { box-sizing: border-box; }
.attention [hidden] { display: none !important; }
.attention h2, .attention h3, .attention p { margin: 0; }
.attention h3 { font-size: 13px; font-weight: 600; color: var(--soft); }
.attention button { font: inherit; color: inherit; background: none; border: 0; padding: 0; margin: 0; cursor: pointer; text-align: left; }
.attention select { font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--hairline); border-radius: 6px; padding: 3px 6px; min-width: 0; }
.attention input[type=range] { accent-color: var(--attention); min-width: 0; }
.attention input[type=checkbox] { accent-color: var(--attention); margin: 0; }
.attention :focus-visible { outline: 2px solid var(--attention); outline-offset: 2px; border-radius: 3px; }
.attention bdi { white-space: pre; unicode-bidi: isolate; }
.attention .sentence { color: var(--soft); }
${ROLES.map((role) => `.attention .role-${role} { color: var(--${role}); }`).join("\n")}
.notice { grid-column: 1 / -1; margin: 0 0 12px !important; padding: 7px 12px; border-left: 3px solid var(--edited); background: var(--panel); }
.left { grid-column: 1; }
.right { grid-column: 2; min-width: 0; }
.top { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 20px; min-height: 30px; }
.title { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 24px; font-size: 17px !important; line-height: 26px; font-weight: 600; font-variant-numeric: tabular-nums; }
.turns { display: flex; align-items: center; gap: 8px; white-space: nowrap; }
.attention .turn { width: 26px; height: 26px; line-height: 23px; text-align: center; border-radius: 6px; background: var(--panel); font-weight: 400; }
.attention .turn:hover { background: var(--hairline); }
.chips { display: flex; flex-wrap: wrap; gap: 6px; }
.attention .chip { padding: 2px 11px; border-radius: 12px; background: var(--panel); font-size: 13px; font-weight: 500; white-space: nowrap; }
.attention .chip:hover { background: var(--hairline); }
.attention .chip[aria-pressed=true] { background: var(--attention); color: var(--ground); }
.tabs { display: flex; gap: 22px; margin: 8px 0 16px; border-bottom: 1px solid var(--hairline); overflow-x: auto; scrollbar-width: none; }
.attention .tab { padding: 6px 0 8px; font-size: 14.5px; color: var(--soft); white-space: nowrap; border-bottom: 2px solid transparent; margin-bottom: -1px; flex: none; }
.attention .tab::after { content: attr(data-title); display: block; height: 0; overflow: hidden; visibility: hidden; font-weight: 600; }
.attention .tab:hover { color: var(--ink); }
.attention .tab[aria-selected=true] { color: var(--ink); font-weight: 600; border-color: var(--attention); }
.attention .tab:focus-visible { outline-offset: -2px; }
.beside .work { display: grid; grid-template-columns: minmax(0, 1fr) var(--details); gap: 28px; align-items: start; }
.room { min-width: 0; }
.tip { position: fixed; z-index: 20; pointer-events: none; background: var(--ink); color: var(--ground); padding: 4px 9px; border-radius: 6px; font: 13px var(--mono); display: flex; gap: 12px; white-space: pre; max-width: min(60vw, 520px); }
.tip bdi { opacity: .85; overflow: hidden; text-overflow: ellipsis; }
.tip strong:empty { display: none; }
.live { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.attention kbd { font: 600 11px var(--mono); background: var(--panel); border: 1px solid var(--hairline); border-radius: 3px; padding: 0 4px; }
.narrow.attention { display: flex; flex-direction: column; align-items: stretch; }
.narrow .right, .narrow .work { display: contents; }
.narrow .left { order: 1; margin-top: 24px; padding-top: 14px; border-top: 1px solid var(--hairline); }
.narrow .details { order: 2; }
.narrow .turn { width: 34px; height: 32px; line-height: 29px; }
.narrow .title { font-size: 16px !important; }
.narrow .tabs { gap: 18px; }
`;

const CELLS = `
.cells { position: relative; }
.cells canvas { display: block; cursor: crosshair; }
.lit-column, .lit-row, .picked-cell { position: absolute; top: 0; left: 0; pointer-events: none; }
.lit-column { background: color-mix(in srgb, var(--key) 6%, transparent); box-shadow: inset 0 0 0 1.5px var(--key); border-radius: 4px; }
.lit-row { background: color-mix(in srgb, var(--query) 6%, transparent); box-shadow: inset 0 0 0 1.5px var(--query); border-radius: 4px; }
.picked-cell { border: 2px solid var(--ink); border-radius: 4px; }
.legend { white-space: nowrap; font: 11.5px/14px var(--mono); color: var(--soft); display: flex; align-items: center; gap: 8px; }
.legend-bar { height: 7px; border-radius: 2px; display: block; }
.picture canvas { display: block; border-radius: 4px; cursor: crosshair; outline: 1px solid var(--hairline); }
.picture-note { margin-top: 8px !important; font-size: 12px; color: var(--soft); min-height: 34px; }
.picture-plain { display: flex; gap: 16px; margin-top: 10px; }
.picture-plain figure { margin: 0; width: 100px; }
.picture-plain figcaption { font-size: 12px; line-height: 15px; color: var(--soft); margin-top: 4px; }
`;

const HEADS = `
.heads-legend { margin-top: 10px; display: flex; flex-wrap: wrap; gap: 4px 16px; }
.heads-title { display: flex; align-items: baseline; justify-content: space-between; gap: 10px; min-height: 30px; }
.heads-title > h3 { line-height: 30px; }
.heads-title > h3 span { font-weight: 400; }
.measure { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 8px; align-items: center; margin: 8px 0 10px; font-size: 13px; }
.measure .least { display: flex; grid-column: 1 / -1; align-items: center; gap: 10px; }
.measure .least input { flex: 1; }
.measure .least output { font: 12px var(--mono); color: var(--soft); white-space: nowrap; min-width: 122px; text-align: right; }
.meaning { font-size: 12.5px; line-height: 1.45; color: var(--soft); margin: 0 0 10px !important; }
.headgrid { display: grid; gap: var(--between, 5px); max-height: 520px; overflow: auto; padding: 3px; margin: 0 -3px; width: max-content; max-width: calc(100% + 6px); scrollbar-width: thin; }
.headgrid > [role=row] { display: flex; gap: var(--between, 5px); align-items: flex-start; }
.headgrid .layer { width: 17px; font: 12px var(--mono); color: var(--soft); flex: none; align-self: center; }
.headgrid button { border: 1px solid var(--hairline); border-radius: 4px; padding: 1px; line-height: 0; flex: none; background: var(--ground); }
.headgrid button { position: relative; }
.headgrid button.edited::after { content: ""; position: absolute; top: -1px; right: -1px; width: 12px; height: 12px; background: linear-gradient(to top right, transparent calc(50% - 1.5px), var(--ground) calc(50% - 1px) calc(50% + .5px), var(--edited) calc(50% + 1px)); border-top-right-radius: 4px; pointer-events: none; }
.small button.edited::after { width: 9px; height: 9px; }
.headgrid button:hover { border-color: var(--soft); }
.headgrid button[aria-selected=true] { border-color: var(--attention); box-shadow: 0 0 0 1.5px var(--attention); }
.headgrid button.among { border-color: var(--chosen); box-shadow: 0 0 0 1px var(--chosen); }
.headgrid button.among[aria-selected=true] { box-shadow: 0 0 0 2px var(--chosen); }
.headgrid:has(.captioned) { row-gap: 9px; }
.captioned { display: flex; flex-direction: column; align-items: stretch; flex: none; }
.captioned .which { font: 11px/14px var(--mono); color: var(--soft); text-align: center; }
.captioned .caption { position: relative; font: 11px/15px var(--mono); text-align: center; padding-bottom: 3px; white-space: nowrap; }
.captioned .caption::before { content: ""; position: absolute; left: 1px; bottom: 0; height: 3px; width: calc((100% - 2px) * var(--share, 0)); background: var(--attention); border-radius: 1px; }
.captioned.dim { opacity: .25; }
.headgrid.small:has(.captioned) { row-gap: 5px; }
.small .caption, .small .which { font-size: 10px; line-height: 13px; letter-spacing: -.04em; }
.compared { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; margin-top: 10px; font-size: 12.5px; color: var(--soft); }
.attention .compared button { border: 1px solid var(--hairline); border-radius: 12px; padding: 1px 9px; color: var(--ink); font-size: 12.5px; }
.attention .compared .patch { display: inline-block; width: 9px; height: 9px; border-radius: 2px; background: var(--chosen); margin-right: 6px; }
.attention .compared button:hover { border-color: var(--soft); }
.attention .compared [aria-pressed=true] { background: var(--attention); border-color: var(--attention); color: var(--ground); }
`;

const DETAILS = `
.details { display: grid; grid-template-columns: minmax(0, 1fr); gap: 22px; font-size: 13px; }
.attention:not(.beside):not(.narrow) .details { grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 28px; margin-top: 22px; padding-top: 16px; border-top: 1px solid var(--hairline); }
.narrow .details { margin-top: 24px; padding-top: 14px; border-top: 1px solid var(--hairline); }
.details h3 { line-height: 19px; margin-bottom: 7px; overflow-wrap: anywhere; }
.details h3 bdi { color: var(--ink); white-space: pre-wrap; }
.weights { display: grid; gap: 1px; }
.attention .weight { display: grid; grid-template-columns: var(--named, 84px) minmax(20px, 1fr) 60px; gap: 8px; align-items: center; min-height: 22px; width: 100%; border-radius: 4px; }
.attention button.weight:hover { background: var(--panel); }
.weight bdi { overflow: hidden; text-overflow: ellipsis; }
.weight.as-key bdi { color: var(--key); font-weight: 600; }
.weight.as-query bdi { color: var(--query); font-weight: 600; }
.details .how-bright { margin: 5px 0 8px; font: 12px/16px var(--mono); color: var(--soft); }
.weight .bar { display: block; height: 12px; border-radius: 2px; background: var(--attention); min-width: 1px; }
.weight .share { font: 12px var(--mono); text-align: right; white-space: nowrap; }
.weight.rest { color: var(--soft); }
.weight.rest .bar { background: var(--hairline); }
.why { line-height: 1.5; color: var(--soft); overflow-wrap: anywhere; min-height: 39px; }
.attention .score { display: grid; grid-template-columns: minmax(0, 1fr) auto 78px; gap: 10px; min-height: 24px; align-items: center; width: 100%; border-radius: 4px; }
.attention .score:hover { background: var(--panel); }
.attention .score[aria-pressed=true] { color: var(--attention); font-weight: 600; }
.score .value { font: 12px var(--mono); text-align: right; white-space: nowrap; }
.score .rank { font: 12px var(--mono); color: var(--soft); text-align: right; white-space: nowrap; font-weight: 400; }
.score-heading { display: grid; grid-template-columns: minmax(0, 1fr) auto 78px; gap: 10px; font-size: 11.5px; color: var(--soft); }
.score-heading span + span { text-align: right; }
.definition { margin-top: 8px !important; padding-top: 8px; border-top: 1px solid var(--hairline); font-size: 12.5px; line-height: 1.45; color: var(--soft); min-height: 76px; }
`;

export const CSS = FRAME + CHOICES + CELLS + HEADS + DETAILS + EDITED;

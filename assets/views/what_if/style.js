// The look of the panel "What if" and of what its edits did; colours come from tokens.json.

export const PANEL_CSS = `
.experiment { font: 14px/1.4 var(--sans); color: var(--ink); padding: 0 0 14px; }
.experiment.resting { padding: 0 0 4px; }
.experiment *, .experiment *::before { box-sizing: border-box; }
.experiment [hidden] { display: none !important; }
.experiment p, .experiment h4, .experiment ul { margin: 0; padding: 0; }
.experiment button { font: inherit; color: inherit; background: none; border: 0; padding: 0; margin: 0; cursor: pointer; text-align: left; }
.experiment :focus-visible { outline: 2px solid var(--attention); outline-offset: 2px; border-radius: 4px; }
.experiment input, .experiment select { font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--hairline); border-radius: 6px; padding: 0 8px; height: 30px; min-width: 0; }
.experiment input[type=number] { width: 84px; font-family: var(--mono); font-size: 13px; }
.experiment input[type=checkbox] { height: auto; accent-color: var(--edited); margin: 0; }
.experiment bdi { white-space: pre; unicode-bidi: isolate; }
.experiment .top { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 10px; min-height: 28px; }
.experiment .plain { padding: 2px 8px; border-radius: 6px; color: var(--soft); font-size: 13px; min-width: 28px; text-align: center; }
.experiment .plain:hover:not(:disabled) { background: var(--panel); color: var(--ink); }
.experiment .plain:disabled { opacity: .35; cursor: default; }
.experiment .start { color: var(--edited); font-size: 14px; font-weight: 600; padding: 3px 12px; border-radius: 14px; background: color-mix(in srgb, var(--edited) 9%, transparent); }
.experiment .start:hover:not(:disabled) { color: var(--edited); background: color-mix(in srgb, var(--edited) 16%, transparent); }
.experiment.resting .start { font-weight: 500; }
.experiment .guessing { display: flex; align-items: center; gap: 7px; font-size: 13px; color: var(--soft); margin-left: auto; cursor: pointer; }
.experiment .told { margin-top: 8px; padding: 7px 12px; border-left: 3px solid var(--edited); background: var(--panel); }
.experiment .edits { list-style: none; display: flex; flex-wrap: wrap; gap: 6px 8px; margin-top: 8px; max-height: 250px; overflow: auto; }
.experiment .edit { display: flex; align-items: center; flex-wrap: wrap; gap: 2px 8px; padding: 3px 4px 3px 8px; border: 1px solid var(--hairline); border-left: 3px solid var(--edited); border-radius: 7px; max-width: 100%; }
.experiment .edit.off { border-left-color: var(--hairline); }
.experiment .edit.off .words { color: var(--soft); text-decoration: line-through; }
.experiment .words { font-size: 13.5px; color: var(--ink); padding: 1px 2px; min-width: 0; overflow-wrap: anywhere; text-align: left; flex: 0 1 auto; }
.experiment .away { padding: 0 6px; min-width: 24px; font-size: 16px; line-height: 22px; }
.experiment .misfit { flex: 1 0 100%; font-size: 12.5px; color: var(--soft); padding: 0 4px 3px 38px; }
.experiment .switch { position: relative; width: 28px; height: 16px; border-radius: 8px; background: var(--hairline); flex: none; transition: background .12s; }
.experiment .switch::before { content: ""; position: absolute; left: 2px; top: 2px; width: 12px; height: 12px; border-radius: 6px; background: var(--soft); transition: transform .12s; }
.experiment .switch[aria-checked=true] { background: var(--edited); }
.experiment .switch[aria-checked=true]::before { background: var(--ground); transform: translateX(12px); }
.experiment .offers { display: grid; grid-template-columns: repeat(auto-fill, minmax(210px, 1fr)); gap: 6px; margin-top: 10px; }
.experiment .offers button { display: flex; flex-direction: column; padding: 7px 11px; border-radius: 8px; background: var(--panel); text-align: left; color: var(--ink); }
.experiment .offers button:hover { background: color-mix(in srgb, var(--edited) 12%, var(--panel)); }
.experiment .offers strong { font-size: 13.5px; font-weight: 600; }
.experiment .offers span { font-size: 12px; color: var(--soft); }
.experiment .offers .note { grid-column: 1 / -1; }
.experiment .form { margin-top: 10px; padding: 12px 14px 14px; border: 1px solid var(--hairline); border-radius: 9px; }
.experiment .form h4 { font-size: 14px; font-weight: 600; margin-bottom: 10px; }
.experiment .fields { display: flex; flex-wrap: wrap; gap: 10px 16px; align-items: flex-end; }
.experiment .field { display: flex; flex-direction: column; gap: 3px; min-width: 0; }
.experiment .field .label { font-size: 12px; color: var(--soft); }
.experiment .field.wide { flex: 1 1 220px; }
.experiment .field.whole, .experiment .note.whole { flex: 1 0 100%; }
.experiment .note { font-size: 12.5px; color: var(--soft); min-height: 18px; }
.experiment .toggles { display: flex; flex-wrap: wrap; gap: 3px; }
.experiment .toggle { height: 28px; line-height: 26px; min-width: 28px; padding: 0 7px; text-align: center; border: 1px solid var(--hairline); border-radius: 6px; font-size: 13px; max-width: 140px; overflow: hidden; text-overflow: ellipsis; }
.experiment .toggle:hover { border-color: var(--soft); }
.experiment .toggle[aria-pressed=true] { background: color-mix(in srgb, var(--edited) 14%, transparent); border-color: var(--edited); font-weight: 600; }
.experiment .tokens.many { max-height: 136px; overflow: auto; padding: 2px; }
.experiment .buttons { display: flex; gap: 8px; margin-top: 14px; }
.experiment .go { padding: 4px 16px; border-radius: 7px; background: var(--edited); color: var(--ground); font-weight: 600; }
.experiment .go:disabled { opacity: .5; cursor: progress; }
.experiment .go:hover { filter: brightness(1.1); }
.experiment .refused { margin-top: 10px; padding: 6px 11px; border-left: 3px solid var(--key); background: var(--panel); }
.experiment .mask { display: flex; align-items: flex-start; overflow: auto; padding: 2px; max-width: 100%; max-height: min(560px, 70vh); }
.experiment .mask-window { display: flex; align-items: flex-start; position: sticky; top: 0; left: 0; width: max-content; }
.experiment .go-to { display: flex; flex-wrap: wrap; gap: 6px 14px; padding: 2px 0 8px; font-size: 12px; color: var(--soft); }
.experiment .go-to input { width: 108px; }
.experiment .mask-rows { flex: none; width: 92px; padding-right: 7px; position: sticky; left: 0; background: var(--ground); z-index: 1; }
.experiment .mask-rows button { display: block; width: 100%; font-size: 12px; line-height: 1; text-align: right; white-space: pre; overflow: hidden; text-overflow: ellipsis; color: var(--soft); }
.experiment .mask-rows button:hover, .experiment .axis bdi:hover { color: var(--edited); }
.experiment .mask canvas { display: block; cursor: crosshair; touch-action: none; outline-offset: -2px; }
.experiment .axis { position: sticky; bottom: 0; height: 52px; background: var(--ground); }
.experiment .axis bdi { position: absolute; top: 3px; transform-origin: 0 0; transform: rotate(52deg); font-size: 11.5px; line-height: 12px; white-space: pre; max-width: 62px; overflow: hidden; text-overflow: ellipsis; color: var(--soft); cursor: pointer; }
.experiment .axis.upright { height: 20px; }
.experiment .axis.upright bdi { transform: translateX(-50%); max-width: none; }
@media (max-width: 700px) {
  .experiment .guessing { margin-left: 0; flex: 1 0 100%; }
  .experiment .edits { flex-direction: column; }
  .experiment .offers { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .experiment .words { flex: 1 1 0; }
}
`;

export const EFFECTS_CSS = `
.effects { font: 14px/1.4 var(--sans); color: var(--ink); padding: 0 0 18px; margin-bottom: 14px; border-bottom: 1px solid var(--hairline); }
.effects[hidden], .effects [hidden] { display: none !important; }
.effects *, .effects *::before { box-sizing: border-box; }
.effects p, .effects h4 { margin: 0; }
.effects h4 { font-size: 13px; font-weight: 600; color: var(--soft); margin-bottom: 8px; }
.effects button { font: inherit; color: inherit; background: none; border: 0; padding: 0; margin: 0; cursor: pointer; text-align: left; }
.effects :focus-visible { outline: 2px solid var(--attention); outline-offset: 2px; border-radius: 4px; }
.effects bdi { white-space: pre; unicode-bidi: isolate; }
.effects .summary { display: flex; flex-wrap: wrap; align-items: baseline; gap: 2px 10px; padding: 4px 0; }
.effects .fold { width: 20px; color: var(--soft); text-align: center; }
.effects .headline { font-size: 15.5px; flex: 1 1 0; min-width: 0; display: flex; flex-wrap: wrap; align-items: baseline; gap: 2px 8px; }
.effects .likely { display: inline-flex; gap: 7px; align-items: baseline; padding: 1px 8px; border-radius: 6px; background: color-mix(in srgb, var(--probability) 18%, transparent); }
.effects .likely bdi { font-weight: 600; }
.effects .likely .p { font: 13px var(--mono); }
.effects .arrow { color: var(--edited); font-weight: 600; }
.effects .measured, .effects .took { font-size: 13px; color: var(--soft); }
.effects .measured { margin-left: 6px; }
.effects .panels { display: grid; grid-template-columns: minmax(0, 1.25fr) minmax(0, auto) minmax(0, auto); gap: 14px 40px; margin-top: 12px; align-items: start; }
.effects .candidates { border-collapse: collapse; width: 100%; table-layout: auto; }
.effects .candidates th, .effects .candidates td { padding: 0 0 0 12px; height: 25px; font-weight: 400; border: 0; white-space: nowrap; }
.effects .candidates thead th { font-size: 12px; color: var(--soft); text-align: right; height: 20px; }
.effects .candidates .piece { padding: 0; text-align: left; font-size: 14px; max-width: 112px; overflow: hidden; text-overflow: ellipsis; }
.effects .candidates .pair { width: 55%; min-width: 60px; }
.effects .candidates .number { font: 12.5px var(--mono); text-align: right; }
.effects .candidates .more, .effects .candidates .less { color: var(--edited); }
.effects .bar { display: block; height: 8px; min-width: 1px; border-radius: 2px; }
.effects .bar.before { background: var(--hairline); box-shadow: inset 0 0 0 1px var(--soft); margin-bottom: 1px; }
.effects .bar.after { background: var(--probability); }
.effects .key { display: flex; align-items: center; gap: 6px; font-size: 12px; color: var(--soft); margin-top: 6px; }
.effects .swatch { width: 16px; height: 8px; border-radius: 2px; }
.effects .swatch.before { background: var(--hairline); box-shadow: inset 0 0 0 1px var(--soft); }
.effects .swatch.after { background: var(--probability); margin-left: 8px; }
.effects .heat + .heat { margin-top: 12px; }
.effects .side { font-size: 12px; color: var(--soft); margin-bottom: 3px; }
.effects .rows { display: flex; }
.effects .rows.says { margin-top: 5px; }
.effects .row-names { width: 46px; flex: none; display: flex; flex-direction: column; justify-content: space-around; padding-right: 8px; text-align: right; font: 11.5px var(--mono); color: var(--soft); }
.effects .head-names { display: flex; font: 11.5px/16px var(--mono); color: var(--soft); }
.effects .head-names span { flex: 1 1 0; text-align: center; }
.effects .cells { position: relative; }
.effects .cells canvas { display: block; cursor: pointer; }
.effects .lit-row, .effects .lit-column { display: none; }
.effects .picked-cell { position: absolute; top: 0; left: 0; border: 2px solid var(--ink); border-radius: 4px; pointer-events: none; }
.effects .legend { display: flex; align-items: center; gap: 8px; font: 11.5px/14px var(--mono); color: var(--soft); white-space: nowrap; margin-top: 5px; }
.effects .legend-bar { height: 7px; border-radius: 2px; display: block; }
.effects .axis { position: relative; height: 46px; }
.effects .axis bdi { position: absolute; top: 3px; transform-origin: 0 0; transform: rotate(52deg); font-size: 11.5px; line-height: 12px; max-width: 56px; overflow: hidden; text-overflow: ellipsis; color: var(--soft); }
.effects .axis bdi.chosen { color: var(--ink); font-weight: 600; }
.effects .axis.upright { height: 20px; }
.effects .axis.upright bdi { transform: translateX(-50%); max-width: none; }
.effects .told { font: 12.5px/18px var(--mono); color: var(--soft); min-height: 18px; margin-top: 4px; }
.effects .continuation { margin-top: 14px; }
.effects .continuation h4 { margin-bottom: 5px; }
.effects .written { min-height: 50px; }
.effects .line { line-height: 25px; }
.effects .line .run { display: inline-block; width: 58px; font-size: 12.5px; color: var(--soft); }
.effects .line .token { display: inline-block; line-height: 21px; padding: 0; margin-right: 3px; border-radius: 3px; }
.effects .line .other { background: color-mix(in srgb, var(--edited) 15%, transparent); box-shadow: inset 0 -2px 0 var(--edited); }
.effects .completed { display: flex; flex-wrap: wrap; gap: 14px 28px; }
.effects figure { margin: 0; max-width: 190px; }
.effects figure canvas { display: block; }
.effects figcaption { font-size: 12.5px; color: var(--soft); margin-top: 5px; }
.effects .cells-to-choose { display: grid; gap: 1px; width: max-content; max-width: 100%; max-height: 330px; overflow: auto; padding: 2px; margin-top: 6px; }
.effects .cells-to-choose canvas { display: block; width: 24px; height: 24px; }
.effects .cells-to-choose .cell { border: 2px solid transparent; border-radius: 3px; }
.effects .cells-to-choose .cell:hover { border-color: var(--soft); }
.effects .cells-to-choose .cell[aria-pressed=true] { border-color: var(--edited); }
.effects .cells-to-choose .away { border: 2px solid transparent; opacity: .22; }
.effects .soft { color: var(--soft); font-size: 13px; margin-left: 8px; }
.effects .lists { display: flex; gap: 6px; margin-bottom: 6px; }
.effects .chip { padding: 2px 11px; border-radius: 12px; background: var(--panel); font-size: 13px; }
.effects .chip:hover { background: var(--hairline); }
.effects .chip[aria-pressed=true] { background: var(--edited); color: var(--ground); }
.effects .guess { margin-top: 4px; padding: 12px 14px; border: 1px dashed var(--edited); border-radius: 9px; }
.effects .guess h4 { font-size: 15px; color: var(--ink); }
.effects .question { margin-top: 8px; }
.effects .question .now { font-weight: 600; }
.effects .options { display: flex; flex-wrap: wrap; gap: 5px; margin-top: 6px; max-height: 130px; overflow: auto; padding: 2px; }
.effects .buttons { display: flex; flex-wrap: wrap; align-items: center; gap: 8px; margin-top: 14px; }
.effects .go { padding: 4px 16px; border-radius: 7px; background: var(--edited); color: var(--ground); font-weight: 600; }
.effects .go:disabled { opacity: .4; cursor: default; }
.effects .tally { font: 12.5px var(--mono); color: var(--soft); margin-left: auto; }
.effects .verdict { padding: 8px 12px; margin: 6px 0; border-left: 3px solid var(--soft); background: var(--panel); }
.effects .verdict:has(.right) { border-color: var(--value); }
.effects .verdict:has(.wrong) { border-color: var(--key); }
.effects .verdict bdi { white-space: normal; }
.effects .right strong { color: var(--value); } .effects .wrong strong { color: var(--key); }
.effects.narrow .panels { display: flex; flex-direction: column; align-items: stretch; gap: 20px; }
.effects.narrow .distribution { overflow-x: auto; }
.effects.narrow .candidates th, .effects.narrow .candidates td { padding-left: 5px; }
.effects.narrow .candidates .number { font-size: 11px; }
.effects.narrow figure { max-width: 140px; }
.effects.narrow .completed { gap: 14px; }
.effects.narrow .line .run { display: block; line-height: 18px; }
.effects.narrow .candidates .piece { padding: 0; max-width: 76px; }
.effects.narrow .candidates .pair { width: 12%; min-width: 18px; }
.effects.narrow .headline { flex: 1 1 calc(100% - 40px); }
.effects.narrow .took { padding-left: 30px; }
.effects.narrow .measured { margin-left: 0; flex: 1 0 100%; }
`;

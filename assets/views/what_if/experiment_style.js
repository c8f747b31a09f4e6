// The look of the panel "What if"; colours come from tokens.json.

export const CSS = `
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

// What the page about attention looks like for a long text, beyond attention_style.js.

export const CSS = `
.attention.crossing .measure, .attention.crossing .meaning, .attention.crossing .scoring { display: none; }
.scoring { margin: 0 0 10px; font-size: 12.5px; line-height: 1.45; color: var(--soft); }
.scoring progress { display: block; width: 100%; height: 6px; accent-color: var(--attention); margin-bottom: 4px; }
.scoring p { margin: 0 !important; }
.long-shows { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 18px; min-height: 28px; }
.long-shows .as-shares { display: flex; gap: 6px; align-items: center; font-size: 13px; }
.long-line { display: flex; align-items: center; gap: 10px 16px; margin: 6px 0 4px; min-height: 48px; max-width: max(420px, calc(var(--beside) + var(--map))); }
.long-zoom { display: flex; gap: 6px; flex: none; }
.attention .long-zoom button { min-width: 30px; height: 28px; padding: 0 9px; border-radius: 6px; background: var(--panel); text-align: center; font-variant-numeric: tabular-nums; }
.attention .long-zoom button:hover { background: var(--hairline); }
.attention .long-zoom button:disabled { color: var(--soft); opacity: .5; cursor: default; background: var(--panel); }
.long-where { flex: 1; min-width: 0; font-size: 13px; line-height: 18px; color: var(--soft); font-variant-numeric: tabular-nums; }
.long-where strong { color: var(--ink); font-weight: 500; }
.minimap { position: relative; flex: none; overflow: hidden; border-radius: 3px; outline: 1px solid var(--hairline); touch-action: none; }
.minimap canvas { display: block; cursor: pointer; }
.minimap-frame { position: absolute; left: 0; top: 0; border: 1.5px solid var(--ink); border-radius: 2px; pointer-events: none; background: color-mix(in srgb, var(--ink) 8%, transparent); }
.long-grid { display: grid; grid-template-columns: var(--beside) max-content; grid-template-rows: var(--above) max-content; width: max-content; }
.long-corner { font-size: 12px; line-height: 15px; display: flex; flex-direction: column; justify-content: flex-end; padding: 0 8px 5px 0; text-align: right; white-space: nowrap; }
.long-top, .long-left { position: relative; overflow: hidden; }
.long-top { margin-right: calc(-1 * var(--overhang)); }
.long-top > *, .long-left > * { position: absolute; font-size: 13px; line-height: 15px; white-space: pre; cursor: pointer; background: var(--ground); }
.long-left > * { right: 8px; max-width: calc(var(--beside) - 8px); display: flex; gap: 6px; }
.long-left bdi { overflow: hidden; text-overflow: ellipsis; }
.long-top > * { bottom: 4px; left: 0; transform-origin: 0 100%; max-width: 92px; overflow: hidden; text-overflow: ellipsis; }
.long-top .place, .long-left .place { font: 12px/15px var(--mono); color: var(--soft); }
.long-left .lit, .long-left .lit .place { color: var(--query); font-weight: 600; z-index: 2; }
.long-top .lit, .long-top .lit .place { color: var(--key); font-weight: 600; z-index: 2; }
.long-map { position: relative; overflow: hidden; background: var(--ground); outline: 1px solid var(--hairline); cursor: crosshair; user-select: none; -webkit-user-select: none; }
.attention .long-map:focus-visible { outline: 2px solid var(--attention); outline-offset: 1px; border-radius: 0; }
.long-map.dragging { cursor: grabbing; }
.long-map canvas { display: block; cursor: inherit; }
.lit-row.thin, .lit-column.thin { box-shadow: none; border-radius: 0; }
.lit-row.thin { background: color-mix(in srgb, var(--query) 65%, transparent); }
.lit-column.thin { background: color-mix(in srgb, var(--key) 65%, transparent); }
.long-legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 10px 0 0 var(--beside); font-size: 12.5px; color: var(--soft); max-width: var(--map); }
.long-keys { font-size: 12.5px; color: var(--soft); }
.attention .long-row .weight { grid-template-columns: 38px 84px minmax(20px, 1fr) 68px; }
.long-row .weight .place { font: 12px var(--mono); color: var(--soft); text-align: right; }
.long-row .weight.rest { grid-template-columns: 130px minmax(20px, 1fr) 68px; }
.long-cell { margin: 0 0 8px !important; line-height: 1.5; overflow-wrap: anywhere; }
.long-cell .share { font: 13px var(--mono); }
.long-cell bdi, .long-words bdi { white-space: pre-wrap; }
.long-words p { line-height: 1.75; overflow-wrap: anywhere; margin: 0 0 10px !important; }
.long-words bdi { border-radius: 3px; padding: 1px 2px; }
.long-words bdi.as-query { color: var(--query); font-weight: 600; box-shadow: inset 0 -2px 0 var(--query); }
.long-words bdi.as-key { color: var(--key); font-weight: 600; box-shadow: inset 0 -2px 0 var(--key); }
.long-words .place { font: 12px var(--mono); color: var(--soft); }
.attention.long:not(.beside):not(.narrow) .details { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); }
.narrow .long-line { flex-wrap: wrap; }
.narrow .long-legend { margin-left: 0; max-width: none; }
.narrow .long-where { order: 3; flex-basis: 100%; }
.narrow .long-zoom { flex: 1; }
.narrow .long-zoom button { min-width: 40px; height: 36px; }
`;

// The look of the tab Cache.

export const CSS = `
.cache-bar { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 16px; min-height: 36px; margin-bottom: 10px; }
.attention .cache-button { padding: 5px 16px; border-radius: 7px; font-weight: 600; font-size: 14px; min-width: 92px; text-align: center; background: var(--probability); color: var(--ground); }
.attention .cache-button.quiet { background: var(--panel); color: var(--ink); font-weight: 500; }
.attention .cache-button:hover:not(:disabled) { filter: brightness(1.07); }
.attention .cache-button:disabled { opacity: .4; cursor: default; }
.cache-slider { flex: 0 1 320px; }
.cache-where { font-size: 13.5px; min-width: 20ch; }
.cache-sums { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 3px 16px; margin: 0 0 12px; font-size: 13.5px; }
.cache-sums dt { color: var(--soft); }
.cache-sums dd { margin: 0; font-variant-numeric: tabular-nums; }
.cache-legend { display: flex; flex-wrap: wrap; gap: 4px 20px; font-size: 12.5px; color: var(--soft); margin-bottom: 6px !important; }
.cache-legend span { display: inline-flex; align-items: center; gap: 7px; }
.cache-ramp { width: 56px; height: 9px; background: linear-gradient(to right, var(--zero), color-mix(in srgb, var(--hue) 50%, var(--zero)) 25%, var(--hue)); border: 1px solid var(--hairline); }
.cache-fresh { width: 13px; height: 13px; border: 2px solid var(--attention); }
.cache-grid { display: grid; grid-template-columns: 70px minmax(0, 1fr); }
.narrow .cache-grid { grid-template-columns: 56px minmax(0, 1fr); }
.cache-names { font-size: 12.5px; color: var(--soft); }
.cache-block { display: flex; align-items: center; border-right: 2px solid var(--hairline); margin-right: 8px; }
.cache-scroll { overflow-x: auto; overflow-y: hidden; scrollbar-width: thin; }
.cache-scroll.unfolded { overflow: visible; }
.cache-axis { position: relative; overflow: hidden; }
.cache-axis bdi { position: absolute; bottom: 2px; transform-origin: 0 100%; transform: rotate(-58deg); font-size: 11.5px; line-height: 12px; max-width: 60px; overflow: hidden; text-overflow: ellipsis; color: var(--soft); }
.cache-axis bdi.is-new { color: var(--attention); font-weight: 600; }
.cache-axis bdi.is-later { opacity: .4; }
.cache-frame { position: relative; width: max-content; line-height: 0; }
.cache-frame canvas { cursor: crosshair; }
.cache-mark { position: absolute; box-shadow: 0 0 0 2px var(--ink); pointer-events: none; }
.cache-said { font: 12.5px/18px var(--mono); color: var(--soft); min-height: 18px; margin: 6px 0 12px !important; }
.cache-holder > h3 { margin: 4px 0 4px !important; }
.cache-under { margin-top: 7px; line-height: 0; display: grid; gap: 4px; width: max-content; }
.cache-strip-name { font-size: 12px; line-height: 15px; margin-bottom: 4px; white-space: nowrap; }
.cache-block + .cache-strip-name { margin-top: 2px; }
.cache-read { margin-top: 10px; }
.cache-note { font-size: 12.5px; color: var(--soft); }
.cache-charts { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 20px 28px; padding-top: 14px; border-top: 1px solid var(--hairline); }
.cache-chart h3 { font-size: 14.5px !important; color: var(--ink) !important; }
.cache-chart .cache-legend { margin: 4px 0 2px !important; min-height: 18px; }
.cache-sign { width: 20px; height: 0; border-top: 3px solid var(--hue); }
.cache-sign.of-again, .cache-sign.of-reference { border-top-style: dashed; }
.cache-sign.of-wide { border-top-style: dotted; }
.cache-line { fill: none; stroke: var(--hue); stroke-width: 2.5; }
.cache-line.of-again, .cache-line.of-reference { stroke-dasharray: 7 4; }
.cache-line.of-wide { stroke-dasharray: 2 3; }
.cache-point { fill: var(--ground); stroke: var(--hue); stroke-width: 2; }
.cache-now { stroke: var(--soft); stroke-dasharray: 2 3; }
.cache-chart .told { white-space: normal !important; min-height: 36px !important; padding-left: 0 !important; }
.cache-measure { display: flex; align-items: center; gap: 12px; margin-top: 4px; }
.pictured .cache-bar, .pictured .cache-measure, .pictured .cache-said { display: none; }
.narrow .cache-charts { display: flex; flex-direction: column; align-items: stretch; }
.narrow .cache-sums { grid-template-columns: minmax(0, 1fr); gap: 0; }
.narrow .cache-sums dd { margin-bottom: 5px; }
`;

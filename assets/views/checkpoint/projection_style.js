// The look of a table of vectors in the plane.

export const LIST = 300; // CSS pixels

export const CSS = `
.projected { margin-top: 22px; display: grid; grid-template-columns: minmax(0, 1fr); gap: 10px 28px; font: 14px/1.4 var(--sans); color: var(--ink); }
.projected.beside { grid-template-columns: minmax(0, 1fr) ${LIST}px; }
.projected-head { grid-column: 1 / -1; display: flex; flex-wrap: wrap; align-items: center; gap: 6px 20px; min-height: 28px; }
.projected h3 { font-size: 16px; font-weight: 600; margin: 0; line-height: 24px; }
.projected h3 .note { font-weight: 400; color: var(--soft); font-size: 13px; }
.projected button { font: inherit; color: inherit; margin: 0; cursor: pointer; }
.projected :focus-visible { outline: 2px solid var(--attention); outline-offset: 1px; }
.chips-of { display: flex; flex-wrap: wrap; gap: 4px; align-items: center; }
.gap-of { width: 8px; }
.chip-of { height: 26px; padding: 0 9px; border: 1px solid var(--hairline); border-radius: 5px; background: var(--ground); font-size: 13px !important; }
.chip-of:hover { border-color: var(--soft); }
.chip-of[aria-pressed="true"] { border-color: var(--ink); font-weight: 600; background: var(--panel); }
.legend-of-points { display: flex; flex-wrap: wrap; gap: 2px 14px; margin-left: auto; }
.legend-of-points { min-height: 24px; align-items: center; color: var(--soft); }
.kind-of { color: var(--ink) !important; display: inline-flex; align-items: center; gap: 6px; padding: 2px 0; border: 0; background: none; font-size: 13px !important; }
.kind-of[aria-pressed="false"] { opacity: .4; text-decoration: line-through; }
.kind-of small { font: 12px var(--mono); color: var(--soft); }
.dot-of { width: 9px; height: 9px; background: var(--hue); border-radius: 1px; }
.frame-of { position: relative; border: 1px solid var(--hairline); border-radius: 6px; overflow: hidden; align-self: start; }
.frame-of canvas { display: block; touch-action: pan-y; cursor: grab; outline-offset: -2px !important; }
.frame-of.waiting canvas { opacity: .5; }
.axes-of { position: absolute; right: 10px; bottom: 6px; margin: 0; padding: 1px 6px; font-size: 12.5px; color: var(--soft); background: color-mix(in srgb, var(--ground) 80%, transparent); border-radius: 4px; }
.tip-of { position: absolute; pointer-events: none; padding: 2px 8px; border-radius: 5px; background: var(--ink); color: var(--ground); white-space: pre; font-size: 14px; }
.tip-of.leftward { transform: translateX(-100%); }
.tip-of small { opacity: .75; font: 12px var(--mono); }
.tip-of:empty { display: none; }
.list-of { min-width: 0; min-height: 400px; }
.search-of { width: 100%; box-sizing: border-box; height: 34px; padding: 0 10px; font: inherit; color: var(--ink); background: var(--panel); border: 1px solid var(--hairline); border-radius: 6px; }
.found-of { position: relative; }
.found-row { display: flex; justify-content: space-between; width: 100%; padding: 4px 10px; border: 0; border-bottom: 1px solid var(--hairline); background: var(--ground); }
.found-row:hover { background: var(--panel); }
.found-row small, .chosen-of small { font: 12px var(--mono); color: var(--soft); }
.none-of { margin: 4px 10px; color: var(--soft); font-size: 13px; }
.chosen-of { display: flex; align-items: baseline; justify-content: space-between; gap: 10px; margin: 16px 0 2px; font-size: 20px; font-weight: 600; white-space: pre; overflow: hidden; }
.what-of { margin: 0 0 4px; color: var(--soft); font-size: 13px; }
.near-row { display: grid; grid-template-columns: minmax(0, 1fr) 90px 52px; gap: 10px; align-items: center; width: 100%; height: 28px; padding: 0; border: 0; border-top: 1px solid var(--hairline); background: none; text-align: left; }
.near-row:hover { background: var(--panel); }
.near-row bdi { white-space: pre; overflow: hidden; text-overflow: ellipsis; }
.track-of { height: 10px; }
.track-of span { display: block; height: 100%; background: var(--residual); border-radius: 2px; }
.cosine { font: 13px var(--mono); text-align: right; }
`;

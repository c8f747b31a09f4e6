// The look of the matrices of a checkpoint.

export const LEAST = { map: 330, chart: 340 }; // CSS pixels
export const GAP = 32;

export const CSS = `
.weights { margin-top: 22px; display: grid; grid-template-columns: minmax(0, 1fr); gap: 24px ${GAP}px; font: 14px/1.4 var(--sans); color: var(--ink); }
.weights.beside { grid-template-columns: minmax(${LEAST.map}px, 400px) minmax(0, 1fr); }
.weights section { min-width: 0; }
.weights button { font: inherit; color: inherit; margin: 0; cursor: pointer; }
.weights :focus-visible { outline: 2px solid var(--ink); outline-offset: 1px; }
.weights h3 { font-size: 16px; font-weight: 600; margin: 0 0 10px; line-height: 24px; }
.weights h3 .note { font-weight: 400; color: var(--soft); font-size: 13px; }
.weights h4 { font-size: 13px; font-weight: 600; margin: 0; color: var(--soft); }
.singles { margin-bottom: 10px; }
.single { display: grid; grid-template-columns: 128px minmax(0, 1fr); gap: 10px; align-items: center; height: 26px; }
.single .cell { order: 2; width: 58px; max-width: 100%; height: 20px; }
.grid-of .family { display: grid; grid-template-columns: 128px minmax(0, 1fr); gap: 10px; align-items: center; height: 26px; }
.weights .named { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; font-size: 13px; }
.cells-of { display: grid; grid-template-columns: repeat(var(--layers), minmax(0, 58px)); gap: 2px; }
.weights .cell { height: 20px; padding: 0; border: 0; border-radius: 2px; background: var(--panel); min-width: 0; }
.weights .cell.chosen { box-shadow: 0 0 0 2px var(--ground), 0 0 0 4px var(--ink); position: relative; z-index: 1; }
.foot-of { color: var(--soft); font-size: 12px; }
.foot-of .cells-of { text-align: center; font: 11px var(--mono); }
.legend-of { display: flex; align-items: center; gap: 8px; margin: 10px 0 0; font: 12px var(--mono); color: var(--soft); }
.legend-of .bar-of { width: 110px; height: 6px; border-radius: 3px; }
.map .told { margin: 6px 0 0; font: 12px/17px var(--mono); color: var(--soft); min-height: 34px; overflow-wrap: anywhere; }
.shown { min-height: 420px; }
.chips { display: flex; flex-wrap: wrap; gap: 4px; min-height: 28px; margin: 0 0 8px; }
.weights .chip { position: relative; overflow: hidden; min-width: 28px; height: 26px; padding: 0 8px; border: 1px solid var(--hairline); border-radius: 5px; background: var(--ground); font-size: 13px; }
.weights .chip:hover { border-color: var(--soft); }
.weights .chip[aria-pressed="true"] { border-color: var(--ink); font-weight: 600; background: var(--panel); }
.weights .chip.circuit { margin-left: 8px; }
.chip-bar { position: absolute; left: 0; bottom: 0; height: 3px; background: var(--hue); }
.charts { display: flex; flex-wrap: wrap; gap: 18px ${GAP}px; }
.panel-of { flex: 1 1 ${LEAST.chart}px; min-width: 0; }
.chart-head { display: flex; align-items: center; justify-content: space-between; height: 28px; }
.chart .area { fill: color-mix(in srgb, var(--hue) 45%, var(--ground)); stroke: var(--hue); stroke-width: 1; }
.chart .normal { fill: none; stroke: var(--ink); stroke-width: 1.3; stroke-dasharray: 5 4; opacity: .7; }
.chart .line { fill: none; stroke: var(--hue); stroke-width: 2.2; stroke-linejoin: round; }
.chart .marked { stroke: var(--soft); stroke-dasharray: 3 4; }
.figures-of { display: grid; grid-template-columns: repeat(auto-fill, minmax(108px, auto)); gap: 6px 14px; margin: 8px 0 0; padding-left: 52px; }
.figures-of dt { font-size: 12px; color: var(--soft); }
.figures-of dd { margin: 0; font: 14px var(--mono); }
.refused { padding: 7px 12px; border-left: 3px solid var(--edited); background: var(--panel); margin: 0; }
`;

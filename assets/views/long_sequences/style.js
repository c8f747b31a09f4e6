// The look of the page about long sequences: charts beside each other, patterns in a row, one table.
export const CSS = `
.lengths { font: 14px/1.4 var(--sans); color: var(--ink); display: grid; gap: 26px; grid-template-columns: minmax(0, 1fr); }
.lengths section { min-width: 0; }
.lengths h3 { font-size: 16px; font-weight: 600; margin: 0 0 8px; line-height: 24px; }
.lengths button, .lengths select { font: inherit; color: inherit; margin: 0; cursor: pointer; }
.lengths :focus-visible { outline: 2px solid var(--attention); outline-offset: 1px; }
.lengths .note-of { margin: 8px 0 0; color: var(--soft); font-size: 13px; max-width: 96ch; }
.lengths .refused { padding: 7px 12px; border-left: 3px solid var(--edited); background: var(--panel); margin: 0; }
.costs .two { display: flex; flex-wrap: wrap; gap: 20px 28px; }
.costs .formula-line, .costs .measured { stroke: var(--hue); }
.costs .formula-line { fill: none; stroke-width: 1.6; stroke-dasharray: 4 3; opacity: .75; }
.costs .measured { fill: var(--hue); stroke-width: 1; }
.costs .ring { fill: none; stroke: var(--ink); stroke-width: 2; }
.lengths .chart .told { white-space: normal; min-height: 36px; padding-left: 0; }
.lengths .chart .told:empty::before { content: "Point at a measurement to read it."; }
.kinds { display: flex; flex-wrap: wrap; gap: 2px 18px; margin-top: 4px; }
.kinds .kind { display: inline-flex; align-items: center; gap: 7px; padding: 3px 0; border: 0; background: none; font-size: 13.5px; }
.kinds .kind[aria-pressed="false"] { opacity: .42; text-decoration: line-through; }
.kinds .glyph { display: block; overflow: visible; }
.kept-head { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 16px; margin-bottom: 10px; }
.kept-head h3 { margin: 0; }
.kept-head .head-of { background: var(--ground); border: 1px solid var(--hairline); border-radius: 6px; padding: 3px 6px; min-height: 30px; }
.kept-head .ramp-of { display: flex; align-items: center; gap: 8px; margin: 0 0 0 auto; font: 12px var(--mono); color: var(--soft); }
.kept-head .bar-of { width: 110px; height: 6px; border-radius: 3px; }
.kept.waiting .panels { opacity: .5; }
.panels { display: flex; flex-wrap: wrap; gap: 14px 18px; }
.pattern-of { margin: 0; }
.pattern-of .first-of { display: flex; justify-content: space-between; align-items: baseline; flex-wrap: wrap; gap: 0 8px; min-height: 24px; white-space: nowrap; }
.pattern-of .weight-of { font: 13px var(--mono); }
.pattern-of figcaption { margin-top: 5px; font-size: 13px; line-height: 18px; color: var(--soft); }
.pattern-of .cells { position: relative; outline: 1px solid var(--hairline); cursor: crosshair; }
.pattern-of .cells canvas { display: block; }
.pattern-of .lit-row, .pattern-of .lit-column, .pattern-of .picked-cell { position: absolute; left: 0; top: 0; pointer-events: none; box-sizing: border-box; }
.pattern-of .lit-row { background: color-mix(in srgb, var(--query) 32%, transparent); }
.pattern-of .lit-column { background: color-mix(in srgb, var(--key) 32%, transparent); }
.pattern-of .picked-cell { border: 1.5px solid var(--ink); border-radius: 1px; }
.kept .between { margin: 10px 0 0; min-height: 20px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.kept .between bdi { white-space: pre; font-weight: 600; }
.kept .between small { font: 12px var(--mono); color: var(--soft); }
.kept .role-query { color: var(--query); } .kept .role-key { color: var(--key); }
.searches .scrolls { overflow-x: auto; }
.searches table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
.searches th, .searches td { padding: 5px 0 5px 22px; border-bottom: 1px solid var(--hairline); text-align: right; white-space: nowrap; font-weight: 400; }
.searches th:first-child { text-align: left; padding-left: 0; }
.searches thead th { color: var(--soft); font-size: 13px; }
.searches td { font-family: var(--mono); font-size: 13px; }
`;

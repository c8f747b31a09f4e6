// The look of the charts of sizes.
export const CSS = `
.sizes { display: flex; flex-wrap: wrap; gap: 24px var(--gap); font: 14px/1.4 var(--sans); color: var(--ink); }
.sizes section { min-width: 0; }
.sizes h3 { font-size: 16px; font-weight: 600; margin: 0 0 2px; line-height: 24px; }
.sizes .chart svg[tabindex] { border-radius: 4px; }
.sizes :focus-visible { outline: 2px solid var(--attention); outline-offset: 3px; }
.sizes .unit { margin: 0 0 4px; font-size: 13px; line-height: 18px; color: var(--soft); }
.sizes .chart .told { white-space: normal; min-height: 36px; padding-left: 0; color: var(--ink); }
.sizes .band { fill: var(--hue); stroke: var(--ground); stroke-width: 1; }
.sizes .band.pale { fill: color-mix(in srgb, var(--hue) 44%, var(--zero)); }
.sizes .band.faint { opacity: .45; }
.sizes .sign { fill: var(--ground); stroke: var(--ink); stroke-width: 1.2; pointer-events: none; }
.sizes .now { stroke: var(--ink); stroke-dasharray: 4 3; pointer-events: none; }
.sizes .reading { margin-top: 4px; font-size: 13.5px; }
.sizes .one-of { display: flex; align-items: center; gap: 8px; padding: 2px 4px; border-radius: 4px; line-height: 20px; }
.sizes .one-of.pointed { background: var(--panel); font-weight: 600; }
.sizes .chart .swatch { flex: none; width: 24px; height: 14px; }
.sizes .amount { margin-left: auto; font: 13px var(--mono); }
.sizes .one-of.pointed .amount { font-weight: 600; }
.steps-of .all-of { fill: transparent; }
.steps-of .pointed .all-of { fill: var(--panel); }
.steps-of .step-name, .steps-of .step-count { font-size: 14px; fill: var(--ink); }
.steps-of .step-count { font: 13px var(--mono); }
.steps-of .joint { stroke: var(--soft); stroke-dasharray: 2 2; }
.steps-of .estimate .bar-of { fill: var(--negative); } .steps-of .more .bar-of { fill: var(--attention); }
.steps-of .less .bar-of { fill: var(--key); } .steps-of .exact .bar-of { fill: var(--residual); }
`;

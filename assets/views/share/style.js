// The look of "Share & export": one quiet button under a view, and a panel of rows.
export const CSS = `
.loupe-take { font: 13.5px/1.45 var(--sans); color: var(--ink); margin-top: 14px; }
.loupe-take * { box-sizing: border-box; }
.loupe-take [hidden] { display: none !important; }
.loupe-take button, .loupe-take .width { font: inherit; color: var(--ink); background: none; border: 1px solid var(--hairline); border-radius: 6px; padding: 3px 11px; min-height: 28px; cursor: pointer; }
.loupe-take button:hover { background: var(--panel); }
.loupe-take :focus-visible { outline: 2px solid var(--attention); outline-offset: 1px; }
.loupe-take button[aria-disabled=true] { opacity: .5; cursor: progress; }
.loupe-take .open { border-color: transparent; color: var(--soft); padding-left: 0; }
.loupe-take .open:hover { background: none; color: var(--ink); }
.loupe-take .panel { border-top: 1px solid var(--hairline); padding-top: 12px; display: grid; grid-template-columns: 84px minmax(0, 1fr); gap: 10px 16px; align-items: baseline; }
.loupe-take h4 { margin: 0; font-size: 13.5px; font-weight: 600; color: var(--soft); }
.loupe-take .row { display: flex; flex-wrap: wrap; gap: 6px 8px; align-items: center; }
.loupe-take .row p { margin: 0 0 0 4px; color: var(--soft); }
.loupe-take label { display: inline-flex; gap: 5px; align-items: center; color: var(--soft); }
.loupe-take input[type=checkbox] { accent-color: var(--attention); margin: 0; }
.loupe-take .which { font: inherit; color: var(--ink); background: var(--ground); border: 1px solid var(--hairline); border-radius: 6px; padding: 3px 6px; min-height: 28px; }
.loupe-take .width { width: 58px; cursor: text; padding: 3px 6px; background: var(--ground); }
.loupe-take .class { flex-basis: 100%; display: flex; flex-wrap: wrap; gap: 4px 14px; align-items: center; padding: 4px 0; }
.loupe-take .made { flex-basis: 100%; width: 100%; font: 12.5px/1.5 var(--mono); color: var(--ink); background: var(--panel); border: 0; border-radius: 6px; padding: 8px 10px; margin: 2px 0 0; white-space: pre; overflow: auto; }
.loupe-take .said { grid-column: 1 / -1; min-height: 20px; color: var(--soft); }
.loupe-lost { font: 14px/1.45 var(--sans); color: var(--ink); background: color-mix(in srgb, var(--query) 9%, var(--ground)); border-radius: 6px; padding: 8px 12px; margin: 0 0 12px; }
@media (max-width: 600px) { .loupe-take .panel { grid-template-columns: minmax(0, 1fr); gap: 4px; } .loupe-take .row { margin-bottom: 10px; } }
`;

// The look of the table of runs.

const WIDE = "22px minmax(150px, 1fr) 136px 62px 66px 74px 88px 56px 68px 88px 248px";

const FRAME = `
.runs { font: 13px/1.4 var(--sans); color: var(--ink); position: relative; margin-top: 30px; padding-top: 18px; border-top: 1px solid var(--hairline); }
.runs *, .runs *::before, .runs *::after { box-sizing: border-box; }
.runs [hidden] { display: none !important; }
.runs button { font: inherit; color: inherit; background: none; border: 0; padding: 0; margin: 0; cursor: pointer; text-align: left; }
.runs :focus-visible { outline: 2px solid var(--attention); outline-offset: 1px; border-radius: 4px; }
.runs-top { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 20px; min-height: 32px; margin-bottom: 6px; }
.runs h3 { font-size: 16px; font-weight: 600; line-height: 24px; margin: 0; }
.runs-count { font-weight: 400; color: var(--soft); font-variant-numeric: tabular-nums; }
.runs-search { margin-left: auto; width: 240px; height: 30px; padding: 0 10px; font: inherit; color: var(--ink); background: var(--panel); border: 1px solid var(--hairline); border-radius: 6px; }
.runs-sorter { display: none; color: var(--soft); }
.runs select { font: inherit; color: var(--ink); background: var(--ground); border: 1px solid var(--hairline); border-radius: 6px; padding: 3px 6px; }
.runs-undo { display: flex; align-items: center; gap: 4px; margin: 4px 0; color: var(--soft); }
.runs-undo.now { color: var(--ink); padding: 5px 12px; border-left: 3px solid var(--edited); background: var(--panel); }
.runs .runs-back { margin-left: 10px; padding: 1px 10px; border: 1px solid var(--hairline); border-radius: 11px; background: var(--ground); color: var(--ink); }
.runs .runs-back:hover { border-color: var(--soft); }
.runs-said { display: block; min-height: 20px; line-height: 20px; color: var(--soft); overflow-wrap: anywhere; }
.runs-copied { display: block; width: 100%; margin: 4px 0; font: 12px var(--mono); color: var(--ink); background: var(--panel); border: 1px solid var(--hairline); border-radius: 6px; padding: 6px 9px; }
.runs-none { margin: 6px 0; color: var(--soft); font-size: 14px; }
.runs-only-heard { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
`;

const TABLE = `
.runs-table { overflow: auto; max-height: min(620px, 80vh); scrollbar-width: thin; border-bottom: 1px solid var(--hairline); }
.runs-row { display: grid; grid-template-columns: ${WIDE}; column-gap: 10px; align-items: center; min-width: 1150px; min-height: 50px; padding: 3px 4px; border-top: 1px solid var(--hairline); }
.runs-body .runs-row { cursor: pointer; content-visibility: auto; contain-intrinsic-size: auto 50px; }
.runs-body .runs-row:hover { background: var(--panel); }
.runs-body .runs-row.looked { background: color-mix(in srgb, var(--attention) 9%, transparent); box-shadow: inset 3px 0 0 var(--attention); }
.runs-headings { position: sticky; top: 0; z-index: 2; min-height: 30px; background: var(--ground); border-top: 0; color: var(--soft); }
.runs-headings .runs-cell { display: flex; gap: 10px; white-space: nowrap; }
.runs-headings .number { justify-content: flex-end; font-family: var(--sans); }
.runs .runs-sort:hover { color: var(--ink); }
.runs .runs-sort[data-sorted] { color: var(--ink); font-weight: 600; }
.runs-sort[data-sorted]::after { content: attr(data-sorted); content: attr(data-sorted) / ""; font-size: 9px; margin-left: 3px; }
.runs-cell { min-width: 0; }
.runs-cell.number { font: 12.5px var(--mono); text-align: right; white-space: nowrap; }
.runs-tick { display: flex; justify-content: center; }
.runs-tick input { width: 15px; height: 15px; margin: 0; cursor: pointer; }
.runs-tick input:disabled { cursor: default; }
.runs-named, .runs-going { display: grid; line-height: 18px; }
.runs .runs-name { max-width: 100%; justify-self: start; font-size: 14px; font-weight: 600; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.runs .runs-name:hover { color: var(--attention); }
.runs small { font-size: 12px; color: var(--soft); white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.runs-rename { width: 100%; font: 600 14px var(--sans); color: var(--ink); background: var(--ground); border: 1px solid var(--attention); border-radius: 4px; padding: 0 4px; margin: -1px 0 -1px -5px; }
.runs-state { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.runs-steps { font-family: var(--mono); }
.runs-done { display: block; height: 3px; margin-top: 2px; border-radius: 2px; background: linear-gradient(to right, var(--attention) calc(100% * var(--share, 0)), var(--hairline) 0); }
[data-state=running] .runs-state, [data-state=preparing] .runs-state { color: var(--attention); font-weight: 600; }
[data-state=failed] .runs-state, [data-state=killed] .runs-state, [data-state=damaged] .runs-state { color: var(--key); }
.runs-actions { display: flex; justify-content: flex-end; gap: 4px; }
.runs .runs-button { height: 26px; padding: 0 9px; border: 1px solid var(--hairline); border-radius: 13px; background: var(--ground); white-space: nowrap; line-height: 23px; }
.runs .runs-button:hover:not(:disabled) { border-color: var(--soft); }
.runs .runs-button:disabled { color: var(--soft); opacity: .6; cursor: not-allowed; }
.runs .runs-button[aria-haspopup]::after { content: " ▾"; content: " ▾" / ""; font-size: 10px; color: var(--soft); }
.runs .runs-button:last-child::after { content: none; }
.runs .runs-button[aria-expanded=true] { border-color: var(--attention); }
.runs .runs-resume { border-color: var(--attention); color: var(--attention); }
.runs-fault { grid-column: 2 / -1; margin: 0 0 4px; font-size: 12.5px; line-height: 1.45; color: var(--soft); overflow-wrap: anywhere; max-width: 120ch; cursor: text; }
.runs-fault.damaged { color: var(--key); }
`;

const MENU = `
.runs-menu { position: fixed; z-index: 30; display: grid; min-width: 176px; padding: 4px; background: var(--ground); border: 1px solid var(--soft); border-radius: 8px; font-size: 13px; }
.runs .runs-entry { display: flex; justify-content: space-between; gap: 20px; padding: 5px 9px; border-radius: 5px; color: var(--ink); text-decoration: none; white-space: nowrap; }
.runs-choices { display: grid; gap: 4px; padding: 5px 9px 7px; margin-bottom: 4px; border-bottom: 1px solid var(--hairline); color: var(--soft); }
.runs-choice { display: flex; align-items: center; justify-content: space-between; gap: 12px; white-space: nowrap; }
.runs .runs-choice select { font: inherit; color: var(--ink); background: var(--panel); border: 0; border-radius: 6px; padding: 3px 6px; max-width: 180px; }
.runs .runs-entry:hover, .runs .runs-entry:focus { background: var(--panel); }
.runs .runs-entry[aria-disabled=true] { opacity: .5; cursor: not-allowed; }
`;

const CARDS = `
.runs.narrow .runs-search { margin-left: 0; width: 100%; height: 36px; }
.runs.narrow .runs-sorter { display: block; margin-left: auto; }
.runs.narrow .runs-headings { display: none; }
.runs.narrow .runs-table { max-height: none; }
.runs.narrow .runs-row { grid-template-columns: 26px repeat(3, minmax(0, 1fr)); gap: 6px 8px; min-width: 0; padding: 12px 4px; contain-intrinsic-size: auto 190px; }
.runs.narrow .runs-tick input { width: 19px; height: 19px; }
.runs.narrow .runs-named { grid-column: 2 / 4; }
.runs.narrow .runs-going { text-align: right; }
.runs.narrow .runs-cell.number { text-align: left; font-size: 13px; overflow: hidden; text-overflow: ellipsis; }
.runs.narrow .runs-cell.number::before { content: attr(data-title); display: block; font: 11.5px/15px var(--sans); color: var(--soft); }
.runs.narrow .runs-cell.number:nth-child(3n + 1) { grid-column-start: 2; }
.runs.narrow .runs-actions { grid-column: 2 / -1; grid-row: 5; justify-content: flex-start; gap: 8px; margin-top: 4px; }
.runs.narrow .runs-fault { grid-column: 2 / -1; }
.runs.narrow .runs-button { height: 34px; padding: 0 13px; border-radius: 17px; }
`;

export const CSS = FRAME + TABLE + MENU + CARDS;

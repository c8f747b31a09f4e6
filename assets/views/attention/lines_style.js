// The look of the lines.

export const CSS = `
.attention-lines .lines-bar { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 8px; margin: 0 0 12px; min-height: 26px; }
.attention-lines .lines-head { display: inline-flex; align-items: center; border: 1px solid var(--hairline); border-radius: 13px; height: 26px; overflow: hidden; font-size: 12px; }
.attention-lines .lines-head.shown { border-color: var(--ink); font-weight: 600; }
.attention-lines .lines-head button { height: 24px; padding: 0 9px; background: none; border: 0; font: inherit; color: inherit; cursor: pointer; display: inline-flex; align-items: center; gap: 7px; }
.attention-lines .lines-head button + button { padding: 0 9px 0 4px; color: var(--soft); }
.attention-lines .lines-head button:hover { background: var(--panel); }
.attention-lines .lines-head button:focus-visible { outline-offset: -2px; border-radius: 12px; }
.attention-lines .lines-colour { width: 14px; height: 14px; border-radius: 3px; flex: none; }
.attention-lines .lines-more { height: 26px; padding: 0 10px; border: 0; border-radius: 13px; background: var(--panel); color: var(--ink); font: inherit; font-size: 12px; cursor: pointer; }
.attention-lines .lines-more:hover { background: var(--hairline); }
.attention-lines .lines-least { display: flex; align-items: center; gap: 8px; font-weight: 400; color: var(--soft); white-space: nowrap; }
.attention-lines .lines-least input { width: 130px; accent-color: var(--attention); }
.attention-lines .lines-least output { font: 12px var(--mono); color: var(--ink); width: 62px; }
.attention-lines .lines-names { display: flex; justify-content: space-between; align-items: center; font-size: 12px; font-weight: 600; margin: 0 0 6px; }
.attention-lines .lines-names.stacked { flex-wrap: wrap; }
.attention-lines .lines-names.stacked label { order: -1; flex: 1 0 100%; margin-bottom: 8px; }
.attention-lines .lines-names span:first-child { color: var(--query); margin-left: var(--aside); }
.attention-lines .lines-names span:last-child { color: var(--key); margin-right: var(--aside); }
.attention-lines .lines-scroll { overflow: auto; max-height: max(340px, calc(100vh - 400px)); position: relative; }
.attention-lines .lines-inner { display: grid; position: relative; }
.attention-lines .lines-inner > * { grid-row: 1; }
.attention-lines canvas { grid-column: 1 / -1; align-self: start; position: sticky; top: 0; pointer-events: none; }
.attention-lines .lines-column { position: relative; z-index: 1; min-width: 0; }
.attention-lines .lines-column.of-query { grid-column: 2; }
.attention-lines .lines-column.of-key { grid-column: 4; }
.attention-lines .lines-token { display: flex; align-items: center; gap: 6px; width: 100%; padding: 0 6px; border: 0; background: none; font: inherit; color: inherit; cursor: pointer; border-radius: 4px; }
.attention-lines .of-query .lines-token { justify-content: flex-end; }
.attention-lines .lines-token:focus-visible { outline: 2px solid var(--attention); outline-offset: -2px; }
.attention-lines .lines-token bdi { overflow: hidden; text-overflow: ellipsis; white-space: pre; }
.attention-lines .lines-token bdi.special { color: var(--soft); }
.attention-lines .of-query .lines-token.lit { background: color-mix(in srgb, var(--query) 13%, transparent); }
.attention-lines .of-key .lines-token.lit { background: color-mix(in srgb, var(--key) 14%, transparent); }
.attention-lines .of-query .lines-token.lit bdi { color: var(--query); font-weight: 600; }
.attention-lines .of-key .lines-token.lit bdi { color: var(--key); font-weight: 600; }
.attention-lines .lines-note { margin: 10px 0 0; font-size: 12.5px; color: var(--soft); min-height: 17px; }
.attention-lines .lines-note strong { color: var(--ink); font-weight: 600; }
`;

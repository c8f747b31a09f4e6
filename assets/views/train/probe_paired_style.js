// The look of the tab that compares two steps.

export const CSS = `
.lab .two-line { display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: center; margin-bottom: 14px; font-size: 13px; }
.lab .two-steps { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; }
.lab .two-maps { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 18px 24px; align-items: start; }
.lab .two-maps h3, .lab .two-said h3 { line-height: 22px; margin-bottom: 4px; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.lab .two-maps h3 b { color: var(--ink); }
.lab .two-said { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 18px 40px; margin-top: 22px; align-items: start; }
.lab .two-said h3 bdi { color: var(--ink); }
.lab .two-list { display: grid; font-size: 13px; }
.lab .two-row { display: grid; grid-template-columns: minmax(60px, 110px) minmax(30px, 1fr) 66px 66px 66px; gap: 8px; align-items: center; min-height: 24px; }
.lab .two-row.heading { color: var(--soft); font-size: 12px; }
.lab .two-row bdi { overflow: hidden; text-overflow: ellipsis; }
.lab .two-row .number { font: 12px var(--mono); text-align: right; white-space: nowrap; }
.lab .two-row.heading .number { font: 12px var(--sans); }
.lab .two-row .is-right, .lab .two-row.total { font-weight: 600; }
.lab .two-row.total { border-top: 1px solid var(--hairline); margin-top: 3px; padding-top: 3px; }
.lab .two-row.chosen { box-shadow: inset 2px 0 0 var(--query); padding-left: 8px; margin-left: -8px; }
.lab .two-tracks { display: grid; gap: 2px; }
.lab .two-tracks i { display: block; height: 8px; border-radius: 2px; background: var(--probability); transform-origin: left; }
.lab .two-tracks i.before { background: var(--negative); }
.lab .two-tracks i.vague { opacity: .3; }
.lab .two-losses { max-height: 420px; overflow: auto; scrollbar-width: thin; padding-left: 8px; }
.lab .two-losses button.two-row { width: 100%; }
.lab .two-losses button.two-row:hover { background: var(--panel); }
.lab.narrow .two-maps, .lab.narrow .two-said { grid-template-columns: minmax(0, 1fr); }
.lab.narrow .two-row { grid-template-columns: minmax(50px, 80px) minmax(24px, 1fr) 56px 56px 58px; gap: 6px; }
`;

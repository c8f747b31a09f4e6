// The look of the page about comparisons, on top of that of the page about attention.

export const CSS = `
.compare.attention { display: block; min-height: 600px; }
.compare .notice { margin-bottom: 8px !important; }
.compare .head-line { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 26px; margin: 2px 0 4px; }
.compare .belongs { color: var(--soft); font-size: 13px; margin: 0 0 6px; max-width: 96ch; line-height: 1.5; }
.compare .letter { display: inline-block; min-width: 20px; padding: 0 6px; border-radius: 5px; text-align: center; font-weight: 700; font-size: 13px; line-height: 19px; background: var(--panel); color: var(--ink); }
.compare .letter.second { background: var(--edited); color: var(--ground); }
.compare .tabs { margin: 0 0 14px; }
.compare .tab[aria-disabled=true] { opacity: .45; cursor: not-allowed; }
.compare .tab[aria-disabled=true]:hover { color: var(--soft); }
.beside-runs { display: grid; row-gap: 30px; align-items: start; }
.run-of { min-width: 0; }
.run-of .map-head { margin-bottom: 10px; padding-bottom: 6px; border-bottom: 1px solid var(--hairline); }
.beside-runs .one-scale { grid-column: 1 / -1; font-size: 13px; margin: -14px 0 0; }
.run-of .no-partner { font-size: 13px; margin: 0 0 10px; }
.maps { display: grid; gap: 18px 22px; align-items: start; }
.map-of { min-width: 0; }
.map-head { display: flex; align-items: center; gap: 9px; min-height: 28px; margin-bottom: 4px; font-size: 13.5px; white-space: nowrap; overflow: hidden; }
.map-head .name { font-weight: 600; overflow: hidden; text-overflow: ellipsis; }
.map-head .head-of { color: var(--soft); font-variant-numeric: tabular-nums; }
.map-head .quiet { margin-left: auto; padding: 1px 8px !important; border-radius: 10px; background: var(--panel) !important; font-size: 12px; color: var(--soft) !important; flex: none; }
.map-head .quiet:hover { color: var(--ink) !important; background: var(--hairline) !important; }
.map-head .quiet[aria-pressed=true] { background: var(--edited) !important; color: var(--ground) !important; }
.map-scroll { overflow: auto; max-width: 100%; width: max-content; max-height: 460px; position: relative; scrollbar-width: thin; outline-offset: 2px; }
.compare .cells { width: max-content; }
.map-of .legend { margin-top: 8px; white-space: normal; flex-wrap: wrap; gap: 4px 8px; }
.map-of .sentence { font-size: 13px; max-width: 44ch; padding: 10px 0; line-height: 1.5; }
.map-of .picture { margin-top: 12px; }
.pointed { display: flex; flex-wrap: wrap; gap: 4px 22px; align-items: baseline; margin: 12px 0 0; padding: 8px 12px; background: var(--panel); border-radius: 7px; font: 13px/20px var(--mono); min-height: 36px; }
.pointed .from { font-family: var(--sans); }
.pointed b { font-weight: 600; }
.pointed .more { color: var(--edited); }
.pairs { display: flex; flex-wrap: wrap; gap: 8px 14px; align-items: center; margin: 26px 0 0; padding-top: 18px; border-top: 1px solid var(--hairline); }
.pairs h2 { font-size: 17px; font-weight: 600; }
.panels { display: grid; grid-template-columns: minmax(0, 0.95fr) minmax(0, 1.05fr) minmax(0, 1.1fr); gap: 28px 34px; margin-top: 14px; align-items: start; }
.panel-of { min-width: 0; }
.panel-of > h3 { line-height: 22px; margin-bottom: 4px; overflow-wrap: anywhere; color: var(--ink); }
.panel-of > .about { font-size: 12.5px; line-height: 1.45; color: var(--soft); margin: 0 0 12px; max-width: 62ch; }
.panel-of > .about bdi { color: var(--ink); }
.panel-of.wide { grid-column: 1 / -1; padding-top: 20px; border-top: 1px solid var(--hairline); }
.said { width: 100%; font-size: 13px; display: grid; grid-template-columns: minmax(52px, max-content) minmax(30px, 1fr) 72px 72px 76px; gap: 0 8px; align-items: center; }
.said > * { min-height: 24px; line-height: 24px; }
.said bdi { overflow: hidden; text-overflow: ellipsis; max-width: 110px; }
.said .number { font: 12px/24px var(--mono); text-align: right; white-space: nowrap; }
.said .heading { color: var(--soft); font: 12px/20px var(--sans); min-height: 20px; text-align: right; }
.said .tracks { display: grid; gap: 2px; align-content: center; }
.said .tracks i { display: block; height: 8px; border-radius: 2px; min-width: 1px; background: var(--probability); }
.said .tracks i.first { background: var(--negative); }
.said .up { color: var(--edited); }
.said .down { color: var(--soft); }
.apart { display: flex; flex-wrap: wrap; gap: 2px 18px; font: 12.5px/20px var(--mono); margin: 0 0 10px; }
.similarity-of > .chips { margin-bottom: 14px; }
.alike { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 20px 44px; align-items: start; }
.alike-bar { height: 7px; width: 90px; border-radius: 2px; background: linear-gradient(to right, var(--zero), var(--attention)); display: block; }
.matches { display: grid; grid-template-columns: repeat(auto-fill, minmax(214px, 1fr)); gap: 2px 22px; font-size: 13px; max-height: 420px; overflow: auto; align-content: start; scrollbar-width: thin; }
.compare .match { display: grid; grid-template-columns: 42px 16px 42px minmax(20px, 1fr) 54px; gap: 6px; align-items: center; width: 100%; min-height: 25px; border-radius: 4px; font: 12.5px var(--mono); }
.compare .match:hover { background: var(--panel); }
.compare .match[aria-pressed=true] { background: var(--panel); box-shadow: inset 2px 0 0 var(--attention); font-weight: 600; }
.match .arrow { color: var(--soft); text-align: center; }
.match .bar { display: block; height: 8px; border-radius: 2px; background: var(--attention); min-width: 1px; }
.match .share { text-align: right; }
.compare .headgrid { max-height: 460px; }
.compare.narrow .panels, .compare.narrow .alike { grid-template-columns: minmax(0, 1fr); }
.compare.narrow .maps { grid-template-columns: minmax(0, 1fr) !important; }
`;

// The look of the walkthrough and of the parts it is made of; colours and fonts come from tokens.json as CSS variables.

import { FLOW } from "../core/layout.js";

export const CSS = `
.walkthrough { font: 13px/1.35 var(--sans); color: var(--ink); position: relative; min-height: 320px; }
.walkthrough *, .walkthrough *::before { box-sizing: border-box; }
.walkthrough h3 { font-size: 12px; font-weight: 600; margin: 0 0 10px; color: var(--soft); }
.walkthrough h3 .note { font-weight: 400; }
.walkthrough button { font: inherit; color: inherit; background: none; border: 0; padding: 0; margin: 0; cursor: pointer; text-align: left; }
.walkthrough :focus-visible { outline: 2px solid var(--attention); outline-offset: 2px; border-radius: 3px; }
.notice { margin: 0 0 10px; padding: 7px 12px; border-left: 3px solid var(--edited); background: var(--panel); }
${["query", "key", "value", "attention", "residual", "mlp", "probability", "edited"].map((role) => `.role-${role} { color: var(--${role}) !important; }`).join("\n")}

.flow { position: relative; overflow: auto; max-height: max(${FLOW.least}px, calc(100vh - ${FLOW.rest}px)); margin: 0 -8px; padding: 0 8px; }
.flow:focus-visible { outline-offset: -2px; outline: 2px solid var(--attention); }
.stages { display: flex; align-items: flex-start; position: relative; width: max-content; min-width: 100%; justify-content: space-between; }
.band { position: absolute; top: 0; left: -8px; right: -8px; height: var(--pitch); border-radius: 5px; pointer-events: none; z-index: 0; }
.band.pinned { background: color-mix(in srgb, var(--attention) 10%, transparent); }
.band.hovered { background: color-mix(in srgb, var(--soft) 12%, transparent); }
.stage { display: flex; flex: none; padding-left: 9px; position: relative; scroll-margin-left: 140px; }
.stage:has(> .joint), .stage:has(> .lines) { padding-left: 0; }
.stage-tokens { margin-left: -8px; padding-left: 8px; position: sticky; left: -8px; z-index: 6; background: var(--ground); }
.stage-tokens .as-query { background: color-mix(in srgb, var(--attention) 10%, transparent); }
.column { position: relative; flex: none; }
.column + .column { margin-left: 7px; }
.stage-head { position: sticky; top: 0; height: 66px; padding-top: 24px; background: var(--ground); z-index: 3; display: flex; flex-direction: column; white-space: nowrap; overflow: visible; }
.stage-head > button, .stage-head > .title { font-weight: 600; font-size: 12px; line-height: 17px; width: max-content; }
.stage-head > button:hover { text-decoration: underline; text-underline-offset: 3px; }
.tight .stage-head > button { font-size: 11px; letter-spacing: -.02em; }
.tight .formula { letter-spacing: -.03em; }
.formula { font-size: 10.5px; line-height: 15px; color: var(--soft); }
.body { position: relative; z-index: 1; }
.cells { position: relative; }
.cells canvas { display: block; cursor: crosshair; }
.lit-column, .picked-cell { position: absolute; top: 0; left: 0; pointer-events: none; }
.lit-column { background: color-mix(in srgb, var(--key) 16%, transparent); }
.picked-cell { border: 2px solid var(--ink); border-radius: 4px; }
.joint { width: 15px; flex: none; }
.joint .stage-head { z-index: 2; }
.joint-sign { height: var(--pitch); line-height: var(--pitch); text-align: center; color: var(--soft); }
.lines { flex: none; }
.lines canvas { display: block; }
.foot { height: 70px; position: relative; }
.legend { position: absolute; left: 0; bottom: 0; white-space: nowrap; font: 10px/12px var(--mono); color: var(--soft); display: flex; flex-direction: column; gap: 2px; }
.legend-bar { height: 5px; border-radius: 2px; display: block; }
.axis { position: absolute; top: 3px; left: 0; right: 0; height: 46px; }
.axis bdi { position: absolute; transform-origin: 0 0; transform: rotate(52deg); font-size: 11px; line-height: 12px; white-space: nowrap; max-width: 54px; overflow: hidden; text-overflow: ellipsis; color: var(--soft); margin-left: 3px; }
.axis.upright bdi { transform: translateX(-50%); margin-left: 0; max-width: none; }
.axis bdi.as-key { color: var(--key); font-weight: 600; }

.token { display: flex; align-items: center; justify-content: space-between; gap: 6px; cursor: pointer; padding: 0 4px 0 0; font-size: 14px; }
.token bdi { overflow: hidden; text-overflow: ellipsis; white-space: pre; border-radius: 3px; }
.token bdi.said { background: color-mix(in srgb, var(--probability) var(--said), transparent); }
.token .id { font: 11px var(--mono); color: var(--soft); }
.token.as-query bdi { color: var(--query); font-weight: 600; }
.token.as-key bdi { color: var(--key); font-weight: 600; }

.block { display: flex; position: relative; margin-left: 9px; padding: 0 10px 0 0; }
.block::before { content: ""; position: absolute; inset: 10px 0 0 0; border: 1px solid var(--hairline); border-radius: 9px; pointer-events: none; z-index: 4; }
.block-title { position: sticky; top: 0; z-index: 5; width: 0; height: 22px; white-space: nowrap; display: flex; gap: 5px; align-items: center; transform: translate(14px, 0); font-size: 12px; color: var(--soft); align-self: flex-start; }
.block-title span { background: var(--ground); }
.block-title > * { flex: none; }
.block-title .shared::before { content: "· "; }
.turn { width: 20px; height: 20px; line-height: 18px !important; text-align: center !important; border-radius: 5px !important; background: var(--panel) !important; color: var(--ink) !important; }
.turn:hover { background: var(--hairline) !important; }
.block > .stage:nth-child(2) { padding-left: 0; margin-left: 10px; }

.minis { display: flex; gap: 3px; margin-left: 9px; flex: none; align-items: flex-start; }
.minis[hidden] { display: none; }
.mini {  display: block; position: relative; z-index: 1; opacity: .75; }
.mini:hover { opacity: 1; }
.mini-number { display: block; height: 66px; padding-top: 42px; text-align: center; font-size: 11px; color: var(--soft); position: sticky; top: 0; background: var(--ground); }
.mini:hover .mini-number { color: var(--residual); font-weight: 600; }
.mini canvas { display: block; }
.mini-unseen { display: block; border: 1px dashed var(--hairline); border-radius: 4px; }

.stage-next { padding: 0 8px 0 14px; margin-right: -8px; background: var(--ground); z-index: 2; align-self: stretch; }
.stage-next > .column { position: sticky; top: 0; align-self: flex-start; }
.follows { margin: 10px 0 0; padding-top: 8px; border-top: 1px solid var(--hairline); font-size: 12px; }
.bars { position: relative; z-index: 1; background: var(--ground); }
.bar-row { display: flex !important; align-items: center; gap: 8px; width: 100%; height: 24px; }
.bar-row:not(.heading):hover { background: var(--panel) !important; }
.bar-row.picked .piece { text-decoration: underline; text-underline-offset: 3px; }
.bar-row .piece { flex: 0 0 58px; overflow: hidden; text-overflow: ellipsis; white-space: pre; font-size: 13px; }
.bar-row .track { flex: 1 1 30px; height: 14px; }
.bar-row .bar { display: block; height: 100%; background: var(--probability); border-radius: 2px; min-width: 1px; }
.bar-row .bar[hidden] { display: none; }
.bar-row .share { flex: 0 0 56px; font: 11px var(--mono); text-align: right; color: var(--ink); white-space: nowrap; }
.bar-row .stage { flex: 0 0 58px; padding: 0; display: block; font: 11px var(--mono); text-align: right; color: var(--soft); }
.bar-row.cut .piece, .bar-row.cut .share { color: var(--soft); text-decoration: line-through; }
.bar-row.heading { color: var(--soft); height: 22px; }
.bar-row.heading .stage, .bar-row.heading .share { font: 10.5px var(--sans); color: var(--soft); }
.bars.open .track { flex: 1 1 40px; }
.bars.open .heading .share { flex: 1 1 104px; }
.bars.open .heading .stage { white-space: nowrap; }
.list-name { display: block; margin: 0 0 2px; }
.bars + .list-name { margin-top: 8px; }
.answer { margin: 10px 0 0; padding-top: 8px; border-top: 1px solid var(--hairline); font-size: 12px; }
.answer bdi { display: block; margin-bottom: 3px; overflow-wrap: anywhere; font-size: 14px; }
.answer span { font: 11px var(--mono); color: var(--soft); }
.cuts { font-size: 11px; color: var(--soft); margin: 8px 0 6px; }
.drawn { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; padding-top: 6px; border-top: 1px solid var(--hairline); }
.drawn > span { flex: 1 0 100%; font-size: 12px; }
.token-chip { font-weight: 600; padding: 1px 5px; border-radius: 4px; background: color-mix(in srgb, var(--probability) 22%, transparent); }
.walkthrough .action { padding: 3px 8px; border-radius: 6px; background: var(--probability); color: var(--ground); font-weight: 600; font-size: 11.5px; white-space: nowrap; }
.walkthrough .action.quiet { background: var(--panel); color: var(--ink); font-weight: 400; }
.walkthrough .action:hover { filter: brightness(1.08); }
.walkthrough .action:disabled { opacity: .4; cursor: not-allowed; }

.below { display: grid; grid-template-columns: minmax(200px, max-content) minmax(360px, 1fr) minmax(200px, 270px); gap: 18px 44px; margin-top: 16px; padding-top: 18px; border-top: 1px solid var(--hairline); align-items: start; }
.below.with-picture { grid-template-columns: max-content max-content minmax(280px, 1fr) minmax(170px, 210px); column-gap: 34px; }
.picture-plain { display: flex; gap: 16px; }
.picture-plain figure { margin: 0; width: 100px; }
.picture-plain figcaption { font-size: 11px; line-height: 14px; color: var(--soft); margin-top: 4px; }
.token:has(.swatch) { justify-content: flex-start; }
.token:has(.swatch) .id { margin-left: auto; }
.folded-arrow { align-self: center; color: var(--soft); font-size: 18px; }
.choice { padding: 1px 9px !important; margin-left: 6px !important; border-radius: 9px !important; background: var(--panel) !important; font-weight: 500; }
.choice[aria-pressed=true] { background: var(--attention) !important; color: var(--ground) !important; }
.picture canvas { display: block; border-radius: 4px; cursor: crosshair; outline: 1px solid var(--hairline); }
.picture-note { margin: 8px 0 0; font-size: 11px; color: var(--soft); max-width: 216px; min-height: 30px; }
.swatch { width: 16px; height: 16px; flex: none; outline: 1px solid var(--hairline); }
.token bdi.special { color: var(--soft); }

.folded { border: 1px solid var(--hairline); border-radius: 9px; padding: 8px 12px 10px; margin: 0 0 12px; }
.flow + .folded { margin: 12px 0 0; }
.folded-title { font-size: 12px !important; color: var(--soft) !important; margin-bottom: 4px !important; }
.folded-title strong { color: var(--ink); font-weight: 600; }
.folded-title:hover strong { text-decoration: underline; text-underline-offset: 3px; }
.folded-line { display: flex; gap: 22px; align-items: flex-start; overflow: auto; max-height: 260px; }
.folded-tokens { flex: none; width: 104px; position: sticky; left: 0; background: var(--ground); z-index: 1; }
.folded-tokens .token { font-size: 13px; }
.folded-strip { flex: none; }
.folded-strip canvas { display: block; }
.folded-strip:hover .folded-name { color: var(--residual); }
.folded-name { display: block; font-size: 11px; line-height: 16px; color: var(--soft); white-space: nowrap; }
.headgrid { display: grid; gap: 5px; max-height: 420px; overflow: auto; padding: 3px; width: max-content; max-width: 100%; }
.headgrid > [role=row] { display: flex; gap: 5px; align-items: center; }
.headgrid .layer { width: 18px; font: 11px var(--mono); color: var(--soft); flex: none; }
.headgrid button { border: 1px solid var(--hairline); border-radius: 4px; padding: 1px; line-height: 0; flex: none; background: var(--ground); }
.headgrid button:hover { border-color: var(--soft); }
.headgrid button[aria-selected=true] { border-color: var(--attention); box-shadow: 0 0 0 1px var(--attention); }
.headgrid + .legend { position: static; margin: 8px 0 0 24px; }

.arithmetic h3 { unicode-bidi: plaintext; }
.strand { display: flex; align-items: center; gap: 8px; height: 30px; }
.strand span { flex: 0 0 58px; white-space: nowrap; font-size: 12px; font-weight: 600; }
.strand canvas { flex: 1; height: 27px; min-width: 0; max-width: 720px; }
.arithmetic .line { font: 12px/1.5 var(--mono); margin: 3px 0; overflow-wrap: anywhere; }
.arithmetic .sentence, .arithmetic .edited { color: var(--soft); }
.arithmetic[aria-busy=true] > * { opacity: .4; transition: opacity .1s .15s; }
.terms { border-collapse: collapse; font: 12px var(--mono); margin: 0 0 6px; width: 100%; max-width: 620px; }
.terms th, .terms td { text-align: right; font-weight: 400; padding: 2px 10px 2px 0; white-space: nowrap; }
.terms th { color: var(--soft); }
.terms tr > th:first-child { text-align: left; max-width: 130px; overflow: hidden; text-overflow: ellipsis; }
.terms .term-track { width: 40%; padding-right: 0; text-align: left; }
.term-bar { display: block; height: 10px; background: var(--attention); border-radius: 2px; min-width: 1px; }
.term-bar.below { background: var(--negative); margin: 0; padding: 0; border-top: 0; gap: 0; }
.verdict { font: 12px var(--mono); color: var(--soft); margin: 8px 0 0; }
.facts { display: grid; grid-template-columns: 1fr max-content; gap: 6px 10px; margin: 0 0 14px; font-size: 12px; }
.facts dt { color: var(--ink); } .facts dd { margin: 0; font-family: var(--mono); text-align: right; }
.hint { font-size: 12px; color: var(--soft); line-height: 1.6; margin: 0; }
kbd { font: 600 11px var(--mono); background: var(--panel); border: 1px solid var(--hairline); border-radius: 3px; padding: 0 4px; color: var(--ink); }
.tip { position: fixed; z-index: 20; pointer-events: none; background: var(--ink); color: var(--ground); padding: 3px 8px; border-radius: 5px; font: 12px var(--mono); display: flex; gap: 10px; white-space: pre; max-width: 60vw; }
.tip[hidden] { display: none; }
.tip bdi { opacity: .8; overflow: hidden; text-overflow: ellipsis; }
.live { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }

.narrow .flow { max-height: none; overflow: visible; margin: 0; padding: 0; }
.narrow .stages { display: block; width: 100%; }
.narrow .band { display: none; }
.narrow .stage, .narrow .block { display: block; padding: 0; margin: 0 0 18px; }
.narrow .block { border-left: 2px solid var(--hairline); padding-left: 8px; }
.narrow .block::before { display: none; }
.narrow .block > .stage:nth-child(2) { margin-left: 0; }
.narrow .block-title { position: sticky; top: 0; width: auto; height: 34px; transform: none; background: var(--ground); font-size: 14px; margin-bottom: 8px; }
.narrow .block-title:has(.shared) { flex-wrap: wrap; height: auto; padding-bottom: 4px; }
.narrow .block-title .shared { flex: 1 0 100%; font-size: 12px; }
.narrow .block-title .shared::before { content: none; }
.narrow .column { width: 100% !important; margin: 0 0 10px; }
.narrow .column + .column { margin-left: 0; }
.narrow .stage-head { position: static; height: auto; padding: 4px 0 6px; flex-direction: row; gap: 8px; align-items: baseline; }
.narrow .column > .body { display: flex; max-height: 420px; overflow: auto; }
.narrow .stage-tokens { position: static; margin-left: 0; padding-left: 0; }
.narrow .stage-tokens .body { display: block; columns: 2; column-gap: 24px; }
.narrow .stage-tokens .token { break-inside: avoid; }
.narrow .row-labels { width: 66px; flex: none; }
.narrow .row-labels .token { font-size: 11px; }
.narrow .foot { height: auto; min-height: 22px; padding-left: 66px; }
.narrow .foot .legend { position: static; flex-direction: row; align-items: center; gap: 6px; }
.narrow .axis { position: relative; height: 44px; }
.narrow .joint { display: none; }
.narrow .minis { margin: 0 0 14px; gap: 8px; align-items: center; }
.narrow .mini { width: 34px; height: 34px; border: 1px solid var(--hairline) !important; border-radius: 6px !important; overflow: hidden; }
.narrow .mini-number { height: auto; padding: 7px 0; font-size: 13px; }
.narrow .mini canvas, .narrow .mini-unseen { display: none; }
.narrow .below { grid-template-columns: minmax(0, 1fr); }
.narrow .stages > .all-heads { margin: 0 0 18px; }
.narrow > .panel-arithmetic { position: sticky; bottom: 0; z-index: 8; max-height: 36vh; overflow: auto; background: var(--ground); border-top: 1px solid var(--hairline); padding: 12px 0 6px; margin-top: 18px; }
.narrow .turn { width: 34px; height: 30px; }
@media (min-width: 800px) and (max-width: 1100px) { .below { grid-template-columns: max-content minmax(0, 1fr); } .below > :last-child { grid-column: 2; } }
@media (prefers-reduced-motion: no-preference) {
  .band { transition: transform .08s ease-out; }
  .column { transition: width .18s ease-out; }
}
`;

// The look of a comparison of long texts, beyond compare_style.js and attention_long_style.js.

export const CSS = `
.compare .long-line { min-height: 34px; margin: 2px 0; flex-wrap: wrap; gap: 4px 10px; max-width: none; }
.compare .long-where { font-size: 12px; line-height: 16px; flex: 1 1 130px; }
.compare .long-legend { margin: 8px 0 0; max-width: none; }
.compare .long-cells { min-height: 380px; }
.compare .long-grid { max-width: 100%; }
.compare .waiting-for { font-size: 13px; color: var(--soft); margin: 0 0 10px; }
.compare .late { opacity: .4; }
`;

// The look of the page Generate, on top of that of the page about attention.

export const CSS = `
.generate.attention { display: block; min-height: 640px; }
.generate .tabs { margin: 0 0 14px; }
.generate .tab[aria-disabled=true] { opacity: .45; cursor: not-allowed; }
.generate .notice { margin-bottom: 10px !important; }
.generate .token-chip { font-weight: 600; padding: 1px 6px; border-radius: 4px; background: color-mix(in srgb, var(--probability) 22%, transparent); }
.generate .swatch { display: inline-block; width: 14px; height: 14px; margin-right: 7px; vertical-align: -2px; outline: 1px solid var(--hairline); }
`;

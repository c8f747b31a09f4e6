// What a person sets a view with and what no picture of it shows: buttons that do something, choices that are not made, sliders,
// empty fields. What is chosen stays, as it says what is shown; so does every button that is a part of the picture, a token or a head.

const OFF = ":not([aria-pressed=true])";

/** `.control` is for whatever has no other name here. */
export const CONTROLS = [
  ".control, [role=tablist], .turn, .action, .quiet:is(button), .lines-more, .lines-head button + button, .badge .compare",
  `button.chip${OFF}:not(.other-run), .chip-of${OFF}, .choice${OFF}, .choices .option${OFF}`,
  "input:is([type=range], [type=checkbox], [type=radio]), label:has(> input[type=checkbox]:not(:checked)), :is(input, textarea):placeholder-shown, input[type=search]:not([value])",
].join(", ");

/** For a style sheet of the page while it is drawn: what is left moves together. */
export const WITHOUT = `.loupe-view :is(${CONTROLS}) { display: none !important; }`;

// How a text is read that is not predicted in one go: in windows, where it is longer than its model reads, or each token masked in turn; how far that is, and
// a button that stops it.
import { choices } from "../components/choices.js";
import { make } from "../core/dom.js";

/** How far windows are apart (views/generate_measured.py), the usual one first. */
export const STRIDES = [
  ["half", "half a window apart", "every token has at least half a window before it"],
  ["quarter", "a quarter apart", "at least three quarters of a window stand before a token: twice the work"],
  ["whole", "side by side", "no token is read twice, but the last of a window: the first ones have little before them"],
];

export function mount(tab) {
  return new Windows(tab);
}

/** How many tokens a window reads, how far apart two begin, and how many tokens at least stand before one that is predicted behind the first. */
function spread(windows) {
  const [, , most] = windows[0];
  const stride = windows[1][0];
  return { most, stride, least: most - stride };
}

class Windows {
  constructor(tab) {
    this.tab = tab;
    this.element = make("div", "s-windows");
    this.about = make("p", "s-windows-about");
    this.button = make("button", "write-button quiet");
    this.button.type = "button";
    this.button.addEventListener("click", ({ detail }) => detail < 2 && (tab.measuring ? tab.stop() : tab.goOn()));
    this.told = make("p", "s-windows-told");
    this.told.setAttribute("role", "status");
    this.which = choices("how far the windows are apart", STRIDES, (value) => tab.page.go({ surprise_stride: value === STRIDES[0][0] ? null : value }));
    const line = make("div", "s-windows-line");
    line.append(this.button, this.told);
    this.line = line;
    this.element.append(this.about, this.which.element, line);
  }

  update() {
    const { tab } = this;
    const { found, page, tokens } = tab;
    this.which.show(tab.stride);
    this.element.hidden = found ? !(tab.inPieces || tab.inWindows || found.pseudo) : !tab.isAwaited;
    if (this.element.hidden || (found && tab.shown !== tab.coming)) return;
    const about = !found ? "" : tab.inWindows ? windowed(found, tab.length) : found.pseudo ? masked(found) : "";
    if (this.about.textContent !== about) this.about.textContent = about;
    this.which.element.hidden = page.alone || (found ? !tab.inWindows : page.data.fits);
    this.line.hidden = Boolean(found?.whole);
    if (this.line.hidden) return;
    this.button.hidden = page.alone;
    this.button.textContent = tab.measuring ? "Stop" : "Go on";
    if (!found) return this.told.replaceChildren();
    const windows = tab.inWindows ? `${found.count.toLocaleString("en")} of ${found.windows.length.toLocaleString("en")} windows, ` : "";
    const done = `${windows}${tokens.length.toLocaleString("en")} of ${found.asked.toLocaleString("en")} tokens`;
    this.told.textContent = tab.measuring ? `Read so far: ${done}.` : `Stopped after ${done}; the sums are of those.`;
  }
}

function windowed({ windows }, length) {
  const { most, stride, least } = spread(windows);
  const [whole, count, reads, apart, low, high] = [length, windows.length, most, stride, least, most - 1].map((one) => one.toLocaleString("en"));
  return `The text has ${whole} tokens, and the model reads ${reads} at a time: it is read in ${count} windows, each ${apart} tokens behind the one before. Behind the first, every token is predicted from the ${low === high ? low : `${low} to ${high}`} ${high === "1" ? "token" : "tokens"} before it.`;
}

function masked({ asked }) {
  const each = asked === 1 ? "its one token is masked" : `each of its ${asked.toLocaleString("en")} tokens is masked in turn`;
  return `The model sees the text from both sides: ${each}, and predicted from all that stands before and behind it. That adds up to the pseudo-log-likelihood (Salazar et al. 2020), which compares with others of its kind and with no loss of a model that writes.`;
}

// Nothing to see: turns the page of a lesson by its keys, leads from a question to its answer, and keeps in the browser which lessons are done.
const STORED = "loupe.course";
const MISSED = "loupe.missed";
const PATIENCE = 10_000; // ms that an answer may take
/**
 * @typedef {{ done: string[], missed: Record<string, string>, previous: boolean, next: boolean }} Course the lessons that are done, the day of each that
 *   was answered wrongly, and whether there are others around this one
 * @typedef {(event: "restore", kept: { done: string[], missed: Record<string, string> }) => void} Emit
 */

const TYPING = "input, textarea, select, [role=slider], [role=grid], [role=radio], [role=tab], [contenteditable]";

/**
 * @param {HTMLElement} root
 * @param {Course} data
 * @param {Emit} emit
 */
export function mount(root, data, emit) {
  root.hidden = true;
  root.classList.add("learn-keys");
  const inside = root.getRootNode();
  const around = inside instanceof ShadowRoot && inside.host.closest('[data-testid="stElementContainer"]');
  if (around instanceof HTMLElement) around.style.display = "none"; // no gap
  const keep = new Keep(data, emit);
  addEventListener("keydown", keep.onKey);
  addEventListener("click", lead);
  return keep;
}

let restored = false; // once a visit: what is answered rightly afterwards is missed no more

class Keep {
  /**
   * @param {Course} data
   * @param {Emit} emit
   */
  constructor(data, emit) {
    this.data = data;
    /** @param {KeyboardEvent} event */
    this.onKey = (event) => this.turn(event);
    const [before, missed] = [read(), readMissed()];
    const unheard = !restored && Object.keys(missed).some((name) => !(name in data.missed));
    if (unheard || before.some((name) => !data.done.includes(name))) {
      restored = true;
      emit("restore", { done: before, missed });
    } else this.update(data);
  }

  /** @param {Course} data */
  update(data) {
    this.data = data;
    localStorage.setItem(STORED, JSON.stringify([...new Set([...read(), ...data.done])]));
    localStorage.setItem(MISSED, JSON.stringify(data.missed));
  }

  /** @param {KeyboardEvent} event */
  turn(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.defaultPrevented) return;
    const [at] = event.composedPath();
    if (at instanceof Element && at.closest(TYPING)) return;
    if (event.key === "ArrowLeft" && this.data.previous) click("lesson-previous");
    else if (event.key === "ArrowRight" && this.data.next) click("lesson-next");
    else if (event.key === "Enter" && !(at instanceof Element && at.closest("button, a, summary"))) answer();
  }

  destroy() {
    removeEventListener("keydown", this.onKey);
    removeEventListener("click", lead);
  }
}

/**
 * The button that answers is gone with the question: the answer has the focus then, and is read out.
 * @param {MouseEvent} event
 */
function lead({ target }) {
  const asked =
    target instanceof Element && target.closest(".st-key-experiment :is([class*='-check'], [class*='-show'])");
  const [, key] = (asked && /st-key-(\S+)-(?:check|show)/.exec(asked.className)) || [];
  if (!key) return;
  const end = performance.now() + PATIENCE;
  const look = () => {
    const answer = document.querySelector(`.st-key-${key}-answer [data-testid="stAlertContainer"]`);
    if (answer instanceof HTMLElement) {
      answer.tabIndex = -1;
      answer.focus({ preventScroll: true });
    } else if (performance.now() < end) requestAnimationFrame(look);
  };
  look();
}

/** @param {string} place */
function click(place) {
  const link = document.querySelector(`.st-key-${place} a`);
  if (link instanceof HTMLElement) link.click();
}

/** The question of the lesson, where an answer is chosen. */
function answer() {
  const [check] = document.querySelectorAll('.st-key-experiment [class*="-check"] button:not(:disabled)');
  if (check instanceof HTMLElement) check.click();
}

function read() {
  try {
    const found = JSON.parse(localStorage.getItem(STORED) ?? "[]");
    return Array.isArray(found) ? found.filter((name) => typeof name === "string") : [];
  } catch {
    return []; // written by something else
  }
}

/** @returns {Record<string, string>} */
function readMissed() {
  try {
    const found = JSON.parse(localStorage.getItem(MISSED) ?? "{}");
    return found && typeof found === "object" && !Array.isArray(found) ? found : {};
  } catch {
    return {}; // written by something else
  }
}

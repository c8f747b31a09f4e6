// Nothing to see: turns the page of a lesson by its keys, and keeps in the browser which lessons are done.
const STORED = "loupe.course";
const TYPING = "input, textarea, select, [role=slider], [role=grid], [role=radio], [role=tab], [contenteditable]";

export function mount(root, data, emit) {
  root.hidden = true;
  root.classList.add("learn-keys");
  root.getRootNode().host?.closest('[data-testid="stElementContainer"]')?.style.setProperty("display", "none"); // no gap
  const keep = new Keep(data, emit);
  addEventListener("keydown", keep.onKey);
  return keep;
}

class Keep {
  constructor(data, emit) {
    this.data = data;
    this.onKey = (event) => this.turn(event);
    const before = read();
    if (before.some((name) => !data.done.includes(name))) emit("restore", before);
    else this.update(data);
  }

  update(data) {
    this.data = data;
    localStorage.setItem(STORED, JSON.stringify([...new Set([...read(), ...data.done])]));
  }

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
  }
}

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

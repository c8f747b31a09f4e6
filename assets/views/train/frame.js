// What stands where on the page about training: transport, curves with the track, the probe, and below it one of four tabs.
import { bubble } from "../components/bubble.js";
import { make } from "../core/dom.js";
import * as curves from "./curves.js";
import * as probe from "./probe.js";
import { TABS } from "./state.js";
import * as transport from "./transport.js";
import * as two from "./two.js";
import * as watch from "./watch.js";
import { byArrows } from "../components/tablist.js";

const TITLES = { two: "Two steps", gradients: "Gradients", weights: "Weights", activations: "Activations" };

const LATER = 120; // ms

/** Builds the frame in `lab.element`: {live, tip, say(sentence), play(), update(), mark(), destroy()}. */
export function frame(lab) {
  const notice = make("p", "notice");
  notice.setAttribute("role", "status");
  notice.hidden = true;
  const places = Object.fromEntries(["transport", "curves", "probe", "answer"].map((name) => [name, make("div", `lab-${name}`)]));
  const body = make("div", "lab-body");
  body.append(places.curves, places.probe, places.answer);
  const below = make("div", "lab-below");
  const tip = bubble(lab.element);
  const live = make("output", "live");
  lab.element.replaceChildren(places.transport, notice, body, below, tip.element, live);
  lab.style.textContent += (probe.CSS ?? "") + (two.CSS ?? "") + (watch.CSS ?? "");
  const say = (sentence) => {
    notice.textContent = sentence;
    notice.hidden = !sentence;
  };
  const top = transport.mount(places.transport, lab, say);
  const drawn = curves.mount(places.curves, lab);
  const parts = [top, drawn, probe.mount(places.probe, lab, places.answer), tabbed(below, lab)];
  const show = () => {
    const known = lab.status !== null;
    for (const one of [places.probe, places.answer]) one.classList.toggle("unknown", !known);
    below.hidden = !known;
  };
  return {
    live,
    curves: drawn, // for tests: where a step stands
    tip: tip.show,
    say,
    play: () => top.play(),
    update() {
      show();
      for (const part of parts) part.update();
    },
    mark: () => parts.forEach((part) => part.mark?.()),
    destroy: () => parts.forEach((part) => part.destroy?.()),
  };
}

/** The line of tabs, and the part that the state names. */
function tabbed(root, lab) {
  const line = make("div", "tabs");
  line.setAttribute("role", "tablist");
  const room = make("div", "lab-room");
  room.id = "lab-room";
  room.setAttribute("role", "tabpanel");
  const tabs = TABS.map((name) => tab(lab, name));
  line.append(...tabs);
  byArrows(line, () => tabs);
  root.append(line, room);
  let [opened, part] = [null, null];
  const open = (name) => {
    part?.destroy?.();
    const place = make("div", `lab-tab lab-tab-${name}`);
    room.replaceChildren(place);
    part = name === "two" ? two.mount(place, lab) : watch.mount(place, lab, name);
    opened = name;
  };
  const seen = whenSeen(room, () => lab.status !== null && part?.update());
  const update = () => {
    if (lab.status === null) return;
    for (const one of tabs) {
      one.setAttribute("aria-selected", String(one.dataset.tab === lab.state.tab));
      one.tabIndex = one.dataset.tab === lab.state.tab ? 0 : -1;
    }
    room.setAttribute("aria-label", TITLES[lab.state.tab]);
    const anew = opened !== lab.state.tab;
    if (anew) open(lab.state.tab);
    seen.draw(anew || Boolean(lab.held));
  };
  const destroy = () => {
    seen.close();
    part?.destroy?.();
  };
  return { update, mark: () => part?.mark?.(), destroy };
}

/** Draws what is in sight at once, and what is not when nothing has moved for a while. */
function whenSeen(element, draw) {
  let [inSight, timer] = [true, 0];
  const now = () => {
    clearTimeout(timer);
    timer = 0;
    draw();
  };
  const sight = new IntersectionObserver(([entry]) => {
    inSight = entry.isIntersecting;
    if (inSight && timer) now();
  }, { rootMargin: "100px" });
  sight.observe(element);
  return {
    draw(atOnce) {
      if (inSight || atOnce) return now();
      clearTimeout(timer);
      timer = setTimeout(now, LATER);
    },
    close() {
      clearTimeout(timer);
      sight.disconnect();
    },
  };
}

function tab(lab, name) {
  const one = make("button", "tab", TITLES[name]);
  one.type = "button";
  one.dataset.tab = name;
  one.dataset.title = TITLES[name];
  one.setAttribute("role", "tab");
  one.setAttribute("aria-controls", "lab-room");
  one.addEventListener("click", () => lab.go({ tab: name }));
  return one;
}

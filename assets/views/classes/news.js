// Asks every little while whether something changed in a class session, and leads a learner to the step the class is at.
// Ours, because a script of Streamlit's cannot wait for another visitor, and a rerun a second for each of thirty is dear.
import * as address from "../core/address.js";
import { make } from "../core/dom.js";

const PAUSE = 400; // ms between two questions
const AGAIN = 4000; // ms after which a page that still shows what was before is drawn once more
const SOON = 80; // ms until what is looked at now is told
const WITHOUT = 2000; // ms between two reruns where the server has no such route
const WAY = ".st-key-class-way a"; // the link to the step, which the page draws unseen

/**
 * @typedef {{room: string, version: string, all: boolean, follow: string, until: number, look?: string}} Data `version` is what is
 *   drawn, with `all` the learners count too; `follow` names the step to lead to, `until` is when its time is over in
 *   seconds since 1970, 0 without one. Of a learner, `look` is what the step looks at, as behind a #.
 * @param {HTMLElement} root
 * @param {Data} data
 * @param {(event: "news", version: string) => void} emit
 */
export function mount(root, data, emit) {
  const clock = root.appendChild(make("span", "clock"));
  clock.setAttribute("role", "timer");
  let [waiting, asked, since] = [0, "", 0];
  let behind = 0; // seconds that the clock of this machine is behind the server's, by which a step ends

  let asking = false;

  const ask = async () => {
    let pause = PAUSE;
    asking = true;
    try {
      const looked = data.look === undefined ? "" : address.linked(); // told here: no rerun waits for it
      const query = new URLSearchParams({ room: data.room, all: data.all ? "1" : "", looked });
      const answer = await fetch(new URL(`class-news?${query}`, location.href), { cache: "no-store" });
      const told = answer.headers.get("content-type")?.includes("json") ? await answer.json() : null;
      if (!told) pause = WITHOUT;
      if (told?.now) behind = told.now - Date.now() / 1000;
      const unheard = told?.version !== asked || Date.now() - since > AGAIN; // a message may be lost on its way
      if (told ? told.version !== data.version && unheard : !document.hidden) {
        [asked, since] = [told?.version ?? "", Date.now()];
        emit("news", told?.version ?? String(Date.now()));
      }
    } catch {
      pause = WITHOUT; // the server is being started anew
    }
    tick();
    follow();
    asking = false;
    waiting = setTimeout(ask, pause);
  };

  const hurry = () => {
    if (asking || data.look === undefined) return;
    clearTimeout(waiting);
    waiting = setTimeout(ask, SOON);
  };
  const forget = address.observe(hurry);

  function tick() {
    const left = Math.max(0, Math.round(data.until - behind - Date.now() / 1000));
    clock.textContent = data.until ? `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}` : "";
    clock.classList.toggle("over", Boolean(data.until) && !left);
  }

  /** Again and again, as the link may be drawn after this view. */
  const follow = () => {
    const kept = `loupe class ${data.room}`;
    if (!data.follow || sessionStorage.getItem(kept) === data.follow) return;
    const way = /** @type {HTMLElement | null} */ (document.querySelector(WAY));
    if (!way) return;
    sessionStorage.setItem(kept, data.follow);
    address.lead(data.look ?? "");
    way.click();
  };

  tick();
  waiting = setTimeout(ask, PAUSE);
  return {
    /** @param {Data} next */
    update(next) {
      data = next;
      tick();
    },
    destroy() {
      clearTimeout(waiting);
      forget();
      clock.remove();
    },
  };
}

// Streamlit makes one message of what is said to it in one tick, and where a part of that concerns only a fragment of the page, it reruns only
// that: what the whole page was told is lost. So those that are rerun apart speak in ticks of their own.
// Between a click on a link to another page and the server's first word about that page, Streamlit sends everything as said by
// the page that is left: the server then runs that page in place of, or after, the new one. So nobody speaks in that time.

const APART = 20; // ms in which Streamlit sends what it was told
const LEAVING = 10000; // ms after which a page that was to be left, and is still here, speaks again

/** @type {[who: string, say: () => unknown][]} in the order in which they wanted to speak */
const waiting = [];
let [left, silent] = ["", 0]; // the path of the page that is being left, and until when nobody speaks
let [last, until, timer] = ["", 0, 0]; // who spoke last, and when that has been sent for sure

/**
 * Calls `say()`, at once or as soon as what somebody else has said is on its way. `who` names those that are rerun together.
 * @param {string} who
 * @param {() => unknown} say
 */
export function speak(who, say) {
  if (!waiting.length && may(who)) return utter(who, say);
  waiting.push([who, say]);
  later();
}

/** Milliseconds until what was said is on its way for sure. */
export function unsent() {
  return Math.max(0, until - performance.now());
}

/**
 * Says that the page at `path` is being left.
 * @param {string} path
 */
export function leave(path) {
  [left, silent] = [path, performance.now() + LEAVING];
}

/** Says that something new stands on the page, which is another one by now if the address says so. */
export function enter() {
  if (location.pathname === left || !silent) return;
  silent = 0;
  later();
}

/** @param {string} who */
function may(who) {
  const now = performance.now();
  return now >= silent && (who === last || now >= until);
}

/**
 * @param {string} who
 * @param {() => unknown} say
 */
function utter(who, say) {
  [last, until] = [who, performance.now() + APART];
  say();
}

function later() {
  clearTimeout(timer);
  if (!waiting.length) return;
  timer = setTimeout(
    () => {
      while (waiting.length && may(waiting[0][0])) utter(.../** @type {typeof waiting[0]} */ (waiting.shift()));
      later();
    },
    Math.max(0, Math.max(until, silent) - performance.now()),
  );
}

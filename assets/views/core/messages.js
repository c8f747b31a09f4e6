// Streamlit makes one message of what is said to it in one tick, and where a part of that concerns only a fragment of the page, it reruns only
// that: what the whole page was told is lost. So those that are rerun apart speak in ticks of their own.

const APART = 20; // ms in which Streamlit sends what it was told

const waiting = []; // [who, say], in the order in which they wanted to speak
let [last, until, timer] = [null, 0, 0]; // who spoke last, and when that has been sent for sure

/** Calls `say()`, at once or as soon as what somebody else has said is on its way. `who` names those that are rerun together. */
export function speak(who, say) {
  if (!waiting.length && may(who)) return utter(who, say);
  waiting.push([who, say]);
  later();
}

/** Milliseconds until what was said is on its way for sure. */
export function unsent() {
  return Math.max(0, until - performance.now());
}

function may(who) {
  return who === last || performance.now() >= until;
}

function utter(who, say) {
  [last, until] = [who, performance.now() + APART];
  say();
}

function later() {
  clearTimeout(timer);
  timer = setTimeout(
    () => {
      while (waiting.length && may(waiting[0][0])) utter(...waiting.shift());
      if (waiting.length) later();
    },
    Math.max(0, until - performance.now()),
  );
}

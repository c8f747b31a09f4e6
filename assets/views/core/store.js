// Numbers that a view wants beyond its payload. A view asks `request(query)`; the courier (courier.js) carries the
// questions of the whole page to the server and brings the answers back. One store a page: modules are singletons.
import { unpack } from "./payload.js";

export const CAPACITY = 64; // answers kept; the least recently used goes first

const answers = new Map(); // key -> Promise of the decoded payload, oldest use first
const waiting = new Map(); // key -> {id, query or make, resolve, reject}, in the order they were asked
let ring = () => {}; // tells the courier that something waits
let breakOff = () => {}; // what comes in parts
let last = 0;
const visit = Array.from(crypto.getRandomValues(new Uint32Array(2)), (part) => part.toString(36)).join(""); // of this page

/**
 * @typedef {import("questions").Queries} Queries what each question asks for
 * @typedef {import("questions").Answers} Answers what comes back
 */

/**
 * @template {keyof Queries} Name
 * @typedef {{ ask: Name, trace?: string } & Queries[Name]} Query
 */

/**
 * Asks the server for arrays: a JSON-able query -> Promise of {...header, arrays}. The same query (in any order of its
 * entries) is sent once and answered from memory afterwards. Rejects with the server's sentence when it cannot answer.
 * @template {keyof Queries} Name
 * @param {Query<Name>} query
 * @returns {Promise<Answers[Name]>}
 */
export function request(query) {
  const key = canonical(query);
  let answer = answers.get(key);
  if (!answer) {
    answer = new Promise((resolve, reject) => waiting.set(key, { id: ++last, query, resolve, reject }));
    answer.catch(() => answers.delete(key)); // a refused question may be asked again
  }
  answers.delete(key);
  answers.set(key, answer);
  for (const old of answers.keys()) {
    if (answers.size <= CAPACITY) break;
    if (!waiting.has(old)) answers.delete(old);
  }
  ring();
  return answer;
}

/**
 * Asks what has another answer each time, such as how far a training is, or what is to be done: nothing of it is
 * remembered. `once` tells a question that is carried again, since a rerun of the page swallowed it, from a new one.
 * @template {keyof Queries} Name
 * @param {Query<Name>} query
 * @returns {Promise<Answers[Name]>}
 */
export function inquire(query) {
  const id = ++last;
  return new Promise((resolve, reject) => {
    waiting.set(`once ${id}`, { id, query: { ...query, once: `${visit}-${id}` }, resolve, reject });
    ring();
  });
}

/**
 * Asks what comes in parts: `take(part)` is called with each, decoded, as soon as it is here, and the promise resolves behind the last one, or when `signal`
 * aborts. `query()` makes the query when it is sent, which is again where a rerun of the page broke it off: it says what has come by then. Each time
 * it has another id, so that parts of an earlier sending, which may still come, are nobody's.
 * @param {() => object} query
 * @param {(part: import("./payload.js").Payload) => void} take
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export function stream(query, take, signal) {
  const id = ++last;
  return new Promise((resolve, reject) => {
    const question = { id, make: query, take, resolve, reject };
    waiting.set(`parts ${id}`, question);
    signal.addEventListener("abort", () => settle(question.id));
    ring();
  });
}

/** The questions that have been answered and are remembered, the most recently used first: what is on screen is among them. */
export function asked() {
  return Array.from(answers.keys())
    .filter((key) => !waiting.has(key))
    .reverse()
    .map((key) => JSON.parse(key));
}

/** For the courier: whether a question is not answered yet. */
export const hasPending = () => waiting.size > 0;

/** For the courier, as it sends them: the questions not answered yet, oldest first. */
export function pending() {
  return Array.from(waiting.values(), (question) => {
    const { make, query } = question;
    return make ? { id: (question.id = ++last), query: make(), streamed: true } : { id: question.id, query };
  });
}

/**
 * `work` is called where a question waits behind what comes in parts; it may break that off, by a rerun of the whole page, and it is asked for anew.
 * @param {() => void} work
 */
export function onHeldUp(work) {
  breakOff = work;
}

/** For the courier: parts come, and nothing is answered before they have. Says whether that holds a question up. */
export function heldUp() {
  const waits = [...waiting.values()].some(({ make }) => !make);
  if (waits) breakOff();
  return waits;
}

/**
 * For the courier: a part of what answers question `id`.
 * @param {number} id
 * @param {Uint8Array} bytes
 */
export function hand(id, bytes) {
  for (const question of waiting.values()) if (question.id === id) question.take(unpack(bytes));
}

/**
 * For the courier: settles question `id` with the bytes of a payload, or with a sentence.
 * @param {number} id
 * @param {Uint8Array | null} [bytes]
 * @param {string} [sentence]
 */
export function settle(id, bytes, sentence) {
  for (const [key, question] of waiting) {
    if (question.id !== id) continue;
    waiting.delete(key);
    if (sentence) question.reject(new Error(sentence));
    else if (question.make) question.resolve();
    else {
      try {
        question.resolve(unpack(/** @type {Uint8Array} */ (bytes)));
      } catch (error) {
        question.reject(error);
      }
    }
    return;
  }
}

/**
 * For the courier: `bell` is called whenever a question waits; the newest courier of the page has it.
 * @param {() => void} bell
 */
export function onRequest(bell) {
  ring = bell;
  if (waiting.size) ring();
}

/**
 * A query as text, the same for the same entries in any order.
 * @param {unknown} value
 * @returns {string}
 */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical)}]`;
  if (value && typeof value === "object") {
    const entries = /** @type {Record<string, unknown>} */ (value);
    return `{${Object.keys(entries)
      .sort()
      .map((key) => `${JSON.stringify(key)}:${canonical(entries[key])}`)}}`;
  }
  return JSON.stringify(value);
}

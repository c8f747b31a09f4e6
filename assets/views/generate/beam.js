// Beam search as a tree: every hypothesis that was considered, what was pruned and why, and the path that greedy takes through it. It is ours as the tree is.
import { counted } from "../core/format.js";
import { make, pencil } from "../core/dom.js";
import { idsOf, joined, lineOf, nats, points, searchOf, TreePicture, why } from "./beam_tree.js";
import { Coming } from "./streams.js";
import { colourOf } from "./text.js";

/**
 * @typedef {import("./generate.js").Page} Page
 * @typedef {import("./beam_tree.js").Answer} Answer
 * @typedef {import("./beam_tree.js").Hypothesis} Hypothesis
 * @typedef {import("./beam_tree.js").Search} Search
 * @typedef {import("../core/payload.js").NamedArray} NamedArray
 */

const PACE = 900; // ms from step to step
const LONG = 600; // ms after which a search that was shown makes room for the one that is awaited

/**
 * @param {HTMLElement} room
 * @param {Page} page
 */
export function mount(room, page) {
  return new Beam(room, page);
}

class Beam {
  /** @type {Coming<Answer>} the search that is asked for */
  run;
  /** @type {Search | null} */
  search = null;
  /** @type {string} the search that is asked for, in words */
  asked;
  /** @type {string} what is drawn, in words */
  drawn;

  /**
   * @param {HTMLElement} room
   * @param {Page} page
   */
  constructor(room, page) {
    this.page = page;
    this.room = room;
    this.tree = new TreePicture(page, { pick: (node) => this.pick(node), hover: (node) => this.hover(node) }, (node) =>
      face(page, node),
    );
    this.said = make("p", "beam-over");
    this.legend = this.makeLegend();
    this.below = make("div", "beam-below");
    this.holder = make("div", "beam-holder");
    this.holder.append(this.transport(), this.legend, this.tree.element, this.said, this.below);
    this.sentence = make("p", "sentence");
    this.early = make("div", "beam-early");
    this.early.append(this.sentence, (this.first = this.act("is-late")));
    room.append(this.early, this.holder);
    this.clear("");
  }

  destroy() {
    this.pause();
    clearTimeout(this.long);
    this.run?.leave();
    this.room.replaceChildren();
  }

  makeLegend() {
    const legend = make("p", "beam-legend");
    /**
     * @param {string} name
     * @param {string} text
     */
    const part = (name, text) => {
      const one = make("span", "beam-key");
      one.append(make("i", `beam-sign ${name}`), text);
      legend.append(one);
    };
    part("is-kept", "kept");
    part("is-finished", "finished ■");
    part("is-pruned", "pruned");
    part("is-best", "the best");
    part("is-greedy", "greedy");
    legend.append(make("span", "beam-numbers", "log-probability so far · score"));
    return legend;
  }

  // --- asking --------------------------------------------------------------------------------------------------------------

  update() {
    const { page } = this;
    const query = { ask: "beam", wanted: page.data.beam };
    const name = JSON.stringify([page.data.trace, query]);
    if (name === this.asked) return this.show();
    if (this.asked) page.remember({ beam_step: null, beam_node: null }); // they belong to another search
    this.asked = name;
    this.pause();
    this.run?.leave();
    this.holder.classList.add("is-old");
    clearTimeout(this.long);
    this.long = setTimeout(() => this.clear("Searching …"), this.search ? LONG : 0);
    this.run = new Coming(page, query, joined, { take: (run) => this.take(run), fail: (error) => this.fail(error) });
    this.run.begin();
  }

  /**
   * What is here of the search, which may be nothing.
   * @param {Coming<Answer>} run
   */
  take(run) {
    clearTimeout(this.long);
    const { found, query } = run;
    if (!found) return this.clear("Stopped before its first step.");
    /** @type {Search["state"]} */
    const state = found.whole ? "whole" : run.isActive ? "going" : "stopped";
    if (state === "stopped" && run.parts) this.page.tell(this.stopped(found));
    if (state === "whole" && run.parts > 1) this.page.tell(found.over);
    this.search = { ...searchOf(found), penalty: wantedOf(query).penalty, query, state };
    this.sentence.textContent = "";
    this.early.hidden = true;
    this.holder.hidden = false;
    this.holder.classList.remove("is-old");
    this.show();
  }

  /**
   * Nothing is shown of a search but a sentence.
   * @param {string} sentence
   */
  clear(sentence) {
    this.search = null;
    this.holder.hidden = true;
    this.early.hidden = false;
    this.sentence.textContent = sentence;
    this.showAct(this.first);
  }

  /** @param {Error} error */
  fail(error) {
    clearTimeout(this.long);
    if (this.run.found) return this.take(this.run);
    this.clear(error.message);
    this.first.hidden = true;
  }

  /**
   * A button that stops the search, or has it go on.
   * @param {string} name
   */
  act(name) {
    const button = make("button", `beam-act ${name}`);
    button.type = "button";
    button.addEventListener(
      "click",
      (/** @type {MouseEvent} */ { detail }) => detail < 2 && (this.run.isActive ? this.run.stop() : this.goOn()),
    );
    return button;
  }

  /** @param {HTMLButtonElement} button */
  showAct(button) {
    const { run, page } = this;
    button.hidden = !run || page.alone || Boolean(run.found?.whole);
    const name = run?.isActive ? "Stop" : run?.found ? "Continue" : "Search";
    if (button.textContent !== name) button.textContent = name;
    button.title = run?.isActive ? "Escape" : "";
  }

  goOn() {
    this.run.go();
    if (this.run.found) this.take(this.run);
    else this.clear("Searching …");
  }

  /** For Escape: whether there was something to stop. */
  stop() {
    if (!this.run?.isActive || this.page.alone) return false;
    this.run.stop();
    return true;
  }

  // --- showing -------------------------------------------------------------------------------------------------------------

  /** How many steps are shown; all where the address names none that is there. */
  get at() {
    const { beam_step: step } = this.page.state;
    return Number.isInteger(step) && step >= 1 && step < this.here.columns ? step : this.here.columns;
  }

  /** The search, where one is shown. */
  get here() {
    return /** @type {Search} */ (this.search);
  }

  get picked() {
    const node = this.here.keys.get(this.page.state.beam_node);
    return node && node.step < this.at ? node : null;
  }

  show() {
    const { search, page } = this;
    if (!search) return;
    const size = JSON.stringify([this.asked, page.narrow]);
    if (size !== this.drawn) this.tree.draw(search);
    else if (this.tree.search !== search) this.tree.grow(search, this.at >= search.columns);
    this.drawn = size;
    this.tree.show(this.at);
    this.tree.pick(this.picked);
    this.showTransport();
    const last = this.at >= search.columns;
    this.said.textContent = last ? this.summary() : "";
    const focused = /** @type {ShadowRoot | Document} */ (this.room.getRootNode()).activeElement;
    const place =
      focused && this.below.contains(focused)
        ? [...this.below.querySelectorAll("button")].indexOf(/** @type {HTMLButtonElement} */ (focused))
        : -1;
    const [left, right] = [make("div", "beam-left"), make("div", "beam-right")];
    const node = this.picked ?? (last && search.state !== "going" ? (search.best[0] ?? search.leading) : null);
    if (last && search.state === "whole") left.append(comparison(page, search));
    left.append(foundList(page, search, this.at, this.picked, (one) => this.pick(one)));
    if (node) right.append(details(page, search, node, (one, on) => this.write(one, on)));
    this.below.replaceChildren(left, right);
    if (place >= 0) this.below.querySelectorAll("button")[place]?.focus({ preventScroll: true });
  }

  summary() {
    const { nodes, over, state } = this.here;
    /** @param {string} state */
    const count = (state) => nodes.filter((node) => node.state === state).length.toLocaleString("en");
    const considered = `${nodes.length.toLocaleString("en")} hypotheses were considered: ${count("kept")} kept, ${count("finished")} finished, ${count("pruned")} pruned.`;
    if (state === "stopped") return `${considered} Whether greedy missed the best is known once the search is over.`;
    return `${over} ${considered}`.trim();
  }

  /** In a few words, until all of it is here; where the search is over and the greedy text beside it is not, its steps are fewer. */
  progress() {
    const { state, steps, count, room } = this.here;
    if (state === "stopped") return this.stopped(this.here);
    if (state === "whole") return "";
    return steps < count ? "The search is over, greedy goes on …" : `Searching, at most ${counted(room, "step")} …`;
  }

  /** @param {Pick<Answer, "count" | "room"> & { found: unknown[] }} search */
  stopped({ count, room, found }) {
    const whole = found.length < count ? ` The search itself was over after ${found.length}.` : "";
    return this.run.why || `Stopped after ${count} of ${counted(room, "step")}.${whole}`;
  }

  /** @param {Hypothesis} node */
  pick(node) {
    this.page.go({ beam_node: node === this.picked ? null : node.key });
  }

  /** @param {Hypothesis | null} node */
  hover(node) {
    if (node) this.page.tip(node.text.trim(), `log p ${nats(node.log)} · score ${points(node.score)}`);
    else this.page.tip(null);
  }

  /**
   * @param {Hypothesis} node
   * @param {boolean} on
   */
  write(node, on) {
    const { data, branch } = this.page;
    branch
      .call(this.page, idsOf(node), { ...data.settings, method: "greedy" }, on)
      .catch((error) => (this.said.textContent = error.message));
  }

  // --- step by step --------------------------------------------------------------------------------------------------------

  transport() {
    const bar = make("div", "beam-bar");
    /**
     * @param {string} sign
     * @param {string} name
     * @param {(event: MouseEvent) => unknown} work
     */
    const act = (sign, name, work) => {
      const button = make("button", "turn", sign);
      button.type = "button";
      button.title = name;
      button.setAttribute("aria-label", name);
      button.addEventListener("click", work);
      return button;
    };
    this.back = act("‹", "a step back", () => this.go(this.at - 1));
    this.play = act("▶", "play the steps", () => (this.timer ? this.pause() : this.start()));
    this.next = act("›", "a step further", () => this.go(this.at + 1));
    this.slider = make("input", "beam-slider");
    Object.assign(this.slider, { type: "range", min: 1, step: 1 });
    this.slider.setAttribute("aria-label", "steps shown");
    this.slider.addEventListener("input", () => this.go(this.slider.valueAsNumber));
    this.where = make("output", "beam-where");
    this.going = this.act("");
    this.now = make("span", "beam-now");
    bar.append(this.back, this.play, this.next, this.slider, this.where, this.going, this.now);
    return bar;
  }

  showTransport() {
    const { columns } = this.here;
    this.now.textContent = this.progress();
    this.slider.max = columns;
    this.slider.value = this.at;
    this.back.disabled = this.at <= 1;
    this.next.disabled = this.at >= columns;
    this.where.textContent = `step ${this.at} of ${columns}`;
    this.play.textContent = this.timer ? "❚❚" : "▶";
    this.play.title = this.timer ? "pause" : "play the steps";
    this.play.setAttribute("aria-label", this.play.title);
    this.showAct(this.going);
  }

  /** @param {number} at */
  go(at, playing = false) {
    if (!playing) this.pause();
    const { columns } = this.here;
    const to = Math.max(1, Math.min(columns, at));
    this.page.go({ beam_step: to === columns ? null : to });
    this.tree.follow(to - 1);
  }

  start() {
    const { columns } = this.here;
    this.timer = setInterval(() => {
      if (this.at + 1 >= columns) this.pause();
      this.go(this.at + 1, true);
    }, PACE);
    this.go(this.at >= columns ? 1 : this.at, true);
  }

  pause() {
    clearInterval(this.timer);
    this.timer = 0;
    if (this.search) this.showTransport();
  }

  // --- keyboard, take away -------------------------------------------------------------------------------------------------

  /** @param {KeyboardEvent} event */
  key(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!this.search || !by) return;
    event.preventDefault();
    this.go(this.at + by);
  }

  looked() {
    const { search, page } = this;
    const query = search?.query ?? { ask: "beam", wanted: page.data.beam };
    const [best] = search?.best ?? [];
    const steps = search && search.state !== "whole" ? search.count : null;
    const greedy = search?.greedy.at(-1);
    const sentence =
      best && greedy
        ? `best: “${best.text.trim()}”, log p ${nats(best.log)}, score ${points(best.score)}; greedy: log p ${nats(greedy.log)}, score ${points(greedy.score)}`
        : "";
    const { beams, penalty } = wantedOf(query);
    const tab = { ...query, ...(steps && { steps }) };
    const where = `${counted(beams, "beam")}, length penalty ${penalty}${steps ? `, after ${steps} of at most ${counted(this.here.room, "step")}` : ""}`;
    return {
      where,
      sentence,
      asks: { tab, tables: { "Beam: hypotheses": tab, "Beam: best and greedy": { ...tab, ask: "paths" } } },
      file: "beam",
    };
  }

  /**
   * For a picture: the tree as wide as it is, and nothing that can only be clicked.
   * @param {boolean} on
   */
  unfold(on) {
    const { element } = this.page;
    const wide = this.tree.ground.offsetWidth;
    this.tree.element.classList.toggle("unfolded", on);
    element.classList.toggle("pictured", on);
    element.parentElement.style.minWidth = on ? `${wide}px` : "";
  }
}

/** @param {import("./streams.js").Asked} query */
const wantedOf = (query) => /** @type {import("./generate.js").Wanted} */ (query.wanted);

const THUMB = 64; // CSS pixels of a small picture

/**
 * What is searched for.
 * @param {Page} page
 */
function noun(page) {
  return page.data.grid ? "picture" : "text";
}

/**
 * A token, or of a picture the colour of a pixel.
 * @param {Page} page
 * @param {{ id: number, piece: string, given?: boolean }} token
 */
function face(page, { id, piece, given }) {
  const token = make("bdi", `tok${given ? " given" : ""}`);
  if (page.data.grid && id < page.data.vocab) {
    const colour = make("span", "swatch");
    colour.style.background = colourOf(page.data, id);
    token.append(colour, piece);
  } else if (piece.startsWith("·") && piece.length > 1) token.append(make("i", "", "·"), piece.slice(1));
  else token.textContent = piece;
  return token;
}

/**
 * Tokens one behind the other, each with its log-probability below; the first `shared` are those of both paths.
 * @param {Page} page
 * @param {Hypothesis[]} line
 * @param {number} shared
 * @param {Hypothesis | null} dear
 */
function chain(page, line, shared, dear) {
  const row = make("div", "beam-chain");
  line.forEach((node, i) => {
    const one = make("span", `beam-link${i < shared ? " is-shared" : ""}${node === dear ? " is-dear" : ""}`);
    if (node === dear) one.title = "the least probable token after the fork";
    one.append(face(page, node), make("span", "beam-own", nats(node.own)));
    row.append(one);
  });
  return row;
}

/**
 * What was found when `at` steps were done: the n best, or before the end what was finished so far and the most probable that goes on.
 * @param {Page} page
 * @param {Search} search
 * @param {number} at
 * @param {Hypothesis | null} picked
 * @param {(node: Hypothesis) => void} pick
 */
function foundList(page, search, at, picked, pick) {
  const last = at >= search.columns;
  const over = last && search.state === "whole";
  const list = make("section", "beam-found");
  const shown = over ? search.best : search.found[Math.min(at, search.steps) - 1];
  list.append(
    make(
      "h3",
      "",
      over
        ? shown.length === 1
          ? `The best ${noun(page)} found`
          : `The ${shown.length} best ${noun(page)}s found`
        : "Finished so far, the best first",
    ),
  );
  const head = make("div", "beam-row heading");
  head.append(
    make("span", ""),
    make("span", "", noun(page)),
    make("span", "number", "log p"),
    make("span", "number", "tokens"),
    make("span", "number", "score"),
  );
  list.append(head);
  shown.forEach((node, i) => list.append(entry(page, node, String(i + 1), node === picked, pick)));
  if (!shown.length) list.append(make("p", "sentence", `No ${noun(page)} is finished yet.`));
  if (!last) return list;
  const [going, greedy] = [over ? null : search.leading, search.greedy[search.greedy.length - 1]];
  if (going) list.append(entry(page, going, "going", going === picked, pick));
  list.append(entry(page, greedy, "greedy", greedy === picked, pick));
  return list;
}

/**
 * @param {Page} page
 * @param {Hypothesis} node
 * @param {string} name
 * @param {boolean} isPicked
 * @param {(node: Hypothesis) => void} pick
 */
function entry(page, node, name, isPicked, pick) {
  const row = make("button", `beam-row${name === "greedy" ? " of-greedy" : ""}`);
  row.type = "button";
  row.setAttribute("aria-pressed", String(isPicked));
  const words = page.data.grid ? thumb(page, idsOf(node)) : make("bdi", "beam-text", node.text.trim());
  row.append(
    make("span", "beam-name", name),
    words,
    make("span", "number", nats(node.log)),
    make("span", "number", String(node.step + 1)),
    make("span", "number", points(node.score)),
  );
  row.addEventListener("click", () => pick(node));
  return row;
}

/**
 * The picture so far: what was given, and the pixels of a hypothesis.
 * @param {Page} page
 * @param {number[]} ids
 */
function thumb(page, ids) {
  const { rows, columns } = /** @type {import("./generate.js").Pixels} */ (page.data.grid);
  const canvas = make("canvas", "beam-thumb");
  Object.assign(canvas, { width: columns, height: rows });
  Object.assign(canvas.style, { width: `${THUMB}px`, height: `${(THUMB * rows) / columns}px` });
  const context = pencil(canvas);
  const given = page.data.prompt.ids.slice(1);
  [...given, ...ids].forEach((id, i) => {
    context.fillStyle = colourOf(page.data, id);
    context.fillRect(i % columns, Math.floor(i / columns), 1, 1);
  });
  return canvas;
}

/**
 * Greedy and the best, token by token, with the sentences that compare them.
 * @param {Page} page
 * @param {Search} search
 */
function comparison(page, search) {
  const place = make("section", "beam-why");
  const [best] = search.best;
  const greedy = search.greedy;
  const line = lineOf(best);
  const fork = greedy.findIndex((node, i) => node !== line[i]);
  place.append(
    make(
      "h3",
      "",
      fork < 0
        ? "Greedy and the search agree"
        : best.score >= greedy[greedy.length - 1].score
          ? "Why greedy missed it"
          : "Here greedy is ahead",
    ),
  );
  for (const sentence of search.told) place.append(make("p", "", sentence));
  const rows = make("div", "beam-paths");
  /** @type {[name: string, path: Hypothesis[]][]} */
  const paths =
    fork < 0
      ? [["both", line]]
      : [
          ["best", line],
          ["greedy", greedy],
        ];
  for (const [name, path] of paths) {
    const dear = name !== "greedy" ? null : path.slice(fork).reduce((low, node) => (node.own < low.own ? node : low));
    const sum = make("span", "beam-sum", `log p ${nats(path[path.length - 1].log)}`);
    const row = make("div", `beam-path of-${name}`);
    row.append(make("span", "beam-name", name), chain(page, path, Math.max(0, fork), dear), sum);
    rows.append(row);
  }
  place.append(rows);
  return place;
}

/**
 * One hypothesis: `act(node, on)` puts it into the tab Write.
 * @param {Page} page
 * @param {Search} search
 * @param {Hypothesis} node
 * @param {(node: Hypothesis, on: boolean) => void} act
 */
function details(page, search, node, act) {
  const place = make("section", "beam-details");
  const title = make(
    "h3",
    "",
    node.place === 1
      ? `The best ${noun(page)}${search.state === "whole" ? "" : " so far"}`
      : `A hypothesis of ${node.step + 1} ${node.step ? "tokens" : "token"}`,
  );
  place.append(
    title,
    make("p", "beam-state", why(node, search)),
    chain(page, lineOf(node), 0, null),
    arithmetic(search, node),
  );
  const whole = node.place ? search.texts[node.place - 1] : node === search.greedy.at(-1) ? search.greedy_text : "";
  if (whole && !page.data.grid) place.append(make("p", "beam-whole", whole));
  const ended = node.stop && ["end", "context", "picture"].includes(node.stop.kind);
  const acts = make("div", "beam-acts");
  acts.append(
    button("Continue from here", "go", () => act(node, true), ended ? "nothing follows it" : ""),
    button("Show in Write", "quiet", () => act(node, false)),
  );
  place.append(acts);
  return place;
}

/**
 * @param {Search} search
 * @param {Hypothesis} node
 */
function arithmetic(search, node) {
  const list = make("dl", "beam-sums");
  const { length } = lineOf(node);
  const penalty = search.penalty;
  const power = penalty === 1 ? `${length}` : `${length}^${penalty}`.replace("-", "−");
  /**
   * @param {string} name
   * @param {string} value
   */
  const put = (name, value) => list.append(make("dt", "", name), make("dd", "", value));
  put("log-probability, the sum", `${nats(node.log)} nats`);
  put("score", `${nats(node.log)} ÷ ${power} = ${points(node.score)}`);
  if (node.rank !== null) put("rank in its step", String(node.rank));
  return list;
}

/**
 * @param {string} name
 * @param {string} kind
 * @param {() => unknown} work
 */
function button(name, kind, work, refused = "") {
  const made = make("button", `beam-button ${kind}`, name);
  made.type = "button";
  made.disabled = Boolean(refused);
  made.title = refused;
  made.addEventListener("click", work);
  return made;
}

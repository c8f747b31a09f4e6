// One step: the distribution before and after every stage, the token that was chosen, and the others to choose in its place. It is ours because a click on a
// row writes on from that token, and the pointer over the text shows each step without a message.
import { make } from "../core/dom.js";
import { number, percent } from "../core/format.js";
import { whyLink } from "../core/why.js";
import { colourOf } from "./text.js";
import { CUTS } from "./tree.js";

/**
 * @typedef {import("./generate.js").Page} Page
 * @typedef {import("./tree.js").Settings} Settings
 * @typedef {import("./tree.js").Step} Step
 * @typedef {import("./tree.js").Token} Token
 * @typedef {import("./tree.js").Row} Row
 * @typedef {{ at: number, count: number, node: Token | null, settings: Settings, step?: Step | null, sentence?: string }} Shown
 * @typedef {{ choose: (row: Row) => void, look: (at: number) => void }} On
 * @typedef {{ name: string, cell: (row: Row) => string, off?: boolean, cut?: number }} Column
 * @typedef {{ node: Token | null, columns: Column[], value: (row: Row) => number, most: number, drawn: boolean }} Table
 */

/** @type {Record<string, string>} */
const ABOUT = {
  logit: "what the model says of the token, before any stage",
  model: "softmax of the logits: the model's own probability",
  penalized: "the logit after the repetition penalty",
  "÷ T": "divided by the temperature",
  softmax: "softmax of that",
  "top-k": "whether it is among the k most probable",
  "top-p": "whether it is among the fewest that together have the share p",
  "min-p": "whether it is at least so probable as a share of the most probable",
  typical: "whether its surprise is near enough to the entropy",
  drawn: "what is left, made to sum to 1 again: the token is drawn from this",
};

const EXPLAINED = 5; // rows with a link to what wrote their logit
const SHOWN = 20; // rows; the chosen token stands behind them where it is not among them

/** `on.choose(row)`: another token is chosen there. `on.look(at)`: another step is looked at. */
export class StepView {
  /** @type {Shown} */
  shown;
  /** @type {Row[]} */
  rows;

  /**
   * @param {HTMLElement} root
   * @param {Page} page
   * @param {On} on
   */
  constructor(root, page, on) {
    this.root = root;
    this.page = page;
    this.on = on;
    this.title = make("h2", "step-title");
    this.facts = make("dl", "step-facts");
    this.table = make("div", "step-table");
    this.table.setAttribute("role", "group");
    this.table.setAttribute("aria-label", "the most probable tokens");
    this.candidates = make("div", "step-candidates");
    this.note = make("p", "sentence step-note");
    this.why = make("p", "step-why");
    root.append(this.title, this.facts, this.candidates, this.table, this.why, this.note);
    this.table.addEventListener("click", (/** @type {MouseEvent} */ event) => this.pick(event));
  }

  /**
   * What is on its way: the title changes, the table stays until its numbers are here.
   * @param {Shown} shown
   */
  wait(shown) {
    this.head(shown);
  }

  /**
   * shown = {at, count, node, settings, step, sentence}; `step` null where nothing follows.
   * @param {Shown} shown
   */
  update(shown) {
    this.shown = shown;
    this.head(shown);
    const { step, node, sentence } = shown;
    this.facts.hidden = this.table.hidden = !step;
    this.why.hidden = true;
    this.candidates.hidden = !step?.candidates.length;
    this.note.textContent = step ? this.hint(shown) : (sentence ?? "");
    if (!step) return;
    this.tellFacts(step, node);
    if (step.candidates.length) this.tellCandidates(step, node);
    this.fill(step, node, shown.settings);
  }

  /** @param {Shown} shown */
  head({ at, count, node }) {
    /**
     * @param {string} label
     * @param {string} text
     * @param {number} to
     */
    const turn = (label, text, to) => {
      const button = make("button", "turn", text);
      button.type = "button";
      button.setAttribute("aria-label", label);
      button.disabled = to < 0 || to > count;
      button.addEventListener("click", () => this.on.look(to));
      return button;
    };
    const what = make("span", "where");
    if (node) what.append(this.unit(at, count), make("bdi", "token-chip", node.piece));
    else
      what.textContent = count
        ? "what follows"
        : `what follows the ${this.page.data.grid ? "pixels" : this.page.data.source ? "source" : "prompt"}`;
    if (node?.chosen) what.append(make("span", "chosen-of", "chosen by you"));
    const focused = this.title.getRootNode().activeElement?.getAttribute?.("aria-label");
    this.title.replaceChildren(turn("the step before", "‹", at - 1), what, turn("the next step", "›", at + 1));
    for (const button of this.title.querySelectorAll(".turn"))
      if (button.getAttribute("aria-label") === focused) button.focus();
  }

  /**
   * @param {number} at
   * @param {number} count
   */
  unit(at, count) {
    return `${this.page.data.grid ? "pixel" : "token"} ${at + 1} of ${count} `;
  }

  /** @param {Shown} shown */
  hint({ node }) {
    if (this.page.alone) return "";
    const [one, whole] = this.page.data.grid ? ["colour", "picture"] : ["token", "text"];
    return node
      ? `Click another ${one}: the ${whole} branches there, and goes on from it.`
      : `Click a ${one}: the ${whole} goes on with it.`;
  }

  /**
   * Links to what wrote the logit of each of the most likely tokens, and of the chosen one; `row` predicts them in the run at `address`.
   * @param {Record<string, string>} address
   * @param {number} row
   */
  explain(address, row) {
    const { node } = this.shown;
    const first = this.rows.filter(({ id }, i) => i < EXPLAINED || id === node?.id);
    const links = first.map(({ id, piece }) => whyLink("why_token", piece, { row, candidate: id }, address));
    this.why.hidden = links.some(({ hidden }) => hidden);
    this.why.replaceChildren("Which parts of the model wrote the logit of: ", ...links);
  }

  /**
   * @param {Step} step
   * @param {Token | null} node
   */
  tellFacts(step, node) {
    /** @type {[name: string, values: string[]][]} */
    const facts = [];
    const ends = drawsFrom(this.shown.settings) ? [0, 1] : [0]; // before and after all stages
    if (node) {
      facts.push(["probability", [step.chosen.own, step.chosen.probabilities].slice(0, ends.length).map(percent)]);
      facts.push([
        "rank",
        [`${step.chosen.rank.toLocaleString("en")} of ${this.page.data.vocab.toLocaleString("en")}`],
      ]);
    }
    facts.push(["entropy", ends.map((i) => `${step.entropy[i].toFixed(2)} bits`)]);
    facts.push(["effective choices", ends.map((i) => counted(step.choices[i]))]);
    this.facts.replaceChildren(
      ...facts.map(([name, [before, after]]) => {
        const fact = make("div");
        const value = make("dd", "", before);
        if (after !== undefined && after !== before) value.append(make("span", "to", " → "), make("strong", "", after));
        fact.append(make("dt", "", name), value);
        return fact;
      }),
    );
    this.facts.title = "of the model's own distribution → of what is left after all stages";
  }

  /**
   * Contrastive search: each candidate was read, and compared with what came before.
   * @param {Step} step
   * @param {Token | null} node
   */
  tellCandidates(step, node) {
    const heading = make("div", "candidate heading");
    heading.append(
      ...["candidate", "confidence", "degeneration penalty", "score"].map((name) => make("span", "", name)),
    );
    const rows = step.candidates.map((one, i) => {
      const row = make("div", "candidate");
      row.classList.toggle("is-chosen", one.id === (node?.id ?? step.id));
      row.classList.toggle("is-best", i === 0);
      row.append(
        this.piece(one),
        ...[percent(one.confidence), number(one.penalty), number(one.score)].map((text) =>
          make("span", "number", text),
        ),
      );
      return row;
    });
    this.candidates.replaceChildren(heading, ...rows);
  }

  /**
   * The columns that this step has; `cut` is the place of a stage that leaves tokens out, `off` whether it leaves none out.
   * @param {Settings} settings
   * @returns {Column[]}
   */
  columns({ method, temperature, repetition_penalty: penalty, ...settings }) {
    /** @type {Record<string, boolean>} */
    const off = {
      "top-k": !settings.top_k,
      "top-p": settings.top_p >= 1,
      "min-p": !settings.min_p,
      typical: settings.typical_p >= 1,
    };
    const draws = drawsFrom({ method, temperature });
    /** @type {[name: string, cell: (row: Row) => string][]} */
    const found = [["logit", (row) => number(row.logits)]];
    if (draws) found.push(["model", (row) => share(row.own)]);
    if (penalty !== 1) found.push(["penalized", (row) => number(row.penalized)]);
    if (!draws) return found.map(([name, cell]) => ({ name, cell }));
    found.push(["÷ T", (row) => number(row.scaled)], ["softmax", (row) => share(row.shares)]);
    const cuts = CUTS.map(([field, name], i) => ({
      name,
      off: off[name],
      cut: i,
      /** @param {Row} row */
      cell: (row) => (i && !row[CUTS[i - 1][0]] ? "" : row[field] ? "✓" : "✕"),
    }));
    return [...found.map(([name, cell]) => ({ name, cell })), ...cuts];
  }

  /**
   * @param {Step} step
   * @param {Token | null} node
   * @param {Settings} settings
   */
  fill(step, node, settings) {
    const columns = this.columns(settings);
    const drawn = drawsFrom(settings);
    /** @param {Row} row */
    const value = (row) => (drawn ? row.probabilities : row.own);
    const tight = columns.length > 8 && !this.page.narrow;
    const wide = tight ? ["63px", "38px"] : ["70px", "44px"];
    this.table.style.setProperty("--columns", columns.map(({ cut }) => wide[cut === undefined ? 0 : 1]).join(" "));
    const heading = this.line(
      "heading",
      make("span", "", ""),
      columns.map((one) => this.heading(one, step, tight)),
      make("span", "left-of", drawn ? "final probabilities" : "the model’s own probability"),
    );
    const inside = node ? step.rows.some(({ id }) => id === node.id) : true;
    this.rows = inside ? step.rows : [...step.rows, step.chosen];
    const most = Math.max(...step.rows.map((row) => Math.max(value(row), row.own)), 1e-9);
    const rows = this.rows.map((row, i) => this.row(row, i, { node, columns, value, most, drawn }));
    const others = this.line(
      "others",
      make("span", "", "all others"),
      columns.map(({ name }) =>
        make("span", "stage", { model: percent(step.others.own), softmax: percent(step.others.shares) }[name] ?? ""),
      ),
      this.track(drawn ? step.others.probabilities : step.others.own, null, 0),
    );
    const focused = this.table.getRootNode().activeElement?.dataset?.row;
    this.table.replaceChildren(heading, ...rows, ...(this.page.data.vocab > step.rows.length ? [others] : []));
    if (focused !== undefined) this.table.querySelector(`[data-row="${focused}"]`)?.focus({ preventScroll: true });
  }

  /**
   * @param {Column} column
   * @param {Step} step
   * @param {boolean} tight
   */
  heading({ name, off, cut }, step, tight) {
    const cell = make("span", "stage", name);
    cell.title = off ? `${ABOUT[name]}: off` : ABOUT[name];
    cell.classList.toggle("off", Boolean(off));
    if (cut === undefined || off) return cell;
    const count = step.kept[cut].count.toLocaleString("en");
    cell.title += `: ${count} left`;
    cell.append(make("small", "", tight ? count : `${count} left`));
    return cell;
  }

  /**
   * @param {Row} row
   * @param {number} i
   * @param {Table} table
   */
  row(row, i, { node, columns, value, most, drawn }) {
    const line = this.line(
      i >= SHOWN ? "outside" : "",
      this.piece(row),
      columns.map(({ cell, off }) => {
        const part = make("span", "stage", cell(row));
        part.classList.toggle("off", Boolean(off));
        return part;
      }),
      this.track(value(row), drawn ? row.own : null, most),
      "button",
    );
    line.dataset.row = i;
    line.classList.toggle("is-chosen", row.id === node?.id);
    line.classList.toggle("cut", drawn && !row.in_typical);
    line.setAttribute("aria-description", row.id === node?.id ? "chosen" : "choose this");
    return line;
  }

  /**
   * @param {string} name
   * @param {Node} first
   * @param {Node[]} cells
   * @param {Node} last
   */
  line(name, first, cells, last, tag = "div") {
    const line = make(tag, `step-row ${name}`);
    if (tag === "button") line.type = "button";
    line.append(first, ...(this.page.narrow ? [last, ...cells] : [...cells, last])); // what counts most is seen without scrolling
    return line;
  }

  /** @param {{ id: number, piece: string }} token */
  piece({ id, piece }) {
    const { data } = this.page;
    const name = make("bdi", "piece", piece);
    name.title = `${piece} (id ${id})`;
    if (data.grid) {
      const swatch = make("i", "swatch");
      swatch.style.background = colourOf(data, id);
      name.prepend(swatch);
    }
    return name;
  }

  /**
   * What is left as a bar, and as an outline what it was in the model's own distribution.
   * @param {number} p
   * @param {number | null} before
   * @param {number} most
   */
  track(p, before, most) {
    const cell = make("span", "left-of");
    const track = make("span", "track");
    if (most) {
      const bar = make("i", "bar");
      bar.style.width = `${(100 * p) / most}%`;
      bar.hidden = !p;
      track.append(bar);
      if (before !== null) {
        const outline = make("i", "before");
        outline.style.width = `${(100 * before) / most}%`;
        track.append(outline);
      }
    }
    cell.append(track, make("span", "share", share(p)));
    return cell;
  }

  /** @param {Event} event */
  pick(event) {
    const row =
      this.rows[
        Number(
          /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("[data-row]"))?.dataset.row,
        )
      ];
    if (row) this.on.choose(row);
  }
}

/**
 * Whether a token was drawn from what the stages left; otherwise the best one was taken.
 * @param {Pick<Settings, "method" | "temperature">} settings
 */
function drawsFrom({ method, temperature }) {
  return method === "sample" && temperature !== 0;
}

/**
 * As a percentage, in few digits where it is nearly 1.
 * @param {number} p
 */
function share(p) {
  return p > 0.9995 && p < 1 ? "> 99.9\u00a0%" : percent(p);
}

/** @param {number} count */
function counted(count) {
  return count < 100 ? count.toFixed(2) : Math.round(count).toLocaleString("en");
}

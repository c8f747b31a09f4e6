// What A and another run say at the row under the cursor: both probabilities of the likeliest, their difference, and how far apart all are.
// Ours because it follows that cursor as the pointer moves.
import { make } from "../core/dom.js";
import { number, percent } from "../core/format.js";
import { whyLink } from "../core/why.js";

/**
 * @typedef {import("./compare.js").Shell} Shell
 * @typedef {import("./runs.js").Says} Says
 * @typedef {import("./source.js").Said} Said
 */

/**
 * @param {HTMLElement} root
 * @param {Shell} shell
 */
export function mount(root, shell) {
  const title = make("h3");
  const about = make("p", "about");
  const apart = make("div", "apart");
  const list = make("div", "said");
  root.append(title, about, apart, list);

  const view = {
    update: () => view.mark(),
    mark() {
      const { beside } = shell.state;
      const { says } = shell.data.pairs[beside];
      title.textContent =
        { next: "Next token", class: "Which class", here: "At this position" }[says.reads] ?? "What they say";
      const row = says.sentence ? null : place(shell, beside, says);
      const missing =
        says.sentence || (row === null ? "The row under the cursor has no partner in the other run." : "");
      apart.hidden = list.hidden = Boolean(missing);
      about.textContent = missing;
      if (missing) return;
      about.replaceChildren(...reader(shell, beside, says));
      const found = shell.source.said(beside, row);
      for (const part of [apart, list]) part.classList.toggle("late", !found);
      if (found) show(found, beside);
    },
    destroy: () => root.replaceChildren(),
  };
  return view;

  /**
   * @param {Said} said
   * @param {string} beside
   */
  function show({ names, ids, first, second, kl, variation }, beside) {
    const most = Math.max(...[first, second].map(({ data }) => Math.max(...data)), 1e-9);
    const rows = shell.data.pairs[beside].says.once ? [0, 0] : (shell.spoken(beside)?.rows ?? []);
    const heading = ["", "", "A", beside, `${beside} − A`].map((text) => make("span", "heading", text));
    const lines = Array.from(ids.data, (id, i) => {
      const [p, q] = [first.data[i], second.data[i]];
      const links = ["A", beside].map((letter, n) =>
        share(shell.data.addresses?.[letter], letter, [p, q][n], { row: rows[n], candidate: id }),
      );
      return candidate(names[id], p, q, links, most);
    });
    list.replaceChildren(...heading, ...lines.flat());
    apart.replaceChildren(
      item(
        `KL(A ‖ ${beside})`,
        `${number(kl.data[0])} bits`,
        "the expected surprise, in bits, of who believes the other run where A is right",
      ),
      item(
        "differs",
        percent(variation.data[0]),
        "half the sum of all |differences|: the share of the probability that is given to other candidates",
      ),
    );
  }
}

/**
 * The row of the arrays: the group of tokens that the cursor's row is in; null where the other run has none.
 * @param {Shell} shell
 * @param {string} beside
 * @param {Says} says
 */
function place(shell, beside, says) {
  if (says.once) return 0;
  const cursor = shell.spoken(beside);
  if (!cursor) return null;
  return cursor.number;
}

/**
 * @param {Shell} shell
 * @param {string} beside
 * @param {Says} says
 */
function reader(shell, beside, says) {
  if (says.once) return ["over the whole of what each reads"];
  const pieces = shell.spoken(beside)?.pieces;
  const said = [...new Set(pieces)].map((piece) => make("bdi", "", piece));
  return [
    says.reads === "next" ? "after " : "at ",
    ...said.flatMap((piece, i) => (i ? [" | ", piece] : [piece])),
    "; grey is A, gold the other",
  ];
}

/**
 * A probability, as a link to what wrote its logit where its run has an address and there are other pages.
 * @param {Record<string, string> | undefined} address
 * @param {string} letter
 * @param {number} p
 * @param {{ row: number, candidate: number }} place
 */
function share(address, letter, p, place) {
  const link = address && whyLink("why_token", percent(p), place, address);
  if (!link || link.hidden) return make("span", "number", percent(p));
  link.classList.add("number");
  link.title = `which parts of the model wrote this logit in ${letter}`;
  return link;
}

/**
 * @param {string} name
 * @param {number} p
 * @param {number} q
 * @param {HTMLElement[]} links
 * @param {number} most
 */
function candidate(name, p, q, links, most) {
  const tracks = make("span", "tracks");
  for (const [value, role] of /** @type {[value: number, role: string][]} */ ([
    [p, "first"],
    [q, "second"],
  ])) {
    const bar = make("i", role);
    bar.style.width = `${(100 * value) / most}%`;
    tracks.append(bar);
  }
  const piece = make("bdi", "", name);
  piece.title = name;
  const change = q - p;
  const sign = change > 0 ? "+" : change < 0 ? "−" : "";
  const points = make(
    "span",
    `number ${change > 0 ? "up" : "down"}`,
    `${sign}${percent(Math.abs(change)).replace("\u00a0%", "")}`,
  );
  points.title = "in points of a percentage";
  return [piece, tracks, ...links, points];
}

/**
 * @param {string} name
 * @param {string} value
 * @param {string} title
 */
function item(name, value, title) {
  const element = make("span");
  element.title = title;
  element.append(`${name} `, make("b", "", value));
  return element;
}

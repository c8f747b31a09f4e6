// A beam search as the server tells it: every hypothesis that was considered, and the text that greedy finds.

export const STATES = ["kept", "finished", "pruned"]; // as views/generate_search.py counts them

/** A part of an answer to "beam" behind what is `found` of it (null: nothing yet). */
export function joined(found, part) {
  if (!found) return part;
  const both = (name) => [...found[name], ...part[name]];
  const arrays = Object.fromEntries(Object.entries(part.arrays).map(([name, { data }]) => [name, { data: [...found.arrays[name].data, ...data] }]));
  return { ...part, arrays, said: both("said"), found: both("found"), greedy_said: both("greedy_said"), pieces: { ...found.pieces, ...part.pieces }, ended: { ...found.ended, ...part.ended } };
}

/**
 * All of an answer to "beam" -> {nodes, greedy, steps, rows, columns, found, best, ...}. A node is {key, step, rank, parent, id, piece, text, state, log, score, own,
 * margin, behind, stop, place, kids, isGreedy}: `own` is the log-probability of its token, `place` its rank among the n best (0: none of them).
 * `greedy` are the nodes of the greedy path; those that the search never considered stand nowhere else and have the rank null.
 */
export function searchOf(answer) {
  const at = (name, i) => answer.arrays[`node.${name}`].data[i];
  const nodes = Array.from(answer.arrays["node.id"].data, (id, i) => ({
    key: `${at("step", i) + 1}:${at("rank", i)}`,
    step: at("step", i),
    rank: at("rank", i),
    parent: null,
    id,
    piece: answer.pieces[id],
    text: answer.said[i],
    state: STATES[at("state", i)],
    log: at("log_probability", i),
    score: at("score", i),
    margin: at("margin", i),
    behind: at("behind", i),
    stop: answer.ended[i] ?? null,
    place: answer.best.indexOf(i) + 1,
    kids: [],
    isGreedy: false,
  }));
  nodes.forEach((node, i) => {
    const parent = at("parent", i);
    node.parent = parent < 0 ? null : nodes[parent];
    node.own = node.log - (node.parent?.log ?? 0);
    node.parent?.kids.push(node);
  });
  const greedy = greedyOf(answer, nodes);
  const steps = answer.found.length;
  const known = (list) => list.map((i) => nodes[i]);
  return {
    ...answer,
    nodes,
    greedy,
    steps,
    best: known(answer.best),
    leading: nodes.find(({ step, state }) => step === steps - 1 && state === "kept") ?? null, // the most probable that goes on
    found: answer.found.map(known),
    rows: Math.max(...nodes.map(({ rank }) => rank)),
    columns: Math.max(steps, greedy.length),
    keys: new Map([...nodes, ...greedy].map((node) => [node.key, node])),
  };
}

function greedyOf({ arrays, pieces, greedy_said: said, greedy_ended: ended }, nodes) {
  const at = (name, i) => arrays[`greedy.${name}`].data[i];
  let before = null;
  return Array.from(arrays["greedy.id"].data, (id, i) => {
    const place = at("node", i);
    const last = i === arrays["greedy.id"].data.length - 1;
    const apart = { key: `${i + 1}:greedy`, step: i, rank: null, parent: before, id, piece: pieces[id], text: said[i], state: "greedy", log: at("total", i), score: at("score", i), own: at("own", i), stop: last ? ended : null, place: 0, kids: [] };
    const node = place < 0 ? apart : nodes[place];
    node.isGreedy = true;
    return (before = node);
  });
}

/** The nodes from the first token to this one. */
export function lineOf(node) {
  const found = [];
  for (let one = node; one; one = one.parent) found.push(one);
  return found.reverse();
}

export function idsOf(node) {
  return lineOf(node).map(({ id }) => id);
}

/** Two decimals of a log-probability, three of a score; few digits where they would say nothing. */
export function nats(value) {
  return short(value, 2);
}

export function points(value) {
  return short(value, Math.abs(value) >= 10 ? 2 : 3);
}

function short(value, decimals) {
  if (value === 0) return "0";
  const text = Math.abs(value) >= 10 ** -decimals ? value.toFixed(decimals) : Math.abs(value) >= 0.001 ? value.toFixed(3) : value.toExponential(0);
  return text.replaceAll("-", "−");
}

/** Why a hypothesis stands as it does, in a sentence. */
export function why(node, search) {
  const count = search.nodes.filter(({ step }) => step === node.step).length;
  const rank = `Rank ${node.rank} of the ${count} candidates of step ${node.step + 1}`;
  if (node.state === "greedy") return `The search did not consider it: it had given up what stands before it.${node.stop ? ` ${node.stop.sentence}` : ""}`;
  if (node.state === "kept") return `${rank}: it goes on.`;
  if (node.state === "pruned") return `${rank}: pruned, ${nats(node.margin)} nats behind rank ${node.behind}, the last that was taken.`;
  return `${rank}: finished. ${node.stop.sentence}${node.place ? ` Number ${node.place} of the best.` : " It is not among the best."}`;
}

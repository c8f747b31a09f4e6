"""Why greedy decoding missed what a beam search found, or did not, in sentences; and what ended the search."""

from __future__ import annotations

import math

from engine.generation.beam import Hypothesis
from engine.generation.prompt import picture_start
from engine.plurals import count_words
from views.generate.beam_search import Search

FULL = {
    "max_tokens": "no more tokens were asked for",
    "context": "the model’s context is full",
    "picture": "the picture is complete",
}


def nats(value: float) -> str:
    """Two decimals, few digits where those would say nothing."""
    return short(value, 2)


def short(value: float, decimals: int) -> str:
    if abs(value) >= 10**-decimals or value == 0:
        return f"{value:.{decimals}f}".replace("-", "−")
    return f"{value:.1g}".replace("e-0", "e-").replace("-", "−")


def score(value: float) -> str:
    return short(value, 3)


def word(search: Search, id: int) -> str:
    """A token in quotes, without the sign for a space."""
    piece = search.writing.piece(id)
    return f"“{piece.replace('·', ' ').strip() or piece}”"


def noun(search: Search) -> str:
    return "text" if picture_start(search.writing.checkpoint.config) is None else "picture"


def over_told(search: Search) -> str:
    """Says what ended the search: nothing goes on, or what goes on cannot win any more."""
    last, beam = search.steps[-1], search.wanted.beam
    count = f"after {len(search.steps)} {'step' if len(search.steps) == 1 else 'steps'}"
    if not last.kept:
        kinds = {one.stopped.kind for one in last.candidates if one.stopped}
        why = next((why for kind, why in FULL.items() if kind in kinds), "all that it considered there had ended")
        return f"The search ended {count}: {why}."
    if beam.early_stopping is True:
        texts = f"1 {noun(search)} was" if beam.beams == 1 else f"{beam.beams} {noun(search)}s were"
        return f"The search ended {count}, as soon as {texts} finished."
    first, worst = last.kept[0], last.best[-1]
    where = "at the greatest length" if beam.early_stopping == "never" and beam.length_penalty > 0 else "at its length"
    going = f"{word(search, first.id)} with log p {nats(first.log_probability)}"
    return (
        f"The search ended {count}: the worst of the {len(last.best)} best that are finished has the score "
        f"{score(worst.score)}, and the best that would go on, {going}, would score "
        f"{score(search_bound(search))} {where}."
    )


def search_bound(search: Search) -> float:
    """Bound on the score of the best one that goes on, as `Beam.is_over` does."""
    last, beam = search.steps[-1], search.wanted.beam
    length = search.room if beam.early_stopping == "never" and beam.length_penalty > 0 else len(search.steps)
    return beam.score(last.kept[0].log_probability, length)


def greedy_told(search: Search) -> list[str]:
    """Sentences: where the two paths part, what greedy gains there and loses behind it, and when the search left it."""
    best, greedy = search.best[0], search.greedy
    if best.ids == greedy.ids:
        each = "its one token" if len(greedy.ids) == 1 else f"each of its {count_words(len(greedy.ids), 'token')}"
        return [f"Greedy finds the best {noun(search)} too: {each} is the most probable one there."]
    return [parting_sentence(search, best), outcome(search, best), greedy_sentence(search)]


def fork(search: Search, best: Hypothesis) -> int:
    """Counts the tokens that both have in common."""
    pairs = enumerate(zip(best.ids, search.greedy.ids, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(best.ids), len(search.greedy.ids)))


def parting_sentence(search: Search, best: Hypothesis) -> str:
    at, own = fork(search, best), search.greedy.own
    line = [search.own(one) for one in search.line(best)]
    gain, behind = float(own[at]) - line[at], float(own[at + 1 :].sum()) - sum(line[at + 1 :])
    change = "loses" if behind < 0 else "gains"
    its, other = (word(search, ids[at]) for ids in (search.greedy.ids, best.ids))
    return (
        f"The paths part at token {at + 1}: greedy takes {its} (log p {nats(float(own[at]))}), "
        f"the best {noun(search)} has {other} ({nats(line[at])}). Greedy gains {nats(gain)} nats there, and {change} "
        f"{nats(abs(behind))} with all that follows: {nats(float(own[at + 1 :].sum()))} against "
        f"{nats(sum(line[at + 1 :]))}."
    )


def outcome(search: Search, best: Hypothesis) -> str:
    greedy, beam = search.greedy, search.wanted.beam
    total = float(greedy.total[-1])
    own = beam.score(total, len(greedy.ids))
    sums = f"log p {nats(total)} against {nats(best.log_probability)}"
    scores = f"score {score(own)} against {score(best.score)}"
    ahead = best.log_probability - total
    if best.score < own:
        return f"Greedy’s {noun(search)} is the better one here, and the search misses it: {sums}, {scores}."
    if ahead < 0:
        return f"In sum greedy’s {noun(search)} is more probable ({sums}); the best wins by its score ({scores})."
    times = f"{math.exp(ahead):,.3g} times" if ahead < 20 else f"e^{ahead:.0f} times"
    return f"So the best {noun(search)} is {times} as probable as greedy’s: {sums}, {scores}."


def greedy_sentence(search: Search) -> str:
    """Until where the search followed the greedy path."""
    places, nodes = search.on_greedy, search.nodes
    known = [at for at in places if at >= 0]
    if not known:
        return "The search never considered the greedy path."
    last = nodes[known[-1]]
    length, state, step = len(last.ids), search.state(last), search.steps[len(last.ids) - 1]
    if state == "pruned":
        margin = f"rank {last.rank}, {nats(step.margin(last))} nats behind the last that was taken"
        return f"The search gave greedy’s path up at token {length}: {margin}."
    if state == "kept" and length < len(search.steps):
        behind = search.steps[length].kept or search.steps[length].finished
        nearest = behind[-1].log_probability - float(search.greedy.total[length])
        count = count_words(len(search.steps[length].candidates), "candidate")
        return (
            f"The search gave greedy’s path up at token {length + 1}: it is none of the {count} there, "
            f"{nats(nearest)} nats behind the last that was taken."
        )
    if state == "kept":
        return f"The search ended while it still followed greedy’s path, at token {length}."
    ranks = [one.ids for one in search.steps[-1].best]
    if last.ids in ranks:
        return f"The search finished greedy’s {noun(search)} too, as number {ranks.index(last.ids) + 1}."
    return f"The search finished greedy’s {noun(search)} at token {length}, and {search.wanted.beams} better ones."

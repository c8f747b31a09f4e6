"""How often a target never seen is written exactly, and whether a head shows what became which.

Of a translation also which English word each French word comes from, as one cross-attention head has it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from engine.checkpoints import Checkpoint
from engine.data.translation import Pair
from engine.data.translation.task import Translation
from engine.runtime.run import run
from engine.training.measures.exact import exact_match, taught
from engine.training.measures.origins import origins
from engine.training.trainer import Trainer

ALIGNED = 500
Sums = dict[tuple[int, int], Counter[str]]  # by layer and head


def measure_translation(trainer: Trainer) -> dict[str, Any]:
    return {**exact_match(trainer), **origins(trainer), **measure_alignment(trainer)}


def measure_alignment(trainer: Trainer) -> dict[str, Any]:
    """Measures the alignment of English and French, of which it is known which words translate each other."""
    task = taught(trainer).task
    if not isinstance(task, Translation):
        return {}
    pairs = list(islice(task.sentences("held_out", trainer.recipe.seed), ALIGNED))
    return {"alignment": alignment(trainer.checkpoint(), pairs)}


@dataclass(frozen=True)
class Link:
    """A French word with one English word, both counted from 0; `crossing` where adjective and noun change places."""

    english: int
    french: int
    crossing: bool


def links(pair: Pair) -> Iterator[Link]:
    sources = defaultdict(list)
    for english, french in pair.alignment:
        sources[french].append(english)
    crossed = {word for each in pair.adjective_noun for word in (each.french_adjective, each.french_noun)}
    for french, found in sorted(sources.items()):
        if len(found) == 1:
            yield Link(found[0], french, french in crossed)


def alignment(checkpoint: Checkpoint, pairs: Sequence[Pair]) -> dict[str, Any]:
    """The head that is right most often on crossing words, then on all. A head is right where, in the row that predicts
    the French word, most of its attention is on the English one (teacher forcing; Garg et al. 2019).

    Accuracies are shares of the French words that have one English word; `words` says how many those are.
    """
    right: Sums = defaultdict(Counter)
    asked: Counter[str] = Counter()
    layers = range(checkpoint.config.layers)
    names = [f"decoder.blocks.{layer}.cross_attn.pattern" for layer in layers]
    tokenizer = checkpoint.tokenizer
    if tokenizer is None:
        raise ValueError("alignment is of words, and this checkpoint has no tokenizer.")
    for pair in pairs:
        english = tokenizer.encode(pair.english)
        trace = run(checkpoint.model, english, keep=names, target=checkpoint.target(pair.french))
        strongest = [trace[name][0].argmax(-1).tolist() for name in names]  # layer head pos
        for link in links(pair):
            kinds = ["all", "crossing"] if link.crossing else ["all"]
            asked.update(kinds)
            for layer in layers:
                for head, rows in enumerate(strongest[layer]):
                    right[layer, head].update(kinds if rows[link.french] == link.english else [])
    return best(right, asked)


def best(right: Sums, asked: Counter[str]) -> dict[str, Any]:
    (layer, head), found = max(right.items(), key=lambda item: (item[1]["crossing"], item[1]["all"]))
    return {
        "layer": layer,
        "head": head,
        "accuracy": found["all"] / max(asked["all"], 1),
        "crossing_accuracy": found["crossing"] / max(asked["crossing"], 1),
        "words": asked["all"],
        "crossing_words": asked["crossing"],
    }


def measure_completion(trainer: Trainer) -> dict[str, Any]:
    return {**exact_match(trainer), **origins(trainer)}

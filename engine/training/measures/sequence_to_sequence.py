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
from engine.data.kinds.translation import Translation
from engine.data.own_tasks import OwnPairs
from engine.data.translation import Pair
from engine.data.translation.pair import WORD
from engine.runtime.run import run
from engine.tokenizers import Encoding
from engine.training.measures.exact import exact_match, taught
from engine.training.measures.origins import origins
from engine.training.trainer import Trainer

ALIGNED = 500
PUBLISHED = "corpora:eng-fra.tsv.xz"
Sums = dict[tuple[int, int], Counter[str]]  # by layer and head


def measure_translation(trainer: Trainer) -> dict[str, Any]:
    return {**exact_match(trainer), **origins(trainer), **measure_alignment(trainer)}


def measure_alignment(trainer: Trainer) -> dict[str, Any]:
    """Measures the alignment of English and French on pairs of which it is known which words translate each other. They
    are generated ones, also for a model that learned from PUBLISHED ones."""
    task, seed = taught(trainer).task, trainer.recipe.data_seed
    if isinstance(task, OwnPairs) and getattr(task.options, "path", "") == PUBLISHED:
        task = Translation(documents=1)
    if not isinstance(task, Translation):
        return {}
    pairs = list(islice(task.sentences("held_out", seed), ALIGNED))
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
    the first token of the French word, its strongest attention is on a token of the English one (teacher forcing; Garg
    et al. 2019).

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
        of_english = tokens_of_words(english)
        of_french = tokens_of_words(tokenizer.encode(pair.french, special=False))
        trace = run(checkpoint.model, english, keep=names, target=checkpoint.target(pair.french))
        strongest = [trace[name][0].argmax(-1).tolist() for name in names]  # layer head pos
        for link in links(pair):
            kinds = ["all", "crossing"] if link.crossing else ["all"]
            read, row = of_english[link.english], of_french[link.french][0]
            asked.update(kinds)
            for layer in layers:
                for head, rows in enumerate(strongest[layer]):
                    right[layer, head].update(kinds if rows[row] in read else [])
    return best(right, asked)


def tokens_of_words(encoding: Encoding) -> list[list[int]]:
    """Indexes of the tokens of each word, as the words of a generated pair are counted."""
    return [
        [token for token, span in enumerate(encoding.spans) if span and span[0] < word.end() and word.start() < span[1]]
        for word in WORD.finditer(encoding.text)
    ]


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

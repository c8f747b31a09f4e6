"""How often the whole of a target is written, greedily and from the first token on; and by how hard it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from engine.data.kinds.translation import Translation
from engine.data.own_tasks import OwnPairs
from engine.data.task import Pair
from engine.scoring.overlap import bleu, chrf
from engine.training.examples.completion import prompt
from engine.training.examples.padding import pad_rows, real
from engine.training.measures.decoding import decode_continuations, decode_translations
from engine.training.sources.completion import Completion
from engine.training.sources.pairs import Ids, TaughtPairs
from engine.training.sources.sequence_to_sequence import SequenceToSequence
from engine.training.trainer import Trainer

EXAMPLES, AT_ONCE = 2_000, 250


def exact_match(trainer: Trainer) -> dict[str, Any]:
    """`exact_match` of the first EXAMPLES that are held out, and `by_...`, the same for each group of them. Of
    sentences also `chrf` and `bleu`: what is right may be said in other words."""
    source = taught(trainer)
    asked = asked_of(source, EXAMPLES)
    written = [
        given
        for begin in range(0, len(asked), AT_ONCE)
        for given in write_targets(trainer, [ids for _, ids in asked[begin : begin + AT_ONCE]])
    ]
    right = [given == target.tolist() for given, (_, (_, target)) in zip(written, asked, strict=True)]
    found = {
        "exact_match": sum(right) / len(right),
        "examples": len(right),
        "decoding": "greedy",
        "unseen": "no source is among those trained on",
    }
    if isinstance(source.task, OwnPairs | Translation):
        found |= overlaps(source, [pair for pair, _ in asked], written)
    grouped = by_group([source.task.group(pair) for pair, _ in asked], right) if source.task.grouped else {}
    return found | ({f"by_{source.task.grouped}": grouped} if grouped else {})


def overlaps(source: TaughtPairs, pairs: Sequence[Pair], written: Sequence[Sequence[int]]) -> dict[str, float]:
    """Scores each source once, against all targets that are known of it."""
    known: dict[str, list[str]] = {}
    for pair in pairs:
        known.setdefault(pair.source, []).append(pair.target)
    decode = source.corpus.tokenizer.decode
    texts = {pair.source: decode(ids, special=False) for pair, ids in zip(pairs, written, strict=True)}
    given = list(texts.values())
    references = [known[text] for text in texts]
    return {"chrf": chrf(given, references), "bleu": bleu(given, references)}


def asked_of(source: TaughtPairs, count: int) -> list[tuple[Pair, Ids]]:
    """The first `count` held-out pairs that the model can read, as texts and as ids."""
    fit: list[int] = source.shelves["held_out"].fit[:count].tolist()
    return list(zip(source.held_out_rows(count), source.ids("held_out", fit), strict=True))


def by_group(groups: Sequence[int | str], right: Sequence[bool]) -> dict[str, float]:
    """The share that is right in each group."""
    count = Counter(groups)
    found = Counter(group for group, one in zip(groups, right, strict=True) if one)
    ordered = sorted(count, key=lambda group: (len(str(group)), str(group)))
    return {str(group): found[group] / count[group] for group in ordered}


def write_targets(trainer: Trainer, pairs: Sequence[Ids]) -> list[list[int]]:
    """Ids that the model writes for each source, as far as the longest target goes and the end."""
    source, longest = taught(trainer), max(len(target) for _, target in pairs)
    sources = [ids for ids, _ in pairs]
    if isinstance(source, SequenceToSequence):
        where = trainer.full_model.device
        ids, padding = pad_rows(sources, source.marks.pad).to(where), real(sources).to(where)
        return decode_translations(trainer.result, ids, padding, source.marks.end, longest + 1)
    if isinstance(source, Completion):
        prompts = [prompt(ids, source.marks).to(trainer.full_model.device) for ids in sources]
        return decode_continuations(trainer.result, prompts, source.marks.end, longest + int(source.marks.asked))
    raise ValueError(f"targets are written by two stacks or by one decoder, and {type(source).__name__} asks neither.")


def sample_target(trainer: Trainer) -> str:
    """A held-out source, and what the model makes of it."""
    source = taught(trainer)
    (pair, ids), *_ = asked_of(source, 1)
    return f"{pair.source}\n{source.corpus.tokenizer.decode(write_targets(trainer, [ids])[0])}"


def taught(trainer: Trainer) -> TaughtPairs:
    assert isinstance(trainer.source, TaughtPairs)
    return trainer.source

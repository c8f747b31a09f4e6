"""How often each token of a gap is right with the right ones before it, how often all of what is written is, and what
the words of a gap cost beside what they cost a model that reads only what stands before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from engine.checkpoints import Checkpoint, load
from engine.checkpoints.locate import present_names
from engine.data import mixture
from engine.data.corpora import read_corpus
from engine.data.kinds.infill import Gaps
from engine.data.seeds import seed_for
from engine.data.sentences import Infill, cut_gaps
from engine.data.task import DataKind
from engine.model.transformer import Transformer
from engine.scoring.examples import UNASKED
from engine.tokenizers import END
from engine.training.examples.infill import MASK, START, prompt
from engine.training.examples.padding import pad_rows, real
from engine.training.measures.decoding import decode_continuations
from engine.training.sources.gapped_windows import GappedWindows
from engine.training.sources.infill import GappedPassages
from engine.training.trainer import Trainer

GAPS, WINDOWS, AT_ONCE = 1_000, 200, 100
LONGEST = 48  # tokens that are written, where no span is longer
DECODER = "everyday"  # the shipped model that goes on with such texts, and reads only what stands before a gap
COMPARED = 300  # gaps of each kind of text
TOGETHER = 25  # of these are read at once


def measure_infill(trainer: Trainer) -> dict[str, Any]:
    """`nats_a_character`: of the gaps of real texts, where the recipe names some, the model's and that of DECODER."""
    source = gap_source(trainer)
    gaps = source.gaps(GAPS if isinstance(source, GappedPassages) else WINDOWS)
    parts = [gaps[begin : begin + AT_ONCE] for begin in range(0, len(gaps), AT_ONCE)]
    exact = sum(
        given == span.tolist()
        for part in parts
        for given, (_, span, _) in zip(fill_gaps(trainer, part), part, strict=True)
    )
    found = {
        "token_accuracy": trainer.measure(max(GAPS // trainer.recipe.batch.size, 1))["accuracy"],
        "exact_spans": exact / len(gaps),
        "gaps": len(gaps),
        "decoding": "greedy",
    }
    texts = unread_texts(trainer.recipe.data.table, trainer.recipe.data_seed)
    if texts and DECODER in present_names():
        found["nats_a_character"] = compare_with_decoder(trainer.checkpoint(), texts, trainer.recipe.data_seed)
    return found


def unread_texts(told: DataKind, seed: int) -> dict[str, Sequence[str]]:
    """Held-out texts of each kind of real text that was learned from, and sentences that no document has. DECODER has
    learned from the same texts, but for those held out, with the seed 0."""
    if not isinstance(told, Gaps) or not (told.tales or told.sentences):
        return {}
    texts: dict[str, Sequence[str]] = {"plain sentences": read_corpus("everyday/visitors")["sentences"]}
    if told.tales:
        texts["tales"] = mixture.documents(told.tales, "", told.times, "held_out", seed)
    if told.sentences:
        texts["sentences"] = mixture.documents("", told.sentences, told.times, "held_out", seed)
    return texts


def compare_with_decoder(
    checkpoint: Checkpoint, texts: Mapping[str, Sequence[str]], seed: int
) -> dict[str, dict[str, float]]:
    """Loss of one gap of each text, of COMPARED at most: what its words cost either model, and not what its end does,
    which a decoder is not asked for."""
    decoder = load(DECODER)
    found = {}
    for kind, some in texts.items():
        gaps = [gap for gap in cut_gaps(some[:COMPARED], seed_for(seed, "compared")) if gap.span]
        read = [(infill_ids(checkpoint, gap), continuation_ids(decoder, gap)) for gap in gaps]
        fit = [
            (ours, theirs, len(gap.span))
            for gap, (ours, theirs) in zip(gaps, read, strict=True)
            if fits(checkpoint.model, *ours) and fits(decoder.model, *theirs)
        ]
        characters = sum(length for *_, length in fit)
        found[kind] = {
            "this model": nats(checkpoint.model, [ours for ours, _, _ in fit]) / characters,
            DECODER: nats(decoder.model, [theirs for _, theirs, _ in fit]) / characters,
            "gaps": len(fit),
        }
    return found


def infill_ids(checkpoint: Checkpoint, gap: Infill) -> tuple[list[int], list[int]]:
    """Ids of the text on both sides of a gap, up to the start of what fills it, and of what does."""
    return encode_pair(checkpoint, (f"{gap.before}{MASK}{gap.after}{START}", gap.span))


def continuation_ids(checkpoint: Checkpoint, gap: Infill) -> tuple[list[int], list[int]]:
    """Ids of the text before a gap, for a model that starts after its end token, and of what fills it."""
    return encode_pair(checkpoint, (END + gap.before, gap.span))


def encode_pair(checkpoint: Checkpoint, texts: Iterable[str]) -> tuple[list[int], list[int]]:
    assert checkpoint.tokenizer is not None
    given, span = ([*checkpoint.tokenizer.encode(text, special=False).ids] for text in texts)
    return given, span


def fits(model: Transformer, given: Sequence[int], span: Sequence[int]) -> bool:
    return len(given) + len(span) <= model.config.context


@torch.no_grad()
def nats(model: Transformer, texts: Iterable[tuple[Sequence[int], Sequence[int]]]) -> float:
    """Loss of the tokens of all spans (nats), each after those that are given."""
    ordered, found = sorted(texts, key=lambda text: len(text[0]) + len(text[1])), 0.0
    for some in (ordered[begin : begin + TOGETHER] for begin in range(0, len(ordered), TOGETHER)):
        rows = [torch.tensor([*given, *span[:-1]]) for given, span in some]
        asked = [torch.tensor([*[UNASKED] * (len(given) - 1), *span]) for given, span in some]
        logits = model(pad_rows(rows, 0).to(model.device), padding=real(rows).to(model.device))
        targets = pad_rows(asked, UNASKED).to(model.device)
        found += float(cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=UNASKED, reduction="sum"))
    return found


def fill_gaps(trainer: Trainer, gaps: Sequence[Sequence[Tensor]]) -> list[list[int]]:
    source = gap_source(trainer)
    prompts = [prompt(before, after, source.marks).to(trainer.full_model.device) for before, _, after in gaps]
    longest = max(LONGEST, *(len(span) + 1 for _, span, _ in gaps))
    return decode_continuations(trainer.result, prompts, source.marks.end, longest)


def sample_infill(trainer: Trainer) -> str:
    """A held-out passage or window with its gap, and what the model puts there."""
    source = gap_source(trainer)
    (gap,) = source.gaps(1)
    (span,) = fill_gaps(trainer, [gap])
    text = source.corpus.tokenizer.decode
    return f"{text(gap[0])}[{text(span)}]{text(gap[2])}"


def gap_source(trainer: Trainer) -> GappedPassages | GappedWindows:
    assert isinstance(trainer.source, GappedPassages | GappedWindows)
    return trainer.source

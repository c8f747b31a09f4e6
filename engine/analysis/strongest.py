"""Which texts make it fire: the strongest places of every head and every neuron over many texts, and what kind of head
each is on average, found in one pass.

A head is as strong at a position as what it writes there is long, |z W_O|, behind a norm that stands behind the
attention (Kobayashi et al. 2020, section 2, of whole heads), or by a share of its attention there
(engine/analysis/heads.py); a neuron of an MLP as its activation, which what it writes is proportional to (Geva et al.
2021, section 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from time import perf_counter
from typing import Literal, get_args

import torch
from torch import Tensor

from engine.analysis.heads import head_scores, row_scores
from engine.analysis.positional import positional
from engine.analysis.recorded_patterns import masks, patterns, tokens
from engine.analysis.survey_file import fit, read_survey, survey_path, write_survey
from engine.analysis.weights.circuit import writing_rows
from engine.checkpoints import Checkpoint
from engine.inputs.corpus import Corpus, corpus_readings, legible_texts
from engine.inputs.readers import Reading
from engine.inputs.samples import samples
from engine.model.layers.mlp import MLP
from engine.model.transformer import Transformer
from engine.runtime.lru_cache import LruCache
from engine.runtime.run import run
from engine.runtime.shared_work import SharedWork
from engine.runtime.trace import Trace

Measure = Literal["written", "previous", "induction", "duplicate", "first", "own"]  # of a head
Unit = Measure | Literal["neuron"]
KINDS = ("previous", "induction", "duplicate", "first", "own", "positional")  # of heads, by keys of SCORES

TEXTS, LENGTH = 64, 48  # of the shipped data that are read, and their tokens
CORPUS_TEXTS, CORPUS_LENGTH = 256, 128  # of one's own
ORDERED = 4  # one text in so many is read in other orders too, which takes eight runs
KEPT = 12  # texts of a head or a neuron
BYTES = 2**29


@dataclass(frozen=True)
class Strongest:
    """Texts, for each unit of a layer, in which it is strongest, the strongest first (unit place each): `text` is the
    number of the text, -1 where there were fewer, `pos` where in it, `value` how strong."""

    text: Tensor
    pos: Tensor
    value: Tensor

    def join(self, later: Strongest) -> Strongest:
        """Adds what was found in later texts, and keeps as many places."""
        values = torch.cat([self.value, later.value], 1)
        order = values.argsort(dim=1, descending=True, stable=True)[:, : self.value.shape[1]]
        text, pos = torch.cat([self.text, later.text], 1), torch.cat([self.pos, later.pos], 1)
        return Strongest(text.gather(1, order), pos.gather(1, order), values.gather(1, order))


def find_places(number: int, strengths: Tensor) -> Strongest:
    """The one place of each unit in a text whose strengths are pos unit, NaN where a position does not count."""
    value, pos = strengths.masked_fill(strengths.isnan(), -math.inf).max(0)
    return Strongest(torch.where(value > -math.inf, number, -1)[:, None], pos[:, None], value[:, None])


def no_places(units: int) -> Strongest:
    none = torch.full((units, KEPT), -1)
    return Strongest(none, none.clone(), torch.full((units, KEPT), float("-inf")))


@dataclass
class Survey:
    """Texts read so far, the strongest places of each layer's heads and neurons, by the name of its stack, and of each
    stack the heads' scores in each text, text kind layer head."""

    readings: list[Reading] = field(default_factory=list)
    found: dict[tuple[str, int, Unit], Strongest] = field(default_factory=dict)
    scores: dict[str, Tensor] = field(default_factory=dict)

    def join(self, later: Survey) -> Survey:
        """This and what was found in the texts that come after these."""
        found = {p: (self.found.get(p) or no_places(len(one.text))).join(one) for p, one in later.found.items()}
        before = self.scores or {side: one[:0] for side, one in later.scores.items()}
        scores = {side: torch.cat([before[side], one]) for side, one in later.scores.items()}
        return Survey(self.readings + later.readings, found, scores)

    def kinds(self, side: str) -> Tensor:
        """The mean of each of KINDS over the texts, kind layer head; NaN where no text has one."""
        return self.scores[side].nanmean(0)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All but the readings, by names that `from_tensors` reads."""
        places = {
            f"{side}/{layer}/{unit}/{name}": tensor
            for (side, layer, unit), found in self.found.items()
            for name, tensor in vars(found).items()
        }
        return places | {f"{side}/scores": scores for side, scores in self.scores.items()}

    @classmethod
    def from_tensors(cls, readings: list[Reading], tensors: dict[str, Tensor]) -> Survey:
        parts: dict[tuple[str, ...], dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            *place, last = name.split("/")
            parts.setdefault(tuple(place), {})[last] = tensor
        found = {(p[0], int(p[1]), p[2]): Strongest(**one) for p, one in parts.items() if len(p) == 3}
        return cls(readings, found, {p[0]: one["scores"] for p, one in parts.items() if len(p) == 1})  # type: ignore[arg-type]


@torch.no_grad()
def survey(model: Transformer, readings: Iterable[Reading], first: int = 0) -> Iterator[Survey]:
    """After each of `readings`, which are numbered from `first`, what was found so far."""
    so_far = Survey()
    for number, reading in enumerate(readings, first):
        trace = run(model, reading.read, read_hooks(model), target=reading.target)
        found = {place: find_places(number, strengths) for place, strengths in strengths_of(model, trace)}
        in_orders = number % ORDERED == 0
        scores = {side: kind_scores(model, trace, side, in_orders)[None] for side in sides(model)}
        so_far = so_far.join(Survey([reading], found, scores))
        yield so_far


def sides(model: Transformer) -> tuple[str, ...]:
    return ("",) if model.config.encoder is None else ("encoder", "decoder")


def read_hooks(model: Transformer) -> list[str]:
    """Lists the hooks that a survey reads."""
    ends = (".attn.z", ".attn.pattern", ".attn.mask", ".mlp.post", ".norm1_after.scale")
    return [name for name in model.hook_names if name.endswith(ends)]


def strengths_of(model: Transformer, trace: Trace) -> Iterator[tuple[tuple[str, int, Unit], Tensor]]:
    """Measures how strong each head and each neuron of every layer is, pos unit; NaN where a position does not
    count."""
    for side in sides(model):
        blocks = (getattr(model, side) if side else model).blocks
        found, allowed, ids = patterns(trace, side), masks(trace, side), tokens(trace, side)
        for layer, block in enumerate(blocks):
            hook = f"{side and side + '.'}blocks.{layer}."
            lengths = lengths_written(writing_rows(model, layer, side), trace[f"{hook}attn.z"][0])
            scale = trace.get(f"{hook}norm1_after.scale")
            yield (side, layer, "written"), lengths if scale is None else lengths / scale[0, :, None]
            shares = row_scores(found[layer], ids, allowed[layer])
            for measure in get_args(Measure)[1:]:
                yield (side, layer, measure), shares[measure].T
            if isinstance(block.mlp, MLP):
                yield (side, layer, "neuron"), trace[f"{hook}mlp.post"][0].float()


def kind_scores(model: Transformer, trace: Trace, side: str, in_orders: bool) -> Tensor:
    """KINDS of one text, kind layer head; the positional share is NaN unless it is read `in_orders` other than its
    own."""
    scores = head_scores(trace, side)
    shares = [getattr(scores, kind) for kind in KINDS[:-1]]
    last = positional(model, trace, side) if in_orders else torch.full_like(shares[0], math.nan)
    return torch.stack([*shares, last]).cpu()


def lengths_written(W_O: Tensor, z: Tensor) -> Tensor:
    """|z W_O| of every head, pos head; `z` is pos head d_head and `W_O` head d_head d_model."""
    gram = W_O.float() @ W_O.float().mT
    return torch.einsum("phd,hde,phe->ph", z.float(), gram, z.float()).clamp(min=0).sqrt()


# --- of a checkpoint ---


surveyed = LruCache[SharedWork[Survey]](BYTES)


def surveying_of(
    checkpoint: Checkpoint,
    corpus: Corpus | None = None,
    elsewhere: Callable[[Checkpoint, Corpus | None, int], SharedWork[Survey] | None] = lambda *_: None,
) -> SharedWork[Survey]:
    """The work that surveys a checkpoint on the first CORPUS_TEXTS of a corpus, or on TEXTS of `samples`; done already
    where its training run keeps what was found, else that of `elsewhere`, given the number of texts, where it takes it.
    Raises ValueError as `legible_texts`."""
    model, config = checkpoint.model, checkpoint.model.config
    key = model, corpus and corpus.digest
    if known := surveyed.find(key):
        return known
    count = len(legible_texts(checkpoint, corpus, CORPUS_TEXTS)) if corpus else TEXTS
    if (kept := kept_survey(checkpoint, corpus)) is not None:
        made = SharedWork(iter([kept]), count, kept)
        made.reach()
    else:
        here = SharedWork(survey_once(checkpoint, corpus, count), count, Survey())
        made = elsewhere(checkpoint, corpus, count) or here
    units = len(get_args(Measure)) * config.attention.heads + (config.mlp.d_mlp if config.mlp else 0)
    return surveyed.keep(key, made, units * config.layers * KEPT * 24)


def readings_of(checkpoint: Checkpoint, corpus: Corpus | None) -> Iterator[Reading]:
    if corpus is None:
        return samples(checkpoint, TEXTS, LENGTH)
    return corpus_readings(checkpoint, legible_texts(checkpoint, corpus, CORPUS_TEXTS), CORPUS_LENGTH)


def survey_once(checkpoint: Checkpoint, corpus: Corpus | None, count: int) -> Iterator[Survey]:
    """`survey`, kept once all texts are read."""
    for number, found in enumerate(survey(checkpoint.model, readings_of(checkpoint, corpus)), 1):
        if number == count:
            keep_survey(checkpoint, corpus, found)
        yield found


def keep_survey(checkpoint: Checkpoint, corpus: Corpus | None, found: Survey) -> None:
    if (path := survey_path(checkpoint, read_texts(corpus))) is not None:
        write_survey(path, found.tensors, fit(checkpoint, read_texts(corpus)))


def kept_survey(checkpoint: Checkpoint, corpus: Corpus | None) -> Survey | None:
    path = survey_path(checkpoint, read_texts(corpus))
    tensors = path and read_survey(path, fit(checkpoint, read_texts(corpus)))
    return Survey.from_tensors(list(readings_of(checkpoint, corpus)), tensors) if tensors else None


def read_texts(corpus: Corpus | None) -> str:
    """Names the texts of a survey, and how much is read of them."""
    if corpus is None:
        return f"{TEXTS} samples of {LENGTH} tokens"
    return f"{corpus.digest}, {CORPUS_TEXTS} texts of {CORPUS_LENGTH} tokens"


def seconds_of_text(checkpoint: Checkpoint, corpus: Corpus | None = None) -> float:
    """Measured on the first ORDERED texts."""
    begun = perf_counter()
    read = sum(1 for _ in survey(checkpoint.model, islice(readings_of(checkpoint, corpus), ORDERED)))
    return (perf_counter() - begun) / read


def so_far(checkpoint: Checkpoint, corpus: Corpus | None = None) -> Survey:
    """Findings, so far, of a survey that somebody began; all of them where nobody did."""
    work = surveying_of(checkpoint, corpus)
    return work.results if work.done else work.reach()


def find_strongest(
    checkpoint: Checkpoint, side: str, layer: int, part: Unit, corpus: Corpus | None = None
) -> tuple[list[Reading], Strongest]:
    """The texts that were read, and the strongest places in them of each head or neuron of a layer.

    Raises ValueError for a layer that has none."""
    made = so_far(checkpoint, corpus)
    if (side, layer, part) not in made.found:
        raise ValueError(f"this layer has no {part}s; choose another one.")
    return made.readings, made.found[side, layer, part]


def find_kinds(checkpoint: Checkpoint, side: str = "", corpus: Corpus | None = None) -> Tensor:
    """Share of each head in each of KINDS, on average over the texts, kind layer head; NaN where no text tells."""
    return so_far(checkpoint, corpus).kinds(side)

"""Steering vectors: the mean difference of two sets of prompts at one place, added to other runs, and what follows.

A vector is the difference of the means of a hook over both sets (Rimsky et al. 2024, "Steering Llama 2 via Contrastive
Activation Addition"; Turner et al. 2023 of one prompt each). Without a second set it is the mean itself: over prompts
that hold demonstrations of a task, a function vector (Todd et al. 2024, "Function Vectors in Large Language Models",
section 2, there of chosen heads). `steer_corpus` adds it at every position of other texts, with several strengths in
lengths of the vector, and measures a prediction, the loss of the steered model on the texts, and KL to the plain one.

It takes a run for each prompt, then for each of TEXTS texts of LENGTH tokens one run and one more for each strength,
from the block that is steered on: of `stories` 0.5 s for 32 texts and seven strengths on one core.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias, get_args

import torch
from safetensors.torch import save
from torch import Tensor

from engine.analysis.interventions.metric import Metric, log_distribution, read_row
from engine.analysis.interventions.pair_set import Interval, mean_of
from engine.analysis.interventions.sites import SITES
from engine.analysis.interventions.sweep import SAME
from engine.analysis.survey_file import digest_weights
from engine.checkpoints import Checkpoint
from engine.checkpoints.weights import open_weights
from engine.edits import AddDirection, Side
from engine.edits.sources import ReadAt, read_value
from engine.inputs.corpus import Corpus, corpus_readings, legible_texts
from engine.inputs.readers import Reading, kind, tokens
from engine.inputs.samples import samples
from engine.json_text import parse_json
from engine.runtime.lru_cache import LruCache
from engine.runtime.run import run
from engine.runtime.shared_work import SharedWork
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding

PLACES = ("stream", "attention", "MLP")  # of SITES
PROMPTS = 256  # of a set
TEXTS, CORPUS_TEXTS, LENGTH = 32, 256, 64
STRENGTHS = (-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0)
MOST_STRENGTHS = 33
FORMAT = "loupe.steering_vector"
LARGEST_FILE = 2**22  # bytes
SAMPLED = 64  # numbers of each weight that a file's digest of its model reads
LAYERS = 2**26  # bytes of readings that are kept

Prompts: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class SteeringVector:
    """Direction (d_model, float32) in the values of `hook`, the prompts that it was read from, and the `strength`, in
    its own lengths, that it is used with."""

    hook: str
    direction: Tensor
    toward: Prompts
    away: Prompts = ()
    read: ReadAt = "last"
    strength: float = 1.0

    @cached_property
    def length(self) -> float:
        return math.hypot(*self.direction.tolist())

    @cached_property
    def digest(self) -> str:
        return blake2b(self.hook.encode() + self.direction.numpy().tobytes(), digest_size=16).hexdigest()

    def edit(self, strength: float | None = None) -> AddDirection:
        """Adds the vector at every position, with its own strength or another one."""
        strength = self.strength if strength is None else strength
        return AddDirection(self.hook, self.direction.tolist(), amount=self.length, strength=strength)


@dataclass(frozen=True, eq=False)
class PromptReadings:
    """Values of the hooks of all blocks that prompts were read at, layer prompt d_model."""

    hooks: tuple[str, ...]
    toward: Tensor
    away: Tensor

    def vector(self, layer: int) -> Tensor:
        """Difference of the means, d_model in float32. Raises ValueError where both are the same."""
        toward, away = self.toward[layer].double(), self.away[layer].double()
        found = toward.mean(0) - (away.mean(0) if len(away) else 0.0)
        if found.norm() <= SAME * max(1.0, float(toward.norm(dim=-1).max())):
            raise ValueError(
                f"Both sets of prompts have the same mean at {self.hooks[layer]}, so that there is no direction from "
                "one to the other; change a prompt, or read another place."
            )
        return found.float()

    def values(self, layer: int, held_out: bool = False) -> tuple[Tensor, Tensor]:
        """Places of the prompts along the vector, measured from halfway between both means (without a second set, from
        0): of both sets, prompt. `held_out` of each along the vector of all other lines, where that of the same number
        in the other set, which may say the same in other words, is left out too; NaN where a set has no other."""
        sets = self.toward[layer].double(), self.away[layer].double()
        each = []
        for own in sets:
            toward, away = (leave_out(one, len(own)) if held_out else one.mean(0, keepdim=True) for one in sets)
            alone = not len(sets[1])
            along = toward - (0.0 if alone else away)
            middle = 0.0 if alone else (toward + away) / 2
            each.append(((own - middle) * along / along.norm(dim=-1, keepdim=True)).sum(-1))
        return each[0], each[1]

    @cached_property
    def separation(self) -> Tensor:
        """Number of standard deviations between both sets along the vector of all other prompts (d′ with prompts
        held out), layer; without a second set, between the prompts and 0. NaN of a set of one prompt."""
        found = []
        for layer in range(len(self.hooks)):
            sets = [one for one in self.values(layer, held_out=True) if len(one)]
            centred = torch.cat([one - one.mean() for one in sets])
            spread = (centred.square().sum() / max(len(centred) - len(sets), 1)).sqrt()
            apart = sets[0].mean() - (sets[1].mean() if len(sets) > 1 else 0.0)
            found.append(apart / spread.clamp(min=torch.finfo(torch.float64).tiny))
        return torch.stack(found)


@dataclass(frozen=True, eq=False)
class SteeringEffect:
    """Effect on `texts` texts of each strength: `metric` (text strength) of the last position, `loss` in nats a
    token (strength; NaN where the texts leave none to predict) and `kl` from the plain run in nats a position
    (strength)."""

    strengths: tuple[float, ...]
    metric: Tensor
    loss: Tensor
    kl: Tensor

    @property
    def texts(self) -> int:
        return len(self.metric)

    @cached_property
    def interval(self) -> Interval:
        """Mean of the metric over texts, with its interval, strength."""
        return mean_of([*self.metric])


def leave_out(values: Tensor, count: int) -> Tensor:
    """Means of all rows but one, the first `count` times one after the other, and of all once no row is left to leave
    out; count d_model."""
    rest = (values.sum(0) - values) / (len(values) - 1)
    whole = values.mean(0, keepdim=True)
    return torch.cat([rest[:count], whole.expand(max(count - len(values), 0), -1)])


# --- from prompts to a vector ---


def check_steering(checkpoint: Checkpoint) -> None:
    """Raises ValueError for a model that predicts no token of a text."""
    head, reads = checkpoint.model.config.head.kind, kind(checkpoint)
    if reads not in ("text", "pair", "translation") or head not in ("language", "masked"):
        what = "fills gaps" if reads == "infill" else "reads pictures" if "pi" in reads else "tells classes apart"
        what = "points to answers" if head == "span" else what
        raise ValueError(f"A steering vector is for a model that predicts tokens, and this one {what}; choose another.")


def check_prompts(toward: Sequence[str], away: Sequence[str]) -> None:
    """Raises ValueError for no prompt to steer toward, and for more than are read."""
    for prompts in (toward, away):
        if len(prompts) > PROMPTS:
            raise ValueError(f"A set must have at most {PROMPTS} prompts, got {len(prompts):,}; take fewer.")
    if not toward:
        raise ValueError("A direction must have a prompt to steer toward, got none; write one a line.")


def read_prompts(
    checkpoint: Checkpoint, toward: Prompts, away: Prompts, site: str, read: ReadAt, stack: Side | None
) -> Iterator[PromptReadings]:
    """Readings of both sets after each prompt."""
    model = checkpoint.model
    layers = model.config.encoder.layers if stack == "encoder" and model.config.encoder else model.config.layers
    hooks = tuple(SITES[site].hook(model, layer, stack or "").name for layer in range(layers))
    values = torch.zeros(len(hooks), len(toward) + len(away), model.config.d_model)
    for at, reading in enumerate(corpus_readings(checkpoint, [*toward, *away], model.config.context)):
        trace = run(model, reading.read, hooks, target=reading.target)
        values[:, at] = torch.stack([read_value(trace[hook], read).float().cpu() for hook in hooks])
        yield PromptReadings(hooks, values[:, : min(at + 1, len(toward))], values[:, len(toward) : at + 1])


readings_kept = LruCache[SharedWork[PromptReadings]](LAYERS)
effects_kept = LruCache[SharedWork[SteeringEffect]](2**22)


def reading_of(
    checkpoint: Checkpoint, toward: Sequence[str], away: Sequence[str] = (), site: str = "stream",
    read: ReadAt = "last", stack: Side | None = None,
) -> SharedWork[PromptReadings]:  # fmt: skip
    """The work that reads prompts at one place of all blocks. Raises ValueError as `check_steering` and
    `check_prompts`, and for a place that is none."""
    if site not in PLACES or read not in get_args(ReadAt):
        raise ValueError(f"A place must be one of {', '.join(PLACES)}, read last or mean; got {site!r}, {read!r}.")
    check_steering(checkpoint)
    check_prompts(toward, away)
    for prompt in (*toward, *away):
        if not prompt.strip() or not tokens(checkpoint, prompt):
            raise ValueError(f"A prompt must have a token, got {prompt!r:.80}; write words in its line.")
    key = checkpoint.model, tuple(toward), tuple(away), site, read, stack
    if (known := readings_kept.find(key)) is not None:
        return known
    given = tuple(toward), tuple(away), site, read, stack
    count, config = len(toward) + len(away), checkpoint.model.config
    nothing = torch.zeros(0, 0, config.d_model)
    work = SharedWork(read_prompts(checkpoint, *given), count, PromptReadings((), nothing, nothing))
    return readings_kept.keep(key, work, 8 * count * config.layers * config.d_model)


def find_direction(
    checkpoint: Checkpoint, toward: Sequence[str], away: Sequence[str] = (), site: str = "stream", layer: int = 0,
    read: ReadAt = "last", stack: Side | None = None,
) -> SteeringVector:  # fmt: skip
    """Mean difference of two sets of prompts in front of, or in, block `layer`. Raises ValueError as `reading_of`, for
    sets of one mean, and for a block that the model does not have."""
    found = reading_of(checkpoint, toward, away, site, read, stack).reach()
    if not 0 <= layer < len(found.hooks):
        raise ValueError(f"A block must be one of 0 to {len(found.hooks) - 1}, got {layer}; choose another.")
    return SteeringVector(found.hooks[layer], found.vector(layer), tuple(toward), tuple(away), read)


# --- what it does ---


@dataclass(frozen=True)
class Asked:
    """A text as it is measured: the row of the logits whose metric is taken, and the `ids` (token) whose loss is at
    `rows`."""

    reading: Reading
    row: int
    rows: Tensor
    ids: Tensor


def ask_text(checkpoint: Checkpoint, reading: Reading) -> Asked:
    """Of a decoder every next token counts, and its last row; of an encoder-decoder those of the target, and what it
    writes first; of an encoder with a masked head the masked token, of a text without one its last, which is masked."""
    read = reading.read
    assert isinstance(read, Encoding)
    if checkpoint.model.config.head.kind != "masked":
        within = read if reading.target is None else reading.target
        ids = torch.tensor(within.ids[1:], dtype=torch.long)
        return Asked(reading, len(within) - 1 if reading.target is None else 0, torch.arange(len(ids)), ids)
    mask = None if checkpoint.tokenizer is None else checkpoint.tokenizer.mask_id
    if mask is None or mask in read.ids:
        row = read.ids.index(mask) if mask is not None else len(read) - 1
        return Asked(reading, row, torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long))
    row = max((at for at, special in enumerate(read.special) if not special), default=0)
    hidden = replace(read, ids=(*read.ids[:row], mask, *read.ids[row + 1 :]))
    return Asked(replace(reading, read=hidden), row, torch.tensor([row]), torch.tensor([read.ids[row]]))


def measure_steering(
    checkpoint: Checkpoint, vector: SteeringVector, metric: Metric, texts: Iterable[Reading],
    strengths: Sequence[float],
) -> Iterator[SteeringEffect]:  # fmt: skip
    """The effect on the texts so far, after each."""
    model, predicted, positions = checkpoint.model, 0, 0
    loss, kl = torch.zeros(2, len(strengths), dtype=torch.float64)
    metrics = list[Tensor]()
    for reading in texts:
        asked = ask_text(checkpoint, reading)
        read, target = asked.reading.read, asked.reading.target
        base = run(model, read, target=target)
        traces = [
            run(model, read, ["logits"], [vector.edit(one)], base, target=target) if one else base for one in strengths
        ]
        metrics.append(torch.cat([metric(read_row(model, trace, asked.row)).double().cpu() for trace in traces]))
        plain = predictions(checkpoint, base)
        for at, trace in enumerate(traces):
            steered = predictions(checkpoint, trace)
            kl[at] += (plain.exp() * (plain - steered)).sum() if trace is not base else 0.0
            loss[at] -= steered[asked.rows].gather(1, asked.ids[:, None]).sum()
        predicted, positions = predicted + len(asked.ids), positions + len(plain)
        yield SteeringEffect(tuple(strengths), torch.stack(metrics), loss / (predicted or math.nan), kl / positions)


def predictions(checkpoint: Checkpoint, trace: Trace) -> Tensor:
    """ln p of each token at each row of a run's logits, row candidate."""
    return log_distribution(trace["logits"][0].double().cpu(), checkpoint.model.config.link)


def steering_of(
    checkpoint: Checkpoint, vector: SteeringVector, candidate: int, against: int | None = None,
    corpus: Corpus | None = None, strengths: Sequence[float] = STRENGTHS,
) -> SharedWork[SteeringEffect]:  # fmt: skip
    """The work of `steer_corpus`."""
    check_steering(checkpoint)
    outputs = checkpoint.model.config.outputs
    for one in (candidate, against):
        if one is not None and not 0 <= one < outputs:
            raise ValueError(f"A candidate must be a token from 0 to {outputs - 1:,}, got {one}; choose another.")
    if not strengths or len(strengths) > MOST_STRENGTHS or not all(map(math.isfinite, strengths)):
        raise ValueError(f"Strengths must be 1 to {MOST_STRENGTHS} finite numbers, got {len(strengths)}; correct them.")
    link = checkpoint.model.config.link
    metric = Metric("log-probability" if against is None else "logit", candidate, against, link=link)
    key = checkpoint.model, vector.digest, candidate, against, corpus and corpus.digest, tuple(strengths)
    if (known := effects_kept.find(key)) is not None:
        return known
    if corpus is None:
        texts, count = samples(checkpoint, TEXTS, LENGTH), TEXTS
    else:
        legible = legible_texts(checkpoint, corpus, CORPUS_TEXTS)
        texts, count = corpus_readings(checkpoint, legible, LENGTH), len(legible)
    nothing = torch.zeros(len(strengths))
    first = SteeringEffect(tuple(strengths), nothing[:0, None], nothing, nothing)
    work = SharedWork(measure_steering(checkpoint, vector, metric, texts, strengths), count, first)
    return effects_kept.keep(key, work, 2**14)


def steer_corpus(
    checkpoint: Checkpoint, vector: SteeringVector, candidate: int, against: int | None = None,
    corpus: Corpus | None = None, strengths: Sequence[float] = STRENGTHS,
) -> SteeringEffect:  # fmt: skip
    """Measures what a vector does to a corpus (None: the shipped data) by strength, in its own lengths: the
    log-probability of a candidate token in nats, or its lead in logits over the one `against`, where `ask_text` says;
    loss, and KL. Raises ValueError for a model without tokens to predict, a candidate that is none, and texts that it
    cannot read."""
    return steering_of(checkpoint, vector, candidate, against, corpus, strengths).reach()


# --- kept with the model ---


def pack_vector(vector: SteeringVector, checkpoint: Checkpoint) -> bytes:
    """A .safetensors file: the direction under the name of its hook, and where it comes from in the metadata."""
    about = {
        "format": FORMAT, "model": checkpoint.name, "weights": digest_weights(checkpoint, SAMPLED),
        "toward": json.dumps(vector.toward), "away": json.dumps(vector.away), "read": vector.read,
        "strength": repr(vector.strength),
    }  # fmt: skip
    return save({vector.hook: vector.direction}, about)


def unpack_vector(data: bytes, checkpoint: Checkpoint) -> SteeringVector:
    """The same of a file that somebody sent. Raises ValueError as `open_vector`."""
    if len(data) > LARGEST_FILE:
        raise ValueError(f"A steering vector's file must have at most {LARGEST_FILE:,} bytes, got {len(data):,}.")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "vector.safetensors"
        path.write_bytes(data)
        try:
            return open_vector(path, checkpoint)
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), "This file")) from None


def open_vector(path: Path | str, checkpoint: Checkpoint) -> SteeringVector:
    """Reads a file of `pack_vector`. Raises ValueError, in one sentence, for a file that is damaged or none, of a model
    with other weights, or with a vector that does not fit."""
    path = Path(path)
    weights = open_weights(path)
    about, (hook, shape) = weights.metadata, next(iter(weights.shapes.items()), ("", ()))
    if not isinstance(about, dict) or about.get("format") != FORMAT or len(weights) != 1:
        raise ValueError(f"{path} must hold one steering vector, as the page Steering writes it; choose another file.")
    if about.get("weights") != digest_weights(checkpoint, SAMPLED):
        raise ValueError(
            f"{path} is a vector of the model “{str(about.get('model'))[:80]}”, and that which is open has other "
            "weights; open that one."
        )
    known, size = checkpoint.model.hooks.get(hook), checkpoint.model.config.d_model
    if known is None or known.axes != ("batch", "pos", "d_model") or shape != (size,):
        raise ValueError(
            f"{path} must hold {size} numbers for a hook of this model, got {list(shape)} for {hook[:80]}; choose "
            "another file."
        )
    try:
        toward, away = (tuple(parse_json(about[name])) for name in ("toward", "away"))
        strength, read = float(about["strength"]), about["read"]
        whole = all(isinstance(one, str) for one in (*toward, *away)) and math.isfinite(strength)
    except (KeyError, TypeError, ValueError):
        whole, read, strength, toward, away = False, "", 0.0, (), ()
    if not whole or read not in get_args(ReadAt) or weights.dtypes[hook] != "float32":
        raise ValueError(f"{path} says of its vector what does not read; write it again on the page Steering.")
    check_prompts(toward, away)
    found = SteeringVector(hook, weights[hook].clone(), toward, away, read, strength)
    if not 1e-30 < found.length < 1e30:
        raise ValueError(f"{path} must hold finite numbers that are not all 0; write it again on the page Steering.")
    return found

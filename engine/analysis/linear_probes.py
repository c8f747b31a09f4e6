"""Linear probes with controls: what can be read off the residual stream by a plane, and whether the model uses it.

A probe is a multinomial logistic regression from the stream, before every block and behind the last, to a label of
tokens (Alain and Bengio 2016; engine/analysis/token_labels/) or of whole texts. Hewitt and Liang (2019, section 3) set
a control task beside it: every token type gets a label at random, and what a probe learns of that is what it remembers.
Selectivity is the accuracy less that of the control. Reading is no use: `measure_removal` takes a probe's direction out
of the stream and compares what follows with random directions (Elazar et al. 2021, "Amnesic Probing").

It takes at most TEXTS texts of LENGTH tokens of the shipped data, or the first CORPUS_TEXTS of a file, and ROWS
positions of all of them: the runs of those texts, then two regressions a layer, on one core about 0.1 s each at d_model
128 and 0.4 s at 768.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from engine.analysis.token_label import label_kinds
from engine.checkpoints import Checkpoint
from engine.data.table import read_table
from engine.edits import ProjectOut
from engine.inputs import readers
from engine.inputs.corpus import MOST, Corpus, legible_texts
from engine.inputs.readers import Reading
from engine.inputs.samples import samples
from engine.model.transformer import Transformer
from engine.runtime.lru_cache import LruCache
from engine.runtime.run import run
from engine.runtime.shared_work import SharedWork
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding

OF_FILE = "of the file"  # the label that a LabelledCorpus has
TEXTS, CORPUS_TEXTS, LENGTH = 64, 256, 64
FEWEST = 4  # texts, of which one in HELD is held out
HELD = 4
ROWS = 4096
CLASSES = 20
STREAMS = 2**27  # bytes of streams that are held at once
L2 = 10.0  # times |weight|² / 2, beside the sum of all losses
ITERATIONS = 100  # of L-BFGS
RANDOM = 8  # directions that a probe's is set beside
REMOVED = 16  # held-out texts that are run without a direction


@dataclass(frozen=True)
class LabelledCorpus(Corpus):
    """Texts with a label of each."""

    labels: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> str:
        return blake2b("\0".join(self.texts + self.labels).encode(), digest_size=16).hexdigest()


def read_labelled(path: Path | str, column: str, label_column: str) -> LabelledCorpus:
    """Texts of a table and what `label_column` says of each. Raises ValueError as the readers of data do."""
    table = read_table(path)
    return LabelledCorpus(Path(path).name, table.texts(column), table.texts(label_column))


@dataclass(frozen=True)
class LabelledRows:
    """Positions that are read: the number of the text, the position in it, the token type (of a label of whole texts,
    the text itself, for nothing else comes twice) and the class (row each)."""

    readings: Sequence[Reading]
    classes: tuple[str, ...]
    text: Tensor
    pos: Tensor
    type: Tensor
    label: Tensor

    @property
    def held_out(self) -> Tensor:
        """Bool row: one text in HELD is."""
        return self.text % HELD == HELD - 1


@dataclass(frozen=True)
class Probes:
    """Probes of the streams `hooks`, as far as they are fitted: share of held-out positions that a probe has right, the
    same of the control (layer each); `weight` (layer class d_model) and `bias` (layer class) make logits of a stream;
    `control_weight` is the control's; `mean` (layer d_model) is the mean stream.

    `majority` is the share of the class that is the most frequent in training; `rows` counts the positions that a probe
    learns from and those held out."""

    classes: tuple[str, ...]
    hooks: tuple[str, ...]
    majority: float
    rows: tuple[int, int]
    texts: int
    accuracy: Tensor
    control: Tensor
    weight: Tensor
    bias: Tensor
    control_weight: Tensor
    mean: Tensor

    @property
    def selectivity(self) -> Tensor:
        """Accuracy less that of the control, layer."""
        return self.accuracy - self.control

    def probabilities(self, trace: Trace, layer: int) -> Tensor:
        """Of each class at each position of the first text of a run, pos class."""
        stream = trace[self.hooks[layer]][0].double().cpu()
        return (stream @ self.weight[layer].T + self.bias[layer]).softmax(-1)

    def direction(self, layer: int, control: bool = False) -> Tensor:
        """Unit vector along which the log odds of the second class grow, d_model. Raises ValueError for a label with
        more classes."""
        if len(self.classes) != 2:
            raise ValueError(
                f"A direction is for a label with two classes, and this one has {len(self.classes)}; choose another."
            )
        first, second = (self.control_weight if control else self.weight)[layer]
        return (second - first) / (second - first).norm().clamp(min=torch.finfo(torch.float64).tiny)

    def project_out(self, layer: int, direction: Tensor | None = None) -> ProjectOut:
        """Edit that gives the stream its mean component along the probe's direction, or another one, everywhere."""
        unit = self.direction(layer) if direction is None else direction
        return ProjectOut(self.hooks[layer], unit.tolist(), value=float(self.mean[layer] @ unit))


@dataclass(frozen=True)
class Removal:
    """What follows where a direction is taken out, by `names` (direction each): `kl` from the whole run's predictions
    in nats a position, and `loss` of the next token in nats, `plain` in the whole run; NaN for a model that predicts
    none."""

    names: tuple[str, ...]
    kl: Tensor
    loss: Tensor
    plain: float
    texts: int

    @property
    def of_random(self) -> list[int]:
        """Places of the random directions."""
        return [at for at, name in enumerate(self.names) if name.startswith("random")]


def stream_hooks(model: Transformer) -> tuple[str, ...]:
    """The stream into each block that reads the text, and behind the last."""
    config = model.config.encoder or model.config
    prefix = "encoder." if model.config.encoder else ""
    into = [f"{prefix}blocks.{layer}.resid_pre" for layer in range(config.layers)]
    return *into, f"{prefix}blocks.{config.layers - 1}.resid_post"


def label_rows(checkpoint: Checkpoint, label: str, corpus: Corpus | None = None) -> LabelledRows:
    """Raises ValueError for a model that reads no text with a tokenizer, for texts with one class of the label alone,
    and for fewer texts than FEWEST or more classes than CLASSES."""
    check_reads_text(checkpoint)
    if corpus is None:
        texts, readings = None, list(samples(checkpoint, TEXTS, LENGTH))
    else:
        texts = legible_texts(checkpoint, corpus, CORPUS_TEXTS)
        limit = min(LENGTH, checkpoint.model.config.context)
        readings = [Reading(readers.tokens(checkpoint, text).truncate(limit)) for text in texts]
    if len(readings) < FEWEST:
        raise ValueError(f"A probe must have {FEWEST} texts or more, got {len(readings)}; choose more texts.")
    if label == OF_FILE:
        names, found = labels_of_texts(corpus, texts or [])
        rows = [(n, len(one.read) - 1, n, found[n]) for n, one in enumerate(readings) if len(one.read) > 1]
    else:
        kind = label_kinds().get(label)
        if kind is None:
            raise ValueError(f"label must be one of {', '.join([*label_kinds(), OF_FILE])}, got {label!r:.80}.")
        names, rows = kind.classes, []
        held = STREAMS // (4 * len(stream_hooks(checkpoint.model)) * checkpoint.model.config.d_model)
        most = max(min(ROWS, held) // len(readings), 1)
        for number, reading in enumerate(readings):
            assert isinstance(reading.read, Encoding)
            classes, read = kind.find_classes(reading.read), reading.read
            places = [pos for pos in range(1, len(read)) if not read.special[pos]]
            spread = sorted({int(one) for one in torch.linspace(0, len(places) - 1, min(most, len(places))).tolist()})
            rows += [(number, pos, read.ids[pos], classes[pos]) for pos in (places[one] for one in spread)]
    return known_classes(readings, names, torch.tensor(rows, dtype=torch.long).reshape(-1, 4))


def check_reads_text(checkpoint: Checkpoint) -> None:
    """Raises ValueError for a model that a label of tokens is not for."""
    pictures = readers.kind(checkpoint) in ("picture", "pixels")
    if pictures or checkpoint.tokenizer is None:
        why = "reads pictures" if pictures else "has no tokenizer"
        raise ValueError(f"A probe learns labels of a text’s tokens, and this model {why}; choose another model.")


def labels_of_texts(corpus: Corpus | None, texts: Sequence[str]) -> tuple[tuple[str, ...], list[int]]:
    """Names of the classes, and the class of each of the texts that are read."""
    if not isinstance(corpus, LabelledCorpus):
        raise ValueError("Labels of a file need a table with a column of texts and one of labels; choose one.")
    legible, first = set(texts), zip(corpus.texts[:CORPUS_TEXTS], corpus.labels, strict=False)
    given = [label for text, label in first if text[:MOST] in legible]
    names = tuple(sorted(set(given)))
    if len(names) > CLASSES:
        raise ValueError(f"A label must have at most {CLASSES} classes, got {len(names)}; choose another column.")
    return names, [names.index(label) for label in given]


def known_classes(readings: Sequence[Reading], names: Sequence[str], rows: Tensor) -> LabelledRows:
    """Rows of the classes that come in the texts that are learned from; of another nothing can be known."""
    text, pos, type, label = rows.unbind(1)
    learned = text % HELD != HELD - 1
    counts = torch.bincount(label[learned], minlength=len(names))
    known = counts.nonzero().flatten()
    if len(known) < 2:
        missing = ", ".join(f"“{name}”" for name, count in zip(names, counts.tolist(), strict=True) if not count)
        only = f"all are “{names[int(known)]}”" if len(known) else "there is no position to read"
        none = f", and none is {missing}" if len(known) and missing else ""
        raise ValueError(
            f"A probe must have two classes, and in these texts {only}{none}; choose another label or other texts."
        )
    kept = torch.isin(label, known)
    if not (kept & ~learned).any():
        raise ValueError("A probe needs texts to be measured on, and of those held out none has a label; choose more.")
    classes = tuple(names[at] for at in known.tolist())
    return LabelledRows(
        readings, classes, text[kept], pos[kept], type[kept], torch.searchsorted(known, label[kept].contiguous())
    )


def control_labels(type: Tensor, label: Tensor, classes: int, seed: int = 0) -> Tensor:
    """A class for every token type at random, with the shares of `label`, for all its occurrences (Hewitt and Liang
    2019, section 2.1); all row."""
    shares = torch.bincount(label, minlength=classes).double()
    generator = torch.Generator().manual_seed(seed)
    types, at = type.unique(return_inverse=True)
    return torch.multinomial(shares, len(types), replacement=True, generator=generator)[at]


@torch.enable_grad()
def fit_probe(stream: Tensor, label: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Weight (class d_model) and bias (class) of the regression that makes logits of `stream` (row d_model), which is
    standardised for the fit, and the weight, so that L2 counts all components alike."""
    exact = stream.detach().double()
    mean, scale = exact.mean(0), exact.std(0, correction=0)
    scale = torch.where(scale > 1e-9 * (1 + mean.abs()), scale, 1.0)
    seen = (exact - mean) / scale
    weight = torch.zeros(classes, exact.shape[1], dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(classes, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weight, bias], max_iter=ITERATIONS, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = cross_entropy(seen @ weight.T + bias, label) + L2 / 2 / len(seen) * weight.square().sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    found = weight.detach() / scale
    return found, bias.detach() - found @ mean


def fit_layers(streams: Sequence[Tensor], rows: LabelledRows, first: Probes) -> Iterator[Probes]:
    """After each of `streams` (row d_model), the probes so far, which `first` has none of."""
    held, classes, so_far = rows.held_out, len(rows.classes), first
    control = control_labels(rows.type, rows.label, classes)
    for stream in streams:
        fits = [fit_probe(stream[~held], label[~held], classes) for label in (rows.label, control)]
        right = [
            ((stream[held].double() @ weight.T + bias).argmax(-1) == label[held]).double().mean()
            for label, (weight, bias) in zip((rows.label, control), fits, strict=True)
        ]
        new = {
            "accuracy": right[0], "control": right[1], "weight": fits[0][0], "bias": fits[0][1],
            "control_weight": fits[1][0], "mean": stream[~held].double().mean(0),
        }  # fmt: skip
        longer: dict[str, Any] = {name: torch.cat([getattr(so_far, name), one[None]]) for name, one in new.items()}
        so_far = replace(so_far, **longer)
        yield so_far


def no_probes(rows: LabelledRows, hooks: tuple[str, ...], width: int) -> Probes:
    held, classes = rows.held_out, len(rows.classes)
    usual = torch.bincount(rows.label[~held]).argmax()
    majority = float((rows.label[held] == usual).double().mean())
    counts = int((~held).sum()), int(held.sum())
    none, weights = torch.zeros(0, dtype=torch.float64), torch.zeros(0, classes, width, dtype=torch.float64)
    return Probes(
        rows.classes, hooks, majority, counts, len(rows.readings), none, none, weights, weights[..., 0], weights,
        weights[:, 0],
    )  # fmt: skip


def train_probes(checkpoint: Checkpoint, rows: LabelledRows) -> Iterator[Probes]:
    """After each text that is read, and then each layer that is fitted, the probes so far."""
    hooks = stream_hooks(checkpoint.model)
    first = no_probes(rows, hooks, checkpoint.model.config.d_model)
    read: list[Tensor] = []
    for number, reading in enumerate(rows.readings):
        at = rows.pos[rows.text == number]
        trace = run(checkpoint.model, reading.read, hooks, target=reading.target)
        read.append(torch.stack([trace[hook][0].float().cpu()[at] for hook in hooks]))
        yield first
    yield from fit_layers(torch.cat(read, 1), rows, first)  # type: ignore[arg-type]


def predicts_next(checkpoint: Checkpoint) -> bool:
    """True if its loss is that of the next token of the text that it reads."""
    config = checkpoint.model.config
    return config.head.kind == "language" and config.attention.mask == "causal" and config.encoder is None


@torch.no_grad()
def remove_directions(checkpoint: Checkpoint, rows: LabelledRows, probes: Probes, layer: int) -> Iterator[Removal]:
    """After each of REMOVED held-out texts, the mean over their positions of what follows where the direction of the
    probe, that of its control, or one of RANDOM others is taken out of one layer."""
    model = checkpoint.model
    random = torch.randn(RANDOM, model.config.d_model, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    directions = [
        probes.direction(layer),
        probes.direction(layer, control=True),
        *(random / random.norm(dim=1)[:, None]),
    ]
    names = ("probe", "control", *(f"random {number + 1}" for number in range(RANDOM)))
    edits = [probes.project_out(layer, one) for one in directions if one.norm() > 0]
    names = tuple(name for name, one in zip(names, directions, strict=True) if one.norm() > 0)
    kl, loss, positions, tokens = torch.zeros(len(edits)).double(), torch.zeros(1 + len(edits)).double(), 0, 0
    for texts, reading in enumerate(held_out_readings(rows), 1):
        base = run(model, reading.read, target=reading.target)
        ids, plain = base.ids[0, 1:].cpu(), predictions(base)
        changed = [
            predictions(run(model, reading.read, ["logits"], [edit], base, target=reading.target)) for edit in edits
        ]
        kl += torch.stack([(plain.exp() * (plain - one)).sum(-1).sum() for one in changed])
        positions += len(plain)
        if predicts_next(checkpoint):
            loss -= torch.stack([one[:-1].gather(1, ids[:, None]).sum() for one in (plain, *changed)])
            tokens += len(ids)
        each = loss / (tokens or math.nan)
        yield Removal(names, kl / positions, each[1:], float(each[0]), texts)


def held_out_readings(rows: LabelledRows) -> list[Reading]:
    numbers = sorted(set(rows.text[rows.held_out].tolist()))[:REMOVED]
    return [rows.readings[number] for number in numbers]


def predictions(trace: Trace) -> Tensor:
    """ln p of what the head chooses among at each of its rows, row candidate."""
    logits = trace["logits"][0].double().cpu()
    return logits.reshape(-1, logits.shape[-1]).log_softmax(-1)


# --- of a checkpoint ---


trained = LruCache[SharedWork[Probes]](4 * STREAMS)
removed = LruCache[SharedWork[Removal]](2**22)


def probing_of(checkpoint: Checkpoint, label: str, corpus: Corpus | None = None) -> SharedWork[Probes]:
    """The work that fits the probes of a checkpoint. Raises ValueError as `label_rows`."""
    key = checkpoint.model, label, corpus and corpus.digest
    if (known := trained.find(key)) is not None:
        return known
    rows, hooks = label_rows(checkpoint, label, corpus), stream_hooks(checkpoint.model)
    width = checkpoint.model.config.d_model
    first = no_probes(rows, hooks, width)
    work = SharedWork(train_probes(checkpoint, rows), len(rows.readings) + len(hooks), first)
    return trained.keep(key, work, 4 * len(rows.text) * len(hooks) * width)  # of the streams, while it is at work


def find_probes(checkpoint: Checkpoint, label: str, corpus: Corpus | None = None) -> Probes:
    """Probes of a label, by its name in `label_kinds`, or OF_FILE of a LabelledCorpus, on a corpus; of None, on the
    shipped data. Raises ValueError as `label_rows`."""
    return probing_of(checkpoint, label, corpus).reach()


def removing_of(checkpoint: Checkpoint, label: str, layer: int, corpus: Corpus | None = None) -> SharedWork[Removal]:
    """The work that measures a removal. Raises ValueError as `label_rows` and `Probes.direction`."""
    key = checkpoint.model, label, layer, corpus and corpus.digest
    if (known := removed.find(key)) is not None:
        return known
    rows, probes = label_rows(checkpoint, label, corpus), find_probes(checkpoint, label, corpus)
    probes.direction(layer)
    first = Removal((), torch.zeros(0), torch.zeros(0), math.nan, 0)
    steps = SharedWork(remove_directions(checkpoint, rows, probes, layer), len(held_out_readings(rows)), first)
    return removed.keep(key, steps, 2**10)


def measure_removal(checkpoint: Checkpoint, label: str, layer: int, corpus: Corpus | None = None) -> Removal:
    """What the model does without the direction of a probe of `layer`, on held-out texts. Raises ValueError as
    `removing_of`."""
    return removing_of(checkpoint, label, layer, corpus).reach()

"""Adapting: a low-rank change opened up, the loss L2 + lambda L1, and a reward that is optimised too far."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.data.kinds.sentiment import Sentiment
from engine.edits import ApplyAdapter
from engine.generation.few_shot import add_instruction
from engine.generation.generate import generate
from engine.generation.instructions import answer_behind
from engine.json_text import parse_json
from engine.model.config import OutputHead
from engine.model.layers.lora import Adapter, list_linears, merge
from engine.model.transformer import Transformer
from engine.places import ASSETS
from engine.runtime import library
from engine.runtime.batch import batch
from engine.runtime.run import run
from engine.scoring.examples import Examples
from engine.scoring.score import score
from engine.tokenizers.encoding import Encoding

RECORDED = ASSETS / "preferences" / "recorded"
TINY = 1e-6  # of the largest singular value: below it is rounding

# --- LoRA ---


@dataclass(frozen=True)
class LowRankChange:
    """Matrix `w` (out in) and its change (alpha/r) B A: `a` is rank in, `b` is out rank, `delta` out in."""

    w: Tensor
    a: Tensor
    b: Tensor
    scale: float

    @cached_property
    def singular(self) -> Tensor:
        """Singular values of the change, the largest first; those beyond its rank are rounding."""
        return torch.linalg.svdvals(self.scale * (self.b.double() @ self.a.double()))

    @property
    def delta(self) -> Tensor:
        return self.scale * (self.b @ self.a)

    @property
    def rank(self) -> int:
        return int((self.singular > TINY * self.singular.max()).sum())

    @property
    def thin(self) -> tuple[Tensor, Tensor]:
        """A and B without the columns of B that are all zero and the rows of A they would read. A file that has one
        matrix for queries, keys and values makes room for all three in each."""
        used = self.b.any(0)
        return self.a[used], self.b[:, used]

    @property
    def used(self) -> int:
        return len(self.thin[0])


@torch.no_grad()
def open_lora(checkpoint: Checkpoint, adapter: Adapter, name: str) -> LowRankChange:
    """A matrix and its change (Hu et al. 2022, LoRA, section 4.1). Raises KeyError for a matrix without one."""
    a, b = adapter.matrices[name]
    return LowRankChange(list_linears(checkpoint.model)[name].weight.detach(), a, b, adapter.scale_of(name))


class ParameterCounts(NamedTuple):
    """Numbers of A and B, of the matrices they change, and of the whole model."""

    adapter: int
    matrices: int
    model: int


def count_lora(checkpoint: Checkpoint, adapter: Adapter) -> ParameterCounts:
    """Counts; where B has columns of zeros, for which its file has room, they and the rows of A they read are not
    counted."""
    linears = list_linears(checkpoint.model)
    pairs = {name: open_lora(checkpoint, adapter, name) for name in adapter.matrices}
    thin = sum(one.used * (one.a.shape[1] + len(one.b)) for one in pairs.values())
    wide = sum(linears[name].weight.numel() for name, one in pairs.items() if one.used)
    return ParameterCounts(thin, wide, sum(parameter.numel() for parameter in checkpoint.model.parameters()))


def continue_text(checkpoint: Checkpoint, prompt: str, adapter: Adapter, strength: float, most: int) -> str:
    """Text that the model writes after a prompt, always the likeliest token, with W + strength (alpha/r) B A."""
    edits = [ApplyAdapter.of(adapter, strength)] if strength else []
    text = prompt
    for step in generate(checkpoint, prompt, most, greedy=True, edits=edits):
        text = step.text
    return text


def merge_gap(checkpoint: Checkpoint, encoding: Encoding, adapter: Adapter, strength: float) -> float:
    """Largest difference of logits between a run with the adapter beside W, and one of W + strength (alpha/r) B A."""
    beside = run(checkpoint.model, encoding, ["logits"], [ApplyAdapter.of(adapter, strength)])["logits"]
    merged = run(merge(checkpoint.model, {adapter: strength}), encoding, ["logits"])["logits"]
    return float((beside - merged).abs().max())


# --- A separator ---


class PromptAnswer(NamedTuple):
    """Pieces of a prompt, the id of the separator that ends it (None without one), and what the model wrote behind."""

    pieces: tuple[str, ...]
    separator: int | None
    written: str


def answer_prompt(checkpoint: Checkpoint, text: str, separator: str, most: int = 24) -> PromptAnswer:
    """Greedy continuation of a text and a separator such as [toFrench], "" for none: the task is a token, not a head
    (Radford et al. 2018, section 3.3, on delimiters in the input)."""
    tokenizer = checkpoint.tokenizer
    assert tokenizer is not None
    prompt = add_instruction(text, separator) if separator else text.strip()
    new = [step.id for step in generate(checkpoint, prompt, most, greedy=True)]
    number = tokenizer.special_tokens[separator] if separator else None
    return PromptAnswer(tuple(tokenizer.encode(prompt).pieces), number, answer_behind(checkpoint, new))


# --- L2 + lambda L1 ---


class Losses(NamedTuple):
    """Losses in nats: of the label (L2), of the text's next tokens (L1), and L2 + lambda L1."""

    label: float
    language: float
    total: float


def objective(model: Transformer, ids: Sequence[int], label: int, weight: float) -> dict[str, Tensor]:
    """L2 + lambda L1 of one text (Radford et al. 2018, section 3.2, equation 5): "loss", "label_loss" and
    "language_loss"."""
    read = torch.tensor([list(ids)])
    following = torch.cat([read[:, 1:], torch.full((1, 1), -100)], 1)  # the last token is asked for nothing
    examples = Examples({"ids": read}, torch.tensor([label]), following)
    return score(model.forward_with_pooled(read), examples, language_weight=weight)


@lru_cache(maxsize=2)
def with_label_head(name: str, texts: int = 96) -> Transformer:
    """A decoder with a layer over two labels beside its language head: "ends badly", "ends well", learned from `texts`
    small stories on the body as it is."""
    base = library.checkpoint(name)
    assert base.tokenizer is not None
    config = replace(base.config, head=OutputHead("sequence", classes=2, read="last", bias=False, language=True))
    model = Transformer(config)
    model.load_state_dict(base.model.state_dict(), strict=False)
    stories = list(islice(Sentiment(documents=texts).texts("train", 0), texts))
    ids, real, _ = batch([base.tokenizer.encode(one.text) for one in stories], torch.device("cpu"))
    with torch.no_grad():
        states = model.forward_resid(ids, padding=real)  # batch pos d
    last = torch.full((texts,), -1) if real is None else real.long().sum(1) - 1
    weight = fit_layer(states[torch.arange(texts), last], torch.tensor([one.label for one in stories]))
    model.get_parameter("head.weight").data.copy_(weight)
    return model.eval()


def fit_layer(x: Tensor, labels: Tensor, shrink: float = 1e-2) -> Tensor:
    """A layer over two labels (class d) for vectors (text d): least squares to +1 and -1, with weights kept small."""
    wanted = torch.stack([1.0 - 2 * labels, 2.0 * labels - 1], 1)
    squares = x.T @ x
    return torch.linalg.solve(squares + shrink * squares.trace() * torch.eye(x.shape[1]) / x.shape[1], x.T @ wanted).T


def fine_tune(
    name: str, ids: Sequence[int], label: int, weight: float, steps: int, watched: Sequence[int], rate: float = 3e-4
) -> list[tuple[Losses, float]]:
    """Trains all weights on one text and its label: losses before and after each step, with the next-token loss of
    another text that is only `watched`."""
    model = copy.deepcopy(with_label_head(name))
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    found = []
    for _ in range(steps + 1):
        scores = objective(model, ids, label, weight)
        with torch.no_grad():
            apart = float(objective(model, watched, label, 0.0)["language_loss"])
        values = (float(scores[one].detach()) for one in ("label_loss", "language_loss", "loss"))
        found.append((Losses(*values), apart))
        optimiser.zero_grad()
        scores["loss"].backward()
        optimiser.step()
    return found


# --- A reward ---


class PolicyMeasurement(NamedTuple):
    """Means over held-out prompts at a step: the `reward`, KL from the model it began with, in nats an answer, and the
    share of pairs of neighbouring words that are `distinct`."""

    step: int
    reward: float
    kl: float
    distinct: float


@lru_cache(maxsize=8)
def recorded_reward(run: str) -> tuple[PolicyMeasurement, ...]:
    """The held-out measurements of a shipped run that learned from a reward: "ppo" or "ppo-free"."""
    lines = read_lines(RECORDED / run / "metrics.jsonl")
    names = ("held_out_reward", "held_out_kl", "held_out_distinct")
    return tuple(
        PolicyMeasurement(line["step"], *(line["also"][one] for one in names))
        for line in lines
        if names[0] in line["also"]
    )


@lru_cache(maxsize=8)
def recorded_answers(run: str) -> dict[int, list[dict[str, object]]]:
    """Answers to the same prompts by step, each with its `reward` and `kl`."""
    return {line["step"]: line["samples"] for line in read_lines(RECORDED / run / "samples.jsonl")}


def read_lines(file: Path) -> list[dict[str, Any]]:
    return [parse_json(line) for line in file.read_text(encoding="utf-8").splitlines()]

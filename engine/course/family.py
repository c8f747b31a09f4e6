"""The family: one block with switches, where the parameters of each member are, and tasks as sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from engine.analysis.sizes import Formula, Part, count, parameters
from engine.analysis.sizes.formula import total
from engine.analysis.switches import differing_switches, sizes, with_sizes
from engine.checkpoints import Checkpoint
from engine.model.config import ModelConfig, OutputHead
from engine.model.presets import NAMED
from engine.runtime.run import run

FAMILY = ("bert-base", "gpt", "gpt2", "gpt3-175b", "t5-base", "glm-large", "vit-b-16", "imagegpt-s")
GROUPS = ("input", "queries, keys, values", "W_O", "MLP", "biases", "norms", "pooler and head")


def resize(config: ModelConfig, layers: int, d_model: int) -> ModelConfig:
    """The model with so many layers of that width, its MLP in proportion. Raises ValueError for a width that its heads
    do not divide."""
    d_mlp = sizes(config)["d_mlp"] * d_model // config.d_model
    return with_sizes(config, layers, d_model, config.attention.heads, d_mlp)


def group_of(part: Part) -> str:
    block = part.block.rpartition(".")[2]
    if block in ("pooler", "next_sentence", "head"):
        return "pooler and head"
    if part.role == "norm":
        return "norms"
    if block not in ("attn", "cross_attn", "mlp"):
        return "input"
    if part.role == "bias":
        return "biases"
    if block == "mlp":
        return "MLP"
    return "W_O" if part.name.endswith("W_O") else "queries, keys, values"


def count_by_group(config: ModelConfig) -> dict[str, Formula]:
    """All parameters of a model, each in one group, as formulas whose values add up to the exact count."""
    found: dict[str, list[Formula]] = {group: [] for group in GROUPS}
    for part in parameters(config):
        found[group_of(part)].append(part.formula)
    summed = {group: total(formulas) for group, formulas in found.items() if formulas}
    return {group: formula for group, formula in summed.items() if formula.value}


def relatives(name: str) -> list[tuple[int, str]]:
    """The other members, the one with the fewest switches that differ first."""
    own = NAMED[name].config
    return sorted((len(differing_switches(own, NAMED[other].config)), other) for other in FAMILY if other != name)


def head_parameters(config: ModelConfig, classes: int) -> int:
    """Parameters that a linear layer over `classes` adds to the body of a model: classes (d + 1). An answer in the text
    takes 2, its start and its end (Devlin et al. 2019, section 4.2)."""
    body = replace(config, head=OutputHead("none"))
    return count(replace(body, head=OutputHead("token", classes=classes))) - count(body)


def rank_continuations(checkpoint: Checkpoint, prompt: str, candidates: tuple[str, ...]) -> Tensor:
    """Share of each candidate (candidate) as what goes on from a prompt: a softmax over the mean log-probability of
    their tokens. So a language model chooses without training (Radford et al. 2018, section 5, "zero-shot behaviors").
    """
    tokenizer = checkpoint.tokenizer
    assert tokenizer is not None
    before = list(tokenizer.encode(prompt).ids)
    rows = [before + list(tokenizer.encode(f" {one}", special=False).ids) for one in candidates]
    log_p = run(checkpoint.model, rows, keep=["logits"])["logits"].log_softmax(-1)  # batch pos vocab
    return torch.stack([mean_log_probability(log_p[at], row, len(before)) for at, row in enumerate(rows)]).softmax(-1)


def mean_log_probability(log_p: Tensor, ids: Sequence[int], start: int) -> Tensor:
    """Mean log-probability of the tokens from `start` on, each taken from `log_p` (pos vocab) at the position before
    it."""
    return log_p[torch.arange(start - 1, len(ids) - 1), list(ids[start:])].mean()


def calibrate(with_text: Tensor, without: Tensor) -> Tensor:
    """Effect of the text on a choice: probabilities divided by those without the text, normalised to sum to 1 (Zhao et
    al. 2021, "Calibrate before use", section 5)."""
    ratio = with_text / without
    return ratio / ratio.sum()

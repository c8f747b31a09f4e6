"""A model from a config and a file of weights, with every tensor accounted for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import torch
from torch import Tensor

from engine.checkpoints.family import Family
from engine.checkpoints.report import IncompleteWeights, Report, TensorRow
from engine.checkpoints.translate import inverse, translate
from engine.checkpoints.weights import Weights
from engine.config import ModelConfig
from engine.model import Transformer

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
Shapes = Mapping[str, tuple[int, ...]]


def assemble(family: Family, config: ModelConfig, weights: Weights, dtype: torch.dtype) -> tuple[Transformer, Report]:
    """The model stands on the meta device until its weights are put into it, so nothing is initialised for
    nothing.

    Raises ValueError for a wrong shape or a number that is not finite, IncompleteWeights for tensors that did
    not come.
    """
    check_plausible(config, weights.shapes)
    model = without_memory(config)
    names = names_in_file(family, model, weights.shapes)
    if config.tied and not really_tied(family, weights, names):
        model = without_memory(replace(config, tied=False))
    report = account(family, model, names, weights.shapes)
    check_twins(family, model, weights, names)
    rows = family.bind(model.state_dict())
    stored = {name: finite(names[name], weights[names[name]], dtype) for row in rows for name in row.source}
    model.load_state_dict(dict(translate(stored, rows, model.config)), assign=True)
    return model.requires_grad_(False).eval(), report


def without_memory(config: ModelConfig) -> Transformer:
    with torch.device("meta"):
        return Transformer(config)


def check_plausible(config: ModelConfig, shapes: Shapes) -> None:
    """That the file can hold such a model at all, found before one of a billion layers or heads is built."""
    stored = sum(map(prod, shapes.values()))
    stacks = [config] if config.encoder is None else [config, config.encoder_stack]
    layers = sum(stack.layers for stack in stacks)
    heads = sum(stack.layers * (stack.attention.heads + stack.kv_heads) * stack.d_head for stack in stacks)
    least = config.d_model * (config.vocab_size + heads)
    if layers > len(shapes) or least > stored:
        raise ValueError(
            f"config.json describes {layers} layers and at least {least} numbers, but the weights "
            f"hold {len(shapes)} tensors and {stored} numbers; they are not of one model."
        )


def names_in_file(family: Family, model: Transformer, shapes: Shapes) -> dict[str, str]:
    """The family's name of each tensor -> its name in the file, which may lack the optional prefix.

    Of two tensors that are one, a file may hold either, or both.
    """
    same = {**twins(family, model), **(family.tied if model.config.tied else {})}
    known = sources(family, model) | family.tied.keys() | same.keys()
    names: dict[str, str] = {}
    for name in shapes:
        theirs = next((n for n in family.spellings(name) if n in known or family.drops(n)), None)
        if theirs is not None:
            names.setdefault(theirs, name)
    for one, other in same.items():
        if one in names:
            names.setdefault(other, names[one])
    return names


def sources(family: Family, model: Transformer) -> set[str]:
    return {name for row in family.bind(model.state_dict()) for name in row.source}


def twins(family: Family, model: Transformer) -> dict[str, str]:
    """The family's twins, without those that in this model are tensors of their own."""
    own = sources(family, model)
    return {one: other for one, other in family.twins.items() if one not in own}


def check_twins(family: Family, model: Transformer, weights: Weights, names: Mapping[str, str]) -> None:
    for one, other in twins(family, model).items():
        if one in names and other in names and not torch.equal(weights[names[one]], weights[names[other]]):
            raise ValueError(
                f"{names[one]} and {names[other]} must be equal in a {family.name} model, and are not: "
                "Loupe has one tensor for both."
            )


def really_tied(family: Family, weights: Weights, names: Mapping[str, str]) -> bool:
    """Whether the tensors that the config calls tied are equal where both were stored.

    Where they are not, the file is believed and not the config, as transformers does.
    """
    both = [(names[one], names[other]) for one, other in family.tied.items() if one in names and other in names]
    return all(one == other or torch.equal(weights[one], weights[other]) for one, other in both)


def account(family: Family, model: Transformer, names: Mapping[str, str], shapes: Shapes) -> Report:
    """A row for every tensor that is expected or came. Raises ValueError where the model cannot be filled."""
    ours = {name: row.target for row in family.bind(model.state_dict()) for name in row.source}
    expected = expected_shapes(family, model)
    rows = []
    for name, shape in expected.items():
        stored = names.get(name, name)
        came = shapes.get(stored, shape)
        if came != shape:
            raise ValueError(f"{stored} must have shape {shape} by config.json, got {came}; they are not of one model.")
        rows.append(TensorRow(stored, "loaded" if name in names else "missing", shape, ours[name]))
    for one, other in twins(family, model).items():
        if other in expected and one in names and names[one] != names.get(other):
            rows.append(TensorRow(names[one], "tied", shapes[names[one]], ours[other]))
    if model.config.tied:
        for one, other in family.tied.items():
            if names.get(one) != names.get(other):  # else the row of `other` stands for both
                rows.append(TensorRow(names.get(one, one), "tied", expected[other], ours[other]))
    taken = {row.name for row in rows}
    dropped = {stored for name, stored in names.items() if family.drops(name)}
    for name in (n for n in shapes if n not in taken):
        rows.append(TensorRow(name, "dropped" if name in dropped else "unexpected", shapes[name]))
    return judged(Report(tuple(rows)), family)


def expected_shapes(family: Family, model: Transformer) -> dict[str, tuple[int, ...]]:
    """The shapes that the family's tensors must have in a file of this model."""
    state = model.state_dict()
    rows = family.bind(state)
    unfilled = state.keys() - {name for row in rows for name in row.target}
    if unfilled:
        raise ValueError(
            f"the {family.name} family must have a row for every tensor, and has none for {min(unfilled)}."
        )
    return {name: tuple(tensor.shape) for name, tensor in translate(state, inverse(rows), model.config)}


def judged(report: Report, family: Family) -> Report:
    missing, unexpected = report.of("missing"), report.of("unexpected")
    if missing:
        raise IncompleteWeights(
            f"the weights must hold {missing[0].name} and {len(missing) - 1} more that are not there; "
            "is a shard absent, or the config of another model?",
            report,
        )
    if not unexpected:
        return report
    names = ", ".join(row.name for row in unexpected[:3])
    note = f"{len(unexpected)} tensors have no place in a {family.name} model and were left out: {names}."
    return replace(report, notes=(note,))


def finite(name: str, tensor: Tensor, dtype: torch.dtype) -> Tensor:
    if tensor.dtype not in FLOATS:
        raise ValueError(
            f"{name} must be float64, float32, float16 or bfloat16, got {tensor.dtype}; dequantise it first."
        )
    if (
        not torch.isfinite(tensor.sum()) and not torch.isfinite(tensor).all()
    ):  # the sum alone is quick, and may overflow
        raise ValueError(
            f"{name} must hold finite numbers, has NaN or infinity: its training diverged, or it is damaged."
        )
    return tensor.to(dtype)

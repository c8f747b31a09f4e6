"""The count on the back of an envelope, and what it loses on the way to the exact one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from engine.analysis.sizes.formula import Formula, Integer, factor_out, total
from engine.analysis.sizes.parameters import Part, parameters
from engine.analysis.sizes.shape import stacks
from engine.model.config import ModelConfig


@dataclass(frozen=True)
class Step:
    """Term to add, with its sign, to the estimates so far; `why` it was not in them."""

    name: str
    formula: Formula
    why: str

    @property
    def count(self) -> int:
        return self.formula.value


def envelope(config: ModelConfig) -> list[Step]:
    """The estimate 11 L d^2 + V d, then every part that it leaves out; together exactly the model's parameters.

    The estimate counts, in each layer, the three matrices that make queries, keys and values and the two of an MLP four
    times as wide as the stream, and one table of tokens. For BERT-base that is 101.3 million of 109.5. It forgets W_O,
    which brings it to the better known 12 L d^2 + V d (Kaplan et al. 2020, table 1), and all that is not a matrix
    product. Steps that change nothing are left out.
    """
    parts, layers, d = parameters(config), depth(config), stacks(config)[0].d
    square = layers * d * d
    table = sum_parts(parts, lambda part: part.name.startswith("tokens"))
    attention = sum_parts(parts, lambda part: part.block.rpartition(".")[2] == "attn", "matrix")
    mlp = sum_parts(parts, lambda part: part.block.endswith("mlp"), "matrix")
    steps = [
        Step("estimate", 11 * square + table, "queries, keys, values, an MLP of width 4d, and the table of tokens"),
        Step("W_O", square, "the fourth matrix of attention, which joins the heads"),
        Step(
            "widths of the heads",
            factor_out(attention - 4 * square),
            "heads that together are not d wide, or that share keys",
        ),
        Step("cross-attention", across(parts), "four more matrices in each layer of the decoder"),
        Step("width of the MLP", factor_out(mlp - 8 * square), "a width other than 4d, a gate, or experts"),
    ]
    return [step for step in steps + rest(parts) if step.count]


def rest(parts: list[Part]) -> list[Step]:
    """Steps for all that is no matrix of a block."""

    def in_blocks(*blocks: str) -> Callable[[Part], bool]:
        return lambda part: part.block.rpartition(".")[2] in blocks

    sublayers = in_blocks("attn", "cross_attn", "mlp")
    return [
        Step("patches and [CLS]", sum_parts(parts, in_blocks("patches")), "what reads a picture in place of tokens"),
        Step("map of the tokens", sum_parts(parts, lambda part: part.name.startswith("map")), "from their width to d"),
        Step("positions", sum_parts(parts, in_blocks("positions")), "a vector for each place"),
        Step("relative positions", sum_parts(parts, in_blocks("relative")), "a number for each distance and head"),
        Step("distances", sum_parts(parts, in_blocks("distances"), "matrix"), "a vector for each of them"),
        Step("segments", sum_parts(parts, in_blocks("segments")), "a vector for each segment"),
        Step("biases", sum_parts(parts, sublayers, "bias"), "of attention and MLP"),
        Step("norms", sum_parts(parts, lambda part: part.block != "head", "norm"), "their weights and biases"),
        Step("pooler", sum_parts(parts, in_blocks("pooler")), "a dense layer on the first position"),
        Step("maps of the vector", sum_parts(parts, in_blocks("vector")), "behind what is pooled of the text"),
        Step("next sentence", sum_parts(parts, in_blocks("next_sentence")), "the second head"),
        Step("head", sum_parts(parts, in_blocks("head")), "what it does not share with the table of tokens"),
    ]


def depth(config: ModelConfig) -> Formula:
    return total([stack.blocks for stack in stacks(config)])


def across(parts: list[Part]) -> Formula:
    return sum_parts(parts, lambda part: part.block.endswith("cross_attn"), "matrix")


def sum_parts(parts: Iterable[Part], wanted: Callable[[Part], bool], role: str | None = None) -> Formula:
    return total([Integer(0)] + [part.formula for part in parts if wanted(part) and role in (None, part.role)])

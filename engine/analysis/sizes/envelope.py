"""The count on the back of an envelope, and what it loses on the way to the exact one."""

from __future__ import annotations

from collections.abc import Callable
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
    layers, d = total([stack.blocks for stack in stacks(config)]), stacks(config)[0].d
    square = layers * d * d
    sums: dict[str, Formula] = {group.name: Integer(0) for group in GROUPS}
    for part in parameters(config):
        group = next(group for group in GROUPS if group.has(part, part.block.rpartition(".")[2]))
        sums[group.name] = total([sums[group.name], part.formula])
    steps = [
        Step("estimate", 11 * square + sums.pop("tokens"), BASIS),
        Step("W_O", square, "the fourth matrix of attention, which joins the heads"),
        Step("widths of the heads", factor_out(sums.pop("attention") - 4 * square), WIDTHS),
        Step("cross-attention", sums.pop("cross-attention"), "four more matrices in each layer of the decoder"),
        Step("width of the MLP", factor_out(sums.pop("MLP") - 8 * square), "a width other than 4d, a gate, or experts"),
    ]
    steps += [Step(group.name, sums[group.name], group.why) for group in GROUPS if group.name in sums]
    return [step for step in steps if step.count]


@dataclass(frozen=True)
class Group:
    """Parts that one step counts, where no group before has them: `has` is asked with a part and its block's name."""

    name: str
    has: Callable[[Part, str], bool]
    why: str = ""


def within(*blocks: str, role: str | None = None) -> Callable[[Part, str], bool]:
    return lambda part, block: block in blocks and role in (None, part.role)


PATCHES, RELATIVE = "distances of patches", "a number for each distance and head"
BASIS = "queries, keys, values, an MLP of width 4d, and the table of tokens"
WIDTHS = "heads that together are not d wide, or that share keys"
SUBLAYERS = "attn", "cross_attn", "mlp"
GROUPS = (
    Group("tokens", lambda part, _: part.name.startswith("tokens")),
    Group("relative positions", lambda part, block: block == "relative" or part.name == PATCHES, RELATIVE),
    Group("attention", within("attn", role="matrix")),
    Group("cross-attention", within("cross_attn", role="matrix")),
    Group("MLP", within("mlp", role="matrix")),
    Group("patches and [CLS]", within("patches"), "what reads a picture in place of tokens"),
    Group("convolutions", within("sound"), "what reads a sound in place of tokens"),
    Group("map of the tokens", lambda part, _: part.name.startswith("map"), "from their width to d"),
    Group("positions", within("positions"), "a vector for each place"),
    Group("distances", within("distances", role="matrix"), "a vector for each of them"),
    Group("segments", within("segments"), "a vector for each segment"),
    Group("biases", within(*SUBLAYERS, role="bias"), "of attention and MLP"),
    Group("maps of the vector", within("vector"), "behind what is pooled of the whole"),
    Group("head", within("head"), "what it does not share with the table of tokens"),
    Group("norms", lambda part, _: part.role == "norm", "their weights and biases"),
    Group("scales", lambda part, _: part.name.startswith("scale of"), "one for each component that a layer adds"),
    Group("sinks", within(*SUBLAYERS, role="vector"), "what each head's softmax counts besides the keys"),
    Group("pooler", within("pooler"), "a dense layer on the first position"),
    Group("next sentence", within("next_sentence"), "the second head"),
)

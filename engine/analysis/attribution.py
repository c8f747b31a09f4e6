"""Why this token: a logit as the exact sum of what every part of the model added to it.

Direct logit attribution (Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits"; Wang et al. 2022,
"Interpretability in the Wild", section 3), by the terms of `engine.analysis.writers`. An activation between the stream
and the logits, of a masked head or a pooler, is held still like a norm's scale, as what each unit gave divided by what
it was given. A soft cap comes after the sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from engine.analysis.logit_lens import check_lens
from engine.analysis.text_vectors import last_hook
from engine.analysis.writers import SUBLAYERS, Sublayer, Terms, Walk, Writer, hold_norm, weigh_heads
from engine.edits import Side, SilenceHeads
from engine.edits.edit import ALL_REAL, Edit, RealTokens
from engine.model.hooks import ADDED, HookPoint
from engine.model.layers.attention import Attention
from engine.model.layers.head import AveragedHead, ClassHead, LanguageHead, MeanHead
from engine.model.transformer import Transformer
from engine.runtime.run import run
from engine.runtime.trace import Trace


@dataclass(frozen=True)
class Attribution:
    """`values` is what each writer added to the logit, in logits, and adds up to `logit`, which is the model's own
    before its soft cap, if it has one. `covectors` are what of each sublayer's output counts, by the position that the
    head read."""

    values: dict[Writer, float]
    logit: float
    covectors: dict[int, dict[Sublayer, Tensor]] = field(repr=False, default_factory=dict)

    @property
    def heads(self) -> dict[Writer, float]:
        """Values of the heads, the largest of either sign first."""
        found = [(writer, value) for writer, value in self.values.items() if writer.head is not None]
        return dict(sorted(found, key=lambda one: -abs(one[1])))


@dataclass(frozen=True)
class LogitReading:
    """Reading by a logit of the stream behind the final norm at one position: `covector` is 1 d_model, and `constant`
    what it adds whatever stands there."""

    pos: int
    covector: Tensor
    constant: Tensor


def read_hooks(model: Transformer) -> tuple[str, ...]:
    """Hooks that `attribute` reads, and the values: vectors, of which a long text has few enough to keep."""
    unread = "key", "d_mlp"
    ends = (".q", ".k", "_rotated")
    return tuple(
        name
        for name, hook in model.hooks.items()
        if name not in model.requested and not {*hook.axes} & {*unread} and not name.endswith(ends)
    )


@torch.no_grad()
def attribute(model: Transformer, trace: Trace, row: int, id: int, against: int | None = None) -> Attribution:
    """Splits the logit of candidate `id` (a token, class or position) at `row` of the first text's logits; with
    `against` the difference of the two, in which what both have in common is gone.

    Raises ValueError for a model without a head that predicts, for a row or candidate that it does not have, and for
    two candidates that are the same.
    """
    check_lens(model.config)
    check_candidates(trace, row, (id,) if against is None else (id, against), model.config.head.kind)
    readings = list(read_logit(model, trace, row, id))
    if against is not None:
        readings += [minus(one) for one in read_logit(model, trace, row, against)]
    terms, covectors = Terms(), dict[int, dict[Sublayer, Tensor]]()
    for one in merge(readings):
        walk = Walk(model, trace, one.pos, "decoder" if model.config.encoder else "")
        read, constant = through_final_norm(walk, one.covector)
        found = walk.back(read, model.config.layers)
        found.add(Writer("bias"), one.constant + constant)
        covectors[one.pos] = found.covectors
        terms += found
    values = {writer: float(value) for writer, value in terms.values.items()}
    return Attribution(values, sum(values.values()), covectors)


def check_candidates(trace: Trace, row: int, ids: tuple[int, ...], kind: str) -> None:
    logits = trace["logits"][0]
    rows, candidates = (1, len(logits)) if logits.dim() == 1 else logits.shape
    if kind == "span":
        rows, candidates = candidates, rows
    if not 0 <= row < rows:
        raise ValueError(f"a row must be 0 to {rows - 1}, got {row}.")
    for id in ids:
        if not 0 <= id < candidates:
            raise ValueError(f"a candidate must be 0 to {candidates - 1}, got {id}; choose one that the model knows.")
    if len({*ids}) != len(ids):
        raise ValueError("two candidates must differ, got the same twice; choose another one to compare with.")


def through_final_norm(walk: Walk, read: Tensor) -> tuple[Tensor, Tensor]:
    stack, layers = walk.stack, len(walk.stack.blocks)
    norm = stack.final_norm
    if isinstance(norm, nn.Identity):
        return read, read.new_zeros(len(read))
    return hold_norm(norm, read, walk.value(f"blocks.{layers - 1}.resid_post"))


def minus(one: LogitReading) -> LogitReading:
    return replace(one, covector=-one.covector, constant=-one.constant)


def merge(readings: list[LogitReading]) -> Iterator[LogitReading]:
    """Adds up the readings of each position."""
    for pos in dict.fromkeys(one.pos for one in readings):
        same = [one for one in readings if one.pos == pos]
        yield LogitReading(pos, torch.stack([one.covector for one in same]).sum(0), sum(one.constant for one in same))  # type: ignore[arg-type]


# --- heads of a model ---


def read_logit(model: Transformer, trace: Trace, row: int, id: int) -> Iterator[LogitReading]:
    """The readings of the stream that add up to a logit."""
    head, kind = model.head, model.config.head.kind
    assert head is not None
    length = trace[last_stream(model)].shape[1]
    if kind == "span":
        assert isinstance(head, ClassHead)
        yield LogitReading(id, *through_classes(head, trace, row, id))
    elif kind in ("language", "masked", "token"):
        pos = range(length)[trace.logits_at][row]
        if isinstance(head, LanguageHead):
            yield LogitReading(pos, *through_vocabulary(head, model.table, trace, row, id))
        else:
            assert isinstance(head, ClassHead)
            yield LogitReading(pos, *through_classes(head, trace, id, row))
    elif isinstance(head, AveragedHead):
        made: tuple[ClassHead | nn.Linear, ...] = (head, head.distilled)
        for pos, one in enumerate(made):
            yield LogitReading(pos, narrow(head, one.weight[id : id + 1].double()) / 2, bias_of(one, id) / 2)
    elif isinstance(head, MeanHead):
        real = torch.ones(length, dtype=torch.bool) if trace.padding is None else trace.padding[0]
        covector, constant = through_classes(head, trace, id, 0)
        count = int(real.sum())
        for pos in torch.nonzero(real).flatten().tolist():
            yield LogitReading(pos, covector / count, constant / count)
    elif model.vector is not None and model.config.head.read == "vector":
        assert isinstance(head, ClassHead)
        covector, constant = through_classes(head, trace, id, 0)
        if model.vector.norm is not None:
            covector, shift = hold_norm(model.vector.norm, covector, trace["vector.pooled"][0].double())
            constant = constant + shift
        last, kinds = trace[last_hook(model)], model.vector.kinds
        for pooled, part in zip(kinds, covector.chunk(len(kinds), -1), strict=True):
            shares = model.vector.weigh(pooled, last, trace.padding, trace.ids)[0].double()
            for pos in torch.nonzero(shares.any(-1)).flatten().tolist():
                yield LogitReading(pos, part * shares[pos], constant)
                constant = torch.zeros_like(constant)  # which is added once
    else:
        assert isinstance(head, ClassHead)
        covector, constant = through_classes(head, trace, id, 0)
        if model.pooler is not None:
            ratio = gain_of(trace["pooler.pre"][0], trace["pooler.out"][0])
            constant = constant + (covector * ratio) @ model.pooler.dense.bias.double()
            covector = (covector * ratio) @ model.pooler.dense.weight.double()
        yield LogitReading(pooled_position(model, trace, length), covector, constant)


def last_stream(model: Transformer) -> str:
    prefix = "decoder." if model.config.encoder else ""
    return f"{prefix}blocks.{model.config.layers - 1}.resid_post"


def pooled_position(model: Transformer, trace: Trace, length: int) -> int:
    """The position that stands for the whole text."""
    here = torch.arange(length, device=trace.ids.device)[None, :, None].expand(len(trace.ids), -1, -1)
    padding, read = trace.padding, trace.ids
    if trace.target is not None:
        padding, read = trace.target_padding, trace.ids if model.config.rereads else trace.target
    return int(model.pool_text(here, padding, read)[0, 0])


def through_vocabulary(
    head: LanguageHead, table: Tensor | None, trace: Trace, row: int, id: int
) -> tuple[Tensor, Tensor]:
    weight = table if head.weight is None else head.weight
    assert weight is not None
    read = weight[id : id + 1].double() * head.scale
    constant = read.new_zeros(1) if head.bias is None else head.bias[id : id + 1].double()
    read = narrow(head, read)
    if head.dense is None:
        return read, constant
    pre, post = (trace[f"head.{name}"][0, row].double() for name in ("pre", "post"))
    read, shift = hold_norm(head.norm, read, post)
    read = read * gain_of(pre, post)
    return read @ head.dense.weight.double(), constant + shift + dense_bias(head.dense, read)


def through_classes(head: ClassHead, trace: Trace, id: int, row: int) -> tuple[Tensor, Tensor]:
    read, constant = head.weight[id : id + 1].double(), bias_of(head, id)
    if head.dense is not None:
        at = (0,) if trace["head.pre"].dim() == 2 else (0, row)
        pre, post = (trace[f"head.{name}"][at].double() for name in ("pre", "post"))
        if head.norm is not None:
            read, shift = hold_norm(head.norm, read, post)
            constant = constant + shift
        read = read * gain_of(pre, post)
        constant = constant + dense_bias(head.dense, read)
        read = read @ head.dense.weight.double()
    return narrow(head, read), constant


def dense_bias(dense: nn.Linear, read: Tensor) -> Tensor:
    return read.new_zeros(len(read)) if dense.bias is None else read @ dense.bias.double()


def narrow(head: LanguageHead | ClassHead, read: Tensor) -> Tensor:
    return read if head.narrow is None else read @ head.narrow.weight.double()


def bias_of(made: ClassHead | nn.Linear, id: int) -> Tensor:
    return made.weight.new_zeros(1).double() if made.bias is None else made.bias[id : id + 1].double()


def gain_of(pre: Tensor, post: Tensor) -> Tensor:
    """Divides what an activation gave by what it was given; 0 where it was given nothing."""
    pre, post = pre.double(), post.double()
    return torch.where(pre == 0, torch.zeros_like(pre), post / pre)


# --- one head ---


@torch.no_grad()
def split_sources(
    model: Transformer, trace: Trace, found: Attribution, head: Writer, pattern: Tensor | None = None
) -> Tensor:
    """Splits the term of one head by the tokens that it read (key): its attention to the token times what
    the token's value weighs. Adds up to the head's own term, but where an edit changed that head's mixture. `pattern`
    (pos key) is the head's, of a run that does not hold it."""
    if head.head is None or head.layer is None:
        raise ValueError(f"only a head has sources, got {head.kind}; choose a head.")
    name = "cross_attn" if head.kind == "cross head" else "attn"
    prefix = "decoder." if model.config.encoder else ""
    block = model.get_submodule(f"{prefix}blocks.{head.layer}.{name}")
    assert isinstance(block, Attention)
    hook = f"{prefix}blocks.{head.layer}.{name}."
    v = trace[f"{hook}v"][0, :, head.head * block.kv_heads // block.heads].double()  # key d_head
    total = v.new_zeros(len(v))
    pattern = trace[f"{hook}pattern"][0, head.head] if pattern is None else pattern
    for pos, covectors in found.covectors.items():
        weighed = weigh_heads(covectors[head.layer, name], block)[0, head.head]
        total += pattern[pos].double() * (v @ weighed)
    return total


def silencer(model: Transformer, head: Writer) -> SilenceHeads:
    """Edit with which the z of a head is 0."""
    assert head.layer is not None and head.head is not None
    stack: Side | None = "decoder" if model.config.encoder else None
    return SilenceHeads(head.layer, [head.head], stack=stack, cross=head.kind == "cross head")


@dataclass(frozen=True)
class Hold(Edit, serialised=False):
    """Lets hooks hold `values`, whatever comes before them."""

    values: Mapping[str, Tensor]

    def touches(self) -> tuple[str, ...]:
        return tuple(self.values)

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        return self.values[hook.name].to(value)


@dataclass(frozen=True)
class Ablation:
    """Logits of a run, of the same without a head (its z is 0), and of that with all that later sublayers add held as
    it was: there the head lacks directly, and in what norms divide by, alone."""

    whole: Tensor
    without: Tensor
    held: Tensor


@torch.no_grad()
def ablate(model: Transformer, trace: Trace, head: Writer) -> Ablation:
    """Runs the same text again, twice, and once more where `trace` holds too little of it. The logits are those before
    a soft cap."""
    given, target = trace.encodings or trace.ids, trace.target_encodings or trace.target
    later, cap = list_later(model, head), model.config.head.softcap

    def again(keep: list[str], *more: Edit) -> Trace:
        edits = [*trace.edits, *more]
        return run(model, given, keep, edits, target=target, mask=trace.mask, logits_at=trace.logits_at)

    def logits(of: Trace) -> Tensor:
        found = of["logits"]
        return found if cap is None else cap * (found.double() / cap).atanh()

    needed, silent = ["logits", *later], silencer(model, head)
    whole = trace if all(name in trace for name in needed) else again(needed)
    without = again(["logits"], silent)
    held = again(["logits"], silent, Hold({name: whole[name] for name in later})) if later else without
    return Ablation(logits(whole), logits(without), logits(held))


def list_later(model: Transformer, head: Writer) -> list[str]:
    """Lists the hooks of what the sublayers behind a head add to its stream."""
    assert head.layer is not None
    prefix, own = "decoder." if model.config.encoder else "", "cross_attn" if head.kind == "cross head" else "attn"
    behind = [(head.layer, part) for part in SUBLAYERS[SUBLAYERS.index(own) + 1 :]]
    behind += [(layer, part) for layer in range(head.layer + 1, model.config.layers) for part in SUBLAYERS]
    named = ([f"{prefix}blocks.{layer}.{hook}" for hook in ADDED[part]] for layer, part in behind)
    return [found for names in named if (found := next((name for name in names if name in model.hooks), None))]

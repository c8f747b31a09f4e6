"""A window into one head of a long text: some neighbouring rows, the keys that matter to them, and every step exactly.

What a view of the window adds up over a row needs the keys that are left out too: what these add comes with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from engine.analysis.overview_cache import glances
from engine.analysis.sinks import Column, column
from engine.analysis.summarised_run import with_values
from engine.analysis.weights.circuit import attention_of, writing_rows
from engine.model.transformer import Transformer
from views.attention.attention import is_attention
from views.attention.long import LongContext
from views.core.questions import Answer
from views.core.run_context import HeadOfRun

ROWS = 48
KEYS = 64
KEYS_OF_SEVERAL = 128  # of several heads that stand side by side
SEVERAL = 12  # heads, as many as assets/views/attention/colours.js has colours for
OF_KEYS = ("k", "v", "k_norm.out", "k_rotated")  # what has a row for every key
SQUARES = ("scores", "capped", "bias", "c2p", "p2c", "mask", "masked_scores", "pattern")  # head pos key

Parts = dict[str, Tensor]  # by the last part of the hook's name


def window_of(
    long: LongContext, head: HeadOfRun, first: int, key: int | None, beside: Sequence[HeadOfRun] = ()
) -> Answer:
    """Each value of the attention at ROWS rows from `first` on and at the keys that `chosen` chooses.

    Arrays have their hook's name and axes with the one head alone; `temperature` has every head's. Beside them stand
    `weighted`, |pattern v W_O|, and `relative`, its shares of the whole row; by row `outside.share`, the weight on the
    keys that are not listed, `outside.top`, the largest of all the row's masked scores over the temperature, and
    `outside.total`, what the keys that are not listed add to the sum of e^(s - top). Of the heads `beside` this one,
    counted from 0, there are `beside.0.pattern`, row key, and `beside.0.share`, the weight on the keys not listed.
    """
    first = max(0, min(first, long.size(head)[0] - ROWS))
    seen = one_head(strip(long, head, first), head.head)
    others = [pattern_rows(long, one, first)[one.head] for one in beside]
    keys = chosen(seen["pattern"], key, others)
    block = head.hook.removesuffix("pattern")
    arrays = {f"{block}{part}": key_rows(part, value, keys) for part, value in seen.items()}
    arrays |= edited_cells(long, head, first, keys) | weight_by_value(long, head, seen, keys)
    arrays |= outside(seen, head.head, keys)
    for number, (one, pattern) in enumerate(zip(beside, others, strict=True)):
        drawn = head_parts(long, one, first, pattern, keys)
        arrays |= {f"beside.{number}.{part}": value for part, value in drawn.items()}
    dtype = str(seen["scores"].dtype).removeprefix("torch.")
    header = {"first": first, "count": seen["pattern"].shape[-1], "dtype": dtype}
    return Answer(arrays | {"keys": keys.int()}, header)


def chosen(pattern: Tensor, key: int | None, beside: Sequence[Tensor] = ()) -> Tensor:
    """Chooses the heaviest key of each row (of row key), `key` where there is one, then those with the most weight in
    all rows; sorted. The heaviest keys of the heads `beside` it, of equal axes, rank after those of `pattern`."""
    every = [pattern, *beside]
    weights = torch.stack([one.float().sum(0) for one in every]).sum(0)
    some = max(1, int((weights > 0).sum()) + int(key is not None and weights[key] == 0))
    most = len(pattern) * len(every)  # of weight that a key can have
    best = [torch.unique(one.argmax(-1)[one.amax(-1) > 0]) for one in every]
    if beside:
        weights[torch.unique(torch.cat(best))] += most
    weights[best[0]] += most
    if key is not None:
        weights[key] = torch.inf
    return weights.topk(min(KEYS_OF_SEVERAL if beside else KEYS, some)).indices.sort().values


def head_parts(long: LongContext, head: HeadOfRun, first: int, pattern: Tensor, keys: Tensor) -> Parts:
    """Parts of a head that are drawn beside another: `pattern` of the listed keys, `share` of the others, `edited`."""
    left = torch.ones(pattern.shape[-1], dtype=torch.bool).index_fill(0, keys, False)
    parts = {"pattern": pattern[:, keys], "share": pattern[:, left].double().sum(-1).float()}
    cells = list(edited_cells(long, head, first, keys).values())
    return parts | ({"edited": cells[0][0]} if cells else {})


def key_rows(part: str, value: Tensor, keys: Tensor) -> Tensor:
    if part in SQUARES:
        return value[None][..., keys]
    return value[keys][:, None] if part in OF_KEYS else value if part == "temperature" else value[:, None]


def edited_cells(long: LongContext, head: HeadOfRun, first: int, keys: Tensor) -> Parts:
    """u8 head row key as `touched_cells` has it, where an edit put any."""
    cells = long.edited_cells(head)
    found = None if cells is None else cells[first : first + ROWS][:, keys]
    return {} if found is None or not found.any() else {head.hook.replace("pattern", "edited"): found[None]}


@torch.no_grad()
def weight_by_value(long: LongContext, head: HeadOfRun, seen: Parts, keys: Tensor) -> Parts:
    """Value-weighted attention, as `engine.analysis.averages.by_norm` computes it, and its shares: head row key."""
    moved = (seen["v"] @ writing_rows(long.made.model, *head.place)[head.head]).float().norm(dim=-1)
    norms = seen["pattern"].float().abs() * moved
    total = norms.sum(-1, keepdim=True).clamp(min=torch.finfo(norms.dtype).tiny)
    return {"weighted": norms[None][..., keys], "relative": (norms / total)[None][..., keys]}


def outside(seen: Parts, head: int, keys: Tensor) -> Parts:
    """Sums of each row over the keys that are not listed: share, largest score, exponentials."""
    masked = seen["masked_scores"].double() / seen["temperature"][head]
    top = masked.amax(-1)
    others = torch.ones(masked.shape[-1], dtype=torch.bool).index_fill(0, keys, False)
    exponentials = (masked - top[:, None]).exp().nan_to_num()  # a row without keys adds nothing
    share = seen["pattern"][:, others].double().sum(-1)
    values = {"share": share, "top": top, "total": exponentials[:, others].sum(-1)}
    return {f"outside.{name}": value.float() for name, value in values.items()}


def one_head(every: Parts, head: int) -> Parts:
    """Parts of one query head: row key, or (row | key) d_head; `temperature` of all heads."""
    count = len(every["pattern"])

    def head_of(part: str, value: Tensor) -> Tensor:
        if part == "temperature":
            return value
        if part in SQUARES:
            return value[head]
        return value[:, head * value.shape[1] // count]

    return {part: head_of(part, value) for part, value in every.items()}


def strip(long: LongContext, head: HeadOfRun, first: int) -> Parts:
    """Parts of all heads of a layer, the rows from `first` on and every key; cached for as long as there is room."""
    names = hooks_by_part(long.made.model, head)
    width = attention_of(long.made.model, *head.place).d_head
    cut = {name: partial(cut_to, part=part, first=first, width=width) for part, name in names.items()}

    def make() -> Parts:
        seen = long.reduce(cut)
        return {part: seen[name] for part, name in names.items()}

    return long.cached((head.hook, first, "window"), make)


def pattern_rows(long: LongContext, head: HeadOfRun, first: int) -> Tensor:
    """Pattern rows of all heads of a layer from `first` on, head row key; cached without the rest of a strip."""
    whole: tuple[Parts] | None = glances.find(long, (head.hook, first, "window"))
    if whole is not None:
        return whole[0]["pattern"]
    cut = {head.hook: partial(cut_to, part="pattern", first=first, width=0)}
    return long.cached((head.hook, first, "rows"), lambda: long.reduce(cut)[head.hook])


def cut_to(value: Tensor, part: str, first: int, width: int) -> Tensor:
    """A copy, without the batch: of queries and squares the window's rows."""
    if part == "temperature":
        return value.clone()
    value = value if part == "bias" else value[0]
    if part in SQUARES:
        return value[:, first : first + ROWS].clone()
    value = value if value.dim() == 3 else value.unflatten(-1, (-1, width))  # a norm that sees all heads at once
    return (value if part in OF_KEYS else value[first : first + ROWS]).clone()


def hooks_by_part(model: Transformer, head: HeadOfRun) -> dict[str, str]:
    """The hooks within an attention by their last part; what is computed on request only is not among them."""
    block = head.hook.removesuffix("pattern")
    hooks = [name for name in model.hook_names if name.startswith(block) and is_attention(name)]
    return {name.removeprefix(block): name for name in hooks if name not in model.requested}


def column_of(long: LongContext, head: HeadOfRun, key: int) -> Column:
    """Why a column is bright, or not.

    Computed from a trace that holds what of this head is needed; its layer is run again for that.
    """
    name, pattern, heads = head.hook.removesuffix("pattern"), long.pattern(head), len(long.overviews[head.hook])

    def masked(mask: Tensor) -> Tensor:
        return mask[:1, head.head, None].clone()

    def of_group(v: Tensor) -> Tensor:
        group = head.head * v.shape[2] // heads
        return v[:1, :, group : group + 1].clone()

    seen = long.reduce({f"{name}mask": masked, f"{name}v": of_group})
    alone = with_values(long.trace, {**seen, head.hook: pattern[None, None]})
    crosses = head.focus == "cross_attn"
    read = long.encoding("encoder" if crosses else head.side)
    return column(alone, 0, key, 0, head.side, crosses, read)  # of the one layer and the one head that are there

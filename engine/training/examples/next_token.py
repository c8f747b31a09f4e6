"""Every next token, or those of them that are asked for (Radford et al. 2019, section 2)."""

from __future__ import annotations

from torch import Tensor

from engine.scoring.examples import UNASKED, Examples


def next_tokens(windows: Tensor, asked: Tensor | None = None) -> Examples:
    """`windows` (batch pos+1) as inputs and the tokens that follow; `asked` (batch pos) is True where that counts."""
    ids, targets = windows[:, :-1], windows[:, 1:]
    return Examples({"ids": ids}, targets if asked is None else targets.masked_fill(~asked, UNASKED))

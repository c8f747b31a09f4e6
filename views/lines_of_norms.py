"""What the weights of a head move, in place of the weights: the numbers that the map calls value-weighted."""

from __future__ import annotations

import re
from dataclasses import replace

from engine.analysis.averages import by_norm
from engine.checkpoints import Checkpoint
from engine.trace import Trace
from views.matrix_files import Matrix

PATTERN = re.compile(r"(?:(encoder|decoder)\.)?blocks\.(\d+)\.(attn|cross_attn)\.pattern")


def attention_in(trace: Trace, hook: str) -> tuple[int, str, bool]:
    """Layer, side and whether it crosses, of a pattern. Raises ValueError for any other hook."""
    found = PATTERN.fullmatch(hook)
    if found is None or hook not in trace:
        raise ValueError(f"this run has no pattern {hook[:100]!r} whose weights could be multiplied by what they move.")
    return int(found[2]), found[1] or "", found[3] == "cross_attn"


def norm_matrix(checkpoint: Checkpoint, trace: Trace, pattern: Matrix, head: int, share: bool) -> Matrix:
    """In place of `pattern`, the matrix of a head of this run; with `share` each row is divided by its sum."""
    values = by_norm(checkpoint.model, trace, *attention_in(trace, pattern.name), share)[head].detach().cpu().float()
    return replace(pattern, name=f"{pattern.name} times v W_O.{'share' if share else 'length'}", values=values.numpy())


def norm_lines(trace: Trace, hook: str, head: int, row: int, col: int, share: bool) -> list[str]:
    """They bind `values`, behind lines that bind `checkpoint` and `trace`. Raises ValueError for what is no pattern."""
    layer, side, crosses = attention_in(trace, hook)
    if not 0 <= head < trace[hook].shape[1]:
        raise ValueError(f"head must be in 0..{trace[hook].shape[1] - 1}, got {head}.")
    more = f', side="{side}"' if side else ""
    more += ", crosses=True" if crosses else ""
    more += ", share=True" if share else ""
    return [
        "from engine.analysis.averages import by_norm",
        "",
        f"values = by_norm(checkpoint.model, trace, {layer}{more})[{head}]  # query key",
        f"print(values[{row}, {col}].item())",
    ]

"""What the weights of a head move, in place of the weights: the numbers that the map calls value-weighted."""

from __future__ import annotations

from dataclasses import replace

from engine.analysis.averages import by_norm
from engine.analysis.weights.circuit import PATTERN, locate_pattern
from engine.checkpoints import Checkpoint
from engine.runtime.trace import Trace
from views.core.codegen import Fields, Looked, import_lines, quoted, running
from views.core.matrix_files import Matrix


def norm_matrix(checkpoint: Checkpoint, trace: Trace, pattern: Matrix, head: int, share: bool) -> Matrix:
    """In place of `pattern`, the matrix of a head of this run; with `share` each row is divided by its sum."""
    values = by_norm(checkpoint.model, trace, *locate_pattern(trace, pattern.name), share)[head].detach().cpu().float()
    return replace(pattern, name=moved_name(pattern.name, share), values=values.numpy())


def moved_name(hook: str, share: bool) -> str:
    return f"{hook} times v W_O.{'share' if share else 'length'}"


def norm_lines(trace: Trace, hook: str, head: int, row: int, col: int, share: bool) -> list[str]:
    """They bind `values`, behind lines that bind `checkpoint` and `trace`. Raises ValueError for what is no pattern."""
    layer, side, crosses = locate_pattern(trace, hook)
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


def moved_lines(
    name: str, checkpoint: Checkpoint, given: Fields, trace: Trace, at: Looked, side: str, share: bool
) -> str:
    """As `norm_lines`, a whole script for a run too large to keep more than one pattern; `at` names a head of it."""
    found = PATTERN.fullmatch(at.hook)
    assert found is not None
    v, where = at.hook.replace("pattern", "v"), f"{found[2]}, {quoted(side)}, {found[3] == 'cross_attn'}"
    imports, opening = running(name, checkpoint, given, trace, only=(at.hook, v))
    imports |= {"engine.analysis.averages": {"moved"}, "engine.analysis.weights.circuit": {"attention_of"}}
    lines = [
        f"attention = attention_of(checkpoint.model, {where})",
        f"moved_by_key = moved(attention, trace[{quoted(v)}][0])[{at.head}]",
        f"values = trace[{quoted(at.hook)}][0, {at.head}].abs() * moved_by_key  # query key",
        *(["values = values / values.sum(-1, keepdim=True).clamp(min=1e-38)"] if share else []),
        f"print(values[{at.row}, {at.col}].item())",
    ]
    return "\n".join([*import_lines(imports), "", *opening, "", *lines]) + "\n"

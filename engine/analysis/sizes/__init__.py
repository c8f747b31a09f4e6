"""What a model costs, worked out from its config alone: parameters, operations, memory, each with its formula."""

from engine.analysis.sizes.envelope import Step, envelope
from engine.analysis.sizes.formula import MEANINGS, Formula, Symbol
from engine.analysis.sizes.memory import Memory, activations, kv_cache, states
from engine.analysis.sizes.parameters import Part, count, parameters
from engine.analysis.sizes.shape import reading
from engine.analysis.sizes.work import BACKWARD, Work, forward, per_token

__all__ = [
    "BACKWARD",
    "MEANINGS",
    "Formula",
    "Memory",
    "Part",
    "Step",
    "Symbol",
    "Work",
    "activations",
    "count",
    "envelope",
    "forward",
    "kv_cache",
    "parameters",
    "per_token",
    "reading",
    "states",
]

"""How one element of a trace came about: its operation, operands (hooks and parameters), steps and result."""

from engine.analysis.arithmetic.candidates import explain_candidate
from engine.analysis.arithmetic.explanation import Explanation, Line, Number, Operand, Products, Span
from engine.analysis.arithmetic.layers import explain

__all__ = ["Explanation", "Line", "Number", "Operand", "Products", "Span", "explain", "explain_candidate"]

"""Models with an answer key: readable programs made into the weights of an ordinary transformer, so that its circuit
is known.

program.py (lines of a program) --> compile.py (weights) --> a checkpoint, with answer_key.py (which part does what)
"""

from engine.compiled.answer_key import AnswerKey, Line, Variable, read_answer_key
from engine.compiled.compile import CompiledCheckpoint, compile_program
from engine.compiled.program import Aggregate, Map, Program, Select, Width

__all__ = [
    "Aggregate",
    "AnswerKey",
    "CompiledCheckpoint",
    "Line",
    "Map",
    "Program",
    "Select",
    "Variable",
    "Width",
    "compile_program",
    "read_answer_key",
]

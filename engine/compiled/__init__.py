"""Models with an answer key: readable programs made into the weights of an ordinary transformer.

program.py (lines of a program) --> compile.py (weights) --> a checkpoint, and answer_key.json (which part does what)
"""

from engine.compiled.answer_key import AnswerKey, find_answer_key, read_answer_key
from engine.compiled.compile import CompiledCheckpoint, compile_program
from engine.compiled.program import Program

__all__ = ["AnswerKey", "CompiledCheckpoint", "Program", "compile_program", "find_answer_key", "read_answer_key"]

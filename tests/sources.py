"""The sources as trees of Python, for the rules that read them: each text is parsed and walked once."""

import ast
import gc
from functools import cache


@cache
def parse(text: str) -> ast.Module:
    collects = gc.isenabled()
    gc.disable()  # it would look through the trees of all texts before, again and again
    try:
        return ast.parse(text)
    finally:
        if collects:
            gc.enable()


@cache
def nodes(tree: ast.AST) -> list[ast.AST]:
    """All that is in a tree, as `ast.walk` has it."""
    return list(ast.walk(tree))


def forget() -> None:
    parse.cache_clear()
    nodes.cache_clear()

"""Python source of a function's body with its arguments bound: the very lines that ran, to run again in a notebook."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any

CONSTANTS = (int, float, bool, str, bytes, type(None))
RESULT = "values"

Imports = dict[str, set[str]]  # names by module


def bind_source(
    function: Callable[..., Any], arguments: Mapping[str, Any], attributes: Mapping[str, str]
) -> tuple[list[str], Imports]:
    """Lines that bind `values` to what `function` returns for `arguments`, and what they import.

    The function's first parameter is a context: `attributes` gives, for those of its attributes that the body reads,
    the expression that stands for it. Arguments become literals, branches that they decide are taken, and constants of
    the function's module are written out. An attribute may be a method, whose arguments are left out, and what is
    `cached` of a context is made anew. Raises TypeError for a body that uses anything else outside the engine.
    """
    tree = _definition(function)
    context = tree.args.args[0].arg
    own = inspect.unwrap(function)
    local = {*own.__code__.co_varnames, *own.__code__.co_cellvars}
    outside = {name: value for name, value in own.__globals__.items() if name not in local}
    binder = _Binder(context, attributes, arguments, outside)
    lines: list[str] = []
    for statement in _without_docstring(tree.body):
        for bound in binder.bind(statement):
            lines += ast.unparse(ast.fix_missing_locations(bound)).split("\n")
    return lines, binder.imports


@cache
def _source_of(function: Callable[..., Any]) -> str:
    return textwrap.dedent(inspect.getsource(function))


def _definition(function: Callable[..., Any]) -> ast.FunctionDef:
    found = ast.parse(_source_of(inspect.unwrap(function))).body[0]
    assert isinstance(found, ast.FunctionDef)
    return found


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0].value if isinstance(body[0], ast.Expr) else None
    return body[1:] if isinstance(first, ast.Constant) and isinstance(first.value, str) else body


def assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def entries(table: ast.Dict) -> list[tuple[str, ast.expr]]:
    found = zip(table.keys, table.values, strict=True)
    return [(str(key.value), value) for key, value in found if isinstance(key, ast.Constant)]


class _Binder(ast.NodeTransformer):
    def __init__(
        self, context: str, attributes: Mapping[str, str], arguments: Mapping[str, Any], outside: Mapping[str, Any]
    ) -> None:
        self.context, self.attributes, self.arguments, self.outside = context, attributes, arguments, outside
        self.imports: Imports = {}
        self.returned = False

    def bind(self, statement: ast.stmt) -> list[ast.stmt]:
        """Statements in place of one: those of the branch that is taken, an assignment for a return."""
        if self.returned:
            return []
        if isinstance(statement, ast.If):
            test = self.visit(statement.test)
            if not isinstance(test, ast.Constant):
                raise TypeError(f"expected a condition that the arguments decide, got {ast.unparse(test)}")
            return [bound for one in (statement.body if test.value else statement.orelse) for bound in self.bind(one)]
        if isinstance(statement, ast.Return):
            self.returned = True
            assert statement.value is not None
            value = self.visit(statement.value)
            if isinstance(value, ast.Dict):  # several arrays: the first is the one that is shown
                (_, first), *rest = entries(value)
                return [assign(RESULT, first), *(assign(name, one) for name, one in rest)]
            return [assign(RESULT, value)]
        return [self.visit(statement)]

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == self.context:
            if node.attr not in self.attributes:
                known = sorted(self.attributes)
                raise TypeError(f"expected an attribute of the context among {known}, got {node.attr!r}")
            return ast.parse(self.attributes[node.attr], mode="eval").body
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        called = node.func
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == self.context:
            made = node.args[-1] if called.attr == "cached" else called
            return self.visit(made.body if isinstance(made, ast.Lambda) else made)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        name = node.id
        if name in self.arguments and isinstance(node.ctx, ast.Load):
            return ast.parse(repr(self.arguments[name]), mode="eval").body
        if name in self.outside and isinstance(node.ctx, ast.Load):
            return self._global(name, self.outside[name])
        return node

    def _global(self, name: str, value: Any) -> ast.AST:
        if isinstance(value, CONSTANTS):
            return ast.Constant(value)
        if isinstance(value, ModuleType):
            self.imports.setdefault(value.__name__, set())
            return ast.parse(value.__name__, mode="eval").body
        module = getattr(value, "__module__", "") or ""
        if module.split(".")[0] not in ("engine", "torch", "numpy", "itertools", "math"):
            raise TypeError(f"expected names of the engine or of torch, got {name!r} of {module}")
        self.imports.setdefault(module, set()).add(name)
        return ast.Name(name, ast.Load())

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        test = self.visit(node.test)
        if isinstance(test, ast.Constant):
            return self.visit(node.body if test.value else node.orelse)
        return ast.IfExp(test, self.visit(node.body), self.visit(node.orelse))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        parts: list[ast.expr] = []
        for value in node.values:
            bound = self.visit(value)
            parts.append(bound)
            if isinstance(bound, ast.Constant) and bool(bound.value) == isinstance(node.op, ast.Or):
                break
        return self._fold(ast.BoolOp(node.op, parts) if len(parts) > 1 else parts[0], parts)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        bound = ast.Compare(self.visit(node.left), node.ops, [self.visit(one) for one in node.comparators])
        return self._fold(bound, [bound.left, *bound.comparators])

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        bound = ast.BinOp(self.visit(node.left), node.op, self.visit(node.right))
        return self._fold(bound, [bound.left, bound.right])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        bound = ast.UnaryOp(node.op, self.visit(node.operand))
        return self._fold(bound, [bound.operand])

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        bound = self.generic_visit(node)
        assert isinstance(bound, ast.JoinedStr)
        inner = [part.value for part in bound.values if isinstance(part, ast.FormattedValue)]
        return self._fold(bound, inner)

    @staticmethod
    def _fold(node: ast.expr, parts: list[ast.expr]) -> ast.expr:
        """The value itself where all parts are constants: literals alone are evaluated."""
        if not all(isinstance(part, ast.Constant) for part in parts):
            return node
        code = compile(ast.fix_missing_locations(ast.Expression(node)), "<bound>", "eval")
        value = eval(code, {"__builtins__": {}})
        return ast.Constant(value) if isinstance(value, CONSTANTS) else node

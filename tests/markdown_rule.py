"""The rule that Streamlit's Markdown gets nothing but words of Loupe's own and texts that are escaped.

An argument is safe if it is put together of literals, constants (names in capitals), numbers with their format, what
`escape_markdown`, `code_markdown` and the course's translation return, and names, fields and functions of the house
that are annotated so: as a number, a `Literal`, `Markdown` or `LiteralString`. What is handed to a parameter, and
what a function returns, that is annotated as `LiteralString` must be safe as well; of `Markdown` mypy sees to that.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tests.sources import nodes

# Of each of Streamlit's functions the positional arguments that it draws as Markdown; those by name are below.
DOORS: dict[str, tuple[int, ...]] = dict.fromkeys(
    ("markdown", "caption", "warning", "error", "info", "success", "toast", "header", "subheader", "button",
     "download_button", "link_button", "checkbox", "toggle", "selectbox", "multiselect", "slider", "number_input",
     "text_input", "text_area", "expander", "tabs", "popover", "form_submit_button", "file_uploader", "status",
     "spinner", "dialog", "date_input", "feedback", "chat_input", "color_picker"), (0,),
) | {"metric": (0, 1, 2), "progress": (1,), "page_link": (), "chart": ()}  # fmt: skip
DOORS |= dict.fromkeys(("radio", "segmented_control", "pills", "select_slider"), (0, 1))  # their options too
NAMED = {"label", "help", "body", "text", "captions", "delta"}
OPTIONS = {"radio", "segmented_control", "pills", "select_slider"}
SAFE_CALLS = set(
    "escape_markdown code_markdown Markdown _ _n translate translate_count numeral numerals write_number "
    "len int float round sum abs range ord".split()
)
CARRIES = set("str list tuple sorted reversed enumerate zip min max map filter dict next".split())
METHODS = set(
    "join format replace strip removeprefix removesuffix lower upper title capitalize items values keys get index "
    "partition split".split()
)
SAFE_TYPES = re.compile(
    r"(?:(?:Mapping|dict|Sequence|list|tuple|Iterable|Iterator|Collection|Callable|ClassVar|Literal)\[.*\]|int|float|bool|"
    r"None|Markdown|LiteralString|Sentence|[|, ]|\.\.\.)+"
)
# Whose Markdown is texts of Loupe's own that no line of code shows.
TRUSTED = {
    "views.core.markdown": "escapes",
    "pages.controls.words": "the course's sentences, with what `escape_markdown` made of values",
    "pages.controls.learn.course": "lessons, from their folders",
    "pages.controls.learn.notebooks": "names of the engine's functions, in a file",
    "pages.controls.learn.glossary": "the glossary, from assets/learn",
    "pages.controls.train.recipe_form": "docstrings of the engine",
    "views.architecture.architecture": "formulas and the names of their parts",
}
NUMERIC = re.compile(r"[-+ ,.\d_]*[defgEFG%]|,")


def is_safe_type(annotation: ast.expr | str | None) -> bool:
    written = "" if annotation is None else annotation if isinstance(annotation, str) else ast.unparse(annotation)
    return bool(SAFE_TYPES.fullmatch(written)) and not re.search(
        r"\b(str|Any|object)\b", re.sub(r"Literal\[.*?\]", "", written)
    )


@dataclass
class House:
    """What the annotations of all files say of functions and of fields, by their names."""

    returns: dict[str, bool] = field(default_factory=dict)  # by "module.function", and by ".function" of all such
    fields: dict[str, bool] = field(default_factory=dict)
    doors: dict[str, set[tuple[int, str]]] = field(default_factory=dict)  # by "module.function"

    def read(self, module: str, tree: ast.Module) -> None:
        for node in nodes(tree):
            if isinstance(node, ast.FunctionDef):
                for name in (f"{module}.{node.name}", f".{node.name}"):
                    self.returns[name] = self.returns.get(name, True) and is_safe_type(node.returns)
                if any(ast.unparse(one) in {"property", "cached_property"} for one in node.decorator_list):
                    self.fields[node.name] = self.fields.get(node.name, True) and is_safe_type(node.returns)
                named = [*node.args.posonlyargs, *node.args.args]
                literal = {
                    (place, one.arg)
                    for place, one in [*enumerate(named), *((10**6, one) for one in node.args.kwonlyargs)]
                    if one.annotation is not None and "LiteralString" in ast.unparse(one.annotation)
                }
                if literal and named[:1] != [one for one in named[:1] if one.arg == "self"]:
                    self.doors.setdefault(f"{module}.{node.name}", set()).update(literal)
            elif isinstance(node, ast.ClassDef):
                for one in node.body:
                    if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                        name = one.target.id
                        self.fields[name] = self.fields.get(name, True) and is_safe_type(one.annotation)


Scope = Mapping[str, list[ast.expr | bool]]


def bindings(function: ast.AST) -> dict[str, list[ast.expr | bool]]:
    """Of every name in a function what it is set to, or whether that is safe; functions in it are told on their own."""
    found: dict[str, list[ast.expr | bool]] = {}

    def bind(target: ast.expr, value: ast.expr | bool) -> None:
        if isinstance(target, ast.Name):
            found.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Tuple | ast.List):
            parts = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else None
            for at, one in enumerate(target.elts):
                bind(one, parts[at] if parts else part_of_items(value, at) or value)
        elif isinstance(target, ast.Starred):
            bind(target.value, value)

    if isinstance(function, ast.FunctionDef | ast.Lambda):
        arguments = function.args
        for one in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            found[one.arg] = [is_safe_type(one.annotation)]
        for rest in (arguments.vararg, arguments.kwarg):
            if rest is not None:
                found[rest.arg] = [is_safe_type(rest.annotation)]
    for node in within(function):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    bind(target, value)
            case ast.AnnAssign(target=target, annotation=annotation, value=value) if value is not None:
                bind(
                    target,
                    True if is_safe_type(annotation) and "LiteralString" not in ast.unparse(annotation) else value,
                )
            case ast.AugAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
                bind(target, value)
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                bind(target, value)
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                bind(target, value)
            case ast.ExceptHandler(name=str(name)):
                found.setdefault(name, []).append(False)
            case ast.FunctionDef(name=name):
                found.setdefault(name, []).append(True)
    return found


def within(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function but for those of functions in it."""
    for node in ast.iter_child_nodes(function):
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            yield from within(node)


def part_of_items(value: ast.expr | bool, at: int) -> ast.expr | None:
    """Of `table.items()` its keys or its values."""
    match value:
        case ast.Call(func=ast.Attribute(value=table, attr="items")):
            return ast.Call(ast.Attribute(table, ("keys", "values")[at]), [], [])
        case ast.Call(func=ast.Name(id="zip" | "enumerate" as name), args=args):
            if name == "enumerate":
                return ast.Constant(0) if at == 0 else args[0]
            return args[at] if at < len(args) and not any(isinstance(one, ast.Starred) for one in args) else None
    return None


class Reader:
    """Finds what is not safe in one file."""

    def __init__(self, house: House, module: str, tree: ast.Module) -> None:
        self.house, self.module = house, module
        self.imports = {
            alias.asname or alias.name: f"{node.module}.{alias.name}"
            for node in nodes(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        self.scopes: list[Scope] = []
        self.asked: set[tuple[int, str]] = set()

    def full_name(self, function: ast.expr) -> str:
        """Name of a function with its module, or with nothing before its dot where that is not known."""
        match function:
            case ast.Name(id=name):
                return self.imports.get(name, f"{self.module}.{name}")
            case ast.Attribute(value=ast.Name(id=alias), attr=name) if alias in self.imports:
                return f"{self.imports[alias]}.{name}"
            case ast.Attribute(attr=name):
                return f".{name}"
        return ""

    def is_safe(self, node: ast.AST | bool | None) -> bool:
        match node:
            case bool() | None:
                return node is not False
            case ast.Constant() | ast.Compare() | ast.Lambda():
                return True
            case ast.JoinedStr(values=parts):
                return all(map(self.is_safe, parts))
            case ast.FormattedValue(value=value, format_spec=spec):
                return bool(spec and NUMERIC.fullmatch(ast.unparse(spec)[2:-1])) or self.is_safe(value)
            case ast.Name(id=name):
                return name.lstrip("_").isupper() or self.is_safe_name(name)
            case ast.Attribute(attr=name):
                return name.isupper() or self.house.fields.get(name, False)
            case ast.Subscript(value=value) | ast.Starred(value=value) | ast.NamedExpr(value=value):
                return self.is_safe(value)
            case ast.UnaryOp(op=ast.Not()):
                return True
            case ast.UnaryOp(operand=value):
                return self.is_safe(value)
            case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
                return self.is_safe(one) and self.is_safe(other)
            case ast.BoolOp(values=values) | ast.List(elts=values) | ast.Tuple(elts=values) | ast.Set(elts=values):
                return all(map(self.is_safe, values))
            case ast.Dict(keys=keys, values=values):
                return all(map(self.is_safe, [*keys, *values]))
            case ast.ListComp(elt=value) | ast.GeneratorExp(elt=value) | ast.SetComp(elt=value):
                return self.is_safe(value)
            case ast.DictComp(key=key, value=value):
                return self.is_safe(key) and self.is_safe(value)
            case ast.Call():
                return self.is_safe_call(node)
        return False

    def is_safe_name(self, name: str) -> bool:
        for scope in reversed(self.scopes):
            if name in scope:
                key = (id(scope), name)
                if key in self.asked:  # it is set to something made of itself
                    return True
                self.asked.add(key)
                try:
                    return all(map(self.is_safe, scope[name]))
                finally:
                    self.asked.discard(key)
        return False

    def is_safe_call(self, node: ast.Call) -> bool:
        values = [*node.args, *(one.value for one in node.keywords)]
        match node.func:
            case ast.Name(id="Markdown") | ast.Attribute(attr="Markdown"):
                return self.module in TRUSTED or all(map(self.is_safe, values))
            case ast.Name(id="map" | "filter") if ast.unparse(node.args[0]) in SAFE_CALLS:
                return True
            case ast.Name(id=name) if name in SAFE_CALLS:
                return True
            case ast.Name() | ast.Attribute() if self.is_safe_function(self.full_name(node.func)):
                return True
            case ast.Name(id=name) if name in CARRIES:
                return all(map(self.is_safe, values))
            case ast.Attribute(attr="keys", value=ast.Name(id=name)) if (found := self.dicts(name)) is not None:
                return all(self.is_safe(key) for one in found for key in one.keys)
            case ast.Attribute(attr="values", value=ast.Name(id=name)) if (found := self.dicts(name)) is not None:
                return all(self.is_safe(value) for one in found for value in one.values)
            case ast.Attribute(attr="format", value=value) if self.is_translation(value):
                return True  # it escapes
            case ast.Attribute(attr=name, value=value) if name in METHODS:
                return self.is_safe(value) and all(map(self.is_safe, values))
        return False

    def dicts(self, name: str) -> list[ast.Dict] | None:
        """What a name is set to, where these are tables written out."""
        values = next((scope[name] for scope in reversed(self.scopes) if name in scope), [])
        found = [one for one in values if isinstance(one, ast.Dict)]
        return found if found and len(found) == len(values) else None

    def is_safe_function(self, name: str) -> bool:
        """True by its annotation; a text's own methods are another matter, whatever else is called so."""
        return name.removeprefix(".") not in METHODS and self.house.returns.get(name, False)

    def is_translation(self, node: ast.AST | bool) -> bool:
        match node:
            case ast.Call(func=ast.Name(id="_" | "_n" | "translate" | "translate_count")):
                return True
            case ast.IfExp(body=one, orelse=other):
                return self.is_translation(one) and self.is_translation(other)
            case ast.Name(id=name):
                values = next((scope[name] for scope in reversed(self.scopes) if name in scope), [])
                return bool(values) and all(map(self.is_translation, values))
            case ast.Subscript(value=value):
                return self.is_translation(value)
            case ast.Dict(values=values) | ast.Tuple(elts=values):
                return all(map(self.is_translation, values))
        return False

    def complaints(self, node: ast.AST) -> Iterator[ast.expr]:
        """Arguments and returned values that are not safe, in a function or a module and all that is in it."""
        self.scopes.append(bindings(node))
        returns = isinstance(node, ast.FunctionDef) and node.returns is not None and ast.unparse(node.returns)
        for one in within(node):
            if isinstance(one, ast.Return) and returns and "LiteralString" in returns and not self.is_safe(one.value):
                yield one.value or ast.Constant(None)
            if isinstance(one, ast.Call):
                yield from (value for value in self.handed(one) if not self.is_safe(value))
            if isinstance(one, ast.FunctionDef | ast.Lambda | ast.ClassDef):
                yield from self.complaints(one)
        self.scopes.pop()

    def handed(self, node: ast.Call) -> Iterator[ast.expr]:
        """What a call hands to Markdown."""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name == "Markdown" and self.module not in TRUSTED:
            yield from node.args
        if isinstance(node.func, ast.Attribute) and name in DOORS:
            formatted = [one.value for one in node.keywords if one.arg == "format_func"]
            for place in DOORS[name]:
                if place < len(node.args) and not (place and name in OPTIONS and formatted):
                    yield node.args[place]
            yield from (one.value for one in node.keywords if one.arg in NAMED)
            if name in OPTIONS:
                for value in formatted:
                    yield from self.returned(value)
        for place, parameter in self.house.doors.get(self.full_name(node.func), ()):
            if place < len(node.args):
                yield node.args[place]
            yield from (one.value for one in node.keywords if one.arg == parameter)

    def returned(self, value: ast.expr) -> Iterator[ast.expr]:
        """What a `format_func` returns: its table, or itself where it is not known to be safe."""
        match value:
            case ast.Lambda():
                yield value.body
            case ast.Attribute(value=table, attr="__getitem__" | "get"):
                yield table
            case ast.Name(id=name) | ast.Attribute(attr=name):
                if name not in SAFE_CALLS and not self.house.returns.get(self.full_name(value), False):
                    yield value
            case _:
                yield value


def find_unsafe(trees: Mapping[str, ast.Module]) -> Iterable[str]:
    house = House()
    modules = {path: path.removesuffix(".py").replace("/", ".") for path in trees}
    for path, tree in trees.items():
        house.read(modules[path], tree)
    for path, tree in trees.items():
        if path.startswith(("app.py", "pages/", "views/")):
            for node in Reader(house, modules[path], tree).complaints(tree):
                yield f"{path}:{node.lineno} hands Markdown what may be a text of others: {ast.unparse(node)[:90]}"

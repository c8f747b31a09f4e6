"""Questions: what a page's pictures ask of the server after the first paint, and commands, each declared once.

    QUESTIONS = Registry()

    @QUESTIONS.question("rollout", returns={"values": ("query", "key")})
    def ask_rollout(run: RunContext, side: Side, first: Layer, last: Layer) -> Tensor:
        return rollout(run.trace, side, first, last + 1)[-1]

The signature says what a browser may send, the named axes what comes back. Derived from both: the check of a query, the
payload, the table to download, the lines of Python (the function's body with its arguments bound), and the types that
the JavaScript is checked against. `Page` puts the registries of a page together: there is one home of its answers.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from math import isfinite
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Protocol,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from torch import Tensor

from views.core.bound_source import Imports, bind_source
from views.core.matrix_files import Matrix
from views.core.payload import pack
from views.core.table_files import Table

STALE = "The text, the model or the edits have changed since; ask again."
UNKNOWN = "Unknown request from the page. Reload and try again."
MOST_ENTRIES = 100_000  # of a list that a browser sends
RESERVED = ("ask", "trace", "once")  # keys of a query beside its arguments

Query = Mapping[str, Any]
Axes = tuple[str, ...]


class Axis(NamedTuple):
    """Axis that a parameter counts along or chooses among; the context knows how far it goes."""

    name: str


Side = Annotated[str, Axis("side")]  # "" for a single stack, else "encoder" or "decoder"
Focus = Annotated[str, Axis("focus")]  # "attn" or "cross_attn"
Layer = Annotated[int, Axis("layer")]
Head = Annotated[int, Axis("head")]
Neuron = Annotated[int, Axis("neuron")]  # of an MLP
Pos = Annotated[int, Axis("pos")]  # position of a query
Key = Annotated[int, Axis("key")]  # position of a key
Row = Annotated[int, Axis("row")]  # of the head's logits: a position, an end of an answer, or the whole text
Vocab = Annotated[int, Axis("vocab")]  # what the head chooses among: tokens, classes, colours or positions


class Context(Protocol):
    """Base of what questions are about."""

    @property
    def digest(self) -> str:
        """Name of the content; a query for another one is stale."""

    @property
    def model_name(self) -> str: ...

    @property
    def attributes(self) -> Mapping[str, str]:
        """Attribute of the context -> the expression that stands for it in the lines of Python."""

    def choices(self, axis: str, query: Query) -> range | Collection[str]:
        """Indices or names on an axis, given the rest of a query."""

    def labels(self, axis: str, query: Query) -> Sequence[str] | None:
        """Tokens on an axis of an answer; None where it has none."""

    @property
    def no_script(self) -> str:
        """Why there are no lines of Python for what is asked of it; "" where there are."""

    def script(self, imports: Imports, lines: Sequence[str]) -> str:
        """A whole script: what the context is made of, then `lines`."""


class BareContext:
    """Base of contexts without axes, tokens and a script of their own."""

    attributes: ClassVar[Mapping[str, str]] = {}
    no_script: ClassVar[str] = ""

    def choices(self, axis: str, query: Query) -> range | Collection[str]:
        return range(0)

    def labels(self, axis: str, query: Query) -> Sequence[str] | None:
        return None

    def script(self, imports: Imports, lines: Sequence[str]) -> str:
        raise ValueError(UNKNOWN)


@dataclass(frozen=True)
class Answer:
    """Arrays by name, and what else a view wants to know. Axes given here go before the declared ones."""

    arrays: Mapping[str, Any] = field(default_factory=dict)
    header: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Question:
    """Everything follows from `function` and `returns`, unless an option says otherwise.

    `describe(context, result, **arguments)` adds to the header of an answer. `carry(context)` lists arguments with
    which an exported file answers the question, asked or not. `make_table` and `make_script` stand in for the derived
    ones where an answer has no common axes; the latter takes `row` and `col` too. `in_script` are arguments that a
    script runs with, and that no browser may send. `steps(context, **arguments)` are, where an answer takes its time,
    the parts of its work, each of which the context keeps: a page shows how far they are, and stops between two.
    """

    name: str
    function: Callable[..., Any]
    about: type  # of the contexts that can be asked: the annotation of the function's first parameter
    returns: Mapping[str, Axes]
    parameters: Mapping[str, Any]  # name -> annotation
    defaults: Mapping[str, Any]
    command: bool = False
    describe: Callable[..., Mapping[str, Any]] | None = None
    carry: Callable[[Any], Iterable[dict[str, Any]]] | None = None
    make_table: Callable[..., Matrix | Table] | None = None
    make_script: Callable[..., str] | None = None
    in_script: Mapping[str, Any] = field(default_factory=dict)
    title: Callable[..., str] | None = None
    steps: Callable[..., Sequence[Callable[[], Any]]] | None = None

    def bind(self, context: Context, query: Query) -> dict[str, Any]:
        """Arguments of the function, checked. Raises ValueError, with a sentence."""
        own = self.parameters.keys() - self.in_script.keys()
        if unknown := [name for name in query if name not in own and name not in RESERVED]:
            raise ValueError(f"Unknown request: {self.name} takes no {unknown[0][:40]!r}. Reload and try again.")
        arguments = {}
        for name, annotation in self.parameters.items():
            if name in query:
                arguments[name] = check(annotation, query[name], name, context, query)
            elif name in self.defaults:
                arguments[name] = self.defaults[name]
            else:
                raise ValueError(f"Unknown request: {self.name} needs {name!r}. Reload and try again.")
        return arguments

    def ask(self, context: Context, query: Query) -> Answer:
        arguments = self.bind(context, query)
        result = self.function(context, **arguments)
        arrays, header = named_arrays(self.returns, result)
        if self.describe is not None:
            header = {**header, **self.describe(context, result, **arguments)}
        return Answer(arrays, header)

    def answer(self, context: Context, query: Query) -> bytes:
        if inspect.isgeneratorfunction(self.function):  # which is answered in parts
            raise ValueError(UNKNOWN)
        if get_type_hints(self.function).get("return") is bytes:  # a payload already
            return self.function(context, **self.bind(context, query))
        found = self.ask(context, query)
        dims = {name: axes for name, axes in self.returns.items() if name in found.arrays}
        return pack(found.header, found.arrays, dims)

    def table(self, context: Context, query: Query) -> Matrix | Table:
        """Turns one array into a matrix with named axes, several as columns beside the indices of all their axes."""
        arguments = self.bind(context, query)
        if self.make_table is not None:
            return self.make_table(context, **arguments)
        arrays = {name: as_numpy(array) for name, array in self.ask(context, query).arrays.items()}
        if not arrays:
            raise ValueError(f"{self.name} has no numbers to download.")
        axes = list(dict.fromkeys(axis for name in arrays for axis in self.returns[name]))
        labels = {axis: context.labels(axis, query) for axis in axes}
        tokens = {axis: list(names) for axis, names in labels.items() if names is not None}
        title = self.title(**arguments) if self.title else self.name
        if len(arrays) == 1:
            ((name, values),) = arrays.items()
            return Matrix(title, context.model_name, values, self.returns[name], tokens)
        sizes: dict[str, int] = {}
        for name, values in arrays.items():
            sizes |= dict(zip(self.returns[name], values.shape, strict=True))
        shape = tuple(sizes[axis] for axis in axes)
        columns: dict[str, Any] = {}
        for axis, at in zip(axes, np.indices(shape).reshape(len(shape), -1), strict=True):
            columns[axis] = at.astype(np.int32)
            if axis in tokens:
                columns[f"{axis}_token"] = [tokens[axis][i] for i in at]
        for name, values in arrays.items():
            own = self.returns[name]
            spread = values.reshape([sizes[axis] if axis in own else 1 for axis in axes])
            columns[name] = np.broadcast_to(spread, shape).reshape(-1)
        about = {"model": context.model_name, "table": title}
        return Table(columns, about | {name: str(value) for name, value in query.items() if name not in RESERVED})

    def python(self, context: Context, query: Query, row: int = 0, col: int = 0) -> str:
        """A script that binds `values` to the answer, and prints the element at `row` and `col` of a matrix."""
        arguments = self.bind(context, query)
        if self.make_script is not None:
            return self.make_script(context, row=row, col=col, **arguments)
        if context.no_script:
            raise ValueError(context.no_script)
        self.ask(context, query)  # which refuses what a script would fail at
        lines, imports = bind_source(self.function, {**arguments, **self.in_script}, context.attributes)
        names = list(self.returns)
        one = len(names) == 1 or len(names) > 1 and any(line.startswith(f"{names[1]} = ") for line in lines)
        axes = self.returns[names[0]] if one else ()
        shown = next((number for number, line in enumerate(lines) if line.startswith("values = ")), None)
        if shown is not None and axes:
            lines[shown] += f"  # {' '.join(axes)}"
        index = {("query", "key"): f"{row}, {col}", ("row", "source"): f"{row}, {col}", ("key",): str(col)}.get(axes)
        lines += [f"print(values[{index}].item())"] if index and shown is not None else []
        return context.script(imports, lines)


class Registry:
    """Questions and commands by name. One name may be declared once for each kind of context that answers it otherwise;
    of a context that several fit, the last counts."""

    def __init__(self) -> None:
        self.declared: list[Question] = []

    @property
    def questions(self) -> dict[str, Question]:
        return {one.name: one for one in reversed(self.declared)}

    def questions_about(self, context: Context) -> dict[str, Question]:
        """Questions that can be asked of a context, by name."""
        return {one.name: one for one in self.declared if isinstance(context, one.about)}

    def question(
        self, name: str, *, returns: Mapping[str, Axes] = types.MappingProxyType({}), **options: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declares a question: `returns` names the arrays of its answer and their axes; `options` are a Question's."""

        def declare(function: Callable[..., Any]) -> Callable[..., Any]:
            hints = get_type_hints(function, include_extras=True)
            first, *own = inspect.signature(function).parameters.values()
            about = hints[first.name]
            if any((one.name, one.about) == (name, about) for one in self.declared):
                raise ValueError(f"expected one question named {name!r}, got two; rename one")
            defaults = {one.name: one.default for one in own if one.default is not inspect.Parameter.empty}
            parameters = {one.name: hints[one.name] for one in own}
            if reserved := [one for one in parameters if one in RESERVED]:
                raise ValueError(f"expected parameters other than {RESERVED}, got {reserved[0]!r}; rename it")
            self.declared.append(Question(name, function, about, dict(returns), parameters, defaults, **options))
            return function

        return declare

    def command(self, name: str, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declares what changes something: never stale, never remembered, nothing to download."""
        return self.question(name, command=True, **options)


class Page:
    """The answers of one page: every registry with the context that its questions are about.

    A registry may have several contexts, such as the runs of a comparison: `trace` names the one that a query is about.
    """

    def __init__(self, *parts: tuple[Registry, *tuple[Context, ...]]) -> None:
        self.home: dict[str, list[tuple[Question, Context]]] = {}
        for registry, *contexts in parts:
            if both := self.home.keys() & registry.questions.keys():
                raise ValueError(f"expected one question named {sorted(both)[0]!r} on a page, got two; rename one")
            for context in contexts:
                for name, question in registry.questions_about(context).items():
                    self.home.setdefault(name, []).append((question, context))

    def with_registry(self, registry: Registry, context: Context) -> Page:
        """This page with further questions, which its exported file leaves out."""
        further = Page((registry, context))
        if both := self.home.keys() & further.home.keys():
            raise ValueError(f"expected one question named {sorted(both)[0]!r} on a page, got two; rename one")
        further.home |= self.home
        return further

    def find(self, query: Any) -> tuple[Question, Context]:
        """The question that a query asks, and what it is about. Raises ValueError for a stale or unknown one."""
        name = query.get("ask") if isinstance(query, Mapping) else None
        if not isinstance(name, str) or name not in self.home:
            raise ValueError(UNKNOWN)
        for question, context in self.home[name]:
            if question.command or query.get("trace") == context.digest:
                return question, context
        raise ValueError(STALE)

    def answer(self, query: Query) -> bytes:
        question, context = self.find(query)
        return question.answer(context, query)

    def parts(self, query: Query) -> Iterator[bytes]:
        """Parts of an answer that its function yields as payloads."""
        question, context = self.find(query)
        if not inspect.isgeneratorfunction(question.function):
            raise ValueError(UNKNOWN)
        yield from question.function(context, **question.bind(context, query))

    def table(self, query: Query) -> Matrix | Table:
        question, context = self.find(query)
        return question.table(context, query)

    def python(self, query: Query, row: int = 0, col: int = 0) -> str:
        question, context = self.find(query)
        return question.python(context, query, row, col)

    def carried_queries(self) -> Iterator[dict[str, Any]]:
        """Queries that an exported file answers, whether they were asked or not: the more useful first, and the same of
        every context before the next of any."""
        for name, asked in self.home.items():
            listed = [question.carry(context) if question.carry else () for question, context in asked]
            for row in zip_longest(*listed):
                for (_, context), arguments in zip(asked, row, strict=True):
                    if arguments is not None:
                        yield {"trace": context.digest, "ask": name, **arguments}


def check(annotation: Any, value: Any, name: str, context: Context, query: Query) -> Any:
    """The value, if it is what the annotation says. Raises ValueError, with one sentence."""
    origin = get_origin(annotation)
    if origin is Annotated:
        kind, *marks = get_args(annotation)
        for axis in (mark for mark in marks if isinstance(mark, Axis)):
            return on_axis(axis.name, value, name, context, query)
        return check(kind, value, name, context, query)
    if origin in (Union, types.UnionType):
        options = get_args(annotation)
        if value is None and type(None) in options:
            return None
        (kind,) = (one for one in options if one is not type(None))
        return check(kind, value, name, context, query)
    if origin is Literal:
        if value not in get_args(annotation) or isinstance(value, bool):
            names = ", ".join(map(str, get_args(annotation)))
            raise ValueError(f"{name} must be one of {names}, got {shorten(value)}.")
        return value
    if origin is list and isinstance(value, list) and len(value) <= MOST_ENTRIES:
        (kind,) = get_args(annotation)
        return [check(kind, one, name, context, query) for one in value]
    if origin is tuple and isinstance(value, list) and len(value) == len(get_args(annotation)):
        pairs = zip(get_args(annotation), value, strict=True)
        return tuple(check(kind, one, name, context, query) for kind, one in pairs)
    if annotation is Any:
        return value
    if annotation is float:
        if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
            return float(value)
    elif isinstance(annotation, type) and type(value) is annotation:
        return value
    raise ValueError(f"{name} must be {type_words(annotation)}, got {shorten(value)}.")


def on_axis(axis: str, value: Any, name: str, context: Context, query: Query) -> Any:
    allowed = context.choices(axis, query)
    if isinstance(allowed, range):
        if type(value) is not int or value not in allowed:
            raise ValueError(f"{name} must be in {allowed.start}..{allowed.stop - 1}, got {shorten(value)}.")
    elif not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {shorten(value)}.")
    return value


def type_words(annotation: Any) -> str:
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", dict: "a table"}
    return words.get(annotation, "a list")


def shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def named_arrays(returns: Mapping[str, Axes], result: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays of a result under their declared names, and its header."""
    if isinstance(result, Answer):
        return dict(result.arrays), dict(result.header)
    if result is None:
        return {}, {}
    if isinstance(result, Tensor | np.ndarray) and len(returns) == 1:
        return {next(iter(returns)): result}, {}
    if isinstance(result, Mapping):
        arrays = {name: array for name, array in result.items() if name in returns}
        return arrays, {name: part for name, part in result.items() if name not in returns}
    return {name: getattr(result, name) for name in returns}, {}


def as_numpy(array: Any) -> np.ndarray:
    if isinstance(array, Tensor):
        tensor = array.detach().cpu()
        return (tensor.float() if tensor.is_floating_point() else tensor).numpy()
    return np.asarray(array)


def javascript_types(*registries: Registry) -> str:
    """TypeScript declarations of the queries and answers of registries: `request(query)` is checked against them.

    Where several declare one name, a query is as any of them says, and an answer may hold the arrays of all.
    """
    queries: dict[str, dict[str, None]] = {}
    answers: dict[str, dict[str, None]] = {}
    for question in (one for registry in registries for one in registry.declared):
        fields = [
            f"{name}{'?' if name in question.defaults else ''}: {javascript_type(kind)}"
            for name, kind in question.parameters.items()
            if name not in question.in_script
        ]
        queries.setdefault(question.name, {})[f"{{ {'; '.join(fields)} }}" if fields else "{}"] = None
        answers.setdefault(question.name, {}).update(dict.fromkeys(question.returns))
    asked = [f"  {name}: {' | '.join(forms)};" for name, forms in sorted(queries.items())]
    answered = []
    for name, arrays in sorted(answers.items()):
        fields = [f"{javascript_name(one)}: NamedArray" for one in arrays]
        named = f"{{ {'; '.join(fields)} }}" if fields else "Record<string, NamedArray>"
        answered.append(f"  {name}: {{ arrays: {named}; [entry: string]: any }};")
    head = 'import type { NamedArray } from "./payload.js";\n'
    return "\n".join(
        [head, "export interface Queries {", *asked, "}", "", "export interface Answers {", *answered, "}", ""]
    )


def javascript_name(name: str) -> str:
    return name if name.isidentifier() else f'"{name}"'


def javascript_type(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is Annotated:
        return javascript_type(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return " | ".join(javascript_type(one) for one in get_args(annotation))
    if origin is Literal:
        return " | ".join(f'"{one}"' if isinstance(one, str) else str(one) for one in get_args(annotation))
    if origin is list:
        return f"Array<{javascript_type(get_args(annotation)[0])}>"
    if origin is tuple:
        return f"[{', '.join(javascript_type(one) for one in get_args(annotation))}]"
    names = {int: "number", float: "number", bool: "boolean", str: "string", type(None): "null", Any: "unknown"}
    return names.get(annotation, "object")

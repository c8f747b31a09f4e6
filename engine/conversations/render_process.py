"""Program that renders a chat template within limits, in a process of its own: JSON in, JSON out.

Run by its path, with Jinja and the standard library alone. The environment is that of transformers
(`render_jinja_template`): immutable and sandboxed, with loop controls, `{% generation %}`, `raise_exception`,
`strftime_now` and a `tojson` that leaves HTML alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from types import TracebackType
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

OPEN, CLOSE = "\ufdd0", "\ufdd1"  # around a mark; noncharacters, which no text has
LONGEST_REASON = 300  # characters
REASONING = ("reasoning_content", "thinking", "reasoning")  # names of one field, as transformers fills them
MARK = "mark_of_a_message"
TAG = "CONTINUE_FINAL_MESSAGE_TAG "

Spans = list[tuple[int, int]]


class RefusedError(Exception):
    """The template, or what it is given, cannot be rendered; `kind` says why."""

    def __init__(self, kind: str, reason: str = "") -> None:
        super().__init__(reason)
        self.kind = kind


class Generated(Extension):
    """`{% generation %}`: what the assistant wrote. `place` counts the characters before it."""

    tags = {"generation"}

    def __init__(self, environment: jinja2.Environment) -> None:
        super().__init__(environment)
        environment.extend(generated=self)
        self.place, self.spans = 0, Spans()

    def parse(self, parser: Any) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("keep"), [], [], body).set_lineno(line)

    def keep(self, caller: Callable[[], str]) -> str:
        text = caller()
        self.spans.append((self.place, self.place + len(text)))
        return text


class TemplateDict:
    """`dict` without its attributes."""

    def __call__(self, *args: Any, **named: Any) -> dict[Any, Any]:
        return dict(*args, **named)

    def fromkeys(self, *args: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args)


class TemplateNamespace(jinja2.utils.Namespace):
    """`namespace` that takes no attribute that begins with an underscore."""

    def __init__(*args: Any, **named: Any) -> None:
        self, rest = args[0], args[1:]
        found = dict(*rest, **named)
        for name in found:
            check_attribute(name)
        jinja2.utils.Namespace.__init__(self, found)

    def __setitem__(self, name: str, value: Any) -> None:
        check_attribute(name)
        super().__setitem__(name, value)


def check_attribute(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(f"an attribute called {name!r:.80}")


def refuse(reason: object) -> None:
    raise RefusedError("refused", str(reason))


def write_json(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


@lru_cache(maxsize=1)
def make_environment(template: str, now: datetime) -> tuple[ImmutableSandboxedEnvironment, jinja2.Template]:
    """The template, and the environment in which it renders one conversation after the other."""
    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generated, loopcontrols])
    made.filters["tojson"] = write_json
    made.globals |= {
        "raise_exception": refuse,
        "strftime_now": now.strftime,
        "dict": TemplateDict(),
        "namespace": TemplateNamespace,
    }
    return made, made.from_string(template)


def write(environment: Any, template: jinja2.Template, variables: dict[str, Any], most: int) -> str:
    """Text of at most `most` characters; `environment.generated.spans` are then those of its assistant."""
    tracker = environment.generated
    tracker.place, tracker.spans = 0, Spans()
    blocks = list[str]()
    for block in template.generate(**variables):
        blocks.append(block)
        tracker.place += len(block)
        if tracker.place > most:
            raise RefusedError("long")
    return "".join(blocks)


# --- which message each part of the text comes from ---


@lru_cache(maxsize=1)
def add_marks(environment: Any, source: str) -> jinja2.Template:
    """The template, which calls MARK where a loop comes to a message, and where such a loop ends."""
    tree = environment.parse(source)
    loops = list(tree.find_all(nodes.For))

    def call(*arguments: nodes.Expr) -> nodes.Output:
        return nodes.Output([nodes.Call(nodes.Name(MARK, "load"), list(arguments), [], None, None)])

    for number, loop in enumerate(loops):
        if isinstance(loop.target, nodes.Name):
            loop.body.insert(0, call(nodes.Const(number), nodes.Name(loop.target.name, "load")))
    for parent in [tree, *tree.find_all(nodes.Node)]:
        for _, value in parent.iter_fields():
            if isinstance(value, list) and any(isinstance(one, nodes.For) for one in value):
                value[:] = [
                    new
                    for one in value
                    for new in ([one, call(nodes.Const(loops.index(one)))] if isinstance(one, nodes.For) else [one])
                ]

    for node in tree.find_all(nodes.Node):
        node.environment, node.lineno = environment, node.lineno or 1
    return environment.template_class.from_code(environment, environment.compile(tree), environment.globals)


def read_marks(marked: str) -> tuple[str, list[tuple[int, int, int]]]:
    """The text without its marks, and of each part that a loop wrote: start, end, number of the message."""
    parts, found = marked.split(OPEN), list[tuple[int, int, int]]()
    texts, place, current, before = [parts[0]], len(parts[0]), -1, dict[str, int]()
    for part in parts[1:]:
        said, _, text = part.partition(CLOSE)
        loop, _, message = said.partition(":")
        if message:
            before.setdefault(loop, current)
            current = int(message)
        else:
            current = before.pop(loop, current)
        if text and current >= 0:
            found.append((place, place + len(text), current))
        texts.append(text)
        place += len(text)
    return "".join(texts), found


def trace_messages(
    asked: dict[str, Any], environment: Any, variables: dict[str, Any], text: str
) -> list[tuple[int, int, int]]:
    """Parts of the text by message; empty where marks change what the template writes."""
    if OPEN in text or CLOSE in text:
        return []
    numbers = {id(message): number for number, message in enumerate(variables["messages"])}

    def mark(loop: int, message: Any = None) -> str:
        at = numbers.get(id(message), "")
        return f"{OPEN}{loop}:{at}{CLOSE}" if message is None or at != "" else ""

    environment.globals[MARK] = mark
    try:
        template = add_marks(environment, asked["template"])
        plain, found = read_marks(write(environment, template, variables, 2 * asked["most"]))
    except (RefusedError, jinja2.TemplateError, ValueError):
        return []
    return found if plain == text else []


# --- conversations ---


def prepare(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages without keys that are None; reasoning stands under each name that templates read."""
    found = []
    for given in messages:
        message = {key: value for key, value in given.items() if value is not None}
        reasoning = next((message[key] for key in REASONING if key in message), None)
        if reasoning is not None:
            message = {"thinking": reasoning, **message, "reasoning_content": reasoning}
        found.append(message)
    return found


def tag_last(messages: list[dict[str, Any]]) -> str:
    """Put the tag at the end of the last message's text; its text before."""
    content = messages[-1].get("content")
    if isinstance(content, list):
        part = next((part for part in reversed(content) if "text" in part), None)
        if part is not None:
            before = part["text"]
            part["text"] += TAG
            return str(before)
    if not isinstance(content, str):
        raise RefusedError("nothing to continue")
    messages[-1]["content"] = content + TAG
    return content


def cut_at_tag(text: str, last: str) -> str:
    if last.strip() not in text or TAG.strip() not in text:
        raise RefusedError("last is changed")
    place = text.rindex(TAG.strip())
    return text[:place] if text[place : place + len(TAG)] == TAG else text[:place].rstrip()


def render(asked: dict[str, Any]) -> dict[str, Any]:
    """`text`; `assistant`, the spans of `{% generation %}`; `parts`, start, end and number of a message; `prompt`,
    where what asks for the next turn begins."""
    made: Any = make_environment(asked["template"], datetime.fromisoformat(asked["now"]))
    (environment, template), messages = made, prepare(asked["messages"])
    continued = tag_last(messages) if asked["continue_final_message"] else ""
    variables = {**asked["variables"], "messages": messages, "tools": asked["tools"], "documents": asked["documents"]}
    variables["add_generation_prompt"] = asked["add_generation_prompt"]
    whole = write(environment, template, variables, asked["most"])
    spans = environment.generated.spans
    text = cut_at_tag(whole, continued) if asked["continue_final_message"] else whole
    parts = trace_messages(asked, environment, variables, whole)
    prompt = len(text)
    if asked["add_generation_prompt"]:
        before = write(environment, template, {**variables, "add_generation_prompt": False}, asked["most"])
        last = max((end for _, end, _ in parts), default=prompt)
        prompt = len(before) if whole.startswith(before) else last if whole[:last] == before[:last] else prompt
    parts = [(start, min(end, prompt), number) for start, end, number in parts if start < prompt]
    return {"text": text, "assistant": spans, "parts": parts, "prompt": prompt}


def limit_process(seconds: int, memory: int) -> None:
    """Limits of the processor's seconds, of bytes of addresses and of files, where the system has such."""
    with suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        with suppress(ValueError, OSError):  # macOS has it, and refuses
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def tell_failure(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> None:
    """Tells in JSON why nothing was rendered: what a template raises may be anything."""
    known: dict[type[BaseException], str] = {RecursionError: "deep", MemoryError: "memory", OverflowError: "memory"}
    named = known.get(kind, "failed")
    reason = f"{kind.__name__}: {error}" if named == "failed" else ""
    if isinstance(error, RefusedError):
        named, reason = error.kind, str(error)
    elif isinstance(error, jinja2.exceptions.SecurityError):
        named, reason = "forbidden", str(error)
    elif isinstance(error, jinja2.TemplateSyntaxError):
        named, reason = "syntax", f"line {error.lineno}: {error.message}"
    elif isinstance(error, jinja2.UndefinedError):
        reason = str(error)
    json.dump({"error": named, "reason": reason[:LONGEST_REASON]}, sys.stdout)


if __name__ == "__main__":
    sys.excepthook = tell_failure
    given = json.JSONDecoder().decode(sys.stdin.read())  # of what nests too deeply `tell_failure` tells
    limit_process(given["seconds"], given["memory"])
    json.dump([render(one) for one in given["each"]], sys.stdout)

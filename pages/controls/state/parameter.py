"""What a link can hold of a page, declared: its name, what it may stand at, what it stands at by itself, and what it
is called. Data; nothing here draws or remembers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, LiteralString

from engine.plurals import count_words

Rule = Callable[[str], str]  # "" for what makes sense, else what it must be: "a number from 0 to 3"


def within(text: str, low: float, high: float) -> bool:
    try:
        return low <= float(text) <= high
    except ValueError:
        return False


def number(low: float, high: float) -> Rule:
    return lambda text: "" if within(text, low, high) else f"a number from {low:g} to {high:g}"


def whole_number(low: int = 0, high: int | None = None) -> Rule:
    span = "" if high is None else f" from {low:,} to {high:,}"

    def rule(text: str) -> str:
        fits = text.isascii() and text.isdecimal() and len(text) < 16 and low <= int(text) <= (high or int(text))
        return "" if fits else f"a whole number{span}"

    return rule


def span(low: float, high: float) -> Rule:
    """Rule of a control that goes from `low` to `high`, in whole numbers where both are ints."""
    return whole_number(low, high) if isinstance(low, int) and isinstance(high, int) else number(low, high)


def one_of(options: Collection[object]) -> Rule:
    """Rule that a text is one of the options; its sentence lists them up to 8, and else says how many there are."""
    texts = [str(option) for option in options]
    few = f"one of {', '.join(texts)}" if len(texts) <= 8 else f"one of the {len(texts)} that are offered here"
    return lambda text: "" if text in texts else few


@dataclass(frozen=True, kw_only=True)
class Hideable:
    """Part of a page that a class link can hide, under the name `hidden_as` where that is not empty: what has the key
    `name`, or the CSS selector `element`; with it goes what changes what it holds, by key or by selector."""

    name: str = field(kw_only=False)
    hidden_as: LiteralString = ""
    element: str = ""
    goes_with: tuple[str, ...] = ()

    @property
    def selectors(self) -> tuple[str, ...]:
        return (self.element or by_key(self.name), *map(by_key, self.goes_with))


def by_key(key: str) -> str:
    """Selector of what has a key; one that is a selector stays."""
    return key if key.startswith((".", "[")) else f".st-key-{key.replace(' ', '-')}"


@dataclass(frozen=True, kw_only=True)
class Parameter(Hideable):
    """`name` is its name in an address, and the key of its widget. What is `carried` goes along to every page that has
    a parameter of that name; any other stays on the page where it was set. Links that are older may call it by one of
    its `older` names."""

    default: Any = field(kw_only=False)
    label: LiteralString = ""
    help: LiteralString = ""
    carried: bool = False
    older: tuple[str, ...] = ()

    def must_be(self, text: str) -> str:
        """Says what a text of an address must be; empty for one that makes sense."""
        raise NotImplementedError

    def parse(self, text: str) -> Any:
        """Reads a text that makes sense."""
        return text

    def text(self, value: Any) -> str | list[str]:
        """Text of a value in an address, as its widget writes it there."""
        return str(value)

    def fits(self, value: Any) -> bool:
        """Tells whether a value that was left elsewhere can stand here."""
        return True

    def read(self, said: object) -> Any:
        """Value of what an older link, or a browser, says. Raises ValueError, which says what it must be."""
        text = ", ".join(map(str, said)) if isinstance(said, list) else str(said)
        if isinstance(said, bool) or (must := self.must_be(text)):
            raise ValueError(must if not isinstance(said, bool) else "no truth value")
        return self.parse(text)


@dataclass(frozen=True, kw_only=True)
class Number(Parameter):
    """Number from `low` to `high`, both included; whole where its default is an int."""

    low: float = field(kw_only=False)
    high: float = field(kw_only=False)
    step: float = 1

    def must_be(self, text: str) -> str:
        return span(self.low, self.high)(text)

    def parse(self, text: str) -> float:
        kind: Callable[[float], float] = type(self.default)
        return kind(float(text))

    def fits(self, value: Any) -> bool:
        return bool(self.low <= value <= self.high)


@dataclass(frozen=True, kw_only=True)
class Choice(Parameter):
    """Choice of one option, by the labels that stand on them and in the address; a link may say the option as well."""

    options: Mapping[Any, str] = field(kw_only=False, hash=False)

    def must_be(self, text: str) -> str:
        return one_of(dict.fromkeys((*map(str, self.options), *self.options.values())))(text)

    def parse(self, text: str) -> Any:
        return next(option for option, label in self.options.items() if text in (label, str(option)))

    def text(self, value: Any) -> str:
        return self.options[value]

    def fits(self, value: Any) -> bool:
        return value in self.options


def choice(name: str, default: Any, options: Collection[Any], **more: Any) -> Choice:
    """A choice of options that are called what they are."""
    return Choice(name, default, {option: str(option) for option in options}, **more)


@dataclass(frozen=True, kw_only=True)
class Several(Parameter):
    """Any number of options, of which an address says what it knows."""

    options: Mapping[Any, str] = field(kw_only=False)

    def must_be(self, text: str) -> str:
        return ""

    def parse(self, text: str) -> list[Any]:
        said = text.split(",")
        return [option for option, label in self.options.items() if label in said or str(option) in said]

    def text(self, value: Any) -> list[str]:
        return [self.options[option] for option in value]


@dataclass(frozen=True, kw_only=True)
class Flag(Parameter):
    """Switch that is on or off."""

    def must_be(self, text: str) -> str:
        return one_of(("true", "false"))(text.lower())

    def parse(self, text: str) -> bool:
        return text.lower() == "true"

    def text(self, value: Any) -> str:
        return str(value).lower()


@dataclass(frozen=True, kw_only=True)
class Text(Parameter):
    """Text of at most `most` characters, and what `rule` says besides."""

    most: int = field(kw_only=False)
    rule: Rule = lambda _: ""

    def must_be(self, text: str) -> str:
        return f"at most {count_words(self.most, 'character')}" if len(text) > self.most else self.rule(text)

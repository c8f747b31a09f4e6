"""Where in a TOML text each key stands. tomllib reads the values and forgets the places."""

from __future__ import annotations

import json
import re

TOKEN = re.compile(
    r"""(?P<blank>[ \t\r]+|\#[^\n]*)
      | (?P<newline>\n)
      | (?P<string>\"{3}(?:\\.|[^\\])*?\"{3} | '{3}.*?'{3} | "(?:\\.|[^"\\\n])*" | '[^'\n]*')
      | (?P<mark>[\[\]{}=,.])
      | (?P<bare>[^\s\[\]{}=,.\#"']+)""",
    re.DOTALL | re.VERBOSE,
)


def key_lines(text: str) -> dict[str, int]:
    """Dotted key -> line number from 1, tables included, keys in arrays not; `text` is TOML that tomllib accepts."""
    return _Scanner(text).found


class _Scanner:
    def __init__(self, text: str) -> None:
        self.found: dict[str, int] = {}
        self.tokens: list[tuple[str, int]] = []
        line = 1
        for match in TOKEN.finditer(text):
            if match.lastgroup != "blank":
                self.tokens.append((match[0], line))
            line += match[0].count("\n")
        self.at = 0
        self._document()

    def _document(self) -> None:
        table: tuple[str, ...] = ()
        while self.at < len(self.tokens):
            if self._peek() == "\n":
                self.at += 1
            elif self._peek() == "[":
                while self._peek() == "[":
                    self.at += 1
                table = self._key((), "]")
            else:
                self._value(self._key(table, "="))

    def _key(self, table: tuple[str, ...], end: str) -> tuple[str, ...]:
        """Read a dotted key up to `end`, note its line, and return the whole path."""
        line, parts = self.tokens[self.at][1], []
        while self._peek() != end:
            token = self._next()
            if token != ".":
                parts.append(_unquoted(token))
        while self._peek() == end:
            self.at += 1
        path = (*table, *parts)
        for length in range(len(table) + 1, len(path) + 1):
            self.found.setdefault(".".join(path[:length]), line)
        return path

    def _value(self, path: tuple[str, ...]) -> None:
        if self._peek() == "{":
            self.at += 1
            while self._peek() != "}":
                if self._peek() in (",", "\n"):
                    self.at += 1
                else:
                    self._value(self._key(path, "="))
            self.at += 1
            return
        depth = 0
        while self.at < len(self.tokens) and (depth or self._peek() not in (",", "}", "\n")):
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(self._next(), 0)

    def _peek(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def _next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1][0]


def _unquoted(token: str) -> str:
    if token.startswith('"'):
        return str(json.loads(token))
    return token.strip("'")

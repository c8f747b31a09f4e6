"""A view as one HTML file that needs nothing else: its modules, its numbers and what it may ask, without a network.

Every module becomes a data: URL under a name of its own in an import map, since a data: URL cannot import a neighbour.
The payload, and answers to what the view asks later, are compressed and unpacked by the browser.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

from views.core.bundle import LAZY, MODULES, PLOTLY, STATIC, module_path, resolve, style_sheet
from views.core.theme import css_variables, tokens

PREFIX = "loupe/"
COMMENT = re.compile(r"/\*\*[\s\S]*?\*/|^\s*//.*$", re.MULTILINE)
CHARTS = "core/plotly"  # the module that needs plotly.js
CHARTED = {"points"}  # questions whose answers it draws in a tab, which a file without them leaves out
MOST_ANSWERS = 1000  # of what a view asks, in one file
MOST_BYTES = 3_000_000  # of those answers, as they stand in the file
LEAST = 300  # bytes of one of them
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'"
)


class PackedAnswer(NamedTuple):
    """Query of a view, and the payload that answers it as `packed` writes it."""

    query: Mapping[str, Any]
    packed: str


def answer_all(
    queries: Iterable[Mapping[str, Any]],
    answer: Callable[[Mapping[str, Any]], bytes],
    most: int = MOST_ANSWERS,
    room: int = MOST_BYTES,
) -> list[PackedAnswer]:
    """Answers to the queries that can be answered, up to `most` of them and `room` bytes."""
    found: list[PackedAnswer] = []
    for query in queries:
        if len(found) == most or room < LEAST:
            break
        try:
            content = pack_text(answer(query))
        except ValueError:
            continue
        if len(content) <= room:
            found.append(PackedAnswer(query, content))
            room -= len(content)
    return found


def self_contained(
    view: str,
    payload: bytes,
    *,
    title: str,
    caption: Iterable[str] = (),
    state: str = "",
    answers: Iterable[PackedAnswer] = (),
) -> str:
    """The text of the file. `view` is a module of assets/views, `payload` what `pack` wrote for it.

    `state` is the part of the address behind the #: the layer, the head and the cell that are shown first. Of what the
    view asks later, `answers` are here; all else is answered with a sentence.
    """
    answers = list(answers)
    sources = modules(view)
    charted = CHARTS in modules(view, lazy=False) or any(one.query.get("ask") in CHARTED for one in answers)
    imports = {f"{PREFIX}{name}.js": data_url(source) for name, source in sources.items()}
    known = [{"query": dict(one.query), "payload": one.packed} for one in answers]
    given = {"view": module_path(view), "state": state, "payload": pack_text(payload), "answers": known}
    lines = "".join(f"<p>{html.escape(line)}</p>" for line in caption)
    return PAGE % {
        "title": html.escape(title),
        "policy": html.escape(POLICY),
        "style": page_style(),
        "look": style_sheet(MODULES, module_path(view)),
        "caption": lines,
        "imports": script_json({"imports": imports}),
        "given": script_json(given),
        "library": LIBRARY % packed_plotly() if charted else "",
        "main": f"{PREFIX}share/standalone.js",
    }


def modules(view: str, lazy: bool = True) -> dict[str, str]:
    """The view's module and all that it imports, with `lazy` also later: path -> source with its imports as the map
    names them, without comments, whose imports are types."""
    found: dict[str, str] = {}
    waiting = ["share/standalone", module_path(view)]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        source = COMMENT.sub("", (MODULES / f"{name}.js").read_text(encoding="utf-8"))
        found[name] = rename_imports(source, name)
        waiting += imported_modules(source, name, lazy)
    return dict(sorted(found.items()))


def imported_modules(source: str, name: str, lazy: bool = True) -> list[str]:
    """Modules that module `name` imports; for a path computed at run time, all that match, unless any view does."""
    paths = [resolve(match[3], name) for match in STATIC.finditer(source)]
    for match in LAZY.finditer(source) if lazy else ():
        pattern = resolve(re.sub(r"\$\{[^}]*\}", "*", match[3]), name)
        if pattern != "*":
            paths += [path.relative_to(MODULES).with_suffix("").as_posix() for path in MODULES.glob(f"{pattern}.js")]
    return paths


def rename_imports(source: str, name: str) -> str:
    def absolute(match: re.Match[str]) -> str:
        return f"{match[1]}{match[2]}{PREFIX}{resolve(match[3], name)}.js{match[2]}"

    return LAZY.sub(absolute, STATIC.sub(absolute, source))


@lru_cache(maxsize=256)
def data_url(source: str) -> str:
    return "data:text/javascript;base64," + base64.b64encode(source.encode()).decode()


def pack_text(payload: bytes) -> str:
    """A payload as it stands in the file."""
    return base64.b64encode(gzip.compress(payload, 9, mtime=0)).decode()


@cache
def packed_plotly() -> str:
    return pack_text(PLOTLY.read_bytes())


def script_json(value: Any) -> str:
    """JSON that may stand between script tags, whatever texts it holds."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def page_style() -> str:
    """The page around the view, light or dark as the reader's system is, or as they choose."""
    light, dark = (ground_rules(tokens()["colors"][shade]) for shade in ("light", "dark"))
    rules = [
        f":root{light}",
        f"@media(prefers-color-scheme:dark){{:root{dark}}}",
        f":root[data-shade=light]{light}",
        f":root[data-shade=dark]{dark}",
        f"body{{font:14px/1.5 {tokens()['fonts']['sans']}}}",
    ]
    return css_variables() + "".join(rules) + STYLE


def ground_rules(colors: Mapping[str, str]) -> str:
    ground, ink = colors["ground"], colors["ink"]
    return f"{{--st-background-color:{ground};background:{ground};color:{ink}}}"


STYLE = """
body { margin: 0 auto; padding: 20px 24px; max-width: 1720px; }
header { display: flex; gap: 16px; align-items: baseline; margin-bottom: 16px; }
h1 { font-size: 18px; margin: 0; }
header div { flex: 1; }
header p { margin: 0; opacity: 0.72; overflow-wrap: anywhere; max-height: 4.5em; overflow: auto; }
header p + p { font-size: 12px; }
header button { font: inherit; color: inherit; background: none; border: 1px solid; border-radius: 6px; }
header button { padding: 2px 10px; opacity: 0.72; cursor: pointer; }
#said:empty { display: none; }
#said { position: fixed; bottom: 16px; left: 24px; right: 24px; max-width: 720px; margin: auto; z-index: 30; }
#said { padding: 8px 14px; border-radius: 8px; background: #1b1f27; color: #fbfbfa; }
"""

LIBRARY = '<script type="text/plain" id="plotly">%s</script>\n'
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%(policy)s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%(title)s</title>
<style>%(style)s</style>
<script type="importmap">%(imports)s</script>
</head>
<body>
<header><div><h1>%(title)s</h1>%(caption)s</div><button id="shade" type="button">light or dark</button></header>
<main id="view"></main>
<style>%(look)s</style>
<p id="said" role="status"></p>
<script type="application/json" id="given">%(given)s</script>
%(library)s<script type="module">import "%(main)s";</script>
</body>
</html>
"""

"""The modules of assets/views as one script, so that a browser fetches one file in the place of a hundred.

Every module becomes a method named after its path, which runs once, when it is first imported, and returns what it
exports. Lines stay lines, for the source map by which a browser's tools show the modules. Style sheets are texts in
the same script.

A module may import by `import { a, b as c } from`, `import * as all from` and `import(...)`, and may export functions,
classes and constants where they stand, by `export { a as b }`, or those of another module by `export { a } from`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from posixpath import dirname, join, normpath

import plotly

from engine.places import ASSETS

MODULES = ASSETS / "views"
PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
IMPORTED_STYLE = re.compile(r"""@import url\("([\w./-]+)"\);\n""")
STATIC = re.compile(r"""(\b(?:from|import)\s*)(["'])(\.\.?/[\w/.-]+)\.js\2""")
LAZY = re.compile(r"""(\bimport\(\s*)(["'`])(\.\.?/[\w${}/.-]+?)\.js\2""")
FROM = re.compile(
    r"""^(?:(import|export)\s+(\{[^{}]*\}|\*\s+as\s+\w+)\s+from\s+"(\.\.?/[\w/.-]+)\.js"|export\s+(\{[^{}]*\}));""",
    re.MULTILINE,
)
EXPORTED = re.compile(r"^export ((?:async )?(?:function\*?|class|const) +(\w+))", re.MULTILINE)
LEFT_OVER = re.compile(r"^(?:import|export)\b(?!\().*$|\bimport\.meta\b.*$", re.MULTILINE)
SCRIPT = "views.js"
START = """const made = new Map(), waiting = new Set();
export function use(name) {
  if (made.has(name)) return made.get(name);
  if (!modules[name]) throw new Error(`expected a module of assets/views, got ${name}`);
  if (waiting.has(name)) throw new Error(`${name} imports itself through others`);
  waiting.add(name);
  try { made.set(name, modules[name]()); } finally { waiting.delete(name); }
  return made.get(name);
}
const load = async (name) => use(name);
export const modules = {
"""


def module_path(name: str) -> str:
    """Path of a view's module under assets/views, without ".js"."""
    return name if "/" in name else f"{name}/{name}"


def resolve(path: str, name: str) -> str:
    """A relative import of module `name` as a path from assets/views."""
    return normpath(join(dirname(name), path))


def style_sheet(folder: Path, name: str) -> str:
    """The style sheet beside a module with those it imports in their places; "" where there is none."""
    place = folder / f"{name}.css"
    if not place.is_file():
        return ""

    def import_sheet(match: re.Match[str]) -> str:
        return style_sheet(folder, resolve(match[1], name).removesuffix(".css"))

    return IMPORTED_STYLE.sub(import_sheet, place.read_text(encoding="utf-8"))


def wrap(source: str, name: str) -> str:
    """The source of module `name` as a method of an object, with as many lines.

    Raises ValueError for a form of import or export that is not read here.
    """
    exported: list[str] = []

    def bind(match: re.Match[str]) -> str:
        form, names, path, own = match.groups()
        used = f"use({json.dumps(resolve(path, name))})" if path else ""
        if form != "import":
            names = names or own
            pairs = (one.split(" as ") for one in names.strip("{} \n,").split(","))
            exported.extend(f"{pair[-1].strip()}: {used and f'{used}.'}{pair[0].strip()}" for pair in pairs)
            return "\n" * names.count("\n")
        names = re.sub(r"\s+as\s+", ": ", names) if names.startswith("{") else names.split()[-1]
        return f"const {names} = {used};"

    def keep(match: re.Match[str]) -> str:
        exported.append(match[2])
        return match[1]

    def later(match: re.Match[str]) -> str:
        return f"load({match[2]}{resolve(match[3], name)}{match[2]}"

    body = LAZY.sub(later, EXPORTED.sub(keep, FROM.sub(bind, source)))
    code = re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL)
    if left := LEFT_OVER.search(code):
        raise ValueError(f"expected an import or export that views/core/bundle.py reads, got {left[0]!r} in {name}.js")
    return f"{json.dumps(name)}() {{{body}return {{ {', '.join(exported)} }};}},\n"


def bundle(folder: Path) -> dict[str, str]:
    """The script, and the source map beside it, by file name. The script exports `use(name)`, which returns the exports
    of a module, and `styles`, the style sheets by the name of their module. Raises FileNotFoundError where there is no
    module: no page could draw anything."""
    sources = {_name(folder, path): path.read_text(encoding="utf-8") for path in _files(folder, ".js")}
    if not sources:
        raise FileNotFoundError(f"expected the modules of the views in {folder}, got none; install Loupe again.")
    styles = {name: style_sheet(folder, name) for name in (_name(folder, path) for path in _files(folder, ".css"))}
    parts = [START]
    lines, lines_before = [""] * START.count("\n"), 0
    for number, (name, source) in enumerate(sources.items()):
        part = wrap(source, name)
        count = part.count("\n")
        # Each line starts where the line before it did, and one line down; the first says in which file.
        lines += ["AAAA" if not number else f"AC{_back(lines_before)}A", *["AACA"] * (count - 1)]
        lines_before = count - 1
        parts.append(part)
    texts = json.dumps(styles, ensure_ascii=False)
    parts.append(f"}};\nexport const styles = {texts};\n//# sourceMappingURL={SCRIPT}.map\n")
    names = [f"{name}.js" for name in sources]
    known = {"version": 3, "sources": names, "sourcesContent": list(sources.values()), "mappings": ";".join(lines)}
    return {SCRIPT: "".join(parts), f"{SCRIPT}.map": json.dumps(known)}


def _files(folder: Path, suffix: str) -> Iterator[Path]:
    return iter(sorted(folder.rglob(f"*{suffix}")))


def _name(folder: Path, path: Path) -> str:
    return path.relative_to(folder).with_suffix("").as_posix()


DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def _back(lines: int) -> str:
    """-`lines` as a source map writes numbers: five bits a digit, the sign in the lowest."""
    value = 2 * lines + 1 if lines else 0
    digits = ""
    while value >= 32:
        digits += DIGITS[32 | value & 31]
        value >>= 5
    return digits + DIGITS[value]

"""Mounts the ES modules of assets/views in a Streamlit page, and answers what they ask for later.

The modules reach the browser as one script (bundle.py), over Streamlit's own route for component folders, which is
there under `uvicorn asgi:app` and `streamlit run app.py` alike. `declare_component(name, path=...)` opens it, and the
name carries the hash of all modules: `/component/views.core.component.modules-<hash>/views.js`. An edit gives the
script a new address, and asgi.py may call it immutable, serve it from memory and name it in the HTML, so that it is
there before the first view is. Each alternative lacks something: `app/static` has no place for a hash, an ASGI route is
absent under `streamlit run`, the media manager drops a file with its session, and `asset_dir` wants an installed
package.
"""

import hashlib
import json
import mimetypes
import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
import plotly
import streamlit as st
from streamlit.components.v1 import declare_component

from views.core.bundle import MODULES, PLOTLY, SCRIPT, bundle, module_path
from views.core.payload import pack
from views.core.theme import css_variables
from views.core.turns import turns

DECLARED = "declared modules"  # in the session state
PINNED = "modules of this run"  # there too
PAGE = "page"  # there too: which page runs, as app.py says
TURNED = "page is turned"  # there too: whether another one ran before
LOOKED_AFTER = 1.0  # seconds until an edit of a module is seen
QUESTIONS_AT_ONCE = 32  # answered by one rerun of a courier; the browser asks again for the rest


class Question(NamedTuple):
    id: int
    query: dict[str, Any]
    streamed: bool = False  # answered in parts


mimetypes.add_type("text/javascript", ".js")  # where a system says text/plain, browsers refuse the module
mimetypes.add_type("text/css", ".css")

# A browser older than those of package.json lacks one of what is asked for.
LOADER = """
const NEEDED = ["selector(:has(a))", "(color: color-mix(in srgb, red, blue))"];
const OLD = "Loupe draws in Chrome and Edge 111, Firefox 121, Safari 16.4 and newer. This browser is older: update it.";

export default async function (component) {
  const place = component.parentElement;
  if (!NEEDED.every((what) => CSS.supports(what)) || !self.OffscreenCanvas) return tellOld();
  try {
    const { use, styles } = await import(new URL(%(address)s, location.href).href);
    return await use(%(module)s).present(%(name)s, component, styles);
  } catch (error) {
    console.error(error);
    const sentence = place.querySelector("p") ?? place.appendChild(document.createElement("p"));
    sentence.textContent = `This view ("${%(name)s}") could not be loaded: ${error.message}. Reload the page.`;
  }
}

/** Once on a page, below all of it. */
function tellOld() {
  if (document.getElementById("old-browser")) return;
  const sentence = Object.assign(document.createElement("p"), { id: "old-browser", textContent: OLD });
  sentence.style.cssText = "position:fixed;z-index:999;inset:auto 0 0;margin:0;padding:12px 24px;" +
    "font:15px sans-serif;background:Canvas;color:CanvasText;border-top:1px solid";
  document.body.append(sentence);
}
"""

# The leading line end says "this is CSS": Streamlit takes a single line for the path of a file.
SENTENCE = "\n.loupe-sentence{font:14px var(--st-font);color:var(--st-text-color);margin:8px 0}"
# As in app.css, which does not reach into a view.
TERM = """
.glossary { color: inherit; text-decoration-line: underline; text-decoration-style: dotted; text-underline-offset: 3px }
"""


def begin(page: str) -> None:
    """The whole script runs, for `page`: app.py says so, and no fragment does.

    What is mounted until it runs again has one address, though modules are edited meanwhile: a courier of another
    address has a store of its own, and what views ask of theirs nobody would carry.
    """
    st.session_state[TURNED] = st.session_state.get(PAGE) != page
    st.session_state[PAGE] = page
    st.session_state.pop(PINNED, None)


def view(name: str, *, events: tuple[str, ...] = ()) -> Callable[..., Any]:
    """A function that mounts a module of assets/views, which exports `mount(root, data, emit)`.

    `name` is its path there without ".js"; a room's own name stands for its main module, "attention" for
    "attention/attention". A style sheet of the same name beside it, attention/attention.css, is loaded with it.

    `events` are the names with which the module may call `emit(event, value)`: the result of the mounting
    call has one attribute for each, None except in the run that the event caused.

    The function takes `data` (bytes made by `pack`, or a JSON-able mapping), `key` (under one key, DOM and
    view state outlive reruns), `on` (event -> callback, run before the script) and `height` ("content" or
    pixels).
    """
    path = module_path(name)
    if not (MODULES / f"{path}.js").is_file():
        raise ValueError(f"expected a module in assets/views, got {name!r}; add assets/views/{path}.js")

    def mount(
        data: bytes | Mapping[str, Any],
        *,
        key: str,
        on: Mapping[str, Callable[[], None]] | None = None,
        height: int | str = "content",
    ) -> Any:
        if unknown := set(on or {}) - set(events):
            known = list(events)
            raise ValueError(f"expected events among {known}, got {sorted(unknown)}; declare them in view()")
        callbacks = {f"on_{event}_change": (on or {}).get(event, _ignore) for event in events}
        payload = data if isinstance(data, bytes) else pack(data, {})
        return _register("core/host", path)(key=key, data=payload, height=height, **callbacks)

    return mount


def courier(
    key: str,
    answer: Callable[[dict[str, Any]], bytes],
    parts: Callable[[dict[str, Any]], Iterator[bytes]] | None = None,
) -> None:
    """Answers `request(query)` and `stream(query)` of store.js for all views of this page, by rerunning one invisible
    fragment.

    `answer` takes the query and returns bytes made by `pack`; `parts` yields the parts of what is streamed, each of
    which is in the browser while the next one is made. Their ValueError is the sentence that the view shows. The query
    comes from a browser, to be checked like any other input, and may be about what is gone. Call it once a page.

    No other question is answered while parts come, and a rerun of the whole page breaks them off, which is how a view
    stops them: by an event of its own. Let an iterator end after some seconds, and the browser ask for the rest.
    """
    asked, asking, turn = f"{key} asked", f"{key} asked by", f"{key} turn"

    def listen() -> None:
        if key in st.session_state:  # not where the page was left as the question came
            st.session_state[asked] = st.session_state[key].ask
            st.session_state[asking] = st.session_state.get(PAGE)

    @st.fragment
    def serve() -> None:
        here = st.session_state.get(PAGE)
        ask = st.session_state.pop(asked, None)
        left = st.session_state.pop(asking, here) != here  # another page has asked, and nobody waits
        questions = [] if left else _questions(ask)
        plain = [one for one in questions if not (parts and one.streamed)]
        streams = [(one.id, parts(one.query)) for one in questions if parts and one.streamed]
        coming = [id for id, _ in streams]
        st.session_state[turn] = count = st.session_state.get(turn, 0) + 1
        with turns.take():
            data = _answers(count, plain, answer, coming)  # no two alike, so that each one reaches courier.js
        _register("core/courier", "courier")(key=key, data=data, on_ask_change=listen)
        for place, (header, arrays) in enumerate(_parts(streams)):
            data = pack({"turn": count, "place": place, **header}, arrays)
            _register("core/courier", "courier_part")(key=f"{key} part {place}", data=data)

    serve()


def _questions(value: Any) -> list[Question]:
    """Reads what courier.js sends, [{id, query, streamed}, ...]; anything else came from elsewhere and is passed
    over."""
    entries = [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
    said = [(entry.get("id"), entry.get("query"), entry.get("streamed") is True) for entry in entries]
    sound = [Question(id, query, part) for id, query, part in said if isinstance(id, int) and isinstance(query, dict)]
    return sound[:QUESTIONS_AT_ONCE]


def _answers(
    turn: int, questions: list[Question], answer: Callable[[dict[str, Any]], bytes], streamed: list[int]
) -> bytes:
    payloads: dict[str, Any] = {}
    outcomes: list[dict[str, Any]] = []
    for id, query, _ in questions:
        try:
            payloads[str(id)] = np.frombuffer(answer(query), np.uint8)
            outcomes.append({"id": id})
        except ValueError as error:
            outcomes.append({"id": id, "sentence": str(error)})
    return pack({"turn": turn, "answers": outcomes, "streamed": streamed}, payloads)


def _parts(streams: list[tuple[int, Iterator[bytes]]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yields one stream after the other, and behind each that it has ended, with the sentence if that is a fault."""
    for id, stream in streams:
        ended: dict[str, Any] = {"id": id, "ended": True}
        try:
            for part in stream:
                yield {"id": id, "ended": False}, {"part": np.frombuffer(part, np.uint8)}
        except ValueError as error:
            ended["sentence"] = str(error)
        yield ended, {}


def _register(module: str, name: str) -> Any:
    """The mounting command whose loader takes `module` from the script of this run and hands `name` to it."""
    digest = st.session_state.get(PINNED) or _current_digest()
    st.session_state[PINNED] = digest
    if st.session_state.get(DECLARED) != digest:  # once a session: what is declared belongs to a runtime
        declare_component(f"modules-{digest}", path=_bundle_modules(digest)[0].name)
        st.session_state[DECLARED] = digest
    return _command(module, name, _script_address(digest))


@lru_cache(maxsize=4)
def _bundle_modules(digest: str) -> tuple[TemporaryDirectory[str], dict[str, str]]:
    """A folder that holds what bundle.py makes of the modules, for as long as a session may ask for it; and the same
    texts."""
    folder, texts = TemporaryDirectory(prefix="loupe-views-", ignore_cleanup_errors=True), bundle(MODULES)
    for name, text in texts.items():
        (Path(folder.name) / name).write_text(text, encoding="utf-8")
    return folder, texts


def script() -> tuple[str, str]:
    """Address and text of the script that views need: asgi.py serves it before Streamlit would."""
    digest = _current_digest()
    return _script_address(digest), _bundle_modules(digest)[1][SCRIPT]


def _script_address(digest: str) -> str:
    return f"{_folder_address(f'modules-{digest}')}/{SCRIPT}"


def plotly_address() -> str:
    """Address of the pinned Python package's plotly.js, for core/plotly.js, which loads it when a chart is drawn.

    A view needs it where a cursor moves along a chart without a message to the server; every other chart is a plain
    st.plotly_chart.
    """
    name = f"plotly-{plotly.__version__}"
    declare_component(name, path=PLOTLY.parent)
    return f"{_folder_address(name)}/{PLOTLY.name}"


def _folder_address(name: str) -> str:
    base = st.get_option("server.baseUrlPath").strip("/")
    return f"/{base}/component/{__name__}.{name}".replace("//", "/")


@cache
def _command(module: str, name: str, address: str) -> Any:
    given = {"address": address, "module": module, "name": name}
    js = LOADER % {part: json.dumps(value) for part, value in given.items()}
    digest = hashlib.sha256(address.encode()).hexdigest()[:8]
    css = css_variables() + SENTENCE + TERM
    return st.components.v2.component(f"loupe.{name.replace('/', '.')}.{digest}", css=css, js=js)


def _current_digest() -> str:
    return _digest(_stamps_at(int(monotonic() / LOOKED_AFTER)))


@lru_cache(maxsize=1)
def _stamps_at(tick: int) -> tuple[tuple[str, int, int], ...]:
    """Stamps of the modules, read once per tick however many runs ask: each reading takes a millisecond."""
    return _stamps()


def _stamps() -> tuple[tuple[str, int, int], ...]:
    """Path, time of change and size of every module: as long as they stay, so does the hash."""
    places = (os.path.join(folder, name) for folder, _, names in os.walk(MODULES) for name in names)
    files = [(path, os.stat(path)) for path in places if path.endswith((".js", ".css"))]
    start = len(os.path.join(MODULES, ""))
    return tuple(sorted((path[start:].replace(os.sep, "/"), at.st_mtime_ns, at.st_size) for path, at in files))


@lru_cache(maxsize=4)
def _digest(stamps: tuple[tuple[str, int, int], ...]) -> str:
    """The hash of every module's name and content."""
    content = hashlib.sha256()
    for name, _, _ in stamps:
        content.update(name.encode() + b"\0" + (MODULES / name).read_bytes() + b"\0")
    return content.hexdigest()[:16]


def _ignore() -> None:
    """A callback for events that are read from the result: without one, Streamlit reports no event at all."""

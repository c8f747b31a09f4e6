"""Pages as AppTest runs them, with their views in a browser: what a view shows and does, without Streamlit's scripts.

A browser that asks for /attention?text=… gets a page that holds nothing but views: the script of that page runs in
this process, and stage.js mounts the components that it names as Streamlit does. What a view emits or asks reruns the
script, or the fragment that the view belongs to. Of Streamlit's own controls there are fields of text and buttons: a
test of others needs a server.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from threading import Lock, Thread
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qsl, urlencode, urlsplit

from streamlit.components.v2 import manifest_scanner
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.scriptrunner import RerunData
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests
from streamlit.testing.v1 import AppTest, app_test, local_script_runner
from streamlit.testing.v1.local_script_runner import LocalScriptRunner

from pages.controls.menu import entries
from server.http.streamlit_patches import patch_streamlit
from tests.browser.harness import ROOT, same_program
from views.core import component
from views.core.theme import streamlit_theme, tokens

SCRIPT = Path(__file__).with_name("stage.js")
KEPT = 8  # visitors
PLAIN = "text/plain; charset=utf-8"
TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
PAGE = """<!doctype html><html><head><meta charset="utf-8"><title>{title} · Loupe</title><link rel="icon" href="data:,">
<style>{style}</style></head><body><div data-testid="stApp" class="stApp" data-test-script-state="running"
data-test-connection-state="CONNECTED"><div data-testid="stAppViewContainer"><section data-testid="stMain">
<div data-testid="stMainBlockContainer"></div></section></div></div>
<script type="module">import {{ begin }} from "/stage.js"; begin({number});</script></body></html>"""


class Runner(LocalScriptRunner):
    """AppTest's, which may run one fragment alone; `last` is what ran last."""

    fragment = ""
    pages: dict[str, Any] = {}  # of the run before, which a fragment does not tell of again
    last: LocalScriptRunner

    def run(self, *given: Any, **named: Any) -> Any:
        Runner.last = self
        self._requests = ScriptRequests()  # else what is asked for is added to a run of the whole script
        if Runner.fragment:
            self._pages_manager.set_pages_and_resolve(Runner.pages)
        data = partial(RerunData, fragment_id=Runner.fragment) if Runner.fragment else RerunData
        with patch.object(local_script_runner, "RerunData", data):
            return super().run(*given, **named)


class Session:
    """One visitor: an AppTest, and the fragment of each component that it has drawn."""

    def __init__(self, path: str, query: str) -> None:
        page = next(entry for entry in entries() if entry.address == path)
        self.app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        self.app.query_params.update(parse_qsl(query, keep_blank_values=True))
        self.app.switch_page(page.path)
        self.fragments: dict[str, str] = {}
        self.bound: dict[str, str] = {}  # names in the address, by the field that each is bound to

    def run(self, said: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], list[bytes]]:
        """Runs the script with what the views have said, each {id, event, value}, the event empty for a control.
        Returns what is drawn then, and the data of each view."""
        owners = {self.fragments.get(one["id"], "") for one in said}
        fragment = owners.pop() if len(owners) == 1 else ""
        states = {} if fragment and all(one["event"] for one in said) else self.states()
        for id in dict.fromkeys(one["id"] for one in said):
            events = [{"event": one["event"], "value": one["value"]} for one in said if one["id"] == id]
            state = WidgetState(id=id)
            match events[-1]:
                case {"event": "", "value": str(text)}:
                    state.string_value = text
                    if key := self.bound.get(id):
                        self.app.query_params[key] = text
                case {"event": "", "value": True}:
                    state.trigger_value = True
                case _:
                    state = WidgetState(id=component_events(id), json_trigger_value=json.dumps(events))
            states[state.id] = state
        tree = self.app._tree
        asked = {"fragment": fragment, "pages": self.app._registered_pages}
        with patch.object(app_test, "LocalScriptRunner", Runner), patch.multiple(Runner, **asked):
            self.app._run(WidgetStates(widgets=states.values()))
        assert not self.app.exception, self.app.exception
        if fragment:
            self.app._tree = tree
        return self.list_parts(fragment)

    def states(self) -> dict[str, WidgetState]:
        tree = self.app._tree
        return {one.id: one for one in tree.get_widget_states().widgets} if tree else {}

    def list_parts(self, fragment: str) -> tuple[dict[str, Any], list[bytes]]:
        parts, data = [], []
        deltas = [one for one in Runner.last.forward_msgs() if one.WhichOneof("type") == "delta"]
        for message in sorted(deltas, key=lambda one: list(one.metadata.delta_path)):
            element, kind = message.delta.new_element, message.delta.new_element.WhichOneof("type")
            if kind not in ("bidi_component", "text_input", "button", "markdown"):
                continue
            proto = getattr(element, kind)
            if kind == "markdown":
                parts.append({"id": f"markdown {list(message.metadata.delta_path)}", "kind": kind, "label": proto.body})
                parts[-1] |= {"fragment": message.delta.fragment_id}
                continue
            self.fragments[proto.id] = message.delta.fragment_id
            parts.append({"id": proto.id, "key": proto.id.rsplit("-", 1)[-1], "fragment": message.delta.fragment_id})
            if kind == "bidi_component":
                parts[-1] |= {"name": proto.component_name, "js": proto.js_content, "css": proto.css_content}
                parts[-1] |= {"size": len(proto.bytes)}
                data.append(proto.bytes)
                continue
            parts[-1] |= {"label": proto.label, "kind": kind, "disabled": proto.disabled}
            if kind == "text_input":
                self.bound[proto.id] = proto.query_param_key
                parts[-1] |= {"live": bool(proto.live_debounce_ms), "default": proto.default}
                parts[-1] |= {"value": proto.value if proto.set_value else None}
        return {"parts": parts, "fragment": fragment, "query": self.query()}, data

    def query(self) -> str:
        return urlencode(self.app.query_params, doseq=True)


def component_events(id: str) -> str:
    """The widget that takes what a component emits."""
    from streamlit.components.v2.bidi_component.main import _make_trigger_id

    return str(_make_trigger_id(id, "events"))


@cache
def style() -> str:
    """Streamlit's variables that views read, light and dark, and its page as wide as it is at Loupe's."""
    theme, fonts = streamlit_theme(), tokens()["fonts"]
    shades = {shade: theme[shade] for shade in ("light", "dark")}

    def variables(shade: str) -> str:
        colours = shades[shade]
        names = {"text": "textColor", "background": "backgroundColor", "red": "redColor"}
        return "".join(f"--st-{name}-color:{colours[key]};" for name, key in names.items()) + f"color-scheme:{shade}"

    return (
        f":root{{{variables('light')};--st-font:{fonts['sans']};font-size:14px}}"
        f"@media (prefers-color-scheme:dark){{:root{{{variables('dark')}}}}}"
        "body{margin:0;background:var(--st-background-color);color:var(--st-text-color);font-family:var(--st-font)}"
        "*{box-sizing:border-box}"
        "[data-testid=stMainBlockContainer]{display:flex;flex-direction:column;gap:14px;padding:64px 24px 48px}"
        f"{(ROOT / 'assets' / 'theme' / 'app.css').read_text(encoding='utf-8')}"
    )


class Stage:
    """The visitors, by the number that the page of each has."""

    def __init__(self) -> None:
        self.numbers, self.lock = count(1), Lock()
        self.sessions: dict[int, Session] = {}

    def open(self, path: str, query: str) -> bytes:
        with self.lock:
            number = next(self.numbers)
            self.sessions.pop(number - KEPT, None)
            self.sessions[number] = Session(path, query)
            return PAGE.format(title=path, style=style(), number=number).encode()

    def run(self, number: int, said: list[dict[str, Any]]) -> bytes:
        with self.lock, same_program():
            header, data = self.sessions[number].run(said)
        text = json.dumps(header).encode()
        return b"".join([struct.pack("<I", len(text)), text, *data])


class Handler(BaseHTTPRequestHandler):
    stage: Stage
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        address, script = component.script()
        if place.path == "/stage.js":
            return self.answer(SCRIPT.read_bytes(), TYPES[".js"])
        if place.path == address:
            return self.answer(script.encode(), TYPES[".js"], kept=True)
        if place.path.endswith(component.PLOTLY.name):
            return self.answer(component.PLOTLY.read_bytes(), TYPES[".js"], kept=True)
        if place.path.strip("/") in {entry.address for entry in entries()}:
            return self.answer(self.stage.open(place.path.strip("/"), place.query), "text/html; charset=utf-8")
        return self.answer(b"", PLAIN)

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(self.stage.run(int(self.path.rsplit("/", 1)[-1]), said), "application/octet-stream")

    def answer(self, body: bytes, kind: str, kept: bool = False) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=31536000, immutable" if kept else "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *given: Any) -> None: ...


@contextmanager
def serve_stage() -> Iterator[str]:
    patch_streamlit()
    scan = cache(manifest_scanner.scan_component_manifests)  # of all packages, which takes longer than most pages do
    stage = Stage()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("StageHandler", (Handler,), {"stage": stage}))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        with patch.object(manifest_scanner, "scan_component_manifests", scan):
            with same_program():
                Session("walkthrough", "").run([])  # nobody waits in a browser for what is imported and opened first
            yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()

"""Many visitors at once: how long their actions take, and whether each gets what it gets alone.

A visitor is a session over a websocket of its own, as a browser has one, that types texts and turns pages. Streamlit's
messages are read and not drawn: what is measured is the server.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import perf_counter

import numpy as np
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Delta_pb2 import Delta
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException
from websockets.typing import Subprotocol

from server.http.workers import COOKIE
from tests.browser.harness import UVICORN, served

FINISHED = ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY
VISITORS = 30
SECONDS = 60.0
PAUSE = 2.0  # s between the actions of a visitor
REACH = 0.5  # s, of which 95 % of the actions stay below
PATIENCE = 60.0  # s until an action counts as a failure
TURNS = 0.2  # share of the actions that turn to another page; the others change what is read
TEXTS = (
    "Max gave the red ball to",
    "Once upon a time, there was a girl",
    "The dog sat down by the old tree",
    "Anna has a kite and a drum",
    "One day the little bird could not find",
    "They went to the park because",
)
COUNTS = (2.0, 4.0, 8.0, 1.0)  # of layers
# By the widget's key: what a visitor gives it.
TYPED: dict[str, Sequence[str | float]] = {"a_text": TEXTS, "text": TEXTS, "layers": COUNTS}
OPEN, ANSWER, HAND_IN = "class open 0", "class answer", "class hand in"
UNSEEN = "courier", "news"  # components that show nothing
WIDGETS = (*TYPED, *(f"class open {step}" for step in range(6)), ANSWER, HAND_IN)  # that a visitor uses
# By the name in the address. Training and opening files are measured apart.
PAGES = ("walkthrough", "attention", "generate", "compare", "architecture", "long_sequences")


@dataclass(frozen=True)
class Action:
    """On a `page`: a widget's new value, None for a click, or with no `widget` the turn to it."""

    page: str
    widget: str = ""
    value: str | float | bool | None = ""
    query: str = ""  # of the address that is turned to


@dataclass
class Visitor:
    """One session: the connection, and the addresses of pages and the ids of widgets that it has been sent."""

    socket: ClientConnection
    pages: dict[str, str] = field(default_factory=dict)
    widgets: dict[str, str] = field(default_factory=dict)
    fragments: dict[str, str] = field(default_factory=dict)  # of the widgets, as a browser tells which is to run
    page: str = ""

    async def act(self, action: Action) -> str:
        """Send an action and read until its run has ended. Returns a digest of what came for the page's views.

        Raises RuntimeError where the script raised.
        """
        message = BackMsg()
        state = message.rerun_script
        if not action.widget:
            self.page = action.page
            self.widgets.clear()
            self.fragments.clear()
        state.page_script_hash, state.query_string = self.pages.get(self.page, ""), action.query
        if action.widget:
            state.fragment_id = self.fragments[action.widget]
            widget = state.widget_states.widgets.add()
            widget.id = self.widgets[action.widget]
            if action.value is None:
                widget.trigger_value = True
            elif isinstance(action.value, bool):
                widget.bool_value = action.value
            elif isinstance(action.value, float):
                widget.double_value = action.value
            else:
                widget.string_value = action.value
        await self.socket.send(message.SerializeToString())
        return await asyncio.wait_for(self.read(), PATIENCE)

    async def read(self) -> str:
        found: dict[str, str] = {}
        async for data in self.socket:
            message = ForwardMsg.FromString(data if isinstance(data, bytes) else data.encode())
            kind = message.WhichOneof("type")
            if kind == "navigation":
                self.pages = {page.url_pathname: page.page_script_hash for page in message.navigation.app_pages}
            elif kind == "delta":
                self.see(message.delta, found)
            elif kind == "script_finished":
                if message.script_finished in FINISHED:
                    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()
                if message.script_finished == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
                    raise RuntimeError("the script does not compile")
        raise RuntimeError("the server closed the connection")

    def see(self, delta: Delta, found: dict[str, str]) -> None:
        if delta.WhichOneof("type") != "new_element":
            self.know(delta.add_block.popover.id, delta.fragment_id)
            return
        element = delta.new_element
        kind = element.WhichOneof("type")
        if kind == "exception":
            raise RuntimeError(f"{element.exception.type}: {element.exception.message}")
        inner = getattr(element, kind or "", None)
        identity = getattr(inner, "id", "") if inner is not None else ""
        if isinstance(identity, str):
            self.know(identity, delta.fragment_id)
        component = element.bidi_component
        if kind == "bidi_component" and not any(one in component.component_name for one in UNSEEN):
            found[component.component_name] = hashlib.sha256(component.SerializeToString()).hexdigest()

    def know(self, identity: str, fragment: str) -> None:
        """Remembers a widget by its key, which stands behind the hash in its id."""
        for key in WIDGETS:
            if identity.endswith(f"-{key}"):
                self.widgets[key], self.fragments[key] = identity, fragment


@asynccontextmanager
async def session(address: str, cookie: str = "") -> AsyncIterator[Visitor]:
    place = f"ws{address.removeprefix('http')}/_stcore/stream"
    said = {"Cookie": f"{COOKIE}={cookie}"} if cookie else None
    protocols = [Subprotocol("streamlit")]
    async with connect(place, subprotocols=protocols, max_size=None, additional_headers=said) as socket:
        visitor = Visitor(socket)
        await visitor.act(Action(""))
        yield visitor


@dataclass(frozen=True)
class Played:
    """An action, how long it took, and the digest of what came; or the fault, with no digest."""

    action: Action
    seconds: float
    digest: str
    fault: str = ""


async def perform(visitor: Visitor, action: Action) -> Played:
    begun = perf_counter()
    try:
        digest = await visitor.act(action)
    except (RuntimeError, TimeoutError, WebSocketException) as error:
        return Played(action, perf_counter() - begun, "", f"{type(error).__name__}: {error}")
    return Played(action, perf_counter() - begun, digest)


async def visit(address: str, number: int) -> list[Played]:
    """Open the app, turn to a page, and act every PAUSE seconds until SECONDS have passed."""
    random = Random(number)
    await asyncio.sleep(PAUSE * number / VISITORS)
    end = perf_counter() + SECONDS
    async with session(address) as visitor:
        action, played = Action(PAGES[number % len(PAGES)]), []
        while perf_counter() < end:
            begun = perf_counter()
            played.append(await perform(visitor, action))
            await asyncio.sleep(max(0.0, PAUSE - (perf_counter() - begun)))
            action = choose_action(visitor, random)
    return played


def choose_action(visitor: Visitor, random: Random) -> Action:
    keys = [key for key in TYPED if key in visitor.widgets]
    if not keys or random.random() < TURNS:
        return Action(random.choice(PAGES))
    return Action(visitor.page, keys[0], random.choice(TYPED[keys[0]]))


async def repeat(address: str, played: list[Played]) -> list[Played]:
    """The same actions in a session of its own while nobody else is there."""
    async with session(address) as visitor:
        return [await perform(visitor, one.action) for one in played]


def memory_of(process: int, itself: bool = False) -> float:
    """Resident memory in MB of the processes below this one, and of it `itself`."""
    total = own_memory(Path(f"/proc/{process}/status").read_text()) if itself else 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            status = (folder / "status").read_text()
            if f"PPid:\t{process}\n" in status and "VmRSS:" in status:
                total += own_memory(status) + memory_of(int(folder.name))
    return total


def seconds_of(process: int) -> float:
    """CPU seconds that the processes below this one have used, their own ended ones among them."""
    total = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == process:
                total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") + seconds_of(int(folder.name))
    return total


def own_memory(status: str) -> float:
    return int(status.split("VmRSS:")[1].split()[0]) / 1e3


def summary(name: str, played: list[Played]) -> str:
    faults = [one.fault for one in played if one.fault]
    middle, high, highest = (1e3 * np.quantile([one.seconds for one in played], (0.5, 0.95, 0.99))).tolist()
    line = f"{name:16}{len(played):6} actions   p50 {middle:6.0f} ms   p95 {high:6.0f} ms   p99 {highest:6.0f} ms"
    return f"{line}   {len(faults)} failed" + "".join(f"\n    {fault}" for fault in dict.fromkeys(faults))


def note(found: Mapping[str, float], out: Path) -> None:
    """Keeps what was measured beside what else is there."""
    known = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    out.write_text(json.dumps(known | dict(found), indent=1) + "\n", encoding="utf-8")


async def measure(address: str, workers: int, out: Path | None) -> bool:
    """Print the table. Returns True if nothing failed, all got what they get alone, and the reach is met."""
    before, used = memory_of(os.getpid()), seconds_of(os.getpid())
    played = await asyncio.gather(*(visit(address, number) for number in range(VISITORS)))
    after, used = memory_of(os.getpid()), seconds_of(os.getpid()) - used
    every = [one for visitor in played for one in visitor]
    print(summary("all pages", every))
    for page in PAGES:
        print(summary(page, [one for one in every if one.action.page == page]))
    print(f"memory of the server: {before:.0f} MB before, {after:.0f} MB after")
    print(f"{used / len(every):.3f} CPU seconds of the server an action")
    if out:
        found = {
            "visitors": VISITORS,
            "workers": workers,
            "actions": len(every),
            "cpu_seconds_an_action": used / len(every),
            "megabytes_a_process": before / workers,
            "p95_seconds": float(np.quantile([one.seconds for one in every], 0.95)),
        }
        note(found, out)
    alone = [one for visitor in played for one in await repeat(address, visitor)]
    others = [one.action for one, other in zip(every, alone, strict=True) if one.digest != other.digest]
    print(f"compared with the same alone: {len(every) - len(others)} equal, {len(others)} not {others[:3] or ''}")
    reached = float(np.quantile([one.seconds for one in every], 0.95)) < REACH
    print(f"p95 < {REACH * 1e3:.0f} ms: {'yes' if reached else 'NO'} (load {os.getloadavg()[0]:.1f})")
    return reached and not others and not any(one.fault for one in every)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=1, help="processes of the server")
    parser.add_argument("--out", type=Path, help="file of the figures, as docs/capacity/capacity.ipynb reads them")
    options = parser.parse_args()
    command = [*UVICORN, "--workers", str(options.workers)]
    with tempfile.TemporaryDirectory() as folder, served(command, "/health", Path(folder) / "log") as address:
        sys.exit(not asyncio.run(measure(address, options.workers, options.out)))

"""What is done before anybody comes: slow imports, a first run of the script, and what all visitors share."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import streamlit as st
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import Runtime, SessionClient, get_instance

from engine.runtime.memory import keep_freed_memory
from engine.training.cluster.store import follow_store
from engine.training.launch.warm_trainer import shared as warm_trainer
from server.http.logs import log
from server.http.readiness import readiness
from server.http.streamlit_patches.observed_runs import runs
from server.http.uploads import drop_left_files
from server.http.workers import here
from server.settings import FIRST_MODEL

READ = {
    "runtime:Runtime.close_session": "4fa3d5b29f207246",
    "runtime:Runtime.connect_session": "0bb7c2ffd4acc585",
    "runtime:Runtime.handle_backmsg": "656e76e7b6029145",
    "scriptrunner_utils.script_run_context:get_script_run_ctx": "dccbffa7ec2c9687",
}
NO_SCRIPT = "streamlit.runtime.scriptrunner_utils.script_run_context"  # the logger that warns of one
FIRST_RUN_LIMIT = 120.0  # seconds
SERVED_FIRST = 10.0  # seconds from the start, in which a first visitor has the processor alone
PAGES = ("attention", "generate", "compare", "architecture")  # whose first run imports and opens what they share


class FirstVisitor(SessionClient):
    """A session without a browser: it only waits for the script's end."""

    def __init__(self) -> None:
        self.finished = asyncio.Event()

    def write_forward_msg(self, msg: ForwardMsg) -> None:
        if msg.WhichOneof("type") == "script_finished":
            self.finished.set()

    @property
    def client_context(self) -> None:
        return None


async def run_script_once(runtime: Runtime, page: str = "", query: str = "") -> None:
    """Take the place of the first visitor of a page, the first one for "", so that none has to be it.

    Beside a folder named pages, Streamlit takes the first run of a process for an app of its old multipage
    mode, in which a link such as /walkthrough is answered with a "Page not found" dialog; the script's
    st.navigation ends that mode for the life of the process. The run also fills the caches that all share.
    """
    visitor = FirstVisitor()
    session = runtime.connect_session(visitor, user_info={"is_logged_in": True})
    runs.ignored.add(session)
    message = BackMsg()
    message.rerun_script.page_name = page
    message.rerun_script.query_string = query
    runtime.handle_backmsg(session, message)
    with suppress(TimeoutError):  # a slow first run delays the server's start, and does not prevent it
        await asyncio.wait_for(visitor.finished.wait(), FIRST_RUN_LIMIT)
    runtime.close_session(session)


@asynccontextmanager
async def warm(app: st.App) -> AsyncIterator[None]:
    """Warms up beside a server that answers its probes from the first moment, and ends what waits with it."""
    readiness.warming = asyncio.create_task(warm_up())
    others = asyncio.create_task(go_on(readiness.warming))
    dropping = asyncio.create_task(drop_left_files())
    yield
    dropping.cancel()
    others.cancel()
    readiness.warming.cancel()
    warm_trainer.close()


async def warm_up() -> None:
    """Import what is slow, run the script once, and take all of it out of the garbage collector's sight."""
    import torch

    logging.getLogger(NO_SCRIPT).setLevel(logging.ERROR)  # what is imported and computed here is of no script's run
    keep_freed_memory()
    torch.set_num_threads(1)  # many small forward passes side by side; a training is a process of its own
    await run_script_once(get_instance())
    if here.workers > 1:  # for a class, which comes all at once
        await visit_pages(get_instance())
        await measure_long_context(get_instance())
    gc.collect()
    gc.freeze()
    warm_trainer.enabled = True  # the page about training starts it
    follow_store()


async def go_on(warming: asyncio.Task[None]) -> None:
    """Visits the other pages once a first visitor can be served. A server that nobody can use ends, and says why."""
    await asyncio.wait([warming])
    if (error := warming.exception()) is not None:
        log.error("The warm-up failed; Loupe ends.", exc_info=error)
        signal.raise_signal(signal.SIGTERM)
    else:
        log.info("ready")
        await visit_pages(get_instance(), SERVED_FIRST)


async def visit_pages(runtime: Runtime, pause: float = 0.0) -> None:
    """Import what the other pages need, after a pause in which the first visitor is likely to be served."""
    await asyncio.sleep(pause)
    for page in PAGES:
        await run_script_once(runtime, page)


async def measure_long_context(runtime: Runtime) -> None:
    """Take the measurements that all visitors of that page share: some seconds, which else its first one waits."""
    from engine.attention_variants.shared import FIRST

    for model in dict.fromkeys((FIRST, FIRST_MODEL)):
        await run_script_once(runtime, "long_sequences", f"model={model}")

"""How Loupe is served: `python asgi.py`, or `uvicorn asgi:app` with limits of your own."""

import argparse
import asyncio
import gc
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import streamlit as st
import uvicorn
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import Runtime, SessionClient, get_instance

from engine.runtime.limits import FIRST_MODEL
from engine.runtime.memory import keep_freed_memory
from engine.training.warm_trainer import shared as warm_trainer
from pages.controls.first_load import FirstLoad
from pages.controls.workers import COOKIE, Front, here, serve_as_worker

SCRIPT = Path(__file__).resolve().parent / "app.py"
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
    session = runtime.connect_session(visitor, user_info={})
    message = BackMsg()
    message.rerun_script.page_name = page
    message.rerun_script.query_string = query
    runtime.handle_backmsg(session, message)
    with suppress(TimeoutError):  # a slow first run delays the server's start, and does not prevent it
        await asyncio.wait_for(visitor.finished.wait(), FIRST_RUN_LIMIT)
    runtime.close_session(session)


@asynccontextmanager
async def warm(app: st.App) -> AsyncIterator[None]:
    """Import what is slow, run the script once, and take all of it out of the garbage collector's sight."""
    import torch

    keep_freed_memory()
    torch.set_num_threads(1)  # many small forward passes side by side; a training is a process of its own
    await run_script_once(get_instance())
    if here.workers > 1:  # for a class, which comes all at once
        await visit_pages(get_instance())
        await measure_long_context(get_instance())
    gc.collect()
    gc.freeze()
    warm_trainer.enabled = True  # the page about training starts it
    others = asyncio.create_task(visit_pages(get_instance(), SERVED_FIRST))
    yield
    others.cancel()
    warm_trainer.close()


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


class VisitorCookie:
    """Gives each browser a random name, by which a run is known to belong to whoever started it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or COOKIE in HTTPConnection(scope).cookies:
            return await self.app(scope, receive, send)

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if headers.get("content-type", "").startswith("text/html"):
                    value = f"{COOKIE}={here.new_name()}; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax"
                    headers.append("set-cookie", value)
            await send(message)

        await self.app(scope, receive, send_named)


async def health(request: Request) -> JSONResponse:
    """Answers only once the warm-up is over: the server takes no request before."""
    return JSONResponse({"status": "ok"})


app = st.App(
    SCRIPT,
    lifespan=warm,
    routes=[Route("/health", health)],
    middleware=[Middleware(VisitorCookie), Middleware(FirstLoad)],
)


def serve() -> None:
    parser = argparse.ArgumentParser(description="Serve Loupe.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8501)
    parser.add_argument("--workers", type=int, default=1, help="processes that share the visitors")
    parser.add_argument("--worker", help=argparse.SUPPRESS)  # one of those processes, as they are started
    given = parser.parse_args()
    config = uvicorn.Config(
        app,
        host=given.host,
        port=given.port,
        ws_per_message_deflate=False,
        # A browser that draws a long text on a busy machine answers no ping before it has read what came first; a
        # connection that is closed meanwhile loses what was typed.
        ws_ping_timeout=60.0,  # seconds
        # Twice the longest address that a browser opens, so that each one reaches the page, which says what of it is
        # too long; with uvicorn's own limit of 64 KiB the answer would be a bare 400.
        h11_max_incomplete_event_size=2**22,
        access_log=False,
    )
    if given.worker:
        serve_as_worker(config, given.worker)
    elif given.workers > 1:
        front = Front([sys.executable, __file__], given.workers)
        try:
            with TemporaryDirectory(prefix="loupe-uploads-", ignore_cleanup_errors=True) as uploads:
                os.environ["LOUPE_UPLOADS"] = uploads
                asyncio.run(front.serve(given.host, given.port))
        except asyncio.CancelledError:
            pass  # told to end
        except RuntimeError as error:
            sys.exit(str(error))
    else:
        uvicorn.Server(config).run()


if __name__ == "__main__":
    serve()

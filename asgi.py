"""How Loupe is served: `python asgi.py`, or `uvicorn asgi:app` with limits of your own."""

import argparse
import asyncio
import logging
import os
import sys
from tempfile import TemporaryDirectory

import streamlit as st
import uvicorn
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from engine.places import SCRIPT, SERVER
from server.http.class_news import ROUTE, tell_news
from server.http.draining import CLOSES, DrainingServer, DrainingWorker
from server.http.errors import hide_details, tell_error
from server.http.first_load import FirstLoad
from server.http.headers import SecurityHeaders
from server.http.logs import TEXT, write_json, write_lines, writes_json
from server.http.metrics import METRICS, CountSessions, tell_metrics
from server.http.own_names import OwnNames
from server.http.readiness import ALIVE, READY, Gate, tell_alive, tell_ready
from server.http.starting import choose_port, greet, tell_trainings
from server.http.streamlit_patches import patch_streamlit
from server.http.uploads import UploadLimit
from server.http.visitor_cookie import VisitorCookie
from server.http.warming import warm
from server.http.workers import SHARED, CannotServe, Front, serve_as_worker
from server.settings import LTI_FILE, fill_budget

fill_budget()
patch_streamlit()


async def health(request: Request) -> JSONResponse:
    """Answers only once the warm-up is over, as all but the two probes do."""
    return JSONResponse({"status": "ok"})


def platform_routes() -> list[Route]:
    """Routes of LTI platforms, of a server that has any."""
    if not LTI_FILE:
        return []
    from server.http.lti import lti_routes

    return lti_routes()


def program_routes() -> list[Route]:
    """Routes that programs ask, of a server that is started with them."""
    if "--api" not in sys.argv[1:]:
        return []
    from server.http.api.routes import api_routes, choose_token

    return api_routes(choose_token())


app = st.App(
    SCRIPT,
    lifespan=warm,
    on_script_error=tell_error,
    routes=[
        Route("/health", health),
        Route(ALIVE, tell_alive),
        Route(READY, tell_ready),
        Route(METRICS, tell_metrics),
        Route(ROUTE, tell_news),
        *platform_routes(),
        *program_routes(),
    ],
    middleware=[
        Middleware(each)
        for each in (OwnNames, Gate, UploadLimit, CountSessions, SecurityHeaders, VisitorCookie, FirstLoad)
    ],
)
# Not before the App has named the script: Streamlit reads its settings when it is first asked for one, and those beside
# the script, as theme and limits are, only if it knows the script by then or was started in that folder.
hide_details()
if writes_json():
    write_json()
else:
    write_lines(logging.Formatter(TEXT))


def serve() -> None:
    parser = argparse.ArgumentParser(description="Serve Loupe.", allow_abbrev=False)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, help="(default: 8501, or the next that is free)")
    parser.add_argument("--no-open", action="store_true", help="open no browser")
    parser.add_argument("--workers", type=int, default=1, help="processes that share the visitors")
    parser.add_argument("--api", action="store_true", help="answer programs too, who send a token (docs/api.md)")
    parser.add_argument("--worker", help=argparse.SUPPRESS)  # one of those processes, as they are started
    given = parser.parse_args()
    os.umask(0o077)  # what visitors have written is for nobody else on this machine
    port = 0 if given.worker else choose_port(given.host, given.port)
    config = uvicorn.Config(
        app,
        host=given.host,
        port=port,
        ws_per_message_deflate=False,
        # A browser that draws a long text on a busy machine answers no ping before it has read what came first; a
        # connection that is closed meanwhile loses what was typed.
        ws_ping_timeout=60.0,  # seconds
        # Twice the longest address that a browser opens, so that each one reaches the page, which says what of it is
        # too long; with uvicorn's own limit of 64 KiB the answer would be a bare 400.
        h11_max_incomplete_event_size=2**22,
        timeout_graceful_shutdown=CLOSES,
        access_log=False,
        log_config=None,
    )
    if given.worker:
        return serve_as_worker(config, given.worker, DrainingWorker)
    if not writes_json():  # whose lines a program reads
        greet(given.host, port, not given.no_open)
    if given.workers > 1:
        front = Front([sys.executable, str(SERVER), *(["--api"] if given.api else [])], given.workers)
        try:
            with (
                TemporaryDirectory(prefix="loupe-uploads-", ignore_cleanup_errors=True) as uploads,
                TemporaryDirectory(prefix="loupe-metrics-", ignore_cleanup_errors=True) as numbers,
            ):
                os.environ |= {"LOUPE_UPLOADS": uploads, SHARED: numbers}
                asyncio.run(front.serve(given.host, port))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
    else:
        DrainingServer(config).run()


if __name__ == "__main__":
    try:
        serve()
    except CannotServe as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        if "--worker" not in sys.argv:
            tell_trainings()

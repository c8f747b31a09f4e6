"""Logs on standard error, each line with its level, its page and the number of its session: as text, or as JSON for
programs to read.

Nothing that a person wrote stands in the JSON. Only what Loupe and uvicorn say by words of their own is said: of other
loggers their name alone, and of an error its kind and its place, since its sentence may quote a text.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from datetime import UTC, datetime
from traceback import extract_tb
from types import TracebackType

import streamlit as st
import streamlit.logger
from streamlit.runtime.scriptrunner import get_script_run_ctx

from server.http.page_names import name_page
from server.http.streamlit_patches.observed_runs import find_address, runs
from server.settings import LOG

READ = {
    "scriptrunner_utils.script_run_context:get_script_run_ctx": "dccbffa7ec2c9687",
    "streamlit.logger:get_logger": "83412d57059aa9ca",
    "streamlit.logger:setup_formatter": "af158d92e97bd6f0",
    "streamlit.logger:update_formatter": "872afe9852a8203f",
}
OWN = "loupe"
SPEAK = (OWN, "uvicorn", "uvicorn.error")  # whose words are constants of a program; what they insert is left out
EXTRA = ("page", "session", "seconds", "code", "number", "error", "at")
TEXT = "%(asctime)s %(levelname)-7s %(origin)s%(message)s"
log = logging.getLogger(OWN)


class Origin(logging.Filter):
    """Gives each record of a script its `page` and the number of its `session`, counted from 1 in this process."""

    def __init__(self) -> None:
        super().__init__()
        self.sessions = dict[str, int]()

    def filter(self, record: logging.LogRecord) -> bool:
        context = get_script_run_ctx(suppress_warning=True)
        record.origin = ""
        if context is not None:
            session = self.sessions.setdefault(context.session_id, len(self.sessions) + 1)
            page = name_page(find_address(context))
            record.__dict__ |= {"session": session, "page": page, "origin": f"{page} session {session}: "}
        return True


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": str(record.msg) if record.name in SPEAK else f"{record.name} line {record.lineno}",
        }
        said |= {name: getattr(record, name) for name in EXTRA if hasattr(record, name)}
        if record.exc_info and record.exc_info[0] is not None:
            said |= describe_error(record.exc_info[0], record.exc_info[2])
        return json.dumps(said)


def describe_error(kind: type[BaseException], trace: TracebackType | None) -> dict[str, str]:
    """Kind and place of an error, without its sentence."""
    places = [f"{frame.filename}:{frame.lineno}" for frame in extract_tb(trace)]
    return {"error": kind.__name__, "at": places[-1] if places else ""}


def writes_json() -> bool:
    """Tells what the settings ask for. Raises SystemExit, with a sentence, for what they cannot."""
    if LOG not in ("", "json"):
        raise SystemExit(f'log must be "json", or nothing for text, got {LOG!r}; correct it.')
    return LOG == "json"


def write_lines(formatter: logging.Formatter) -> None:
    """From now on every logger of this process writes lines of one form."""
    handler = logging.StreamHandler()
    handler.addFilter(Origin())
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], force=True, level=logging.WARNING)
    for name in SPEAK:
        hand_on(logging.getLogger(name))
    logging.captureWarnings(True)
    st.set_option("logger.enableRich", False)  # which writes past the loggers
    streamlit.logger.setup_formatter = hand_on
    streamlit.logger.update_formatter()


def write_json() -> None:
    """Lines for programs; each run of a script is one."""
    write_lines(JsonLines())
    log.setLevel(logging.INFO)
    sys.excepthook = log_error
    threading.excepthook = lambda said: log_error(said.exc_type, said.exc_value, said.exc_traceback)
    runs.listeners.append(log_run)


def hand_on(logger: logging.Logger) -> None:
    """Gives a logger no handler but that of all. In place of Streamlit's own function, which gives each one of its."""
    logger.handlers.clear()
    logger.propagate = True


def log_error(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    log.error("uncaught", exc_info=(kind, error or kind(), trace))


def log_run(address: str, seconds: float) -> None:
    log.info("run", extra={"page": name_page(address), "seconds": round(seconds, 3)})

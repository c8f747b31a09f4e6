"""What a session is told while one of its computations waits, or is done elsewhere than was asked."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import in_cached_function

from engine.plurals import count_words


def notify(sentence: str, before: Any = st) -> Any:
    """Shows a sentence for some seconds, in the place of the one `before`; returns what shows it.

    A cached function whose computation this is of does not say it again with what it kept.
    """
    if get_script_run_ctx() is None:  # in a thread of the engine's, of no session
        return before
    context = copy_context()
    context.run(in_cached_function.set, False)
    return context.run(before.toast, sentence)


def greet() -> Callable[[int], None]:
    """Returns what tells of the place of one computation in `engine.model.line`.

    A script that was asked for something else meanwhile ends there, and so leaves the line.
    """
    shown: Any = st

    def tell(before: int) -> None:
        nonlocal shown
        shown = notify(f"Waiting for its turn: {count_words(before, 'heavy computation')} before this one.", shown)

    return tell

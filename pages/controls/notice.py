"""What a session is told while one of its computations waits, or is done elsewhere than was asked."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import in_cached_function

from engine.model.pass_queue import REPORT_INTERVAL
from engine.plurals import count_words
from views.core.markdown import escape_markdown

READ = {
    "caching.cached_message_replay:CachedMessageReplayContext.calling_cached_function": "81beea3b2a9bc8e1",
    "caching.cached_message_replay:CachedMessageReplayContext.save_element_message": "e0cb4443e99a9def",
    "scriptrunner_utils.script_run_context:get_script_run_ctx": "dccbffa7ec2c9687",
}


def notify(sentence: str, before: Any = st, seconds: int = 4) -> Any:
    """Shows a sentence for some seconds, in the place of the one `before`; returns what shows it.

    A cached function whose computation this is of does not say it again with what it kept.
    """
    if get_script_run_ctx() is None:  # in a thread of the engine's, of no session
        return before
    cached = in_cached_function.set(False)
    try:
        return before.toast(escape_markdown(sentence), duration=seconds)
    finally:
        in_cached_function.reset(cached)


def announce_wait() -> Callable[[int], None]:
    """Returns a function that shows the place of one computation in `engine.model.pass_queue`.

    A script that was asked for something else meanwhile ends there, and so leaves the queue.
    """
    shown: Any = st
    began = monotonic() - REPORT_INTERVAL

    def show_place(before: int) -> None:
        nonlocal shown
        said = f"Waiting for its turn for {monotonic() - began:.0f} s"  # another text each time, or it would fade away
        seconds = 1 if shown is st else 4  # under a spinner the first one is not replaced but stays beside the second
        shown = notify(f"{said}: {count_words(before, 'heavy computation')} before this one.", shown, seconds)

    return show_place

"""What Loupe changes in Streamlit, one file a patch; `docs/streamlit.md` lists them.

A page sends more than one message at a time: a view asks its questions as soon as it is drawn, and the courier's
fragment answers them. Streamlit starts a run for every message, interrupts the run before, and takes of every message
what all controls stand at, so that some of what a browser says is lost, on a busy machine above all. Each file says
what, and names in READ the functions that it replaces or counts on: {module of streamlit.runtime:function: hash of its
source}.
"""

from __future__ import annotations

from serving.streamlit_patches import (
    concurrent_change,
    finished_runs,
    first_message,
    fragment_states,
    history_navigation,
    observed_runs,
    same_page_link,
    state_lookup,
    turned_page,
    whole_callbacks,
)

PATCHES = (
    first_message, finished_runs, history_navigation, turned_page, same_page_link, fragment_states, concurrent_change,
    whole_callbacks, state_lookup, observed_runs,
)  # fmt: skip
_applied = list[str]()


def patch_streamlit() -> None:
    """Call it before a browser connects; a second call does nothing. What is changed is looked up at each call, so that
    it holds for a session that runs already too."""
    for patch in PATCHES:
        if patch.__name__ not in _applied:
            _applied.append(patch.__name__)
            patch.apply()

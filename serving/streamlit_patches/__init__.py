"""What Loupe changes in Streamlit, one file a patch; `docs/streamlit.md` lists them.

A page sends more than one message at a time: a view asks its questions as soon as it is drawn, and the courier's
fragment answers them. Streamlit starts a run for every message, interrupts the run before, and takes of every message
what all controls stand at, so that some of what a browser says is lost, on a busy machine above all. Each file says
what, and names in READ the functions that it replaces or counts on: {module of streamlit.runtime:function: hash of its
source}.
"""

from __future__ import annotations

from serving.streamlit_patches import (
    finished_runs,
    fragment_states,
    link_to_the_page,
    one_value,
    said_beside,
    turned_page,
    way_back,
    whole_callbacks,
    whole_first_run,
)

PATCHES = (
    whole_first_run, finished_runs, way_back, turned_page, link_to_the_page, fragment_states, said_beside,
    whole_callbacks, one_value,
)  # fmt: skip
_applied = list[str]()


def patch_streamlit() -> None:
    """Call it before a browser connects; a second call does nothing. What is changed is looked up at each call, so that
    it holds for a session that runs already too."""
    for patch in PATCHES:
        if patch.__name__ not in _applied:
            _applied.append(patch.__name__)
            patch.apply()

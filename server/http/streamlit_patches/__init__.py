"""What Loupe changes in Streamlit, one file a patch; `docs/streamlit.md` lists them.

A page sends more than one message at a time: a view asks its questions as soon as it is drawn, and the courier's
fragment answers them. Streamlit starts a run for every message, interrupts the run before, and takes of every message
what all controls stand at, so that some of what a browser says is lost, on a busy machine above all. Each file says
what, and names in READ the functions that it replaces or counts on: {module of streamlit.runtime:function: hash of its
source}. So does every other file that uses what Streamlit does not document.

Four wrap `AppSession.request_rerun`, each around the one before it in PATCHES, so that a message passes through them
from the last to the first:

1. `finished_runs` keeps a message until the run before it is over, and then lets it in anew: as the outermost, so that
   the others see each message once, and in its turn.
2. `same_page_link` drops what a part of a page that was left says. It must see that the message is about a fragment:
   `concurrent_change` makes one of the whole page of it, which would turn the page back.
3. `concurrent_change` compares the values of a message with those of the one before.
4. `first_message` changes the first one alone, of which the others know too little to do anything.
"""

from __future__ import annotations

from server.http.streamlit_patches import (
    concurrent_change,
    finished_runs,
    first_message,
    fragment_states,
    history_navigation,
    kept_downloads,
    limited_runs,
    no_outward_request,
    observed_runs,
    same_page_link,
    state_lookup,
    turned_page,
    whole_callbacks,
)

PATCHES = (
    first_message, concurrent_change, same_page_link, finished_runs, history_navigation, turned_page, fragment_states,
    whole_callbacks, state_lookup, observed_runs, no_outward_request, kept_downloads, limited_runs,
)  # fmt: skip
_applied = list[str]()


def patch_streamlit() -> None:
    """Call it before a browser connects; a second call does nothing. What is changed is looked up at each call, so that
    it holds for a session that runs already too."""
    for patch in PATCHES:
        if patch.__name__ not in _applied:
            _applied.append(patch.__name__)
            patch.apply()

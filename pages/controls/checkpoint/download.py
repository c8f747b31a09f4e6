"""A checkpoint of a hub: its files, and bringing them here."""

import time

import streamlit as st

from engine.budget import budget
from pages.controls.checkpoint.load_errors import warn
from pages.controls.state.session import SessionValue
from views.checkpoint import checkpoint as drawn
from views.core.markdown import code_markdown, escape_markdown

PATIENCE = 0.25  # seconds between two drawings of a progress
BEGUN = SessionValue("downloads", str)  # the checkpoint whose download begins in the run after the click


def download(name: str) -> bool:
    """Says what the download of a hub's checkpoint takes, and carries it out once it is asked for.

    Returns whether it is all here now."""
    from engine.checkpoints.hub import Progress, fetch, parse, plan  # what speaks to a network is slow to import

    try:
        with st.spinner("Asking the hub …"):
            found = plan(parse(name))
    except (ValueError, OSError) as error:
        warn(str(error))
        return False
    st.markdown(f"#### {escape_markdown(str(found.name))}")
    left, right = st.columns([1, 2], gap="medium")
    facts = [
        f"licence **{escape_markdown(found.licence or 'not stated')}**",
        f"commit {code_markdown(found.commit[:7])}",
    ]
    facts += ["**gated**: its makers want to be asked for access"] if found.gated else []
    facts += ["private"] if found.private else []
    left.markdown(drawn.sizes([(file.name, file.size) for file in found.files]))
    right.markdown("  \n".join(facts))
    label = f"Download {drawn.size(found.missing_bytes)}" if found.missing_bytes else "Open"
    here = found.total_bytes - found.missing_bytes
    if here and found.missing_bytes:
        right.caption(f"{drawn.size(here)} are here already; the download continues from there.")
    begun = BEGUN.get()
    BEGUN.set("")
    if begun != name:
        right.button(label, type="primary", key="download", on_click=BEGUN.set, args=(name,))
        return False
    right.button("Stop", key="stop", help="What has come is kept.")
    progress = right.progress(0.0, "…")
    drawn_at = 0.0

    def show(step: Progress) -> None:
        """Draw a progress; a stop or another rerun of this session ends the download here."""
        nonlocal drawn_at
        if time.monotonic() - drawn_at > PATIENCE:
            drawn_at = time.monotonic()
            of = f"{drawn.size(step.done_bytes)} of {drawn.size(step.total_bytes)}, {escape_markdown(step.file)}"
            progress.progress(step.done_bytes / max(1, step.total_bytes), of)

    try:
        fetch(found, budget.max_download, show)
    except (ValueError, OSError) as error:
        right.warning(escape_markdown(str(error)))
        return False
    return True

"""Why this token: a logit as the sum of what every part of the model added to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from engine.analysis.logit_lens import check_lens
from engine.plurals import count_words
from pages.controls.run_page import run_page, state_of
from pages.controls.share.links import address_now
from views.core.markdown import escape_markdown
from views.core.run_context import Run, RunContext
from views.why.charts import TOKEN_CHARTS
from views.why.questions import TOKEN, HeadAccount, find_account, found_attribution, part_name, source_pieces

MENU = {"title": "Why this token", "address": "why_token", "place": 1, "opens": True}

HEAD_PAGE = "pages/analyse/why_head.py"
NAMED = 4  # parts in a sentence


def tell(run: Run, chosen: Mapping[str, Any]) -> None:
    """Says in sentences what is in the charts: the parts that add most, one head and the test of it."""
    assert isinstance(run, RunContext)
    row, id, other = chosen["row"], chosen["candidate"], chosen["against"]
    found = found_attribution(run, row, id, other)
    ids = [id] if other is None else [id, other]
    name, *against = (f"“{escape_markdown(one)}”" for one in run.name_candidates(ids))
    asked = f"lead of {name} over {against[0]}" if against else f"logit of {name}"
    first = sorted(found.values.items(), key=lambda part: -abs(part[1]))[:NAMED]
    parts = ", ".join(f"{escape_markdown(part_name(part))} {value:+.2f}" for part, value in first)
    count = count_words(len(found.values), "part")
    st.markdown(f"The {asked} is **{found.logit:.2f}**, the sum of {count}. The largest: {parts}.")
    cap = run.model.config.head.softcap
    if cap is not None:
        st.caption(f"The model caps it afterwards: {cap:g} · tanh(sum / {cap:g}).")
    account = find_account(run, row, id, other)
    if account is None:
        return
    pieces = source_pieces(run, account.head)
    looked, carried = escape_markdown(pieces[account.looked_at]), escape_markdown(pieces[account.carried])
    fell = found.logit - account.without
    agrees = fell * account.value > 0 and abs(fell) >= abs(account.value) / 2
    test = "which confirms it" if agrees else "which it does not confirm: later parts make up for the head, or undo it"
    counts = "adds most" if account.value > 0 else "takes away most"
    st.markdown(
        f"Of the heads, **{part_name(account.head)}** {counts}, {account.value:+.2f}. It looks most at “{looked}” "
        f"({account.weight:.2f} of its attention), and the value of “{carried}” carries {account.carried_value:+.2f} "
        f"of that. Without this head the {'lead' if against else 'logit'} is {account.without:.2f}, {abs(fell):.2f} "
        f"{'less' if fell > 0 else 'more'}, {test}."
    )
    link_head(run, account, next(iter(found.covectors)))
    st.caption(
        "Norms are held still at the scale of this run (Elhage et al. 2021), so that the parts add up exactly. A part "
        "is what it adds by itself; what later parts make of it counts as theirs."
    )


def link_head(run: RunContext, account: HeadAccount, pos: int) -> None:
    """Draws a link to the score with which the head looked where it looked most."""
    head = account.head
    place: dict[str, Any] = {"layer": head.layer, "head": head.head, "pos": pos, "key": account.looked_at}
    if len(run.lanes) > 1:
        place |= {"side": run.lanes[-1].side, "focus": "cross_attn" if head.kind == "cross head" else "attn"}
    query = address_now(**{name: str(at) for name, at in place.items()})
    label = f"Why does {part_name(head)} look there?"
    st.page_link(HEAD_PAGE, label=escape_markdown(label), icon=":material/search:", query_params=query)


run_page(
    "Why this token", state_of("why_token"), TOKEN, charts=TOKEN_CHARTS, tell=tell,
    check=lambda run: check_lens(run.model.config),
)  # fmt: skip

"""The answer key of a compiled model on a page: the program, the part that does each line, and the analyses' marks."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlencode

import streamlit as st

from engine.analysis.interventions.edges import Node
from engine.analysis.interventions.marks import Item, Mark, mark_analyses
from engine.compiled.answer_key import AnswerKey, Part, find_answer_key
from engine.plurals import count_words
from pages.controls.menu import entries
from pages.controls.program_field import draw_program, open_model
from pages.controls.share.links import address_now
from pages.controls.state.session import SessionValue
from pages.controls.visitor import remember
from views.core.markdown import Markdown, escape_markdown
from views.core.run_context import RunContext
from views.interventions.questions import node_name

MISSED = 3  # parts or edges that are named
MADE = SessionValue("model of an own program", str)


def draw_answer_key(run: RunContext) -> None:
    """Draws what is known of a model's circuit, if it was compiled from a program."""
    key = find_answer_key(run.checkpoint)
    if key is None:
        return
    draw_key(run, key)
    with st.expander("Write a program of your own", key="own program open", on_change="rerun") as place:
        if place.open:
            draw_own_program()


def draw_key(run: RunContext, key: AnswerKey) -> None:
    st.markdown("**The answer key**")
    idle = count_words(len(key.idle_nodes()), "head or MLP", "heads and MLPs")
    st.markdown(
        f"This model was compiled from a program, so its circuit is known: {count_words(len(key.lines), 'line')}, and "
        f"{escape_markdown(idle)} that do nothing."
    )
    st.markdown(Markdown("\n".join(f"1. {line_words(key, number)}" for number in range(len(key.lines)))))
    try:
        marks = run.cached("marks", lambda: mark_analyses(run.checkpoint, key))
    except ValueError as error:  # of a program that says the same of every text
        st.caption(escape_markdown(error))
        return
    st.dataframe([mark_row(mark) for mark in marks], hide_index=True, width="stretch", column_config=COLUMNS)
    st.caption(
        "Every analysis on the same pairs of texts, drawn at random, of which one token and the prediction differ. "
        "What has more than 1 % of what separates both predictions in one of the pairs is found: recall is the share "
        "of the key that is, precision the share of what is found that stands in the key."
    )


def draw_own_program() -> None:
    """The field of a program, and the model that it was made into, with its key."""
    made = draw_program("own program")
    if st.button("Make it a model", key="own program make", disabled=made is None) and made is not None:
        try:
            MADE.set(open_model(made.checkpoint, "program"))
            remember(MADE.get())
        except ValueError as error:
            st.warning(escape_markdown(str(error)[:1].upper() + str(error)[1:]))
    if name := MADE.get():
        with st.container(horizontal=True):
            for address, said in (("interventions", "look inside"), ("checkpoint", "its weights, to take away")):
                page = next(one.path for one in entries() if one.address == address)
                st.page_link(page, label=said, icon=":material/arrow_forward:", query_params={"model": name})


COLUMNS = {
    "analysis": st.column_config.TextColumn(width="medium"),
    "misses": st.column_config.TextColumn(width="large"),
    "precision": st.column_config.NumberColumn(format="%.2f"),
    "recall": st.column_config.NumberColumn(format="%.2f"),
}


def line_words(key: AnswerKey, number: int) -> Markdown:
    """A line of the program, and a link to the head that does it."""
    line = key.lines[number]
    code, part = escape_markdown(line.text), escape_markdown(name_part(line.part))
    if line.head is None:
        return Markdown(f"{code}: {part}")
    at = urlencode({"layer": line.block, "head": line.head})
    return Markdown(f"{code}: [{part}](attention?{escape_markdown(urlencode(address_now()))}#{escape_markdown(at)})")


def mark_row(mark: Mark) -> dict[str, object]:
    of = "edges" if any(isinstance(one[0], tuple) for one in mark.needed) else "parts"
    missed = sorted(mark.needed - mark.found, key=str)
    return {
        "analysis": mark.analysis,
        "finds": f"{len(mark.found)} {of}",
        "precision": mark.precision,
        "recall": mark.recall,
        "misses": name_items(missed),
        "beside": name_items(sorted(mark.found - mark.needed, key=str)),
    }


def name_items(items: Iterable[Item]) -> str:
    named = [" → ".join(map(name_part, one if isinstance(one[0], tuple) else (one,))) for one in items]
    rest = len(named) - MISSED
    return ", ".join(named[:MISSED]) + (f" and {rest} more" if rest > 0 else "")


def name_part(part: Part) -> str:
    if part[0] == "block" and part[1] is not None:
        return f"block {part[1] + 1}"
    return node_name(Node(*part))  # type: ignore[arg-type]

"""The tab Prompting: examples in the prompt, and an instruction after the text."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st

from engine.generation import few_shot as prompting
from engine.generation.few_shot import PromptTable
from engine.generation.instructions import held_out_pairs
from engine.plurals import count_words
from engine.runtime import library
from pages.controls.generate.prompt import sentence
from pages.controls.generate.tabs import CONTROLS, Shown, choose, choose_among, current, keep, restore
from pages.controls.share.measure import Measurement, measure_button, measurement
from views.charts.show import NamedChart, current_shade
from views.charts.template import colors
from views.core.markdown import Markdown, code_markdown, escape_markdown
from views.generate.charts import accuracy_chart, named_apart, next_token_bars
from views.generate.prompting import (
    LONGEST_LINK,
    OWN,
    QUERIES,
    QUERY,
    TEXT,
    Written,
    accuracy_table,
    answer_table,
    answers,
    examples_of,
    instructed_lines,
    instructed_models,
    offered_models,
    pair_answers,
    pair_frame,
    share_frame,
    shots_lines,
    write_instructed,
    write_shots,
)
from views.generate.session import Writing

HIGH = 420  # pixels of a table
SHOTS = ("p_model", "p_table", "p_k", "p_query", "p_seed", "p_rows", "p_n")  # controls of examples in the prompt


# The prompts here have a model and a text of their own; what the other tabs read stays as it was.
ALONE = "<style>.st-key-controls, .st-key-headline { display: none !important; }</style>"


def draw_prompting(writing: Writing) -> Shown:
    st.html(ALONE)
    part = choose_among("what of prompting", "prompting", label_visibility="collapsed")
    return draw_shots(writing) if part == "shots" else draw_instructed(writing)


def draw_shots(writing: Writing) -> Shown:
    restore(*SHOTS)
    state = st.session_state
    fields = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    left, middle, right = st.columns([1.4, 2, 1.4], gap="large")
    table = choose_table(writing, fields, left)
    if table is None:
        keep(*SHOTS)
        return Shown()
    query = ask_query(fields, table)
    choose_examples(fields, table)
    name, k, seed, n = state.p_model, state.p_k, state.p_seed, current("p_n")
    rows = state.p_rows if state.p_table == OWN else None
    with left:
        if rows is None:
            st.caption(escape_markdown(table.about))
        show_rows(table, k, query, seed)
    found: list[Written] = []
    charts: list[NamedChart] = []
    with middle:
        st.markdown("**The prompt, and the model’s answer**")
        try:
            found = [write_shots(library.checkpoint(name), table, k, query, seed)]
            show_answer(table, found[0], k, query, seed)
            charts = show_tokens(found[0], "shots")
        except ValueError as error:
            st.warning(sentence(str(error)))
    with right:
        st.markdown("**Accuracy as K grows**")
        measuring, accuracy, work = show_accuracy(name, table, seed)
    keep(*SHOTS)
    return Shown(
        sentence=f"{name}, {count_words(k, 'example')}, “{query}”",
        python=lambda: shots_lines(name, table, rows, k, query, seed, n),
        tables={
            "Prompting: answer": lambda: answer_table(name, found),
            "Prompting: accuracy": lambda: accuracy_table(name, table, measuring.found),
        },
        charts=[*charts, accuracy],
        work=work,
    )


def choose_table(writing: Writing, fields: Any, left: Any) -> PromptTable | None:
    """Draws which model is asked and of which table; None where rows of one's own make none, which a sentence says."""
    models, tables = offered_models(writing.name), prompting.tables()
    state = st.session_state
    if current("p_model") not in models:
        state.p_model = models[0]
    if current("p_table") not in (*tables, OWN):
        state.p_table = next(iter(tables))
    fields.selectbox("model", models, key="p_model", bind="query-params", width=170)
    fields.selectbox(
        "table", [*tables, OWN], key="p_table", bind="query-params", width=170, on_change=choose, args=("p_query", "")
    )
    with left:
        st.markdown("**The table**")
        if state.p_table != OWN:
            return tables[state.p_table]
        st.caption("Your own rows: an input, a colon and its output, one row a line.")
        st.text_area("rows", key="p_rows", bind="query-params", height=300, max_chars=LONGEST_LINK)
        try:
            return prompting.table_of(state.p_rows, OWN)
        except ValueError as error:
            st.warning(sentence(str(error)))
    return None


def choose_examples(fields: Any, table: PromptTable) -> None:
    """Draws how many rows of the table stand in the prompt, and which."""
    state = st.session_state
    most = min(CONTROLS["p_k"].default * 2, table.most)
    if current("p_k") > most:
        state.p_k = most
    fields.slider("examples K", 0, most, key="p_k", bind="query-params", width=180)
    fields.number_input("seed", 0, 2**31 - 1, key="p_seed", bind="query-params", width=110)
    again = (state.p_seed + 1) % 2**31
    fields.button("Other examples", on_click=choose, args=("p_seed", again), disabled=not state.p_k)


def ask_query(fields: Any, table: PromptTable) -> str:
    """Draws the field of the query: an input of the table, or anything else; its first row where it is empty."""
    inputs = [one for one, _ in table.rows]
    state = st.session_state
    said = current("p_query")
    asked = said.strip()[:QUERY] or inputs[0]
    options = inputs if asked in inputs else [asked, *inputs]
    if said != asked:
        state.p_query = asked
    fields.selectbox(
        "query",
        options,
        key="p_query",
        bind="query-params",
        accept_new_options=True,
        width=170,
        help="an input of the table, or one of your own",
    )
    return str(state.p_query or inputs[0]).strip()[:QUERY]


def show_rows(table: PromptTable, k: int, query: str, seed: int) -> None:
    """Rows of the table, those in the prompt marked; selecting one asks it."""
    inside = {one for one, _ in prompting.examples(table, k, query, seed)} if k <= table.most else set()
    frame = pd.DataFrame(table.rows, columns=["input", "output"])
    frame["in the prompt"] = ["asked" if one == query else "example" if one in inside else "" for one in frame["input"]]

    def ask() -> None:
        rows = st.session_state["rows of the table"].selection.rows
        if rows:
            choose("p_query", table.rows[rows[0]][0])

    st.dataframe(
        frame,
        key="rows of the table",
        hide_index=True,
        height=HIGH,
        on_select=ask,
        selection_mode="single-row",
        column_config={"in the prompt": st.column_config.TextColumn(help="select a row to ask it")},
    )


def show_answer(table: PromptTable, found: Written, k: int, query: str, seed: int) -> None:
    expected = table.output(query)
    is_right = found.text == expected
    sign = "" if expected is None else " ✓" if is_right else " ✕"
    of = colors(current_shade())
    lines = "".join(
        f'<div style="opacity: 0.75"><bdi>{html.escape(one)}</bdi>: <bdi>{html.escape(output)}</bdi></div>'
        for one, output in prompting.examples(table, k, query, seed)
    )
    st.html(
        f'<div class="shots" style="background: color-mix(in srgb, currentColor 5%, transparent);'
        " border-radius: 8px; padding: 10px 14px;"
        f' min-height: 245px; font: 16px/27px monospace; overflow-wrap: anywhere">{lines}<div style="font-weight: 600">'
        f"<bdi>{html.escape(query)}</bdi>: {mark(found.text, of['probability'])}{sign}</div></div>"
    )
    if expected is None:
        st.caption("The query is in no row of the table, so there is no right answer to compare with.")
    elif is_right:
        st.success("Right.")
    else:
        st.error(f"Wrong: “{escape_markdown(expected)}” was expected.")


def mark(text: str, hue: str) -> str:
    """Marks a model's text, as HTML."""
    said = html.escape(text or "(nothing)")
    return (
        f'<bdi class="answer" style="background: color-mix(in srgb, {hue} 30%, transparent); border-radius: 3px;'
        f' padding: 0 4px">{said}</bdi>'
    )


def show_tokens(found: Written, name: str) -> list[NamedChart]:
    """Tokens of an answer, and what else the model might have written in the place of one of them."""
    pieces = found.pieces
    if not pieces:
        return []
    key = f"token of {name} {hash((found.prompt, found.ids))}"
    place = st.segmented_control(
        "token of the answer",
        range(len(pieces)),
        default=found.first,
        required=True,
        key=key,
        format_func=lambda at: escape_markdown(pieces[at]),
    )
    rows = found.rows(place)
    rows["token"] = named_apart(rows["token"].tolist())
    chart = NamedChart(next_token_bars, (), {"rows": rows})
    chart.show(f"next tokens of {name}")
    return [chart]


def show_accuracy(name: str, table: PromptTable, seed: int) -> tuple[Measurement[Any], NamedChart, Callable[[], None]]:
    """Measurement, its chart, and what goes on with it once the page is drawn."""
    n = current("p_n")
    measuring = measurement("accuracy", (name, table, seed, n))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        measure_button("accuracy", measuring)
        st.selectbox("queries for each K", QUERIES, key="p_n", bind="query-params", width=140)
    place = st.empty()

    def chart_of(shares: pd.DataFrame) -> NamedChart:
        return NamedChart(accuracy_chart, (examples_of(table)[-1],), {"shares": shares})

    def draw() -> None:
        shares = share_frame(measuring.found)
        with place.container():
            chart_of(shares).show("accuracy by examples")
            if len(shares):
                percent = st.column_config.NumberColumn(format="percent")
                config = {
                    "right": percent,
                    "error": st.column_config.NumberColumn("± standard error", format="percent"),
                }
                st.dataframe(shares, hide_index=True, column_config=config, key="shares")

    draw()
    return (
        measuring,
        chart_of(share_frame(measuring.found)),
        lambda: measuring.go_on(answers(name, table, seed, n), draw),
    )


def draw_instructed(writing: Writing) -> Shown:
    models = instructed_models(writing.name)
    if not models:
        st.info("No model here knows instructions.")
        return Shown()
    state = st.session_state
    restore("p_instructed", "p_text")
    if current("p_instructed") not in models:
        state.p_instructed = models[0]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.selectbox("model", models, key="p_instructed", bind="query-params", width=170)
        st.text_input("text", key="p_text", bind="query-params", max_chars=TEXT)
        given = ("p_text", CONTROLS["p_text"].default)
        st.button("Example", type="tertiary", key="example of p_text", on_click=choose, args=given)
    keep("p_instructed", "p_text")
    name = state.p_instructed
    text = state.p_text.strip() or CONTROLS["p_text"].default
    found: dict[str, Written] = {}
    charts: list[NamedChart] = []
    try:
        found = write_instructed(library.checkpoint(name), text)
        of = colors(current_shade())
        for column, (task, written) in zip(st.columns(len(found), gap="large"), found.items(), strict=True):
            with column:
                st.markdown(f"**{code_markdown(task)}**" if task else "**no instruction**: the text goes on")
                after = f' <code style="color: {of["edited"]}">{html.escape(task)}</code>' if task else ""
                st.html(f"<p><bdi>{html.escape(text)}</bdi>{after} {mark(written.text, of['probability'])}</p>")
                charts += show_tokens(written, task or "no instruction")
                st.caption(escape_markdown(written.stop))
    except ValueError as error:
        st.warning(sentence(str(error)))
    st.markdown("**On sentences that it never read**")
    measuring = measurement("pairs", name)
    count = len(held_out_pairs())
    measure_button("pairs", measuring, f"Measure {count} of them")
    place = st.empty()

    def draw() -> None:
        frame = pair_frame(measuring.found)
        if not len(frame):
            return
        with place.container():
            st.markdown(" · ".join(shares_of(frame)))
            st.dataframe(frame, hide_index=True, height=HIGH, key="pairs")

    draw()
    said = "; ".join(f"{task or 'no instruction'}: “{one.text}”" for task, one in found.items())
    return Shown(
        sentence=f"{name}, “{text}”. {said}",
        python=lambda: instructed_lines(name, text),
        tables={"Prompting: answer": lambda: answer_table(name, list(found.values()))},
        charts=charts,
        work=lambda: measuring.go_on(pair_answers(name), draw),
    )


def shares_of(frame: pd.DataFrame) -> list[Markdown]:
    return [
        Markdown(
            f"{code_markdown(task)} {int(rows['right'].sum())} of {len(rows)} right, "
            f"word for word ({rows['right'].mean():.1%})"
        )
        for task, rows in frame.groupby("instruction", sort=False)
    ]

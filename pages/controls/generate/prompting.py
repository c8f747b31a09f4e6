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
from pages.controls.generate.parameters import GENERATE, MOST_SHOTS
from pages.controls.generate.prompt import sentence
from pages.controls.generate.tabs import TabContent
from pages.controls.share.measure import Measurement, measure_button, measurement
from pages.controls.state.page_state import Here
from pages.controls.state.session import read_selection
from views.charts.show import NamedChart, current_shade
from views.charts.template import colors
from views.core.markdown import Markdown, code_markdown, escape_markdown
from views.generate.charts import accuracy_chart, named_apart, next_token_bars
from views.generate.prompting import (
    LONGEST_LINK,
    OWN,
    QUERY,
    TEXT,
    PromptContinuation,
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
from views.generate.session import GenerationContext

HIGH = 420  # pixels of a table

# The prompts here have a model and a text of their own; what the other tabs read stays as it was.
ALONE = "<style>.st-key-controls, .st-key-headline { display: none !important; }</style>"


def draw_prompting(here: Here, writing: GenerationContext) -> TabContent:
    st.html(ALONE)
    part = here.segments("prompting", label_visibility="collapsed")
    return draw_shots(here, writing) if part == "shots" else draw_instructed(here, writing)


def draw_shots(here: Here, writing: GenerationContext) -> TabContent:
    fields = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    left, middle, right = st.columns([1.4, 2, 1.4], gap="large")
    table = choose_table(here, writing, fields, left)
    if table is None:
        return TabContent()
    query = ask_query(here, fields, table)
    k, seed = choose_examples(here, fields, table)
    name, n = here["p_model"], here.begin("p_n")
    rows = here["p_rows"] if here["p_table"] == OWN else None
    with left:
        if rows is None:
            st.caption(escape_markdown(table.about))
        show_rows(table, k, query, seed)
    found: list[PromptContinuation] = []
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
        measuring, accuracy, work = show_accuracy(here, name, table, seed)
    return TabContent(
        sentence=f"{name}, {count_words(k, 'example')}, “{query}”",
        python=lambda: shots_lines(name, table, rows, k, query, seed, n),
        tables={
            "Prompting: answer": lambda: answer_table(name, found),
            "Prompting: accuracy": lambda: accuracy_table(name, table, measuring.results),
        },
        charts=[*charts, accuracy],
        work=work,
    )


def choose_table(here: Here, writing: GenerationContext, fields: Any, left: Any) -> PromptTable | None:
    """Draws which model is asked and of which table; None where rows of one's own make none, which a sentence says."""
    tables = prompting.tables()
    here.menu("p_model", offered_models(writing.name), place=fields, width=170)
    forget = {"on_change": GENERATE.choose, "args": ("p_query", "")}
    chosen = here.menu("p_table", [*tables, OWN], place=fields, width=170, **forget)
    with left:
        st.markdown("**The table**")
        if chosen != OWN:
            return tables[chosen]
        st.caption("Your own rows: an input, a colon and its output, one row a line.")
        rows = here.area("p_rows", height=300, max_chars=LONGEST_LINK)
        try:
            return prompting.table_of(rows, OWN)
        except ValueError as error:
            st.warning(sentence(str(error)))
    return None


def choose_examples(here: Here, fields: Any, table: PromptTable) -> tuple[int, int]:
    """Draws how many rows of the table stand in the prompt, and the seed by which they are drawn."""
    k = here.slider("p_k", min(MOST_SHOTS, table.most), place=fields, width=180)
    seed = here.number("p_seed", place=fields, width=110)
    again = (seed + 1) % 2**31
    fields.button("Other examples", on_click=GENERATE.choose, args=("p_seed", again), disabled=not k)
    return k, seed


def ask_query(here: Here, fields: Any, table: PromptTable) -> str:
    """Draws the field of the query: an input of the table, or anything else; its first row where it is empty."""
    inputs = [one for one, _ in table.rows]
    said = here.begin("p_query")
    asked = said.strip()[:QUERY] or inputs[0]
    if said != asked:
        here.set("p_query", asked)
    options = inputs if asked in inputs else [asked, *inputs]
    chosen = here.menu("p_query", options, place=fields, accept_new_options=True, width=170)
    return str(chosen or inputs[0]).strip()[:QUERY]


def show_rows(table: PromptTable, k: int, query: str, seed: int) -> None:
    """Rows of the table, those in the prompt marked; selecting one asks it."""
    inside = {one for one, _ in prompting.examples(table, k, query, seed)} if k <= table.most else set()
    frame = pd.DataFrame(table.rows, columns=["input", "output"])
    frame["in the prompt"] = ["asked" if one == query else "example" if one in inside else "" for one in frame["input"]]

    def ask() -> None:
        if rows := read_selection("rows of the table", "rows"):
            GENERATE.choose("p_query", table.rows[rows[0]][0])

    st.dataframe(
        frame,
        key="rows of the table",
        hide_index=True,
        height=HIGH,
        on_select=ask,
        selection_mode="single-row",
        column_config={"in the prompt": st.column_config.TextColumn(help="select a row to ask it")},
    )


def show_answer(table: PromptTable, found: PromptContinuation, k: int, query: str, seed: int) -> None:
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


def show_tokens(found: PromptContinuation, name: str) -> list[NamedChart]:
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


def show_accuracy(
    here: Here, name: str, table: PromptTable, seed: int
) -> tuple[Measurement[Any], NamedChart, Callable[[], None]]:
    """Measurement, its chart, and what goes on with it once the page is drawn."""
    n = here.begin("p_n")
    measuring = measurement("accuracy", (name, table, seed, n))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        measure_button("accuracy", measuring)
        here.menu("p_n", width=140)
    place = st.empty()

    def chart_of(shares: pd.DataFrame) -> NamedChart:
        return NamedChart(accuracy_chart, (examples_of(table)[-1],), {"shares": shares})

    def draw() -> None:
        shares = share_frame(measuring.results)
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
        chart_of(share_frame(measuring.results)),
        lambda: measuring.go_on(answers(name, table, seed, n), draw),
    )


def draw_instructed(here: Here, writing: GenerationContext) -> TabContent:
    models = instructed_models(writing.name)
    if not models:
        st.info("No model here knows instructions.")
        return TabContent()
    usual = here.defaults["p_text"]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        name = here.menu("p_instructed", models, width=170)
        text = here.text("p_text", max_chars=TEXT).strip() or usual
        st.button("Example", type="tertiary", key="example of p_text", on_click=GENERATE.choose, args=("p_text", usual))
    found: dict[str, PromptContinuation] = {}
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
        frame = pair_frame(measuring.results)
        if not len(frame):
            return
        with place.container():
            st.markdown(" · ".join(shares_of(frame)))
            st.dataframe(frame, hide_index=True, height=HIGH, key="pairs")

    draw()
    said = "; ".join(f"{task or 'no instruction'}: “{one.text}”" for task, one in found.items())
    return TabContent(
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

"""Matrices of a checkpoint by size, and of the chosen one how its numbers are distributed and its singular values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import isfinite

import streamlit as st

from engine.checkpoints import Checkpoint
from engine.plurals import count_words
from pages.controls.checkpoint.parameters import ALL, CHECKPOINT
from pages.controls.share.links import address_now
from pages.controls.share.panel import share_panel
from pages.controls.state.page_state import Here
from pages.controls.state.session import read_selection
from views.charts.show import show_altair
from views.charts.standalone import chart_file
from views.checkpoint import charts, weights
from views.checkpoint.weights import MatrixRow, Measures, Weight
from views.core.markdown import Markdown, escape_markdown
from views.core.shown_tables import Data

HEAD = 44  # px of the line above a chart
MATRIX, SPECTRUM, HISTOGRAM = "its numbers", "its singular values", "its histogram"


@st.cache_resource(max_entries=16, show_spinner=False)
def magnitudes(name: str, _checkpoint: Checkpoint) -> list[float]:
    return weights.magnitudes(_checkpoint.model)


@st.cache_resource(max_entries=64, show_spinner=False)
def measures(name: str, matrix: str, head: int | None, circuit: bool, _checkpoint: Checkpoint) -> Measures:
    return weights.measure(_checkpoint.model, Weight(matrix, head, circuit))


@st.fragment
def weights_section(here: Here, name: str, checkpoint: Checkpoint) -> None:
    here = here.renew()
    rows = {row.name: row for row in weights.matrix_rows(checkpoint.model)}
    left, right = st.columns([2, 5], gap="large")
    with left:
        sizes = magnitudes(name, checkpoint)
        st.markdown("##### Matrices")
        st.caption(f"root mean square of their numbers, from 0 (pale) to {max(sizes):.5g} (full)")
        place = st.container(gap="small")
        row = rows[here.menu("matrix")]
        with place:
            chart = partial(charts.matrix_map, list(rows.values()), sizes, row.name)
            key = f"matrix map {name} {row.name}"  # another for each choice: what is clicked twice is chosen twice
            show_altair(chart, key=key, on_select=partial(choose_matrix, key), selection_mode="matrix")
    with right:
        one_matrix(here, name, checkpoint, row)


def choose_matrix(key: str) -> None:
    if found := read_selection(key, "matrix"):
        CHECKPOINT.choose("matrix", found[0]["name"])


def choose_head(key: str) -> None:
    if found := read_selection(key, "head"):
        CHECKPOINT.choose("head", str(found[0]["head"]))


def one_matrix(here: Here, name: str, checkpoint: Checkpoint, row: MatrixRow) -> None:
    title = st.container()
    weight = chosen_weight(here, row)
    found = measures(name, weight.name, weight.head, weight.circuit, checkpoint)
    role = charts.hue(row)
    shape = " × ".join(f"{side:d}" for side in found.shape)
    title.markdown(f"##### {escape_markdown(weights.heading(weight, row))} :small[:gray[{shape}]]")
    if len(found.heads) > 1:
        key = f"heads {name} {row.name} {weight.head}"
        bars = partial(charts.head_bars, found.heads, weight.head, role, row.experts)
        show_altair(bars, key=key, on_select=partial(choose_head, key), selection_mode="head")
    histogram, spectrum = st.columns(2, gap="medium")
    with histogram:
        with st.container(
            horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", height=HEAD, border=False
        ):
            st.markdown(":gray[**Distribution**]", width="content")  # short: both fit on one line of a phone
            log = here.toggle("log_counts")
        counts = partial(charts.histogram_chart, found.histogram, log, role)
        show_altair(counts, key="histogram")
        st.caption(f"{histogram_figures(found)}  \ndashed: normal, same mean and std")
    with spectrum:
        with st.container(horizontal=True, vertical_alignment="center", height=HEAD, border=False):
            st.markdown(":gray[**Singular values**]")
        values = partial(charts.spectrum_chart, found.spectrum, role)
        show_altair(values, key="spectrum")
        st.caption(spectrum_figures(found))
    about = {"model": name, "matrix": weight.name} | ({} if weight.head is None else {"head": str(weight.head)})
    tables: dict[str, Data | str] = {
        MATRIX: weights.too_large(found.shape) or partial(weights.weight_matrix, name, checkpoint, weight),
        SPECTRUM: partial(weights.spectrum_table, about, found.spectrum),
        HISTOGRAM: partial(weights.histogram_table, about, found.histogram),
    }
    stem = [weight.name.replace(".", "-"), "" if weight.head is None else f"head-{weight.head}"]
    stem += ["circuit" if weight.circuit else ""]
    caption = [f"{name} · {weight.name} · {shape}", plain_figures(found)]
    share_panel(
        "Weights",
        partial(address_now, model=name),
        ("model", "numbers", "own files", "actions"),
        partial(weights.weight_lines, name, checkpoint, weight),
        tables,
        partial(chart_file, f"{weights.heading(weight, row)} · Loupe", [counts, values], caption=caption),
        key="weights share",
        names=[name, *stem],
    )


def head_options(row: MatrixRow) -> dict[str, str]:
    """Heads by their numbers from 1; experts are called by theirs from 0, as in a router's choice."""
    return {
        ALL: "all experts" if row.experts else ALL,
        **{f"{at + 1:d}": f"{at if row.experts else at + 1:d}" for at in range(row.heads)},
    }


def chosen_weight(here: Here, row: MatrixRow) -> Weight:
    """The matrix, the head of it and the circuit that are chosen, by widgets above its charts."""
    if not row.heads:
        return Weight(row.name)
    here.adjust("head", options=head_options(row))
    with st.container(horizontal=True, vertical_alignment="center"):
        label = here.segments("head", label_visibility="collapsed")
        head = None if label == ALL else int(label) - 1
        if not row.circuit:
            return Weight(row.name, head)
        why = {
            "qk": "W_Q with W_K: what a query looks for in a key",
            "ov": "W_V with W_O: what a head writes of what it reads",
        }[row.circuit]
        through = here.toggle(
            "circuit",
            label=weights.CIRCUIT_TITLES[row.circuit],
            disabled=head is None,
            help=f"{why}; choose a head first.",
        )
    return Weight(row.name, head, through and head is not None)


def histogram_figures(found: Measures) -> Markdown:
    return unbroken(figures_of_numbers(found))


def spectrum_figures(found: Measures) -> Markdown:
    return unbroken(figures_of_rank(found))


def unbroken(figures: Sequence[tuple[str, str]]) -> Markdown:
    """Markdown of figures, of which none is cut by the end of a line."""
    written = (f"{escape_markdown(name)} **{escape_markdown(value)}**" for name, value in figures)
    return Markdown(" &ensp; ".join(one.replace(" ", "\N{NO-BREAK SPACE}") for one in written))


def plain_figures(found: Measures) -> str:
    return ", ".join(f"{name} {value}" for name, value in [*figures_of_numbers(found), *figures_of_rank(found)])


def figures_of_numbers(found: Measures) -> list[tuple[str, str]]:
    counted = found.histogram
    named = [("mean", counted.mean), ("std", counted.std), ("min", counted.min), ("max", counted.max)]
    shown = [(name, f"{value:.5g}".replace("-", "−")) for name, value in [*named, ("‖W‖F", counted.norm)]]
    shown.append(("zeros", f"{counted.zeros:,}"))
    return [*shown, *([("beyond the edges", f"{counted.outside:,}")] if counted.outside else [])]


def figures_of_rank(found: Measures) -> list[tuple[str, str]]:
    values = found.spectrum
    return [
        ("σ₁", f"{values.values[0].item():.5g}"),
        ("effective rank", f"{values.rank:.1f} of {len(values.values)}"),
        ("stable rank", f"{values.stable_rank:.2f}"),
        ("90 % of ‖W‖²", f"{count_words(values.energy, 'value')}"),
        ("condition", f"{values.condition:.5g}" if isfinite(values.condition) else "∞"),
    ]

"""Tables of vectors in the plane or in space: point at a token to read it, choose one for its nearest."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from engine.analysis.weights import Neighbours, Projection
from engine.checkpoints import Checkpoint
from pages.controls.checkpoint.parameters import CHECKPOINT, SPACES
from pages.controls.share.links import address_now
from pages.controls.share.panel import share_panel
from pages.controls.state.page_state import Here
from pages.controls.state.session import read_selection, widget_value
from views.charts.show import show_plotly
from views.charts.standalone import chart_file
from views.checkpoint import charts, embedding
from views.checkpoint.embedding import KINDS, METHODS, Method, VectorTable
from views.checkpoint.weights import Weight, too_large, weight_matrix
from views.core.markdown import escape_markdown
from views.core.shown_tables import Data

POINTS, NEAREST, VECTORS = "points", "nearest to the chosen one", "all vectors"
FEWEST = 4  # rows that t-SNE needs
WORK = 400_000_000  # multiply-adds that finding the nearest of all rows may take


@st.cache_resource(max_entries=16, show_spinner=False)
def vector_table(name: str, table: str, _checkpoint: Checkpoint) -> VectorTable:
    return embedding.vector_table(_checkpoint, table)


@st.cache_resource(max_entries=16, show_spinner="Laying out the vectors …")
def points(name: str, table: str, method: Method, axes: int, _checkpoint: Checkpoint) -> Projection:
    return embedding.project_table(_checkpoint, table, method, axes)


@st.cache_resource(max_entries=256, show_spinner=False)
def nearest(name: str, table: str, id: int, _checkpoint: Checkpoint) -> Neighbours:
    return embedding.nearest_rows(_checkpoint, table, id)


@st.fragment
def embedding_section(here: Here, name: str, checkpoint: Checkpoint) -> None:
    here = here.renew()
    if not embedding.table_matrices(checkpoint.model):
        return
    title = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom", key="embedding controls"):
        chosen = here.segments("table", label_visibility="collapsed", on_change=CHECKPOINT.reset, args=("token",))
        table = vector_table(name, chosen, checkpoint)
        method, axes, whole, hidden = chosen_picture(here, table)
    title.markdown(f"##### Embedding :small[:gray[{table.rows:,} × {table.width:,}]]")
    found = points(name, table.name, method, axes, checkpoint)
    here.adjust("token", high=table.rows - 1, default=table.first)
    token: int = here.begin("token")
    near = nearest(name, table.name, token, checkpoint)
    left, right = st.columns([3, 1], gap="medium")
    figure = partial(charts.embedding_figure, table, found, token, near, hidden, whole)
    caption = [f"{name} · {table.name} · {METHODS[method]}", picture_caption(table, found, hidden, whole)]
    with left:
        key = f"embedding {method} {axes}"
        show_plotly(
            figure,
            key=key,
            on_select=partial(choose_point, key),
            selection_mode=("points", "box", "lasso"),
        )
        st.caption(escape_markdown(picture_caption(table, found, hidden, whole)))
    with right:
        token_search(table)
        label = escape_markdown(table.label(token)) or " "
        st.markdown(f"**{label}** :gray[id {token}]  \n:gray[nearest by cosine]")
        nearest_list(table, token, near)
        selected_list(key, table)
    about = {"model": name, "table": table.name}
    tables_of: dict[str, Data | str] = {
        POINTS: partial(embedding.point_table, about | {"how": method}, table, found),
        NEAREST: partial(embedding.nearest_table, about, table, near),
        VECTORS: too_large((table.rows, table.width)) or partial(weight_matrix, name, checkpoint, Weight(table.name)),
    }
    rows = {f"nearest to {table.label(token)}": near_columns(table, near)}

    def file() -> str:
        """The picture, in which each row shows its nearest too, as far as finding them is quick."""
        notes = nearest_notes(checkpoint, table) if table.rows**2 * table.width <= WORK else []
        title = f"{table.title}s of {name} · Loupe"
        return chart_file(title, [partial(figure, notes=notes)], tables=rows, caption=caption)

    share_panel(
        "Embedding", partial(address_now, model=name, token=str(token)), ("model", "numbers", "own files", "actions"),
        partial(embedding.table_lines, name, checkpoint, table.name, method, axes, token), tables_of,
        file, key="embedding share", names=[name, table.name.replace(".", "-")],
    )  # fmt: skip


def table_title(name: str, tables: list[str]) -> str:
    """ "tokens", and of two stacks "decoder tokens"."""
    word = "tokens" if name.endswith("tokens.weight") else "positions"
    same = [other for other in tables if other.endswith(f"{word}.weight")]
    return f"{name.partition('.')[0]} {word}" if len(same) > 1 else word


def chosen_picture(here: Here, table: VectorTable) -> tuple[Method, int, bool, list[str]]:
    """Draws the controls: how the vectors are laid out, in how many axes, whether all are in the frame, and the kinds
    that are hidden."""
    method = here.segments("how", list(METHODS)[: 1 + (table.rows >= FEWEST)], label_visibility="collapsed")
    space = here.segments("axes", label_visibility="collapsed")
    frame = here.segments("frame", label_visibility="collapsed")
    hidden: list[str] = []
    if table.kinds is not None:
        kinds = [kind for kind in KINDS if kind in table.kinds]
        if not set(here.begin("without")) <= set(kinds):
            here.set("without", [])
        hidden = here.draw(
            "without", st.multiselect, options=kinds, format_func=lambda kind: KINDS[kind][0], width=220,
            placeholder="hide kinds of tokens", label_visibility="collapsed",
        )  # fmt: skip
    return method, SPACES[space], frame == "all", hidden


def choose_token(id: int) -> None:
    CHECKPOINT.choose("token", id)


def choose_point(key: str) -> None:
    """A single point that is clicked is looked at; several are listed."""
    ids = selected_ids(key)
    if len(ids) == 1:
        choose_token(ids[0])


def selected_ids(key: str) -> list[int]:
    found = [point.get("customdata") for point in read_selection(key, "points")]
    ids = [one[0] if isinstance(one, list) else one for one in found]
    return list(dict.fromkeys(int(id) for id in ids if id is not None))


def token_search(table: VectorTable) -> None:
    label = f"find a {escape_markdown(table.title)}"

    def search() -> None:
        if found := embedding.find_rows(table, widget_value("find")):
            choose_token(found[0])

    text = st.text_input(
        label, key="find", on_change=search, placeholder=label, label_visibility="collapsed", type="search"
    )
    found = embedding.find_rows(table, text or "")
    if text and not found:
        st.caption(f"No {escape_markdown(table.title)} begins with “{escape_markdown(text)}”.")
    if len(found) > 1:
        with st.container(horizontal=True, gap="small"):
            for id in found:
                st.button(
                    escape_markdown(table.label(id)),
                    key=f"found {id}",
                    help=f"id {id}",
                    width="content",
                    on_click=choose_token,
                    args=(id,),
                )


def near_columns(table: VectorTable, near: Neighbours) -> dict[str, list[object]]:
    ids = near.ids.tolist()
    cosines = [f"{cosine:.3f}" for cosine in near.similarity.tolist()]
    return {table.title: [table.label(id) for id in ids], "id": ids, "cosine": cosines}


def nearest_notes(checkpoint: Checkpoint, table: VectorTable) -> list[str]:
    """Lists the five nearest of each row, as text below its name."""
    found = (embedding.nearest_rows(checkpoint, table.name, id) for id in range(table.rows))
    pairs = ([*zip(near.ids.tolist(), near.similarity.tolist(), strict=True)][:5] for near in found)
    return [
        "<br>".join(f"{charts.hover_text(table.label(id))} {cosine:.3f}" for id, cosine in nearest) for nearest in pairs
    ]


def nearest_list(table: VectorTable, token: int, near: Neighbours) -> None:
    ids = near.ids.tolist()
    frame = pd.DataFrame({table.title: [table.label(id) for id in ids], "id": ids, "cosine": near.similarity.tolist()})
    key = f"nearest {table.name} {token}"

    def choose() -> None:
        if rows := read_selection(key, "rows"):
            choose_token(ids[rows[0]])

    st.dataframe(
        frame, key=key, hide_index=True, on_select=choose, selection_mode="single-row", height="content",
        column_config={
            "id": st.column_config.NumberColumn(width="small", format="%d"),
            "cosine": st.column_config.ProgressColumn(
                format="%.3f", min_value=0.0, max_value=max(1e-9, float(np.max(near.similarity.numpy()))), width="small"
            ),
        },
    )  # fmt: skip


def selected_list(key: str, table: VectorTable) -> None:
    """Lists the points that a box or a lasso holds."""
    ids = selected_ids(key)
    if len(ids) < 2:
        return
    st.markdown(f":gray[{len(ids):,} selected in the picture]")
    frame = pd.DataFrame({table.title: [table.label(id) for id in ids if id < table.rows], "id": ids})
    place = f"selected {table.name} {len(ids)} {ids[0]}"

    def choose() -> None:
        if rows := read_selection(place, "rows"):
            choose_token(ids[rows[0]])

    st.dataframe(frame, key=place, hide_index=True, on_select=choose, selection_mode="single-row", height=240)


def picture_caption(table: VectorTable, found: Projection, hidden: list[str], whole: bool) -> str:
    ids = found.ids.tolist()
    shown = np.array([table.kinds is None or table.kinds[id] not in hidden for id in ids])
    outside = charts.outside_frame(found, shown, whole) if shown.any() else 0
    said = [f"{outside:,} lie outside the frame"] if outside else []
    if found.explained is None:
        said.append(f"t-SNE of {len(ids):,} evenly spread over the ids: who is near whom counts, distances do not")
    return " · ".join(said)

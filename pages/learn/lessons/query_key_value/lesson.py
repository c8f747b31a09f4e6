"""Query, key, value: a lookup with a softmax, by hand in the plane and in a trained head."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st
import torch
from torch import Tensor

from engine.analysis.edges import edges
from engine.course.lookup import Lookup, look_up
from engine.runtime import library
from engine.runtime.trace import Trace
from pages.controls.figures import matrix, strip
from pages.controls.learn.fields import READ_LAST, choose_view, read_field, read_matrix, read_short_text
from pages.controls.learn.predict import choose, is_found, show_code
from pages.controls.learn.words import numeral, numerals
from pages.controls.learn.words import translate as _
from pages.controls.state.session import event_value
from views.core.component import view

KEYS, VALUES = "[[2, 0], [0, 2], [-2, -1]]", "[[1, 0], [0, 1], [1, 1]]"
ASKED = (1.0, 1.5)  # the query of the question
MODEL, TEXT, LAYER = "everyday", "The cat sat on the mat", 0
MOST = 12  # tokens
REACH = 3.0  # of the plane
LEAST = 0.1  # weight of an edge that is drawn
GREY = 'color="#888888" fontcolor="#888888" fontname="sans-serif"'  # reads on light and dark

plane = view("learn/vectors", events=("move",))


def experiment() -> bool:
    left, right = st.columns(2)
    with left:
        keys = read_field("qkv-keys", _("keys, x and y of each"), KEYS, lambda said: read_matrix(said, 2))
    with right:
        values = read_field("qkv-values", _("values, one row a key"), VALUES, read_matrix)
    if len(values) != len(keys):
        sentence = _("Expected one value a key, {keys} in all, got {values}; add or remove some.")
        st.caption(f":red[:material/error:] {sentence.format(keys=len(keys), values=len(values))}")
        keys, values = read_matrix(KEYS), read_matrix(VALUES)
    query = torch.tensor(ASKED)
    found = look_up(query, keys, values)
    names = [_("key {number}").format(number=number + 1) for number in range(len(keys))]
    scores = numerals(found.scores.tolist(), ".2f")
    reason = _("The scores q·k / √2 are {scores}: the largest gets the most weight.").format(scores=scores)
    question = _("The query is ({x:g}, {y:g}). Which key gets the most weight?").format(x=ASKED[0], y=ASKED[1])
    answer = int(found.weights.argmax())
    if not choose(question, names, answer, key="query_key_value question", why=lambda _said: reason):
        return False
    views = {"plane": _("drag a query"), "real": _("a trained head"), "graph": _("as a graph")}
    shown = choose_view("qkv-view", views)
    if shown == "plane":
        draw_plane(keys, values, names)
    else:
        draw_head(shown)
    return is_found("query_key_value question")


@st.fragment
def draw_plane(keys: Tensor, values: Tensor, names: Sequence[str]) -> None:
    key = "qkv plane"
    kept = READ_LAST.get()

    def move() -> None:
        kept[key] = read_place(event_value(key, "move"))

    query = torch.tensor(kept.get(key) or ASKED)
    found = look_up(query, keys, values)
    left, right = st.columns([2, 3])
    with left:
        data = {
            "keys": keys.tolist(), "names": list(names), "weights": found.weights.tolist(), "query": query.tolist(),
            "label": _("query at"),
        }  # fmt: skip
        plane(data, key=key, on={"move": move})
        st.caption(_("Drag the query, or use the arrow keys; a dot grows with its weight."))
    with right:
        st.dataframe(cabinet(names, keys, values, found), hide_index=True, width="stretch")
        out = numerals(found.out.tolist(), ".3f")
        st.markdown(_("out = Σ weight · value = **({out})**").format(out=out))
        show_code(look_up, key="qkv code", query=query, keys=keys, values=values)


def read_place(said: object) -> tuple[float, float] | None:
    """Query that a browser reports, None if it is not in the plane."""
    if not isinstance(said, list) or len(said) != 2 or not all(type(one) in (int, float) for one in said):
        return None
    return (float(said[0]), float(said[1])) if all(abs(one) <= REACH for one in said) else None


def cabinet(names: Sequence[str], keys: Tensor, values: Tensor, found: Lookup) -> pd.DataFrame:
    """The filing cabinet: what stands on each drawer, how well it fits, and what lies in it."""
    rows = zip(names, keys.tolist(), found.scores.tolist(), found.weights.tolist(), values.tolist(), strict=True)
    table = [
        (name, write(key), numeral(score, ".3f"), numeral(weight, ".3f"), write(value))
        for name, key, score, weight, value in rows
    ]
    return pd.DataFrame(table, columns=[_("drawer"), _("label (key)"), _("score"), _("weight"), _("content (value)")])


def write(numbers: Sequence[float]) -> str:
    return f"({', '.join(f'{number:g}' for number in numbers)})"


# --- a trained head ---


def draw_head(shown: str) -> None:
    checkpoint = library.checkpoint(MODEL)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        heads = checkpoint.model.config.attention.heads
        head = st.selectbox(
            _("head of block 1"), range(heads), key="qkv-head", format_func=lambda at: str(at + 1), width=140,
            persist_state="session",
        )  # fmt: skip
        with st.container():
            encoding = read_field("qkv-text", _("text"), TEXT, lambda said: read_short_text(checkpoint, said, MOST))
    trace = library.traces.trace(MODEL, encoding)
    pieces = [piece.replace(" ", "·") for piece in encoding.pieces]
    if shown == "graph":
        draw_graph(trace, pieces, head)
    else:
        draw_vectors(trace, pieces, head)


def draw_vectors(trace: Trace, pieces: list[str], head: int) -> None:
    for place, role in zip(st.columns(3), ("query", "key", "value"), strict=True):
        with place:
            named = {"query": _("queries"), "key": _("keys"), "value": _("values")}[role]
            st.caption(named)
            vectors = trace[f"blocks.{LAYER}.attn.{role[0]}"][0, :, head]
            strip(vectors, rows=pieces, role=role, key=f"qkv {role}", label=named)
    pattern = trace[f"blocks.{LAYER}.attn.pattern"][0, head]
    scores = trace[f"blocks.{LAYER}.attn.scores"][0, head]
    st.caption(_("Its weights: softmax of the scores, later tokens masked"))
    terms = {_("score"): scores}
    matrix(pattern, rows=pieces, columns=pieces, terms=terms, digits=2, key="qkv weights", label=_("weights"))


def draw_graph(trace: Trace, pieces: list[str], head: int) -> None:
    found = edges(trace, [(LAYER, head)], LEAST)
    dot = [f'digraph {{ rankdir=LR bgcolor="transparent" node [shape=box style=rounded {GREY}]']
    dot += [f'n{number} [label="{escape(piece)}"]' for number, piece in enumerate(pieces)]
    for query, key, weight in zip(found.query.tolist(), found.key.tolist(), found.weight.tolist(), strict=True):
        dot.append(f'n{key} -> n{query} [penwidth={4 * weight:.2f} label="{weight:.2f}" fontsize=10 {GREY}]')
    st.graphviz_chart("\n".join([*dot, "}"]), width="stretch")
    sentence = _(
        "An arrow carries a value from the token that is looked at to the one that looks; weights from {least} on."
    )
    st.caption(sentence.format(least=LEAST))


def escape(piece: str) -> str:
    return piece.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "⏎")

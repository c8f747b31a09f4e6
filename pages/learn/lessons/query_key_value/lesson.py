"""Query, key, value: a lookup with a softmax, by hand in the plane and in a trained head."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st
import torch
from torch import Tensor

from engine.analysis.edges import Edges, edges
from engine.course.lookup import Lookup, look_up
from engine.runtime import library
from engine.runtime.trace import Trace
from pages.controls.figures import PICKED, cover, matrix, picked_place, strip
from pages.controls.learn.fields import (
    READ_LAST,
    choose_view,
    name_apart,
    other_input,
    read_field,
    read_matrix,
    read_short_text,
)
from pages.controls.learn.predict import choose, is_answered, is_found, point, show_code
from pages.controls.state.session import event_value
from pages.controls.words import join_sentences, numeral, numerals
from pages.controls.words import translate as _
from views.core.component import view

KEYS, VALUES = "[[2, 0], [0, 2], [-2, -1]]", "[[1, 0], [0, 1], [1, 1]]"
OTHERS = "[[2.5, 1], [-1, 2], [1, 1]]", "[[1, 2], [-2, 2], [2.5, 2]]"  # whose nearest key is not the one
ASKED = (1.0, 1.5)  # the query of the question
MODEL, TEXT, LAYER = "everyday", "The cat sat on the mat", 0
MOST = 12  # tokens
REACH = 3.0  # of the plane
LEAST = 0.1  # weight of an edge that is drawn
GREY = 'color="#888888" fontcolor="#888888" fontname="sans-serif"'  # reads on light and dark

QUESTION, LOOK, FLOW = (f"query_key_value {part}question" for part in ("", "look ", "flow "))

plane = view("learn/vectors", events=("move", "pick"))


def experiment() -> bool:
    above = st.container()
    left, right = st.columns(2)
    with left:
        keys = read_field("qkv-keys", _("keys, x and y of each"), KEYS, lambda said: read_matrix(said, 2))
    with right:
        values = read_field("qkv-values", _("values, one row a key"), VALUES, read_matrix)
    if len(values) != len(keys):
        sentence = _("Expected one value a key, {keys} in all, got {values}; add or remove some.")
        st.caption(f":red[:material/error:] {sentence.format(keys=len(keys), values=len(values))}")
        keys, values = read_matrix(KEYS), read_matrix(VALUES)
    names = [_("key {number}").format(number=number + 1) for number in range(len(keys))]
    picked = picked_key(len(keys))
    shown = ask(keys, values, names)
    with above:
        draw_plane(keys, values, names, picked, shown)
    if not shown:
        return False
    draw_head(choose_view("qkv-view", {"real": _("a trained head"), "graph": _("as a graph")}))
    return is_found(QUESTION)


def picked_key(count: int) -> int | None:
    place = picked_place(f"{QUESTION} picture", (count,))
    return place[0] if place else None


def ask(keys: Tensor, values: Tensor, names: Sequence[str]) -> bool:
    query = torch.tensor(ASKED)
    found = look_up(query, keys, values)
    answer = int(found.weights.argmax())
    reason = _("The scores q·k / √2 are {scores}: the largest gets the most weight.").format(
        scores=numerals(found.scores.tolist(), ".2f")
    )

    def why(said: int) -> str:
        if said == answer:
            return reason
        if said == int((keys - query).norm(dim=1).argmin()):
            mistake = _("It is the nearest; what counts is the dot product, so a long key counts more.")
            return join_sentences(mistake, reason)
        if said == int(keys.norm(dim=1).argmax()):
            return join_sentences(_("It is the longest, but points elsewhere than the query."), reason)
        return reason

    listed = ", ".join(write(key) for key in keys.tolist())
    question = _("Which of the keys {keys} gets the most weight from the query {query}? Click it.")
    again = other_input("qkv-keys", (KEYS, *OTHERS))
    return point(
        question.format(keys=listed, query=write(ASKED)), (len(names),), [answer], key=QUESTION, name=names.__getitem__,
        why=why, again=again,
    )  # fmt: skip


@st.fragment
def draw_plane(keys: Tensor, values: Tensor, names: Sequence[str], picked: int | None, shown: bool) -> None:
    """The keys and the query. While the question is open a click picks a key, afterwards the query is dragged."""
    key, covered = "qkv plane", not (shown and is_answered(QUESTION))
    kept = READ_LAST.get()

    def move() -> None:
        kept[key] = read_place(event_value(key, "move"))

    def pick() -> None:
        PICKED.get()[f"{QUESTION} picture"] = event_value(key, "pick")

    query = torch.tensor(ASKED if covered else kept.get(key) or ASKED)
    found = look_up(query, keys, values)
    left, right = st.columns([2, 3])
    with left:
        data = {
            "keys": keys.tolist(),
            "names": list(names),
            "weights": None if covered else found.weights.tolist(),
            "query": query.tolist(),
            "label": _("query at"),
            "picked": picked,
        }
        plane(data, key=key, on={"move": move, "pick": pick})
    with right:
        st.dataframe(cabinet(names, keys, values, found, covered), hide_index=True, width="stretch")
        if covered:
            st.caption(_("The arrow is the query. Click a key, or use the arrow keys."))
        else:
            out = numerals(found.out.tolist(), ".3f")
            st.markdown(_("out = Σ weight · value = **({out})**").format(out=out))
            st.caption(_("Drag the query, or use the arrow keys; a dot grows with its weight."))
        if shown:
            show_code(look_up, key="qkv code", query=query, keys=keys, values=values)
    if covered and picked_key(len(keys)) != picked:
        st.rerun()  # the question, which stands outside, hears of the click


def read_place(said: object) -> tuple[float, float] | None:
    """Query that a browser reports, None if it is not in the plane."""
    if not isinstance(said, list) or len(said) != 2 or not all(type(one) in (int, float) for one in said):
        return None
    return (float(said[0]), float(said[1])) if all(abs(one) <= REACH for one in said) else None


def cabinet(names: Sequence[str], keys: Tensor, values: Tensor, found: Lookup, covered: bool) -> pd.DataFrame:
    """The filing cabinet: what stands on each drawer, how well it fits, which may be covered, and what lies in it."""
    rows = zip(names, keys.tolist(), found.scores.tolist(), found.weights.tolist(), values.tolist(), strict=True)
    table = [
        (name, write(key), *("?" if covered else numeral(one, ".3f") for one in (score, weight)), write(value))
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
            _("head of block 1"),
            range(heads),
            key="qkv-head",
            format_func=lambda at: str(at + 1),
            width=140,
            persist_state="session",
        )
        with st.container():
            encoding = read_field("qkv-text", _("text"), TEXT, lambda said: read_short_text(checkpoint, said, MOST))
    trace = library.traces.trace(MODEL, encoding)
    pieces = name_apart(encoding.pieces)
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
    above = st.container()
    last = len(pieces) - 1
    reason = _("Its scores are {scores}, and the softmax keeps their order.")
    point(
        _("The row of “{token}” is covered; the pointer reads its scores. Click in it where it looks most.").format(
            token=pieces[last]
        ),
        pattern.shape,
        [(last, int(pattern[last].argmax()))],
        key=LOOK,
        name=lambda at: f"{pieces[at[0]]} → {pieces[at[1]]}",
        why=lambda _said: reason.format(scores=numerals(scores[last].tolist(), ".2f")),
    )
    with above:
        matrix(
            pattern if is_answered(LOOK) else cover(pattern, last), rows=pieces, columns=pieces,
            terms={_("score"): scores}, digits=2, key=f"{LOOK} picture", label=_("weights"),
        )  # fmt: skip


def draw_graph(trace: Trace, pieces: list[str], head: int) -> None:
    found = edges(trace, [(LAYER, head)], LEAST)
    above = st.container()
    asked = ask_flow(found, pieces)
    open_edge = None if is_answered(FLOW) else asked
    dot = [f'digraph {{ rankdir=LR bgcolor="transparent" node [shape=box style=rounded {GREY}]']
    dot += [f'n{number} [label="{escape(piece)}"]' for number, piece in enumerate(pieces)]
    for query, key, weight in zip(found.query.tolist(), found.key.tolist(), found.weight.tolist(), strict=True):
        tip = "dir=none style=dashed " if (query, key) == open_edge else ""
        dot.append(f'n{key} -> n{query} [{tip}penwidth={4 * weight:.2f} label="{weight:.2f}" fontsize=10 {GREY}]')
    with above:
        st.graphviz_chart("\n".join([*dot, "}"]), width="stretch")
    if open_edge:
        return
    sentence = _(
        "An arrow carries a value from the token that is looked at to the one that looks; weights from {least} on."
    )
    st.caption(sentence.format(least=LEAST))


def ask_flow(found: Edges, pieces: list[str]) -> tuple[int, int] | None:
    """Asks which way the value of the heaviest edge between two tokens flows: its query and key, None without one."""
    between = [
        (weight, query, key)
        for query, key, weight in zip(found.query.tolist(), found.key.tolist(), found.weight.tolist(), strict=True)
        if query != key
    ]
    if not between:
        return None
    _weight, query, key = max(between)
    looks, seen = pieces[query], pieces[key]
    question = _("“{looks}” looks at “{seen}”: the dashed line. Which way does the value flow?")
    reason = _("The value of “{seen}” is added to “{looks}”, which looks at it; “{seen}” stays as it is.")
    choose(
        question.format(looks=looks, seen=seen),
        [f"{looks} → {seen}", f"{seen} → {looks}"],
        1,
        key=FLOW,
        why=lambda _said: reason.format(looks=looks, seen=seen),
    )
    return query, key


def escape(piece: str) -> str:
    return piece.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "⏎")

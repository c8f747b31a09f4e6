"""Query, key, value: a lookup with a softmax, by hand in the plane and in a trained head."""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd
import streamlit as st
import torch
from torch import Tensor

from engine.analysis.edges import Edges, edges
from engine.course.arrows import gather
from engine.course.lookup import Lookup, look_up
from engine.course.plane import NAME as PLANE
from engine.runtime import library
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding
from pages.controls.figures import PICKED, cover, matrix, picked_place, strip
from pages.controls.learn.arrows import Gathered, draw_arrows, read_known_words, round_up
from pages.controls.learn.fields import (
    READ_LAST,
    choose_option,
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
REACH = 3.0  # of the plane, at least
WORDS = "Anna saw the dog and"
OTHER_WORDS = "Tom saw the cat and", "Mary saw the dog and"
LEAST = 0.1  # weight of an edge that is drawn
GREY = 'color="#888888" fontcolor="#888888" fontname="sans-serif"'  # reads on light and dark

QUESTION, LOOK, FLOW = (f"query_key_value {part}question" for part in ("", "look ", "flow "))

plane = view("learn/vectors", events=("move", "pick"))


class Drawers(NamedTuple):
    """What is looked up: keys and values by name, the query that asks, and the words whose they are, if any."""

    names: list[str]
    keys: Tensor
    values: Tensor
    query: Tensor
    words: Encoding | None


def experiment() -> bool:
    above = st.container()
    left, right = st.columns([2, 3], vertical_alignment="bottom")
    with left:
        words = choose_option("qkv-source", {"words": _("words in a plane"), "own": _("own numbers")}) == "words"
    with right:
        drawers = read_sentence() if words else read_own()
    picked = picked_key(len(drawers.names))
    shown = ask(drawers)
    with above:
        draw_plane(drawers, picked, shown)
    if not shown:
        return False
    views = {"gathers": _("what it gathers")} if words else {}
    views |= {"real": _("a trained head"), "graph": _("as a graph")}
    view = choose_view("qkv-view" if words else "qkv-view own", views)
    if view == "gathers":
        assert drawers.words is not None
        draw_gathering(drawers.words)
    else:
        draw_head(view)
    return is_found(QUESTION)


def read_sentence() -> Drawers:
    """The keys and values of the words in the model of two dimensions, and the query of the last one."""
    encoding = read_field("qkv-words", _("words"), WORDS, read_known_words)
    trace = library.traces.trace(PLANE, encoding)
    q, k, v = (trace[f"blocks.0.attn.{part}"][0, :, 0] for part in "qkv")
    names = name_apart(encoding.pieces)
    return Drawers(names, k, v, q[-1], encoding)


def read_own() -> Drawers:
    keys = read_field("qkv-keys", _("keys, x and y of each"), KEYS, lambda said: read_matrix(said, 2))
    values = read_field("qkv-values", _("values, one row a key"), VALUES, read_matrix)
    if len(values) != len(keys):
        sentence = _("Expected one value a key, {keys} in all, got {values}; add or remove some.")
        st.caption(f":red[:material/error:] {sentence.format(keys=len(keys), values=len(values))}")
        keys, values = read_matrix(KEYS), read_matrix(VALUES)
    names = [_("key {number}").format(number=number + 1) for number in range(len(keys))]
    return Drawers(names, keys, values, torch.tensor(ASKED), None)


def picked_key(count: int) -> int | None:
    place = picked_place(f"{QUESTION} picture", (count,))
    return place[0] if place else None


def ask(drawers: Drawers) -> bool:
    names, keys, query = drawers.names, drawers.keys, drawers.query
    found = look_up(query, keys, drawers.values)
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

    if drawers.words is not None:
        sentence = _("“{word}” asks with its query, the arrow. Which word’s key gets the most weight? Click it.")
        question = sentence.format(word=names[-1])
        again = other_input("qkv-words", (WORDS, *OTHER_WORDS))
    else:
        question = _("Which of the keys {keys} gets the most weight from the query {query}? Click it.").format(
            keys=", ".join(write(key) for key in keys.tolist()), query=write(query.tolist())
        )
        again = other_input("qkv-keys", (KEYS, *OTHERS))
    return point(
        question, (len(names),), [answer], key=QUESTION, name=names.__getitem__, why=why, again=again
    )  # fmt: skip


@st.fragment
def draw_plane(drawers: Drawers, picked: int | None, shown: bool) -> None:
    """The keys and the query. While the question is open a click picks a key, afterwards the query is dragged."""
    names, keys, values, asked, _words = drawers
    key, covered = "qkv plane", not (shown and is_answered(QUESTION))
    reach = max(REACH, round_up(1.1 * float(torch.cat([keys, asked[None]]).abs().max())))
    kept, place = READ_LAST.get(), f"{key} {write(asked.tolist())}"

    def move() -> None:
        kept[place] = read_place(event_value(key, "move"), reach)

    def pick() -> None:
        PICKED.get()[f"{QUESTION} picture"] = event_value(key, "pick")

    query = asked if covered else torch.tensor(kept.get(place) or asked.tolist())
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
            "reach": reach,
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


def draw_gathering(encoding: Encoding) -> None:
    """What each word takes of the others, in the stream: its own arrow, and what is set to its end."""
    checkpoint = library.checkpoint(PLANE)
    trace = library.traces.trace(PLANE, encoding)
    found = gather(checkpoint.model, trace)
    rows = [
        Gathered(begin.tolist(), weights.tolist(), (weights[:, None] * found.carried).tolist())
        for begin, weights in zip(found.begin, found.weights, strict=True)
    ]
    names = name_apart(encoding.pieces)
    drawn, said = st.columns([2, 3])
    with drawn:
        label = _("each word’s vector, and where what it gathers moves it")
        draw_arrows(names, found.begin, rows, key="qkv arrows", label=label, told="")
    probabilities = trace["logits"][0].softmax(-1)
    assert checkpoint.tokenizer is not None
    best = [checkpoint.tokenizer.piece(int(id)) for id in probabilities.argmax(-1)]
    shares = [numeral(float(one), ".2f") for one in probabilities.amax(-1)]
    moved = trace["blocks.0.resid_post"][0].tolist()
    columns = [_("word"), _("its vector"), _("moved to"), _("next, by the model"), _("p")]
    rows_said = zip(names, map(short, found.begin.tolist()), map(short, moved), best, shares, strict=True)
    with said:
        st.dataframe(pd.DataFrame(list(rows_said), columns=columns), hide_index=True, width="stretch")
        st.caption(
            _(
                "Green: what a word takes of each, weight · value · W_O. Blue: where that moves it, and the next word "
                "follows from there."
            )
        )


def short(numbers: Sequence[float]) -> str:
    return f"({', '.join(f'{number:.2f}' for number in numbers)})"


def read_place(said: object, reach: float) -> tuple[float, float] | None:
    """Query that a browser reports, None if it is not in the plane."""
    if not isinstance(said, list) or len(said) != 2 or not all(type(one) in (int, float) for one in said):
        return None
    return (float(said[0]), float(said[1])) if all(abs(one) <= reach for one in said) else None


def cabinet(names: Sequence[str], keys: Tensor, values: Tensor, found: Lookup, covered: bool) -> pd.DataFrame:
    """The filing cabinet: what stands on each drawer, how well it fits, which may be covered, and what lies in it."""
    rows = zip(names, keys.tolist(), found.scores.tolist(), found.weights.tolist(), values.tolist(), strict=True)
    table = [
        (name, write(key), *("?" if covered else numeral(one, ".3f") for one in (score, weight)), write(value))
        for name, key, score, weight, value in rows
    ]
    return pd.DataFrame(table, columns=[_("drawer"), _("label (key)"), _("score"), _("weight"), _("content (value)")])


def write(numbers: Sequence[float]) -> str:
    return f"({', '.join(f'{number:.3g}' for number in numbers)})"


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

"""Positions: five ways to tell a model where a token stands, and which models notice that words were shuffled."""

from functools import lru_cache

import altair as alt
import pandas as pd
import streamlit as st
import torch

from engine.course.positions import (
    NOTICED,
    POSITION_KINDS,
    alibi,
    buckets,
    dot_products,
    rotate_to,
    rotated_score,
    shuffle_change,
    sinusoidal_table,
    wavelengths,
)
from engine.runtime import library
from pages.controls.figures import matrix, strip
from pages.controls.learn.fields import choose_view, read_field, read_short_text
from pages.controls.learn.predict import estimate, is_found, show_code
from pages.controls.learn.words import translate as _
from views.charts.show import show_altair
from views.charts.template import colors
from views.core.theme import Shade

MODEL, TEXT = "everyday", "The old dog bit the young man"
LEARNED = "stories"  # whose positions are a table
LENGTH, SHORT = 32, 9  # rows that are drawn; those with numbers in them
MOST = 24  # tokens

changes = lru_cache(maxsize=512)(shuffle_change)


def experiment() -> bool:
    left, right = st.columns(2)
    pos = int(left.number_input(_("position"), 1, LENGTH - 1, 2, key="positions-pos", persist_state="session"))
    sizes = [4, 8, 16, 32, 64]
    d = right.select_slider(_("d, numbers a vector"), sizes, 4, key="positions-d", persist_state="session")
    table = sinusoidal_table(LENGTH, d)
    question = _("The first number of every vector is a sine. What is it at position {pos}?").format(pos=pos)
    reason = _("The first pair turns by 1 radian a token, so it is sin({pos}).").format(pos=pos)
    if not estimate(question, float(table[pos, 0]), 0.05, key="positions question", why=lambda _said: reason):
        return False
    ways = {
        "sinusoidal": _("sinusoidal"), "learned": _("learned"), "rotary": _("RoPE"), "alibi": _("ALiBi"),
        "relative": _("relative"), "shuffle": _("shuffle the words"),
    }  # fmt: skip
    way = choose_view("positions-way", ways)
    if way == "sinusoidal":
        draw_sinusoidal(table, d)
    elif way == "learned":
        draw_learned()
    elif way == "rotary":
        draw_rotary()
    elif way == "alibi":
        draw_alibi()
    elif way == "relative":
        draw_relative()
    else:
        draw_shuffle()
    return is_found("positions question")


def draw_sinusoidal(table: torch.Tensor, d: int) -> None:
    left, right = st.columns(2)
    names = [str(pos) for pos in range(LENGTH)]
    with left:
        st.caption(_("positions down, the {d} numbers of each across").format(d=d))
        if d <= 8:
            matrix(table[:SHORT], rows=names[:SHORT], digits=2, scale="signed", role="residual", key="positions table",
                   label=_("sinusoidal positions"))  # fmt: skip
        else:
            named = _("sinusoidal positions")
            matrix(table, rows=names, scale="signed", role="residual", key="positions table", label=named)
    with right:
        st.caption(_("dot product with position 0, by distance"))
        show_altair(lambda shade: draw_distances(dot_products(table), shade), key="positions distances")
        waves = ", ".join(f"{value:,.4g}" for value in wavelengths(d).tolist())
        st.caption(_("Wavelengths of the pairs, in tokens: {waves}.").format(waves=waves))
        show_code(sinusoidal_table, key="positions code sinusoidal", length=3, d=4)


def draw_distances(products: torch.Tensor, shade: Shade) -> alt.Chart:
    table = pd.DataFrame({"distance": range(len(products)), "product": products.tolist()})
    ink = colors(shade)["residual"]
    return (
        alt.Chart(table)
        .mark_line(point={"color": ink}, color=ink)
        .encode(alt.X("distance:Q", title=_("distance")), alt.Y("product:Q", title=_("dot product")))
        .properties(height=230)
    )


def draw_learned() -> None:
    table = library.checkpoint(LEARNED).model.embed.positions
    assert table is not None
    weight = table.weight
    sentence = _("The first {count} rows of the table that the model {model} learned: one for each position.")
    st.caption(sentence.format(count=LENGTH, model=LEARNED))
    names = [str(pos) for pos in range(LENGTH)]
    strip(weight[:LENGTH], rows=names, key="positions learned", label=_("learned positions"))
    show_altair(lambda shade: draw_distances(dot_products(weight[:LENGTH]), shade), key="positions learned distances")


def draw_rotary() -> None:
    left, right = st.columns(2)
    pos = left.slider(_("position of the query"), 0, 64, 5, key="positions-query", persist_state="session")
    key = right.slider(_("position of the key"), 0, 64, 2, key="positions-key", persist_state="session")
    q, k = torch.tensor([1.0, 0.5]), torch.tensor([0.5, 1.0])
    score = float(rotated_score(q, k, pos, key))
    sentence = _("q·k after turning = **{score:.4f}**, at distance {distance}")
    st.markdown(sentence.format(score=score, distance=pos - key))
    show_altair(lambda shade: draw_turning(q, k, pos, key, shade), key="positions turning")
    far = float(rotated_score(q, k, pos + 10, key + 10))
    sentence = _("Both moved on by 10 tokens: {score:.4f}. Only the distance counts.")
    st.caption(sentence.format(score=far))
    show_code(rotated_score, key="positions code rotary", q=q, k=k, at=pos, of=key)


def draw_turning(q: torch.Tensor, k: torch.Tensor, pos: int, key: int, shade: Shade) -> alt.LayerChart:
    ink = colors(shade)
    ends = rotate_to(torch.stack([q, k]), torch.tensor([pos, key])).tolist()
    table = pd.DataFrame(
        [(name, end, x * end, y * end) for name, (x, y) in zip(("q", "k"), ends, strict=True) for end in (0, 1)],
        columns=["vector", "order", "x", "y"],
    )
    scale = alt.Scale(domain=[-1.3, 1.3])
    base = alt.Chart(table).encode(
        alt.X("x:Q", scale=scale, title=None),
        alt.Y("y:Q", scale=scale, title=None),
        alt.Color("vector:N", title=None, sort=["q", "k"], scale=alt.Scale(range=[ink["query"], ink["key"]])),
    )
    return (base.mark_line(strokeWidth=3).encode(order="order:Q") + base.mark_point(filled=True, size=80)).properties(
        height=230
    )


def draw_alibi() -> None:
    heads = 4
    bias = alibi(8, heads)
    sentence = _("What is added to the scores of each of {heads} heads: a slope times the distance.")
    st.caption(sentence.format(heads=heads))
    for number, place in enumerate(st.columns(heads)):
        with place:
            matrix(bias[number], scale="signed", role="key", key=f"positions alibi {number}",
                   label=_("head {number}").format(number=number + 1))  # fmt: skip
            st.caption(_("slope {slope:g}").format(slope=-float(bias[number, 1, 0])))
    show_code(alibi, key="positions code alibi", length=8, heads=heads)


def draw_relative() -> None:
    st.caption(_("T5: the bucket of each distance. A bucket has one learned number a head, added to its scores."))
    found = buckets(SHORT)
    names = [str(pos) for pos in range(SHORT)]
    matrix(found, rows=names, columns=names, digits=0, role="mlp", key="positions buckets", label=_("buckets"))
    show_code(buckets, key="positions code relative", length=SHORT)


def draw_shuffle() -> None:
    checkpoint = library.checkpoint(MODEL)
    encoding = read_field("positions-text", _("text"), TEXT, lambda said: read_short_text(checkpoint, said, MOST))
    ids = list(encoding.ids)
    backwards = "".join([*reversed(encoding.pieces[:-1]), encoding.pieces[-1]])
    sentence = _("Everything before the last token backwards: “{text}”. Two layers with random weights of each kind:")
    st.caption(sentence.format(text=backwards))
    named = {
        "learned": _("learned"), "sinusoidal": _("sinusoidal"), "rotary": _("RoPE"), "alibi": _("ALiBi"),
        "relative": _("relative"), "none": _("none"),
    }  # fmt: skip
    vocab = checkpoint.model.config.vocab_size
    rows = []
    for kind in POSITION_KINDS:
        full, causal = (changes(kind, mask, tuple(ids), vocab) for mask in ("full", "causal"))
        rows.append((named[kind], say(full), say(causal)))
    columns = [_("positions"), _("an encoder (sees all)"), _("a decoder (causal)")]
    st.dataframe(pd.DataFrame(rows, columns=columns), hide_index=True, width="stretch")
    sentence = _("The number is the largest change of a logit at the last token; below {least:g} it is rounding.")
    st.caption(sentence.format(least=NOTICED))


def say(change: float) -> str:
    noticed, alike = _("notices: {change:.3f}"), _("does not: {change:.0e}")
    return (noticed if change > NOTICED else alike).format(change=change)

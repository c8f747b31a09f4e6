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
from pages.controls.figures import cover, matrix, strip
from pages.controls.learn.fields import choose_view, other_input, read_field, read_short_text
from pages.controls.learn.predict import choose, is_answered, is_found, point, show_code
from pages.controls.words import join_sentences
from pages.controls.words import translate as _
from views.charts.show import show_altair
from views.charts.template import colors
from views.core.theme import Shade

MODEL, TEXT = "everyday", "The old dog bit the young man"
LEARNED = "stories"  # whose positions are a table
LENGTH, SHORT = 32, 9  # rows that are drawn; those with numbers in them
MOST = 24  # tokens
SQUARE = 230  # pixels of either axis
POS, OTHERS = 2, (5, 7)  # the position that is asked for
WRITTEN = 8  # numbers of a vector that have room for their digits
FROM, TO = 6, 2  # query and key whose bucket is asked for
QUESTION, BUCKET, SHUFFLE = (f"positions {part}question" for part in ("", "bucket ", "shuffle "))

changes = lru_cache(maxsize=512)(shuffle_change)


def experiment() -> bool:
    above = st.container()
    left, right = st.columns(2)
    with left:
        pos = int(st.number_input(_("position"), 1, SHORT - 1, POS, key="positions-pos", persist_state="session"))
    sizes = [4, 8, 16, 32, 64]
    d = right.select_slider(_("d, numbers a vector"), sizes, 4, key="positions-d", persist_state="session")
    table = sinusoidal_table(LENGTH, d)
    shown = ask(table[:SHORT], pos)
    with above:
        draw_table(table[:SHORT], pos, covered=not (shown and is_answered(QUESTION)))
    if not shown:
        return False
    ways = {
        "sinusoidal": _("sinusoidal"),
        "learned": _("learned"),
        "rotary": _("RoPE"),
        "alibi": _("ALiBi"),
        "relative": _("relative"),
        "shuffle": _("shuffle the words"),
    }
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


def draw_table(table: torch.Tensor, pos: int, covered: bool) -> None:
    """The first positions and the numbers of their vectors; the row that is asked for is covered."""
    rows, columns = ([str(at) for at in range(size)] for size in table.shape)
    matrix(
        cover(table, pos) if covered else table, rows=rows, columns=columns, scale="signed", role="residual",
        digits=2 if len(table[0]) <= WRITTEN else None, key=f"{QUESTION} picture",
        label=_("positions down, the numbers of each vector across"),
    )  # fmt: skip


def ask(table: torch.Tensor, pos: int) -> bool:
    d = len(table[0])
    waves = wavelengths(d).tolist()
    reason = _("The first pair turns by 1 radian a token: sin({pos}) = {sine:.2f} stands first in row {pos}.").format(
        pos=pos, sine=float(table[pos, 0])
    )

    def why(said: tuple[int, int]) -> str:
        row, column = said
        if row != pos:
            mistake = _("Rows are positions, counted from 0: that is position {row}.").format(row=row)
            return join_sentences(mistake, reason)
        if column == 1:
            return join_sentences(_("That is the cosine of the same pair."), reason)
        if column:
            slower = _("That pair is slower: its wavelength, in tokens, is {wave:.4g}.")
            return join_sentences(slower.format(wave=waves[column // 2]), reason)
        return reason

    question = _("A row is covered. Each pair of numbers is a sine and its cosine. Click the cell of sin({pos}).")
    return point(
        question.format(pos=pos),
        table.shape,
        [(pos, 0)],
        key=QUESTION,
        why=why,
        name=lambda at: _("row {row}, column {column}").format(row=at[0], column=at[1]),
        again=other_input("positions-pos", (POS, *OTHERS)),
    )


def draw_sinusoidal(table: torch.Tensor, d: int) -> None:
    left, right = st.columns(2)
    with left:
        st.caption(_("positions down, the {d} numbers of each across").format(d=d))
        names = [str(pos) for pos in range(LENGTH)]
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
    show_altair(lambda shade: draw_turning(q, k, pos, key, shade), key="positions turning", width="content")
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
    lines = base.mark_line(strokeWidth=3).encode(order="order:Q") + base.mark_point(filled=True, size=80)
    # An angle is seen where both axes have one scale; to fit the whole would take the legend's width off one of them.
    return lines.properties(width=SQUARE, height=SQUARE, autosize="pad")


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
    found, above = buckets(SHORT), st.container()
    names = [str(pos) for pos in range(SHORT)]
    alike = [(row, col) for row, col in (found == found[FROM, TO]).nonzero().tolist() if (row, col) != (FROM, TO)]
    reason = _("Its key stands {distance} before its query, and the bucket goes by that distance alone.").format(
        distance=FROM - TO
    )

    def why(said: tuple[int, int]) -> str:
        if said in alike or said == (FROM, TO):
            return reason
        return join_sentences(_("That cell is in bucket {bucket}.").format(bucket=int(found[said])), reason)

    question = _("The bucket of query {query} (row) and key {key} (column) is covered. Click another cell of it.")
    point(
        question.format(query=FROM, key=TO),
        found.shape,
        alike,
        key=BUCKET,
        why=why,
        name=lambda at: _("row {row}, column {column}").format(row=at[0], column=at[1]),
    )
    with above:
        matrix(
            found if is_answered(BUCKET) else cover(found, (FROM, TO)), rows=names, columns=names, digits=0, role="mlp",
            key=f"{BUCKET} picture", label=_("buckets"),
        )  # fmt: skip
    show_code(buckets, key="positions code relative", length=SHORT)


def draw_shuffle() -> None:
    checkpoint = library.checkpoint(MODEL)
    encoding = read_field("positions-text", _("text"), TEXT, lambda said: read_short_text(checkpoint, said, MOST))
    ids = list(encoding.ids)
    backwards = "".join([*reversed(encoding.pieces[:-1]), encoding.pieces[-1]])
    sentence = _("Everything before the last token backwards: “{text}”. Two layers with random weights of each kind:")
    st.caption(sentence.format(text=backwards))
    named = {
        "learned": _("learned"),
        "sinusoidal": _("sinusoidal"),
        "rotary": _("RoPE"),
        "alibi": _("ALiBi"),
        "relative": _("relative"),
        "none": _("none"),
    }
    vocab = checkpoint.model.config.vocab_size
    found = {kind: [changes(kind, mask, tuple(ids), vocab) for mask in ("full", "causal")] for kind in POSITION_KINDS}
    above = st.container()
    ask_order(*found["none"])
    covered = not is_answered(SHUFFLE)
    rows = [
        (named[kind], *("?" if covered and kind == "none" else say(change) for change in both))
        for kind, both in found.items()
    ]
    columns = [_("positions"), _("an encoder (sees all)"), _("a decoder (causal)")]
    above.dataframe(pd.DataFrame(rows, columns=columns), hide_index=True, width="stretch")
    sentence = _("The number is the largest change of a logit at the last token; below {least:g} it is rounding.")
    st.caption(sentence.format(least=NOTICED))


def ask_order(full: float, causal: float) -> None:
    """Asks which of the two models without positions notices the shuffle."""
    options = [_("neither"), _("the encoder alone"), _("the decoder alone"), _("both")]
    answer = (full > NOTICED) + 2 * (causal > NOTICED)
    reason = _("Encoder: {full}; decoder: {causal}. Attention is a sum, and here the mask alone tells an order.")
    choose(
        _("The models without positions are covered. Which of the two notices?"),
        options,
        answer,
        key=SHUFFLE,
        why=lambda _said: reason.format(full=say(full), causal=say(causal)),
    )


def say(change: float) -> str:
    noticed, alike = _("notices: {change:.3f}"), _("does not: {change:.0e}")
    return (noticed if change > NOTICED else alike).format(change=change)

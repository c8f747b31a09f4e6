"""Positions: five ways to tell a model where a token stands, and which models notice that words were shuffled."""

from functools import lru_cache, partial
from math import hypot
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st
import torch

from engine.course.positions import (
    NOTICED,
    POSITION_KINDS,
    alibi,
    angle_between,
    buckets,
    clock_hands,
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
from views.core.theme import Shade, diverging_scale

MODEL, TEXT = "everyday", "The old dog bit the young man"
LEARNED = "stories"  # whose positions are a table
LENGTH, SHORT = 32, 9  # rows that are drawn; those with numbers in them
MOST = 24  # tokens
SQUARE = 230  # pixels of either axis
STRIPES = 330  # pixels of their height
CLOCKS, LARGEST_CLOCK = 352, 110  # pixels of a row of clocks, of one of them at most
MOVED = 10  # tokens by which both are moved at first
POS, OTHERS = 2, (5, 7)  # the position that is asked for
WRITTEN = 8  # numbers of a vector that have room for their digits
FROM, TO = 6, 2  # query and key whose bucket is asked for
QUESTION, BUCKET, SHUFFLE = (f"positions {part}question" for part in ("", "bucket ", "shuffle "))

changes = lru_cache(maxsize=512)(shuffle_change)


def experiment() -> bool:
    above, beside = st.columns([3, 2], gap="medium")
    with beside:
        pos = int(st.number_input(_("position"), 1, SHORT - 1, POS, key="positions-pos", persist_state="session"))
        sizes = [4, 8, 16, 32, 64]
        d = st.select_slider(_("d, numbers a vector"), sizes, 4, key="positions-d", persist_state="session")
        st.caption(_("Positions down, the numbers of each vector across: signed, from -1 to 1."))
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
    way = choose_view("positions-view", ways)
    if way == "sinusoidal":
        draw_sinusoidal(table, d, pos)
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


def draw_sinusoidal(table: torch.Tensor, d: int, pos: int) -> None:
    left, right = st.columns(2)
    with left:
        show_altair(lambda shade: draw_stripes(table, pos, shade), key="positions table")
        st.caption(_("Down a column one number waves: fast on the left, slowly on the right. Framed: position {pos}."
                     ).format(pos=pos))  # fmt: skip
    with right:
        show_altair(lambda shade: draw_clocks(pos, d, shade), key="positions clocks", width="content")
        said = _(
            "The same {d} numbers of position {pos} as {count} clocks: to the right the sine of each pair, up its "
            "cosine, from -1 to 1. Below each: tokens for a whole turn."
        )
        st.caption(said.format(d=d, pos=pos, count=d // 2))
        show_altair(lambda shade: draw_distances(dot_products(table), shade), key="positions distances")
    show_code(sinusoidal_table, key="positions code sinusoidal", length=3, d=4)


def draw_stripes(table: torch.Tensor, pos: int, shade: Shade) -> alt.LayerChart | alt.FacetChart:
    """The numbers of the vectors as colours: position down, dimension across; one position is framed."""
    cells = pd.DataFrame(
        [(row, column, value) for row, values in enumerate(table.tolist()) for column, value in enumerate(values)],
        columns=["position", "dimension", "value"],
    )
    base = alt.Chart(cells, height=STRIPES).encode(
        alt.X("dimension:O", title=_("dimension"), axis=alt.Axis(labelAngle=0, labelOverlap=True)),
        alt.Y("position:O", title=_("position"), axis=alt.Axis(labelOverlap=True)),
        tooltip=["position", "dimension", alt.Tooltip("value", format="+.3f")],
    )
    scale = alt.Scale(range=diverging_scale(shade, "residual"), domain=[-1, 1])
    painted = base.mark_rect().encode(color=alt.Color("value:Q", scale=scale, title=None))
    row = alt.Chart(pd.DataFrame({"position": [pos]})).encode(alt.Y("position:O", title=_("position")))
    return alt.layer(painted, row.mark_rect(filled=False, stroke=colors(shade)["ink"], strokeWidth=1.5))


def draw_clocks(pos: int, d: int, shade: Shade) -> alt.LayerChart | alt.FacetChart:
    """A clock for each pair of dimensions: its hand goes from the middle to (sine, cosine)."""
    ink, pairs, waves = colors(shade), clock_hands(pos, d).tolist(), wavelengths(d).tolist()
    across = 2 if len(pairs) == 2 else 4 if len(pairs) <= 8 else 6 if len(pairs) <= 16 else 8
    down = -(-len(pairs) // across)
    size = min(CLOCKS // across, LARGEST_CLOCK)
    rows = []
    for at, ((sine, cosine), wave) in enumerate(zip(pairs, waves, strict=True)):
        row, column = divmod(at, across)
        middle, height = 2.5 * column + 1.25, -3.0 * row - 1.2  # in radii of a clock
        named = f"{2 * at}, {2 * at + 1}", f"{wave:,.3g}" if wave < 1000 else f"{wave:,.0f}"
        rows.append((middle, height, middle + sine, height + cosine, height - 1.4, sine, cosine, *named))
    names = ["x", "y", "x_end", "y_end", "below", "sine", "cosine", "dimensions", "tokens"]
    wide, high = 2.5 * across, 3.0 * down
    across_scale, down_scale = (alt.Scale(domain=ends, nice=False) for ends in ([0, wide], [-high, 0]))
    x, x_end = (alt.X(f"{name}:Q", scale=across_scale, axis=None) for name in ("x", "x_end"))
    y, y_end, below = (alt.Y(f"{name}:Q", scale=down_scale, axis=None) for name in ("y", "y_end", "below"))
    base = alt.Chart(pd.DataFrame(rows, columns=names)).encode(
        x,
        y,
        tooltip=["dimensions", alt.Tooltip("sine", format="+.3f"), alt.Tooltip("cosine", format="+.3f"), "tokens"],
    )
    radius = size / 2.5
    face = base.mark_point(shape="circle", size=(2 * radius) ** 2, filled=True, fill=ink["panel"], opacity=1,
                           stroke=ink["soft"], strokeWidth=1)  # fmt: skip
    hand = base.mark_rule(color=ink["residual"], strokeWidth=2.5).encode(x2="x_end:Q", y2="y_end:Q")
    tip = base.mark_point(filled=True, color=ink["residual"], opacity=1, size=36).encode(x_end, y_end)
    turn = base.mark_text(fontSize=10, color=ink["soft"]).encode(y=below, text="tokens:N")
    # A circle is seen where both axes have one scale.
    return alt.layer(face, hand, tip, turn).properties(width=size * across, height=radius * high, autosize="pad")


def draw_distances(products: torch.Tensor, shade: Shade) -> alt.Chart:
    table = pd.DataFrame({"distance": range(len(products)), "product": products.tolist()})
    ink = colors(shade)["residual"]
    return (
        alt.Chart(table)
        .mark_line(point={"color": ink}, color=ink)
        .encode(
            alt.X("distance:Q", title=_("distance"), scale=alt.Scale(nice=False)),
            alt.Y("product:Q", title=_("dot product with position 0")),
        )
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
    left, middle, right = st.columns(3)
    pos = left.slider(_("position of the query"), 0, 64, 5, key="positions-query", persist_state="session")
    key = middle.slider(_("position of the key"), 0, 64, 2, key="positions-key", persist_state="session")
    moved = right.slider(_("both moved by"), 0, 64, MOVED, key="positions-moved", persist_state="session")
    q, k = torch.tensor([1.0, 0.5]), torch.tensor([0.5, 1.0])
    columns = st.columns(2)
    for number, (place, by) in enumerate(zip(columns, (0, moved), strict=True)):
        at, of = pos + by, key + by
        turned = rotate_to(torch.stack([q, k]), torch.tensor([at, of]))
        said = _("q at {at}, k at {of}: from k to q **{angle:.1f}°**, q·k after turning = **{score:.4f}**")
        angle, score = angle_between(turned[1], turned[0]), float(rotated_score(q, k, at, of))
        with place:
            st.markdown(said.format(at=at, of=of, angle=angle, score=score))
            show_altair(
                partial(draw_turning, q, k, at, of),
                key=f"positions turning {number}",
                width="content",
            )
    sentence = _(
        "Dashed: q and k before turning, {angle:.1f}° from k to q; each position turns them by 1 radian, 57.3°. Both "
        "moved by {moved} turn by as much: the angle stays, and with it q·k. Only the distance, {distance}, "
        "counts."
    )
    st.caption(sentence.format(angle=angle_between(k, q), moved=moved, distance=pos - key))
    show_code(rotated_score, key="positions code rotary", q=q, k=k, at=pos, of=key)


def draw_turning(q: torch.Tensor, k: torch.Tensor, pos: int, key: int, shade: Shade) -> alt.LayerChart | alt.FacetChart:
    """q and k before and after turning, on the circle that their length draws, with the angle between them."""
    ink = colors(shade)
    before = torch.stack([q, k])
    after = rotate_to(before, torch.tensor([pos, key]))
    rows = [
        (name, dashed, *end)
        for dashed, ends in ((1, before), (0, after))
        for name, end in zip(("q", "k"), ends.tolist(), strict=True)
    ]
    table = pd.DataFrame(rows, columns=["vector", "dashed", "x", "y"])
    table["x_start"], table["y_start"] = 0.0, 0.0
    length = hypot(*q.tolist())
    whole = torch.linspace(0, 2 * torch.pi, 73)
    start = torch.atan2(after[1, 1], after[1, 0])
    between = start + torch.deg2rad(torch.tensor(angle_between(after[1], after[0]))) * torch.linspace(0, 1, 25)
    scale = alt.Scale(domain=[-1.3, 1.3], nice=False)
    x = alt.X("x:Q", scale=scale, title=_("first number"), axis=alt.Axis(values=[-1, 0, 1]))
    y = alt.Y("y:Q", scale=scale, title=_("second number"), axis=alt.Axis(values=[-1, 0, 1]))
    color = alt.Color("vector:N", title=None, sort=["q", "k"], scale=alt.Scale(range=[ink["query"], ink["key"]]))
    hands = alt.Chart(table).encode(x, y, color, tooltip=["vector", "x", "y"])
    ends = {"x2": "x_start:Q", "y2": "y_start:Q"}
    lines = [
        arc(whole, length, color=ink["hairline"], strokeWidth=1.5).encode(x, y),
        arc(between, 0.3, color=ink["soft"], strokeWidth=2).encode(x, y),
        hands.transform_filter("datum.dashed === 1").mark_rule(strokeWidth=1.5, strokeDash=[4, 4]).encode(**ends),
        hands.transform_filter("datum.dashed === 0").mark_rule(strokeWidth=3).encode(**ends),
        hands.transform_filter("datum.dashed === 0").mark_point(filled=True, size=80, opacity=1),
    ]
    # An angle is seen where both axes have one scale; to fit the whole would take the legend's width off one of them.
    return alt.layer(*lines).properties(width=SQUARE, height=SQUARE, autosize="pad")


def arc(angles: torch.Tensor, radius: float, **line: Any) -> alt.Chart:
    """A part of a circle around the origin."""
    points = {"x": radius * angles.cos(), "y": radius * angles.sin(), "order": torch.arange(len(angles))}
    table = pd.DataFrame({name: values.tolist() for name, values in points.items()})
    return alt.Chart(table).mark_line(**line).encode(order="order:Q")


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

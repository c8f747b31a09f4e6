"""Norms and the MLP: which numbers each norm's mean runs over, and what works on each token alone."""

from functools import partial
from typing import Any, get_args

import altair as alt
import pandas as pd
import streamlit as st
import torch
from torch import Tensor

from engine.course.norms import (
    NormName,
    averaged_over,
    batch_norm_at_inference,
    mean_and_spread,
    mlp_alone,
    normalise,
)
from engine.runtime import library
from pages.controls.figures import cover, matrix, picked_place
from pages.controls.learn.fields import choose_view, other_input, read_field, read_matrix, read_short_text
from pages.controls.learn.predict import estimate, is_answered, is_found, point, show_code
from pages.controls.words import join_sentences, numeral
from pages.controls.words import translate as _
from views.charts.show import show_altair
from views.charts.template import colors
from views.core.theme import Shade

BATCH = "[[1, 2, 3, 6], [2, 2, 8, 4], [0, 5, 1, 2], [4, 3, 3, 2]]"
OTHERS = "[[9, 1, 2], [3, 3, 0], [1, 4, 2]]", "[[1, 0, 4, 3], [2, 5, 1, 0], [3, 1, 1, 7]]"
MODEL, TEXT, LAYER = "everyday", "The cat sat on the mat", 1
MOST = 12  # tokens
QUESTION, COLUMN, ALONE = (f"norms {part}question" for part in ("", "batch ", "alone "))
TOLERANCE = 0.01
SQUARE = 260  # pixels of the circle's picture, at most
NEAR = 0.01  # of the radius: so near is on the circle


def experiment() -> bool:
    above = st.container()
    x = read_field("norms-x", _("a batch: tokens down, features across"), BATCH, read_batch)
    rows = [_("token {number}").format(number=number + 1) for number in range(len(x))]
    features = [_("feature {number}").format(number=number + 1) for number in range(x.shape[1])]
    asked = divmod(int(x.argmax()), x.shape[1])  # row and feature of the largest number
    shown = ask(x, rows, features, asked)
    with above:
        draw_batch(x, rows, features, asked, covered=not (shown and is_answered(QUESTION)))
    if not shown:
        return False
    views = {
        "norms": _("three norms"),
        "sphere": _("the sphere"),
        "inference": _("a batch of one"),
        "mlp": _("the MLP"),
    }
    view = choose_view("norms-view", views)
    if view == "norms":
        draw_norms(x, rows, features, asked)
    elif view == "sphere":
        draw_sphere(x, rows)
    elif view == "inference":
        draw_inference(x, features)
    else:
        draw_mlp()
    return is_found(QUESTION)


def draw_batch(x: Tensor, rows: list[str], features: list[str], asked: tuple[int, int], covered: bool) -> None:
    """The batch, and what LayerNorm makes of it; the number that is asked about is covered there."""
    normed = normalise(x, "layer")
    left, right = st.columns(2)
    named: dict[str, Any] = {"rows": rows, "columns": number_features(features), "digits": 2, "role": "residual"}
    with left:
        st.caption(_("the batch"))
        matrix(x, key=f"{QUESTION} picture", label=_("the batch"), **named)
    with right:
        st.caption(_("LayerNorm"))
        matrix(
            cover(normed, asked) if covered else normed,
            scale="signed",
            key="norms normed",
            label=_("LayerNorm"),
            **named,
        )


def number_features(features: list[str]) -> list[str]:
    return [name.split()[-1] for name in features]


def read_batch(said: str) -> Tensor:
    x = read_matrix(said)
    if len(x) < 2 or x.shape[1] < 2:
        raise ValueError(_("Expected two rows of two numbers at least; add some."))
    return x


def ask(x: Tensor, rows: list[str], features: list[str], asked: tuple[int, int]) -> bool:
    row, feature = asked
    answers = averaged_with(x, "layer", asked)
    reason = _("It averages the features of one token, here to {mean:g}; no other token comes in.").format(
        mean=float(x[row].mean())
    )

    def why(said: tuple[int, int]) -> str:
        if said == asked:
            return join_sentences(_("That is the number itself; another is asked for."), reason)
        if said[1] == feature:
            mistake = _("That is the same feature of another token, over which BatchNorm averages.")
            return join_sentences(mistake, reason)
        return reason

    question = _("LayerNorm brings {feature} of {row} to scale. Click another number that its mean runs over.")
    return point(
        question.format(feature=features[feature], row=rows[row]),
        x.shape,
        answers,
        key=QUESTION,
        name=lambda at: f"{rows[at[0]]}, {features[at[1]]}",
        why=why,
        again=other_input("norms-x", (BATCH, *OTHERS)),
    )


def averaged_with(x: Tensor, kind: NormName, asked: tuple[int, int]) -> list[tuple[int, int]]:
    """Places of the other numbers of the mean that runs over one."""
    over = averaged_over((len(x), x.shape[1]), kind, *asked)
    return [(row, feature) for row, feature in over.nonzero().tolist() if (row, feature) != asked]


def draw_norms(x: Tensor, rows: list[str], features: list[str], asked: tuple[int, int]) -> None:
    names: dict[NormName, str] = {"layer": _("LayerNorm"), "rms": _("RMSNorm"), "batch": _("BatchNorm")}
    kinds: tuple[NormName, ...] = get_args(NormName)
    cell = picked_place("norms picture layer", tuple(x.shape)) or asked
    st.caption(_("Click a number of LayerNorm’s to see what each norm averages for it: marked in the lower row."))
    named: dict[str, Any] = {"rows": rows, "columns": number_features(features)}
    columns = st.columns(3)
    ask_column(x, rows, features, asked)
    for place, kind in zip(columns, kinds, strict=True):
        with place:
            st.markdown(f"**{names[kind]}**")
            matrix(
                normalise(x, kind), scale="signed", role="residual", digits=2,
                key=f"{COLUMN} picture" if kind == "batch" else f"norms picture {kind}", label=names[kind], **named,
            )  # fmt: skip
            covered = kind == "batch" and not is_answered(COLUMN)
            over = averaged_over((len(x), x.shape[1]), kind, cell[0], cell[1])
            averaged = torch.where(over, x, 0.0)
            matrix(
                cover(averaged, ...) if covered else averaged,
                role="key",
                digits=2,
                key=f"norms over {kind}",
                label=_("what is averaged"),
                **named,
            )
            if not covered:
                st.caption(_("mean {mean:.3g}").format(mean=float(x[over].mean())))
    show_code(normalise, key="norms code", x=x, kind="layer")


def ask_column(x: Tensor, rows: list[str], features: list[str], asked: tuple[int, int]) -> None:
    """Asks for another number of BatchNorm's mean."""
    row, feature = asked
    reason = _("It averages one feature over all tokens of the batch, here to {mean:g}.").format(
        mean=float(x[:, feature].mean())
    )

    def why(said: tuple[int, int]) -> str:
        if said[0] == row and said != asked:
            return join_sentences(_("That is the same token, as LayerNorm has it."), reason)
        return reason

    question = _("And BatchNorm? Click in its picture another number of the mean for {feature} of {row}.")
    point(
        question.format(feature=features[feature], row=rows[row]),
        x.shape,
        averaged_with(x, "batch", asked),
        key=COLUMN,
        name=lambda at: f"{rows[at[0]]}, {features[at[1]]}",
        why=why,
    )


def draw_sphere(x: Tensor, rows: list[str]) -> None:
    """The tokens' vectors before and after two norms: lengths, and places on the circle on which they end."""
    d = x.shape[1]
    ways = {_("before"): x, _("RMSNorm"): normalise(x, "rms"), _("LayerNorm"): normalise(x, "layer")}
    left, right = st.columns(2)
    with left:
        show_altair(partial(draw_lengths, ways, rows, d), key="norms lengths")
        st.caption(_("Length of each token’s vector. The line is √d = √{d} = {radius:.3f}.").format(d=d, radius=d**0.5))
    with right:
        show_altair(partial(draw_circle, ways, rows, d), key="norms circle", width="content")
        st.caption(
            _(
                "The same vectors, true for any d: to the right √d · mean, up √d · spread (the standard deviation), so "
                "that the distance from 0 is the length. RMSNorm keeps the direction and changes the length; "
                "LayerNorm takes the mean off first, which leaves only the way up."
            )
        )
    on = [sum(abs(float(v.norm()) / d**0.5 - 1) <= NEAR for v in values) for values in ways.values()]
    said = _(
        "On the sphere of radius √d, to {near:.0%}, are of the {count} vectors {before} before, {rms} after RMSNorm, "
        "{layer} after LayerNorm. The way up folds all directions across the mean into one: there tokens may "
        "still differ."
    )
    st.markdown(said.format(near=NEAR, count=len(x), before=on[0], rms=on[1], layer=on[2]))
    show_code(mean_and_spread, key="norms code sphere", x=x)


def draw_lengths(ways: dict[str, Tensor], rows: list[str], d: int, shade: Shade) -> alt.LayerChart | alt.FacetChart:
    table = pd.DataFrame(
        [(row, way, float(v.norm())) for way, x in ways.items() for row, v in zip(rows, x, strict=True)],
        columns=["token", "way", "length"],
    )
    y = alt.Y("length:Q", title=_("length"))
    bars = (
        alt.Chart(table)
        .mark_bar()
        .encode(
            alt.X("token:N", sort=rows, title=None, axis=alt.Axis(labelAngle=0)),
            alt.XOffset("way:N", sort=list(ways)),
            y,
            way_color(ways, shade),
            tooltip=["token", "way", alt.Tooltip("length", format=".3f")],
        )
    )
    rule = alt.Chart(pd.DataFrame({"length": [d**0.5]})).mark_rule(color=colors(shade)["ink"], strokeDash=[5, 4])
    return alt.layer(bars, rule.encode(y)).properties(height=SQUARE)


def draw_circle(ways: dict[str, Tensor], rows: list[str], d: int, shade: Shade) -> alt.LayerChart | alt.FacetChart:
    """Half a circle of radius √d: what is along the mean to the right, what is across it up."""
    ink, radius = colors(shade), d**0.5
    found = {way: mean_and_spread(x).tolist() for way, x in ways.items()}
    table = pd.DataFrame(
        [
            (row, way, along, across)
            for way, ends in found.items()
            for row, (along, across) in zip(rows, ends, strict=True)
        ],
        columns=["token", "way", "along", "across"],
    )
    far = 1.1 * max(radius, float(table["across"].max()), float(table["along"].abs().max()))
    low = -far if float(table["along"].min()) < -1e-4 else -0.35 * far
    per = SQUARE / max(far - low, 1.05 * far)  # pixels of a unit, of either axis
    x = alt.X("along:Q", title=_("√d · mean"), scale=alt.Scale(domain=[low, far], nice=False))
    y = alt.Y("across:Q", title=_("√d · spread"), scale=alt.Scale(domain=[-0.05 * far, far], nice=False))
    half = torch.linspace(0, torch.pi, 61)
    curve = {"along": (radius * half.cos()).tolist(), "across": (radius * half.sin()).tolist(), "order": range(61)}
    circle = alt.Chart(pd.DataFrame(curve)).transform_filter(f"datum.along >= {low}")
    ends = table.assign(zero=0.0)
    before = ends[ends["way"] == next(iter(ways))]
    points = alt.Chart(ends).mark_point(size=90, filled=True, opacity=0.9)
    return alt.layer(
        circle.mark_line(color=ink["soft"], strokeDash=[5, 4]).encode(x, y, order="order:Q"),
        alt.Chart(before).mark_rule(color=ink["hairline"], strokeWidth=1.5).encode(x, y, x2="zero:Q", y2="zero:Q"),
        points.encode(x, y, way_color(ways, shade), tooltip=["token", "way", "along", "across"]),
    ).properties(width=per * (far - low), height=per * 1.05 * far, autosize="pad")


def way_color(ways: dict[str, Tensor], shade: Shade) -> alt.Color:
    inks = [colors(shade)[role] for role in ("residual", "attention", "key")]
    return alt.Color("way:N", title=None, scale=alt.Scale(domain=list(ways), range=inks), sort=list(ways))


def draw_inference(x: Tensor, features: list[str]) -> None:
    one = x[:1]
    mean, variance = x.mean(0), x.var(0, correction=0)
    ways = {
        _("LayerNorm, the first token alone"): normalise(one, "layer"),
        _("BatchNorm at training, in this batch"): normalise(x, "batch")[:1],
        _("BatchNorm at training, a batch of one"): normalise(one, "batch"),
        _("BatchNorm at inference, with what it kept"): batch_norm_at_inference(one, mean, variance),
    }
    alone, above = _("BatchNorm at training, a batch of one"), st.container()
    reason = _("{value:g} is its own mean, and {value:g} − {value:g} is 0.").format(value=float(one[0, 0]))
    question = _("A row is covered: BatchNorm at training, alone. What does it make of {feature}?")
    estimate(
        question.format(feature=features[0]),
        float(ways[alone][0, 0]),
        TOLERANCE,
        key=ALONE,
        why=lambda _said: reason,
    )
    covered = not is_answered(ALONE)
    written = [
        ["?" if covered and way == alone else numeral(value, ".3f") for value in found[0].tolist()]
        for way, found in ways.items()
    ]
    table = pd.DataFrame(written, columns=features)
    table.insert(0, _("the first token"), list(ways))
    above.dataframe(table, hide_index=True, width="stretch")
    if not covered:
        st.caption(_("A batch of one is its own mean, so nothing is left of it. LayerNorm never looks at others."))
    show_code(batch_norm_at_inference, key="norms code inference", x=one, mean=mean, variance=variance)


def draw_mlp() -> None:
    checkpoint = library.checkpoint(MODEL)
    encoding = read_field("norms-text", _("text"), TEXT, lambda said: read_short_text(checkpoint, said, MOST))
    gaps = mlp_alone(checkpoint, encoding, LAYER)
    config = checkpoint.model.config
    width = config.mlp.d_mlp if config.mlp else 0
    sentence = _("The MLP of block {layer}: from {d_model} numbers to {d_mlp} and back, for each token by itself.")
    st.markdown(sentence.format(layer=LAYER + 1, d_model=config.d_model, d_mlp=width))
    differences = [numeral(gap, ".1e") for gap in gaps.tolist()]
    table = pd.DataFrame({_("token"): list(encoding.pieces), _("alone or in the text, difference"): differences})
    st.dataframe(table, hide_index=True, width="stretch")
    st.caption(_("Nothing but rounding: only attention carries something from one token to another."))

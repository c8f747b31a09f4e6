"""One step of learning: a loss, its gradient on one weight, the step, the loss after it; then a hundred steps."""

import math
from functools import lru_cache, partial

import altair as alt
import pandas as pd
import streamlit as st
import torch

from engine.course.one_step import (
    GradientStep,
    Slope,
    StepOfTwo,
    descend,
    find_slopes,
    loss_along,
    loss_over,
    step_one_weight,
    step_two_weights,
)
from engine.runtime import library
from pages.controls.learn.fields import choose_view, other_input, read_field, read_short_text
from pages.controls.learn.predict import choose, estimate, is_answered, is_found, show_code
from pages.controls.words import join_sentences, numeral
from pages.controls.words import translate as _
from views.charts.show import show_altair
from views.charts.template import colors
from views.core.theme import Shade, ramp

MODEL = "everyday"
TEXT, OTHER = "My cat sleeps on the roof of the train.", "My dog sleeps on the floor of the house."
MOST = 16  # tokens of a text
MATRICES = ("embed.tokens.weight", "final_norm.weight", "blocks.0.mlp.out.weight", "blocks.5.mlp.out.weight",
            "blocks.5.attn.out.weight")  # fmt: skip
RATES, RATE = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0), 3.0
RATES_OF_ALL, RATE_OF_ALL = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0), 0.01
STEPS, POINTS = 100, 49
WIDE, MARGIN = 3.0, 0.4  # of the curve on either side: at least, and as a part of the step
REACH = 1.5  # of the tangent on either side, at least
CELLS, SQUARE = 11, 270  # of the valley of two weights: places of either, pixels of a side
TOLERANCE = 0.01
QUESTION, PROMISE, OTHER_TEXT = (f"one step {part}question" for part in ("", "promise ", "other "))

slopes_of = lru_cache(maxsize=16)(find_slopes)
curve_of = lru_cache(maxsize=32)(loss_along)
valley_of = lru_cache(maxsize=16)(loss_over)
descent = lru_cache(maxsize=16)(descend)


def experiment() -> bool:
    checkpoint = library.checkpoint(MODEL)
    first, left, right = st.columns([4, 3, 3])
    with first:
        ids = read_field("one-step-text", _("text"), TEXT, lambda said: read_short_text(checkpoint, said, MOST)).ids
    with left:
        slopes = slopes_of(MODEL, ids, MATRICES)
        at = st.selectbox(
            _("weight"),
            range(len(slopes)),
            key="one-step-weight",
            persist_state="session",
            format_func=lambda one: name_of(slopes[one]),
        )
    with right:
        rate = st.select_slider(_("learning rate"), RATES, RATE, key="one-step-rate", persist_state="session")
    slope = slopes[at]
    step = step_one_weight(MODEL, ids, slope, rate)
    place = st.container()
    found = ask(slope, step, rate)
    views = {"one": _("one step"), "two": _("two weights"), "all": _("100 steps of all weights")}
    view = choose_view("one-step-view", views) if found else None
    if view == "one":
        ask_promise(step)
    covered = view == "one" and not is_answered(PROMISE)
    with place:
        draw_curve(ids, slope, step, found and is_answered(QUESTION), covered)
    if not found:
        return False
    if view == "one":
        if is_answered(PROMISE):
            say_step(slope, step, rate)
        show_code(step_one_weight, key="one step code", name=MODEL, ids=list(ids), slope=slope, rate=rate)
    elif view == "two":
        draw_two(ids, slopes, at, rate, is_answered(QUESTION))
    else:
        draw_descent(ids)
    return is_found(QUESTION)


def name_of(slope: Slope) -> str:
    return f"{slope.matrix.removesuffix('.weight')} [{', '.join(map(str, slope.place))}]"


def ask(slope: Slope, step: GradientStep, rate: float) -> bool:
    uphill = slope.weight + rate * slope.gradient
    right = _("w − rate · gradient = {weight:.3f} − {rate:g} · ({gradient:.3f}) = {after:.3f}.")
    reason = right.format(weight=slope.weight, rate=rate, gradient=slope.gradient, after=step.after)

    def why(said: float) -> str:
        if abs(said - uphill) <= TOLERANCE:
            return join_sentences(_("That is a step along the gradient, which is uphill."), reason)
        if abs(said - (slope.weight - slope.gradient)) <= TOLERANCE:
            return join_sentences(_("That is the step without the learning rate."), reason)
        return reason

    question = _(
        "The weight is {weight:.3f}, the gradient of the loss there {gradient:.3f}, the learning rate {rate:g}. Where "
        "does the weight stand after one step?"
    ).format(weight=slope.weight, gradient=slope.gradient, rate=rate)
    return estimate(
        question,
        step.after,
        TOLERANCE,
        key=QUESTION,
        why=why,
        again=other_input("one-step-weight", range(len(MATRICES))),
    )


# --- one weight ---


def draw_curve(ids: tuple[int, ...], slope: Slope, step: GradientStep, answered: bool, covered: bool) -> None:
    """The loss along the weight, with its tangent where it stands; the step once it was asked for, but the loss behind
    it while that is covered."""
    low, high = sorted((step.weight, step.after)) if answered else (step.weight, step.weight)
    margin = max(WIDE, MARGIN * (high - low))
    weights = tuple(torch.linspace(low - margin, high + margin, POINTS).tolist())
    losses = curve_of(MODEL, ids, slope.matrix, slope.place, weights)
    show_altair(partial(draw_valley, weights, losses, slope, step, answered, covered), key="one step curve")
    about = _("The loss of the text along one of {count} weights; all others stay. The line is its slope: {slope:.3f}.")
    st.caption(about.format(count=numeral(count_weights(), ","), slope=slope.gradient))


def count_weights() -> int:
    return sum(weight.numel() for weight in library.checkpoint(MODEL).model.parameters())


def draw_valley(
    weights: tuple[float, ...],
    losses: list[float],
    slope: Slope,
    step: GradientStep,
    answered: bool,
    covered: bool,
    shade: Shade,
) -> alt.LayerChart | alt.FacetChart:
    ink = colors(shade)
    reach = max(REACH, abs(step.after - step.weight)) if answered else REACH
    x = alt.X("weight:Q", title=_("weight"), scale=alt.Scale(nice=False, zero=False))
    y = alt.Y("loss:Q", title=_("loss, nats"), scale=alt.Scale(zero=False))
    valley = alt.Chart(pd.DataFrame({"weight": weights, "loss": losses})).mark_line(color=ink["residual"])
    ends = [step.weight - reach, step.weight + reach]
    line = pd.DataFrame({"weight": ends, "loss": [step.loss + slope.gradient * (end - step.weight) for end in ends]})
    tangent = alt.Chart(line).mark_line(color=ink["key"], strokeDash=[5, 4])
    named = [(step.weight, step.loss, _("now"))]
    if answered:
        named.append((step.after, step.promised, _("promised by the slope")))
    if answered and not covered:
        named.append((step.after, step.loss_after, _("after")))
    spots = alt.Chart(pd.DataFrame(named, columns=["weight", "loss", "where"]))
    inks = alt.Scale(domain=[name for *_spot, name in named], range=[ink["residual"], ink["key"], ink["attention"]])
    points = spots.mark_point(size=130, filled=True, opacity=1).encode(
        x, y, alt.Color("where:N", title=None, scale=inks), tooltip=["where", "weight", "loss"]
    )
    return alt.layer(valley.encode(x, y), tangent.encode(x, y), points).properties(height=250)


def ask_promise(step: GradientStep) -> None:
    """Asks what the loss does on the way, which the curve says where the weight will stand."""
    options = [_("falls further than promised"), _("falls, but less than promised"), _("grows")]
    answer = 2 if step.loss_after > step.loss else int(step.loss_after >= step.promised)
    reason = _("The loss was {loss:.3f}; {promised:.3f} was promised, and the curve is at {after:.3f} there.")
    told = reason.format(loss=step.loss, promised=step.promised, after=step.loss_after)
    choose(
        _("The dashed line promises a loss after the step. Look where the curve is there: what does the loss do?"),
        options,
        answer,
        key=PROMISE,
        why=lambda _said: told,
    )


def say_step(slope: Slope, step: GradientStep, rate: float) -> None:
    sentence = _(
        "The loss was **{loss:.3f}**. With the slope of the beginning it would be {loss:.3f} − {rate:g} · "
        "({gradient:.3f})² = {promised:.3f} after the step; it is **{after:.3f}**."
    )
    said = sentence.format(
        loss=step.loss, rate=rate, gradient=slope.gradient, promised=step.promised, after=step.loss_after
    )
    if step.loss_after > step.loss:
        said += " " + _("The step went over the valley and up on the other side: too large a learning rate.")
    else:
        share = (step.loss - step.loss_after) / (step.loss - step.promised)
        kept = _("It kept {share:.0%} of what was promised: the gradient changes on the way.")
        said += " " + kept.format(share=share)
    st.markdown(said)


# --- two weights ---


def draw_two(ids: tuple[int, ...], slopes: list[Slope], at: int, rate: float, answered: bool) -> None:
    """The loss over two of the weights as a valley, and the step down in it."""
    others = [one for one in range(len(slopes)) if one != at]
    chosen = st.selectbox(
        _("and another weight"),
        others,
        key=f"one-step-second {at}",
        persist_state="session",
        format_func=lambda one: name_of(slopes[one]),
    )
    pair = slopes[at], slopes[chosen]
    step = step_two_weights(MODEL, ids, pair, rate)
    left, right = st.columns([3, 2], gap="medium")
    half, places = lay_grid(step)
    with left, st.spinner(_("the valley")):
        losses = valley_of(MODEL, ids, pair, places)
        show_altair(partial(draw_map, losses, places, half, pair, step, answered), key="one step map", width="content")
    with right:
        about = _(
            "Each square is the loss of the text, in nats, with both weights set to its place; all others stay. The "
            "more colour, the higher. The gradient is ({one:.3f}, {other:.3f}): it points uphill, and the step goes "
            "the other way."
        )
        st.markdown(about.format(one=pair[0].gradient, other=pair[1].gradient))
        if answered:
            said = _("The loss was **{loss:.3f}** and is **{after:.3f}** after the step of both, at rate {rate:g}.")
            st.markdown(said.format(loss=step.loss, after=step.loss_after, rate=rate))
    show_code(step_two_weights, key="one step code two", name=MODEL, ids=list(ids), slopes=pair, rate=rate)


def lay_grid(step: StepOfTwo) -> tuple[float, tuple[tuple[float, float], ...]]:
    """Half the side of a square around a step and its places, row by row: both axes have one scale, so that a gradient
    points straight up the hill."""
    middle = [(before + after) / 2 for before, after in zip(step.weights, step.after, strict=True)]
    longest = max(abs(after - before) for before, after in zip(step.weights, step.after, strict=True))
    half = max(WIDE, (0.5 + MARGIN) * longest)
    across, down = (torch.linspace(one - half, one + half, CELLS).tolist() for one in middle)
    return half, tuple((x, y) for y in down for x in across)


def draw_map(
    losses: list[float],
    places: tuple[tuple[float, float], ...],
    half: float,
    pair: tuple[Slope, Slope],
    step: StepOfTwo,
    answered: bool,
    shade: Shade,
) -> alt.LayerChart | alt.FacetChart:
    ink, edge = colors(shade), half / (CELLS - 1)
    rows = [(x, y, x - edge, x + edge, y - edge, y + edge, loss) for (x, y), loss in zip(places, losses, strict=True)]
    cells = pd.DataFrame(rows, columns=["x", "y", "left", "right", "low", "high", "loss"])
    across, down = whole_scale(cells["left"], cells["right"]), whole_scale(cells["low"], cells["high"])

    def at(x: str, y: str) -> tuple[alt.X, alt.Y]:
        names = [name_of(slope) for slope in pair]
        return alt.X(f"{x}:Q", title=names[0], scale=across), alt.Y(f"{y}:Q", title=names[1], scale=down)

    hill = (
        alt.Chart(cells)
        .mark_rect()
        .encode(
            *at("left", "low"),
            x2="right:Q",
            y2="high:Q",
            fill=alt.Fill(
                "loss:Q",
                title=_("loss, nats"),
                scale=alt.Scale(range=ramp(shade, "residual"), zero=False),
                legend=alt.Legend(orient="right"),
            ),
            tooltip=[alt.Tooltip(name, format=".3f") for name in ("x", "y", "loss")],
        )
    )
    gradient = [slope.gradient for slope in pair]
    reach = 0.4 * half / math.hypot(*gradient) if any(gradient) else 0.0
    up = [weight + reach * slope for weight, slope in zip(step.weights, gradient, strict=True)]
    lines = [(*step.weights, *up, _("the gradient, uphill"))]
    spots = [(*step.weights, step.loss, _("now"))]
    if answered:
        lines.append((*step.weights, *step.after, _("the step")))
        spots.append((*step.after, step.loss_after, _("after")))
    inks = alt.Scale(
        domain=[str(one[-1]) for one in (*lines, *spots)],
        range=[ink["key"], *[ink["attention"]] * (len(lines) - 1), ink["ink"], ink["attention"]],
    )
    color = alt.Color("what:N", title=None, scale=inks, sort=None, legend=alt.Legend(columns=2))
    arrows = alt.Chart(pd.DataFrame(lines, columns=["x", "y", "x_end", "y_end", "what"]))
    points = alt.Chart(pd.DataFrame(spots, columns=["x", "y", "loss", "what"]))
    return alt.layer(
        hill,
        arrows.mark_rule(strokeWidth=3).encode(*at("x", "y"), color, x2="x_end:Q", y2="y_end:Q"),
        points.mark_point(size=110, filled=True, opacity=1).encode(
            *at("x", "y"), color, tooltip=["what", "x", "y", "loss"]
        ),
    ).properties(width=SQUARE, height=SQUARE, autosize="pad")


def whole_scale(low: pd.Series, high: pd.Series) -> alt.Scale:
    return alt.Scale(domain=[float(low.min()), float(high.max())], nice=False, zero=False)


# --- all of them ---


def draw_descent(ids: tuple[int, ...]) -> None:
    checkpoint = library.checkpoint(MODEL)
    left, right = st.columns(2)
    with left:
        other = read_field(
            "one-step-other",
            _("another text, which is not learned"),
            OTHER,
            lambda said: read_short_text(checkpoint, said, MOST),
        ).ids
    with right:
        rate = st.select_slider(
            _("learning rate for all weights"),
            RATES_OF_ALL,
            RATE_OF_ALL,
            key="one-step-rate-of-all",
            persist_state="session",
        )
    with st.spinner(_("100 steps")):
        learned, unlearned = descent(MODEL, ids, rate, STEPS, other)
    finite, above = math.isfinite(learned[-1]) and math.isfinite(unlearned[-1]), st.container()
    if finite:
        ask_other(unlearned)
    covered = finite and not is_answered(OTHER_TEXT)
    with above:
        show_altair(partial(draw_losses, learned, [] if covered else unlearned), key="one step losses")
    if not finite:
        sentence = _("The steps are too long: the loss grew, and after {steps} of them it is no number any more.")
        st.markdown(sentence.format(steps=len(learned) - 1))
    elif not covered:
        sentence = _(
            "The text: {first:.3f} before, **{last:.3f}** after {steps} steps. The other text, of which the model was "
            "told nothing: {other_first:.3f} before, **{other_last:.3f}** after."
        )
        st.markdown(
            sentence.format(
                first=learned[0], last=learned[-1], steps=STEPS, other_first=unlearned[0], other_last=unlearned[-1]
            )
        )
    show_code(descend, key="one step code all", name=MODEL, ids=list(ids), rate=rate, steps=STEPS, other=list(other))


def ask_other(unlearned: list[float]) -> None:
    reason = _("Its loss was {first:.3f} and is {last:.3f}: the weights that change are those by which it is read.")
    told = reason.format(first=unlearned[0], last=unlearned[-1])
    choose(
        _("The curve is the text that is learned. What does the loss of the other text do in these steps?"),
        [_("it falls"), _("it grows")],
        int(unlearned[-1] > unlearned[0]),
        key=OTHER_TEXT,
        why=lambda _said: told,
    )


def draw_losses(learned: list[float], unlearned: list[float], shade: Shade) -> alt.Chart:
    ink = colors(shade)
    names = {_("the text"): learned, _("the other text"): unlearned}
    rows = [
        (step, loss, name) for name, losses in names.items() for step, loss in enumerate(losses) if math.isfinite(loss)
    ]
    inks = alt.Scale(domain=list(names), range=[ink["residual"], ink["key"]])
    return (
        alt.Chart(pd.DataFrame(rows, columns=["step", "loss", "of"]))
        .mark_line()
        .encode(
            alt.X("step:Q", title=_("step"), scale=alt.Scale(domain=[0, STEPS])),
            alt.Y("loss:Q", title=_("loss, nats")),
            alt.Color("of:N", title=None, scale=inks),
            tooltip=["of", "step", "loss"],
        )
        .properties(height=230)
    )

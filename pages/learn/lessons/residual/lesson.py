"""The residual stream: what an addition does to a gradient, and a deep stack with and without it."""

import json
from collections.abc import Mapping
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from engine.course.residual import StackTraining, branch_gradients, train_stack
from pages.controls.learn.fields import choose_view
from pages.controls.learn.predict import choose, is_found, show_code
from pages.controls.learn.words import numerals
from pages.controls.learn.words import translate as _
from views.charts.show import show_altair
from views.charts.template import colors
from views.core.theme import Shade

RECORDED = Path(__file__).resolve().parents[4] / "assets" / "learn" / "recorded" / "stack.json"
STEPS = 150  # of a training that is made while the reader waits: after 15 the stack without residuals is ahead
LEAST = 4  # blocks: fewer learn without residual connections as well

train = lru_cache(maxsize=16)(train_stack)


def experiment() -> bool:
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    layers = left.slider(_("blocks"), LEAST, 8, 5, key="residual-layers", persist_state="session")
    seed = int(right.number_input(_("seed"), 0, 99, 0, key="residual-seed", persist_state="session"))
    bare = train(layers, False, STEPS, seed)
    first = bare.gradients[-1]
    names = [_("block {number}").format(number=number + 1) for number in range(layers)]
    listed = numerals(first.tolist(), ".2g")
    reason = _("The gradient comes from the end and is multiplied by every block on its way: {values}.")
    question = _("{layers} blocks without residual connections, after {steps} steps: which gets the least gradient?")
    if not choose(
        question.format(layers=layers, steps=STEPS), names, int(first.argmin()), key="residual question",
        why=lambda _said: reason.format(values=listed),
    ):  # fmt: skip
        return False
    views = {"live": _("trained now"), "recorded": _("16 blocks, recorded"), "addition": _("an addition")}
    view = choose_view("residual-view", views)
    if view == "live":
        draw_training(with_and_without(train(layers, True, STEPS, seed), bare), STEPS - 1, "live")
        show_code(train_stack, key="residual code", layers=layers, residual=True, steps=STEPS, seed=seed)
    elif view == "recorded":
        draw_recorded()
    else:
        draw_addition()
    return is_found("residual question")


Runs = dict[str, dict[str, Any]]  # "with", "without" -> losses (step), gradients (step layer)


def with_and_without(one: StackTraining, other: StackTraining) -> Runs:
    return {
        name: {"losses": found.losses, "gradients": found.gradients.tolist()}
        for name, found in (("with", one), ("without", other))
    }


@cache
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


def draw_recorded() -> None:
    found = recorded()
    every = found["every"]
    last = found["steps"] - 1
    step = st.slider(_("step"), 0, last, last, every, key="residual-step", persist_state="session")
    draw_training(found, step // every, "recorded", every)


def draw_training(runs: Runs, at: int, key: str, every: int = 1) -> None:
    named = {"with": _("with residuals"), "without": _("without")}
    left, right = st.columns(2)
    with left:
        show_altair(partial(draw_gradients, runs, named, at), key=f"residual depth {key}")
    with right:
        show_altair(partial(draw_losses, runs, named, at, every), key=f"residual loss {key}")
    ends = {name: runs[name]["losses"][at] for name in named}
    sentence = _(
        "Loss at step {step}: {with_:.3g} with residual connections, {without:.3g} without. Gradient of the first "
        "block, divided by that of the last: {first:.2g} with, {first_without:.2g} without."
    )
    first, first_without = (runs[name]["gradients"][at][0] / runs[name]["gradients"][at][-1] for name in named)
    st.caption(
        sentence.format(
            step=at * every, with_=ends["with"], without=ends["without"], first=first, first_without=first_without
        )
    )  # fmt: skip


def draw_gradients(runs: Runs, named: Mapping[str, str], at: int, shade: Shade) -> alt.Chart:
    """The gradient of each block's weights at entry `at` of the runs, which are `named`."""
    values = [
        (title, layer + 1, value)
        for name, title in named.items()
        for layer, value in enumerate(runs[name]["gradients"][at])
    ]
    scale = alt.Scale(type="log", domain=[1e-10, 1e3])
    gradient = alt.Y("gradient:Q", title=_("gradient of its weights"), scale=scale, axis=alt.Axis(format=".0e"))
    return (
        alt.Chart(pd.DataFrame(values, columns=["run", "block", "gradient"]))
        .mark_line(point=True)
        .encode(alt.X("block:O", title=_("block")), gradient, run_color(named, shade))
        .properties(height=230)
    )


def draw_losses(runs: Runs, named: Mapping[str, str], at: int, every: int, shade: Shade) -> alt.Chart:
    """The losses up to entry `at`, of which there is one in `every` steps."""
    values = [
        (title, step * every, value)
        for name, title in named.items()
        for step, value in enumerate(runs[name]["losses"][: at + 1])
    ]
    last = every * (len(runs["with"]["losses"]) - 1)
    return (
        alt.Chart(pd.DataFrame(values, columns=["run", "step", "loss"]))
        .mark_line()
        .encode(
            alt.X("step:Q", title=_("step"), scale=alt.Scale(domain=[0, last])),
            alt.Y("loss:Q", title=_("loss, nats")),
            run_color(named, shade),
        )
        .properties(height=230)
    )


def run_color(named: Mapping[str, str], shade: Shade) -> alt.Color:
    inks = colors(shade)
    scale = alt.Scale(domain=list(named.values()), range=[inks["residual"], inks["key"]])
    return alt.Color("run:N", title=None, scale=scale)


def draw_addition() -> None:
    named = _("weight of the branch, f(x) = w x")
    weight = st.slider(named, -2.0, 2.0, 0.1, 0.1, key="residual-w", persist_state="session")
    skip, branch = branch_gradients(1.0, weight)
    sentence = _("y = x + f(x). Of a gradient of 1 at y, **{skip:g}** goes back past f and **{branch:g}** through it.")
    st.markdown(sentence.format(skip=skip, branch=branch))
    count = 16
    products = {"with_": (skip + branch) ** count, "without": branch**count}
    sentence = _("Through {count} blocks: (1 + w)^{count} = {with_:.3g}; without additions w^{count} = {without:.3g}.")
    st.markdown(sentence.format(count=count, **products))
    show_code(branch_gradients, key="residual code addition", x=1.0, weight=weight)

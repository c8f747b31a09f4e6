"""The residual stream: what an addition does to a gradient, and a deep stack with and without it."""

from collections.abc import Mapping
from functools import cache, lru_cache, partial
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st
import torch

from engine.course.residual import StackTraining, branch_gradients, train_stack
from engine.json_text import parse_json
from engine.places import ASSETS
from pages.controls.figures import cover, matrix
from pages.controls.learn.fields import choose_view, other_input
from pages.controls.learn.predict import choose, estimate, is_answered, is_found, show_code
from pages.controls.state.session import widget_value
from pages.controls.words import join_sentences, numerals
from pages.controls.words import translate as _
from views.charts.show import show_altair
from views.charts.template import colors
from views.core.theme import Shade

RECORDED = ASSETS / "learn" / "recorded" / "stack.json"
STEPS = 150  # of a training that is made while the reader waits: after 15 the stack without residuals is ahead
LEAST = 4  # blocks: fewer learn without residual connections as well
BLOCKS, OTHERS = 5, (6, 4)
ASKED = "most", "least"  # gradient: the latter at first
GRADIENTS = 1e-10, 1e3  # that are drawn
TOLERANCE = 0.01
QUESTION, END, PAST = (f"residual {part}question" for part in ("", "end ", "past "))

train = lru_cache(maxsize=16)(train_stack)


def experiment() -> bool:
    above = st.container()
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    layers = left.slider(_("blocks"), LEAST, 8, BLOCKS, key="residual-layers", persist_state="session")
    seed = int(right.number_input(_("seed"), 0, 99, 0, key="residual-seed", persist_state="session"))
    bare = train(layers, False, STEPS, seed)
    shown = ask(bare.gradients[-1])
    with above:
        covered = not (shown and is_answered(QUESTION))
        show_altair(partial(draw_bare, bare.gradients[-1].tolist(), covered), key="residual bare")
    if not shown:
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
    return is_found(QUESTION)


def draw_bare(gradients: list[float], covered: bool, shade: Shade) -> alt.LayerChart | alt.FacetChart:
    """The gradient of each block without residual connections, a question mark where it is covered."""
    table = pd.DataFrame({"block": range(1, len(gradients) + 1), "gradient": gradients})
    ink = colors(shade)
    across = alt.X("block:O", title=_("block"))
    middle = (GRADIENTS[0] * GRADIENTS[1]) ** 0.5
    base = alt.Chart(table.assign(gradient=middle) if covered else table).encode(across, gradient_axis())
    line = base.mark_line(point={"color": ink["key"]}, color=ink["key"])
    asked = base.mark_text(text="?", fontSize=20, color=ink["soft"])
    return alt.layer(asked if covered else line).properties(height=200)


def gradient_axis() -> alt.Y:
    scale = alt.Scale(type="log", domain=list(GRADIENTS))
    return alt.Y("gradient:Q", title=_("gradient of its weights"), scale=scale, axis=alt.Axis(format=".0e"))


def ask(gradients: torch.Tensor) -> bool:
    layers, least = len(gradients), widget_value("residual-asked") != "most"
    answer = int(gradients.argmin() if least else gradients.argmax())
    reason = _("The gradient comes from the end and is multiplied by every block on its way: {values}.").format(
        values=numerals(gradients.tolist(), ".2g")
    )

    def why(said: int) -> str:
        if said != answer and said in (0, layers - 1):
            return join_sentences(_("It is the other way round: the loss stands behind the last block."), reason)
        return reason

    of_least = _("{layers} blocks without residual connections, after {steps} steps: which gets the least gradient?")
    of_most = _("{layers} blocks without residual connections, after {steps} steps: which gets the most gradient?")
    return choose(
        (of_least if least else of_most).format(layers=layers, steps=STEPS),
        [_("block {number}").format(number=at + 1) for at in range(layers)],
        answer,
        key=QUESTION,
        why=why,
        again=turn,
    )


def turn() -> None:
    """Sets another depth, and asks for the other end."""
    other_input("residual-layers", (BLOCKS, *OTHERS))()
    other_input("residual-asked", ASKED)()


Runs = dict[str, dict[str, Any]]  # "with", "without" -> losses (step), gradients (step layer)


def with_and_without(one: StackTraining, other: StackTraining) -> Runs:
    return {
        name: {"losses": found.losses, "gradients": found.gradients.tolist()}
        for name, found in (("with", one), ("without", other))
    }


@cache
def read_recording() -> dict[str, Any]:
    found: dict[str, Any] = parse_json(RECORDED.read_text(encoding="utf-8"))
    return found


def draw_recorded() -> None:
    found = read_recording()
    every = found["every"]
    last = found["steps"] - 1
    above, names = st.container(), run_names()
    ends = {name: found[name]["losses"][-1] for name in names}
    reason = _("It ends at {with_:.3g} with residual connections and at {without:.3g} without.")
    choose(
        _("This is where the two begin. Which ends with the lower loss?"),
        list(names.values()),
        list(names).index(min(ends, key=ends.__getitem__)),
        key=END,
        why=lambda _said: reason.format(with_=ends["with"], without=ends["without"]),
    )
    step = 0
    if is_answered(END):
        step = st.slider(_("step"), 0, last, last, every, key="residual-step", persist_state="session")
    with above:
        draw_training(found, step // every, "recorded", every)


def run_names() -> dict[str, str]:
    return {"with": _("with residuals"), "without": _("without")}


def draw_training(runs: Runs, at: int, key: str, every: int = 1) -> None:
    named = run_names()
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
    )


def draw_gradients(runs: Runs, named: Mapping[str, str], at: int, shade: Shade) -> alt.Chart:
    """The gradient of each block's weights at entry `at` of the runs, which are `named`."""
    values = [
        (title, layer + 1, value)
        for name, title in named.items()
        for layer, value in enumerate(runs[name]["gradients"][at])
    ]
    return (
        alt.Chart(pd.DataFrame(values, columns=["run", "block", "gradient"]))
        .mark_line(point=True)
        .encode(alt.X("block:O", title=_("block")), gradient_axis(), run_color(named, shade))
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
    gradients, above = torch.tensor([[skip], [branch]]), st.container()
    ask_past(skip, branch)
    covered = not is_answered(PAST)
    with above:
        matrix(
            cover(gradients, (0, 0)) if covered else gradients, rows=[_("past f"), _("through f")],
            scale="signed", role="residual", digits=2, key=f"{PAST} picture", label=_("gradient by either branch"),
        )  # fmt: skip
    show_code(branch_gradients, key="residual code addition", x=1.0, weight=weight)
    if covered:
        return
    sentence = _("y = x + f(x). Of a gradient of 1 at y, **{skip:g}** goes back past f and **{branch:g}** through it.")
    st.markdown(sentence.format(skip=skip, branch=branch))
    count = 16
    products = {"with_": (skip + branch) ** count, "without": branch**count}
    sentence = _("Through {count} blocks: (1 + w)^{count} = {with_:.3g}; without additions w^{count} = {without:.3g}.")
    st.markdown(sentence.format(count=count, **products))


def ask_past(skip: float, branch: float) -> None:
    reason = _("An addition hands the same gradient to both of its branches; only f then changes its own.")
    mistakes = [
        (branch, _("That is what goes through f.")),
        (skip + branch, _("That is what both branches bring together.")),
        (skip - branch, _("The gradient is not shared out.")),
    ]

    def why(said: float) -> str:
        if abs(said - skip) <= TOLERANCE:
            return reason
        named = next((name for value, name in mistakes if abs(said - value) <= TOLERANCE), "")
        return f"{named} {reason}".strip()

    question = _("The gradient at y = x + f(x) is 1. How much of it goes back past f?")
    estimate(question, skip, TOLERANCE, key=PAST, why=why)

"""Why scores are divided by the square root of d: their variance, the softmax, its gradient, and two trainings."""

import json
from functools import cache
from pathlib import Path

import altair as alt
import pandas as pd
import streamlit as st

from engine.course.scaling import attend, random_scores, score_variance, softmax_gradient
from pages.controls.figures import bars
from pages.controls.learn.fields import choose_view
from pages.controls.learn.predict import estimate, is_found, show_code
from pages.controls.learn.words import translate as _
from views.charts.show import show_altair
from views.charts.template import colors
from views.core.theme import Shade

SIZES = [2**power for power in range(11)]
KEYS, TYPICAL = 8, 64
RECORDED = Path(__file__).resolve().parents[4] / "assets" / "learn" / "recorded"
RUNS = ("scaled", "unscaled")


def experiment() -> bool:
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    d = left.select_slider(
        _("d, numbers in a query and in a key"), SIZES, TYPICAL, key="scaling-d", persist_state="session"
    )  # fmt: skip
    seed = right.number_input(_("seed"), 0, 999, 0, key="scaling-seed", persist_state="session")
    variance = score_variance(d, seed=int(seed))
    question = _("The numbers in q and k have variance 1. What is the variance of q·k at d = {d}?").format(d=d)
    reason = _("q·k adds up {d} products of variance 1 each, so the variance is about {d}.").format(d=d)
    if not estimate(question, variance.plain, max(1.0, 0.1 * d), key="scaling question", why=lambda _said: reason):
        return False
    views = {"variance": _("variance"), "softmax": _("softmax"), "training": _("two trainings")}
    view = choose_view("scaling-view", views)
    if view == "variance":
        show_altair(lambda shade: draw_variance(d, int(seed), shade), key="scaling variance")
        sentence = _("At d = {d}: {plain:.4g} as it is, {divided:.3f} after the division.")
        st.caption(sentence.format(d=d, plain=variance.plain, divided=variance.divided))
        show_code(score_variance, key="scaling code variance", d=d, seed=int(seed))
    elif view == "softmax":
        draw_softmax(d, int(seed))
    else:
        draw_trainings()
    return is_found("scaling question")


def draw_variance(d: int, seed: int, shade: Shade) -> alt.LayerChart:
    found = {size: score_variance(size, seed=seed) for size in SIZES}
    plain, divided = _("q·k"), _("q·k / √d")
    table = pd.DataFrame(
        [(size, name, value) for size, (one, two) in found.items() for name, value in ((plain, one), (divided, two))],
        columns=["d", "score", "variance"],
    )
    ink = colors(shade)
    log = alt.Scale(type="log", base=2)
    base = alt.Chart(table).encode(
        alt.X("d:Q", scale=log, title="d"),
        alt.Y("variance:Q", scale=log, title=_("variance")),
        alt.Color("score:N", title=None, sort=[plain, divided], scale=alt.Scale(range=[ink["key"], ink["attention"]])),
    )
    here = alt.Chart(pd.DataFrame({"d": [d]})).mark_rule(strokeDash=[3, 3], color=ink["soft"]).encode(alt.X("d:Q"))
    return (base.mark_line(point=True) + here).properties(height=260)


def draw_softmax(d: int, seed: int) -> None:
    scores = random_scores(d, KEYS, seed)
    names = [_("key {number}").format(number=number + 1) for number in range(KEYS)]
    for place, name, divisor in zip(st.columns(2), ("plain", "divided"), (1.0, d**0.5), strict=True):
        weights = attend(scores, divisor)
        gradient = softmax_gradient(weights)
        with place:
            plain, divided = _("softmax(q·k)"), _("softmax(q·k / √d)")
            st.markdown(f"**{plain if name == 'plain' else divided}**")
            bars(weights, names, key=f"scaling bars {name}")
            sentence = _("largest weight {weight:.4f} · largest gradient {gradient:.2g}")
            st.caption(sentence.format(weight=float(weights.max()), gradient=float(gradient.abs().max())))
    sentence = _(
        "One query and {keys} keys. A gradient near 0 is a head that cannot learn. Each is by the score that its "
        "softmax reads; by q·k itself the one on the right is {own:.2g}."
    )
    own = float(softmax_gradient(attend(scores, d**0.5)).abs().max()) / d**0.5
    st.caption(sentence.format(keys=KEYS, own=own))
    show_code(softmax_gradient, key="scaling code softmax", weights=attend(scores, 1.0))


@cache
def recorded(name: str) -> pd.DataFrame:
    """Held-out loss of a recorded training by step."""
    lines = (RECORDED / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return pd.DataFrame([(row["step"], row["held_out_loss"]) for row in rows], columns=["step", "loss"])


def draw_trainings() -> None:
    last = int(recorded(RUNS[0])["step"].max())
    until = st.slider(_("step"), 0, last, last, 50, key="scaling-step", persist_state="session")
    show_altair(lambda shade: draw_losses(until, last, shade), key="scaling losses")
    ends = {name: table[table["step"] <= until]["loss"].iloc[-1] for name in RUNS for table in [recorded(name)]}
    sentence = _("Loss at step {step}: {scaled:.3g} with the division, {unscaled:.3g} without.")
    st.caption(sentence.format(step=until, **ends))
    about = _("Letters written backwards by one head of d = 128 with one seed; recipes and numbers are in {folder}.")
    st.caption(about.format(folder="assets/learn/recorded"))


def draw_losses(until: int, last: int, shade: Shade) -> alt.Chart:
    names = {"scaled": _("divided by √d"), "unscaled": _("not divided")}
    table = pd.concat(recorded(name).assign(run=names[name]) for name in RUNS)
    ink = colors(shade)
    inks = alt.Scale(range=[ink["attention"], ink["key"]])
    return (
        alt.Chart(table[table["step"] <= until])
        .mark_line(point=True)
        .encode(
            alt.X("step:Q", title=_("step"), scale=alt.Scale(domain=[0, last])),
            alt.Y("loss:Q", title=_("held-out loss"), scale=alt.Scale(domain=[0, float(table["loss"].max())])),
            alt.Color("run:N", title=None, sort=list(names.values()), scale=inks),
        )
        .properties(height=230)
    )

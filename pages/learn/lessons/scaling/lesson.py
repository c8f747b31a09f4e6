"""Why scores are divided by the square root of d: their variance, the softmax, its gradient, and two trainings."""

from functools import cache, lru_cache

import altair as alt
import pandas as pd
import streamlit as st
import torch

from engine.course.scaling import Variance, attend, random_scores, score_variance, softmax_gradient
from engine.json_text import parse_json
from engine.places import ASSETS
from pages.controls.figures import cover, matrix
from pages.controls.learn.fields import choose_view, other_input
from pages.controls.learn.predict import choose, estimate, is_answered, is_found, point, show_code
from pages.controls.words import translate as _
from views.charts.show import show_altair
from views.charts.template import colors
from views.core.markdown import Markdown
from views.core.theme import Shade

SIZES = [2**power for power in range(11)]
KEYS, TYPICAL = 8, 64
OTHERS = 16, 256
RECORDED = ASSETS / "learn" / "recorded"
RUNS = ("scaled", "unscaled")
QUESTION, MOST, END = (f"scaling {part}question" for part in ("", "most ", "end "))

variance_of = lru_cache(maxsize=64)(score_variance)


def experiment() -> bool:
    above = st.container()
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    d = left.select_slider(
        _("d, numbers in a query and in a key"), SIZES, TYPICAL, key="scaling-d", persist_state="session"
    )
    seed = int(right.number_input(_("seed"), 0, 999, 0, key="scaling-seed", persist_state="session"))
    variance = score_variance(d, seed=seed)
    shown = ask(d, variance)
    covered = not (shown and is_answered(QUESTION))
    with above:
        show_altair(lambda shade: draw_variance(d, seed, covered, shade), key="scaling variance")
    if not shown:
        return False
    views = {"variance": _("variance"), "softmax": _("softmax"), "training": _("two trainings")}
    view = choose_view("scaling-view", views)
    if view == "variance":
        sentence = _("At d = {d}: {plain:.4g} as it is, {divided:.3f} after the division.")
        st.caption(sentence.format(d=d, plain=variance.plain, divided=variance.divided))
        show_code(score_variance, key="scaling code variance", d=d, seed=seed)
    elif view == "softmax":
        draw_softmax(d, seed)
    else:
        draw_trainings()
    return is_found(QUESTION)


def ask(d: int, variance: Variance) -> bool:
    tolerance = max(1.0, 0.1 * d)
    reason = _("q·k adds up {d} products of variance 1 each, so the variance is about {d}.").format(d=d)
    mistakes = [
        (1.0, _("That is the variance of one product.")),
        (d**0.5, _("That is √d, the standard deviation; the variance is its square.")),
        (d**2, _("Variances of independent numbers are added, not multiplied.")),
    ]

    def why(said: float) -> str:
        if abs(said - variance.plain) <= tolerance:
            return reason
        named = next((name for value, name in mistakes if abs(said - value) <= 0.1 * value), "")
        return f"{named} {reason}".strip()

    question = _("The numbers in q and k have variance 1. What is the variance of q·k at d = {d}?").format(d=d)
    again = other_input("scaling-d", (TYPICAL, *OTHERS))
    return estimate(question, variance.plain, tolerance, key=QUESTION, why=why, again=again)


def draw_variance(d: int, seed: int, covered: bool, shade: Shade) -> alt.LayerChart | alt.FacetChart:
    """Variances by d; while the one at `d` is asked for, those of smaller d alone."""
    found = {size: variance_of(size, seed=seed) for size in SIZES}
    plain, divided = _("q·k"), _("q·k / √d")
    rows = [(size, plain, one.plain) for size, one in found.items() if not covered or size < d]
    rows += [(size, divided, one.divided) for size, one in found.items() if not covered]
    table = pd.DataFrame(rows, columns=["d", "score", "variance"])
    ink = colors(shade)
    across = alt.X("d:Q", scale=alt.Scale(type="log", base=2, domain=[SIZES[0], SIZES[-1]]), title="d")
    most = max(one.plain for one in found.values())
    least = min(one.divided for one in found.values())
    inks = alt.Scale(domain=[plain, divided], range=[ink["key"], ink["attention"]])
    up = alt.Y("variance:Q", scale=alt.Scale(type="log", base=2, domain=[least, most]), title=_("variance"))
    base = alt.Chart(table).encode(across, up, alt.Color("score:N", title=None, scale=inks))
    here = alt.Chart(pd.DataFrame({"d": [d]})).mark_rule(strokeDash=[3, 3], color=ink["soft"]).encode(across)
    layers = [base.mark_line(point=True), here]
    if covered:
        asked = alt.Chart(pd.DataFrame({"d": [d], "variance": [(least * most) ** 0.5]}))
        mark = asked.mark_text(text="?", fontSize=20, dx=12, color=ink["soft"])
        layers.append(mark.encode(across, up))
    return alt.layer(*layers).properties(height=260)


def draw_softmax(d: int, seed: int) -> None:
    scores = random_scores(d, KEYS, seed)
    divided = attend(scores, d**0.5)
    weights, above = torch.stack([attend(scores, 1.0), divided]), st.container()
    names, rows = [str(at + 1) for at in range(KEYS)], [_("softmax(q·k)"), _("softmax(q·k / √d)")]
    reason = _("Dividing all scores by √d keeps their order; only their distances shrink.")
    point(
        _("The weights after the division are covered. Click the key that then has the most."),
        weights.shape,
        [(1, int(divided.argmax()))],
        key=MOST,
        name=lambda at: _("key {number}").format(number=at[1] + 1),
        why=lambda _said: reason,
    )
    answered = is_answered(MOST)
    with above:
        st.caption(_("One query and {keys} keys.").format(keys=KEYS))
        matrix(
            weights if answered else cover(weights, 1),
            rows=rows,
            columns=names,
            digits=2,
            key=f"{MOST} picture",
            label=_("weights"),
        )
    steepest = gradients_by_products(d, seed)
    for row, name, gradient in zip(weights, rows if answered else rows[:1], steepest, strict=False):
        sentence = _("{softmax}: largest weight {weight:.4f} · largest gradient by q·k {gradient:.2g}")
        st.caption(sentence.format(softmax=name, weight=float(row.max()), gradient=gradient))
    if answered:
        st.caption(compare_gradients(*steepest))
    show_code(softmax_gradient, key="scaling code softmax", weights=attend(scores, 1.0))


def gradients_by_products(d: int, seed: int) -> tuple[float, float]:
    """Largest derivative of a weight by a product q·k: of the softmax without the division, and with it."""
    scores, root = random_scores(d, KEYS, seed), d**0.5
    plain, divided = (float(softmax_gradient(attend(scores, by)).abs().max()) for by in (1.0, root))
    return plain, divided / root


def compare_gradients(plain: float, divided: float) -> Markdown:
    sentence = _(
        "A gradient near 0 is a head that cannot learn. Here it is not smaller without the division: for that, a "
        "weight must come near 1. It does more often as d grows; try a larger one or another seed."
    )
    if plain < divided:
        sentence = _("A gradient near 0 is a head that cannot learn: here it is smaller without the division.")
    return Markdown(sentence)


@cache
def read_recording(name: str) -> pd.DataFrame:
    """Held-out loss of a recorded training by step."""
    lines = (RECORDED / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [parse_json(line) for line in lines]
    return pd.DataFrame([(row["step"], row["held_out_loss"]) for row in rows], columns=["step", "loss"])


def draw_trainings() -> None:
    last, above = int(read_recording(RUNS[0])["step"].max()), st.container()
    ends = losses_at(last)
    better = min(RUNS, key=ends.__getitem__)
    reason = _("It ends at {scaled:.3g} with the division and at {unscaled:.3g} without.")
    choose(
        _("This is how the two begin. Which ends with the lower loss?"),
        list(run_names().values()),
        RUNS.index(better),
        key=END,
        why=lambda _said: reason.format(**ends),
    )
    until = 0
    if is_answered(END):
        until = st.slider(_("step"), 0, last, last, 50, key="scaling-step", persist_state="session")
    with above:
        show_altair(lambda shade: draw_losses(until, last, shade), key="scaling losses")
    sentence = _("Loss at step {step}: {scaled:.3g} with the division, {unscaled:.3g} without.")
    st.caption(sentence.format(step=until, **losses_at(until)))
    about = _("Letters written backwards by one head of d = 128 with one seed; recipes and numbers are in {folder}.")
    st.caption(about.format(folder="assets/learn/recorded"))


def run_names() -> dict[str, str]:
    return {"scaled": _("divided by √d"), "unscaled": _("not divided")}


def losses_at(step: int) -> dict[str, float]:
    return {name: table[table["step"] <= step]["loss"].iloc[-1] for name in RUNS for table in [read_recording(name)]}


def draw_losses(until: int, last: int, shade: Shade) -> alt.Chart:
    names = run_names()
    table = pd.concat(read_recording(name).assign(run=names[name]) for name in RUNS)
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

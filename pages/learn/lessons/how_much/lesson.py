"""How much of it: sizes trained on the same tokens, a line through their losses, and where it ends."""

import math
from collections.abc import Sequence
from functools import lru_cache, partial

import altair as alt
import pandas as pd
import streamlit as st

from engine.course.how_much import (
    BY_TOKENS,
    BY_WEIGHTS,
    PUBLISHED,
    TEXTS,
    TOKENS_A_WEIGHT,
    PowerLaw,
    SizeTraining,
    best_size,
    fit_power_law,
    fitted_loss,
    operations,
    train_size,
)
from pages.controls.learn.fields import choose_view, other_input, read_field
from pages.controls.learn.predict import choose, estimate, is_answered, is_found, show_code
from pages.controls.words import join_sentences, numeral
from pages.controls.words import translate as _
from views.charts.show import show_altair
from views.charts.template import colors
from views.core.theme import Shade

WIDTHS, SIXTH, OTHERS = (3, 4, 6, 8, 12), 32, (24, 48)
STEPS, MORE = 150, 4  # MORE times as many tokens
ALIKE = 0.02  # as a share, of losses that are about the same
CURVE = 60  # points
BILLION, LEAST, MOST = 1e9, 1e-6, 1e6  # billions of weights or tokens that are typed
QUESTION, HALF, GPT3 = (f"how much {part}question" for part in ("", "half ", "gpt3 "))

train = lru_cache(maxsize=64)(train_size)


def experiment() -> bool:
    above = st.container()
    left, middle, right = st.columns([2, 2, 1], vertical_alignment="bottom")
    text = left.selectbox(_("text"), list(TEXTS), key="how-much-text", persist_state="session")
    width = middle.select_slider(
        _("d_model of the sixth"), (OTHERS[0], SIXTH, OTHERS[1]), SIXTH, key="how-much-width", persist_state="session"
    )
    seed = int(right.number_input(_("seed"), 0, 99, 0, key="how-much-seed", persist_state="session"))
    with above, st.spinner(_("Six sizes are trained.")):
        found, sixth = [train(text, one, STEPS, seed) for one in WIDTHS], train(text, width, STEPS, seed)
    law = fit_power_law([one.weights for one in found], [one.loss for one in found])
    shown = ask(found, sixth, law)
    covered = not (shown and is_answered(QUESTION))
    with above:
        show_altair(partial(draw_sizes, found, sixth, law, "log", covered), key="how much sizes")
    if not shown:
        return False
    views = {"tokens": _("tokens seen"), "axes": _("other axes"), "published": _("published sizes")}
    view = choose_view("how-much-view", views)
    if view == "tokens":
        draw_tokens(text, found[-1], sixth, law, seed)
    elif view == "axes":
        draw_axes(found, sixth, law, covered)
    else:
        draw_published()
    return is_found(QUESTION)


# --- a sixth size ---


def ask(found: Sequence[SizeTraining], sixth: SizeTraining, law: PowerLaw) -> bool:
    fifth, line = found[-1], law.loss(sixth.weights)
    guesses = {
        _("half of the fifth’s"): fifth.loss / 2,
        _("on the line"): line,
        _("as the fifth’s"): fifth.loss,
    }
    same = next((name for name, loss in guesses.items() if abs(loss / sixth.loss - 1) < ALIKE), None)
    if sixth.loss < line:
        named = _("below the line")
    else:
        named = _("between the line and the fifth’s") if sixth.loss < fifth.loss else _("above the fifth’s")
    guesses[same or named] = sixth.loss
    ordered = sorted(guesses, key=guesses.__getitem__)
    reason = _(
        "It comes to {loss:.3f}, and the line of the five to {line:.3f}: it was fitted where there were {many:.0f} "
        "tokens or more for each weight, and the sixth has {few:.1f}."
    ).format(loss=sixth.loss, line=line, many=fifth.tokens / fifth.weights, few=sixth.tokens / sixth.weights)

    def why(said: int) -> str:
        if guesses[ordered[said]] == fifth.loss / 2:
            sentence = _(
                "So many weights are not half the loss: on the line, twice as many take it to {share:.0%} of itself."
            )
            return join_sentences(sentence.format(share=law.loss(2) / law.loss(1)), reason)
        if guesses[ordered[said]] == line != sixth.loss:
            return join_sentences(_("A law that was fitted here holds here."), reason)
        return reason

    question = _(
        "Five sizes read the same {tokens} tokens. A sixth has {weights} weights, {ratio:.1f} times the fifth’s, and "
        "reads them too. Which loss does it come to?"
    ).format(
        tokens=numeral(sixth.tokens, ","), weights=numeral(sixth.weights, ","), ratio=sixth.weights / fifth.weights
    )
    return choose(
        question, [f"{numeral(guesses[one], '.3f')}, {one}" for one in ordered], ordered.index(same or named),
        key=QUESTION, why=why, again=other_input("how-much-width", (SIXTH, *OTHERS)),
    )  # fmt: skip


def draw_sizes(
    found: Sequence[SizeTraining],
    sixth: SizeTraining,
    law: PowerLaw,
    scale: str,
    covered: bool,
    shade: Shade,
) -> alt.LayerChart | alt.FacetChart:
    """Losses of the sizes with the power law through the five; the sixth is a question mark while it is covered."""
    ink, first, last = colors(shade), found[0].weights, sixth.weights
    along = [first * (last / first) ** (at / CURVE) for at in range(CURVE + 1)]
    losses = [law.loss(n) for n in along]
    low, high = min([*losses, sixth.loss]) * 0.97, max([*losses, *(one.loss for one in found)]) * 1.03
    x = alt.X("weights:Q", title=_("weights"), scale=alt.Scale(type=scale, nice=False))  # type: ignore[arg-type]
    y = alt.Y("loss:Q", title=_("loss, nats"), axis=alt.Axis(format=".2f", tickCount=5),
              scale=alt.Scale(type=scale, domain=[low, high], nice=False))  # type: ignore[arg-type]  # fmt: skip
    line = alt.Chart(pd.DataFrame({"weights": along, "loss": losses}))
    spots = alt.Chart(pd.DataFrame([(one.weights, one.loss) for one in found], columns=["weights", "loss"]))
    asked = pd.DataFrame({"weights": [last], "loss": [(low * high) ** 0.5 if covered else sixth.loss]})
    mark = alt.Chart(asked)
    mark = mark.mark_text(text="?", fontSize=20, dx=-8) if covered else mark.mark_point(size=130, filled=True)
    return alt.layer(
        line.mark_line(color=ink["soft"], strokeDash=[5, 4]).encode(x, y),
        spots.mark_point(size=90, filled=True, color=ink["residual"]).encode(x, y, tooltip=["weights", "loss"]),
        mark.encode(x, y, color=alt.value(ink["key"]), tooltip=alt.value(None) if covered else ["weights", "loss"]),
    ).properties(height=210)


# --- tokens seen ---


def draw_tokens(text: str, fifth: SizeTraining, sixth: SizeTraining, law: PowerLaw, seed: int) -> None:
    with st.spinner(_("The sixth reads {times} times as many tokens.").format(times=MORE)):
        longer = train(text, sixth.width, MORE * STEPS, seed)
    names = {
        _("the fifth"): fifth,
        _("the sixth"): sixth,
        _("the sixth, {times} times the tokens").format(times=MORE): longer,
    }
    rows = [
        (tokens, loss, name) for name, one in names.items() for tokens, loss in zip(one.seen, one.losses, strict=True)
    ]
    table = pd.DataFrame(rows, columns=["tokens", "loss", "of"])
    show_altair(partial(draw_curves, table, list(names)), key="how much tokens")
    sentence = _(
        "Held-out text, with {times} times the tokens: **{after:.3f}** instead of {before:.3f}; the line says "
        "{line:.3f} for {weights} weights. More weights pay where there are tokens to learn them from."
    )
    st.markdown(
        sentence.format(
            times=MORE, after=longer.loss, before=sixth.loss, line=law.loss(sixth.weights),
            weights=numeral(sixth.weights, ","),
        )
    )  # fmt: skip
    sentence = _(
        "C = 6 N D: the fifth took {fifth} million operations, the sixth {sixth} and, with the longer text, {longer}."
    )
    million = {
        name: numeral(operations(one.weights, one.tokens) / 1e6, ",.0f")
        for name, one in (("fifth", fifth), ("sixth", sixth), ("longer", longer))
    }
    st.caption(sentence.format(**million))
    show_code(train_size, key="how much code", name=text, width=sixth.width, steps=MORE * STEPS, seed=seed)


def draw_curves(table: pd.DataFrame, names: Sequence[str], shade: Shade) -> alt.Chart:
    ink = colors(shade)
    inks = alt.Scale(domain=list(names), range=[ink["residual"], ink["key"], ink["attention"]])
    return (
        alt.Chart(table)
        .mark_line(point=True)
        .encode(
            alt.X("tokens:Q", title=_("tokens seen"), scale=alt.Scale(type="log", nice=False)),
            alt.Y("loss:Q", title=_("loss of what is learned, nats"), scale=alt.Scale(type="log", nice=False)),
            alt.Color("of:N", title=None, scale=inks, legend=alt.Legend(orient="top", labelLimit=0)),
        )
        .properties(height=240)
    )


# --- axes ---


def draw_axes(found: Sequence[SizeTraining], sixth: SizeTraining, law: PowerLaw, covered: bool) -> None:
    scale = st.segmented_control(
        _("axes"), ("log", "linear"), default="linear", key="how-much-axes", required=True, persist_state="session",
        format_func={"log": _("both logarithmic"), "linear": _("as they are")}.__getitem__,
    )  # fmt: skip
    show_altair(partial(draw_sizes, found, sixth, law, str(scale), covered), key="how much axes")
    if ask_half(law):
        sentence = _("L = {scale:.3g} / N^{exponent:.3f}, so ln L = {start:.3g} − {exponent:.3f} · ln N, a line.")
        st.caption(sentence.format(scale=law.scale, exponent=law.exponent, start=math.log(law.scale)))
    show_code(
        fit_power_law, key="how much code fit", sizes=[one.weights for one in found],
        losses=[round(one.loss, 4) for one in found],
    )  # fmt: skip


def ask_half(law: PowerLaw) -> bool:
    """Asks how many times the weights the law wants for half the loss."""
    times = law.times(0.5)
    options = sorted({2.0, 4.0, 16.0, times})
    reason = _("(1/2)^(-1/α) with α = {exponent:.3f} is {times}: each doubling takes off {share:.1%}.").format(
        exponent=law.exponent, times=numeral(times, ",.3g"), share=1 - law.loss(2) / law.loss(1)
    )

    def why(said: int) -> str:
        if options[said] == 2 != times:
            return join_sentences(_("That would be so with α = 1."), reason)
        return reason

    question = _(
        "The line falls with the power α = {exponent:.3f} of N. If it went on, how many times the weights would half "
        "the loss take?"
    )
    choose(
        question.format(exponent=law.exponent), [f"{numeral(one, ',.0f')}×" for one in options],
        options.index(times), key=HALF, why=why,
    )  # fmt: skip
    return is_answered(HALF)


# --- published ---


def read_billions(said: str) -> float:
    """Raises ValueError, with a sentence."""
    try:
        found = float(said.strip().replace(",", ""))
    except ValueError:
        found = 0.0
    if not LEAST <= found <= MOST:
        raise ValueError(_("Expected a number of billions from 0.000001 to 1,000,000, such as 7; change it."))
    return found


def draw_published() -> None:
    left, right = st.columns(2)
    with left:
        weights = read_field("how-much-weights", _("weights, billions"), "1", read_billions)
    with right:
        tokens = read_field("how-much-tokens", _("tokens, billions"), "10", read_billions)
    shown = ask_gpt3()
    sizes = {_("yours"): (weights * BILLION, tokens * BILLION), **PUBLISHED}
    rows = []
    for name, (n, d) in sizes.items():
        if name == "GPT-3" and not shown:
            continue
        best_n, best_d = best_size(operations(n, d))
        rows.append(
            (
                name,
                numeral(n / BILLION, ",.4g"),
                numeral(d / BILLION, ",.4g"),
                numeral(d / n, ",.3g"),
                numeral(operations(n, d), ".2e"),
                numeral(best_n / BILLION, ",.3g"),
                numeral(best_d / BILLION, ",.3g"),
                numeral(fitted_loss(n, d), ".3f"),
                numeral(fitted_loss(best_n, best_d), ".3f"),
            )
        )
    columns = [
        _("model"), _("N, 10⁹"), _("D, 10⁹"), "D / N", "C = 6 N D", _("best N"), _("best D"), _("loss"),
        _("loss at best"),
    ]  # fmt: skip
    st.dataframe(pd.DataFrame(rows, columns=columns), hide_index=True, width="stretch")
    st.caption(
        _(
            "Best: the same C at {best} tokens a weight (Hoffmann et al. 2022). Losses are by their fit, not measured, "
            "and of their text and tokens: not to be compared with those above."
        ).format(best=TOKENS_A_WEIGHT)
    )
    sentence = _(
        "Kaplan et al. 2020: twice the weights, with tokens enough, take the loss to {weights:.1%} of itself; twice "
        "the tokens, with weights enough, to {tokens:.1%}."
    )
    st.caption(
        sentence.format(weights=BY_WEIGHTS.loss(2) / BY_WEIGHTS.loss(1), tokens=BY_TOKENS.loss(2) / BY_TOKENS.loss(1))
    )
    show_code(
        fitted_loss, key="how much code published", weights=round(weights * BILLION), tokens=round(tokens * BILLION)
    )


def ask_gpt3() -> bool:
    """Asks how many tokens GPT-3 read for each weight, and tells whether that may be shown."""
    n, d = PUBLISHED["GPT-3"]
    reason = _(
        "{tokens:.0f} / {weights:.0f} = {share:.2f}; at {best} tokens a weight it would have read "
        "{wanted:,.0f} billion."
    ).format(
        tokens=d / BILLION, weights=n / BILLION, share=d / n, best=TOKENS_A_WEIGHT, wanted=TOKENS_A_WEIGHT * n / BILLION
    )

    def why(said: float) -> str:
        if abs(said - n / d) < 0.05:
            return join_sentences(_("Those are weights for each token."), reason)
        if abs(said - TOKENS_A_WEIGHT) < 1:
            return join_sentences(_("That is what the fit of 2022 would have wanted."), reason)
        return reason

    question = _(
        "GPT-3 has {weights:.0f} billion weights and read {tokens:.0f} billion tokens. How many tokens is "
        "that for each weight?"
    )
    estimate(question.format(weights=n / BILLION, tokens=d / BILLION), d / n, 0.1, key=GPT3, why=why)
    return is_answered(GPT3)

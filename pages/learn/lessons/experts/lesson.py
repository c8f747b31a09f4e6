"""The experts: one token's choice, routers trained with and without a loss of their load, and what a token uses."""

from functools import lru_cache, partial

import altair as alt
import pandas as pd
import streamlit as st
import torch
from torch import Tensor

from engine.course.experts import (
    EXPERTS,
    READ,
    RouterTraining,
    TokenChoice,
    choose_experts,
    count_in_use,
    count_sizes,
    mix_experts,
    train_router,
)
from engine.tokenizers import draw_piece
from pages.controls.figures import cover, matrix, picked_place, tokens
from pages.controls.learn.fields import choose_view, other_input, read_field, read_words
from pages.controls.learn.predict import choose, estimate, is_answered, is_found, show_code
from pages.controls.words import join_sentences, numeral
from pages.controls.words import translate as _
from views.charts.show import show_altair
from views.charts.template import head_colors
from views.core.markdown import escape_markdown
from views.core.theme import Shade

TEXT = (
    "the cat sat on the mat and the dog ran to the old red house; 3 + 4 = 7, 2 + 5 = 7, 1 + 6 = 7; "
    "le chat est sur le lit et le chien court dans la rue."
)
OTHERS = (
    "My mother is in the kitchen. My father is in the garden. 12 + 30 = 42. 20 + 31 = 51. "
    "Ma mère est dans la cuisine. Mon père est dans le jardin.",
    "for i in range(10): print(i); for j in range(20): print(j). The list has ten numbers. "
    "The other list has twenty numbers.",
)
LEAST, MOST = 60, 300  # characters
CHOSEN, SHOWN, ROWS = 2, 6, 16  # experts of the token that is asked about; numbers and characters that are drawn
TOLERANCE, WEIGHT = 0.03, 0.1  # of a number that is computed by hand; how much the load counts in the loss
FIRST = 100  # steps of the training that the first picture waits for
BEGINNING = 20  # steps of a training that are seen before its question is answered
LOW, HIGH = 0.35, 0.6  # shares of the busiest expert that are told apart
D_MODEL, D_MLP, COUNTS = 1024, 4096, (2, 4, 8, 16, 32, 64)
QUESTION, BUSIEST, USED = (f"experts {part}question" for part in ("", "busiest ", "used "))

train = lru_cache(maxsize=32)(train_router)


def experiment() -> bool:
    text = read_field("experts-text", _("text to learn from"), TEXT, read_words(MOST, LEAST))
    read = text[-READ:]
    st.caption(
        _("A block with {count} experts has just learned from it to predict the next character. It reads:").format(
            count=EXPERTS
        )
    )
    pieces = list(map(draw_piece, read))
    (place,) = picked_place("experts tokens", (len(read),)) or [len(read) - 1]
    tokens(pieces, torch.arange(len(read)) == place, key="experts tokens", label=_("characters; click one"))
    choice = choose_experts(train(text, WEIGHT, CHOSEN, FIRST), read, place)
    if not ask(choice, pieces[place]):
        return False
    views = {"load": _("two trainings"), "kinds": _("who goes where"), "held": _("held and used")}
    view = choose_view("experts-view", views)
    if view == "load":
        draw_load(text)
    elif view == "kinds":
        draw_kinds(train(text, WEIGHT))
    else:
        draw_held()
    return is_found(QUESTION)


def name_experts() -> list[str]:
    return [_("expert {number}").format(number=at + 1) for at in range(EXPERTS)]


# --- one token ---


def ask(choice: TokenChoice, piece: str) -> bool:
    """Asks for one number of the weighted sum, where the mean of the experts is farthest from it."""
    names = [_("expert {number}").format(number=at + 1) for at in choice.chosen]
    at = int((choice.outputs.mean(0) - choice.out)[:SHOWN].abs().argmax())
    first, second = choice.outputs[:, at].tolist()
    heavy, light = choice.weights.tolist()
    right = float(choice.out[at])
    reason = _("{heavy:.2f} · {first:.2f} + {light:.2f} · {second:.2f} = {out:.2f}.").format(
        heavy=heavy, first=first, light=light, second=second, out=right
    )
    mistakes = [
        (first + second, _("That adds both as they are; each is multiplied by its weight first.")),
        ((first + second) / 2, _("That is their mean, as if the router weighed both alike.")),
        (first, _("That is the first of them alone; the second writes too.")),
    ]

    def why(said: float) -> str:
        if abs(said - right) <= TOLERANCE:
            return reason
        return join_sentences(next((told for value, told in mistakes if abs(said - value) <= TOLERANCE), ""), reason)

    router, written = st.columns(2)
    with router:
        st.caption(_("The router scores the experts for “{piece}”.").format(piece=escape_markdown(piece)))
        rows = [_("logit"), _("probability")]
        scored = [choice.logits, choice.probabilities]
        for row, values in zip(rows, scored, strict=True):
            matrix(
                values[None], rows=[row], columns=name_experts(), scale="signed" if values is choice.logits else "unit",
                digits=2, key=f"experts router {values is choice.logits}", label=row,
            )  # fmt: skip
    above = written.container()
    shown = estimate(
        _(
            "“{piece}” is sent to the two best: {first} with the weight {heavy:.2f} and {second} with {light:.2f}, "
            "their probabilities divided by their sum. What is number {number} of what they write together?"
        ).format(piece=piece, first=names[0], second=names[1], heavy=heavy, light=light, number=at + 1),
        right,
        TOLERANCE,
        key=QUESTION,
        why=why,
        again=other_input("experts-text", (TEXT, *OTHERS)),
    )
    table = torch.cat([choice.outputs, choice.out[None]])[:, :SHOWN]
    with above:
        st.caption(_("What each of them writes, and their weighted sum: {count} numbers of it.").format(count=SHOWN))
        matrix(
            table if is_answered(QUESTION) else cover(table, (-1, at)), rows=[*names, _("sum")],
            columns=[str(one + 1) for one in range(SHOWN)], scale="signed", digits=2, key=f"{QUESTION} picture",
            role="residual", label=_("what the experts write"),
        )  # fmt: skip
    if shown and is_answered(QUESTION):
        show_code(mix_experts, key="experts code mix", logits=choice.logits, outputs=choice.outputs[:, :SHOWN])
    return shown


# --- the load ---


def draw_load(text: str) -> None:
    left, right = st.columns(2)
    label = _("experts that a token is sent to")
    used = int(left.number_input(label, 1, EXPERTS, 1, key="experts-used", persist_state="session"))
    seed = int(right.number_input(_("seed"), 0, 999, 0, key="experts-seed", persist_state="session"))
    free, fair = (train(text, weight, used, seed=seed) for weight in (0.0, WEIGHT))
    above, share = st.container(), float(free.last_shares.max())
    options = [
        _("under {low:.0%}, about as much as the others").format(low=LOW),
        _("{low:.0%} to {high:.0%}").format(low=LOW, high=HIGH),
        _("over {high:.0%}, more than all others together").format(high=HIGH),
    ]
    reason = _("It ends with {free:.0%}. With the load in the loss the busiest ends with {fair:.0%}.")
    choose(
        _(
            "The loss asks for the next character alone. What share of the tokens does the busiest of {count} experts "
            "get at the end?"
        ).format(count=EXPERTS),
        options,
        (share > LOW) + (share > HIGH),
        key=BUSIEST,
        why=lambda _said: reason.format(free=share, fair=float(fair.last_shares.max())),
    )
    answered = is_answered(BUSIEST)
    until = len(free.shares) if answered else BEGINNING
    titles = _("without the load"), _("with the load in the loss")
    with above:
        for title, place, found in zip(titles, st.columns(2), (free, fair), strict=True):
            place.caption(title)
            with place:
                show_altair(partial(draw_shares, found.shares, until), key=f"experts shares {found is free}")
    if answered:
        sentence = _(
            "Experts that get at least half of an equal share: {free} of {count} without the load, {fair} with it. "
            "Experts that each token is sent to: {used}. Loss at the end: {loss:.2f} and {other:.2f}."
        )
        in_use = {"free": count_in_use(free.last_shares), "fair": count_in_use(fair.last_shares)}
        losses = {"loss": free.losses[-1], "other": fair.losses[-1]}
        st.caption(sentence.format(**in_use, **losses, count=EXPERTS, used=used))
    show_code(train_router, key="experts code load", text=text, load_weight=WEIGHT, used=used, seed=seed)


def draw_shares(shares: Tensor, until: int, shade: Shade) -> alt.Chart:
    """Share of the tokens by step, a line an expert."""
    table = pd.DataFrame(shares[:until].tolist(), columns=name_experts())
    rows = table.rolling(5, min_periods=1).mean().reset_index(names="step").melt("step", var_name="expert")
    return (
        alt.Chart(rows)
        .mark_line()
        .encode(
            alt.X("step:Q", title=_("step"), scale=alt.Scale(domain=[0, len(shares)])),
            alt.Y("value:Q", title=_("share of the tokens, mean of five steps"), scale=alt.Scale(domain=[0, 1])),
            alt.Color("expert:N", title=None, sort=name_experts(), scale=alt.Scale(range=head_colors(shade))),
        )
        .properties(height=230)
    )


# --- who goes where ---


def draw_kinds(training: RouterTraining) -> None:
    counts = training.kinds.sum(-1)
    order = counts.argsort(descending=True, stable=True)[:ROWS]
    shares = training.kinds[order] / counts[order, None]
    st.caption(
        _("Trained with the load, one expert a token: where each character of your text is sent, as shares of it.")
    )
    matrix(
        shares, rows=[draw_piece(training.characters[at]) for at in order.tolist()], columns=name_experts(), digits=2,
        key="experts kinds", label=_("share of a character that an expert gets"),
    )  # fmt: skip
    split = int(((training.kinds > 0).sum(-1) > 1).sum())
    sentence = _(
        "Characters that go to more than one expert: {split} of {count}. The router reads the vector at a place, which "
        "attention has mixed with what stands before it. Nobody gave the experts topics."
    )
    st.caption(sentence.format(split=split, count=len(counts)))


# --- held and used ---


def draw_held() -> None:
    left, right = st.columns(2)
    experts = int(left.select_slider(_("experts"), COUNTS, 8, key="experts-count", persist_state="session"))
    key = f"experts-sent {experts}"
    used = int(right.number_input(_("experts that a token is sent to"), 1, experts, CHOSEN, key=key))
    sizes = count_sizes(experts, used, D_MODEL, D_MLP)
    share, above = 100 * sizes.used / sizes.held, st.container()
    reason = _("Of {experts} experts of {size} parameters, {used} are computed, and the router of {router}.").format(
        experts=experts, size=numeral(sizes.expert, ","), used=used, router=numeral(sizes.router, ",")
    )
    mistakes = {
        100: _("Experts that were not chosen are not computed for this token."),
        100 / experts: _("That is one expert."),
    }

    def why(said: float) -> str:
        return join_sentences(next((told for value, told in mistakes.items() if abs(said - value) < 1), ""), reason)

    question = _(
        "Experts: {experts}, each an MLP with d = {d} and {neurons} neurons, and a router. Each token is sent to "
        "{used}. Which share of the layer’s parameters does one token use, in %?"
    ).format(experts=experts, d=numeral(D_MODEL, ","), neurons=numeral(D_MLP, ","), used=used)
    estimate(question, share, 1, key=USED, unit="%", why=why)
    covered = not is_answered(USED)
    columns = ["", _("held"), _("used by one token"), _("share")]
    one = [_("one such MLP"), numeral(sizes.expert, ","), numeral(sizes.expert, ","), numeral(1, ".1%")]
    layer = [_("the layer"), numeral(sizes.held, ","), numeral(sizes.used, ","), numeral(share / 100, ".1%")]
    table = pd.DataFrame([one, [*layer[:2], "?", "?"] if covered else layer], columns=columns)
    above.dataframe(table, hide_index=True, width="stretch")
    if not covered:
        sentence = _("The layer holds {held:.3g} times as much as one such MLP, and a token uses {used:.3g} times.")
        st.caption(sentence.format(held=sizes.held / sizes.expert, used=sizes.used / sizes.expert))
    show_code(count_sizes, key="experts code held", experts=experts, used=used, d_model=D_MODEL, d_mlp=D_MLP)

"""Loss: cross-entropy by position, perplexity, its gradient p - y, and the two tasks of BERT."""

import math
from functools import lru_cache

import altair as alt
import pandas as pd
import streamlit as st
import torch

from engine.analysis.surprise import Surprise, surprise
from engine.course.loss import MaskCounts, count_hidden, follows, gradients_at, masked_loss, most_moved
from engine.inputs.readers import tokens
from engine.runtime import library
from engine.scoring.examples import UNASKED, Examples
from engine.tokenizers.encoding import Encoding
from engine.training.examples.masked import (
    ANOTHER,
    CHOSEN,
    FOLLOWS,
    MASKED,
    REPLACED,
    Marks,
    hide,
    marks_of,
    masked_windows,
)
from pages.controls.figures import bars, cover, matrix
from pages.controls.figures import tokens as chips
from pages.controls.learn.fields import choose_view, name_apart, other_input, read_field, read_short_text, read_words
from pages.controls.learn.predict import estimate, is_answered, is_found, point, show_code
from pages.controls.words import join_sentences, numeral
from pages.controls.words import translate as _
from views.charts.show import show_altair
from views.charts.template import colors
from views.core.theme import Shade

DECODER, ENCODER = "everyday", "tales-bert"
TEXT = "Once upon a time, there was a girl named Anna."
OTHERS = "Max had a big red elephant.", "Tom likes to eat apples and stones."
PAIR = ("Max lost his red kite. He was sad.", "The kite was in a tree, and Max was happy again.")
MOST, MOST_HIDDEN, CHARACTERS = 16, 32, 80  # tokens of the text, for either model; characters of one of a pair
SHOWN, TALL = 7, 250  # words of a distribution; pixels of a table and a chart
DRAWS = 2000  # of masked words, at first
TOLERANCE = 0.1  # of a perplexity, as a share
QUESTION, PERPLEXITY, GRADIENT = (f"loss {part}question" for part in ("", "perplexity ", "gradient "))


def experiment() -> bool:
    checkpoint, above = library.checkpoint(DECODER), st.container()
    encoding = read_field("loss-text", _("text"), TEXT, lambda said: read_short_text(checkpoint, said, MOST))
    measured = surprise(checkpoint, encoding.ids)
    first, *names = name_apart(encoding.pieces)
    shown, losses = ask([first, *names], measured), torch.tensor([0.0, *losses_of(measured)])
    with above:
        chips(
            [first, *names],
            losses / losses.max() if shown and is_answered(QUESTION) else None,
            role="key",
            key=f"{QUESTION} picture",
            label=_("the text, each next token marked by what it costs"),
        )
    if not shown:
        return False
    views = {
        "places": _("by position"),
        "gradient": _("gradient"),
        "masked": _("masked words"),
        "pairs": _("next sentence"),
    }
    view = choose_view("loss-view", views)
    if view == "places":
        draw_places(names, measured)
    elif view == "gradient":
        draw_gradient(encoding, names, measured)
    elif view == "masked":
        draw_masked(encoding.text)
    else:
        draw_pairs()
    return is_found(QUESTION)


def losses_of(measured: Surprise) -> list[float]:
    return [-value for value in measured.log_probabilities.tolist()]


def ask(names: list[str], measured: Surprise) -> bool:
    losses = [0.0, *losses_of(measured)]  # nobody is asked for the first token
    worst = max(range(1, len(losses)), key=losses.__getitem__)
    said_of = _("“{token}” had p = {p:.2g}, so it costs −ln p = {loss:.2f}.")

    def price(at: int) -> str:
        return said_of.format(token=names[at], p=math.exp(-losses[at]), loss=losses[at])

    def why(said: int) -> str:
        if said == worst:
            return price(worst)
        given = _("“{token}” is given: the model is asked for what comes after it.")
        return join_sentences(price(said) if said else given.format(token=names[0]), price(worst))

    question = _("The model {model} reads this text, asked for each next token. Click the one that costs the most.")
    return point(
        question.format(model=DECODER), (len(names),), [worst], key=QUESTION, name=names.__getitem__,
        why=why, again=other_input("loss-text", (TEXT, *OTHERS)),
    )  # fmt: skip


# --- by position ---


def draw_places(names: list[str], measured: Surprise) -> None:
    losses = losses_of(measured)
    table = pd.DataFrame({"token": names, "loss": losses, "p": [math.exp(-loss) for loss in losses]})

    def chart(shade: Shade) -> alt.LayerChart | alt.FacetChart:
        ink = colors(shade)
        shown = alt.Chart(table).encode(alt.X("token:N", sort=None, title=None))
        return alt.layer(
            shown.mark_bar(color=ink["residual"]).encode(
                alt.Y("loss:Q", title=_("−ln p, nats")), tooltip=["token", "loss", "p"]
            ),
            alt.Chart(pd.DataFrame({"mean": [measured.mean]})).mark_rule(color=ink["attention"]).encode(y="mean:Q"),
        ).properties(height=TALL)

    show_altair(chart, key="loss places")
    if not ask_perplexity(measured):
        return
    said = {
        "total": measured.total,
        "count": len(losses),
        "mean": measured.mean,
        "perplexity": measured.perplexity,
        "bits": measured.mean / math.log(2),
    }
    vocabulary = library.checkpoint(DECODER).config.vocab_size
    if measured.perplexity <= vocabulary:
        sentence = _(
            "Mean (the line): {total:.3f} / {count} = **{mean:.3f} nats**. Perplexity: e to the {mean:.3f} = "
            "**{perplexity:.3f}**, as if it chose among so many equally likely words each time."
        )
    else:
        sentence = _(
            "Mean (the line): {total:.3f} / {count} = **{mean:.3f} nats**. Perplexity: e to the {mean:.3f} = "
            "**{perplexity:.3f}**, more than its {vocabulary} tokens: guessing among all of them alike would do better."
        )
    st.markdown(sentence.format(**said, vocabulary=numeral(vocabulary, ",")))
    st.caption(
        _(
            "In bits the mean is {bits:.3f}, and 2 to the {bits:.3f} is the same perplexity: base and unit go together."
        ).format(**said)
    )


def ask_perplexity(measured: Surprise) -> bool:
    reason = _("e to the {mean:.3f} is {perplexity:.3f}.").format(mean=measured.mean, perplexity=measured.perplexity)
    tolerance = TOLERANCE * measured.perplexity
    mistakes = [
        (2**measured.mean, _("That is 2 to the mean, which holds for a mean in bits.")),
        (measured.mean, _("That is the mean itself.")),
        (measured.total, _("That is the sum, not the mean.")),
    ]

    def why(said: float) -> str:
        if abs(said - measured.perplexity) <= tolerance:
            return reason
        named = next((name for value, name in mistakes if abs(said - value) <= TOLERANCE * value), "")
        return join_sentences(named, reason)

    question = _("The mean of the costs is the line, {mean:.2f} nats. What is the perplexity?")
    return estimate(question.format(mean=measured.mean), measured.perplexity, tolerance, key=PERPLEXITY, why=why)


# --- the gradient ---


def draw_gradient(encoding: Encoding, names: list[str], measured: Surprise) -> None:
    losses = losses_of(measured)
    at = st.selectbox(
        _("the token that is asked"),
        range(len(names)),
        max(range(len(names)), key=losses.__getitem__),
        key=f"loss-at {len(names)}",
        format_func=lambda place: f"{place + 1}. {names[place]}",
    )
    found = gradients_at(DECODER, encoding.ids, at + 1)
    ids = most_moved(found, SHOWN)
    tokenizer = library.checkpoint(DECODER).tokenizer
    assert tokenizer is not None
    values = torch.stack([found.y[ids], found.p[ids], found.by_hand[ids], found.by_autograd[ids]])
    above = st.container()
    ask_gradient(values)
    answered = is_answered(GRADIENT)
    with above:
        matrix(
            values if answered else cover(values, slice(2, None)), rows=["y", "p", "p − y", "autograd"],
            columns=name_apart([tokenizer.piece(id) for id in ids]), digits=3, scale="signed", role="residual",
            key=f"{GRADIENT} picture", label=_("target, prediction, gradient"),
        )  # fmt: skip
    st.markdown(
        _(
            "Loss −ln {p:.3g} = {loss:.3f}. Over all {count} words p − y and autograd differ by at most {gap:.0e}."
        ).format(p=float(found.p[ids[0]]), loss=found.loss, count=len(found.p), gap=found.gap)
    )
    if answered:
        st.caption(
            _(
                "A step against it raises the logit of the right word and lowers each other one by its share. "
                "It sums to 0. In the mean over all places each has 1/{places} of it."
            ).format(places=len(names))
        )
    show_code(gradients_at, key="loss code gradient", name=DECODER, ids=list(encoding.ids), at=at + 1)


def ask_gradient(values: torch.Tensor) -> None:
    """Asks for the word whose logit a step raises, of the target, the prediction and the gradient."""
    least = int(values[2].argmin())
    reason = _("y is 1 at the right word alone, and p is less than 1 there; elsewhere y is 0 and p − y is p.")

    def why(said: tuple[int, int]) -> str:
        return reason if said[0] == 2 else join_sentences(_("That is in another row."), reason)

    point(
        _("The gradient p − y is covered. Click in its row the only number below 0."),
        values.shape,
        [(2, least)],
        key=GRADIENT,
        why=why,
        name=lambda at: _("row {row}, column {column}").format(row=at[0] + 1, column=at[1] + 1),
    )


# --- masked words ---


@lru_cache(maxsize=1)
def bert_marks() -> Marks:
    tokenizer = library.checkpoint(ENCODER).tokenizer
    assert tokenizer is not None
    return marks_of(tokenizer)


@lru_cache(maxsize=32)
def hide_often(ids: tuple[int, ...], draws: int, seed: int) -> tuple[Examples, MaskCounts]:
    """A text with words hidden, drawn anew in every row, and how often what was done."""
    marks = bert_marks()
    drawn = masked_windows(torch.tensor([ids] * draws), marks, torch.Generator().manual_seed(seed))
    return drawn, count_hidden(drawn.ids, drawn.targets, marks.mask, draws * len(ids))


def draw_masked(text: str) -> None:
    checkpoint = library.checkpoint(ENCODER)
    whole = tokens(checkpoint, text)
    ids = tuple(id for id, special in zip(whole.ids, whole.special, strict=True) if not special)[:MOST_HIDDEN]
    if not ids:
        st.caption(_("The model {model} knows no word of this text; change it.").format(model=ENCODER))
        return
    left, right = st.columns(2)
    with left:
        draws = st.slider(_("drawings"), 100, 5000, DRAWS, 100, key="loss-draws", persist_state="session")
    with right:
        seed = st.number_input(_("seed"), 0, 999, 0, key="loss-seed", persist_state="session")
    drawn, counts = hide_often(ids, int(draws), int(seed))
    with left:
        draw_counts(counts)
    with right:
        draw_drawing(drawn)
    st.caption(
        _(
            "Of {tokens:,} tokens {chosen:,} were chosen, {share:.1%}: {rule:.0%} of a text, a whole number, at least "
            "one. Only those are asked. The {masked:.0%} are of the chosen, not of the text."
        ).format(
            tokens=counts.tokens, chosen=counts.chosen, share=counts.chosen / counts.tokens, rule=CHOSEN, masked=MASKED
        )
    )
    show_code(
        hide,
        key="loss code masked",
        ids=drawn.ids[:1],
        may=drawn.targets[:1] != UNASKED,
        marks=bert_marks(),
        chance=torch.Generator(),
    )


def draw_counts(counts: MaskCounts) -> None:
    rules = (
        (_("shown as [MASK]"), MASKED, counts.masked),
        (_("shown as a random token"), REPLACED, counts.replaced),
        (_("shown as it is"), 1 - MASKED - REPLACED, counts.kept),
    )
    chosen = max(counts.chosen, 1)
    rows = [
        (name, numeral(rule, ".0%"), numeral(count, ","), numeral(count / chosen, ".1%")) for name, rule, count in rules
    ]
    table = pd.DataFrame(rows, columns=[_("a chosen token is"), _("rule"), _("counted"), _("share")])
    st.dataframe(table, hide_index=True, width="stretch")


def draw_drawing(drawn: Examples) -> None:
    """The first drawing, and what the model makes of it."""
    tokenizer = library.checkpoint(ENCODER).tokenizer
    assert tokenizer is not None
    read, targets = drawn.ids[:1], drawn.targets[:1]
    shares, loss = masked_loss(ENCODER, read, targets)
    asked = [id != UNASKED for id in targets[0].tolist()]
    rows = [
        (tokenizer.piece(shown), tokenizer.piece(id) if wanted else "", numeral(share, ".3f") if wanted else "")
        for shown, id, share, wanted in zip(read[0].tolist(), targets[0].tolist(), shares.tolist(), asked, strict=True)
    ]
    columns = [_("first drawing: read"), _("asked"), _("p")]
    st.dataframe(pd.DataFrame(rows, columns=columns), hide_index=True, width="stretch", height=TALL - 70)
    if any(asked):
        st.caption(
            _("Loss: the mean of −ln p over {count} asked = {loss:.3f} nats.").format(count=sum(asked), loss=loss)
        )
    else:
        st.caption(_("No ordinary token here, so nothing is asked."))


# --- next sentence ---


def draw_pairs() -> None:
    checkpoint = library.checkpoint(ENCODER)
    said = []
    for at, place in enumerate(st.columns(2)):
        with place:
            label = _("first text") if at == 0 else _("second text")
            said.append(read_field(f"loss-pair {at}", label, PAIR[at], read_words(CHARACTERS)))
    encoding = tokens(checkpoint, *said)
    shares = follows(ENCODER, encoding)
    names = {FOLLOWS: _("it follows"), ANOTHER: _("it comes from elsewhere")}
    st.code(" ".join(encoding.pieces), language=None, wrap_lines=True)
    bars(shares, [names[at] for at in sorted(names)], key="loss pairs", label=_("probabilities"))
    table = {
        _("if the truth is"): [names[at] for at in sorted(names)],
        _("p"): [f"{shares[at]:.4f}" for at in sorted(names)],
        _("loss −ln p"): [f"{-shares[at].log():.4f}" for at in sorted(names)],
    }
    st.dataframe(pd.DataFrame(table), hide_index=True, width="stretch")
    st.caption(
        _(
            "The vector at [CLS] is asked, and this loss is added to that of the hidden words. In training half of the "
            "pairs follow. Later models leave this task out: RoBERTa was no worse without it."
        )
    )
    show_code(follows, key="loss code pairs", name=ENCODER, encoding=encoding)

"""What heads learn: previous token, induction and name movers in shipped models, the step at which one formed, and
a head that seems to look for adjectives."""

from functools import cache
from typing import Any, LiteralString

import altair as alt
import pandas as pd
import streamlit as st
import torch

from engine.course.adjectives import AdjectiveHead, find_adjective_head, write_looks
from engine.course.circuits import direct_effects, head_scores, leading_head
from engine.json_text import parse_json
from engine.places import ASSETS
from engine.runtime import library
from engine.tokenizers.encoding import Encoding
from pages.controls.figures import cover, matrix
from pages.controls.learn.fields import (
    caption_known_texts,
    choose_view,
    name_apart,
    other_input,
    read_field,
    read_short_text,
)
from pages.controls.learn.predict import Again, choose, estimate, is_answered, is_found, point, show_code
from pages.controls.words import join_sentences, numeral
from pages.controls.words import translate as _
from views.charts.show import show_altair
from views.charts.template import colors
from views.core.markdown import Markdown
from views.core.theme import Shade

REPEATS, SEQUENCE = "induction", "b7Kx2qmTb7Kx2qm"
OTHERS = "K4vQzK4vQ", "pR9dTpR9"
STORIES, STORY = "stories", 'Max gave the red ball to Anna. "Thank you," said'
EVERYDAY, NOUN = "everyday", "She saw the red and pretty ball"
MOST = 24  # tokens
EXAMPLE = 3  # of the sentences of a kind, the one that is shown
TOLERANCE, NOTICED = 10, 0.1  # of a share: in percent, and where two of them differ
QUESTION, PREVIOUS, MOVED, FAR = (f"heads_learn {part}question" for part in ("", "previous ", "moved ", "far "))
RECORDED = ASSETS / "learn" / "recorded" / "induction.json"


def experiment() -> bool:
    checkpoint = library.checkpoint(REPEATS)
    encoding = read_field("heads-text", _("a sequence that repeats"), SEQUENCE, read_sequence)
    found = head_scores(checkpoint, encoding)
    leading = leading_head(found.induction, found.previous)
    assert leading is not None  # read_sequence saw to it
    layer, head = leading
    pattern = library.traces.trace(REPEATS, encoding)[f"blocks.{layer}.attn.pattern"][0, head]
    above, pieces = st.container(), name_apart(encoding.pieces)
    before = [piece for piece, id in zip(pieces[:-1], encoding.ids, strict=False) if id == encoding.ids[-1]]
    reason = _("“{piece}” occurred before as {places}; an induction head looks at what came next there.").format(
        piece=pieces[-1], places=", ".join(before)
    )
    question = _("Block {layer}, head {head}. Click in the row of the last token, “{piece}”, what it looks at most.")
    shown = ask_row(
        question.format(layer=layer + 1, head=head + 1, piece=pieces[-1]),
        pattern,
        pieces,
        QUESTION,
        reason,
        again=other_input("heads-text", (SEQUENCE, *OTHERS)),
    )
    with above:
        draw_pattern(pattern, pieces, QUESTION, _("weights"), covered=not (shown and is_answered(QUESTION)))
    if not shown:
        return False
    views = {
        "induction": _("two heads together"),
        "names": _("a name mover"),
        "formed": _("the step it formed"),
        "adjectives": _("nouns and adjectives"),
    }
    view = choose_view("heads-view", views)
    if view == "induction":
        draw_induction(encoding, pieces)
    elif view == "names":
        draw_names()
    elif view == "formed":
        draw_formed()
    else:
        draw_adjectives()
    return is_found(QUESTION)


def ask_row(
    question: LiteralString, pattern: torch.Tensor, pieces: list[str], key: str, reason: str, again: Again | None = None
) -> bool:
    """Asks which weight is the largest in the last row of a pattern, which is covered."""
    row = len(pieces) - 1

    def why(said: tuple[int, int]) -> str:
        if said[0] != row:
            sentence = _("Who looks is a row: that is the row of “{token}”.")
            return join_sentences(sentence.format(token=pieces[said[0]]), reason)
        if said[1] == int(pattern[row].argmax()):
            return reason
        sentence = _("It looks at “{token}” with {share:.0%}.")
        return join_sentences(sentence.format(token=pieces[said[1]], share=float(pattern[said])), reason)

    return point(
        question, tuple(pattern.shape), [(row, int(pattern[row].argmax()))], key=key, why=why,
        name=lambda at: f"{pieces[at[0]]} → {pieces[at[1]]}", again=again,
    )  # fmt: skip


def draw_pattern(pattern: torch.Tensor, pieces: list[str], key: str, label: str, covered: bool) -> None:
    matrix(cover(pattern, -1) if covered else pattern, rows=pieces, columns=pieces, key=f"{key} picture", label=label)


def read_sequence(said: str) -> Encoding:
    """A sequence whose last token stood in it before."""
    encoding = read_short_text(library.checkpoint(REPEATS), said, MOST)
    if encoding.ids[-1] not in encoding.ids[:-1]:
        raise ValueError(_("Expected a last token that occurs earlier too; repeat some of the sequence."))
    found = head_scores(library.checkpoint(REPEATS), encoding)
    if leading_head(found.induction, found.previous) is None:
        sentence = _("Expected a sequence where a head looks after copies and not just one back; repeat a longer part.")
        raise ValueError(sentence)
    return encoding


def draw_induction(encoding: Encoding, pieces: list[str]) -> None:
    found = head_scores(library.checkpoint(REPEATS), encoding)
    trace = library.traces.trace(REPEATS, encoding)
    above, before = st.container(), leading_head(found.previous, found.induction)
    if before is not None:
        layer, head = before
        pattern = trace[f"blocks.{layer}.attn.pattern"][0, head]
        at, share = int(pattern[-1].argmax()), float(pattern[-1].max())
        ask_row(
            _("The row of the last token is covered. Click in it what the previous-token head looks at most."),
            pattern,
            pieces,
            PREVIOUS,
            _("The most goes to “{token}”: {share:.0%}.").format(token=pieces[at], share=share),
        )
        sentence = _("{title}: block {layer}, head {head}, {share:.0%} of its attention")
        title, share = _("previous token"), float(found.previous[layer, head])
        with above:
            st.caption(sentence.format(title=title, layer=layer + 1, head=head + 1, share=share))
            draw_pattern(pattern, pieces, PREVIOUS, title, covered=not is_answered(PREVIOUS))
    st.caption(_("It tells every token what stood before it; the head above looks for its own token in that."))
    checkpoint = library.checkpoint(REPEATS)
    show_code(head_scores, key="heads code induction", checkpoint=checkpoint, encoding=encoding)


def draw_names() -> None:
    checkpoint = library.checkpoint(STORIES)
    encoding = read_field("heads-story", _("text"), STORY, lambda said: read_short_text(checkpoint, said, MOST))
    caption_known_texts(STORIES, STORY)
    trace = library.traces.trace(STORIES, encoding)
    id = int(trace["logits"][0, -1].argmax())
    effects = direct_effects(checkpoint, encoding, id)
    layer, head = divmod(int(effects.flatten().argmax()), effects.shape[1])
    row = trace[f"blocks.{layer}.attn.pattern"][0, head, -1]
    heads = [_("head {number}").format(number=number + 1) for number in range(effects.shape[1])]
    blocks = [_("block {number}").format(number=number + 1) for number in range(len(effects))]
    assert checkpoint.tokenizer is not None
    said = checkpoint.tokenizer.decode([id]).strip()
    st.caption(_("What each head adds to the logit of “{token}”, which the model says next").format(token=said))
    matrix(effects, rows=blocks, columns=heads, scale="signed", digits=2, role="probability", key="heads effects",
           label=_("direct effects"))  # fmt: skip
    most = {"layer": layer + 1, "head": head + 1}
    options, at = name_apart(encoding.pieces), int(row.argmax())
    sentence = _("The most: block {layer}, head {head}. It looks at “{piece}” with {share:.0%} and adds {effect:+.1f}.")
    reason = sentence.format(
        **most, piece=encoding.pieces[at].strip(), share=float(row.max()), effect=float(effects[layer, head])
    )
    question = _("Block {layer}, head {head} adds the most. Which token does it look at?")
    choose(question.format(**most), options, at, key=MOVED, why=lambda _said: reason)
    show_code(direct_effects, key="heads code names", checkpoint=checkpoint, encoding=encoding, id=id)


# --- a head that seems to look for adjectives ---


@cache
def adjective_head() -> AdjectiveHead:
    return find_adjective_head(library.checkpoint(EVERYDAY))


def draw_adjectives() -> None:
    checkpoint, found, above = library.checkpoint(EVERYDAY), adjective_head(), st.container()
    ask_far(found)
    answered = is_answered(FAR)
    with above:
        sentence = _(
            "Of the heads of {model}, block {layer}, head {head} looks most often from a noun at the adjective right "
            "before it: in {chosen:.0%} of the sentences by which it was chosen. These are others, {asked} of each "
            "kind, of other nouns and adjectives:"
        )
        place = {"layer": found.layer + 1, "head": found.head + 1, "chosen": found.chosen_by, "asked": found.asked}
        st.caption(sentence.format(model=EVERYDAY, **place))
        draw_shares(found, covered=not answered)
    if answered:
        st.markdown(judge(found))
        sentence = _(
            "The head that found a farther adjective most often in the first sentences, block {layer}, head {head}, "
            "finds it in {share:.0%} of the others."
        )
        far = {"layer": found.far_layer + 1, "head": found.far_head + 1, "share": found.far_share}
        st.caption(sentence.format(**far))
    draw_own_noun(found)
    show_code(find_adjective_head, key="heads code adjectives", checkpoint=checkpoint)


def draw_shares(found: AdjectiveHead, covered: bool) -> None:
    """How often the head looks at what, by kind of sentence; what is asked for is covered."""
    kinds = {
        "near": _("an adjective right before"),
        "bare": _("no adjective: the word before"),
        "noun": _("a noun in its place"),
        "far": _("an adjective farther away"),
        "second": _("the second adjective there"),
    }
    looks, rows = write_looks("measured"), []
    for kind, title in kinds.items():
        look = looks[kind][EXAMPLE]
        hidden = covered and kind in ("far", "second")
        rows.append((title, look.text, look.word, "?" if hidden else numeral(found.shares[kind], ".0%")))
    columns = [_("kind"), _("a sentence"), _("looked at"), _("share of sentences")]
    st.dataframe(pd.DataFrame(rows, columns=columns), hide_index=True, width="stretch")


def ask_far(found: AdjectiveHead) -> None:
    near, far, second = (found.shares[kind] for kind in ("near", "far", "second"))
    reason = _("It looks there in {far:.0%}, and at the second adjective, one token back, in {second:.0%}.")
    told = reason.format(far=far, second=second)

    def why(said: float) -> str:
        if abs(said - 100 * near) <= TOLERANCE < abs(100 * (near - far)):
            return join_sentences(_("So it would be if it looked for an adjective."), told)
        return told

    look = write_looks("measured")["far"][EXAMPLE]
    question = _(
        "Right before the noun, it looks at the adjective in {near:.0%} of the sentences. In how many percent at the "
        "first one in sentences such as “{text}”?"
    )
    estimate(question.format(near=near, text=look.text), 100 * far, TOLERANCE, key=FAR, unit="%", why=why)


def judge(found: AdjectiveHead) -> Markdown:
    """What is left of the claim that the head looks from a noun at its adjective."""
    shares, enough = found.shares, found.shares["near"] - NOTICED
    if shares["far"] >= enough:
        sentence = _("The claim holds: it finds the adjective past other words too, in {far:.0%}.")
    elif shares["noun"] >= enough:
        sentence = _(
            "Nothing is left of the adjective: with a noun in its place the head looks there in {noun:.0%}, and past "
            "other words it finds the adjective in {far:.0%}. It looks one token back, though only in {bare:.0%} where "
            "no such word stands there."
        )
    elif shares["bare"] >= enough:
        sentence = _(
            "Nothing is left but a previous-token head: without an adjective it looks one token back in {bare:.0%}."
        )
    else:
        sentence = _(
            "Left of the claim is a part: one token back it looks more often at an adjective, {near:.0%}, than at a "
            "noun, {noun:.0%}, or what else is there, {bare:.0%}; past other words it finds it in {far:.0%}."
        )
    return Markdown(sentence.format(**shares))


def draw_own_noun(found: AdjectiveHead) -> None:
    checkpoint, label = library.checkpoint(EVERYDAY), _("a text that ends at a noun")
    encoding = read_field("heads-noun", label, NOUN, lambda said: read_short_text(checkpoint, said, MOST))
    pieces = name_apart(encoding.pieces)
    pattern = library.traces.trace(EVERYDAY, encoding)[f"blocks.{found.layer}.attn.pattern"][0, found.head]
    matrix(pattern, rows=pieces, columns=pieces, key="heads noun", label=_("weights"))
    most = int(pattern[-1].argmax())
    sentence = _("From “{noun}” it gives the most to “{piece}”: {share:.0%}.")
    st.caption(sentence.format(noun=pieces[-1], piece=pieces[most], share=float(pattern[-1, most])))


@cache
def read_recording() -> dict[str, Any]:
    found: dict[str, Any] = parse_json(RECORDED.read_text(encoding="utf-8"))
    return found


def half_risen(name: str) -> int:
    """The recorded step from which the best share of a head stays above the middle of its first and its last."""
    shares = {row["step"]: max(map(max, row[name])) for row in read_recording()["rows"]}
    first, *_between, last = shares.values()
    below = [step for step, share in shares.items() if share < (first + last) / 2]
    return min(step for step in shares if step > below[-1])


def draw_formed() -> None:
    rows = read_recording()["rows"]
    steps = [row["step"] for row in rows]
    step = st.select_slider(
        _("step"), steps, steps[-1], format_func=lambda at: f"{at:d}", key="heads-step", persist_state="session"
    )
    at = steps.index(step)
    series = {
        "loss": _("loss, nats"),
        "previous": _("best previous-token share"),
        "induction": _("best induction share"),
    }
    table = pd.DataFrame(
        [
            (row["step"], series[name], row[name] if name == "loss" else max(map(max, row[name])))
            for row in rows
            for name in series
        ],
        columns=["step", "what", "value"],
    )

    def panel(names: list[str], inks: list[str], title: str, shade: Shade) -> alt.LayerChart:
        shown, ink = [series[name] for name in names], colors(shade)
        here = alt.Chart(pd.DataFrame({"step": [step]})).mark_rule(color=ink["soft"]).encode(alt.X("step:Q"))
        scale = alt.Scale(domain=shown, range=[ink[one] for one in inks])
        lines = (
            alt.Chart(table[table["what"].isin(shown)])
            .mark_line()
            .encode(
                alt.X("step:Q", title=_("step")),
                alt.Y("value:Q", title=title),
                alt.Color("what:N", title=None, scale=scale),
            )
        )
        return (lines + here).properties(height=250)

    left, right = st.columns(2)
    with left:
        show_altair(lambda shade: panel(["loss"], ["probability"], series["loss"], shade), key="heads loss")
    with right:
        both = ["previous", "induction"]
        show_altair(lambda shade: panel(both, ["key", "attention"], _("share"), shade), key="heads formed")
    sentence = _(
        "Half of its rise is reached at step {previous} by the previous-token head, and at step {induction} by the "
        "induction head. Before the first of the two the loss fell from {start:.2f} to {then:.2f}, after it to "
        "{end:.2f}."
    )
    risen = {name: half_risen(name) for name in ("previous", "induction")}
    then = next(row["loss"] for row in rows if row["step"] == min(risen.values()))
    st.caption(sentence.format(**risen, start=rows[0]["loss"], then=then, end=rows[-1]["loss"]))
    heads = [_("head {number}").format(number=number + 1) for number in range(4)]
    blocks = [_("block {number}").format(number=number + 1) for number in range(2)]
    for place, name in zip(st.columns(2), ("previous", "induction"), strict=True):
        with place:
            st.caption(_("{what} at step {step}").format(what=series[name], step=step))
            matrix(torch.tensor(rows[at][name]), rows=blocks, columns=heads, digits=2, key=f"heads at {name}",
                   label=series[name])  # fmt: skip
    here = {"task": "induction"}
    st.page_link("pages/train/train.py", label=_("Train it here"), icon=":material/play_arrow:", query_params=here)

"""What heads learn: previous token, induction and name movers in shipped models, and the step at which one formed."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st
import torch

from engine.course.circuits import direct_effects, head_scores, leading_head
from engine.runtime import library
from engine.tokenizers.encoding import Encoding
from pages.controls.figures import matrix
from pages.controls.learn.fields import caption_known_texts, choose_view, read_field, read_short_text
from pages.controls.learn.predict import choose, is_found, show_code
from pages.controls.learn.words import translate as _
from views.charts.show import show_altair
from views.charts.template import colors
from views.core.theme import Shade

REPEATS, SEQUENCE = "induction", "b7Kx2qmTb7Kx2qm"
STORIES, STORY = "stories", 'Max gave the red ball to Anna. "Thank you," said'
MOST = 24  # tokens
RECORDED = Path(__file__).resolve().parents[4] / "assets" / "learn" / "recorded" / "induction.json"


def experiment() -> bool:
    checkpoint = library.checkpoint(REPEATS)
    encoding = read_field("heads-text", _("a sequence that repeats"), SEQUENCE, read_sequence)
    found = head_scores(checkpoint, encoding)
    leading = leading_head(found.induction, found.previous)
    assert leading is not None  # read_sequence saw to it
    layer, head = leading
    pattern = library.traces.trace(REPEATS, encoding)[f"blocks.{layer}.attn.pattern"][0, head]
    pieces = list(encoding.pieces)
    row = len(pieces) - 1
    before = [at for at in range(row) if pieces[at] == pieces[row]]
    options = [f"{piece} ({at})" for at, piece in enumerate(pieces)]
    reason = _("“{piece}” occurred at {places} before; an induction head looks at what came next there.").format(
        piece=pieces[row], places=", ".join(map(str, before))
    )
    question = _("Block {layer}, head {head} reads the last token, “{piece}”. Which token does it look at most?")
    if not choose(
        question.format(layer=layer + 1, head=head + 1, piece=pieces[row]), options, int(pattern[row].argmax()),
        key="heads_learn question", why=lambda _said: reason,
    ):  # fmt: skip
        return False
    views = {"induction": _("two heads together"), "names": _("a name mover"), "formed": _("the step it formed")}
    view = choose_view("heads-view", views)
    if view == "induction":
        draw_induction(encoding, pieces)
    elif view == "names":
        draw_names()
    else:
        draw_formed()
    return is_found("heads_learn question")


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
    named = {"previous": _("previous token"), "induction": _("induction")}
    both = zip(st.columns(2), named.items(), found, reversed(found), strict=True)
    for place, (name, title), scores, other in both:
        leading = leading_head(scores, other)
        if leading is None:
            continue
        layer, head = leading
        with place:
            sentence = _("{title}: block {layer}, head {head}, {share:.0%} of its attention")
            st.caption(sentence.format(title=title, layer=layer + 1, head=head + 1, share=float(scores[layer, head])))
            pattern = trace[f"blocks.{layer}.attn.pattern"][0, head]
            matrix(pattern, rows=pieces, columns=pieces, key=f"heads {name}", label=title)
    st.caption(_("The first tells every token what stood before it; the second looks for its own token in that."))
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
    sentence = _("The most: block {layer}, head {head}. It looks at “{piece}” with {share:.0%} and adds {effect:+.1f}.")
    st.markdown(
        sentence.format(
            layer=layer + 1, head=head + 1, piece=encoding.pieces[int(row.argmax())].strip(), share=float(row.max()),
            effect=float(effects[layer, head]),
        )
    )  # fmt: skip
    show_code(direct_effects, key="heads code names", checkpoint=checkpoint, encoding=encoding, id=id)


@cache
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


def draw_formed() -> None:
    rows = recorded()["rows"]
    steps = [row["step"] for row in rows]
    step = st.select_slider(
        _("step"), steps, steps[-1], format_func=lambda at: f"{at:d}", key="heads-step", persist_state="session"
    )
    at = steps.index(step)
    series = {
        "loss": _("loss, nats"), "previous": _("best previous-token share"), "induction": _("best induction share")
    }  # fmt: skip
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
    heads = [_("head {number}").format(number=number + 1) for number in range(4)]
    blocks = [_("block {number}").format(number=number + 1) for number in range(2)]
    for place, name in zip(st.columns(2), ("previous", "induction"), strict=True):
        with place:
            st.caption(_("{what} at step {step}").format(what=series[name], step=step))
            matrix(torch.tensor(rows[at][name]), rows=blocks, columns=heads, digits=2, key=f"heads at {name}",
                   label=series[name])  # fmt: skip
    here = {"task": "induction"}
    st.page_link("pages/train/lab.py", label=_("Train it here"), icon=":material/play_arrow:", query_params=here)

"""Tokens: one text cut by word, character, byte, BPE, WordPiece and Unigram."""

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

from engine.course.tokens import KINDS, are_unknown, comes_back, cut, lengths, tokenizer_of
from pages.controls import figures
from pages.controls.learn.fields import choose_view, read_field, read_words
from pages.controls.learn.predict import estimate, is_found, show_code
from pages.controls.learn.words import translate as _
from pages.controls.learn.words import translate_count as _n
from pages.controls.state.session import set_widget
from views.charts.show import NamedChart
from views.charts.template import AltairChart
from views.core.markdown import escape_markdown
from views.core.theme import Shade

TEXT = "phone, phones, phoned"
MOST, CHIPS, QUOTED = 60, 40, 24  # characters of a text, chips of one line, pieces in a sentence


def kind_names() -> dict[str, str]:
    return {
        "word": _("Word"), "char": _("Character"), "byte": _("Byte"), "bpe": _("BPE"), "wordpiece": _("WordPiece"),
        "unigram": _("Unigram"),
    }  # fmt: skip


def experiment() -> bool:
    text = read_field("tokens-text", _("text"), TEXT, read_words(MOST))
    draw_examples()
    pieces = cut("bpe", text).pieces
    question = _("BPE has a vocabulary of {size} pieces, learned from small stories. How many tokens is your text?")
    reason = _("It is cut as {pieces}.").format(pieces=escape_markdown(" | ".join(pieces[:QUOTED])))
    if len(pieces) > QUOTED:
        reason = _("It begins {pieces}.").format(pieces=escape_markdown(" | ".join(pieces[:QUOTED])))
    asked = question.format(size=tokenizer_of("bpe").vocab_size)
    if not estimate(
        asked, len(pieces), max(1, round(0.15 * len(pieces))), key="tokens question", why=lambda _said: reason
    ):
        return False
    views = {"pieces": _("pieces"), "sizes": _("vocabulary and length"), "special": _("unknown and special")}
    shown = choose_view("tokens-view", views)
    {"pieces": draw_pieces, "sizes": draw_sizes, "special": draw_special}[str(shown)](text)
    return is_found("tokens question")


def draw_examples() -> None:
    examples = {
        _("one stem"): TEXT,
        _("never seen"): "Max saw a zyzzyva, quoth Anna.",
        _("Chinese"): "猫坐在垫子上。",
        _("emoji"): "🦉 flies at night 👩‍🚀",
        _("special tokens"): "The end.<|endoftext|>[MASK] ran.",
    }
    with st.container(horizontal=True, gap="small"):
        for at, (label, example) in enumerate(examples.items()):
            st.button(
                label, key=f"tokens-example {at}", help=escape_markdown(example), type="tertiary",
                on_click=set_widget, args=("tokens-text", example),
            )  # fmt: skip


def draw_pieces(text: str) -> None:
    lost = 0
    named = kind_names()
    with st.container(gap="xsmall"):
        for kind in KINDS:
            encoding = cut(kind, text)
            unknown = are_unknown(kind, encoding)
            lost += sum(unknown)
            said = _n("{count} token of {size}", "{count} tokens of {size}", len(encoding))
            count = said.format(count=len(encoding), size=tokenizer_of(kind).vocab_size)
            about, chips = st.columns([2, 7], vertical_alignment="center")
            with chips:
                rest = len(encoding) - CHIPS
                pieces = list(encoding.pieces[:CHIPS]) + ([f"… +{rest}"] if rest > 0 else [])
                marked = np.array([*unknown[:CHIPS], *([False] if rest > 0 else [])], dtype=float)
                at = figures.tokens(
                    pieces, marked, key=f"tokens chips {kind}", role="negative", label=_("pieces of the text")
                )  # fmt: skip
            if at is not None and at < min(len(encoding), CHIPS):
                start, end = encoding.spans[at]
                count = _("id {id}: characters {start} to {end}").format(
                    id=encoding.ids[at], start=start + 1, end=end
                )  # fmt: skip
            about.markdown(f"**{escape_markdown(named[kind])}**  \n:small[{count}]")
    said = _("Unknown tokens, marked: {count}. What stood there is lost. Click a token for its id.")
    if not lost:
        said = _("No token is unknown. Click a token for its id.")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(said.format(count=lost))
        show_code(cut, key="tokens code", kind="bpe", text=text)


def draw_sizes(text: str) -> None:
    rows = pd.DataFrame(lengths(text), columns=["kind", "size", "tokens"])
    rows["kind"] = rows["kind"].map(kind_names())
    NamedChart(size_chart, (), {"rows": rows}).show("tokens chart")
    st.caption(_("Each point is one vocabulary. Lines: the same method with more entries. A model pays for both axes."))
    show_code(lengths, key="tokens code lengths", text=text)


def size_chart(_shade: Shade) -> AltairChart:
    """`rows`: kind, size, tokens."""
    kinds = list(kind_names().values())
    base = alt.Chart(alt.NamedData("rows"), height=280).encode(
        x=alt.X("size:Q", title="entries of the vocabulary", scale=alt.Scale(type="log", nice=False, padding=20)),
        y=alt.Y("tokens:Q", title="tokens of the text", scale=alt.Scale(domainMin=0)),
        color=alt.Color("kind:N", title=None, scale=alt.Scale(domain=kinds)),
        tooltip=["kind:N", "size:Q", "tokens:Q"],
    )
    shape = alt.Shape("kind:N", title=None, scale=alt.Scale(domain=kinds))
    return alt.layer(base.mark_line(), base.mark_point(filled=True, size=90, opacity=1).encode(shape=shape))


def draw_special(text: str) -> None:
    table = []
    named = kind_names()
    for kind in KINDS:
        unknown = sum(are_unknown(kind, cut(kind, text)))
        names = ", ".join(f"{name} {id}" for name, id in tokenizer_of(kind).special_tokens.items())
        back = _("yes") if comes_back(kind, text) else _("no")
        table.append({"": named[kind], _("unknown"): unknown, _("text comes back"): back, _("special, id"): names})
    st.dataframe(table, hide_index=True, height="content", key="tokens table")
    whole = tokenizer_of("wordpiece").encode(text)
    st.caption(_("What BERT reads: WordPiece puts its special tokens, marked, around the text."))
    figures.tokens(
        list(whole.pieces[:CHIPS]), np.array(whole.special[:CHIPS], dtype=float), key="tokens whole", role="key",
        label=_("tokens that BERT reads"),
    )  # fmt: skip

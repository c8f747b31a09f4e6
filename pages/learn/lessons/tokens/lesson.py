"""Tokens: one text cut by word, character, byte, BPE, WordPiece and Unigram."""

import re

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

from engine.course.tokens import KINDS, are_unknown, comes_back, cut, lengths, tokenizer_of, word_entries
from engine.tokenizers import Encoding, draw_piece
from pages.controls.figures import tokens
from pages.controls.learn.fields import choose_view, other_input, read_field, read_words
from pages.controls.learn.predict import choose, estimate, is_answered, is_found, point, show_code
from pages.controls.state.session import set_widget
from pages.controls.words import join_sentences
from pages.controls.words import translate as _
from pages.controls.words import translate_count as _n
from views.charts.show import NamedChart
from views.charts.template import AltairChart
from views.core.markdown import Markdown, escape_markdown
from views.core.theme import Shade

TEXT = "phone, phones, phoned"
OTHERS = "The cat sat on the mat", "Tom was thinking"
MOST, CHIPS, QUOTED, WORDS = 60, 40, 24, 6  # characters of a text, chips of one line, pieces and words in a sentence
QUESTION, BYTES, GROWN = (f"tokens {part}question" for part in ("", "bytes ", "grown "))


def kind_names() -> dict[str, str]:
    return {
        "word": _("Word"),
        "char": _("Character"),
        "byte": _("Byte"),
        "bpe": _("BPE"),
        "wordpiece": _("WordPiece"),
        "unigram": _("Unigram"),
    }


def experiment() -> bool:
    above = st.container()
    text = read_field("tokens-text", _("text"), TEXT, read_words(MOST))
    draw_examples()
    encoding = cut("bpe", text)
    shown = ask(text, encoding)
    with above:
        draw_characters(text, encoding, covered=not (shown and is_answered(QUESTION)))
    if not shown:
        return False
    views = {"pieces": _("pieces"), "sizes": _("vocabulary and length"), "special": _("unknown and special")}
    view = choose_view("tokens-view", views)
    {"pieces": draw_pieces, "sizes": draw_sizes, "special": draw_special}[view](text)
    return is_found(QUESTION)


def draw_characters(text: str, encoding: Encoding, covered: bool) -> None:
    """The characters of the text; every other token of BPE is marked once it was asked where the first one ends."""
    marks = np.zeros(len(text))
    for at, (start, end) in enumerate(sorted(set(encoding.spans))):
        marks[start:end] = (at + 1) % 2
    tokens(
        list(map(draw_piece, text)),
        None if covered else marks,
        key=f"{QUESTION} picture",
        role="residual",
        label=_("characters of the text"),
    )


def ask(text: str, encoding: Encoding) -> bool:
    pieces, end, word = encoding.pieces, encoding.spans[0][1], re.match(r"\w+", text)
    begins = _("It is cut as {pieces}.") if len(pieces) <= QUOTED else _("It begins {pieces}.")
    reason = begins.format(pieces=" | ".join(pieces[:QUOTED]))
    if shared := next((one for one in encoding.letters_in_parts() if one[0] == 0), None):
        sentence = _(
            "It is not all of “{letter}”. Bytes of UTF-8 that “{letter}” has: {size}; tokens that they are: {count}."
        )
        told = sentence.format(letter=shared[2], size=len(shared[2].encode()), count=shared[1])
        reason = join_sentences(told, reason)

    def why(said: int) -> str:
        if said + 1 == end:
            return reason
        mistake = _("By then another token has begun.")
        if said + 1 < end:
            mistake = _("The token goes on: these characters often stood together.")
        elif word and said + 1 == word.end():
            mistake = _("There a word ends, which BPE has to put together of shorter pieces.")
        return join_sentences(mistake, reason)

    question = _(
        "BPE has a vocabulary of {size} pieces, learned from small stories. Where does the first token of the text "
        "end? Click the character that it ends in."
    )
    return point(
        question.format(size=tokenizer_of("bpe").vocab_size),
        (len(text),),
        [end - 1],
        key=QUESTION,
        name=lambda at: _("character {number}, “{piece}”").format(number=at + 1, piece=draw_piece(text[at])),
        why=why,
        again=other_input("tokens-text", (TEXT, *OTHERS)),
    )


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
                label,
                key=f"tokens-example {at}",
                help=escape_markdown(example),
                type="tertiary",
                on_click=set_widget,
                args=("tokens-text", example),
            )


def draw_pieces(text: str) -> None:
    lost = 0
    named, above = kind_names(), st.container(gap="xsmall")
    ask_bytes(text)
    with above:
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
                if kind == "byte" and not is_answered(BYTES):
                    pieces, marked, count = ["?"], np.zeros(1), "?"
                at = tokens(pieces, marked, key=f"tokens chips {kind}", role="negative", label=_("pieces of the text"))
            if at is not None and at < min(len(encoding), CHIPS) and count != "?":
                count = locate(encoding, at)
            about.markdown(f"**{escape_markdown(named[kind])}**  \n:small[{count}]")
    entries = [f"{escape_markdown(word)} {id}" for word, id in word_entries(text).items()][:WORDS]
    if len(entries) > 1:
        told = _("Words learned from this very text have an entry each: {entries}. A number says nothing of another.")
        st.caption(told.format(entries=", ".join(entries)))
    said = _("Unknown tokens, marked: {count}. What stood there is lost. Click a token for its id.")
    if not lost:
        said = _("No token is unknown. Click a token for its id.")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(said.format(count=lost))
        show_code(cut, key="tokens code", kind="bpe", text=text)


def locate(encoding: Encoding, at: int) -> Markdown:
    """Names a token and its part of the text: characters, or a part of one."""
    (start, end), id = encoding.spans[at], encoding.ids[at]
    for first, after, letter in encoding.letters_in_parts():
        if first <= at < after:
            sentence = _("id {id}: part {part} of {count} of “{letter}”")
            return Markdown(sentence.format(id=id, part=at - first + 1, count=after - first, letter=letter))
    return Markdown(_("id {id}: characters {start} to {end}").format(id=id, start=start + 1, end=end))


def ask_bytes(text: str) -> None:
    count, wide = len(text.encode()), sum(not one.isascii() for one in text)
    reason = _("Characters of the text: {characters}; of more than one byte: {wide}.").format(
        characters=len(text), wide=wide
    )

    def why(said: float) -> str:
        if said == len(text) != count:
            return join_sentences(_("A character outside of ASCII takes two to four bytes."), reason)
        return reason

    estimate(_("The row of bytes is covered. How many tokens does it have?"), count, 0, key=BYTES, why=why)


def draw_sizes(text: str) -> None:
    rows = pd.DataFrame(lengths(text), columns=["kind", "size", "tokens"])
    learned, above = rows[rows["kind"] == "bpe"], st.container()
    least, most = learned.iloc[0], learned.iloc[-1]
    ask_grown(*((int(one["size"]), int(one["tokens"])) for one in (least, most)))
    if not is_answered(GROWN):
        rows = rows.drop(index=learned.index[1:])
    rows["kind"] = rows["kind"].map(kind_names())
    with above:
        NamedChart(size_chart, (), {"rows": rows}).show("tokens chart")
    st.caption(_("Each point is one vocabulary. Lines: the same method with more entries. A model pays for both axes."))
    show_code(lengths, key="tokens code lengths", text=text)


def ask_grown(least: tuple[int, int], most: tuple[int, int]) -> None:
    """Asks what more entries do to the tokens of the text: (entries, tokens) of the smallest and largest vocabulary."""
    options = [_("more"), _("fewer"), _("as many")]
    answer = 0 if most[1] > least[1] else 1 if most[1] < least[1] else 2
    reason = _("Tokens: {before}, then {after}. Each entry more joins two pieces that often stood together.")
    question = _(
        "BPE is drawn with its smallest vocabulary alone, {least} entries. With {most}, is the text more tokens, fewer "
        "or as many?"
    )
    choose(
        question.format(least=least[0], most=most[0]),
        options,
        answer,
        key=GROWN,
        why=lambda _said: reason.format(before=least[1], after=most[1]),
    )


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
    tokens(
        list(whole.pieces[:CHIPS]),
        np.array(whole.special[:CHIPS], dtype=float),
        key="tokens whole",
        role="key",
        label=_("tokens that BERT reads"),
    )

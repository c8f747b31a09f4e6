"""k nearest states of a text in the cross-attention of the shipped translator: in the course and on Long context."""

from __future__ import annotations

from functools import lru_cache

import streamlit as st

from engine.course.long_sequences import NearestCrossAttention, cross, read_long
from engine.runtime import library
from pages.controls.figures import matrix
from pages.controls.learn.fields import LONGEST, read_field, read_words
from pages.controls.learn.predict import show_code
from pages.controls.words import translate as _
from pages.controls.words import translate_count as _n
from views.core.markdown import escape_markdown

TRANSLATOR = "translate-en-fr"
SOURCE = "My mother is in the kitchen. My father is in the garden."
MOST_SOURCE = 60  # tokens
TWO_SENTENCES = 20  # tokens: about as many as it learned from at a time


@lru_cache(maxsize=64)
def compute_cross_attention(ids: tuple[int, ...], k: int, layer: int) -> NearestCrossAttention:
    return cross(library.checkpoint(TRANSLATOR), ids, k, layer)


def read_source(said: str) -> tuple[int, ...]:
    ids = tuple(read_long(library.checkpoint(TRANSLATOR), read_words(LONGEST)(said)))
    if not 1 <= len(ids) <= MOST_SOURCE:
        sentence = _("Expected 1 to {most} tokens, and this text has {count}; change it.")
        raise ValueError(sentence.format(most=MOST_SOURCE, count=len(ids)))
    return ids


def draw_nearest() -> None:
    checkpoint = library.checkpoint(TRANSLATOR)
    aligning = checkpoint.card["measured"]["alignment"]
    tokenizer, config = checkpoint.tokenizer, checkpoint.config
    assert tokenizer is not None
    ids = read_field("long_sequences-source", _("English text"), SOURCE, read_source)
    best = aligning["layer"] + 1, aligning["head"] + 1
    with st.container(horizontal=True):
        wanted = st.number_input(_("k states"), 1, MOST_SOURCE, 4, key="long_sequences-k", width=120)
        layer = st.number_input(_("layer"), 1, config.layers, best[0], key="long_sequences-across", width=120)
        heads = config.cross_attention.heads
        head = st.number_input(_("head"), 1, heads, best[1], key="long_sequences-cross-head", width=120)
    k, layer, head = min(int(wanted), len(ids)), int(layer) - 1, int(head) - 1
    found, whole = compute_cross_attention(ids, k, layer), compute_cross_attention(ids, len(ids), layer)
    rows = [tokenizer.piece(id) for id in found.written]
    columns = [tokenizer.piece(id) for id in ids]
    matrix(
        found.nearest.dense(len(ids))[head],
        rows=rows,
        columns=columns,
        key="long across",
        label=_("weights of the states found"),
    )
    written = [tokenizer.decode(list(one.written)[1:], special=False).strip() for one in (found, whole)]
    says = _("With k = {k}: “{near}”. With all {count}: “{full}”.")
    st.markdown(says.format(k=k, count=len(ids), near=escape_markdown(written[0]), full=escape_markdown(written[1])))
    sentence = _n(
        "{k} of {count} states holds {share:.0%} of this head's attention.",
        "{k} of {count} states hold {share:.0%} of this head's attention.",
        k,
    )
    st.markdown(sentence.format(k=k, count=len(ids), share=float(found.kept[head])))
    if len(ids) > config.context:
        note = _("The model reads {context} tokens at once, so the text was encoded in chunks that overlap by half.")
        st.caption(note.format(context=config.context))
    if len(ids) > TWO_SENTENCES:
        st.caption(_("It learned from one or two short sentences, so a longer text goes wrong with all states too."))
    show_code(cross, key="long code nearest", checkpoint=checkpoint, ids=list(ids), k=k, layer=layer)

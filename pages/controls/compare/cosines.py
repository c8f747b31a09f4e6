"""Cosines of the vectors that stand for the texts of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

import streamlit as st

from engine.analysis.text_vectors import OUT, cosines
from engine.tokenizers.encoding import Encoding
from pages.controls.compare.run import Side
from views.core.markdown import Markdown, escape_markdown


def tell_cosines(sides: Sequence[Side]) -> None:
    """Says how alike A's text is to each other's by their vectors, where models make vectors of one width."""
    first, *others = sides
    pooled = [one for one in others if has_vector(one) and has_vector(first)]
    for other in pooled:
        one, two = first.run.trace[OUT][:1], other.run.trace[OUT][:1]
        if one.shape != two.shape:
            continue
        told = f"Cosine of the vectors of A and {escape_markdown(other.letter)}: **{float(cosines(one, two)):.4f}**."
        texts = [side.reading.whole.text for side in (first, other) if isinstance(side.reading.whole, Encoding)]
        if first.name != other.name or len(texts) < 2 or first.run.trace.edits or other.run.trace.edits:
            st.markdown(told)
            continue
        address = urlencode({"model": first.name, "text": texts[0], "others": texts[1]})
        st.markdown(Markdown(f"{told} [Which pairs of tokens make it](similarity?{escape_markdown(address)})"))


def has_vector(side: Side) -> bool:
    vector = side.checkpoint.config.vector
    return vector is not None and bool(vector.pooled) and OUT in side.run.trace

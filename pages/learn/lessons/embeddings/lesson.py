"""Embeddings: a row of a table, its neighbours, analogies, a map, and one word in two contexts."""

from functools import lru_cache

import altair as alt
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go
import streamlit as st
from torch import Tensor

from engine.course.embeddings import (
    Ranking,
    analogy,
    context_similarity,
    embedding_table,
    principal_map,
    rank,
    row_by_product,
    whole_words,
)
from engine.runtime import library
from pages.controls.figures import strip
from pages.controls.learn.fields import choose_view, read_field, read_words
from pages.controls.learn.predict import choose, is_found, show_code
from pages.controls.learn.words import numeral
from pages.controls.learn.words import translate as _
from views.charts.show import show_altair, show_plotly
from views.charts.template import colors
from views.core.markdown import escape_markdown
from views.core.theme import Shade

MODEL, WORD = "everyday", "girl"
PLACES = (0, 4, 24, 99)  # in the ranking, of the options of the question
SHOWN = 10  # neighbours
MAPPED = 24  # of them
EXAMPLES = (
    ("he", "she", "his"), ("Monday", "Tuesday", "Wednesday"), ("boy", "girl", "father"), ("bird", "birds", "cow"),
    ("hot", "cold", "day"),
)  # fmt: skip
TEXTS = ("We fished from the bank", "I work in a bank")


@lru_cache(maxsize=1)
def vocabulary() -> tuple[Tensor, dict[str, int]]:
    checkpoint = library.checkpoint(MODEL)
    return embedding_table(checkpoint), whole_words(checkpoint)


def experiment() -> bool:
    table, words = vocabulary()
    word = read_field("embeddings-word", _("a word"), WORD, lambda said: read_word(words, said))
    near = rank(table[words[word]], table, words, (word,))
    options = sorted(near.words[at] for at in PLACES)
    cosines = "; ".join(f"{one} {numeral(near.cosines[near.words.index(one)], '.2f')}" for one in options)
    reason = _("The cosines are {cosines}.").format(cosines=cosines)
    question = _("Which word is nearest to “{word}” in the table of {model}?").format(word=word, model=MODEL)
    answer = options.index(near.words[0])
    if not choose(question, options, answer, key="embeddings question", why=lambda _said: reason):
        return False
    views = {
        "row": _("a row"), "near": _("neighbours"), "analogy": _("analogies"), "map": _("map"),
        "context": _("in context"),
    }  # fmt: skip
    view = choose_view("embeddings-view", views)
    if view == "row":
        draw_row(table, words, word)
    elif view == "near":
        draw_ranking(near, "embeddings near")
        show_code(rank, key="embeddings code near", vector=table[words[word]], table=table, words=words)
    elif view == "analogy":
        draw_analogy(table, words)
    elif view == "map":
        draw_map(table, words, word, near)
    else:
        draw_context()
    return is_found("embeddings question")


def read_word(words: dict[str, int], said: str) -> str:
    word = read_words(40)(said)
    if word not in words:
        sentence = _("Expected a word that is one token of {model}, and “{word}” is none; try dog, red or Monday.")
        raise ValueError(sentence.format(model=MODEL, word=word))
    return word


def draw_row(table: Tensor, words: dict[str, int], word: str) -> None:
    id = words[word]
    product, row = row_by_product(id, table), table[id]
    sentence = _("“{word}” is token {id} of {count:,}. One-hot (1 at {id}, else 0) times the table gives its row:")
    st.markdown(sentence.format(word=word, id=id, count=len(table)))
    strip(product[None], rows=[_("one-hot · table")], key="embeddings product", label=_("one-hot times the table"))
    strip(row[None], rows=[_("row {id}").format(id=id)], key="embeddings row", label=_("row of the table"))
    gap = float((product - row).abs().max())
    st.caption(_("Largest difference of the two: {gap:.0e}. A model reads the row, which is faster.").format(gap=gap))
    show_code(row_by_product, key="embeddings code row", id=id, table=table)


def draw_ranking(found: Ranking, key: str, marked: str = "") -> None:
    table = pd.DataFrame({"word": found.words[:SHOWN], "cosine": found.cosines[:SHOWN]})

    def chart(shade: Shade) -> alt.Chart:
        ink = colors(shade)
        return (
            alt.Chart(table)
            .mark_bar(color=ink["residual"])
            .encode(
                alt.X("cosine:Q", title=_("cosine")),
                alt.Y("word:N", sort=None, title=None),
                opacity=alt.condition(alt.datum.word == marked, alt.value(1), alt.value(0.65)),
            )
            .properties(height=24 * SHOWN)
        )

    show_altair(chart, key=key)


def draw_analogy(table: Tensor, words: dict[str, int]) -> None:
    sentence = _("{a} is to {b} as {c} is to …")
    named = {example: sentence.format(a=example[0], b=example[1], c=example[2]) for example in EXAMPLES}
    chosen = st.selectbox(
        _("example"), list(named), key="embeddings-example", format_func=named.__getitem__, persist_state="session"
    )  # fmt: skip
    fields = st.columns(3)
    said = []
    for number, (place, label) in enumerate(zip(fields, ("a", "b", "c"), strict=True)):
        with place:
            key = f"embeddings-{label} {' '.join(chosen)}"
            said.append(read_field(key, label, chosen[number], lambda one: read_word(words, one)))
    found = analogy(table, words, *said)
    draw_ranking(found, "embeddings analogy")
    st.caption(_("The nearest words to b − a + c, without the three. Some work, some do not: nobody taught a rule."))
    show_code(analogy, key="embeddings code analogy", table=table, words=words, a=said[0], b=said[1], c=said[2])


def draw_map(table: Tensor, words: dict[str, int], word: str, near: Ranking) -> None:
    names = [word, *near.words[:MAPPED]]
    axes = 3 if st.toggle(_("three dimensions"), key="embeddings-3d", persist_state="session") else 2
    places, shares = principal_map(table[[words[one] for one in names]], axes)

    def figure(shade: Shade) -> go.Figure:
        ink = colors(shade)
        frame = pd.DataFrame(places.tolist(), columns=["x", "y", "z"][:axes]).assign(word=names)
        draw = px.scatter_3d if axes == 3 else px.scatter
        made = draw(frame, **{axis: axis for axis in ("x", "y", "z")[:axes]}, text="word")
        made.update_traces(marker={"size": 5, "color": ink["residual"]}, textposition="top center")
        return made.update_layout(height=360, margin={"l": 0, "r": 0, "t": 0, "b": 0})

    show_plotly(figure, key=f"embeddings map {axes}")
    sentence = _("“{word}” and its {count} nearest on {axes} principal axes: {share:.0%} of the variance.")
    st.caption(sentence.format(word=word, count=MAPPED, axes=axes, share=float(shares.sum())))


def draw_context() -> None:
    left, right = st.columns(2)
    with left:
        first = read_field("embeddings-first", _("one text"), TEXTS[0], read_words(200))
    with right:
        second = read_field("embeddings-second", _("another"), TEXTS[1], read_words(200))
    word = read_field("embeddings-shared", _("a word of both"), "bank", read_words(40))
    checkpoint = library.checkpoint(MODEL)
    try:
        cosines = context_similarity(checkpoint, (first, second), word).tolist()
    except ValueError as error:
        st.caption(f":red[:material/error:] {escape_markdown(error)}")
        return
    table = pd.DataFrame({"layer": range(len(cosines)), "cosine": cosines})

    def chart(shade: Shade) -> alt.Chart:
        ink = colors(shade)["residual"]
        return (
            alt.Chart(table)
            .mark_line(point={"color": ink}, color=ink)
            .encode(
                alt.X("layer:O", title=_("after layer (0: embedding)")),
                alt.Y("cosine:Q", title=_("cosine of the two vectors"), scale=alt.Scale(domain=[min(0, *cosines), 1])),
            )
            .properties(height=200)
        )

    show_altair(chart, key="embeddings context")
    st.caption(_("One embedding, two contexts: after the first layer, a hidden state is not an embedding."))

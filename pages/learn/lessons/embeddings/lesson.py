"""Embeddings: a row of a table, its neighbours, analogies, a map, and one word in two contexts."""

from functools import lru_cache

import altair as alt
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go
import streamlit as st
from torch import Tensor
from torch.nn.functional import normalize

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
from pages.controls.figures import cover, matrix, strip
from pages.controls.learn.fields import choose_view, other_input, read_field, read_words
from pages.controls.learn.predict import choose, estimate, is_answered, is_found, point, show_code
from pages.controls.words import join_sentences, numeral
from pages.controls.words import translate as _
from views.charts.show import show_altair, show_plotly
from views.charts.template import colors
from views.core.markdown import Markdown, escape_markdown
from views.core.theme import Shade

MODEL, WORD = "everyday", "girl"
OTHERS = "dog", "Monday"
PLACES = (0, 4, 24, 99)  # in the ranking, of the options of the question
HIDDEN = (0, 24, 49, 99)  # of those of an analogy: of the ones that are drawn the first alone
TOLERANCE, SAME = 0.05, 1e-4  # of a cosine: in an answer, and of vectors that are the same but for rounding
SHOWN = 10  # neighbours
MAPPED = 24  # of them
EXAMPLES = (
    ("he", "she", "his"),
    ("Monday", "Tuesday", "Wednesday"),
    ("boy", "girl", "father"),
    ("bird", "birds", "cow"),
    ("hot", "cold", "day"),
)
TEXTS = ("We fished from the bank", "I work in a bank")
QUESTION, ANALOGY, CONTEXT = (f"embeddings {part}question" for part in ("", "analogy ", "context "))


@lru_cache(maxsize=1)
def vocabulary() -> tuple[Tensor, dict[str, int]]:
    checkpoint = library.checkpoint(MODEL)
    return embedding_table(checkpoint), whole_words(checkpoint)


def experiment() -> bool:
    above = st.container()
    table, words = vocabulary()
    word = read_field("embeddings-word", _("a word"), WORD, lambda said: read_word(words, said))
    near = rank(table[words[word]], table, words, (word,))
    options = sorted(near.words[at] for at in PLACES)
    shown = ask(word, options, near)
    with above:
        vectors = normalize(table[[words[one] for one in (word, *options)]], dim=-1)
        draw_cosines(vectors @ vectors[1:].T, word, options, covered=not (shown and is_answered(QUESTION)))
    if not shown:
        return False
    views = {
        "row": _("a row"),
        "near": _("neighbours"),
        "analogy": _("analogies"),
        "map": _("map"),
        "context": _("in context"),
    }
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
    return is_found(QUESTION)


def draw_cosines(cosines: Tensor, word: str, options: list[str], covered: bool) -> None:
    """Draws the cosines of the word and the options with each option; those of the word are covered while its nearest
    is asked for."""
    matrix(
        cover(cosines, 0) if covered else cosines, rows=[word, *options], columns=options, scale="signed",
        role="residual", digits=2, key=f"{QUESTION} picture", label=_("cosines of words"),
    )  # fmt: skip


def ask(word: str, options: list[str], near: Ranking) -> bool:
    cosines = "; ".join(f"{one} {numeral(near.cosines[near.words.index(one)], '.2f')}" for one in options)
    reason = _("The cosines are {cosines}.").format(cosines=cosines)
    answer = options.index(near.words[0])

    def why(said: tuple[int, int]) -> str:
        row, column = said
        if row:
            other_row = _("That is the row of “{other}”; asked is the covered one.")
            return join_sentences(other_row.format(other=options[row - 1]), reason)
        if column == answer:
            return reason
        at, count = near.words.index(options[column]) + 1, len(near.words)
        place = _("“{other}” has place {at} of {count} among the neighbours.")
        return join_sentences(place.format(other=options[column], at=at, count=count), reason)

    question = _("The row of “{word}” is covered. Click in it the word nearest to it in the table of {model}.")
    return point(
        question.format(word=word, model=MODEL),
        (len(options) + 1, len(options)),
        [(0, answer)],
        key=QUESTION,
        why=why,
        name=lambda at: f"{[word, *options][at[0]]} – {options[at[1]]}",
        again=other_input("embeddings-word", (WORD, *OTHERS)),
    )


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


def draw_ranking(found: Ranking, key: str, covered: bool = False) -> None:
    """The nearest words, whose first may be covered."""
    names = ["?" if covered and not at else word for at, word in enumerate(found.words[:SHOWN])]
    table = pd.DataFrame({"word": names, "cosine": found.cosines[:SHOWN]})

    def chart(shade: Shade) -> alt.Chart:
        ink = colors(shade)
        return (
            alt.Chart(table)
            .mark_bar(color=ink["residual"], opacity=0.65)
            .encode(
                alt.X("cosine:Q", title=_("cosine")),
                alt.Y("word:N", sort=None, title=None),
            )
            .properties(height=24 * SHOWN)
        )

    show_altair(chart, key=key)


def draw_analogy(table: Tensor, words: dict[str, int]) -> None:
    sentence = _("{a} is to {b} as {c} is to …")
    named = {example: sentence.format(a=example[0], b=example[1], c=example[2]) for example in EXAMPLES}
    chosen = st.selectbox(
        _("example"), list(named), key="embeddings-example", format_func=named.__getitem__, persist_state="session"
    )
    fields = st.columns(3)
    said = []
    for number, (place, label) in enumerate(zip(fields, ("a", "b", "c"), strict=True)):
        with place:
            key = f"embeddings-{label} {' '.join(chosen)}"
            said.append(read_field(key, label, chosen[number], lambda one: read_word(words, one)))
    found = analogy(table, words, *said)
    above = st.container()
    ask_analogy(found, *said)
    with above:
        draw_ranking(found, "embeddings analogy", covered=not is_answered(ANALOGY))
    st.caption(_("The nearest words to b − a + c, without the three. Some work, some do not: nobody taught a rule."))
    show_code(analogy, key="embeddings code analogy", table=table, words=words, a=said[0], b=said[1], c=said[2])


def ask_analogy(found: Ranking, a: str, b: str, c: str) -> None:
    options = sorted(found.words[at] for at in HIDDEN)
    reason = _("The nearest are {words}.").format(
        words=", ".join(
            f"{word} {numeral(cosine, '.2f')}" for word, cosine in zip(found.words[:3], found.cosines[:3], strict=True)
        )
    )
    question = _("The nearest word to {b} − {a} + {c} is covered. Which is it?")
    choose(
        question.format(a=a, b=b, c=c), options, options.index(found.words[0]), key=ANALOGY, why=lambda _said: reason
    )


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


def compare_contexts(word: str, cosines: list[float]) -> Markdown:
    least = min(range(len(cosines)), key=cosines.__getitem__)
    if cosines[least] > 1 - SAME:
        sentence = _(
            "The two vectors are the same after every layer: this model sees what stands before “{word}” and nothing "
            "after it. Let the texts differ there."
        )
    else:
        sentence = _(
            "One embedding, two contexts: after layer {layer} the cosine is {cosine:.3f}. A hidden state is not an "
            "embedding: it depends on what stands before “{word}”."
        )
    return Markdown(sentence.format(word=word, layer=least, cosine=cosines[least]))


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
    above = st.container()
    reason = _("There is one row for “{word}” in the table, whatever stands around.").format(word=word)
    question = _("The two vectors of “{word}” at layer 0, the embedding, are covered. What is their cosine?")
    estimate(question.format(word=word), cosines[0], TOLERANCE, key=CONTEXT, why=lambda _said: reason)
    covered = not is_answered(CONTEXT)
    table = pd.DataFrame({"layer": range(len(cosines)), "cosine": cosines})

    def chart(shade: Shade) -> alt.LayerChart | alt.FacetChart:
        ink = colors(shade)["residual"]
        across = alt.X("layer:O", title=_("after layer (0: embedding)"))
        line = (
            alt.Chart(table[1:] if covered else table)
            .mark_line(point={"color": ink}, color=ink)
            .encode(
                across,
                alt.Y("cosine:Q", title=_("cosine of the two vectors"), scale=alt.Scale(domain=[min(0, *cosines), 1])),
            )
        )
        asked = alt.Chart(table[:1]).mark_text(text="?" if covered else "", fontSize=20).encode(across)
        return alt.layer(line, asked).properties(height=200)

    with above:
        show_altair(chart, key="embeddings context")
    if not covered:
        st.caption(compare_contexts(word, cosines))

"""Similarity: the vector that stands for a text, how alike others are by it, and which tokens make them so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from engine.analysis.text_vectors import check_pooled, choose_vector, iterate_prompts, vectors_of
from engine.inputs.corpus import legible_texts
from engine.inputs.readers import kind
from engine.model.config import Pooling
from engine.plurals import count_words
from engine.runtime import library
from pages.controls.compare.defaults import link_texts
from pages.controls.corpus import PARAMETERS, choose_corpus
from pages.controls.model_input.model_input import Subject
from pages.controls.run_page import RunPage, state_of
from pages.controls.share.measure import take_steps
from pages.controls.state.history import READABLE
from pages.controls.state.page_state import Here
from pages.controls.state.parameter import Choice, Text
from views.core.markdown import Markdown, escape_markdown
from views.core.run_context import Run, RunContext
from views.similarity.charts import CHARTS, OF_TOKENS
from views.similarity.pairs import PAIRS, PairContext, found_cosines, pair_charts
from views.similarity.questions import (
    NEAREST,
    SIMILARITY,
    SimilarityContext,
    corpus_steps,
    found_products,
    nearest_texts,
)

MENU = {"title": "Similarity", "address": "similarity", "place": 9, "opens": True}

OTHERS = """Once there was a boy who had a big dog.
The dog ran to the park with its ball.
Tim was sad. He had lost his hat.
She gave her friend a red apple.
The sun was hot, and the flowers were dry."""
OWN = "own"
SAID: dict[Pooling, str] = {
    "mean": "the mean of the last vectors of {}",
    "first": "the last vector of the first of {}",
    "last": "the last vector of the last of {}",
    "max": "component by component the greatest of the last vectors of {}",
    "weighted_mean": "the mean of the last vectors of {}, the n-th counted n times",
    "scaled_sum": "the sum of the last vectors of {}, divided by the root of their number",
}
POOLED: dict[Pooling, str] = {
    "mean": "mean of all",
    "first": "first position",
    "last": "last position",
    "max": "greatest of all",
    "weighted_mean": "mean, later ones more",
    "scaled_sum": "sum / √n",
}
MOST_OTHERS, MOST_TEXTS = 24, 5_000  # texts in the picture, and of a file
STATE = (
    Text("others", OTHERS, READABLE, label="other texts, one a line", hidden_as="the other texts"),
    Text("other", "", READABLE, label="compared with", hidden_as="the text that is compared"),
    Choice(
        "pooled", OWN, {OWN: "as the model says"} | POOLED, label="vector", hidden_as="how a vector is made",
        help="How one vector is made of the last vectors of all tokens: as a sentence encoder's files say, or by a "
        "pooling of your choice, whose length is made 1.",
    ),
    Text("prompt", "", READABLE, label="prompt of the text", hidden_as="the prompt of the text"),
    Text("prompt_of_others", "", READABLE, label="prompt of the others", hidden_as="the prompt of the others"),
)  # fmt: skip
assert set(POOLED) == set(get_args(Pooling))


def read_lines(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))


def choose_prompts(here: Here, run: Run) -> dict[str, Any]:
    """Draws the menus of the model's prompts, where it has some; returns fields of a SimilarityContext."""
    texts = dict(iterate_prompts(run.checkpoint))
    if not run.checkpoint.sentence.prompts:
        here.leave_out("prompt", "prompt_of_others")
        return {}
    first = next(iter(texts))
    here.set_defaults(prompt=first, prompt_of_others=first)
    return {name: texts[here.menu(name, list(texts), width=165)] for name in ("prompt", "prompt_of_others")}


def choose_pooling(here: Here, run: Run) -> Pooling | None:
    """Draws how the vector is made; a model that does not say so begins with the mean, or the last of a decoder."""
    own = run.model.config.vector is not None
    causal = run.model.config.attention.mask == "causal"
    here.set_defaults(pooled=OWN if own else "last" if causal else "mean")
    chosen = here.menu("pooled", [*([OWN] if own else []), *POOLED], width=190)
    return None if chosen == OWN else chosen


def tell_vector(run: SimilarityContext) -> None:
    """Says which vector stands for the text."""
    vector, config = run.vector, run.model.config
    tokens = count_words(len(run.readings[0]), "token")
    made = ", then ".join(SAID[one] for one in vector.pooled) or "one for each of {}, its last vector"
    maps = f", {count_words(len(vector.maps), 'map')}" if vector.maps else ""
    unit = ", divided by its length" if vector.unit else ""
    says = "as its files say" if run.pooling is None else "as chosen here"
    st.markdown(
        f"The text’s vector, {says}: {escape_markdown(made.format(tokens))}{escape_markdown(maps)}{unit}; "
        f"{vector.width(config.d_model):,} numbers."
    )


def tell_pair(run: SimilarityContext) -> None:
    """Says how alike the two texts are, and what the pairs of tokens make of it."""
    named = escape_markdown(run.other)
    if not run.vector.pooled:
        best = found_products(run).amax(1)
        st.markdown(
            f"The score with “{named}” is **{float(best.sum()):.4f}**: the sum over this text’s tokens of the best "
            "product with a token of the other (late interaction)."
        )
        return
    first, second = (vectors_of(run.model, trace, run.pooling)[0].double() for trace in (run.first, run.second))
    cosine = float(first @ second / (first.norm() * second.norm()))
    says = f"The cosine with “{named}” is **{cosine:.4f}**"
    if not run.vector.is_linear:
        st.markdown(f"{says}.")
        return
    found = run.cosine
    count = count_words(int(found.pairs.count_nonzero()), "pair")
    rest = f", and {found.rest:+.4f} of biases" if any(one.bias for one in run.vector.maps) else ""
    st.markdown(f"{says}: the sum of {escape_markdown(count)} of tokens, {float(found.pairs.sum()):.4f}{rest}.")


def tell_texts(run: PairContext) -> None:
    """Says how well texts go with the picture, and what makes probabilities of cosines."""
    found, pair = found_cosines(run), run.pair
    shares = pair.probabilities(found)
    best, at = int(found.argmax()), run.texts.index(run.text)
    how = "the logistic function of each" if pair.each else "softmax over these texts"
    shift = f" {pair.bias:+.4f}" if pair.bias else ""
    st.markdown(
        f"The picture goes best with “{escape_markdown(run.texts[best])}”: a cosine of **{float(found[best]):.4f}**, "
        f"and {float(shares[best]):.1%} by {how} (cosine × {pair.scale:.4f}{shift})."
    )
    if at != best:
        st.markdown(f"With “{escape_markdown(run.text)}” it is {float(found[at]):.4f}, and {float(shares[at]):.1%}.")
    st.caption("What a patch or a word carries is measured: the cosine, less that where no other position sees it.")


def link_compare(run: SimilarityContext) -> None:
    """Link to both runs side by side, where their texts are read without prompts."""
    if not (run.prompt or run.prompt_of_others):
        address = escape_markdown(urlencode(link_texts(run.model_name, run.text, run.other)))
        st.markdown(Markdown(f"[Compare both runs](compare?{address})"))


class Similarity(RunPage):
    title, registry, charts = "Similarity", SIMILARITY, CHARTS
    state = state_of("similarity", *STATE, *PARAMETERS)
    linked = (
        "attention",
        "what if",
        "others",
        "other",
        "pooled",
        "prompt",
        "prompt_of_others",
        "corpus",
        "text_column",
    )
    refused = ""  # why there is no vector

    def extend(self, here: Here, subject: Subject, run: Run) -> Run:
        assert isinstance(run, RunContext)
        try:
            if subject.checkpoint.pair is not None and subject.checkpoint.pair.reads == "picture":
                return self.choose_texts(here, subject, run)
            if kind(subject.checkpoint) not in ("text", "pair"):
                raise ValueError(
                    "Similarity compares texts, and this model reads something else; choose another model."
                )
            choose_vector(run.model.config, "mean")
            return self.choose(here, subject, run)
        except ValueError as error:
            self.refused = str(error)
            return run

    def choose(self, here: Here, subject: Subject, run: RunContext) -> Run:
        others = read_lines(here.area("others", height=140))[:MOST_OTHERS]
        if not others:
            raise ValueError("Write at least one other text, on a line of its own.")
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            other = here.menu("other", others, width=330)
            pooling, prompts = choose_pooling(here, run), choose_prompts(here, run)
        corpus, _ = choose_corpus(here, "No file")
        texts = () if corpus is None else tuple(legible_texts(subject.checkpoint, corpus, MOST_TEXTS))
        if pooling is None and not choose_vector(run.model.config).pooled:
            self.charts = OF_TOKENS
        return SimilarityContext(
            **vars(run), text=str(subject.said("text")), other=other, others=others, pooling=pooling, corpus=texts,
            corpus_name="" if corpus is None else corpus.digest, **prompts,
        )  # fmt: skip

    def choose_texts(self, here: Here, subject: Subject, run: RunContext) -> Run:
        """Chooses the texts that the other tower reads beside the picture."""
        name = library.other_tower(subject.name)
        try:
            other = library.checkpoint(name)
        except OSError as error:
            raise ValueError(f"{name} does not open: {error}") from None
        texts = read_lines(here.area("others", height=140))[:MOST_OTHERS]
        if not texts:
            raise ValueError("Write at least one text, on a line of its own.")
        text = here.menu("other", texts, width=330)
        assert subject.reading.picture is not None
        self.registry, self.charts = PAIRS, pair_charts(subject.reading.picture)
        return PairContext(**vars(run), other=other, texts_name=name, texts=texts, text=text)

    def check(self, run: Run) -> None:
        if not isinstance(run, SimilarityContext | PairContext):
            raise ValueError(self.refused)

    def draw_findings(self, run: Run, chosen: Mapping[str, Any]) -> None:
        if isinstance(run, PairContext):
            tell_texts(run)
            return
        assert isinstance(run, SimilarityContext)
        tell_vector(run)
        tell_pair(run)
        link_compare(run)
        if run.corpus:
            self.draw_nearest(run)

    def draw_nearest(self, run: SimilarityContext) -> None:
        check_pooled(run.vector)
        take_steps("vectors of a file", run.digest, corpus_steps(run))
        found = nearest_texts(run)
        of = escape_markdown(count_words(len(run.corpus), "text"))
        st.markdown(f"**The {min(NEAREST, len(found))} nearest of {of} of your file**")
        st.dataframe(pd.DataFrame(found, columns=["cosine", "text"]), hide_index=True)


Similarity().show()

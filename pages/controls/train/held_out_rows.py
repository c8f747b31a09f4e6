"""The rows that a run holds out: what its model says of each, and the wrong ones with a way to Walkthrough."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, LiteralString
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from engine.checkpoints import Checkpoint, load
from engine.checkpoints.run_steps import name_step
from engine.inputs.readers import kind
from engine.plurals import count_words
from engine.training import Recipe
from engine.training.measures.classification import classify, macro_f1, measure_classification
from engine.training.measures.span import is_exact, measure_span, predict_answer, score_answers
from engine.training.measures.tagging import measure_tags, predict_tags, score_tags
from engine.training.objectives import find_objective
from engine.training.recipe.recipe_file import read_recipe
from engine.training.run.comparison import open_held_out
from engine.training.sources.answers import Answers
from engine.training.sources.label_texts import LabelledTexts
from engine.training.sources.tag_texts import TaggedTexts
from views.adapt.charts import draw_confusion
from views.charts.show import show_altair
from views.core.markdown import escape_markdown

ROWS = 128  # that are looked at
READING = "Reading what was held out …"


def draw_held_out(recipe: Recipe, file: Path, weights: Path, name: str) -> None:
    """Draws them for the run `name`, "" for the recorded one, whose recipe is `file`, where a model says one thing of a
    row: its class, the tags of its words, or where in it an answer stands."""
    draw = {measure_classification: draw_classes, measure_tags: draw_tags, measure_span: draw_answers}
    measure = find_objective(recipe.objective.kind).measure
    if measure in draw and not recipe.data.table.pictures:
        draw[measure](str(file), weights, name)


@st.cache_resource(max_entries=4, show_spinner=False)
def open_result(weights: Path, stamp: int) -> Checkpoint:
    """Checkpoint that a run has made; `stamp` changes with its weights."""
    return load(weights)


# --- Classes ---


def draw_classes(recipe: str, weights: Path, name: str) -> None:
    table, f1 = told_apart(recipe, weights, weights.stat().st_mtime_ns)
    wrong = table[table["label"] != table["predicted"]]
    right = 1 - len(wrong) / len(table)
    st.markdown(f"**Held-out rows**: {right:.1%} of {len(table):,} have their label, macro F1 {f1:.4f}")
    draw_wrong(table, "rows", wrong, "None of them was taken for another class.", weights, name)


@st.cache_data(max_entries=16, show_spinner=READING)
def told_apart(recipe: str, weights: Path, stamp: int) -> tuple[pd.DataFrame, float]:
    """Table of the held-out rows: text, pair where there are two texts, label, predicted, probability; and the macro
    F1."""
    source, model = open_held_out(read_recipe(Path(recipe))), open_result(weights, stamp).model
    assert isinstance(source, LabelledTexts)
    rows = [
        (one.text, one.pair, source.labels[one.label], source.labels[int(shares.argmax())], float(shares.max()))
        for one, shares in zip(source.held_out_rows(ROWS), classify(model, source, ROWS), strict=True)
    ]
    table = pd.DataFrame(rows, columns=["text", "pair", "label", "predicted", "probability"])
    f1 = macro_f1(table["label"].tolist(), table["predicted"].tolist())
    return table if table["pair"].any() else table.drop(columns="pair"), f1


# --- Tags ---


def draw_tags(recipe: str, weights: Path, name: str) -> None:
    words, texts, scores = tagged_rows(recipe, weights, weights.stat().st_mtime_ns)
    said = (
        f"**Held-out rows**: {scores['test_accuracy']:.1%} of {count_words(scores['words'], 'word')} in "
        f"{count_words(scores['texts'], 'text')} "
        "have their tag"
    )
    by_tag = scores.get("f1_by_tag")
    if by_tag is None:  # they are BIO
        by_tag = scores["f1_by_kind"]
        precision, recall, f1 = (scores[each] for each in ("precision", "recall", "f1"))
        said += f"; of whole names precision {precision:.4f}, recall {recall:.4f}, F1 {f1:.4f}"
    st.markdown(said)
    st.caption("F1 of each: " + escape_markdown(", ".join(f"{tag} {f1:.4f}" for tag, f1 in by_tag.items())))
    wrong = texts[texts["tags"] != texts["predicted"]]
    draw_wrong(words, "words", wrong, "None of them has a word with another tag.", weights, name)


@st.cache_data(max_entries=16, show_spinner=READING)
def tagged_rows(recipe: str, weights: Path, stamp: int) -> tuple[pd.DataFrame, pd.DataFrame, Mapping[str, Any]]:
    """Table of the words of the held-out rows: label, predicted, "?" where a word has no token; table of their texts:
    text, tags, predicted; and the scores."""
    source, model = open_held_out(read_recipe(Path(recipe))), open_result(weights, stamp).model
    assert isinstance(source, TaggedTexts)
    asked = source.held_out_rows(ROWS)
    given = predict_tags(model, source, asked)
    shown = [[tag or "?" for tag in tags] for tags in given]
    words = [pair for one, tags in zip(asked, shown, strict=True) for pair in zip(one.tags, tags, strict=True)]
    texts = [(one.text, " ".join(one.tags), " ".join(tags)) for one, tags in zip(asked, shown, strict=True)]
    return (
        pd.DataFrame(words, columns=["label", "predicted"]),
        pd.DataFrame(texts, columns=["text", "tags", "predicted"]),
        score_tags(source.labels, asked, given),
    )


# --- Answers ---


def draw_answers(recipe: str, weights: Path, name: str) -> None:
    table, scores = answered_rows(recipe, weights, weights.stat().st_mtime_ns)
    st.markdown(
        f"**Held-out rows**: {scores['exact']:.1%} of {count_words(scores['questions'], 'question')} have their very "
        f"answer (exact match), F1 of the words {scores['f1']:.4f}"
    )
    exact = [is_exact(*pair) for pair in zip(table["answer"], table["predicted"], strict=True)]
    wrong = table[[not one for one in exact]]
    show_wrong(wrong, "None of them has another answer.", weights, name, "question", "context")


@st.cache_data(max_entries=16, show_spinner=READING)
def answered_rows(recipe: str, weights: Path, stamp: int) -> tuple[pd.DataFrame, Mapping[str, Any]]:
    """Table of the held-out rows: question, context, answer, predicted; and the scores."""
    source, model = open_held_out(read_recipe(Path(recipe))), open_result(weights, stamp).model
    assert isinstance(source, Answers)
    asked = source.held_out_rows(ROWS)
    given = [predict_answer(model, source, one) for one in asked]
    rows = [(one.question, one.context, one.answer, ours) for one, ours in zip(asked, given, strict=True)]
    return pd.DataFrame(rows, columns=["question", "context", "answer", "predicted"]), score_answers(asked, given)


# --- The wrong ones ---


def draw_wrong(
    table: pd.DataFrame, counted: str, wrong: pd.DataFrame, none: LiteralString, weights: Path, name: str
) -> None:
    """The matrix of `label` and `predicted` of a table, and the wrong rows beside it."""
    left, right = st.columns([1, 2], gap="medium")
    with left:
        show_altair(partial(draw_confusion, table, counted=counted), key="confusion")
    with right:
        show_wrong(wrong, none, weights, name)


def show_wrong(
    wrong: pd.DataFrame, none: LiteralString, weights: Path, name: str, first: str = "text", second: str = "pair"
) -> None:
    """`first` and `second` are the columns of what the model reads; `none` is said where no row is wrong."""
    if wrong.empty:
        st.caption(none)
        return
    if name:
        checkpoint = open_result(weights, weights.stat().st_mtime_ns)
        pairs = wrong[second] if second in wrong else [""] * len(wrong)
        links = [walkthrough_link(checkpoint, name, *row) for row in zip(wrong[first], pairs, strict=True)]
        if any(links):
            wrong = wrong.assign(walkthrough=links)
        else:
            st.caption("Rows of two texts cannot be opened in Walkthrough.")
    st.dataframe(wrong, hide_index=True, key="wrong rows", column_config={
        "probability": st.column_config.NumberColumn(format="percent", help="of the class that was predicted"),
        "walkthrough": st.column_config.LinkColumn(display_text="open"),
    })  # fmt: skip


def walkthrough_link(checkpoint: Checkpoint, name: str, text: str, pair: str = "") -> str | None:
    """Address of Walkthrough on a row, read there by the same tokens as here; None where it has no field for two texts
    and their tokens are not those of one."""
    query = {"model": name_step(name), "text": text}
    if pair and kind(checkpoint) in ("pair", "question"):
        query["second"] = pair
    elif pair and checkpoint.tokenizer is not None:
        whole = checkpoint.tokenizer.encode(text, pair)
        if checkpoint.tokenizer.encode(whole.text).ids != whole.ids:
            return None
        query["text"] = whole.text
    return f"/walkthrough?{urlencode(query)}"

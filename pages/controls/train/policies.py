"""What a policy became: its curves, its answers before and now, and where its next token differs from the base's."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st
import torch

from engine.checkpoints import Checkpoint
from engine.inputs import readers
from engine.runtime import library
from engine.tokenizers import Encoding
from engine.training import Recipe
from engine.training.objectives import find_objective
from engine.training.policy.kl import kl_of
from engine.training.recipe.recipe_file import read_recipe
from engine.training.run.status import ACTIVE, read_status
from pages.controls.train.held_out_rows import open_result
from pages.controls.train.run_table import PACE
from pages.controls.train.session import Session, may_read, told_damage
from views.adapt.preferences import WIDTH, curve_table, draw_curve, draw_kl, draw_next_tokens
from views.charts.show import show_altair
from views.core.markdown import escape_markdown

SHOWN = 10  # next tokens
LONGEST = 256  # tokens of a text
TEXT = "One day, Tom lost his red ball. He was sad. Then"


def draw_policy(session: Session, name: str) -> None:
    """Draws it for the run `name`, "" for the recorded one, and follows that as long as it trains."""
    try:
        run = session.reader(name).live.run
        recipe, status = read_recipe(run.recipe), read_status(run.status)
    except (ValueError, OSError):
        return  # the view says why there is no such run
    if not find_objective(recipe.objective.kind).moves_policy:
        return

    @st.fragment(run_every=PACE if status is not None and status.state in ACTIVE else None)
    def follow() -> None:
        with told_damage():
            curves = curve_table(run.read_metrics())
            if not curves.empty:
                with st.container(horizontal=True, gap="small"):
                    for measure, curve in curves.groupby("measure", sort=False):
                        with st.container(width=WIDTH):
                            show_altair(partial(draw_curve, curve), key=f"policy {measure}")
        with told_damage():
            draw_samples(run.read_samples(), may_read(session, name, recipe))

    follow()


def draw_samples(samples: list[dict[str, Any]], may_read: bool) -> None:
    if samples and not may_read:
        st.caption("Only the owner of these prompts sees the answers.")
    elif samples:
        st.markdown(f"**Answers to held-out prompts** at step {samples[0]['step']:,} and {samples[-1]['step']:,}")
        draw_texts(sample_table(samples), "prompt")


def draw_texts(table: pd.DataFrame, first: str) -> None:
    """A table whose texts can be read whole, with the column `first` as the names of its rows."""
    written = table.map(lambda cell: escape_markdown(cell) if isinstance(cell, str) else cell)
    st.table(written.set_index(first).style.format(precision=3))


def sample_table(samples: list[dict[str, object]]) -> pd.DataFrame:
    """The answers of the first step and of the newest one to the same prompts, each with its scores; `samples` are
    those of `RunFolder.read_samples`."""
    first, last = (pd.DataFrame(samples[at]["samples"]) for at in (0, -1))
    names = [name for name in ("answer", "reward", "kl", "watched", "length") if name in first]
    columns = {f"{name} {when}": of[name] for name in names for when, of in (("before", first), ("now", last))}
    return pd.DataFrame({"prompt": first["prompt"], **columns})


# --- Next tokens ---


def draw_shift(recipe: Recipe, weights: Path) -> None:
    """Draws what the base and the result predict after each token of a text, where the run trains a policy."""
    if not find_objective(recipe.objective.kind).moves_policy:
        return
    st.markdown("**How far the next token moved**, after each token of a text")
    text = st.text_input("text", TEXT, key="shifted text")
    try:
        table, tokens = shift(recipe.base, library.version(recipe.base), weights, weights.stat().st_mtime_ns, text)
    except ValueError as error:
        st.warning(escape_markdown(str(error)))
        return
    show_altair(partial(draw_kl, table), key="kl by token")
    places = list(table["position"])
    at = st.select_slider(
        "after token",
        places,
        places[-1],
        key=f"shifted place {len(places)}",
        format_func=lambda place: escape_markdown(f"{place} {table['token'][place - 1]}"),
    )
    show_altair(partial(draw_next_tokens, tokens[tokens["position"] == at]), key="next tokens")


def encode(checkpoint: Checkpoint, text: str) -> Encoding:
    """Raises ValueError where the text has no token or too many."""
    assert checkpoint.tokenizer is not None
    encoding = readers.tokens(checkpoint, text)
    most = min(LONGEST, checkpoint.config.context)
    if not 1 <= len(encoding.ids) <= most:
        raise ValueError(f"the text must have 1 to {most} tokens, got {len(encoding.ids):,}; change it.")
    return encoding


@st.cache_data(max_entries=64, show_spinner="Comparing the next tokens …")
@torch.no_grad()
def shift(
    base: str, version: tuple[object, ...], weights: Path, stamp: int, text: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """KL(result || base) in nats after each token: position (from 1), token, kl. And the probabilities of what is most
    probable for one of the two: position, token, of, probability. Raises ValueError where the text has no token or too
    many."""
    ours, theirs = open_result(weights, stamp), library.checkpoint(base)
    assert theirs.tokenizer is not None
    encoding = encode(theirs, text)
    ids = torch.tensor([encoding.ids])
    logits = {"base": theirs.model(ids).float(), "result": ours.model(ids).float()}
    kl = kl_of(logits["result"], logits["base"])[0].tolist()
    places = range(1, len(kl) + 1)
    table = pd.DataFrame({"position": places, "token": encoding.pieces, "kl": kl})
    probabilities = {name: each.softmax(-1)[0] for name, each in logits.items()}
    rows = [
        (place, theirs.tokenizer.piece(id), name, float(each[place - 1, id]))
        for place in places
        for id in dict.fromkeys(
            id for each in probabilities.values() for id in each[place - 1].topk(SHOWN).indices.tolist()
        )
        for name, each in probabilities.items()
    ]
    return table, pd.DataFrame(rows, columns=["position", "token", "of", "probability"])

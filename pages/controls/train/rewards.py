"""What a reward model makes of held-out pairs, and of a text of the reader's own."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pandas as pd
import streamlit as st
import torch

from engine.training.objectives import find_objective
from engine.training.objectives.kinds.reward import score_rewards
from engine.training.policy.judge import rewards_of, running_rewards
from engine.training.recipe.recipe_file import read_recipe
from engine.training.run.comparison import open_held_out
from engine.training.sources.preferences import PreferredAnswers
from pages.controls.train.held_out_rows import open_result
from pages.controls.train.policies import draw_texts, encode
from pages.controls.train.run_state import newest_weights
from pages.controls.train.session import Session, may_read
from views.adapt.preferences import draw_painted, painted_table
from views.charts.show import show_altair
from views.core.markdown import escape_markdown

WORST = 8  # rows of the table
TEXT = "One day, Tom lost his red ball. He was sad. Then his friend found it, and Tom smiled. They were happy."


def draw_reward(session: Session, name: str) -> None:
    """Draws it for the run `name`, "" for the recorded one, once that is a reward model with weights."""
    try:
        run = session.reader(name).live.run
        recipe = read_recipe(run.recipe)
        weights = newest_weights(run)
        if not find_objective(recipe.objective.kind).makes_judge or weights is None:
            return
        stamp = weights.stat().st_mtime_ns
        table, scores = judge_held_out(run.recipe, weights, stamp)
    except (ValueError, OSError) as error:
        st.warning(escape_markdown(str(error)))
        return
    st.markdown(
        f"**Held-out pairs**: in {scores['accuracy']:.1%} of {len(table):,} the chosen answer has the larger reward, "
        f"by {scores['margin']:+.4f} in the mean"
    )
    if not may_read(session, name, recipe):
        st.caption("Only the owner of these pairs sees them.")
    elif (worst := worst_pairs(table)).empty:
        st.caption("No rejected answer has a larger reward than the chosen one.")
    else:
        st.markdown("Pairs it gets most wrong:")
        draw_texts(worst, "prompt")
    text = st.text_area("a text of your own", TEXT, key="judged text", height=80)
    try:
        painted = paint(weights, stamp, text)
    except ValueError as error:
        st.warning(escape_markdown(str(error)))
        return
    show_altair(partial(draw_painted, painted), key="painted text")
    st.caption("Each token has the reward of the text that ends with it.")


@st.cache_data(max_entries=16, show_spinner="Judging what was held out …")
def judge_held_out(file: Path, weights: Path, stamp: int) -> tuple[pd.DataFrame, dict[str, float]]:
    """Table of the held-out pairs: prompt, chosen, rejected, reward of chosen, reward of rejected; and their accuracy
    and margin."""
    source = open_held_out(read_recipe(file))
    assert isinstance(source, PreferredAnswers)
    fit, model = source.shelves["held_out"].fit.tolist(), open_result(weights, stamp).model
    pairs = list(source.task_examples("held_out"))
    size = source.recipe.batch.size
    parts = [source.answered_pairs("held_out", fit[begin : begin + size]) for begin in range(0, len(fit), size)]
    rewards = torch.cat(
        [rewards_of(model, part.ids.flatten(0, 1), part.real.flatten(0, 1)).view(-1, 2) for part in parts]
    )
    chosen, rejected = rewards.unbind(1)
    rows = [(one.prompt, one.chosen, one.rejected) for one in (pairs[index] for index in fit)]
    table = pd.DataFrame(rows, columns=["prompt", "chosen", "rejected"]).assign(
        **{"reward of chosen": chosen.numpy(), "reward of rejected": rejected.numpy()}
    )
    return table, {name: float(value) for name, value in score_rewards(chosen, rejected).items()}


def worst_pairs(table: pd.DataFrame) -> pd.DataFrame:
    """The rows in which the rejected answer has more, the largest difference first."""
    beyond = table["reward of rejected"] - table["reward of chosen"]
    return table.loc[beyond[beyond > 0].sort_values(ascending=False).index[:WORST]]


@st.cache_data(max_entries=64, show_spinner="Reading the text …")
def paint(weights: Path, stamp: int, text: str) -> pd.DataFrame:
    """`painted_table` of a text. Raises ValueError where it has no token or too many."""
    checkpoint = open_result(weights, stamp)
    encoding = encode(checkpoint, text)
    rewards = running_rewards(checkpoint.model, torch.tensor(encoding.ids))
    return painted_table(encoding.pieces, rewards.tolist())

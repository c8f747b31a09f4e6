"""A small picture for each chapter of the course, of the example text in the first model, or of a recorded training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import altair as alt
import pandas as pd
import streamlit as st
import torch

from engine.course.block import four_lines
from engine.inputs.readers import tokens
from engine.json_text import parse_json
from engine.runtime import library
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding
from pages.controls import figures
from pages.controls.model_input.model_input import EXAMPLES
from pages.controls.words import CATALOGUE
from pages.controls.words import translate as _
from server.settings import FIRST_MODEL
from views.charts.show import show_altair
from views.charts.template import colors
from views.core.theme import Shade

LOOK = EXAMPLES[FIRST_MODEL]["look"]  # at which block and head
SHOWN = 48  # numbers of a vector
WIDE, HIGH = 260, 96  # CSS pixels: of a picture, and of the curve


def read_example() -> tuple[Encoding, Trace]:
    encoding = tokens(library.checkpoint(FIRST_MODEL), str(EXAMPLES[FIRST_MODEL]["text"]))
    return encoding, library.traces.trace(FIRST_MODEL, encoding)


def draw_pieces() -> None:
    encoding, _trace = read_example()
    figures.tokens(encoding.pieces, key="chapter tokens")
    st.caption(_("a text as the model gets it: in tokens"))


def draw_pattern() -> None:
    _encoding, trace = read_example()
    pattern = trace[f"blocks.{LOOK['layer']}.attn.pattern"][0, LOOK["head"]]
    figures.matrix(pattern, key="chapter pattern")
    said = _("what each token looks at: block {block}, head {head}")
    st.caption(said.format(block=LOOK["layer"] + 1, head=LOOK["head"] + 1))


def draw_block() -> None:
    encoding, _trace = read_example()
    lines = four_lines(FIRST_MODEL, encoding.ids, LOOK["layer"])
    figures.strip(torch.stack([line[-1, :SHOWN] for line in lines]), key="chapter block")
    st.caption(_("one token through the block"))


def draw_curve() -> None:
    recorded = parse_json((CATALOGUE / "recorded" / "stack.json").read_text(encoding="utf-8"))
    losses = recorded["with"]["losses"]
    said = _("a recorded training: the loss falls from {first:.3g} to {last:.1g} nats")
    show_altair(partial(curve, losses), key="chapter curve")
    st.caption(said.format(first=losses[0], last=losses[-1]))


def curve(losses: Sequence[float], shade: Shade) -> alt.Chart:
    """Line of the losses by step, without axes."""
    table = pd.DataFrame({"step": range(len(losses)), "loss": losses})
    across, up = alt.X("step:Q", axis=None), alt.Y("loss:Q", axis=None, scale=alt.Scale(zero=False))
    ink = colors(shade)["residual"]
    return alt.Chart(table, height=HIGH).mark_line(color=ink).encode(across, up)


def draw_heads() -> None:
    _encoding, trace = read_example()
    layers = library.checkpoint(FIRST_MODEL).config.layers
    patterns = [trace[f"blocks.{layer}.attn.pattern"][0] for layer in range(layers)]
    figures.heads(torch.stack(patterns), key="chapter heads")
    st.caption(_("the heads of {model}, on one text").format(model=FIRST_MODEL))


# In the order of the chapters; each says below it what it shows.
PICTURES: tuple[Callable[[], None], ...] = (draw_pieces, draw_pattern, draw_block, draw_curve, draw_heads)


def draw_chapter(number: int) -> None:
    with st.container(key=f"chapter-{number}", width=WIDE):
        PICTURES[number]()

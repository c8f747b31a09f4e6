"""What a checkpoint is: its facts and its account, its architecture drawn, and how it compares with transformers."""

from __future__ import annotations

import tomllib
from functools import partial
from math import isnan
from urllib.parse import urlencode

import streamlit as st
import torch

from engine.analysis.parity import Parity, available, parity
from engine.analysis.switches import sizes
from engine.budget import budget
from engine.checkpoints import Checkpoint
from engine.checkpoints.facts import read_facts
from engine.inputs.readers import (
    GAP,
    Reading,
    kind,
    own_words,
    pictures,
    read_infill,
    read_picture,
    read_pixels,
    read_sound,
    read_text,
    read_translation,
    readable,
)
from engine.inputs.sound import Waveform
from engine.places import ASSETS
from engine.runtime import library
from pages.controls.checkpoint.load_errors import warn
from pages.controls.checkpoint.open_form import choose_device
from pages.controls.checkpoint.tensors import tensor_table
from pages.controls.share.export import Export, draw_page
from pages.controls.share.links import address_now
from pages.controls.state.session import SessionValue
from views.architecture.codegen import part_table, size_lines
from views.charts.show import charts_wait, release_charts
from views.checkpoint import checkpoint as drawn
from views.core.component import view
from views.core.markdown import Markdown, escape_markdown
from views.core.shown_tables import TABLES, ShownTables

TEXTS = tomllib.loads((ASSETS / "texts" / "examples.toml").read_text())
PARITIES = SessionValue[dict[str, tuple[Parity, str]]]("parities", dict)  # by the checkpoint's name
CONTROLS = ("model", "numbers", "own files", "actions")  # that a link can hide

architecture = view("checkpoint", events=("drawn",))


def card_section(name: str, checkpoint: Checkpoint) -> None:
    left, right = st.columns([1, 2], gap="large")
    config = checkpoint.config
    with left:
        facts_column(name, checkpoint)
    tables = ShownTables(
        f"{name} as a whole",
        name,
        {"parameters": lambda: part_table(name, config), "tensors": lambda: tensor_table(name, checkpoint)},
        lambda: size_lines(name, config, {}, sizes(config)),
    )
    export = Export("Open a model", "checkpoint", tables, "", address_now(model=name), CONTROLS, tables.queries)
    payload = drawn.card(name, checkpoint, {"take": export.header, "reports": charts_wait()})
    with right:
        draw_page(export, payload, partial(architecture, key="card", on={"drawn": release_charts}), (TABLES, tables))


def tell_towers(name: str, checkpoint: Checkpoint) -> None:
    """Says what the other tower is called, of a folder of two, with a link to it and to both side by side."""
    if checkpoint.pair is None or not library.knows(library.other_tower(name)):
        return
    other = library.other_tower(name)
    reads, others = ("pictures", "texts") if checkpoint.pair.reads == "picture" else ("texts", "pictures")
    pictures = name if reads == "pictures" else other
    to_other, both = (escape_markdown(urlencode({"model": one})) for one in (other, pictures))
    st.markdown(
        Markdown(
            f"This is the tower of {reads} of two; that of {others} is "
            f"[{escape_markdown(other)}](checkpoint?{to_other}). [Texts beside a picture](similarity?{both})"
        )
    )


def facts_column(name: str, checkpoint: Checkpoint) -> None:
    try:
        found, damage = read_facts(library.checkpoint_place(name), checkpoint.card), ""
    except ValueError as error:  # a run opens by its recipe, whatever stands in the config beside it
        found, damage = None, str(error)
    stem, _, rest = name.partition("~")  # what follows tells apart what people opened
    with st.container(key="facts", gap="small"):
        st.markdown(f"## {escape_markdown(stem)}" + (f" :gray[\\~{escape_markdown(rest)}]" if rest else ""))
        if damage:
            st.warning(escape_markdown(damage))
        if found and found.says:
            st.caption(escape_markdown(found.says))
        rows = [*drawn.facts(checkpoint, found), *drawn.config_facts(checkpoint.config)]
        table = {escape_markdown(label): escape_markdown(value) for label, value in rows}
        st.table(table, border="horizontal", hide_header=True)
        choose_device(name, checkpoint)
        with st.container(horizontal=True):
            if found and found.files:
                with st.popover("Files", type="tertiary"):
                    st.markdown(drawn.sizes(found.files))
            if measured := drawn.measures(checkpoint.card):
                with st.popover("Measured", type="tertiary"):
                    told = {escape_markdown(label): escape_markdown(value) for label, value in measured}
                    st.table(told, border="horizontal", hide_header=True)
        whole, sentence, counts = drawn.account(checkpoint.report)
        (st.success if whole else st.warning)(f"**{sentence}**  \n{counts}", icon=":material/check:" if whole else None)
        tell_towers(name, checkpoint)
        if checkpoint.adapters:
            st.caption("Adapters that the weights hold; What if gives them another strength, or switches them off")
            st.dataframe(drawn.adapter_frame(checkpoint.adapters), hide_index=True, key="adapters")
        for note in checkpoint.report.notes:
            st.info(escape_markdown(note))
        if available():
            parity_badge(name, checkpoint)


@st.fragment
def parity_badge(name: str, checkpoint: Checkpoint) -> None:
    """A button that compares with transformers, and then what came of it, kept for the session."""
    kept = PARITIES.get()
    if name not in kept:
        if not st.button(
            "Compare with transformers",
            key="compare",
            help="Runs the same input through transformers and shows the largest differences of logits and attention.",
        ):
            return
        try:
            with st.spinner("Both models are running …"):
                kept[name] = compare(name, checkpoint)
        except ValueError as error:
            warn(str(error))
            return
        st.rerun(scope="fragment")
    found, read = kept[name]
    with st.container(horizontal=True, key="parity"):
        st.metric("max |Δlogit|", f"{found.logits:.1e}", width="content")
        if not isnan(found.patterns):
            st.metric("max |Δattention|", f"{found.patterns:.1e}", width="content")
    for sentence in drawn.parity_sentences(found, read):
        st.caption(escape_markdown(sentence))


def compare(name: str, checkpoint: Checkpoint) -> tuple[Parity, str]:
    """Compares the checkpoint with transformers; returns the differences and what both read. Raises ValueError where it
    cannot be told."""
    reading, read = sample(name, checkpoint)
    opening = library.parse_name(name)
    changed = opening.config or opening.rename
    return parity(checkpoint, None if changed else library.checkpoint_place(name).weights, reading), read


def sample(name: str, checkpoint: Checkpoint) -> tuple[Reading, str]:
    """Returns what both models are given to read, and its name."""
    config = checkpoint.config
    limit = min(budget.max_tokens, config.context)
    text = TEXTS.get(name, TEXTS["everyday"]).get("text", "")
    if not readable(checkpoint, text):
        text = own_words(checkpoint)
    match kind(checkpoint):
        case "picture":
            return read_picture(checkpoint, pictures()[0][0]), "a picture of a digit"
        case "pixels":
            return read_pixels(checkpoint, pictures()[0][0], 32, limit, {"temperature": 1.0}, 0), "a picture of a digit"
        case "sound":
            at = torch.arange(16_000) / 16_000
            heard = Waveform(0.5 * torch.sin(2 * torch.pi * 440 * at), 16_000)
            return read_sound(checkpoint, heard, "", min(limit, 24)), "a tone of 440 Hz, of one second"
        case "translation":
            found = read_translation(checkpoint, text, "", min(limit, 24))
        case "infill":
            found = read_infill(checkpoint, text if GAP in text else f"{text} {GAP}", "", limit)
        case _:
            found = read_text(checkpoint, text, limit)
    return found, f"“{text}”"

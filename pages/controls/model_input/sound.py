"""The sound that a model hears, from a file or the microphone, and what the pages draw of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from typing import Literal

import pandas as pd
import streamlit as st

from engine.analysis.arithmetic import Number, Span, explain
from engine.budget import budget
from engine.checkpoints import Checkpoint
from engine.edits import Edit
from engine.inputs.readers import Reading, read_sound
from engine.inputs.sound import SoundProcessor, Waveform, open_sound
from engine.model.config import ModelConfig
from engine.plurals import count_words
from engine.runtime.run import run
from engine.runtime.trace import Trace
from pages.controls.state.session import find_record, widget_value
from views.charts.show import show_plotly
from views.sound.charts import Moments, draw_look, draw_mel

FILE, RECORDED = "sound file", "recording"  # keys of the two places of a sound
KEPT = ("logits", "encoder.embed.*", "encoder.blocks.0.resid_pre")
LOOKS = {
    "tokens to the sound": "decoder.blocks.{}.cross_attn.pattern",
    "the sound to itself": "encoder.blocks.{}.attn.pattern",
    "tokens to tokens": "decoder.blocks.{}.attn.pattern",
}
SHOWN = 300  # moments of a sound, queries and keys, that stand in one picture
STAGES = {
    "log-mel frames": "encoder.embed.mel",
    "first convolution": "encoder.embed.conv1.pre",
    "first convolution, after gelu": "encoder.embed.conv1.post",
    "second convolution": "encoder.embed.conv2.pre",
    "second convolution, after gelu": "encoder.embed.conv2.post",
    "positions": "encoder.embed.positions",
    "stream into block 1": "encoder.blocks.0.resid_pre",
}
Part = Literal["", "stages", "crossing"]  # of what a page draws of a sound
NO_SOUND = "This model hears, and there is no sound yet: record one, or choose a WAV or FLAC file, under “a sound”."
ELSEWHERE = "This page draws what is read, and this model hears: open it on Walkthrough or Attention."


@dataclass
class HeardSound:
    """What a session heard last, and its run; `key` names the model, the sound and the target."""

    key: tuple[object, ...] = ()
    reading: Reading | None = None
    trace: Trace | None = None


def sound_fields() -> None:
    with st.popover("a sound", width=120, key="own sound"):
        st.file_uploader("A sound (WAV or FLAC, at most 30 seconds)", key=FILE)
        st.audio_input("or record one", key=RECORDED)


def chosen_content() -> bytes:
    """The file that was chosen, or else what was recorded. Raises ValueError where there is neither."""
    file = widget_value(FILE) or widget_value(RECORDED)
    if file is None:
        raise ValueError(NO_SOUND)
    content: bytes = file.getvalue()
    return content


@lru_cache(maxsize=4)
def open_content(content: bytes) -> Waveform:
    return open_sound(BytesIO(content))


def heard_reading(checkpoint: Checkpoint, target: str, limit: int) -> Reading:
    """What the model reads of the sound, and its transcript, written once for each. Raises ValueError for no sound, and
    for one that cannot be read."""
    content, kept, limit = chosen_content(), find_record(HeardSound), min(limit, budget.max_tokens)
    key = (checkpoint.name, id(checkpoint.model), sha256(content).digest(), target, limit)
    if kept.key != key or kept.reading is None:
        found = read_sound(checkpoint, open_content(content), target, limit)
        kept.key, kept.reading, kept.trace = key, found, None
    return kept.reading


def draw_sound(checkpoint: Checkpoint, reading: Reading, edits: Sequence[Edit], part: Part) -> None:
    """Draws the frames, and below them the stages up to the stream and what comes next, or where a head looks."""
    kept, hook = find_record(HeardSound), chosen_look(checkpoint) if part == "crossing" else KEPT[0]
    same = kept.reading is reading and kept.trace is not None and kept.trace.edits == tuple(edits)
    if kept.trace is None or not same or hook not in kept.trace:
        kept.trace = run(checkpoint.model, reading.read, (*KEPT, hook), edits, target=reading.target)
    processor, content = checkpoint.processor, chosen_content()
    assert isinstance(processor, SoundProcessor) and reading.target is not None
    st.audio(content)
    sound = open_content(content)
    heard = min(-(-int(sound.seconds * processor.rate) // processor.hop), processor.frames)
    mel = kept.trace["encoder.embed.mel"][0, :heard]  # frame mel
    st.markdown("**Log-mel frames**")
    show_plotly(lambda shade: draw_mel(mel, processor.hop / processor.rate, shade), key="mel")
    st.caption(
        f"{count_words(heard, 'frame')} of {count_words(processor.bins, 'mel bin')}; silence fills up the "
        f"{processor.frames:,} that the model reads."
    )
    if part == "crossing":
        draw_heads(checkpoint, kept.trace, reading.target.pieces, processor.seconds, heard)
    else:
        draw_arithmetic(checkpoint, kept.trace)
        draw_next(checkpoint, kept.trace, reading.target.pieces)


def chosen_look(checkpoint: Checkpoint) -> str:
    """Hook of the pattern that the widgets of `draw_heads` choose: one layer's, of which a long sound has gigabytes."""
    look = widget_value("heard look") or next(iter(LOOKS))
    layers = count_layers_and_heads(checkpoint.config, look)[0]
    return LOOKS[look].format(widget_value(f"heard layer, {look}, {layers}", 1) - 1)


def count_layers_and_heads(config: ModelConfig, look: str) -> tuple[int, int]:
    encoder = config.encoder
    if look == "the sound to itself" and encoder is not None:
        return encoder.layers, encoder.attention.heads
    return config.layers, (config.cross_attention if look == "tokens to the sound" else config.attention).heads


def draw_heads(checkpoint: Checkpoint, trace: Trace, pieces: Sequence[str], seconds: int, heard: int) -> None:
    """Draws where one head looks, in time or in the tokens; the sound itself takes `heard` frames."""
    st.markdown("**Where a head looks**")
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        look = st.segmented_control("from, to", list(LOOKS), default=next(iter(LOOKS)), key="heard look", required=True)
        layers, heads = count_layers_and_heads(checkpoint.config, look)
        layer = st.number_input("layer", 1, layers, 1, key=f"heard layer, {look}, {layers}", width=110)
        head = st.number_input("head", 1, heads, 1, key=f"heard head, {look}, {heads}", width=110)
        pattern = trace[LOOKS[look].format(layer - 1)][0, head - 1]  # pos key
        step, last = seconds / pattern.shape[1], -(-heard // 2)
        start = 0
        if look == "the sound to itself" and last > SHOWN:
            latest = (last - SHOWN) * step
            start = round(st.number_input("from second", 0.0, latest, 0.0, key=f"heard from, {last}", width=140) / step)
    if look == "tokens to tokens":
        show_plotly(lambda shade: draw_look(pattern, pieces, pieces, shade), key=look)
        st.caption("Each row sums to 1.")
        return
    share = float((pattern if look == "tokens to the sound" else pattern[:last])[:, :last].sum(1).mean())
    told = f"Each row sums to 1; on average {share:.1%} of it lies on the sound, the rest on the silence after it."
    if look == "the sound to itself":
        part, moments = slice(start, min(start + SHOWN, last)), Moments(step, start * step)
        show_plotly(lambda shade: draw_look(pattern[part, part], moments, moments, shade), key=look)
        told += f" A place is {step * 1000:g} ms of it."
    else:
        show_plotly(lambda shade: draw_look(pattern, pieces, Moments(step), shade), key=look)
    st.caption(told)


def draw_arithmetic(checkpoint: Checkpoint, trace: Trace) -> None:
    """Draws how one number came about, from a frame to the stream that the first block reads."""
    st.markdown("**From frames to the stream**")
    with st.container(horizontal=True, gap="small"):
        stage = st.selectbox("stage", list(STAGES), 1, key="heard stage", width=330)
        value = trace[STAGES[stage]][0]
        sizes = [size - 1 for size in value.shape]
        row = st.number_input("row", 0, sizes[0], 0, key=f"heard row {stage}", width=110)
        unit = st.number_input("component", 0, sizes[1], 0, key=f"heard component {stage}", width=130)
    found = explain(checkpoint.model, trace, STAGES[stage], row, unit)
    lines = ["".join(map(write_part, line)) for line in found.lines]
    places = [f"{one.label}: {one.place}" for one in found.operands]
    st.code("\n".join([*lines, *places, f"stored: {found.stored:.6g}"]), language=None, wrap_lines=True)


def write_part(part: str | Span | Number) -> str:
    if isinstance(part, Number):
        return f"({part.value:.6g})" if part.form == "operand" and part.value < 0 else f"{part.value:.6g}"
    return part if isinstance(part, str) else part.text


def draw_next(checkpoint: Checkpoint, trace: Trace, pieces: Sequence[str]) -> None:
    """Lists the likeliest next token after each of the transcript."""
    st.markdown("**What comes next**")
    shares, best = trace["logits"][0].float().softmax(-1).max(-1)
    piece = checkpoint.tokenizer.piece if checkpoint.tokenizer else str
    table = {"token": list(pieces), "likeliest next": [piece(id) for id in best.tolist()], "share": shares.tolist()}
    st.dataframe(pd.DataFrame(table), key="heard next", width="stretch")

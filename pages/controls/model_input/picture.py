"""The picture that a model reads: a shipped one by its number, or a person's own, in the form of its training."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from io import BytesIO
from typing import Any

import streamlit as st
from PIL import Image, ImageOps

from engine.checkpoints import Checkpoint
from engine.data.digits import LEVELS
from engine.inputs.ink import Drawing, find_drawing, reads_digits
from engine.inputs.pictures import Picture, open_picture
from engine.inputs.readers import pictures

SIDE = 72  # CSS pixels of the pictures on the way


def chosen_picture(checkpoint: Checkpoint, said: Callable[[str], Any]) -> Picture:
    file = said("upload")
    if not file:
        return pictures()[0][said("picture") % len(pictures()[0])]
    picture, drawing = open_upload(file.getvalue(), reads_digits(checkpoint))
    return picture if drawing is None else drawing.levels


@lru_cache(maxsize=4)
def open_upload(content: bytes, digits: bool) -> tuple[Picture, Drawing | None]:
    """The picture in a file, and for a model of digits the drawing on it. Raises ValueError as both do."""
    picture = open_picture(BytesIO(content))
    return picture, find_drawing(picture) if digits else None


def show_ink(checkpoint: Checkpoint, content: bytes) -> None:
    """Draws what a person's own picture of a digit becomes before the model reads it, step by step."""
    drawing = None
    with suppress(ValueError):  # the page says below why it is none
        drawing = open_upload(content, reads_digits(checkpoint))[1]
    if drawing is None:
        return
    steps = {"its ink": drawing.ink, "32 × 32": drawing.bitmap, "8 × 8": drawing.levels.numpy() / (LEVELS - 1)}
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="ink"):
        for name, values in steps.items():
            shown = Image.fromarray((255 * values).astype("uint8"))
            st.image(ImageOps.pad(shown, (SIDE, SIDE), Image.Resampling.NEAREST), name, width=SIDE)
        st.caption(
            "Your picture as the digits of the training were made: what stands out from the ground, cut out and "
            "brought to 32 × 32, of which each block of 4 × 4 counts its inked pixels.",
            width=480,
        )

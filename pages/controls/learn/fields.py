"""Fields of a lesson. What does not read gets one sentence beside the field, and the last good picture stays."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import streamlit as st
import torch
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.inputs.readers import tokens
from engine.json_text import parse_json
from engine.tokenizers.encoding import Encoding
from pages.controls.state.session import SessionValue, set_widget, widget_value
from pages.controls.words import translate as _
from views.core.markdown import escape_markdown

T = TypeVar("T")
MOST_CELLS = 64  # of a matrix that is typed
LONGEST = 400  # characters of a short text
READ_LAST = SessionValue[dict[str, Any]]("read last", dict)  # the last valid value of each field, by its key


def read_field(
    key: str, label: str, default: str, read: Callable[[str], T], *, help: str | None = None, lines: bool = False
) -> T:
    """Typed text, as `read` converts it; where that raises ValueError, its sentence is shown and the last valid value,
    or the default, is returned."""
    kept = READ_LAST.get()
    field = partial(st.text_area, height="content") if lines else st.text_input
    said = field(label, default, key=key, help=help, persist_state="session")
    try:
        value = read(said)
    except ValueError as error:
        st.caption(f":red[:material/error:] {escape_markdown(str(error))}")
        return read(kept.get(key, default))
    kept[key] = said
    return value


def other_input(key: str, inputs: Sequence[Any]) -> Callable[[], None]:
    """Sets the widget `key` to the next of `inputs`, or to the first where the reader has put in their own."""

    def turn() -> None:
        said = widget_value(key)
        set_widget(key, inputs[(inputs.index(said) + 1) % len(inputs)] if said in inputs else inputs[0])

    return turn


def choose_view(key: str, views: Mapping[str, str]) -> str:
    """Name of the chosen view of an experiment, each of which a notebook has; the first is shown to begin with."""
    return choose_option(key, views)


def choose_option(key: str, options: Mapping[str, str]) -> str:
    """Name of the chosen one of a few options, such as where the numbers of an experiment come from."""
    first, *_others = options
    return st.segmented_control(
        _("show"), list(options), default=first, key=key, required=True,
        format_func=lambda one: escape_markdown(options[one]),
        label_visibility="collapsed", persist_state="session",
    )  # fmt: skip


def read_words(most: int, least: int = 1) -> Callable[[str], str]:
    """A text of `least` to `most` characters, without spaces around it."""

    def read(said: str) -> str:
        text = said.strip()
        if not least <= len(text) <= most:
            raise ValueError(
                _("Expected a text of {least} to {most} characters, got {count}; change it.").format(
                    least=least, most=most, count=len(text)
                )
            )
        return text

    return read


def read_short_text(checkpoint: Checkpoint, said: str, most: int) -> Encoding:
    """A text of 2 to `most` tokens of the checkpoint. Raises ValueError, with a sentence."""
    text = read_words(LONGEST)(said)
    encoding = tokens(checkpoint, text)
    if not 2 <= len(encoding.ids) <= most:
        sentence = _("Expected 2 to {most} tokens, and this text has {count}; change it.")
        raise ValueError(sentence.format(most=most, count=len(encoding.ids)))
    return encoding


def caption_known_texts(model: str, text: str) -> None:
    """Says which texts a model knows that was trained on templates, to show a circuit."""
    sentence = _("The model {model} knows only texts of its own kind, such as “{text}”.")
    st.caption(sentence.format(model=model, text=escape_markdown(text)))


def name_apart(pieces: Sequence[str]) -> list[str]:
    """The tokens as options: a space is seen, and one that comes again has a number."""
    shown = [piece.replace(" ", "·") or "∅" for piece in pieces]
    counts = [shown[: at + 1].count(piece) for at, piece in enumerate(shown)]
    return [piece if count == 1 else f"{piece} ({count})" for piece, count in zip(shown, counts, strict=True)]


def read_matrix(said: str, columns: int | None = None) -> Tensor:
    """Rows of numbers, as [[1, 3], [2, 1]] or one row a line. Raises ValueError, with a sentence."""
    text = said.strip()
    try:
        rows = (
            parse_json(text) if text.startswith("[") else [line.replace(",", " ").split() for line in text.split("\n")]
        )
        numbers = [[float(value) for value in row] for row in rows if row != []]
    except (ValueError, TypeError):
        raise ValueError(
            _("Expected rows of numbers such as [[1, 3], [2, 1]]; correct the one that is none.")
        ) from None
    widths = {len(row) for row in numbers}
    if len(widths) != 1 or not (columns is None or widths == {columns}):
        wanted = columns or _("the same number of")
        raise ValueError(_("Expected {count} numbers in every row; add or remove some.").format(count=wanted))
    if not all(math.isfinite(value) for row in numbers for value in row):
        raise ValueError(_("Expected finite numbers, got one that is not; correct it."))
    if len(numbers) * len(numbers[0]) > MOST_CELLS:
        raise ValueError(_("Expected at most {most} numbers; remove some.").format(most=MOST_CELLS))
    return torch.tensor(numbers)


def read_tensor(said: str) -> Tensor:
    """A list of numbers, of rows, or of matrices, such as [.1, .3, .6] or [[1, 2], [3, 4]]. Raises ValueError, with a
    sentence."""
    text = re.sub(r"(?<![\d.])\.(?=\d)", "0.", said.strip())
    try:
        values = torch.tensor(parse_json(text), dtype=torch.float32)
    except (ValueError, TypeError):
        raise ValueError(_("Expected lists of numbers, such as [[1, 3], [2, 1]]; correct them.")) from None
    if not 1 <= values.dim() <= 3 or not 0 < values.numel() <= MOST_CELLS:
        raise ValueError(
            _("Expected 1 to {most} numbers in one to three lists within each other; change them.").format(
                most=MOST_CELLS
            )
        )
    if not values.isfinite().all():
        raise ValueError(_("Expected finite numbers, got one that is not; correct it."))
    return values


def write_matrix(values: Tensor, digits: int = 4) -> str:
    """Formats numbers, a matrix or several as the lessons print them: [[1, 3], [1.5, 2]]."""
    if values.dim() == 0:
        return f"{round(float(values), digits):g}"
    return f"[{', '.join(write_matrix(one, digits) for one in values)}]"

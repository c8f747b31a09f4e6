"""What a page looks at: a model, and what it reads. The controls of both, which several pages share."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAPIException

from engine.checkpoints import Checkpoint, shipped_names
from engine.checkpoints.locate import SHIPPED
from engine.inputs.processors import PalettePixels
from engine.inputs.readers import (
    GAP,
    Kind,
    Reading,
    kind,
    own_words,
    pictures,
    read_infill,
    read_picture,
    read_pixels,
    read_text,
    read_translation,
    readable,
)
from engine.plurals import count_words
from engine.runtime import library
from engine.runtime.limits import FIRST_MODEL, MAX_TOKENS
from pages.controls.model_input.picture import chosen_picture, show_ink
from pages.controls.model_input.text_field import several_lines, text_field
from pages.controls.share.bar import bar
from pages.controls.share.hiding import is_hidden
from pages.controls.share.visitor import recent
from pages.controls.state.history import complete, entry_address, went_back
from views.core.markdown import Markdown, escape_markdown

EXAMPLES = tomllib.loads((Path(__file__).parents[3] / "assets/texts/examples.toml").read_text())
PLAIN = "everyday"  # whose text any other model opens on
FIELDS: dict[Kind, list[str]] = {
    "text": ["text"],
    "pair": ["text", "second"],
    "question": ["text", "second"],
    "translation": ["text", "target"],
    "infill": ["text", "span"],
    "picture": ["picture"],
    "pixels": ["picture", "given"],
}
EVERY_FIELD = tuple(dict.fromkeys(field for fields in FIELDS.values() for field in fields))
LABELS = {
    "text": "text",
    "second": "second text (optional)",
    "target": "target (empty: the model writes it)",
    "span": "in the gap (empty: the model writes it)",
}
ASKED = {"text": "question", "second": "context"}  # what they are called where a model answers
QUESTION = {"text": "Who has the red ball?", "second": "Max gave the red ball to Anna."}
# What stands in a field that no example fills, and in a control that the page does not have; a text is "".
EMPTY = {"picture": 0, "given": 32, "temperature": 1.0, "top_k": 0, "top_p": 1.0}
KEPT = "subject"  # in the session state: what was looked at last, for the next page
READS = "fields of the subject"  # there too: those of its model
LEFT = "subjects"  # there too: what was looked at by entries of the browser's history
OPENED_LAST = "opened last"  # there too: the model that a page without a text has come to show since
READ = "read last"  # in the session state: fields of the last input that was not empty
NO_TEXT = "No text. Still showing the previous one. Type a few words above."


@dataclass(frozen=True)
class Subject:
    """A model by its name, and what it reads, of which at most `limit` tokens are drawn. `said` gives a field of it."""

    name: str
    checkpoint: Checkpoint
    reading: Reading
    limit: int
    said: Callable[[str], Any] = lambda field: field_value(field)


def nothing_more() -> None:
    pass


def subject(more: Callable[[], None] = nothing_more, limit: int = MAX_TOKENS) -> Subject:
    """Draws the controls in one row, `more` behind them; ends the page with a sentence where nothing can be read."""
    wanted = controls(more)
    try:
        checkpoint = library.checkpoint(st.session_state.model)
        shown = reading(checkpoint, limit)
    except (ValueError, OSError) as error:
        st.warning(escape_markdown(error))
        st.stop()
    said: Callable[[str], Any] = field_value
    if len(shown.read):
        keep_read()
    else:
        said = read_before(st.session_state.model).get
        shown = reading(checkpoint, limit, said)
        st.info(NO_TEXT)
    headline(checkpoint, wanted)
    return Subject(st.session_state.model, checkpoint, shown, min(limit, checkpoint.model.config.context), said)


def controls(more: Callable[[], None] = nothing_more, labels: Mapping[str, str] = LABELS) -> Kind:
    """The row of what the model reads, of which model, and of `more`; says what kind of thing that model reads."""
    state = st.session_state
    asked = [st.query_params.get("model", ""), state.get("model", ""), state.get(KEPT, {}).get("model", "")]
    names = library.names(*recent(), *asked)
    models = [FIRST_MODEL, *(name for name in names if name != FIRST_MODEL)]
    here = name_entry()
    begin(models, here)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="controls"):
        try:
            named = library.checkpoint(state.model)
            wanted, most = kind(named), pixels(named)
        except (ValueError, OSError):
            wanted, most = "text", 1  # the page says below why this model does not open
        show_fields(wanted, most, labels)
        if {"text", "target", "span"} & set(FIELDS[wanted]):
            about = "Puts the text here that was written for this model."
            st.button("Example", type="tertiary", key="example text", help=about, on_click=show_own_example)
        complete("model", FIRST_MODEL)
        st.selectbox(
            "model", models, key="model", bind="query-params", on_change=new_model, width=145, help=about_models()
        )
        more()
    several_lines(field for field in FIELDS[wanted] if field in LABELS)
    if wanted in ("picture", "pixels") and state.get("upload"):
        show_ink(named, state.upload.getvalue())
    state[KEPT] = {key: state[key] for key in ("page", "model", *EVERY_FIELD) if key in state}
    state[READS] = FIELDS[wanted]
    state.setdefault(LEFT, {})[here] = state[KEPT]
    return wanted


def begin(models: list[str], here: tuple[str, ...]) -> None:
    """Opens a page on what the one before looked at, or, come back to, on what it looked at itself, unless the address
    names another model; with nothing before, the model's example. What the address says of single fields stays.
    `here` is the browser's entry."""
    state, address = st.session_state, entry_address() if went_back() else st.query_params.to_dict()
    kept = state.get(KEPT, {})
    if kept.get("page") == state.page and not went_back():
        return
    if went_back():
        kept = state.get(LEFT, {}).get(here, kept)
    name = state.pop(OPENED_LAST, kept.get("model", state.get("model", FIRST_MODEL)))
    name = address.get("model", name)
    name = name if name in models else FIRST_MODEL
    said = {field: state[field] for field in EVERY_FIELD if field in state and (not kept or field in address)}
    if went_back():  # the fields still hold what the page before looked at
        said |= {field: address[field] for field in LABELS if field in address}
    state.update({key: value for key, value in kept.items() if key != "page"})
    if kept.get("model") != name:
        state.model = name
        new_model()
        leave_to_address(field for field in EVERY_FIELD if field not in said)
    state.update(said)
    if name != FIRST_MODEL and "model" not in address and not went_back():
        with suppress(StreamlitAPIException):  # the box of the page before is still bound, and writes it there itself
            st.query_params["model"] = name  # a reload, or the link, finds it again


def name_entry() -> tuple[str, ...]:
    """The page, and what its address says of model and fields, before anything is drawn."""
    address = entry_address()
    return st.session_state.page, *(address.get(field, "") for field in ("model", *EVERY_FIELD))


def open_on_looked_at(models: Sequence[str], usual: str) -> None:
    """Opens a page that reads nothing, and whose address names no model, on the model that was looked at, in place of
    its `usual` one. Call it before the control is drawn."""
    name = st.session_state.get(OPENED_LAST) or st.session_state.get(KEPT, {}).get("model")
    if "model" in st.session_state or "model" in st.query_params or name not in models or name == usual:
        return
    st.session_state.model = name
    with suppress(StreamlitAPIException):  # as in `begin`
        st.query_params["model"] = name


def look_at(name: str) -> None:
    """The other pages go on with the model that such a page shows."""
    if st.session_state.get(KEPT, {}).get("model", FIRST_MODEL) != name and library.knows(name):
        st.session_state[OPENED_LAST] = name
    else:
        st.session_state.pop(OPENED_LAST, None)


def leave_to_address(fields: Iterable[str]) -> None:
    """Takes back what was set of those that the address names. Streamlit takes them over from there; but where a
    browser comes back to a server that was started anew, what is set here would count more."""
    for field in fields:
        said = st.query_params.get(field, "")
        if said and (field in LABELS or said.isdecimal()):
            st.session_state.pop(field, None)


def show_fields(wanted: Kind, most: int, labels: Mapping[str, str] = LABELS) -> None:
    """The controls of what a model reads; of a picture at most `most` pixels can be given."""
    fields, labels = FIELDS[wanted], {**labels, **(ASKED if wanted == "question" else {})}
    for field in fields:
        complete(field, "" if field in LABELS else 0)
        if field == "picture":
            last = len(pictures()[0]) - 1
            st.number_input(f"picture, 0 to {last}", 0, last, key=field, bind="query-params", width=130)
            with st.popover("your own", width=100, key="own picture"):
                st.file_uploader("A picture (PNG, JPEG, …)", key="upload")
        elif field == "given":
            st.slider("pixels given", 0, most, key=field, bind="query-params", width="stretch")
        else:
            text_field(escape_markdown(labels[field]), field)


def pixels(checkpoint: Checkpoint) -> int:
    """Number of pixels that a model which draws pictures reads, as far as this page goes."""
    processor = checkpoint.processor
    size = processor.image.size if isinstance(processor, PalettePixels) else (1, 1)
    return min(size[0] * size[1], MAX_TOKENS - 1)


def headline(checkpoint: Checkpoint, wanted: Kind, heads: bool = True) -> None:
    said = {field: field_value(field) for field in FIELDS[wanted]}
    if "picture" in said and st.session_state.get("upload"):
        said["picture"] = "of your own"
    about = "\n".join(filter(None, [checkpoint.card.get("about"), sizes(checkpoint)]))
    named = " · ".join(filter(None, [st.session_state.model, adapters_line(checkpoint)]))
    bar(named, said, about, {"layer": 0, "head": 0, **look()} if heads else None)


def adapters_line(checkpoint: Checkpoint) -> str:
    """Says that the weights hold adapters, and of which base; empty where they hold none."""
    bases = dict.fromkeys(adapter.base.rstrip("/").rpartition("/")[2] or "its base" for adapter in checkpoint.adapters)
    return f"adapter on {', '.join(bases)}" if bases else ""


def sizes(checkpoint: Checkpoint) -> str:
    config = checkpoint.model.config
    blocks = count_words(config.layers, "block")
    if config.encoder:
        blocks = f"{config.encoder.layers} + {blocks}"
    heads = count_words(config.attention.heads, "head")
    count = sum(parameter.numel() for parameter in checkpoint.model.parameters())
    return f"{blocks} of {heads} · d {config.d_model} · {count:,} parameters"


def looked_at() -> tuple[str, dict[str, Any]]:
    """The model and the fields of the page that read something last; for pages that read nothing."""
    kept: dict[str, Any] = st.session_state.get(KEPT, {})
    name = st.session_state.get(OPENED_LAST) or kept.get("model", FIRST_MODEL)
    return name, {field: kept[field] for field in st.session_state.get(READS, ()) if field in kept}


def field_value(field: str) -> Any:
    return st.session_state.get(field, EMPTY.get(field, ""))


def reading(checkpoint: Checkpoint, limit: int = MAX_TOKENS, said: Callable[[str], Any] = field_value) -> Reading:
    """Reads the fields above the picture for the model. Raises ValueError, with a sentence, for what it cannot read."""
    limit = min(limit, checkpoint.model.config.context)
    match kind(checkpoint):
        case "pair" | "question":
            return read_text(checkpoint, said("text"), limit, said("second"))
        case "translation":
            return read_translation(checkpoint, said("text"), said("target"), limit)
        case "infill":
            return read_infill(checkpoint, said("text"), said("span"), limit)
        case "picture":
            return read_picture(checkpoint, chosen_picture(checkpoint, said), limit)
        case "pixels":
            settings = {key: said(key) for key in ("temperature", "top_k", "top_p")}
            return read_pixels(checkpoint, chosen_picture(checkpoint, said), said("given"), limit, settings, seed())
        case _:
            return read_text(checkpoint, said("text"), limit)


def keep_read() -> None:
    st.session_state[READ] = {field: field_value(field) for field in ("model", *EVERY_FIELD)}


def read_before(name: str) -> dict[str, Any]:
    """Fields of what the model called `name` read before its text was emptied, or of its example."""
    kept: dict[str, Any] = st.session_state.get(READ, {})
    return kept if kept.get("model") == name else {field: EMPTY.get(field, "") for field in EVERY_FIELD} | example(name)


@lru_cache(maxsize=1)
def about_models() -> Markdown:
    """Description of what each shipped model reads and does, a line each, for the help of the menu."""
    cards = {name: json.loads((SHIPPED / name / "card.json").read_text()) for name in shipped_names()}
    lines = (f"- **{escape_markdown(name)}**: {escape_markdown(card['about'])}" for name, card in cards.items())
    return Markdown("\n".join(lines))


def show_own_example() -> None:
    show_example(st.session_state.model)


def show_example(name: str) -> None:
    found = example(name)
    for field in EVERY_FIELD:
        st.session_state[field] = found.get(field, EMPTY.get(field, ""))
    st.session_state.example = {"name": name, **found}


def example(name: str) -> dict[str, Any]:
    """Chooses the text to open `name` on: what was written for it, the first model's text, or a few of its own
    words."""
    found: dict[str, Any] = EXAMPLES.get(name, {"text": EXAMPLES[PLAIN]["text"]})
    try:
        checkpoint = library.checkpoint(name)
    except (ValueError, OSError):
        return found  # the page says below why this model does not open
    if name in EXAMPLES or "text" not in FIELDS[kind(checkpoint)]:
        return found
    if kind(checkpoint) == "infill":
        return {"text": f"{found['text']} {GAP}"}
    tokenizer, head = checkpoint.tokenizer, checkpoint.model.config.head.kind
    if head == "masked" and tokenizer is not None and tokenizer.mask_id is not None:
        found = {"text": f"{found['text']} {tokenizer.piece(tokenizer.mask_id)}"}
    if head == "span":
        found = QUESTION if kind(checkpoint) == "question" else {"text": " ".join(QUESTION.values())}
    fits = readable(checkpoint, found["text"], found.get("second", ""), whole=True)
    return found if fits else {"text": own_words(checkpoint)}


def new_model() -> None:
    """Each model starts on its own example; a text the person wrote, or a link hid, stays where the new model reads
    texts too."""
    name = st.session_state.model
    try:
        reads_text = "text" in FIELDS[kind(library.checkpoint(name))]
    except (ValueError, OSError):
        reads_text = True
    locked = bool(field_value("text")) and is_hidden("text")
    if not reads_text or (is_example(["text", "second", "target", "span"]) and not locked):
        return show_example(name)
    for field in ("second", "target", "span"):
        if not is_hidden(field):
            st.session_state[field] = ""


def is_example(fields: Sequence[str]) -> bool:
    """Tells whether the text is still the example's."""
    shown = st.session_state.get("example", {})
    return all(field_value(field) == shown.get(field, EMPTY.get(field, "")) for field in fields)


def look() -> dict[str, int]:
    """The head and row to look at first: those that the example is there for."""
    found: dict[str, int] = st.session_state.get("example", {}).get("look", {})
    return found if is_example(EVERY_FIELD) else {}


def seed() -> int:
    written = st.query_params.get("seed", "0")
    return int(written) if written.isascii() and written.isdigit() and len(written) < 10 else 0

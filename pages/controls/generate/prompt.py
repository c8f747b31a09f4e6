"""What is written from: a model that writes, and the text, source, gap or pixels that it begins with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st
import torch

from engine.analysis.pseudo import scores
from engine.analysis.surprise import slides
from engine.budget import budget
from engine.checkpoints import Checkpoint
from engine.checkpoints.locate import present_names
from engine.generation.prompt import Prompt, begin, check_generates
from engine.inputs.processors import PalettePixels
from engine.inputs.readers import GAP, SPAN, check_length, given_target, kind, require_known_ids, tokens
from engine.json_text import parse_json
from engine.runtime import library
from pages.controls.model_input.conversation import is_conversation, read_conversation
from pages.controls.model_input.model_input import (
    FIELDS,
    NO_TEXT,
    controls,
    field_value,
    fields_read,
    headline,
    keep_read,
    read_before,
)
from pages.controls.model_input.notice import guessing_notice
from pages.controls.model_input.picture import chosen_picture
from pages.controls.model_input.sound import ELSEWHERE
from pages.controls.state.page_state import Here
from views.core.codegen import Fields, picture_line, quote
from views.core.markdown import Markdown, escape_markdown
from views.generate.session import Call, GenerationContext

BEGUN = {"target": "target so far (may be empty)", "span": "in the gap so far (may be empty)"}


def prompt_controls(here: Here) -> tuple[str, Checkpoint, Prompt, Call, dict[str, str]]:
    """Draws the controls of the prompt; ends the page with a sentence where nothing can be written from it. Last comes
    what an address says of the prompt."""
    wanted = controls(here, labels=BEGUN)
    name: str = here["model"]
    try:
        checkpoint = library.checkpoint(name)
        check(checkpoint)
        prompt, said = prompt_said(here, checkpoint)
    except (ValueError, OSError) as error:
        st.warning(sentence(str(error)))
        st.stop()
    headline(here, checkpoint, fields_read(checkpoint), heads=False)
    other = said("upload") or is_conversation(checkpoint, said)  # than an address says to a page about one run
    fields = {} if other else {field: str(said(field)) for field in FIELDS[wanted]}
    return name, checkpoint, prompt, call_of(checkpoint, said), fields


class NoText(ValueError):
    """There is nothing to continue."""


def prompt_said(here: Here, checkpoint: Checkpoint) -> tuple[Prompt, Callable[[str], Any]]:
    """The prompt, and what gives its fields: those above, or where they are empty those of the prompt before."""
    try:
        prompt = prompt_of(checkpoint)
    except NoText:
        said = read_before(here["model"]).get
        prompt = prompt_of(checkpoint, said)
        st.info(NO_TEXT)
        return prompt, said
    keep_read(here)
    return prompt, field_value


def check(checkpoint: Checkpoint) -> None:
    """Raises ValueError for a model that neither writes nor fills in what is masked, with the names of those that
    write."""
    if scores(checkpoint):
        return
    try:
        check_generates(checkpoint.config)
    except ValueError as error:
        able = [name for name in present_names() if library.checkpoint(name).config.generates]
        raise ValueError(f"{error} Models here that write: {', '.join(able)}.") from error


def sentence(said: str) -> Markdown:
    return escape_markdown(said[:1].upper() + said[1:])


def prompt_of(checkpoint: Checkpoint, said: Callable[[str], Any] = field_value) -> Prompt:
    """Prompt of the fields' contents; it may be longer than the model reads. Raises ValueError, with a sentence, for
    what the model cannot continue."""
    if scores(checkpoint):
        read = require_tokens(tokens(checkpoint, said("text"), said("second")) if said("text").strip() else ())
        return Prompt(checkpoint, read.ids, segments=read.segments)
    if is_conversation(checkpoint, said):
        return begin(checkpoint, read_conversation(said), longer=True)
    match kind(checkpoint):
        case "translation":
            source = tokens(checkpoint, said("text"))
            target = given_target(checkpoint, said("target")) if said("target").strip() else None
            return begin(checkpoint, require_tokens(source), target, longer=True)
        case "infill":
            return begin(checkpoint, require_tokens(encode_gap(checkpoint, said("text"), said("span"))), longer=True)
        case "pixels":
            processor = checkpoint.processor
            assert isinstance(processor, PalettePixels)  # as this kind says
            return begin(checkpoint, processor.ids(chosen_picture(checkpoint, said)).flatten()[: said("given")])
        case "sound":
            raise ValueError(ELSEWHERE)
        case _:
            return begin(checkpoint, require_tokens(tokens(checkpoint, said("text"))), longer=True)


def prompt_notice(writing: GenerationContext) -> str:
    """Sentence about a prompt whose first budget.max_tokens the model foresees worse than by guessing, else empty."""
    checkpoint = writing.checkpoint
    ids = writing.prompt.ids[: min(budget.max_tokens, checkpoint.config.context)]

    def measure() -> bytes:
        with torch.no_grad():
            logits = checkpoint.model(torch.tensor([ids]))[0]
        return guessing_notice(checkpoint, ids, logits, "text").encode()

    asked = {"ask": "prompt notice", "model": writing.name, "ids": list(ids)}
    return library.answers.answer(asked, measure).decode() if slides(checkpoint) else ""


def call_of(checkpoint: Checkpoint, said: Callable[[str], Any] = field_value) -> Call:
    """The same prompt in Python."""
    text = quote(str(said("text")))
    if scores(checkpoint):
        return Call(text, quote(said("second")) if said("second").strip() else "")
    if is_conversation(checkpoint, said):
        line = f"conversation = Conversation.from_dict({parse_json(said('conversation'))!r})"
        return Call("conversation", "", (line,), ("Conversation",))
    match kind(checkpoint):
        case "translation":
            return Call(text, quote(said("target")) if said("target").strip() else "")
        case "infill" if checkpoint.tokenizer is not None:
            return Call(quote(f"{said('text')}{SPAN}{said('span')}"))
        case "pixels":
            own = bool(said("upload"))
            fields = Fields("pixels", 0, picture=None if own else int(said("picture")))
            line = f"pixels = checkpoint.processor.ids(picture).flatten()[:{int(said('given'))}]"
            return Call("pixels", "", (picture_line(fields), line), ("own_picture",) if own else ("pictures",))
    if checkpoint.tokenizer is None:
        return Call(repr([int(word) for word in said("text").replace(",", " ").split()]))
    return Call(text)


def require_tokens(read: Any) -> Any:
    if not len(read):
        raise NoText("There is nothing to continue yet: type a few words above.")
    return read


def encode_gap(checkpoint: Checkpoint, text: str, span: str) -> Any:
    if checkpoint.tokenizer is None or not text.strip():
        return tokens(checkpoint, text)
    if GAP not in text:
        raise ValueError(f"Expected a gap to fill, got a text without one; write {GAP} where words are missing.")
    check_length(text, span)
    return require_known_ids(checkpoint, checkpoint.tokenizer.encode(f"{text}{SPAN}{span}"))

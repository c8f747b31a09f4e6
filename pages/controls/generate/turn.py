"""What was written after a conversation, kept as its next turn."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from engine.conversations import Message
from engine.conversations.conversation import ASSISTANT, USER
from pages.controls.generate.tabs import branch_of
from pages.controls.model_input.conversation import is_conversation, read_conversation, store
from pages.controls.model_input.model_input import field_value
from pages.controls.state.page_state import Here
from views.generate.session import GenerationContext


def keep_turn(here: Here, writing: GenerationContext) -> None:
    """Draws the button that puts the branch on screen into the conversation, and an empty turn of the user's after."""
    checkpoint = writing.checkpoint
    if not is_conversation(checkpoint, field_value):
        return

    def keep() -> None:
        ids, _ = branch_of(writing)
        ends = {*checkpoint.end_ids, *writing.prompt.ends}
        assert checkpoint.tokenizer is not None  # as it has a template
        text = checkpoint.tokenizer.decode([id for id in ids if id not in ends])
        conversation = read_conversation(field_value)
        *before, last = conversation.messages
        if conversation.is_open:
            turns = (*before, replace(last, content=last.text + text))
        else:
            turns = (*before, last, Message(ASSISTANT, text))
        store(here.state, replace(conversation, messages=(*turns, Message(USER, ""))))

    st.button(
        "Keep as a turn", key="keep turn", icon=":material/add_comment:", on_click=keep,
        help="Adds what was written to the conversation, and an empty turn of the user's after it.",
    )  # fmt: skip

"""What was written after a conversation, kept as its next turn."""

from __future__ import annotations

from dataclasses import replace

from engine.conversations import Message
from engine.conversations.conversation import ASSISTANT, USER
from pages.controls.generate.parameters import GENERATE
from pages.controls.generate.tabs import PICTURE
from pages.controls.model_input.conversation import read_conversation, store
from pages.controls.model_input.model_input import field_value
from pages.controls.state.session import event_value
from views.generate.session import GenerationContext


def keep_turn(writing: GenerationContext) -> None:
    """Callback of the component: puts the branch it shows into the conversation, with an empty turn of the user's
    after it."""
    match event_value(PICTURE, "keep"):
        case {"trace": str(trace), "ids": list(said)} if trace == writing.digest and writing.checkpoint.tokenizer:
            try:
                ids = writing.ids(said)
            except ValueError:
                return
        case _:
            return
    ends = {*writing.checkpoint.end_ids, *writing.prompt.ends}
    text = writing.checkpoint.tokenizer.decode([id for id in ids if id not in ends])
    conversation = read_conversation(field_value)
    *before, last = conversation.messages
    if conversation.is_open:
        turns = [*before, replace(last, content=last.text + text)]
    else:
        turns = [*before, last, Message(ASSISTANT, text)]
    store(GENERATE, replace(conversation, messages=(*turns, Message(USER, ""))))

"""Turns of a chat as the prompt that a model has learnt to read them in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.checkpoints import Checkpoint
from engine.conversations import Conversation, Message, read_templates
from engine.conversations.template import NONE
from engine.generation.prompt import Prompt, begin
from server.http.api.fields import Refused

ROLES = ("system", "developer", "user", "assistant")


def begin_chat(checkpoint: Checkpoint, messages: Sequence[Mapping[str, Any]]) -> Prompt:
    """Raises Refused for a model without a template, for turns that it does not take, and for what are no turns."""
    if not read_templates(checkpoint.tokenizer):
        raise Refused(f"{NONE}; ask /v1/completions.", field="messages")
    try:
        conversation = Conversation(tuple(read_turn(number, turn) for number, turn in enumerate(messages)))
        return begin(checkpoint, conversation)
    except ValueError as error:
        raise Refused(str(error), field="messages") from None


def read_turn(number: int, turn: Mapping[str, Any]) -> Message:
    role, content = turn.get("role"), turn.get("content")
    if isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        content = "".join(str(part.get("text", "")) for part in content)
    if role not in ROLES or not isinstance(content, str):
        raise Refused(
            f"messages[{number}] must have a role of {', '.join(ROLES)} and a content that is a text; correct it.",
            field="messages",
        )
    return Message(role, content)

"""Conversations: turns of roles as the text in which a model has learnt to read them, by its makers' chat template."""

from engine.conversations.assistant_turns import Written, read_written
from engine.conversations.conversation import Conversation, Message
from engine.conversations.encode import ConversationEncoding, encode_conversation, find_turn_ends
from engine.conversations.render import Rendered, Turn, render
from engine.conversations.template import choose_template, read_templates

__all__ = [
    "Conversation", "ConversationEncoding", "Message", "Rendered", "Turn", "Written", "choose_template",
    "encode_conversation", "find_turn_ends", "read_templates", "read_written", "render",
]  # fmt: skip

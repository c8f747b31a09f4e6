"""Conversation: messages of roles, and what a chat template reads beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SYSTEM, USER, ASSISTANT = "system", "user", "assistant"
INSTRUCTS = (SYSTEM, "developer")  # roles of a first message that is no turn
MOST_MESSAGES = 1_000
KEYS = ("messages", "tools", "documents", "variables", "template")


@dataclass(frozen=True)
class Message:
    """`content` is a text, a list of parts ({"type": "text", "text": ...}), or None beside tool calls. `more` has the
    message's other keys: tool_calls, name, reasoning_content, ..."""

    role: str
    content: str | Sequence[Mapping[str, Any]] | None
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        return "".join(str(part.get("text", "")) for part in self.content or ())

    def to_dict(self) -> dict[str, Any]:
        content = self.content if isinstance(self.content, str | None) else [dict(part) for part in self.content]
        return {"role": self.role, "content": content, **self.more}

    @classmethod
    def from_dict(cls, said: object, number: int = 0) -> Message:
        """Raises ValueError for what is no message; `number` is its place in the conversation, for the sentence."""
        if not isinstance(said, Mapping):
            raise ValueError(f"message {number} must be a table with role and content, got {str(said)[:80]!r}; fix it.")
        role, content = said.get("role"), said.get("content")
        if not isinstance(role, str) or not role:
            raise ValueError(f"message {number} must have a role, such as user, got {str(role)[:80]!r}; name one.")
        parts = isinstance(content, list) and all(isinstance(part, Mapping) for part in content)
        if not (isinstance(content, str | None) or parts):
            got = type(content).__name__
            raise ValueError(f"the content of message {number} must be a text or a list of parts, got {got}; fix it.")
        return cls(role, content, {key: value for key, value in said.items() if key not in ("role", "content")})


@dataclass(frozen=True)
class Conversation:
    """`tools` are JSON schemas of functions, `documents` tables with title and text, and `variables` what else the
    template reads by name, such as enable_thinking. `template` is the name of one of several; "" chooses."""

    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]] = ()
    documents: Sequence[Mapping[str, Any]] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)
    template: str = ""

    def __post_init__(self) -> None:
        if not 0 < len(self.messages) <= MOST_MESSAGES:
            raise ValueError(
                f"A conversation must have 1 to {MOST_MESSAGES:,} messages, got {len(self.messages):,}; "
                f"{'leave some out' if self.messages else 'write one'}."
            )

    @property
    def system(self) -> str | None:
        """Text of the first message where that instructs the model."""
        return self.messages[0].text if self.messages[0].role in INSTRUCTS else None

    @property
    def is_open(self) -> bool:
        """True if the last turn is a text of the assistant's, which is continued."""
        return self.messages[-1].role == ASSISTANT and bool(self.messages[-1].text)

    def to_dict(self) -> dict[str, Any]:
        """Table for JSON; keys that are empty are left out."""
        said = {
            "messages": [message.to_dict() for message in self.messages],
            "tools": [dict(tool) for tool in self.tools],
            "documents": [dict(document) for document in self.documents],
            "variables": dict(self.variables),
            "template": self.template,
        }
        return {key: value for key, value in said.items() if value}

    @classmethod
    def from_dict(cls, said: object) -> Conversation:
        """Reads a table, or a list of messages. Raises ValueError for what is no conversation."""
        found = {"messages": said} if isinstance(said, list) else said
        if not isinstance(found, Mapping) or not found.keys() <= set(KEYS):
            raise ValueError(f"a conversation must be a table of {', '.join(KEYS)}, got {str(said)[:80]!r}; fix it.")
        messages, variables = found.get("messages"), found.get("variables", {})
        if not isinstance(messages, list) or len(messages) > MOST_MESSAGES or not isinstance(variables, Mapping):
            raise ValueError(f"a conversation must have a list of at most {MOST_MESSAGES:,} messages; give one.")
        for key in ("tools", "documents"):
            listed = found.get(key, [])
            if not isinstance(listed, list) or not all(isinstance(one, Mapping) for one in listed):
                raise ValueError(f"the {key} of a conversation must be a list of tables, got {str(listed)[:80]!r}.")
        template = found.get("template", "")
        if not isinstance(template, str):
            raise ValueError(
                f"the template of a conversation must be a name, got {str(template)[:80]!r}; leave it out."
            )
        turns = tuple(Message.from_dict(one, number) for number, one in enumerate(messages))
        return cls(turns, tuple(found.get("tools", ())), tuple(found.get("documents", ())), dict(variables), template)

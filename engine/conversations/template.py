"""Chat templates of a checkpoint, by their names, and the tokens that they are given."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from engine.conversations.conversation import Conversation
from engine.json_text import parse_json
from engine.tokenizers import FastTokenizer, Tokenizer

DEFAULT, WITH_TOOLS = "default", "tool_use"
BESIDE = "chat_template.jinja"  # beside the tokenizer; counts before the configuration
FOLDER = "additional_chat_templates"
IN_SETTINGS = ("tokenizer_config.json", "chat_template.json")
NONE = "this model has no chat template, so it has learnt no turns of a conversation"


def read_templates(tokenizer: Tokenizer | None) -> dict[str, str]:
    """Chat templates by name, "default" for the only one; empty where the checkpoint has none.

    As transformers reads them: files of Jinja count before `chat_template` of the configuration, a text or a list of
    named ones.
    """
    files = tokenizer.files if isinstance(tokenizer, FastTokenizer) else {}
    beside = {
        DEFAULT if name == BESIDE else PurePosixPath(name).stem: data.decode("utf-8", "replace")
        for name, data in files.items()
        if name == BESIDE or PurePosixPath(name).match(f"{FOLDER}/*.jinja")
    }
    return beside or next(filter(None, (read_setting(files[name]) for name in IN_SETTINGS if name in files)), {})


def read_setting(data: bytes) -> dict[str, str]:
    said = parse_json(data)
    found = said.get("chat_template") if isinstance(said, dict) else None
    if isinstance(found, str):
        return {DEFAULT: found}
    rows = [row for row in found if isinstance(row, Mapping)] if isinstance(found, list) else []
    named = {row.get("name"): row.get("template") for row in rows}
    return {name: text for name, text in named.items() if isinstance(name, str) and isinstance(text, str)}


def choose_template(templates: Mapping[str, str], conversation: Conversation, name: str = "") -> str:
    """The template called `name`, else the one that the conversation names, the one for tools where there are tools, or
    the default. Raises
    ValueError where there is none."""
    if not templates:
        raise ValueError(f"{NONE}; give it a text.")
    wanted = (
        name or conversation.template or (WITH_TOOLS if conversation.tools and WITH_TOOLS in templates else DEFAULT)
    )
    if wanted not in templates:
        listed = ", ".join(sorted(templates))[:200]
        raise ValueError(f"This model has no chat template called {wanted[:80]!r}; choose one of {listed}.")
    return templates[wanted]


def named_tokens(tokenizer: Tokenizer | None) -> dict[str, str]:
    """Special tokens that the checkpoint's files, or its class, name: bos_token, eos_token, ..."""
    return dict(tokenizer.declared_roles) if isinstance(tokenizer, FastTokenizer) else {}

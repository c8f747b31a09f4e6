"""Turns of a chat as the text that a model has learnt to read them in: the template that its makers wrote (Jinja)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from engine.checkpoints import Checkpoint
from engine.json_text import parse_json
from engine.tokenizers import FastTokenizer
from server.http.api.fields import Refused

ROLES = ("system", "developer", "user", "assistant")
NONE = "this model has no chat template, so that it has learnt no turns of a chat; ask /v1/completions."


def find_template(tokenizer: FastTokenizer) -> str | None:
    """`chat_template.jinja` counts before what tokenizer_config.json says; of several, the one called "default"."""
    if (file := tokenizer.files.get("chat_template.jinja")) is not None:
        return file.decode("utf-8", "replace")
    for name in ("chat_template.json", "tokenizer_config.json"):
        found = parse_json(tokenizer.files.get(name, b"{}")).get("chat_template")
        if isinstance(found, list):
            found = next((one.get("template") for one in found if one.get("name") == "default"), None)
        if isinstance(found, str):
            return found
    return None


def render_chat(checkpoint: Checkpoint, messages: Sequence[Mapping[str, Any]]) -> str:
    """Raises Refused for a model without a template, for turns that it does not take, and for what are no turns."""
    tokenizer = checkpoint.tokenizer
    template = find_template(tokenizer) if isinstance(tokenizer, FastTokenizer) else None
    if template is None or not isinstance(tokenizer, FastTokenizer):
        raise Refused(NONE, field="messages")
    turns = [read_turn(number, turn) for number, turn in enumerate(messages)]
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = write_json
    environment.globals |= {"raise_exception": refuse, "strftime_now": lambda form: datetime.now().strftime(form)}
    try:
        return environment.from_string(template).render(messages=turns, add_generation_prompt=True, **tokenizer.roles)
    except TemplateError as error:
        raise Refused(f"the model's chat template does not take these messages: {error}.", field="messages") from None


def read_turn(number: int, turn: Mapping[str, Any]) -> dict[str, str]:
    role, content = turn.get("role"), turn.get("content")
    if isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        content = "".join(str(part.get("text", "")) for part in content)
    if role not in ROLES or not isinstance(content, str):
        raise Refused(
            f"messages[{number}] must have a role of {', '.join(ROLES)} and a content that is a text; correct it.",
            field="messages",
        )
    return {"role": role, "content": content}


def write_json(value: Any, indent: int | None = None) -> str:
    """Without the marks of HTML that Jinja's own makes."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def refuse(message: str) -> None:
    raise TemplateError(message)

"""A conversation in place of a text: turns of roles, for a model whose files have a chat template."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import streamlit as st

from engine.checkpoints import Checkpoint
from engine.conversations import Conversation, Message, encode_conversation, read_templates
from engine.conversations.conversation import ASSISTANT, SYSTEM, USER
from engine.inputs.readers import kind
from engine.json_text import parse_json
from pages.controls.state.page_state import Here, PageState
from pages.controls.state.session import find_record, widget_value
from views.core.markdown import escape_markdown

TALK = ("reads", "conversation")
ROLES = (SYSTEM, USER, ASSISTANT, "tool")
BESIDE = ("tools", "documents", "variables")


@dataclass
class ConversationForm:
    """The conversation that the form's widgets hold; another one is drawn under the next `serial`. `error` is about
    what was typed beside the turns."""

    said: str = ""
    serial: int = 0
    error: str = ""


def has_template(checkpoint: Checkpoint) -> bool:
    return kind(checkpoint) == "text" and bool(read_templates(checkpoint.tokenizer))


def is_conversation(checkpoint: Checkpoint, said: Callable[[str], Any]) -> bool:
    """True if the page reads its conversation, not its text; `said` gives a field."""
    return said("reads") == "conversation" and has_template(checkpoint)


def read_conversation(said: Callable[[str], Any]) -> Conversation:
    return Conversation.from_dict(parse_json(said("conversation")))


def summarise(conversation: Conversation) -> str:
    return " · ".join(f"{message.role}: {message.text}" for message in conversation.messages if message.text)


def store(state: PageState, conversation: Conversation, typed: bool = False) -> None:
    """Sets the page's conversation, from a callback; with `typed` its widgets hold it already."""
    said = conversation.to_dict()
    text = json.dumps(said["messages"] if said.keys() == {"messages"} else said, ensure_ascii=False)
    if typed:
        find_record(ConversationForm).said = text
    state.choose("conversation", text)


def count_roles(checkpoint: Checkpoint, conversation: Conversation) -> str:
    """Says how many tokens each turn has, with what the template writes around it; empty where it refuses them."""
    try:
        found = encode_conversation(checkpoint, conversation, continue_final_message=conversation.is_open)
    except ValueError:
        return ""  # the page says why
    counts = [(turn.role or "no turn", len(list(tokens))) for turn, tokens in groupby(found.turns)]
    return f"Tokens by turn: {', '.join(f'{role} {count:,}' for role, count in counts)}."


def conversation_form(here: Here, checkpoint: Checkpoint) -> None:
    """Draws the turns, each with its role and text, and what stands beside them."""
    text, form, state = here.begin("conversation"), find_record(ConversationForm), here.state
    if text != form.said:
        form.said, form.serial, form.error = text, form.serial + 1, ""
    conversation, serial = Conversation.from_dict(parse_json(text)), form.serial
    messages = conversation.messages

    def change(number: int) -> None:
        message = messages[number]
        role = widget_value(f"role {number} {serial}", message.role) or message.role
        content = widget_value(f"turn {number} {serial}", message.text)
        changed = replace(message, role=role, content=message.content if content == message.text else content)
        turns = (*messages[:number], changed, *messages[number + 1 :])
        store(state, replace(conversation, messages=turns), typed=True)

    def remove(number: int) -> None:
        store(state, replace(conversation, messages=(*messages[:number], *messages[number + 1 :])))

    def add() -> None:
        role = ASSISTANT if messages[-1].role == USER else USER
        store(state, replace(conversation, messages=(*messages, Message(role, ""))))

    def instruct() -> None:
        store(state, replace(conversation, messages=(Message(SYSTEM, "You are a helpful assistant."), *messages)))

    with st.container(key="conversation-form", gap="small"):
        for number, message in enumerate(messages):
            with st.container(horizontal=True, vertical_alignment="top", gap="small", key=f"turn-{number}"):
                roles = list(dict.fromkeys((*ROLES, message.role)))
                st.selectbox(
                    f"role of turn {number + 1}", roles, roles.index(message.role), key=f"role {number} {serial}",
                    label_visibility="collapsed", width=130, on_change=change, args=(number,),
                )  # fmt: skip
                st.text_area(
                    f"turn {number + 1}", message.text, key=f"turn {number} {serial}", height="content",
                    label_visibility="collapsed", width="stretch", on_change=change, args=(number,),
                    placeholder="empty",
                )  # fmt: skip
                st.button(
                    "Remove", key=f"remove turn {number}", type="tertiary", icon=":material/close:", on_click=remove,
                    args=(number,), disabled=len(messages) == 1, help=f"Removes turn {number + 1}.",
                )  # fmt: skip
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.button("Add a turn", key="add turn", icon=":material/add:", on_click=add)
            choose_template(state, checkpoint, conversation)
            if conversation.system is None:
                st.button("Add a system message", key="add system", type="tertiary", on_click=instruct)
            with st.popover("Tools & documents", type="tertiary", key="beside turns"):
                beside_form(state, conversation)
        if counts := count_roles(checkpoint, conversation):
            st.caption(escape_markdown(counts))


def choose_template(state: PageState, checkpoint: Checkpoint, conversation: Conversation) -> None:
    """Draws the choice among a model's chat templates, if it has several."""
    names = list(dict.fromkeys(("", conversation.template, *read_templates(checkpoint.tokenizer))))
    if len(read_templates(checkpoint.tokenizer)) < 2 and not conversation.template:
        return
    key = f"template {find_record(ConversationForm).serial}"

    def change() -> None:
        store(state, replace(conversation, template=widget_value(key, "") or ""), typed=True)

    st.selectbox(
        "chat template", names, names.index(conversation.template), key=key, on_change=change, width=180,
        label_visibility="collapsed", format_func=lambda name: f"template: {name or 'by itself'}",
        help="By itself: the one for tools where there are tools, else the default.",
    )  # fmt: skip


def beside_form(state: PageState, conversation: Conversation) -> None:
    """Draws the field for tools, documents and variables as one table of JSON."""
    form = find_record(ConversationForm)
    key = f"beside {form.serial}"
    said = {name: value for name, value in conversation.to_dict().items() if name in BESIDE}

    def change() -> None:
        form.error = ""
        try:
            given = read_beside(widget_value(key, ""))
            found = Conversation.from_dict({"messages": conversation.to_dict()["messages"], **given})
        except ValueError as error:
            form.error = str(error)
        else:
            store(state, found, typed=True)

    st.text_area(
        "tools, documents and variables of the template, in JSON",
        json.dumps(said, indent=1, ensure_ascii=False) if said else "",
        key=key, height=180, on_change=change, placeholder='{"tools": [], "documents": [], "variables": {}}',
    )  # fmt: skip
    if form.error:
        st.warning(escape_markdown(form.error))


def read_beside(text: str) -> Mapping[str, Any]:
    """Raises ValueError for what is no such table."""
    try:
        found = parse_json(text or "{}")
    except ValueError:
        found = None
    if not isinstance(found, dict) or not found.keys() <= set(BESIDE):
        raise ValueError(f"Expected a table of {', '.join(BESIDE)} in JSON, got {text[:80]!r}; correct it.")
    return found

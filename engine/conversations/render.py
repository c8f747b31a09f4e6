"""A conversation as text, by a chat template: a program of unknown origin, which runs elsewhere and within limits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.budget import budget
from engine.conversations.conversation import ASSISTANT, INSTRUCTS, Conversation
from engine.json_text import parse_json

PROGRAM = Path(__file__).with_name("render_process.py")
SECONDS = 2  # of the processor, for one conversation
AT_ONCE = 64  # conversations that one process renders
PATIENCE = 20  # seconds, on a machine that has other things to do
MEMORY = 512 * 2**20  # bytes of addresses
LONGEST_TEMPLATE = 200_000  # characters; the longest of known models has 20,000
LONGEST_GIVEN = 4_000_000  # characters of JSON: messages, tools and documents
KEPT_VARIABLES = ("PATH", "PYTHONPATH", "PYTHONHOME", "SYSTEMROOT", "LD_LIBRARY_PATH", "TZ")
CLOCK, UNUSED = "strftime_now", "2000-01-01"  # the time, which makes a text another one, where a template asks for it
DISTRUST = "do not trust this model's files, or give it a text"
SENTENCES = {
    "refused": "This model's chat template refuses the conversation: {reason}; change its turns.",
    "forbidden": "The chat template must keep to its sandbox, and asks for more: {reason}; " + DISTRUST + ".",
    "syntax": "The chat template must be written in Jinja, and is not in {reason}; fetch the model's files again.",
    "failed": "The chat template must render these turns, and fails: {reason}; change them, or give a text.",
    "deep": "The chat template nests too deeply to be rendered; " + DISTRUST + ".",
    "memory": f"The chat template must render within {MEMORY // 2**20} MiB of memory, and does not; {DISTRUST}.",
    "time": "The chat template must render within {seconds} s, and does not; " + DISTRUST + ".",
    "long": "The chat template must write at most {most:,} characters, and writes more; shorten the conversation.",
    "nothing to continue": "The last message must have a text to continue, and has none; write its beginning.",
    "last is changed": "The chat template leaves out part of the last message, so that it cannot be continued; "
    "begin a new turn.",
}


@dataclass(frozen=True)
class Turn:
    """Part of a rendered text, [start, end) in its characters. `message` is the number of its message, that of the
    next one for what asks for the next turn, and None with an empty `role` for what belongs to none."""

    start: int
    end: int
    message: int | None = None
    role: str = ""


@dataclass(frozen=True)
class Rendered:
    """`turns` cover the text in order. `assistant` are the spans that the template marks as the assistant's with
    `{% generation %}`."""

    text: str
    turns: tuple[Turn, ...]
    assistant: tuple[tuple[int, int], ...] = ()


def render(
    conversation: Conversation,
    template: str,
    tokens: Mapping[str, str],
    *,
    add_generation_prompt: bool = False,
    continue_final_message: bool = False,
    now: datetime | None = None,
) -> Rendered:
    """Text as transformers' `apply_chat_template` writes it; `tokens` are the special tokens by role.

    Raises ValueError with a sentence for a template that refuses the conversation, or goes beyond a limit.
    """
    asked = ask(conversation, template, tokens, add_generation_prompt, continue_final_message, now)
    found = parse_json(run_program(tell([asked], SECONDS)))
    if "error" in found:
        sentence = SENTENCES[found["error"]]
        raise ValueError(
            sentence.format(reason=found["reason"].strip().rstrip("."), most=budget.max_characters, seconds=SECONDS)
        )
    return read_rendered(conversation, found[0])


def render_each(
    conversations: Sequence[Conversation],
    template: str,
    tokens: Mapping[str, str],
    *,
    add_generation_prompt: bool = False,
) -> Iterator[Rendered]:
    """Yields each as `render` has it, many of them from one process."""
    for begin in range(0, len(conversations), AT_ONCE):
        some = conversations[begin : begin + AT_ONCE]
        asked = [ask(each, template, tokens, add_generation_prompt) for each in some]
        found = parse_json(start_program(tell(asked, PATIENCE)))
        if isinstance(found, list):
            yield from map(read_rendered, some, found)
        else:  # one of them is at fault, and says so by itself
            for each in some:
                yield render(each, template, tokens, add_generation_prompt=add_generation_prompt)


def ask(
    conversation: Conversation,
    template: str,
    tokens: Mapping[str, str],
    add_generation_prompt: bool,
    continue_final_message: bool = False,
    now: datetime | None = None,
) -> str:
    """Writes what the program is asked, in JSON. Raises ValueError for what is too long to be rendered."""
    if add_generation_prompt and continue_final_message:
        raise ValueError("A conversation must either continue its last message or begin the next one; choose one.")
    if len(template) > LONGEST_TEMPLATE:
        raise ValueError(
            f"A chat template must have at most {LONGEST_TEMPLATE:,} characters, got {len(template):,}; {DISTRUST}."
        )
    said = conversation.to_dict()
    asked = {
        "template": template,
        "messages": said["messages"],
        "tools": said.get("tools"),
        "documents": said.get("documents"),
        "variables": {**tokens, **conversation.variables},
        "add_generation_prompt": add_generation_prompt,
        "continue_final_message": continue_final_message,
        "now": (now or datetime.now().replace(second=0, microsecond=0)).isoformat() if CLOCK in template else UNUSED,
        "most": budget.max_characters,
    }
    try:
        text = json.dumps(asked)
    except RecursionError:
        raise ValueError("A conversation must not nest so deeply; give flatter tools or documents.") from None
    if len(text) > LONGEST_GIVEN:
        raise ValueError(
            f"A conversation must have at most {LONGEST_GIVEN:,} characters of JSON, got {len(text):,}; shorten it."
        )
    return text


def tell(asked: Sequence[str], seconds: int) -> str:
    return f'{{"each": [{", ".join(asked)}], "seconds": {seconds}, "memory": {MEMORY}}}'


def read_rendered(conversation: Conversation, found: Mapping[str, Any]) -> Rendered:
    return Rendered(found["text"], find_turns(conversation, found), tuple(map(tuple, found["assistant"])))


@lru_cache(maxsize=256)
def run_program(asked: str) -> str:
    return start_program(asked)


def start_program(asked: str) -> str:
    """Runs the program that renders on `asked`; a process for each, so that no template meets what another left."""
    try:
        ended = subprocess.run(
            [sys.executable, "-P", str(PROGRAM)], input=asked, timeout=PATIENCE, check=False, encoding="utf-8",
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return json.dumps({"error": "time", "reason": ""})
    if ended.returncode < 0 or not ended.stdout:  # killed by a limit
        return json.dumps({"error": "time" if ended.returncode < 0 else "memory", "reason": ""})
    return ended.stdout


def find_turns(conversation: Conversation, found: Mapping[str, Any]) -> tuple[Turn, ...]:
    """Turns that cover the text: the loops' parts by message, and the rest by where a message's own text stands."""
    text, end = found["text"], found["prompt"]
    owners: list[int | None] = [None] * end
    for start, stop, number in found["parts"]:
        owners[start:stop] = [number] * (stop - start)
    looped, place = set(owners), 0
    for number, message in enumerate(conversation.messages):
        own = message.text.strip()
        if number in looped or not own:
            continue
        start = text.find(own, place, end)
        if start < 0:
            continue
        first = next((at for at, owner in enumerate(owners) if owner is not None), end)
        leads = number == 0 and message.role in INSTRUCTS and start + len(own) <= first < end
        begin, place = (0, first) if leads else (start, start + len(own))
        owners[begin:place] = [number] * (place - begin)
    runs = [at for at in range(end) if at == 0 or owners[at] != owners[at - 1]]
    turns = [
        Turn(start, stop, number, "" if number is None else conversation.messages[number].role)
        for start, stop in zip(runs, [*runs[1:], end], strict=True)
        for number in [owners[start]]
    ]
    if end < len(text):
        turns.append(Turn(end, len(text), len(conversation.messages), ASSISTANT))
    return tuple(turns)

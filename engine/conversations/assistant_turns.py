"""Conversations to learn from: ids, and which of them the assistant wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import repeat
from os.path import commonprefix

from engine.conversations.conversation import ASSISTANT, Conversation
from engine.conversations.encode import find_assistant
from engine.conversations.render import Rendered, render_each
from engine.conversations.template import choose_template, named_tokens, read_templates
from engine.tokenizers import FastTokenizer, Tokenizer

GENERATION = re.compile(r"\{%-?\s*generation\s*-?%\}")  # as transformers looks for it


@dataclass(frozen=True)
class Written:
    """`mask`: True for each token of `ids` that the assistant wrote."""

    text: str
    ids: tuple[int, ...]
    mask: tuple[bool, ...]


def read_written(tokenizer: Tokenizer, conversations: Mapping[int, Conversation]) -> Iterator[Written]:
    """Ids as transformers' `apply_chat_template` makes them, of conversations by the number of their row. The assistant
    wrote what the template has in `{% generation %}`, as in TRL's `assistant_only_loss`; where it has no such mark, of
    each of its turns what stands behind that which asks for one (`add_generation_prompt`), as in TRL's completions.

    Each has a turn of the assistant's behind another's. Raises ValueError where there is no template, and with the
    number of the first row that it refuses or in which it writes nothing of the assistant's.
    """
    if not conversations:
        return
    template = choose_template(read_templates(tokenizer), next(iter(conversations.values())))
    assert isinstance(tokenizer, FastTokenizer)  # others have no templates
    tokens, each = named_tokens(tokenizer), list(conversations.values())
    whole = render_each(each, template, tokens)
    prompts: Iterator[Rendered | None] = repeat(None)
    if not GENERATION.search(template):
        prompts = render_each(list(map(first_prompt, each)), template, tokens, add_generation_prompt=True)
    for row in conversations:
        try:
            found, prompt = next(whole), next(prompts)
        except ValueError as error:
            raise ValueError(f"row {row:,}: {error}") from None
        read = tokenizer.encode(found.text, special=False)
        if prompt is None:
            mask = find_assistant(tokenizer, found, len(read))
        else:
            spans = find_written(found, prompt)
            mask = tuple(any(start < end and begin < stop for begin, end in spans) for start, stop in read.spans)
        if not any(mask[1:]):
            raise ValueError(
                f"row {row:,} must have a token of the assistant's, and the chat template writes none; correct or "
                "remove the row."
            )
        yield Written(found.text, tuple(read.ids), mask)


def first_prompt(conversation: Conversation) -> Conversation:
    """Cuts a conversation before the assistant's first turn."""
    roles = [message.role for message in conversation.messages]
    return replace(conversation, messages=conversation.messages[: roles.index(ASSISTANT)])


def find_written(whole: Rendered, prompt: Rendered) -> tuple[tuple[int, int], ...]:
    """Spans of the assistant's turns in the text of `whole`, each without what asks for one at the end of `prompt`. The
    last turn goes on to the end of the text."""
    last = prompt.turns[-1]
    asks = prompt.text[last.start :] if last.role == ASSISTANT else ""
    *turns, final = (turn for turn in whole.turns if turn.message is not None)
    turns.append(replace(final, end=len(whole.text)))
    said = [turn for turn in turns if turn.role == ASSISTANT]
    begins = [turn.start + len(commonprefix([whole.text[turn.start : turn.end], asks])) for turn in said]
    return tuple((begin, turn.end) for begin, turn in zip(begins, said, strict=True) if begin < turn.end)

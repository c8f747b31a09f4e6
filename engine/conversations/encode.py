"""A conversation as ids, with the message and the role of each token."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.conversations.conversation import ASSISTANT, USER, Conversation, Message
from engine.conversations.render import Rendered, Turn, render
from engine.conversations.template import choose_template, named_tokens, read_templates
from engine.tokenizers import Encoding, FastTokenizer

if TYPE_CHECKING:
    from engine.checkpoints import Checkpoint

ASKS, ANSWERS = "How many?", "Seven."  # of a conversation that shows how a template ends a turn


@dataclass(frozen=True)
class ConversationEncoding:
    """`turns` has the turn of each token: the one in which its first character stands, also where a token lies across
    two. `assistant` is transformers' assistant mask: True for a token of what the template marks as generated.
    """

    rendered: Rendered
    encoding: Encoding
    turns: tuple[Turn, ...]
    assistant: tuple[bool, ...]


def encode_conversation(
    checkpoint: Checkpoint,
    conversation: Conversation,
    *,
    template: str = "",
    add_generation_prompt: bool = True,
    continue_final_message: bool = False,
) -> ConversationEncoding:
    """Ids as `apply_chat_template(tokenize=True)` makes them: the template writes the special tokens, and none are put
    around. `template` is the name of one. Raises ValueError as `choose_template` and `render` do."""
    tokenizer = checkpoint.tokenizer
    chosen = choose_template(read_templates(tokenizer), conversation, template)
    assert isinstance(tokenizer, FastTokenizer)  # others have no templates
    rendered = render(
        conversation,
        chosen,
        named_tokens(tokenizer),
        add_generation_prompt=add_generation_prompt and not continue_final_message,
        continue_final_message=continue_final_message,
    )
    encoding = tokenizer.encode(rendered.text, special=False)
    starts = [turn.start for turn in rendered.turns]
    turns = tuple(rendered.turns[max(bisect_right(starts, start) - 1, 0)] for start, _ in encoding.spans)
    assistant = find_assistant(tokenizer, rendered, len(encoding))
    encoding = replace(encoding, roles=tuple(turn.role for turn in turns))
    return ConversationEncoding(rendered, encoding, turns, assistant)


def find_assistant(tokenizer: FastTokenizer, rendered: Rendered, count: int) -> tuple[bool, ...]:
    """Mask of `count` tokens, from that of the first to that of the last character of each span."""
    found = [False] * count
    for start, end in rendered.assistant:
        first, last = tokenizer.tokens_at(rendered.text, (start, end - 1))
        if first is None:
            break
        stop = last + 1 if last else count  # as transformers, for which a last token 0 is none
        found[first:stop] = [True] * len(range(first, stop))
    return tuple(found)


def find_turn_ends(checkpoint: Checkpoint, template: str = "") -> tuple[int, ...]:
    """Id of the special token that the template writes after an assistant's turn; empty where there is none, or where
    the template refuses a question with an answer."""
    asked = Conversation((Message(USER, ASKS), Message(ASSISTANT, ANSWERS)))
    try:
        found = encode_conversation(checkpoint, asked, template=template, add_generation_prompt=False)
    except ValueError:
        return ()
    end = found.rendered.text.rfind(ANSWERS) + len(ANSWERS)
    after = zip(found.encoding.ids, found.encoding.spans, found.encoding.special, strict=True)
    return tuple(id for id, (start, _), special in after if special and start >= end)[:1]

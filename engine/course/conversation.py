"""A turn in a conversation: as a chat template writes it, which of its tokens are learned, and what becomes of it where
the template is not kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.conversations.conversation import ASSISTANT, USER, Conversation, Message
from engine.conversations.encode import find_assistant
from engine.conversations.render import Rendered, render
from engine.conversations.template import named_tokens
from engine.runtime import library
from engine.runtime.run import run
from engine.tokenizers import FastTokenizer

BASE, INSTRUCTED = "bilingual", "instruct"
MORE = 16  # tokens that are written
# The user's text, the mark of what is wanted, the answer and the token that ends it, as the model was fine-tuned on.
OWN = (
    "{% for message in messages %}{% if message.role == 'user' %}{{ message.content }} {{ mark }}"
    "{% else %}{% generation %} {{ message.content }}{{ eos_token }}{% endgeneration %}{% endif %}{% endfor %}"
)
TEMPLATES = {
    INSTRUCTED: OWN,
    "ChatML": (
        "{% for message in messages %}<|im_start|>{{ message.role }}\n"
        "{% if message.role == 'assistant' %}{% generation %}{{ message.content }}<|im_end|>{% endgeneration %}\n"
        "{% else %}{{ message.content }}<|im_end|>\n{% endif %}{% endfor %}"
    ),
    "Llama 2": (
        "{% for message in messages %}{% if message.role == 'user' %}<s>[INST] {{ message.content }} [/INST]"
        "{% else %}{% generation %} {{ message.content }} </s>{% endgeneration %}{% endif %}{% endfor %}"
    ),
    "Gemma": (
        "<bos>{% for message in messages %}<start_of_turn>"
        "{{ 'model' if message.role == 'assistant' else message.role }}\n"
        "{% if message.role == 'assistant' %}{% generation %}{{ message.content }}<end_of_turn>{% endgeneration %}\n"
        "{% else %}{{ message.content }}<end_of_turn>\n{% endif %}{% endfor %}"
    ),
}


@dataclass(frozen=True)
class WrittenTurns:
    """A question and its answer as tokens. `learned` marks those whose loss is taken, `asked` is how many tokens are
    the user's own, before the mark."""

    text: str
    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    learned: tuple[bool, ...]
    asked: int

    @property
    def prompt(self) -> tuple[int, ...]:
        return self.ids[: self.learned.index(True)]


@dataclass(frozen=True)
class TurnLosses:
    """Mean -ln p in nats of the user's tokens but the first, and of the answer's with its end; and what the model
    writes after the prompt."""

    model: str
    asked: float
    answer: float
    written: str


@dataclass(frozen=True)
class PromptReading:
    """After a prompt: the likeliest next token with its probability, that of the first token of the answer, of the
    whole answer and of the end of the turn; and what is written."""

    prompt: str
    next: int
    p_next: float
    p_first: float
    p_answer: float
    p_end: float
    written: str


def render_turns(template: str, user: str, answer: str, mark: str) -> Rendered:
    """The text that a chat template makes of a question and its answer."""
    turns = Conversation((Message(USER, user), Message(ASSISTANT, answer)), variables={"mark": mark})
    return render(turns, TEMPLATES[template], named_tokens(library.checkpoint(INSTRUCTED).tokenizer))


def write_turns(user: str, mark: str, answer: str) -> WrittenTurns:
    """As the instructed model was fine-tuned on."""
    tokenizer = tokenizer_of(library.checkpoint(INSTRUCTED))
    rendered = render_turns(INSTRUCTED, user, answer, mark)
    found = tokenizer.encode(rendered.text, special=False)
    learned = find_assistant(tokenizer, rendered, len(found))
    asked = sum(end <= len(user) for _start, end in found.spans)
    return WrittenTurns(rendered.text, tuple(found.ids), tuple(found.pieces), learned, asked)


def tokenizer_of(checkpoint: Checkpoint) -> FastTokenizer:
    assert isinstance(checkpoint.tokenizer, FastTokenizer)
    return checkpoint.tokenizer


def log_probabilities(checkpoint: Checkpoint, ids: Sequence[int]) -> Tensor:
    """Logarithms of the probabilities of what follows each token, pos vocab."""
    return run(checkpoint.model, list(ids), keep=["logits"])["logits"][0].log_softmax(-1)


def compare_losses(user: str, mark: str, answer: str) -> list[TurnLosses]:
    """Losses of the base model and of the instructed one."""
    turns, found = write_turns(user, mark, answer), list[TurnLosses]()
    for name in (BASE, INSTRUCTED):
        checkpoint = library.checkpoint(name)
        said = log_probabilities(checkpoint, turns.ids)
        losses = -said[:-1].gather(-1, torch.tensor(turns.ids[1:])[:, None])[:, 0]
        learned = losses[torch.tensor(turns.learned[1:])]
        asked = losses[: max(turns.asked - 1, 1)]
        written = continue_prompt(checkpoint, turns.prompt)
        found.append(TurnLosses(name, float(asked.mean()), float(learned.mean()), written))
    return found


def continue_prompt(checkpoint: Checkpoint, ids: Sequence[int]) -> str:
    """What the model writes, the likeliest token each time, with the token that ends it."""
    read, tokenizer = list(ids), tokenizer_of(checkpoint)
    for _ in range(min(MORE, checkpoint.config.context - len(ids))):
        read.append(int(log_probabilities(checkpoint, read)[-1].argmax()))
        if read[-1] in checkpoint.end_ids:
            break
    return tokenizer.decode(read[len(ids) :])


def read_prompt(prompt: str, answer: str) -> PromptReading:
    """What the instructed model says after a prompt, which may be one of its template or not."""
    checkpoint = library.checkpoint(INSTRUCTED)
    tokenizer, (end, *_) = tokenizer_of(checkpoint), checkpoint.end_ids
    ids = list(tokenizer.encode(prompt, special=False).ids)
    wanted = list(tokenizer.encode(f" {answer}", special=False).ids)
    said = log_probabilities(checkpoint, ids + wanted)
    after = said[len(ids) - 1]
    of_answer = said[len(ids) - 1 : -1].gather(-1, torch.tensor(wanted)[:, None])
    return PromptReading(
        prompt,
        int(after.argmax()),
        float(after.max().exp()),
        float(after[wanted[0]].exp()),
        float(of_answer.sum().exp()),
        float(after[end].exp()),
        continue_prompt(checkpoint, ids),
    )

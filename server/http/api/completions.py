"""Texts in OpenAI's form: /v1/completions and /v1/chat/completions."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from engine.budget import budget
from engine.checkpoints import Checkpoint
from engine.edits.experiment import Experiment
from engine.generation.generate import generate
from engine.generation.prompt import Prompt, begin
from engine.inputs.readers import check_length, kind
from server.http.api.chat import begin_chat
from server.http.api.fields import Field, Refused
from server.http.api.models import WRITTEN, engine_refuses, open_named, read_edits, text_of_ids, write_link
from server.http.api.trace import EDITS, MODEL, MOST_CHARACTERS, check_size
from server.http.api.writing import Part, Score, repeat, write
from server.settings import GIVEN

TOP = 20  # of the most probable tokens
ONE_SAYING = "it is taken at this value alone"


def only(value: int, kind: Any = "number") -> Field:
    """Field that other servers have, and that here has one value."""
    return Field(ONE_SAYING, (kind,), least=value, most=value, listed=False)


COMMON = {
    "temperature": Field(
        "what logits are divided by; 0 takes the most probable token; what the model asks for, else 1",
        ("number",),
        most=2,
    ),
    "top_p": Field("share that is drawn from; what the model asks for, else 1", ("number",), most=1),
    "n": Field("texts to write", ("integer",), 1, least=1, most=8),
    "stop": Field("text, or up to 4, at which it ends", ("string", "strings"), least=1, most=200),
    "seed": Field("the same gives the same text; drawn where it is left out", ("integer",), most=2**31 - 1),
    "stream": Field("send the text as it is written, as server-sent events", ("boolean",), False),
    "stream_options": Field("include_usage: true sends the counts of tokens last", ("object",), {}),
    "edits": EDITS,
    "frequency_penalty": only(0),
    "presence_penalty": only(0),
    "logit_bias": Field(ONE_SAYING, ("object",), most=0, listed=False),
    **{name: Field("it has no effect", ("string",), listed=False) for name in ("user", "service_tier")},
    "metadata": Field("it has no effect", ("object",), listed=False),
    "store": Field("it has no effect", ("boolean",), listed=False),
}
COMPLETION = {
    "model": MODEL,
    "prompt": Field(
        "a text to go on with, or its token ids; one a request",
        ("string", "integers"),
        required=True,
        least=1,
        most=MOST_CHARACTERS,
    ),
    "max_tokens": Field("tokens to write", ("integer",), 16, most=GIVEN.long_tokens),
    "logprobs": Field("log-probabilities of so many tokens at each place", ("integer",), most=TOP),
    "echo": Field("let the prompt stand before the text", ("boolean",), False),
    "best_of": only(1, "integer"),
    **COMMON,
}
CHAT = {
    "model": MODEL,
    "messages": Field("turns, each a table of role and content", ("objects",), required=True, least=1, most=256),
    "max_tokens": Field("as max_completion_tokens", ("integer",), most=GIVEN.long_tokens),
    "max_completion_tokens": Field("tokens to write; 50 where nobody says", ("integer",), most=GIVEN.long_tokens),
    "logprobs": Field("log-probabilities of what is written", ("boolean",), False),
    "top_logprobs": Field("of so many tokens at each place; with logprobs", ("integer",), most=TOP),
    **COMMON,
}


@dataclass(frozen=True)
class Writing:
    """A request that was checked: what `write_choice` needs. `top` None: nobody asks for log-probabilities."""

    asked: dict[str, Any]
    checkpoint: Checkpoint
    prompt: tuple[int, ...]
    start: Prompt
    text: str | None
    edits: Experiment
    chat: bool
    top: int | None
    most: int | None
    stops: tuple[str, ...] | None
    seed: int
    name: str
    created: int

    def write_choice(self, index: int) -> Iterator[Part]:
        """Raises Refused for what the engine does not do."""
        asked, edits = self.asked, self.edits.edits
        with engine_refuses():
            before = ""
            if asked.get("echo"):
                first = repeat(self.checkpoint, self.prompt, edits, self.top)
                before = first.text
                yield first
            steps = generate(
                self.checkpoint, self.start, self.most, temperature=asked["temperature"], top_p=asked["top_p"],
                seed=self.seed + index, stop_strings=self.stops, edits=edits,
            )  # fmt: skip
            yield from write(steps, self.top, before)

    def head(self, streamed: bool = False) -> dict[str, Any]:
        form = ("chat.completion.chunk" if streamed else "chat.completion") if self.chat else "text_completion"
        return {"id": self.name, "object": form, "created": self.created, "model": self.asked["model"]}

    def tell_choice(self, index: int, part: Part, streamed: bool = False) -> dict[str, Any]:
        told = {"index": index, "finish_reason": part.finish}
        if not self.chat:
            scores = tell_scores(part.scores) if self.top is not None else None
            return {**told, "text": part.text, "logprobs": scores}
        listed = [tell_token(one.data, one.logprob, one.best[: self.top]) for one in part.scores]
        scores = {"content": listed, "refusal": None} if self.top is not None else None
        said = (
            {"delta": {"content": part.text}}
            if streamed
            else {"message": {"role": "assistant", "content": part.text, "refusal": None}}
        )
        return {**told, **said, "logprobs": scores}

    def tell_usage(self, written: int) -> dict[str, int]:
        read = len(self.prompt)
        return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}

    def tell_more(self, base: str, written: str) -> dict[str, Any]:
        """What Loupe adds: the seed, and the address of the first text, behind its prompt, in Walkthrough."""
        reads, link = kind(self.checkpoint), None
        if self.text is not None:
            said = {"text": self.text + written}
            if reads in WRITTEN:
                said = {"text": self.text, WRITTEN[reads]: written}
            link = write_link(base, self.asked["model"], said, self.edits)
        return {"loupe": {"link": link, "seed": self.seed}}


def prepare(asked: dict[str, Any], chat: bool) -> Writing:
    """Checks all that can be before anything is computed. Raises Refused."""
    checkpoint, edits = open_named(asked["model"]), read_edits(asked["edits"])
    field = "messages" if chat else "prompt"
    begun = begin_chat(checkpoint, asked["messages"]) if chat else None
    given = asked["prompt"] if begun is None else begun.ids
    with engine_refuses(field):
        if isinstance(given, str) and checkpoint.tokenizer is not None:
            check_length(given)
            given = checkpoint.tokenizer.encode(given).ids
        elif isinstance(given, str):
            raise Refused("this model has no tokenizer; give its prompt as token ids.", field=field)
        prompt, limit = tuple(given), min(budget.long_tokens, checkpoint.config.context)
        if not 0 < len(prompt) <= limit:
            raise Refused(f"the prompt must be 1 to {limit:,} tokens, got {len(prompt):,}; give another.", field=field)
        start = begin(checkpoint, prompt) if begun is None else begun
    if asked.get("echo") and kind(checkpoint) != "text":
        raise Refused("echo is for a model that goes on with its prompt; leave it out.", field="echo")
    top = asked["logprobs"]
    if chat:
        if asked["top_logprobs"] is not None and not asked["logprobs"]:
            raise Refused("top_logprobs must come with logprobs: true; set both.", field="top_logprobs")
        top = (asked["top_logprobs"] or 0) if asked["logprobs"] else None
    if asked.get("echo") and top is not None:
        check_size(checkpoint.model, frozenset({"logits"}), len(prompt), 0)
    stop = asked["stop"]
    stops = (stop,) if isinstance(stop, str) else None if stop is None else tuple(stop)
    if stops and (len(stops) > 4 or max(map(len, stops)) > 200):
        raise Refused("stop must be at most 4 texts of 200 characters; shorten it.", field="stop")
    newer = asked.get("max_completion_tokens")
    most = asked["max_tokens"] if newer is None else newer
    text = text_of_prompt(checkpoint, asked.get("prompt"), prompt)
    seed = secrets.randbelow(2**31) if asked["seed"] is None else asked["seed"]
    name = f"{'chatcmpl' if chat else 'cmpl'}-{secrets.token_hex(12)}"
    return Writing(asked, checkpoint, prompt, start, text, edits, chat, top, most, stops, seed, name, int(time.time()))


def text_of_prompt(checkpoint: Checkpoint, asked: Any, ids: tuple[int, ...]) -> str | None:
    """Text that a page reads as the prompt; None where there is none."""
    return asked if isinstance(asked, str) else text_of_ids(checkpoint, ids)


def write_all(writing: Writing) -> Iterator[tuple[int, Part]]:
    """Parts of each text, with its number. Raises Refused for what the engine does not do."""
    for index in range(writing.asked["n"]):
        for part in writing.write_choice(index):
            yield index, part


def reply(writing: Writing, parts: Sequence[tuple[int, Part]], base: str) -> dict[str, Any]:
    """The whole answer, once all of `write_all` is there."""
    choices = [join([part for at, part in parts if at == index]) for index in range(writing.asked["n"])]
    told = [writing.tell_choice(index, choice) for index, choice in enumerate(choices)]
    first = [part for index, part in parts if index == 0]
    usage = writing.tell_usage(sum(choice.tokens for choice in choices))
    more = writing.tell_more(base, join(first[1:] if writing.asked.get("echo") else first).text)
    return {**writing.head(), "choices": told, "usage": usage, **more}


def join(parts: Sequence[Part]) -> Part:
    scores = [one for part in parts for one in part.scores]
    return Part("".join(part.text for part in parts), scores, parts[-1].finish, parts[-1].tokens)


def stream(writing: Writing, base: str) -> Iterator[dict[str, Any]]:
    """The same in chunks. Raises Refused as `write_all`, before the first one where it can be known."""
    head, count, written, before = writing.head(streamed=True), 0, list[Part](), -1
    for index, part in write_all(writing):
        written += [part] if index == 0 else []
        choice = writing.tell_choice(index, part, streamed=True)
        if writing.chat and index != before:
            choice["delta"]["role"] = "assistant"
        chunk = {**head, "choices": [choice]}
        if part.finish is not None:
            count += part.tokens
            chunk |= writing.tell_more(base, join(written[1:] if writing.asked.get("echo") else written).text)
        yield chunk
        before = index
    if writing.asked["stream_options"].get("include_usage"):
        yield {**head, "choices": [], "usage": writing.tell_usage(count)}


def tell_token(data: bytes, logprob: float | None, best: tuple[tuple[bytes, float], ...]) -> dict[str, Any]:
    """As a chat tells a token."""
    told = [{"token": name_token(one), "logprob": log, "bytes": list(one)} for one, log in best]
    return {"token": name_token(data), "logprob": logprob, "bytes": list(data), "top_logprobs": told}


def tell_scores(scores: list[Score]) -> dict[str, Any]:
    """As a completion tells its tokens; the one that stands there is always among the most probable."""
    return {
        "tokens": [name_token(one.data) for one in scores],
        "token_logprobs": [one.logprob for one in scores],
        "top_logprobs": [
            None
            if one.logprob is None
            else {name_token(data): log for data, log in reversed((*one.best, (one.data, one.logprob)))}
            for one in scores
        ],
        "text_offset": [one.offset for one in scores],
    }


def name_token(data: bytes) -> str:
    """Its text; of a part of a character its bytes."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in data)

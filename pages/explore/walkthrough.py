"""The walkthrough: one text through one decoder, from tokens to the next token."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st
import torch

from engine import library
from engine.analysis.heads import head_scores
from engine.analysis.operands import operands
from engine.checkpoints import Checkpoint
from engine.edits import AttentionTemperature
from engine.limits import MAX_TOKENS
from engine.sampling import Sampling, distribution, draw
from engine.tokenizers.encoding import Encoding
from views.component import courier, view
from views.walkthrough import digest, layer_payload, operands_payload, walkthrough

EXAMPLES = tomllib.loads((Path(__file__).parents[2] / "assets/texts/examples.toml").read_text())
FIRST = "stories"  # the model a visitor meets
PICTURE = "walkthrough"
picture = view("walkthrough", events=("append", "again"))


def example(name: str) -> str:
    """A text to open `name` on: one that was written for it, the first model's, or a few of its own words."""
    text: str = EXAMPLES.get(name, EXAMPLES[FIRST])["text"]
    try:
        checkpoint = library.checkpoint(name)
    except (ValueError, OSError):
        return text  # the page says below why this model does not open
    try:
        read(checkpoint, text)
    except ValueError:
        tokenizer = checkpoint.tokenizer
        return "0 1 2 3" if tokenizer is None else tokenizer.decode(range(min(6, tokenizer.vocab_size)), special=False)
    return text


def look(name: str, text: str) -> dict[str, int]:
    """The head to look at first: the one that its example is there for."""
    found = EXAMPLES.get(name, {})
    return found["look"] if found.get("text") == text else {"layer": 0, "head": 0}


def show_example(name: str) -> None:
    st.session_state.text = st.session_state.example = example(name)


def read(checkpoint: Checkpoint, text: str) -> Encoding:
    """The text as tokens, or the ids it lists where there is no tokenizer. Raises ValueError for a wrong number."""
    if checkpoint.tokenizer is not None:
        return checkpoint.tokenizer.encode(text)
    try:
        return Encoding.from_ids(int(word) for word in text.replace(",", " ").split())
    except ValueError:
        raise ValueError("This model has no tokenizer, so its text must be token ids such as 12 7 40.") from None


def notice(encoding: Encoding, limit: int, context: int) -> str:
    """What a text longer than the limit loses; empty when nothing is cut."""
    if len(encoding) <= limit:
        return ""
    lost = encoding.text[encoding.spans[limit][0] :].strip()
    whose = "this model reads" if limit == context else "this page draws (raise it with LOUPE_MAX_TOKENS)"
    return (
        f"The text has {len(encoding):,} tokens and {whose} {limit}; the last {len(encoding) - limit:,} are cut, "
        f"from “{lost[:40]}{'…' if len(lost) > 40 else ''}”."
    )


def append() -> None:
    """Put the drawn token behind the text, as the text it stands for; a second click on the same picture is void."""
    match st.session_state[PICTURE].append:
        case {"id": int(token), "length": int(length)}:
            checkpoint = library.checkpoint(st.session_state.model)
            if length != len(read(checkpoint, st.session_state.text)):
                return
        case _:
            return
    tokenizer = checkpoint.tokenizer
    added = f" {token}" if tokenizer is None else tokenizer.decode([token])
    if tokenizer is not None and token not in tokenizer.encode(added).ids:
        st.toast("That token is only part of a character and cannot stand in a text; draw another one.")
    else:
        st.session_state.text += added


def seed() -> int:
    given = st.query_params.get("seed", "0")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 10 else 0


def again() -> None:
    st.query_params["seed"] = str(seed() + 1)


def new_model() -> None:
    """Each model starts on its own example; a text the person wrote stays."""
    if st.session_state.text == st.session_state.get("example"):
        show_example(st.session_state.model)


with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="controls"):
    models = library.names()
    if "text" not in st.session_state:
        wanted = st.query_params.get("model", FIRST)
        show_example(wanted if wanted in models else FIRST)
    st.text_input("text", key="text", live="150ms", bind="query-params", width="stretch")
    st.selectbox(
        "model", models, models.index(FIRST), key="model", bind="query-params", on_change=new_model, width=125
    )
    st.slider(
        "attention temperature", 0.1, 4.0, 1.0, 0.05, key="attention", bind="query-params", width=165,
        help="Divides the scores inside every head before its softmax: low makes attention sharp, high makes it even. "
        "It changes everything after it. 1 is the model as it was trained.",
    )  # fmt: skip
    st.slider(
        "output temperature", 0.0, 3.0, 1.0, 0.05, key="temperature", bind="query-params", width=155,
        help="Divides the logits before the last softmax only: no attention changes. 0 is greedy.",
    )  # fmt: skip
    st.slider("top-k", 0, 100, 0, 1, key="top_k", bind="query-params", width=88)
    st.slider("top-p", 0.05, 1.0, 1.0, 0.05, key="top_p", bind="query-params", width=88)

try:
    checkpoint = library.checkpoint(st.session_state.model)
    whole = read(checkpoint, st.session_state.text)
except (ValueError, OSError) as error:
    st.warning(str(error))
    st.stop()
if not whole:
    st.info("There is nothing to read yet: type a few words above.")
    st.stop()

config = checkpoint.model.config
with st.container(key="headline"):
    parts = [f"{config.layers} layers", f"{config.attention.heads} heads", f"d {config.d_model}"]
    parts.append(f"{sum(p.numel() for p in checkpoint.model.parameters()):,} parameters")
    st.caption(" · ".join(parts))

limit = min(MAX_TOKENS, config.context)
encoding = whole.truncated(limit)
temperature = st.session_state.attention
edits = [] if temperature == 1 else [AttentionTemperature(temperature)]
trace = library.traces.of(st.session_state.model, encoding, edits)
following = distribution(
    trace["logits"][0].float(),
    Sampling(st.session_state.temperature, st.session_state.top_k, st.session_state.top_p),
)
sampled = draw(following.probabilities[-1], torch.Generator().manual_seed(seed()))
made = digest(st.session_state.model, trace)


def answer(query: Mapping[str, Any]) -> bytes:
    """What the picture asks for later: a layer that was not sent, or the weights behind one element."""
    if query.get("trace") != made:
        raise ValueError("The text or the model has changed since; click again.")
    match query:
        case {"layer": int(layer)}:
            return layer_payload(trace, layer)
        case {"hook": str(hook), "unit": int(unit), "row": int(row)}:
            return operands_payload(operands(checkpoint.model, hook, unit, row))
    raise ValueError("The picture asked for something this page does not know; reload the page.")


picture(
    walkthrough(
        trace,
        config,
        name=st.session_state.model,
        following=following,
        pieces=None if checkpoint.tokenizer is None else checkpoint.tokenizer.pieces,
        sampled=sampled,
        scores=head_scores(trace),
        notes={
            "notice": notice(whole, limit, config.context),
            "full": len(encoding) >= limit,
            "look": look(st.session_state.model, st.session_state.text),
            "attention_temperature": temperature,
            "sampling": {k: st.session_state[k] for k in ("temperature", "top_k", "top_p")},
        },
    ),
    key=PICTURE,
    on={"append": append, "again": again},
)
courier("courier", answer)

"""The walkthrough: one text or picture through one transformer, from what it reads to what it says."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st
import torch

from engine import library
from engine.analysis.answers import best_answer, logistic, where_answers_stand
from engine.analysis.heads import CrossScores, HeadScores, cross_scores, head_scores
from engine.analysis.operands import operands
from engine.checkpoints import Checkpoint
from engine.edits import AttentionTemperature
from engine.layers.softmax import softmax
from engine.limits import MAX_TOKENS
from engine.pictures import opened
from engine.processors import PalettePixels
from engine.reading import (
    GAP,
    SPAN,
    Kind,
    Reading,
    kind,
    own_words,
    pictures,
    read_infill,
    read_picture,
    read_pixels,
    read_text,
    read_translation,
    readable,
)
from engine.sampling import Sampling, distribution, draw
from engine.tokenizers.encoding import Encoding
from engine.trace import Trace
from views.component import courier, view
from views.walkthrough import Lane, Link, Outcome, digest, lanes, layer_payload, operands_payload, walkthrough

EXAMPLES = tomllib.loads((Path(__file__).parents[2] / "assets/texts/examples.toml").read_text())
FIRST = "stories"  # the model a visitor meets
PICTURE = "walkthrough"
FIELDS: dict[Kind, list[str]] = {
    "text": ["text"],
    "pair": ["text", "second"],
    "question": ["text", "second"],
    "translation": ["text", "target"],
    "infill": ["text", "span"],
    "picture": ["picture"],
    "pixels": ["picture", "given"],
}
LABELS = {
    "text": "text",
    "second": "second text (optional)",
    "target": "target (empty: the model writes it)",
    "span": "in the gap (empty: the model writes it)",
}
ASKED = {"text": "question", "second": "context"}  # what they are called where a model answers
QUESTION = {"text": "Who has the red ball?", "second": "Max gave the red ball to Anna."}
UNNAMED = ("LABEL_0",)  # what transformers calls the only class of a head that nobody named
EMPTY = {"picture": 0, "given": 32}  # what stands in a field that no example fills; a text is ""
picture = view("walkthrough", events=("append", "again"))


def example(name: str) -> dict[str, Any]:
    """What to open `name` on: what was written for it, the first model's text, or a few of its own words."""
    found: dict[str, Any] = EXAMPLES.get(name, {"text": EXAMPLES[FIRST]["text"]})
    try:
        checkpoint = library.checkpoint(name)
    except (ValueError, OSError):
        return found  # the page says below why this model does not open
    if name in EXAMPLES or "text" not in FIELDS[kind(checkpoint)]:
        return found
    if kind(checkpoint) == "infill":
        return {"text": f"{found['text']} {GAP}"}
    tokenizer, head = checkpoint.tokenizer, checkpoint.model.config.head.kind
    if head == "masked" and tokenizer is not None and tokenizer.mask_id is not None:
        found = {"text": f"{found['text']} {tokenizer.piece(tokenizer.mask_id)}"}
    if head == "span":
        found = QUESTION if kind(checkpoint) == "question" else {"text": " ".join(QUESTION.values())}
    return found if readable(checkpoint, found["text"], found.get("second", "")) else {"text": own_words(checkpoint)}


def given(field: str) -> Any:
    return st.session_state.get(field, EMPTY.get(field, ""))


def show_example(name: str) -> None:
    found = example(name)
    for field in {field for fields in FIELDS.values() for field in fields}:
        st.session_state[field] = found.get(field, EMPTY.get(field, ""))
    st.session_state.example = {"name": name, **found}


def untouched(fields: list[str]) -> bool:
    """Whether what stands there is still the example's."""
    shown = st.session_state.get("example", {})
    return all(given(field) == shown.get(field, EMPTY.get(field, "")) for field in fields)


def wanted_model(models: list[str]) -> str:
    """The model that the address names, the first one otherwise."""
    wanted = st.query_params.get("model", FIRST)
    return wanted if wanted in models else FIRST


def look() -> dict[str, int]:
    """The head and row to look at first: those that the example is there for."""
    found: dict[str, int] = st.session_state.example.get("look", {})
    return found if untouched([field for fields in FIELDS.values() for field in fields]) else {}


def new_model() -> None:
    """Each model starts on its own example; a text the person wrote stays where the new model reads texts too."""
    name = st.session_state.model
    try:
        reads_text = "text" in FIELDS[kind(library.checkpoint(name))]
    except (ValueError, OSError):
        reads_text = True
    if untouched(["text", "second", "target", "span"]) or not reads_text:
        return show_example(name)
    for field in ("second", "target", "span"):
        st.session_state[field] = ""


def reading(checkpoint: Checkpoint) -> Reading:
    """What the fields above the picture give the model. Raises ValueError, with a sentence, for what it cannot read."""
    limit = min(MAX_TOKENS, checkpoint.model.config.context)
    match kind(checkpoint):
        case "pair" | "question":
            return read_text(checkpoint, given("text"), limit, given("second"))
        case "translation":
            return read_translation(checkpoint, given("text"), given("target"), limit)
        case "infill":
            return read_infill(checkpoint, given("text"), given("span"), limit)
        case "picture":
            return read_picture(checkpoint, chosen_picture())
        case "pixels":
            settings = {key: given(key) for key in ("temperature", "top_k", "top_p")}
            return read_pixels(checkpoint, chosen_picture(), given("given"), limit, settings, seed())
        case _:
            return read_text(checkpoint, given("text"), limit)


def chosen_picture() -> torch.Tensor | Any:
    file = st.session_state.get("upload")
    if file is not None:
        return opened(file)
    return pictures()[0][given("picture") % len(pictures()[0])]


def notice(reading: Reading, limit: int, context: int) -> str:
    """What a text longer than the limit loses; empty when nothing is cut."""
    whole = reading.whole
    if whole is None or len(whole) <= limit:
        return ""
    lost = whole.text[whole.spans[limit][0] :].strip()
    whose = "this model reads" if limit == context else "this page draws (raise it with LOUPE_MAX_TOKENS)"
    return (
        f"The text has {len(whole):,} tokens and {whose} {limit}; the last {len(whole) - limit:,} are cut, "
        f"from “{lost[:40]}{'…' if len(lost) > 40 else ''}”."
    )


def append() -> None:
    """Put the drawn token behind the text, as the text it stands for; a second click on the same picture is void."""
    checkpoint = library.checkpoint(st.session_state.model)
    field = {"translation": "target", "infill": "span"}.get(kind(checkpoint), "text")
    match st.session_state[PICTURE].append:
        case {"id": int(token), "length": int(length)}:
            if length != len(lanes(checkpoint, reading(checkpoint))[-1].pieces):
                return
        case _:
            return
    text, tokenizer = given(field), checkpoint.tokenizer
    if tokenizer is None:
        st.session_state[field] = f"{text} {token}"
        return
    mark = SPAN if field == "span" else ""
    before = tokenizer.encode(mark + text, special=field == "text").ids
    whole = tokenizer.decode([*before, token], special=False)
    if tokenizer.encode(mark + whole, special=field == "text").ids == (*before, token):
        st.session_state[field] = whole
    elif token in tokenizer.encode(tokenizer.decode([token])).ids:
        st.session_state[field] = text + tokenizer.decode([token])
    else:
        st.toast("That token is only part of a character and cannot stand in a text; draw another one.")


def seed() -> int:
    written = st.query_params.get("seed", "0")
    return int(written) if written.isascii() and written.isdigit() and len(written) < 10 else 0


def again() -> None:
    st.query_params["seed"] = str(seed() + 1)


def outcome(checkpoint: Checkpoint, trace: Trace, read: Reading, sampling: Sampling) -> Outcome | None:
    """What the head says, and where it continues a text that the model did not write the token drawn from it."""
    config = checkpoint.model.config
    if config.head.kind == "none":
        return None
    logits = trace["logits"][0].float()
    if config.head.over_classes:
        return judgement(checkpoint, logits, read, sampling)
    following = distribution(logits, sampling)
    names = None if checkpoint.tokenizer is None else checkpoint.tokenizer.pieces
    if kind(checkpoint) == "pixels":
        names = tuple(map(str, range(logits.shape[-1])))
    if not config.generates:
        pair = "next_sentence" in trace and given("second").strip()
        return Outcome(following, names, "here", follows=float(softmax(trace["next_sentence"][0])[0]) if pair else None)
    drawn = None if read.written else draw(following.probabilities[-1], torch.Generator().manual_seed(seed()))
    return Outcome(following, names, "next", drawn)


def judgement(checkpoint: Checkpoint, logits: torch.Tensor, reading: Reading, sampling: Sampling) -> Outcome:
    """What a head says that is over classes: of the whole, of each position, or where an answer starts and ends."""
    read, alone = reading.read, checkpoint.model.config.outputs == 1
    names = checkpoint.labels if checkpoint.labels not in ((), UNNAMED) else None
    match checkpoint.model.config.head.kind:
        case "span" if isinstance(read, Encoding):
            asked = given("text") if kind(checkpoint) == "question" and given("second").strip() else ""
            answer = best_answer(logits, where_answers_stand(read, asked))
            return Outcome(distribution(logits.mT, sampling), read.pieces, "answer", answer=answer, read=read)
        case "token" if alone:
            return Outcome(logistic(logits, sampling.temperature), names or ("replaced",), "here", link="logistic")
        case "token":
            return Outcome(distribution(logits, sampling), names, "here")
    link: Link = "identity" if alone else "softmax"  # one number for the whole is a score: it has nothing beside it
    return Outcome(distribution(logits[None], sampling), names or ("score",) if alone else names, "class", link=link)


def scores(trace: Trace, stacks: list[Lane]) -> dict[str, HeadScores | CrossScores]:
    """What every attention was measured to do on this text."""
    measured: dict[str, HeadScores | CrossScores] = {
        f"{stack.prefix}attn": head_scores(trace, stack.side) for stack in stacks
    }
    return measured | ({"decoder.cross_attn": cross_scores(trace)} if len(stacks) > 1 else {})


def first_row(checkpoint: Checkpoint, reading: Reading, said: Outcome | None) -> int | None:
    """The row to read first: a masked token, the one that speaks for all, the first pixel that was not given, the start
    of an answer or of what fills a gap, the token that most likely is not the true one."""
    config, read = checkpoint.model.config, reading.read
    if kind(checkpoint) == "pixels":
        return min(reading.given, pixels(checkpoint) - 1)
    if config.head.kind == "sequence":
        return 0 if config.head.read == "first" else len(reading.target or read) - 1
    if said is not None and said.answer is not None:
        return said.answer.start
    if said is not None and said.link == "logistic":
        return int(said.following.probabilities[:, 0].argmax())
    special = list(read.special) if isinstance(read, Encoding) else []
    if config.head.kind == "token":
        return special.index(False) if False in special else None
    ids = list(read.ids) if isinstance(read, Encoding) else []
    if config.infill is not None and reading.written:
        return ids.index(config.infill.start) if config.infill.start in ids else None
    mask = checkpoint.tokenizer.mask_id if checkpoint.tokenizer else None
    return ids.index(mask) if config.head.kind == "masked" and mask in ids else None


def pixels(checkpoint: Checkpoint) -> int:
    """How many pixels of a picture a model that draws them reads, as far as this page goes."""
    processor = checkpoint.processor
    size = processor.image.size if isinstance(processor, PalettePixels) else (1, 1)
    return min(size[0] * size[1], MAX_TOKENS - 1)


def show_fields(wanted: Kind, most: int) -> None:
    """The controls of what a model reads; of a picture at most `most` pixels can be given."""
    fields, labels = FIELDS[wanted], LABELS | (ASKED if wanted == "question" else {})
    for field in fields:
        if field == "picture":
            last = len(pictures()[0]) - 1
            st.number_input(f"picture, 0 to {last}", 0, last, key=field, bind="query-params", width=130)
            with st.popover("your own", width=100):
                st.file_uploader("A picture (PNG, JPEG, …)", key="upload")
        elif field == "given":
            st.slider("pixels given", 0, most, key=field, bind="query-params", width="stretch")
        else:
            st.text_input(labels[field], key=field, live="150ms", bind="query-params", width="stretch")


opened_here = st.session_state.get("opened", ())  # on the page about checkpoints
models = library.names(*opened_here, st.query_params.get("model", ""), st.session_state.get("model", ""))
if "example" not in st.session_state:
    everything = {field for fields in FIELDS.values() for field in fields}
    kept = {field: st.session_state[field] for field in everything if field in st.session_state}
    show_example(st.session_state.get("model", wanted_model(models)))
    st.session_state.update(kept)
with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="controls"):
    try:
        named = library.checkpoint(st.session_state.get("model", wanted_model(models)))
        wanted, most = kind(named), pixels(named)
    except (ValueError, OSError):
        wanted, most = "text", 1  # the page says below why this model does not open
    show_fields(wanted, most)
    st.selectbox("model", models, models.index(FIRST), key="model", bind="query-params", on_change=new_model, width=145)
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
    shown = reading(checkpoint)
except (ValueError, OSError) as error:
    st.warning(str(error))
    st.stop()
if not len(shown.read):
    st.info("There is nothing to read yet: type a few words above.")
    st.stop()

config = checkpoint.model.config
with st.container(key="headline"):
    layers = f"{config.encoder.layers} + {config.layers}" if config.encoder else str(config.layers)
    parts = [f"{layers} layers", f"{config.attention.heads} heads", f"d {config.d_model}"]
    parts.append(f"{sum(p.numel() for p in checkpoint.model.parameters()):,} parameters")
    if "picture" in FIELDS[wanted] and not st.session_state.get("upload"):
        parts.insert(0, f"somebody’s {int(pictures()[1][given('picture')])}")
    st.caption(" · ".join(parts), help=checkpoint.card.get("about"))

temperature = st.session_state.attention
edits = [] if temperature == 1 else [AttentionTemperature(temperature)]
trace = library.traces.of(st.session_state.model, shown.read, edits, shown.target)
sampling = Sampling(st.session_state.temperature, st.session_state.top_k, st.session_state.top_p)
made = digest(st.session_state.model, trace)
limit = min(MAX_TOKENS, config.context)
stacks = lanes(checkpoint, shown)
said = outcome(checkpoint, trace, shown, sampling)


def answer(query: Mapping[str, Any]) -> bytes:
    """What the picture asks for later: a layer that was not sent, or the weights behind one element."""
    if query.get("trace") != made:
        raise ValueError("The text or the model has changed since; click again.")
    match query:
        case {"layer": int(layer), "side": str(side)}:
            return layer_payload(trace, layer, side)
        case {"hook": str(hook), "unit": int(unit), "row": int(row)}:
            return operands_payload(operands(checkpoint.model, hook, unit, row, len(stacks[-1].pieces)))
    raise ValueError("The picture asked for something this page does not know; reload the page.")


picture(
    walkthrough(
        trace,
        stacks,
        name=st.session_state.model,
        outcome=said,
        scores=scores(trace, stacks),
        picture=shown.picture,
        original=shown.original,
        notes={
            "notice": notice(shown, limit, config.context),
            "full": len(stacks[-1].pieces) >= limit,
            "look": {"layer": 0, "head": 0, **look()},
            "row0": first_row(checkpoint, shown, said),
            "attention_temperature": temperature,
            "sampling": {k: st.session_state[k] for k in ("temperature", "top_k", "top_p")},
        },
    ),
    key=PICTURE,
    on={"append": append, "again": again},
)
courier("courier", answer)

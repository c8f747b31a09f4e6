"""The walkthrough: one text or picture through one transformer, from what it reads to what it says."""

import streamlit as st
import torch

from engine.analysis.answers import best_answer, logistic, where_answers_stand
from engine.analysis.heads import CrossScores, HeadScores, cross_scores, head_scores
from engine.checkpoints import Checkpoint
from engine.edits import AttentionTemperature
from engine.generation.sampling import Sampling, distribution, draw
from engine.inputs.readers import SPAN, Reading, kind
from engine.model.layers.softmax import softmax
from engine.runtime import library
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding
from pages.controls.model_input.model_input import field_value, look, notice, pixels, reading, seed, subject
from pages.controls.share.links import honour_link
from pages.controls.share.run_export import fields_of, run_export
from pages.controls.what_if.experiment import event_value, what_if
from views.core.component import courier, view
from views.core.lanes import Lane, lanes
from views.core.run_context import RUN
from views.walkthrough.questions import WALKTHROUGH, WalkthroughContext
from views.walkthrough.walkthrough import Outcome, walkthrough
from views.what_if.questions import WHAT_IF

MENU = {"title": "Walkthrough", "address": "walkthrough", "place": 1, "opens": True}

PICTURE = "walkthrough"
UNNAMED = ("LABEL_0",)  # what transformers calls the only class of a head that nobody named
picture = view("walkthrough", events=("append", "again"))


def append() -> None:
    """Put the drawn token behind the text, as the text it stands for; a second click on the same picture is void."""
    checkpoint = library.checkpoint(st.session_state.model)
    field = {"translation": "target", "infill": "span"}.get(kind(checkpoint), "text")
    match event_value(PICTURE, "append"):
        case {"id": int(token), "length": int(length)}:
            if length != len(lanes(checkpoint, reading(checkpoint))[-1].pieces):
                return
        case _:
            return
    text, tokenizer = field_value(field), checkpoint.tokenizer
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


def again() -> None:
    st.query_params["seed"] = str(seed() + 1)


def outcome(checkpoint: Checkpoint, trace: Trace, read: Reading, sampling: Sampling) -> Outcome | None:
    """Distribution of the head, and where it continues a text that the model did not write the token drawn from it."""
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
    noun = "colours" if kind(checkpoint) == "pixels" else "tokens"
    if not config.generates:
        pair = "next_sentence" in trace and field_value("second").strip()
        follows = float(softmax(trace["next_sentence"][0])[0]) if pair else None
        return Outcome(following, names, "here", follows=follows, noun=noun)
    drawn = None if read.written else draw(following.probabilities[-1], torch.Generator().manual_seed(seed()))
    return Outcome(following, names, "next", drawn, noun=noun)


def judgement(checkpoint: Checkpoint, logits: torch.Tensor, reading: Reading, sampling: Sampling) -> Outcome:
    """Distribution of a head over classes: of the whole, of each position, or where an answer starts and ends."""
    read, alone = reading.read, checkpoint.model.config.outputs == 1
    names = checkpoint.labels if checkpoint.labels not in ((), UNNAMED) else None
    match checkpoint.model.config.head.kind:
        case "span" if isinstance(read, Encoding):
            asked = field_value("text") if kind(checkpoint) == "question" and field_value("second").strip() else ""
            answer = best_answer(logits, where_answers_stand(read, asked))
            return Outcome(
                distribution(logits.mT, sampling), read.pieces, "answer", answer=answer, read=read, noun="positions"
            )
        case "token" if alone:
            single = names or ("replaced",)
            return Outcome(logistic(logits, sampling.temperature), single, "here", link="logistic", noun="classes")
        case "token":
            return Outcome(distribution(logits, sampling), names, "here", noun="classes")
    link = checkpoint.model.config.link  # a score has nothing beside it that it could be a share of
    names = names or ("score",) if alone else names
    if link == "logistic":
        return Outcome(logistic(logits[None], sampling.temperature), names, "class", link=link, noun="classes")
    return Outcome(distribution(logits[None], sampling), names, "class", link=link, noun="classes")


def scores(trace: Trace, stacks: list[Lane]) -> dict[str, HeadScores | CrossScores]:
    """Measures what every attention does on this text."""
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
        if config.head.read != "last" or not isinstance(read, Encoding):
            return 0
        whole = torch.tensor([read.ids])
        return int(checkpoint.model.find_last(whole, None, whole)[0])
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


def temperatures() -> None:
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


honour_link()
looked_at = subject(temperatures)
checkpoint, shown = looked_at.checkpoint, looked_at.reading
temperature = st.session_state.attention
edits = [] if temperature == 1 else [AttentionTemperature(temperature)]
conducted = what_if(looked_at, edits)
trace = conducted.trace
sampling = Sampling(st.session_state.temperature, st.session_state.top_k, st.session_state.top_p)
stacks = lanes(checkpoint, shown)
said = outcome(checkpoint, trace, shown, sampling)
run = WalkthroughContext(
    looked_at.name, checkpoint, trace, stacks, conducted.before, lambda: fields_of(looked_at), said, sampling
)
CONTROLS = ("attention", "temperature", "top_k", "top_p", "what if")
export = run_export("Walkthrough", PICTURE, looked_at, run, CONTROLS)
drawn = walkthrough(
    trace,
    stacks,
    name=looked_at.name,
    outcome=said,
    scores=scores(trace, stacks),
    picture=shown.picture,
    original=shown.original,
    notes={
        "notice": notice(looked_at),
        "full": len(stacks[-1].pieces) >= looked_at.limit,
        "look": {"layer": 0, "head": 0, **look()},
        "row0": first_row(checkpoint, shown, said),
        "attention_temperature": temperature,
        "take": export.header,
        "sampling": {k: st.session_state[k] for k in ("temperature", "top_k", "top_p")},
    },
)
picture(drawn, key=PICTURE, on={"append": append, "again": again})
page = export.answers(drawn, (RUN, run), (WALKTHROUGH, run)).with_registry(WHAT_IF, conducted)
courier("courier", page.answer)

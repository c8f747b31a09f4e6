"""The block, and the whole: four lines, one token followed through all of them, and what a part knows."""

from typing import LiteralString

import pandas as pd
import streamlit as st

from engine.analysis.logit_lens import logit_lens
from engine.course.block import REACH, four_lines, multiply_both_ways, shuffle_gaps, sum_gaps
from engine.course.family import count_by_group
from engine.course.figure import Stop, walk
from engine.inputs.readers import read_translation, tokens
from engine.runtime import library
from engine.tokenizers.encoding import Encoding
from pages.controls.learn.fields import choose_option, choose_view, name_apart, other_input, read_field, read_short_text
from pages.controls.learn.figure import Lane, draw_figure
from pages.controls.learn.predict import choose, estimate, is_answered, is_found, show_code
from pages.controls.words import join_sentences, kept_entries, numeral
from pages.controls.words import translate as _

MODEL, ENCODER, BOTH = "everyday", "tales-bert", "translate-en-fr"
MASKED, SOURCE = "The queen loved [MASK] husband.", "She is wearing a red dress."
TEXT = "The little girl was thirsty, so she drank a"
OTHERS = "My cat sleeps on the roof of the train.", "Max gave the red ball to Anna"
MOST = 16  # tokens of the text
COLUMN = 3  # the number that is covered
BLOCK = 4  # at first, counted from 1
TOLERANCE = 0.02
EXACT = 1e-4  # below it a gap is rounding
QUESTION, LINEAR, ORDER = (f"block {part}question" for part in ("", "linear ", "order "))


def experiment() -> bool:
    checkpoint, above = library.checkpoint(MODEL), st.container()
    texts, places, blocks = st.columns([4, 2, 3], vertical_alignment="bottom")
    with texts:
        encoding = read_field("block-text", _("text"), TEXT, lambda said: read_short_text(checkpoint, said, MOST))
    with places:
        names = name_apart(encoding.pieces)
        at = st.selectbox(
            _("token"),
            range(len(names)),
            len(names) - 1,
            key=f"block-token {len(names)}",
            format_func=lambda place: f"{place + 1}. {names[place]}",
        )
    with blocks:
        layers = checkpoint.config.layers
        layer = int(st.slider(_("block"), 1, layers, BLOCK, key="block-layer", persist_state="session")) - 1
    stops = walk(library.traces.trace(MODEL, encoding), layer, at)
    first = next(number for number, stop in enumerate(stops) if stop.part == "add")
    shown = ask(stops[first])
    with above:
        lane = draw_lane(_("a decoder: {model}").format(model=MODEL), MODEL, encoding, layer, at, stops)
        draw_figure(
            [lane], key=f"{QUESTION} figure", label=_("one token through a block; left and right walk it"),
            step=(0, first), covered=None if shown and is_answered(QUESTION) else COLUMN,
        )  # fmt: skip
    if not shown:
        return False
    views = {
        "lines": _("four lines"),
        "kinds": _("three architectures"),
        "whole": _("the whole"),
        "linear": _("what is linear"),
        "order": _("what knows order"),
        "rows": _("rows and columns"),
    }
    view = choose_view("block-view", views)
    if view == "lines":
        draw_four_lines(encoding, layer)
    elif view == "kinds":
        draw_kinds()
    elif view == "whole":
        draw_whole(encoding, at)
    elif view == "linear":
        draw_linear(encoding, layer)
    elif view == "order":
        draw_order(encoding, layer)
    else:
        draw_rows(encoding, layer)
    return is_found(QUESTION)


def draw_lane(title: str, model: str, encoding: Encoding, layer: int, at: int, stops: list[Stop]) -> Lane:
    """The lane of a stack, whose last stop says the likeliest token, if it predicts one."""
    checkpoint = library.checkpoint(model)
    said = ""
    if stops[-1].part == "next token":
        assert checkpoint.tokenizer is not None
        probabilities = stops[-1].vector.softmax(-1)
        best = checkpoint.tokenizer.piece(int(probabilities.argmax())).strip()
        said = f"{best} {numeral(float(probabilities.max()), '.0%')}"
    hidden = encoding.ids[at] == checkpoint.tokenizer.mask_id if checkpoint.tokenizer else False
    return Lane(title, layer, checkpoint.config.layers, stops, encoding.pieces[at].strip(), said, hidden)


def draw_kinds() -> None:
    """A decoder, an encoder, and both, each drawn from a run of a model, and what each is for."""
    kinds = {"encoder": _("an encoder"), "both": _("both"), "decoder": _("a decoder")}
    kind = choose_option("block-kind", kinds)
    layer, key, label = 0, f"block kind {kind}", _("one token through a block; left and right walk it")
    if kind == "both":
        checkpoint = library.checkpoint(BOTH)
        reading = read_translation(checkpoint, SOURCE, "", MOST)
        source, target = reading.read, reading.target
        assert isinstance(source, Encoding) and target is not None
        trace = library.traces.trace(BOTH, source, target=target)
        ends = (("encoder.", source, _("the encoder reads")), ("decoder.", target, _("the decoder writes")))
        lanes = [
            draw_lane(title, BOTH, read, layer, len(read) // 2, walk(trace, layer, len(read) // 2, stack))
            for stack, read, title in ends
        ]
        model, text = BOTH, SOURCE
    else:
        model, text = (ENCODER, MASKED) if kind == "encoder" else (MODEL, TEXT)
        read = tokens(library.checkpoint(model), text)
        masked = library.checkpoint(model).tokenizer.mask_id if kind == "encoder" else None  # type: ignore[union-attr]
        at = list(read.ids).index(masked) if masked in read.ids else len(read) - 1
        stops = walk(library.traces.trace(model, read), layer, at)
        lanes = [draw_lane(f"{kinds[kind]}: {model}", model, read, layer, at, stops)]
    draw_figure(lanes, key=key, label=label, step=(0, 0))
    table = {
        _("architecture"): [_("encoder"), _("decoder"), _("both")],
        _("here"): [ENCODER, MODEL, BOTH],
        _("a token sees"): [
            _("all of the text"),
            _("itself and what is before"),
            _("all of one text, the past of the other"),
        ],
        _("for"): [
            _("judging, finding, comparing texts; filling gaps"),
            _("writing: chat, stories, code"),
            _("one text that becomes another: translating, summing up"),
        ],
        _("known ones"): ["BERT, DeBERTa, ModernBERT", "GPT, Llama, Qwen", "T5, BART, Whisper"],
    }
    st.dataframe(pd.DataFrame(table), hide_index=True, width="stretch")
    st.page_link(
        "pages/explore/walkthrough.py", label=_("Open {model} in the Walkthrough").format(model=model),
        icon=":material/search:", query_params={"model": model, "text": text} | kept_entries(),
    )  # fmt: skip


def ask(added: Stop) -> bool:
    x, attended = (float(vector[COLUMN]) for vector in added.made_of)
    answer = float(added.vector[COLUMN])
    sentence = _("Attention is added to what entered: {x:.2f} + ({attended:.2f}) = {answer:.2f}.")
    reason = sentence.format(x=x, attended=attended, answer=answer)

    def why(said: float) -> str:
        if abs(said - attended) <= TOLERANCE:
            return join_sentences(_("That is what attention gives; it does not replace what was there."), reason)
        if abs(said - x) <= TOLERANCE:
            return join_sentences(_("That is what was there; what attention brings is added to it."), reason)
        return reason

    question = _("Attention’s branch comes back to the stream. One number of the sum is covered: what is it?")
    return estimate(
        question, answer, TOLERANCE, key=QUESTION, why=why, again=other_input("block-text", (TEXT, *OTHERS))
    )


def draw_four_lines(encoding: Encoding, layer: int) -> None:
    st.code("a = attention(norm1(x))\nx = x + a\nm = MLP(norm2(x))\nx = x + m", language="python", wrap_lines=True)
    lines = four_lines(MODEL, encoding.ids, layer)
    trace = library.traces.trace(MODEL, encoding)
    gap = float((lines[-1] - trace[f"blocks.{layer}.resid_post"][0]).abs().max())
    said = _("Done by hand for all {count} tokens, they differ from the model’s own block by at most {gap:.0e}.")
    st.caption(said.format(count=len(encoding), gap=gap))
    show_code(four_lines, key="block code lines", name=MODEL, ids=list(encoding.ids), layer=layer)


# --- the whole ---


def draw_whole(encoding: Encoding, at: int) -> None:
    checkpoint = library.checkpoint(MODEL)
    trace, layers = library.traces.trace(MODEL, encoding), checkpoint.config.layers
    lens = logit_lens(checkpoint.model, trace, 1)
    assert checkpoint.tokenizer is not None
    entered = trace["blocks.0.resid_pre"][0, at]
    streams = [entered, *(trace[f"blocks.{layer}.resid_post"][0, at] for layer in range(layers))]
    names = [_("embedding"), *(_("after block {number}").format(number=number + 1) for number in range(layers))]
    said = [checkpoint.tokenizer.piece(id) for id in lens.ids[:, at, 0].tolist()]
    shares = [numeral(share, ".3f") for share in lens.probability[:, at, 0].tolist()]
    lengths = [numeral(float(stream.norm()), ".2f") for stream in streams]
    rows = list(zip(names, lengths, said, shares, strict=True))
    columns = [_("the token"), _("length of its vector"), _("if the model ended here, it would say"), _("p")]
    st.dataframe(pd.DataFrame(rows, columns=columns), hide_index=True, width="stretch")
    counted = {group: int(formula.value) for group, formula in count_by_group(checkpoint.config).items()}
    total = sum(counted.values())
    listed = ", ".join(f"{group} {numeral(value / total, '.0%')}" for group, value in counted.items())
    about = _("The same four lines {layers} times, with other weights each time. Of its {total} weights: {listed}.")
    st.caption(about.format(layers=layers, total=numeral(total, ","), listed=listed))


# --- its parts ---


def draw_gaps(gaps: dict[str, float], asked: str, question: LiteralString, key: str) -> None:
    """A table of the parts; the first is shown, and which of the others has no gap is asked for."""
    titles = {
        "norm": _("norm"),
        "attention": _("attention"),
        "attention, bare": _("attention without mask and positions"),
        "convolution": _("a convolution of {count} rows").format(count=REACH),
    }
    above, (first, *rest) = st.container(), gaps
    named, alike = {part: titles.get(part, part) for part in gaps}, [part for part in rest if gaps[part] < EXACT]
    covered = False
    if len(alike) == 1:
        reason = _("The gap of {right} is {least:.1%}.").format(right=named[alike[0]], least=gaps[alike[0]])

        def why(said: int) -> str:
            if rest[said] == alike[0]:
                return reason
            sentence = _("The gap of {said} is {gap:.1%}.").format(said=named[rest[said]], gap=gaps[rest[said]])
            return join_sentences(sentence, reason)

        choose(question, [named[part] for part in rest], rest.index(alike[0]), key=key, why=why)
        covered = not is_answered(key)
    rows = [
        (named[part], "?", "?")
        if covered and part != first
        else (named[part], numeral(gap, ".1%"), _("yes") if gap < EXACT else _("no"))
        for part, gap in gaps.items()
    ]
    table = pd.DataFrame(rows, columns=[_("part"), _("gap"), asked])
    above.dataframe(table, hide_index=True, width="stretch")


def draw_linear(encoding: Encoding, layer: int) -> None:
    question = _("Every gap is covered except the one of a matrix. Which other part is linear?")
    draw_gaps(sum_gaps(MODEL, encoding.ids, layer), _("linear?"), question, LINEAR)
    st.caption(
        _(
            "Linear: f(a + b) = f(a) + f(b). Here a is what enters the block, and b the same with every token one "
            "place further. The gap is a share of the largest number."
        )
    )
    show_code(sum_gaps, key="block code linear", name=MODEL, ids=list(encoding.ids), layer=layer)


def draw_order(encoding: Encoding, layer: int) -> None:
    question = _(
        "Every gap is covered except the one of the MLP. Which other part knows nothing of the order of its rows?"
    )
    draw_gaps(shuffle_gaps(MODEL, encoding.ids, layer), _("follows the shuffle?"), question, ORDER)
    st.caption(
        _(
            "The rows are shuffled before the part, or after it: what knows nothing of their order gives the same. A "
            "convolution is built on neighbours; attention must be told where a token stands, and learns what to make "
            "of it."
        )
    )
    show_code(shuffle_gaps, key="block code order", name=MODEL, ids=list(encoding.ids), layer=layer)


def draw_rows(encoding: Encoding, layer: int) -> None:
    by_rows, by_columns = multiply_both_ways(MODEL, encoding.ids, layer)
    length, width = by_rows.shape
    gap = float((by_rows - by_columns.T).abs().max())
    inner = library.checkpoint(MODEL).config.d_model
    table = {
        _("tokens are"): [_("rows"), _("columns")],
        _("written"): ["Q = X W", "Q' = W' X'"],
        _("shapes"): [f"({length}, {inner}) · ({inner}, {width})", f"({width}, {inner}) · ({inner}, {length})"],
        _("gives"): [f"({length}, {width})", f"({width}, {length})"],
    }
    st.dataframe(pd.DataFrame(table), hide_index=True, width="stretch")
    said = _(
        "The same numbers, transposed: they differ by at most {gap:.0e}. Loupe and most code have tokens as rows; many "
        "books have them as columns, with every factor transposed and in the other order. W' is W transposed."
    )
    st.caption(said.format(gap=gap))
    show_code(multiply_both_ways, key="block code rows", name=MODEL, ids=list(encoding.ids), layer=layer)

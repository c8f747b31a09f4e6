"""The block, and the whole: four lines, one token followed through all of them, and what a part knows."""

from typing import LiteralString

import pandas as pd
import streamlit as st
import torch

from engine.analysis.logit_lens import logit_lens
from engine.course.block import LINES, REACH, four_lines, multiply_both_ways, shuffle_gaps, sum_gaps
from engine.course.family import count_by_group
from engine.runtime import library
from engine.tokenizers.encoding import Encoding
from pages.controls.figures import cover, matrix
from pages.controls.learn.fields import choose_view, name_apart, other_input, read_field, read_short_text
from pages.controls.learn.predict import choose, estimate, is_answered, is_found, show_code
from pages.controls.words import join_sentences, numeral
from pages.controls.words import translate as _

MODEL = "everyday"
TEXT = "The little girl was thirsty, so she drank a"
OTHERS = "My cat sleeps on the roof of the train.", "Max gave the red ball to Anna"
MOST, SHOWN = 16, 8  # tokens of the text; numbers of a vector that are shown
ASKED = LINES.index("x + attention")
COLUMN = 3  # the number that is covered
BLOCK = 4  # at first, counted from 1
TOLERANCE = 0.02
EXACT = 1e-4  # below it a gap is rounding
QUESTION, LINEAR, ORDER = (f"block {part}question" for part in ("", "linear ", "order "))


def experiment() -> bool:
    checkpoint = library.checkpoint(MODEL)
    encoding = read_field("block-text", _("text"), TEXT, lambda said: read_short_text(checkpoint, said, MOST))
    left, right = st.columns(2)
    with left:
        names = name_apart(encoding.pieces)
        at = st.selectbox(
            _("token"),
            range(len(names)),
            len(names) - 1,
            key=f"block-token {len(names)}",
            format_func=lambda place: f"{place + 1}. {names[place]}",
        )
    with right:
        layers = checkpoint.config.layers
        layer = int(st.slider(_("block"), 1, layers, BLOCK, key="block-layer", persist_state="session")) - 1
    found = torch.stack([line[at, :SHOWN] for line in four_lines(MODEL, encoding.ids, layer)])
    place = st.container()
    shown = ask(found)
    with place:
        draw_lines(found, covered=not (shown and is_answered(QUESTION)))
    if not shown:
        return False
    views = {
        "lines": _("four lines"),
        "whole": _("the whole"),
        "linear": _("what is linear"),
        "order": _("what knows order"),
        "rows": _("rows and columns"),
    }
    view = choose_view("block-view", views)
    if view == "lines":
        draw_four_lines(encoding, layer)
    elif view == "whole":
        draw_whole(encoding, at)
    elif view == "linear":
        draw_linear(encoding, layer)
    elif view == "order":
        draw_order(encoding, layer)
    else:
        draw_rows(encoding, layer)
    return is_found(QUESTION)


def titles() -> list[str]:
    """Titles of LINES, as the picture has them."""
    return [
        _("x enters"), _("norm"), _("attention"), _("x + attention"), _("norm"), _("MLP"), _("x leaves"),
    ]  # fmt: skip


def draw_lines(found: torch.Tensor, covered: bool) -> None:
    """The first numbers of one token on their way through the block; the one that is asked for is covered."""
    rows = [f"{number + 1}. {title}" for number, title in enumerate(titles())]
    matrix(
        cover(found, (ASKED, COLUMN)) if covered else found, rows=rows,
        columns=[str(number) for number in range(found.shape[1])],
        scale="signed", role="residual", digits=2, key=f"{QUESTION} picture", label=_("one token through the block"),
    )  # fmt: skip


def ask(found: torch.Tensor) -> bool:
    x, normed, attended = (float(value) for value in found[:3, COLUMN])
    answer = float(found[ASKED, COLUMN])
    sentence = _("Attention is added to what entered: {x:.2f} + ({attended:.2f}) = {answer:.2f}.")
    reason = sentence.format(x=x, attended=attended, answer=answer)

    def why(said: float) -> str:
        if abs(said - attended) <= TOLERANCE:
            return join_sentences(_("That is what attention gives; it does not replace what was there."), reason)
        if abs(said - (normed + attended)) <= TOLERANCE:
            return join_sentences(_("The norm is read by attention alone; the stream itself stays as it is."), reason)
        return reason

    question = _("One number is covered: row {row}, column {column}. What is it?").format(row=ASKED + 1, column=COLUMN)
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

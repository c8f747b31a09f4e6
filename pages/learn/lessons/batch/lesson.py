"""A batch: two texts of different length in one tensor, the padding mask, and the shorter row alone and together."""

import streamlit as st
import torch

from engine.course.batch import RowComparison, compare_row, fill, read_rows, tokenizer_of
from pages.controls.figures import cover, matrix, tokens
from pages.controls.learn.fields import choose_view, other_input, read_field, read_words, write_matrix
from pages.controls.learn.predict import estimate, is_answered, is_found, point, show_code
from pages.controls.state.session import widget_value
from pages.controls.words import join_sentences, numeral
from pages.controls.words import translate as _
from pages.controls.words import translate_count as _n
from views.core.markdown import code_markdown, escape_markdown

TEXTS = ("Max gave the red ball to Anna.", "She smiled.")
OTHERS = "He ran home.", "Tom sat on the bed."  # of the second
IDS = "[[1, 8, 3, 2], [1, 10, 2]]"
OTHER_IDS = "[[1, 8, 3, 5, 2], [1, 2]]", "[[1, 2], [1, 8, 3, 2]]"
MOST, MOST_ROWS, MOST_IDS = 48, 4, 16  # characters of a text; rows and ids of one
DIGITS, SHOWN, ENTRIES = 3, 6, 4  # decimals, tokens and vocabulary entries of the outputs
TOLERANCE = 2  # % of the attention
QUESTION, MASK, SHARE = (f"batch {part}question" for part in ("", "mask ", "share "))


def experiment() -> bool:
    above = st.container(gap="xsmall")
    name, rows = choose_rows()
    ids, real = fill(rows)
    shown = ask(name, rows, real) if not real.all() else True
    with above:
        draw_rows(name, rows, covered=not (real.all() or (shown and is_answered(QUESTION))))
    if not shown:
        return False
    shorter = min(range(len(rows)), key=lambda at: len(rows[at]))
    views = {"ids": _("ids and mask"), "outputs": _("outputs"), "attention": _("attention")}
    with st.container(horizontal=True, vertical_alignment="center"):
        view = choose_view("batch-view", views)
        masked = st.toggle(_("padding mask"), value=True, key="batch-mask", persist_state="session")
    if view == "ids":
        draw_ids(rows, masked)
    else:
        found = compare_row(name, rows, shorter, masked)
        draw = draw_outputs if view == "outputs" else draw_attention
        draw(found, name, rows, shorter)
        draw_verdict(found, name, rows, shorter, masked)
    return is_found(QUESTION)


def draw_rows(name: str, rows: list[list[int]], covered: bool) -> None:
    """The tokens of each row, and the tensor; in that the shorter rows are covered while padding is asked for."""
    for at, pieces in enumerate(pieces_of(name, rows)):
        tokens(pieces, key=f"batch row {at}", label=_("tokens of row {row}").format(row=at + 1))
    ids, real = fill(rows)
    st.caption(_("ids, {shape}: filled up with 0").format(shape=escape_markdown(str(list(ids.shape)))))
    counts = [
        _n("row {row}: {count} token", "row {row}: {count} tokens", len(row)).format(row=at + 1, count=len(row))
        for at, row in enumerate(rows)
    ]
    matrix(
        cover(ids, ~real.all(1)) if covered else ids, rows=counts, columns=[str(at + 1) for at in range(ids.shape[1])],
        digits=0, key=f"{QUESTION} picture", role="residual", label=_("ids, batch pos"),
    )  # fmt: skip
    if real.all():
        st.caption(_("All rows have one length, so nothing is filled up; make one of them longer."))


def ask(name: str, rows: list[list[int]], real: torch.Tensor) -> bool:
    filled, (count, longest) = int((~real).sum()), real.shape
    pieces = pieces_of(name, rows)
    reason = _("{rows} rows of {longest} are {entries} entries; {tokens} hold tokens, and {filled} hold none.").format(
        rows=count, longest=longest, entries=real.numel(), tokens=int(real.sum()), filled=filled
    )

    def why(said: tuple[int, int]) -> str:
        row, column = said
        if not real[row, column]:
            return reason
        held = _("That entry holds “{token}”: a row begins with its own tokens.")
        return join_sentences(held.format(token=pieces[row][column]), reason)

    return point(
        _("A tensor has rows of one length, that of the longest. Click an entry that is padding."),
        real.shape,
        [(row, column) for row, column in (~real).nonzero().tolist()],
        key=QUESTION,
        name=lambda at: _("row {row}, column {column}").format(row=at[0] + 1, column=at[1] + 1),
        why=why,
        again=turn,
    )


def turn() -> None:
    """Sets other rows, of the kind that is shown."""
    if widget_value("batch-kind") == "ids":
        other_input("batch-ids", (IDS, *OTHER_IDS))()
    else:
        other_input("batch-text 1", (TEXTS[1], *OTHERS))()


def choose_rows() -> tuple[str, list[list[int]]]:
    """The model, and what it reads: texts, or ids as they are."""
    models = {"tales-bert": _("tales-bert, looks both ways"), "everyday": _("everyday, looks back")}
    kinds = {"texts": _("texts"), "ids": _("ids")}
    with st.container(horizontal=True):
        name = st.segmented_control(
            _("model"), list(models), default="tales-bert", key="batch-model", required=True,
            format_func=models.__getitem__, label_visibility="collapsed", persist_state="session",
        )  # fmt: skip
        kind = st.segmented_control(
            _("rows"), list(kinds), default="texts", key="batch-kind", required=True, format_func=kinds.__getitem__,
            label_visibility="collapsed", persist_state="session",
        )  # fmt: skip
    size = min(tokenizer_of(model).vocab_size for model in models)  # what is typed stands for either

    def read(said: str) -> list[list[int]]:
        try:
            return read_rows(said, size, MOST_ROWS, MOST_IDS)
        except ValueError:
            sentence = _("Expected 2 to {rows} rows of 1 to {most} whole numbers below {size}, as {example}.")
            raise ValueError(sentence.format(rows=MOST_ROWS, most=MOST_IDS, size=size, example=IDS)) from None

    if kind == "ids":
        return str(name), read_field("batch-ids", _("ids, a row each"), IDS, read)
    places = st.columns(2)
    said = []
    for at, (place, default) in enumerate(zip(places, TEXTS, strict=True)):
        with place:
            label = _("text {row}").format(row=at + 1)
            said.append(read_field(f"batch-text {at}", label, default, read_words(MOST)))
    read_as = [tokenizer_of(str(name)).encode(text) for text in said]
    if any(len(encoding) > MOST_IDS for encoding in read_as):
        st.caption(_("Of each text the first {most} tokens are read.").format(most=MOST_IDS))
    return str(name), [list(encoding.truncate(MOST_IDS).ids) for encoding in read_as]


def pieces_of(name: str, rows: list[list[int]]) -> list[list[str]]:
    tokenizer = tokenizer_of(name)
    return [[tokenizer.piece(id) for id in row] for row in rows]


def draw_ids(rows: list[list[int]], masked: bool) -> None:
    ids, real = fill(rows)
    mask = real if masked else real | True
    names = [_("row {row}").format(row=at + 1) for at in range(len(rows))]
    st.caption(_("padding mask: 1 where a token may be looked at"))
    above, asked = st.container(), masked and not bool(real.all())
    if asked:
        ask_mask(real)
    with above:
        matrix(
            cover(mask, ...) if asked and not is_answered(MASK) else mask,
            rows=names,
            digits=0,
            key="batch mask",
            role="attention",
            label=_("padding mask, batch pos"),
        )
    if not masked:
        st.caption(_("Without it the model cannot tell padding from tokens: every entry counts."))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(code_markdown(write_matrix(ids)))
        show_code(fill, key="batch code", rows=rows)


def ask_mask(real: torch.Tensor) -> None:
    filled = int((~real).sum())
    reason = _("Entries: {entries}; with a token: {tokens}. The others are 0.").format(
        entries=real.numel(), tokens=int(real.sum())
    )

    def why(said: float) -> str:
        if said == int(real.sum()) != filled:
            return join_sentences(_("That is how many are 1."), reason)
        return reason

    estimate(_("The mask is covered. How many of its entries are 0?"), filled, 0, key=MASK, why=why)


def draw_outputs(found: RowComparison, name: str, rows: list[list[int]], row: int) -> None:
    """Logits of the entries that the last token, alone, finds likeliest."""
    pieces = pieces_of(name, rows)[row][:SHOWN]
    top = found.alone[-1].topk(ENTRIES).indices
    (names,) = pieces_of(name, [top.tolist()])
    titles = {"alone": _("logits of row {row}, alone"), "together": _("logits of row {row}, in the batch")}
    for place, values, title in zip(st.columns(2), (found.alone, found.together), titles, strict=True):
        with place:
            st.caption(titles[title].format(row=row + 1))
            matrix(
                values[:SHOWN, top], rows=pieces, columns=names, digits=DIGITS, scale="signed", role="residual",
                key=f"batch logits {title}", label=_("logits, pos vocab"),
            )  # fmt: skip


def draw_attention(found: RowComparison, name: str, rows: list[list[int]], row: int) -> None:
    pieces = pieces_of(name, rows)[row]
    padding = [_("padding")] * (found.pattern.shape[-1] - len(pieces))
    st.caption(_("weights of row {row} in the batch, mean over all layers and heads").format(row=row + 1))
    above, weights, covered = st.container(), found.pattern.mean((0, 1)), False
    if padding:
        ask_share(100 * found.on_padding)
        covered = not is_answered(SHARE)
    with above:
        matrix(
            cover(weights, (..., slice(len(pieces), None))) if covered else weights,
            rows=pieces,
            columns=[*pieces, *padding],
            digits=2,
            key="batch pattern",
            label=_("weights, pos key"),
        )
    if not covered:
        st.markdown(_("Padding gets {share:.1%} of the attention.").format(share=found.on_padding))


def ask_share(percent: float) -> None:
    hidden = _("Its scores become −∞, and the softmax makes that 0.")
    seen = _("Without the mask its scores count as those of a token.")
    question = _("The columns of padding are covered. How much of the attention do they get, in %?")
    estimate(question, percent, TOLERANCE, key=SHARE, unit="%", why=lambda _said: seen if percent else hidden)


def draw_verdict(found: RowComparison, name: str, rows: list[list[int]], row: int, masked: bool) -> None:
    """Draws a sentence on what the batch changed, over all logits of the row and not only those that are drawn."""
    changed, count = found.changed(DIGITS), found.alone.numel()
    said = {"changed": numeral(changed, ","), "count": numeral(count, ","), "digits": DIGITS}
    said["gap"] = numeral(found.gap, ".1e")
    sentence = _("With {digits} decimals {changed} of all {count} logits of the row differ; the largest gap is {gap}.")
    st.markdown(sentence.format(**said))
    if not masked and len(rows[row]) < max(map(len, rows)):
        if changed:
            piece = escape_markdown(pieces_of(name, [[0]])[0][0])
            sentence = _("The padding is read as the token of id 0, {piece}, and mixed into the text.")
            st.caption(sentence.format(piece=piece))
        else:
            st.caption(_("Nothing changes even so: this model looks only back, and padding comes after the text."))
    show_code(compare_row, key="batch code outputs", name=name, rows=rows, row=row, masked=masked)

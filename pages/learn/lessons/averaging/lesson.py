"""From averaging to attention: a loop, a matrix, a softmax, and weights made from the data, on one tensor."""

import streamlit as st
import torch
from torch import Tensor

from engine.course.arrows import Flat, flatten
from engine.course.averaging import (
    average_by_loop,
    running_sums,
    scores_of,
    softmax_weights,
    triangular_weights,
    weighted_average,
)
from engine.course.plane import NAME as PLANE
from engine.runtime import library
from engine.tokenizers.encoding import Encoding
from pages.controls.figures import cover, matrix
from pages.controls.learn.arrows import Gathered, draw_arrows, read_known_words
from pages.controls.learn.fields import (
    choose_option,
    choose_view,
    name_apart,
    other_input,
    read_field,
    read_matrix,
    read_short_text,
    read_tensor,
    write_matrix,
)
from pages.controls.learn.predict import Again, estimate, is_answered, is_found, point, show_code
from pages.controls.words import numerals
from pages.controls.words import translate as _
from views.core.markdown import code_markdown

MODEL, MOST_TOKENS = "everyday", 8
TEXTS = {PLANE: "Anna saw the dog", MODEL: "The little girl was thirsty"}
OTHER_TEXTS = {PLANE: ("Tom saw the cat", "Mary saw the dog and"), MODEL: ("My cat sleeps", "Max gave Anna the ball")}
TENSOR = "[[2, 3], [1, 1], [0, 1]]"
OTHERS = "[[4, 0], [2, 1], [0, 2]]", "[[1, 5], [3, 1], [2, 2], [6, 0]]"
WEIGHTS, NUMBERS = "[.1, .3, .6]", "[2, 5, 9]"  # of one's own
TOLERANCE = 0.02
OWN = "own"
QUESTION, SHARE, MOST = "averaging question", "averaging share question", "averaging most question"


def experiment() -> bool:
    pictured, arrows = st.columns([7, 4])
    with pictured:
        above = st.container()
        sources = {PLANE: _("words in a plane"), MODEL: _("a trained model"), OWN: _("own numbers")}
        source = choose_option("averaging-source", sources)
        names, flat, key = read_own() if source == OWN else read_vectors(source)
    x = flat.vectors
    mean = average_by_loop(x)
    others = (TENSOR, *OTHERS) if source == OWN else (TEXTS[source], *OTHER_TEXTS[source])
    shown = ask(x, mean, other_input(key, others))
    covered = not (shown and is_answered(QUESTION))
    with above:
        draw_means(x, names, mean, covered)
    ways = {
        "loop": _("a loop"),
        "matrix": _("a matrix"),
        "softmax": _("a softmax"),
        "data": _("weights of the data"),
        "own": _("own weights"),
    }
    way, weights = "loop", None
    if shown:
        with pictured:
            way = choose_view("averaging-view", ways)
            weights = draw_way(way, x, names, mean)
    with arrows:
        if x.shape[1] == 2:
            hidden = covered or (way == "data" and not is_answered(MOST))
            draw_plane(names, x, softmax_weights(torch.zeros(len(x), len(x))) if weights is None else weights, hidden)
        if flat.share < 1:
            sentence = _("Two directions of {count} hold {share:.0%} of the squares of all their numbers.")
            st.caption(sentence.format(count=library.checkpoint(MODEL).config.d_model, share=flat.share))
    return is_found(QUESTION)


def read_own() -> tuple[list[str], Flat, str]:
    x = read_field("averaging-x", _("x, one row a token"), TENSOR, read_matrix)
    return number_rows(len(x)), Flat(x, 1.0, torch.eye(x.shape[1])), "averaging-x"


def read_vectors(model: str) -> tuple[list[str], Flat, str]:
    """Vectors of the words as they enter a model, in the plane that tells most of them."""
    checkpoint, key = library.checkpoint(model), f"averaging-words {model}"

    def read(said: str) -> Encoding:
        return read_known_words(said) if model == PLANE else read_short_text(checkpoint, said, MOST_TOKENS)

    encoding = read_field(key, _("words"), TEXTS[model], read)
    trace = library.traces.trace(model, encoding)
    return name_apart(encoding.pieces), flatten(trace["blocks.0.resid_pre"][0]), key


def draw_plane(names: list[str], x: Tensor, weights: Tensor, covered: bool) -> None:
    """The words as arrows, and the mean of each and those before it; the last one's is hidden while it is asked for."""
    rows = [Gathered([0.0, 0.0], row.tolist(), (row[:, None] * x).tolist()) for row in weights]
    draw_arrows(
        names, x, [*rows[:-1], None if covered else rows[-1]], key="averaging arrows",
        label=_("each word an arrow; what one of them averages, set end to end"), told=_("This one is asked for."),
    )  # fmt: skip
    st.caption(_("Arrow keys, or a click on a word: green, its share of each word; blue, their sum."))


def draw_way(way: str, x: Tensor, names: list[str], mean: Tensor) -> Tensor | None:
    """Draws a way to make the mean; returns its weights where it is made of x."""
    if way == "own":
        draw_own()
        return None
    if way == "matrix":
        weights = draw_shares(names)
    elif way == "data":
        weights = draw_looks(x, names)
    else:
        weights = softmax_weights(torch.zeros(len(x), len(x)))
    if way == "loop":
        sums = write_matrix(running_sums(x), 2)
        st.caption(_("Running sums {sums}, each divided by how many rows it has.").format(sums=sums))
        show_code(average_by_loop, key="averaging code", x=x)
    elif way == "softmax":
        scores = torch.zeros(len(x), len(x))
        draw_weights(weights, names, "averaging softmax", scores)
        show_code(softmax_weights, key="averaging code softmax", scores=scores)
    if way == "data" and not is_answered(MOST):  # what comes out tells where the last row looks
        return weights
    out = mean if way == "loop" else weighted_average(weights, x)
    st.markdown(_("out = {values}").format(values=code_markdown(write_matrix(out, 3))))
    if way != "data":
        gap = float((out - mean).abs().max())
        st.caption(_("Largest difference from the loop: {gap:.1e}.").format(gap=gap))
    return weights


def draw_own() -> None:
    """Any weights times any numbers, a batch of either too."""
    left, right = st.columns(2)
    with left:
        weights = read_field("averaging-own-weights", _("weights, one row an output"), WEIGHTS, read_tensor)
    with right:
        x = read_field("averaging-own-x", _("x, one row a token; a list of such for a batch"), NUMBERS, read_tensor)
    column = x[:, None] if x.dim() == 1 else x
    if weights.shape[-1] != column.shape[-2] or (weights.dim() == column.dim() == 3 and len(weights) != len(column)):
        sentence = _("Expected as many weights a row as x has rows, {rows}, got {weights}; add or remove some.")
        st.caption(f":red[:material/error:] {sentence.format(rows=column.shape[-2], weights=weights.shape[-1])}")
        return
    out = weighted_average(weights, column)
    shapes = [f"({', '.join(map(str, one.shape))})" for one in (weights, column, out)]
    st.markdown(_("out = {values}").format(values=code_markdown(write_matrix(out[..., 0] if x.dim() == 1 else out))))
    st.caption(_("Shapes: {weights} @ {x} = {out}.").format(weights=shapes[0], x=shapes[1], out=shapes[2]))
    show_code(weighted_average, key="averaging code own", weights=weights, x=column)


def draw_means(x: Tensor, names: list[str], mean: Tensor, covered: bool) -> None:
    """The rows and beside them their means; the last number is covered while it is asked for."""
    both = torch.cat([x, mean], dim=1)
    columns = [name.format(number=at + 1) for name in (_("x {number}"), _("mean {number}")) for at in range(len(x[0]))]
    matrix(
        cover(both, (-1, -1)) if covered else both, rows=names, columns=columns, scale="signed",
        role="residual", digits=2, key=f"{QUESTION} picture", label=_("each row, and the mean of it and those above"),
    )  # fmt: skip


def number_rows(count: int) -> list[str]:
    return [str(at + 1) for at in range(count)]


def ask(x: Tensor, mean: Tensor, again: Again) -> bool:
    column = x[:, -1]
    total = " + ".join(f"({value:.4g})" if value < 0 else f"{value:.4g}" for value in column.tolist())
    reason = _("The last row is the mean of all rows: ({total}) / {count}.").format(count=len(x), total=total)
    mistakes = [
        (column.sum(), _("That is the sum, not yet divided by the number of rows.")),
        (x[-1].mean(), _("That is a mean along the row; each column is averaged by itself.")),
        (column[:-1].mean(), _("That leaves out the row itself, which counts too.")),
        (mean[:, -1].mean(), _("That is the mean of means; each row averages x, not the means above.")),
    ]

    def why(said: float) -> str:
        if abs(said - float(mean[-1, -1])) <= TOLERANCE:
            return reason
        named = next((name for value, name in mistakes if abs(said - float(value)) <= TOLERANCE), "")
        return f"{named} {reason}".strip()

    question = _("Every row becomes the mean of itself and the rows above. Which number is covered?")
    return estimate(question, float(mean[-1, -1]), TOLERANCE, key=QUESTION, why=why, again=again)


def draw_weights(weights: Tensor, names: list[str], key: str, scores: Tensor | None = None) -> None:
    terms = {} if scores is None else {_("score"): scores}
    matrix(weights, rows=names, columns=names, terms=terms, digits=2, key=key, label=_("weights, pos key"))


def draw_shares(names: list[str]) -> Tensor:
    """The weights of the means; one share of the last row is asked for."""
    length = len(names)
    weights, above = triangular_weights(length), st.container()
    question = _("One weight is covered: how much of row 1 is in row {row}?").format(row=length)
    reason = _("Row {row} averages itself and all above, each as much as the others: 1 / {row}.").format(row=length)
    estimate(question, float(weights[-1, 0]), TOLERANCE, key=SHARE, why=lambda _said: reason)
    with above:
        draw_weights(weights if is_answered(SHARE) else cover(weights, (-1, 0)), names, f"{SHARE} picture")
    show_code(triangular_weights, key="averaging code matrix", length=length)
    return weights


def draw_looks(x: Tensor, names: list[str]) -> Tensor:
    """The weights that the data make; the row that the last one looks at most is asked for."""
    scores, above = scores_of(x), st.container()
    weights, last = softmax_weights(scores), len(x) - 1
    reason = _("Its scores are {scores}: the largest one gets the largest weight, whichever row it is.")
    point(
        _("The last row is covered. Click in it where it looks most."),
        weights.shape,
        [(last, at) for at in (weights[last] == weights[last].max()).nonzero().flatten().tolist()],
        key=MOST,
        name=lambda at: _("row {row}, column {column}").format(row=at[0] + 1, column=at[1] + 1),
        why=lambda _said: reason.format(scores=numerals(scores[last].tolist(), ".2f")),
    )
    with above:
        draw_weights(weights if is_answered(MOST) else cover(weights, last), names, f"{MOST} picture", scores)
    show_code(softmax_weights, key="averaging code data", scores=scores)
    return weights

"""Masks and heads: who may look at whom, how attention is split and joined, and what takes two heads."""

from functools import lru_cache

import altair as alt
import pandas as pd
import streamlit as st
import torch

from engine.checkpoints import Checkpoint
from engine.course.heads import Fit, fit_difference, link_tokens, merge_heads, split_heads, training_examples
from engine.course.masks import KINDS, mask_of, pattern_under
from engine.runtime import library
from engine.tokenizers.encoding import Encoding
from pages.controls.figures import matrix
from pages.controls.learn.fields import choose_view, name_apart, other_input, read_field, read_short_text
from pages.controls.learn.predict import choose, estimate, is_answered, is_found, point, show_code
from pages.controls.state.session import SessionValue, event_value
from pages.controls.words import join_sentences
from pages.controls.words import translate as _
from pages.controls.words import translate_count as _n
from views.charts.show import show_altair
from views.charts.template import colors
from views.core.markdown import escape_markdown
from views.core.theme import Shade

MODEL, TEXT = "everyday", "The cat sat on the mat"
OTHERS = "She gave the dog a bone", "Tom likes to read books at night"
PARTICLE = "He picked the red ball up"
MOST = 10  # tokens
QUESTION, EXAMPLES, SHAPE = (f"masks_and_heads {part}question" for part in ("", "examples ", "shape "))
PAINTED = SessionValue[dict[int, torch.Tensor]]("masks painted by hand", dict)  # by the number of their tokens

fit = lru_cache(maxsize=8)(fit_difference)


def experiment() -> bool:
    checkpoint, above = library.checkpoint(MODEL), st.container()
    encoding = read_field("masks-text", _("text"), TEXT, lambda said: read_short_text(checkpoint, said, MOST))
    pieces = name_apart(encoding.pieces)
    shown = ask(pieces)
    with above:
        draw_weights(checkpoint, encoding, pieces, covered=not (shown and is_answered(QUESTION)))
    if not shown:
        return False
    views = {"mask": _("masks"), "examples": _("examples"), "shapes": _("shapes"), "two": _("one head or two")}
    view = choose_view("masks-view", views)
    if view == "mask":
        draw_masks(checkpoint, encoding, pieces)
    elif view == "examples":
        draw_examples(encoding, pieces)
    elif view == "shapes":
        draw_shapes(checkpoint, encoding)
    else:
        draw_two()
    return is_found(QUESTION)


def ask(pieces: list[str]) -> bool:
    length = len(pieces)
    row = (length - 1) // 2  # which has a later token
    hidden = (~mask_of("causal", length)[row]).nonzero().flatten().tolist()
    reason = _("It is at place {row} of {count}; later places: {hidden}.").format(
        row=row + 1, count=length, hidden=len(hidden)
    )

    def why(said: tuple[int, int]) -> str:
        if said[0] != row:
            other = _("Who looks is a row: that is the row of “{token}”.")
            return join_sentences(other.format(token=pieces[said[0]]), reason)
        if said[1] == row:
            return join_sentences(_("A token may look at itself."), reason)
        if said[1] < row:
            mistake = _("“{token}” is earlier, and may be looked at.").format(token=pieces[said[1]])
            return join_sentences(mistake, reason)
        return reason

    return point(
        _("Click a weight in the row of “{token}” that a causal mask makes 0.").format(token=pieces[row]),
        (length, length),
        [(row, col) for col in hidden],
        key=QUESTION,
        name=lambda at: f"{pieces[at[0]]} → {pieces[at[1]]}",
        why=why,
        again=other_input("masks-text", (TEXT, *OTHERS)),
    )


def draw_weights(checkpoint: Checkpoint, encoding: Encoding, pieces: list[str], covered: bool) -> None:
    """Without a mask, and under the causal one once it was asked for."""
    without = _("Weights of block 1, head 1 of {model} without a mask: rows look at columns.")
    under = _("The same weights under a causal mask: what is hidden is 0, and the rest of its row shares its part.")
    st.caption((without if covered else under).format(model=MODEL))
    mask = mask_of("none" if covered else "causal", len(pieces))
    weights = pattern_under(checkpoint, encoding, mask, 0, 0)
    matrix(weights, rows=pieces, columns=pieces, digits=2, key=f"{QUESTION} picture", label=_("weights"))


# --- masks ---


def draw_masks(checkpoint: Checkpoint, encoding: Encoding, pieces: list[str]) -> None:
    length, names = len(pieces), mask_names()
    kind = str(
        st.segmented_control(
            _("mask"),
            list(names),
            default="causal",
            key="masks-kind",
            required=True,
            format_func=lambda kind: escape_markdown(names[kind]),
            persist_state="session",
        )
    )
    size, most = 2, length - 1
    if kind in ("padding", "prefix", "window"):
        size = st.number_input(_("tokens"), 1, most, min(2, most), key=f"masks-size {length}", width=110)
    allowed = painted_mask(length) if kind == "painted" else mask_of(kind, length, int(size))
    left, right = st.columns(2)
    with left:
        st.caption(_("1: may look; click to change") if kind == "painted" else _("1: may look"))
        cell = matrix(
            allowed.int(), rows=pieces, columns=pieces, digits=0, key=f"masks {kind}", label=_("mask"), role="negative"
        )
        if kind == "painted":
            paint(cell, length)
    with right:
        st.caption(_("weights of block 1, head 1 of {model} under it").format(model=MODEL))
        pattern = pattern_under(checkpoint, encoding, allowed, 0, 0)
        matrix(pattern, rows=pieces, columns=pieces, digits=2, key=f"masks weights {kind}", label=_("weights"))
    empty = [pieces[pos] for pos in range(length) if not allowed[pos].any()]
    if empty:
        st.caption(_("Nothing is left to look at for {tokens}: its row is 0.").format(tokens=", ".join(empty)))
    if kind != "painted":
        show_code(mask_of, key=f"masks code {kind}", kind=kind, length=length, size=int(size))


def mask_names() -> dict[str, str]:
    named = {
        "none": _("none"),
        "causal": _("causal"),
        "padding": _("padding"),
        "prefix": _("prefix"),
        "window": _("window"),
    }
    return {**{kind: named[kind] for kind in KINDS}, "painted": _("painted")}


def painted_mask(length: int) -> torch.Tensor:
    return PAINTED.get().setdefault(length, mask_of("causal", length).clone())


def paint(cell: tuple[int, int] | None, length: int) -> None:
    """Turns over the cell that was clicked last, once a click."""
    clicked = event_value("masks painted", "pick")
    if cell is not None and clicked is not None:
        mask = painted_mask(length)
        mask[cell] = ~mask[cell]
        st.rerun()


# --- what a text teaches ---


def draw_examples(encoding: Encoding, pieces: list[str]) -> None:
    pairs, above = training_examples(list(encoding.ids)), st.container()
    last, length = _("“{token}” has nothing behind it that could be known."), len(pieces)
    reason = _("Every token but the last is followed by one that is known: {length} − 1 = {count}.")

    def why(said: float) -> str:
        because = reason.format(length=length, count=len(pairs))
        return f"{last.format(token=pieces[-1])} {because}" if said == length else because

    question = _("Tokens of the text: {length}. This is its first training example. How many has it in all?")
    estimate(question.format(length=length), len(pairs), 0, key=EXAMPLES, why=why)
    answered = is_answered(EXAMPLES)
    shown, whole = pairs if answered else pairs[:1], encoding.pieces
    rows = {
        _("what is read"): ["".join(whole[: len(prefix)]) for prefix, _next in shown],
        _("what comes next"): [whole[len(prefix)] for prefix, _next in shown],
    }
    with above:
        st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch")
    if answered:
        sentence = _n(
            "{tokens} tokens are {count} training example, computed in one pass: no token sees its answer.",
            "{tokens} tokens are {count} training examples, computed in one pass: no token sees its answer.",
            len(pairs),
        )
        st.markdown(sentence.format(tokens=len(encoding.ids), count=len(pairs)))
    show_code(training_examples, key="masks code examples", ids=list(encoding.ids))
    draw_particle()


def draw_particle() -> None:
    """A verb's particle that is far from it, and what each head gives from the one to the other."""
    st.markdown(_("What comes next may hang on a word far back: a verb’s particle, on the verb."))
    checkpoint, (left, *places) = library.checkpoint(MODEL), st.columns([3, 2, 2])
    with left:
        label = _("a verb whose particle comes later")
        encoding = read_field("masks-particle", label, PARTICLE, lambda said: read_short_text(checkpoint, said, MOST))
    pieces = name_apart(encoding.pieces)
    last = len(pieces) - 1

    def pick(place: int, label: str, options: range, at: int, key: str) -> int:
        return places[place].selectbox(
            escape_markdown(label), options, at, key=key, format_func=lambda one: escape_markdown(pieces[one])
        )

    verb = pick(0, _("the verb"), range(last), min(1, last - 1), f"masks-verb {last}")
    after = range(verb + 1, last + 1)
    particle = pick(1, _("its particle"), after, len(after) - 1, f"masks-after {last} {verb}")
    found = link_tokens(MODEL, encoding.ids, particle, verb)
    heads = [_("head {number}").format(number=number + 1) for number in range(found.weights.shape[1])]
    blocks = [_("block {number}").format(number=number + 1) for number in range(len(found.weights))]
    label = _("weights of all heads")
    matrix(found.weights, rows=blocks, columns=heads, digits=2, key="masks particle weights", label=label)
    share = float(found.weights[found.layer, found.head])
    sentence = _("From “{particle}” to “{verb}”, block {layer}, head {head} gives the most: {share:.0%}.")
    place = {"layer": found.layer + 1, "head": found.head + 1, "share": share}
    told = sentence.format(particle=pieces[particle], verb=pieces[verb], **place)
    st.caption(join_sentences(told, compare_between(found.between, share, pieces[verb])))
    show_code(link_tokens, key="masks code particle", name=MODEL, ids=list(encoding.ids), pos=particle, seen=verb)


def compare_between(between: torch.Tensor, share: float, verb: str) -> str:
    """Whether the particle looks at the verb more than the tokens between them do."""
    if not len(between):
        return ""
    mean = float(between.mean())
    sentence = _(
        "From the tokens in between it gives {mean:.0%} on average, less than half of that: the particle does more."
    )
    if mean > share / 2:
        sentence = _(
            "But from the tokens in between it gives {mean:.0%} on average: it looks at “{verb}” from others too, not "
            "for the particle alone."
        )
    return sentence.format(mean=mean, verb=verb)


# --- shapes ---


def draw_shapes(checkpoint: Checkpoint, encoding: Encoding) -> None:
    config = checkpoint.model.config
    trace = library.traces.trace(MODEL, encoding)
    x = trace["blocks.0.norm1.out"]
    q = trace["blocks.0.attn.q"]
    z = trace["blocks.0.attn.z"]
    split = split_heads(q.flatten(2), config.attention.heads)
    joined = merge_heads(z.transpose(1, 2))
    out = trace["blocks.0.attn.out"]
    biased, own = _("q = x W_Q + b, cut into heads"), _("q = x W_Q, cut into heads")
    out_biased, out_own = _("out = joined · W_O + b"), _("out = joined · W_O")
    rows = [
        (_("x, one vector a token"), "[B, T, D]", x),
        (biased if config.attention.bias else own, "[B, T, H, d]", q),
        (_("q, heads before tokens"), "[B, H, T, d]", split),
        (_("pattern of each head"), "[B, H, T, T]", trace["blocks.0.attn.pattern"]),
        (_("z = pattern · v, mixed values"), "[B, T, H, d]", z),
        (_("heads side by side again"), "[B, T, D]", joined),
        (out_biased if config.attention.out_bias else out_own, "[B, T, D]", out),
    ]
    above = st.container()
    pattern = trace["blocks.0.attn.pattern"]
    ask_shape([list(value.shape) for _what, _axes, value in rows], list(pattern.shape))
    covered = None if is_answered(SHAPE) else pattern
    table = pd.DataFrame(
        [(what, "?", "?") if value is covered else (what, axes, str(list(value.shape))) for what, axes, value in rows],
        columns=[_("step"), _("axes"), _("shape in {model}").format(model=MODEL)],
    )
    above.dataframe(table, hide_index=True, width="stretch")
    sentence = _(
        "Every head reads all D = {width} numbers of x. Its q, k and v have d = {size} each, and those of H = {heads} "
        "heads fill D again."
    )
    heads, size = config.attention.heads, config.d_model // config.attention.heads
    st.caption(sentence.format(width=config.d_model, heads=heads, size=size))
    show_code(split_heads, key="masks code shapes", x=torch.arange(12.0).view(1, 2, 6), heads=2)


def ask_shape(shapes: list[list[int]], shape: list[int]) -> None:
    options = sorted({str(one) for one in shapes})
    reason = _("Each of {heads} heads has a weight of each token for each token: {tokens} × {tokens}.")
    choose(
        _("One shape is covered: that of the pattern of each head. Which is it?"),
        options,
        options.index(str(shape)),
        key=SHAPE,
        why=lambda _said: reason.format(heads=shape[1], tokens=shape[2]),
    )


# --- what takes two heads ---


def draw_two() -> None:
    st.markdown(_("Task: give the token before **minus** the first one. Weights of a head are positive and sum to 1."))
    chart, *places = st.columns([5, 3, 3, 3])
    seed = chart.number_input(_("seed"), 0, 999, 0, key="masks-seed", width=110, persist_state="session")
    fits = {heads: fit(heads, seed=int(seed)) for heads in (1, 2)}
    with chart:
        show_altair(lambda shade: draw_losses(fits, shade), key="masks losses")
    shown = [(heads, number) for heads, found in fits.items() for number in range(len(found.values))]
    for place, (heads, number) in zip(places, shown, strict=True):
        found = fits[heads]
        with place:
            alone, of_two = _("alone, value {value:+.2f}"), _("{number} of 2, value {value:+.2f}")
            named = alone if heads == 1 else of_two
            st.caption(named.format(number=number + 1, value=float(found.values[number])))
            matrix(found.patterns[number], key=f"masks fit {heads} {number}", label=_("weights of a head"))
    one, two = (found.losses[-1] for found in fits.values())
    st.caption(_("Squared error at the end: one head {one:.3g}, two heads {two:.3g}.").format(one=one, two=two))
    show_code(fit_difference, key="masks code two", heads=2, seed=int(seed))


def draw_losses(fits: dict[int, Fit], shade: Shade) -> alt.Chart:
    table = pd.concat(
        pd.DataFrame({"step": range(len(found.losses)), "loss": found.losses, "heads": str(heads)})
        for heads, found in fits.items()
    )
    ink = colors(shade)
    return (
        alt.Chart(table[table["step"] % 10 == 0])
        .mark_line()
        .encode(
            alt.X("step:Q", title=_("step")),
            alt.Y("loss:Q", title=_("squared error")),
            alt.Color("heads:N", title=_("heads"), scale=alt.Scale(range=[ink["key"], ink["attention"]])),
        )
        .properties(height=190)
    )

"""The price of a token: operations with the KV cache and without, its bytes, attention against the MLP, a window."""

import math
from collections.abc import Sequence
from functools import lru_cache, partial

import altair as alt
import pandas as pd
import streamlit as st
import torch

from engine.analysis.caching import TokenTime
from engine.course.price import (
    MOST_MEASURED,
    config_of,
    count_parts,
    count_text,
    count_token,
    find_crossing,
    kv_bytes,
    measure_tokens,
)
from engine.runtime import library
from engine.tokenizers.encoding import Encoding
from pages.controls.figures import cover, matrix
from pages.controls.learn.fields import choose_view, other_input, read_field, read_short_text
from pages.controls.learn.predict import choose, estimate, is_answered, is_found, show_code
from pages.controls.state.session import SessionValue
from pages.controls.words import join_sentences, numeral
from pages.controls.words import translate as _
from views.charts.show import show_altair
from views.charts.template import colors
from views.core.theme import Shade

MODEL = "everyday"
TEXT = "Once upon a time, there was a girl named Anna."
OTHERS = (
    "Max had a big red elephant.",
    "The old man went to the park and sat on the bench. A little dog came to him, and they were happy.",
)
MOST = 64  # tokens of the text
TIMES = 4  # how many times as long a text is shown, at most
MEASURED = (16, 64, MOST_MEASURED)  # tokens
PUBLISHED = ("gpt2", "llama-2-7b", "llama-3-8b", MODEL)
NUMBERS = {"float32": 4, "bfloat16": 2, "int8": 1}  # bytes of each
POINTS = 40  # of a curve
LEAST_WINDOW = 8  # tokens
MIB, MILLION, GIGA = 2**20, 10**6, 10**9
CLOSE = 0.02  # of an estimate, as a share
QUESTION, BYTES, CROSSING = (f"price {part}question" for part in ("", "bytes ", "crossing "))
TURN = SessionValue("price turn", int)  # how often the seconds were measured again


def experiment() -> bool:
    checkpoint = library.checkpoint(MODEL)
    encoding = read_field("price-text", _("text"), TEXT, lambda said: read_short_text(checkpoint, said, MOST))
    above = st.container()
    shown = ask(len(encoding.ids))
    with above:
        draw_counts(len(encoding.ids), covered=not (shown and is_answered(QUESTION)))
    if not shown:
        return False
    views = {
        "time": _("seconds"),
        "cache": _("bytes of the cache"),
        "crossing": _("attention and MLP"),
        "window": _("a window"),
    }
    view = choose_view("price-view", views)
    if view == "time":
        draw_time(encoding)
    elif view == "cache":
        draw_cache()
    elif view == "crossing":
        draw_crossing()
    else:
        draw_window()
    return is_found(QUESTION)


# --- with the cache and without ---


def millions(count: float) -> str:
    return numeral(count / MILLION, ",.1f")


def ask(length: int) -> bool:
    found = count_token(MODEL, length)
    options, ratio = (1, length, length**2), found.again / found.cached
    answer = min(range(len(options)), key=lambda at: abs(math.log(options[at] / ratio)))
    reason = _(
        "With the cache {cached} million, nearly all in linear maps, of one token. Without, the same maps for "
        "{length} tokens, {again} million: {ratio:.3g} times as many."
    ).format(cached=millions(found.cached), length=length, again=millions(found.again), ratio=ratio)

    def why(said: int) -> str:
        if said == 0 != answer:
            sentence = _("One token is written either way, but the keys and values of the others are made again.")
            return join_sentences(sentence, reason)
        if said == 2 != answer:
            return join_sentences(_("Only scores are one for each pair; a linear map takes each token once."), reason)
        return reason

    question = _(
        "{model} writes the token after these {length} tokens. How many times the operations does it take without a "
        "cache of keys and values, about?"
    )
    return choose(
        question.format(model=MODEL, length=length), [numeral(one, ",") + "×" for one in options], answer,
        key=QUESTION, why=why, again=other_input("price-text", (TEXT, *OTHERS)),
    )  # fmt: skip


def draw_counts(length: int, covered: bool) -> None:
    """Operations of a token after the text, and after longer ones."""
    found = [count_token(MODEL, length * times) for times in range(1, TIMES + 1)]
    counts = torch.tensor([[one.cached / MILLION for one in found], [one.again / MILLION for one in found]])
    matrix(
        cover(counts, 1) if covered else counts, rows=[_("with the cache"), _("without")],
        columns=[str(one.length) for one in found], digits=1, role="residual", key=f"{QUESTION} picture",
        label=_("millions of multiply-adds of a token, by the tokens before the next"),
    )  # fmt: skip


@lru_cache(maxsize=32)
def measure(ids: tuple[int, ...], turn: int) -> list[TokenTime]:
    """`turn` makes it measure again."""
    return measure_tokens(MODEL, ids, MEASURED)


def draw_time(encoding: Encoding) -> None:
    length, found = len(encoding.ids), measure(tuple(encoding.ids), TURN.get())
    counts = [count_token(MODEL, one.length) for one in found]
    kinds = [_("with the cache"), _("without")]
    rows = [
        (one.length, kind, operations / GIGA, seconds * 1000)
        for one, count in zip(found, counts, strict=True)
        for kind, operations, seconds in zip(
            kinds, (count.cached, count.again), (one.cached, one.again), strict=True
        )
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["tokens", "kind", "operations", "ms"])
    titles = {"operations": _("counted: billions of multiply-adds"), "ms": _("measured here: ms")}
    for place, (column, title) in zip(st.columns(2), titles.items(), strict=True):
        with place:
            show_altair(partial(draw_lines, table, column, title, kinds), key=f"price {column}")
    text, twice = count_text(MODEL, length), count_text(MODEL, 2 * length)
    sentence = _(
        "To write {length} tokens one by one takes {cached} million with the cache and {again} million without; twice "
        "as many tokens take **{linear:.2f}×** and **{square:.2f}×** as much."
    )
    st.markdown(
        sentence.format(length=length, cached=millions(text.cached), again=millions(text.again),
                        linear=twice.cached / text.cached, square=twice.again / text.again)
    )  # fmt: skip
    last, count = found[-1], counts[-1]
    sentence = _(
        "After {length} tokens: {counted:.0f}× the operations without the cache, and {time:.1f}× the seconds. Where "
        "little is computed, reading every weight once takes time, and so does each call, with the cache as without."
    )
    ratios = {"counted": count.again / count.cached, "time": last.again / last.cached}
    st.caption(sentence.format(length=last.length, **ratios))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(_("Measure again"), key="price-again", on_click=TURN.set, args=(TURN.get() + 1,))
        st.caption(
            _("Seconds are those of the machine that answers this page, which other work disturbs; compare counts.")
        )
    show_code(count_token, key="price code token", name=MODEL, length=length)
    show_code(count_text, key="price code text", name=MODEL, length=length)


def draw_lines(table: pd.DataFrame, column: str, title: str, kinds: Sequence[str], shade: Shade) -> alt.Chart:
    ink = colors(shade)
    return (
        alt.Chart(table)
        .mark_line(point=len(table) < POINTS)
        .encode(
            alt.X("tokens:Q", title=_("tokens")),
            alt.Y(f"{column}:Q", title=title),
            alt.Color(
                "kind:N", title=None, sort=list(kinds),
                legend=alt.Legend(orient="top", direction="vertical", labelLimit=0),
                scale=alt.Scale(domain=list(kinds), range=[ink["residual"], ink["attention"], ink["key"]]),
            ),
        )
        .properties(height=240)
    )  # fmt: skip


# --- bytes of the cache ---


def draw_cache() -> None:
    with st.container(horizontal=True):
        layers = int(st.number_input(_("layers"), 1, 200, 32, key="price-layers", width=110, persist_state="session"))
        heads = int(
            st.number_input(_("query heads"), 1, 128, 32, key="price-heads", width=130, persist_state="session")
        )
        shares = [one for one in range(1, heads + 1) if heads % one == 0]
        usual = shares.index(heads // 4) if heads % 4 == 0 else len(shares) - 1
        kv = int(
            st.selectbox(_("heads of keys and values"), shares, usual, key=f"price-kv {heads}", width=190)
        )  # fmt: skip
        d_head = int(
            st.number_input(_("numbers of a head"), 1, 1024, 128, key="price-width", width=150, persist_state="session")
        )
    with st.container(horizontal=True):
        tokens = int(
            st.number_input(_("tokens"), 1, 10**7, 8192, key="price-tokens", width=150, persist_state="session")
        )
        kind = st.selectbox(_("format"), list(NUMBERS), 1, key="price-number", width=150, persist_state="session")
    size = kv_bytes(layers, kv, d_head, tokens, NUMBERS[kind]) / MIB
    if ask_bytes(layers, heads, kv, d_head, tokens, NUMBERS[kind]):
        each = kv_bytes(layers, heads, d_head, tokens, NUMBERS[kind]) / MIB
        st.markdown(_("With a key and a value for each query head it would be {each:,.4g} MiB.").format(each=each))
        rows = [(n, "", kv_bytes(layers, kv, d_head, n, NUMBERS[kind]) / MIB) for n in (0, tokens // 2, tokens)]
        table = pd.DataFrame(rows, columns=["tokens", "kind", "MiB"])
        show_altair(partial(draw_lines, table, "MiB", "MiB", [""]), key="price bytes")
        st.caption(
            _("A line: each token adds {more:,.4g} KiB, whatever stands before it.").format(more=size / tokens * 1024)
        )
    show_code(
        kv_bytes, key="price code bytes", layers=layers, kv_heads=kv, d_head=d_head, tokens=tokens,
        number=NUMBERS[kind],
    )  # fmt: skip


def ask_bytes(layers: int, heads: int, kv: int, d_head: int, tokens: int, number: int) -> bool:
    """Asks for the size of the cache, and tells whether that may be shown."""
    size = kv_bytes(layers, kv, d_head, tokens, number) / MIB
    reason = _(
        "2 (a key and a value) × {layers} (layers) × {kv} (heads of keys and values) × {width} (numbers of each) × "
        "{number} (bytes) × {tokens} (tokens) = {size:,.4g} MiB."
    ).format(layers=layers, kv=kv, width=d_head, number=number, tokens=numeral(tokens, ","), size=size)
    slips = [
        (size * heads / kv, _("So it would be with a key and a value for each query head; several share one here.")),
        (size / 2, _("So it would be with the keys alone; the values are kept too.")),
        (size / layers, _("So it would be in one layer; each has keys and values of its own.")),
        (size / number, _("So it would be if a number were one byte.")),
    ]

    def why(said: float) -> str:
        near = [told for slip, told in slips if abs(said - slip) <= CLOSE * slip and abs(slip - size) > CLOSE * size]
        return join_sentences(*near[:1], reason)

    question = _(
        "Layers: {layers}; query heads: {heads}; of these share a key and a value: {share}; numbers of a head: "
        "{width}; tokens: {tokens}; bytes of a number: {number}. How many MiB is the KV cache?"
    )
    estimate(
        question.format(layers=layers, heads=heads, share=heads // kv, width=d_head, tokens=numeral(tokens, ","),
                        number=number),
        size, float(f"{CLOSE * size:.2g}"), unit=_("MiB"), key=BYTES, why=why,
    )  # fmt: skip
    return is_answered(BYTES)


# --- attention and the MLP ---


def choose_model(key: str) -> str:
    return st.selectbox(_("model"), PUBLISHED, key=key, width=180, persist_state="session")


def spread(last: int) -> list[int]:
    return [max(1, last * at // POINTS) for at in range(POINTS + 1)]


def draw_crossing() -> None:
    name = choose_model("price-model")
    crossing = find_crossing(name)
    above = st.container()
    shown = ask_crossing(name, crossing)
    kinds = [_("MLP"), _("attention: scores and weighted values")]
    parts = [count_parts(name, n) for n in spread(2 * crossing)]
    rows = [(one.length, kinds[0], one.mlp / GIGA) for one in parts]
    rows += [(one.length, kinds[1], one.attention / GIGA) for one in parts if shown]
    table = pd.DataFrame(rows, columns=["tokens", "kind", "operations"])
    with above:
        title = _("billions of multiply-adds of a token")
        show_altair(partial(draw_lines, table, "operations", title, kinds), key="price crossing")
    if shown:
        sentence = _(
            "Of one token both are straight lines; over a whole text of n tokens attention adds up to a square, and "
            "the MLP does not. {model} was made for {context} tokens."
        )
        st.caption(sentence.format(model=name, context=numeral(config_of(name).context, ",")))
    show_code(find_crossing, key="price code crossing", name=name)


def ask_crossing(name: str, crossing: int) -> bool:
    """Asks where both take as much, and tells whether that may be shown."""
    config = config_of(name)
    options = sorted({config.head_width(config.attention), config.d_model, crossing, 10 * crossing})
    answer = options.index(crossing)
    one = count_parts(name, 1)
    reason = _(
        "Each token that is looked at takes {each} multiply-adds in all layers, and the MLP {mlp} million: as much as "
        "{crossing} tokens."
    ).format(each=numeral(one.attention, ","), mlp=millions(one.mlp), crossing=numeral(crossing, ","))

    def why(said: int) -> str:
        if said == answer:
            return reason
        share = count_parts(name, options[said]).attention / one.mlp
        sentence = _("At {tokens} tokens attention takes {share:.1%} of what the MLP does.")
        return join_sentences(sentence.format(tokens=numeral(options[said], ","), share=share), reason)

    question = _(
        "From about how many tokens on does attention take more operations of a token of {model} than the MLP?"
    )
    choose(question.format(model=name), [numeral(option, ",") for option in options], answer, key=CROSSING, why=why)
    return is_answered(CROSSING)


# --- a window ---


def draw_window() -> None:
    name = choose_model("price-windowed")
    last = 2 * find_crossing(name)
    window = int(st.number_input(_("window"), LEAST_WINDOW, 10**6, 1024, key=f"price-window {name}", width=150))
    kinds = [_("all tokens before it"), _("a window of {n} tokens").format(n=window)]
    rows = [
        (n, kind, found.attention / GIGA, found.bytes / MIB)
        for kind, kept in zip(kinds, (None, window), strict=True)
        for n in spread(last)
        for found in [count_parts(name, n, kept)]
    ]
    table = pd.DataFrame(rows, columns=["tokens", "kind", "operations", "MiB"])
    titles = {"operations": _("attention, billions of multiply-adds of a token"), "MiB": _("MiB of the cache")}
    for place, (column, title) in zip(st.columns(2), titles.items(), strict=True):
        with place:
            show_altair(partial(draw_lines, table, column, title, kinds), key=f"price window {column}")
    config = config_of(name)
    sentence = _(
        "From {n} tokens on neither grows. A token looks no further back than that in a layer, and through {layers} "
        "layers as far as {reach}: what the window drops is seen in the lesson Long sequences."
    )
    st.caption(
        sentence.format(n=numeral(window, ","), layers=config.layers, reach=numeral(config.layers * (window - 1), ","))
    )
    show_code(count_parts, key="price code window", name=name, length=last, window=window)

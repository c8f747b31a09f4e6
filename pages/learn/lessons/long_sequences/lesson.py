"""Long sequences: the square measured here, windows and blocks, k nearest states, and product quantization opened."""

from functools import lru_cache, partial

import altair as alt
import pandas as pd
import streamlit as st
import torch

from engine.attention_variants import shared
from engine.attention_variants.blocks import allowed_2d
from engine.attention_variants.material import Material
from engine.attention_variants.measure import index_of, sampled_queries
from engine.attention_variants.nearest import exact, fold
from engine.attention_variants.quantize import Index, Settings
from engine.course.long_sequences import (
    AttentionCost,
    keep_window,
    measure_lengths,
    open_state,
    pattern_bytes,
    recall_curve,
    states_behind,
)
from engine.runtime import library
from pages.controls.figures import cover, matrix, picked_place, strip, tokens
from pages.controls.learn.cross_nearest import draw_nearest
from pages.controls.learn.fields import (
    caption_known_texts,
    choose_view,
    name_apart,
    other_input,
    read_field,
    read_short_text,
)
from pages.controls.learn.predict import choose, estimate, is_answered, is_found, point, show_code
from pages.controls.state.session import SessionValue
from pages.controls.words import join_sentences, numeral
from pages.controls.words import translate as _
from views.charts.show import show_altair
from views.charts.template import colors
from views.core.theme import Shade

MODEL, READER = "stories", "everyday"  # whose states are searched, and whose weights a window cuts
SHORTEST, LONGER, TIMES = 32, 256, 4  # tokens to begin with, and how many times as many at most
TEXT = "The girl gave the red ball to Anna. She was very happy."
MOST = 20  # tokens
WINDOW = 32  # of what is measured
SIDE = 8  # pixels of the image
BEFORE = 500  # tokens of stories in front of the reader's text, whose states are searched
ASKED = 64  # queries of which the recall is measured
MIB = 2**20
TOLERANCE = 0.5  # times the bytes
QUESTION, NEAR, OUTSIDE = (f"long_sequences {part}question" for part in ("", "near ", "outside "))
TURN = SessionValue("long_sequences turn", int)  # how often the cost was measured again


def experiment() -> bool:
    length, times = ask_lengths()
    above = st.container()
    shown = ask(length, times)
    with above:
        draw_bytes(length, times, covered=not (shown and is_answered(QUESTION)))
    if not shown:
        return False
    views = {"cost": _("cost"), "local": _("windows and blocks"), "nearest": _("k nearest"), "codes": _("quantization")}
    view = choose_view("long_sequences-view", views)
    if view == "cost":
        draw_cost(length, times)
    elif view == "local":
        draw_local()
    elif view == "nearest":
        draw_nearest()
    else:
        draw_codes()
    return is_found(QUESTION)


def ask_lengths() -> tuple[int, int]:
    with st.container(horizontal=True):
        length = st.number_input(
            _("tokens of a text"), SHORTEST, LONGER, 128, key="long_sequences-length", width=150,
            persist_state="session",
        )  # fmt: skip
        times = st.number_input(
            _("times as long"), 2, TIMES, 4, key="long_sequences-times", width=150, persist_state="session"
        )
    return int(length), int(times)


def ask(length: int, times: int) -> bool:
    heads = library.checkpoint(MODEL).config.attention.heads
    options = sorted({times, times + 1, times**2, times**3})
    short, long = pattern_bytes(length, heads), pattern_bytes(length * times, heads)
    reason = _(
        "Every token meets every token: {short} × {short} weights become {long} × {long}, and {small} MiB become "
        "{large} MiB."
    ).format(short=length, long=length * times, small=numeral(short / MIB, ".3g"), large=numeral(long / MIB, ".3g"))
    question = _("A text grows from {short} to {long} tokens. How many times the memory do scores and pattern take?")
    along, cubed = options.index(times), options.index(times**3)

    def why(said: int) -> str:
        if said == along:
            return join_sentences(_("So it would grow if each token met a fixed number of others."), reason)
        if said == cubed:
            return join_sentences(_("So it would grow if three tokens met in each weight."), reason)
        return reason

    return choose(
        question.format(short=length, long=length * times),
        [f"{option}×" for option in options],
        options.index(times**2),
        key=QUESTION,
        why=why,
        again=other_input("long_sequences-times", (4, 3, 2)),
    )


def draw_bytes(length: int, times: int, covered: bool) -> None:
    """Memory of scores and pattern of the text, and of longer ones; those are covered while they are asked for."""
    heads, lengths = library.checkpoint(MODEL).config.attention.heads, [length * at for at in range(1, times + 1)]
    memory = torch.tensor([[pattern_bytes(one, heads) / MIB for one in lengths]])
    matrix(
        cover(memory, (0, slice(1, None))) if covered else memory,
        rows=["MiB"],
        columns=[str(one) for one in lengths],
        digits=2,
        key=f"{QUESTION} picture",
        label=_("MiB of scores and pattern, by the tokens of the text"),
    )


# --- what it costs here ---


@lru_cache(maxsize=64)
def measure_cost(length: int, times: int, turn: int) -> list[AttentionCost]:
    """`turn` makes it measure again."""
    lengths = [length * factor for factor in range(1, times + 1)]
    material = shared.states(MODEL, LONGER * TIMES).first(lengths[-1])
    return measure_lengths(material, lengths, ("explicit", "window"), WINDOW)


def draw_cost(length: int, times: int) -> None:
    found = measure_cost(length, times, TURN.get())
    names = {"explicit": _("every token with every token"), "window": _("a window of {n} tokens").format(n=WINDOW)}
    table = pd.DataFrame(
        {
            "tokens": [one.length for one in found],
            "kind": [names[one.kind] for one in found],
            "MiB": [one.bytes / MIB for one in found],
            "ms": [one.seconds * 1000 for one in found],
        }
    )
    full = [one for one in found if one.kind == "explicit"]
    near = [one for one in found if one.kind == "window"]
    above = st.container()
    covered = not ask_near(near, times)
    shown = table[table["kind"] == names["explicit"]] if covered else table
    for place, column in zip(above.columns(2), ("MiB", "ms"), strict=True):
        with place:
            show_altair(partial(draw_growth, shown, column, list(names.values())), key=f"long {column}")
    sentence = _("Measured here, {times} times as long: {bytes:.1f}× the bytes and {time:.1f}× the time.")
    st.markdown(
        sentence.format(times=times, bytes=full[-1].bytes / full[0].bytes, time=full[-1].seconds / full[0].seconds)
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(_("Measure again"), key="long_sequences-again", on_click=TURN.set, args=(TURN.get() + 1,))
        about = _("All heads of a layer of {model}; the least of several times, which other work disturbs.")
        st.caption(about.format(model=MODEL))
    show_code(
        measure_lengths,
        key="long code cost",
        material=shared.states(MODEL, LONGER * TIMES),
        lengths=[length],
        kinds=["explicit"],
        window=WINDOW,
    )


def ask_near(near: list[AttentionCost], times: int) -> bool:
    """Asks how the memory grows in a window, and tells whether that may be shown."""
    growth = near[-1].bytes / near[0].bytes
    reason = _("{short:.2f} MiB become {long:.2f}: each token meets at most {n}, however long the text is.").format(
        short=near[0].bytes / MIB, long=near[-1].bytes / MIB, n=WINDOW
    )

    def why(said: float) -> str:
        if abs(said - times**2) <= TOLERANCE < abs(said - growth):
            return join_sentences(_("So it grows where every token meets every token."), reason)
        return reason

    question = _("In a window of {n} tokens: how many times the bytes does a text {times} times as long take?")
    estimate(question.format(n=WINDOW, times=times), growth, TOLERANCE, key=NEAR, why=why)
    return is_answered(NEAR)


def draw_growth(table: pd.DataFrame, column: str, kinds: list[str], shade: Shade) -> alt.Chart:
    ink = colors(shade)
    return (
        alt.Chart(table)
        .mark_line(point=True)
        .encode(
            alt.X("tokens:Q", title=_("tokens")),
            alt.Y(f"{column}:Q", title=column),
            alt.Color(
                "kind:N",
                title=None,
                sort=kinds,
                legend=alt.Legend(orient="top", direction="vertical", labelLimit=0),
                scale=alt.Scale(domain=kinds, range=[ink["attention"], ink["key"]]),
            ),
        )
        .properties(height=230)
    )


# --- windows and blocks ---


def draw_local() -> None:
    kinds = {"window": _("a window in a text"), "block": _("a block in an image")}
    kind = st.segmented_control(
        _("kind"), list(kinds), default="window", key="long_sequences-local", required=True,
        format_func=kinds.__getitem__, label_visibility="collapsed", persist_state="session",
    )  # fmt: skip
    if kind == "window":
        draw_window()
    else:
        draw_block()


def draw_window() -> None:
    checkpoint = library.checkpoint(READER)
    encoding = read_field("long_sequences-text", _("text"), TEXT, lambda said: read_short_text(checkpoint, said, MOST))
    config = checkpoint.config
    with st.container(horizontal=True):
        window = st.number_input(_("window"), 1, MOST, 4, key="long_sequences-window", width=120)
        layer = st.number_input(_("layer"), 1, config.layers, config.layers, key="long_sequences-layer", width=120)
        head = st.number_input(_("head"), 1, config.attention.heads, 1, key="long_sequences-head", width=120)
    pieces = name_apart(encoding.pieces)
    kept = keep_window(checkpoint, encoding, int(layer) - 1, int(head) - 1, int(window))
    left, right = st.columns([3, 2])
    covered = not ask_outside(pieces, int(window))
    with left:
        matrix(
            cover(kept.pattern, -1) if covered else kept.pattern,
            rows=pieces,
            columns=pieces,
            key=f"{OUTSIDE} picture",
            label=_("weights in the window"),
        )
    with right:
        sentence = _(
            "The window holds {cells:.0%} of the weights that full attention makes, and {mass:.0%} of what they add "
            "up to."
        )
        st.markdown(sentence.format(cells=kept.cells, mass=kept.mass))
        reach = _("{layers} layers of it reach {count} tokens back, each through the one below.")
        st.caption(reach.format(layers=config.layers, count=config.layers * (int(window) - 1)))
    show_code(
        keep_window, key="long code window", checkpoint=checkpoint, encoding=encoding, layer=int(layer) - 1,
        head=int(head) - 1, window=int(window),
    )  # fmt: skip


def ask_outside(pieces: list[str], window: int) -> bool:
    """Asks for a weight that the window leaves out, and tells whether the last row may be shown."""
    row = len(pieces) - 1
    first = len(pieces) - window  # that the last token sees
    if first <= 0:
        return True
    reason = _("A window of {window} holds the token itself and those before it, from “{first}” on.").format(
        window=window, first=pieces[first]
    )

    def why(said: tuple[int, int]) -> str:
        if said[0] != row:
            sentence = _("Who looks is a row: that is the row of “{token}”.")
            return join_sentences(sentence.format(token=pieces[said[0]]), reason)
        return reason

    question = _("The row of the last token, “{token}”, is covered. Click a weight in it that the window leaves out.")
    point(
        question.format(token=pieces[-1]),
        (len(pieces), len(pieces)),
        [(row, at) for at in range(first)],
        key=OUTSIDE,
        name=lambda at: f"{pieces[at[0]]} → {pieces[at[1]]}",
        why=why,
    )
    return is_answered(OUTSIDE)


def draw_block() -> None:
    with st.container(horizontal=True):
        block = int(st.number_input(_("side of a block"), 1, SIDE, 4, key="long_sequences-block", width=150))
        margin = int(st.number_input(_("margin"), 0, SIDE, 1, key="long_sequences-margin", width=150))
    allowed = allowed_2d((SIDE, SIDE), (block, block), (margin, margin))
    row, column = picked_place("long block", (SIDE, SIDE)) or (SIDE // 2 - 1, SIDE // 2 - 1)
    seen = allowed[row * SIDE + column].view(SIDE, SIDE).float()
    seen[row, column] = 2
    left, right = st.columns(2)
    with left:
        matrix(seen, key="long block", label=_("pixels that the chosen one sees"), role="key")
    with right:
        count = int(allowed[row * SIDE + column].sum())
        sentence = _(
            "The pixel in row {row}, column {column} sees {count} of {all} pixels: its block and a margin around it."
        )
        st.markdown(sentence.format(row=row + 1, column=column + 1, count=count, all=SIDE**2))
        st.caption(_("Click another. All pixels of one block see the same ones, so a block is one matrix product."))
    st.caption(_("However large the image, a pixel sees no more: the cost grows as the image, not as its square."))
    show_code(allowed_2d, key="long code block", grid=(SIDE, SIDE), block=(block, block), margin=(margin, margin))


# --- product quantization ---


@lru_cache(maxsize=8)
def search_states(ids: tuple[int, ...]) -> Material:
    return states_behind(library.checkpoint(MODEL), ids, BEFORE)


@lru_cache(maxsize=32)
def build_index(ids: tuple[int, ...], settings: Settings) -> Index:
    return index_of(search_states(ids), settings)


@lru_cache(maxsize=64)
def compute_recall(ids: tuple[int, ...], settings: Settings) -> tuple[list[int], list[float]]:
    index = build_index(ids, settings)
    queries = sampled_queries(search_states(ids), seed=1, count=ASKED)
    ks = [k for k in (1, 2, 4, 8, 16, 32, 64, 128, 256) if k < len(index.states)] + [len(index.states)]
    return ks, recall_curve(index, queries, ks)


def draw_codes() -> None:
    checkpoint = library.checkpoint(MODEL)
    assert checkpoint.tokenizer is not None
    steps = {"pieces": _("pieces and codes"), "lists": _("lists"), "tables": _("tables"), "recall": _("recall")}
    step = st.segmented_control(
        _("step"), list(steps), default="pieces", key="long_sequences-step", required=True,
        format_func=steps.__getitem__, label_visibility="collapsed", persist_state="session",
    )  # fmt: skip
    encoding = read_field(
        "long_sequences-query",
        _("text, whose last token asks"),
        TEXT,
        lambda said: read_short_text(checkpoint, said, MOST),
    )
    caption_known_texts(MODEL, TEXT)
    with st.container(horizontal=True):
        pieces = st.selectbox(_("pieces m"), (4, 8, 16, 32), 1, key="long_sequences-pieces", width=110)
        codes = st.selectbox(_("codes k*"), (4, 8, 16, 64), 2, key="long_sequences-codes", width=110)
        lists = st.selectbox(_("lists"), (4, 8, 16, 32), 2, key="long_sequences-lists", width=110)
        visited = st.number_input(_("visited"), 1, 32, 4, key="long_sequences-visited", width=120)
    settings = Settings(pieces, codes, lists, min(int(visited), lists), rerank=0)
    ids = tuple(encoding.ids)
    index, material = build_index(ids, settings), search_states(ids)
    query = fold(material.heads.queries(material.states[-1:]), material.heads.w_k)[0, 0]
    nearest = int(exact(query[None], material.states, 1)[1])
    if step == "pieces":
        draw_pieces(index, query, nearest)
    elif step == "lists":
        draw_lists(index, query, nearest)
    elif step == "tables":
        draw_tables(index, query, nearest)
    else:
        draw_recall(ids, settings)


def draw_pieces(index: Index, query: torch.Tensor, nearest: int) -> None:
    found = open_state(index, query, nearest)
    pieces, width = found.residual.shape
    left, right = st.columns(2)
    with left:
        title = _("the state less its list's centroid, cut into m = {count} pieces of {width}")
        st.caption(title.format(count=pieces, width=width))
        strip(found.residual, key="long pieces", label=_("pieces of a state"))
    with right:
        st.caption(_("the {count} centroids of piece 1, learned from all states").format(count=len(index.codebooks[0])))
        strip(index.codebooks[0], key="long centroids", label=_("centroids of piece 1"))
    st.markdown(_("Kept is the number of the nearest centroid of each piece:"))
    tokens([str(int(one)) for one in found.code], key="long code", label=_("code"))
    size = index.states.shape[1]
    sentence = _("{pieces} bytes in place of {size} numbers of 4 bytes: {times:.0f} times less.")
    st.caption(sentence.format(pieces=pieces, size=size, times=4 * size / pieces))
    show_code(open_state, key="long code pieces", index=index, query=query, state=nearest)


def draw_lists(index: Index, query: torch.Tensor, nearest: int) -> None:
    sizes = torch.tensor(index.starts).diff().tolist()
    visited = index.nearest_lists(query[None] @ index.metric.to_query)[0][0].tolist()
    holds = open_state(index, query, nearest).list
    names = {True: _("visited"), False: _("left out")}
    table = pd.DataFrame(
        {"list": range(1, len(sizes) + 1), "states": sizes, "is": [names[at in visited] for at in range(len(sizes))]}
    )

    def chart(shade: Shade) -> alt.Chart:
        ink = colors(shade)
        return (
            alt.Chart(table)
            .mark_bar()
            .encode(
                alt.X("list:O", title=_("list")),
                alt.Y("states:Q", title=_("states")),
                alt.Color(
                    "is:N",
                    title=None,
                    sort=list(names.values()),
                    legend=alt.Legend(orient="top"),
                    scale=alt.Scale(domain=list(names.values()), range=[ink["attention"], ink["residual"]]),
                ),
            )
            .properties(height=220)
        )

    show_altair(chart, key="long lists")
    met = sum(sizes[at] for at in visited)
    sentence = _("The query visits {lists} of {all} lists and meets {met} of {count} states.")
    st.markdown(sentence.format(lists=len(visited), all=len(sizes), met=met, count=sum(sizes)))
    seen = _("The nearest state is in list {number}: visited.")
    missed = _("The nearest state is in list {number}: missed.")
    st.markdown((seen if holds in visited else missed).format(number=holds + 1))


def draw_tables(index: Index, query: torch.Tensor, nearest: int) -> None:
    distances = st.toggle(_("distances in place of products"), key="long_sequences-distances")
    found = open_state(index, query, nearest, distances)
    pieces, codes = found.tables.shape
    st.caption(_("rows: pieces of the query; columns: centroids. The code picks one cell in each row."))
    picked = torch.zeros_like(found.tables)
    picked[torch.arange(pieces), found.code] = found.tables[torch.arange(pieces), found.code]
    shown = {_("table"): found.tables, _("picked"): picked}
    for place, (title, values) in zip(st.columns(2), shown.items(), strict=True):
        with place:
            st.caption(title)
            matrix(
                values,
                key=f"long tables {'all' if values is found.tables else 'picked'}",
                scale="signed",
                role="residual",
                label=title,
                digits=0 if codes <= 8 else None,
            )
    if distances:
        sentence = _("{pieces} cells added up: squared distance {quantized:.1f}; exactly {exact:.1f}.")
    else:
        sentence = _(
            "{pieces} cells added up, and {offset:.1f} for the list: product {quantized:.1f}; exactly {exact:.1f}."
        )
    st.markdown(sentence.format(pieces=pieces, offset=found.offset, quantized=found.quantized, exact=found.exact))
    show_code(open_state, key="long code tables", index=index, query=query, state=nearest, distances=distances)
    made = _("The table is made once a query: {cells} small products. Each further state costs {pieces} look-ups.")
    st.caption(made.format(cells=pieces * codes, pieces=pieces))


def draw_recall(ids: tuple[int, ...], settings: Settings) -> None:
    ks, shares = compute_recall(ids, settings)
    table = pd.DataFrame({"k": ks, "recall": shares})

    def chart(shade: Shade) -> alt.Chart:
        ink = colors(shade)["key"]
        return (
            alt.Chart(table)
            .mark_line(point={"color": ink}, color=ink)
            .encode(
                alt.X("k:Q", title="k", scale=alt.Scale(type="log")),
                alt.Y("recall:Q", title=_("recall@k"), scale=alt.Scale(domain=[0, 1])),
            )
            .properties(height=220)
        )

    show_altair(chart, key="long recall")
    sentence = _("Of the {k} nearest states {share:.0%} are among the {k} found; at k = all {count} keys, {last:.0%}.")
    at = min(3, len(ks) - 1)
    st.markdown(sentence.format(k=ks[at], share=shares[at], count=ks[-1], last=shares[-1]))
    if settings.probes < settings.lists:
        st.caption(_("What is in a list that is not visited is never found. Visit all, and recall is 1 at all keys."))
    else:
        st.caption(_("All lists are visited: what is missed is missed as codes are rough, and at all keys nothing is."))
    show_code(
        recall_curve,
        key="long code recall",
        index=build_index(ids, settings),
        queries=sampled_queries(search_states(ids), seed=1, count=ASKED),
        ks=ks,
    )

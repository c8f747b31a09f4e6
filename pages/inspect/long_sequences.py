"""Long context: what attention costs as the length grows, measured here, and what cheaper kinds of it keep."""

from collections.abc import Collection
from functools import partial
from typing import Any

import streamlit as st

from engine.attention_variants import shared
from engine.attention_variants.compare import KS
from engine.attention_variants.material import long_text, why_unsuited
from engine.attention_variants.measure import KINDS, MOST_BYTES, Setup, grid
from engine.attention_variants.quantize import Settings
from engine.plurals import count_words
from engine.runtime import library
from pages.controls.bar import bar
from pages.controls.learn.cross_nearest import draw_nearest
from pages.controls.long_sequences.export import CONTROLS, cost_tables, pattern_export
from pages.controls.long_sequences.parameters import AUTOMATIC, LONG_CONTEXT, MORE
from pages.controls.model_input.model_input import example, look_at, looked_at, open_on_looked_at
from pages.controls.share.export import draw_page
from pages.controls.share.links import address_now, honour_link
from pages.controls.share.panel import share_panel
from pages.controls.state.session import SessionValue
from pages.controls.visitor import recent
from views.charts.show import NamedChart
from views.charts.standalone import chart_file
from views.core.component import view
from views.long_sequences.charts import TITLES, draw_costs, formula_rows, measured_rows, search_table
from views.long_sequences.codegen import cost_lines
from views.long_sequences.patterns import kept_patterns
from views.long_sequences.questions import QUESTIONS, PatternContext

MENU = {"title": "Long context", "address": "long_sequences", "place": 3, "opens": True}

NARROW = 256  # d_model up to which that takes a moment; a wider model is measured at the shortest length
DRAWN = 128  # positions of the patterns

NUMBER = st.column_config.NumberColumn
COUNTS = ("length", "bytes", "multiply-adds", "look-ups", "multiply-adds a query", "look-ups a query")
GROUPED = {name: NUMBER(format="localized") for name in COUNTS}
MEASURED_COLUMNS = GROUPED | {"seconds": NUMBER(format="%.6f"), "recall": NUMBER(format="%.3f")}
SEARCH_COLUMNS = GROUPED | {f"recall@{k}": NUMBER(format="%.3f") for k in KS}
SEARCH_COLUMNS |= {"µs a query": NUMBER(format="%.1f"), "kept, MB": NUMBER(format="%.2f")}
# What a button has started: each run of the page measures one point more, until there are so many.
MEASURING = SessionValue[tuple[Any, int]]("measuring up to", lambda: (None, 0))
picture = view("long_sequences/patterns")
FORMULAS = r"""
| attention | multiply-adds | floats held at the peak |
|:--|:--|:--|
| full, explicit | $2n^2d$ | $2n^2h$: scores and pattern |
| full, fused | $2n^2d$ | $n(d+h)$: the result, one number a row |
| window | $2nsd$ | $\approx 4nd+\tfrac54ns$ |
| 2-D blocks | $2nmd$ | $\approx 2nd\,(1+m/b^2)$ |
| k nearest, exact | $n^2hd+A$ | $2nhd$, and a tile of scores |
| k nearest, PQ | $nhd\,(d+k'+w'k^*+rk)+A$, look-ups $nhm'\,w'n/k'$ | $2nhd$, and $rk$ candidates a list |

$n$ positions, $h$ heads, $d$ the width of the model. A window's band has $s=b'+2(w-1)$ keys for a block of
$b'=\max(w,32)$ queries; a memory block $m=(2b)^2$ pixels for $b^2$ queries; attending to what was found takes
$A=2nd\,(d+hk)$. A float has 4 bytes; what is given, the states or keys and values, is not counted.
"""

PROSE = r"""
**Within a window** (Longformer) or **a block of an image** (Image Transformer) a query sees a number of keys that does
not depend on $n$, so time and memory grow as $n$. What is farther away is out of reach of one layer; $L$ layers of a
window $w$ reach $L(w-1)$ positions.

**The $k$ nearest** (Unlimiformer) may be anywhere. A head's score is
$q\cdot k_j = (xW_Q)(h_jW_K)^\top = (xW_QW_K^\top)\cdot h_j$: with its query folded through its own $W_K$, each head
searches the raw states $h_j$, and one index serves all heads of all layers. A key bias adds the same to every score of
a query and changes neither their order nor their softmax. Exact search still compares every query with every state, and
over all $d$ directions instead of one head's $d/h$; what it saves is memory.

**Product quantization** (PQ, Jégou et al.) does not compare with every state. States are dealt into $k'$ lists by their
nearest centroid $c$; what is left, $r=h-c$, is cut into $m'$ pieces, and of each is kept, in one byte, which of $k^*$
codewords is nearest. A query visits the $w'$ lists with the largest $q\cdot c$ and reads its scores there from tables:
$q\cdot h\approx q\cdot c+\sum_{i=1}^{m'} q_i\cdot r_i$. The best $rk$ are compared again exactly. Fewer operations are
not less time at every length: one large matrix product runs faster than many look-ups until there are enough states.
"""


def refusal(name: str) -> str:
    """Why a model's heads cannot be measured here, to follow its name; "" where they can."""
    try:
        return why_unsuited(library.checkpoint(name))
    except (ValueError, OSError):
        return "could not be opened"


def put_example(model: str) -> None:
    LONG_CONTEXT.choose("long_text", example(model)["text"])


here = LONG_CONTEXT.open()
models = [name for name in dict.fromkeys((shared.FIRST, *recent(), here.begin("model"))) if not refusal(name)]
open_on_looked_at(here, models)
honour_link(here.rules, models, refusal)

st.markdown("#### Long context")
st.caption(
    "Full attention compares every position with every other: here is what that costs on this machine, what four "
    "other kinds cost, and how much of a real head's attention each of them keeps."
)

with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="controls"):
    model: str = here.menu(
        "model",
        models,
        width=130,
        help="Models opened on the page Open a model are offered too, except those with rotary positions.",
    )
    length: int = here.scale("length", width=260)
    here.scale("k", width=180)
    here.area(
        "long_text", height=68, width="stretch", placeholder="Filled up with generated stories; empty: only those."
    )
    st.button("Example", type="tertiary", key="example of long_text", on_click=put_example, args=(model,),
        help="Puts the text here that was written for this model."
    )  # fmt: skip
    with st.popover("More", key="more settings"):
        for parameter in MORE:
            here.scale(parameter.name, width=260)

checkpoint = library.checkpoint(model)
config = checkpoint.config
if model != shared.FIRST:
    look_at(model)
begun = here["long_text"].strip()
read = "your text and generated stories" if begun else "generated stories"
bar(model, looked_at()[1], f"the heads of its last layer · states of {read}")
at_once = AUTOMATIC if config.d_model <= NARROW else shared.LENGTHS[0]
quantizer = Settings(*(here[name] for name in ("subspaces", "codes", "lists", "probes", "rerank")))
setup = Setup(here["window"], here["block"], here["block"] // 2, here["k"], quantizer)
actions = st.container(horizontal=True, vertical_alignment="center", key="measuring")

for _ in shared.measure_up_to(model, min(length, at_once), setup):
    pass
left = shared.expected_seconds(model, length, setup)
what, count = MEASURING.get()
measuring = bool(left) and what == (model, length, setup)
with actions:
    if left:
        about = f"about {max(sum(left.values()), 1):.0f} s"
    if measuring:
        kind, next_length = min(left, key=lambda point: (point[1], list(KINDS).index(point[0])))
        st.button("Stop", key="stop", on_click=MEASURING.set, args=((None, 0),))
        next_one = f"{KINDS[kind]}, {count_words(next_length, 'position')} · {about} left"
        st.progress(max(0, 1 - len(left) / count), next_one, width="stretch")
    elif left:
        st.button(
            f"Measure up to {count_words(length, 'position')}, {about}",
            key="measure",
            type="primary",
            on_click=MEASURING.set,
            args=(((model, length, setup), len(left)),),
        )

measured = shared.known_points(model, length, setup)
reached = max(point.length for point in measured if point.kind == "quantized")
drawn = min(DRAWN, config.context)
heads = (config.layers, config.attention.heads)
first = (config.layers - 1, max(0, config.attention.heads - 2))
measurements = measured_rows(measured)
by_formula = formula_rows(measured, shared.LENGTHS, shared.formulas(model, setup))
searches = search_table(shared.compare_searches(model, reached, setup, begun))


@st.fragment
def show_costs() -> None:
    """Time and memory by length; which kinds are drawn is chosen for both charts at once."""
    chosen = st.pills(
        "kinds of attention", list(KINDS), selection_mode="multi", default=list(KINDS), format_func=KINDS.__getitem__,
        key="kinds", label_visibility="collapsed",
    )  # fmt: skip
    for column, chart, title in zip(st.columns(2, gap="medium"), cost_charts(chosen), TITLES.values(), strict=True):
        with column:
            chart.show(key=title, alt=f"{title} by length: points measured, dashed lines by formula")


def cost_charts(kinds: Collection[str]) -> list[NamedChart]:
    return [draw_costs(measurements, by_formula, quantity, kinds) for quantity in TITLES]


show_costs()
st.caption(
    "Points are measured here, on all heads of one layer, from the queries to the result. Dashed lines are the "
    "formulas, those of time at the rate of the longest point measured. What would take more than "
    f"{MOST_BYTES / 2**30:g} GiB is not measured. Drag to pan, Ctrl + wheel to zoom, double-click to reset."
)
every = st.expander("All measurements", key="measurements", on_change="rerun")
if every.open:
    with every:
        st.dataframe(measurements, hide_index=True, column_config=MEASURED_COLUMNS)
tokenizer = checkpoint.tokenizer
pieces = [tokenizer.piece(int(id)) for id in long_text(checkpoint, drawn, begun)] if tokenizer else []
context = PatternContext(model, setup, drawn, heads, pieces, begun)
export = pattern_export(context)
payload = kept_patterns(
    shared.kept_patterns(model, drawn, *first, setup, begun),
    heads=heads,
    shown=first,
    pieces=pieces,
    grid=grid(drawn),
    notes={"trace": context.digest, "take": export.header},
)
draw_page(export, payload, partial(picture, key="long sequences view"), (QUESTIONS, context))
st.markdown(f"##### What a search finds among {reached:,} states")
st.dataframe(searches, hide_index=True, column_config=SEARCH_COLUMNS)
st.caption(
    "recall@k: share of the true k nearest among the k found, over queries of all heads at 128 places in the text. The "
    "index can do without the states if nothing is compared again."
)
share_panel(
    "Long context", address_now(model=model), CONTROLS, lambda: cost_lines(model, setup, reached),
    cost_tables(model, {"measured": measurements, "formulas": by_formula, "searches": searches}),
    lambda: chart_file(
        "Long context · Loupe", [chart.figure for chart in cost_charts(KINDS)],
        caption=[f"{model} · measured up to {count_words(reached, 'position')}"],
        tables={f"What a search finds among {reached:,} states": searches.to_dict("list")}, name="loupe-long-sequences",
    ),
    key="costs share", names=[model],
)  # fmt: skip
across = st.expander("The k nearest states in the translator’s cross-attention", key="across", on_change="rerun")
if across.open:
    with across:
        draw_nearest()
formulas = st.expander("The formulas", key="formulas", on_change="rerun")
if formulas.open:
    formulas.markdown(FORMULAS)
st.markdown(PROSE)

if measuring:
    before = len(measured)
    for _ in shared.measure_up_to(model, length, setup):
        if len(shared.known_points(model, length, setup)) > before:
            st.rerun()  # one more point is drawn, and the next is measured

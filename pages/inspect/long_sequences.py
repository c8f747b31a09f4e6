"""Long sequences: what attention costs as the length grows, measured here, and what cheaper kinds of it keep."""

import streamlit as st

from engine import library
from engine.long import shared
from engine.long.material import suits
from engine.long.measure import KINDS, MOST_BYTES, Setup, grid
from engine.long.quantize import Settings
from pages.controls.take_lengths import of_lengths
from pages.controls.take_made import refuse
from views.component import courier, view
from views.long_sequences import (
    BRIGHTEST,
    caption,
    cost_chart,
    formats,
    formula_rows,
    measured_rows,
    pattern_figure,
    search_table,
)

AUTOMATIC = 1024  # positions up to which is measured without being asked
NARROW = 256  # d_model up to which that takes a moment; a wider model is measured at the shortest length
DRAWN = 128  # positions of the patterns

taken = view("taken")
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


def offered(name: str) -> bool:
    """Whether its heads can be measured here."""
    try:
        return suits(library.checkpoint(name))
    except (ValueError, OSError):
        return False


state = st.session_state
wanted = [shared.FIRST, *state.get("opened", ()), st.query_params.get("model", ""), state.get("model", "")]
models = [name for name in dict.fromkeys(wanted) if offered(name)]
if state.get("model") not in models:
    state.pop("model", None)

st.markdown("#### Long sequences")
st.caption(
    "Full attention compares every position with every other: here is what that costs on this machine, what four "
    "other kinds cost, and how much of a real head's attention each of them keeps."
)

with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="controls"):
    model = st.selectbox("model", models, key="model", bind="query-params", width=130,
        help="Models opened on the page Checkpoint are offered too, where queries and keys are not turned by positions."
    )  # fmt: skip
    st.select_slider("length", shared.LENGTHS, AUTOMATIC, key="length", bind="query-params", width=150,
        help="The longest text to measure. What takes more than a moment a button starts."
    )  # fmt: skip
    st.select_slider("window w", [8, 16, 32, 64, 128, 256], 32, key="window", bind="query-params", width=110,
        help="A query sees keys fewer than w positions away."
    )  # fmt: skip
    st.select_slider("block b", [2, 4, 8, 16], 4, key="block", bind="query-params", width=100,
        help="Pixels of a side of a query block; its memory block has half as many more on every side."
    )  # fmt: skip
    st.select_slider("k", [4, 8, 16, 32, 64], 16, key="k", bind="query-params", width=90,
        help="States each query of each head attends to."
    )  # fmt: skip
    st.select_slider("sub-spaces", [8, 16, 32, 64], 32, key="subspaces", bind="query-params", width=100,
        help="m', the bytes that are kept of a state."
    )  # fmt: skip
    st.select_slider("codes", [4, 16, 64, 256], 64, key="codes", bind="query-params", width=100,
        help="k*, codewords of a sub-space, at least 4 states for each."
    )  # fmt: skip
    st.select_slider("lists", [8, 16, 32, 64, 128, 256], 64, key="lists", bind="query-params", width=100,
        help="k', lists of states, at least 8 states for each."
    )  # fmt: skip
    st.select_slider("probes", [1, 2, 4, 8, 16, 32], 8, key="probes", bind="query-params", width=100,
        help="w', lists that a query visits."
    )  # fmt: skip
    st.select_slider("re-ranked", [0, 1, 2, 4, 8], 4, key="rerank", bind="query-params", width=92,
        help="r: the best r·k by the codes are compared again exactly; 0 for none."
    )  # fmt: skip

config = library.checkpoint(model).config
with st.container(key="headline"):
    st.caption(f"{model} · the heads of its last layer · states of generated stories")
at_once = AUTOMATIC if config.d_model <= NARROW else shared.LENGTHS[0]
quantizer = Settings(state.subspaces, state.codes, state.lists, state.probes, state.rerank)
setup = Setup(state.window, state.block, state.block // 2, state.k, quantizer)
formulas = shared.formulas(model, setup)

time_column, memory_column = st.columns(2, gap="medium")
time_chart, memory_chart = time_column.empty(), memory_column.empty()
actions = st.container(horizontal=True, vertical_alignment="center", key="measuring")


def draw() -> None:
    points = shared.known(model, state.length, setup)
    measured, formula = measured_rows(points), formula_rows(points, shared.LENGTHS, formulas)
    time_chart.altair_chart(cost_chart(measured, formula, "seconds"))
    memory_chart.altair_chart(cost_chart(measured, formula, "bytes"))


for _ in shared.measure_up_to(model, min(state.length, at_once), setup):
    pass
draw()

left = shared.expected(model, state.length, setup)
with actions:
    if left:
        label = f"Measure up to {state.length:,} positions, about {max(sum(left.values()), 1):.0f} s"
        if st.button(label, key="measure", type="primary"):
            st.button("Stop", key="stop")
            progress = st.progress(0.0, width="stretch")
            done, whole = 0.0, sum(left.values())
            for point in shared.measure_up_to(model, state.length, setup):
                done += left.get((point.kind, point.length), 0.0)
                progress.progress(min(done / whole, 1.0), f"{KINDS[point.kind]}, {point.length:,} positions")
                draw()
            st.rerun()
    st.caption(
        "Points are measured here, on all heads of one layer, from the queries to the result. Dashes are the formulas, "
        "those of time at the rate of the longest point measured. What would take more than "
        f"{MOST_BYTES // 2**30} GiB is not measured."
    )
with st.expander("The formulas", key="formulas"):
    st.markdown(FORMULAS)

with st.container(horizontal=True, vertical_alignment="bottom", key="patterns"):
    st.markdown("##### What each keeps")
    heads = [(layer, head) for layer in range(config.layers) for head in range(config.attention.heads)]
    if state.get("head") not in heads:
        state.pop("head", None)
    st.selectbox("head", heads, len(heads) - 2, key="head", width=170,
        format_func=lambda place: f"layer {place[0]}, head {place[1]}", label_visibility="collapsed"
    )  # fmt: skip
drawn = min(DRAWN, config.context)
kept = shared.kept(model, drawn, *state.head, setup)
for column, (name, pattern) in zip(st.columns(len(kept)), kept.items(), strict=True):
    column.plotly_chart(pattern_figure(pattern), key=f"pattern {name}", config={"displayModeBar": False})
    column.caption(caption(pattern, name))
st.caption(
    f"One head on the first {drawn} tokens of the text: each query is a row, each key a column, the future is hidden. "
    "What is left of a row is divided by its sum. For the blocks the text is laid out as an image of "
    f"{grid(drawn)[0]} rows of {grid(drawn)[1]}. The full hue is a weight of {BRIGHTEST} or more."
)

reached = max(point.length for point in shared.known(model, state.length, setup) if point.kind == "quantized")
st.markdown(f"##### What a search finds among {reached:,} states")
table = search_table(shared.compared(model, reached, setup))
st.dataframe(
    table,
    hide_index=True,
    column_config={name: st.column_config.NumberColumn(format=shown) for name, shown in formats(table).items()},
    key="searches",
)
st.caption(
    "recall@k: the share of the true k nearest among the k found, over queries of all heads at 128 places in the text. "
    "The index can do without the states if nothing is compared again."
)
measured = shared.known(model, state.length, setup)
taking = of_lengths(
    model, setup, drawn, state.head, kept,
    {
        "measured": measured_rows(measured),
        "formulas": formula_rows(measured, shared.LENGTHS, formulas),
        "searches": table,
    },
)  # fmt: skip
taken({"take": taking.header}, key="taken")
courier("courier", taking.answering(b"", refuse))
st.markdown(PROSE)

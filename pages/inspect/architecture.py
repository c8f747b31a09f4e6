"""Architectures: a model as its blocks, the switches that tell it from its relatives, and what it costs."""

import streamlit as st

from engine import library
from engine.analysis.sizes import BACKWARD, activations, count, envelope, forward, kv_cache, per_token, states
from engine.analysis.switches import SWITCHES, differing, resized, sizes, thrown
from engine.config import ModelConfig
from engine.named import NAMED, blueprint
from views import architecture as drawn
from views.component import view

FIRST = "bert-base"  # the model a visitor meets
NOBODY = "nothing"
SIZES = {"layers": "layers", "d_model": "width d", "heads": "heads", "d_mlp": "MLP width"}
POINTS = 48  # of a curve
BYTES = {"bfloat16": 2, "float32": 4, "int8": 1}
picture = view("architecture")


def names() -> list[str]:
    return [*NAMED, *(name for name in library.names() if name not in NAMED)]


def published(name: str) -> ModelConfig:
    return NAMED[name].config if name in NAMED else library.checkpoint(name).config


def source(name: str) -> str:
    if name not in NAMED:
        return "A checkpoint of this Loupe."
    found = NAMED[name]
    return " ".join(part for part in (f"{found.source} ({found.year}).", found.note) if part)


def as_published() -> None:
    """Another model comes with its own switches."""
    for key in [*(switch.name for switch in SWITCHES), *SIZES]:
        st.session_state.pop(key, None)
        st.query_params.pop(key, None)


def throw_switches(config: ModelConfig, other: ModelConfig | None) -> dict[str, str]:
    """A control for every switch, under two columns; where the other model stands differently, its label says so."""
    chosen = {}
    for switch in SWITCHES:
        own, options = switch.get(config), list(switch.options(config))
        theirs = own if other is None else switch.get(other)
        label = switch.title if theirs == own else f"{switch.title} :violet[≠ {theirs}]"
        chosen[switch.name] = st.selectbox(
            label, options, options.index(own), key=switch.name, bind="query-params", help=switch.help, width=132
        )
    return chosen


def choose_sizes(config: ModelConfig) -> dict[str, int]:
    present = sizes(config)
    return {
        key: int(st.number_input(
            title, 0 if key in ("layers", "d_mlp") else 1, 2**20, present[key], key=key, bind="query-params", width=132
        ))
        for key, title in SIZES.items()
    }  # fmt: skip


with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="controls"):
    models = names()
    name = st.selectbox(
        "model", models, models.index(FIRST), key="model", bind="query-params", on_change=as_published, width=220
    )
    against = st.selectbox("compare with", [NOBODY, *models], key="against", bind="query-params", width=220)
    st.button("as published", on_click=as_published, help="Every switch back to where the model has it.")

try:
    own = published(name)
    other = None if against == NOBODY else published(against)
except (ValueError, OSError) as error:
    st.warning(str(error))
    st.stop()

left, right = st.columns([3.2, 1], gap="medium")
with right, st.container(horizontal=True, gap="small", key="switches"):
    chosen = throw_switches(own, other)
    numbers = choose_sizes(own)
try:
    config = resized(thrown(own, chosen), **numbers)
except ValueError as error:
    left.warning(f"There is no such model: {error}")
    st.stop()

shown = [(name if config == own else f"{name}, changed", config)]
shown += [] if other is None else [(against, other)]
with left:
    picture(
        drawn.architecture(
            shown, differing=[] if other is None else differing(config, other), source=source(name)
        ),
        key="picture",
    )

total = count(config)
with st.container(key="headline"):
    st.caption(f"{name} · {total:,} parameters")

st.subheader("Parameters by part")
st.caption(
    f"Every formula evaluates to its count; together they are {total:,}, which is what the model itself has: "
    f"{sum(parameter.numel() for parameter in blueprint(config).parameters()):,}, counted in its tensors, built without "
    "memory."
)
rows = drawn.part_rows(config)
st.markdown(drawn.table(rows, total, "parameters"))
st.caption(drawn.symbols(formula for _, formula in rows))

st.subheader("From the back of an envelope")
steps = envelope(config)
st.caption(
    f"Queries, keys, values and an MLP of width 4d in each layer, and the table of tokens: about "
    f"{steps[0].count / 1e6:,.1f} million. The exact count is {total / 1e6:,.1f} million. What lies between:"
)
st.altair_chart(drawn.waterfall(steps))
st.markdown(drawn.table([(step.name, step.formula) for step in steps], total, "parameters"))


@st.fragment
def costs(config: ModelConfig) -> None:
    """Operations and memory as functions of batch and length."""
    fixed = config.embedding.patches is not None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        length = config.context
        if not fixed:
            length = st.slider(
                "length, tokens", 1, config.context, min(config.context, 512), key="length", bind="query-params"
            )
        batch = st.slider("batch, texts", 1, 256, 1, key="batch", bind="query-params")
        number = BYTES[st.selectbox("numbers in", list(BYTES), key="number", bind="query-params", width=120)]
    lengths = sorted({max(1, config.context * i // POINTS) for i in range(1, POINTS + 1)} | {length})

    st.markdown("**Operations of one forward pass over one text**")
    work = forward(config, length)
    flops = sum(one.flops for one in work)
    each = per_token(config, length)
    st.caption(
        f"{each:,.0f} a token, {flops:,} for the text; training takes {1 + BACKWARD} times as many. Two for each "
        "multiply and add of a matrix product; what a mask forbids is computed too. "
        "Attention's scores grow with the square of the length."
    )
    st.markdown(drawn.table([(drawn.titled(one.block, one.name), one.formula) for one in work], flops, "operations"))
    if not fixed:
        st.altair_chart(drawn.work_chart(config, lengths, length))

    one, two = st.columns(2, gap="medium")
    with one:
        st.markdown("**KV cache**")
        cache = kv_cache(config, batch, length, number)
        if cache:
            held = sum(part.bytes for part in cache)
            st.caption(f"{drawn.size(held)} for {batch} × {length:,} tokens: {held:,} bytes.")
            st.altair_chart(drawn.memory_chart(lambda n: kv_cache(config, batch, n, number), lengths, length))
            st.markdown(drawn.table([(part.name, part.formula) for part in cache], held, "bytes"))
        else:
            st.caption("It reads everything at once and continues no text, so it keeps no cache.")
    with two:
        st.markdown("**Memory of training**")
        kept, adam = activations(config, batch, length, number), states(config)
        sum_kept, sum_adam = sum(part.bytes for part in kept), sum(part.bytes for part in adam)
        st.caption(f"{drawn.size(sum_adam)} of weights, gradients and Adam, and {drawn.size(sum_kept)} kept for backward.")
        if not fixed:
            st.altair_chart(drawn.memory_chart(lambda n: activations(config, batch, n, number), lengths, length))
        st.markdown(drawn.table([(part.name, part.formula) for part in [*kept, *adam]], sum_kept + sum_adam, "bytes"))


st.subheader("Operations and memory")
costs(config)

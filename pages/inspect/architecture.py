"""Architectures: a model as its blocks, the switches that tell it from its relatives, and what it costs."""

from collections.abc import Callable
from functools import partial
from typing import LiteralString

import streamlit as st

from engine.analysis.sizes import BACKWARD, activations, count, envelope, forward, kv_cache, per_token, states
from engine.analysis.switches import (
    SWITCHES,
    differing_switches,
    option_label,
    single_changes,
    sizes,
    thrown,
    with_sizes,
)
from engine.model.config import ModelConfig
from engine.model.presets import NAMED, blueprint
from engine.plurals import count_words
from engine.runtime import library
from pages.controls.architecture.parameters import (
    ANATOMY,
    BYTES,
    FIRST,
    KEYS,
    NOBODY,
    OF_MODEL,
    SIZES,
    PossibleModel,
    adjust_to,
)
from pages.controls.bar import bar
from pages.controls.model_input.model_input import look_at, looked_at, open_on_looked_at
from pages.controls.share.export import Export, draw_page
from pages.controls.share.links import address_now, honour_link
from pages.controls.share.panel import share_panel
from pages.controls.state.session import find_record
from pages.controls.visitor import recent
from views.architecture import architecture as drawn
from views.architecture.charts import (
    cost_curves,
    curve_table,
    draw_curves,
    formula_table,
    formulas_by_part,
    waterfall,
)
from views.architecture.codegen import cost_lines, envelope_lines, part_table, size_lines
from views.charts.show import charts_wait, release_charts, show_plotly
from views.charts.standalone import chart_file
from views.core.component import view
from views.core.markdown import escape_markdown
from views.core.shown_tables import TABLES, ShownTables

MENU = {"title": "Anatomy", "address": "architecture", "place": 2, "opens": True}

OFFERED = 3  # changes that make a model possible again
WIDE = 132  # CSS pixels of a switch: two fit beside each other, on a phone too
POINTS = 48  # of a curve
LARGER = 3  # times the side of the pictures that a model reads is where its curves end
CONTROLS = ("model", "against", "published", "switches", "length", "batch", "number")  # that a link can hide
ENVELOPE = "Back-of-the-envelope estimate"
HOW_TO_ZOOM = "Drag to pan, Ctrl + wheel to zoom, double-click to reset."
picture = view("architecture", events=("drawn",))


def names() -> list[str]:
    """Lists the models with those that were opened in this session, on the page about checkpoints, and what a link
    names."""
    asked = here.begin("model"), here.begin("against")
    return [*NAMED, *(name for name in library.names(*recent(), *asked) if name not in NAMED)]


def config_named(name: str) -> ModelConfig:
    return NAMED[name].config if name in NAMED else library.checkpoint(name).config


def source(name: str) -> str:
    if name not in NAMED:
        return "A checkpoint of this Loupe."
    return " ".join(part for part in (f"{NAMED[name].source}.", NAMED[name].note) if part)


def throw_switches(other: ModelConfig | None, below: Callable[[str], None]) -> dict[str, str]:
    """A control for each switch; where the other model stands differently, its label says how. `below` is called with
    the name of each that is drawn."""
    chosen = {}
    for switch in SWITCHES:
        own = here.begin(switch.name)
        theirs, title = own if other is None else switch.get(other), escape_markdown(switch.title)
        chosen[switch.name] = here.menu(
            switch.name,
            width=WIDE,
            help=escape_markdown(switch.help) if theirs == own else None,
            label=title if theirs == own else f"{title} :violet[≠ {escape_markdown(option_label(theirs))}]",
        )
        below(switch.name)
    return chosen


def choose_sizes(below: Callable[[str], None]) -> dict[str, int]:
    chosen = {}
    for size, key in KEYS.items():
        chosen[size] = here.number(key, label=SIZES[size], width=WIDE)
        below(size)
    return chosen


def last_possible(name: str, config: ModelConfig) -> tuple[dict[str, str], dict[str, int]]:
    """Switches and sizes of the model called `name` when it was drawn last, or as published."""
    last = find_record(PossibleModel)
    if last.name == name:
        return last.switches, last.numbers
    return {switch.name: switch.get(config) for switch in SWITCHES}, sizes(config)


def changed_now(name: str, config: ModelConfig) -> str | None:
    """The switch or size that stands otherwise than when the model was drawn last."""
    switches, numbers = last_possible(name, config)
    return next((one for one, was in {**switches, **numbers}.items() if here.begin(KEYS.get(one, one)) != was), None)


def offer_changes(
    name: str, config: ModelConfig, chosen: dict[str, str], numbers: dict[str, int], error: ValueError
) -> None:
    """Says why the choices make no model, and offers the nearest that do, those of what was changed last first."""
    switches_before, numbers_before = last_possible(name, config)
    before = {**switches_before, **numbers_before}
    st.warning(f"This configuration is not possible: {escape_markdown(error)} The picture shows the last one that was.")
    changes = single_changes(config, chosen, numbers)
    latest = [other for other in changes if {**chosen, **numbers}[other] != before[other]]
    titles = SIZES | {switch.name: switch.title for switch in SWITCHES}
    for other in [*latest, *(other for other in changes if other not in latest)][:OFFERED]:
        value = changes[other]
        shown = f"{value:,}" if isinstance(value, int) else option_label(value)
        key = KEYS.get(other, other)
        st.button(
            escape_markdown(f"{titles[other]}: {shown}"),
            key=f"instead {other}",
            on_click=ANATOMY.choose,
            args=(key, value),
        )


def tabulate(rows: drawn.Rows, total: int, unit: str, key: str) -> None:
    """A table that scrolls by itself where it is wider than its place."""
    with st.container(key=f"table {key}"):
        st.markdown(drawn.table(rows, total, unit, narrow=key == "envelope"))


def published_config() -> ModelConfig | None:
    """Config of the model that is asked for; where it does not open, the page says below why."""
    try:
        return config_named(here.begin("model") if here.begin("model") in models else FIRST)
    except (ValueError, OSError):
        return None


here = ANATOMY.open()
models = names()
open_on_looked_at(here, models)
if published := published_config():
    adjust_to(here, models, published)
    if find_record(PossibleModel).name != here.begin("model"):
        here.restart(*OF_MODEL)
honour_link(here.rules, models)
st.html("<style>[class*=st-key-table-] { overflow-x: auto; } :has(> .st-key-misfit) { flex: 1 0 100%; }</style>")
with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="controls"):
    name: str = here.menu("model", models, on_change=ANATOMY.reset, args=OF_MODEL, width=220)
    against: str = here.menu("against", [NOBODY, *models], width=220)
    about = "Every switch back to where the model has it."
    st.button("as published", key="published", on_click=ANATOMY.reset, args=OF_MODEL, help=about)

try:
    own = config_named(name)
    other = None if against == NOBODY else config_named(against)
except (ValueError, OSError) as error:
    st.warning(escape_markdown(error))
    st.stop()

left, right = st.columns([3.1, 1], gap="medium")
changed, places = changed_now(name, own), [right]


def room_below(control: str) -> None:
    """Below what was changed is room for a sentence about it."""
    if control == changed:
        places.append(st.container(key="misfit"))


with right, st.container(horizontal=True, gap="small", key="switches"):
    chosen = throw_switches(other, room_below)
    numbers = choose_sizes(room_below)
try:
    config = with_sizes(thrown(own, chosen), **numbers)
except ValueError as error:
    with places[-1]:
        offer_changes(name, own, chosen, numbers, error)
    chosen, numbers = last_possible(name, own)
    config = with_sizes(thrown(own, chosen), **numbers)
possible = find_record(PossibleModel)
possible.name, possible.switches, possible.numbers = name, chosen, numbers

total = count(config)
if name != FIRST:
    look_at(name)
bar(name, looked_at()[1], f"{total:,} parameters")
shown = [(name if config == own else f"{name}, changed", config)]
shown += [] if other is None else [(against, other)]
tables = ShownTables(
    repr(shown),
    " and ".join(one for one, _ in shown),
    {one: partial(part_table, one, its) for one, its in shown},
    lambda: size_lines(name, own, chosen, numbers, None if other is None else against),
)
export = Export(
    "Anatomy", "architecture", tables, source(name), address_now(model=name), CONTROLS, tables.queries,
    "parameters by part, with their formulas",
)  # fmt: skip
with left:
    different = [] if other is None else differing_switches(config, other)
    notes = {"take": export.header, "reports": charts_wait()}
    payload = drawn.architecture(shown, differing=different, source=source(name), notes=notes)
    mount = partial(picture, key="architecture view", on={"drawn": release_charts})
    draw_page(export, payload, mount, (TABLES, tables))
if charts_wait():
    st.stop()
by_part, envelope_side = st.columns([1.12, 1], gap="medium")
with by_part:
    st.subheader("Parameters by part", anchor=False)
    built = sum(parameter.numel() for parameter in blueprint(config).parameters())
    st.caption(
        f"Each formula evaluates to its count. Together they are {total:,}; the tensors of the model itself, built "
        f"without memory, have {built:,}."
    )
    rows = drawn.part_rows(config)
    tabulate(rows, total, "parameters", "parts")
    st.caption(drawn.symbols(formula for _, formula in rows))

with envelope_side:
    st.subheader(ENVELOPE, anchor=False)
    steps = envelope(config)
    st.caption(
        f"Queries, keys and values and an MLP of width 4d in each layer, and a table of tokens: about "
        f"{drawn.about(steps[0].count)}. What lies between that and {total:,}, each part exactly:"
    )
    show_plotly(partial(waterfall, steps), key=ENVELOPE, alt="Waterfall from the estimate to the exact count")
    step_rows = [(step.name, step.formula) for step in steps]
    tabulate(step_rows, total, "parameters", "envelope")
    st.caption(" · ".join(f"**{drawn.written_name(step.name)}**: {escape_markdown(step.why)}" for step in steps))
    share_panel(
        ENVELOPE, address_now(model=name), CONTROLS, lambda: envelope_lines(name, own, chosen, numbers),
        {ENVELOPE: partial(formula_table, shown[0][0], ENVELOPE, "parameters", step_rows)},
        partial(
            chart_file, f"{ENVELOPE} · Loupe", [partial(waterfall, steps)],
            caption=[f"{shown[0][0]} · {total:,} parameters", source(name)], name="loupe-estimate",
        ),
        key="envelope share", names=[shown[0][0]],
    )  # fmt: skip


def costs(config: ModelConfig) -> None:
    """Operations and memory as functions of batch and length."""
    fixed = config.embedding.patches is not None
    length = config.context
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if not fixed:
            length = here.slider("length", config.context, width=360)
        batch = here.slider("batch", label=f"batch, {'pictures' if fixed else 'texts'}", width=360)
        number = BYTES[here.menu("number", width=130)]
    show_costs(config, batch, length, number)
    operations(config, length, fixed)
    cache_and_training(config, batch, length, number)


def along(config: ModelConfig, length: int) -> tuple[int, list[int]]:
    """Position of a model in its charts, and those at which they are drawn: lengths of its text, or sides of its
    picture."""
    patches = config.embedding.patches
    if patches is None:
        return length, sorted({max(1, config.context * i // POINTS) for i in range(1, POINTS + 1)} | {length})
    return patches.image, [patches.size * side for side in range(1, LARGER * patches.side + 1)]


def show_costs(config: ModelConfig, batch: int, length: int, number: int) -> None:
    """The charts, as functions of `along`."""
    now, lengths = along(config, length)
    curves = cost_curves(config, batch, now, number, lengths)
    charts = [draw_curves(one) for one in curves]
    for column, one, chart in zip(st.columns(len(curves), gap="medium"), curves, charts, strict=True):
        with column:
            chart.show(key=one.title, alt=f"{one.title}: {one.unit} by {one.axis[0]}, part on top of part")
    st.caption(f"Dashed: {asked_size(config, now)}. Point at a length to read every part there. {HOW_TO_ZOOM}")
    model = shown[0][0]
    tables = {one.table_name: partial(curve_table, model, one) for one in curves}
    tables |= {
        title: partial(formula_table, model, title, unit, rows)
        for title, (unit, rows) in formulas_by_part(config, batch, length, number).items()
    }
    share_panel(
        "Operations and memory", address_now(model=name), CONTROLS,
        lambda: cost_lines(name, own, chosen, numbers, (batch, length, number)), tables,
        partial(
            chart_file, "Operations and memory · Loupe", [chart.figure for chart in charts],
            caption=[f"{model} · a batch of {batch:,}, {asked_size(config, now)}, numbers of {number} bytes"],
            name="loupe-operations-and-memory",
        ),
        key="costs share", names=[model],
    )  # fmt: skip


def asked_size(config: ModelConfig, now: int) -> LiteralString:
    patches = config.embedding.patches
    return f"{count_words(now, 'token')} chosen" if patches is None else f"pictures of {now:,} pixels a side"


def operations(config: ModelConfig, length: int, fixed: bool) -> None:
    work = forward(config, length)
    flops = sum(one.flops for one in work)
    read = f"one picture, {count_words(length, 'position')}" if fixed else f"one text of {count_words(length, 'token')}"
    st.markdown("#### Operations by part")
    st.caption(
        f"{per_token(config, length):,.0f} a {'position' if fixed else 'token'}, {flops:,} for {read}; training takes "
        f"{1 + BACKWARD} times as many. Two for each multiply and add of a matrix product; scores that a mask forbids "
        "are computed too, and grow with the square of the length."
    )
    rows = [(drawn.block_title(one.block, one.name), one.formula) for one in work]
    tabulate(rows, flops, "operations", "work")


def cache_and_training(config: ModelConfig, batch: int, length: int, number: int) -> None:
    st.markdown("#### KV cache by part")
    if cache := kv_cache(config, batch, length, number):
        held = sum(part.bytes for part in cache)
        st.caption(f"{drawn.size(held)} for {batch:d} × {count_words(length, 'token')}.")
        tabulate([(part.name, part.formula) for part in cache], held, "bytes", "cache")
    else:
        st.caption("It reads everything at once and continues no text, so it keeps none.")

    st.markdown("#### Memory of training by part")
    kept, adam = activations(config, batch, length, number), states(config)
    of_kept, of_adam = sum(part.bytes for part in kept), sum(part.bytes for part in adam)
    st.caption(
        f"{drawn.size(of_adam)} of weights, gradients and Adam's moments, and {drawn.size(of_kept)} of activations "
        f"kept for the backward pass of {batch} × {count_words(length, 'token')}: every tensor that autograd saves, "
        "with fused attention and no dropout."
    )
    tabulate([(part.name, part.formula) for part in [*kept, *adam]], of_kept + of_adam, "bytes", "training")


st.subheader("Operations and memory", anchor=False)
costs(config)

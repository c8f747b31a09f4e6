"""Interventions: what a prediction needs. Each place of a run takes the value of another run, and what follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from engine.analysis.interventions.pair_set import COLUMNS
from engine.analysis.interventions.pairs import (
    TEXTS,
    mean_values,
    nearest_token,
    resample_values,
    salient_position,
    sum_values,
)
from engine.analysis.interventions.patching import TOGETHER, Ablation, Constant, Resample, rows_together
from engine.analysis.interventions.sites import SITES
from engine.analysis.interventions.sweep import Sweep
from engine.analysis.interventions.sweep_file import SweptPairs, read_sweep
from engine.analysis.logit_lens import check_lens
from engine.analysis.survey_file import digest_weights
from engine.edits import AddNoise, ChangeToken, Edit
from engine.inputs.readers import kind as read_kind
from engine.plurals import count_words
from engine.training.cluster.ray_kinds.pair_sweep import RayPairSweep, on_cluster
from pages.controls.answer_key import draw_answer_key
from pages.controls.compare.defaults import OTHER
from pages.controls.corpus import PairsUpload, take_file
from pages.controls.interventions.leads import ALONE, compare_address, metric_words, open_heads, show_circuit
from pages.controls.model_input.model_input import Subject, reading
from pages.controls.places import choose_place
from pages.controls.run_page import Charts, PageRun, RunPage, state_of
from pages.controls.share.measure import measure_steps, take_steps
from pages.controls.state.history import READABLE
from pages.controls.state.page_state import Here
from pages.controls.state.parameter import Choice, Number, Text, choice
from pages.controls.state.session import SessionValue
from pages.controls.train.parameters import data_rule
from pages.controls.train.user_data import folder
from pages.controls.what_if.experiment import run as run_subject
from views.core.codegen import edit_names, reading_lines
from views.core.lanes import Lane
from views.core.markdown import escape_markdown
from views.core.run_context import Run, RunContext
from views.interventions.charts import CHARTS
from views.interventions.pair_sets import (
    PAIR_CHARTS,
    Asked,
    PairSetContext,
    found_effects,
    is_measured,
    pair_steps,
    tell_left_out,
    work_of,
)
from views.interventions.questions import (
    INTERVENTIONS,
    OF_BLOCK,
    OF_HEADS,
    OF_STREAM,
    PairContext,
    edge_heads,
    find_curve,
    find_edges,
    find_sweep,
    pair_of,
)
from views.what_if.edit_sources import token

MENU = {"title": "Interventions", "address": "interventions", "place": 5, "opens": True}

TOKEN, TEXT, NOISE, ZERO, MEAN, DRAWN, PAIRS = "token", "text", "noise", "zero", "mean", "drawn", "pairs"
AGAINST = Choice(
    "other", TOKEN,
    {TOKEN: "another token", TEXT: "another text", NOISE: "noise", ZERO: "zero", MEAN: "the mean", DRAWN: "drawn texts",
     PAIRS: "pairs"},
    label="set against", hidden_as="what the run is set against",
    help="Where values come from: a run of the same text with one token swapped, of another text, of this one with "
    "noise on a token, 0, each value’s mean over texts of the shipped data, what it is in some of them drawn one at a "
    "time, or, for every pair of prompts of a file, the one of the other.",
)  # fmt: skip
SWAPPED = Number("swapped", 0, 0, 2**31 - 1)
BECOMES = Text("becomes", "", READABLE, label="becomes")
PAIRS_FILE = Text("pairs", "", READABLE, rule=data_rule, hidden_as="your pairs", element=".st-key-own-pairs")
OTHER_TEXT = Text("other_text", "", READABLE, label="the other text")
DIRECTION = Choice(
    "direction", "restore", {"restore": "into the other run", "break": "into this run"},
    label="values go", help="Into the other run: what of this run restores its prediction there (denoising). Into this "
    "run: what of the other breaks it (noising).",
)  # fmt: skip
METRIC = choice("metric", "logit", ("logit", "probability", "log-probability", "rank", "KL"), label="measured by")
PART = Choice("part", "stream", {one: SITES[one].title for one in ("stream", "attention", "MLP")}, label="places")
VALUE = Choice("value", "z", {one: SITES[one].title for one in ("z", "q", "k", "v", "pattern")}, label="of a head")
READS = Choice(
    "reads", "v", {"q": "query", "k": "key", "v": "value", "MLP": "MLP", "output": "output"}, label="read by"
)
SEED = Number("draw", 0, 0, 2**31 - 1, label="draw")
NOISE_SIZE = 3  # times the standard deviation of the embeddings (Meng et al. 2022)
SLOPES = Choice("slopes", "5", {"1": "at the run itself", "5": "mean of 5 on the way"}, label="slopes")
ANEW = SessionValue[set[tuple[str, str]]]("sweeps measured anew", set)  # files of other weights, and the model
SAID = 3  # rows that are left out, of which each is told
SWEEPS = (OF_STREAM, OF_HEADS, OF_BLOCK)
MOST = choice("most", "40", ("10", "40", "160"), label="edges shown")
OWN = (AGAINST, SEED, SWAPPED, BECOMES, OTHER_TEXT, PAIRS_FILE, DIRECTION, METRIC, PART, VALUE, READS, SLOPES, MOST,
       ALONE)  # fmt: skip


def other_run(here: Here, subject: Subject, run: RunContext) -> PairContext | PairSetContext:
    """The run with what it is set against, by the controls that this draws. Raises ValueError, with a sentence, for
    what cannot be set against it."""
    reads = run.checkpoint.tokenizer is not None and not run.trace.pictures
    talks, plain = "conversation" in subject.fields, read_kind(run.checkpoint) == "text"
    left_out = {TOKEN: not reads, TEXT: not reads or talks, PAIRS: not reads or not plain}
    known = {one: label for one, label in AGAINST.options.items() if not left_out.get(one)}
    here.adjust("other", options=known, default=next(iter(known)))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="set against"):
        kind = here.segments("other")
        if kind == TOKEN:
            return swap_token(here, subject, run)
        if kind == TEXT:
            return read_other(here, subject, run)
        if kind == NOISE:
            return add_noise(here, subject, run)
        if kind == PAIRS:
            return bring_pairs(here, run)
    here.leave_out("direction")
    constant, code = ablate(run, kind)
    imports = {f"engine.analysis.interventions.{'patching' if kind == ZERO else 'pairs'}": {code.partition("(")[0]}}
    return pair(run, constant, run.lanes, kind, [f"other = {code}"], imports)


def ablate(run: RunContext, kind: str) -> tuple[Ablation, str]:
    """Makes what says nothing of the text, and the Python for it."""
    checkpoint, trace = run.checkpoint, run.trace
    if kind == ZERO:
        return Constant(), "Constant()"
    if kind == MEAN:
        take_steps(
            "mean over texts", run.model_name, [partial(sum_values, checkpoint, index) for index in range(TEXTS)]
        )
        return run.cached("mean", lambda: mean_values(checkpoint)), "mean_values(checkpoint)"
    return run.cached("drawn", lambda: resample_values(checkpoint, trace)), "resample_values(checkpoint, trace)"


def pair(
    run: RunContext, other: Any, lanes: Sequence[Lane], named: str, lines: Sequence[str],
    imports: Mapping[str, set[str]] = {}, edit: Edit | None = None, text: str | None = None,
) -> PairContext:  # fmt: skip
    digest = sha256(named.encode()).hexdigest()[:16]
    return PairContext(
        **vars(run), other=other, other_lanes=lanes, other_digest=digest, other_lines=lines, imports=imports,
        swap=edit, other_text=text,
    )  # fmt: skip


def choose_position(here: Here, run: RunContext) -> int:
    """The position that the two runs differ at: at first that whose embedding counts most."""
    tokenizer, lane = run.checkpoint.tokenizer, run.lanes[0]
    special = {*tokenizer.special_tokens.values()} if tokenizer else set()
    hidden = [pos for pos, id in enumerate(lane.ids) if id in special]
    row = run.first_row
    out = [*hidden, row] if run.model.config.encoder is None and len(lane.ids) > len(hidden) + 1 else hidden
    best = run.likeliest(row, 1)[0]
    here.set_defaults(swapped=run.cached("salient", lambda: salient_position(run.model, run.trace, row, best, out)))
    places = list(range(len(lane.pieces)))
    return int(choose_place(here, "swapped", "key", run, places, {"side": lane.side}))


def add_noise(here: Here, subject: Subject, run: RunContext) -> PairContext:
    """This text with noise on the embedding of one token."""
    at, seed = choose_position(here, run), here.number("draw", width=120)
    side, table = f"{run.lanes[0].side}." if run.lanes[0].side else "", run.model.table
    hook = next(one for one in (f"{side}embed.tokens", f"{side}blocks.0.resid_pre") if one in run.model.hooks)
    spread = run.cached("spread", lambda: float((run.trace[hook] if table is None else table).float().std()))
    edit = AddNoise(hook, float(f"{NOISE_SIZE * spread:.4g}"), seed, {"pos": at})
    return edited_pair(subject, run, edit, run.lanes, f"noise {at} {seed}")


def swap_token(here: Here, subject: Subject, run: RunContext) -> PairContext:
    tokenizer, lane = run.checkpoint.tokenizer, run.lanes[0]
    assert tokenizer is not None
    at = choose_position(here, run)
    nearest = run.cached(("nearest", lane.ids[at]), lambda: nearest_token(run.model, tokenizer, lane.ids[at]))
    typed = here.text("becomes", placeholder=tokenizer.decode([nearest]).strip(), width=176)
    id = int(token({"text": typed}, run.checkpoint)) if typed.strip() else nearest
    if id == lane.ids[at]:
        raise ValueError(f"“{tokenizer.decode([id]).strip()}” is the token that stands there; type another one.")
    edit = ChangeToken(at, id, stack="encoder" if lane.side else None)
    pieces = [*lane.pieces[:at], tokenizer.pieces[id], *lane.pieces[at + 1 :]]
    return edited_pair(subject, run, edit, [replace(lane, pieces=pieces), *run.lanes[1:]], f"{at} {id}")


def edited_pair(subject: Subject, run: RunContext, edit: Edit, lanes: Sequence[Lane], named: str) -> PairContext:
    """The run set against itself under one edit more."""
    made = run_subject(subject, (*run.trace.edits, edit))
    assert isinstance(made, RunContext)
    edits = f"[{'*edits, ' if run.trace.edits else ''}{edit.to_code({})}]"
    return pair(run, made.trace, lanes, named, run_line(run, edits), {"engine.edits": edit_names([edit])}, edit)


def read_other(here: Here, subject: Subject, run: RunContext) -> PairContext:
    here.set_defaults(other_text=OTHER.get(run.model_name, {}).get("text", ""))
    text = here.text("other_text", width="stretch").strip()
    if not text:
        raise ValueError("Type the other text: one that differs where it matters, best in as many tokens.")
    read = reading(run.checkpoint, subject.limit, lambda name: text if name == "text" else subject.said(name))
    made = run_subject(replace(subject, reading=read), run.trace.edits)
    assert isinstance(made, RunContext) and run.fields is not None
    lines = reading_lines(run.checkpoint, replace(run.fields(), text=text))
    lines += run_line(run, "edits" if run.trace.edits else "")
    return pair(run, made.trace, made.lanes, text, lines, text=text)


def bring_pairs(here: Here, run: RunContext) -> PairSetContext:
    columns = f"Columns: {', '.join(COLUMNS)}; the last may be left out."
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="own pairs"):
        file = take_file(
            here, "pairs", "a file of pairs of prompts", escape_markdown(columns), PairsUpload, "Pairs of your own"
        )
    if file is None:
        raise ValueError(f"Bring a file of pairs of prompts. {columns}")
    try:
        swept = run.cached(("pairs", here["pairs"]), lambda: read_sweep(file))
    except ValueError as error:
        raise ValueError(str(error).replace(f"{folder()}/{here['pairs']}/", "")) from error
    measured = swept if is_of(here, run, swept, file.name) else None
    elsewhere = partial(on_cluster, run.model_name, run.checkpoint, swept.pairs)
    return PairSetContext(
        **vars(run), pairs=swept.pairs, named=file.name, file_digest=here["pairs"], measured=measured,
        elsewhere=elsewhere,
    )  # fmt: skip


def is_of(here: Here, run: RunContext, swept: SweptPairs, named: str) -> bool:
    """Tells whether what a sweep found is of this model, and of its heads as the charts show them; the controls begin
    at what it was asked. Raises ValueError for other weights, unless a person has its pairs measured anew."""
    header, key = swept.header, (here["pairs"], run.model_name)
    if header is None:
        return False
    asked = {"metric": header.metric, "direction": header.direction, "value": header.site}
    known = {"metric": METRIC, "direction": DIRECTION, "value": VALUE}
    here.set_defaults(**{name: value for name, value in asked.items() if value in known[name].options})
    if run.cached("weights", lambda: digest_weights(run.checkpoint)) != header.weights:
        if key not in ANEW.get():
            st.button("Measure its pairs anew", key="measure anew", on_click=ANEW.get().add, args=(key,))
            raise ValueError(
                f"{named} must hold what was found of {run.model_name}, got a sweep of {header.model} with other "
                "weights; choose that model, or have its pairs measured anew."
            )
        return False
    sizes = run.model.config.layers, run.model.config.attention.heads
    heads = header.places == ("head",) and header.metric in METRIC.options
    if not heads or not all(one.shape == sizes and one.isfinite().all() for one in swept.effects.values()):
        told = f"{named} has effects of {header.site} by {' and '.join(header.places)}, measured by {header.metric}"
        st.caption(escape_markdown(f"{told}. The charts show all heads by head: its pairs are measured anew."))
        return False
    return True


def run_line(run: RunContext, edits: str) -> list[str]:
    """The line that binds `other`; what it reads is bound by those of the run, or by lines before."""
    assert run.fields is not None
    reads = reading_lines(run.checkpoint, run.fields())[-1]
    whole = "reading.read" if reads.startswith("reading") else "read"
    more = f"{', target=reading.target' if run.trace.target is not None else ''}{f', edits={edits}' if edits else ''}"
    return [f"other = run(checkpoint.model, {whole}{more})"]


def tell_pair(run: PairContext, sweep: Sweep) -> None:
    """Says what both runs predict, and so what 0 and 1 are."""
    what, nothing = metric_words(run, sweep), f"{sweep.nothing:.3f}"
    if isinstance(run.other, Ablation):
        put = "0"
        if isinstance(run.other, Resample):
            put = f"what it is in {count_words(len(run.other.runs), 'other text')}, one at a time, in the mean"
        elif run.other.means is not None:
            put = f"its mean over {count_words(TEXTS, 'text')}"
        told = escape_markdown(put)
        st.markdown(f"The {what} is **{nothing}**. Below, each place by itself is {told}: by how much that changes.")
        return
    own, other = ("the other run", "this run") if sweep.base is run.other else ("this run", "the other run")
    st.markdown(
        f"The {what} is **{nothing}** in {own} and **{sweep.everything:.3f}** in {other}. Below, each place of {own} "
        f"takes, by itself, the value of {other}: 0 is no change, 1 is as in {other}."
    )


def measure(run: PairContext, chosen: Mapping[str, Any]) -> None:
    """Runs the sweeps of the charts; says where the places of a block do not fit into memory together."""
    sweep = find_sweep(run, pair_of(chosen))
    stream = SITES["stream"].hook(run.model, 0, chosen["side"]).name
    places = sweep.base[stream].shape[1] * run.model.config.attention.heads
    together = rows_together(run.model, sweep.base)
    if together < places:
        most, fits = count_words(places, "place"), f"{TOGETHER // 2**20} MiB"
        told = f"The {most} of a block would take more than {fits}, so that {together:,} of them run at a time."
        st.caption(escape_markdown(told))
    take_steps(
        "interventions", (run.digest, *chosen.items()), [step for one in SWEEPS for step in one.steps(run, chosen)]
    )


def tell_pairs(run: PairSetContext, asked: Asked) -> None:
    """Sweeps every pair of the file that has not its effects; says how many are behind the means, and why others are
    not."""
    work = work_of(run, asked)
    if isinstance(work, RayPairSweep):
        if work.trouble:
            st.warning(escape_markdown(work.trouble))
        if work.steps:
            measure_steps("pairs", (run.digest, *asked), work.steps, wait=work.wait)
    elif not is_measured(run, asked):
        take_steps("pairs", (run.digest, *asked), pair_steps(run, asked))
    count, left_out = len(found_effects(run, asked)), tell_left_out(run, asked)
    st.markdown(
        f"{count:,} of {escape_markdown(count_words(len(run.pairs), 'pair'))} of {escape_markdown(run.named)}: the "
        "mean effect of each head, with its 95 % interval by bootstrap in the tooltip."
        f"{' The file has them: nothing was measured again.' if is_measured(run, asked) else ''}"
    )
    for row, why in list(left_out.items())[:SAID]:
        st.caption(escape_markdown(f"Row {row + 1} is left out. {why}"))
    if len(left_out) > SAID:
        st.caption(escape_markdown(f"So are {count_words(len(left_out) - SAID, 'other row')}."))


def tell_places(run: PairContext, sweep: Sweep, chosen: Mapping[str, Any]) -> None:
    """Says which place and which head do most and in how many nothing was changed, and leads to a comparison."""
    for places in (OF_STREAM, OF_HEADS):
        found, site = places.effects(run, chosen), SITES[places.site_of(chosen)]
        unchanged = int((found.moved == 0).sum())
        if unchanged == found.moved.numel():
            told = f"The {site.title} is the same in both runs everywhere, so that nothing was changed there."
            st.warning(escape_markdown(told))
            continue
        layer, at = divmod(int(found.effect.abs().argmax()), found.effect.shape[1])
        where = f"block {layer + 1}, head {at + 1}"
        if places is OF_STREAM:
            piece = run.changed_pieces(sweep.direction, chosen["side"], [at])[0]
            where = f"{'in front of ' if site.name == 'stream' else ''}block {layer + 1} at “{piece}”"
        same = f" In {unchanged:,} of {count_words(found.moved.numel(), 'place')} both hold the same value (=)."
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(
                f"Most of the {escape_markdown(site.title)}: {escape_markdown(where)}, "
                f"**{float(found.effect[layer, at]):+.2f}**.{same if unchanged else ''}",
                width="content",
            )
            hook = site.hook(run.model, layer, chosen["side"]).name
            address = compare_address(run, sweep, hook, {"pos" if places is OF_STREAM else "head": at})
            if address:
                link = escape_markdown(urlencode(address))
                st.markdown(f"[Compare with the run in which it is changed](compare?{link})", width="content")


class Interventions(RunPage):
    title, registry, charts = "Interventions", INTERVENTIONS, CHARTS
    state = state_of("interventions", *OWN)
    linked = ("attention", "what if", *(one.name for one in OWN))
    about = "pair"
    refused = ""  # why the run has nothing to be set against

    def extend(self, here: Here, subject: Subject, run: Run) -> Run:
        assert isinstance(run, RunContext)
        try:
            check_lens(run.model.config)
            found = other_run(here, subject, run)
            if isinstance(found, PairSetContext):
                self.charts, self.about = PAIR_CHARTS, "pair_set"
            return found
        except ValueError as error:
            self.refused = str(error)
            return run

    def check(self, run: Run) -> None:
        if not isinstance(run, PairContext | PairSetContext):
            raise ValueError(self.refused)

    def draw_charts(self, shown: PageRun, charts: Charts) -> None:
        super().draw_charts(shown, charts)
        if isinstance(shown.run, PairContext):
            draw_answer_key(shown.run)

    def follow_chart(self, shown: PageRun, ask: str, chosen: Mapping[str, Any]) -> None:
        run = shown.run
        if not isinstance(run, PairContext):
            return
        if ask == "circuits":
            show_circuit(shown.here, run, find_sweep(run, pair_of(chosen)), find_curve(run, chosen))
        elif ask == "edges":
            open_heads(edge_heads(find_edges(run, chosen)), chosen["row"])

    def draw_findings(self, run: Run, chosen: Mapping[str, Any]) -> None:
        if isinstance(run, PairSetContext):
            tell_pairs(run, (chosen["metric"], chosen["direction"], chosen["value"]))
            return
        assert isinstance(run, PairContext)
        sweep = find_sweep(run, pair_of(chosen))
        for site in (chosen["part"], chosen["value"]):
            sweep.check_site(site, chosen["side"])
        tell_pair(run, sweep)
        measure(run, chosen)
        tell_places(run, sweep, chosen)


Interventions().show()

"""Where a sweep leads: the run with one place, or all but a circuit, changed, on Compare and on other pages."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from urllib.parse import urlencode

import streamlit as st
import torch

from engine.analysis.interventions.circuit import Curve, keep_parts, list_nodes, measure_circuits
from engine.analysis.interventions.edges import Node
from engine.analysis.interventions.pairs import source_of, take_from
from engine.analysis.interventions.patching import Ablation, Constant
from engine.analysis.interventions.sweep import Sweep
from engine.budget import budget
from engine.edits import Edit, Patch, Scale
from engine.edits.experiment import Entry, Experiment
from engine.edits.sources import RunSourcedEdit
from engine.plurals import count_words
from engine.runtime.trace import Trace
from pages.controls.compare.defaults import link_edits
from pages.controls.model_input.model_input import looked_at
from pages.controls.share.links import address_now
from pages.controls.state.page_state import Here
from pages.controls.state.parameter import Number
from pages.controls.state.session import widget_value
from pages.controls.what_if.experiment_link import linkable, to_link
from views.core.markdown import Markdown, escape_markdown
from views.core.run_context import Run
from views.interventions.questions import PairContext, node_name

ALONE = Number("alone", 0, 0, 2**31 - 1, label="parts kept")
ENOUGH = 0.9  # share of a prediction that the circuit shown first makes
OPENED = 4  # heads of a graph that lead to other pages


def compare_address(run: PairContext, sweep: Sweep, hook: str, at: Mapping[str, int]) -> dict[str, str]:
    """Address of a comparison of the run that is changed, A, with the same once a place is, B; empty where no address
    holds it."""
    other_text = run.other_text if sweep.base is run.other else None
    return compare_runs(run, sweep.base, patch_edit(run, sweep, hook, at), other_text)


def compare_runs(run: Run, base: Trace, edit: Edit | None, text: str | None = None) -> dict[str, str]:
    """Address of a comparison of a run, A, with the same under one edit more, B; empty where no address holds it.
    `text` is what the run read, where that is not what the page's did."""
    fields = looked_at()[1] | ({} if text is None else {"text": text})
    both = add_edit(base.edits, edit)
    if both is None:
        return {}
    seed = {name: said for name, said in address_now().items() if name == "seed"}
    return link_edits(run.model_name, fields, both) | seed


def add_edit(edits: Sequence[Edit], edit: Edit | None) -> tuple[Experiment, Experiment] | None:
    """The edits without and with one more, None where no address holds them."""
    if edit is None or len(edits) >= budget.max_edits or widget_value("upload"):
        return None
    both = Experiment(tuple(map(Entry, edits))), Experiment(tuple(map(Entry, (*edits, edit))))
    return both if linkable(both[1]) else None


def patch_edit(run: PairContext, sweep: Sweep, hook: str, at: Mapping[str, int]) -> Edit | None:
    """Edit of one place, as What if has it; None for what it has no short form of."""
    if isinstance(sweep.other, Ablation):
        return Scale(hook, 0.0, at) if isinstance(sweep.other, Constant) and sweep.other.means is None else None
    source, there = sweep.source, dict(at)
    if source.pictures or any(isinstance(edit, RunSourcedEdit) for edit in source.edits):
        return None
    partners = take_from(sweep.base, source).partners or {}
    own = partners.get(hook.partition(".")[0] if hook.startswith(("encoder.", "decoder.")) else "")
    if own is not None and "pos" in at:
        there["pos"] = int(own[at["pos"]])
    elif own is not None and own.tolist() != list(range(len(own))):
        return None
    return Patch(hook, source_of(source), at, source_at=None if there == at else there)


def metric_words(run: PairContext, sweep: Sweep) -> Markdown:
    """Names what a prediction is measured by."""
    ids = [one for one in (sweep.candidate, sweep.against) if one is not None]
    name, *lead = (f"“{escape_markdown(one)}”" for one in run.name_candidates(ids))
    aim = "itself" if isinstance(run.other, Ablation) else "the run that values come from"
    measured = {
        "logit": f"lead of {name} over {lead[0]}" if lead else f"logit of {name}",
        "probability": f"probability of {name}",
        "log-probability": f"log-probability of {name}, in nats",
        "rank": f"rank of {name}",
        "KL": f"distance (KL, in nats) from {aim}",
    }
    return Markdown(measured[sweep.metric])


def show_circuit(here: Here, run: PairContext, sweep: Sweep, curve: Curve) -> None:
    """Says what as many parts as are chosen do alone, and leads to the run of them on every page."""
    measured = zip(curve.sizes, curve.faithful.tolist(), strict=True)
    enough = next((size for size, share in measured if size and share >= ENOUGH), 1)
    here.adjust("alone", low=1, high=len(curve.nodes) - 1, default=min(enough, len(curve.nodes) - 1))
    with st.container(horizontal=True, vertical_alignment="center"):
        nodes = curve.nodes[: here.slider("alone", width=240)]
        listed = list_nodes(sweep.model.config)
        kept = torch.tensor([[(node in nodes) == alone for node in listed] for alone in (True, False)])
        alone, without = run.cached(("alone", sweep.metric, nodes), lambda: measure_circuits(sweep, kept).tolist())
        parts, them = count_words(len(nodes), "part"), "it" if len(nodes) == 1 else "them"
        st.markdown(
            f"With {escape_markdown(parts)} alone the {metric_words(run, sweep)} is **{alone:.3f}**, with all others "
            f"and without {them} **{without:.3f}**. {circuit_links(run, sweep, nodes)}",
            width="stretch",
        )


def circuit_links(run: PairContext, sweep: Sweep, nodes: Collection[Node]) -> Markdown:
    """Links to the run of a circuit alone, and of all without it; empty where no address holds them."""
    if any_sourced(sweep):
        return Markdown("")
    edits = {"alone": keep_parts(sweep, nodes), "without": keep_parts(sweep, nodes, alone=False)}
    return Markdown(" · ".join(edit_links(run, sweep, name, edit) for name, edit in edits.items()))


def edit_links(run: PairContext, sweep: Sweep, name: str, edit: Edit | None) -> Markdown:
    both = add_edit(sweep.trace.edits, edit)
    if both is None:
        return Markdown("")
    compare = escape_markdown(urlencode(compare_runs(run, sweep.trace, edit)))
    attention, said = escape_markdown(urlencode(address_now(edits=to_link(both[1])))), escape_markdown(name)
    return Markdown(f"[Compare, {said}](compare?{compare}) · [Attention, {said}](attention?{attention})")


def any_sourced(sweep: Sweep) -> bool:
    """Tells whether a source of values takes values itself, which no edit names."""
    edits = () if isinstance(sweep.other, Ablation) else sweep.other.edits
    return any(isinstance(edit, RunSourcedEdit) for edit in edits)


def open_heads(nodes: Sequence[Node], row: int) -> None:
    """Leads from heads of a graph to Attention, and to what they read."""
    if nodes:
        st.markdown(Markdown(" · ".join(head_links(node, row) for node in nodes[:OPENED])))


def head_links(node: Node, row: int) -> Markdown:
    at = {"layer": str(node.layer), "head": str(node.head)}
    attention = escape_markdown(f"{urlencode(address_now())}#{urlencode(at)}")
    why = escape_markdown(urlencode(address_now(**at, pos=str(row))))
    name = escape_markdown(node_name(node))
    return Markdown(f"{name}: [Attention](attention?{attention}), [why it looks there](why_head?{why})")

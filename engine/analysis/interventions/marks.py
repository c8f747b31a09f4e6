"""Analyses marked on a compiled model: which parts and edges each finds, beside those of the answer key.

Every analysis looks at the same pairs of texts, of which one token differs and the prediction with it. A part or an
edge is found if in one of the pairs its share of what separates the two predictions is above FOUND.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random
from typing import TypeAlias

import torch
from torch import Tensor

from engine.analysis.attribution import attribute
from engine.analysis.heads import scores
from engine.analysis.interventions.edges import Edges, list_readers
from engine.analysis.interventions.pairs import mean_values
from engine.analysis.interventions.patching import Constant
from engine.analysis.interventions.sweep import Sweep
from engine.analysis.logit_lens import lens_logits
from engine.analysis.score_split import split_score
from engine.analysis.strongest import strengths_of
from engine.analysis.writers import EMBEDDING, Writer
from engine.checkpoints import Checkpoint
from engine.compiled.answer_key import AnswerKey, Part
from engine.compiled.program import POSITIONS, TOKENS
from engine.runtime.run import run

Item: TypeAlias = Part | tuple[Part, Part]
Shares: TypeAlias = Iterator[tuple[Item, float]]

PAIRS, TRIES = 24, 400
SPLITS = 4  # pairs whose scores are split
SHARES = "previous", "first", "own", "induction", "duplicate"  # scores of a head that are shares
FOUND = 0.01


@dataclass(frozen=True)
class Mark:
    """`found` are the parts, or the edges, that an analysis found, `needed` those of the key."""

    analysis: str
    found: frozenset[Item]
    needed: frozenset[Item]

    @property
    def precision(self) -> float:
        """The share of what was found that is needed; 1 of nothing."""
        return len(self.found & self.needed) / len(self.found) if self.found else 1.0

    @property
    def recall(self) -> float:
        """The share of what is needed that was found."""
        return len(self.found & self.needed) / len(self.needed) if self.needed else 1.0


def mark_analyses(checkpoint: Checkpoint, key: AnswerKey) -> list[Mark]:
    """Every analysis on the same pairs. Raises as `draw_pairs` does."""
    sweeps = list(draw_pairs(checkpoint, key))
    nodes, edges = frozenset[Item](key.nodes()), frozenset[Item](key.edges())
    marks = [Mark(name, find(sweeps, nodes_of), nodes) for name, nodes_of in OF_NODES.items()]
    constants = {"zero ablation": Constant(), "mean ablation": mean_values(checkpoint)}
    for name, constant in constants.items():
        marks.append(Mark(name, find([ablated(sweep, constant) for sweep in sweeps], patched_nodes), nodes))
    blocks = frozenset[Item](("block", line.block, None) for line in key.lines)
    marks.append(Mark("logit lens, by block", find(sweeps, lens_blocks), blocks))
    heads = frozenset[Item](one for one in key.nodes() if one[0] == "head")
    marks += [Mark(name, find(sweeps, heads_of), heads) for name, heads_of in OF_HEADS.items()]
    reads = frozenset[Item](edge for edge in key.edges(with_start=True) if edge[1][0] in ("q", "k"))
    marks.append(Mark("score split (Why this head)", find(sweeps[:SPLITS], split_edges), reads))
    return marks + [Mark(name, find(sweeps, edges_of), edges) for name, edges_of in OF_EDGES.items()]


def draw_pairs(checkpoint: Checkpoint, key: AnswerKey, seed: int = 0) -> Iterator[Sweep]:
    """Pairs of texts of one length each, drawn from the vocabulary of the program, and a position at which what the
    model predicts differs. Raises ValueError where there is none."""
    variables = {variable.name: variable for variable in key.variables}
    longest = variables[POSITIONS].size
    tokenizer = checkpoint.tokenizer
    assert tokenizer is not None
    start, ids = tokenizer.ids(""), [tokenizer.pieces.index(token) for token in variables[TOKENS].labels]
    draw, model, made = Random(seed), checkpoint.model, 0
    for _ in range(TRIES):
        length = draw.randint(min(2, longest), longest)
        text = [draw.choice(ids) for _ in range(length)]
        changed = [*text]
        changed[draw.randrange(length)] = draw.choice(ids)
        first, second = (run(model, [[*start, *one]]) for one in (text, changed))
        answers = [trace["logits"][0].argmax(-1) for trace in (first, second)]
        rows = (answers[0] != answers[1]).nonzero().flatten().tolist()
        if rows:
            row = draw.choice(rows)
            yield Sweep(model, first, second, "logit", row, int(answers[0][row]), int(answers[1][row]))
            made += 1
        if made == PAIRS:
            return
    if not made:
        raise ValueError("One token must change what is predicted in some text, and does in none that was drawn.")


def ablated(sweep: Sweep, constant: Constant) -> Sweep:
    return Sweep(sweep.model, sweep.trace, constant, "logit", sweep.row, sweep.candidate, sweep.against)


def find(sweeps: list[Sweep], shares_of: Callable[[Sweep], Shares]) -> frozenset[Item]:
    return frozenset(one for sweep in sweeps for one, share in shares_of(sweep) if abs(share) > FOUND)


def by_node(sweep: Sweep, heads: Tensor, mlps: Tensor) -> Shares:
    """Shares of heads (layer head) and of MLPs (layer pos), of which the largest counts."""
    for layer, one in enumerate(heads.tolist()):
        yield from ((("head", layer, head), share) for head, share in enumerate(one))
        yield ("MLP", layer, None), float(mlps[layer].abs().max())


def patched_nodes(sweep: Sweep) -> Shares:
    yield from by_node(sweep, sweep.patch("z", ("head",)).effect, sweep.patch("MLP", ("pos",)).effect)


def estimated_nodes(sweep: Sweep) -> Shares:
    yield from by_node(sweep, sweep.estimate("z", ("head",)), sweep.estimate("MLP", ("pos",)))


def attributed_nodes(sweep: Sweep) -> Shares:
    """Direct terms of the lead, as shares of it."""
    found = attribute(sweep.model, sweep.trace, sweep.first_row, sweep.candidate, sweep.against)
    for writer, value in found.values.items():
        if writer.kind in ("head", "MLP"):
            yield (writer.kind, writer.layer, writer.head), value / found.logit


def lens_blocks(sweep: Sweep) -> Shares:
    """Lists by how much each block moves the lead that the logit lens reads, as a share of the lead at the end."""
    leads = []
    for layer in range(sweep.model.config.layers + 1):
        logits = lens_logits(sweep.model, sweep.trace, layer, sweep.first_row)[0].float()
        leads.append(float(logits[sweep.candidate] - (logits[sweep.against] if sweep.against is not None else 0)))
    for layer, (before, after) in enumerate(pairwise(leads)):
        yield ("block", layer, None), (after - before) / leads[-1]


def telling_heads(sweep: Sweep) -> Shares:
    """The score of each head that differs most from that of a head that attends evenly."""
    trace = sweep.trace
    for layer in range(sweep.model.config.layers):
        name = f"blocks.{layer}.attn"
        mask = trace[f"{name}.mask"][0].expand(trace[f"{name}.pattern"].shape[1:])
        own, even = (
            scores(one, trace.ids[0], mask) for one in (trace[f"{name}.pattern"][0], mask / mask.sum(-1, True))
        )
        apart = torch.stack([getattr(own, kind) - getattr(even, kind) for kind in SHARES]).nan_to_num().abs().amax(0)
        yield from ((("head", layer, head), share) for head, share in enumerate(apart.tolist()))


def firing_heads(sweep: Sweep) -> Shares:
    """The length of what each head writes where it writes most, as a share of what any does."""
    found = {place[1]: one for place, one in strengths_of(sweep.model, sweep.trace) if place[2] == "written"}
    most = max(float(one.nan_to_num().max()) for one in found.values())
    for layer, one in found.items():
        lengths = one.nan_to_num().amax(0).tolist()
        yield from ((("head", layer, head), length / most) for head, length in enumerate(lengths))


def split_edges(sweep: Sweep) -> Shares:
    """Lists what wrote the query, and the key, of each score of the row: shares of the size of all terms of the
    score."""
    model, trace, row = sweep.model, sweep.trace, sweep.first_row
    for layer in range(model.config.layers):
        seen = trace[f"blocks.{layer}.attn.masked_scores"][0, :, row]
        for head, values in enumerate(seen):
            for at in values.isfinite().nonzero().flatten().tolist():
                found = split_score(model, trace, layer, head, row, at)
                sizes = found.values.abs()
                yield from share_parts(found.queries, sizes.sum(1) / sizes.sum(), ("q", layer, head))
                yield from share_parts(found.keys, sizes.sum(0) / sizes.sum(), ("k", layer, head))


def share_parts(writers: Sequence[Writer], shares: Tensor, reader: Part) -> Shares:
    """Shares of the writers that are parts; nothing of a sum of nothing."""
    for writer, share in zip(writers, shares.nan_to_num().tolist(), strict=True):
        if writer.kind in ("head", "MLP"):
            yield ((writer.kind, writer.layer, writer.head), reader), share
        elif writer.kind in EMBEDDING.values():
            yield (("embedding", None, None), reader), share


def patched_edges(sweep: Sweep) -> Shares:
    readers = dict.fromkeys(replace(one, head=None) for one in list_readers(sweep.model.config))
    for reader in readers:
        yield from by_edge(sweep.patch_paths(reader))


def by_edge(found: Edges) -> Shares:
    writers, readers = (
        [(node.part, node.layer, node.head) for node in ends] for ends in (found.writers, found.readers)
    )
    for writer, row in zip(writers, found.values.nan_to_num().tolist(), strict=True):
        yield from (((writer, reader), share) for reader, share in zip(readers, row, strict=True))


OF_NODES: dict[str, Callable[[Sweep], Shares]] = {
    "activation patching": patched_nodes,
    "attribution patching": estimated_nodes,
    "direct attribution (Why this token)": attributed_nodes,
}
OF_HEADS: dict[str, Callable[[Sweep], Shares]] = {
    "table of heads": telling_heads,
    "what makes it fire": firing_heads,
}
OF_EDGES: dict[str, Callable[[Sweep], Shares]] = {
    "path patching": patched_edges,
    "edge attribution patching": lambda sweep: by_edge(sweep.estimate_edges()),
    "the same with integrated gradients": lambda sweep: by_edge(sweep.estimate_edges(5)),
}

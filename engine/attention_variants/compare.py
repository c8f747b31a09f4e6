"""The searches side by side: what each finds of the true nearest, and at what cost."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import torch

from engine.attention_variants import quantize
from engine.attention_variants.cost import Cost
from engine.attention_variants.material import Material
from engine.attention_variants.measure import ALONE, Setup, index_of, sampled_queries
from engine.attention_variants.nearest import Search, exact, exact_cost

ASKED = 128  # positions whose queries, of all heads, are searched for
KS = (8, 16, 32)


@dataclass(frozen=True)
class SearchMeasurement:
    """Result of one way to search: recall@k for each k asked for; `cost` and `seconds` of one query at the set-up's k,
    and the `bytes` of all that is kept to search in."""

    name: str
    recall: dict[int, float]
    cost: Cost
    seconds: float
    bytes: int


@torch.no_grad()
def searches(material: Material, setup: Setup) -> list[SearchMeasurement]:
    """Exact, by the codes alone, and with the best compared again. Costs are of one query: candidates are counted."""
    length, d_model = material.states.shape
    queries = sampled_queries(material, seed=1, count=ASKED)
    coarse = index_of(material, replace(setup.quantizer, rerank=0))
    fine = replace(coarse, settings=replace(coarse.settings, rerank=max(setup.quantizer.rerank, 1)))
    met = coarse.candidates(queries).float().mean().item()
    true = exact(queries, material.states, max(KS))[1]

    def row(name: str, search: Search, cost: Cost, size: int) -> SearchMeasurement:
        recall = {k: quantize.recall(search(queries, k)[1], true[:, :k]) for k in KS if k <= length}
        with ALONE:
            begin = time.perf_counter()
            search(queries, setup.k)
            taken = time.perf_counter() - begin
        return SearchMeasurement(name, recall, cost, taken / len(queries), size)

    def search_quantized(index: quantize.Index) -> tuple[Search, Cost, int]:
        cost = quantize.search_cost(1, length, 1, d_model, setup.k, index.settings, met)
        again = material.states.nbytes if index.settings.rerank else 0
        return index.search, cost, sum(index.bytes.values()) + again

    return [
        row(
            "exact",
            lambda queries, k: exact(queries, material.states, k),
            exact_cost(1, length, 1, d_model, setup.k),
            material.states.nbytes,
        ),
        row("codes alone", *search_quantized(coarse)),
        row(f"codes, best {fine.settings.rerank} k again", *search_quantized(fine)),
    ]

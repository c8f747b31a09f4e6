"""Product quantization (Jégou et al. 2011): states kept as a few bytes each, and searched without unpacking them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from engine.attention_variants.cost import FLOAT, INDEX, Cost
from engine.attention_variants.kmeans import assign, kmeans
from engine.attention_variants.metric import Metric, metric
from engine.attention_variants.nearest import GATHERED, Found

QUERIES, VISITS = 4096, 512  # searched at once, and those of them that visit one list at once
SAMPLE = 32  # states the quantizers learn from, for each centroid: enough for Lloyd's algorithm, as more hardly helps


@dataclass(frozen=True)
class Settings:
    """`subspaces` (m) bytes a state, each the number of one of `codes` (k*) centroids; `lists` (k') of the coarse
    quantizer, of which a query visits `probes` (w); the best `rerank` * k found are compared again exactly, 0 for none.
    """

    subspaces: int = 32
    codes: int = 64
    lists: int = 64
    probes: int = 8
    rerank: int = 4

    def __post_init__(self) -> None:
        if not 1 <= self.codes <= 256:
            raise ValueError(f"a code is one byte, so codes must be in 1..256, got {self.codes}.")
        if min(self.subspaces, self.lists, self.probes) < 1 or self.rerank < 0:
            raise ValueError(f"sub-spaces, lists and probes must be at least 1 and rerank at least 0, got {self}.")

    def fit_to(self, length: int) -> Settings:
        """Settings with at least 4 states for every code and 8 for every list, and no more probes than lists."""
        lists = min(self.lists, max(length // 8, 1))
        codes = min(self.codes, max(length // 4, 1))
        return Settings(self.subspaces, codes, lists, min(self.probes, lists), self.rerank)


@dataclass(frozen=True)
class Index:
    """States h ~ c + r^ in inverted lists (section IV.A): c the centroid of the list, r^ the quantized residual h - c.

    Jégou et al. search by distance. For an inner product the residual is even simpler, for the product is linear:

        q . h  ~  q . c  +  sum_m q_m . r^_m                          (m runs over the sub-spaces)

    The first term is one number a list, the same for all its members; the others are read from tables of q_m with
    every centroid of sub-space m. These tables do not depend on the list, as those of distances do through the
    residual q - c of the query. The query itself is never quantized: that is the "asymmetric" of section III.

    The lists visited are those with the largest q . c. All of this happens in the coordinates of metric.py,
    where inner products are what they were; a query's change of coordinates could be folded into W_K with the rest.
    """

    settings: Settings
    metric: Metric
    states: Tensor  # key d_model, only to compare again exactly
    centroids: Tensor  # list d_model
    codebooks: Tensor  # subspace code d_model/subspaces
    codes: Tensor  # key subspace, uint8, the members of a list side by side
    keys: Tensor  # key: which state each row of codes is
    starts: tuple[int, ...]  # list + 1: where each list begins

    @property
    def bytes(self) -> dict[str, int]:
        """Bytes that the index takes, by part; it does without the states unless it compares again exactly."""
        return {
            "codes": self.codes.numel(),
            "keys": FLOAT * self.keys.numel(),  # int32
            "codebooks": FLOAT * self.codebooks.numel(),
            "centroids": FLOAT * self.centroids.numel(),
            "lists": FLOAT * len(self.starts),
            "metric": FLOAT * self.metric.to_query.numel(),
        }

    def nearest_lists(self, queries: Tensor) -> tuple[Tensor, Tensor]:
        """The lists each query (already in the index's coordinates) visits and their q . c: query probe."""
        scores, lists = (queries @ self.centroids.T).topk(self.settings.probes)
        return lists, scores

    def candidates(self, queries: Tensor) -> Tensor:
        """Counts the states that each query is compared with: query."""
        sizes = torch.tensor(self.starts).diff()
        return sizes[self.nearest_lists(queries @ self.metric.to_query)[0]].sum(-1)

    def search(self, queries: Tensor, k: int, visible: Tensor | None = None) -> Found:
        """Searches as `exact` of nearest.py does; key -1, score -inf where the visited lists held fewer than k."""
        k = min(k, len(self.states))
        wanted = min(k * max(self.settings.rerank, 1), len(self.states))
        parts = []
        for start in range(0, len(queries), QUERIES):
            rows = slice(start, start + QUERIES)
            found = self._scan(queries[rows] @ self.metric.to_query, wanted, None if visible is None else visible[rows])
            parts.append(found if self.settings.rerank == 0 else self._rerank(queries[rows], found[1], k))
        return torch.cat([scores for scores, _ in parts]), torch.cat([keys for _, keys in parts])

    def _scan(self, queries: Tensor, wanted: int, visible: Tensor | None) -> Found:
        """List by list, all queries that visit it: the best `wanted` by the codes alone."""
        lists, offsets = self.nearest_lists(queries)
        probes = lists.shape[1]
        scores = queries.new_full((lists.numel(), wanted), -torch.inf)
        places = torch.zeros(lists.numel(), wanted, dtype=torch.int32)  # rows of `codes`
        for members, pairs in self._visits(lists):
            count = min(wanted, members.stop - members.start)
            rows = pairs // probes
            products = self._products(queries[rows], members, offsets.flatten()[pairs])
            if visible is not None:
                products.masked_fill_(self.keys[members] >= visible[rows, None], -torch.inf)
            best, at = products.topk(count, sorted=False)
            scores[pairs, :count], places[pairs, :count] = best, at.int() + members.start
        best, chosen = scores.view(len(queries), -1).topk(wanted)
        keys = self.keys[places.view(len(queries), -1).gather(1, chosen)].long()
        return best, keys.masked_fill_(best == -torch.inf, -1)

    def _visits(self, lists: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Lists that hold something as their rows of `codes`, with the visits paid to them as places in `lists`."""
        visits = torch.bincount(lists.flatten(), minlength=len(self.centroids)).tolist()
        for number, pairs in enumerate(lists.flatten().argsort().split(visits)):
            if len(pairs) and self.starts[number] < self.starts[number + 1]:
                yield from ((slice(*self.starts[number : number + 2]), some) for some in pairs.split(VISITS))

    def _products(self, queries: Tensor, members: slice, offsets: Tensor) -> Tensor:
        """offset + sum_m q_m . r^_m for every query and member of one list: query key.

        The tables stand with the queries side by side, so that one look-up adds a whole row. One matrix product makes
        them for all queries that visit the list, which takes less time than to keep a query's tables for its next list.
        """
        subspaces, codes, _ = self.codebooks.shape
        parts = queries.unflatten(-1, (subspaces, -1)).permute(1, 2, 0)  # subspace d query
        tables = (self.codebooks @ parts).flatten(0, 1)  # subspace*code query
        rows = self.codes[members].int() + codes * torch.arange(subspaces, dtype=torch.int32)
        return embedding_bag(rows, tables, mode="sum").add_(offsets).T.contiguous()

    def _rerank(self, queries: Tensor, keys: Tensor, k: int) -> Found:
        """The best k of the candidates by their exact inner products."""
        scores = torch.empty(keys.shape)
        for start in range(0, len(keys), GATHERED):
            rows = slice(start, start + GATHERED)
            scores[rows] = (self.states[keys[rows]] @ queries[rows, :, None]).squeeze(-1)
        best, chosen = scores.masked_fill_(keys < 0, -torch.inf).topk(k)
        return best, keys.gather(1, chosen)


def build(states: Tensor, settings: Settings, queries: Tensor | None = None, seed: int = 0) -> Index:
    """An index of `states` (key d_model), the same for the same seed.

    With a sample of the `queries` (query d_model) that will come, it is exact where they look. Raises ValueError where
    the sub-spaces do not divide d_model.
    """
    length, d_model = states.shape
    settings = settings.fit_to(length)
    if d_model % settings.subspaces:
        raise ValueError(f"sub-spaces must divide d_model = {d_model}, got {settings.subspaces}; try a power of two.")
    coordinates = metric(states, queries, settings.subspaces)
    points = states @ coordinates.to_state
    shuffled = torch.randperm(length, generator=torch.Generator().manual_seed(seed))
    centroids = kmeans(points[shuffled[: SAMPLE * settings.lists]][None], settings.lists, seed)[0]
    lists = assign(points[None], centroids[None])[0]
    residuals = (points - centroids[lists]).unflatten(-1, (settings.subspaces, -1)).transpose(0, 1)  # subspace key d
    codebooks = kmeans(residuals[:, shuffled[: SAMPLE * settings.codes]], settings.codes, seed)
    codes = assign(residuals, codebooks).T.to(torch.uint8)
    keys = lists.argsort(stable=True).int()
    starts = [0, *torch.bincount(lists, minlength=settings.lists).cumsum(0).tolist()]
    return Index(settings, coordinates, states, centroids, codebooks, codes[keys], keys, tuple(starts))


def recall(found: Tensor, true: Tensor) -> float:
    """recall@k: the share of the `true` k nearest (query k) that are among those `found` (query k)."""
    return (true[:, :, None] == found[:, None, :]).any(-1).float().mean().item()


def search_cost(
    length: int, keys: int, heads: int, d_model: int, k: int, settings: Settings, candidates: float | None = None
) -> Cost:
    """Cost of n h queries that meet `candidates` states each on average: w n / k' where all lists are equally long.

    Multiply-adds of a query: d^2 to change its coordinates, k' d to choose its lists, w k* d for its tables, R d to
    compare R = rerank k candidates again; look-ups: m for each candidate. Bytes: scores and places of the best R of
    each of w lists, the tables of the queries that visit a list together, scores and keys of what is found.
    """
    rows, settings = length * heads, settings.fit_to(keys)
    again = min(k * settings.rerank, keys)
    adds = d_model + settings.lists + settings.probes * settings.codes + again
    met = settings.probes * keys / settings.lists if candidates is None else candidates
    together, wanted = min(rows, QUERIES), min(k * max(settings.rerank, 1), keys)
    tables = min(rows, VISITS) * settings.subspaces * settings.codes
    kept = 2 * FLOAT * together * settings.probes * wanted + (FLOAT + INDEX) * (together * wanted + rows * min(k, keys))
    return Cost(rows * adds * d_model, kept + FLOAT * tables, round(rows * met * settings.subspaces))

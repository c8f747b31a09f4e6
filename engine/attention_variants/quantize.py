"""Product quantization (Jégou et al. 2011): states kept as a few bytes each, and searched without unpacking them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from engine.attention_variants.cost import FLOAT, INDEX, Cost
from engine.attention_variants.nearest import GATHERED, Found

QUERIES, VISITS = 4096, 512  # searched at once, and those of them that visit one list at once
SAMPLE = 32  # states the quantizers learn from, for each centroid: enough for Lloyd's algorithm, as more hardly helps
ROWS = 4096  # points compared with all centroids at once
FLOOR = 1e-3  # of the mean: the least weight of a direction, so that none is lost that some later query might take


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

    The lists visited are those with the largest q . c. All of this happens in the coordinates of `Metric`,
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


def recall(keys: Tensor, true: Tensor) -> float:
    """recall@k: the share of the `true` k nearest (query k) that are among those `keys` (query k)."""
    return (true[:, :, None] == keys[:, None, :]).any(-1).float().mean().item()


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


def kmeans(points: Tensor, clusters: int, seed: int, iterations: int = 12) -> Tensor:
    """set point d -> centroids, set cluster d (Lloyd 1982), begun at points drawn without repetition.

    A cluster that loses all its points starts again at one of those farthest from their centroids. Raises ValueError
    for more clusters than points.
    """
    sets, count, _ = points.shape
    if not 1 <= clusters <= count:
        raise ValueError(f"clusters must be in 1..{count}, the number of points, got {clusters}.")
    chance = torch.Generator().manual_seed(seed)
    first = torch.stack([torch.randperm(count, generator=chance)[:clusters] for _ in range(sets)])
    every = torch.arange(sets)[:, None]
    centroids = points[every, first]
    for _ in range(iterations):
        nearest = assign(points, centroids)
        sizes = points.new_zeros(sets, clusters).scatter_add_(1, nearest, torch.ones_like(points[..., 0]))
        sums = torch.zeros_like(centroids).index_put_((every, nearest), points, accumulate=True)
        distance = (points - centroids[every, nearest]).square().sum(-1)
        empty = sizes == 0
        far = distance.topk(clusters).indices.gather(1, (empty.cumsum(1) - 1).clamp(min=0))
        centroids = torch.where(empty[..., None], points[every, far], sums / sizes.clamp(min=1)[..., None])
    return centroids


def assign(points: Tensor, centroids: Tensor) -> Tensor:
    """The nearest centroid of each point, set point: the least ||x - c||^2, hence the largest x . c - ||c||^2 / 2."""
    half = centroids.square().sum(-1)[:, None] / 2
    parts = [torch.baddbmm(half, rows, centroids.mT, beta=-1).argmax(-1) for rows in points.split(ROWS, 1)]
    return torch.cat(parts, 1)


@dataclass(frozen=True)
class Metric:
    """Coordinates in which an error of a state counts alike in every direction.

    `states @ to_state` and `queries @ to_query` have the same inner products as before: both d_model d_model.
    """

    to_state: Tensor
    to_query: Tensor


def metric(states: Tensor, queries: Tensor | None, subspaces: int) -> Metric:
    """Learns the metric from states, key d_model, and queries, query d_model, where there are any.

    An approximation h^ of a state h costs a query the error q . (h - h^), whose mean square over queries is
    (h - h^)^T S (h - h^) with S = E[q q^T]. States are therefore stretched by S^1/2 and queries by S^-1/2: there the
    nearest centroid by distance is the one with the least error of inner products (Guo et al. 2016, "Quantization based
    fast inner product search", section 4.2). Then both are turned to the principal axes of the stretched states, and
    these dealt to the sub-spaces so that the products of their variances come out alike (Ge et al. 2013, "Optimized
    product quantization", section 3.2.2, eigenvalue allocation): no sub-space has all there is to say.
    """
    spread = torch.eye(states.shape[1]) if queries is None else queries.T @ queries / len(queries)
    weights, axes = torch.linalg.eigh(spread)
    stretch = (weights.clamp(min=0) + FLOOR * weights.mean()).sqrt()
    stretched = (states - states.mean(0)) @ (axes * stretch)
    variance, turn = torch.linalg.eigh(stretched.T @ stretched)
    turn = turn[:, allocate(variance, subspaces)]
    return Metric(axes * stretch @ turn, axes / stretch @ turn)


def allocate(variance: Tensor, subspaces: int) -> list[int]:
    """The directions, one sub-space after another: from the largest on, each goes where the product is least so far."""
    size = len(variance) // subspaces
    groups: list[list[int]] = [[] for _ in range(subspaces)]
    products = [0.0] * subspaces  # logarithms
    scaled = (variance / variance.max()).clamp(min=1e-9).log() - torch.tensor(1e-9).log()  # not below 0
    for direction in variance.argsort(descending=True).tolist():
        place = min((i for i in range(subspaces) if len(groups[i]) < size), key=products.__getitem__)
        groups[place].append(direction)
        products[place] += float(scaled[direction])
    return [direction for group in groups for direction in group]

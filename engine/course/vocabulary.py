"""Vocabularies learned one step at a time, with what decided each step: BPE, WordPiece and Unigram."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp, inf, log

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from engine.json_text import parse_json
from engine.tokenizers.kinds.wordpiece import CONTINUES, learn_entries

MERGES = 40  # most steps of BPE and WordPiece
SEEDS, LONGEST, ROUNDS = 40, 6, 2  # of Unigram: pieces to begin with, letters of one, rounds of EM before each removal
LEAST = 1e-6  # expected uses of a letter that no best cut needs: it stays, since some text may


# --- merging: BPE and WordPiece ---


@dataclass(frozen=True)
class Pair:
    """Neighbours `first`, `second`, which stand together `count` times, and each alone so often; `score` decides."""

    first: str
    second: str
    count: int
    firsts: int
    seconds: int
    score: Fraction

    @property
    def entry(self) -> str:
        return self.first + self.second.removeprefix(CONTINUES)


@dataclass(frozen=True)
class Merge:
    """Step of merging: all `pairs`, the best first, which is merged; in `total` the number of pairs and in `symbols`
    that of symbols in the text; and the `words` after the step."""

    pairs: tuple[Pair, ...]
    total: int
    symbols: int
    words: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Merges:
    """`counts` says how often each of the words stands in the text; `alphabet` is what the merges began with."""

    alphabet: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]
    counts: tuple[int, ...]
    steps: tuple[Merge, ...]

    def entries(self, steps: int) -> list[str]:
        """The vocabulary after so many steps, in the order in which it was learned."""
        return list(dict.fromkeys([*self.alphabet, *(step.pairs[0].entry for step in self.steps[:steps])]))


def by_frequency(count: int, firsts: int, seconds: int, pairs: int, symbols: int) -> Fraction:
    """BPE's score (Sennrich et al. 2016, section 3.2): how often the two stand together."""
    return Fraction(count)


def by_likelihood(count: int, firsts: int, seconds: int, pairs: int, symbols: int) -> Fraction:
    """WordPiece's score (after Schuster and Nakajima 2012): p(ab) / (p(a) p(b)), how much likelier the two stand
    together than if each stood for itself."""
    return Fraction(count, pairs) / (Fraction(firsts, symbols) * Fraction(seconds, symbols))


SCORES = {"bpe": by_frequency, "wordpiece": by_likelihood}


def split_letters(word: str, kind: str = "wordpiece") -> list[str]:
    """The symbols to begin with; to WordPiece a letter that continues a word, ##o, is another than one that begins
    it."""
    return list(word) if kind == "bpe" else [word[0], *(CONTINUES + letter for letter in word[1:])]


@lru_cache(maxsize=64)
def learn_merges(text: str, kind: str, steps: int = MERGES) -> Merges:
    """Merges the pair of the highest score within the words of `text`, at most `steps` times.

    `kind` is one of SCORES. Of equal pairs the one whose entries were known first is taken, as the library does;
    letters are known in the order of their code points.
    """
    words = Counter(text.split())
    spelt = [split_letters(word, kind) for word in words]
    counts = list(words.values())
    alphabet = sorted({symbol for word in spelt for symbol in word}, key=lambda symbol: (len(symbol) > 1, symbol))
    ids = {symbol: id for id, symbol in enumerate(alphabet)}
    before, made = tuple(map(tuple, spelt)), list[Merge]()
    while len(made) < steps and any(len(word) > 1 for word in spelt):
        pairs, total, symbols = rank_pairs(spelt, counts, kind, ids)
        ids.setdefault(pairs[0].entry, len(ids))
        spelt = [join_pair(word, pairs[0]) for word in spelt]
        made.append(Merge(tuple(pairs), total, symbols, tuple(map(tuple, spelt))))
    return Merges(tuple(alphabet), before, tuple(counts), tuple(made))


def rank_pairs(
    words: Sequence[Sequence[str]], counts: Sequence[int], kind: str, ids: Mapping[str, int]
) -> tuple[list[Pair], int, int]:
    """All neighbours within words, the highest score first; how many there are, and how many symbols."""
    single, together = Counter[str](), Counter[tuple[str, str]]()
    for word, count in zip(words, counts, strict=True):
        for symbol in word:
            single[symbol] += count
        for pair in zip(word, word[1:], strict=False):
            together[pair] += count
    total, symbols = together.total(), single.total()
    found = [
        Pair(a, b, count, single[a], single[b], SCORES[kind](count, single[a], single[b], total, symbols))
        for (a, b), count in together.items()
    ]
    return sorted(found, key=lambda pair: (-pair.score, ids[pair.first], ids[pair.second])), total, symbols


def join_pair(word: Sequence[str], pair: Pair) -> list[str]:
    """The word with every such pair as one symbol, from the left."""
    out: list[str] = []
    at = 0
    while at < len(word):
        if tuple(word[at : at + 2]) == (pair.first, pair.second):
            out.append(pair.entry)
            at += 2
        else:
            out.append(word[at])
            at += 1
    return out


@lru_cache(maxsize=64)
def bpe_of_library(text: str, steps: int) -> list[str]:
    """Entries that the `tokenizers` library learns by BPE, after the letters, in their order."""
    letters = sorted(set("".join(text.split())))
    fast = Tokenizer(models.BPE())
    fast.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(
        vocab_size=len(letters) + steps, initial_alphabet=letters, special_tokens=[], show_progress=False
    )
    fast.train_from_iterator([text], trainer)
    ids = fast.get_vocab()
    return sorted(ids, key=ids.__getitem__)[len(letters) :]


@lru_cache(maxsize=64)
def wordpiece_of_library(text: str, steps: int) -> list[str]:
    """Entries of the rule that the library's WordPiece trainer has: BPE's, on symbols with ##."""
    words = Counter(text.split())
    symbols = {symbol for word in words for symbol in [*split_letters(word), *word[1:]]}
    return learn_entries(words, [], len(symbols) + steps)[len(symbols) :]


# --- removing: Unigram ---


@dataclass(frozen=True)
class Piece:
    """`uses` is how often the text is expected to need it, `loss` by how much log L falls without it."""

    entry: str
    probability: float
    uses: float
    loss: float


@dataclass(frozen=True)
class Removal:
    """Step of pruning: the `pieces` that may be removed, the cheapest first, which is removed; in `likelihood` log L
    before; and in `probabilities` p of all that stay."""

    pieces: tuple[Piece, ...]
    likelihood: float
    probabilities: Mapping[str, float]


@dataclass(frozen=True)
class Removals:
    letters: tuple[str, ...]
    seeds: tuple[str, ...]
    steps: tuple[Removal, ...]

    def entries(self, steps: int) -> list[str]:
        gone = {step.pieces[0].entry for step in self.steps[:steps]}
        return [*self.letters, *(seed for seed in self.seeds if seed not in gone)]


@lru_cache(maxsize=32)
def learn_unigram(text: str) -> Removals:
    """Unigram (Kudo 2018, section 3.2) on the words of `text`, down to its letters.

    From pieces that stand at least twice: EM finds their probabilities, and the piece goes without which the likelihood
    falls least, one at a time where Kudo removes a share of them at once, so that each can be seen.
    """
    words = Counter(text.split())
    letters, seeds = sorted(set("".join(words))), find_seeds(words)
    p = {piece: 1 / (len(letters) + len(seeds)) for piece in [*letters, *seeds]}
    steps = []
    while len(p) > len(letters):
        for _ in range(ROUNDS):
            p = maximise(expected_uses(words, p))
        uses = expected_uses(words, p)
        likelihood = sum(count * log_likelihood(word, p) for word, count in words.items())
        pieces = [Piece(seed, p[seed], uses[seed], loss(words, p, seed)) for seed in seeds if seed in p]
        pieces.sort(key=lambda piece: (round(piece.loss, 9), -len(piece.entry), piece.entry))
        p = {entry: value for entry, value in p.items() if entry != pieces[0].entry}
        steps.append(Removal(tuple(pieces), likelihood, p))
    return Removals(tuple(letters), tuple(seeds), tuple(steps))


def find_seeds(words: Counter[str]) -> list[str]:
    """Pieces of several letters that stand at least twice; most letters times uses first."""
    counts = Counter[str]()
    for word, count in words.items():
        for start in range(len(word)):
            for end in range(start + 2, min(start + LONGEST, len(word)) + 1):
                counts[word[start:end]] += count
    found = [piece for piece, count in counts.items() if count > 1]
    return sorted(found, key=lambda piece: (-len(piece) * counts[piece], piece))[:SEEDS]


def log_sum(terms: Sequence[float]) -> float:
    """log of the sum of exp(terms)."""
    top = max(terms, default=-inf)
    return top if top == -inf else top + log(sum(exp(term - top) for term in terms))


def forward(word: str, p: Mapping[str, float], without: str = "") -> list[float]:
    """log of the summed probability of all ways to cut the first n letters, for n from 0."""
    out = [0.0]
    for end in range(1, len(word) + 1):
        cuts = ((start, word[start:end]) for start in range(max(0, end - LONGEST), end))
        out.append(log_sum([out[at] + log(p[piece]) for at, piece in cuts if piece in p and piece != without]))
    return out


def log_likelihood(word: str, p: Mapping[str, float], without: str = "") -> float:
    return forward(word, p, without)[-1]


def expected_uses(words: Counter[str], p: Mapping[str, float]) -> dict[str, float]:
    """E-step: how often each piece is used, over all ways to cut the words, weighted by their probability."""
    uses = dict.fromkeys(p, 0.0)
    for word, count in words.items():
        left = forward(word, p)
        right = [-inf] * len(word) + [0.0]
        for start in reversed(range(len(word))):
            cuts = ((end, word[start:end]) for end in range(start + 1, min(start + LONGEST, len(word)) + 1))
            right[start] = log_sum([log(p[piece]) + right[at] for at, piece in cuts if piece in p])
        for start in range(len(word)):
            for end in range(start + 1, min(start + LONGEST, len(word)) + 1):
                if (piece := word[start:end]) in p:
                    uses[piece] += count * exp(left[start] + log(p[piece]) + right[end] - left[-1])
    return uses


def maximise(uses: Mapping[str, float]) -> dict[str, float]:
    """M-step: each piece's share of all uses."""
    kept = {piece: max(count, LEAST) for piece, count in uses.items()}
    total = sum(kept.values())
    return {piece: count / total for piece, count in kept.items()}


def loss(words: Counter[str], p: Mapping[str, float], piece: str) -> float:
    """Decrease of the log-likelihood of the words without `piece`, never below 0."""
    return sum(
        count * (log_likelihood(word, p) - log_likelihood(word, p, piece))
        for word, count in words.items()
        if piece in word
    )


@lru_cache(maxsize=128)
def unigram_of_library(text: str, size: int) -> list[str]:
    """Pieces of several letters that the library's Unigram trainer, SentencePiece's, keeps among `size` entries."""
    fast = Tokenizer(models.Unigram())
    fast.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.UnigramTrainer(
        vocab_size=size + 1, special_tokens=["<unk>"], unk_token="<unk>", max_piece_length=LONGEST, show_progress=False
    )
    fast.train_from_iterator([text], trainer)
    entries = [entry for entry, _ in parse_json(fast.model.__getstate__())["vocab"]]
    return sorted(entry for entry in entries if len(entry) > 1 and entry != "<unk>")

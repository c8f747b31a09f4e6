"""probe.json: the example that a person watches while a model learns. Written by anyone, read by the run's process."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path

import torch
from torch import Tensor

from engine.data.kinds.infill import Gaps
from engine.data.kinds.repeats import Repeats
from engine.data.task import SEPARATORS
from engine.model.from_dict import build
from engine.scoring.examples import UNASKED, Examples
from engine.tokenizers import Tokenizer
from engine.training.examples.infill import MASK
from engine.training.objectives import find_objective
from engine.training.recipe.recipe import Recipe
from engine.training.run.atomic import explain_closed_folder, read_json, write_json
from engine.training.run.folder import RunFolder
from engine.training.sources.label_texts import LabelledTexts
from engine.training.sources.source import Source
from engine.training.sources.tag_texts import TaggedTexts

LONGEST = 10_000  # characters of a text
SHOWN = 24  # tokens of an example that is cut short to be looked at
GLANCE = 6  # tokens of the example that is chosen where there is a choice
UNKNOWN = ("<unk>", "[UNK]")
FILE = "probe.json"


@dataclass(frozen=True)
class Probe:
    """A `text`, alone or with the `target` that belongs to it, or the `picture` of that number among those held out."""

    text: str | None = None
    target: str | None = None
    picture: int | None = None

    def __post_init__(self) -> None:
        if (self.text is None) == (self.picture is None):
            raise ValueError("a probe must have either a text or a picture, got both or none; give one of them.")
        if self.picture is not None and self.target is not None:
            raise ValueError("a target belongs to a text, and this probe is a picture; leave the target out.")
        if self.picture is not None and self.picture < 0:
            raise ValueError(f"a picture is counted from 0, got {self.picture}.")
        for name, text in (("text", self.text), ("target", self.target)):
            if text is not None and len(text) > LONGEST:
                raise ValueError(f"the {name} of a probe must have at most {LONGEST:,} characters, got {len(text):,}.")

    @property
    def digest(self) -> str:
        """Names the files of its frames."""
        return blake2b(json.dumps(asdict(self)).encode(), digest_size=8).hexdigest()


def read_probe(folder: Path | str) -> Probe | None:
    """None where nothing is watched yet. Raises ValueError for a file that holds no probe."""
    path = RunFolder(folder).path / FILE
    try:
        data = read_json(path)
        probe: Probe | None = None if data is None else build(Probe, data)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None
    return probe


@explain_closed_folder()
def watch(folder: Path | str, probe: Probe) -> None:
    """The run looks at `probe` from its next frame on."""
    write_json(RunFolder(folder).path / FILE, asdict(probe))


def default_probe(recipe: Recipe, source: Source) -> Probe:
    """An example of what is held out, cut short where it is long and where a part of it is one as well."""
    if recipe.data.table.pictures:
        return Probe(picture=0)
    tokenizer, examples = source.tokenizer, next(source.held_out(1))
    if tokenizer is None:
        raise ValueError(f"[data.{recipe.data.kind}] has no tokenizer and is no picture; it cannot be shown.")
    if isinstance(recipe.data.table, Repeats):
        return repeat_segment(examples.ids, tokenizer)
    row, asks = choose_row(examples, unknown_ids(tokenizer)), find_objective(recipe.objective.kind)
    ids, asked = real(examples, "ids", "padding", row), examples.targets[row]
    if "target" in examples.inputs:
        target = real(examples, "target", "target_padding", row)[1:]
        return Probe(tokenizer.decode(ids.tolist(), special=False), tokenizer.decode(target.tolist(), special=False))
    if asks.head == "masked":
        return with_mask(ids, asked, tokenizer)
    if isinstance(source, TaggedTexts):
        one = source.held_out_rows(row + 1)[row]
        return Probe(one.text, " ".join(one.tags))
    if asks.fills_gaps:
        return with_gap(ids, asked, tokenizer, len(ids) if isinstance(recipe.data.table, Gaps) else SHOWN)
    if isinstance(source, LabelledTexts) and not (labelled := source.held_out_rows(row + 1)[row]).pair:
        return Probe(labelled.text, source.labels[labelled.label])  # not as its tokens spell it, which may be less
    if asked.dim() == 0:
        label = source.labels[int(asked)] if source.labels else None
        return Probe(tokenizer.decode(ids.tolist(), special=False), label)
    separator = separator_of(tokenizer)
    if separator is not None and separator in ids:
        return pair_at(ids, asked, separator, tokenizer)
    return Probe(tokenizer.decode(ids[:SHOWN].tolist(), special=False))


def choose_row(examples: Examples, unknown: Tensor) -> int:
    """The row that shows most at a glance; one without unknown tokens where there is one."""
    rows = [real(examples, "ids", "padding", row) for row in range(len(examples.ids))]
    return min(range(len(rows)), key=lambda row: (int(torch.isin(rows[row], unknown).sum()), *unlike(rows[row])))


def unknown_ids(tokenizer: Tokenizer) -> Tensor:
    """The tokens that stand for what the vocabulary lacks."""
    return torch.tensor([id for name, id in tokenizer.special_tokens.items() if name in UNKNOWN])


def unlike(ids: Tensor) -> tuple[int, int]:
    """Distance from a row of GLANCE tokens, and how many repeat."""
    return abs(len(ids) - GLANCE), len(ids) - len(ids.unique())


def repeat_segment(rows: Tensor, tokenizer: Tokenizer) -> Probe:
    """The segment of one of the rows (batch pos), twice."""
    segments = [row[: period(row)] for row in rows]
    segment = min(segments, key=unlike).tolist()
    return Probe(tokenizer.decode(2 * segment, special=False))


def period(row: Tensor) -> int:
    """After how many tokens it begins anew; its length where it does not."""
    return next(n for n in range(1, len(row) + 1) if torch.equal(row[n:], row[: len(row) - n]))


def real(examples: Examples, name: str, padding: str, row: int) -> Tensor:
    """Ids of one row without its padding, pos."""
    ids, stands = examples.inputs[name][row], examples.inputs.get(padding)
    return ids if stands is None else ids[stands[row]]


def with_mask(ids: Tensor, asked: Tensor, tokenizer: Tokenizer) -> Probe:
    """The first text of the row as it was before words were hidden, and with a token near its middle hidden alone."""
    whole = torch.where(asked[: len(ids)] == UNASKED, ids, asked[: len(ids)])
    special = set(tokenizer.special_tokens.values())
    rest = whole.tolist()[1:]
    text = rest[: next((i for i, id in enumerate(rest) if id in special), len(rest))][:SHOWN]
    mask = tokenizer.mask_id
    if mask is None:
        raise ValueError("masked words need a tokenizer with a mask token, and this one has none.")
    shown = tokenizer.decode(text, special=False)
    again = tokenizer.encode(shown)
    for at in sorted(range(len(again)), key=lambda at: abs(at - len(again) // 2)):
        start, stop = again.spans[at]
        hidden = f"{shown[:start]}{tokenizer.piece(mask)}{shown[stop:]}"
        if stop > start and tokenizer.encode(hidden).ids == (*again.ids[:at], mask, *again.ids[at + 1 :]):
            return Probe(hidden, shown)
    return Probe(shown)


def with_gap(ids: Tensor, asked: Tensor, tokenizer: Tokenizer, most: int) -> Probe:
    """The text with its gap, no more than `most` tokens around it, and what fills it. There is no space behind the gap
    where the tokenizer would read one as a word.
    """
    stop = int((asked != UNASKED).nonzero()[0])
    gap = int((ids == tokenizer.special_tokens[MASK]).nonzero()[0])
    first = max(0, min(gap - most // 2, stop - most))
    span = asked[asked != UNASKED][:-1]
    text, at = ids[first:stop][:most].tolist(), gap - first
    parts = (tokenizer.decode(part) for part in (text[:at], text[at : at + 1], text[at + 1 :]))
    written = (tokenizer.decode(text), "".join(parts))
    shown = next((one for one in written if list(tokenizer.encode(one).ids) == text), written[0])
    return Probe(shown, tokenizer.decode(span.tolist(), special=False))


def pair_at(ids: Tensor, asked: Tensor, separator: int, tokenizer: Tokenizer) -> Probe:
    """Source and target of a row that holds both; a decoder alone learns to write the one behind the other."""
    special = set(tokenizer.special_tokens.values())
    source = ids[: int((ids == separator).nonzero()[0])].tolist()
    target = [id for id in asked.tolist() if id != UNASKED and id not in special]
    return Probe(tokenizer.decode(source, special=False), tokenizer.decode(target, special=False))


def separator_of(tokenizer: Tokenizer) -> int | None:
    """Separator that stands between a source and its target where one stack reads both; None where nothing does."""
    return next((id for name, id in tokenizer.special_tokens.items() if name in SEPARATORS), None)

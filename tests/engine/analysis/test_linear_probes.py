"""Linear probes find what is linear in the stream, and their controls what is not more than a table of tokens."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine import load, run
from engine.analysis.linear_probes import (
    OF_FILE,
    LabelledCorpus,
    LabelledRows,
    Probes,
    control_labels,
    find_probes,
    fit_layers,
    known_classes,
    label_rows,
    measure_removal,
    no_probes,
    probing_of,
    read_labelled,
)
from engine.analysis.token_label import label_kinds
from engine.inputs.corpus import Corpus
from engine.tokenizers.encoding import Encoding
from tests.engine import tiny

WIDTH, COUNT = 16, 1200


def fit(stream: Tensor, label: Tensor, types: Tensor) -> Probes:
    """Probes of one made-up stream, ten rows a text."""
    number = torch.arange(COUNT)
    rows = known_classes([], ["no", "yes"], torch.stack([number // 10, number % 10, types, label], 1))
    return [*fit_layers([stream], rows, no_probes(rows, ("stream",), WIDTH))][-1]


def test_a_label_that_is_linear_is_found_and_its_control_is_not() -> None:
    direction, stream = tiny.normal(WIDTH), tiny.normal(COUNT, WIDTH, seed=1)
    unit = direction / direction.norm()
    stream = stream + (stream @ unit).sign()[:, None] * unit  # with a gap between the classes
    label = (stream @ unit > 0).long()
    found = fit(stream * 3 + 5, label, torch.arange(COUNT))  # of token types that come once
    assert float(found.accuracy) == 1 and abs(float(found.control) - 0.5) < 0.1 and found.rows == (900, 300)
    assert float(found.direction(0) @ unit.double()) > 0.95
    edited = found.project_out(0).apply(tiny.model().hooks["blocks.0.resid_pre"], stream * 3 + 5).double()
    logits = edited @ found.weight[0].T + found.bias[0]
    assert float((logits[:, 1] - logits[:, 0]).std()) < 1e-3  # nothing of it is left: one class for all
    held = torch.arange(COUNT) // 10 % 4 == 3
    assert float((logits.argmax(-1) == label)[held].double().mean()) in (found.majority, 1 - found.majority)


def test_a_label_that_is_random_by_token_type_has_no_selectivity() -> None:
    types = torch.arange(COUNT) * 7919 % (WIDTH - 2)  # so few that a plane parts them in any way
    stream = tiny.normal(WIDTH, WIDTH)[types]
    label = control_labels(types, torch.arange(COUNT) % 2, 2, seed=5)
    found = fit(stream, label, types)
    assert float(found.accuracy) == 1 and float(found.selectivity) == 0
    assert torch.equal(control_labels(types, label, 2), control_labels(types, label, 2))  # the same every time


def encoded(*pieces: str) -> Encoding:
    ends = torch.tensor([len(one) for one in pieces]).cumsum(0).tolist()
    spans = tuple((end - len(one), end) for end, one in zip(ends, pieces, strict=True))
    ids = tuple(pieces.index(one) for one in pieces)
    return Encoding("".join(pieces), ids, pieces, spans, (False,) * len(ids), (0,) * len(ids))


@pytest.mark.parametrize(
    ("kind", "pieces", "classes"),
    [
        ("name", ["Now", " O", "mar", " saw", ' "', "The", " Sun", '".', " He"], [0, 1, 1, 0, 0, 0, 1, 0, 0]),
        ("capital", ["Now", " O", "mar", " saw", ",", " X"], [1, 1, 1, 0, 0, 1]),
        ("number", ["a", " 4", "2", "b", " ²"], [0, 1, 1, 0, 1]),
        ("quoted", ['"', "Hi", ' he"', " said", ' "', "so"], [0, 1, 1, 0, 0, 0]),
        ("repeated", ["a", "b", "a", "a"], [0, 0, 1, 1]),
        ("brackets", [")", "(", "[x", "((", "]))", ")))"], [0, 1, 2, 2, 1, 0]),
    ],
)
def test_labels_of_tokens_are_those_of_the_text(kind: str, pieces: list[str], classes: list[int]) -> None:
    assert list(label_kinds()[kind].find_classes(encoded(*pieces))) == classes


def test_probes_of_a_model_are_fitted_layer_by_layer_and_its_loss_is_measured() -> None:
    stories = load("stories")
    corpus = Corpus("mine", tuple(f'The dog {n} saw Omar, and "Come here," said the dog.' for n in range(16)))
    work = probing_of(stories, "name", corpus)
    assert len(work.steps) == 8 and not len(work.results.accuracy)
    found = find_probes(stories, "name", corpus)
    assert found is find_probes(stories, "name", corpus) and len(found.accuracy) == len(found.hooks) == 5
    assert found.accuracy.min() > found.majority and found.texts == 16
    trace = run(stories.model, label_rows(stories, "name", corpus).readings[3].read)
    p = found.probabilities(trace, 2)
    pieces = trace.encoding.pieces
    assert p.shape == (len(pieces), 2) and int(p[1:, 1].argmax()) + 1 == pieces.index("·Omar")
    removal = measure_removal(stories, "name", 2, corpus)
    assert removal.names[:2] == ("probe", "control") and len(removal.kl) == 10 and removal.texts == 4
    assert removal.kl.min() > 0 and removal.loss.isfinite().all() and removal.plain > 0
    assert measure_removal(load("tales-bert"), "name", 6, corpus).loss.isnan().all()  # which predicts no next token


def test_a_file_says_the_labels_of_its_texts(tmp_path: Path) -> None:
    stories, file = load("stories"), tmp_path / "mine.csv"
    lines = [
        f"The {('cat', 'dog')[n // 2 % 2]} saw {'the ' * (n % 3)}ball.,{('c', 'd')[n // 2 % 2]}" for n in range(40)
    ]
    file.write_text("\n".join(["text,who", *lines]))
    corpus = read_labelled(file, "text", "who")
    found = find_probes(stories, OF_FILE, corpus)
    assert found.classes == ("c", "d") and found.rows == (30, 10) and float(found.accuracy[2]) == 1
    assert corpus.digest != Corpus("mine.csv", corpus.texts).digest


def test_what_cannot_be_probed_is_told_in_a_sentence() -> None:
    stories, texts = load("stories"), tuple(f"The dog saw the ball {'and ' * n}so." for n in range(8))
    many = LabelledCorpus("mine", texts * 3, tuple(map(str, range(24))))
    for checkpoint, label, corpus, why in [
        (load("digits-vit"), "name", None, "this model reads pictures"),
        (replace(stories, tokenizer=None), "name", None, "this model has no tokenizer"),
        (stories, "number", None, "in these texts all are “another token”, and none is “number”"),
        (stories, OF_FILE, Corpus("mine", texts), "need a table with a column"),
        (stories, OF_FILE, LabelledCorpus("mine", texts, ("a",) * 8), "in these texts all are “a”"),
        (stories, OF_FILE, many, "at most 20 classes, got 24"),
        (stories, "name", Corpus("mine", texts[:3]), "must have 4 texts or more, got 3"),
        (stories, "colour", None, "label must be one of quoted, capital"),
    ]:
        with pytest.raises(ValueError, match=why):
            probing_of(checkpoint, label, corpus)
    with pytest.raises(ValueError, match="with two classes, and this one has 3"):
        measure_removal(load("compiled-brackets"), "brackets", 1)


def test_rows_of_a_class_that_is_never_learned_from_are_left_out() -> None:
    rows = torch.tensor([[0, 1, 5, 0], [1, 1, 5, 2], [3, 1, 5, 1], [3, 2, 5, 2]])
    found: LabelledRows = known_classes([], ["a", "b", "c"], rows)
    assert found.classes == ("a", "c") and found.label.tolist() == [0, 1, 1] and found.held_out.sum() == 1

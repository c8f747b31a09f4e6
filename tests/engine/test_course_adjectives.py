"""A head that seems to look from a noun at its adjective: found on some sentences, measured on others."""

import torch

from engine.course.adjectives import count_looks, find_adjective_head, write_looks
from engine.data.corpora import read_corpus
from engine.runtime import library
from engine.runtime.run import run

MODEL = "everyday"


def test_sentences_of_two_parts_share_no_noun_and_no_adjective() -> None:
    chosen, measured = (read_corpus("everyday/adjectives")[part] for part in ("chosen", "measured"))
    assert all(not set(chosen[key]) & set(measured[key]) for key in chosen)
    for part, words in (("chosen", chosen), ("measured", measured)):
        looks = write_looks(part)
        assert {len({look.text for look in some}) for some in looks.values()} == {40}
        nouns = {"near": "adjectives", "noun": "nouns_before", "far": "adjectives", "second": "between"}
        for kind, key in nouns.items():
            assert {look.word for look in looks[kind]} == set(words[key])
        assert all(look.text.endswith(f" {look.word} and {other.word} {look.text.split()[-1]}")
                   for look, other in zip(looks["far"], looks["second"], strict=True))  # fmt: skip
        assert {look.word for look in looks["bare"]} == {start.split()[-1] for start in words["starts"]}


def test_a_head_is_counted_where_its_largest_weight_is_on_the_word() -> None:
    checkpoint, looks = library.checkpoint(MODEL), write_looks("measured")["near"][:3]
    counted = count_looks(checkpoint, looks)
    right = 0
    for look in looks:
        encoding = checkpoint.tokenizer.encode(look.text)
        pattern = run(checkpoint.model, encoding)["blocks.3.attn.pattern"][0, 3, -1]
        start, end = encoding.spans[int(pattern.argmax())]
        right += look.text[start:end].strip() == look.word
    assert counted.shape == (6, 6) and right > 0 and torch.isclose(counted[3, 3], torch.tensor(right / 3).double())


def test_the_head_is_chosen_on_one_part_and_measured_on_the_other() -> None:
    checkpoint = library.checkpoint(MODEL)
    found = find_adjective_head(checkpoint)
    near = count_looks(checkpoint, write_looks("chosen")["near"])
    assert near[found.layer, found.head] == near.max() == found.chosen_by
    for kind, looks in write_looks("measured").items():
        assert torch.isclose(
            count_looks(checkpoint, looks)[found.layer, found.head], torch.tensor(found.shares[kind]).double()
        )
    assert found.asked == 40

"""What is read and what is asked, token by token, and what the scores are, from their definitions."""

import ast

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from engine.model.config import MLP, Attention, Encoder, Infill, ModelConfig, Norm, Positions
from engine.model.transformer import Transformer, initialise
from engine.places import ROOT
from engine.scoring.examples import UNASKED, Examples
from engine.scoring.score import score, shares_of
from engine.tokenizers import train
from engine.training.examples import completion as completing
from engine.training.examples import infill as filling
from engine.training.examples import masked as masking
from engine.training.examples import sequence_to_sequence as translating
from engine.training.examples.classification import classification_examples
from engine.training.examples.next_pixel import next_pixels
from engine.training.examples.padding import gather_rows, rows_of
from engine.training.objectives import find_objective, objectives

CLS, SEP, MASK, PAD = 2, 3, 4, 0
MARKS = masking.Marks(CLS, SEP, MASK, PAD, torch.arange(5, 105))


def chance() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def ids(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int32)


def test_of_the_words_15_percent_are_chosen_and_shown_in_the_published_proportions() -> None:
    text = torch.randint(5, 105, (400, 100), generator=chance())
    read, targets = masking.hide(text, torch.ones_like(text, dtype=torch.bool), MARKS, chance())
    chosen = targets != UNASKED
    assert torch.equal(chosen.sum(1), torch.full((400,), 15))
    assert torch.equal(targets[chosen], text[chosen]) and torch.equal(read[~chosen], text[~chosen])
    shown, meant = read[chosen], text[chosen]  # 6000 of them, so that 3 standard deviations are 0.0155 and 0.0116
    masked, same = shown == MASK, shown == meant
    assert float(masked.float().mean()) == pytest.approx(0.8, abs=0.0155)
    assert float(same.float().mean()) == pytest.approx(0.1 + 0.1 / 100, abs=0.0118)  # a random word may be the same
    others = shown[~masked & ~same]
    assert others.min() >= 5 and len(others.unique()) > 95  # any ordinary word, and no mark
    places = chosen.float().mean(0)  # each place as often as any other: 400 x 0.15 = 60, deviation 7.1
    assert places.min() * 400 > 30 and places.max() * 400 < 90


def test_a_short_text_has_one_word_chosen_and_marks_never_are() -> None:
    pairs = [(ids(7), ids(8)), (ids(*range(10, 40)), ids(*range(40, 70)))]
    examples = masking.masked_pairs(pairs, torch.tensor([True, False]), MARKS, chance())
    assert (examples.targets != UNASKED).sum(1).tolist() == [1, 9]
    assert not set(examples.targets.unique().tolist()) & {CLS, SEP, PAD}
    assert examples.second is not None and examples.second.tolist() == [masking.FOLLOWS, masking.ANOTHER]
    assert examples.tokens == 5 + 63


def test_a_pair_is_laid_out_as_its_tokenizer_does() -> None:
    tokenizer = train("wordpiece", ["the cat sat on the mat", "a dog ran home"], 60)
    named = tokenizer.special_tokens
    marks = masking.Marks(named["[CLS]"], named["[SEP]"], named["[MASK]"], named["[PAD]"], torch.arange(5, 60))
    first, second = (ids(*tokenizer.encode(text, special=False).ids) for text in ("the cat sat", "a dog ran"))
    expected = tokenizer.encode("the cat sat", "a dog ran")
    examples = masking.masked_pairs([(first, second)], torch.tensor([True]), marks, chance())
    whole = torch.where(examples.targets == UNASKED, examples.ids, examples.targets)
    assert whole[0].tolist() == list(expected.ids)
    assert examples.inputs["segments"][0].tolist() == list(expected.segments)


def forced(sources: list[Tensor], targets: list[Tensor], marks: translating.Marks) -> Examples:
    return translating.teacher_forced(rows_of(sources), rows_of(targets), marks)


def test_the_target_is_shifted_right_behind_its_start_and_closed_by_its_end() -> None:
    marks = translating.Marks(start=1, end=2, pad=0)
    examples = forced([ids(5, 6), ids(7, 8, 9)], [ids(10, 11, 12), ids(13)], marks)
    assert examples.ids.tolist() == [[5, 6, 0], [7, 8, 9]]
    assert examples.inputs["padding"].tolist() == [[True, True, False], [True] * 3]
    assert examples.inputs["target"].tolist() == [[1, 10, 11, 12], [1, 13, 0, 0]]
    assert examples.inputs["target_padding"].tolist() == [[True] * 4, [True, True, False, False]]
    assert examples.targets.tolist() == [[10, 11, 12, 2], [13, 2, UNASKED, UNASKED]]
    assert examples.tokens == 2 + 3 + 4 + 2


def test_rows_of_a_long_row_are_those_that_begin_there_and_no_longer() -> None:
    rows = gather_rows(torch.arange(10, 20), torch.tensor([0, 7, 4]), torch.tensor([4, 3, 0]))
    assert rows.fill_padding(0).tolist() == [[10, 11, 12, 13], [17, 18, 19, 0], [0, 0, 0, 0]]
    assert rows.real.sum(1).tolist() == [4, 3, 0]
    assert gather_rows(torch.arange(3), torch.tensor([1]), torch.tensor([0])).fill_padding(0).shape == (1, 0)


def test_a_gap_is_laid_out_as_glm_does_and_only_the_span_is_asked() -> None:
    marks = filling.Marks(mask=90, start=91, end=92)
    gaps = [(ids(5, 6), ids(7, 8), ids(9)), (ids(), ids(5), ids(6, 7, 8, 9, 10))]
    examples = filling.infill_examples(gaps, marks)
    assert examples.ids.tolist() == [[5, 6, 90, 9, 91, 7, 8, 92], [90, 6, 7, 8, 9, 10, 91, 5]]
    assert examples.targets.tolist() == [[UNASKED] * 4 + [7, 8, 92, UNASKED], [UNASKED] * 6 + [5, 92]]
    assert examples.inputs["padding"].tolist() == [[True] * 7 + [False], [True] * 8]


def test_a_picture_is_read_from_its_start_and_every_pixel_is_asked() -> None:
    examples = next_pixels(torch.tensor([[3, 1, 0, 2]]), start=17)
    assert examples.ids.tolist() == [[17, 3, 1, 0, 2]]
    assert examples.targets.tolist() == [[3, 1, 0, 2, UNASKED]]


TWO_STACKS = ModelConfig(
    vocab_size=20, context=8, d_model=16, layers=1, attention=Attention(heads=2), mlp=MLP(32), norm=Norm(place="after"),
    positions=Positions("sinusoidal"), encoder=Encoder(1, Attention(heads=2, mask="full"), MLP(32), start=1),
)  # fmt: skip
PREFIX = ModelConfig(
    vocab_size=20, context=12, d_model=16, layers=2, attention=Attention(heads=2, mask="prefix"), mlp=MLP(32),
    positions=Positions("rotary", axes=2), infill=Infill(mask=17, start=18),
)  # fmt: skip


def test_padding_changes_no_prediction_and_counts_for_nothing() -> None:
    """Loss and gradients of a batch are those of its rows one by one, weighted by their tokens."""
    sources, targets = [ids(5, 6), ids(7, 8, 9, 3)], [ids(10, 11, 12), ids(13)]
    named = translating.Marks(1, 2, 0)
    gaps = [(ids(5, 6), ids(7, 8, 9), ids(10)), (ids(5), ids(6), ids(7))]
    marks = filling.Marks(17, 18, 19)
    batches = [
        (
            TWO_STACKS,
            forced(sources, targets, named),
            [forced([s], [t], named) for s, t in zip(sources, targets, strict=True)],
        ),
        (PREFIX, filling.infill_examples(gaps, marks), [filling.infill_examples([gap], marks) for gap in gaps]),
    ]
    for config, whole, alone in batches:
        model = initialise(Transformer(config), 0)
        together = score(model.forward_with_pooled(**whole.inputs), whole)
        rows = [
            score(model.forward_with_pooled(**row.inputs), row, shares_of(row.counts, whole.counts)) for row in alone
        ]
        for name in ("loss", "accuracy"):
            torch.testing.assert_close(together[name], sum(row[name] for row in rows))
        ours = torch.autograd.grad(together["loss"], list(model.parameters()))
        theirs = torch.autograd.grad(sum(row["loss"] for row in rows), list(model.parameters()))
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_the_loss_of_two_heads_is_the_sum_of_their_means_and_shares_of_a_batch_add_up_to_it() -> None:
    draw = chance()
    logits, second = torch.randn(5, 3, 7, generator=draw), torch.randn(5, 2, generator=draw)
    targets = torch.tensor([[1, UNASKED, 2], [UNASKED] * 2 + [3], [4, 5, 6], [0, UNASKED, UNASKED], [1, 1, UNASKED]])
    follows = torch.tensor([0, 1, 1, 0, 1])
    whole = Examples({"ids": torch.zeros(5, 3, dtype=torch.long)}, targets, follows)
    asked = [(logits[i, j], targets[i, j]) for i in range(5) for j in range(3) if targets[i, j] != UNASKED]
    expected = torch.stack([-row.log_softmax(0)[target] for row, target in asked]).mean()
    expected = expected + torch.stack([-second[i].log_softmax(0)[follows[i]] for i in range(5)]).mean()
    found = score((logits, second), whole)
    torch.testing.assert_close(found["loss"], expected)
    assert float(found["accuracy"]) == pytest.approx(sum(int(row.argmax()) == int(t) for row, t in asked) / len(asked))
    assert float(found["next_sentence_accuracy"]) == pytest.approx(float((second.argmax(1) == follows).float().mean()))
    parts = [
        score((logits[rank::2], second[rank::2]), part, shares_of(part.counts, whole.counts))
        for rank, part in ((rank, whole.share(rank, 2)) for rank in range(2))
    ]
    for name, value in found.items():
        torch.testing.assert_close(sum(part[name] for part in parts), value)


def test_classes_are_asked_of_a_whole_row_or_of_each_position() -> None:
    logits = torch.randn(2, 3, 4, generator=chance())
    read = torch.zeros(2, 3, dtype=torch.long)
    each = classification_examples(read, torch.tensor([[0, 1, UNASKED], [3, UNASKED, UNASKED]]))
    chosen = logits[[0, 0, 1], [0, 1, 0]]
    torch.testing.assert_close(score((logits, None), each)["loss"], cross_entropy(chosen, torch.tensor([0, 1, 3])))
    whole = classification_examples(read, torch.tensor([2, 0]))
    torch.testing.assert_close(
        score((logits[:, 0], None), whole)["loss"], cross_entropy(logits[:, 0], torch.tensor([2, 0]))
    )


def test_pictures_of_patches_count_as_one_each() -> None:
    assert classification_examples(torch.zeros(6, 1, 8, 8), torch.zeros(6, dtype=torch.long)).tokens == 6


def test_a_model_that_cannot_learn_by_an_objective_is_refused() -> None:
    with pytest.raises(ValueError, match='model.head.kind must be .masked. for objective.kind "masked"'):
        find_objective("masked").check_model(TWO_STACKS)
    with pytest.raises(ValueError, match='model.encoder must be given for objective.kind "sequence_to_sequence"'):
        find_objective("sequence_to_sequence").check_model(PREFIX)
    with pytest.raises(ValueError, match='model.encoder must be left out for objective.kind "next"'):
        find_objective("next").check_model(TWO_STACKS)
    find_objective("sequence_to_sequence").check_model(TWO_STACKS)
    find_objective("infill").check_model(PREFIX)


def test_where_each_source_ends_with_its_own_separator_what_follows_that_is_asked() -> None:
    """The same row as with one separator for all, but for which one it is."""
    sources, targets = rows_of([ids(5, 6, 7), ids(9)]), rows_of([ids(11), ids(12, 13)])
    shared = completing.completion_examples(sources, targets, completing.Marks(3, 1))
    own = rows_of([ids(5, 6, 7, 3), ids(9, 4)])
    examples = completing.completion_examples(own, targets, completing.Marks(None, 1))
    assert shared.ids.tolist() == [[5, 6, 7, 3, 11], [9, 3, 12, 13, 1]]
    assert examples.ids.tolist() == [[5, 6, 7, 3, 11], [9, 4, 12, 13, 1]]
    assert torch.equal(examples.targets, shared.targets) and examples.targets.tolist() == [
        [UNASKED, UNASKED, UNASKED, 11, 1],
        [UNASKED, 12, 13, 1, UNASKED],
    ]
    assert torch.equal(examples.inputs["padding"], shared.inputs["padding"])
    assert completing.prompt(ids(9, 4), completing.Marks(None, 1)).tolist() == [9, 4]


def test_who_adds_an_objective_adds_one_file() -> None:
    """Nothing but its own file knows one that learns from preferences by its name; lessons name recorded runs."""
    kinds = {name for name, kind in objectives().items() if kind.moves_policy}
    assert len(kinds) > 4
    for path in sorted(path for room in ("engine", "pages", "views") for path in (ROOT / room).rglob("*.py")):
        if path.parent.name != "kinds" and "lessons" not in path.parts:
            said = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
            assert not kinds & said, path

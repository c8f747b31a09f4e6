"""What a card says was measured, against the same computed one row at a time."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.checkpoints import Checkpoint, load
from engine.data.seeds import seed_for
from engine.data.sentences import cut_gaps
from engine.data.translation import Pair
from engine.data.translation.pair import Crossing
from engine.model.config import MLP, Attention, Encoder, Infill, ModelConfig, Norm, Positions
from engine.model.transformer import Transformer, initialise
from engine.runtime.run import run
from engine.tokenizers import train
from engine.training.examples.padding import pad_rows, real
from engine.training.measures.decoding import decode_continuations, decode_translations, until
from engine.training.measures.digits import draw_levels
from engine.training.measures.everyday import LONGEST, first_sentences
from engine.training.measures.infill import compare_with_decoder
from engine.training.measures.next_pixel import drawn_after
from engine.training.measures.sequence_to_sequence import Link, alignment, best, links, tokens_of_words

WORDS = ["The red cars sleep", "Les voitures rouges dorment"]
TOKENIZER = train("word", WORDS, special_tokens=("<pad>", "<s>", "</s>"))
END = TOKENIZER.special_tokens["</s>"]
TWO_STACKS = ModelConfig(
    vocab_size=TOKENIZER.vocab_size, context=12, d_model=16, layers=2, attention=Attention(heads=2), mlp=MLP(32),
    norm=Norm(place="after"), positions=Positions("sinusoidal"),
    encoder=Encoder(1, Attention(heads=2, mask="full"), MLP(32), start=TOKENIZER.special_tokens["<s>"]),
)  # fmt: skip
PREFIX = ModelConfig(
    vocab_size=20, context=40, d_model=16, layers=2, attention=Attention(heads=2, mask="prefix"), mlp=MLP(32),
    positions=Positions("rotary", axes=2), infill=Infill(mask=17, start=18),
)  # fmt: skip


def test_translating_many_at_once_is_translating_each_alone() -> None:
    model = initialise(Transformer(TWO_STACKS), 3)
    rows = [torch.tensor(row) for row in ([5, 6, 7, 8], [9], [4, 10])]
    together = decode_translations(model, pad_rows(rows, 0), real(rows), END, 8)
    for row, found in zip(rows, together, strict=True):
        target = [TWO_STACKS.encoder.start]  # type: ignore[union-attr]
        while len(target) <= 8 and target[-1] != END:
            target.append(int(model(row[None], target=torch.tensor([target]))[0, -1].argmax()))
        assert found == until(target[1:], END)
    assert len({tuple(row) for row in together}) > 1


def test_filling_many_gaps_at_once_is_filling_each_alone() -> None:
    model = initialise(Transformer(PREFIX), 1)
    prompts = [torch.tensor(row) for row in ([5, 17, 6, 18], [7, 8, 17, 9, 10, 11, 18], [17, 12, 18])]
    together = decode_continuations(model, prompts, end=19, longest=9)
    for row, found in zip(prompts, together, strict=True):
        ids = row.tolist()
        while len(ids) < len(row) + 9 and ids[-1] != 19:
            ids.append(int(model(torch.tensor([ids]))[0, -1].argmax()))
        assert found == until(ids[len(row) :], 19)
    assert len({tuple(row) for row in together}) > 1


def test_the_words_of_a_gap_cost_what_reading_them_one_by_one_does() -> None:
    texts = ["The cat sat on the mat.", "She opened the window because it was hot.", "word " * 400]
    found = compare_with_decoder(load("infill"), {"plain": texts}, 3)["plain"]
    gaps = list(cut_gaps(texts, seed_for(3, "compared")))[:2]  # the third is longer than what is read
    assert found.pop("gaps") == 2 and all(gap.before and gap.after for gap in gaps)
    for name in ("infill", "everyday"):
        model, tokenizer = load(name).model, load(name).tokenizer
        assert tokenizer is not None
        cost = 0.0
        for gap in gaps:
            text = f"{gap.before}[gMASK]{gap.after}[sop]" if name == "infill" else f"<|endoftext|>{gap.before}"
            ids = [*tokenizer.encode(text).ids]
            for id in tokenizer.encode(gap.span).ids:
                cost -= float(run(model, ids)["logits"][0, -1].log_softmax(-1)[id])
                ids.append(id)
        said = found["this model" if name == "infill" else name]
        assert said == pytest.approx(cost / sum(len(gap.span) for gap in gaps), rel=1e-4)


def test_pixels_are_drawn_from_what_the_model_expects() -> None:
    """Of a model that is sure of what follows each pixel, the pixels are those."""
    config = ModelConfig(4, 9, 8, 0, Attention(heads=2), tied=False, positions=Positions("none"))
    model = initialise(Transformer(config), 0)
    with torch.no_grad():
        model.embed.tokens.weight.zero_()
        model.embed.tokens.weight[:, :4] = torch.eye(4)
        assert model.head is not None and model.head.weight is not None
        model.head.weight.zero_()
        for pixel, follows in enumerate((1, 2, 3, 0)):
            model.head.weight[follows, pixel] = 100.0
    drawn = drawn_after(model, torch.tensor([[0, 1], [3, 3]]), 5, torch.Generator().manual_seed(0))
    assert drawn.tolist() == [[2, 3, 0, 1, 2], [0, 1, 2, 3, 0]]


PAIR = Pair(
    "The red cars sleep", "Les voitures rouges dorment", ((0, 0), (1, 2), (2, 1), (3, 3)), (Crossing(1, 2, 2, 1, None),)
)


def test_links_are_of_french_words_with_one_english_word_and_know_which_cross() -> None:
    assert list(links(PAIR)) == [Link(0, 0, False), Link(2, 1, True), Link(1, 2, True), Link(3, 3, False)]
    doubled = replace(PAIR, alignment=(*PAIR.alignment, (2, 3)))
    assert list(links(doubled)) == [Link(0, 0, False), Link(2, 1, True), Link(1, 2, True)]


def test_alignment_is_the_share_of_words_that_the_row_before_them_looks_for() -> None:
    model = initialise(Transformer(TWO_STACKS), 0)
    found = alignment(Checkpoint(model=model, tokenizer=TOKENIZER), [PAIR])
    ids = torch.tensor([TOKENIZER.encode(PAIR.english).ids])
    start = TWO_STACKS.encoder.start  # type: ignore[union-attr]
    target = torch.tensor([[start, *TOKENIZER.encode(PAIR.french).ids]])
    scores = {}
    trace = run(model, ids, target=target)
    for layer in range(2):
        for head in range(2):
            pattern = trace[f"decoder.blocks.{layer}.cross_attn.pattern"][0, head]
            rows = [int(pattern[row].argmax()) for row in range(4)]  # row 0 stands at the start and predicts "Les"
            right = [rows[french] == english for english, french in PAIR.alignment]
            scores[layer, head] = (right[1] + right[2], sum(right))
    crossing, every = max(scores.values())
    assert (found["crossing_accuracy"], found["accuracy"]) == (crossing / 2, every / 4)
    assert scores[found["layer"], found["head"]] == (crossing, every)
    assert (found["words"], found["crossing_words"]) == (4, 2)


def test_the_tokens_of_a_word_are_found_whatever_a_token_is() -> None:
    pieces = train("bpe", ["the dog the dog l'oiseau"] * 3, vocab_size=262)
    encoding = pieces.encode("the l'oiseau.", special=False)
    found = ["".join(encoding.pieces[token] for token in word) for word in tokens_of_words(encoding)]
    assert [word.strip("\u00b7 ") for word in found] == ["the", "l'oiseau", "."]
    assert [len(word) for word in tokens_of_words(TOKENIZER.encode("The red cars"))] == [1, 1, 1]


def test_the_best_head_is_the_one_that_shows_the_crossing() -> None:
    right = {(0, 0): Counter(all=9, crossing=1), (1, 2): Counter(all=8, crossing=4)}
    found = best(right, Counter(all=10, crossing=4))
    assert (found["layer"], found["head"], found["accuracy"], found["crossing_accuracy"]) == (1, 2, 0.8, 1.0)


def test_a_picture_is_drawn_in_shades_from_paper_to_ink() -> None:
    assert draw_levels(torch.tensor([[0, 16], [8, 0]], dtype=torch.uint8)) == "  @@\n==  "


@pytest.mark.parametrize(("ids", "expected"), [([3, 4, 9, 5], [3, 4]), ([3, 4], [3, 4]), ([9], [])])
def test_a_text_ends_before_its_end_token(ids: list[int], expected: list[int]) -> None:
    assert until(ids, 9) == expected


def test_the_tokenizer_cuts_as_the_alignment_counts(tmp_path: Path) -> None:
    assert [TOKENIZER.piece(id) for id in TOKENIZER.encode(PAIR.french).ids] == PAIR.french.split()


def test_of_a_text_whose_first_sentence_is_long_there_is_as_much_as_is_read() -> None:
    long = "and " * LONGEST
    assert (
        first_sentences("Short.") == "Short."
        and first_sentences(f"One. {long}") == "One."
        and first_sentences(long) == long[:LONGEST]
    )

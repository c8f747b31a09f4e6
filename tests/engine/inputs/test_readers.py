"""What a checkpoint wants to be given, and what becomes of a picture that is read pixel by pixel."""

from dataclasses import replace

import pytest
import torch
from tokenizers import Tokenizer

from engine.budget import budget
from engine.checkpoints import Checkpoint, load
from engine.inputs.processors import PalettePixels
from engine.inputs.readers import kind, own_words, read_infill, read_picture, read_text, read_translation, readable
from engine.model.config import ModelConfig, OutputHead
from engine.runtime.run import run
from engine.tokenizers import Encoding
from engine.tokenizers.kinds.char import train
from tests.engine import tiny

SIDE, LEVELS = 3, 5
CLASSES = OutputHead("sequence", 4, read="mean", bias=False)


def painter(head: OutputHead, side: int = SIDE) -> Checkpoint:
    bare: ModelConfig = tiny.config(head=OutputHead("none"))
    config = replace(bare, vocab_size=LEVELS + 1, context=SIDE**2, tied=False)
    return Checkpoint(tiny.model(replace(config, head=head)), processor=PalettePixels.grey((side, side), LEVELS))


LEVEL = torch.tensor([[0, 1, 2], [3, 4, 3], [2, 1, 0]])


@pytest.mark.parametrize(
    ("head", "wanted"),
    [(OutputHead(outputs=LEVELS), "pixels"), (CLASSES, "picture"), (OutputHead("none"), "picture")],
    ids=str,
)
def test_what_continues_a_picture_is_given_a_part_of_one_and_anything_else_the_whole(
    head: OutputHead, wanted: str
) -> None:
    assert kind(painter(head)) == wanted


def test_a_whole_picture_is_its_pixels_in_rows_without_the_start_token() -> None:
    checkpoint = painter(CLASSES)
    reading = read_picture(checkpoint, LEVEL / (LEVELS - 1))
    assert list(reading.read.ids) == LEVEL.flatten().tolist()
    assert reading.read.pieces[:4] == ("1, 1", "1, 2", "1, 3", "2, 1")
    assert reading.original is None and not reading.written
    torch.testing.assert_close(reading.picture[..., 0], LEVEL / (LEVELS - 1))
    trace = run(checkpoint.model, reading.read)
    torch.testing.assert_close(trace["head.mean"], trace["final_norm.out"].mean(1))


def test_a_picture_is_never_judged_by_a_part_of_it() -> None:
    image = LEVEL / (LEVELS - 1)
    with pytest.raises(ValueError, match="all 9 pixels, and at most 8 are drawn here; raise that with LOUPE_MAX_TOK"):
        read_picture(painter(CLASSES), image, limit=8)
    with pytest.raises(ValueError, match="reads at most 9 pixels, and by its preprocessor_config.json .* has 16; cor"):
        read_picture(painter(CLASSES, side=4), image)


def test_the_words_of_a_model_of_its_own_are_no_special_tokens_and_fit_in_what_it_reads() -> None:
    tokenizer = train(["abcdef"])
    config = replace(tiny.config(), vocab_size=tokenizer.vocab_size, context=8)
    checkpoint = Checkpoint(tiny.model(config), tokenizer)
    words = own_words(checkpoint)
    assert words and set(words) <= set("abcdef") and readable(checkpoint, words, whole=True)
    assert readable(checkpoint, "abcabcabc") and not readable(checkpoint, "abcabcabc", whole=True)


TEXT = "the cat sat on the mat and the dog ran to the red ball " * 3


@pytest.mark.parametrize("second", ["", "the dog sat", TEXT])
def test_a_text_that_is_cut_keeps_its_marks_and_a_pair_its_second_text(second: str) -> None:
    checkpoint = load("tales-bert")
    tokenizer = checkpoint.tokenizer
    assert tokenizer is not None
    reading = read_text(checkpoint, TEXT, 16, second)
    assert isinstance(reading.read, Encoding) and len(reading.read) == 16 < len(reading.whole or ())
    ends = [i for i, id in enumerate(reading.read.ids) if id == tokenizer.sep_id]
    assert ends == {"": [15], "the dog sat": [11, 15], TEXT: [7, 15]}[second]
    fast = load_fast(checkpoint)
    fast.enable_truncation(16)
    assert list(reading.read.ids) == fast.encode(*filter(None, [TEXT, second])).ids


def test_a_source_that_is_cut_keeps_its_end_mark_and_a_target_its_start() -> None:
    checkpoint = load("translate-en-fr")
    reading = read_translation(checkpoint, TEXT, TEXT, 8)
    assert isinstance(reading.read, Encoding) and reading.target is not None and reading.whole is not None
    assert len(reading.read) == len(reading.target) == 8
    assert reading.read.special[-1] == reading.whole.special[-1] and reading.target.special[0]


def load_fast(checkpoint: Checkpoint) -> Tokenizer:
    assert checkpoint.source is not None
    return Tokenizer.from_file(str(checkpoint.source / "tokenizer.json"))


def test_a_text_is_measured_before_any_of_it_is_cut_into_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    many, few = "a" * 2_000, "a"
    monkeypatch.setattr(budget, "max_characters", 1_000)
    ways = [
        ("stories", lambda one: read_text(one, many, 8)),
        ("tales-bert", lambda one: read_text(one, few, 8, many)),
        ("translate-en-fr", lambda one: read_translation(one, many, "", 8)),
        ("translate-en-fr", lambda one: read_translation(one, few, many, 8)),
        ("infill", lambda one: read_infill(one, f"{few}[gMASK]", many, 8)),
    ]
    for name, read in ways:
        checkpoint = load(name)
        asked = list[str]()
        encode = type(checkpoint.tokenizer).encode
        monkeypatch.setattr(
            type(checkpoint.tokenizer),
            "encode",
            lambda self, text, *more, encode=encode, asked=asked, **options: (
                asked.append(text) or encode(self, text, *more, **options)
            ),
        )
        with pytest.raises(ValueError, match="at most 1,000 characters, got 2,"):
            read(checkpoint)
        assert all(len(text) < 1_000 for text in asked)

"""What each task makes of texts that others have published, and that none learns what another is measured on."""

import ast
import lzma
import re
from dataclasses import replace
from pathlib import Path

import pytest

from engine.budget import budget
from engine.data import mixture
from engine.data.corpora import read_corpus
from engine.data.drawing import Part
from engine.data.instructions import AskedPair, draw_meaning
from engine.data.kinds.bilingual import Bilingual
from engine.data.kinds.infill import Gaps
from engine.data.kinds.instructions import Instructions
from engine.data.kinds.sentence_pairs import SentencePairs
from engine.data.kinds.spans import LONGEST_GAP, Spans
from engine.data.kinds.text_to_text import TRANSLATE, TextToText
from engine.data.sentences import WORD, cut_gaps, pair_following
from engine.scoring.examples import UNASKED
from engine.tokenizers import train
from engine.training import read_recipe
from engine.training.measures.infill import unread_texts
from engine.training.sources import infill, open_source, sentence_pairs

TALES, PAIRS = "corpora:tales.txt.xz", "corpora:eng-fra.tsv.xz"
PARTS: tuple[Part, Part] = ("train", "held_out")
BOOKS = [
    [f"In tale {book} of day {n} a fox met a hen. They spoke {n} times. It rained on {book}, {n}." for n in range(60)]
    for book in range(3)
]
SENTENCES = {f"Marek has {n} lamps.": (f"Marek a {n} lampes.", f"Il y a {n} lampes chez Marek.") for n in range(80)}


@pytest.fixture(autouse=True)
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tales.txt.xz").write_bytes(lzma.compress("\n\n".join("\n".join(book) for book in BOOKS).encode()))
    lines = [f"{english}\t{french}" for english, every in SENTENCES.items() for french in every]
    (tmp_path / "eng-fra.tsv").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr(budget, "corpora_folder", str(tmp_path))
    mixture.tales.cache_clear()
    mixture.pairs.cache_clear()


def days(text: str) -> set[str]:
    """The paragraphs that a text has words of."""
    return set(re.findall(r"tale \d of day \d+", text))


def test_paragraphs_follow_each_other_in_a_book_or_come_from_elsewhere_and_no_document_is_in_both_parts() -> None:
    told = {part: mixture.documents(TALES, "", 1, part, 0) for part in PARTS}
    pairs = {part: list(pair_following(told[part], 3, 0)) for part in PARTS}
    books = "\n\n".join("\n".join(book) for book in BOOKS)
    for one in pairs["train"]:
        assert re.search(r"rained on \d, \d+\.$", one.first) and one.second.startswith("In tale")  # between paragraphs
        assert (f"{one.first} {one.second}" in books.replace("\n", " ")) == one.follows
    assert 0.3 < sum(one.follows for one in pairs["train"]) / len(pairs["train"]) < 0.7
    ours, theirs = (days(" ".join(f"{one.first} {one.second}" for one in pairs[part])) for part in PARTS)
    assert ours and theirs and not ours & theirs
    assert list(pair_following(["One. Two.", "Three."], 1, 0)) == list(pair_following(["One. Two."], 1, 0))


def test_an_encoder_learns_words_and_what_follows_and_of_strange_sentences_only_words(tmp_path: Path) -> None:
    recipe = read_recipe(Path(__file__).parents[3] / "assets" / "recipes" / "tales-bert.toml")
    options = SentencePairs(0, 0, tales=TALES, sentences=PAIRS)
    tokenizer = replace(recipe.data.tokenizer, vocab_size=200)
    data = replace(recipe.data, table=options, tokenizer=tokenizer)
    source = open_source(replace(recipe, data=data), tmp_path)
    asked = [found for step in range(20) if (found := source.batch(step).second) is not None]
    assert {label for found in asked for label in found.tolist()} == {0, 1, UNASKED}
    strange = [one for one in sentence_pairs.passages(options, "held_out", 0) if one.label == sentence_pairs.UNKNOWN]
    assert all("Marek" in text and "tale" not in text for one in strange for text in one.texts)
    with pytest.raises(ValueError, match=r"data\.sentence_pairs\.documents must be at least 1"):
        SentencePairs(documents=0, sentences=PAIRS)


def test_gaps_have_one_to_ten_words_of_texts_that_no_model_of_the_same_seed_learned_from() -> None:
    options = Gaps(0, 0, tales=TALES, sentences=PAIRS)
    whole = {part: mixture.documents(TALES, PAIRS, 2, part, 0) for part in PARTS}
    for part in PARTS:
        found, beside = infill.passages(options, part, 0), [one.replace("\n", " ") for one in whole[part]]
        assert len(found) == len(list(cut_gaps(whole[part], 0))) == len(whole[part])
        for document in found:
            before, span, after = document.texts
            assert 1 <= len(WORD.findall(span)) <= 10 and any(before + span + after in one for one in beside)
            assert WORD.findall(before + after)


def test_a_gap_is_held_against_a_decoder_in_texts_that_neither_learned_from() -> None:
    found = unread_texts(Gaps(0, 0, tales=TALES, sentences=PAIRS), 0)
    assert [*found] == ["plain sentences", "tales", "sentences"]
    learned = mixture.documents(TALES, PAIRS, 1, "train", 0)
    assert not days(" ".join(found["tales"])) & days(" ".join(learned)) and days(" ".join(found["tales"]))
    seen, unseen = (set(re.findall(r"Marek has \d+", " ".join(some))) for some in (learned, found["sentences"]))
    assert unseen and not seen & unseen
    assert [*unread_texts(Gaps(0, 0, tales=TALES), 0)] == ["plain sentences", "tales"]
    assert unread_texts(Gaps(10, 10), 0) == {} == unread_texts(None, 0)


def test_spans_are_of_one_language_and_of_no_sentence_that_is_held_out_of_the_tasks() -> None:
    options = Spans(0, 0, tales=TALES, sentences=PAIRS, most=2)
    told = {part: list(options.pairs(part, 0)) for part in PARTS}
    dropped = [re.split(r" ?<extra_id_\d+>", one.target)[1:-1] for one in told["train"]]
    assert all(dropped) and max(len(one.split()) for gaps in dropped for one in gaps) in range(3, LONGEST_GAP + 1)
    counts = {part: [re.findall(r"\d+", f"{one.source} {one.target}") for one in told[part]] for part in PARTS}
    held_out = {re.findall(r"\d+", text)[0] for text, _ in mixture.translations(PAIRS, "held_out", 0)}
    for one, numbers in zip(told["train"], counts["train"], strict=True):
        if "tale" not in f"{one.source} {one.target}" and "lamp" in f"{one.source} {one.target}":
            assert not held_out & {number for number in numbers if f"_{number}>" not in one.source}
    with pytest.raises(ValueError, match=r"data\.spans\.documents must be at least 1"):
        Spans(documents=0)


def test_real_pairs_are_translated_among_the_tasks_all_translations_of_a_sentence_in_one_part() -> None:
    options = TextToText(30, 9, sentences=PAIRS)
    told = {part: list(options.pairs(part, 0)) for part in PARTS}
    real = {part: [one for one in told[part] if "Marek" in one.source] for part in PARTS}
    assert len(told["train"]) == 30 + len(real["train"]) and len(real["train"]) + len(real["held_out"]) == 160
    assert not {one.source for one in real["train"]} & {one.source for one in real["held_out"]}
    assert all(one.target in SENTENCES[one.source.removeprefix(TRANSLATE)] for part in PARTS for one in real[part])
    groups = {(options.group(one), "Marek" in one.source) for one in told["train"]}  # a card tells them apart
    assert groups >= {("translate English to French", False), ("translate English to French, published", True)}
    plain = list(TextToText(30, 9).pairs("train", 0))
    assert sorted(map(str, told["train"])) == sorted(map(str, [*plain, *real["train"]])) and told["train"][:30] != plain


def test_real_sentences_are_asked_for_in_both_languages_and_held_out_of_the_base_too() -> None:
    options = {"documents": 18, "held_out": 9, "sentences": PAIRS}
    asked = {part: [one for one in Instructions(**options).pairs(part, 0) if "Marek" in one.source] for part in PARTS}  # type: ignore[arg-type]
    assert len(asked["train"]) == 3 * 76 and len(asked["held_out"]) == 3 * 4
    given = {(one.form, one.source.rpartition(" ")[2]) for one in asked["train"] if isinstance(one, AskedPair)}
    assert len(given) == 9  # each form in each, some seldom
    assert len({Instructions(**options).group(one) for part in PARTS for one in asked[part]}) == 9  # type: ignore[arg-type]
    assert {"Marek has 7 lamps. [toFrench]", "Marek a 7 lampes. [toEnglish]"} <= {
        one.source for part in PARTS for one in asked[part]
    }
    texts = [text for text in Bilingual(**options).texts("train", 0) if "Marek" in text]  # type: ignore[arg-type]
    unseen = {re.findall(r"\d+", one.source)[0] for one in asked["held_out"]}
    assert len(texts) == 76 and not unseen & {re.findall(r"\d+", text)[0] for text in texts}


def test_names_and_nouns_that_nobody_knows_are_the_same_in_all_three_forms_and_python_reads_them() -> None:
    known = {*read_corpus("commands/commands")["numbers"]}
    options = Instructions(made_up=0.5)
    meanings = [draw_meaning(options, "train", 0, index) for index in range(300)]
    new = 0
    for english, french, code in meanings:
        ast.parse(code)
        if found := re.match(r"set (\w+) to (\d+)$", english):
            assert french == f"mets {found[1]} à {found[2]}" and code == f"{found[1]} = {found[2]}"
            new += found[1] not in known
    assert new > 1
    texts = (str(draw_meaning(Instructions(), "train", 1, index)) for index in range(3_000))
    plain = {word.lower() for text in texts for word in WORD.findall(text)}
    sentences = [[{*WORD.findall(text.lower())} - plain for text in one[:2]] for one in meanings if '("' in one.code]
    copied = [english & french for english, french in sentences if english]
    assert len(copied) > 20 and sum(map(bool, copied)) > 0.8 * len(copied)
    assert draw_meaning(Instructions(made_up=0.0), "train", 0, 5) == draw_meaning(Instructions(), "train", 0, 5)


def test_a_name_of_a_real_sentence_may_be_another_and_is_it_in_both_languages() -> None:
    options = Instructions(documents=9, made_up=1.0, sentences=PAIRS)
    told = [one for one in options.pairs("train", 0) if "lamps" in one.source and one.source.endswith("[toFrench]")]
    names = {one.source.split()[0].removeprefix('print("') for one in told if one.source[0].isupper()}
    assert "Marek" not in names and len(names) > 20
    assert all(one.source.split()[0] in one.target for one in told if one.source[0].isupper())


def test_a_tokenizer_of_bytes_and_pieces_writes_back_a_word_that_it_never_read() -> None:
    tokenizer = train("bpe", [" ".join(one) for one in map(str, SENTENCES)], 300, ("</s>", "[toCode]"))
    ids = tokenizer.encode("set zorb_q7 to 41 [toCode] zorb_q7 = 41", special=False).ids
    assert tokenizer.decode(ids, special=False) == "set zorb_q7 to 41  zorb_q7 = 41"  # all but the mark

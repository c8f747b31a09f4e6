"""What lessons, notes, the glossary and cards count in words and digits; and sums, and both languages.

stated.py says which numbers these are. Here each is counted again; test_course_numbers.py has what is measured."""

import json
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import chain, product
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
import torch
from babel.messages.pofile import read_po

from engine.analysis.switches import SWITCHES, option_label
from engine.checkpoints import Checkpoint
from engine.course import languages
from engine.course.adapting import open_lora
from engine.course.averaging import average_by_loop, scores_of, softmax_weights, triangular_weights
from engine.course.block import LINES, four_lines
from engine.course.cause import measure_heads
from engine.course.circuits import direct_effects
from engine.course.embeddings import context_similarity
from engine.course.fill_gap import ask_span, words_of
from engine.course.find_circuit import answer_key, measure_parts
from engine.course.heads import fit_difference, link_tokens, training_examples
from engine.course.in_prompt import FineTuning, fine_tune, shots
from engine.course.lookup import look_up
from engine.course.norms import NormName, normalise
from engine.course.one_step import StepOfTwo
from engine.course.policy import climb, learn_from_pairs
from engine.course.positions import POSITION_KINDS, shuffle_change
from engine.course.residual import PERIOD
from engine.course.tokens import KINDS, cut
from engine.course.vocabulary import learn_merges
from engine.inputs.readers import read_translation, tokens
from engine.model.layers.module import Linear
from engine.model.presets import NAMED
from engine.runtime import library
from pages.controls import words
from pages.controls.learn import course
from pages.controls.learn.fields import read_matrix
from pages.learn.lessons.adapting import lesson as adapting
from pages.learn.lessons.averaging import lesson as averaging
from pages.learn.lessons.batch import lesson as batch
from pages.learn.lessons.block import lesson as block
from pages.learn.lessons.cause import lesson as cause
from pages.learn.lessons.embeddings import lesson as embeddings
from pages.learn.lessons.encoder_decoder import lesson as encoder_decoder
from pages.learn.lessons.experts import lesson as experts
from pages.learn.lessons.family import lesson as family
from pages.learn.lessons.fill_gap import lesson as fill_gap
from pages.learn.lessons.find_circuit import lesson as find_circuit
from pages.learn.lessons.heads_learn import lesson as heads_learn
from pages.learn.lessons.in_prompt import lesson as in_prompt
from pages.learn.lessons.long_sequences import lesson as long_sequences
from pages.learn.lessons.masks_and_heads import lesson as masks_and_heads
from pages.learn.lessons.norms import lesson as norms
from pages.learn.lessons.picture import lesson as picture
from pages.learn.lessons.positions import lesson as positions
from pages.learn.lessons.query_key_value import lesson as query_key_value
from pages.learn.lessons.residual import lesson as residual
from pages.learn.lessons.scaling import lesson as scaling
from pages.learn.lessons.tokens import lesson as tokens_lesson
from pages.learn.lessons.vector_to_word import lesson as vector_to_word
from pages.learn.lessons.vocabulary import lesson as vocabulary
from tests.pages import stated

GLOSSARY, CHECKPOINTS = "glossary", Path(__file__).parents[2] / "assets" / "checkpoints"
FRENCH = "fr"
LANGUAGES = words.ENGLISH, FRENCH
NAMES = [*(lesson.name for lesson in course.lessons()), GLOSSARY]
# What a sentence compares, joins or tells apart: the verb itself says that there are two.
PAIRED = "answer", "corner", "entry", "factor", "neighbour", "side", "text", "token", "vector"
COMPARED = {f"2 {noun}" for noun in PAIRED}
PAPERS = {
    ("adapting", "2 reason"): "Radford et al. 2018, section 3.2",
    ("adapting", "2 time"): "a long test of test_course_true.py",
    ("one_step", "2 pass"): "Kaplan et al. 2020, section 2.1: backward costs twice what forward does",
}


@cache
def of(name: str) -> Checkpoint:
    return library.checkpoint(name)


def files(name: str) -> list[tuple[str, str]]:
    """A lesson's text and note, or the glossary, each in English and in French."""
    inside = course.LESSONS / name / "{}.md", course.LESSONS / name / "teacher.{}.md"
    paths = [words.CATALOGUE / "{}" / "glossary.md"] if name == GLOSSARY else list(inside)
    pairs = [tuple(Path(str(path).format(lang)) for lang in LANGUAGES) for path in paths]
    read = [[one.read_text(encoding="utf-8") for one in pair] for pair in pairs if pair[0].is_file()]
    return [(english, french) for english, french in read]


def points(name: str) -> int:
    """Of the list in a lesson."""
    return len(re.findall(r"^(?:- |\d\. )", files(name)[0][0], re.MULTILINE))


def linears(name: str, part: str) -> int:
    """Linear maps of a part of the first block."""
    return sum(isinstance(one, Linear) for one in getattr(of(name).model.blocks[0], part).modules())


# --- what is counted, and what a number names ---


def ways_to_average() -> list[str]:
    x = read_matrix(averaging.TENSOR)
    equal = softmax_weights(0 * scores_of(x))
    ways = [average_by_loop(x), triangular_weights(len(x)) @ x, equal @ x, softmax_weights(scores_of(x)) @ x]
    assert torch.allclose(ways[0], ways[1]) and torch.allclose(ways[0], ways[2])
    return [f"{len(ways)} way", f"{int((equal[1] > 0).sum())} row", f"{of('plane').config.d_model} number"]


def loud_heads() -> list[str]:
    found = measure_heads("everyday", of("everyday").tokenizer.encode(cause.TEXT["everyday"]).ids)
    places = found.loudest, found.needed
    return [
        f"{points('cause')} way",
        *(f"{what} {at + 1}" for one in places for what, at in zip(("block", "head"), one, strict=True)),
    ]


def thin() -> list[str]:
    adapter = next(one for one in library.adapters_for(adapting.MODEL) if one.name == "style-pirate")
    found = open_lora(of(adapting.MODEL), adapter, adapting.MATRICES[0]).thin
    return [f"{len(found)} matrix", f"{points('adapting')} way", f"{adapting.STEPS} step"]


def batch_of_texts() -> list[str]:
    lengths = [len(tokens(of("tales-bert"), text)) for text in batch.TEXTS]
    return [f"{len(lengths)} row", f"{min(lengths)} token", f"{batch.DIGITS} decimal"]


def lines_of_a_block() -> list[str]:
    lines = four_lines(block.MODEL, of(block.MODEL).tokenizer.encode(block.TEXT).ids, block.BLOCK - 1)
    (x, added), asked = (lines[at] for at in (0, 2)), LINES.index("x + attention")
    assert torch.equal(x + added, lines[asked])
    written = [line for line in LINES if line != "x" and not line.startswith("norm")]
    looking = [line for line in written if "attention" in line]
    return [f"{len(written)} row", f"{len(looking)} row"]


def same_at_first() -> list[str]:
    found = context_similarity(of("everyday"), embeddings.TEXTS, "bank").tolist()
    return [f"layer {at}" for at, one in enumerate(found) if abs(one - 1) < 1e-5]


def kinds_of_model() -> list[str]:
    names = encoder_decoder.ENCODER, encoder_decoder.DECODER, encoder_decoder.BOTH
    kinds = {hasattr(of(name).model, "encoder") or of(name).config.attention.mask for name in names}
    reading = read_translation(of(names[-1]), encoder_decoder.TEXT, "", encoder_decoder.LONGEST)
    return [f"{len(kinds)} kind", f"{len(names)} map", f"{len(names)} model", f"{len(reading.target)} row"]


def switches() -> list[str]:
    shown = [one for one in SWITCHES if one.name in family.SHOWN]
    bert, gpt = ([option_label(one.get(NAMED[name].config)) for one in shown] for name in ("bert-base", "gpt"))
    apart = [one.name for one, left, right in zip(shown, bert, gpt, strict=True) if left != right]
    assert apart == ["mask", "activation", "head"]
    of_attention = linears("everyday", "attn") - 1  # but W_O
    assert linears("everyday", "mlp") == 3  # gated
    return [f"{len(apart)} column", f"{of_attention} matrix", f"{linears('stories', 'mlp')} map"]


def gaps() -> list[str]:
    span = ask_span(fill_gap.GLM, *words_of(fill_gap.TEXT, fill_gap.FIRST, fill_gap.LAST))
    return [f"{len(fill_gap.WAYS)} family", f"{len(span.positions)} position", f"{len(span.positions)} row"]


def circuit() -> list[str]:
    encoding = of("stories").tokenizer.encode(heads_learn.STORY)
    logits = library.traces.trace("stories", encoding)["logits"]
    effects = direct_effects(of("stories"), encoding, int(logits[0, -1].argmax()))
    layer, head = divmod(int(effects.argmax()), effects.shape[1])
    first = heads_learn.read_recording()["rows"][0]
    kinds = [name for name in first if name not in ("step", "loss")]
    counted = [f"{of(heads_learn.REPEATS).config.layers} layer", f"{len(kinds)} head", f"{8 - 1} token"]
    return [*counted, f"block {layer + 1}", f"head {head + 1}", f"step {first['step']}"]


def parts_of_a_program() -> list[str]:
    text = "b d a c b d".split()
    counting = answer_key(find_circuit.COUNTS).lines[0].part
    effects = measure_parts(find_circuit.COUNTS, text, text[:-1], 0)
    assert counting in effects.list_found(effects.swapped) and counting not in effects.list_found(effects.zeroed)
    first, second = answer_key(1).lines
    assert first.head == second.head
    named = [f"block {line.block + 1}" for line in (first, second)]
    return [*named, f"head {(first.head or 0) + 1}", f"{len((first, second))} row"]


def shown_rows() -> list[str]:
    *rows, asked = in_prompt.read_rows(in_prompt.TABLES["labels"].replace("lor", "zug").replace("mip", "fen"))
    found = in_prompt.shots_of(in_prompt.MODEL, tuple(rows), *asked)
    right = next(shot.k for shot in found if shot.written == "zug")
    curves = get_type_hints(FineTuning)
    return [f"{right} row", f"{len(rows)} row", f"{len(curves)} curve", f"{len((fine_tune, shots))} way"]


def far() -> list[str]:
    layers, window = of(long_sequences.READER).config.layers, 4
    learned = json.loads((CHECKPOINTS / "translate-en-fr" / "card.json").read_text(encoding="utf-8"))["data"]["rows"]
    assert learned["joined"] > 0  # some rows are two sentences
    counted = [f"{points('long_sequences')} way", f"{layers} layer", f"{window} token", f"{512 // 128} time"]
    return [*counted, "2 sentence", f"layer {layers}", "head 1"]


def two_heads() -> list[str]:
    assert fit_difference(2).losses[-1] < 0.05
    ids = of(masks_and_heads.MODEL).tokenizer.encode(masks_and_heads.TEXT).ids
    taught = len(training_examples(list(ids)))
    read = of(masks_and_heads.MODEL).tokenizer.encode(masks_and_heads.PARTICLE).ids
    found = link_tokens(masks_and_heads.MODEL, read, len(read) - 1, 1)
    places = f"block {found.layer + 1}", f"head {found.head + 1}"
    return ["2 head", "2 matrix", f"{len(ids)} token", f"{taught} example", f"{6 // 2} number", *places]


def three_norms() -> list[str]:
    alone = normalise(read_matrix(norms.BATCH)[:1], "batch")
    block = of(norms.MODEL).model.blocks[0]
    mlp, whole = (sum(weight.numel() for weight in part.parameters()) for part in (block.mlp, block))
    zeros, thirds = int((alone == 0).sum()), round(3 * mlp / whole)
    kinds = get_args(NormName)
    return [f"{len(kinds)} norm", f"{len(kinds) + 1} row", f"{zeros} zero", f"{thirds} third"]  # and BatchNorm alone


def words_of_a_policy() -> list[str]:
    return [f"{points('policy')} step", f"{len((climb, learn_from_pairs))} way"]


def shuffled() -> list[str]:
    ids, size = of(positions.MODEL).tokenizer.encode(positions.TEXT).ids, of(positions.MODEL).config.vocab_size
    models = product(POSITION_KINDS, ("full", "causal"))
    changes = {(kind, mask): shuffle_change(kind, mask, ids, size) for kind, mask in models}
    assert [one for one, change in changes.items() if change < positions.NOTICED] == [("none", "full")]
    return [f"{len(changes)} model", f"{points('positions')} way", "2 layer", "2 time"]


def best_keys() -> list[str]:
    keys, values = read_matrix(query_key_value.KEYS, 2), read_matrix(query_key_value.VALUES)
    query = torch.tensor(query_key_value.ASKED)
    other = torch.tensor([[1.0, 1], [3, 3], [-2, -1]])
    nearest, most = int((other - query).norm(dim=-1).argmin()), int(look_up(query, other, values).weights.argmax())
    least = int(look_up(query, keys, values).weights.argmin())
    named = [f"key {at + 1}" for at in (nearest, most, least)]
    maps = linears("everyday", "attn") - 1
    named.append(f"{of('plane').config.d_model} number")
    return [*named, f"{len(keys)} key", f"{len(keys)} score", f"{maps} matrix", f"{4 * 0.75:g} quarter"]


def stacks() -> list[str]:
    kinds = [name for name in residual.read_recording() if name in ("with", "without")]
    trace = library.traces.trace("everyday", of("everyday").tokenizer.encode("The little girl"))
    sums = [name for name in trace if name in ("blocks.0.resid_mid", "blocks.0.resid_post")]
    least, most = 1, residual.BLOCKS  # without_residuals of test_course_numbers.py has their gradients
    named = [f"block {least}", f"block {most}", f"{most} block"]
    return [f"{PERIOD} token", f"{len(kinds)} stack", f"{len(sums)} addition", *named]


def eight_keys() -> list[str]:
    plain, divided = scaling.gradients_by_products(256, 0)
    times = f"{divided / plain // 10 * 10:.0f} time"
    return [f"{scaling.KEYS} key", f"{len(scaling.RUNS)} training", f"{len(scaling.RUNS)} curve", times, "seed 0"]


def pieces() -> list[str]:
    joins = len(tokens_lesson.TEXT.encode()) - len(cut("bpe", tokens_lesson.TEXT))
    return [f"{len(KINDS)} row", f"{joins} join"]


def merged() -> list[str]:
    pairs = [step.pairs[0] for step in learn_merges(vocabulary.TEXT, "bpe").steps[:4]]
    assert pairs[2].entry == "thin" and pairs[3].entry == "the"
    low = learn_merges("low low low lower", "bpe").steps[0].pairs[0].count
    return [f"{low} time", f"{pairs[1].count} time", f"{pairs[2].count} time", f"step {len(pairs)}"]


COUNTED: dict[str, Callable[[], list[str]]] = {
    "adapting": thin,
    "averaging": ways_to_average,
    "batch": batch_of_texts,
    "cause": loud_heads,
    "block": lines_of_a_block,
    "embeddings": same_at_first,
    "encoder_decoder": kinds_of_model,
    "experts": lambda: [f"{len({0.0, experts.WEIGHT})} training"],
    "family": switches,
    "fill_gap": gaps,
    "find_circuit": parts_of_a_program,
    "glossary": lambda: [f"{linears('stories', 'mlp')} map", "2 matrix"],
    "heads_learn": circuit,
    "in_prompt": shown_rows,
    "languages": lambda: [f"{len(languages.KINDS)} way"],
    "long_sequences": far,
    "masks_and_heads": two_heads,
    "norms": three_norms,
    "one_step": lambda: [f"{len(get_args(get_type_hints(StepOfTwo)['weights']))} weight"],
    "picture": lambda: [f"{len((picture.READER, picture.WRITER))} way", f"token {picture.ASKED}"],
    "policy": words_of_a_policy,
    "positions": shuffled,
    "query_key_value": best_keys,
    "residual": stacks,
    "scaling": eight_keys,
    "tokens": pieces,
    "vector_to_word": lambda: [
        f"{len(vector_to_word.WORDS)} word",
        "seed 0",
        "seed 1",
        "seed 2",
    ],  # that the note gives
    "vocabulary": merged,
}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_counted_in_a_text_is_as_many(name: str) -> None:
    """But for what an exercise on paper gives."""
    texts = [one for english, _french in files(name) for one in english.split("\n\n")]
    given = {claim for one in texts if one.startswith("On paper:") for claim in stated.counts(one, words.ENGLISH)}
    said = {claim for one in texts for claim in stated.counts(one, words.ENGLISH)}
    known = {*(COUNTED[name]() if name in COUNTED else ()), *(claim for lesson, claim in PAPERS if lesson == name)}
    assert not said - given - known - COMPARED
    assert not known - said  # nothing is counted that is not said


@pytest.mark.parametrize("name", NAMES)
def test_english_and_french_state_the_same_numbers(name: str) -> None:
    for english, french in files(name):
        for read in (stated.counts, stated.numbers, stated.bare):
            assert Counter(read(english, words.ENGLISH)) == Counter(read(french, FRENCH)), read


def test_messages_state_the_same_numbers_in_french() -> None:
    with (words.CATALOGUE / FRENCH / "messages.po").open("rb") as file:
        messages = [one for one in read_po(file) if one.id]
    for one in messages:
        ids, said = ((form,) if isinstance(form, str) else form for form in (one.id, one.string))
        for english, french in zip(ids, said, strict=True):
            for read in (stated.counts, stated.numbers, stated.bare):
                assert Counter(read(english, words.ENGLISH)) == Counter(read(french, FRENCH)), english


def test_french_prose_writes_decimals_with_a_comma() -> None:
    for _english, french in chain(*map(files, NAMES)):
        prose = stated.ASIDE.sub("", french.split("+++\n")[-1])
        assert not re.findall(r".*\d\.\d.*", prose)


def test_every_sum_comes_to_what_is_said() -> None:
    """Rounded as it is written, or one off in the last place where what it is made of was rounded there too."""
    texts = [(lang, text) for name in NAMES for pair in files(name) for lang, text in zip(LANGUAGES, pair, strict=True)]
    said = [one for lang, text in texts for one in stated.sums(text, lang)]
    for one in said:
        term, result = one.split(" = ")
        places = len(result.partition(".")[2])
        rounded = {len(found) for found in re.findall(r"\.(\d+)", term)} == {places}
        room = (1 if rounded else 0.5) * 10**-places + 1e-9 if places else 0
        assert abs(stated.value(term) - stated.value(result)) <= room, one
    assert len(said) > 20


def test_the_steps_of_ten_minutes_take_ten_minutes() -> None:
    for name in NAMES[:-1]:
        for note in chain(*files(name)[1:]):
            assert sum(int(minutes) for minutes in re.findall(r"^\d\. \((\d) min\)", note, re.MULTILINE)) == 10


@pytest.mark.parametrize(
    ("text", "lang", "counted", "bare"),
    [
        ("Two thin matrices and 7 others. Rows 1 and 3.", "en", ["2 matrix", "row 1", "row 3"], {"7"}),
        ("It sums to 1, and one row is 0; layer 0; 1 row, head 4.", "en", ["1 row", "layer 0", "head 4"], set()),
        ("2. (3 min) k = 5 (Vaswani et al. 2017, section 3): 2 + 3 = 5 of [2, 3], 6.", "en", [], {"6"}),
        ("Both heads look two times at 1,024 tokens.", "en", ["2 head", "2 time"], set()),
        ("Les deux premières lignes, 0,5 et 1 024 jetons. Ce n’est pas 2, étape 4.", "fr", ["2 row", "step 4"], {"2"}),
    ],
)
def test_a_number_is_told_apart_by_what_stands_beside_it(
    text: str, lang: str, counted: list[str], bare: set[str]
) -> None:
    assert sorted(stated.counts(text, lang)) == sorted(counted)
    assert stated.bare(text, lang) == bare


@pytest.mark.parametrize("card", sorted(CHECKPOINTS.glob("*/card.json")), ids=lambda path: path.parent.name)
def test_what_a_card_counts_is_as_many(card: Path) -> None:
    about = json.loads(card.read_text(encoding="utf-8"))
    config = of(card.parent.name).config
    known = {f"{config.layers} layer", f"{picture.SIDE} pixel", f"{len(about.get('program', ()))} row"}
    tasks = {task.partition(",")[0] for task in about.get("measured", {}).get("by_task", ())}
    tokenizer = of(card.parent.name).tokenizer
    marks = [name for name in tokenizer.special_tokens if name.startswith("[to")] if tokenizer else []
    known.add(f"{len(tasks or marks)} task")
    assert not set(stated.counts(about["about"], words.ENGLISH)) - known - COMPARED

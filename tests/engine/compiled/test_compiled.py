"""Compiled models equal their programs on every text, and their answer keys say what the weights do."""

from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest
import torch

from engine.checkpoints import load
from engine.checkpoints.locate import ANSWER_KEY
from engine.compiled import CompiledCheckpoint, Program, compile_program, find_answer_key, read_answer_key
from engine.compiled.program import START, START_TOKEN, TOKENS, Aggregate, Map, Select, Width, is_any, is_same
from engine.compiled.programs import compiled_programs
from engine.places import CHECKPOINTS
from scripts.compiled import compile_shipped
from tests.engine import tiny  # noqa: F401 - one thread
from tests.shipped import COMPILED

TEXTS = {"brackets": 8190, "induction": 21844}  # the others have 5460
each_program = pytest.mark.parametrize("program", compiled_programs().values(), ids=lambda program: program.name)


def measure_margin(checkpoint: CompiledCheckpoint, program: Program, texts: list[tuple[str, ...]]) -> float:
    """The right token's logit less the highest other, at least."""
    ids, least = {piece: id for id, piece in enumerate(checkpoint.tokenizer.pieces)}, float("inf")
    for _, group in groupby(texts, key=len):
        together = [*group]
        read = torch.tensor([[ids[token] for token in (START_TOKEN, *text)] for text in together])
        right = torch.tensor([[ids[token] for token in program.answer(text)] for text in together])[..., None]
        logits = checkpoint.model(read)[:, 1:]
        ahead = logits.gather(2, right)[..., 0] - logits.scatter(2, right, float("-inf")).amax(2)
        least = min(least, ahead[:, program.read_from :].min().item())
    return least


@each_program
def test_a_model_equals_its_program_on_every_text(program: Program) -> None:
    texts = [*program.list_texts()]
    assert len(set(texts)) == TEXTS.get(program.name, 5460)
    assert measure_margin(compile_program(program), program, texts) >= program.margin


@each_program
def test_the_key_says_what_the_weights_do(program: Program) -> None:
    """Nothing else is read, written or used; and without any of what a line reads, some text is answered wrongly."""
    checkpoint = compile_program(program)
    key, weights = checkpoint.key, dict(checkpoint.model.named_parameters())
    spans = {variable.name: variable.span for variable in key.variables}
    texts = [*program.list_texts()][::7]
    left = {name: weight.clone() for name, weight in weights.items() if name.startswith("blocks")}
    d_head = checkpoint.config.d_head
    for line in key.lines:
        rows = slice(*line.neurons) if line.head is None else slice(line.head * d_head, (line.head + 1) * d_head)
        within = f"blocks.{line.block}." + ("mlp" if line.head is None else "attn")
        left[f"{within}.out.weight"][spans[line.writes], rows] = 0
        for reader in ("pre",) if line.head is None else ("q", "k", "v"):
            left[f"{within}.{reader}.bias"][rows] = 0
        for reader, variable in line.reads:
            name = f"{within}.{'pre' if reader == 'MLP' else reader}.weight"
            place = rows, spans[variable]
            left[name][place] = 0
            before = weights[name][place].clone()
            assert before.any()
            weights[name][place] = 0
            assert variable == START or measure_margin(checkpoint, program, texts) < 0, (line.text, reader)
            weights[name][place] = before
    assert not any(weight.any() for weight in left.values())
    assert measure_margin(checkpoint, program, texts) >= program.margin
    assert len(key.idle_nodes()) >= checkpoint.config.layers and not key.idle_nodes() & key.nodes()


def test_nodes_and_edges_of_induction() -> None:
    key, embedding = compile_program(compiled_programs()["induction"]).key, ("embedding", None, None)
    first, second = ("head", 0, 0), ("head", 1, 0)
    assert key.nodes() == {first, second}
    assert key.idle_nodes() == {("head", 0, 1), ("head", 1, 1), ("MLP", 0, None), ("MLP", 1, None)}
    of_embedding = {("q", 0, 0), ("k", 0, 0), ("v", 0, 0), ("q", 1, 0), ("v", 1, 0)}
    expected = {(embedding, reader) for reader in of_embedding} | {(first, ("k", 1, 0))}
    assert key.edges() == expected | {(second, ("output", None, None))}
    assert key.edges(with_start=True) - key.edges() == {(embedding, ("k", 1, 0))}
    assert key.lines[1].text == "follower = aggregate(select(previous, tokens, is_same), tokens)"


@each_program
def test_a_saved_model_opens_as_it_was(program: Program, tmp_path: Path) -> None:
    made = compile_program(program)
    made.save(tmp_path / "model")
    opened = load(tmp_path / "model")
    numbers = [made.tokenizer.pieces.index(token) for token in (START_TOKEN, *program.vocabulary)]
    text = made.tokenizer.decode(numbers, special=False)
    assert opened.family == "loupe" and opened.tokenizer.ids(text) == made.tokenizer.ids(text) == numbers
    assert torch.equal(opened.model(torch.tensor([numbers])), made.model(torch.tensor([numbers])))
    assert read_answer_key(tmp_path / "model") == made.key


def is_b(key: str, query: str) -> bool:
    return key == "b"


def test_the_start_token_of_an_encoder_selects_nothing() -> None:
    """It would be counted twice where it had found what the others find; and a map may read a variable twice."""
    steps = (
        Aggregate("found", Select(TOKENS, TOKENS, is_b), TOKENS),
        Width("count", Select("found", "found", is_same)),
        Map("digit", ("count",), int),
        Map("maximum", ("digit", "digit"), max),
    )
    program = replace(compiled_programs()["histogram"], steps=steps, predicts="maximum")
    program = replace(program, answer=lambda text: [str(len(text) * ("b" in text))] * len(text))
    checkpoint = compile_program(program, spare_heads=0)
    assert measure_margin(checkpoint, program, [*program.list_texts()]) >= program.margin
    assert checkpoint.key.idle_nodes() == {("MLP", 0, None), ("head", 2, 0)}


def test_a_wrong_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_answer_key(tmp_path)
    compile_program(compiled_programs()["induction"]).key.save(tmp_path)
    whole = (tmp_path / ANSWER_KEY).read_text()
    for old, new in {"{": "[", '"k"': '"x"', '"previous"': '"y"', '"block": 1': '"block": 2'}.items():
        (tmp_path / ANSWER_KEY).write_text(whole.replace(old, new, 1))
        with pytest.raises(ValueError, match="is no answer key"):
            read_answer_key(tmp_path)


@pytest.mark.parametrize(
    ("step", "predicts", "words"),
    [
        (Map("x", ("gone",), str), "x", "no line before it makes"),
        (Map(TOKENS, (TOKENS,), str), TOKENS, "a second time"),
        (Width("x", Select(TOKENS, TOKENS, is_any)), "x", "not as a number"),
        (Map("x", (TOKENS,), repr), "x", "does not read as one word"),
    ],
)
def test_a_wrong_program_is_refused(step: Map | Width, predicts: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        compile_program(replace(compiled_programs()["histogram"], steps=(step,), predicts=predicts))


def test_what_is_shipped_is_what_the_programs_compile_to(tmp_path: Path) -> None:
    shipped = [*compile_shipped()]
    assert sorted(one.name for one in shipped) == COMPILED
    for one in shipped:
        one.save(tmp_path / one.name)
        made = {file.name: file.read_bytes() for file in (tmp_path / one.name).iterdir()}
        assert {file.name: file.read_bytes() for file in (CHECKPOINTS / one.name).iterdir()} == made
        assert find_answer_key(load(one.name)) == one.key


def test_a_trained_model_has_no_key_and_that_of_another_model_is_none(tmp_path: Path) -> None:
    assert find_answer_key(load("induction")) is None
    one, other = (compile_program(compiled_programs()[name]) for name in ("induction", "sorting"))
    assert find_answer_key(one) is None  # came from no file
    one.save(tmp_path)
    other.key.save(tmp_path)
    with pytest.raises(ValueError, match=r"answer_key.json is the key of another model\.$"):
        find_answer_key(load(tmp_path))

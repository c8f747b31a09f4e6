import pytest

from engine import beam, generate, load
from engine.cli.main import main

PROMPT = "Once upon a time"


def test_generate_prints_the_text_and_what_ended_it(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["--temperature", "0.9", "--top-k", "30", "--top-p", "0.95", "--min-p", "0.01", "--seed", "3"]
    settings += ["--typical-p", "0.9", "--repetition-penalty", "1.1", "--max-tokens", "7"]
    assert main(["generate", "stories", PROMPT, *settings]) == 0
    said = capsys.readouterr()
    drawn = {"temperature": 0.9, "top_k": 30, "top_p": 0.95, "min_p": 0.01, "seed": 3, "typical_p": 0.9}
    (*_, last) = generate(load("stories"), PROMPT, 7, repetition_penalty=1.1, **drawn)
    assert said.out == f"{last.text}\n"
    assert said.err == "Reached the 7-token limit.\n"


def test_generate_ends_at_a_stop_string(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "stories", PROMPT, "--greedy", "--stop", "xyz", "--stop", "there was"]) == 0
    said = capsys.readouterr()
    assert said.out.endswith("there was\n")
    assert said.err == "The stop string 'there was' ended it.\n"


def test_generate_prints_what_beams_find(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--beams", "3", "--n-best", "2", "--max-tokens", "5", "--length-penalty", "0.5"]
    assert main(["generate", "stories", PROMPT, *asked]) == 0
    said = capsys.readouterr()
    found = beam(load("stories"), PROMPT, 3, 5, n_best=2, length_penalty=0.5).hypotheses
    assert said.out == "".join(f"{one.text}\n" for one in found)
    assert [line.split(",")[0] for line in said.err.splitlines()] == [f"score {one.score:.4f}" for one in found]


def test_generate_reads_ids_where_there_is_no_tokenizer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "digits-imagegpt", "0 0 3"]) == 0
    said = capsys.readouterr()
    assert len(said.out.split()) == 64
    assert said.out.startswith("0 0 3 ")
    assert said.err == "The picture is complete, with all its 64 pixels.\n"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["stories", PROMPT, "--n-best", "2"], "--n-best is for beams; name --beams or leave it out."),
        (["stories", PROMPT, "--beams", "2", "--top-k", "2"], "--top-k has no part in a search with beams"),
        (["stories", PROMPT, "--beams", "2", "--greedy"], "--greedy and --beams are two ways to write"),
        (["digits-imagegpt", "a 1"], "must be given ids such as 3 1 4, got 'a 1'"),
        (["stories", PROMPT, "--min-p", "2"], "min-p must lie in 0..1, got 2.0"),
    ],
)
def test_what_cannot_be_generated_is_said(asked: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", *asked]) == 1
    assert message in capsys.readouterr().err

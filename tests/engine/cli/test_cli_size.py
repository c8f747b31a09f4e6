import pytest

from engine.cli.main import main


def test_size_prints_every_count_with_its_formula(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["size", "bert-base", "--batch", "1", "--length", "512"]) == 0
    said = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert "tokens, W_E V·d 30,522·768 23,440,896" in lines
    assert lines.count("all 109,482,240") == 2  # by part, and from the estimate
    assert "estimate 11·L·d² + V·d 11·12·768² + 30,522·768 101,297,664" in lines
    assert "L layers = 12" in lines
    assert "KV cache" not in said


def test_size_opens_shipped_models_and_folders_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["size", "stories", "--length", "64"]) == 0
    assert "KV cache, bytes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bert-base", "--length", "513"], "this model reads at most 512 tokens, got 513."),
        (["vit-b-16", "--length", "5"], "this model reads exactly 197 tokens, got 5."),
        (["gpt2", "--batch", "0"], "batch must be at least 1, got 0."),
        (["t5-small", "--target", "600"], "this model writes at most 512 tokens, got 600."),
        (["gpt2", "--bytes", "3"], "a number has 1, 2, 4 or 8 bytes, got 3."),
    ],
)
def test_what_cannot_be_is_one_line_and_status_1(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["size", *arguments]) == 1
    assert capsys.readouterr().err == f"loupe: {said}\n"

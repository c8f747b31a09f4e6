"""Sweeps over files of pairs: means, intervals, the command, and what cannot be swept."""

from pathlib import Path

import pytest
import torch

from engine import load
from engine.analysis.interventions.pair_set import COLUMNS, mean_of, open_pair, read_pairs, sweep_pairs
from engine.cli.main import main
from engine.data.table import read_table
from tests.engine import tiny  # noqa: F401 - one thread

PAIRS = """clean,corrupted,answer,wrong
Max gave the red ball to Anna. Anna gave the ball to,Max gave the red ball to Tom. Anna gave the ball to,Anna,Tom
Max gave the red ball to Sara. Sara gave the ball to,Max gave the red ball to Tom. Sara gave the ball to,Sara,Tom
same,same,Anna,Tom
Ben gave the big red hat to Anna. Anna gave the hat to,Ben gave the hat to Lily. Anna gave the hat to,Anna,Lily
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    return path


def test_the_command_prints_means_and_writes_each_pair(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("x.parquet", "x.csv"):
        out = file.with_name(name)
        assert main(["sweep", "stories", str(file), "--out", str(out)]) == 0
        said = capsys.readouterr()
        lines = [line.split("\t") for line in said.out.strip().split("\n")]
        assert lines[0] == ["layer", "head", "mean", "low", "high"] and len(lines) == 17
        assert "row 3 is left out: Both runs read the same" in said.err and "3 of 4 pairs" in said.err
        table = read_table(out)
        assert table.columns == ("pair", "layer", "head", "effect", "moved", *COLUMNS) and table.count == 3 * 16
        assert read_pairs(out) == [read_pairs(file)[row] for row in (0, 1, 3)]
    checkpoint, pairs = load("stories"), read_pairs(file)
    alone = [open_pair(checkpoint, pairs[row]).patch("z", ("head",)).effect for row in (0, 1, 3)]
    assert [float(one) for one in table.texts("effect")] == pytest.approx(
        torch.stack(alone).flatten().tolist(), abs=1e-5
    )
    assert (
        float(lines[16][2]) == pytest.approx(float(torch.stack(alone).mean(0)[3, 3]), abs=1e-4)
        and float(lines[16][3]) > 0.9
    )


def test_an_interval_holds_the_mean_as_often_as_it_says() -> None:
    generator, hits = torch.Generator().manual_seed(0), 0
    for seed in range(200):
        found = mean_of(list(torch.randn(30, 1, generator=generator)), seed)
        hits += int(found.low < 0) and int(found.high > 0)
    assert 175 <= hits <= 199
    one = mean_of([torch.ones(2)])
    assert one.mean.tolist() == [1, 1] and one.low.isnan().all()


def test_what_cannot_be_swept_is_told_in_a_sentence(file: Path) -> None:
    checkpoint, pairs = load("stories"), read_pairs(file)
    with pytest.raises(ValueError, match="of texts of one length, got 14 tokens and, in row 4"):
        list(sweep_pairs(checkpoint, pairs, "stream", ("pos",)))
    with pytest.raises(ValueError, match="no pair could be swept"):
        mean_of([])
    with pytest.raises(ValueError, match="an answer must have a token"):
        open_pair(checkpoint, pairs[0].__class__("a", "b", "  "))
    with pytest.raises(ValueError, match="model that reads one text"):
        open_pair(load("digits-vit"), pairs[0])
    file.write_text("clean,other\na,b\n")
    with pytest.raises(ValueError, match="it lacks corrupted, answer and has clean, other"):
        read_pairs(file)
    assert main(["sweep", "stories", str(file), "--out", "x.txt"]) == 1

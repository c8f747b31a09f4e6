"""Sweeps by a recipe and the files that they write: what is read again is what was found, or a sentence."""

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import torch
from pyarrow import parquet

from engine import load
from engine.analysis.interventions.pair_set import open_pair, read_pairs
from engine.analysis.interventions.sweep_file import KEY, read_sweep
from engine.analysis.survey_file import digest_weights
from engine.budget import budget
from engine.cli.main import main
from tests.engine import tiny  # noqa: F401 - one thread

PAIRS = """clean,corrupted,answer
Max gave the red ball to Anna. Anna gave the ball to,Max gave the red ball to Tom. Anna gave the ball to,Anna
same,same,Anna
Max gave the red ball to Sara. Sara gave the ball to,Max gave the red ball to Tom. Sara gave the ball to,Sara
"""
RECIPE = """model = "stories"
pairs = "pairs.csv"
site = "q"
metric = "probability"
out = "found.parquet"
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    (tmp_path / "pairs.csv").write_text(PAIRS)
    (tmp_path / "sweep.toml").write_text(RECIPE)
    return tmp_path / "sweep.toml"


def test_a_recipe_writes_a_file_that_holds_what_was_found_of_which_weights(recipe: Path) -> None:
    assert main(["analyse", str(recipe)]) == 0
    pairs, checkpoint = read_pairs(recipe.with_name("pairs.csv")), load("stories")
    found = read_sweep(recipe.with_name("found.parquet"))
    assert found.pairs == pairs and [*found.effects] == [0, 2] and "Both runs read the same" in found.left_out[1]
    assert found.header is not None and found.header.arguments == ("q", ("head",), "probability", "restore")
    assert (found.header.model, found.header.weights) == ("stories", digest_weights(checkpoint))
    for row, effect in found.effects.items():
        assert torch.equal(effect, open_pair(checkpoint, pairs[row], "probability").patch("q", ("head",)).effect)
    other = str(recipe.with_name("other.csv"))
    assert main(["sweep", str(recipe), "--site", "stream", "--by", "pos", "--out", other]) == 0
    assert (alone := read_sweep(other)).header is None and alone.pairs == [pairs[0], pairs[2]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model = 1", "line 1: model must be a text, got 1"),
        ('model = "stories"\nof = "x"', "line 2: of is not a known key; expected one of site, by, metric, direction"),
        ('model = "stories"', "a sweep needs pairs; name"),
        (f'{RECIPE}by = ["row"]', r"by\[0\] must be one of head, pos, got 'row'"),
        (RECIPE.replace('"q"', '"x"'), "line 3: site must be one of stream, attention"),
        (RECIPE.replace("found.parquet", "found.txt"), "line 5: out must end with .parquet or .csv, got 'found.txt'"),
        ("model =", "this is not TOML"),
    ],
)
def test_a_wrong_recipe_is_told_in_a_sentence(
    recipe: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe.write_text(text)
    assert main(["sweep", str(recipe)]) == 1
    assert re.search(said, err := capsys.readouterr().err) and err.count("\n") == 1


def test_options_that_do_not_belong_together_are_refused(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for given, said in (
        (["analyse", "stories"], "must be given a text"),
        (["analyse", "stories", "a", "--site", "z"], "without --site"),
        (["analyse", str(recipe), "--of", "heads"], "without --of"),
        (["sweep", "stories"], "needs pairs"),
        (["sweep", str(recipe), "--by", "pos", "head", "--site", "MLP"], "not counted by pos and head"),
        (["sweep", str(recipe.with_name("none.toml"))], "there is none"),
    ):
        assert main(given) == 1
        assert said in capsys.readouterr().err


def change(table: pyarrow.Table, name: str, values: Any) -> pyarrow.Table:
    return table.set_column(table.schema.get_field_index(name), name, pyarrow.array(values))


def test_a_damaged_file_is_told_in_a_sentence(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main(["sweep", str(recipe)])
    file = recipe.with_name("found.parquet")
    table, raw = parquet.read_table(file), file.read_bytes()
    header, count = json.loads(table.schema.metadata[KEY]), table.num_rows

    def says(made: pyarrow.Table) -> str:
        parquet.write_table(made, file)
        with pytest.raises(ValueError, match=r"^[^\n]*\.$") as caught:
            read_sweep(file)
        return str(caught.value)

    def with_header(said: bytes) -> pyarrow.Table:
        return table.replace_schema_metadata({KEY: said})

    for said in (b"{", b"[]", b"\xff", b"[" * 99_999, json.dumps({**header, "version": 2}).encode()):
        assert "found.parquet must hold what `sweep` wrote" in says(with_header(said))
    assert "site must be one of" in says(with_header(json.dumps({**header, "site": "x"}).encode()))
    assert "lacks the columns effect" in says(table.drop_columns(["effect"]))
    assert "lacks the columns clean" in says(change(table, "clean", [1] * count))
    assert "are empty" in says(change(table, "layer", [None, *[0] * (count - 1)]))
    assert "below 0" in says(change(table, "head", [-1] * count))
    assert "too many" in says(change(table, "head", [2**40, *[0] * (count - 1)]))
    many = pyarrow.concat_tables([change(table, "pair", [2**30 + n] * count) for n in range(1001)])
    assert "1,002 pairs" in says(many.replace_schema_metadata(table.schema.metadata))
    long = pyarrow.array([0] * count, pyarrow.int32()), pyarrow.array(["x" * 2**20])
    monkeypatch.setattr(budget, "max_data", 2**21 - 2)  # less than two pairs with it take
    said = says(change(table, "clean", pyarrow.DictionaryArray.from_arrays(*long)))
    assert "this one unpacks to more" in said
    for at in range(4, len(raw) - 8 - int.from_bytes(raw[-8:-4], "little"), 9):
        file.write_bytes(raw[:at] + bytes([raw[at] ^ 0xFF]) + raw[at + 1 :])
        with suppress(ValueError):  # no other error
            read_sweep(file)
    file.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(ValueError, match="must be a Parquet file, got a damaged one"):
        read_sweep(file)

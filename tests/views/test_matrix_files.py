"""A matrix as a file is read back by other programs' readers, with the same float32 values and the axes' names."""

import io

import numpy as np
import pandas as pd
import pytest

from engine.inputs.readers import Reading, read_text, read_translation
from engine.runtime import library
from engine.runtime.run import run
from engine.runtime.trace import Trace
from views.core.lanes import lanes
from views.core.matrix_files import Matrix, as_csv, as_npz, as_parquet, matrix_of

HOOK = "blocks.2.attn.pattern"


def traced(name: str = "stories") -> tuple[Trace, Reading]:
    checkpoint = library.checkpoint(name)
    if name == "translate-en-fr":
        reading = read_translation(checkpoint, "the dog sleeps .", "", 64)
    else:
        reading = read_text(checkpoint, 'Max said, "go" \n now', 64)
    return run(checkpoint.model, reading.read, target=reading.target), reading


def matrix(hook: str = HOOK, head: int | None = 1, name: str = "stories") -> tuple[Matrix, Trace, Reading]:
    trace, reading = traced(name)
    return matrix_of(trace, lanes(library.checkpoint(name), reading), name, hook, head), trace, reading


@pytest.mark.parametrize(
    ("write", "read"),
    [
        (as_csv, lambda raw: pd.read_csv(io.BytesIO(raw), dtype={"pattern": np.float32}, keep_default_na=False)),
        (as_parquet, lambda raw: pd.read_parquet(io.BytesIO(raw))),
    ],
    ids=["csv", "parquet"],
)
def test_a_table_has_a_row_for_every_weight_with_its_tokens(write, read) -> None:
    shown, trace, reading = matrix()
    table = read(write(shown))
    assert list(table.columns) == ["query", "query_token", "key", "key_token", "pattern"]
    expected = trace[HOOK][0, 1].numpy()
    np.testing.assert_array_equal(table["pattern"].to_numpy().reshape(expected.shape), expected)
    for axis in ("query", "key"):
        assert list(table[f"{axis}_token"]) == [reading.read.pieces[i] for i in table[axis]]


def test_npz_names_its_axes_and_needs_no_pickle() -> None:
    shown, trace, reading = matrix()
    with np.load(io.BytesIO(as_npz(shown)), allow_pickle=False) as file:
        np.testing.assert_array_equal(file["values"], trace[HOOK][0, 1].numpy())
        assert file["dims"].tolist() == ["query", "key"] and str(file["hook"]) == HOOK
        assert file["key_tokens"].tolist() == list(reading.read.pieces)


def test_all_heads_and_vectors_keep_every_axis() -> None:
    shown, trace, _ = matrix("blocks.0.attn.q", None)
    assert shown.dims == ("pos", "head", "d_head") and set(shown.tokens) == {"pos"}
    np.testing.assert_array_equal(shown.values, trace["blocks.0.attn.q"][0].numpy())
    table = pd.read_parquet(io.BytesIO(as_parquet(shown)))
    assert table.columns.tolist() == ["pos", "pos_token", "head", "d_head", "q"]


def test_across_two_texts_each_axis_has_the_tokens_of_its_own() -> None:
    shown, trace, reading = matrix("decoder.blocks.1.cross_attn.pattern", 0, "translate-en-fr")
    assert reading.target is not None
    assert list(shown.tokens["query"]) == list(reading.target.pieces)
    assert list(shown.tokens["key"]) == list(reading.read.pieces)
    np.testing.assert_array_equal(shown.values, trace[shown.name][0, 0].numpy())
    keys, _, _ = matrix("decoder.blocks.1.cross_attn.k", 0, "translate-en-fr")
    assert list(keys.tokens["pos"] if "pos" in keys.tokens else keys.tokens["key"]) == list(reading.read.pieces)
    inner, _, _ = matrix("encoder.blocks.0.attn.pattern", 0, "translate-en-fr")
    assert list(inner.tokens["query"]) == list(reading.read.pieces)

"""The tab Cache: it draws the keys and values of a run, its bytes are the tensors', its costs the engine's."""

from typing import Any

import numpy as np
import pytest
import torch

from engine.analysis.caching import TokenTime, cache_bytes, multiply_adds_again, multiply_adds_cached
from engine.checkpoints import Checkpoint
from engine.generation.prompt import begin
from engine.inputs.readers import pictures
from engine.model.layers.cache import KVCache
from engine.model.presets import NAMED
from engine.runtime import library
from engine.runtime.run import run
from tests.engine import tiny
from views.core.payload import unpack
from views.core.questions import STALE, Page
from views.generate.codegen import cache_lines
from views.generate.kv_cache import (
    POINTS,
    CachedPrompt,
    cost_table,
    costs,
    dtype_of,
    measure_token,
    norm_table,
    spread,
    time_table,
)
from views.generate.questions import GENERATE, LONGEST, carry_queries
from views.generate.session import Call, GenerationContext


def writing(name: str, text: Any, target: str | None = None) -> GenerationContext:
    checkpoint = library.checkpoint(name)
    return GenerationContext(
        name, checkpoint, begin(checkpoint, text, target), Call(repr(text), repr(target) if target else "")
    )


def kinds() -> list[GenerationContext]:
    pixels = library.checkpoint("digits-imagegpt").processor.ids(pictures()[0][0]).flatten()[:40]
    return [
        writing("stories", "Max gave the red ball to"),
        writing("translate-en-fr", "The dog sees a small white cat.", "Le"),
        writing("infill", "Max gave the red [gMASK] to Anna."),
        writing("digits-imagegpt", pixels),
    ]


def grouped() -> GenerationContext:
    checkpoint = Checkpoint(tiny.model(tiny.config("rotary", attention={"kv_heads": 2}), seed=1))
    return GenerationContext("grouped", checkpoint, begin(checkpoint, [1, 2, 3]), Call("[1, 2, 3]"))


def asked(one: GenerationContext, **query: Any) -> tuple[dict[str, Any], Any]:
    return unpack(Page((GENERATE, one)).answer({"trace": one.digest, **query}))


BEGUN = [5, 9, 7, 2]


@pytest.mark.parametrize("number", range(5))
def test_the_vectors_are_those_of_a_run_over_all_of_it(number: int) -> None:
    one = [*kinds(), grouped()][number]
    header, arrays = asked(one, ask="cache", begun=BEGUN)
    ids = [*one.prompt.ids, *BEGUN]
    model, source = one.checkpoint.model, one.prompt.source
    trace = run(model, source, target=ids) if source else run(model, ids)
    side = "decoder." if source else ""
    for layer in range(header["layers"]):
        block = f"{side}blocks.{layer}"
        turned = f"{block}.attn.k_rotated"  # where positions turn the keys, that is what is kept
        hooks = {"k": turned if turned in trace else f"{block}.attn.k", "v": f"{block}.attn.v"}
        if source:
            hooks |= {f"cross.{name}": f"{block}.cross_attn.{name}" for name in "kv"}
        for name, hook in hooks.items():
            lengths = trace[hook][0].norm(dim=-1).T  # head pos
            assert arrays[name].data[layer] == pytest.approx(lengths.numpy(), rel=1e-4)
    assert header["pieces"] == [one.piece(id) for id in ids] and header["given"] == len(one.prompt.ids)


@pytest.mark.parametrize("number", range(5))
def test_cells_positions_and_source_add_up_to_the_bytes_of_the_tensors(number: int) -> None:
    one = [*kinds(), grouped()][number]
    header, _ = asked(one, ask="cache", begun=BEGUN)
    config, length = one.checkpoint.config, len(one.prompt.ids) + len(BEGUN)
    cache = KVCache(config, 1, length, next(one.checkpoint.model.parameters()), len(one.prompt.source))
    held = sum(tensor.nbytes for layer in (*cache.layers, *cache.cross) for tensor in (layer.k, layer.v))
    cross = header["cross"]
    own = header["layers"] * header["heads"] * length * header["cell"]
    other = header["layers"] * cross["heads"] * len(header["source"]) * cross["cell"] if cross else 0
    assert own + other == held == header["bytes"]
    heads = {"grouped": (2, 4), "translate-en-fr": (6, 6), "infill": (5, 5)}
    assert (header["heads"], header["queries"]) == heads.get(one.name, (4, 4))


def test_the_costs_are_the_engines_at_every_length() -> None:
    for one in [*kinds(), grouped()]:
        config, source = one.checkpoint.config, len(one.prompt.source)
        found = costs(config, source, dtype_of(one))
        assert found["lengths"][0] == 1 and found["lengths"][-1] == config.context
        for at, n in enumerate(found["lengths"]):
            assert found["cached"][at] == multiply_adds_cached(config, n, source)
            assert found["again"][at] == multiply_adds_again(config, n, source)
            assert found["bytes"][at] == cache_bytes(config, n, torch.float32, source)
            assert found["reference"][at] == cache_bytes(NAMED["gpt2"].config, n)
        assert (found["wide"] is None) == (one.name != "grouped")
        if found["wide"]:
            assert found["wide"] == [2 * one for one in found["bytes"]]
        assert found["reference_each"] == 2 * 12 * 768 * 4 and found["reference_bytes"] == 1024 * 2 * 12 * 768 * 4


def test_lengths_are_spread_over_the_context() -> None:
    assert spread(5, POINTS) == [1, 2, 3, 4, 5]
    assert spread(256, 8) == [1, 32, 64, 96, 128, 160, 192, 224, 256]
    for last in (1, 2, 24, 1000, 2048):
        assert len(spread(last, POINTS)) <= POINTS + 1 and spread(last, POINTS)[-1] == last


def test_the_time_of_a_token_is_measured_at_any_length_of_the_context() -> None:
    for one in kinds():
        for length in (1, one.checkpoint.config.context):
            found = measure_token(CachedPrompt(one, tuple(BEGUN)), length)
            assert found.length == length and found.cached > 0 and found.again > 0


def test_what_is_read_for_a_measuring_is_the_text_and_then_its_last_token(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[list[int], list[int], tuple[int, ...]]] = []

    def times(model: object, ids: list[int], lengths: list[int], source: tuple[int, ...]) -> Any:
        read.append((ids, lengths, source))
        yield None

    monkeypatch.setattr("views.generate.kv_cache.token_times", times)
    one = writing("translate-en-fr", "The dog sees a cat.", "Le")
    measure_token(CachedPrompt(one, (7, 8)), 3)
    measure_token(CachedPrompt(one, (7, 8)), 7)
    ids = [*one.prompt.ids, 7, 8]
    assert read == [(ids[:3], [3], one.prompt.source), ([*ids, 8, 8, 8], [7], one.prompt.source)]


def test_a_whole_picture_is_drawn_as_far_as_the_model_reads_it() -> None:
    checkpoint = library.checkpoint("digits-imagegpt")
    one = GenerationContext("digits-imagegpt", checkpoint, begin(checkpoint, []), Call("[]"))
    header, arrays = asked(one, ask="cache", begun=[3] * 64)
    assert len(header["pieces"]) == arrays["k"].data.shape[-1] == min(65, checkpoint.config.context)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"ask": "cache", "begun": [1], "trace": "another"}, STALE),
        ({"ask": "costs", "begun": [], "trace": "another"}, STALE),
        ({"ask": "cache", "begun": "x"}, "begun must be a list, got 'x'."),
        ({"ask": "cache", "begun": [-1]}, "token ids must be 0 to"),
        ({"ask": "cache", "begun": [True]}, "begun must be a whole number, got True."),
        ({"ask": "cache"}, "needs 'begun'"),
    ],
)
def test_what_a_browser_asks_is_checked(query: dict[str, Any], sentence: str) -> None:
    one = kinds()[0]
    with pytest.raises(ValueError) as refused:
        asked(one, **query)
    assert sentence in str(refused.value)


def test_a_text_too_long_to_be_drawn_is_refused() -> None:
    checkpoint = Checkpoint(tiny.model(tiny.config(context=LONGEST + 8)))
    one = GenerationContext("long", checkpoint, begin(checkpoint, [1] * (LONGEST + 1)), Call("ids"))
    with pytest.raises(ValueError, match="At most 2,048 positions are drawn, and here are 2,049"):
        asked(one, ask="cache", begun=[])


def test_the_tables_hold_what_is_drawn() -> None:
    one = kinds()[0]
    header, arrays = asked(one, ask="cache", begun=BEGUN)
    table = norm_table(CachedPrompt(one, tuple(BEGUN))).columns
    assert np.array_equal(np.array(table["k_norm"]).reshape(4, 4, -1), arrays["k"].data)
    assert np.array_equal(np.array(table["v_norm"]).reshape(4, 4, -1), arrays["v"].data)
    row = (2 * 4 + 3) * len(header["pieces"]) + 5
    assert [int(table[name][row]) for name in ("layer", "head", "position")] == [2, 3, 5]
    assert table["token"][row] == header["pieces"][5] and sum(table["bytes"]) == header["bytes"]
    found = costs(one.checkpoint.config, len(one.prompt.source), dtype_of(one))
    table = cost_table(one).columns
    assert (table["length"], table["multiply_adds_cached"]) == (found["lengths"], found["cached"])
    assert (table["multiply_adds_without"], table["bytes"]) == (found["again"], found["bytes"])
    assert "bytes_with_own_heads" not in table and "bytes_with_own_heads" in cost_table(grouped()).columns
    assert asked(one, ask="costs", begun=[])[1]["cached"].data.tolist() == pytest.approx(found["cached"], rel=1e-6)


def test_the_table_of_seconds_is_what_was_measured_and_nothing_else() -> None:
    one = kinds()[0]
    table = time_table(one, [TokenTime(4, 0.25, 0.5)]).columns
    assert table == {"length": [4], "seconds_cached": [0.25], "seconds_without": [0.5]}
    with pytest.raises(ValueError, match="Nothing is measured yet"):
        time_table(one, [])


def test_a_file_alone_is_given_what_the_tab_asks() -> None:
    one = kinds()[0]
    (query,) = (query for query in carry_queries(one, BEGUN, True, True) if query["ask"] == "cache")
    assert asked(one, **query)[0]["pieces"]


@pytest.mark.parametrize("number", range(3))
def test_the_lines_of_python_make_the_cache(number: int) -> None:
    one = kinds()[number]
    for branch in ([], BEGUN):
        names: dict[str, Any] = {}
        exec(cache_lines(one, tuple(branch)), names)
        header, arrays = asked(one, ask="cache", begun=branch)
        assert names["cache"].bytes == header["bytes"]
        assert torch.stack(names["k"]).numpy() == pytest.approx(arrays["k"].data, rel=1e-5)
        assert torch.stack(names["v"]).numpy() == pytest.approx(arrays["v"].data, rel=1e-5)

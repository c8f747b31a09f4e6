from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from threading import Thread
from time import sleep
from typing import Any

import numpy as np
import pytest

from engine import run
from engine.analysis.surprise import surprise
from engine.generation.prompt import begin
from engine.runtime.library import checkpoint
from views.core.payload import unpack
from views.core.questions import Page
from views.generate import streaming as generate_parts
from views.generate import surprise_cache as generate_measured
from views.generate.codegen import surprise_lines
from views.generate.questions import GENERATE, carry_queries
from views.generate.session import Call, GenerationContext
from views.generate.surprise import between, measurement, surprise_table, token_frame

TEXT = "Once upon a time there was a girl"


def writing(name: str = "stories", *prompt: Any) -> GenerationContext:
    loaded = checkpoint(name)
    begun = begin(loaded, *(prompt or (TEXT,)))
    return GenerationContext(name, loaded, begun, Call(repr(prompt[0] if prompt else TEXT)))


def told(here: GenerationContext, written: tuple[int, ...] = ()) -> tuple[dict[str, Any], dict[str, Any]]:
    """Of all of a text."""
    measuring = measurement(here, written)
    return between(here, measuring, 0, len(measuring.steps))


def parts(here: GenerationContext, **query: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for part in Page((GENERATE, here)).parts({"ask": "surprise_parts", "trace": here.digest, "written": [], **query}):
        header, arrays = unpack(part)
        yield header, {name: named.data for name, named in arrays.items()}


def answered(here: GenerationContext, query: dict[str, Any]) -> bytes:
    return Page((GENERATE, here)).answer(query)


def header_of(payload: bytes) -> dict[str, Any]:
    (length,) = struct.unpack("<I", payload[:4])
    found: dict[str, Any] = json.loads(payload[4 : 4 + length])
    return found


def test_what_is_shown_of_a_token_is_what_the_engine_computed() -> None:
    here = writing()
    header, arrays = told(here)
    found = surprise(here.checkpoint, here.prompt.ids)
    assert header["total"] == found.total
    assert header["perplexity"] == found.perplexity
    assert header["training"] == pytest.approx(found.mean, rel=1e-6)
    assert header["windows"] == [[0, 1, len(here.prompt.ids)]] and header["whole"]
    assert np.array_equal(arrays["log_probability"], found.log_probabilities)
    assert np.allclose(arrays["surprise"], -found.log_probabilities / math.log(2))
    own = run(here.checkpoint.model, list(here.prompt.ids), "logits")["logits"][0, :-1].softmax(-1)
    for token, ids in enumerate(arrays["top.id"]):
        assert np.allclose(arrays["top.probability"][token], own[token, ids], atol=1e-6)
        assert float(arrays["rest"][token]) == pytest.approx(1 - float(own[token, ids].sum()), abs=1e-6)


def test_a_token_stands_behind_as_many_ids_as_its_place_says() -> None:
    here = writing()
    header, arrays = told(here, (5, 7))
    whole = [*here.prompt.ids, 5, 7]
    assert [whole[at] for at in arrays["at"].tolist()] == arrays["id"].tolist()
    assert header["read"] == whole[:-1]
    assert all(str(id) in header["pieces"] for id in whole)


def test_what_was_written_is_read_behind_the_prompt() -> None:
    here = writing("translate-en-fr", "The cat sleeps.", "le chat dort.")
    end = here.checkpoint.end_ids[0]
    _, alone = told(here)
    _, ended = told(here, (end,))
    assert alone["id"].tolist() == ended["id"].tolist()  # a target is closed, by whomever
    assert alone["id"][-1] == end


def test_a_model_whose_training_asked_for_less_than_every_token_says_so() -> None:
    taught = [told(writing(name, "chat noir"))[0]["taught"] for name in ("instruct", "induction", "bilingual")]
    assert taught == [
        "Its own training asked only for what comes after an instruction or a separator.",
        "Its own training asked only for what had stood in the text before.",
        "",
    ]


def test_a_stale_question_and_nonsense_are_answered_with_a_sentence() -> None:
    here = writing()
    with pytest.raises(ValueError, match="changed since"):
        answered(here, {"ask": "surprise", "trace": "another", "written": []})
    with pytest.raises(ValueError, match="token ids"):
        answered(here, {"ask": "surprise", "trace": here.digest, "written": [10**6]})
    assert header_of(answered(here, {"ask": "surprise", "trace": here.digest, "written": []}))["mean"] > 0


def test_the_lines_of_python_give_the_numbers_that_are_shown() -> None:
    here = writing()
    names: dict[str, Any] = {}
    exec(surprise_lines(here, (5, 7), "half"), names)
    header, _ = told(here, (5, 7))
    assert names["found"].total == header["total"]


def test_the_table_has_a_row_for_each_token() -> None:
    here = writing()
    table = surprise_table(here, (), "half", None)
    _, arrays = told(here)
    assert list(table.columns["token"])[-1] == "·girl"
    frame = token_frame(here, measurement(here, ()).between(0, 1))
    assert frame["position"].tolist() == arrays["at"].tolist() and frame["token"].tolist() == table.columns["token"]
    assert np.allclose(frame["surprise"], arrays["surprise"]) and np.allclose(frame["entropy"], arrays["entropy"])
    assert np.array_equal(table.columns["log_probability"], arrays["log_probability"])


LONG = "Once upon a time there was a girl. " * 60


def long_writing() -> GenerationContext:
    loaded = checkpoint("stories")
    return GenerationContext("stories", loaded, begin(loaded, LONG, longer=True), Call(repr(LONG)))


def test_a_long_text_comes_in_parts_that_make_up_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate_parts, "PACE", 0.0)
    here = long_writing()
    headers, found = zip(*parts(here), strict=True)
    whole = surprise(here.checkpoint, here.prompt.ids)
    count = len(whole.windows)
    assert [(one["from"], one["count"]) for one in headers] == [(at, at + 1) for at in range(count)] and count > 3
    assert [one["whole"] for one in headers] == [False] * (count - 1) + [True]
    assert headers[0]["windows"] == [[one.begin, one.asked, one.end] for one in whole.windows]
    assert headers[0]["read"] == list(here.prompt.ids) and not headers[1]["read"]
    for name, wanted in (("id", whole.ids), ("at", whole.at + 1), ("rank", whole.ranks)):
        assert np.concatenate([one[name] for one in found]).tolist() == wanted.tolist()
    assert headers[-1]["total"] == pytest.approx(whole.total, rel=1e-6)
    assert headers[-1]["training"] == pytest.approx(whole.training, rel=1e-6)
    assert headers[-1]["asked"] == len(here.prompt.ids) - 1 == len(whole.ids)
    assert all(one["top.id"].shape[1] == 5 for one in found)


def test_sums_of_a_text_that_is_not_whole_yet_are_those_of_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate_parts, "PACE", 0.0)
    here = long_writing()
    coming = parts(here)
    first, _ = next(coming)
    coming.close()  # broken off
    header, arrays = next(parts(here, came=1))
    logs = surprise(here.checkpoint, here.prompt.ids).log_probabilities
    (_, asked, end) = first["windows"][1]
    assert arrays["at"].tolist() == list(range(asked, end))
    assert header["total"] == pytest.approx(-float(logs[: end - 1].double().sum()), rel=1e-6)
    some = unpack(answered(here, {"ask": "surprise", "trace": here.digest, "written": [], "steps": 2}))
    assert (some[0]["count"], some[0]["whole"], some[0]["total"]) == (2, False, header["total"])
    assert some[1]["at"].data.tolist() == list(range(1, end))


def test_a_browser_that_has_what_the_server_has_not_gets_what_follows() -> None:
    here = long_writing()
    header, arrays = next(parts(here, came=3))
    windows = here.measured.measure(here.prompt, ()).windows
    assert header["from"] == 3 and arrays["at"][0] == windows[3].asked
    logs = surprise(here.checkpoint, here.prompt.ids).log_probabilities[: windows[header["count"] - 1].end - 1]
    assert header["total"] == pytest.approx(-float(logs.double().sum()), rel=1e-6)


def test_no_window_of_a_text_is_measured_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate_parts, "PACE", 0.0)
    here, measured = long_writing(), list[Any]()
    once = generate_measured.of_window
    monkeypatch.setattr(generate_measured, "of_window", lambda *a: measured.append(a[2]) or once(*a))
    next(parts(here))
    surprise_table(here, (), "half", None)
    ((header, _),) = parts(here)
    assert (header["from"], header["whole"]) == (0, True)
    assert measured == list(here.measured.measure(here.prompt, ()).windows)


def test_two_reruns_that_measure_one_text_at_once_measure_each_window_once(monkeypatch: pytest.MonkeyPatch) -> None:
    here, made, measured = long_writing(), generate_measured.of_window, []

    def slow(*given: Any) -> Any:
        measured.append(given[2])
        sleep(0.02)
        return made(*given)

    monkeypatch.setattr(generate_measured, "of_window", slow)
    measuring = measurement(here, ())
    both = [Thread(target=measuring.between, args=(0, len(measuring.steps))) for _ in range(3)]
    for one in both:
        one.start()
    for one in both:
        one.join(60)
    assert measured == list(measuring.windows) and measuring.is_over
    expected = surprise(here.checkpoint, here.prompt.ids)
    assert measuring.between(0, measuring.count).ids.tolist() == expected.ids.tolist()
    assert measuring.between(0, measuring.count).total == pytest.approx(expected.total)


def test_a_table_of_a_text_that_was_stopped_is_of_what_was_read_and_reads_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(generate_parts, "PACE", 0.0)
    here = long_writing()
    coming = parts(here)
    next(coming)
    next(coming)
    coming.close()
    measuring = measurement(here, ())
    count = measuring.count
    assert 0 < count < len(measuring.steps)
    table = surprise_table(here, (), "half", count)
    assert measuring.count == count and table.about["steps"] == f"the first {count} of {len(measuring.steps)}"
    assert list(table.columns["id"]) == measuring.between(0, count).ids.tolist()
    assert "steps" not in surprise_table(here, (), "half", None).about


def test_a_file_has_a_text_that_nobody_looked_at_where_one_step_measures_it() -> None:
    here = writing()
    (ask,) = (query for query in carry_queries(here, [5], True, False) if query["ask"] == "surprise")
    header, _ = unpack(answered(here, {"trace": here.digest, **ask}))
    assert header["whole"] and header["read"] == list(here.prompt.ids)
    assert "surprise" not in [query["ask"] for query in carry_queries(here, [], True, True)]
    assert "surprise" not in [query["ask"] for query in carry_queries(long_writing(), [], True, False)]


def test_few_texts_are_kept_and_the_last_ones() -> None:
    here = writing()
    first = here.measured.measure(here.prompt, ())
    assert here.measured.measure(here.prompt, ()) is first
    for id in range(generate_measured.MOST):
        here.measured.measure(here.prompt, (id,))
    assert len(here.measured.kept) == generate_measured.MOST
    assert here.measured.measure(here.prompt, ()) is not first


def test_a_window_that_is_not_there_is_answered_with_a_sentence() -> None:
    here = long_writing()
    for said in (10**6, -1, "2", True, 1.5, [1]):
        with pytest.raises(ValueError, match="Reload and try again|must be a whole number"):
            list(parts(here, came=said))
    for said in (0, -1, "2", True, 1.5, [1]):
        with pytest.raises(ValueError, match="Reload and try again|must be a whole number"):
            answered(here, {"ask": "surprise", "trace": here.digest, "written": [], "steps": said})

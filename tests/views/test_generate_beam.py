"""The tab Beam: its tree is the engine's search, and its sentences say what the numbers do."""

import math
from collections.abc import Iterator
from dataclasses import replace
from threading import Thread
from time import sleep
from typing import Any

import pytest
import torch

from engine import beam, generate
from engine.generation.beam import BeamResult
from engine.generation.prompt import begin
from engine.inputs.readers import pictures
from engine.runtime import library
from engine.runtime.run import run
from tests.engine.twins import twins
from views.core.payload import unpack
from views.core.questions import STALE, UNKNOWN, Page
from views.core.table_files import Table
from views.generate import beam_search as generate_searching
from views.generate import streaming as generate_parts
from views.generate.beam_report import fork, greedy_told, over_told
from views.generate.beam_search import EXAMPLES, MOST, STATES, BeamOptions, BeamSession, Search, search_to
from views.generate.questions import GENERATE, carry_queries
from views.generate.session import Call, GenerationContext
from views.generate.streaming import Live

NAMES = [example["model"] for example in EXAMPLES]


def writing(name: str, text: Any, target: str | None = None) -> GenerationContext:
    checkpoint = library.checkpoint(name)
    return GenerationContext(name, checkpoint, begin(checkpoint, text, target), Call(repr(text)))


def example(number: int = 0, **more: Any) -> tuple[GenerationContext, BeamOptions]:
    found = EXAMPLES[number]
    wanted = BeamOptions(beams=found["beams"], tokens=found["tokens"], stop_at=found["stop_at"])
    return writing(found["model"], found["text"]), replace(wanted, **more)


def kinds() -> list[tuple[GenerationContext, BeamOptions]]:
    pixels = library.checkpoint("digits-imagegpt").processor.ids(pictures()[0][0]).flatten()[:40]
    return [
        example(0),
        example(1, early="never", penalty=0.6, best=4),
        (writing("translate-en-fr", "The dog sees a small white cat.", "Le"), BeamOptions(beams=3, early="yes")),
        (writing("digits-imagegpt", pixels), BeamOptions(tokens=8, beams=2, best=1)),
    ]


def engine_search(one: GenerationContext, wanted: BeamOptions) -> BeamResult:
    prompt = one.prompt
    read, target = (prompt.source, prompt.ids) if prompt.source else (prompt.ids, None)
    early = {"no": False, "yes": True, "never": "never"}[wanted.early]
    return beam(
        one.checkpoint, read, wanted.beams, wanted.tokens, target=target, length_penalty=wanted.penalty,
        early_stopping=early, n_best=wanted.best, stop_strings=wanted.stop_at.split("|") if wanted.stop_at else (),
    )  # fmt: skip


def asked(one: GenerationContext, wanted: BeamOptions, **more: Any) -> tuple[dict[str, Any], Any]:
    return unpack(Page((GENERATE, one)).answer(query_of(one, wanted, **more)))


def query_of(one: GenerationContext, wanted: BeamOptions, ask: str = "beam", **more: Any) -> dict[str, Any]:
    """What a browser asks; of `more`, what is of the search goes into what is wanted."""
    own = {name: value for name, value in more.items() if name in vars(wanted)}
    rest = {name: value for name, value in more.items() if name not in own}
    return {"ask": ask, "trace": one.digest, "wanted": {**vars(wanted), **own}, **rest}


def node_table(one: GenerationContext, wanted: BeamOptions, **more: Any) -> Table:
    return Page((GENERATE, one)).table(query_of(one, wanted, **more))


def path_table(one: GenerationContext, wanted: BeamOptions, **more: Any) -> Table:
    return Page((GENERATE, one)).table(query_of(one, wanted, "paths", **more))


def search_lines(one: GenerationContext, wanted: BeamOptions, **more: Any) -> str:
    return Page((GENERATE, one)).python(query_of(one, wanted, **more))


def log_probabilities(one: GenerationContext, ids: tuple[int, ...]) -> torch.Tensor:
    """Of each of the ids, by a run over all of them, without a cache."""
    prompt, model = one.prompt, one.checkpoint.model
    read = [*prompt.ids, *ids]
    trace = run(model, prompt.source, target=read) if prompt.source else run(model, read)
    logs = trace["logits"][0, len(prompt.ids) - 1 : -1].log_softmax(-1)
    return logs.gather(1, torch.tensor(ids)[:, None])[:, 0]


@pytest.mark.parametrize("number", range(4))
def test_the_tree_is_the_engines_search(number: int) -> None:
    one, wanted = kinds()[number]
    header, arrays = asked(one, wanted)
    result = engine_search(one, wanted)
    nodes = {name.removeprefix("node."): named.data for name, named in arrays.items() if name.startswith("node.")}
    every = [(step, each) for step in result.steps for each in step.candidates]
    assert len(every) == len(nodes["id"])
    for at, (step, each) in enumerate(every):
        state = STATES[nodes["state"][at]]
        assert each in getattr(step, state)
        assert (nodes["step"][at], nodes["rank"][at], nodes["id"][at]) == (step.index, each.rank, each.id)
        assert nodes["log_probability"][at] == pytest.approx(each.log_probability, abs=1e-6)
        assert nodes["score"][at] == pytest.approx(each.score, abs=1e-6)
        line = [at]
        while nodes["parent"][line[-1]] >= 0:
            line.append(nodes["parent"][line[-1]])
        assert tuple(nodes["id"][list(reversed(line))]) == each.ids
        if state == "pruned":
            assert nodes["margin"][at] == pytest.approx(step.margin(each), abs=1e-6)
            ahead = next(other for other in step.candidates if other.rank == nodes["behind"][at])
            assert ahead.log_probability - each.log_probability == pytest.approx(step.margin(each), abs=1e-6)
        else:
            assert math.isnan(nodes["margin"][at]) and nodes["behind"][at] == 0
    assert [every[at][1].ids for at in header["best"]] == [each.ids for each in result.hypotheses]
    assert header["texts"] == [each.text for each in result.hypotheses]
    for found, step in zip(header["found"], result.steps, strict=True):
        assert [every[at][1].ids for at in found] == [each.ids for each in step.best]


@pytest.mark.parametrize("number", range(4))
def test_the_greedy_path_is_what_greedy_writes(number: int) -> None:
    one, wanted = kinds()[number]
    header, arrays = asked(one, wanted)
    prompt = one.prompt
    read, target = (prompt.source, prompt.ids) if prompt.source else (prompt.ids, None)
    stops = wanted.stop_at.split("|") if wanted.stop_at else ()
    steps = list(generate(one.checkpoint, read, wanted.tokens, target=target, greedy=True, stop_strings=stops))
    assert arrays["greedy.id"].data.tolist() == [step.id for step in steps]
    own = log_probabilities(one, tuple(step.id for step in steps))
    assert arrays["greedy.own"].data == pytest.approx(own.numpy(), abs=1e-4)
    assert arrays["greedy.total"].data == pytest.approx(own.cumsum(0).numpy(), abs=1e-4)
    assert header["greedy_text"] == steps[-1].text
    for count, at in enumerate(arrays["greedy.node"].data, 1):
        if at >= 0:
            assert arrays["node.step"].data[at] == count - 1
            assert arrays["node.id"].data[at] == steps[count - 1].id
            assert arrays["node.log_probability"].data[at] == pytest.approx(own[:count].sum().item(), abs=1e-4)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_greedy_misses_the_best_text_of_every_shipped_example(number: int) -> None:
    one, wanted = example(number)
    result = engine_search(one, wanted).hypotheses[0]
    prompt = one.prompt
    stops = [wanted.stop_at] if wanted.stop_at else []
    steps = list(generate(one.checkpoint, prompt.ids, wanted.tokens, greedy=True, stop_strings=stops))
    greedy = log_probabilities(one, tuple(step.id for step in steps))
    best = log_probabilities(one, result.ids)
    assert steps[-1].stopped and steps[-1].stopped.kind in ("end", "string")
    assert result.stopped and result.stopped.kind in ("end", "string")
    assert best.sum() > greedy.sum() + 1  # nats
    assert best.mean() > greedy.mean() + 0.05
    assert result.log_probability == pytest.approx(float(best.sum()), abs=1e-3)


def test_the_first_example_says_where_greedy_went_wrong() -> None:
    one, wanted = example()
    search = search_to(one, wanted)
    own, best = search.greedy.own, search.best[0]
    line = log_probabilities(one, best.ids)
    at = fork(search, best)
    assert (at, best.ids[:at]) == (0, search.greedy.ids[:at]) and own[at] > line[at]
    parting, outcome, left = greedy_told(search)
    gain, loss = float(own[at] - line[at]), float(own[at + 1 :].sum() - line[at + 1 :].sum())
    assert "The paths part at token 1: greedy takes “outside”" in parting and "the best text has “for”" in parting
    assert f"gains {gain:.2f} nats there, and loses {-loss:.2f} with all that follows" in parting
    times = math.exp(best.log_probability - float(own.sum()))
    assert outcome.startswith(f"So the best text is {times:.3g} times as probable as greedy’s")
    assert left == "The search finished greedy’s text at token 6, and 4 better ones."


def test_an_agreeing_search_says_so() -> None:
    one, wanted = example(0, beams=1, best=1)
    assert greedy_told(search_to(one, wanted))[0].startswith("Greedy finds the best text too: each of its 6 tokens")


@pytest.fixture(scope="module")
def searches() -> list[Search]:
    found = []
    for seed in range(40):
        checkpoint, _ = twins("gpt2", seed, ends=(1, 8, 13))
        one = GenerationContext("twin", checkpoint, begin(checkpoint, [5, 9, 7]), Call("[5, 9, 7]"))
        for wanted in (
            BeamOptions(beams=2, best=1, tokens=6),
            BeamOptions(beams=2, best=1, tokens=9, early="yes", penalty=2.0),
        ):
            found.append(search_to(one, wanted))
    return found


def test_what_became_of_the_greedy_path_is_told_in_every_case(searches: list[Search]) -> None:
    told = set()
    for search in searches:
        if len(sentences := greedy_told(search)) == 1:
            continue
        best, total = search.best[0], float(search.greedy.total[-1])
        score = search.wanted.beam.score(total, len(search.greedy.ids))
        ahead = "So the best text" if best.log_probability >= total else "In sum greedy’s text"
        assert sentences[1].startswith("Greedy’s text is the better" if best.score < score else ahead)
        told |= {sentences[1][:12], " ".join(sentences[2].split()[:4])}
        for count, step in enumerate(search.steps, 1):
            gone = search.greedy.ids[:count] not in {one.ids for one in (*step.kept, *step.finished)}
            if gone and len(search.greedy.ids) >= count:
                assert f"The search gave greedy’s path up at token {count}:" in sentences[2]
                break
    assert len(told) >= 5


def test_what_ended_the_search_is_told_as_the_engine_decided_it(searches: list[Search]) -> None:
    kinds = set()
    for search in searches:
        last, beams, sentence = search.steps[-1], search.wanted.beams, over_told(search)
        if not last.kept:
            assert len(search.steps) == search.wanted.tokens and "no more tokens were asked for" in sentence
        elif search.wanted.early == "yes":
            assert len(last.best) == beams and "as soon as 2 texts were finished" in sentence
        else:
            bound = search.wanted.beam.score(last.kept[0].log_probability, len(search.steps))
            assert bound <= last.best[-1].score and f"would score {bound:.3f}".replace("-", "−") in sentence
        kinds.add((bool(last.kept), search.wanted.early))
    assert len(kinds) >= 3


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"beams": MOST["beams"] + 1}, "beams must lie in 1..10, got 11."),
        ({"tokens": 0}, "tokens must lie in 1..64, got 0."),
        ({"best": 5}, "the n best must lie in 1..4"),
        ({"penalty": float("nan")}, "the length penalty must lie in"),
        ({"early": "perhaps"}, "early stopping must be one of no, yes, never"),
        ({"beams": "4"}, UNKNOWN),
        ({"stop_at": None}, UNKNOWN),
        ({"stop_at": "x" * 999}, "at most 200 characters"),
        ({"trace": "another"}, STALE),
        ({"steps": 0}, UNKNOWN),
        ({"steps": True}, "steps must be a whole number, got True."),
    ],
)
def test_what_a_browser_asks_is_checked(more: dict[str, Any], sentence: str) -> None:
    one, wanted = example()
    with pytest.raises(ValueError) as refused:
        asked(one, wanted, **more)
    assert sentence in str(refused.value)


@pytest.mark.parametrize("came", [-1, True, "2", 12, 10**9])
def test_what_a_browser_asks_for_in_parts_is_checked(came: Any) -> None:
    one, wanted = example()
    refusal = UNKNOWN if type(came) is int else "came must be a whole number"
    for more, sentence in (({"came": came}, refusal), ({"trace": "another"}, STALE), ({"beams": 0}, "must lie in")):
        with pytest.raises(ValueError) as refused:
            list(parts(one, wanted, **more))
        assert sentence in str(refused.value)


def parts(one: GenerationContext, wanted: BeamOptions, **more: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    for part in Page((GENERATE, one)).parts(query_of(one, wanted, "beam_parts", **more)):
        yield unpack(part)


def is_between(part: tuple[dict[str, Any], Any], whole: tuple[dict[str, Any], Any]) -> int:
    """Holds a part against those steps of the whole search, and says to which step it goes."""
    (header, some), (told, arrays) = part, whole
    first, count = header["from"], header["count"]
    steps = arrays["node.step"].data
    before, size = sum(steps < first), sum(steps < count)
    for name, named in some.items():
        begin, end = (before, size) if name.startswith("node.") else (first, count)
        assert named.data.tolist() == pytest.approx(arrays[name].data[begin:end].tolist(), nan_ok=True)
    assert header["said"] == told["said"][before:size] and header["found"] == told["found"][first:count]
    assert header["greedy_said"] == told["greedy_said"][first:count]
    assert header["ended"] == {at: why for at, why in told["ended"].items() if before <= int(at) < size}
    assert header["pieces"].items() <= told["pieces"].items()
    assert header["whole"] == (count == told["count"]) == bool(header["over"]) == bool(header["told"])
    return int(count)


@pytest.mark.parametrize("number", range(4))
def test_a_search_in_parts_is_the_whole_search_step_by_step(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate_parts, "PACE", 0.0)
    one, wanted = kinds()[number]
    whole = asked(one, wanted)
    came = 0
    for part in parts(replace(one, live=Live()), wanted):
        assert part[0]["from"] == came and part[0]["room"] == wanted.tokens
        assert is_between(part, whole) == came + 1
        came += 1
    assert came == whole[0]["count"] > 3
    for name in ("best", "texts", "over", "told", "greedy_text", "greedy_score", "greedy_ended"):
        assert part[0][name] == whole[0][name]


def test_a_search_goes_on_behind_what_came_whatever_became_of_what_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate_parts, "PACE", 0.0)
    steps, (one, wanted) = list[Any](), example()
    whole, one = asked(one, wanted), replace(one, live=Live())
    once = generate_searching.BeamSession.go_on
    monkeypatch.setattr(generate_searching.BeamSession, "go_on", lambda self: steps.append(self.count) or once(self))
    coming = parts(one, wanted)
    assert [next(coming)[0]["count"] for _ in range(3)] == [1, 2, 3]
    coming.close()  # broken off
    part = next(parts(one, wanted, came=2))  # and the third never came
    assert (part[0]["from"], is_between(part, whole), steps) == (2, 4, [0, 1, 2, 3])
    part = next(parts(replace(one, live=Live()), wanted, came=4))
    assert (part[0]["from"], is_between(part, whole)) == (4, 5)
    monkeypatch.setattr(generate_parts, "SHARED", 0.0)
    (part,) = parts(replace(one, live=Live()), wanted, shared=True)
    assert is_between(part, whole) == 1


def test_two_reruns_that_search_at_once_find_what_one_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    one, wanted = example()
    made = BeamSession.go_on_alone

    def slow(searching: BeamSession) -> None:
        sleep(0.02)
        made(searching)

    monkeypatch.setattr(BeamSession, "go_on_alone", slow)
    found: list[Search] = []
    both = [Thread(target=lambda: found.append(search_to(one, wanted))) for _ in range(3)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(60)
    monkeypatch.undo()
    expected = search_to(example()[0], wanted)
    assert len(found) == 3
    for search in found:
        assert search.is_over and [step.index for step in search.steps] == [step.index for step in expected.steps]
        assert [one.ids for one in search.best] == [one.ids for one in expected.best]


def test_a_search_is_not_made_again_and_holds_no_cache_once_it_is_over() -> None:
    one, wanted = example(0, beams=1, best=1, tokens=2)
    *_, (header, _) = parts(one, wanted)
    assert header["whole"]
    ((key, found),) = one.live.waiting.items()
    assert found.is_over and found.search is None and found.text is None  # and so holds no KV cache
    ((again, _),) = parts(one, wanted)
    assert (again["from"], again["count"]) == (0, 2)
    asked(one, replace(wanted, penalty=0.0))
    more = example(0, best=2, tokens=2)[1]
    asked(one, more)
    asked(one, replace(more, best=4))
    assert key not in one.live.waiting and len(one.live.waiting) == 2  # how many are shown makes no other search


def test_a_search_that_fails_says_so_behind_what_it_found_and_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate_parts, "PACE", 0.0)
    one, wanted = example()
    once = generate_searching.BeamSession.go_on

    def go_on(self: generate_searching.BeamSession) -> None:
        if self.count == 2:
            raise ValueError("There is no room.")
        once(self)

    with monkeypatch.context() as patched, pytest.raises(ValueError, match="no room"):
        patched.setattr(generate_searching.BeamSession, "go_on", go_on)
        coming = parts(one, wanted)
        assert [next(coming)[0]["count"] for _ in range(2)] == [1, 2]
        next(coming)
    assert not one.live.waiting
    assert next(parts(one, wanted, came=2))[0]["count"] == 3


def test_the_first_steps_of_a_search_are_told_and_taken_as_such() -> None:
    one, wanted = example(0, best=2)
    result = engine_search(one, wanted)
    for count in (2, 5):
        header, arrays = asked(one, wanted, steps=count)
        every = [each for step in result.steps[:count] for each in step.candidates]
        assert not header["whole"] and header["count"] == count == len(arrays["greedy.id"].data)
        assert [every[at].ids for at in header["best"]] == [each.ids for each in result.steps[count - 1].best[:2]]
        nodes = node_table(one, wanted, steps=count)
        assert list(nodes.columns["text"]) == [each.text for each in every]
        assert nodes.about["steps"] == f"the first {count} of at most 12"
        paths = path_table(one, wanted, steps=count).columns
        last = result.steps[count - 1]
        leading = (*last.best, *last.kept)[0]
        assert tuple(id for text, id in zip(paths["text"], paths["id"], strict=True) if text == "best") == leading.ids
    assert not asked(one, wanted, steps=2)[0]["best"]
    assert asked(one, wanted, steps=99)[0] == asked(one, wanted)[0]


def test_the_lines_of_python_make_the_first_steps_of_a_search(capsys: pytest.CaptureFixture[str]) -> None:
    target = writing("translate-en-fr", "The dog sees a small white cat.", "Le")
    call = Call(repr("The dog sees a small white cat."), repr("Le"))
    for one, wanted in (example(0, early="yes"), (replace(target, call=call), BeamOptions(beams=3, penalty=0.5))):
        names: dict[str, Any] = {}
        exec(search_lines(one, wanted, steps=3), names)
        expected = engine_search(one, wanted).steps[:3]
        assert [[each.ids for each in step.kept] for step in names["found"]] == [
            [each.ids for each in step.kept] for step in expected
        ]
        assert tuple(step.id for step in names["steps"]) == search_to(one, wanted).greedy.ids[:3]
        assert repr(expected[-1].kept[0].text) in capsys.readouterr().out


def test_a_file_has_the_usual_search_only_where_none_was_looked_at() -> None:
    one = example()[0]
    (usual,) = (query for query in carry_queries(one, [], False, True) if query["ask"] == "beam")
    assert unpack(Page((GENERATE, one)).answer({"trace": one.digest, **usual}))[0]["whole"]
    assert "beam" not in [query["ask"] for query in carry_queries(one, [], True, True)]


def test_a_full_context_leaves_nothing_to_search() -> None:
    one = writing("translate-en-fr", "The dog sees a cat.")
    full = replace(one, prompt=replace(one.prompt, ids=(*one.prompt.ids, *[7] * (49 - len(one.prompt.ids)))))
    with pytest.raises(ValueError, match="context of 48 tokens is full. There is nothing to search"):
        search_to(full, BeamOptions())


def test_the_tables_are_of_the_search_that_is_shown() -> None:
    one, wanted = example(0, best=2)
    result = engine_search(one, wanted)
    every = [each for step in result.steps for each in step.candidates]
    nodes = node_table(one, wanted).columns
    assert list(nodes["text"]) == [each.text for each in every]
    assert list(nodes["log_probability"]) == pytest.approx([each.log_probability for each in every], abs=1e-6)
    assert [every[at].ids for at, place in enumerate(nodes["n_best"]) if place] and sum(nodes["on_greedy_path"]) == 6
    paths = path_table(one, wanted).columns
    rows = list(zip(paths["text"], paths["id"], paths["log_probability"], strict=True))
    best = [(id, value) for text, id, value in rows if text == "best"]
    assert tuple(id for id, _ in best) == result.hypotheses[0].ids
    own = log_probabilities(one, result.hypotheses[0].ids)
    assert [value for _, value in best] == pytest.approx(own.tolist(), abs=1e-4)


def test_the_lines_of_python_make_the_search(capsys: pytest.CaptureFixture[str]) -> None:
    for one, wanted in (example(0, best=2), example(1, early="never", penalty=0.5)):
        names: dict[str, Any] = {}
        exec(search_lines(one, wanted), names)
        expected = engine_search(one, wanted)
        assert [each.ids for each in names["result"].hypotheses] == [each.ids for each in expected.hypotheses]
        search = search_to(one, wanted)
        assert tuple(step.id for step in names["steps"]) == search.greedy.ids
        assert names["log_probability"] == pytest.approx(float(search.greedy.total[-1]), abs=1e-4)
        said = capsys.readouterr().out
        assert repr(expected.hypotheses[0].text) in said and "nats behind" in said

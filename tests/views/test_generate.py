"""What the page Generate is told: every number is the engine's, and a text in pieces is the text in one go."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from threading import Event, Thread, Timer
from typing import Any

import numpy as np
import pytest
import torch

from engine.generation.generate import Step, generate
from engine.generation.prompt import begin
from engine.generation.sampling import rank
from engine.inputs.readers import pictures
from engine.model.layers.softmax import softmax
from engine.runtime import library
from engine.runtime.run import run
from pages.controls.model_input.model_input import reading
from views.core.payload import Named, unpack
from views.core.questions import UNKNOWN, Page
from views.generate import session as generate_writing
from views.generate import streaming as generate_parts
from views.generate.generate import page_payload, puts_spaces
from views.generate.questions import GENERATE
from views.generate.session import Call, GenerationContext, Settings
from views.generate.steps import ROWS, STAGES, steps_payload
from views.generate.streaming import WAITING, Live
from views.generate.temperature import GRID, logits_after, most_probable, parse_numbers, temper

EVERY = Settings(temperature=1.3, top_k=40, top_p=0.95, min_p=0.02, typical_p=0.9, repetition_penalty=1.2, seed=3)
USUAL = Settings()
TEXT = "Max gave the red ball to"


def writing(name: str = "stories", text: Any = TEXT, target: str | None = None) -> GenerationContext:
    checkpoint = library.checkpoint(name)
    return GenerationContext(name, checkpoint, begin(checkpoint, text, target), Call(repr(text)))


def answered(one: GenerationContext, query: dict[str, Any]) -> bytes:
    return Page((GENERATE, one)).answer(query)


def streamed(one: GenerationContext, query: dict[str, Any]) -> Iterator[bytes]:
    return Page((GENERATE, one)).parts(query)


def kinds() -> list[GenerationContext]:
    pixels = library.checkpoint("digits-imagegpt").processor.ids(pictures()[0][0]).flatten()[:40]
    return [
        writing(),
        writing("translate-en-fr", "The dog sees a small white cat.", "Le"),
        writing("infill", "Max gave the red [gMASK] to Anna."),
        writing("digits-imagegpt", pixels),
    ]


def asked(one: GenerationContext, settings: Settings = USUAL, **query: Any) -> tuple[dict[str, Any], dict[str, Named]]:
    said = {name: value for name, value in vars(settings).items() if value != getattr(USUAL, name)}
    return unpack(answered(one, {"trace": one.digest, "settings": said, **query}))


def asked_plainly(one: GenerationContext, **query: Any) -> tuple[dict[str, Any], dict[str, Named]]:
    return unpack(answered(one, {"trace": one.digest, **query}))


def straight(one: GenerationContext, settings: Settings, most: int) -> list[Step]:
    prompt = one.prompt
    read, target = (prompt.source, prompt.ids) if prompt.source else (prompt.ids, None)
    return list(generate(one.checkpoint, read, most, target=target, **settings.options(one.checkpoint)))


def parts(
    one: GenerationContext, settings: Settings = USUAL, **query: Any
) -> Generator[tuple[dict[str, Any], dict[str, Named]]]:
    said = {name: value for name, value in vars(settings).items() if value != getattr(USUAL, name)}
    for part in streamed(one, {"trace": one.digest, "settings": said, "ask": "write", **query}):
        yield unpack(part)


def in_pieces(
    one: GenerationContext, settings: Settings, goal: int, begun: Sequence[int] = (), forget: bool = False
) -> tuple[list[int], dict[str, Any]]:
    ids = list(begun)
    for _ in range(goal + 1):
        for header, arrays in parts(one, settings, begun=ids, goal=goal):
            assert header["before"] == len(ids)
            ids += arrays["id"].data.tolist() if "id" in arrays else []
            if header["stop"]:
                return ids, header
        if forget:
            one = replace(one, live=Live())
    raise AssertionError("nothing ends it")


@pytest.fixture(params=[(0.0, 0.0), (0.0, 9.0), (0.005, 0.01), (9.0, 9.0)], ids=["tokens", "parts", "some", "whole"])
def pace(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question for every token, a part for every token, several of both, and all at once."""
    monkeypatch.setattr(generate_parts, "PACE", request.param[0])
    monkeypatch.setattr(generate_parts, "LONGEST", request.param[1])


@pytest.mark.usefixtures("pace")
@pytest.mark.parametrize("settings", [EVERY, Settings(method="greedy"), Settings(method="contrastive")])
def test_a_text_written_in_pieces_is_the_text_written_in_one_go(settings: Settings) -> None:
    for one in kinds():
        expected = straight(one, settings, 14)
        ids, header = in_pieces(one, replace(settings, most=14), 14)
        assert ids == [step.id for step in expected]
        assert expected[-1].stopped and header["stop"]["sentence"] == expected[-1].stopped.sentence


def test_a_text_that_is_written_on_says_how_many_tokens_were_asked_for_last() -> None:
    one, settings = writing(), Settings(method="greedy", most=5)
    ids, _ = in_pieces(one, settings, 5)
    for most in (1, 3):
        ids, header = in_pieces(one, replace(settings, most=most), len(ids) + most, ids)
        assert header["stop"]["sentence"].startswith(f"Reached the {most}-token limit")
    assert len(ids) == 9


def test_the_first_part_is_one_token_and_those_behind_it_are_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate_parts, "PACE", 9.0)
    first, rest = parts(writing(), begun=[], goal=9)
    assert len(first[1]["id"].data) == 1 and len(rest[1]["id"].data) == 8


def test_a_shared_server_is_asked_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate_parts, "PACE", 0.0)
    monkeypatch.setattr(generate_parts, "SHARED", 0.0)
    assert len(list(parts(writing(), begun=[], goal=9))) == 9
    assert len(list(parts(writing(), begun=[], goal=9, shared=True))) == 1


def test_what_no_generator_waits_for_is_written_on_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate_parts, "LONGEST", 0.0)
    one = writing()
    expected = [step.id for step in straight(one, EVERY, 8)]
    assert in_pieces(one, EVERY, 8, forget=True)[0] == expected


def test_what_was_broken_off_is_written_on_exactly_and_reads_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    one, begun = writing(), list[Any]()
    expected = [step.id for step in straight(one, EVERY, 8)]
    once = generate_writing.generate_steps
    counted = lambda *a, **more: begun.append(more["begun"]) or once(*a, **more)  # noqa: E731
    monkeypatch.setattr(generate_writing, "generate_steps", counted)
    monkeypatch.setattr(generate_parts, "PACE", 0.0)
    coming = parts(one, EVERY, begun=[], goal=8)
    _, first = next(coming)
    coming.close()
    assert in_pieces(one, EVERY, 8, begun=first["id"].data.tolist())[0] == expected and begun == [()]
    coming = parts(one, EVERY, begun=expected[:2], goal=8)  # the browser has another text
    assert next(coming)[1]["id"].data.tolist() == expected[2:3] and begun == [(), tuple(expected[:2])]
    next(coming)
    coming.close()  # the browser never got the second part
    assert in_pieces(one, EVERY, 8, begun=expected[:3])[0] == expected


def test_a_generator_waits_for_the_next_question_and_few_of_them_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate_parts, "LONGEST", 0.0)
    one = writing()
    list(parts(one, begun=[], goal=9))
    (waiting,) = one.live.waiting.values()
    before = waiting.coming
    list(parts(one, begun=[waiting.last.id], goal=9))
    assert list(one.live.waiting.values()) == [waiting] and waiting.coming is before and len(waiting.ids) == 1
    for seed in range(2 * WAITING):
        list(parts(one, Settings(seed=seed), begun=[], goal=9))
    assert len(one.live.waiting) == WAITING


def test_a_rerun_that_comes_while_another_still_writes_a_token_takes_the_text_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, begins, reached, free = writing(), [], Event(), Event()
    made = GenerationContext.generate

    def slow(here: GenerationContext, settings: Settings, most: int, begun: Sequence[int] = ()) -> Iterator[Step]:
        begins.append(tuple(begun))
        for step in made(here, settings, most, begun):
            if len(begins) == 1:
                reached.set()
                assert free.wait(60)
            yield step

    monkeypatch.setattr(GenerationContext, "generate", slow)
    broken: list[Any] = []
    old = Thread(target=lambda: broken.extend(parts(one, begun=[], goal=6)))
    old.start()
    assert reached.wait(60)
    Timer(0.2, free.set).start()
    ids, header = in_pieces(one, Settings(), 6)
    old.join(60)
    assert ids == [step.id for step in straight(one, Settings(), 6)] and header["stop"]["kind"] == "max_tokens"
    assert begins[0] == () and not any(told["stop"] for told, _ in broken)


def test_a_branch_goes_on_from_another_token_with_the_random_numbers_of_its_place() -> None:
    one = writing()
    first = [step.id for step in straight(one, EVERY, 6)]
    other = next(id for id in asked(one, EVERY, ask="step", begun=first[:2])[1]["top.id"].data[0] if id != first[2])
    begun = [*first[:2], int(other)]
    ids, header = in_pieces(one, EVERY, 6, begun)
    expected = generate(one.checkpoint, one.prompt.ids, 6, begun=begun, **EVERY.options(one.checkpoint))
    assert ids == [*begun, *(step.id for step in expected)] and header["stop"]["kind"] == "max_tokens"


@pytest.mark.parametrize("settings", [EVERY, replace(EVERY, repetition_penalty=1.0), Settings(method="greedy")])
def test_every_stage_of_a_step_is_the_engines(settings: Settings) -> None:
    for one in kinds():
        steps = straight(one, settings, 5)
        _, arrays = steps_payload(one, steps)
        for index, step in enumerate(steps):
            found, ids = step.distribution, arrays["top.id"][index]
            for stage in STAGES:
                torch.testing.assert_close(arrays[f"top.{stage}"][index], getattr(found, stage)[ids])
            for place, cut in enumerate(("in_top_k", "in_top_p", "in_min_p", "in_typical")):
                assert arrays[f"top.{cut}"][index].tolist() == getattr(found, cut)[ids].tolist()
                assert arrays["kept"][index, place] == getattr(found, cut).sum()
            own = softmax(step.logits)
            torch.testing.assert_close(arrays["top.own"][index], own[ids])
            torch.testing.assert_close(arrays["top.log_own"][index].exp(), own[ids])
            assert ids[-1] == step.id == arrays["id"][index]
            assert arrays["top.rank"][index].tolist() == [rank(step.logits, id) for id in ids.tolist()]
            rest = [value.sum() - value[ids[:-1]].sum() for value in (own, found.shares, found.probabilities)]
            torch.testing.assert_close(arrays["rest"][index], torch.stack(rest), atol=1e-5, rtol=0)


def test_the_rows_are_the_most_probable_and_entropy_is_that_of_the_whole_vocabulary() -> None:
    one = writing()
    (step,) = straight(one, EVERY, 1)
    _, arrays = steps_payload(one, [step])
    order = sorted(range(one.checkpoint.config.outputs), key=lambda id: -float(step.distribution.penalized[id]))
    assert arrays["top.id"][0, :-1].tolist() == order[:ROWS]
    for place, shares in enumerate((step.logits.double().softmax(-1), step.distribution.probabilities.double())):
        some = shares[shares > 0]
        bits = float(-(some * some.log2()).sum())
        assert float(arrays["entropy"][0, place]) == pytest.approx(bits, abs=1e-4)
        assert float(arrays["choices"][0, place]) == pytest.approx(2**bits, rel=1e-4)


def test_the_candidates_of_contrastive_search_are_the_engines_and_the_best_was_chosen() -> None:
    one, settings = writing(), Settings(method="contrastive", penalty_alpha=0.5, candidates=5)
    steps = straight(one, settings, 3)
    _, arrays = steps_payload(one, steps)
    for index, step in enumerate(steps):
        assert arrays["candidate.id"][index].tolist() == [made.id for made in step.candidates]
        scores = arrays["candidate.score"][index]
        np.testing.assert_allclose(scores, [made.score for made in step.candidates], atol=1e-6)
        assert arrays["id"][index] == arrays["candidate.id"][index][scores.argmax()]


def test_a_step_of_a_token_that_was_chosen_by_hand_is_about_that_token() -> None:
    one = writing()
    _, arrays = asked(one, ask="step", begun=[], id=7)
    assert arrays["id"].data.tolist() == [7] == arrays["top.id"].data[0, -1:].tolist()
    header, _ = asked(one, ask="step", begun=[], id=one.checkpoint.end_ids[0])
    assert header["stop"]["kind"] == "end"


def test_another_page_reads_the_text_of_a_step_from_the_fields_that_it_is_led_to() -> None:
    said = (
        {"text": TEXT},
        {"text": "The dog sees a small white cat.", "target": "Le"},
        {"text": "Max gave the red [gMASK] to Anna.", "span": ""},
        {"picture": "0", "given": "39"},
    )
    for one, fields in zip(kinds(), said, strict=True):
        one = replace(one, fields=fields)
        steps = straight(one, Settings(method="greedy"), 3)
        begun = [] if "given" in fields else [step.id for step in steps[:2]]
        header, _ = asked_plainly(one, ask="reread", begun=begun)
        address = {name: int(text) if text.isdigit() else text for name, text in header["address"].items()}
        found = reading(one.checkpoint, said={"temperature": 1.0, "top_k": 0, "top_p": 1.0, **address}.get)
        logits = run(one.checkpoint.model, found.read, "logits", target=found.target)["logits"]
        torch.testing.assert_close(logits[0, header["row"]], steps[len(begun)].logits, atol=1e-4, rtol=1e-4)
    unsaid = replace(writing(), fields={"text": TEXT})
    end = unsaid.checkpoint.end_ids[0]
    assert asked_plainly(unsaid, ask="reread", begun=[end])[0]["address"] is None  # for which no text stands


def test_behind_the_end_nothing_follows_and_that_is_said() -> None:
    one = writing()
    end = one.checkpoint.end_ids[0]
    for header, arrays in (asked(one, begun=[end], ask="step"), *parts(one, begun=[end], goal=9)):
        assert header["stop"]["kind"] == "end" and not arrays


def test_stop_strings_and_a_full_context_stop_it() -> None:
    one = writing()
    sentence = in_pieces(one, Settings(method="greedy", stop_at="zzz|."), 60)[1]["stop"]
    assert sentence["kind"] == "string" and "'.'" in sentence["sentence"]
    small = writing("stories", [5] * 255)
    assert small.prompt.tokens_left == 2
    ids, header = in_pieces(small, Settings(method="greedy"), 60)
    assert len(ids) == 2 and header["stop"]["kind"] == "context"
    assert next(parts(small, begun=ids, goal=60))[0]["stop"]["kind"] == "context"
    longer = begin(small.checkpoint, [5] * 257, longer=True)
    full = replace(small, prompt=longer)
    assert "256" in unpack(page_payload(full, {}))[0]["full"]["sentence"]
    assert unpack(page_payload(writing("stories", [5] * 256), {}))[0]["full"] is None


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"ask": "nothing"},
        {"ask": ["step"]},
        {"ask": "write", "begun": [], "goal": 5},
        {"ask": "step", "begun": [], "id": "x"},
        {"ask": "step", "begun": [], "settings": {"method": "beam"}},
        {"ask": "step", "begun": [], "settings": {"temperature": float("nan")}},
        {"ask": "step", "begun": [], "settings": {"temperature": -1}},
        {"ask": "step", "begun": [], "settings": {"top_k": 1.5}},
        {"ask": "step", "begun": [], "settings": {"most": 10**9}},
        {"ask": "step", "begun": [], "settings": {"stop_at": "x" * 10**4}},
        {"ask": "step", "begun": [], "settings": {"unknown": 1}},
        {"ask": "step", "begun": [], "settings": []},
        {"ask": "step"},
        {"ask": "step", "begun": [], "more": 1},
        {"ask": "steps", "begun": [], "ids": []},
    ],
)
def test_what_a_browser_should_not_ask_is_answered_with_a_sentence(query: dict[str, Any]) -> None:
    one = writing()
    with pytest.raises(ValueError, match=r"\w+ .*\."):
        answered(one, {"trace": one.digest, **query})


@pytest.mark.parametrize(
    "query",
    [
        {"ask": "nothing"},
        {"ask": ["write"]},
        {"begun": []},
        {"begun": [], "goal": 0},
        {"begun": [], "goal": 10**9},
        {"begun": [], "goal": True},
        {"begun": "12", "goal": 5},
        {"begun": [10**6], "goal": 5},
        {"begun": [-1], "goal": 5},
        {"begun": [True], "goal": 5},
        {"begun": [1] * 5000, "goal": 5},
        {"begun": [], "goal": 5, "settings": {"method": "beam"}},
    ],
)
def test_what_a_browser_should_not_ask_for_in_parts_is_answered_with_a_sentence(query: dict[str, Any]) -> None:
    one = writing()
    with pytest.raises(ValueError, match=r"\w+ .*\."):
        next(streamed(one, {"trace": one.digest, "ask": "write", **query}))


def test_of_another_prompt_nothing_is_answered() -> None:
    one = writing()
    for ask in ("step", "cache"):
        with pytest.raises(ValueError, match="have changed since"):
            answered(one, {"ask": ask, "trace": "other", "begun": []})
    with pytest.raises(ValueError, match="have changed since"):
        next(streamed(one, {"ask": "write", "trace": "other", "begun": [], "goal": 3}))
    assert one.digest != writing(text="Another").digest


def test_softmax_of_2_4_5_flattens_as_the_temperature_grows() -> None:
    found = temper(torch.tensor(parse_numbers("2, 4 5")))
    assert len(GRID) == 101 and GRID[0] == 0 and GRID[-1] == 5
    np.testing.assert_allclose(found.probability[20], [0.035, 0.259, 0.705], atol=5e-4)
    for t, row in zip(GRID[1:], found.probability[1:], strict=True):
        np.testing.assert_allclose(row, (torch.tensor([2.0, 4.0, 5.0]) / t).softmax(-1).numpy(), atol=1e-6)
    assert found.probability[0].tolist() == [0, 0, 1]
    assert all(a <= b + 1e-6 for a, b in pairwise(found.entropy.tolist()))
    assert found.choices[0] == 1 and 2.8 < found.choices[-1] < 3


@pytest.mark.parametrize("text", ["", "1", "1, x", "1, inf", "1, 101", "1 " * 9])
def test_numbers_that_make_no_distribution_are_refused_with_what_they_must_be(text: str) -> None:
    with pytest.raises(ValueError, match="2 to 8 numbers from -100 to 100"):
        parse_numbers(text)


def test_the_models_own_logits_are_tempered_over_the_whole_vocabulary() -> None:
    one = writing()
    ids = [step.id for step in straight(one, Settings(), 2)]
    logits = logits_after(one, tuple(ids))
    rows = most_probable(logits)
    tempered = temper(logits, rows)
    step = next(generate(one.checkpoint, one.prompt.ids, 3, begun=ids))
    expected = (step.logits / 2).softmax(-1)
    found = tempered.probability[40]
    np.testing.assert_allclose(found, expected[rows].numpy(), atol=1e-6)
    assert float(found.sum() + tempered.rest[40]) == pytest.approx(1, abs=1e-5)
    assert len(logits) == len(expected) and rows == expected.topk(8).indices.tolist()


def test_the_page_draws_the_prompt_and_of_a_picture_its_palette() -> None:
    for one in kinds():
        header, arrays = unpack(page_payload(one, {}))
        assert header["prompt"]["ids"] == list(one.prompt.ids) and header["left"] == one.prompt.tokens_left
        assert (header["source"] is not None) == bool(one.prompt.source)
        assert bool(arrays) == (one.name == "digits-imagegpt") == (header["grid"] is not None)
    processor = one.checkpoint.processor
    for id in (0, 5, 16):
        colour = processor.picture([id] * 64)[0, 0].flatten().tolist()
        assert arrays["palette"].data[id].tolist() == pytest.approx(colour)
    assert arrays["palette"].data.shape[0] == one.checkpoint.config.outputs == processor.start_id


@pytest.mark.parametrize(("name", "spaced"), [("stories", False), ("tales-bert", True), ("induction", False)])
def test_spaces_stand_between_tokens_where_the_tokenizer_puts_them(name: str, spaced: bool) -> None:
    tokenizer = library.checkpoint(name).tokenizer
    assert tokenizer is not None and puts_spaces(tokenizer) is spaced
    assert unpack(page_payload(writing(), {}))[0]["spaced"] is False


def test_nothing_is_said_that_a_setting_does_not_know() -> None:
    with pytest.raises(ValueError, match=UNKNOWN):
        Settings.from_browser({"beams": 4})
    assert Settings.from_browser({"temperature": 2}).options(writing().checkpoint) == {"temperature": 2.0}

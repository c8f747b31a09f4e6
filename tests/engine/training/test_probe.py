"""What a probe is to each kind of model, and what a frame says of it, held against plain PyTorch."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from engine.analysis.heads import head_scores
from engine.checkpoints import Checkpoint, load
from engine.data.translation import pair
from engine.generation.generate import generate
from engine.runtime.run import run
from engine.training import Recipe, RunFolder, read_recipe, train
from engine.training.probe.probe import Probe, default_probe, read_probe, watch
from engine.training.probe.probe_frame import record_frame, repeated_ids
from engine.training.probe.question import Question, question
from engine.training.probe.snapshot_frames import frame_files, frames_of_snapshots
from engine.training.sources import open_source

ROOT = Path(__file__).parents[3]
Opened = tuple[Checkpoint, Recipe, Probe]


@pytest.fixture(scope="session")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Opened]:
    """A shipped model, the recipe it was made with (on fewer documents, and few or no sentences in place of a corpus),
    and the probe that it would choose."""
    known: dict[str, Opened] = {}

    def open_one(name: str) -> Opened:
        if name not in known:
            recipe = read_recipe(ROOT / "assets" / "recipes" / f"{name}.toml")
            table = recipe.data.table
            if hasattr(table, "documents"):
                table = replace(table, documents=200, held_out=40)
            folder = tmp_path_factory.mktemp(name)
            if hasattr(table, "tales"):
                table = replace(table, tales="", sentences="")
            if recipe.data.kind == "rows":
                few = folder / "pairs.tsv"
                few.write_text("".join(f"{one.english}\t{one.french}\n" for one in map(partial(pair, 0), range(200))))
                table = replace(table, path=str(few))
            recipe = replace(recipe, data=replace(recipe.data, table=table))
            source = open_source(recipe, folder)
            known[name] = load(name), recipe, default_probe(recipe, source)
        return known[name]

    return open_one


def asked(opened: Opened) -> Question:
    checkpoint, recipe, probe = opened
    return question(probe, checkpoint, recipe)


def test_a_translation_is_watched_with_the_right_words_and_with_its_own(opened: Any) -> None:
    checkpoint, recipe, probe = opened("translate-en-fr")
    assert probe.text and probe.target
    found = record_frame(checkpoint, asked(opened("translate-en-fr")), 7).tensors
    source, target = checkpoint.tokenizer.encode(probe.text), checkpoint.target(probe.target)
    trace = run(checkpoint.model, source, target=target)
    for name, stack in (("attn", "attn"), ("encoder", "encoder.attn"), ("cross_attn", "cross_attn")):
        exact = trace.stack(f"{stack}.pattern")[:, 0]
        assert (found[f"patterns.{name}"].float() / 255 - exact).abs().max() <= 0.5 / 255 + 1e-6
    right = torch.tensor([*target.ids[1:], *checkpoint.end_ids])
    assert torch.allclose(found["loss"], cross_entropy(trace["logits"][0], right, reduction="none"), atol=1e-6)
    written = [step.id for step in generate(checkpoint, probe.text, greedy=True)]
    assert found["free.ids"].tolist() == written[: len(right) + 4]
    assert torch.equal(found["target.ids"], torch.tensor(target.ids, dtype=torch.int32))
    without = record_frame(checkpoint, question(Probe(probe.text), checkpoint, recipe), 7).tensors
    assert without["target.ids"].tolist() == [checkpoint.config.encoder.start, *written[:-1]]
    assert without["loss"].isnan().all()


def test_what_reverses_and_what_copies_is_seen_in_cross_attention(opened: Any) -> None:
    checkpoint, recipe, probe = opened("translate-en-fr")
    found = record_frame(checkpoint, asked(opened("translate-en-fr")), 0).tensors
    cross = found["patterns.cross_attn"].double() / 255
    words = cross.shape[-1]
    mirrored = torch.stack([cross[:, :, i, words - 1 - i] for i in range(words)]).mean(0)
    aligned = torch.stack([cross[:, :, i, i] for i in range(words)]).mean(0)
    assert torch.allclose(found["scores.cross.mirrored"].double(), mirrored, atol=0.003)
    assert torch.allclose(found["scores.cross.aligned"].double(), aligned, atol=0.003)


def test_an_induction_model_is_scored_on_random_tokens_that_are_repeated(opened: Any) -> None:
    checkpoint, recipe, probe = opened("induction")
    assert probe.text[: len(probe.text) // 2] * 2 == probe.text
    found = record_frame(checkpoint, asked(opened("induction")), 0).tensors
    ids = repeated_ids(checkpoint)
    assert ids is not None and torch.equal(ids[:24], ids[24:]) and len(ids[:24].unique()) == 24
    pattern = run(checkpoint.model, ids).stack("attn.pattern")[:, 0]
    after = torch.stack([pattern[:, :, pos, pos - 23] for pos in range(24, 48)]).mean(0)
    assert torch.allclose(found["scores.induction"], after, atol=1e-6) and after.max() > 0.5
    own = run(checkpoint.model, checkpoint.tokenizer.encode(probe.text))
    assert torch.allclose(found["scores.previous"], head_scores(own).previous)
    assert found["loss"][:-1].isfinite().all() and found["loss"][-1].isnan()
    best = own["logits"][0].softmax(-1).max(-1)
    assert torch.equal(found["top.ids"][:, 0].long(), best.indices)
    assert torch.allclose(found["top.p"][:, 0], best.values)


def test_a_gap_is_filled_behind_the_text(opened: Any) -> None:
    checkpoint, recipe, probe = opened("infill")
    assert "[gMASK]" in probe.text and probe.target
    given = asked(opened("infill"))
    span = checkpoint.tokenizer.encode(probe.target).ids
    answers = [id for id in given.asked if id != -100]
    assert answers == [*span, *checkpoint.end_ids] and given.asked[-len(answers) :] == tuple(answers)
    found = record_frame(checkpoint, given, 0).tensors
    assert int(found["loss"].isfinite().sum()) == len(answers) and len(found["free.ids"]) > 0
    with pytest.raises(ValueError, match=r"must have one gap, got 0; put \[gMASK\]"):
        question(Probe("A text without one."), checkpoint, recipe)


@pytest.mark.parametrize("name", ["translate-en-fr", "infill"])
def test_what_a_model_knows_it_writes_and_is_not_asked_twice(
    name: str, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, recipe, probe = opened(name)
    prompt = asked(opened(name)).prompt
    written = [step.id for step in generate(checkpoint, prompt, greedy=True)]
    own = checkpoint.tokenizer.decode(written, special=False)
    almost = " ".join([*own.split()[:-1], "the" if name == "infill" else "le"])
    for target, asks in ((own, 0), (almost, 1)):
        told: list[int] = []

        def counted(*given: Any, **how: Any) -> Any:
            told.append(1)  # noqa: B023
            return generate(*given, **how)

        monkeypatch.setattr("engine.training.probe.probe_frame.generate", counted)
        given = question(replace(probe, target=target), checkpoint, recipe)
        found = record_frame(checkpoint, given, 0).tensors["free.ids"].tolist()
        assert found == written[: given.room] and len(told) == asks


def test_a_masked_word_is_asked_where_the_text_hides_it(opened: Any) -> None:
    checkpoint, recipe, probe = opened("tales-bert")
    given = asked(opened("tales-bert"))
    whole = checkpoint.tokenizer.encode(probe.target).ids
    hidden = [i for i, id in enumerate(given.read.ids) if id == checkpoint.tokenizer.mask_id]
    assert len(hidden) == 1 and [i for i, id in enumerate(given.asked) if id != -100] == hidden
    assert given.asked[hidden[0]] == whole[hidden[0]]
    with pytest.raises(ValueError, match="with its hidden words shown"):
        question(replace(probe, target="lily"), checkpoint, recipe)


def test_a_picture_is_named_and_its_pixels_are_followed(opened: Any) -> None:
    checkpoint, recipe, probe = opened("digits-vit")
    assert probe == Probe(picture=0)
    found = record_frame(checkpoint, asked(opened("digits-vit")), 0).tensors
    assert torch.allclose(found["p"].sum(), torch.tensor(1.0)) and int(found["p"].argmax()) == int(found["asked"][0])
    assert torch.allclose(found["loss"], -found["p"][found["asked"].long()].log(), atol=1e-5)
    with pytest.raises(ValueError, match="one of 0 to 3"):
        question(Probe(picture=9999), checkpoint, recipe)
    with pytest.raises(ValueError, match="reads pictures, and the probe is a text"):
        question(Probe("seven"), checkpoint, recipe)
    pixels = record_frame(opened("digits-imagegpt")[0], asked(opened("digits-imagegpt")), 0).tensors
    assert pixels["ids"][1:].tolist() == pixels["asked"][:-1].tolist() and pixels["loss"][:-1].isfinite().all()


def test_a_decoder_alone_writes_the_target_behind_the_separator(tmp_path: Path) -> None:
    recipe = read_recipe(ROOT / "assets" / "lab" / "addition.toml")
    steps = replace(recipe.schedule, steps=2, warmup=0)
    short = replace(recipe, schedule=steps, machine=replace(recipe.machine, device="cpu", threads=1))
    list(train(short, tmp_path / "run"))
    probe = read_probe(tmp_path / "run")
    assert probe is not None and probe.text and probe.target
    checkpoint = load(tmp_path / "run" / "checkpoint")
    given = question(probe, checkpoint, short)
    together = question(Probe(f"{probe.text}={probe.target}"), checkpoint, short)
    assert given.read.ids == together.read.ids and given.asked == together.asked and given.prompt == together.prompt
    written = checkpoint.tokenizer.encode(probe.target).ids
    assert [id for id in given.asked if id != -100][: len(written)] == list(written)
    assert len(record_frame(checkpoint, given, 0).tensors["free.ids"]) > 0


@pytest.mark.parametrize(
    ("probe", "complaint"),
    [
        (Probe("été"), "no token for 'é'; use what it was trained on, such as"),
        (Probe("ab" * 60), "reads at most 80 tokens, got 120; shorten"),
        (Probe(""), "at least one token, got none"),
        (Probe(picture=1), "reads texts, and the probe is a picture"),
    ],
)
def test_what_a_model_cannot_read_is_a_sentence(opened: Any, probe: Probe, complaint: str) -> None:
    checkpoint, recipe, _ = opened("induction")
    with pytest.raises(ValueError, match=complaint):
        question(probe, checkpoint, recipe)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{}", "either a text or a picture"),
        ('{"text": "a", "picture": 1}', "either a text or a picture"),
        ('{"picture": -1}', "counted from 0"),
        ('{"text": 3}', "text must be"),
        ('{"text": "%s"}' % ("a" * 20_000), "at most 10,000 characters"),
        ("[1", "probe.json"),
    ],
)
def test_a_damaged_probe_is_a_sentence(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "probe.json").write_text(text)
    with pytest.raises(ValueError, match=complaint):
        read_probe(tmp_path)


def test_a_probe_is_read_back_and_named_by_what_it_says(tmp_path: Path) -> None:
    assert read_probe(tmp_path) is None
    watch(tmp_path, Probe("abc", "cba"))
    assert read_probe(tmp_path) == Probe("abc", "cba")
    assert len({one.digest for one in (Probe("abc", "cba"), Probe("abc"), Probe("abccba"), Probe(picture=1))}) == 4


def test_a_new_probe_has_its_whole_past_from_the_snapshots(recipe: Recipe, tmp_path: Path) -> None:
    run_folder = RunFolder(tmp_path / "run")
    list(train(recipe, run_folder.path))
    probe = Probe("the mat")
    made = list(frames_of_snapshots(run_folder.path, probe))
    assert [one.step for one in made] == run_folder.snapshot_steps() and all(one.kept for one in made)
    for one in made:
        checkpoint = load(run_folder.snapshot(one.step))
        fresh = record_frame(checkpoint, question(probe, checkpoint, recipe), one.step)
        assert all(torch.equal(fresh.tensors[n], t) or t.isnan().any() for n, t in one.tensors.items())
    assert list(frames_of_snapshots(run_folder.path, probe)) == []  # they are kept
    _, past = frame_files(run_folder.path, probe)
    assert past.exists()
    partly = Probe("a cat")
    leaving = frames_of_snapshots(run_folder.path, partly)
    first = next(leaving)
    leaving.close()
    assert [one.step for one in frames_of_snapshots(run_folder.path, partly)] == run_folder.snapshot_steps()[1:]
    assert first.step == 0

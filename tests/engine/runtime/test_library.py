"""Shared checkpoints and traces."""

import gc
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch

from engine import Checkpoint
from engine.analysis.overview_cache import LongRun, OverviewCache
from engine.budget import budget
from engine.edits import AttentionTemperature
from engine.model.config import MLP, Attention, ModelConfig
from engine.model.transformer import Transformer, initialise
from engine.runtime import library
from engine.tokenizers.encoding import Encoding

CONFIG = ModelConfig(vocab_size=9, context=16, d_model=8, layers=1, attention=Attention(heads=2), mlp=MLP(8))


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model in the models folder, called "mine"."""
    Checkpoint(model=initialise(Transformer(CONFIG), 0)).save(tmp_path / "mine")
    monkeypatch.setattr(budget, "models_folder", str(tmp_path))
    library.checkpoint.cache_clear()
    return "mine"


def test_a_folder_in_the_models_folder_is_offered_and_opens(own: str) -> None:
    assert own in library.names()
    assert library.checkpoint(own).model.config == CONFIG


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("../mine", "open no paths"), ("/etc", "open no paths"), ("nothing", "there is no model called"),
     ("", "there is no model called"), ("hub:own/model", "there is no model called")],
)  # fmt: skip
def test_a_name_is_never_a_path(own: str, name: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        library.checkpoint(name)


def test_the_same_text_is_computed_once_and_another_edit_anew(own: str) -> None:
    traces = library.Traces(budget=10**9)
    text = Encoding.from_ids([1, 2, 3])
    plain = traces.trace(own, text)
    assert traces.trace(own, Encoding.from_ids([1, 2, 3])) is plain
    hot = traces.trace(own, text, [AttentionTemperature(3.0)])
    assert hot is not plain and not torch.equal(hot["logits"], plain["logits"])
    assert traces.trace(own, text, [AttentionTemperature(3.0)]) is hot


def test_a_full_library_forgets_what_was_used_longest_ago(own: str) -> None:
    one = library.Traces(budget=10**9)
    first, second, third = (Encoding.from_ids([i, i]) for i in (1, 2, 3))
    size = one.trace(own, first).bytes
    traces = library.Traces(budget=2 * size)
    a, b = traces.trace(own, first), traces.trace(own, second)
    assert traces.trace(own, first) is a
    traces.trace(own, third)  # no room for three: the second goes
    assert traces.trace(own, first) is a
    assert traces.trace(own, second) is not b


def test_a_checkpoint_that_was_opened_again_begins_from_its_own_runs(own: str) -> None:
    """Between two looks at one text the checkpoint may have made room for another."""
    traces, text = library.Traces(budget=10**9), Encoding.from_ids([1, 2, 3])
    plain = traces.trace(own, text)
    library.checkpoint.cache_clear()
    hot = traces.trace(own, text, [AttentionTemperature(3.0)])
    assert not torch.equal(hot["logits"], plain["logits"])
    assert torch.equal(traces.trace(own, text)["logits"], plain["logits"])


def stored(folder: Path, seed: int = 0) -> Path:
    Checkpoint(model=initialise(Transformer(CONFIG), seed), name=folder.name).save(folder)
    return folder


def test_a_folder_with_weights_alone_is_offered_too(own: str, tmp_path: Path) -> None:
    (tmp_path / own / "config.json").unlink()
    assert own in library.names()


def test_what_a_person_opens_gets_a_name_that_only_those_know_who_have_it(tmp_path: Path) -> None:
    folder = stored(tmp_path / "away")
    name = library.offer(library.LoadOptions(folder, title="away"))
    assert re.fullmatch(r"away~[0-9a-f]{10}", name)
    assert library.offer(library.LoadOptions(folder, title="away")) == name
    assert name not in library.names() and library.names(name, "away", "nothing")[-1] == name
    assert library.checkpoint(name) is library.checkpoint(name)
    assert library.checkpoint_place(name).folders[0] == folder


@pytest.mark.parametrize("title", ["../../etc", "a/b\0c", "<b>$x$</b>", "", "~", "x" * 500])
def test_a_name_is_made_of_plain_letters_whatever_the_title(title: str, tmp_path: Path) -> None:
    name = library.offer(library.LoadOptions(tmp_path / "nowhere", title=title))
    assert re.fullmatch(r"[\w.-]{1,40}~[0-9a-f]{10}", name)


def test_a_folder_that_was_written_again_is_another_checkpoint(tmp_path: Path) -> None:
    folder = stored(tmp_path / "run")
    first = library.offer(library.LoadOptions(folder, title="run"))
    before = library.checkpoint(first).model.state_dict()["embed.tokens.weight"].clone()
    stored(folder, seed=1)
    os.utime(folder / "model.safetensors", ns=(1, 1))
    second = library.offer(library.LoadOptions(folder, title="run"))
    after = library.checkpoint(second).model.state_dict()["embed.tokens.weight"]
    assert second != first and not torch.equal(before, after)


def test_the_same_checkpoint_opened_otherwise_is_another_and_the_way_back_leads_to_the_first(own: str) -> None:
    kept = library.rename_with(own, dtype=torch.bfloat16)
    assert library.checkpoint(kept).model.dtype is torch.bfloat16
    assert library.checkpoint(own).model.dtype is torch.float32
    assert library.rename_with(kept, dtype=torch.float32) == own
    assert library.rename_with(own) == own


def test_open_checkpoints_are_kept_within_a_budget(tmp_path: Path) -> None:
    one, two = (library.offer(library.LoadOptions(stored(tmp_path / n), title=n)) for n in ("one", "two"))
    shelf = library.Checkpoints(budget=library.weight(library.checkpoint(one)))
    first = shelf(one)
    assert shelf(one) is first and shelf.has(one)
    shelf(two)
    assert not shelf.has(one) and shelf.has(two)
    assert shelf(one) is not first


def test_two_sessions_open_a_checkpoint_once(tmp_path: Path) -> None:
    name = library.offer(library.LoadOptions(stored(tmp_path / "twice"), title="twice"))
    shelf = library.Checkpoints(budget=10**9)
    with ThreadPoolExecutor(8) as pool:
        assert len({id(found) for found in pool.map(shelf, [name] * 8)}) == 1


def test_uploads_are_deleted_when_others_need_the_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_offers", library.LruCache[library.LoadOptions](budget=1))
    folders = [TemporaryDirectory(dir=tmp_path, prefix="upload") for _ in range(2)]
    names = []
    for folder in folders:
        stored(Path(folder.name))
        names.append(library.offer(library.LoadOptions(Path(folder.name), title="mine", folder=folder)))
    paths = [Path(folder.name) for folder in folders]
    del folder, folders
    gc.collect()
    assert [path.is_dir() for path in paths] == [False, True]
    assert [library.knows(name) for name in names] == [False, True]
    with pytest.raises(ValueError, match="upload its files again"):
        library.parse_name(names[0])


def test_an_upload_to_one_process_of_a_server_opens_in_the_others_while_it_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "uploads_folder", str(tmp_path / "told"))
    held = TemporaryDirectory(dir=tmp_path)
    name = library.offer(library.LoadOptions(stored(Path(held.name)), title="mine", folder=held))
    first = library.checkpoint(name).model.state_dict()
    monkeypatch.setattr(library, "_offers", library.LruCache[library.LoadOptions](budget=1))  # as in another process
    monkeypatch.setattr(library, "checkpoint", library.Checkpoints(budget=10**9))
    assert library.knows(name) and library.parse_name(name).uploaded and library.parse_name(name).folder is None
    again = library.checkpoint(name).model.state_dict()
    assert all(torch.equal(tensor, again[key]) for key, tensor in first.items())
    halved = library.rename_with(name, dtype=torch.bfloat16)
    assert library.parse_name(halved).uploaded, "it comes from others, however it is opened"
    held.cleanup()
    assert not library.knows(name) and not library.knows(halved)
    with pytest.raises(ValueError, match="upload its files again"):
        library.parse_name(name)


def test_a_hubs_checkpoint_is_known_by_its_name_once_it_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    commit, repo = "0" * 40, tmp_path / "models--animals--cat"
    assert not library.knows("hub:animals/cat")
    stored(repo / "snapshots" / commit)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(commit)
    assert library.knows("hub:animals/cat") and library.knows("hub:animals/cat@main")
    assert library.checkpoint("hub:animals/cat").config == CONFIG
    for name in ("hub:animals/dog", "hub:../cat", "hub:animals/cat@../../x", "hub:"):
        assert not library.knows(name)


def test_an_answer_is_computed_once_and_a_refusal_is_not_kept() -> None:
    answers, made = library.Answers(budget=100), []

    def make() -> bytes:
        made.append(1)
        if len(made) == 1:
            raise ValueError("not yet")
        return b"7" * 60

    with pytest.raises(ValueError, match="not yet"):
        answers.answer({"checkpoint": "a", "sizes": True}, make)
    question = {"checkpoint": "a", "sizes": True}
    assert answers.answer(question, make) == answers.answer({"sizes": True, "checkpoint": "a"}, make)
    assert len(made) == 2
    answers.answer({"checkpoint": "b"}, make)
    answers.answer({"checkpoint": "a", "sizes": True}, make)  # the room was another's
    assert len(made) == 4


def test_long_runs_and_whole_ones_share_one_budget(own: str) -> None:
    model, hook = library.checkpoint(own).model, "blocks.0.attn.pattern"
    texts = [Encoding.from_ids([i] * 8) for i in range(4)]
    traces = library.Traces(budget=library.Traces(10**9).trace(own, texts[0]).bytes)
    glances = OverviewCache(traces.shelf)
    first = glances.overview(LongRun(model, texts[0]), hook, 0, cells=4)
    assert glances.overview(LongRun(model, texts[0]), hook, 1, cells=4) is first
    traces.trace(own, texts[1])  # as large as all the room there is
    assert glances.overview(LongRun(model, texts[0]), hook, 0, cells=4) is not first


def test_a_head_of_a_long_run_is_kept_as_long_as_nobody_else_can_have_its_name(own: str) -> None:
    text, hook = Encoding.from_ids([1, 2, 3]), "blocks.0.attn.pattern"
    glances = OverviewCache(library.LruCache(10**9))
    for seed in range(3):  # each freed before the next, whose objects may take its place in memory
        model = initialise(Transformer(CONFIG), seed)
        made = LongRun(model, text)
        for head in (1, 0):
            whole = library.run(model, text)[hook][0, head]
            torch.testing.assert_close(glances.head(made, hook, head, cells=4), whole)
        del model, made
        gc.collect()


def test_what_is_dropped_from_a_shelf_makes_room_for_as_much() -> None:
    shelf = library.LruCache(10)
    for key in ("old", "young"):
        shelf.keep(key, key, 5)
    shelf.drop("young")
    shelf.drop("never there")
    shelf.keep("new", "new", 5)
    assert [shelf.find(key) for key in ("old", "young", "new")] == ["old", None, "new"]

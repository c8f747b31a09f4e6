import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import disk_usage
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
import torch
from huggingface_hub import close_session, constants, file_download, hf_hub_download, try_to_load_from_cache
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from engine import load
from engine.checkpoints import Checkpoint, hub_transfer
from engine.checkpoints.hub import LARGEST_INDEX, Download, Progress, download_folder, fetch, parse, plan
from engine.checkpoints.hub_transfer import HubName
from engine.runtime import library
from engine.runtime.run import run
from engine.tokenizers.kinds.word import train
from tests.engine import tiny
from tests.engine.checkpoints.against import shaken
from tests.engine.checkpoints.gguf_files import write_gguf
from tests.engine.checkpoints.hub_server import COMMIT, Hub, Repo, serving, sha256

CAT = HubName("animals/cat")
IDS = [2, 1, 3, 0]
WEIGHTS = "model.safetensors"
LLAMA = {"vocab_size": 34, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small GPT-2 with a tokenizer, as `save` writes it."""
    tokenizer = train(["the cat sat on the mat"])
    folder = tmp_path_factory.mktemp("made") / "cat"
    model = tiny.model(tiny.config(vocab_size=tokenizer.vocab_size, d_model=128))
    Checkpoint(model, tokenizer, {"title": "A cat"}, name="cat").save(folder)
    return folder


@pytest.fixture(scope="module")
def files(whole: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in whole.iterdir()}


@pytest.fixture(scope="module")
def fresh() -> Iterator[Callable[[], Hub]]:
    with serving() as fresh:
        yield fresh
        close_session()


@pytest.fixture
def hub(fresh: Callable[[], Hub], files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """Holds `animals/cat`. The cache is in tmp_path/home, and whoever asks the default host gets nowhere."""
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    nowhere = "http://127.0.0.1:1/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", nowhere)
    monkeypatch.setattr(hub_transfer, "PAUSE", 0.01)
    monkeypatch.setattr(file_download, "time", SimpleNamespace(sleep=lambda seconds: None))
    hub = fresh()
    monkeypatch.setenv("HF_ENDPOINT", hub.address + "/")
    hub.repos[CAT.repo] = Repo(dict(files))
    return hub


def logits(folder: Path) -> Tensor:
    return run(load(folder).model, IDS)["logits"]


def fetched(name: HubName = CAT) -> Path:
    download = plan(name)
    fetch(download)
    return download.folder


def steps_of(download: Download) -> list[Progress]:
    """What a whole download reports."""
    steps: list[Progress] = []
    fetch(download, report=steps.append)
    return steps


class Stop(Exception):
    """A person's, on the way."""


def stopped(download: Download, when: Callable[[Progress], bool]) -> Progress:
    """Where a download was stopped from within its report: the first for which `when` holds."""
    steps: list[Progress] = []

    def report(step: Progress) -> None:
        steps.append(step)
        if when(step):
            raise Stop

    with pytest.raises(Stop):
        fetch(download, report=report)
    return steps[-1]


def written(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


# names


@pytest.mark.parametrize(
    ("text", "repo", "revision"),
    [
        ("hub:animals/cat", "animals/cat", "main"),
        ("hub:gpt2", "gpt2", "main"),
        ("hub:a-b/c_d.e-1@v1.0", "a-b/c_d.e-1", "v1.0"),
        ("hub:animals/cat@refs/pr/3", "animals/cat", "refs/pr/3"),
        (f"hub:animals/cat@{COMMIT}", "animals/cat", COMMIT),
    ],
)
def test_a_name_is_read(text: str, repo: str, revision: str) -> None:
    assert parse(text) == HubName(repo, revision)
    assert str(parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hub:",
        "animals/cat",
        "hub:../cat",
        "hub:animals/..",
        "hub:/etc/passwd",
        "hub:a/b/c",
        "hub:animals/my cat",
        "hub:animals\\cat",
        "hub:https://example.org/animals/cat",
        "hub:animals/cat?x=1",
        "hub:animals/cat#x",
        "hub:animals/cät",
        "hub:animals/cat\0",
        "hub:animals/cat\n",
        "hub:animals/cat@",
        "hub:animals/cat@../../x",
        "hub:animals/cat@a/../b",
        "hub:animals/cat@/etc",
        "hub:animals/cat@a//b",
        "hub:animals/cat@a b",
        "hub:animals/cat@-x",
        "hub:animals/cat@" + "a" * 201,
        "hub:animals/" + "a" * 97,
    ],
)
def test_what_is_no_plain_name_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"Expected hub:org/name, .* or hub:org/name:Q4_K_M, .* got"):
        parse(text)


# what comes


def test_a_whole_checkpoint_comes_and_gives_the_same_logits(hub: Hub, whole: Path, tmp_path: Path) -> None:
    repo = hub.repos[CAT.repo]
    for extra in ("modeling_cat.py", "pytorch_model.bin", "onnx/model.onnx", "flax_model.msgpack"):
        repo.files[extra] = b"not wanted"
    repo.files |= {"README.md": b"A cat.", "chat_template.jinja": b"{{ messages }}"}
    folder = download_folder("hub:animals/cat")
    assert torch.equal(logits(folder), logits(whole))
    assert load(folder).card == {"title": "A cat"}
    assert load("hub:animals/cat").name == "hub:animals/cat"
    came = {path.name for path in folder.iterdir()}
    assert came == {path.name for path in whole.iterdir()} | {"README.md", "chat_template.jinja"} == hub.paths()
    assert all((folder / name).read_bytes() == data for name, data in repo.files.items() if (whole / name).exists())
    assert not [path for path in written(tmp_path / "home") if path.endswith(".incomplete")]


def test_sizes_are_known_before_and_progress_reaches_them(hub: Hub, files: dict[str, bytes], tmp_path: Path) -> None:
    download = plan(CAT)
    assert {file.name: file.size for file in download.files} == {name: len(data) for name, data in files.items()}
    assert download.total_bytes == download.missing_bytes == sum(map(len, files.values()))
    assert download.files[-1].name == WEIGHTS
    assert (download.commit, download.licence, download.gated, download.private) == (COMMIT, "mit", False, False)
    assert not (tmp_path / "home").exists()  # a plan writes nothing
    steps = steps_of(download)
    done = [step.done_bytes for step in steps]
    assert done == sorted(done)
    assert steps[-1] == Progress(WEIGHTS, download.total_bytes, download.total_bytes)
    assert {step.total_bytes for step in steps} == {download.total_bytes}
    assert len([step for step in steps if step.file == WEIGHTS]) > 2
    again = plan(CAT)
    assert again.missing_bytes == 0
    before = len(hub.asked)
    assert [step.done_bytes for step in steps_of(again)][-1] == download.total_bytes
    assert len(hub.asked) == before  # nothing is fetched twice


def test_what_the_listing_says_of_a_repository(hub: Hub) -> None:
    hub.repos[CAT.repo].facts = {
        "gated": "manual",
        "private": True,
        "tags": ["x", "license:other"],
        "cardData": {"license": "other", "license_name": "cat-licence"},
    }
    download = plan(CAT)
    assert (download.gated, download.private, download.licence) == (True, True, "cat-licence")


def test_a_revision_is_fetched_and_found_again_by_its_name(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fetched(parse("hub:animals/cat@v1.0"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert download_folder("hub:animals/cat@v1.0") == download_folder(f"hub:animals/cat@{COMMIT}") == folder
    with pytest.raises(FileNotFoundError, match="hub:animals/cat has not been fetched whole"):
        download_folder("hub:animals/cat")


def sharded(files: dict[str, bytes], folder: Path) -> dict[str, bytes]:
    """The same checkpoint, its weights in two files and an index."""
    (folder / WEIGHTS).write_bytes(files[WEIGHTS])
    tensors = load_file(folder / WEIGHTS)
    names = sorted(tensors)
    halves = {f"model-0000{i}-of-00002.safetensors": names[i - 1 :: 2] for i in (1, 2)}
    made = {name: data for name, data in files.items() if name != WEIGHTS}
    for file, half in halves.items():
        save_file({name: tensors[name] for name in half}, folder / file)
        made[file] = (folder / file).read_bytes()
    table = {name: file for file, half in halves.items() for name in half}
    return made | {f"{WEIGHTS}.index.json": json.dumps({"weight_map": table}).encode()}


def test_shards_come_by_their_index(hub: Hub, whole: Path, files: dict[str, bytes], tmp_path: Path) -> None:
    made = sharded(files, tmp_path)
    hub.repos[CAT.repo].files = made | {"model-00003-of-00003.safetensors": b"of another", "pytorch_model.bin": b"x"}
    download = plan(CAT)
    assert {file.name for file in download.files} == set(made)
    assert download.missing_bytes == download.total_bytes - len(made[f"{WEIGHTS}.index.json"])  # read to know the rest
    assert torch.equal(logits(fetched()), logits(whole))


def test_a_pickle_comes_where_there_is_nothing_else(
    hub: Hub, whole: Path, files: dict[str, bytes], tmp_path: Path
) -> None:
    torch.save(load_file(whole / WEIGHTS), tmp_path / "w.bin")
    made = {name: data for name, data in files.items() if name != WEIGHTS}
    hub.repos[CAT.repo].files = made | {"pytorch_model.bin": (tmp_path / "w.bin").read_bytes()}
    assert torch.equal(logits(fetched()), logits(whole))


def test_what_is_no_checkpoint_is_told_by_what_is_there(hub: Hub) -> None:
    hub.repos[CAT.repo].files = {"README.md": b"", "model.onnx": b""}
    with pytest.raises(ValueError, match=r"animals/cat has README.md, model.onnx"):
        plan(CAT)


def test_an_empty_file_comes_too(hub: Hub) -> None:
    hub.repos[CAT.repo].files["merges.txt"] = b""
    assert (fetched() / "merges.txt").read_bytes() == b""


# interrupted


BLOCK = hub_transfer.BLOCK


def test_a_broken_connection_is_continued_by_itself(hub: Hub, files: dict[str, bytes]) -> None:
    size = len(files[WEIGHTS])
    hub.drop_after = [4 * BLOCK, 3 * BLOCK]
    folder = fetched()
    assert (folder / WEIGHTS).read_bytes() == files[WEIGHTS]
    asked = hub.large(WEIGHTS)
    assert [request.headers["Range"] for request in asked] == [None, f"bytes={4 * BLOCK}-", f"bytes={7 * BLOCK}-"]
    assert sum(request.sent for request in asked) == size


def test_a_break_within_a_block_loses_less_than_a_block(hub: Hub, files: dict[str, bytes]) -> None:
    size = len(files[WEIGHTS])
    hub.drop_after = [size // 3]
    assert (fetched() / WEIGHTS).read_bytes() == files[WEIGHTS]
    assert size <= sum(request.sent for request in hub.large(WEIGHTS)) < size + BLOCK


@pytest.mark.parametrize("fault", ["reset", "busy"])
def test_a_moments_fault_is_continued_by_itself(fault: str, hub: Hub, files: dict[str, bytes]) -> None:
    """A reset connection, a server that answers 503."""
    hub.drop_after = [5 * BLOCK]
    hub.reset, hub.busy = fault == "reset", 2 if fault == "busy" else 0
    assert (fetched() / WEIGHTS).read_bytes() == files[WEIGHTS]
    assert len(hub.large(WEIGHTS)) == (2 if fault == "reset" else 4)


def test_an_interrupted_download_is_continued_by_the_next(hub: Hub, whole: Path, files: dict[str, bytes]) -> None:
    size = len(files[WEIGHTS])
    part = 6 * BLOCK
    hub.drop_after = [part]
    download = plan(CAT)

    def report(step: Progress) -> None:
        hub.down = step.file == WEIGHTS and step.done_bytes > download.total_bytes - size

    with pytest.raises(ConnectionError, match=rf"broke off at {part} of {size} bytes of {WEIGHTS} .* continues from"):
        fetch(download, report=report)
    hub.down = False
    hub.stored.clear()
    rest = plan(CAT)
    assert rest.missing_bytes == size - part
    assert [step.done_bytes for step in steps_of(rest)][0] > 0
    (request,) = hub.large(WEIGHTS)
    assert request.headers["Range"] == f"bytes={part}-"
    assert request.sent == size - part
    assert torch.equal(logits(download.folder), logits(whole))


def test_a_stopped_download_keeps_what_has_come(hub: Hub, files: dict[str, bytes]) -> None:
    download = plan(CAT)
    before = download.total_bytes - len(files[WEIGHTS])
    last = stopped(download, lambda step: step.file == WEIGHTS and step.done_bytes > before)
    come = last.done_bytes - before
    assert 0 < come < len(files[WEIGHTS])
    assert plan(CAT).missing_bytes == len(files[WEIGHTS]) - come
    hub.stored.clear()
    folder = fetched()
    assert hub.large(WEIGHTS)[0].headers["Range"] == f"bytes={come}-"
    assert (folder / WEIGHTS).read_bytes() == files[WEIGHTS]


def test_a_server_without_ranges_sends_it_again_from_the_beginning(hub: Hub, files: dict[str, bytes]) -> None:
    hub.ranges = False
    hub.drop_after = [len(files[WEIGHTS]) // 2]
    assert (fetched() / WEIGHTS).read_bytes() == files[WEIGHTS]
    assert [request.sent for request in hub.large(WEIGHTS)] == [len(files[WEIGHTS]) // 2, len(files[WEIGHTS])]


def test_a_connection_that_keeps_breaking_is_given_up(hub: Hub) -> None:
    hub.drop_after = [0] * 100
    with pytest.raises(ConnectionError, match=r"broke off at 0 of \d+ bytes of model.safetensors"):
        fetched()
    assert len(hub.large(WEIGHTS)) == hub_transfer.TRIES


def test_two_sessions_fetch_a_file_once(hub: Hub, files: dict[str, bytes]) -> None:
    before = sum(map(len, files.values())) - len(files[WEIGHTS])
    half, seen = Event(), Event()
    first: list[Progress] = []
    second: list[Progress] = []

    def report_first(step: Progress) -> None:
        first.append(step)
        if step.file == WEIGHTS and step.done_bytes > before and not half.is_set():
            half.set()
            assert seen.wait(30)

    def report_second(step: Progress) -> None:
        second.append(step)
        if step.file == WEIGHTS:
            seen.set()

    thread = Thread(target=fetch, args=(plan(CAT), None, report_first))
    thread.start()
    assert half.wait(30)
    fetch(plan(CAT), report=report_second)
    thread.join()
    watched = next(step for step in second if step.file == WEIGHTS)
    assert before < watched.done_bytes < watched.total_bytes  # the first one's progress, while it has the lock
    assert first[-1].done_bytes == second[-1].done_bytes == watched.total_bytes
    assert len(hub.large(WEIGHTS)) == 1


# what came is not what was announced


@pytest.mark.parametrize("file", ["config.json", WEIGHTS])
def test_other_contents_are_deleted(file: str, hub: Hub, files: dict[str, bytes], tmp_path: Path) -> None:
    download = plan(CAT)
    data = bytearray(files[file])
    data[len(data) // 2] ^= 1
    hub.repos[CAT.repo].files[file] = bytes(data)
    with pytest.raises(ValueError, match=rf"{file} of animals/cat must have the announced digest \w+, got \w+; it was"):
        fetch(download)
    assert not (download.folder / file).exists()
    assert not [path for path in (tmp_path / "home").rglob("*") if path.is_file() and path.read_bytes() == data]
    assert plan(CAT).missing_bytes > 0


@pytest.mark.parametrize(("change", "got"), [(lambda data: data + b"more", "more"), (lambda data: data[:-9], r"\d+")])
@pytest.mark.parametrize("file", ["config.json", WEIGHTS])
def test_another_size_than_announced_is_told(
    file: str, change: Callable[[bytes], bytes], got: str, hub: Hub, files: dict[str, bytes]
) -> None:
    download = plan(CAT)
    hub.repos[CAT.repo].files[file] = change(files[file])
    with pytest.raises(ValueError, match=rf"{file} of animals/cat must be {len(files[file])} bytes .*, got {got}; it"):
        fetch(download)
    assert not (download.folder / file).exists()


def test_without_a_digest_the_size_is_checked(hub: Hub, files: dict[str, bytes], whole: Path) -> None:
    hub.repos[CAT.repo].sibling = lambda row: {"rfilename": row["rfilename"], "size": row["size"]}
    assert torch.equal(logits(fetched()), logits(whole))


# what a hub refuses


@pytest.mark.parametrize(
    ("token", "state", "name", "kind", "message"),
    [
        ("", {}, "hub:animals/dog", FileNotFoundError, "has no animals/dog, or it is private: .* set HF_TOKEN to a"),
        ("hf_valid", {}, "hub:animals/dog", FileNotFoundError, "has no animals/dog, or it is private: .* a token in"),
        ("", {"private": True}, "hub:animals/cat", FileNotFoundError, "or it is private"),
        ("hf_wrong", {}, "hub:animals/cat", PermissionError, "does not accept the token in HF_TOKEN"),
        ("", {}, "hub:animals/cat@v9", FileNotFoundError, "has no revision 'v9'; name one of its branches"),
        (
            "",
            {"gated": True},
            "hub:animals/cat",
            PermissionError,
            "is gated: ask for access at 127.0.0.1.*/cat,",
        ),
        ("hf_other", {"gated": True}, "hub:animals/cat", PermissionError, "which the account of the present one has"),
    ],
)
def test_a_refusal_is_one_sentence(
    token: str,
    state: dict[str, bool],
    name: str,
    kind: type[Exception],
    message: str,
    hub: Hub,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    for fact, value in state.items():
        setattr(hub.repos[CAT.repo], fact, value)
    with pytest.raises(kind, match=message) as caught:
        download_folder(name)
    assert "hf_" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_token_reaches_the_hub_alone(hub: Hub, whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repos[CAT.repo].private = hub.repos[CAT.repo].gated = True
    monkeypatch.setenv("HF_TOKEN", hub.token + "\n")
    assert torch.equal(logits(fetched()), logits(whole))
    assert {asked.headers["Authorization"] for asked in hub.asked} == {f"Bearer {hub.token}"}
    assert hub.stored
    assert not [asked for asked in hub.stored if "hf_" in str(asked.headers)]


def test_nobody_is_told_what_is_installed_here(hub: Hub) -> None:
    fetched()
    assert {asked.headers["User-Agent"] for asked in hub.asked + hub.stored} == {"loupe"}


def test_a_stored_login_is_not_used(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text(hub.token)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    assert huggingface_hub.get_token() == hub.token
    fetched()
    assert not [asked for asked in hub.asked + hub.stored if asked.headers["Authorization"]]


def test_a_token_that_is_none_is_not_repeated(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret\nX-Other: 1")
    with pytest.raises(PermissionError, match="HF_TOKEN must be a token") as caught:
        plan(CAT)
    assert "secret" not in str(caught.value)
    assert not hub.asked


@pytest.mark.parametrize("page", [b"<!DOCTYPE html>", b"[]", b"{}", b'{"id": "x", "siblings": [3]}', b"[" * 100_000])
def test_an_endpoint_that_is_no_hub_is_told(page: bytes, hub: Hub) -> None:
    hub.page = page
    with pytest.raises(ValueError, match=r"must answer as a hub does, .* correct HF_ENDPOINT"):
        plan(CAT)


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1", "nowhere", "http://[", "ftp://127.0.0.1"])
def test_an_endpoint_that_cannot_be_reached_is_told(endpoint: str, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    with pytest.raises((ConnectionError, ValueError), match="HF_ENDPOINT"):
        plan(CAT)


# without a network


def test_offline_is_what_was_fetched_before(hub: Hub, whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    online = plan(CAT)
    fetch(online)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    before = len(hub.asked)
    download = plan(CAT)
    assert (download.online, download.folder, download.missing_bytes) == (False, online.folder, 0)
    assert download.total_bytes == online.total_bytes
    assert torch.equal(logits(download_folder("hub:animals/cat")), logits(whole))
    assert len(hub.asked) == before


@pytest.mark.parametrize("down", ["offline", "unreachable", "busy"])
def test_without_a_network_there_is_one_sentence(down: str, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped(plan(CAT), lambda step: step.file == WEIGHTS)  # half of it is not enough
    hub.down = down == "busy"
    if down == "offline":
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)  # as where it was set before Python was started
    if down == "unreachable":
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    said = "has not been fetched whole" if down == "offline" else "cannot be reached|answers 503"
    with pytest.raises(FileNotFoundError if down == "offline" else ConnectionError, match=said):
        plan(CAT)


def test_an_unreachable_hub_gives_what_was_fetched_before(hub: Hub, whole: Path) -> None:
    folder = fetched()
    hub.down = True
    assert not plan(CAT).online
    assert download_folder("hub:animals/cat") == folder


def test_the_cache_is_the_one_that_huggingface_hub_reads(hub: Hub, files: dict[str, bytes], tmp_path: Path) -> None:
    folder = fetched()
    cache = tmp_path / "home" / "hub"
    for name, data in files.items():
        path = hf_hub_download(CAT.repo, name, cache_dir=cache, local_files_only=True)
        assert Path(path) == folder / name
        assert Path(path).read_bytes() == data
        assert try_to_load_from_cache(CAT.repo, name, cache_dir=cache, revision="main") == path


def test_the_cache_can_be_elsewhere(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "elsewhere"))
    assert fetched() == tmp_path / "elsewhere" / "models--animals--cat" / "snapshots" / COMMIT
    assert not (tmp_path / "home").exists()


def test_what_huggingface_hub_fetched_is_not_fetched_again(hub: Hub, files: dict[str, bytes], tmp_path: Path) -> None:
    for name in files:
        hf_hub_download(CAT.repo, name, cache_dir=tmp_path / "home" / "hub", endpoint=hub.address, token=False)
    assert plan(CAT).missing_bytes == 0
    hub.down = True
    assert plan(CAT).total_bytes == sum(map(len, files.values()))


# limits


def test_more_than_the_disk_has_room_for_is_refused_before_the_start(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    download = plan(CAT)
    asked = len(hub.asked)
    free = disk_usage(tmp_path)._replace(free=download.total_bytes)
    monkeypatch.setattr("shutil.disk_usage", lambda path: free)
    with pytest.raises(ValueError, match=r"needs \d\.\d MB in .*home/hub, and \d\.\d MB are free; make room"):
        fetch(download)
    assert len(hub.asked) == asked
    assert not (tmp_path / "home").exists()


def test_more_than_is_allowed_is_refused_before_the_start(hub: Hub) -> None:
    download = plan(CAT)
    with pytest.raises(ValueError, match=r"at most \d\.\d MB, got \d\.\d MB for hub:animals/cat; raise LOUPE_MAX"):
        fetch(download, most=download.total_bytes - 1)
    fetch(download, most=download.total_bytes)
    assert plan(CAT).missing_bytes == 0
    fetch(plan(CAT), most=0)  # nothing is left to download


# what cannot be trusted


@pytest.mark.parametrize(
    "name", ["../../x", "a/../../x", "/etc/passwd", "..", "", "a\0b", "..\\..\\x", "C:\\x", 3, None, ["x"]]
)
def test_a_listing_that_leads_out_of_its_folder_is_refused(name: Any, hub: Hub, tmp_path: Path) -> None:
    row = {"rfilename": name, "size": 1, "blobId": "0" * 40}
    good = hub.repos[CAT.repo].listing(CAT.repo)["siblings"]
    hub.repos[CAT.repo].facts = {"siblings": [*good, row]}
    with pytest.raises(ValueError, match="animals/cat must list files inside itself, and lists"):
        plan(CAT)
    assert not written(tmp_path)


@pytest.mark.parametrize(
    "table",
    [
        {"w": "../../x.safetensors"},
        {"w": "/x.safetensors"},
        {"w": "pytorch_model.bin"},
        {"w": "modeling_cat.py"},
        {"w": "absent.safetensors"},
        {"w": "sub/model.safetensors"},
        {"w": 3},
        {},
        None,
        ["model.safetensors"],
    ],
)
def test_an_index_names_shards_beside_itself_alone(table: Any, hub: Hub, files: dict[str, bytes]) -> None:
    made = {name: data for name, data in files.items() if name != WEIGHTS}
    index = json.dumps({"weight_map": table}).encode()
    others = dict.fromkeys(("pytorch_model.bin", "modeling_cat.py", "sub/model.safetensors"), b"x")
    hub.repos[CAT.repo].files = made | others | {f"{WEIGHTS}.index.json": index}
    with pytest.raises(ValueError, match=rf"{WEIGHTS}.index.json must (have a table weight_map|name files of)"):
        plan(CAT)
    assert hub.paths() == {f"{WEIGHTS}.index.json"}


def test_an_index_of_any_size_is_not_fetched(hub: Hub) -> None:
    repo = hub.repos[CAT.repo]
    repo.files = {f"{WEIGHTS}.index.json": b"{}"}
    repo.sibling = lambda row: row | {"size": LARGEST_INDEX + 1}
    with pytest.raises(ValueError, match="must be an index of at most 67108864 bytes, got 67108865"):
        plan(CAT)
    assert not hub.paths()


@pytest.mark.parametrize("commit", ["../../../x", "main", "", None, 3, COMMIT.upper(), COMMIT + "/.."])
def test_a_commit_that_is_none_is_refused(commit: Any, hub: Hub) -> None:
    hub.repos[CAT.repo].facts = {"sha": commit}
    with pytest.raises(ValueError, match="must say which commit hub:animals/cat is at, got"):
        plan(CAT)


@pytest.mark.parametrize(
    "change",
    [{"blobId": "../../x"}, {"blobId": "0" * 39}, {"size": -1}, {"size": "9"}, {"size": None}, {"size": True}],
)
def test_sizes_and_digests_that_are_none_are_refused(change: dict[str, Any], hub: Hub) -> None:
    hub.repos[CAT.repo].sibling = lambda row: row | (change if row["rfilename"] == "config.json" else {})
    with pytest.raises(ValueError, match="must give config.json a size and a digest, got"):
        plan(CAT)


def nested() -> st.SearchStrategy[Any]:
    texts = st.text(max_size=8) | st.sampled_from(["../../x", "/x", COMMIT])
    return st.recursive(
        st.none() | st.booleans() | st.integers() | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=5,
    )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_listing_is_planned_or_refused_and_nothing_is_written_outside(
    data: st.DataObject, hub: Hub, tmp_path: Path
) -> None:
    field = data.draw(st.sampled_from(["id", "sha", "private", "gated", "tags", "cardData", "siblings", "row"]))
    if field == "row":
        row = {key: data.draw(nested()) for key in ("size", "blobId", "lfs")}
        hub.repos[CAT.repo].facts = {"siblings": [{"rfilename": WEIGHTS} | row]}
    else:
        hub.repos[CAT.repo].facts = {field: data.draw(nested())}
    try:
        download: Download | None = plan(CAT)
    except (ValueError, OSError) as error:
        assert "\n" not in str(error)
        download = None
    assert download is None or os.path.commonpath([download.folder, tmp_path / "home" / "hub"]).endswith("hub")
    assert not written(tmp_path)


def test_the_names_of_the_cache_are_the_digests(hub: Hub, files: dict[str, bytes], tmp_path: Path) -> None:
    blob = (fetched() / WEIGHTS).resolve()
    assert blob.name == sha256(files[WEIGHTS])
    assert blob.parent == tmp_path / "home" / "hub" / "models--animals--cat" / "blobs"


def test_of_several_gguf_files_the_one_that_is_named_or_usual_is_fetched(hub: Hub, tmp_path: Path) -> None:
    made = {}
    for scheme, name in (("Q4_0", "cat-Q4_K_M.gguf"), ("Q8_0", "cat-Q8_0.gguf")):
        write_gguf(shaken(LlamaForCausalLM(LlamaConfig(**LLAMA))), tmp_path / name, scheme)
        made[name] = (tmp_path / name).read_bytes()
    hub.repos["org/cat"] = Repo({"README.md": b"a cat", "config.json": b"{}", **made})
    named, usual = (parse(f"hub:org/cat{quant}") for quant in (":q8_0", ""))
    assert str(named) == "hub:org/cat:q8_0" and plan(named).files[-1].name == "cat-Q8_0.gguf"
    fetch(plan(usual))
    assert plan(usual).opened.name == "cat-Q4_K_M.gguf" and not plan(usual).missing_bytes
    assert load("hub:org/cat").report.rows[0].dtype == "Q4_0" and library.hub_folder("hub:org/cat:q8_0") is None
    assert load("hub:org/cat:q8_0").report.rows[0].dtype == "Q8_0" and library.hub_folder("hub:org/cat:q8_0")
    hub.repos["org/cat"].files.pop("cat-Q4_K_M.gguf")
    hub.repos["org/cat"].files["cat-Q5_0.gguf"] = b"GGUF"
    with pytest.raises(ValueError, match="Say which file of org/cat is meant, as hub:org/cat:Q4_K_M; it has cat-Q5_0"):
        plan(usual)
    with pytest.raises(ValueError, match="hub:org/name:Q4_K_M, of letters"):
        parse("hub:org/cat:../x")

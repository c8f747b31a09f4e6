"""What a wheel holds, and that it works from an empty folder."""

import hashlib
import json
import os
import re
import runpy
import subprocess
import sys
import tomllib
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copy2
from threading import Thread
from urllib.error import URLError
from urllib.request import urlopen

import pytest

import loupe
from engine.budget import budget
from engine.checkpoints import load, shipped
from engine.checkpoints.locate import SHIPPED, shipped_names
from engine.cli.doctor import EXTRAS
from engine.cli.main import main
from engine.places import ASSETS, ROOT, SERVER
from server.settings import FIRST_MODEL
from tests.browser.harness import free_port

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WITHIN = 25e6  # bytes that shipped models take in a wheel, which is packed
BYTES = bytes(range(256)) * 400


def listed(*files: str) -> set[str]:
    """Lines of files of requirements that name a distribution."""
    lines = [line.split("  #")[0] for file in files for line in (ROOT / file).read_text(encoding="utf-8").splitlines()]
    return {line for line in lines if line and not line.startswith(("#", "-"))}


def test_a_package_needs_what_the_files_of_requirements_say() -> None:
    extras = {name: set(lines) for name, lines in PROJECT["optional-dependencies"].items()}
    extras["app"].remove(f"{PROJECT['name']}[class]")
    assert {*PROJECT["dependencies"], *extras["app"], *extras["class"]} == listed("requirements.txt")
    files = ("requirements-ray.txt", "requirements-store.txt", "requirements-replicas.txt")
    assert extras["cluster"] == listed(*files)
    assert extras["sign-in"] == listed("requirements-sign-in.txt")
    assert extras["compare"] | extras["notebook"] | extras["sound"] < listed("requirements-dev.txt")
    assert EXTRAS.keys() == extras.keys()


def test_a_wheel_holds_what_the_first_page_needs_and_knows_the_rest() -> None:
    table = tomllib.loads(shipped.TABLE.read_text(encoding="utf-8"))
    for name, said in table.items():
        weights = (SHIPPED / name / shipped.WEIGHTS).read_bytes()
        assert said == {"bytes": len(weights), "sha256": hashlib.sha256(weights).hexdigest()}, name
    held = set(shipped_names()) - table.keys()
    assert {FIRST_MODEL, "stories"} < held
    assert sum(len(zlib.compress(file.read_bytes())) for name in held for file in (SHIPPED / name).iterdir()) < WITHIN
    for recipe in (path for room in ("adapt", "lab", "preferences") for path in (ASSETS / room).rglob("*.toml")):
        base = tomllib.loads(recipe.read_text(encoding="utf-8")).get("base")
        assert base is None or base in held, f"{recipe}: pages read its base when they are imported"
    assert not shipped.list_shipped_weights()  # a checkout has its own


class Became(Exception):
    pass


def test_open_serves_a_folder_first_and_says_what_is_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = list[str]()

    def become(program: str, words: list[str]) -> None:
        told.extend(words)
        raise Became

    for name in ("LOUPE_MODELS", "LOUPE_MODEL"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr("os.execv", become)
    mine = tmp_path / "mine"
    (mine / "latest").mkdir(parents=True)
    (mine / "latest" / shipped.WEIGHTS).symlink_to(SHIPPED / "induction" / shipped.WEIGHTS)
    with pytest.raises(Became):
        main(["open", str(mine), "--port", "1", "--api"])
    assert told[1:] == [str(SERVER), "--host=127.0.0.1", "--workers=1", "--port=1", "--api"]
    assert (os.environ["LOUPE_MODELS"], os.environ["LOUPE_MODEL"]) == (str(mine), "latest")
    capsys.readouterr()
    refused = {tmp_path: "a checkpoint folder must hold", SHIPPED / "induction": "give it another name"}
    for folder, problem in refused.items():
        assert main(["open", str(folder)]) == 1 and problem in capsys.readouterr().err


def test_the_command_measures_a_text_and_finds_what_is_amiss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyse", "induction", "abcabc"]) == 0
    first, *rows = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    config = load("induction").config
    assert len(rows) == config.layers * config.attention.heads and {len(row) for row in rows} == {len(first)}
    best = max(float(row[first.index("induction (share)")]) for row in rows)
    assert 0.3 < best <= 1  # what it was trained to have
    assert main(["analyse", "induction", "abcabc", "--of", "layers"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + (config.layers + 1) * 6
    assert main(["analyse", "digits-vit", "7"]) == 1 and "reads pictures" in capsys.readouterr().err
    assert main(["doctor"]) == 0 and "!" not in (told := capsys.readouterr().out)
    oldest = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["browserslist"]
    assert all(one.split()[-1] in told for one in oldest)
    (tmp_path / "file").touch()
    monkeypatch.setattr(budget, "runs_folder", str(tmp_path / "file" / "runs"))
    assert main(["doctor"]) == 1 and "set LOUPE_RUNS" in capsys.readouterr().out


class Sender(BaseHTTPRequestHandler):
    """Breaks off in the middle of the whole, and gives the rest to who asks for it."""

    content = BYTES

    def do_GET(self) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("range", ""))
        start = int(asked[1]) if asked else 0
        there = self.path == "/w/small/model.safetensors"
        self.send_response(404 if not there else 206 if asked else 200)
        self.send_header("content-length", str(len(self.content) - start))
        self.end_headers()
        self.wfile.write(self.content[start:] if asked else self.content[: len(self.content) // 2])

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def sending(content: bytes) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Of", (Sender,), {"content": content}))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_weights_are_fetched_once_go_on_where_they_broke_off_and_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shipped" / "small").mkdir(parents=True)
    (tmp_path / "shipped" / "small" / "config.json").write_text("{}")
    wanted = shipped.ShippedWeights("small", len(BYTES), hashlib.sha256(BYTES).hexdigest())
    monkeypatch.setattr(shipped, "CHECKPOINTS", tmp_path / "shipped")
    monkeypatch.setattr(shipped, "USER", tmp_path / "user")
    monkeypatch.setattr(shipped, "list_shipped_weights", lambda: {"small": wanted})
    with pytest.raises(shipped.NoWeights, match="set LOUPE_WEIGHTS"):
        shipped.fetch("small", "")
    with pytest.raises(shipped.NoWeights, match="go online"):
        shipped.fetch("small", f"http://127.0.0.1:{free_port()}")
    with sending(BYTES[::-1]) as address, pytest.raises(shipped.NoWeights, match="what came is kept"):
        shipped.fetch("small", f"{address}/w")
    with sending(BYTES[::-1]) as address, pytest.raises(shipped.NoWeights, match="SHA-256"):
        shipped.fetch("small", f"{address}/w")
    with sending(BYTES) as address:
        with pytest.raises(shipped.NoWeights, match="does not exist"):
            shipped.fetch("small", address)
        with pytest.raises(shipped.NoWeights, match="what came is kept"):
            shipped.fetch("small", f"{address}/w")
        folder = shipped.fetch("small", f"{address}/w/")
    assert sorted(file.name for file in folder.iterdir() if file.suffix != ".lock") == ["config.json", shipped.WEIGHTS]
    assert (folder / shipped.WEIGHTS).read_bytes() == BYTES
    assert shipped.fetch("small", "") == folder  # without anybody who sends


def commit(folder: Path, tag: str = "") -> None:
    """In a git repository, made where there is none."""
    person = ["-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false"]
    for words in (["init"], [*person, "commit", "--allow-empty", "-m", "x"], *([["tag", tag]] if tag else [])):
        subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)


def test_a_tag_of_git_is_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[str]()
    monkeypatch.setattr("setuptools.setup", lambda **given: told.append(given["version"]))
    (tmp_path / "loupe").mkdir()
    for file in ("setup.py", "loupe/__init__.py"):
        copy2(ROOT / file, tmp_path / file)

    def version() -> str:
        runpy.run_path(str(tmp_path / "setup.py"))
        return told[-1]

    assert version() == loupe.__version__
    commit(tmp_path)
    assert version() == loupe.__version__
    commit(tmp_path, "v1.2")
    assert version() == "1.2"
    commit(tmp_path)
    commit(tmp_path, "vendored")
    assert re.fullmatch(r"1\.2\.post2\+g[0-9a-f]{7,}", version())
    commit(tmp_path, "v2.0rc1")
    assert version() == "2.0rc1"
    commit(tmp_path, "v3-broken")
    assert version() == loupe.__version__
    monkeypatch.setenv("PATH", "")
    assert version() == loupe.__version__
    (tmp_path / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: loupe-engine\nVersion: 1.2.post2+gabc\n")
    assert version() == "1.2.post2+gabc"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with what a wheel installs. It is built from links, so that nothing is written into Loupe's folder."""
    pytest.importorskip("setuptools")
    place = tmp_path_factory.mktemp("wheel")
    (place / "source").mkdir()
    commit(place / "source", "v9.8")
    for path in ROOT.iterdir():
        if path.name not in (".git", "build", "runs", "models") and path.suffix != ".egg-info":
            (place / "source" / path.name).symlink_to(path)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    alone = ["--no-deps", "--no-index"]  # with the packages of this environment
    make = ["wheel", *alone, "--no-build-isolation", "--wheel-dir", str(place), str(place / "source")]
    subprocess.run([*pip, *make], check=True, timeout=120)
    (wheel,) = place.glob("*.whl")
    put = ["install", *alone, "--target", str(place / "packages"), str(wheel)]
    subprocess.run([*pip, *put], check=True, timeout=120)
    return place / "packages"


@pytest.fixture
def told(installed: Path, tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Starts Python in an empty folder of a person without anything, with the packages of this environment."""
    for name in ("empty", "home"):
        (tmp_path / name).mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LOUPE_", "PYTHON"))}
    person = {"HOME": str(tmp_path / "home"), "XDG_DATA_HOME": str(tmp_path / "home"), "PYTHONPATH": str(installed)}

    def start(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-P", *words],
            cwd=tmp_path / "empty",
            env=kept | person,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    return start


LINES = """
import sys
import loupe
assert loupe.__version__ == "9.8"
checkpoint = loupe.load("stories")
trace = loupe.run(checkpoint.model, checkpoint.tokenizer.encode("Max gave the ball to"))
*_, last = loupe.generate(checkpoint, "Max", max_tokens=3)
assert trace["blocks.0.attn.pattern"].ndim == 4 and last.text.startswith("Max")
assert not {"streamlit", "pandas"} & sys.modules.keys()
assert "<html" in loupe.show(checkpoint, trace).html and "streamlit" not in sys.modules
"""


PAGES = """
import loupe
from streamlit.testing.v1 import AppTest
from pages.controls.menu import entries
from engine.places import SCRIPT
for page, lesson in [*((one.path, "") for one in entries()), ("pages/learn/course.py", "fill_gap")]:
    app = AppTest.from_file(str(SCRIPT), default_timeout=60)
    app.query_params["lesson"] = lesson
    app.switch_page(page).run()
    assert not app.exception, (page, app.exception[0].value)
assert "set LOUPE_WEIGHTS" in app.warning[0].value  # of a model that is fetched
"""


SETTINGS = """
import loupe, asgi, tomllib
from engine.places import ROOT
from streamlit import get_option
settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())
for section in ("runner", "global", "client"):
    assert all(get_option(f"{section}.{name}") == value for name, value in settings[section].items()), section
assert get_option("theme.light.primaryColor") == settings["theme"]["light"]["primaryColor"]
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the person's folder is another elsewhere")
def test_a_wheel_works_from_an_empty_folder(
    installed: Path, tmp_path: Path, told: Callable[..., subprocess.Popen[str]]
) -> None:
    assert {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")} == {"loupe", "bin"}
    before = sorted(path for path in installed.rglob("*") if "__pycache__" not in path.parts)
    lines, doctor = told("-c", LINES), told("-m", "loupe", "doctor")
    train = told(str(installed / "bin" / "loupe"), "train", "stories", "--steps", "10", "--quiet")
    for process in (lines, doctor, train, told("-c", PAGES), told("-c", SETTINGS)):
        said, _ = process.communicate(timeout=120)
        assert process.returncode == 0, said
    status = (tmp_path / "home" / "loupe" / "runs" / "stories" / "status.json").read_text()
    assert '"finished"' in status
    port = free_port()
    server = told("-m", "loupe", "serve", "--port", str(port))
    try:
        assert wait_for(server, f"http://127.0.0.1:{port}/health") == b'{"status":"ok"}'
    finally:
        server.terminate()
        server.communicate(timeout=60)
    assert sorted(path for path in installed.rglob("*") if "__pycache__" not in path.parts) == before
    assert not list((tmp_path / "empty").iterdir())


def wait_for(server: subprocess.Popen[str], address: str) -> bytes:
    while server.poll() is None:
        try:
            with urlopen(address, timeout=60) as answer:
                return bytes(answer.read())
        except URLError:
            continue
    raise AssertionError(f"it ended: {server.communicate()[0]}")

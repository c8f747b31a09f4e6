"""What one session may ask for and where it begins, in one place: each a key of one settings file, or a variable.

`LOUPE_SETTINGS` names the file, `loupe.toml` in the working directory at first; the environment counts more.
docs/operation.md lists all of them, by `Setting.row`.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.places import made

FILE = "LOUPE_SETTINGS"
USUAL_FILE = "loupe.toml"
MIB = 2**20


@dataclass(frozen=True)
class Setting:
    """Key of the settings file. `unit` is "" where it is a text."""

    name: str
    default: int | str
    unit: str
    meaning: str

    @property
    def variable(self) -> str:
        return f"LOUPE_{self.name.upper()}"

    @property
    def row(self) -> str:
        """Its line in the table of docs/operation.md."""
        default = f"{self.default:,} {self.unit}" if self.unit else f"`{self.default}`" if self.default else ""
        return f"| `{self.name}` | `{self.variable}` | {default} | {self.meaning} |"


class Settings:
    """Declared settings by name, and what a file's `values` and an `environment` say of them.

    Reading one raises SystemExit, with a sentence, for a value of the wrong kind: nothing of Loupe can go on.
    """

    def __init__(self, values: Mapping[str, object], environment: Mapping[str, str]) -> None:
        self.values, self.environment = values, environment
        self.declared = dict[str, Setting]()

    def read_number(self, name: str, default: int, unit: str, meaning: str) -> int:
        setting = self.declared[name] = Setting(name, default, unit, meaning)
        place, value = self._find(setting)
        if isinstance(value, str) and place == setting.variable and value.strip().isdecimal():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise SystemExit(f"{place} must be a whole number of {unit}, such as {default}, got {value!r}; correct it.")
        return value

    def read_mib(self, name: str, default: int, meaning: str) -> int:
        """Bytes."""
        return MIB * self.read_number(name, default, "MiB", meaning)

    def read_text(self, name: str, default: str, meaning: str) -> str:
        setting = self.declared[name] = Setting(name, default, "", meaning)
        place, value = self._find(setting)
        if not isinstance(value, str):
            raise SystemExit(f"{place} must be a text in quotation marks, got {value!r}; correct it.")
        return value

    def read_folder(self, name: str, default: str, meaning: str) -> str:
        found = self.read_text(name, default, meaning)
        if found and Path(found).is_file():
            place = self._find(self.declared[name])[0]
            raise SystemExit(f"{place} must be a folder, got the file {found[:200]!r}; correct it.")
        return found

    def _find(self, setting: Setting) -> tuple[str, object]:
        """Name of the setting where it stands, and its value there."""
        if setting.variable in self.environment:
            return setting.variable, self.environment[setting.variable]
        return setting.name, self.values.get(setting.name, setting.default)

    def refuse_unknown(self) -> None:
        """Raises SystemExit, with a sentence, for a key that is no setting's. Once all are declared."""
        for name in self.values:
            if name not in self.declared:
                raise SystemExit(f"{name[:80]!r} is no setting; docs/operation.md lists them: correct its name.")


def read_settings_file(environment: Mapping[str, str], folder: Path) -> tuple[Path | None, dict[str, object]]:
    """The file that is named, or the usual one of `folder`, and what it says; None where there is none.

    Raises SystemExit, with a sentence, for one that does not read.
    """
    named = environment.get(FILE)
    place = folder / (named or USUAL_FILE)
    if not named and not place.is_file():
        return None, {}
    try:
        return place.resolve(), tomllib.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # no file, no UTF-8, or no TOML
        raise SystemExit(f"The settings {place} must be a TOML file: {error}; correct it, or unset {FILE}.") from None


SETTINGS_FILE, _values = read_settings_file(os.environ, Path.cwd())
if SETTINGS_FILE is not None:
    os.environ[FILE] = str(SETTINGS_FILE)  # trainings, which begin in another folder, read the same
settings = Settings(_values, os.environ)
_number, _mib, _text, _folder = settings.read_number, settings.read_mib, settings.read_text, settings.read_folder

MAX_TOKENS = _number("max_tokens", 256, "tokens", "of a text drawn on a page")
LONG_TOKENS = _number("long_tokens", 1024, "tokens", "of a text on Attention, Compare and Why this token")
SURPRISE_TOKENS = _number("surprise_tokens", 20_000, "tokens", "of a text whose surprise is measured")
MAX_EDITS = _number("max_edits", 64, "edits", "of one what-if, and so of a link")
FLOW_WORK = _number("flow_work", 80_000_000, "weights × keys", "of a token's attention flow: some 5 seconds")
TRACE_MEMORY = _mib("trace_memory_mib", 1024, "of traces kept for all sessions of a process")
MAX_DOWNLOAD = _mib("max_download_mib", 8192, "of one checkpoint from a hub")
FIRST_MODEL = _text("model", "everyday", "that a visitor meets: a shipped one, or one of the folder `models`")
MODELS_FOLDER = _folder("models", made("models"), "folder whose folders are offered beside the shipped models")
WEIGHTS_ADDRESS = _text("weights", "", "address of the weights that a package leaves out: `https://host/folder`")
MAX_UPLOAD = _mib("max_upload_mib", 2048, "of one uploaded checkpoint, unpacked")
UPLOADS_FOLDER = _folder("uploads", "", "folder where the processes of one server tell each other of uploads")
UPLOADS_DISK = _mib("uploads_disk_mib", 16_384, "of all uploads that are kept")
MODELS_MEMORY = _mib("models_memory_mib", 8192, "of the weights of open checkpoints")
DEVICE = _text("device", "cpu", "where opened models are computed: `auto`, `cpu`, `cuda` or `cuda:N`")
MAX_FORWARDS = _number("max_forwards", 2, "passes", "through a model that compute at a time in a process, where heavy")
HEAVY = _number("heavy", 20_000, "million", "weights × tokens from which a pass is heavy: some second on a CPU")
ADAPTERS_MEMORY = _mib("adapters_memory_mib", 1024, "of adapters that edits name")

# Of trainings, which are processes of their own.
_RUNS = made("runs")
RUNS_PLACE = _folder("runs", _RUNS, "folder of run directories, or where they lie as fsspec says: `s3://bucket/runs`")
RUNS_COPY = _folder("runs_copy", _RUNS, "folder of their copies on this machine, where `runs` is no folder")
RUNS_STORE, RUNS_FOLDER = (RUNS_PLACE, RUNS_COPY) if "://" in RUNS_PLACE else ("", RUNS_PLACE)
CLASSES_FILE = _text("classes", "", "SQLite file of class sessions, `.classes.sqlite` in the folder `runs` at first")
CLASSES_FILE = CLASSES_FILE or os.path.join(RUNS_FOLDER, ".classes.sqlite")
CLASSES_PLACE = _text("database", "", "PostgreSQL that keeps them instead ([deploy.md](deploy.md))") or CLASSES_FILE
LTI_FILE = _text("lti", "", "settings of the platforms that may open Loupe ([lti.md](lti.md))")
RAY_ADDRESS = _text("ray_address", "", "of a Ray cluster that trains and surveys instead ([deploy.md](deploy.md))")
MAX_TRAININGS = _number("max_trainings", 2, "trainings", "at a time; others wait for their turn")
MAX_QUEUED = _number("max_queued", 16, "trainings", "that wait")
MAX_STEPS = _number("max_steps", 1_000_000, "steps", "of a training")
MAX_LAYERS = _number("max_layers", 256, "layers", "of a model that is trained")
MAX_PARAMETERS = _number("max_parameters", 100_000_000, "parameters", "of a model that is trained")
MAX_RUN_SECONDS = _number("max_run_seconds", 86_400, "seconds", "from one start of a training to its stop")
RUNS_DISK = _mib("runs_disk_mib", 16_384, "of all run directories")
DELETED_DAYS = _number("deleted_days", 7, "days", "for which a deleted run can be had back")
CORPORA_FOLDER = _folder("corpora", "", "folder of published texts that shipped recipes learn from")
MAX_DATA = _mib("max_data_mib", 64, "of one file to learn from")
DATA_DISK = _mib("data_disk_mib", 4096, "of all of them")

# Of the server.
ADDRESS = _text("address", "", "by which others reach this server, such as a proxy's: `https://loupe.school.example/lab`")
METRICS_TOKEN = _text("metrics_token", "", "that who asks for `/metrics` from elsewhere sends")
API_TOKEN = _text("api_token", "", "that programs send to a server with `--api` ([api.md](api.md)); else made")
API_REPLY = _mib("api_reply_mib", 64, "of one trace that a program asks for")
LOG = _text("log", "", "`json` for one line of JSON an event on standard error")
FRAME_ANCESTORS = _text("frame_ancestors", "", "addresses of sites that may show Loupe in a frame, with spaces between")
TEACHERS = _text("teachers", "", "addresses, or `@` and a domain, of who may start class sessions")
DRAIN_SECONDS = _number("drain_seconds", 10, "seconds", "for which scripts may go on once the server is told to end")

settings.refuse_unknown()

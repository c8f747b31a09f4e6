"""What one session may ask for and where it begins, in one place: each a key of one settings file, or a variable.

`LOUPE_SETTINGS` names the file, `loupe.toml` in the working directory at first; the environment counts more.
docs/operation.md lists all of them, by `Setting.row`. Those of the engine are `GIVEN`, which every program of Loupe
hands to it by `fill_budget` before it begins.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine.budget import MIB, Budget, budget

FILE = "LOUPE_SETTINGS"
USUAL_FILE = "loupe.toml"


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
        """Bytes, as `default` is."""
        return MIB * self.read_number(name, default // MIB, "MiB", meaning)

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
settings = Settings(_values, os.environ)
GIVEN = Budget()
_number, _mib, _text, _folder = settings.read_number, settings.read_mib, settings.read_text, settings.read_folder


def give_number(name: str, unit: str, meaning: str) -> None:
    """Reads what the budget has under the same name."""
    setattr(GIVEN, name, settings.read_number(name, getattr(GIVEN, name), unit, meaning))


def give_mib(name: str, meaning: str) -> None:
    setattr(GIVEN, name, settings.read_mib(f"{name}_mib", getattr(GIVEN, name), meaning))


give_number("max_tokens", "tokens", "of a text drawn on a page")
give_number("long_tokens", "tokens", "of a text on Attention, Compare and Why this token")
give_number("surprise_tokens", "tokens", "of a text whose surprise is measured")
give_number("max_characters", "characters", "of a text that is cut into tokens: a second, and 0.3 GB")
give_number("max_edits", "edits", "of one what-if, and so of a link")
give_number("flow_work", "weights × keys", "of a token's attention flow: some 5 seconds")
give_mib("trace_memory", "of traces kept for all sessions of a process")
give_mib("max_download", "of one checkpoint from a hub")
FIRST_MODEL = _text("model", "everyday", "that a visitor meets: a shipped one, or one of the folder `models`")
GIVEN.models_folder = _folder(
    "models", Budget.models_folder, "folder whose folders are offered beside the shipped models"
)
GIVEN.weights_address = _text("weights", "", "address of the weights that a package leaves out: `https://host/folder`")
give_mib("max_upload", "of one uploaded checkpoint, unpacked")
GIVEN.uploads_folder = _folder("uploads", "", "folder where the processes of one server tell each other of uploads")
SESSION_UPLOADS = _mib("session_uploads_mib", 1024 * MIB, "of the files in the upload boxes of one visitor")
ALL_UPLOADS = _mib("all_uploads_mib", 4096 * MIB, "of those of all visitors of a process")
give_mib("uploads_disk", "of all uploads that are kept")
give_mib("models_memory", "of the weights of open checkpoints")
GIVEN.device = _text("device", Budget.device, "where opened models are computed: `auto`, `cpu`, `cuda` or `cuda:N`")
MAX_FORWARDS = _number("max_forwards", 2, "passes", "through a model that compute at a time in a process, where heavy")
WORK_SECONDS = _number("work_seconds", 300, "seconds", "of what is computed for one message of a visitor; 0: no limit")
FREE_MEMORY = _mib("free_memory_mib", 256 * MIB, "of the machine that stay free: a computation ends before")
give_number("heavy", "million", "weights × tokens from which a pass is heavy: some second on a CPU")
give_mib("adapters_memory", "of adapters that edits name")

# Of trainings, which are processes of their own.
RUNS_PLACE = _folder(
    "runs", Budget.runs_folder, "folder of run directories, or where they lie as fsspec says: `s3://bucket/runs`"
)
RUNS_COPY = _folder(
    "runs_copy", Budget.runs_folder, "folder of their copies on this machine, where `runs` is no folder"
)
GIVEN.runs_store, GIVEN.runs_folder = (RUNS_PLACE, RUNS_COPY) if "://" in RUNS_PLACE else ("", RUNS_PLACE)
CLASSES_FILE = _text("classes", "", "SQLite file of class sessions, `.classes.sqlite` in the folder `runs` at first")
CLASSES_FILE = CLASSES_FILE or os.path.join(GIVEN.runs_folder, ".classes.sqlite")
CLASSES_PLACE = _text("database", "", "PostgreSQL that keeps them instead ([deploy.md](deploy.md))") or CLASSES_FILE
LTI_FILE = _text("lti", "", "settings of the platforms that may open Loupe ([lti.md](lti.md))")
GIVEN.ray_address = _text(
    "ray_address", "", "of a Ray cluster that trains, surveys and sweeps pairs instead ([deploy.md](deploy.md))"
)
give_number("max_trainings", "trainings", "at a time; others wait for their turn")
give_number("max_queued", "trainings", "that wait")
give_number("max_steps", "steps", "of a training")
give_number("max_layers", "layers", "of a model that is trained")
give_number("max_parameters", "parameters", "of a model that is trained")
give_number("max_run_seconds", "seconds", "from one start of a training to its stop")
give_mib("runs_disk", "of all run directories")
give_number("deleted_days", "days", "for which a deleted run can be had back")
give_number(
    "texts_days",
    "days",
    "for which files and rankings that visitors brought are kept where no run learns from them; 0: always",
)
GIVEN.corpora_folder = _folder("corpora", "", "folder of published texts that shipped recipes learn from")
give_mib("max_data", "of one file to learn from")
DATA_DISK = _mib("data_disk_mib", 4096 * MIB, "of all of them")

# Of the server.
ADDRESS = _text(
    "address", "", "by which others reach this server, such as a proxy's: `https://loupe.school.example/lab`"
)
METRICS_TOKEN = _text("metrics_token", "", "that who asks for `/metrics` from elsewhere sends")
API_TOKEN = _text("api_token", "", "that programs send to a server with `--api` ([api.md](api.md)); else made")
API_REPLY = _mib("api_reply_mib", 64 * MIB, "of one trace that a program asks for")
LOG = _text("log", "", "`json` for one line of JSON an event on standard error")
FRAME_ANCESTORS = _text("frame_ancestors", "", "addresses of sites that may show Loupe in a frame, with spaces between")
TEACHERS = _text("teachers", "", "addresses, or `@` and a domain, of who may start class sessions")
DRAIN_SECONDS = _number("drain_seconds", 10, "seconds", "for which scripts may go on once the server is told to end")

settings.refuse_unknown()


@cache
def fill_budget() -> None:
    """Hands the engine what is its own, once; trainings, which begin in another folder, read the same file."""
    vars(budget).update(vars(GIVEN))
    if SETTINGS_FILE is not None:
        os.environ[FILE] = str(SETTINGS_FILE)

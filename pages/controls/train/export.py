"""Share & export on the page Train: a run as far as it has come, in a file that can be gone through; the lines and the
numbers of any of its steps."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from engine.places import ROOT
from engine.training.probe.frames import Frame
from engine.training.probe.snapshot_frames import frame_files
from engine.training.probe.watch import WatchLine
from engine.training.run.folder import RunFolder
from engine.training.run.live import Update
from engine.training.run.news import Cursor, News, news
from pages.controls.share.export import Export
from pages.controls.train.questions import QUESTIONS
from pages.controls.train.run_state import catch_up, describe_run, look_at, probe_of, tokenizer_of
from pages.controls.train.session import ProbeReading, Session
from views.core.matrix_files import Matrix
from views.core.payload import Numbers, pack
from views.core.questions import UNKNOWN, Axis, BareContext, Query, Registry
from views.core.table_files import Table
from views.train.codegen import WatchedHead, training_lines
from views.train.tables import (
    FrameSelection,
    answer_table,
    change_matrix,
    curve_table,
    gradient_table,
    head_matrix,
    heads_matrix,
    histogram_table,
    loss_table,
    mark_table,
    score_table,
)
from views.train.train import metric_columns, split_update

# --- A recording of the run ---


ROOM = 3_000_000  # bytes of all frames in the file, as it compresses them
MOST_WATCHED = 200  # lines of gradients and histograms
SAMPLES = 8  # frames by which the size of all is told

Item = TypeVar("Item", Frame, WatchLine)


def pack_recording(session: Session, run: str, shown: Mapping[str, Any]) -> bytes:
    """`shown` is the header that the view has on the page. Frames are as many as there is room for, evenly spaced, with
    those where something happened; `told.note` says how many were left out."""
    reader = session.reader(run)
    catch_up(reader)
    update = reader.live.since()
    looked = probe_of(reader, update)
    few = replace(update, frames=tuple(select_frames(update)), watched=tuple(spread(update.watched, MOST_WATCHED)))
    place = {"cursor": 0, "fresh": True, "note": left_out(update, few)}
    told, arrays = split_update(few, place | describe_run(run, reader, update, looked), tokenizer_of(looked))
    overlays, more = overlaid(session, shown.get("overlays", ()))
    return pack({**shown, "told": told, "laid": overlays}, arrays | more)


def select_frames(update: Update) -> list[Frame]:
    frames, each = update.frames, size_of(update.frames)
    most = max(2, int(ROOM / each)) if each else len(frames)
    happened = {mark.step for mark in update.marks}
    kept = {frame.step for frame in spread(frames, most)}
    return [frame for frame in frames if frame.step in kept or frame.step in happened]


def size_of(frames: Sequence[Frame]) -> float:
    """Bytes of one frame as it stands in a file, by some of them; 0 where there are none."""
    some = spread(frames, SAMPLES)
    made = sum(len(gzip.compress(tensor.numpy().tobytes(), 6)) for one in some for tensor in one.tensors.values())
    return made * 4 / 3 / max(len(some), 1)  # a file has its bytes as base64


def spread(items: Sequence[Item], most: int) -> list[Item]:
    """Evenly spaced items, at most `most`, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]


def left_out(whole: Update, few: Update) -> str:
    if len(few.frames) == len(whole.frames):
        return ""
    return (
        f"Of {len(whole.frames):,} looks at the example {len(few.frames):,} are in this file, so that it stays small; "
        "the run has them all."
    )


def overlaid(session: Session, names: Sequence[str]) -> tuple[list[dict[str, Any]], dict[str, Numbers]]:
    """The curves of other runs; one that is gone by now is left out."""
    found: list[dict[str, Any]] = []
    arrays: dict[str, Numbers] = {}
    for name in names:
        try:
            columns = metric_columns(session.reader(name).live.since().metrics)
        except ValueError:
            continue
        arrays |= {f"laid.{len(found)}.{column}": values for column, values in columns.items()}
        found.append({"name": name, "columns": list(columns)})
    return found, arrays


# --- Tables, lines and the file ---


VIEW = PAGE = "train"
RECORDED_NAME = "recorded run"
CONTROLS = ("task row", "recipe open", "own data")
HEAD, HEADS, CHANGE = "pattern of this head", "patterns of all heads", "what changed of this head"
ANSWERS, LOSSES, SCORES = "answers at each position", "loss at each position", "scores of all heads"
OF_A_STEP = (HEAD, HEADS, CHANGE, ANSWERS, LOSSES, SCORES)
NOTHING = "Nothing has been seen of this run yet; wait for the first look."


TRAINED = Registry()


@dataclass(frozen=True)
class TrainedRun(BareContext):
    """A run as far as it has come; its questions are about its whole, or about a step that is looked at."""

    session: Session
    run: str

    @property
    def digest(self) -> str:
        return f"training {self.run}"

    @property
    def model_name(self) -> str:
        return self.run or RECORDED_NAME

    def choices(self, axis: str, query: Query) -> Collection[str]:
        return [*whole_tables(self.session, self.run), *OF_A_STEP]


def training_export(session: Session, run: str, shown: Mapping[str, Any], link: Mapping[str, str]) -> Export:
    """`shown` is the header that the view has, `link` the query of a link to the page as it stands."""
    trained = TrainedRun(session, run)
    tables = {name: {"ask": "training", "table": name} for name in (*whole_tables(session, run), *OF_A_STEP)}
    export = Export(
        "Train", VIEW, trained, "", link, CONTROLS, tables, "of the whole run, or of the step at the handle",
        page_name=PAGE, carry=lambda of, row: (),
    )  # fmt: skip
    export.answers(lambda of: pack_recording(session, run, shown), (QUESTIONS, session), (TRAINED, trained))
    return export


def make_table(trained: TrainedRun, table: str, **looked: Any) -> Table | Matrix:
    whole = whole_tables(trained.session, trained.run)
    return whole[table]() if table in whole else of_a_step(trained.session, trained.run, table, looked)


def make_script(trained: TrainedRun, table: str, row: int, col: int, **looked: Any) -> str:
    return lines(trained.session, trained.run, looked)


@TRAINED.question("training", make_table=make_table, make_script=make_script)
def ask_training(
    trained: TrainedRun,
    table: Annotated[str, Axis("table")],
    step: int | None = None,
    other: int | None = None,
    attention: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    position: int | None = None,
    now: str = "",
) -> None:
    """Declares what a run has to download, and the lines about a head at a step; the browser has its numbers.

    `now` says how far the run was: what the browser remembers of an earlier moment answers no later question.
    """


def whole_tables(session: Session, run: str) -> dict[str, Callable[[], Table | Matrix]]:
    name = run or RECORDED_NAME

    def run_news() -> News:
        return news(session.reader(run).live.run, Cursor())

    return {
        "curves": lambda: curve_table(name, run_news().metrics),
        "what happened": lambda: mark_table(name, session.reader(run).live.since().marks),
        "gradients": lambda: gradient_table(name, run_news().watched),
        "weights": lambda: histogram_table(name, run_news().watched, "weights"),
        "activations": lambda: histogram_table(name, run_news().watched, "activations"),
    }


def of_a_step(session: Session, run: str, table: str, query: Query) -> Table | Matrix:
    """Raises ValueError for what this run has not."""
    told = news(session.reader(run).live.run, Cursor())
    at, looked = place(run, told.frames, query), seen_by(session, run, told)
    named = partial(token_name, looked)
    made: dict[str, Callable[[], Table | Matrix]] = {
        HEAD: lambda: head_matrix(at, tokens(at, looked)),
        HEADS: lambda: heads_matrix(at, tokens(at, looked)),
        CHANGE: lambda: change_matrix(at, tokens(at, looked)),
        ANSWERS: lambda: answer_table(at, named),
        LOSSES: lambda: loss_table(at, named),
        SCORES: lambda: score_table(at),
    }
    return made[table]()


def place(run: str, frames: Sequence[Frame], query: Query) -> FrameSelection:
    by_step = {frame.step: frame for frame in frames}
    match query:
        case {"step": int(step), "attention": str(attention), "layer": int(layer), "head": int(head)}:
            other = query.get("other")
            second = by_step.get(other) if isinstance(other, int) else None
            if step in by_step:
                return FrameSelection(run or RECORDED_NAME, by_step[step], second, attention, layer, head)
    raise ValueError(UNKNOWN if frames else NOTHING)


def seen_by(session: Session, run: str, told: News) -> ProbeReading | None:
    reader = session.reader(run)
    if told.cursor.probe is None:
        return None
    if reader.probe is not None and reader.probe.probe == told.cursor.probe:
        return reader.probe
    return look_at(reader.live.run, told.cursor.probe)


def tokens(at: FrameSelection, looked: ProbeReading | None) -> dict[str, list[str]]:
    """Tokens at the rows and the columns of an attention; a picture has none."""
    tokenizer = looked.checkpoint.tokenizer if looked is not None and looked.checkpoint is not None else None
    sides = {"attn": ("target.ids", "target.ids"), "encoder": ("ids", "ids"), "cross_attn": ("target.ids", "ids")}
    tensors = at.frame.tensors
    rows, columns = sides[at.attention] if "target.ids" in tensors else ("ids", "ids")
    if tokenizer is None or rows not in tensors or columns not in tensors:
        return {}
    query, key = ([tokenizer.piece(id) for id in tensors[name].tolist()] for name in (rows, columns))
    return {"query": query, "key": key}


def token_name(looked: ProbeReading | None, id: int) -> str:
    """A token or a class by its id."""
    checkpoint = looked.checkpoint if looked is not None else None
    if checkpoint is None:
        return str(id)
    if checkpoint.labels:
        return checkpoint.labels[id]
    return str(id) if checkpoint.tokenizer is None else checkpoint.tokenizer.piece(id)


def lines(session: Session, run: str, query: Query) -> str:
    folder = session.reader(run).live.run
    told = news(folder, Cursor())
    at = place(run, told.frames, query)
    probe, step, position = told.cursor.probe, at.frame.step, query.get("position")
    if probe is None:
        raise ValueError(NOTHING)
    asked = isinstance(position, int) and 0 <= position < len(at.frame.tensors.get("loss", ()))
    head = WatchedHead(at.attention, at.layer, at.head, position if asked else None)
    kept = step in folder.snapshot_steps()
    return training_lines(near(folder.path), probe, step, kept, files(folder, told), head)


def near(folder: Path) -> Path:
    """Path from Loupe's folder where it lies below that."""
    return folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else folder


def files(folder: RunFolder, told: News) -> list[Path]:
    """Files that hold what was seen of the probe; what the run's process saw counts more."""
    assert told.cursor.probe is not None
    ours, past = frame_files(folder.path, told.cursor.probe)
    return [file.relative_to(folder.path) for file in (past, ours) if file.is_file()]

"""Take away, on the page about training: a run as far as it has come, in a file that can be gone through; the lines and
the numbers of any of its steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from engine.training.folder import RunFolder
from engine.training.frames import Frame
from engine.training.news import Cursor, News, news
from engine.training.snapshot_frames import frame_files
from pages.controls.share.export import UNKNOWN, Answer, filed, standalone_file
from pages.controls.share.export_tables import Made, Query, Taken
from pages.controls.share.links import address_now
from pages.controls.train.export_run import pack_recording
from pages.controls.train.run_state import look_at
from pages.controls.train.session import ProbeReading, Session
from views.train.codegen import Head, training_lines
from views.train.tables import (
    At,
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

VIEW = PAGE = "train"
HOME = Path(__file__).parents[3]
RECORDED_NAME = "recorded run"
CONTROLS = ("task row", "recipe open", "own data")
HEAD, HEADS, CHANGE = "pattern of this head", "patterns of all heads", "what changed of this head"
ANSWERS, LOSSES, SCORES = "answers at each position", "loss at each position", "scores of all heads"
OF_A_STEP = (HEAD, HEADS, CHANGE, ANSWERS, LOSSES, SCORES)
NOTHING = "Nothing has been seen of this run yet; wait for the first look."


def of_training(session: Session, run: str, address: Mapping[str, str] | None = None) -> Made:
    """`address` is the query of a link to the page as it stands."""
    return Made(
        "Train", VIEW, run or RECORDED_NAME, "", f"training {run}", address_now() if address is None else address,
        partial(lines, session, run), tables=whole_tables(session, run), patterns=OF_A_STEP,
        looked=partial(of_a_step, session, run), data="of the whole run, or of the step at the handle",
        controls=CONTROLS, page=PAGE,
    )  # fmt: skip


def answering(made: Made, session: Session, run: str, shown: Mapping[str, Any], other: Answer) -> Answer:
    """Answers what the toolbar asks, in front of what the page's views ask; `shown` is the header that the view has."""
    rest = made.answering(b"", other)

    def answer(query: dict[str, Any]) -> bytes:
        match query:
            case {"take": "html", "trace": made.made, "state": str(state)}:
                payload = pack_recording(session, run, shown)
                return filed(standalone_file(VIEW, made.header, payload, state, (), PAGE).encode())
        return rest(query)

    return answer


def whole_tables(session: Session, run: str) -> dict[str, Callable[[], Taken]]:
    name = run or RECORDED_NAME

    def told() -> News:
        return news(session.reader(run).live.run, Cursor())

    return {
        "curves": lambda: curve_table(name, told().metrics),
        "what happened": lambda: mark_table(name, session.reader(run).live.since().marks),
        "gradients": lambda: gradient_table(name, told().watched),
        "weights": lambda: histogram_table(name, told().watched, "weights"),
        "activations": lambda: histogram_table(name, told().watched, "activations"),
    }


def of_a_step(session: Session, run: str, query: Query) -> Taken:
    """Raises ValueError for what this run has not."""
    told = news(session.reader(run).live.run, Cursor())
    at, looked = place(run, told.frames, query), seen_by(session, run, told)
    named = partial(token_name, looked)
    made: dict[object, Callable[[], Taken]] = {
        HEAD: lambda: head_matrix(at, tokens(at, looked)),
        HEADS: lambda: heads_matrix(at, tokens(at, looked)),
        CHANGE: lambda: change_matrix(at, tokens(at, looked)),
        ANSWERS: lambda: answer_table(at, named),
        LOSSES: lambda: loss_table(at, named),
        SCORES: lambda: score_table(at),
    }
    if query.get("matrix") not in made:
        raise ValueError(UNKNOWN)
    return made[query.get("matrix")]()


def place(run: str, frames: Sequence[Frame], query: Query) -> At:
    by_step = {frame.step: frame for frame in frames}
    match query:
        case {"step": int(step), "attention": str(attention), "layer": int(layer), "head": int(head)}:
            other = query.get("other")
            second = by_step.get(other) if isinstance(other, int) else None
            if step in by_step:
                return At(run or RECORDED_NAME, by_step[step], second, attention, layer, head)
    raise ValueError(UNKNOWN if frames else NOTHING)


def seen_by(session: Session, run: str, told: News) -> ProbeReading | None:
    reader = session.reader(run)
    if told.cursor.probe is None:
        return None
    if reader.probe is not None and reader.probe.probe == told.cursor.probe:
        return reader.probe
    return look_at(reader.live.run, told.cursor.probe)


def tokens(at: At, looked: ProbeReading | None) -> dict[str, list[str]]:
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
    head = Head(at.attention, at.layer, at.head, position if asked else None)
    kept = step in folder.snapshot_steps()
    return training_lines(near(folder.path), probe, step, kept, files(folder, told), head)


def near(folder: Path) -> Path:
    """Path from Loupe's folder, in which the lines are run, where it lies below that."""
    return folder.relative_to(HOME) if folder.is_relative_to(HOME) else folder


def files(folder: RunFolder, told: News) -> list[Path]:
    """Files that hold what was seen of the probe; what the run's process saw counts more."""
    assert told.cursor.probe is not None
    ours, past = frame_files(folder.path, told.cursor.probe)
    return [file.relative_to(folder.path) for file in (past, ours) if file.is_file()]

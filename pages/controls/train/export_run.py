"""A run as far as it has come, in one payload: what a file has that works without a server."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from engine.training.frames import Frame
from engine.training.live import Update
from engine.training.watch import WatchLine
from pages.controls.train.run_state import catch_up, describe_run, probe_of, tokenizer_of
from pages.controls.train.session import Session
from views.core.payload import Numbers, pack
from views.train.train import metric_columns, split_update

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

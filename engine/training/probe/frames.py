"""frames/<digest of a probe>.bin: what was seen of a model as it learned, a frame each: u32 length, then safetensors.

It is appended to by the run's process alone, and replaced as a whole when it is thinned out or rewound.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from engine.json_text import parse_json
from engine.training.run.append_log import LogPosition, read_appended
from engine.training.run.atomic import replace_atomically

LENGTH = struct.Struct("<I")
HEADER = struct.Struct("<Q")
MOST = 600  # frames of a file
LARGEST = 64 * 2**20  # bytes of it
FILES = 16  # that are kept: those of the probes that were watched last, and their pasts
FOLDER = "frames"


@dataclass(frozen=True)
class Frame:
    """A probe as the model saw it after `step` updates. `kept`: of that step there is a snapshot too.

    Two stacks have each name below once more: `patterns.encoder`, `patterns.cross_attn`, `scores.encoder.*`,
    `scores.cross.*`. A picture has no `ids`, and only a classifier has `p`.

    | `ids`, `target.ids` | pos, int32 | what was read, by the encoder and by the decoder |
    | `patterns.attn` | layer head pos key, uint8 | 255 times the pattern |
    | `top.ids`, `top.p` | pos k, int32 and float32 | the most likely tokens (or classes), at temperature 1 |
    | `asked`, `loss` | pos, int32 and float32 nats | the right one, -100 and NaN where none is known |
    | `p` | class, float32 | |
    | `free.ids` | pos, int32 | what the model writes by itself, greedily |
    | `scores.<key>` | layer head, float32 | as `engine.analysis.heads` defines them |
    """

    step: int
    tensors: Mapping[str, Tensor] = field(repr=False)
    kept: bool = False


@dataclass(frozen=True)
class Frames:
    """`anew`: the file was replaced, and these are all that it has; earlier ones are to be forgotten."""

    frames: tuple[Frame, ...]
    place: LogPosition
    anew: bool


@dataclass(frozen=True)
class Record:
    """Place of a frame among some bytes, its length included."""

    step: int
    kept: bool
    start: int
    stop: int


def read_frames(path: Path, since: LogPosition | None = None) -> Frames:
    """Reads the frames written since; one that is still being written is left for later."""
    more = read_appended(path, since or LogPosition(), whole_records)
    return Frames(tuple(decode_frames(more.data)), more.place, more.anew)


def pack_frame(frame: Frame) -> bytes:
    made = save({name: tensor.contiguous() for name, tensor in frame.tensors.items()}, frame_metadata(frame))
    return LENGTH.pack(len(made)) + made


def frame_metadata(frame: Frame) -> dict[str, str]:
    return {"step": str(frame.step), "kept": str(int(frame.kept))}


def decode_frames(data: bytes) -> Iterator[Frame]:
    for record in records(data):
        body = data[record.start + LENGTH.size : record.stop]
        try:
            yield Frame(record.step, load(body), record.kept)
        except SafetensorError:  # a frame that cannot be read is one fewer
            continue


def whole_records(data: bytes) -> int:
    at = 0
    while at + LENGTH.size <= len(data):
        stop = at + LENGTH.size + LENGTH.unpack_from(data, at)[0]
        if stop > len(data):
            break
        at = stop
    return at


def records(data: bytes) -> Iterator[Record]:
    """Frames that are whole and say of which step they are."""
    at, end = 0, whole_records(data)
    while at < end:
        stop = at + LENGTH.size + LENGTH.unpack_from(data, at)[0]
        told = metadata(data, at + LENGTH.size, stop)
        if told is not None:
            yield Record(*told, at, stop)
        at = stop


def metadata(data: bytes, start: int, stop: int) -> tuple[int, bool] | None:
    if stop - start < HEADER.size:
        return None
    length: int = HEADER.unpack_from(data, start)[0]
    try:
        told = parse_json(data[start + HEADER.size : min(start + HEADER.size + length, stop)])["__metadata__"]
        return int(told["step"]), told["kept"] == "1"
    except (ValueError, KeyError, TypeError):
        return None


class FrameFile:
    """The writer of one. What an earlier start left there after `step`, or half written, is forgotten."""

    def __init__(self, path: Path) -> None:
        self.path = path
        data = path.read_bytes() if path.exists() else b""
        self.records = list(records(data))

    @property
    def last(self) -> int:
        """The step of its last frame, -1 where it is empty."""
        return self.records[-1].step if self.records else -1

    def append(self, frame: Frame) -> None:
        data = pack_frame(frame)
        start = self.records[-1].stop if self.records else 0
        with open(self.path, "ab") as file:
            file.write(data)
        self.records.append(Record(frame.step, frame.kept, start, start + len(data)))
        if len(self.records) > MOST or self.records[-1].stop > LARGEST:
            self.keep(thin_records(self.records))

    def rewind(self, step: int) -> None:
        """Forget what was seen after `step`."""
        left = [record for record in self.records if record.step <= step]
        if len(left) < len(self.records) or (self.path.exists() and self.path.stat().st_size != end(left)):
            self.keep(left)

    def keep(self, wanted: Sequence[Record]) -> None:
        data = self.path.read_bytes() if self.path.exists() else b""
        with replace_atomically(self.path) as partial:
            partial.write_bytes(b"".join(data[one.start : one.stop] for one in wanted))
        self.records = list(renumber_offsets(wanted))


def end(records: Sequence[Record]) -> int:
    return records[-1].stop if records else 0


def renumber_offsets(records: Iterable[Record]) -> Iterator[Record]:
    """The same one behind the other."""
    at = 0
    for one in records:
        size = one.stop - one.start
        yield Record(one.step, one.kept, at, at + size)
        at += size


def thin_records(records: Sequence[Record]) -> list[Record]:
    """About three quarters of what is allowed, evenly spaced, and the last. Frames that belong to no snapshot go first,
    and the others only where those alone are too many."""
    kept, live = ([one for one in records[:-1] if one.kept is kind] for kind in (True, False))
    for share in (0.75, 0.5, 0.25, 0.1, 0.0):
        for few in (kept, spread_records(kept, int(share * MOST))):
            room = int(share * MOST) - len(few)
            left = sorted((*few, *spread_records(live, room), records[-1]), key=lambda one: one.start)
            if len(left) <= MOST * 3 // 4 + 1 and sum(one.stop - one.start for one in left) <= share * LARGEST:
                return left
    return [records[-1]]


def spread_records(records: Sequence[Record], count: int) -> list[Record]:
    """Chooses at most `count` frames, their steps about equally far apart."""
    left: list[Record] = []
    if count < 1 or not records:
        return left
    apart = (records[-1].step - records[0].step) / count
    for one in records:
        if not left or one.step - left[-1].step > apart:
            left.append(one)
    return left


def forget_older(folder: Path, present: Path) -> None:
    """Keep the frames of the probes that were watched last."""
    files = sorted(folder.glob("*.bin"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in [file for file in files if file != present][FILES - 1 :]:
        file.unlink(missing_ok=True)
        file.with_suffix(".json").unlink(missing_ok=True)

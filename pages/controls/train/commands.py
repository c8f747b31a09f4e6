"""What a person wants done with runs from the page about training."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.model.from_dict import build
from engine.training import control, trash
from engine.training.folder import RunFolder
from engine.training.fork import fork, reset
from engine.training.names import LONGEST
from engine.training.probe import Probe, watch
from engine.training.snapshot_frames import frames_of_snapshots
from engine.training.status import ACTIVE, read_status
from pages.controls.train.queries import look_at
from pages.controls.train.session import Query, Session, folder_of, number, own

PATIENCE = 5.0  # seconds until a run that is to be reset has come to rest


def start(session: Session, query: Query) -> dict[str, Any]:
    if session.plan is None:
        raise ValueError("the recipe above cannot be trained as it stands; correct what it complains about.")
    return {"run": session.launcher.start(session.plan, session.name).name}


def contrast(session: Session, query: Query) -> dict[str, Any]:
    """Two runs on one seed, that of the controls and one in which a single choice is another."""
    other = session.contrasts.get(str(query.get("change")))
    if session.plan is None or other is None:
        raise ValueError("there is nothing to compare with this choice; choose one of those that are offered.")
    first = session.launcher.start(session.plan, session.name)
    second = session.launcher.start(other, called(session.name, str(query.get("change"))))
    return {"runs": [first.name, second.name]}


def called(name: str, more: str) -> str:
    """A name with more behind it; the name is cut where that would be too long for one."""
    return f"{name[: LONGEST - len(more) - 1].rstrip(' .')} {more}"


def order(session: Session, query: Query) -> dict[str, Any]:
    run, wanted = own(query), query.get("order")
    folder = folder_of(run)
    if wanted == "play":
        found = read_status(RunFolder(folder).status)
        if found is None or found.state not in ACTIVE:
            session.launcher.resume(run)
        else:
            control.resume(folder)  # also where a pause was asked for that it has not come to yet
    elif wanted == "pause":
        control.pause(folder)
    elif wanted == "steps":
        found = read_status(RunFolder(folder).status)
        if found is None or found.state not in ACTIVE:
            session.launcher.resume(run)  # begins with an order of its own, so that the steps are asked for behind it
        control.n_steps(folder, int(number(query, "steps", 1)))
    elif wanted == "stop":
        control.stop(folder)
    elif wanted == "rate":
        control.set_rate(folder, None if query.get("lr") is None else number(query, "lr"))
    elif wanted == "reset":
        at_rest(folder)
        reset(run)
        session.readers.pop(run, None)
    else:
        raise ValueError(f"an order must be play, pause, steps, stop, rate or reset, got {wanted!r}.")
    return {"run": run}


def at_rest(folder: Path) -> None:
    """Stops a run that goes on, and waits until it has."""
    until = time.monotonic() + PATIENCE
    asked = False
    while time.monotonic() < until:
        found = read_status(RunFolder(folder).status)
        if found is None or found.state not in ACTIVE:
            return
        if not asked:
            control.stop(folder)
            asked = True
        time.sleep(0.05)


def forked(session: Session, query: Query) -> dict[str, Any]:
    run, step = own(query), int(number(query, "step"))
    made = fork(run, step, called(run, f"from {step}"))
    return {"run": session.launcher.resume(made.name).name}


def probed(session: Session, query: Query) -> dict[str, Any]:
    """The run looks at another example from now on, and its past is looked at again."""
    run = own(query)
    wanted: Probe = build(Probe, {name: query.get(name) for name in ("text", "target", "picture")})
    reader = session.reader(run)
    looked = look_at(reader.live.run, wanted)
    if looked.error:
        raise ValueError(looked.error)
    watch(reader.live.run.path, wanted)
    reader.looked, reader.past = looked, frames_of_snapshots(reader.live.run.path, wanted)
    return {"run": run}


def renamed(session: Session, query: Query) -> dict[str, Any]:
    return {"run": trash.rename(own(query), str(query.get("name", ""))).name}


def deleted(session: Session, query: Query) -> dict[str, Any]:
    return {"token": trash.delete(own(query))}


def restored(session: Session, query: Query) -> dict[str, Any]:
    return {"run": trash.undo_delete(str(query.get("token", "")))}


DOING: dict[object, Callable[[Session, Query], dict[str, Any]]] = {
    "start": start, "contrast": contrast, "order": order, "fork": forked, "probe": probed, "rename": renamed,
    "delete": deleted, "undo": restored,
}  # fmt: skip

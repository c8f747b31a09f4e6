"""What the page about training asks of the server, and what it tells a run to do, each declared once.

A run goes on while somebody looks, so that no question about it is ever stale: all are declared as commands.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Literal

from engine.training.probe.probe import Probe, watch
from engine.training.probe.snapshot_frames import frames_of_snapshots
from engine.training.run import control, trash
from engine.training.run.folder import RunFolder
from engine.training.run.fork import fork, reset
from engine.training.run.names import LONGEST
from engine.training.run.status import ACTIVE, read_status
from pages.controls.train.run_state import catch_up, describe_run, look_at, probe_of, tokenizer_of
from pages.controls.train.session import Session, own_run, runs_place
from views.core.questions import Answer, Page, Query, Registry
from views.train.train import pack_metrics, pack_update

PATIENCE = 5.0  # seconds until a run that is to be reset has come to rest
PLACES = 64  # up to which the browser has been told, that are remembered
REMEMBERED = 64  # answers to commands
READING = ("live", "curve")
QUESTIONS = Registry()


def answer(session: Session, query: Query, page: Page | None = None) -> bytes:
    """Answers a question; a command is carried out once, however often it comes. Raises ValueError, with a sentence."""
    page, once = page or Page((QUESTIONS, session)), str(query.get("once", ""))
    if query.get("ask") in READING or not page.find(query)[0].command:
        return page.answer(query)
    if once not in session.done:
        session.done[once] = page.answer(query)
        while len(session.done) > REMEMBERED:
            session.done.popitem(last=False)
    return session.done[once]


@QUESTIONS.command("live")
def ask_live(session: Session, run: str, cursor: Any = None) -> bytes:
    """Returns what is new of a run since the place `cursor`, everything where that is not known any more."""
    reader = session.reader(run)
    catch_up(reader)
    known, since = session.places.get(cursor if isinstance(cursor, int) else 0, ("", None))
    update = reader.live.since(since if known == run else None)
    session.turn += 1
    session.places[session.turn] = run, update.cursor
    while len(session.places) > PLACES:
        session.places.popitem(last=False)
    reading = probe_of(reader, update)
    place = {"cursor": session.turn, "fresh": since is None or known != run}
    locked = session.locked(reader.live.run.path) if run else ""
    return pack_update(update, place | describe_run(run, reader, update, reading, locked), tokenizer_of(reading))


@QUESTIONS.command("curve")
def ask_curve(session: Session, run: str) -> bytes:
    """The metrics of a run alone, to be laid over those of another."""
    return pack_metrics(session.reader(run).live.since().metrics)


@QUESTIONS.command("start")
def start_run(session: Session) -> Answer:
    """Trains the recipe of the controls as a new run."""
    if session.plan is None:
        raise ValueError("the recipe above has an error; correct it to train.")
    return Answer(header={"run": session.begin(session.launcher.start(session.plan, session.name))})


@QUESTIONS.command("contrast")
def start_contrast(session: Session, change: str) -> Answer:
    """Starts two runs on one seed, that of the controls and one in which a single choice is another."""
    other = session.contrasts.get(change)
    if session.plan is None or other is None:
        raise ValueError("there is nothing to compare with this choice; choose one of those that are offered.")
    first = session.launcher.start(session.plan, session.name)
    second = session.launcher.start(other, extend_name(session.name, change))
    return Answer(header={"runs": [session.begin(first), session.begin(second)]})


def extend_name(name: str, more: str) -> str:
    """A name with more after it; the name is cut where that would be too long for one."""
    return f"{name[: LONGEST - len(more) - 1].rstrip(' .')} {more}"


@QUESTIONS.command("order")
def order_run(
    session: Session,
    run: str,
    order: Literal["play", "pause", "steps", "stop", "rate", "reset"],
    steps: int = 1,
    lr: float | None = None,
) -> Answer:
    """Tells a run to go on, to pause, to make so many steps, to stop, to hold a learning rate (None: to follow its
    schedule), or to begin again from step 0."""
    folder = session.changeable(run)
    if order == "play" and not is_active(folder):
        session.launcher.resume(run)
    elif order == "play":
        control.resume(folder)  # also where a pause was asked for that it has not come to yet
    elif order == "pause":
        control.pause(folder)
    elif order == "steps":
        if steps < 1:
            raise ValueError(f"steps must be 1 or more, got {steps}.")
        if not is_active(folder):
            session.launcher.resume(run)  # begins with an order of its own, so that the steps are asked for after it
        control.n_steps(folder, steps)
    elif order == "stop":
        control.stop(folder)
    elif order == "rate":
        if lr is not None and lr < 0:
            raise ValueError(f"lr must be 0 or more, got {lr:g}.")
        control.set_rate(folder, lr)
    else:
        await_rest(folder)
        owner = RunFolder(folder).owner
        name = owner.read_text(encoding="utf-8") if owner.is_file() else ""
        reset(run, folder.parent)
        if name:
            owner.write_text(name, encoding="utf-8")  # the same folder, made anew
        session.readers.pop(run, None)
    return Answer(header={"run": run})


def is_active(folder: Path) -> bool:
    status = read_status(RunFolder(folder).status)
    return status is not None and status.state in ACTIVE


def await_rest(folder: Path) -> None:
    """Stops a run that goes on, and waits until it has."""
    until = time.monotonic() + PATIENCE
    asked = False
    while time.monotonic() < until and is_active(folder):
        if not asked:
            control.stop(folder)
            asked = True
        time.sleep(0.05)


@QUESTIONS.command("fork")
def fork_run(session: Session, run: str, step: int) -> Answer:
    """Starts a new run that goes on from a kept step of another."""
    place = own_run(run).parent
    made = session.begin(fork(run, step, extend_name(run, f"from {step}"), folder=place))
    return Answer(header={"run": session.launcher.resume(made).name})


@QUESTIONS.command("probe")
def watch_probe(
    session: Session, run: str, text: str | None = None, target: str | None = None, picture: int | None = None
) -> Answer:
    """Has a run watch another example from now on, and looks at its past with it."""
    own_run(run)
    probe = Probe(text=text, target=target, picture=picture)
    reader = session.reader(run)
    reading = look_at(reader.live.run, probe)
    if reading.error:
        raise ValueError(reading.error)
    watch(reader.live.run.path, probe)
    reader.probe, reader.past = reading, frames_of_snapshots(reader.live.run.path, probe)
    return Answer(header={"run": run})


@QUESTIONS.command("rename")
def rename_run(session: Session, run: str, name: str) -> Answer:
    return Answer(header={"run": trash.rename(run, name, session.changeable(run).parent).name})


@QUESTIONS.command("delete")
def delete_run(session: Session, run: str) -> Answer:
    return Answer(header={"token": trash.delete(run, session.changeable(run).parent)})


@QUESTIONS.command("undo")
def restore_run(session: Session, token: str) -> Answer:
    if why := session.locked(trash.deleted_folder(token, runs_place())):
        raise ValueError(why)
    return Answer(header={"run": trash.undo_delete(token, runs_place())})

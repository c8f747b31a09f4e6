"""A class of thirty at once: how long its actions take, when an answer stands on the teacher's page, and whose it is.

Every learner has a session over a websocket of their own, writes a text, opens the answer's field and hands in an
estimate of its loss, step after step, while runs are trained beside them; the teacher's page is drawn as soon as it
hears of something. In the middle the server is killed and started again. In the end each answer is graded again by this
process, from the text that its learner wrote, and each picture is compared with the one that a visitor gets alone; then
many sessions are opened and closed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import perf_counter, time

import numpy as np
from websockets.exceptions import WebSocketException

from bench.load import (
    ANSWER,
    HAND_IN,
    OPEN,
    REACH,
    TEXTS,
    Action,
    Played,
    memory_of,
    note,
    perform,
    repeat,
    session,
    summary,
)
from engine.analysis.surprise import surprise
from engine.inputs.readers import tokens
from engine.runtime import library
from server.classes.steps import Step
from server.classes.store import Classes
from server.library.visitors import name_person
from tests.browser.harness import ROOT, UVICORN, free_port, wait_until_healthy

LEARNERS, STEPS, PACE = 30, 6, 10.0  # seconds between two steps
MODEL, RECIPE = "everyday", "assets/recipes/stories.toml"
HEARD = 1.0  # s until an answer stands on the teacher's page
BACK = 5.0  # s after the server is there again until every learner has gone on
GAP = 1e-3  # nats, by which a loss computed elsewhere may differ
TRAININGS = 3
SESSIONS, AT_ONCE, KEPT = 200, 10, 0.1  # opened and closed, at once; share of the memory that they may leave behind
AFTER = 150.0  # s until Streamlit has forgotten a session whose browser is gone
TEACHER = "f" * 32
PAGE = Action("walkthrough")


@dataclass
class Server:
    """The app on one port, which can be killed and started again."""

    workers: int
    log: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    killed: float = 0.0  # when it was
    back: float = 0.0  # when it answered again

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [part.format(port=self.port) for part in (*UVICORN, "--workers", str(self.workers))]
        with self.log.open("a") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        wait_until_healthy(self.process, f"{self.address}/health", self.log)

    def kill(self) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    async def restart(self) -> None:
        self.kill()
        self.killed = time()
        await asyncio.to_thread(self.start)
        self.back = time()

    @property
    def memory(self) -> float:
        assert self.process is not None
        return memory_of(self.process.pid, itself=True)


@contextmanager
def trainings(count: int, folder: str) -> Iterator[None]:
    """As many runs as a class hands in, as the app trains them."""
    command = [sys.executable, "-m", "engine", "train", RECIPE, "--quiet", "--background", "--threads", "1"]
    runs = [subprocess.Popen([*command, "--out", f"{folder}/run{one}"], cwd=ROOT) for one in range(count)]
    try:
        yield
    finally:
        for run in runs:
            run.terminate()
            run.wait()


@dataclass
class Lesson:
    """A class and what its learners' actions took; those that the server's end cut off are not among them."""

    server: Server
    classes: Classes
    code: str
    begun: float
    played: list[Played] = field(default_factory=list)
    resumed: list[float] = field(default_factory=list)  # seconds from the restart to a learner's next answered action

    async def learn(self, number: int) -> None:
        cookie = f"{number:032x}"
        learner = self.classes.join(self.code, f"learner {number}", name_person(cookie))
        random, step, stopped = Random(number), 0, False
        while step < STEPS:
            try:
                async with session(self.server.address, cookie) as visitor:
                    while step < STEPS:
                        wait = self.begun + PACE * step + random.random() * PACE / 3 - time()
                        await asyncio.sleep(max(0.0, wait))
                        while self.classes.find(self.code).at < step:
                            await asyncio.sleep(0.1)
                        kept = [one.step for one in self.classes.answers(self.code) if one.learner == learner.id]
                        for act in [] if step in kept else acts(number, step, random):
                            try:
                                one = await perform(visitor, act)
                            except KeyError as error:
                                one = Played(act, 0.0, "", f"{learner.name} was not shown {error}")
                            if "ConnectionClosed" in one.fault or one.fault and time() - one.seconds < self.server.back:
                                raise ConnectionError(one.fault)
                            self.played.append(one)
                            if stopped:
                                self.resumed.append(time() - self.server.back)
                                stopped = False
                        step += 1
            except (OSError, WebSocketException, TimeoutError, RuntimeError):
                stopped = True
                await asyncio.sleep(0.2)

    async def lead(self) -> None:
        """Leads the class from step to step, and ends the server in the middle; while it is away nobody goes on."""
        for step in range(STEPS):
            await asyncio.sleep(max(0.0, self.begun + PACE * step - time()))
            self.classes.go_to(self.code, step)
            if step == STEPS // 2:
                await asyncio.sleep(PACE / 6)
                await self.server.restart()
                self.begun += self.server.back - self.server.killed

    async def watch(self, ages: list[float]) -> None:
        """Draws the teacher's page whenever something was handed in, and notes how old the newest answer was then, in
        seconds."""
        seen = 0
        while True:
            try:
                async with session(self.server.address, TEACHER) as visitor:
                    while True:
                        answers = self.classes.answers(self.code)
                        if len(answers) > seen:
                            seen, newest = len(answers), max(one.at for one in answers)
                            if (await perform(visitor, Action("teach"))).fault:
                                raise ConnectionError("the server is away")
                            ages.append(time() - newest)
                        await asyncio.sleep(0.2)
            except (OSError, WebSocketException, TimeoutError, RuntimeError):
                await asyncio.sleep(0.2)


def acts(number: int, step: int, random: Random) -> list[Action]:
    field = OPEN.replace("0", str(step))
    written = [PAGE, Action("walkthrough", "text", text_of(number, step))]
    guess = Action("walkthrough", ANSWER, 1.0 + random.random())
    return [*written, Action("walkthrough", field, True), guess, Action("walkthrough", HAND_IN, None)]


async def measure(server: Server, classes: Classes, out: Path | None) -> bool:
    steps = [Step("walkthrough", {"model": MODEL}, "loss", f"Step {one}") for one in range(STEPS)]
    code, _secret = classes.start(name_person(TEACHER), steps)
    lesson, before = Lesson(server, classes, code, time() + 2), server.memory
    learners = [lesson.learn(number) for number in range(LEARNERS)]
    ages = list[float]()
    watching = asyncio.create_task(lesson.watch(ages))
    await asyncio.gather(lesson.lead(), *learners)
    watching.cancel()
    print(summary("a class", lesson.played))
    for widget in ("", "text", HAND_IN):
        print(summary(widget or "page", [one for one in lesson.played if one.action.widget == widget]))
    late, high = (float(np.quantile(found, 0.95)) for found in (ages, [one.seconds for one in lesson.played]))
    print(f"an answer on the teacher's page: p95 {late:.2f} s (reach {HEARD:g})")
    taken = (server.memory - before) / LEARNERS
    print(f"memory of the server: {taken:.1f} MB a session")
    if out:
        note({"megabytes_a_session": taken}, out)
    away, last = server.back - server.killed, max(lesson.resumed, default=float("nan"))
    cut = len(lesson.resumed)
    print(f"killed, and back after {away:.1f} s; {cut} were cut off, the last went on {last:.1f} s later")
    fine = check_answers(lesson) and await compare_alone(lesson)
    return fine and high < REACH and late < HEARD and last < BACK and not any(one.fault for one in lesson.played)


def check_answers(lesson: Lesson) -> bool:
    """Tells whether every answer is kept, and is that of its own learner's text."""
    answers = lesson.classes.answers(lesson.code)
    numbers = {one.id: int(one.name.split()[1]) for one in lesson.classes.learners(lesson.code)}
    texts = [text_of(numbers[one.learner], one.step) for one in answers]
    wrong = [one for one, text in zip(answers, texts, strict=True) if abs(one.content["true"] - loss_of(text)) > GAP]
    print(f"{len(answers)} of {LEARNERS * STEPS} answers kept, {len(wrong)} not of their own learner's text")
    return not wrong and len(answers) == LEARNERS * STEPS


async def compare_alone(lesson: Lesson) -> bool:
    """Tells whether each text was drawn in the class as a visitor without a class gets it."""
    drawn = {one.action: one.digest for one in lesson.played if one.action.widget == "text"}
    again = [Played(act, 0.0, "") for text in drawn for act in (PAGE, text)]
    alone = await repeat(lesson.server.address, again)
    found = {one.action: one.digest for one in alone if one.action.widget}
    others = [act for act in drawn if drawn[act] != found[act]]
    print(f"compared with the same alone: {len(drawn) - len(others)} equal, {len(others)} not {others[:3] or ''}")
    return not others


async def come_and_go(server: Server) -> bool:
    """Tells whether SESSIONS that open a page, write and go leave no memory behind."""

    async def come(number: int) -> None:
        async with session(server.address, f"{number + 1000:032x}") as visitor:
            for act in (PAGE, Action("walkthrough", "text", text_of(number, 0))):
                await perform(visitor, act)

    async def come_in_turn(numbers: range) -> float:
        for at in range(numbers.start, numbers.stop, AT_ONCE):
            await asyncio.gather(*(come(number) for number in range(at, at + AT_ONCE)))
        await asyncio.sleep(AFTER)
        return server.memory

    before = await come_in_turn(range(SESSIONS))
    after = await come_in_turn(range(SESSIONS, 2 * SESSIONS))
    print(f"memory after {SESSIONS} sessions {before:.0f} MB, after as many more {after:.0f} MB")
    return after < (1 + KEPT) * before


def text_of(number: int, step: int) -> str:
    return f"{TEXTS[number % len(TEXTS)]} {number} {step}"


def loss_of(text: str) -> float:
    checkpoint = library.checkpoint(MODEL)
    return surprise(checkpoint, tokens(checkpoint, text).ids).mean


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2, help="processes of the server")
    parser.add_argument("--out", type=Path, help="file in JSON in which the memory of a session is noted")
    parser.add_argument("--trainings", type=int, default=TRAININGS, help="runs that are trained meanwhile")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"LOUPE_CLASSES": f"{folder}/classes.sqlite", "LOUPE_RUNS": f"{folder}/runs"}
        begun, server = perf_counter(), Server(options.workers, Path(folder) / "log")
        server.start()
        print(f"served after {perf_counter() - begun:.0f} s")
        try:
            with trainings(options.trainings, folder):
                held = asyncio.run(measure(server, Classes(os.environ["LOUPE_CLASSES"]), options.out))
            sys.exit(not (asyncio.run(come_and_go(server)) and held))
        finally:
            server.kill()

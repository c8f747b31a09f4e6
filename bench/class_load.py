"""A class of thirty at once: how long its actions take, when an answer stands on the teacher's page, and whose it is.

Every learner has a session over a websocket of their own, writes a text, opens the answer's field and hands in an
estimate of its loss, step after step; the teacher's page is drawn as soon as it hears of something. In the end each
answer is graded again by this process, from the text that its learner wrote.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path
from random import Random
from time import perf_counter, time

import numpy as np

from bench.load import ANSWER, HAND_IN, OPEN, REACH, TEXTS, Action, Played, memory_of, perform, session, summary
from engine.analysis.surprise import surprise
from engine.classes.steps import Step
from engine.classes.store import Classes
from engine.inputs.readers import tokens
from engine.runtime import library
from engine.runtime.openings import name_person
from tests.browser.harness import UVICORN, served

LEARNERS, STEPS, PACE = 30, 6, 10.0  # seconds between two steps
MODEL = "everyday"
HEARD = 1.0  # s until an answer stands on the teacher's page
GAP = 1e-3  # nats, by which a loss computed elsewhere may differ


async def learn(address: str, classes: Classes, code: str, number: int, begun: float) -> list[Played]:
    """Writes, answers and hands in at each step."""
    random, cookie, played = Random(number), f"{number:032x}", []
    learner = classes.join(code, f"learner {number}", name_person(cookie))
    async with session(address, cookie) as visitor:
        for step in range(STEPS):
            await asyncio.sleep(max(0.0, begun + PACE * step + random.random() * PACE / 3 - time()))
            while classes.find(code).at != step:
                await asyncio.sleep(0.1)
            text = text_of(number, step)
            field = OPEN.replace("0", str(step))
            acts = [Action("walkthrough"), Action("walkthrough", "text", text), Action("walkthrough", field, True)]
            acts += [Action("walkthrough", ANSWER, 1.0 + random.random()), Action("walkthrough", HAND_IN, None)]
            for act in acts:
                try:
                    played.append(await perform(visitor, act))
                except KeyError as error:
                    played.append(Played(act, 0.0, "", f"learner {learner.name} was not shown {error}"))
    return played


async def teach(address: str, classes: Classes, code: str, begun: float) -> list[float]:
    """Draws the teacher's page whenever something was handed in; how old the newest answer was then, in seconds."""
    ages, seen = list[float](), 0
    async with session(address, "f" * 32) as visitor:
        while time() < begun + PACE * STEPS:
            step = min(int((time() - begun) / PACE), STEPS - 1)
            if classes.find(code).at < step:
                classes.go_to(code, step)
            answers = classes.answers(code)
            if len(answers) > seen:
                seen = len(answers)
                newest = max(one.at for one in answers)
                await perform(visitor, Action("teach"))
                ages.append(time() - newest)
            await asyncio.sleep(0.2)
    return ages


async def measure(address: str, classes: Classes) -> bool:
    steps = [Step("walkthrough", {"model": MODEL}, "loss", f"Step {one}") for one in range(STEPS)]
    code, _secret = classes.start(name_person("f" * 32), steps)
    before, begun = memory_of(os.getpid()), time() + 2
    learners = [learn(address, classes, code, number, begun) for number in range(LEARNERS)]
    taught = asyncio.create_task(teach(address, classes, code, begun))
    played = await asyncio.gather(*learners)
    ages = await taught
    every = [one for learner in played for one in learner]
    print(summary("a class", every))
    for widget in ("", "text", HAND_IN):
        print(summary(widget or "page", [one for one in every if one.action.widget == widget]))
    late = float(np.quantile(ages, 0.95)) if ages else float("nan")
    print(f"an answer on the teacher's page: p95 {late:.2f} s (reach {HEARD:g})")
    print(f"memory of the server: {(memory_of(os.getpid()) - before) / LEARNERS:.1f} MB a session")
    answers = classes.answers(code)
    numbers = {one.id: int(one.name.split()[1]) for one in classes.learners(code)}
    texts = [text_of(numbers[one.learner], one.step) for one in answers]
    wrong = [one for one, text in zip(answers, texts, strict=True) if abs(one.content["true"] - loss_of(text)) > GAP]
    print(f"{len(answers)} of {LEARNERS * STEPS} answers kept, {len(wrong)} not of their own learner's text")
    reached = float(np.quantile([one.seconds for one in every], 0.95)) < REACH and late < HEARD
    return reached and not wrong and len(answers) == LEARNERS * STEPS and not any(one.fault for one in every)


def text_of(number: int, step: int) -> str:
    return f"{TEXTS[number % len(TEXTS)]} {number} {step}"


def loss_of(text: str) -> float:
    checkpoint = library.checkpoint(MODEL)
    return surprise(checkpoint, tokens(checkpoint, text).ids).mean


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2, help="processes of the server")
    command = [*UVICORN, "--workers", str(parser.parse_args().workers)]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LOUPE_CLASSES"] = f"{folder}/classes.sqlite"
        begun = perf_counter()
        with served(command, "/health", Path(folder) / "log") as address:
            print(f"served after {perf_counter() - begun:.0f} s")
            sys.exit(not asyncio.run(measure(address, Classes(f"{folder}/classes.sqlite"))))

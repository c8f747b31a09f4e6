"""What a class handed in at one step, as a chart and as a table."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from PIL import ImageColor

from server.classes.store import Answer, Learner, Room
from views.charts.template import AltairChart, colors
from views.core.table_files import Table
from views.core.theme import Shade, ramp

BINS = 20
SCALE = range(1, 6)
WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
MOST_WORDS, SMALLEST, LARGEST = 60, 14, 52  # of a cloud; CSS pixels of a word of one learner, and of the commonest
CLOUD, LETTER = 640, 0.62  # its CSS pixels, and the width of a letter as a share of its size
Content = Mapping[str, Any]  # of one answer


def draw_choices(found: Sequence[Content], revealed: bool, shade: Shade) -> AltairChart:
    """A bar for each answer, as long as it was given often; once it is revealed, the right ones stand out."""
    ink = colors(shade)
    table = pd.DataFrame({"answer": [one["said"] for one in found], "right": [bool(one["right"]) for one in found]})
    counted = table.groupby("answer", as_index=False).agg(count=("right", "size"), right=("right", "sum"))
    counted["wrong"] = counted["count"] - counted["right"]
    kinds, inks = (["right", "wrong"], ["query", "soft"]) if revealed else (["count"], ["key"])
    long = counted.melt("answer", kinds, "kind", "learners")
    scale = alt.Scale(domain=kinds, range=[ink[one] for one in inks])
    base = alt.Chart(long, height=alt.Step(34)).encode(y=alt.Y("answer:N", title=None, sort="-x"))
    bars = base.mark_bar().encode(
        x=alt.X("learners:Q", title="learners", axis=alt.Axis(tickMinStep=1, format="d")),
        color=alt.Color("kind:N", scale=scale, legend=alt.Legend(title=None) if revealed else None),
        tooltip=["answer", "kind", "learners"],
    )
    return alt.layer(bars)


def draw_parts(found: Sequence[Content], revealed: bool, shade: Shade) -> AltairChart:
    """A bar for each part, as long as many learners named it; once it is revealed, the right ones stand out."""
    named = [{"said": part, "right": right} for one in found for part, right in one["parts"].items()]
    return draw_choices(named, revealed, shade)


def draw_estimates(found: Sequence[Content], revealed: bool, shade: Shade) -> AltairChart:
    """Histogram of what was estimated; once it is revealed a line at each true value, which may be another for each."""
    ink = colors(shade)
    table = pd.DataFrame({"estimate": [one["number"] for one in found], "true": [one["true"] for one in found]})
    base = alt.Chart(table, height=240)
    bars = base.mark_bar(color=ink["key"]).encode(
        alt.X("estimate:Q", bin=alt.Bin(maxbins=BINS), title="estimate"),
        alt.Y("count():Q", title="learners", axis=alt.Axis(tickMinStep=1, format="d")),
    )
    lines = base.mark_rule(color=ink["query"], size=2).encode(x="true:Q", tooltip=alt.Tooltip("true:Q", format=".3f"))
    return alt.layer(bars, lines) if revealed else alt.layer(bars)


def draw_scale(found: Sequence[Content], shade: Shade) -> AltairChart:
    """A bar for each number of the scale, and the mean above."""
    said = [int(one["number"]) for one in found]
    table = pd.DataFrame({"number": list(SCALE), "learners": [said.count(number) for number in SCALE]})
    mean = alt.TitleParams(f"mean {sum(said) / len(said):.2f}", anchor="start")
    bars = alt.Chart(table, height=220, title=mean).mark_bar(color=colors(shade)["key"])
    return alt.layer(
        bars.encode(
            x=alt.X("number:O", title=None, axis=alt.Axis(labelAngle=0)),
            y=alt.Y("learners:Q", title="learners", axis=alt.Axis(tickMinStep=1, format="d")),
            tooltip=["number", "learners"],
        )
    )


def draw_words(found: Sequence[Content], shade: Shade) -> AltairChart:
    """The words that were handed in, each as large as many learners wrote it."""
    counts = Counter(word for one in found for word in set(WORD.findall(str(one["said"]).casefold())))
    common = counts.most_common(MOST_WORDS)
    x, y, down, rows = 0.0, 0.0, 0.0, list[dict[str, Any]]()
    for word, count in common:
        size = SMALLEST + (LARGEST - SMALLEST) * math.sqrt((count - 1) / max(common[0][1] - 1, 1))
        wide = LETTER * size * len(word) + 0.6 * size
        if x and x + wide > CLOUD:
            x, y, down = 0.0, y + down, 0.0
        down = max(down, 1.5 * size)
        rows.append({"word": word, "learners": count, "size": size, "x": x, "y": y + 0.75 * size})
        x += wide
    chart = alt.Chart(pd.DataFrame(rows), width=CLOUD, height=max(y + down, 40))
    hidden = alt.Axis(labels=False, ticks=False, grid=False, domain=False, title=None)
    return alt.layer(
        chart.mark_text(align="left", color=colors(shade)["ink"]).encode(
            x=alt.X("x:Q", scale=alt.Scale(domain=[0, CLOUD]), axis=hidden),
            y=alt.Y("y:Q", scale=alt.Scale(domain=[y + down, 0]), axis=hidden),
            text="word:N",
            size=alt.Size("size:Q", scale=None, legend=None),
            tooltip=["word", "learners"],
        )
    )


def list_questions(found: Sequence[Content]) -> list[dict[str, Any]]:
    """A line for each answer that was given to a question of a lesson, with why it is wrong, the commonest first; no
    names."""
    said = [
        (key, one["said"], one["right"], one["why"])
        for content in found
        for key, one in content.get("questions", {}).items()
    ]
    return [
        {"question": key, "answer": words or "shown without an answer", "right": right, "learners": count, "why": why}
        for (key, words, right, why), count in sorted(Counter(said).items(), key=lambda one: (one[0][0], -one[1]))
    ]


def compare_rooms(rooms: Mapping[str, tuple[Room, Sequence[Answer]]]) -> list[dict[str, Any]]:
    """A line for each step that all of these sessions ask alike: how many answered in each, and which share of those
    was right, or their mean where they gave numbers."""
    first, *others = (room.steps for room, _answers in rooms.values())
    asked = [step for step in first if step.asks and all(step in steps for steps in others)]
    lines = []
    for step in asked:
        line: dict[str, Any] = {"step": step.kind, "question": step.sentence}
        for code, (room, answers) in rooms.items():
            said = [one.content for one in answers if room.steps[one.step] == step]
            found = [one for one in said if not one.get("elsewhere")]
            graded = [one["right"] for one in found if one.get("right") is not None]
            numbers = [one["number"] for one in found if one.get("number") is not None]
            line[f"{code}: answers"] = len(found)
            if graded:
                line[f"{code}: right"] = f"{sum(graded) / len(graded):.0%}"
            elif numbers:
                line[f"{code}: mean"] = f"{sum(numbers) / len(numbers):.2f}"
        lines.append(line)
    return lines


def paint_pattern(picture: Sequence[Sequence[int]], shade: Shade) -> np.ndarray:
    """Attention that was handed in, query key from 0 to 255, as a picture of a pixel a cell: height width channel."""
    colors = np.array([ImageColor.getrgb(one) for one in ramp(shade, "attention", 256)], np.uint8)
    return colors[np.array(picture)]


def list_answers(room: Room, learners: Sequence[Learner], answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """A line for each answer, all read at one moment, and one with none for each learner who missed a step."""
    people, rows = {one.id: one.name for one in learners}, list[dict[str, Any]]()
    for number, step in enumerate(room.steps):
        asked = {"step": number + 1, "kind": step.kind, "question": step.sentence}
        mine = [one for one in answers if one.step == number]
        rows += [
            {
                **asked,
                "name": people[one.learner],
                "time": datetime.fromtimestamp(one.at, UTC).isoformat(" ", "seconds"),
                **{name: one.content.get(name) for name in ("said", "truth", "right", "score", "elsewhere", "page")},
                "link": json.dumps(one.content.get("link")),
            }
            for one in mine
        ]
        if step.asks and number in room.reached:
            missed = people.keys() - {one.learner for one in mine}
            rows += [{**asked, "name": name, "said": ""} for id, name in people.items() if id in missed]
    return rows


def tabulate(rows: Sequence[Mapping[str, Any]]) -> Table:
    """A line for each answer of a session."""
    graded = "said", "truth", "right", "score", "elsewhere"
    names = ("step", "kind", "question", "name", "time", *graded, "page", "link")
    return Table({name: [row.get(name) for row in rows] for name in names}, {"table": "answers of a class"})

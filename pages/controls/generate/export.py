"""Take away, on the page Generate: what was written, and the steps it was written in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

from engine.inputs.readers import kind
from pages.controls.generate.settings import CONTROLLED, USED
from pages.controls.model_input.model_input import FIELDS, given
from pages.controls.share.export import UNKNOWN, Answer
from pages.controls.share.export_tables import Made, Query, Taken
from pages.controls.share.links import address_of
from views.generate.availability import missing
from views.generate.generate import drawn
from views.generate.session import Settings, Writing
from views.generate.tables import AHEAD, LINES, TABLES


@dataclass(frozen=True)
class Written:
    """What `Made` gives away, with what was written in the file."""

    made: Made
    writing: Writing

    @property
    def header(self) -> dict[str, Any]:
        return self.made.header

    def answering(self, payload: bytes, other: Answer) -> Answer:
        usual = self.made.answering(payload, other)

        def answer(query: dict[str, Any]) -> bytes:
            if query.get("take") != "html" or not isinstance(query.get("kept"), Mapping):
                return usual(query)
            whole = drawn(self.writing, {"take": self.header, "kept": query["kept"]})
            return self.made.answering(whole, other)(query)

        return answer


def of_writing(writing: Writing) -> Written:
    fields = FIELDS[kind(writing.checkpoint)]
    texts = [str(given(field)) for field in fields if field not in ("picture", "given") and given(field)]
    without = missing(writing.prompt)
    tables = [name for name in TABLES if name.split(":")[0].lower() not in without]
    usual, now = asdict(Settings()), asdict(writing.settings)
    settings = {name: str(value) for name, value in now.items() if value != usual[name]}

    def lines(query: Query) -> str:
        tab = query.get("tab")
        if not isinstance(tab, str) or tab not in LINES:
            raise ValueError(UNKNOWN)
        if tab in without:
            raise ValueError(without[tab])
        return LINES[tab](writing, query)

    def looked(query: Query) -> Taken:
        name = query.get("matrix")
        if not isinstance(name, str) or name not in tables:
            raise ValueError(UNKNOWN)
        return TABLES[name](writing, query)

    def ahead(query: Query) -> Iterator[dict[str, Any]]:
        yield from chain.from_iterable(asks(writing, query) for asks in AHEAD)

    here = (*USED[writing.settings.method], "method", "most", "stop_at", "seed")
    used = [name for name in CONTROLLED if name in here]
    return Written(
        Made(
            "Generate", "generate", writing.name, " · ".join(texts) or f"picture {given('picture')}", writing.made,
            address_of(writing.name, fields, ()) | settings, lines, patterns=tables, looked=looked,
            data="a table of a tab", controls=[*fields, "model", *used], ahead=ahead,
        ),
        writing,
    )  # fmt: skip

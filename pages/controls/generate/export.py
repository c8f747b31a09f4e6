"""Share & export on the page Generate: what was written and the steps it was written in, and the charts of a tab."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pages.controls.generate.parameters import GENERATE, OF_TABS, USUAL
from pages.controls.generate.prompt import prompt_notice
from pages.controls.generate.settings import USED
from pages.controls.generate.tabs import TabContent
from pages.controls.model_input.model_input import field_value, fields_read, texts_read
from pages.controls.share.export import Export
from pages.controls.share.links import address_of
from pages.controls.share.panel import share_panel
from pages.controls.state.page_state import Here
from views.charts.standalone import chart_file
from views.core.questions import UNKNOWN, Query
from views.generate.availability import missing_tabs, notice
from views.generate.beam_search import BeamOptions
from views.generate.generate import grid, page_payload
from views.generate.questions import TABLES, carry_queries
from views.generate.session import GenerationContext


def writing_export(
    here: Here, writing: GenerationContext, tab: str, shown: TabContent
) -> tuple[Export, Callable[[Query], bytes]]:
    """Export of the component of an open tab, and what its file draws; for a file, `of` is {kept: the tree of what was
    written, branch: the ids of the one that is shown}."""
    fields = fields_read(writing.checkpoint)
    texts = texts_read(fields)
    without = missing_tabs(writing.prompt)
    used = (*USED[writing.settings.method], "method", "most", "stop_at", "seed")

    def payload(of: Query) -> bytes:
        return page_payload(writing, {**tab_notes(writing, tab, shown), "take": export.header, "kept": tree_of(of)[0]})

    def carry(of: Query, row: int) -> Iterator[Query]:
        kept, branch = tree_of(of)
        asks, coming = kept.get("asks"), kept.get("coming")
        still = coming if isinstance(coming, Mapping) else {}
        yield from asks if isinstance(asks, list) else ()
        more = carry_queries(writing, branch, bool(still.get("beam")), bool(still.get("surprise")))
        yield from ({"trace": writing.digest, **one} for one in more)

    export = Export(
        "Generate",
        "generate",
        writing,
        " · ".join(texts) or f"picture {field_value('picture')}",
        link_of(here, writing, tab),
        [*fields, "model", *(name for name in GENERATE.hideable if name in used)],
        {title: {"ask": ask} for title, ask in TABLES.items() if title.split(":")[0].lower() not in without},
        "a table of a tab",
        carry=carry,
        predicts=True,
    )
    return export, payload


def tree_of(of: Query) -> tuple[dict[str, Any], list[int]]:
    kept, branch = of.get("kept"), of.get("branch")
    if isinstance(kept, dict) and isinstance(branch, list) and all(type(one) is int for one in branch):
        return kept, branch
    raise ValueError(UNKNOWN)


def tab_notes(writing: GenerationContext, tab: str, shown: TabContent) -> dict[str, Any]:
    """Values above the tabs, and settings that the payload holds of the open one; of the others, which a file has
    too, their defaults."""
    usual = BeamOptions(stop_at="" if grid(writing.checkpoint) else writing.settings.stop_at)
    others = {"beam": vars(usual), "surprise": {"reads": "written", "stride": "half", "charted": 0}}
    told = " ".join(filter(None, [prompt_notice(writing), notice(writing.prompt)]))
    return {"view": tab, "notice": told, **others, **shown.header}


def link_of(here: Here, writing: GenerationContext, tab: str) -> dict[str, str]:
    """The query of a link to what is shown: the prompt, settings and controls of the open tab off their defaults."""
    settings = USUAL if writing.checkpoint.config.generates else ()
    own = (parameter.name for parameter in OF_TABS.get(tab, ()))
    fields = fields_read(writing.checkpoint)
    return address_of(writing.name, fields) | here.link("view", *settings, *own)


def share_charts(here: Here, writing: GenerationContext, tab: str, shown: TabContent) -> None:
    """Draws the panel of a tab's charts, and of its tables where there are any."""
    title = tab.title()
    caption = (writing.name, shown.sentence)
    share_panel(
        title,
        link_of(here, writing, tab),
        [*fields_read(writing.checkpoint), "model"],
        shown.python,
        shown.tables,
        lambda: chart_file(f"{title} · Loupe", [one.figure for one in shown.charts], caption=caption),
        label="" if shown.python else "Share & export the charts",
        key=f"share {tab}",
        names=[writing.name],
    )

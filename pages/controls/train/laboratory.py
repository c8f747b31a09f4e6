"""The laboratory that the pages about training share: what is asked of a run, its curves and its model as it learns,
and the runs that were made."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import streamlit as st

from engine.places import ASSETS
from engine.training.launch import warm_trainer
from pages.controls.bar import bar
from pages.controls.model_input.model_input import looked_at
from pages.controls.share.links import address_now
from pages.controls.state.page_state import Here
from pages.controls.state.session import event_value, find_record
from pages.controls.train.export import training_export
from pages.controls.train.questions import answer, start_contrast
from pages.controls.train.recipe_plan import Plan
from pages.controls.train.run_state import digest
from pages.controls.train.run_table import refresh, runs_table
from pages.controls.train.search import draw_search
from pages.controls.train.session import Session
from pages.controls.visitor import on_this_machine, visitor_name
from views.charts.template import plotly_template
from views.core.component import courier, plotly_address, view
from views.core.markdown import escape_markdown

# The run that is looked at, the runs whose curves are laid over its own, a command that was carried out, and the order
# of the table of runs in a link of an earlier version.
EVENTS = ("look", "overlay", "command", "order")
laboratory = view("train", events=EVENTS)
TEMPLATES = {shade: plotly_template(shade).to_plotly_json() for shade in ("light", "dark")}


def training_session(recorded: Path) -> Session:
    """The session of a page whose visitors meet the run `recorded`."""
    warm_trainer.shared.keep()  # so that Play begins at once
    found = find_record(Session)
    found.recorded = recorded
    found.visitor, found.at_machine = visitor_name(), on_this_machine()
    return found


def hear(here: Here, session: Session) -> dict[str, Callable[[], None]]:
    def look() -> None:
        if isinstance(name := event_value("train", "look"), str):
            here.state.choose("run", name)  # a link leads to it

    def overlay() -> None:
        if isinstance(names := event_value("train", "overlay"), list):
            session.overlaid = [name for name in names if isinstance(name, str)]

    def sort() -> None:
        here.state.take_former({"runs": str(event_value("train", "order"))})

    return {"look": look, "overlay": overlay, "command": refresh, "order": sort}


def offer_contrasts(here: Here, session: Session, plan: Plan) -> None:
    """Trains the recipe as it is, and once more with one choice changed; their curves are laid over each other."""
    if not plan.contrasts:
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="contrast"):
        change = st.selectbox("compare on the same seed with", list(plan.contrasts), key="contrast change", width=290)
        if st.button("Run both", help="trains the recipe as it is, and once more with this one choice changed"):
            try:
                first, *others = start_contrast(session, change).header["runs"]
            except ValueError as error:
                st.warning(escape_markdown(error))
                return
            session.overlaid = list(dict.fromkeys([*session.overlaid, *others]))
            here.state.rerun_with("run", first)


def draw_laboratory(here: Here, session: Session, plan: Plan, recorded: Path | None) -> None:
    """Draws all below the plan, and answers what it asks. `recorded` is the run that a visitor meets, where the plan is
    of what it learned."""
    model, said = looked_at()
    bar(plan.base or model, said if plan.base in ("", model) else None)
    session.plan, session.name, session.contrasts = plan.recipe, plan.name, plan.contrasts
    offer_contrasts(here, session, plan)
    draw_search(here, session, plan)
    run = here["run"]
    shown = {
        "run": run,
        "recorded": str(recorded.relative_to(ASSETS)) if recorded is not None and recorded.is_dir() else "",
        "plan": {"name": plan.name, "line": plan.line, "problem": plan.problem, "asks": plan.asks}
        | {"recipe": "" if plan.recipe is None else digest(plan.recipe), "seconds": plan.seconds},
        "overlays": session.overlaid,
        "commands": session.commands,
        "plotly": plotly_address(),
        "templates": TEMPLATES,
    }
    export = training_export(session, run, shown, address_now())
    laboratory(shown | {"take": export.header}, key="train", on=hear(here, session))
    runs_table(here, session)
    courier("courier", partial(answer, session, page=export.page))

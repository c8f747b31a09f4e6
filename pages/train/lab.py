"""Train: choose a task, press play, watch a model learn it, and go back to the step at which something formed."""

from collections.abc import Callable

import streamlit as st

from engine.training import warm_trainer
from pages.controls.share.links import honour_link
from pages.controls.train.export import answering, of_training
from pages.controls.train.queries import digest
from pages.controls.train.questions import answered
from pages.controls.train.recipe_plan import planned
from pages.controls.train.session import RECORDED, Session
from views.core.component import courier, view

EVENTS = ("look", "overlay")  # the run that is looked at, and those whose curves are laid over its own
laboratory, table = view("train", events=EVENTS), view("train/runs", events=EVENTS)


def session() -> Session:
    found: Session = st.session_state.setdefault("training", Session())
    return found


def heard(key: str) -> Callable[[], None]:
    """What a view says, before the page is drawn: no other rerun can come in between."""

    def hear() -> None:
        said = st.session_state[key]
        if isinstance(said.look, str):
            st.query_params["run"] = said.look  # a link leads to it
        if isinstance(said.overlay, list):
            st.session_state.overlaid = [name for name in said.overlay if isinstance(name, str)]

    return hear


honour_link({})
warm_trainer.shared.keep()  # so that Play begins at once
learning, plan = session(), planned()
learning.plan, learning.name, learning.contrasts = plan.recipe, plan.name, plan.contrasts
run, overlays = st.query_params.get("run", ""), st.session_state.get("overlaid", [])
shown = {
    "run": run,
    "recorded": RECORDED.is_dir(),
    "plan": {"name": plan.name, "line": plan.line, "problem": plan.problem, "changes": list(plan.contrasts)}
    | {"recipe": "" if plan.recipe is None else digest(plan.recipe)},
    "overlays": overlays,
}
taking = of_training(learning, run)
laboratory(shown | {"take": taking.header}, key="lab", on=dict.fromkeys(EVENTS, heard("lab")))
table({"run": run, "overlays": overlays}, key="runs", on=dict.fromkeys(EVENTS, heard("runs")))
courier("courier", answering(taking, learning, run, shown, lambda query: answered(learning, query)))

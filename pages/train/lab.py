"""Train: choose a task, press play, watch a model learn it, and go back to the step at which something formed."""

import streamlit as st

from pages.controls.recipe_plan import planned
from pages.controls.training import answered
from pages.controls.training_session import RECORDED, Session
from pages.controls.training_told import digest
from views.component import courier, view

laboratory = view("lab", events=("look", "overlay"))
table = view("runs", events=("look", "overlay"))


def session() -> Session:
    found: Session = st.session_state.setdefault("training", Session())
    return found


def look(run: object) -> None:
    """Another run is looked at: it stands in the address, so that a link leads to it."""
    if isinstance(run, str):
        st.query_params["run"] = run


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
drawn = laboratory(shown, key="lab")
listed = table({"run": run, "overlays": overlays}, key="runs")
for event in (drawn, listed):
    if event.overlay is not None:
        st.session_state.overlaid = [name for name in event.overlay if isinstance(name, str)]
    if event.look is not None:
        look(event.look)
    if event.overlay is not None or event.look is not None:
        st.rerun()
courier("courier", lambda query: answered(learning, query))

"""The way back stands where another message follows it at once."""

from types import SimpleNamespace

import pytest
from streamlit.runtime.scriptrunner import RerunData
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests

from pages.controls.state import history

BACK, QUESTION, CLICK = RerunData(is_history_navigation=True), RerunData(fragment_id="courier"), RerunData()


def test_a_question_that_comes_before_its_run_has_begun() -> None:
    requests = ScriptRequests()
    requests.request_rerun(BACK)
    requests.request_rerun(QUESTION)
    asked = requests.on_scriptrunner_ready().rerun_data
    assert asked.is_history_navigation and not asked.fragment_id_queue
    requests.request_rerun(CLICK)
    assert not requests.on_scriptrunner_ready().rerun_data.is_history_navigation  # that of the run before is over


@pytest.mark.parametrize("back", [True, False])
def test_a_click_that_interrupts_its_run(back: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    running = SimpleNamespace(is_history_navigation=back)
    monkeypatch.setattr(history, "get_script_run_ctx", lambda: running)
    requests = ScriptRequests()
    assert requests.on_scriptrunner_yield() is None
    requests.request_rerun(CLICK)
    interrupted = requests.on_scriptrunner_yield()
    assert interrupted and interrupted.rerun_data.is_history_navigation == back

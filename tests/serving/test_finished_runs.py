"""A message that comes before the news of a run's end waits for it."""

import asyncio
from types import SimpleNamespace

from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.app_session import AppSession, AppSessionState
from streamlit.runtime.scriptrunner import RerunData, ScriptRunnerEvent
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests

from tests.coroutines import finish


def runner(*, ended: bool) -> SimpleNamespace:
    requests = ScriptRequests()
    requests.request_rerun(RerunData())
    for _ in range(2 if ended else 1):  # the run begins; there is nothing more to run
        requests.on_scriptrunner_ready()
    return SimpleNamespace(_requests=requests, _execing=not ended, request_rerun=requests.request_rerun)


async def play(*, ended: bool) -> tuple[list[str], list[str]]:
    """Names of the pages for which a runner is started before and after a run has told of its end."""
    started: list[str] = []
    session = SimpleNamespace(
        page_script_hash="walkthrough", _state=AppSessionState.APP_NOT_RUNNING, _scriptrunner=runner(ended=ended),
        _event_loop=asyncio.get_running_loop(), _settle_once_delivered=lambda: None, has_fragment=lambda name: True,
        _create_scriptrunner=lambda run: started.append(run.page_name),
    )  # fmt: skip
    session.request_rerun = lambda state: AppSession.request_rerun(session, state)  # type: ignore[arg-type]
    session.request_rerun(ClientState(page_name="one", fragment_id="courier"))
    session.request_rerun(ClientState(page_name="two"))
    before = list(started)
    AppSession._handle_scriptrunner_event_on_event_loop(  # type: ignore[arg-type]
        session, session._scriptrunner, ScriptRunnerEvent.SHUTDOWN
    )
    return before, started


def test_a_message_waits_for_what_has_ended_and_no_other() -> None:
    assert finish(play(ended=True)) == ([], ["one", "two"])
    assert finish(play(ended=False)) == ([], [])  # the one that runs has taken them

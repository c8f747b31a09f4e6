"""A message that comes before the news of a run's end waits for it."""

import asyncio
from types import SimpleNamespace

from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.app_session import AppSession, AppSessionState
from streamlit.runtime.scriptrunner import RerunData, ScriptRunnerEvent
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests
from streamlit.runtime.state.session_state import SessionState

from server.http.streamlit_patches import same_page_link
from tests.coroutines import finish


def runner(*, ended: bool) -> SimpleNamespace:
    requests = ScriptRequests()
    requests.request_rerun(RerunData())
    for _ in range(2 if ended else 1):  # the run begins; there is nothing more to run
        requests.on_scriptrunner_ready()
    return SimpleNamespace(_requests=requests, _execing=not ended, request_rerun=requests.request_rerun)


async def play(*messages: ClientState, ended: bool, late: ClientState | None = None) -> tuple[list[str], list[str]]:
    """Queries for which a runner is started before and after a run has told of its end, `late` being said then."""
    started: list[str] = []
    session = SimpleNamespace(
        page_script_hash="x", _state=AppSessionState.APP_NOT_RUNNING, _scriptrunner=runner(ended=ended),
        _event_loop=asyncio.get_running_loop(), _settle_once_delivered=lambda: None, has_fragment=lambda name: True,
        _create_scriptrunner=lambda run: started.append(run.query_string), _session_state=SessionState(),
        _browser_queue=SimpleNamespace(enqueue=lambda message: None), _message_enqueued_callback=None,
        browser=same_page_link.Browser("one"),
    )  # fmt: skip
    session.request_rerun = lambda state: AppSession.request_rerun(session, state)  # type: ignore[arg-type]
    for message in messages:
        session.request_rerun(message)
    before = list(started)
    AppSession._handle_scriptrunner_event_on_event_loop(  # type: ignore[arg-type]
        session, session._scriptrunner, ScriptRunnerEvent.SHUTDOWN
    )
    if late is not None:
        session.request_rerun(late)
    return before, started


def said(query: str, **more: str) -> ClientState:
    message = ClientState(query_string=query, page_script_hash="x", **more)
    message.widget_states.widgets.add(id="control")
    return message


def test_a_message_waits_for_what_has_ended_and_no_other() -> None:
    both = said("one", fragment_id="courier"), said("two")
    assert finish(play(*both, ended=True)) == ([], ["one", "two"])
    assert finish(play(*both, ended=False)) == ([], [])  # the one that runs has taken them


def test_a_link_that_waited_stands_too() -> None:
    """If `same_page_link` heard of it twice, the second one would be no link, but the browser's news of the address."""
    link = ClientState(query_string="two", page_script_hash="x")
    assert finish(play(link, ended=True, late=said("one"))) == ([], ["two", "two"])

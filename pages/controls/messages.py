"""Nothing that a browser says is lost on the way into the script.

Streamlit starts a run for every message of a browser, interrupts the run before, and takes of every message what all
controls stand at. A page here sends more than one at a time: a view asks its questions as soon as it is drawn, and the
courier's fragment answers them. Eight things are lost on the way then, on a busy machine above all; each function below
mends one of them, and says how it comes about.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any

from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner import RerunData, ScriptRunner, ScriptRunnerEvent, get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequest, ScriptRequests, ScriptRequestType
from streamlit.runtime.state.safe_session_state import SafeSessionState
from streamlit.runtime.state.session_state import SessionState, WStates

from pages.controls.model_input.browser_history import went_back

_here = threading.local()  # `calling`: this thread takes a message in


def lose_no_message() -> None:
    """Call it before a browser connects; a second call does nothing."""
    if getattr(AppSession, "loses_no_message", False):
        return
    AppSession.loses_no_message = True  # type: ignore[attr-defined]
    _run_whole_at_first()
    _deliver_finished_runs()
    _keep_going_back()
    _keep_the_turned_page()
    _follow_links_to_the_page_itself()
    _keep_to_the_fragment()
    _hear_what_was_said_beside()
    _keep_callbacks_whole()


def _run_whole_at_first() -> None:
    """Lets the first message of a session run the whole script, so that a browser whose server was started anew goes on
    where it was. What it says first may be about a fragment: the new session, which has run nothing, knows none, and
    drops the message and every other one about that fragment."""
    request = AppSession.request_rerun

    @wraps(request)
    def request_whole(self: AppSession, client_state: ClientState | None) -> None:
        if client_state is not None and not self.page_script_hash:  # nothing has run
            client_state.fragment_id = ""
        request(self, client_state)

    AppSession.request_rerun = request_whole  # type: ignore[method-assign]


def _deliver_finished_runs() -> None:
    """Lets a message that comes between the end of a run and the news of it wait for the news. A run tells its session
    by the event loop what it draws. Where that loop gets no time until the run has ended, and has another message to
    see to first, Streamlit starts a new runner for that and ignores all that is still to come of the one before."""
    request, hear = AppSession.request_rerun, AppSession._handle_scriptrunner_event_on_event_loop

    @wraps(request)
    def request_in_turn(self: AppSession, client_state: ClientState | None) -> None:
        if _has_ended(self._scriptrunner):
            self.__dict__.setdefault("waiting", []).append(client_state)
        else:
            request(self, client_state)

    @wraps(hear)
    def hear_and_go_on(self: AppSession, sender: ScriptRunner | None, event: ScriptRunnerEvent, *more: Any) -> None:
        hear(self, sender, event, *more)
        if event == ScriptRunnerEvent.SHUTDOWN:
            for client_state in self.__dict__.pop("waiting", []):
                self.request_rerun(client_state)

    AppSession.request_rerun = request_in_turn  # type: ignore[method-assign]
    AppSession._handle_scriptrunner_event_on_event_loop = hear_and_go_on  # type: ignore[assignment, method-assign]


def _has_ended(runner: ScriptRunner | None) -> bool:
    """True if a runner takes no more requests and has left the script: its last event is under way."""
    return runner is not None and runner._requests._state == ScriptRequestType.STOP and not runner._execing


def _keep_going_back() -> None:
    """Lets the way back stand where a message follows it before its run is over. Streamlit takes that message for all
    there is to do, with the values that the controls had before."""
    request, interrupt = ScriptRequests.request_rerun, ScriptRequests.on_scriptrunner_yield

    @wraps(request)
    def request_too(self: ScriptRequests, asked: RerunData) -> bool:
        waits = self._state == ScriptRequestType.RERUN and self._rerun_data.is_history_navigation
        return request(self, replace(asked, is_history_navigation=True) if waits else asked)

    @wraps(interrupt)
    def interrupt_too(self: ScriptRequests) -> ScriptRequest | None:
        asked = interrupt(self)
        if asked is None or asked.type != ScriptRequestType.RERUN or not went_back():
            return asked
        return ScriptRequest(asked.type, replace(asked.rerun_data, is_history_navigation=True))

    ScriptRequests.request_rerun = request_too  # type: ignore[assignment, method-assign]
    ScriptRequests.on_scriptrunner_yield = interrupt_too  # type: ignore[method-assign]


def _keep_the_turned_page() -> None:
    """Lets a link that was clicked stand where the script asks to run again before it has heard of the click: what
    `st.rerun` asks for is the address of the run that is going on, which Streamlit takes in place of the link's."""
    request = ScriptRequests.request_rerun

    @wraps(request)
    def request_there(self: ScriptRequests, asked: RerunData) -> bool:
        context = get_script_run_ctx()
        if context is not None and context.script_requests is self and self._state == ScriptRequestType.RERUN:
            here = (context.query_string, context.page_script_hash)
            if (asked.query_string, asked.page_script_hash) == here:
                there = self._rerun_data
                asked = replace(asked, query_string=there.query_string, page_script_hash=there.page_script_hash)
        return request(self, asked)

    ScriptRequests.request_rerun = request_there  # type: ignore[assignment, method-assign]


def _follow_links_to_the_page_itself() -> None:
    """Lets a link to the page that is shown, with another query, stand where a message comes after it. The browser says
    the address before with every message, until the script has told it the new one, and the page turns back."""
    request, enqueue = AppSession.request_rerun, AppSession._enqueue_forward_msg

    @wraps(request)
    def request_there(self: AppSession, client_state: ClientState | None) -> None:
        if client_state is not None:
            _follow(self.__dict__.setdefault("browser", Browser()), client_state, self.page_script_hash)
        request(self, client_state)

    @wraps(enqueue)
    def enqueue_and_note(self: AppSession, message: ForwardMsg) -> None:
        if message.HasField("page_info_changed"):
            self.__dict__.setdefault("browser", Browser()).query = message.page_info_changed.query_string
        enqueue(self, message)

    AppSession.request_rerun = request_there  # type: ignore[method-assign]
    AppSession._enqueue_forward_msg = enqueue_and_note  # type: ignore[assignment, method-assign]


@dataclass
class Browser:
    """The query that a browser was last told, or has last said, that its address has; and those that it had until it
    followed a link, to `link`, as long as it has said no other since."""

    query: str = ""
    before: set[str] = field(default_factory=set)
    link: str = ""


def _follow(browser: Browser, said: ClientState, shown: str) -> None:
    """Corrects the address in a message of a browser that has not heard yet where its link has led. `shown` is the
    page that runs, or has run last."""
    here = said.page_script_hash == shown and not said.is_history_navigation
    by_link = not said.widget_states.widgets and not said.fragment_id
    if here and by_link and said.query_string != browser.query:
        browser.before.add(browser.query)
        browser.link = said.query_string
    elif here and said.query_string in browser.before:
        said.query_string = browser.link
        return
    else:
        browser.before.clear()
    browser.query = said.query_string


def _keep_to_the_fragment() -> None:
    """Leaves controls outside a fragment as they are where a message is about the fragment. Of a control that the
    server has just set, by a callback or the way back, the browser may not have heard yet: what it says of it then is
    the value before, which Streamlit takes for a change by hand. One that is changed by hand sends a message of its
    own."""
    take_in = SessionState.on_script_will_rerun

    @wraps(take_in)
    def take_in_own(self: SessionState, states: WidgetStates | None, **options: Any) -> None:
        context = get_script_run_ctx()
        if states is not None and context is not None and context.fragment_ids_this_run:
            states = WidgetStates(
                widgets=[one for one in states.widgets if _is_of(self, one.id, context.fragment_ids_this_run)]
            )
        take_in(self, states, **options)

    SessionState.on_script_will_rerun = take_in_own  # type: ignore[assignment, method-assign]


def _is_of(state: SessionState, widget: str, fragments: list[str]) -> bool:
    """True if a widget stands in one of the fragments, or is not known yet."""
    known = state._new_widget_state.widget_metadata.get(widget)
    return known is None or known.fragment_id in fragments


def _hear_what_was_said_beside() -> None:
    """Lets the whole page run where a control outside the fragment was changed by hand in the tick in which the
    fragment spoke. A browser makes one message of what is said to it in one tick, about the fragment that spoke first:
    the Enter behind a text is lost if a view asks just then. A control whose value differs from that of the message
    before, and from what it stands at, was changed by hand; what the server has set was not."""
    request = AppSession.request_rerun

    @wraps(request)
    def request_for_all(self: AppSession, client_state: ClientState | None) -> None:
        if client_state is not None:
            before = self.__dict__.get("said", {})
            said = self.__dict__["said"] = {one.id: one for one in client_state.widget_states.widgets}
            if client_state.fragment_id:
                new = [one for id, one in said.items() if before.get(id) != one]
                if any(_is_news(self._session_state, one, client_state.fragment_id) for one in new):
                    client_state.fragment_id = ""
        request(self, client_state)

    AppSession.request_rerun = request_for_all  # type: ignore[method-assign]


def _is_news(state: SessionState, said: WidgetState, fragment: str) -> bool:
    """True if a control outside the fragment stands at something else, or if it is a button that was pressed."""
    metadata = state._new_widget_state.widget_metadata.get(said.id)
    if metadata is None or metadata.fragment_id == fragment:
        return False
    if "trigger" in metadata.value_type:
        return bool(getattr(said, metadata.value_type))
    heard = WStates()
    heard.set_widget_metadata(metadata)
    heard.set_widget_from_proto(said)
    try:
        stands = state._getitem(said.id, state._key_id_mapper.id_key_mapping.get(said.id))
    except KeyError:
        return False
    return bool(heard[said.id] != stands)


def _keep_callbacks_whole() -> None:
    """Interrupts nothing until the callbacks of a message are done; the script behind them is interrupted, as ever.
    Streamlit does so at whatever of its functions is called when the next message comes: inside a callback too, and
    before the callbacks, and what the first message said is lost, half of it or all."""
    take_in, interrupt = SafeSessionState.on_script_will_rerun, ScriptRunner._maybe_handle_execution_control_request

    @wraps(take_in)
    def take_in_whole(self: SafeSessionState, *arguments: Any, **options: Any) -> None:
        _here.calling = True
        try:
            take_in(self, *arguments, **options)
        finally:
            _here.calling = False

    @wraps(interrupt)
    def interrupt_between(self: ScriptRunner) -> None:
        if not getattr(_here, "calling", False):
            interrupt(self)

    SafeSessionState.on_script_will_rerun = take_in_whole  # type: ignore[method-assign]
    ScriptRunner._maybe_handle_execution_control_request = interrupt_between  # type: ignore[method-assign]

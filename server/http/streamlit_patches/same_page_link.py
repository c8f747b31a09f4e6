"""Lets a link and the way back stand where a message comes after it: to another page, or to the one that is shown with
another query. The browser says the page and the address before with every message, until the script has told it the new
ones, and the page turns back, or stays empty. After a link to the page that is shown nobody changes the address: it is
done here."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import wraps

from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequestType

READ = {
    "app_session:AppSession.request_rerun": "fc6c34000751765e",
    "app_session:AppSession._enqueue_forward_msg": "ceeca19a47609ea8",
    "app_session:AppSession._handle_scriptrunner_event_on_event_loop": "1a222d219467e47c",
}


def apply() -> None:
    request, enqueue = AppSession.request_rerun, AppSession._enqueue_forward_msg

    @wraps(request)
    def request_there(self: AppSession, client_state: ClientState | None) -> None:
        if client_state is not None:
            browser = self.__dict__.setdefault("browser", Browser())
            if not _is_for_shown(browser, client_state, self.page_script_hash):
                return
            if _follow(browser, client_state, self.page_script_hash):
                told = ForwardMsg()
                told.page_info_changed.query_string = client_state.query_string
                enqueue(self, told)
        request(self, client_state)

    @wraps(enqueue)
    def enqueue_and_note(self: AppSession, message: ForwardMsg) -> None:
        if message.HasField("page_info_changed"):
            self.__dict__.setdefault("browser", Browser()).query = message.page_info_changed.query_string
        if message.HasField("new_session") and not _waits(self._scriptrunner):
            self.__dict__.setdefault("browser", Browser()).turn = None
        enqueue(self, message)

    AppSession.request_rerun = request_there  # type: ignore[method-assign]
    AppSession._enqueue_forward_msg = enqueue_and_note  # type: ignore[assignment, method-assign]


@dataclass
class Browser:
    """The query that a browser was last told, or has last said, that its address has; and those that it had until it
    followed a link, to `link`, as long as it has said no other since. None: it has just come, by an address. `turn` is
    what it asked for by a link or the way back to another page, until that page runs."""

    query: str | None = None
    before: set[str] = field(default_factory=set)
    link: str = ""
    turn: ClientState | None = None


def _is_for_shown(browser: Browser, said: ClientState, shown: str) -> bool:
    """False for what a part of a page that was left says: no fragment turns a page. What another control of such a page
    says is about the page that was turned to by now."""
    if said.is_history_navigation or not (said.widget_states.widgets or said.fragment_id):
        browser.turn = said if said.page_script_hash != shown else None
        return True
    asked = browser.turn.page_script_hash if browser.turn else shown
    if not asked or not said.page_script_hash or said.page_script_hash == asked:
        return True
    if browser.turn and not said.fragment_id:
        said.page_script_hash, said.query_string = asked, browser.turn.query_string
    return not said.fragment_id


def _waits(runner: ScriptRunner | None) -> bool:
    """True if a runner is still to hear of a message: what it runs now was asked for before."""
    return runner is not None and runner._requests._state == ScriptRequestType.RERUN


def _follow(browser: Browser, said: ClientState, shown: str) -> bool:
    """Corrects the address in a message of a browser that has not heard yet where its link has led. `shown` is the
    page that runs, or has run last. Tells whether the message is such a link, to that page."""
    here = said.page_script_hash == shown and not said.is_history_navigation
    by_link = not said.widget_states.widgets and not said.fragment_id
    linked = here and by_link and browser.query not in (None, said.query_string)
    if linked and browser.query is not None:
        browser.before.add(browser.query)
        browser.link = said.query_string
    elif here and said.query_string in browser.before:
        said.query_string = browser.link
        return False
    else:
        browser.before.clear()
    browser.query = said.query_string
    return linked

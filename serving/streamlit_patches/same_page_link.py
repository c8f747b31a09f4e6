"""Lets a link stand where a message comes after it: to another page, or to the one that is shown with another query.
The browser says the page and the address before with every message, until the script has told it the new ones, and the
page turns back, or stays empty. After a link to the page that is shown nobody changes the address: it is done here."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import wraps

from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.app_session import AppSession

READ = {
    "app_session:AppSession.request_rerun": "fc6c34000751765e",
    "app_session:AppSession._enqueue_forward_msg": "ceeca19a47609ea8",
}


def apply() -> None:
    request, enqueue = AppSession.request_rerun, AppSession._enqueue_forward_msg

    @wraps(request)
    def request_there(self: AppSession, client_state: ClientState | None) -> None:
        if client_state is not None:
            said, shown = client_state.page_script_hash, self.page_script_hash
            if client_state.fragment_id and said and shown and said != shown:
                return  # of a page that was left: no fragment turns a page, and what its controls say is for nobody
            if _follow(self.__dict__.setdefault("browser", Browser()), client_state, self.page_script_hash):
                told = ForwardMsg()
                told.page_info_changed.query_string = client_state.query_string
                enqueue(self, told)
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
    followed a link, to `link`, as long as it has said no other since. None: it has just come, by an address."""

    query: str | None = None
    before: set[str] = field(default_factory=set)
    link: str = ""


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

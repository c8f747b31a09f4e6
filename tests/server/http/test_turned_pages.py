"""A link that was clicked stands, whatever the run that is going on asks for, and whatever the browser says next."""

from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner import RerunData
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests, ScriptRequestType

from server.http.streamlit_patches import same_page_link, turned_page

HERE, LINK = RerunData(query_string="lesson=a", page_script_hash="x"), RerunData("lesson=b", page_script_hash="x")
ELSEWHERE = RerunData(page_script_hash="y")  # as `st.switch_page` asks


@pytest.mark.parametrize(("asked", "address"), [(HERE, "lesson=b"), (ELSEWHERE, "")])
def test_a_rerun_that_the_script_asks_for_is_one_of_the_page_that_was_turned_to(
    asked: RerunData, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = ScriptRequests()
    running = SimpleNamespace(query_string="lesson=a", page_script_hash="x", script_requests=requests)
    monkeypatch.setattr(turned_page, "get_script_run_ctx", lambda: running)
    requests.request_rerun(asked)
    requests.on_scriptrunner_ready()
    requests.request_rerun(LINK)
    requests.request_rerun(asked)
    assert requests.on_scriptrunner_ready().rerun_data.query_string == address


class Session:
    """What of a session takes messages in, after a first run of the page."""

    page_script_hash = "x"
    _scriptrunner: Any = None

    def __init__(self) -> None:
        self.taken, self.addresses = list[ClientState](), list[str]()
        self.told("lesson=a&done=")

    def told(self, query: str) -> None:
        message = ForwardMsg()
        message.page_info_changed.query_string = query
        session: Any = self
        AppSession._enqueue_forward_msg(session, message)

    def runs(self, page: str, waits: bool = False) -> None:
        """Tells the browser that a page runs, while another message `waits` or none."""
        self.page_script_hash = page
        state = ScriptRequestType.RERUN if waits else ScriptRequestType.CONTINUE
        self._scriptrunner = SimpleNamespace(_requests=SimpleNamespace(_state=state))
        message = ForwardMsg()
        message.new_session.page_script_hash = page
        session: Any = self
        AppSession._enqueue_forward_msg(session, message)

    def hears(self, query: str, control: bool = True, **more: Any) -> str:
        """The address that a message is taken to be about."""
        said = ClientState(query_string=query, **{"page_script_hash": "x", **more})
        if control:
            said.widget_states.widgets.add(id="control")
        session: Any = self
        AppSession.request_rerun(session, said)
        return str(said.query_string)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(AppSession, "request_rerun", lambda self, state: self.taken.append(state))
    told = "_enqueue_forward_msg"
    monkeypatch.setattr(AppSession, told, lambda self, sent: self.addresses.append(sent.page_info_changed.query_string))
    same_page_link.apply()
    return Session()


def test_what_is_said_before_a_browser_has_heard_where_its_link_led_is_about_that(session: Session) -> None:
    before = "lesson=a&done="
    assert session.hears(before) == before
    assert session.hears("lesson=b", control=False) == "lesson=b"  # the link
    assert session.hears(before) == "lesson=b"
    session.told("lesson=b&done=a")
    assert session.hears(before, fragment_id="courier") == "lesson=b"  # it was sent before
    assert session.hears("lesson=c", control=False) == "lesson=c"
    assert [session.hears(one) for one in (before, "lesson=b&done=a")] == ["lesson=c"] * 2
    session.told("lesson=c&done=a")
    assert session.hears("lesson=c&done=a") == "lesson=c&done=a"  # it has heard
    assert session.hears(before) == before


def test_a_link_to_the_page_that_is_shown_stands_in_the_address_and_what_a_browser_came_with_is_none(
    session: Session,
) -> None:
    del session.browser  # as it is before anything was said
    session.addresses.clear()
    for query, control in (("lesson=a", False), ("lesson=a", True), ("lesson=b", False), ("lesson=b", True)):
        session.hears(query, control=control)
    session.hears("lesson=c", control=False, page_script_hash="y")
    assert session.addresses == ["lesson=b"]


def test_a_way_back_and_another_page_are_no_message_that_came_late(session: Session) -> None:
    before = "lesson=a&done="
    session.hears("lesson=b", control=False)
    assert session.hears(before, is_history_navigation=True) == before
    session.hears("lesson=b", control=False)
    assert session.hears(before, page_script_hash="y") == before
    session.hears("lesson=b", control=False)
    assert session.hears(before, control=False) == before  # the link back
    assert session.hears("lesson=b") == before


def test_a_message_of_a_part_of_the_page_before_turns_no_page_back(session: Session) -> None:
    assert session.hears("text=new", control=False, page_script_hash="y") == "text=new"  # a link
    session.page_script_hash = "y"
    taken = len(session.taken)
    session.hears("text=old", page_script_hash="x", fragment_id="controls")
    assert len(session.taken) == taken
    session.hears("text=new", page_script_hash="y", fragment_id="controls")
    assert len(session.taken) == taken + 1


def test_nothing_that_a_page_says_after_the_way_back_was_asked_for_stands_in_its_way(session: Session) -> None:
    """Before the page that it leads to runs, and so while the session still counts the one before as shown."""
    session.hears("k=8", control=False, page_script_hash="y", is_history_navigation=True)
    taken = len(session.taken)
    session.hears("k=8", fragment_id="courier")
    assert len(session.taken) == taken
    assert session.hears("text=old") == "k=8"
    assert session.taken[-1].page_script_hash == "y"
    session.runs("x", waits=True)  # asked for before
    session.hears("", fragment_id="courier")
    assert len(session.taken) == taken + 1
    session.runs("y")
    session.hears("k=8", page_script_hash="y", fragment_id="courier")
    assert len(session.taken) == taken + 2
    session.hears("", control=False)  # a link to the page that was left
    session.runs("x")
    session.hears("", fragment_id="courier")
    assert session.taken[-1].page_script_hash == "x"
    session.hears("", control=False, page_script_hash="no page")
    session.runs("x")  # in its place
    session.hears("", fragment_id="courier")
    assert session.taken[-1].page_script_hash == "x"

"""Registering and mounting views, as far as Python sees it; tests/browser/test_plumbing.py has the rest."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from views.core import component
from views.core.payload import pack, unpack


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("core/host", "core/courier", "probe/probe"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.js").write_text(f"export const name = '{name}';")
    monkeypatch.setattr(component, "MODULES", tmp_path)
    monkeypatch.setattr(component, "LOOKED_AFTER", 1e-9)  # each run looks whether a module was edited
    return tmp_path


def script() -> None:
    import streamlit as st

    from views.core import component

    component.view("probe", events=("pick",))({"count": st.session_state.get("count", 1)}, key="probe")
    parts = st.session_state.get("parts")
    component.courier("courier", lambda query: st.session_state["answer"](query), parts)


def run(**state: Any) -> AppTest:
    app = AppTest.from_function(script, default_timeout=60)
    for name, value in state.items():
        app.session_state[name] = value
    app.run()
    assert not app.exception
    return app


def mounted(app: AppTest) -> list[Any]:
    return [element.proto for element in app.get("bidi_component")]


def test_a_view_travels_as_a_payload_and_a_small_loader(modules: Path) -> None:
    probe = mounted(run(count=4))[0]
    assert unpack(probe.bytes) == ({"count": 4}, {})
    assert len(probe.js_content) + len(probe.css_content) < 3000
    assert "innerHTML" not in probe.js_content


def test_an_edited_module_gets_a_new_address(modules: Path) -> None:
    def address() -> str:
        return mounted(run())[0].js_content.split("/component/")[1].split("/")[0]

    before = address()
    assert address() == before
    (modules / "probe" / "probe.js").write_text("export const name = 'another';")
    assert address() != before


def test_what_is_mounted_between_two_runs_of_the_whole_script_has_the_address_of_the_first(modules: Path) -> None:
    def page() -> None:
        import streamlit as st

        from views.core import component

        if st.session_state["whole"]:  # else a fragment alone
            component.begin("page")
        component.view("probe")({}, key="probe")

    app = AppTest.from_function(page, default_timeout=60)
    addresses = []
    for whole in (True, False, True):
        app.session_state["whole"] = whole
        addresses.append(mounted(app.run())[0].js_content)
        (modules / "probe" / "probe.js").write_text(f"export const name = 'edited {len(addresses)}';")
    assert addresses[0] == addresses[1] != addresses[2]


def test_a_courier_answers_what_was_asked_and_refuses_with_the_sentence(modules: Path) -> None:
    def answer(query: dict[str, Any]) -> bytes:
        if query["layer"] > 3:
            raise ValueError("expected a layer of at most 3, got 9; ask for less")
        return pack({"layer": query["layer"]}, {})

    asked = [{"id": 1, "query": {"layer": 2}}, {"id": 2, "query": {"layer": 9}}]
    header, arrays = unpack(mounted(run(answer=answer, **{"courier asked": asked}))[1].bytes)
    assert header["answers"] == [
        {"id": 1},
        {"id": 2, "sentence": "expected a layer of at most 3, got 9; ask for less"},
    ]
    assert unpack(arrays["1"].data.tobytes()) == ({"layer": 2}, {})


def test_a_courier_brings_what_is_streamed_part_by_part_and_says_when_it_has_ended(modules: Path) -> None:
    def parts(query: dict[str, Any]) -> Iterator[bytes]:
        for count in range(query["count"]):
            if count == 2:
                raise ValueError("expected a count of at most 2, got 5; ask for less")
            yield pack({"at": count}, {})

    asked = [
        {"id": 1, "query": {"count": 2}, "streamed": True},
        {"id": 2, "query": {"count": 5}, "streamed": True},
        {"id": 3, "query": {"layer": 2}},
    ]
    app = run(answer=lambda query: pack(query, {}), parts=parts, **{"courier asked": asked})
    _, opening, *coming = [unpack(proto.bytes) for proto in mounted(app)]
    assert opening[0]["streamed"] == [1, 2] and opening[0]["answers"] == [{"id": 3}]
    sentence = "expected a count of at most 2, got 5; ask for less"
    ends = [{"id": 1, "ended": True}, {"id": 2, "ended": True, "sentence": sentence}]
    assert [header.pop("place") for header, _ in coming] == list(range(6))
    assert {header.pop("turn") for header, _ in coming} == {opening[0]["turn"]}
    assert [header for header, _ in coming if header["ended"]] == ends
    found = [(header["id"], unpack(arrays["part"].data.tobytes())[0]["at"]) for header, arrays in coming if arrays]
    assert found == [(1, 0), (1, 1), (2, 0), (2, 1)]


@pytest.mark.parametrize(
    "asked", [None, "x", 3, {"id": 1}, [1, "x", {}, {"id": "1", "query": {}}, {"id": 1, "query": []}]]
)
def test_a_courier_passes_over_what_courier_js_would_not_send(modules: Path, asked: Any) -> None:
    header, _ = unpack(mounted(run(**{"courier asked": asked}))[1].bytes)
    assert header["answers"] == []


def test_a_question_of_the_page_that_was_left_is_void(modules: Path) -> None:
    state = {"answer": lambda query: pack(query, {}), "courier asked": [{"id": 1, "query": {"layer": 2}}]}
    for page, answers in (("walkthrough", [{"id": 1}]), ("attention", [])):
        header, _ = unpack(mounted(run(page=page, **{"courier asked by": "walkthrough"}, **state))[1].bytes)
        assert header["answers"] == answers


def test_a_view_without_a_module_is_refused() -> None:
    with pytest.raises(ValueError, match="add assets/views/missing/missing.js"):
        component.view("missing")


def test_a_callback_for_an_unknown_event_is_refused(modules: Path) -> None:
    with pytest.raises(ValueError, match=r"expected events among \['pick'\], got \['pock'\]"):
        component.view("probe", events=("pick",))({}, key="probe", on={"pock": lambda: None})

"""Who may see a page, and who may start a class, on a server where people sign in."""

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.controls import sign_in
from views.core.markdown import escape_markdown

APP = str(Path(__file__).resolve().parents[2] / "app.py")
STEP = json.dumps({"page": "attention", "query": {"model": "stories", "text": "Once upon a time"}})


def opened(**user: object) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=60)
    app.user = user
    app.query_params["step"] = STEP
    app.switch_page("pages/learn/teach.py").run()
    assert not app.exception, app.exception
    return app


def test_who_has_not_signed_in_sees_no_page_and_teachers_start_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_in, "asks_to_sign_in", lambda: True)
    monkeypatch.setattr(sign_in, "TEACHERS", "ada@school.example @staff.school.example")
    outside = opened(is_logged_in=False)
    assert [one.key for one in outside.button] == ["sign in"] and "Start" not in outside.markdown[0].value
    teachers = {"ADA@school.example": True, "ben@staff.school.example": True}
    others = {"cleo@school.example": False, "ada@school.example.evil.example": False, "staff.school.example": False}
    for address, may in (teachers | others).items():
        app = opened(is_logged_in=True, email=address)
        assert app.button(key="class start").disabled is not may, address
        assert any(escape_markdown(address.lower()) in one.value for one in app.caption)
    unverified = opened(is_logged_in=True, email="ada@school.example", email_verified=False)
    assert unverified.button(key="class start").disabled

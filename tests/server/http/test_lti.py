"""LTI 1.3, against a platform of a few lines: a key, a token and a place for scores."""

import json
import re
import stat
import time
from collections.abc import Iterator
from datetime import datetime
from html import unescape
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import jwt
import pytest
from httpx2 import Response as Answer
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from pages.controls.classes import grades, linking, who
from pages.controls.classes.kind import is_graded
from pages.controls.classes.linking import FIELD
from server.classes import store
from server.classes.steps import Step
from server.classes.store import Classes, open_classes
from server.http import lti
from server.library.visitors import name_person
from server.lti import launches, platforms, scores
from server.lti.launches import launches_of
from server.lti.platforms import CLAIM, DEEP_LINKING, SCORE, read_settings
from server.lti.registration import TOOL
from server.lti.scores import report_room, report_score, report_unsent, score_in_room
from tests.server.http.lti_platform import ASKED, KEYS, LOUPE, PAGE, Platform, served_platform

APP = str(Path(__file__).resolve().parents[3] / "app.py")


@pytest.fixture
def platform() -> Iterator[Platform]:
    with served_platform() as made:
        yield made


@pytest.fixture
def settings(platform: Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "lti.toml"
    at = platform.address
    path.write_text(
        f'address = "{LOUPE}"\n[[platforms]]\nissuer = "{at}"\nclient_id = "loupe"\ndeployment_ids = ["7"]\n'
        f'auth_url = "{at}/auth"\ntoken_url = "{at}/token"\njwks_url = "{at}/keys"\n'
    )
    monkeypatch.setattr(store, "PAUSE", 0.0)
    for module in (lti, scores, grades):
        monkeypatch.setattr(module, "LTI_FILE", str(path))
    for module in (lti, launches, scores, grades, linking, who):
        monkeypatch.setattr(module, "CLASSES_PLACE", str(tmp_path / "classes.sqlite"))
    return path


@pytest.fixture
def classes(settings: Path, tmp_path: Path) -> Classes:
    return open_classes(str(tmp_path / "classes.sqlite"))


@pytest.fixture
def browser(settings: Path) -> TestClient:
    return TestClient(Starlette(routes=lti.lti_routes()), LOUPE, follow_redirects=False)


def log_in(browser: TestClient, platform: Platform, client: str = "loupe") -> tuple[str, str]:
    """State and nonce of a login."""
    said = {"iss": platform.address, "client_id": client, "login_hint": "ada", "lti_message_hint": "3"}
    answer = browser.post("/lti/login", data=said)
    query = parse_qs(urlsplit(answer.headers["location"]).query)
    return query["state"][0], query["nonce"][0]


def launch(
    browser: TestClient, platform: Platform, key: str = "right", id: str = "one",
    headers: dict[str, str] | None = None, client: str = "loupe", **claims: Any,
) -> Answer:  # fmt: skip
    state, nonce = log_in(browser, platform, client)
    token = jwt.encode(platform.claims(**{"nonce": nonce, "aud": client} | claims), KEYS[key], "RS256", {"kid": id})
    return browser.post("/lti/launch", data={"state": state, "id_token": token}, headers=headers)


def follow(browser: TestClient, answer: Answer) -> tuple[str, str]:
    """The page that a launch ends at, and the visitor."""
    assert answer.status_code == 303, answer.text
    opened = browser.get(answer.headers["location"])
    assert opened.status_code == 303, opened.text
    return opened.headers["location"], name_person(browser.cookies["loupe_visitor"])


def test_a_login_goes_to_the_platform(browser: TestClient, platform: Platform) -> None:
    said = {"iss": platform.address, "login_hint": "ada", "lti_message_hint": "3"}
    for answer in (browser.get("/lti/login", params=said), browser.post("/lti/login", data=said)):
        place, _mark, said_there = answer.headers["location"].partition("?")
        query = dict(parse_qsl(said_there))
        assert answer.status_code == 303 and place == f"{platform.address}/auth"
        assert query.pop("nonce") != query["state"]
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith(f"loupe_lti_{query.pop('state')}=") and "Secure" in cookie and "HttpOnly" in cookie
        assert "samesite=none" in cookie.lower()
        assert query == {
            "login_hint": "ada", "lti_message_hint": "3", "scope": "openid", "response_type": "id_token",
            "response_mode": "form_post", "prompt": "none", "client_id": "loupe",
            "redirect_uri": f"{LOUPE}/lti/launch",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"iss": "https://evil.test"}, "a platform that Loupe knows, got 'https://evil.test'"),
        ({"client_id": "else"}, "a client id that Loupe knows, got 'else'"),
        ({"login_hint": ""}, "a login_hint"),
        ({"login_hint": "a" * 70_000}, "at most 65,536 bytes"),
    ],
)
def test_a_wrong_login_is_refused(browser: TestClient, platform: Platform, said: dict[str, str], sentence: str) -> None:
    data = {"iss": platform.address, "client_id": "loupe", "login_hint": "ada"} | said
    answer = browser.post("/lti/login", data={name: value for name, value in data.items() if value})
    assert answer.status_code == 400 and sentence in answer.text and "set-cookie" not in answer.headers


def test_a_state_that_this_server_did_not_give_is_refused(browser: TestClient) -> None:
    state = "a" * 32
    browser.cookies.set(f"loupe_lti_{state}", "1", path="/lti")
    answer = browser.post("/lti/launch", data={"state": state, "id_token": "a.b.c"})
    assert answer.status_code >= 400 and "began in this browser within ten minutes" in answer.text


def test_a_launch_opens_its_page_and_is_kept(browser: TestClient, platform: Platform, classes: Classes) -> None:
    page, visitor = follow(browser, launch(browser, platform))
    assert page == LOUPE + PAGE
    (kept,) = launches_of(visitor)
    assert (kept.user, kept.lineitem, kept.target) == ("u1", f"{platform.address}/line/3?type=5", "lesson averaging")
    assert kept.name == "" and kept.ends - time.time() == pytest.approx(30 * 86_400, abs=60)
    assert not [name for name in browser.cookies if name.startswith("loupe_lti_")]
    # The same person keeps the cookie, and somebody else at this browser gets one of their own.
    page, again = follow(browser, launch(browser, platform, custom={"page": "join?code=abcde"}))
    assert (page, again) == (f"{LOUPE}/join?code=abcde", visitor)
    assert [one.target for one in launches_of(visitor)] == ["class ABCDE", "lesson averaging"]
    assert follow(browser, launch(browser, platform, sub="u2"))[1] != visitor
    with classes.write() as connection:
        connection.execute(store.LAUNCHES.update().values(ends=1.0))
    classes.forget_old()
    assert not launches_of(visitor)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"key": "wrong"}, "a token that the platform signed"),
        ({"id": "two"}, "a key of the platform, got key 'two'"),
        ({"aud": "else"}, "a client id that Loupe knows, got 'else'"),
        ({"aud": ["loupe", "else"], "azp": "else"}, "a token for Loupe, got one for 'else'"),
        ({"exp": 1_000_000_000}, "a fresh launch, got one that is over"),
        ({"nonce": "f" * 64}, "this browser's request"),
        ({"iss": "https://evil.test"}, "a platform that Loupe knows, got 'https://evil.test'"),
        ({"message_type": "LtiStartAssessment"}, "a plain link"),
        ({"message_type": DEEP_LINKING}, "a place for links (ltiResourceLink), got one for []"),
        *(
            (
                {
                    "message_type": DEEP_LINKING,
                    ASKED: {"accept_types": ["ltiResourceLink"], "deep_link_return_url": back},
                },
                "an address for the answer, https://…",
            )
            for back in ("", "http://moodle.test/back", "//moodle.test", "https://a@moodle.test", "https://m.test; x/")
        ),
        *(
            ({"custom": {"page": page}}, "a page of its own")
            for page in ("https://evil.test/course", "//evil.test", "/\\evil.test", "evil.test", "/%2fevil.test", "[")
        ),
        ({"custom": {}, "target_link_uri": "https://evil.test/course"}, "a page of its own"),
    ],
)
def test_a_wrong_launch_is_refused(
    browser: TestClient, platform: Platform, classes: Classes, given: dict[str, Any], sentence: str
) -> None:
    answer = launch(browser, platform, **given)
    assert answer.status_code == 401 and sentence in answer.text, answer.text
    assert answer.text.count("<p>") == 1 and "<script" not in answer.text
    with classes.engine.connect() as connection:
        assert not connection.execute(store.LAUNCHES.select()).all()


def test_a_token_without_a_right_signature_is_refused(browser: TestClient, platform: Platform) -> None:
    for algorithm, key in (("none", ""), ("HS256", "a shared secret of thirty-two bytes")):
        state, nonce = log_in(browser, platform)
        token = jwt.encode(platform.claims(nonce), key, algorithm, {"kid": "one"})
        answer = browser.post("/lti/launch", data={"state": state, "id_token": token})
        assert answer.status_code == 401 and "a token that the platform signed" in answer.text
    assert browser.post("/lti/launch", data={"state": state, "id_token": "x.y"}).status_code == 401
    answer = browser.post("/lti/launch", data={"state": state, "error": "login_required"})
    assert "got 'login_required'" in answer.text


def test_a_launch_holds_once_and_in_one_browser(browser: TestClient, platform: Platform) -> None:
    state, nonce = log_in(browser, platform)
    said = {"state": state, "id_token": jwt.encode(platform.claims(nonce), KEYS["right"], "RS256", {"kid": "one"})}
    cookies = dict(browser.cookies)
    foreign = TestClient(browser.app, LOUPE, follow_redirects=False)
    for answer in (foreign.post("/lti/launch", data=said), foreign.post("/lti/launch", data={**said, "state": "a"})):
        assert answer.status_code == 401 and "began in this browser" in answer.text
    first = browser.post("/lti/launch", data=said)
    assert foreign.get(first.headers["location"]).status_code == 401
    follow(browser, first)
    browser.cookies.update(cookies)
    again = browser.post("/lti/launch", data=said)
    assert again.status_code == 401 and "got one that was used" in again.text
    opened = browser.get(first.headers["location"])
    assert opened.status_code == 400 and "got one that was used" in opened.text


def test_a_target_names_a_page_too(browser: TestClient, platform: Platform) -> None:
    for target, page in ((f"{LOUPE}{PAGE}", PAGE), (f"{LOUPE}/lti/launch", "/"), (f"{LOUPE}/glossary", "/glossary")):
        assert follow(browser, launch(browser, platform, custom={}, target_link_uri=target))[0] == LOUPE + page


@pytest.mark.parametrize("wanted", ["De la moyenne à l’attention", "Class session"])
def test_a_teacher_chooses_what_opens_in_the_course(
    browser: TestClient, platform: Platform, classes: Classes, wanted: str
) -> None:
    graded, back = wanted != "Class session", f"{platform.address}/back?course=1&name=<a>"
    asked = {
        "accept_types": ["link", "ltiResourceLink"],
        "accept_presentation_document_targets": ["iframe", "window"],
        "deep_link_return_url": back,
        "data": "{opaque}",
        "accept_lineitem": graded,
    }
    asking = {"message_type": DEEP_LINKING, ASKED: asked, f"{CLAIM}launch_presentation": {"locale": "fr-CA"}}
    frame = launch(browser, platform, headers={"sec-fetch-dest": "iframe"}, **asking).headers["location"]
    waiting = browser.get(frame)
    (found,) = re.findall(r'href="([^"]*)"', waiting.text)
    query = dict(parse_qsl(urlsplit(unescape(found)).query))
    assert waiting.status_code == 202 and found.startswith(f"{LOUPE}/teach?") and query["lang"] == "fr"

    # A teacher chooses in a window of its own, where they may start a session first.
    app = AppTest.from_file(APP, default_timeout=60)
    app.query_params["step"] = json.dumps({"page": "glossary"})
    for name, value in query.items():
        app.query_params[name] = value
    app.switch_page("pages/learn/teach.py").run()
    assert app.button(key="class place").disabled
    app.button(key="class start").click().run()
    offered = app.selectbox(key=FIELD)
    title = next(one for one in offered.options if one.startswith(wanted))
    offered.select(title).run()
    app.button(key="class place").click().run()
    assert not app.exception and title in app.success[0].value

    # The frame posts the answer, to the platform alone, which knows whose it is.
    answer = browser.get(frame)
    policy = dict(one.split(" ", 1) for one in answer.headers["content-security-policy"].split("; "))
    assert answer.status_code == 200 and policy["form-action"] == platform.address
    assert policy["frame-ancestors"].split() == ["'self'", platform.address]
    assert re.search(f'<script nonce="{policy["script-src"][7:-1]}">document.forms', answer.text)
    assert unescape(re.findall(r'action="([^"]*)"', answer.text)[0]) == back
    (key,) = browser.get("/lti/keys").json()["keys"]
    (token,) = re.findall(r'name="JWT" value="([^"]*)"', answer.text)
    content = jwt.decode(token, jwt.PyJWK(key), ["RS256"], audience=platform.address, issuer="loupe")
    assert content["exp"] - content["iat"] == 300 and len(content["nonce"]) == 32
    said = {name.rpartition("/")[2]: value for name, value in content.items()}
    (item,) = said["content_items"]
    assert (said["message_type"], said["version"]) == ("LtiDeepLinkingResponse", "1.3.0")
    assert (said["deployment_id"], said["data"]) == ("7", "{opaque}")
    assert (item["type"], item["title"], item["window"]) == ("ltiResourceLink", title, {"targetName": "_blank"})
    line = {"label": title, "scoreMaximum": 100, "resourceId": "lesson averaging"}
    assert item.get("lineItem") == (line if graded else None)

    # The link that the platform made of it opens what was chosen.
    page, visitor = follow(browser, launch(browser, platform, custom=item["custom"], target_link_uri=item["url"]))
    code = title.removeprefix("Class session ")
    assert page == LOUPE + ("/course?lesson=averaging&lang=fr" if graded else f"/join?code={code}")
    assert launches_of(visitor)[0].target == ("lesson averaging" if graded else f"class {code}")
    # It is over after an hour, which the teacher is told too.
    with classes.write() as connection:
        connection.execute(store.LINKINGS.update().values(ends=1.0))
    assert browser.get(frame).status_code == 400 and "begin again from the course" in browser.get(frame).text
    assert "begin again from the course" in app.run().warning[0].value


def test_a_platform_registers_by_one_address(platform: Platform, settings: Path) -> None:
    at = platform.address
    settings.write_text(f'address = "{LOUPE}"\nplatforms = []\nmay_register = ["{at}"]')

    def start() -> TestClient:
        read_settings.cache_clear()
        store.open_classes.cache_clear()
        return TestClient(Starlette(routes=lti.lti_routes()), LOUPE, follow_redirects=False)

    query = {"openid_configuration": f"{at}/configuration", "registration_token": "once"}
    page = start().get("/lti/register", params=query)
    assert page.status_code == 200 and "org.imsglobal.lti.close" in page.text
    tool = platform.tool
    assert (tool["initiate_login_uri"], tool["redirect_uris"]) == (f"{LOUPE}/lti/login", [f"{LOUPE}/lti/launch"])
    assert (tool["jwks_uri"], tool["scope"]) == (f"{LOUPE}/lti/keys", SCORE)
    assert [one["type"] for one in tool[TOOL]["messages"]] == ["LtiResourceLinkRequest", DEEP_LINKING]
    assert tool[TOOL]["domain"] == "loupe.test" and tool[TOOL]["claims"] == ["iss", "sub"]
    # In another process, and after a restart.
    browser = start()
    visitor = follow(browser, launch(browser, platform, client="fresh"))[1]
    sending = report_score(visitor, "lesson averaging", 0.5)
    assert sending
    sending.join(20)
    assert platform.heard[0][2]["scoreGiven"] == 0.5
    assert jwt.decode(platform.asked[0]["client_assertion"], options={"verify_signature": False})["aud"] == "here"
    assert launch(browser, platform, client="fresh", deployment_id="8").status_code == 303  # it named none
    # Whose site the settings name no more is no platform any more.
    settings.write_text(f'address = "{LOUPE}"\nplatforms = []')
    said = start().get("/lti/login", params={"iss": at, "login_hint": "ada"})
    assert said.status_code == 400 and "a platform that Loupe knows" in said.text


def test_a_wrong_registration_is_refused(platform: Platform, settings: Path, classes: Classes) -> None:
    at, inner = platform.address, "http://169.254.169.254/latest"
    settings.write_text(f'address = "{LOUPE}"\nplatforms = []\nmay_register = ["{at}"]')
    read_settings.cache_clear()
    browser = TestClient(Starlette(routes=lti.lti_routes()), LOUPE, follow_redirects=False)
    right = {"openid_configuration": f"{at}/configuration", "registration_token": "once"}
    foreign = "", inner, "https://[", f"{at}.evil.test/", f"{at[:7]}a@{at[7:]}/configuration"
    wrong: list[tuple[dict[str, str], Any, str]] = [
        *(({"openid_configuration": one}, {}, "a site that may register") for one in foreign),
        ({"registration_token": "twice"}, {}, "got Client error '401"),
        ({}, Response(status_code=302, headers={"location": inner}), "got Redirect response '302"),
        ({}, Response(b'{"a": "' + b"a" * 2**19), "got more than 262,144 bytes"),
        ({}, Response("[]"), "no object"),
        ({}, Response("["), "got Expecting value"),
        ({}, {"issuer": "https://evil.test"}, f"a platform at {at}"),
        *(({}, {name: inner}, "a site that may register") for name in ("registration_endpoint", "jwks_uri")),
    ]
    for query, platform.odd, sentence in wrong:
        answer = browser.get("/lti/register", params=right | query)
        assert answer.status_code == 400 and sentence in answer.text, answer.text
    with classes.engine.connect() as connection:
        assert not connection.execute(store.PLATFORMS.select()).all()
    for site in ("http://moodle.test", "https://moodle.test/", "*"):
        settings.write_text(f'address = "{LOUPE}"\nplatforms = []\nmay_register = ["{site}"]')
        read_settings.cache_clear()
        with pytest.raises(ValueError, match="may_register lists sites"):
            read_settings(str(settings))


def test_a_score_arrives_once_a_change(browser: TestClient, platform: Platform, settings: Path) -> None:
    visitor = follow(browser, launch(browser, platform))[1]

    def report(score: float) -> bool:
        sending = report_score(visitor, "lesson averaging", score, best=True)
        if sending:
            sending.join()
        return sending is not None

    assert report(0.5) and not report(0.5) and not report(0.25)
    (url, bearer, body), asked = platform.heard[0], platform.asked[0]
    assert url == f"{platform.address}/line/3/scores?type=5" and bearer == "Bearer open sesame"
    assert re.fullmatch(r"[-\d]{10}T[:\d]{8}\.\d{3}\+00:00", body.pop("timestamp")) and body == {
        "userId": "u1",
        "scoreGiven": 0.5,
        "scoreMaximum": 1,
        "activityProgress": "Completed",
        "gradingProgress": "FullyGraded",
    }
    assert (asked["grant_type"], asked["scope"]) == ("client_credentials", SCORE)
    (key,) = browser.get("/lti/keys").json()["keys"]
    signed = jwt.decode(asked["client_assertion"], jwt.PyJWK(key), ["RS256"], audience=f"{platform.address}/token")
    assert signed["iss"] == signed["sub"] == "loupe" and "d" not in key
    platform.broken = True
    assert report(0.75) and len(platform.heard) == 1
    platform.broken = False
    for sending in report_unsent(visitor):
        sending.join()
    assert platform.heard[1][2]["scoreGiven"] == 0.75 and not report_unsent(visitor)
    assert report_score(visitor, "lesson masks", 1.0) is None
    assert report_score("nobody", "lesson averaging", 1.0) is None
    # Whoever comes again, from another browser, begins where they were.
    other = TestClient(browser.app, LOUPE, follow_redirects=False)
    assert report_score(follow(other, launch(other, platform))[1], "lesson averaging", 0.5, best=True) is None
    roles = ["http://purl.imsglobal.org/vocab/lis/v2/membership#Instructor"]
    assert not launches_of(follow(other, launch(other, platform, sub="t", roles=roles))[1])[0].lineitem


def test_scores_arrive_in_their_order(
    browser: TestClient, platform: Platform, classes: Classes, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor = follow(browser, launch(browser, platform))[1]
    sendings: list[Thread | None] = []

    def report(score: float) -> None:
        store.open_classes.cache_clear()  # as another process knows no more than the database
        sendings.append(report_score(visitor, "lesson averaging", score))

    def arrived() -> list[float]:
        for sending in sendings:
            assert sending
            sending.join(20)
        return [body["scoreGiven"] for _url, _bearer, body in platform.heard]

    report(0.1)
    assert arrived() == [0.1]
    back = time.time() - 3600
    monkeypatch.setattr(time, "time", lambda: back)  # the clock goes back, and stands still
    platform.stuck = True
    report(0.9)
    while len(platform.asked) < 2:
        time.sleep(0.01)
    report(0.2)
    report(0.3)  # what it was meanwhile, nobody needs
    assert sendings[-1]
    sendings[-1].join(20)
    assert len(platform.asked) == 2 and len(platform.heard) == 1  # none while another one is under way
    platform.stuck = False
    assert arrived() == [0.1, 0.9, 0.3]
    # What is not taken keeps its time, and comes before what is later.
    platform.broken = True
    report(0.4)
    arrived()
    with classes.engine.connect() as connection:
        stamp = connection.execute(store.select(store.GRADES.c.stamp)).scalar_one()
    platform.broken = False
    sendings.extend(report_unsent(visitor))
    assert arrived()[-1] == 0.4 and platform.refused == 0
    assert datetime.fromisoformat(platform.heard[-1][2]["timestamp"]).timestamp() * 1000 == stamp
    # Where the platform has a later one, such as a teacher's, it stays.
    platform.times = dict.fromkeys(platform.times, datetime.fromtimestamp(4e9))
    report(0.5)
    assert arrived()[-1] == 0.4 and platform.refused == 1 and not report_unsent(visitor)
    with classes.write() as connection:
        connection.execute(store.LAUNCHES.delete())
    classes.forget_old()
    with classes.engine.connect() as connection:
        assert not connection.execute(store.GRADES.select()).all()


def test_a_session_is_graded_as_far_as_it_is_shown(browser: TestClient, platform: Platform, classes: Classes) -> None:
    code, _secret = classes.start("teacher", [Step("walkthrough", kind="next"), Step("attention", kind="share")])
    visitor = follow(browser, launch(browser, platform, custom={"page": f"join?code={code}"}))[1]
    ada = classes.join(code, "Ada", visitor)
    assert score_in_room(code, visitor, is_graded) is None
    assert score_in_room("ZZZZZ", visitor, is_graded) is None
    classes.hand_in(ada, 0, {"right": True})
    assert score_in_room(code, visitor, is_graded) is None  # the grade would give the answer away
    classes.go_to(code, 1)
    assert score_in_room(code, visitor, is_graded) == 0.5
    classes.hand_in(ada, 1, {"right": True})
    classes.change(code, closed=True)
    for sending in report_room(code, is_graded):
        sending.join()
    assert [body["scoreGiven"] for _url, _bearer, body in platform.heard] == [1.0]


def test_names_are_kept_only_where_asked(platform: Platform, settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.write_text("names = true\n" + settings.read_text())
    read_settings.cache_clear()
    browser = TestClient(Starlette(routes=lti.lti_routes()), LOUPE, follow_redirects=False)
    visitor = follow(browser, launch(browser, platform))[1]
    assert launches_of(visitor)[0].name == "Ada Lovelace"
    monkeypatch.setattr(grades, "visitor_id", lambda: visitor)
    code, _secret = open_classes(grades.CLASSES_PLACE).start("teacher", [Step("walkthrough")])
    app = AppTest.from_file(APP, default_timeout=60)
    app.query_params["code"] = code
    app.switch_page("pages/learn/join.py").run()
    assert not app.exception and app.text_input(key="class name").value == "Ada Lovelace"
    app.text_input(key="class name").set_value("Ada")
    app.button(key="class join").click().run()
    assert [one.name for one in open_classes(grades.CLASSES_PLACE).learners(code)] == ["Ada"]


def test_settings_are_read_and_a_key_is_made(settings: Path, tmp_path: Path) -> None:
    key = settings.with_suffix(".pem")
    first = read_settings(str(settings)).public_key
    assert stat.S_IMODE(key.stat().st_mode) == 0o600 and list(tmp_path.glob("*.pem*")) == [key]
    read_settings.cache_clear()
    assert read_settings(str(settings)).public_key == first
    for content in ("", "address = 3", 'address = "x"\nplatforms = []', f"{settings.read_text()}[[platforms]]"):
        wrong = tmp_path / "wrong.toml"
        wrong.write_text(content)
        read_settings.cache_clear()
        with pytest.raises(ValueError, match="expected"):
            read_settings(str(wrong))


def test_a_lesson_that_is_answered_is_graded(
    browser: TestClient, platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor = follow(browser, launch(browser, platform))[1]
    monkeypatch.setattr(grades, "visitor_id", lambda: visitor)
    heard = []
    monkeypatch.setattr(grades, "report_score", lambda *said, best: heard.append((*said, best)))
    app = AppTest.from_file(APP, default_timeout=60)
    app.query_params["lesson"] = "averaging"
    app.query_params["done"] = "averaging"  # which anybody can write
    app.switch_page("pages/learn/course.py").run()
    assert not app.exception and not heard
    app.button(key=next(one.key for one in app.button if one.key and one.key.endswith(" show"))).click().run()
    assert heard == [(visitor, "lesson averaging", 0.0, True)]
    app.run()
    assert len(heard) == 1


def test_a_claim_of_a_wrong_type_is_a_sentence_or_counts_as_none(browser: TestClient, platform: Platform) -> None:
    known = platform.claims("")
    for name in known:
        for wrong in (5, None, [{}], {"page": 5}, {"scope": 5, "lineitem": []}):
            state, nonce = log_in(browser, platform)
            said = platform.claims(nonce) | {name: wrong}
            token = jwt.PyJWS().encode(json.dumps(said).encode(), KEYS["right"], "RS256", {"kid": "one"})
            answer = browser.post("/lti/launch", data={"state": state, "id_token": token})
            assert answer.status_code in (303, 401), (name, wrong)
            assert answer.status_code == 303 or "expected" in answer.text, (name, wrong)


def test_whoever_names_unknown_keys_makes_no_more_than_one_request_a_minute(
    browser: TestClient, platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    # the module's own clock: the server's event loop has that of `time`, and would wait until it is that late
    monkeypatch.setattr(platforms, "time", SimpleNamespace(time=time.time, monotonic=lambda: now))
    for number in range(5):
        answer = launch(browser, platform, id=f"no key {number}")
        assert answer.status_code == 401 and "in a minute" in answer.text
    assert platform.asked_for_keys == 1
    assert launch(browser, platform).status_code == 303  # of a key that is known
    now += platforms.PAUSE + 1
    assert launch(browser, platform, id="none").status_code == 401 and platform.asked_for_keys == 2

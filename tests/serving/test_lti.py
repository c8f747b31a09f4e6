"""LTI 1.3, against a platform of a few lines: a key, a token and a place for scores."""

import socket
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import jwt
import pytest
import uvicorn
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from httpx2 import Response as Answer
from jwt.algorithms import RSAAlgorithm
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from engine.classes import launches, store
from engine.classes.launches import launches_of, report_room, report_score, report_unsent
from engine.classes.lti import CLAIM, ENDPOINT, SCORE, read_settings
from engine.classes.steps import Step
from engine.classes.store import Classes, open_classes
from engine.runtime.openings import name_person
from pages.controls.classes import grades, who
from serving import lti

APP = str(Path(__file__).resolve().parents[2] / "app.py")
LOUPE = "https://loupe.test"
KEYS = {name: generate_private_key(65537, 2048) for name in ("right", "wrong")}
PAGE = "/course?lesson=averaging"


@dataclass
class Platform:
    """Knows Loupe as "loupe"; `broken` takes no score."""

    address: str = ""
    broken: bool = False
    heard: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)  # address, bearer, body
    asked: list[dict[str, str]] = field(default_factory=list)  # for a token

    async def keys(self, _request: Request) -> Response:
        key = RSAAlgorithm.to_jwk(KEYS["right"].public_key(), as_dict=True)
        return JSONResponse({"keys": [{**key, "kid": "one", "alg": "RS256"}]})

    async def token(self, request: Request) -> Response:
        self.asked.append(dict(parse_qsl((await request.body()).decode())))
        return JSONResponse({"access_token": "open sesame"})

    async def scores(self, request: Request) -> Response:
        if not self.broken:
            self.heard.append((str(request.url), request.headers["authorization"], await request.json()))
        return Response(status_code=500 if self.broken else 200)

    def claims(self, nonce: str, **more: Any) -> dict[str, Any]:
        """Of a learner's launch; `more` by the ends of their names."""
        made = {
            "iss": self.address, "aud": "loupe", "sub": "u1", "iat": time.time(), "exp": time.time() + 300,
            "nonce": nonce, "name": "Ada Lovelace", f"{CLAIM}message_type": "LtiResourceLinkRequest",
            f"{CLAIM}version": "1.3.0", f"{CLAIM}deployment_id": "7", f"{CLAIM}custom": {"page": PAGE[1:]},
            f"{CLAIM}target_link_uri": f"{LOUPE}/lti/launch",
            f"{CLAIM}roles": ["http://purl.imsglobal.org/vocab/lis/v2/membership#Learner"],
            ENDPOINT: {"scope": [SCORE], "lineitem": f"{self.address}/line/3?type=5"},
        }  # fmt: skip
        return made | {CLAIM + name if CLAIM + name in made else name: value for name, value in more.items()}


@pytest.fixture
def platform() -> Iterator[Platform]:
    made = Platform()
    app = Starlette(routes=[
        Route("/keys", made.keys), Route("/token", made.token, methods=["POST"]),
        Route("/line/3/scores", made.scores, methods=["POST"]),
    ])  # fmt: skip
    with socket.create_server(("127.0.0.1", 0)) as listening:
        made.address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = Thread(target=server.run, args=([listening],))
        thread.start()
        yield made
        server.should_exit = True
        thread.join()


@pytest.fixture
def settings(platform: Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "lti.toml"
    at = platform.address
    path.write_text(
        f'address = "{LOUPE}"\n[[platforms]]\nissuer = "{at}"\nclient_id = "loupe"\ndeployment_ids = ["7"]\n'
        f'auth_url = "{at}/auth"\ntoken_url = "{at}/token"\njwks_url = "{at}/keys"\n'
    )
    monkeypatch.setattr(store, "PAUSE", 0.0)
    for module in (lti, launches, grades):
        monkeypatch.setattr(module, "LTI_FILE", str(path))
    for module in (lti, launches, grades, who):
        monkeypatch.setattr(module, "CLASSES_PLACE", str(tmp_path / "classes.sqlite"))
    return path


@pytest.fixture
def classes(settings: Path, tmp_path: Path) -> Classes:
    return open_classes(str(tmp_path / "classes.sqlite"))


@pytest.fixture
def browser(settings: Path) -> TestClient:
    return TestClient(Starlette(routes=lti.lti_routes()), LOUPE, follow_redirects=False)


def log_in(browser: TestClient, platform: Platform) -> tuple[str, str]:
    """State and nonce of a login."""
    said = {"iss": platform.address, "client_id": "loupe", "login_hint": "ada", "lti_message_hint": "3"}
    answer = browser.post("/lti/login", data=said)
    query = parse_qs(urlsplit(answer.headers["location"]).query)
    return query["state"][0], query["nonce"][0]


def launch(browser: TestClient, platform: Platform, key: str = "right", id: str = "one", **claims: Any) -> Answer:
    state, nonce = log_in(browser, platform)
    token = jwt.encode(platform.claims(**{"nonce": nonce} | claims), KEYS[key], "RS256", {"kid": id})
    return browser.post("/lti/launch", data={"state": state, "id_token": token})


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
    ("said", "headers", "sentence"),
    [
        ({"iss": "https://evil.test"}, {}, "a platform that Loupe knows, got 'https://evil.test'"),
        ({"client_id": "else"}, {}, "a client id that Loupe knows, got 'else'"),
        ({"login_hint": ""}, {}, "a login_hint"),
        ({}, {"sec-fetch-dest": "iframe"}, "a window of its own, got a frame"),
        ({"login_hint": "a" * 70_000}, {}, "at most 65,536 bytes"),
    ],
)
def test_a_wrong_login_is_refused(
    browser: TestClient, platform: Platform, said: dict[str, str], headers: dict[str, str], sentence: str
) -> None:
    data = {"iss": platform.address, "client_id": "loupe", "login_hint": "ada"} | said
    answer = browser.post("/lti/login", data={name: value for name, value in data.items() if value}, headers=headers)
    assert answer.status_code == 400 and sentence in answer.text and "set-cookie" not in answer.headers


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
        ({"deployment_id": "8"}, "a deployment that Loupe knows, got '8'"),
        ({"message_type": "LtiDeepLinkingRequest"}, "a plain link"),
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
    assert answer.headers["content-type"].startswith("text/plain") and answer.text.count("\n") == 0
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
    assert body.pop("timestamp")[-6:] == "+00:00" and body == {
        "userId": "u1", "scoreGiven": 0.5, "scoreMaximum": 1, "activityProgress": "Completed",
        "gradingProgress": "FullyGraded",
    }  # fmt: skip
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
    assert launches_of(follow(other, launch(other, platform))[1])[0].score == 0.75
    roles = ["http://purl.imsglobal.org/vocab/lis/v2/membership#Instructor"]
    assert not launches_of(follow(other, launch(other, platform, sub="t", roles=roles))[1])[0].lineitem


def test_a_session_is_graded_as_far_as_it_is_shown(
    browser: TestClient, platform: Platform, classes: Classes
) -> None:
    code, _secret = classes.start("teacher", [Step("walkthrough", kind="next"), Step("attention", kind="share")])
    visitor = follow(browser, launch(browser, platform, custom={"page": f"join?code={code}"}))[1]
    ada = classes.join(code, "Ada", visitor)
    assert launches.score_in_room(code, visitor) is None and launches.score_in_room("ZZZZZ", visitor) is None
    classes.hand_in(ada, 0, {"right": True})
    assert launches.score_in_room(code, visitor) is None  # the grade would give the answer away
    classes.go_to(code, 1)
    assert launches.score_in_room(code, visitor) == 0.5
    classes.hand_in(ada, 1, {"right": True})
    classes.change(code, closed=True)
    for sending in report_room(code):
        sending.join()
    assert [body["scoreGiven"] for _url, _bearer, body in platform.heard] == [1.0]


def test_names_are_kept_only_where_asked(
    platform: Platform, settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.write_text("names = true\n" + settings.read_text())
    read_settings.cache_clear()
    browser = TestClient(Starlette(routes=lti.lti_routes()), LOUPE, follow_redirects=False)
    visitor = follow(browser, launch(browser, platform))[1]
    assert launches_of(visitor)[0].name == "Ada Lovelace"
    monkeypatch.setattr(grades, "whose", lambda: visitor)
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
    monkeypatch.setattr(grades, "whose", lambda: visitor)
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

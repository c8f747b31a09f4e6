"""What programs ask: OpenAI's client reads it, its numbers are the engine's, and what is too much is refused first."""

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import openai
import pytest
import safetensors.torch
import torch
import uvicorn
from safetensors import safe_open
from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.types import Message

import asgi
from engine import SilenceHeads, generate, run
from engine.checkpoints import Checkpoint
from engine.generation.generate import Step
from engine.runtime import library
from pages.controls.what_if.experiment import EditTrial
from pages.controls.what_if.experiment_link import from_link
from server.http.api import completions, routes, trace
from server.http.api.models import list_names, open_named
from server.http.api.routes import api_routes, write_description
from tests.coroutines import finish
from tests.pages.mounted import at_page, record

TOKEN, PROMPT = "secret", "Max gave the red ball to"
SENT = {"authorization": f"Bearer {TOKEN}"}
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"


@pytest.fixture(scope="module")
def program() -> Iterator[TestClient]:
    with TestClient(Starlette(routes=api_routes(TOKEN)), headers=SENT) as client:
        yield client


@pytest.fixture(scope="module")
def client() -> Iterator[openai.OpenAI]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(Starlette(routes=api_routes(TOKEN)), log_level="error"))
        thread = Thread(target=server.run, args=([listening],))
        thread.start()
        with openai.OpenAI(
            base_url=f"http://127.0.0.1:{listening.getsockname()[1]}/v1", api_key=TOKEN, max_retries=0
        ) as made:
            yield made
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def stories() -> Checkpoint:
    return library.checkpoint("stories")


def refused(client: TestClient, path: str, body: dict[str, Any], status: int = 400) -> str:
    answer = client.post(path, json=body)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    message: str = error["message"]
    assert message.endswith(".") and len(message) < 20_000
    return message


def loupe(answer: Any) -> dict[str, Any]:
    """What an answer to OpenAI's client says besides."""
    found: dict[str, Any] = answer.model_extra["loupe"]
    return found


def opened(link: str) -> dict[str, str]:
    place = urlsplit(link)
    assert place.path == "/walkthrough"
    return {name: values[0] for name, values in parse_qs(place.query).items()}


def test_who_has_no_token_is_answered_nothing(program: TestClient) -> None:
    for path in ("/v1/models", "/api/models", "/v1/models/stories"):
        for said in ("", "Bearer wrong", TOKEN):
            answer = program.get(path, headers={"authorization": said})
            assert answer.status_code == 401 and answer.json()["error"]["type"] == "authentication_error"
    assert program.post("/api/trace", headers={"authorization": ""}, json={}).status_code == 401
    assert not any(name.startswith("access-control") for name in program.get("/v1/models").headers)


def test_a_request_opens_what_is_offered_alone(program: TestClient, tmp_path: Path) -> None:
    known = {one["id"]: one for one in program.get("/api/models").json()["data"]}
    assert known["stories"]["architecture"] == "gpt2" and known["stories"]["context"] == 256
    assert program.get("/v1/models/stories").json() == known["stories"]
    assert program.get("/v1/models/stories").json()["object"] == "model"
    for name in ("hub:org/name", str(tmp_path), "../models", "run:none", "run:../x@1", "model~0123456789", ""):
        assert "no model" in refused(program, "/v1/completions", {"model": name, "prompt": "a"}, 404)
    assert program.get("/v1/models/hub:org/name").status_code == 404
    assert "pictures" in refused(program, "/api/trace", {"model": "digits-vit", "text": "a"})


def test_a_wrong_request_is_refused_with_a_sentence(program: TestClient, subtests: pytest.Subtests) -> None:
    ask = {"model": "stories", "prompt": PROMPT}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"prompt": "a"}, "model must be there"),
        ({"model": 3, "prompt": "a"}, "model must be a text, got 3"),
        ({**ask, "prompt": ""}, "prompt must have a length of 1 to"),
        ({**ask, "prompt": ["a", "b"]}, "prompt must be a text or a list of whole numbers"),
        ({**ask, "prompt": [1, True]}, "prompt must be"),
        ({**ask, "prompt": [99999]}, "99999"),
        ({**ask, "prompt": "a " * 2000}, "1 to 256 tokens"),
        ({**ask, "max_tokens": 10**9}, "max_tokens must be 0 to 1,024, got 1,000,000,000"),
        ({**ask, "max_tokens": -1}, "max_tokens must be"),
        ({**ask, "max_tokens": 2.5}, "a whole number"),
        ({**ask, "temperature": "hot"}, "temperature must be a number"),
        ({**ask, "top_p": 0}, "top-p"),
        ({**ask, "n": 9}, "n must be 1 to 8"),
        ({**ask, "logprobs": True}, "logprobs must be a whole number"),
        ({**ask, "stop": ["a"] * 5}, "at most 4"),
        ({**ask, "stop": [""]}, "a stop string"),
        ({**ask, "frequency_penalty": 0.5}, "frequency_penalty must be 0 to 0"),
        ({**ask, "suffix": "x"}, "no field 'suffix'"),
        ({**ask, "edits": [{"edit": "None"}]}, "edit must be one of"),
        ({**ask, "edits": [{"edit": "SilenceHeads", "layer": 99, "heads": [0]}]}, "no hook"),
        ({**ask, "edits": [{}] * 65}, "edits must have a length"),
        ({**ask, "model": "translate-en-fr", "echo": True}, "echo"),
        ({**ask, "model": "tales-bert"}, "in both directions"),
    ]
    for body, said in wrong:
        with subtests.test(said):
            assert said in refused(program, "/v1/completions", body)
            if "stop" not in body:
                assert said in refused(program, "/v1/completions", {**body, "stream": True})
    lone = json.dumps("\ud800").encode()  # which is no Unicode
    named = (b'{"model": %s}', b"{%s: 1}", b'{"model": "stories", "prompt": %s}')
    for content in (b"{", b"[]", b"[" * 100_000, b'{"model": NaN}', b"\xff", *(one % lone for one in named)):
        assert program.post("/v1/completions", content=content).status_code in (400, 404), content
    assert program.post("/v1/completions", content=b" " * (routes.MOST_BODY + 1)).status_code == 413
    assert "no chat template" in refused(
        program, "/v1/chat/completions", {"model": "stories", "messages": [{"role": "user", "content": "Hi"}]}
    )
    harmless = {"max_tokens": 1, "user": "me", "best_of": 1, "n": None}
    assert program.post("/v1/completions", json={**ask, **harmless}).is_success


def test_a_trace_is_what_the_engine_records(program: TestClient, stories: Checkpoint, tmp_path: Path) -> None:
    edit = SilenceHeads(layer=1, heads=[0])
    keep = ["*.attn.pattern", "logits"]
    answer = program.post(
        "/api/trace", json={"model": "stories", "text": PROMPT, "keep": keep, "edits": [edit.to_dict()]}
    )
    assert answer.status_code == 200, answer.text
    assert stories.tokenizer is not None
    read = stories.tokenizer.encode(PROMPT)
    wanted = run(stories.model, read, keep, [edit])
    found = safetensors.torch.load(answer.content)
    assert found.keys() == {*wanted}
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    place = tmp_path / "trace.safetensors"
    place.write_bytes(answer.content)
    with safe_open(place, "pt") as file:
        about = file.metadata()
    assert json.loads(about["ids"]) == list(read.ids) and json.loads(about["tokens"]) == list(read.pieces)
    assert json.loads(about["dims"])["logits"] == ["batch", "pos", "vocab"]
    link = opened(about["link"])
    assert answer.headers["x-loupe-link"] == about["link"] and about["link"] in answer.headers["link"]
    assert (link["model"], link["text"]) == ("stories", PROMPT)
    assert from_link(link["edits"])[0].edits == (edit,)
    app = at_page("pages/explore/walkthrough.py", **link).run()
    assert not app.exception and not any("link" in one.value for one in app.info)
    assert (app.session_state["model"], app.session_state["text"]) == ("stories", PROMPT)
    assert record(app, EditTrial).experiment.edits == (edit,)
    again = program.post("/api/trace", json={"model": "stories", "ids": list(read.ids), "keep": ["logits"]})
    assert opened(again.headers["x-loupe-link"])["text"] == PROMPT
    assert torch.equal(safetensors.torch.load(again.content)["logits"], run(stories.model, read, "logits")["logits"])


def test_a_trace_that_is_too_large_is_not_run(program: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = {"model": "stories", "text": PROMPT}
    assert "either text or ids" in refused(program, "/api/trace", {**ask, "ids": [1]})
    assert "no hook is called 'nothing'" in refused(program, "/api/trace", {**ask, "keep": ["nothing"]})
    assert "1 to 256 tokens" in refused(program, "/api/trace", {**ask, "text": "a " * 300})
    assert "target is for" in refused(program, "/api/trace", {**ask, "target": "x"})
    for name in ("stories", "everyday", "in-context", "tales-bert", "t5-tasks", "translate-en-fr"):
        checkpoint = library.checkpoint(name)
        read = trace.read_input(checkpoint, {"text": "a b c", "ids": None, "target": ""})
        made = run(checkpoint.model, read.read, target=read.target)
        for hook in made:
            counted = trace.count_bytes(checkpoint.model, hook, len(read.read), len(read.target or ()))
            assert counted >= made[hook].nbytes, (name, hook)
            assert "head" in made.dims(hook) or counted <= 2 * made[hook].nbytes + 64, (name, hook)
    monkeypatch.setattr(trace, "API_REPLY", 2**20)
    monkeypatch.setattr(trace, "run", None)
    large = {**ask, "text": "a " * 99, "keep": ["*"]}
    assert "at most 1 MiB, and this one would have" in refused(program, "/api/trace", large, 413)


def test_openai_s_client_gets_what_the_engine_writes(client: openai.OpenAI, stories: Checkpoint) -> None:
    assert "stories" in [one.id for one in client.models.list()]
    steps = list(generate(stories, PROMPT, 12, temperature=0.0))
    ask: dict[str, Any] = {"model": "stories", "prompt": PROMPT, "max_tokens": 12, "temperature": 0}
    answer = client.completions.create(**ask, logprobs=3, echo=True)
    choice = answer.choices[0]
    assert choice.text == steps[-1].text and choice.finish_reason == "length"
    assert answer.usage is not None and answer.usage.completion_tokens == 12
    assert opened(loupe(answer)["link"])["text"] == steps[-1].text
    told = choice.logprobs
    assert told is not None and told.token_logprobs and told.top_logprobs and told.text_offset and told.tokens
    begun = len(told.tokens) - 12
    for at, step in enumerate(steps):
        logs = step.logits.log_softmax(-1)
        assert told.token_logprobs[begun + at] == float(logs[step.id])
        assert sorted(told.top_logprobs[begun + at].values())[-3:] == sorted(logs.topk(3).values.tolist())
    ids = steps[0].before
    logs = run(stories.model, list(ids), "logits")["logits"][0].log_softmax(-1)
    assert told.token_logprobs[:begun] == [None, *(float(logs[at, id]) for at, id in enumerate(ids[1:]))]
    assert "".join(told.tokens) == choice.text
    for offset, token in zip(told.text_offset, told.tokens, strict=True):
        assert choice.text[offset:].startswith(token)
    with pytest.raises(openai.BadRequestError, match="temperature must be 0 to 2"):
        client.completions.create(model="stories", prompt=PROMPT, temperature=3)
    with pytest.raises(openai.NotFoundError, match="no model"):
        client.completions.create(model="gpt-4", prompt=PROMPT)
    with pytest.raises(openai.AuthenticationError, match="the token of this server"):
        client.with_options(api_key="other").models.list()


def test_a_stream_is_the_same_text_in_parts(client: openai.OpenAI, stories: Checkpoint) -> None:
    ask: dict[str, Any] = {"model": "stories", "prompt": PROMPT, "max_tokens": 24, "seed": 3, "n": 2}
    whole = client.completions.create(**ask)
    again = [step.text for step in generate(stories, PROMPT, 24, seed=4)][-1]
    assert PROMPT + whole.choices[1].text == again.removesuffix("<|endoftext|>")
    chunks = list(client.completions.create(**ask, stream=True, stream_options={"include_usage": True}))
    parts = [[each.text for chunk in chunks for each in chunk.choices if each.index == index] for index in (0, 1)]
    assert ["".join(part) for part in parts] == [choice.text for choice in whole.choices]
    assert len(parts[0]) > 10 and chunks[-1].usage == whole.usage
    told = [loupe(chunk) for chunk in chunks if chunk.model_extra]
    assert told == [loupe(whole)] * 2
    stop = whole.choices[0].text[5:9]
    kept = whole.choices[0].text.split(stop)[0]
    cut = list(client.completions.create(**{**ask, "n": 1}, stream=True, stop=stop, logprobs=0))
    assert "".join(chunk.choices[0].text for chunk in cut) == kept
    assert cut[-1].choices[0].finish_reason == "stop"
    tokens = [token for chunk in cut if (told := chunk.choices[0].logprobs) for token in told.tokens or ()]
    assert "".join(tokens).startswith(kept) and not "".join(tokens[:-1]).startswith(kept + stop)


def test_other_models_write_by_their_own_rules(program: TestClient) -> None:
    for name, prompt, field in (
        ("translate-en-fr", "the cat sleeps.", "target"),
        ("infill", "Max gave [gMASK] ball to", "span"),
    ):
        answer = program.post("/v1/completions", json={"model": name, "prompt": prompt, "temperature": 0}).json()
        assert answer["choices"][0]["finish_reason"] == "stop", answer
        link = opened(answer["loupe"]["link"])
        assert (link["text"], link[field]) == (prompt, answer["choices"][0]["text"])


def test_a_chat_is_read_by_the_model_s_template(
    client: openai.OpenAI, stories: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"tokenizer_config.json": json.dumps({"chat_template": TEMPLATE}).encode()}
    monkeypatch.setattr(stories.tokenizer, "files", files)
    turns: Any = [{"role": "user", "content": PROMPT}]
    text = f"user: {PROMPT}\nassistant:"
    steps = list(generate(stories, text, 6, temperature=0.0))
    ask: dict[str, Any] = {"model": "stories", "messages": turns, "max_completion_tokens": 6, "temperature": 0}
    answer = client.chat.completions.create(**ask, logprobs=True, top_logprobs=2)
    choice = answer.choices[0]
    assert choice.message.role == "assistant" and text + str(choice.message.content) == steps[-1].text
    assert choice.logprobs is not None and choice.logprobs.content is not None
    for told, step in zip(choice.logprobs.content, steps, strict=True):
        logs = step.logits.log_softmax(-1)
        assert told.logprob == float(logs[step.id]) == told.top_logprobs[0].logprob
        assert bytes(told.bytes or ()).decode() == told.token
    chunks = list(client.chat.completions.create(**ask, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == choice.message.content
    assert chunks[0].choices[0].delta.role == "assistant" and chunks[-1].choices[0].finish_reason == "length"
    files["chat_template.jinja"] = b"{{ raise_exception('no') }}"
    with pytest.raises(openai.BadRequestError, match="template refuses the conversation: no; change"):
        client.chat.completions.create(**ask)
    files["chat_template.jinja"] = b"{{ ''.__class__.__mro__ }}"
    with pytest.raises(openai.BadRequestError, match="template"):
        client.chat.completions.create(**ask)
    with pytest.raises(openai.BadRequestError, match="must have a role"):
        client.chat.completions.create(**{**ask, "messages": [{"role": "user", "content": 3}]})


def test_too_many_at_once_are_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "MOST_WAITING", -routes.AT_ONCE)
    with TestClient(Starlette(routes=api_routes(TOKEN)), headers=SENT) as client:
        refused(client, "/v1/completions", {"model": "stories", "prompt": "a"}, 429)


def test_a_text_that_nobody_waits_for_is_not_written(stories: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    written, sent = list[int](), list[Message]()

    def count(*given: Any, **options: Any) -> Iterator[Step]:
        for step in generate(*given, **options):
            written.append(step.id)
            yield step

    monkeypatch.setattr(completions, "generate", count)
    body = json.dumps({"model": "stories", "prompt": PROMPT, "max_tokens": 50}).encode()
    whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}, {"type": "http.disconnect"}]
    came = iter(whole)

    async def receive() -> Message:
        return next(came)

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/completions", "query_string": b"", "scheme": "http"}
    headers = [(b"authorization", SENT["authorization"].encode()), (b"host", b"here")]
    finish(Starlette(routes=api_routes(TOKEN))({**scope, "headers": headers}, receive, send))
    assert sent[0]["status"] == 400 and len(written) < 10


def test_a_server_has_it_where_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(routes.TOKEN, "")
    monkeypatch.setattr("sys.argv", ["asgi.py", "--port", "1"])
    assert asgi.program_routes() == [] and not capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["asgi.py", "--api"])
    assert {route.path for route in asgi.program_routes()} == {route.path for route in api_routes(TOKEN)}
    made = os.environ[routes.TOKEN]
    assert len(made) >= 32 and capsys.readouterr().out == f"The API asks for the token {made}\n"
    monkeypatch.setattr(routes, "API_TOKEN", "of the settings")
    assert routes.choose_token() == "of the settings" and not capsys.readouterr().out


def test_the_description_says_what_is_checked(program: TestClient) -> None:
    told = program.get("/api/openapi.json", headers={"authorization": ""}).json()
    assert told == write_description()
    paths = {route.path for route in api_routes(TOKEN)} - {"/api/openapi.json"}
    assert {path.replace(":path", "") for path in paths} == told["paths"].keys()
    form = told["paths"]["/v1/completions"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    fields = form["properties"]
    assert form["required"] == ["model", "prompt"] and "frequency_penalty" not in fields
    assert fields["n"] == {"type": "integer", "minimum": 1, "maximum": 8, "description": "texts to write", "default": 1}
    assert {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 200} in fields["stop"]["anyOf"]
    assert "stories" in list_names() and open_named("stories").name == "stories"

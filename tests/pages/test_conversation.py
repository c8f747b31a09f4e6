"""A conversation as the input of a page: turns that are typed, added and carried in the link."""

import json
import re
from itertools import groupby
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine.budget import budget
from engine.conversations import Conversation
from engine.generation.prompt import begin
from engine.runtime import library
from tests.pages.mounted import at_page, mounted
from tests.pages.test_generate import exported, view, write
from tests.pages.test_take import asked, ran
from views.core.payload import unpack

GENERATE = "pages/explore/generate.py"
TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools here') }}{% endif %}"
    "{{ m.role }}: {{ m.content }}<|endoftext|>{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"
)


def save_talker(folder: Path) -> str:
    """The model of stories, whose files have a chat template."""
    library.checkpoint("stories").save(folder / "talker")
    (folder / "talker" / "chat_template.jinja").write_text(TEMPLATE)
    return "talker"


@pytest.fixture
def talker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(budget, "models_folder", str(tmp_path))
    return save_talker(tmp_path)


def prompt_text(app: AppTest) -> str:
    assert not app.exception, app.exception
    header, _ = view(app)
    return "".join(header["prompt"]["pieces"]).replace("·", " ")


def prompt_ids(app: AppTest) -> list[int]:
    ids: list[int] = view(app)[0]["prompt"]["ids"]
    return ids


def test_a_conversation_is_typed_written_on_and_linked(talker: str) -> None:
    app = at_page(GENERATE, model=talker).run()
    assert "Hello" not in prompt_text(app)
    app.segmented_control(key="reads").set_value("conversation").run()
    assert prompt_text(app) == "user: Hello.<|endoftext|>assistant: "
    counts = app.caption[0].value
    assert counts.startswith("Tokens by turn: user ") and sum(map(int, re.findall(r"\d+", counts))) == len(
        prompt_ids(app)
    )
    app.text_area[0].set_value("Hi, Tom.").run()
    assert prompt_text(app) == "user: Hi, Tom.<|endoftext|>assistant: "
    app.button(key="add system").click().run()
    assert prompt_text(app).startswith("system: You are a helpful assistant.<|endoftext|>user: Hi, Tom.")
    app.button(key="remove turn 0").click().run()
    app.button(key="add turn").click().run()
    assert [box.value for box in app.selectbox if str(box.label).startswith("role")] == ["user", "assistant"]
    app.text_area[1].set_value("Tom is").run()
    assert prompt_text(app) == "user: Hi, Tom.<|endoftext|>assistant: Tom is"  # which is continued

    settings = {"method": "greedy"}
    ids = write(app, 4, **settings)
    of = {"ask": "written", "ids": ids, "begun": 0, "settings": settings}
    assert [step.id for step in ran(exported(app, "python", of)[0]["lines"])["steps"]] == ids
    header, _ = view(app)
    tokenizer = library.checkpoint(talker).tokenizer
    assert tokenizer is not None and header["ends"] == [tokenizer.end_id]  # its own, and that of a turn
    said = json.loads(app.query_params["conversation"])
    assert [turn["content"] for turn in said] == ["Hi, Tom.", "Tom is"]
    again = at_page(GENERATE, model=talker, reads="conversation", conversation=json.dumps(said)).run()
    assert prompt_text(again) == prompt_text(app)
    again.selectbox(key="model").set_value("stories").run()  # which has no template
    assert "conversation" not in again.query_params and not any(one.key == "reads" for one in again.segmented_control)


@pytest.mark.parametrize("page", ["walkthrough", "attention"])
def test_a_page_about_one_run_reads_the_same_ids(talker: str, page: str) -> None:
    turns = [{"role": "user", "content": "Hi, Tom."}, {"role": "assistant", "content": "Tom is"}]
    app = at_page(f"pages/explore/{page}.py", model=talker, reads="conversation", conversation=json.dumps(turns)).run()
    assert not app.exception and not app.warning
    (drawn,) = mounted(app, page)
    header, arrays = unpack(drawn.bytes)
    checkpoint = library.checkpoint(talker)
    ids = begin(checkpoint, Conversation.from_dict(turns)).ids
    hook = "blocks.2.attn.pattern"
    assert arrays[hook].data.shape[-1] == len(ids)
    roles = header["lanes"][""]["roles"]
    assert len(roles) == len(ids) and [role for role, _ in groupby(roles)] == ["user", "assistant"]
    lines = asked(app, page, take="python", hook=hook, head=1, row=2, col=1)[0]["lines"]
    assert ran(lines)["trace"].ids[0].tolist() == list(ids) and header["take"]["link"]["reads"] == "conversation"
    assert "conversation" in app.query_params and "text" not in app.query_params


def test_what_is_refused_is_one_sentence(talker: str) -> None:
    turns = [{"role": "tool", "content": "4"}]
    app = at_page(GENERATE, model=talker, reads="conversation", conversation=json.dumps(turns)).run()
    (warning,) = app.warning
    assert "refuses the conversation: no tools here; change its turns" in warning.value
    next(box for box in app.selectbox if box.key and box.key.startswith("role ")).set_value("user").run()
    assert not app.warning and prompt_text(app) == "user: 4<|endoftext|>assistant: "
    app.text_area[-1].set_value("[1]").run()
    assert "Expected a table of tools, documents, variables" in app.warning[0].value
    app.text_area[-1].set_value('{"variables": {"a": 1}}').run()
    assert not app.warning and json.loads(app.query_params["conversation"])["variables"] == {"a": 1}
    broken = at_page(GENERATE, model=talker, reads="conversation", conversation="[").run()
    assert prompt_text(broken) == "user: Hello.<|endoftext|>assistant: "
    assert any("a list of messages in JSON" in one.value for one in broken.info)


def test_one_of_several_templates_is_chosen_and_goes_along(talker: str) -> None:
    folder = (Path(budget.models_folder) / talker).rename(Path(budget.models_folder) / "two-templates")
    (folder / "additional_chat_templates").mkdir()
    (folder / "additional_chat_templates" / "short.jinja").write_text("{{ messages[0].content }}<think>{# </think> #}")
    app = at_page(GENERATE, model=folder.name, reads="conversation").run()
    (choice,) = (box for box in app.selectbox if str(box.key).startswith("template "))
    choice.set_value("short").run()
    assert prompt_text(app) == "Hello.<think>" and view(app)[0]["thinking"] == [["<think>", "</think>"]]
    assert json.loads(app.query_params["conversation"])["template"] == "short"

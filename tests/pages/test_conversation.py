"""A conversation as the input of a page: turns that are typed, added and carried in the link."""

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine.budget import budget
from engine.runtime import library
from tests.pages.mounted import at_page
from tests.pages.test_generate import exported, view, write
from tests.pages.test_take import ran

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


def test_a_conversation_is_typed_written_on_and_linked(talker: str) -> None:
    app = at_page(GENERATE, model=talker).run()
    assert "Hello" not in prompt_text(app)
    app.segmented_control(key="reads").set_value("conversation").run()
    assert prompt_text(app) == "user: Hello.<|endoftext|>assistant: "
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

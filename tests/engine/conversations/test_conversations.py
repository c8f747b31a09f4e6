"""Conversations as transformers renders and encodes them, the role of each token, and templates that do harm."""

import json
import sys
import tomllib
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tokenizers
from jinja2 import TemplateError
from tokenizers import AddedToken
from tokenizers.models import BPE, Unigram
from tokenizers.pre_tokenizers import ByteLevel, Metaspace
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import BpeTrainer, UnigramTrainer
from transformers import AutoTokenizer

from engine.conversations import (
    Conversation,
    Message,
    encode_conversation,
    find_turn_ends,
    read_templates,
    render_process,
)
from engine.conversations import render as render_room
from engine.tokenizers import read_tokenizer

render_module = sys.modules[render_room.__module__]
TEMPLATES: dict[str, str] = tomllib.loads(Path(__file__).with_name("templates.toml").read_text())
MARKS = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|end|>", "[INST]", "[/INST]", "<end_of_turn>"]
CALL = {"type": "function", "function": {"name": "add", "arguments": {"a": 2, "b": "é<&>"}}}
TOOL = {
    "type": "function",
    "function": {"name": "add", "description": "Adds <numbers>.", "parameters": {"type": "object"}},
}
USER, HELLO = (
    {"role": "user", "content": " Hi there, é 🦉 "},
    {"role": "assistant", "content": "Hello.</think>\n\nYou?"},
)
SYSTEM, ASKS = {"role": "system", "content": "Be brief. /no_think"}, {"role": "user", "content": "2 + 2?\n"}
SAID: dict[str, dict[str, Any]] = {
    "one turn": {"messages": [USER]},
    "turns": {"messages": [USER, HELLO, ASKS]},
    "system": {"messages": [SYSTEM, USER, HELLO, ASKS], "variables": {"enable_thinking": False}},
    "answered": {
        "messages": [USER, {**HELLO, "reasoning_content": "They greet."}],
        "documents": [{"title": "A", "text": "b"}],
    },
    "tools": {
        "messages": [
            ASKS,
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "content": "4"},
        ],
        "tools": [TOOL],
    },
    "wrong order": {"messages": [HELLO, HELLO, {"role": "judge", "content": "no"}]},
    "parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": "In parts."}]}]},
}
WAYS: list[dict[str, Any]] = [{}, {"add_generation_prompt": True}, {"continue_final_message": True}]


def save_tokenizer(folder: Path, unigram: bool = False) -> Path:
    """A tokenizer that puts <s> around its texts, as the template may write too."""
    fast = tokenizers.Tokenizer(Unigram() if unigram else BPE())
    special = [AddedToken(mark, special=True, normalized=False) for mark in MARKS]
    texts = ["Hello there, user assistant system: 2 + 2?\n"] * 3
    if unigram:
        fast.pre_tokenizer = Metaspace()
        fast.train_from_iterator(texts, UnigramTrainer(vocab_size=80, special_tokens=special, unk_token="<s>"))
    else:
        fast.pre_tokenizer = ByteLevel(add_prefix_space=False)
        trainer = BpeTrainer(vocab_size=320, special_tokens=special, initial_alphabet=ByteLevel.alphabet())
        fast.train_from_iterator(texts, trainer)
    fast.post_processor = TemplateProcessing("<s> $A", None, [("<s>", fast.token_to_id("<s>"))])
    folder.mkdir()
    fast.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "pad_token": "<none>",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def checkpoint_of(folder: Path) -> Any:
    return SimpleNamespace(tokenizer=read_tokenizer(folder))


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program runs in this process, which is faster, and has no limits."""

    def run(asked: str) -> str:
        try:
            return json.dumps([render_process.render(one) for one in json.loads(asked)["each"]])
        except (render_process.RefusedError, TemplateError, TypeError) as error:
            with redirect_stdout(StringIO()) as told:
                render_process.tell_failure(type(error), error, None)
            return told.getvalue()

    monkeypatch.setattr(render_module, "run_program", run)


def test_text_ids_and_mask_are_those_of_transformers(tmp_path: Path, at_once: None) -> None:
    compared = refused = 0
    for unigram in (False, True):
        folder = save_tokenizer(tmp_path / str(unigram), unigram)
        theirs = AutoTokenizer.from_pretrained(folder)
        for name, template in TEMPLATES.items():
            (folder / "chat_template.jinja").write_text(template)
            ours = checkpoint_of(folder)
            for said in list(SAID.values())[: 3 if unigram else None]:
                talk = Conversation.from_dict(said)
                assert Conversation.from_dict(json.loads(json.dumps(talk.to_dict()))) == talk
                for way in WAYS:
                    given = (said["messages"], said.get("tools"), said.get("documents"), template)
                    more = {**way, **said.get("variables", {})}
                    try:
                        text = theirs.apply_chat_template(*given, tokenize=False, **more)
                    except (ValueError, TypeError, TemplateError):
                        with pytest.raises(ValueError, match=r"^[A-Z].*[.]$"):
                            encode_conversation(ours, talk, **{"add_generation_prompt": False, **way})
                        refused += 1
                        continue
                    found = encode_conversation(ours, talk, **{"add_generation_prompt": False, **way})
                    mask = "continue_final_message" not in way and "{% generation %}" in template
                    wanted = theirs.apply_chat_template(
                        *given, return_dict=True, return_assistant_tokens_mask=mask, **more
                    )
                    assert (found.rendered.text, list(found.encoding.ids)) == (text, wanted["input_ids"]), (
                        name,
                        said,
                        way,
                    )
                    if mask:
                        assert list(map(int, found.assistant)) == wanted["assistant_masks"], (name, said, way)
                    turns = found.rendered.turns
                    assert "".join(text[turn.start : turn.end] for turn in turns) == text
                    roles = [message["role"] for message in said["messages"]] + ["assistant"]
                    assert all(turn.role == ("" if turn.message is None else roles[turn.message]) for turn in turns)
                    compared += 1
    assert len(TEMPLATES) >= 30 and compared > 400 and refused > 50


def test_each_token_has_the_role_of_its_message(tmp_path: Path, at_once: None) -> None:
    folder = save_tokenizer(tmp_path / "bpe")
    spoken = {
        "chatml": "system user assistant user assistant",
        "llama-2": "user system user assistant user",
        "qwen-3": "system user assistant user assistant",
        "phi-3": "system user assistant user assistant",
        "mistral-3": " user assistant user system user",
        "yi-by-index": " system  user  assistant  user  assistant",
        "stablelm-captured": "system user assistant user assistant",
    }
    talk = Conversation.from_dict(SAID["system"])
    for name, roles in spoken.items():
        (folder / "chat_template.jinja").write_text(TEMPLATES[name])
        found = encode_conversation(checkpoint_of(folder), talk)
        assert " ".join(turn.role for turn in found.rendered.turns) == roles, name
        own = [(start, turn) for (start, _), turn in zip(found.encoding.spans, found.turns, strict=True)]
        assert all(turn.start <= start < turn.end for start, turn in own)
        for at, message in enumerate(talk.messages):
            said = [found.rendered.text[turn.start : turn.end] for turn in found.rendered.turns if turn.message == at]
            assert message.text.strip()[-4:] in "".join(said), (name, said)


def test_templates_are_read_wherever_they_lie(tmp_path: Path) -> None:
    folder = save_tokenizer(tmp_path / "bpe")
    config = folder / "tokenizer_config.json"
    said = json.loads(config.read_text())
    assert find_turn_ends(checkpoint_of(folder)) == () == tuple(read_templates(None))
    with pytest.raises(ValueError, match="no chat template"):
        encode_conversation(checkpoint_of(folder), Conversation((Message("user", "a"),)))
    named = [
        {"name": "default", "template": TEMPLATES["chatml"]},
        {"name": "tool_use", "template": "{{ tools|tojson }}"},
    ]
    config.write_text(json.dumps({**said, "chat_template": named}))
    ours = checkpoint_of(folder)
    assert len(ours.tokenizer.notes) == 1 and find_turn_ends(ours) == (ours.tokenizer.special_tokens["<|im_end|>"],)
    talk = Conversation.from_dict(SAID["tools"])
    assert encode_conversation(ours, talk).rendered.text == json.dumps([TOOL], ensure_ascii=False)
    with pytest.raises(ValueError, match="called 'rag'; choose one of default, tool_use"):
        encode_conversation(ours, talk, template="rag")
    (folder / "additional_chat_templates").mkdir()
    (folder / "additional_chat_templates" / "rag.jinja").write_text("rag")
    (folder / "chat_template.jinja").write_text("whole")
    assert read_templates(checkpoint_of(folder).tokenizer) == {"default": "whole", "rag": "rag"}
    assert AutoTokenizer.from_pretrained(folder).chat_template == {"default": "whole", "rag": "rag"}


BAD = {
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}": "within 1 s, and does not",
    "{{ 9 ** (9 ** 9) }}": "within 1 s, and does not",
    "{{ 'x' * 10 ** 10 }}": "within 512 MiB of memory, and does not",
    "{{ 'x'|center(10 ** 10) }}": "within 512 MiB of memory, and does not",
    "{% set n = namespace(a='xy') %}{% for i in range(64) %}{% set n.a = n.a ~ n.a %}{% endfor %}": "512 MiB",
    "{% for a in range(99999) %}{{ 'x' * 99 }}{% endfor %}": "at most 500,000 characters, and writes more",
    "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}": "nests too deeply",
    "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}": "nests too deeply",
    "{{ ''.__class__.__mro__ }}": "keep to its sandbox, and asks for more",
    "{{ messages.append(1) }}": "keep to its sandbox, and asks for more",
    "{% for a in %}": "written in Jinja, and is not in line 1: Expected",
    "{{ messages[0].content + 1 }}": "fails: TypeError: can only concatenate str",
    "{{ messages[0].name.first }}": "fails: 'dict object' has no attribute 'name'",
    "{{ raise_exception('roles must alternate.') }}": "refuses the conversation: roles must alternate; change",
    "x" * 300_000: "at most 200,000 characters, got 300,000",
}


def test_a_template_that_does_harm_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render_module, "SECONDS", 1)
    talk = Conversation((Message("user", "Hi"),))
    for template, told in BAD.items():
        with pytest.raises(ValueError) as refused:
            render_room(talk, template, {})
        sentence = str(refused.value)
        assert told in sentence and sentence.endswith(".") and "\n" not in sentence, template[:80]
    no_conversations: list[tuple[Any, str]] = [
        ([], "1 to 1,000 messages"),
        ([3], "message 0 must be"),
        ([{"content": ""}], "must have a role"),
        ([{"role": "user", "content": 3}], "must be a text or a list"),
        ({"turns": []}, "table of messages"),
    ]
    for said, told in no_conversations:
        with pytest.raises(ValueError, match=told):
            Conversation.from_dict(said)
    with pytest.raises(ValueError, match="has none; write its beginning"):
        render_room(Conversation((Message("assistant", None),)), "{{ messages }}", {}, continue_final_message=True)

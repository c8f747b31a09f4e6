"""What every page that runs a model can hold in its link: the model, and what that reads."""

from __future__ import annotations

from engine.conversations import Conversation
from engine.json_text import parse_json
from pages.controls.state.history import READABLE
from pages.controls.state.parameter import Choice, Number, Text
from server.settings import FIRST_MODEL

MOST_PICTURES = 9_999

MODEL = Text("model", FIRST_MODEL, READABLE, label="model", carried=True, hidden_as="the model")
EXAMPLE = ("example text",)  # puts another text there
FIELDS = (
    Text("text", "", READABLE, label="text", carried=True, hidden_as="the text", goes_with=EXAMPLE),
    Text("second", "", READABLE, label="second text (optional)", carried=True, hidden_as="the second text",
         goes_with=EXAMPLE),
    Text("target", "", READABLE, label="target (empty: the model writes it)", carried=True, hidden_as="the target",
         goes_with=EXAMPLE),
    Text("span", "", READABLE, label="in the gap (empty: the model writes it)", carried=True,
         hidden_as="the gap’s words", goes_with=EXAMPLE),
    Number("picture", 0, 0, MOST_PICTURES, carried=True, hidden_as="the picture",
           element=".st-key-picture, .st-key-own-picture"),
    Number("given", 32, 0, MOST_PICTURES, label="pixels given", carried=True, hidden_as="pixels given"),
)  # fmt: skip
INPUT = (MODEL, *FIELDS)


def conversation_rule(text: str) -> str:
    try:
        Conversation.from_dict(parse_json(text))
    except ValueError:
        return "a conversation: a list of messages in JSON, each with role and content"
    return ""


# Where a model's files have a chat template, a conversation in place of the text.
TALK = (
    Choice("reads", "text", {"text": "text", "conversation": "conversation"}, label="input", carried=True),
    Text("conversation", '[{"role": "user", "content": "Hello."}]', READABLE, rule=conversation_rule,
         label="conversation", carried=True, hidden_as="the conversation", element=".st-key-conversation-form"),
)  # fmt: skip

ATTENTION = Number(
    "attention", 1.0, 0.1, 4.0, step=0.05, label="attention temperature", carried=True,
    hidden_as="attention temperature",
    help="Divides the scores inside every head before its softmax: low makes attention sharp, high makes it even. "
    "It changes everything after it. 1 is the model as it was trained.",
)  # fmt: skip
OUTPUT_TEMPERATURE = Number(
    "temperature", 1.0, 0.0, 3.0, step=0.05, label="temperature", carried=True, hidden_as="output temperature",
    help="Divides the logits before the softmax. 0 is greedy.",
)  # fmt: skip
TOP_K = Number(
    "top_k", 0, 0, 100, label="top-k", carried=True, hidden_as="top-k",
    help="Keeps the k most probable tokens; 0 keeps all.",
)  # fmt: skip
TOP_P = Number(
    "top_p", 1.0, 0.05, 1.0, step=0.05, label="top-p", carried=True, hidden_as="top-p",
    help="Keeps the fewest tokens that together have this share.",
)  # fmt: skip

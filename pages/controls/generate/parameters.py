"""What a link can hold of the page Generate, beside its model and text."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pages.controls.model_input.parameters import INPUT, OUTPUT_TEMPERATURE, TALK, TOP_K, TOP_P
from pages.controls.state.page_state import PageState
from pages.controls.state.parameter import Choice, Number, Text, choice
from views.generate.beam_search import EARLY, PENALTIES, BeamOptions
from views.generate.beam_search import MOST as MOST_OF_BEAMS
from views.generate.charts import HIGHEST_TEMPERATURE
from views.generate.prompting import LONGEST_LINK, QUERIES, QUERY, TEXT
from views.generate.session import LONGEST, METHODS, MOST, Settings
from views.generate.temperature import FIRST, parse_numbers

USUAL: dict[str, Any] = asdict(Settings())
MOST_SEED = 999_999_999  # as `seed` of pages/controls/model_input/model_input.py reads it
TABS = ("write", "beam", "temperature", "prompting", "cache", "surprise")
MOST_SHOTS = 8
MOST_TYPED = 1_000  # characters of the numbers


def numbers_rule(text: str) -> str:
    try:
        parse_numbers(text)
    except ValueError as error:
        return str(error)
    return ""


SETTINGS = (
    choice("method", "sample", METHODS, label="method", hidden_as="method"),
    OUTPUT_TEMPERATURE, TOP_K, TOP_P,
    Number(
        "min_p", 0.0, 0.0, 1.0, step=0.01, label="min-p", hidden_as="min-p",
        help="Keeps tokens at least so probable, as a share of the most probable one.",
    ),
    Number(
        "typical_p", 1.0, 0.05, 1.0, step=0.05, label="typical", hidden_as="typical",
        help="Keeps those whose surprise is nearest to the entropy, up to this share.",
    ),
    Number(
        "repetition_penalty", 1.0, 0.5, 2.0, step=0.05, label="repetition", hidden_as="repetition penalty",
        help="Divides the positive logits of tokens that were read already, and multiplies the negative ones. "
        "1 is none.",
    ),
    Number(
        "penalty_alpha", USUAL["penalty_alpha"], 0.05, 1.0, step=0.05, label="degeneration",
        hidden_as="degeneration penalty",
        help="How much a candidate loses for being like what was read: (1 − α) confidence − α likeness.",
    ),
    Number(
        "candidates", USUAL["candidates"], 2, 20, label="candidates", hidden_as="candidates",
        help="How many of the most probable tokens are read and compared.",
    ),
    Number("most", USUAL["most"], 1, MOST, label="maximum tokens", hidden_as="maximum tokens"),
    Text(
        "stop_at", "", LONGEST, label="stop string", hidden_as="stop string",
        help="The text ends where it comes up. Several with | between them; \\n is the end of a line.",
    ),
    Number("seed", 0, 0, MOST_SEED, label="seed", hidden_as="seed"),
)  # fmt: skip
BEAM = (
    Number("beam_beams", BeamOptions().beams, 1, MOST_OF_BEAMS["beams"], label="beams",
           help="How many hypotheses go on at each step."),
    Number(
        "beam_penalty", BeamOptions().penalty, *PENALTIES, step=0.1, label="length penalty",
        help="The sum of log-probabilities is divided by the length to this power: 0 favours short texts, greater "
        "values long ones.",
    ),
    Number("beam_best", BeamOptions().best, 1, MOST_OF_BEAMS["beams"], label="n best",
           help="How many of the finished texts are shown, at most one for each beam."),
    choice("beam_early", BeamOptions().early, EARLY, label="early stopping"),
    Number("beam_tokens", BeamOptions().tokens, 1, MOST_OF_BEAMS["tokens"], label="maximum tokens",
           help="What is unfinished then counts as finished."),
)  # fmt: skip
TEMPERATURE = (
    Number("t", 1.0, 0.0, HIGHEST_TEMPERATURE, step=0.05, label="both start at T"),
    Text("numbers", FIRST, MOST_TYPED, rule=numbers_rule, label="numbers"),
)
PROMPTING = (
    Choice(
        "prompting",
        "shots",
        {"shots": "examples in the prompt", "instructed": "an instruction after the text"},
        label="what of prompting",
    ),
    Text("p_model", "", 200, label="model"),
    Text("p_table", "", 200, label="table"),
    Text("p_query", "", QUERY, label="query", help="an input of the table, or one of your own"),
    Number("p_k", 4, 0, MOST_SHOTS, label="examples K"),
    Number("p_seed", 0, 0, 2**31 - 1, label="seed"),
    Text("p_rows", "red: rouge\nblue: bleu\ngreen: vert\nwhite: blanc", LONGEST_LINK, label="rows"),
    choice("p_n", 30, QUERIES, label="queries for each K"),
    Text("p_instructed", "", 200, label="model"),
    Text("p_text", "le chat noir dort", TEXT, label="text"),
)
SURPRISE = (
    Choice("surprise", "written", {"prompt": "as given", "written": "with what was written"}, label="which text"),
    Choice(
        "surprise_stride",
        "half",
        {"half": "half a window apart", "quarter": "a quarter apart", "whole": "side by side"},
        label="how far apart windows are",
        help="**half a window apart**: every token has at least half a window before it.  \n**a quarter apart**: at "
        "least three quarters of a window stand before a token: twice the work.  \n**side by side**: no token is read "
        "twice but the last of a window, and the first ones have little before them.",
    ),
)
OF_TABS = {"beam": BEAM, "temperature": TEMPERATURE, "prompting": PROMPTING, "surprise": SURPRISE}

GENERATE = PageState(
    "generate", *INPUT, *TALK, choice("view", "write", TABS, label="tab"),
    *SETTINGS, *BEAM, *TEMPERATURE, *PROMPTING, *SURPRISE,
)  # fmt: skip

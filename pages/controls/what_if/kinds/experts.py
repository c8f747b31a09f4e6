"""Silences experts, sends tokens to another one, or changes how many each token sees."""

from typing import Any

from engine.edits import SendTokens, SilenceExperts, UseExperts
from engine.plurals import count_words
from pages.controls.what_if.edit_fields import Field, Place, Values, choose_block, own_stack
from pages.controls.what_if.edit_form import Form
from pages.controls.what_if.kind import EditKind, EditVariants, edit_name, goes
from views.what_if.edit_words import Terms
from views.what_if.experiment import Editable

WAYS = {
    "SilenceExperts": "silence experts",
    "SendTokens": "send tokens to another expert",
    "UseExperts": "change how many a token sees",
}


def choose_layer(form: Form) -> None:
    routed = own_stack(form).experts
    if edit_name(form.values) == "UseExperts":
        choose_block(form, among=list(routed))
    else:
        choose_block(form, every=False, among=list(routed))


def choose_experts(form: Form) -> None:
    count = own_stack(form).experts[form.values["layer"]].count
    form.values["experts"] = form.heads("experts", count, form.values["experts"], first=0)
    if not form.values["experts"]:
        form.faults.append("Expected one expert or more to silence, got none; choose those to silence.")


def choose_expert(form: Form) -> None:
    experts = own_stack(form).experts[form.values["layer"]]
    named = {expert: f"expert {expert}" for expert in range(experts.count)}
    form.values["expert"] = form.select("to", named, form.values["expert"])
    slots = {slot: "its best one" if slot == 0 else f"its {slot + 1}. best" for slot in range(experts.used)}
    form.values["slot"] = form.select("in place of", slots, form.values["slot"])


def choose_tokens(form: Form) -> None:
    chosen = form.values["positions"] or []
    form.values["positions"] = form.tokens("tokens", own_stack(form).pieces, chosen) or None


def choose_count(form: Form) -> None:
    counts = [one.count for one in own_stack(form).experts.values()]
    options = {count: count_words(count, "expert") for count in range(1, min(counts) + 1)}
    form.values["used"] = form.select("each token sees", options, form.values["used"])


def start(way: str, model: Editable, layer: int | None) -> Values:
    routed = model.stacks[-1].experts
    layer = layer if layer in routed else next(iter(routed))
    match way:
        case "SilenceExperts":
            return {"edit": way, "layer": layer, "experts": [0]}
        case "SendTokens":
            return {"edit": way, "layer": layer, "expert": 0, "positions": None, "slot": 0}
    return {"edit": way, "layer": None, "used": 1}


def blank(model: Editable, place: Place) -> Values:
    return start("SilenceExperts", model, place.layer) | {"stack": model.stacks[-1].stack}


def begin(way: str, form: Form) -> Values:
    return start(way, form.model, form.values["layer"])


def read(edit: Values, terms: Terms) -> Values:
    return edit | {"stack": None}


def write(values: Values, _: Any) -> Values:
    return {name: value for name, value in values.items() if name != "stack"}


def words(edit: Any, terms: Terms) -> str:
    place = "every block" if edit.layer is None else f"block {edit.layer + 1}"
    match edit:
        case SilenceExperts(experts=experts):
            named = ", ".join(map(str, experts))
            return f"{place}: {'expert' if len(experts) == 1 else 'experts'} {named} silenced"
        case SendTokens(expert=expert, positions=positions):
            return f"{place}: {terms.tokens(positions)} sent to expert {expert}"
    return f"{place}: each token sees {count_words(edit.used, 'expert')}"


FIELDS = (
    Field(choose_layer),
    Field(choose_experts, when=goes(edit_name, "SilenceExperts")),
    Field(choose_expert, when=goes(edit_name, "SendTokens")),
    Field(choose_tokens, when=goes(edit_name, "SendTokens")),
    Field(choose_count, when=goes(edit_name, "UseExperts")),
)
KIND = EditKind(
    name="experts", place=11, title="Experts", about="silence, send, count",
    edits=(SilenceExperts, SendTokens, UseExperts), fields=FIELDS, blank=blank, words=words, read=read, write=write,
    ways=EditVariants(titles=WAYS, of=edit_name, begin=begin, kept_fields=("stack",)),
    fits=lambda model: bool(model.stacks[-1].experts),
    lacking="this model has no experts: each of its blocks has one MLP.",
)  # fmt: skip

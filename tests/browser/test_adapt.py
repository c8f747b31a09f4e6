"""The page Adapt in a real browser: a checkpoint is taken further, and what has changed of it is measured."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, urlsplit

from engine import load, run
from tests.browser.harness import ROOT, choose, expect, settle, shows

if TYPE_CHECKING:
    from playwright.sync_api import Page


def set_steps(page: "Page", steps: int) -> None:
    settle(page)
    page.get_by_text("Recipe: every option").click()
    page.get_by_role("tab", name="Learning").click()
    for control, value in (("warm-up", steps // 4), ("steps", steps)):
        field = page.get_by_label(control, exact=True)
        field.fill(str(value))
        field.press("Enter")
        settle(page)


def test_a_head_learns_on_a_body_that_stays_and_both_are_compared(
    open_page: "Callable[..., Page]", empty_server: str
) -> None:
    page = open_page(f"{empty_server}/checkpoint?model=tales-bert")
    page.get_by_role("link", name="Fine-tune this").click()
    page.wait_for_url("**/adapt*")
    page.wait_for_selector(".train[data-state=finished]")  # the recorded run
    expect(page.get_by_role("combobox", name="base", exact=True)).to_have_value("tales-bert")
    choose(page, "what learns", "the head alone")
    set_steps(page, 8)
    page.get_by_role("button", name="Play").click()
    page.wait_for_url("**run=tales-bert+sentiment*")
    ended = page.locator("[data-testid=stDataFrame] [role=gridcell]").get_by_text("finished", exact=True)
    ended.wait_for(state="attached", timeout=300_000)  # the table has heard of it, and draws the page once more
    page.wait_for_selector(".train[data-state=finished]")
    settle(page)
    page.get_by_text("Before and after: what has changed of the base").click()
    page.get_by_text("103 taken over, 2 new (head.weight, head.bias), 7 left behind").wait_for()
    expect(page.get_by_text("its held-out loss under its own head was")).to_contain_text("+0.0000 nats")
    page.get_by_text("No matrix of the blocks has changed: only the head learns.").wait_for()
    page.get_by_role("link", name="Compare tales-bert with tales-bert sentiment").click()
    page.wait_for_selector(".compare[data-ready]")
    expect(page.get_by_label("model of B")).to_have_value("run: tales-bert sentiment")


def test_a_classifier_learned_from_a_csv_by_an_adapter_is_the_same_in_peft_and_opened_again(
    open_page: "Callable[..., Page]", empty_server: str
) -> None:
    import torch
    from peft import PeftModel
    from transformers import AutoConfig, AutoModelForSequenceClassification

    rows = [("Lily was happy and smiled", "glad"), ("Tom was sad and cried", "low")]
    lines = [f"{text} at the park {count}.,{label}" for count in range(20) for text, label in rows]
    table = {"name": "moods.csv", "mimeType": "text/csv", "buffer": "\n".join(["text,label", *lines]).encode()}
    page = open_page(f"{empty_server}/adapt?way=LoRA&adapt=own-data&base=tales-bert")
    page.locator('input[type="file"]').first.set_input_files(table)
    page.get_by_text("an adapter of rank 8 learns").wait_for()
    set_steps(page, 20)
    page.get_by_role("button", name="Play").click()
    page.wait_for_url("**run=tales-bert+moods*")
    page.wait_for_selector(".train[data-state=finished]", timeout=120_000)
    folder = Path(os.environ["LOUPE_RUNS"]) / "tales-bert moods" / "adapter" / "tales-bert moods"
    text = "Lily was happy and smiled at the park 3."
    opened = load(folder)
    assert opened.labels == ("glad", "low")
    read = opened.tokenizer.encode(text)
    ours = run(opened.model, read)["logits"][0].softmax(-1)
    base = AutoModelForSequenceClassification.from_pretrained(
        ROOT / "assets/checkpoints/tales-bert", config=AutoConfig.from_pretrained(folder), dtype=torch.float32
    )
    with torch.no_grad():
        inputs = {"input_ids": torch.tensor([read.ids]), "token_type_ids": torch.tensor([read.segments])}
        theirs = PeftModel.from_pretrained(base, folder).eval()(**inputs).logits[0].softmax(-1)
    torch.testing.assert_close(theirs, ours, atol=1e-5, rtol=1e-5)
    page = open_page(f"{empty_server}/checkpoint")
    typed = page.get_by_role("textbox", name="open another: a name on the hub, or a path")
    typed.fill(str(folder))
    typed.press("Enter")
    page.get_by_text("Adapters that the weights hold").wait_for()
    name = parse_qs(urlsplit(page.url).query)["model"][0]
    page = open_page(f"{empty_server}/walkthrough?model={quote(name)}&text={quote(text)}")
    shows(page, "walkthrough", run(opened.model, read), name)
    expect(page.locator(".looked-at .model")).to_contain_text("adapter on tales-bert")

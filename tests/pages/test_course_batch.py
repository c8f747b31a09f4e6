"""A batch: texts and ids, both models, the mask on and off, and what is no batch."""

from streamlit.testing.v1 import AppTest

from engine.runtime import library
from tests.pages.test_course import opened, question_of

LAST = min(library.checkpoint(name).config.vocab_size for name in ("tales-bert", "everyday")) - 1


def pick(app: AppTest, key: str, value: str) -> None:
    (group,) = [one for one in app.button_group if one.key == key]
    group.set_value(value).run()
    assert not app.exception, app.exception


def verdict(app: AppTest) -> str:
    (said,) = [one.value for one in app.markdown if "logits of the row differ" in one.value]
    return str(said)


def test_the_mask_keeps_the_shorter_row_as_it_is() -> None:
    for model in ("tales-bert", "everyday"):
        for kind in ("texts", "ids"):
            app = opened(lesson="batch")
            pick(app, "batch-model", model)
            pick(app, "batch-kind", kind)
            app.button(key=f"{question_of(app)} show").click().run()
            assert not app.exception
            if kind == "ids":
                assert any(one.value == "`[[1, 8, 3, 2], [1, 10, 2, 0]]`" for one in app.markdown)
            for view in ("attention", "outputs"):
                pick(app, "batch-view", view)
                assert " 0 of all" in verdict(app)
            app.toggle(key="batch-mask").set_value(False).run()
            assert (" 0 of all" in verdict(app)) == (model == "everyday")


def test_odd_texts_are_read_and_bad_ones_are_said() -> None:
    app = opened(lesson="batch")
    for odd in ("a", "猫坐在垫子上。", "🦉" * 48, "[MASK]`*"):
        app.text_input(key="batch-text 1").set_value(odd).run()
        app.button(key=f"{question_of(app)} show").click().run()
        for view in ("ids", "outputs", "attention"):
            pick(app, "batch-view", view)
        assert not [one for one in app.caption if "Expected" in one.value]
    pick(app, "batch-model", "everyday")
    app.text_input(key="batch-text 1").set_value("🦉" * 48).run()
    assert not app.exception and [one for one in app.caption if "the first 16 tokens" in one.value]
    for bad in ("", "x" * 49):
        app.text_input(key="batch-text 1").set_value(bad).run()
        assert not app.exception and [one for one in app.caption if "Expected" in one.value]
    app = opened(lesson="batch")
    pick(app, "batch-kind", "ids")
    app.text_input(key="batch-ids").set_value(f"[[1, {LAST}], [1, 2, 3]]").run()
    pick(app, "batch-model", "everyday")
    app.text_input(key="batch-ids").set_value("[[1, 2], [3, 4]]").run()
    assert not app.exception and [one for one in app.caption if "nothing is filled up" in one.value]
    for view in ("ids", "outputs", "attention"):
        pick(app, "batch-view", view)
    for bad in ("", "[[1, 2]]", f"[[1, {LAST + 1}], [1]]", "[[1, a], [2]]", "[[1], [99999]]"):
        app.text_input(key="batch-ids").set_value(bad).run()
        assert not app.exception and [one for one in app.caption if "Expected" in one.value], bad

"""Who is here is written once for all learners of a process, and for nobody who is no learner."""

from pathlib import Path

import pytest

from server.classes.steps import Step
from server.classes.store import Classes
from server.http import class_news
from server.http.class_news import News
from server.library.visitors import name_person


def test_who_is_here_is_written_once_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classes = Classes(str(tmp_path / "classes.sqlite"))
    code, _secret = classes.start("teacher", [Step("walkthrough", {})])
    for number in range(3):
        classes.join(code, f"learner {number}", name_person(f"cookie {number}"))
    written = list[set[tuple[str, str]]]()
    see = classes.see
    monkeypatch.setattr(classes, "see", lambda present: written.append(set(present)) or see(present))
    monkeypatch.setattr(class_news, "open_classes", lambda place: classes)
    now = 1000.0
    monkeypatch.setattr(class_news, "monotonic", lambda: now)
    news = News()
    before = {one.name: one.seen for one in classes.learners(code)}
    for cookie in ("cookie 0", "cookie 1", "nobody", ""):
        news.tell(code, cookie)
    news.tell("OTHER", "cookie 2")
    now += 6
    news.tell(code, "cookie 1")
    assert [len(one) for one in written] == [1, 2]  # at once, and then all that came since
    seen = {one.name: one.seen > before[one.name] for one in classes.learners(code)}
    assert seen == {"learner 0": True, "learner 1": True, "learner 2": False}
    now += 6
    assert news.tell(code, "") is not None and len(written) == 2  # of nobody there is nothing to write
    news.tell(code, "cookie 1", "#layer=2&head=1&cell=[%22attn.pattern%22,3,1,0]")
    assert classes.look_of(code, name_person("cookie 1")).startswith("#layer=2&head=1")
    for hostile in ("#<script>", "javascript:alert(1)", "#" + "x" * 2000):
        news.tell(code, "cookie 1", hostile)
        assert classes.look_of(code, name_person("cookie 1")) == ""

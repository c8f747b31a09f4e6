"""The course: its lessons by chapters, how far the reader is, and the page of one lesson.

A lesson is a folder of pages/learn/lessons/ that `chapters()` names. Two files are enough: lesson.py, whose
`experiment()` draws what the reader can do and returns whether its question was answered rightly, and en.md, which says
its title, terms and minutes. Beside them may stand its text in other languages, and teacher.en.md, a teacher's note.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import streamlit as st

from engine.places import PAGES
from pages.controls.learn.chapter_pictures import draw_chapter
from pages.controls.learn.figure import draw_small
from pages.controls.learn.glossary import link_terms, linked_terms
from pages.controls.learn.notebooks import write_notebook
from pages.controls.learn.notes import print_notes
from pages.controls.learn.predict import ASKED, FRONT, OPEN, QUESTIONS
from pages.controls.learn.recall import MISSED, RECALLED, draw_recall, due, note_answer
from pages.controls.menu import entries
from pages.controls.share.export import answer_on
from pages.controls.share.links import honour_link
from pages.controls.share.panel import share_panel
from pages.controls.state.hidden import TEACHERS, is_hidden
from pages.controls.state.page_state import PageState
from pages.controls.state.parameter import Hideable
from pages.controls.state.session import SessionValue, event_value, set_widget, widget_value
from pages.controls.words import LANG, kept_entries, language, own_names, parse_text, set_language
from pages.controls.words import translate as _
from views.core.component import courier, view
from views.core.markdown import Markdown, escape_markdown
from views.core.questions import Page

LESSONS = PAGES / "learn" / "lessons"
COURSE = "pages/learn/course.py"
FIELDS, SHOW = "lesson fields", "lesson show"  # what a class link of a lesson can hide
PageState(
    "course",
    Hideable(
        FIELDS,
        hidden_as="text fields",
        goes_with=('.st-key-experiment [class*="question-again"]',),
        element='.st-key-experiment :is([data-testid="stTextInput"], [data-testid="stTextArea"])',
    ),
    Hideable(SHOW, hidden_as="Show me", element='.st-key-experiment [class*="question-show"]'),
    Hideable(TEACHERS, hidden_as="For teachers"),
)
DEEPER = "\n## "  # begins what folds out below

WAY = "evening"
EVENING = (  # the way of one evening through the course; the rest is depth
    "tokens", "embeddings", "averaging", "query_key_value", "positions", "masks_and_heads", "block", "vector_to_word",
)  # fmt: skip

keys = view("learn", events=("restore",))


@dataclass(frozen=True)
class Lesson:
    """`inside` is the title and the address of the same thing in a shipped model: page, and what its link holds; `note`
    is for teachers, "" where nobody has written one. `where` are the parts of the figure of a transformer that it is
    about."""

    name: str
    place: int
    title: str
    minutes: int
    terms: tuple[str, ...]
    text: Markdown
    deeper: Markdown
    note: Markdown
    inside: Mapping[str, Any] = field(default_factory=dict)
    where: tuple[str, ...] = ()

    @property
    def experiment(self) -> Callable[[], bool]:
        return importlib.import_module(f"pages.learn.lessons.{self.name}.lesson").experiment


def chapters() -> dict[str, tuple[str, ...]]:
    """The folders of all lessons in their order, by the titles of their chapters."""
    return {
        _("Text becomes numbers"): ("tokens", "vocabulary", "languages", "embeddings"),
        _("Attention"): ("averaging", "query_key_value", "scaling", "positions", "masks_and_heads"),
        _("From a block to a word"): ("batch", "norms", "residual", "block", "encoder_decoder", "vector_to_word"),
        _("Learning"): ("loss", "fill_gap", "one_step", "in_prompt", "conversation", "adapting", "policy"),
        _("Inside trained models"): (
            "family", "how_much", "long_sequences", "price", "bits", "picture", "heads_learn", "find_circuit",
            "cause", "experts",
        ),
    }  # fmt: skip


def names() -> list[str]:
    return [name for chapter in chapters().values() for name in chapter]


def lessons() -> list[Lesson]:
    """All lessons in their order, in the reader's language."""
    return [read_lesson(name, place) for place, name in enumerate(names(), 1)]


def read_lesson(name: str, place: int = 0) -> Lesson:
    """A lesson of the reader's language; its place is looked up where none is given."""
    return parse_lesson(LESSONS, name, place or names().index(name) + 1, language())


@cache  # the page of one lesson names all, at every touch
def parse_lesson(folder: Path, name: str, place: int, lang: str) -> Lesson:
    about, body = parse_text(folder / name / f"{LANG}.md", lang)
    _about, note = parse_text(folder / name / f"teacher.{LANG}.md", lang)
    text, _heading, deeper = body.partition(DEEPER)
    terms, inside = tuple(about.get("terms", ())), about.get("inside", {})
    texts = Markdown(text.strip()), Markdown(deeper.strip()), Markdown(note)
    return Lesson(name, place, about["title"], about["minutes"], terms, *texts, inside, tuple(about.get("where", ())))


# --- how far the reader is ---


def lessons_among(said: Sequence[Any]) -> list[str]:
    """Lists those of the lessons that there are, in their order."""
    return [name for name in names() if name in said]


def done() -> list[str]:
    """Lessons whose question was answered rightly, in this visit, in the link, or as the browser remembers."""
    return DONE.get()


def remember(finished: Sequence[Any]) -> None:
    DONE.set(lessons_among([*done(), *finished]))


SCORES = SessionValue[dict[str, float]]("scores of lessons", dict)  # share right, where all that was asked is answered
DONE = SessionValue("lessons done", lambda: lessons_among(st.query_params.get("done", "").split(",")))


def restore() -> None:
    """Takes what the browser remembers: the lessons that are done, and the day of each that was answered wrongly."""
    said = event_value("course keys", "restore")
    if not isinstance(said, dict):
        return
    finished, missed = said.get("done"), said.get("missed")
    remember(finished if isinstance(finished, list) else [])
    if isinstance(missed, dict):
        days = {name: str(missed[name])[:10] for name in lessons_among([*missed])}
        MISSED.set(days | MISSED.get())


def write_address(name: str) -> None:
    """Writes the lesson and how far the reader is into the address, which a link to the page that one stands on leaves
    as it was."""
    wanted = address(name)
    if not name:
        del wanted["lesson"]
    st.query_params.from_dict({**st.query_params.to_dict(), **wanted} if name else wanted)


# --- one lesson ---


def address(name: str, way: str | None = None) -> dict[str, str]:
    """The query of the address of a lesson, from where the reader is, on the `way` that the reader is on or begins."""
    way = (WAY if on_evening() else "") if way is None else way
    kept = {"way": way} if way and name else {}
    return {"lesson": name, **({"done": ",".join(done())} if done() else {}), **kept, **kept_entries()}


def on_evening() -> bool:
    """Tells whether the reader is on the way of an evening."""
    return st.query_params.get("way") == WAY


def draw_lesson(lesson: Lesson, course: Sequence[Lesson]) -> None:
    way = [one for one in course if one.name in EVENING] if on_evening() and lesson.name in EVENING else course
    at = way.index(lesson)
    before = way[at - 1] if at else None
    after = way[at + 1] if at + 1 < len(way) else None
    # Before what may take seconds: until a browser has the address, all that it says is about the lesson before, and
    # until it has the keys, it hears none.
    write_address(lesson.name)
    draw_head(lesson, way, before, after)
    use_keys(before, after)
    with st.container(key="lesson-body"):
        reading, trying = st.columns([5, 9], gap="large")
    with reading:
        draw_earlier(lesson, way)
        st.markdown(link_terms(lesson.text))
        with st.container(key="lesson-links"):
            draw_links(lesson)
    # Who has answered once may change the input and look on, unless a class is to answer first.
    OPEN.set(lesson.name in done() and not is_hidden(SHOW))
    ASKED.set(set())
    try:
        with trying, st.container(key="experiment"):
            FRONT.set(st.container())
            answered = lesson.experiment()
    finally:
        OPEN.set(False)
        FRONT.set(None)
    asked = [QUESTIONS.get()[key] for key in ASKED.get()]
    if asked and all(one.about is not None for one in asked):
        SCORES.get()[lesson.name] = sum(one.right for one in asked) / len(asked)
    if any(one.about is not None for one in asked):
        note_answer(lesson.name, answered)
    if answered and lesson.name not in done():
        remember([lesson.name])
        st.rerun()  # the line above shows it
    if lesson.deeper:
        title, _line, text = lesson.deeper.partition("\n")
        with st.expander(escape_markdown(title), icon=":material/south:"):
            st.markdown(link_terms(Markdown(text.strip())))
    if not is_hidden(TEACHERS):
        draw_teaching(lesson)


def draw_earlier(lesson: Lesson, way: Sequence[Lesson]) -> None:
    """A question about an earlier lesson, where there is one to ask about."""
    about = RECALLED.get().get(lesson.name) or due(lesson.name, [one.name for one in way], done())
    named = read_lesson(about).terms if about else ()
    if about and named and about != lesson.name:
        RECALLED.get()[lesson.name] = about
        others = [term for one in reversed(way[: lesson.place]) for term in one.terms]
        draw_recall(lesson.place, about, read_lesson(about).title, named, others)


def draw_head(lesson: Lesson, course: Sequence[Lesson], before: Lesson | None, after: Lesson | None) -> None:
    finished = lesson.name in done()
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="lesson-head"):
        st.page_link(COURSE, label=_("Course"), icon=":material/map:", query_params=address(""))
        sign = " :green[:material/check_circle:]" if finished else ""
        place, sentence = course.index(lesson) + 1, _("Lesson {place} of {count}")
        if len(course) == len(EVENING):
            sentence = _("Evening: {place} of {count}")
        number = sentence.format(place=place, count=len(course))
        st.markdown(f"### {escape_markdown(lesson.title)}{sign}", width="stretch")
        minutes = _("{minutes} min").format(minutes=lesson.minutes)
        st.caption(f"{number} · {minutes}", width="content")
        for one, label, icon in ((before, "previous", "arrow_back"), (after, "next", "arrow_forward")):
            with st.container(width="content", key=f"lesson-{label}"):
                if one is not None:
                    name = _("Previous: {title}") if label == "previous" else _("Next: {title}")
                    st.page_link(
                        COURSE,
                        label=" ",
                        icon=f":material/{icon}:",
                        query_params=address(one.name),
                        help=name.format(title=one.title),
                    )


def draw_links(lesson: Lesson) -> None:
    """Draws the terms that the lesson introduces, and a link to the same thing in a shipped model."""
    if lesson.terms:
        named = _("Terms: {terms}").format(terms=linked_terms(lesson.terms, " · "))
        st.markdown(f":small[{named}]")
    if lesson.where:
        draw_small(lesson.where, _("You are here: {parts}"), key=f"where {lesson.name}")
    if lesson.inside:
        at = dict(lesson.inside)
        title, page = at.pop("title"), at.pop("page")
        path = next(entry.path for entry in entries() if entry.address == page)
        st.page_link(path, label=escape_markdown(title), icon=":material/search:", query_params=at | kept_entries())


def draw_teaching(lesson: Lesson) -> None:
    """Draws what a teacher needs: the note, on the page and to print, the notebook that a program grades, which is made
    on the click, and the link."""
    with st.expander(_("For teachers"), key=f"teachers-{lesson.name}", icon=":material/school:"):
        if lesson.note:
            st.markdown(Markdown(lesson.note.replace("## ", "##### ")))
        with st.container(horizontal=True, gap="small"):
            offer_print([lesson], f"{lesson.name}-note.html")
            text = f"# {lesson.place}. {lesson.title}\n\n{lesson.text}"
            for label, answers in {_("Notebook for students"): False, _("Notebook with answers"): True}.items():
                made = partial(write_notebook, lesson.name, text, language(), answers=answers)
                st.download_button(label, made, f"{lesson.name}.ipynb", "application/x-ipynb+json", on_click="ignore")
        st.caption(_("A notebook runs in Loupe’s folder, without a network, and is graded by Otter."))
        st.caption(_("A link for a class shows nothing of this."))
    link, key = {"lesson": lesson.name, "lang": language()}, f"lesson share {lesson.name}"
    share_panel(lesson.title, link, [FIELDS, SHOW], key=key, hidden=[TEACHERS])
    courier("courier", partial(answer_on, Page()))


def offer_print(course: Sequence[Lesson], file: str) -> None:
    """Offers the notes of the lessons that have one."""
    notes = [(f"{one.place}. {one.title}", one.note) for one in course if one.note]
    if not notes:
        return
    label = _("Note to print") if len(course) == 1 else _("Notes for teachers, to print")
    page = partial(print_notes, notes, language())
    st.download_button(label, page, file, "text/html", icon=":material/print:", on_click="ignore")


def use_keys(before: Lesson | None, after: Lesson | None) -> None:
    """Arrows turn the page, Enter answers; the browser remembers how far the reader is."""
    found = {"done": done(), "missed": MISSED.get(), "previous": before is not None, "next": after is not None}
    keys(found, key="course keys", on={"restore": restore})


# --- the map ---


def choose_language() -> None:
    """The languages by what they call themselves, where there is a choice."""
    key, named = "language choice", own_names()
    if len(named) > 1:
        set_widget(key, language())
        st.segmented_control(
            _("Language"), list(named), format_func=lambda lang: escape_markdown(named[lang]), key=key, required=True,
            width="content",
            label_visibility="collapsed", on_change=lambda: set_language(widget_value(key)),
        )  # fmt: skip


def draw_map(course: Sequence[Lesson]) -> None:
    finished = done()
    total = sum(lesson.minutes for lesson in course)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("## " + _("The course"), width="stretch")
        choose_language()
    st.markdown(
        _(
            "Each lesson is one idea and one experiment on your own text: predict, then see what the model computes. "
            "{count} lessons, about {minutes} minutes; {done} done."
        ).format(count=len(course), minutes=total, done=len(finished))
    )
    following = next((lesson for lesson in course if lesson.name not in finished), course[0])
    draw_evening(course)
    for number, (title, named) in enumerate(chapters().items()):
        chapter = [lesson for lesson in course if lesson.name in named]
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(Markdown(f"### {title}"), width="stretch")
            draw_minutes(chapter)
        shown, listed = st.columns([3, 9], gap="medium")
        with shown:
            draw_chapter(number)
        with listed:
            for lesson in chapter:
                draw_card(lesson, lesson.name in finished, lesson == following)
    if not is_hidden(TEACHERS):
        offer_print(course, "loupe-notes.html")
    use_keys(None, following)


def draw_evening(course: Sequence[Lesson]) -> None:
    """The way of one evening, and in the figure what of a transformer was found out so far."""
    way, finished = [lesson for lesson in course if lesson.name in EVENING], done()
    with st.container(border=True, key="evening"):
        listed, shown = st.columns([7, 5], gap="medium", vertical_alignment="center")
        with listed:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown("#### " + _("Attention in an evening"), width="stretch")
                draw_minutes(way)
            with st.container(horizontal=True, gap="small"):
                for number, lesson in enumerate(way, 1):
                    st.page_link(
                        COURSE,
                        label=escape_markdown(f"{number}. {lesson.title}"),
                        icon=":material/check_circle:" if lesson.name in finished else None,
                        query_params=address(lesson.name, WAY),
                        width="content",
                    )
            st.caption(_("The lessons below that are not among these eight go deeper."))
        with shown:
            found = {part for lesson in course if lesson.name in finished for part in lesson.where}
            draw_small(found, _("Found so far: {parts}"), key="found")


def draw_card(lesson: Lesson, finished: bool, following: bool) -> None:
    with st.container(
        border=True, horizontal=True, vertical_alignment="center", gap="small", key=f"lesson-card-{lesson.name}"
    ):
        icon = "check_circle" if finished else "play_circle" if following else "circle"
        title = escape_markdown(f"{lesson.place}. {lesson.title}")
        st.page_link(
            COURSE,
            label=f"**{title}**" if following else title,
            icon=f":material/{icon}:",
            query_params=address(lesson.name),
            width="stretch",
        )
        st.markdown(f":small[{linked_terms(lesson.terms)}]", width="content")
        draw_minutes([lesson])


def draw_minutes(course: Sequence[Lesson]) -> None:
    st.caption(_("{minutes} min").format(minutes=sum(lesson.minutes for lesson in course)), width="content")


def draw_course() -> None:
    """The lesson that the address names, or the map of all."""
    language()
    honour_link({})
    course = lessons()
    asked = st.query_params.get("lesson", "")
    lesson = next((one for one in course if one.name == asked), None)
    if lesson is None:
        if asked:
            st.info(_("There is no lesson “{name}”; here are those that are.").format(name=escape_markdown(asked[:40])))
        draw_map(course)
        write_address("")
    else:
        draw_lesson(lesson, course)

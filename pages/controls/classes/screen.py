"""What a class sees on the projector: the code, the question, how many have answered, and what they said, no names."""

from __future__ import annotations

from collections import Counter

import streamlit as st

from pages.controls.classes.kind import kind_of, make_ready
from pages.controls.classes.tallies import draw_chart, page_address, show_page
from pages.controls.classes.who import follow, tell_news
from pages.controls.share.class_link import class_link, draw_svg
from server.classes.store import Answer, Learner, Room
from views.classes.tally import Content
from views.core.markdown import escape_markdown

PROJECTOR = "projector"
QR_WIDTH, BEST = 150, 3  # CSS pixels, and answers that are shown of those that are scored
MOST_POINTS = 5  # learners who are named with their points
LARGE = """<style>
.st-key-class-screen :is(p, li) { font-size: clamp(1.2rem, 1.8vw, 3rem) }
.st-key-class-screen h1 { font-size: clamp(3rem, 5vw, 8rem) }
.st-key-class-screen h2 { font-size: clamp(2rem, 3vw, 5rem) }
</style>"""


@st.fragment
def follow_screen(code: str) -> None:
    if (found := follow(code)) is None:
        return
    room, learners, answers = found
    make_ready(room.step)
    st.html(LARGE)
    mine = [one for one in answers if one.step == room.at]
    with st.container(key="class-screen"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"# {escape_markdown(code)}", width="content")
            invitation = class_link(page_address("join", {"code": code}))
            st.markdown(escape_markdown(invitation.address), width="stretch")
            if room.step.asks:
                st.markdown(f"**{len(mine)}** of {len(learners)}", width="content")
            tell_news(room)
            if invitation.code:
                with st.container(width=QR_WIDTH):
                    draw_svg(invitation.code, "the address of the class as a QR code", QR_WIDTH)
        kind = kind_of(room.step)
        st.markdown(f"## {escape_markdown(room.step.sentence or kind.asks(room.step))}")
        if kind.about_run and room.step.sentence:
            st.markdown(escape_markdown(kind.asks(room.step)))
        if kind.covers and (text := room.step.query.get("text")):
            st.markdown(escape_markdown(f"“{text}”"))
        draw_step(room, [one.content for one in mine if not one.content.get("elsewhere")])
        if room.points and room.revealed:
            draw_points(room, learners, answers)
        if room.revealed or not kind.covers:
            show_page(room.step)


def draw_points(room: Room, learners: list[Learner], answers: list[Answer]) -> None:
    """Draws the learners with most points, of those who have any."""
    points = Counter(one.learner for one in answers if room.counts(one))
    names = {one.id: one.name for one in learners}
    if best := points.most_common(MOST_POINTS):
        st.markdown(escape_markdown(f"Points · {' · '.join(f'{names[one]}: {count}' for one, count in best)}"))


def draw_step(room: Room, found: list[Content]) -> None:
    """The tally, where it does not give away what is still to be answered."""
    step, kind = room.step, kind_of(room.step)
    if step.asks and not kind.about_page:
        if room.revealed or not kind.is_graded(step):
            draw_chart(room, found)
        if room.revealed and any(one["right"] is not None for one in found):
            st.markdown(f"**{sum(bool(one['right']) for one in found)} of {len(found)}** right")
        if kind.scored:
            for one in sorted(found, key=lambda one: -(one["score"] or 0.0))[:BEST]:
                st.markdown(escape_markdown(f"{one['said']} · {one['truth']}"))

"""The course: a map of its lessons, and one lesson at a time."""

from pages.controls.learn.course import draw_course

MENU = {"title": "Course", "address": "course", "place": 2}

draw_course()

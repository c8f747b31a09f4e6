"""Class session: the teacher's side, from the first step to the table of answers."""

from pages.controls.classes.draft import draw_draft
from pages.controls.classes.linking import draw_linking
from pages.controls.classes.parameters import TEACH
from pages.controls.classes.screen import PROJECTOR, follow_screen
from pages.controls.classes.teacher import draw_room, open_room

MENU = {"title": "Class session", "address": "teach", "place": 4}

here = TEACH.open()
draw_linking(here)
if (room := open_room(here)) is None:
    draw_draft(here)
elif here.begin("screen") == PROJECTOR:
    follow_screen(room.code)
else:
    draw_room(here, room)

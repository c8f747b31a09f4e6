"""The first page: one run of a shipped model, alive, and three doors."""

from pages.controls.learn.home import draw_home

MENU = {"title": "Home", "address": "home", "place": 1}

draw_home()

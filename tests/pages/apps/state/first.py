from tests.pages.apps.state.declared import PAGES, draw

draw(PAGES["first"])

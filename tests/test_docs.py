"""README is one page with its pictures, and the menu of the site has every page of docs."""

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
TOP = {"index.md", "contributing.md", "changelog.md"}  # pages that scripts/site_pages.py adds
MOST_LINES = 120
FILM, STILLS = 2_000_000, 600_000  # bytes at most, of the one and of all others together: they travel with every clone


def pages(nav: object) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        yield from pages(list(nav.values()))
    elif isinstance(nav, list):
        for one in nav:
            yield from pages(one)


def test_readme_is_one_page_and_has_its_pictures() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= MOST_LINES
    names = re.findall(r"!\[[^]]*\]\(([^)]+)\)", readme)
    assert {ROOT / name for name in names} == set((ROOT / "assets" / "readme").iterdir())
    film, *stills = ((ROOT / name).stat().st_size for name in names)
    assert film <= FILM and sum(stills) <= STILLS


def test_the_menu_of_the_site_has_every_page() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = sorted(pages(site["nav"]))
    written = (path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))
    assert listed == sorted({*written, *TOP})

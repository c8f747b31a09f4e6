"""Rows of Share & export by their names: what stands on each, in the reader's language. A row's work is the method of
that name in assets/views/share/share.js."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pages.controls.words import translate as _

ROWS: Mapping[str, Callable[[], dict[str, str]]] = {
    "link": lambda: {
        "title": _("Link"),
        "copy": _("Copy link"),
        "hint": _("the address of what is shown, for others who have this Loupe"),
        "copied": _("Copied the link to the clipboard."),
        "theme": _("keep light or dark"),
    },
    "class": lambda: {
        "title": _("For a class"),
        "hide": _("hide"),
        "keeps": _("A control that is hidden keeps what the link gives it."),
        "instruction": _("question or instruction"),
        "above": _("Shown above the page."),
        "predict": _("ask for a guess first"),
        "before": _("A guess comes before the picture."),
        "copy": _("Copy class link"),
        "hint": _("the address of what is shown, as the class is to find it"),
        "copied": _("Copied the link for the class to the clipboard."),
        "code": _("the link as a QR code"),
    },
    "session": lambda: {"title": _("Class session"), "open": _("Class session with it")},
    "picture": lambda: {
        "title": _("Picture"),
        "part": _("which part"),
        "width": _("cm wide"),
        "measure": _("width in centimetres"),
        "light": _("light, for paper"),
        "note": _("as shown here, with its legend and a caption"),
    },
    "file": lambda: {"title": _("Interactive page"), "note": _("works offline")},
    "python": lambda: {
        "title": "Python",
        "copy": _("Copy lines"),
        "copied": _("Copied the lines to the clipboard."),
        "note": _("run it in Loupe’s folder"),
    },
    "data": lambda: {"title": _("Data"), "which": _("which table")},
}

"""Who looks at a page: the person at the server's own machine, or a visitor whose browser keeps a cookie of asgi.py."""

from __future__ import annotations

import re
from ipaddress import ip_address

import streamlit as st

from engine.budget import budget
from engine.runtime import library
from pages.controls.state.session import SessionValue
from server.library import visitors
from server.library.hosts import is_loopback

COOKIE = "loupe_visitor"
TOKEN = re.compile(r"[0-9a-f]{32}")
THIS_MACHINE = "this machine"  # who is nobody else, where no cookie says so
FORWARDED = ("x-forwarded-for", "x-real-ip", "forwarded")


def on_this_machine() -> bool:
    """Tells whether the visitor's browser runs where the server does, with nobody in between who could be another
    one."""
    address, headers = st.context.ip_address, st.context.headers
    if any(name in headers for name in FORWARDED) or not is_loopback(headers.get("host", "localhost")):
        return False
    try:
        return address is None or ip_address(address).is_loopback
    except ValueError:
        return False


def visitor_name() -> str:
    """Hash of the visitor's cookie, which does not give the cookie away; "" where the browser sent none."""
    token = st.context.cookies.get(COOKIE)
    if not isinstance(token, str) or not TOKEN.fullmatch(token):
        return ""
    return visitors.name_person(token)


def owner_name() -> str:
    """Name of the owner of what is kept between visits; "" for somebody who would not be known again."""
    return visitor_name() or (THIS_MACHINE if on_this_machine() else "")


def recent() -> list[str]:
    """The models that this person opened, in other tabs and before a reload too, the last one first."""
    return OPENED.get()


def opened_before() -> list[str]:
    found = visitors.recent(budget.runs_folder, whose) if (whose := owner_name()) else []
    return [name for name in found if library.knows(name)]


def remember(name: str) -> None:
    """All pages of this person offer it from now on."""
    if name in library.names() or name in recent()[:1]:
        return
    OPENED.set([name, *(one for one in recent() if one != name)])
    if whose := owner_name():
        visitors.visit(budget.runs_folder, whose, name)


OPENED = SessionValue("opened", opened_before)

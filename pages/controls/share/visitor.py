"""Who looks at a page: the person at the server's own machine, or a visitor whose browser keeps a cookie of asgi.py."""

from __future__ import annotations

import hashlib
import re
from ipaddress import ip_address

import streamlit as st

COOKIE = "loupe_visitor"
TOKEN = re.compile(r"[0-9a-f]{32}")
FORWARDED = ("x-forwarded-for", "x-real-ip", "forwarded")


def on_this_machine() -> bool:
    """Tells whether the visitor's browser runs where the server does, with nobody in between who could be another
    one."""
    address = st.context.ip_address
    if any(name in st.context.headers for name in FORWARDED):
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
    return hashlib.sha256(token.encode()).hexdigest()[:32]

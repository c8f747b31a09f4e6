"""A link as another machine opens it: the address by which others reach this server, and its QR code."""

from __future__ import annotations

import socket
from base64 import b64encode
from dataclasses import dataclass
from html import escape
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

import segno
import streamlit as st

from pages.controls.words import translate as _
from server.settings import ADDRESS as OUTSIDE
from views.core.markdown import escape_markdown

ELSEWHERE = ("192.0.2.1", 9)  # an address of no machine (RFC 5737), towards which nothing is sent
PATIENCE = 0.5  # seconds until a port of this machine answers
QR_WIDTH = 240  # CSS pixels
MOST_CODED = 2953  # bytes in the largest QR code (ISO/IEC 18004, version 40-L)


@dataclass(frozen=True)
class ClassLink:
    """`code` is its QR code as SVG, "" where the address is too long for one; `warning` says why it may not open."""

    address: str
    code: str
    warning: str


def class_link(address: str) -> ClassLink:
    """`address` is the link as this browser has it; its scheme, port and path stay unless LOUPE_ADDRESS says others.
    Raises ValueError for what is no link."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"A link must begin with http:// or https://, got {address[:40]!r}. Reload and try again.")
    found, warning = outside(parts)
    address = found.geturl()
    if len(address.encode()) > MOST_CODED:
        sentence = _("A QR code holds {most:,} characters and this address has {count:,}: send it.")
        long = sentence.format(most=MOST_CODED, count=len(address.encode()))
        return ClassLink(address, "", f"{warning} {long}".strip())
    code = segno.make(address, error="l", micro=False)
    return ClassLink(address, code.svg_inline(omitsize=True, light="#fff", border=4), warning)


def show_link(address: str) -> None:
    found = class_link(address)
    if found.warning:
        st.warning(escape_markdown(found.warning))
    if found.code:
        draw_svg(found.code, "the link as a QR code", QR_WIDTH)
    st.code(found.address, language=None, wrap_lines=True)


def draw_svg(svg: str, name: str, width: int) -> None:
    """Draws an SVG without a namespace as a picture: Streamlit takes it out of HTML."""
    alone = svg.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    coded = b64encode(alone.encode()).decode()
    st.html(f'<img alt="{escape(name)}" width="{width}" src="data:image/svg+xml;base64,{coded}">')


def outside(link: SplitResult) -> tuple[SplitResult, str]:
    """The link from another machine, and a warning where that cannot open it."""
    if OUTSIDE:
        base = urlsplit(OUTSIDE)
        path = f"{base.path.rstrip('/')}/{link.path.rpartition('/')[2]}" if base.path.strip("/") else link.path
        return link._replace(scheme=base.scheme, netloc=base.netloc, path=path), ""
    if not is_loopback(link.hostname or ""):
        return link, ""
    host = lan_address()
    if not host:
        return link, _("This machine is in no network, so that only its own browser opens this address.")
    port = link.port or (443 if link.scheme == "https" else 80)
    warning = (
        ""
        if listens(host, port)
        else _(
            "Only this machine opens this address, because the server listens on 127.0.0.1 alone; start it with "
            "make run HOST=0.0.0.0."
        )
    )
    return link._replace(netloc=host if link.port is None else f"{host}:{port}"), warning


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def lan_address() -> str:
    """This machine's address in its network, "" in none; no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(ELSEWHERE)
        except OSError:
            return ""
        host: str = probe.getsockname()[0]
    return "" if is_loopback(host) else host


def listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), PATIENCE).close()
    except OSError:
        return False
    return True

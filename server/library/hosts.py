"""Names by which a browser may reach this server.

A site that has its own name lead to this machine (DNS rebinding) is the same origin as what answers there: its scripts
would read and steer Loupe as the person at this machine does. They cannot have the browser send another name.
"""

from __future__ import annotations

import socket
from ipaddress import ip_address
from urllib.parse import urlsplit


def name_of(host: str) -> str:
    """The name in a Host header, without its port and in small letters; "" for what is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Tells whether a Host header names this machine for itself."""
    name = name_of(host)
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def is_ours(host: str, address: str) -> bool:
    """Tells whether a Host header is one of this server's: a number, which no site can have as its name, a name of this
    machine, or that of the `address` by which others reach it."""
    name = name_of(host)
    own = socket.gethostname().lower()
    if is_loopback(host) or name in (own, f"{own}.local", urlsplit(address).hostname):
        return bool(name)
    try:
        return bool(ip_address(name))
    except ValueError:
        return False

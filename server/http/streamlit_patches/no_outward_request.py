"""Nothing is asked of another host that nobody named. Whoever opens a websocket from another site makes Streamlit ask a
cloud's service for this machine's public address, twice, while nobody else is answered; what that says is an allowed
origin then. Here the address that a proxy has is a setting, LOUPE_ADDRESS."""

from __future__ import annotations

from streamlit import net_util

READ = {
    "streamlit.net_util:get_external_ip": "4c57f8164ceedcbd",
    "streamlit.web.server.server_util:is_url_from_allowed_origins": "eb64ab615af0456f",
}


def apply() -> None:
    net_util.get_external_ip = _know_none


def _know_none() -> None:
    """In place of asking for it."""

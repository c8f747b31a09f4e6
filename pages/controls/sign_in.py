"""Signing in by a provider of identities (OpenID Connect Core 1.0), on a server whose operator has set one.

Streamlit keeps the provider's settings in its secrets (docs/operation.md) and the identity in a signed cookie.
"""

from __future__ import annotations

from functools import cache

import streamlit as st

from server.settings import TEACHERS
from views.core.markdown import escape_markdown


@cache
def asks_to_sign_in() -> bool:
    return st.secrets.load_if_toml_exists() and "auth" in st.secrets


def require_sign_in() -> None:
    """Ends the script with the way in, for a visitor who has not signed in where they have to."""
    if asks_to_sign_in() and not st.user.is_logged_in:
        st.markdown("## Sign in")
        st.markdown("This laboratory is open to those whom its operator knows.")
        st.button("Sign in", key="sign in", type="primary", on_click=st.login)
        st.stop()


def draw_signed_in() -> None:
    """The name of who is signed in, and the way out."""
    if asks_to_sign_in():
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(f"Signed in as {escape_markdown(user_address() or 'somebody without an e-mail address')}.")
            st.button("Sign out", key="sign out", type="tertiary", on_click=st.logout)


def user_address() -> str:
    """E-mail address that the provider has verified, in lower case; "" where there is none."""
    said = st.user.get("email")
    return said.lower() if isinstance(said, str) and st.user.get("email_verified", True) is True else ""


def may_start_class() -> bool:
    """Whoever signed in with an address, or one of a domain, that the operator lists as a teacher's; where nobody is
    listed, or nobody signs in, everybody."""
    listed = [one.lower() for one in TEACHERS.split()]
    if not listed or not asks_to_sign_in():
        return True
    address = user_address()
    return address in listed or ("@" in address and address[address.rindex("@") :] in listed)

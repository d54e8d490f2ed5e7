"""The keys and secrets of operators, as files that their owner alone can read.

signing.key       an operator's private signing key
signing.pub       the public one, for the other operators and for clients
*.secret          what two services share, to know each other
"""

from __future__ import annotations

import secrets
from pathlib import Path

from tacit.errors import Refused
from tacit.files import make_folders, write_atomically
from tacit.service.federation.settings import read_signing_key
from tacit.service.signed_document import signing_public_key
from tacit.system_errors import explained

_SECRET_BYTES = 32


def make_signing_key(folder: Path) -> bytes:
    """A new signing key in this folder; its public key. Refuses to replace one."""
    path = folder / "signing.key"
    _write(path, secrets.token_hex(_SECRET_BYTES), is_private=True)
    public = signing_public_key(read_signing_key(path))
    _write(folder / "signing.pub", public.hex(), is_private=False)
    return public


def make_secret(path: Path) -> None:
    """A new secret that two services share; refuses to replace one."""
    _write(path, secrets.token_hex(_SECRET_BYTES), is_private=True)


def _write(path: Path, text: str, *, is_private: bool) -> None:
    if path.exists():
        raise Refused(
            f"{path} is there already, and whoever knows it relies on it; choose "
            "another folder, or remove it if nobody does"
        )
    with explained():
        make_folders(path.parent)
        write_atomically(path, f"{text}\n".encode(), is_private=is_private)

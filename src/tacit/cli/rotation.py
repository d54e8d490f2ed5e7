"""The commands of `tacit serve` that replace signing keys, step by step.

Both operators make a new key, sign both new keys with their old ones (`sign-rotation`),
and the coordinator's operator appends what both signed (`add-rotation`).
"""

from __future__ import annotations

from typing import Annotated

import typer

from tacit.cli import console
from tacit.cli.federation import Config
from tacit.cli.options import Json
from tacit.errors import BadValue, MissingExtra, Refused
from tacit.files import write_atomically
from tacit.system_errors import explained

LeaderKey = Annotated[
    str,
    typer.Option(
        metavar="HEX", help="The leader's new public key.", show_default=False
    ),
]
HelperKey = Annotated[
    str,
    typer.Option(
        metavar="HEX", help="The helper's new public key.", show_default=False
    ),
]
Signature = Annotated[
    str,
    typer.Option(
        metavar="HEX", help="What sign-rotation printed there.", show_default=False
    ),
]


def sign_rotation(
    config: Config,
    run: Annotated[
        str,
        typer.Option(
            metavar="HEX",
            help="The name of the run, as tacit serve status prints it.",
            show_default=False,
        ),
    ],
    leader: LeaderKey,
    helper: HelperKey,
    number: Annotated[
        int, typer.Option(min=1, help="How many rotations the run has with this one.")
    ] = 1,
    json: Json = False,
) -> None:
    """Sign both operators' new public keys with this operator's old key.

    Check with the other operator, by a way of your own, that its new key is the one you
    sign: clients will trust it.
    """
    try:
        from tacit.service.federation.rotation import SigningKeys
        from tacit.service.federation.rotation import sign_rotation as signed
        from tacit.service.federation.settings import (
            AggregatorSettings,
            public_signing_key,
            read_settings,
            read_signing_key,
        )
    except ImportError as error:
        raise MissingExtra(error.name or "starlette", "serve") from error
    settings = read_settings(config, AggregatorSettings)
    keys = SigningKeys(
        public_signing_key(leader, "leader"),
        public_signing_key(helper, "helper"),
        number,
    )
    key = read_signing_key(settings.signing_key)
    made = signed(keys, key, run=_hexadecimal(run, "run")).hex()
    if json:
        console.print_json({"signature": made, "number": number})
        return
    console.out().print(made)


def add_rotation(
    config: Config,
    leader: LeaderKey,
    helper: HelperKey,
    leader_signature: Signature,
    helper_signature: Signature,
    json: Json = False,
) -> None:
    """Append a rotation to what the coordinator hands to clients.

    It is refused unless both old keys have signed it. The coordinator keeps the first
    keys in its settings: its invitation has them.
    """
    try:
        from tacit.service.federation.rotation import (
            SigningKeys,
            append_rotation,
            rotation,
        )
        from tacit.service.federation.services import coordinated_run
        from tacit.service.federation.settings import (
            CoordinatorSettings,
            public_signing_key,
            read_settings,
        )
    except ImportError as error:
        raise MissingExtra(error.name or "starlette", "serve") from error
    settings = read_settings(config, CoordinatorSettings)
    if settings.rotation is None:
        raise Refused(f"{config} has no `rotation`; name a file for rotations there")
    path = settings.rotation
    with explained():
        before = path.read_bytes() if path.exists() else b""
    invitation = coordinated_run(settings).invitation
    first = SigningKeys(invitation.leader, invitation.helper)
    new = SigningKeys(
        public_signing_key(leader, "leader"), public_signing_key(helper, "helper")
    )
    number, content = append_rotation(
        first,
        before,
        run=invitation.run,
        make=lambda n: rotation(
            SigningKeys(new.leader, new.helper, n),
            run=invitation.run,
            leader=_hexadecimal(leader_signature, "leader_signature"),
            helper=_hexadecimal(helper_signature, "helper_signature"),
        ),
    )
    with explained():
        write_atomically(path, content)
    if json:
        console.print_json({"number": number, "rotation": str(path)})
        return
    console.out().print(f"rotation {number} is served; start both operators with it")


def _hexadecimal(text: str, name: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise BadValue(f"{name}={text!r} must be hexadecimal digits") from None

"""Certificates and keys of nodes on several machines, and a front that asks for them.

    ca.key  ca.crt              signs the others; ca.key stays with the operator
    server.key  server.crt      the SuperLink and the front, by their host names
    operator.key  operator.crt  who holds it may start a run
    node-0.key  node-0.pub      one pair per node; the SuperLink registers the .pub
    nginx.conf                  passes nodes; asks operator.crt of everybody else

Flower's TLS tells a node that it speaks to the SuperLink, and node keys tell the
SuperLink who a node is. Neither keeps a stranger who has ca.crt from starting a run,
whose code nodes execute. That is what the front is for: the SuperLink listens on
loopback alone, and nothing but the front is reached from outside.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tacit.errors import BadValue
from tacit.files import make_folders, write_atomically

_DAYS = 825  # of a certificate; longer ones are refused by some systems
_LOCAL = ("127.0.0.1", "localhost")

_NGINX = """\
# A front for a SuperLink on loopback: nodes pass, and runs need operator.crt.
pid {folder}/nginx.pid;
error_log {folder}/nginx-error.log;
daemon off;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}/nginx-body;
    proxy_temp_path {folder}/nginx-proxy;
    fastcgi_temp_path {folder}/nginx-fastcgi;
    uwsgi_temp_path {folder}/nginx-uwsgi;
    scgi_temp_path {folder}/nginx-scgi;
    client_max_body_size 64m;           # Flower cuts arrays into chunks of 5 MB
    proxy_read_timeout 600s;
    # Sums of nodes pass through and are on no disk here, whoever the workers run as.
    proxy_http_version 1.1;
    proxy_request_buffering off;
    proxy_buffering off;
    server {{
        listen {listen} ssl;
        ssl_certificate     {folder}/server.crt;
        ssl_certificate_key {folder}/server.key;
        ssl_client_certificate {folder}/ca.crt;
        ssl_verify_client optional;     # nodes have keys of their own, no certificate
        location /v1/fleet/ {{
            proxy_pass {upstream};
            proxy_ssl_trusted_certificate {folder}/ca.crt;
            proxy_ssl_verify on;
            proxy_ssl_name localhost;
        }}
        location /v1/control/ {{
            if ($ssl_client_verify != SUCCESS) {{ return 403; }}
            proxy_pass {upstream};
            proxy_ssl_trusted_certificate {folder}/ca.crt;
            proxy_ssl_verify on;
            proxy_ssl_name localhost;
        }}
        location / {{ return 403; }}
    }}
}}
"""


def write_keys(
    folder: Path,
    *,
    nodes: int,
    hosts: Sequence[str],
    listen: str = "0.0.0.0:443",
    superlink: str = "127.0.0.1:9400",
) -> list[Path]:
    """Write all files of the module's table; refuses a folder that has some already."""
    if (folder / "ca.key").exists():
        raise BadValue(
            f"{folder} has keys already, and new ones would lock every node out; give "
            "another folder"
        )
    make_folders(folder)
    ca_key = ec.generate_private_key(ec.SECP384R1())
    ca = _certificate("tacit federation", ca_key, ca_key, issuer=None)
    _write_pair(folder / "ca", ca_key, ca)
    for name, usage in (
        ("server", ExtendedKeyUsageOID.SERVER_AUTH),
        ("operator", ExtendedKeyUsageOID.CLIENT_AUTH),
    ):
        key = ec.generate_private_key(ec.SECP256R1())
        names = [*dict.fromkeys([*_LOCAL, *hosts])] if name == "server" else []
        made = _certificate(name, key, ca_key, issuer=ca, hosts=names, usage=usage)
        _write_pair(folder / name, key, made)
    for number in range(nodes):
        _write_node(folder / f"node-{number}")
    text = _NGINX.format(
        folder=folder.resolve(), listen=listen, upstream=f"https://{superlink}"
    )
    write_atomically(folder / "nginx.conf", text.encode())
    return sorted(folder.iterdir())


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    *,
    issuer: x509.Certificate | None,
    hosts: Sequence[str] = (),
    usage: x509.ObjectIdentifier | None = None,
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))  # clocks differ
        .not_valid_after(now + timedelta(days=_DAYS))
        .add_extension(
            x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True
        )
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
        )
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),
            critical=False,
        )
    )
    if issuer is None:
        made = made.add_extension(_signs_others(), critical=True)
    if usage is not None:
        made = made.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    if hosts:
        named = x509.SubjectAlternativeName([_host(one) for one in hosts])
        made = made.add_extension(named, critical=False)
    return made.sign(signer, hashes.SHA384())


def _signs_others() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _write_pair(
    path: Path, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate
) -> None:
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write_atomically(path.with_suffix(".key"), secret, is_private=True)
    shown = certificate.public_bytes(Encoding.PEM)
    write_atomically(path.with_suffix(".crt"), shown)


def _write_node(path: Path) -> None:
    """A pair of keys in the format of OpenSSH, which Flower reads."""
    key = ec.generate_private_key(ec.SECP384R1())
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    write_atomically(path.with_suffix(".key"), secret, is_private=True)
    shown = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    write_atomically(path.with_suffix(".pub"), shown + b"\n")

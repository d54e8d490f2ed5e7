"""What a client is invited to: method, plan, catalog, and who the two operators are.

Over the channel `two_servers` the operators are a leader and a helper. Over `shuffle`
they are a relay and a collector, and `leader` stands for the relay, to whom clients
send, `helper` for the collector.

    bytes   field
    4       length of the header, the lowest byte first
    …       header: JSON without spaces, in one order
    …       safetensors: the columns of the catalog

All of it is public and the same for everybody. A client decides by it once, when it
joins, and keeps it: what broadcasts and reports look like, what a round may cost, and
whose signatures count all follow from it. An invitation has one form only, so its
SHA-256 names it. Reading one makes settings of tables and runs nothing.

A trial, in which one machine is both operators, says so: nothing is promised against
that machine, and clients print it. An invitation that does not say so is the word of
two operators that they are two, which nobody can check from afar.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from safetensors.numpy import save

from tacit import check
from tacit.agreement import Agreement
from tacit.data.catalog import Catalog
from tacit.data.columns import describe, restore
from tacit.errors import BadMessage, BadRun, BadValue, Refused
from tacit.evaluation.released_metric import Measured, ReleasedMetric
from tacit.experiment.dataclass_fields import Problems
from tacit.experiment.registry import method_class
from tacit.experiment.settings import (
    method_settings,
    plain_settings,
    privacy_settings,
    read_method,
)
from tacit.method import Method, SumMethod
from tacit.plans import Plan
from tacit.release import Release
from tacit.runtime.ledger import releases_of
from tacit.sampling import Everyone, Once, Sampler
from tacit.service.federation.two_halves import TwoHalves
from tacit.service.form import Form
from tacit.service.relay.messages import MessageForm
from tacit.service.signed_document import KEY_BYTES
from tacit.tensors import tensors_in
from tacit.transport.channels import Shuffle, TwoServers

VERSION = 2
MOST_BYTES = 1 << 28
_MOST_HEADER = 1 << 24
_MOST_TEXT = 1000  # characters of a title or of a contact
_LENGTH = 4  # bytes
_CATALOG = "catalog"
_KEYS = {
    *("v", "title", "contact", "edition", "leader", "helper", "one_machine"),
    *("method", "privacy", "metric", "plan", "catalog"),
}
# Fields of a plan that an invitation has, and of which types they are.
_PLAN: Mapping[str, Any] = {
    "population": int,
    "rounds": int,
    "channel": str,
    "delta": (int, float, type(None)),
    "target_epsilon": (int, float, dict, type(None)),
    "target_view": (str, type(None)),
    "groups": dict,
    "min_contributors": int,
    "assumed_sybils": int,
    "counted_by": str,
    "sampler": str,
}
# By channel: where clients send reports to operators.
_FORMS: Mapping[str, type[Form]] = {
    TwoServers.name: TwoHalves,
    Shuffle.name: MessageForm,
}
_SAMPLERS: Mapping[str, Sampler] = {"everyone": Everyone(), "once": Once()}
_DAMAGED = (
    *(LookupError, TypeError, ValueError, AttributeError, ArithmeticError),
    *(RecursionError, BadRun, Refused),
)


@dataclass(frozen=True, eq=False)
class Invitation:
    """All that a client has to know before it takes part; nothing of it is secret."""

    name: str  # of the method
    method: Method  # its noise calibrated to the plan
    plan: Plan
    catalog: Catalog
    leader: bytes  # public Ed25519 keys, by which the operators sign
    helper: bytes
    title: str = ""
    contact: str = ""
    edition: str = ""  # tells apart runs of one experiment, such as one per month
    one_machine: bool = False  # both operators are one machine: a trial

    def __post_init__(self) -> None:
        for name, key in (("leader", self.leader), ("helper", self.helper)):
            if len(key) != KEY_BYTES:
                raise BadValue(f"{name} has {len(key)} bytes; needed are {KEY_BYTES}")
        if self.leader == self.helper:
            raise BadValue("both operators have one signing key: they are one operator")
        for name in ("title", "contact", "edition"):
            text = getattr(self, name)
            if len(text) > _MOST_TEXT or not text.isprintable():
                raise BadValue(
                    f"{name} must be one line of at most {_MOST_TEXT} characters"
                )
        self.form_class.check_plan(self.plan)
        for phase in range(len(self.agreement.reports)):
            self.form(phase)  # refuses what has no form

    @property
    def form_class(self) -> type[Form]:
        """How the reports of this run's channel are written."""
        found = _FORMS.get(self.plan.channel)
        if found is None:
            raise Refused(
                f"channel '{self.plan.channel}' has no two operators; clients are "
                f"invited to runs over {' or '.join(map(repr, _FORMS))}"
            )
        return found

    def form(self, phase: int) -> Form:
        """The bytes of the reports of a phase (`Broadcast.phase`)."""
        layout = self.agreement.reports[phase]
        return self.form_class.of(self.method, self.plan, layout, phase=phase)

    @cached_property
    def agreement(self) -> Agreement:
        """What clients and server must agree on, with its digest."""
        return self.method.agreement(self.plan, self.catalog)

    @property
    def run(self) -> bytes:
        """16 bytes: what manifests of this run, and ledgers, name it."""
        if not self.edition and not self.one_machine:
            return self.agreement.digest
        # A trial is another run: what it promises is less.
        trial = b"\0one machine" if self.one_machine else b""
        named = self.agreement.digest + self.edition.encode() + trial
        return hashlib.blake2b(named, digest_size=len(self.agreement.digest)).digest()

    @property
    def one_operator(self) -> str:
        """The code why one operator sees what both see; empty if none does."""
        return self.form_class.one_machine if self.one_machine else ""

    @property
    def releases(self) -> tuple[Release, ...]:
        """What will be seen of a client, by whom, under which guarantee."""
        return releases_of(self.method, self.plan, one_operator=self.one_operator)

    @property
    def least_reports(self) -> int:
        """The number of reports below which nothing may be published."""
        return self.plan.min_contributors

    # bytes

    @cached_property
    def digest(self) -> bytes:
        """The SHA-256 of the bytes."""
        return hashlib.sha256(self.encode()).digest()

    def encode(self) -> bytes:
        """The one form of this invitation; refuses what cannot be written exactly."""
        content = self._written()
        try:
            is_same = _read(content).run == self.run
        except (*_DAMAGED, BadValue) as error:
            raise Refused(f"{self.name} cannot be written down: {error}") from error
        if not is_same:
            raise Refused(
                f"settings of {self.name} cannot be written down exactly: who reads "
                "them would agree to something else"
            )
        return content

    def _written(self) -> bytes:
        described, columns = describe(self.catalog, _CATALOG)
        inner = _inner(self.method)
        header = {
            "v": VERSION,
            "title": self.title,
            "contact": self.contact,
            "edition": self.edition,
            "leader": b64encode(self.leader).decode(),
            "helper": b64encode(self.helper).decode(),
            "one_machine": self.one_machine,
            "method": method_settings(self.name, inner),
            # Of a measured method both: that of the inner one is for its own rounds.
            "privacy": [privacy_settings(one) for one in (inner, self.method)],
            "metric": plain_settings(self.method.metric)
            if isinstance(self.method, Measured)
            else None,
            "plan": {name: _plan_field(self.plan, name) for name in _PLAN},
            "catalog": described,
        }
        # Not sorted: the order of groups and of phases is what codes refer to.
        text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
        arrays = {name: np.asarray(one, order="C") for name, one in columns.items()}
        return len(text).to_bytes(_LENGTH, "little") + text + bytes(save(arrays))

    @classmethod
    def decode(cls, content: bytes) -> Invitation:
        """The invitation in these bytes; refuses whatever is not in its one form."""
        if len(content) > MOST_BYTES:
            raise BadMessage(
                f"an invitation of {len(content):,} bytes; at most {MOST_BYTES:,}"
            )
        try:
            found = _read(content)
            is_whole = found._written() == content
        except (*_DAMAGED, BadValue) as error:
            raise BadMessage(f"an invitation cannot be read: {error}") from error
        if not is_whole:
            raise BadMessage("an invitation is not in the one form that it may have")
        return found


def _inner(method: Method) -> Method:
    return method.inner if isinstance(method, Measured) else method


def _plan_field(plan: Plan, name: str) -> Any:
    if name == "sampler":
        return next(name for name, one in _SAMPLERS.items() if one == plan.sampler)
    return _plain(getattr(plan, name))


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return value.item() if isinstance(value, np.generic) else value


# --- Reading --------------------------------------------------------------------------


def _read(content: bytes) -> Invitation:
    length = int.from_bytes(content[:_LENGTH], "little")
    rest = _LENGTH + length
    if length > min(_MOST_HEADER, len(content) - _LENGTH):
        raise ValueError(f"a header of {length:,} bytes in {len(content):,}")
    header = json.loads(content[_LENGTH:rest].decode(), parse_constant=_no_number)
    if not isinstance(header, dict) or header.keys() != _KEYS:
        raise ValueError(f"its entries must be {', '.join(sorted(_KEYS))}")
    if header["v"] != VERSION:
        raise ValueError(
            f"it is of version {header['v']!r}, and this program reads {VERSION}; use "
            "a newer version of Tacit"
        )
    catalog = restore(
        header["catalog"], tensors_in(content[rest:], where=_CATALOG).arrays
    )
    if not isinstance(catalog, Catalog):
        raise TypeError("its catalog is something else")
    return Invitation(
        _text(header["method"]["name"]),
        _method(header),
        _plan(header["plan"]),
        catalog,
        _key(header["leader"]),
        _key(header["helper"]),
        _text(header["title"]),
        _text(header["contact"]),
        _text(header["edition"]),
        _flag(header["one_machine"]),
    )


def _method(header: Mapping[str, Any]) -> Method:
    own = dict(header["method"])
    cls = method_class(_text(own.pop("name")))
    inner_privacy, privacy = header["privacy"]
    inner = _protected(cls, own, inner_privacy)
    if header["metric"] is None:
        return inner
    problems = Problems()
    metric = problems.read(ReleasedMetric, header["metric"], "metric")
    if metric is None:
        raise BadValue("; ".join(problems.found))
    if not isinstance(inner, SumMethod):
        raise Refused("a metric is released beside sums alone")
    mechanism, protection = _split(privacy)
    kind = Measured.mechanisms[mechanism]
    value = problems.read(kind, protection, "privacy")
    if value is None:
        raise BadValue("; ".join(problems.found))
    return Measured(inner, metric, privacy=value)


def _protected(
    cls: type[Method], own: Mapping[str, Any], privacy: Mapping[str, Any]
) -> Method:
    problems, (mechanism, protection) = Problems(), _split(privacy)
    found = read_method(cls, own, mechanism, protection, problems)
    if found is None or problems.found:
        raise BadValue("; ".join(problems.found))
    return found


def _split(privacy: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    protection = dict(privacy)
    return _text(protection.pop("mechanism")), protection


def _plan(told: Mapping[str, Any]) -> Plan:
    if told.keys() != _PLAN.keys():
        raise ValueError(f"a plan has {', '.join(_PLAN)}; it has {', '.join(told)}")
    for name, kind in _PLAN.items():
        if isinstance(told[name], bool) or not isinstance(told[name], kind):
            raise TypeError(f"{name} of the plan is {told[name]!r}")
    for name in ("groups", "target_epsilon"):
        values = told[name].values() if isinstance(told[name], dict) else ()
        if not all(type(one) in (int, float) for one in values):
            raise TypeError(f"{name} of the plan is {told[name]!r}")
    if told["sampler"] not in _SAMPLERS:
        raise ValueError(f"sampler {check.unknown(told['sampler'], _SAMPLERS)}")
    return Plan(**{**told, "sampler": _SAMPLERS[told["sampler"]]})


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} must be a text")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} must be true or false")
    return value


def _key(value: object) -> bytes:
    try:
        return b64decode(_text(value), validate=True)
    except NotBase64:
        raise ValueError(f"{value!r} is not base64") from None


def _no_number(constant: str) -> object:
    raise ValueError(f"{constant} is no number")

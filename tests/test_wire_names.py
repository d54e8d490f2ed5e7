"""Agreements name classes by registered names, and sentences are in no digest.

PYTHONPATH=tests python tests/test_wire_names.py      writes the pinned digests anew
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from inspect import isclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

from tacit.codes import Code
from tacit.data.catalog import Catalog
from tacit.data.features import Categories, Vectors
from tacit.data.strings import Strings
from tacit.errors import BadValue, Refused
from tacit.experiment.registry import method_class, method_names
from tacit.keys import Key
from tacit.ledger.terms import agreed_terms, read_terms, write_terms
from tacit.mechanisms.adaptive_clip import AdaptiveClip, ClippedSumWithBits
from tacit.method import Method
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.privacy import CentralGaussian, LocalPrivUnit
from tacit.privacy.privacy import Privacy
from tacit.release import CELLS, Release, Standing
from tacit.runtime.client import Client
from tacit.runtime.ledger import terms_of
from tacit.sampling import Everyone, FixedSize, Once, Poisson, PoissonByGroup
from tacit.service.federation.invitation import Invitation
from tacit.testing.contract import mixed_world
from tacit.transport.channels import CHANNELS as CHANNELS_BY_NAME
from tacit.transport.channels import SecureSum, channel
from tacit.transport.messages import Layout, PublicSlot, Slot
from tacit.wire_names import (
    LATER,
    PROSE,
    _classes,
    _names,
    describe,
    digest_of,
    register,
    wire_name,
)

PINNED = Path(__file__).parent / "vectors" / "agreements.json"
CATALOG = Catalog(
    Strings.of([f"item {n}" for n in range(12)]),
    Strings.of([f"title {n}" for n in range(12)]),
    {
        "genre": Categories.of([["a", "b"][: n % 3] for n in range(12)]),
        "title_vector": Vectors(np.eye(12, 4, dtype=np.float32)),
    },
)
PLAN = Plan(40, rounds=9, delta=1e-6, min_contributors=5, channel="secure_sum")
NEWS = {"content": ("title",), "dimensions": 3}
PAPER = {"content": ("title",), "model": "plm-nr", "mode": "paper"}
FACTORS = {"head": 4, "factors": 3}
MOVING = {"clip_quantile": 0.5, "bit_noise": 9.0}
NOISE = {"noise_multiplier": 2.0}
# Every method with every mechanism that it has: settings of both that are complete.
SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "dpals/none": (FACTORS, {}),
    "dpals/central": (FACTORS, NOISE),
    "dplcf/none": ({}, {}),
    "dplcf/local": ({}, {"epsilon": 2.0}),
    "dpmf/none": (FACTORS, {}),
    "dpmf/central": (FACTORS, NOISE),
    "dpvae/none": ({"head": 4, "latent": 3}, {}),
    "dpvae/central": ({"head": 4, "latent": 3}, NOISE),
    "dpvae/published": ({"mode": "paper"}, {}),
    "federated_popularity/none": ({}, {}),
    "federated_popularity/central": ({}, NOISE),
    "federated_popularity/local": ({}, {"epsilon": 2.0}),
    "federated_popularity/local_item": ({}, {"epsilon": 2.0}),
    "fedvae/none": ({}, {}),
    "fedvae/central": ({}, NOISE | MOVING),
    "fmf_ldp/none": ({}, {}),
    "fmf_ldp/local": ({}, {"epsilon": 2.0}),
    "fmf_ldp/local_bits": ({}, {"epsilon": 2.0, "votes": 3}),
    "fmf_ldp/published": ({"mode": "paper"}, {"epsilon": 2.0, "votes": 3}),
    "fofl/none": ({}, {}),
    "gram/none": ({"head": 4}, {}),
    "gram/central": ({"head": 4}, NOISE),
    "gram/local": ({"head": 4}, {"epsilon": 2.0}),
    "nn_self/none": ({"items": ("genre",)}, {}),
    "privaterec/none": (NEWS, {}),
    "privaterec/central": (NEWS, NOISE),
    "privaterec/local": (NEWS, {"epsilon": 2.0}),
    "privaterec/published": (PAPER, {}),
    "privaterec/published_gradient": (PAPER, {}),
    "privaterec_local/none": (NEWS, {}),
    "privaterec_local/local": (NEWS, {"epsilon": 2.0}),
    "privaterec_local/local_laplace": (NEWS, {"epsilon": 2.0}),
    "privaterec_local/local_sensitive": (
        NEWS,
        {"epsilon": 2.0, "sensitive": ("a",), "feature": "genre"},
    ),
    "privrec/none": ({"items": ("genre",)}, {}),
    "privrec/central": ({"items": ("genre",)}, NOISE),
    "privrec/published": ({"items": ("genre",), "mode": "paper"}, {}),
}
CHANNELS = {
    "secure_sum": ("central",),
    "two_servers": ("central",),
    "shuffle": ("local", "local_bits", "local_item", "local_laplace"),
}


def method_of(name: str) -> Method:
    own, protection = SETTINGS[name]
    method, mechanism = name.split("/")
    cls = method_class(method)
    return cls(**own, privacy=cls.mechanisms[mechanism](**protection))


def cases() -> Iterator[str]:
    for name in SETTINGS:
        yield f"{name}/direct"
        for way, mechanisms in CHANNELS.items():
            if name.split("/")[1] in mechanisms:
                yield f"{name}/{way}"


def digest(case: str) -> str:
    name, channel = case.rsplit("/", 1)
    plan = replace(PLAN, channel=channel)
    return method_of(name).agreement(plan, CATALOG).digest.hex()


def invitations() -> dict[str, Invitation]:
    made = {}
    for way, method in (
        ("two_servers", Gram(head=4, privacy=CentralGaussian(2.0))),
        ("shuffle", FederatedPopularity(privacy=LocalPrivUnit(1.0))),
    ):
        for label, changes in {
            "two operators": {},
            "a trial": {"one_machine": True},
            "an edition": {"edition": "May", "title": "Films", "contact": "a@b.c"},
        }.items():
            plan = replace(PLAN, channel=way)
            keys = bytes([1]) * 32, bytes([2]) * 32
            name = wire_name(type(method))[0]
            made[f"{way}, {label}"] = Invitation(
                str(name), method, plan, CATALOG, *keys, **changes
            )
    return made


def pins() -> dict[str, dict[str, str]]:
    return {
        "digests": {case: digest(case) for case in cases()},
        "invitations": {name: one.digest.hex() for name, one in invitations().items()},
    }


# --- Pinned ---------------------------------------------------------------------------


@pytest.mark.parametrize("case", [*cases()])
def test_a_digest_is_the_one_that_was_agreed_on(case):
    """A change here is another run for every client: raise a revision on purpose."""
    assert digest(case) == json.loads(PINNED.read_text())["digests"][case]


@pytest.mark.parametrize("name", invitations())
def test_an_invitation_has_the_bytes_that_were_agreed_on(name):
    pinned = json.loads(PINNED.read_text())["invitations"]
    assert invitations()[name].digest.hex() == pinned[name]


def test_every_method_with_every_mechanism_is_pinned():
    every = {
        f"{n}/{mech}" for n in method_names() for mech in method_class(n).mechanisms
    }
    assert every == SETTINGS.keys()
    assert len({*json.loads(PINNED.read_text())["digests"].values()}) >= 40


# --- Names ----------------------------------------------------------------------------


def test_every_class_that_can_stand_in_terms_has_a_name():
    """Methods, protections, phases, samplers, layouts, and what their fields hold."""
    for name in SETTINGS:
        for phase in getattr(method_of(name), "phases", lambda _: [])(PLAN):
            assert wire_name(type(phase))
    kinds = {Phase, Plan, Slot, PublicSlot, Layout, AdaptiveClip, ClippedSumWithBits}
    for name in CHANNELS_BY_NAME:
        assert wire_name(type(channel(name)))
    kinds |= {Everyone, FixedSize, Once, Poisson, PoissonByGroup}
    for name in method_names():
        cls = method_class(name)
        kinds |= {cls, *cls.mechanisms.values()}
    seen: set[type] = set()
    while kinds - seen:
        kind = (kinds - seen).pop()
        seen.add(kind)
        assert wire_name(kind), kind
        hints = get_type_hints(kind, include_extras=True)
        for one in fields(kind):
            kinds |= {t for t in _types(hints[one.name]) if is_dataclass(t)}


def _types(hint: Any) -> Iterator[type]:
    ours = isclass(hint) and hint.__module__.startswith("tacit.")
    if ours and not issubclass(hint, Privacy) and hint is not Release:
        yield hint
    for part in get_args(hint):
        yield from _types(part)


def test_a_name_belongs_to_one_class():
    with pytest.raises(BadValue, match=r"'gram' is the name of tacit\.methods\.gram"):
        register("gram")(_pretend("Other", "tacit.elsewhere"))


def test_a_class_has_one_name_and_may_be_made_again(monkeypatch):
    """As where a cell of a notebook is run once more."""
    monkeypatch.setattr("tacit.wire_names._classes", {**_classes})
    monkeypatch.setattr("tacit.wire_names._names", {**_names})
    first = register("shop.fancy")(_pretend("Fancy", "shop"))
    with pytest.raises(BadValue, match=r"has the name 'shop\.fancy' already"):
        register("shop.other")(first)
    again = register("shop.fancy", revision=2)(_pretend("Fancy", "shop"))
    assert (wire_name(again), wire_name(first)) == (
        ["shop.fancy", 2],
        ["shop.fancy", 1],
    )


def test_another_package_carries_its_name():
    with pytest.raises(BadValue, match=r"use 'shop\.fancy'"):
        register("fancy")(_pretend("Fancy", "shop.models"))


def _pretend(name: str, module: str) -> type:
    return type(name, (), {"__module__": module})


@pytest.mark.parametrize("known", [Gram, Phase])
def test_a_class_without_a_name_of_its_own_is_refused(known):
    """Also one that extends a class which has one: it computes something else."""
    other = type("Other", (known,), {"__module__": "tacit.other"})
    with pytest.raises(BadValue, match="no registered name"):
        wire_name(other)
    assert wire_name(type("Other", (known,), {"__module__": "shop"})) == [
        "shop.Other",
        1,
    ]
    with pytest.raises(BadValue, match="cannot be agreed on"):
        digest_of({"f": object()})


@pytest.mark.parametrize("cls", [Gram, CentralGaussian, Phase, Slot])
def test_a_class_may_move_and_be_renamed(cls):
    before, place = (
        digest("gram/central/secure_sum"),
        (cls.__module__, cls.__qualname__),
    )
    cls.__module__, cls.__qualname__ = "tacit.somewhere.else", "Wordier"
    try:
        # A catalog of its own: agreements are remembered by catalog.
        moved = method_of("gram/central").agreement(PLAN, replace(CATALOG))
    finally:
        cls.__module__, cls.__qualname__ = place
    assert moved.digest.hex() == before


@pytest.mark.parametrize("cls", [Gram, CentralGaussian, Phase, Plan, Slot, SecureSum])
def test_another_revision_is_another_run(cls, monkeypatch):
    before = digest("gram/central/secure_sum")
    name, revision = _names[cls]
    monkeypatch.setitem(_names, cls, (name, revision + 1))
    # A plan and a method remember what they were: these are made anew.
    world = replace(CATALOG)
    plan = replace(PLAN)
    after = method_of("gram/central").agreement(plan, world).digest.hex()
    assert after != before


def test_names_and_classes_belong_together():
    assert {cls: name for cls, (name, _) in _names.items()} == {
        cls: name for name, cls in _classes.items()
    }


# --- Fields ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Noted:
    value: int
    log: list = field(default_factory=list, compare=False)
    later: int = field(default=3, metadata=LATER)
    made: tuple = field(default_factory=tuple, metadata=LATER)
    note: str = field(default="", metadata=PROSE)


@pytest.fixture(scope="module", autouse=True)
def _noted() -> None:
    name = f"{Noted.__module__.partition('.')[0]}.noted"
    if Noted not in _names:
        register(name)(Noted)


@pytest.mark.parametrize(
    "same", [Noted(1, [2]), Noted(1, note="better"), Noted(1, later=3, made=())]
)
def test_what_counts_for_nobody_is_in_no_digest(same):
    assert digest_of(same) == digest_of(Noted(1))


@pytest.mark.parametrize("other", [Noted(2), Noted(1, later=4), Noted(1, made=(0,))])
def test_what_counts_is_in_the_digest(other):
    assert digest_of(other) != digest_of(Noted(1))


def test_different_values_are_described_differently():
    values = (None, 0, 0.5, "0", b"0", [0], range(1), {"0": 0}, {0: 0}, Gram, Phase)
    values += (np.zeros(1), np.zeros(1, np.float32), float("inf"), "inf", (0, 0), [[0]])
    assert len({digest_of(value) for value in values}) == len(values)


@pytest.mark.parametrize("name", ["gram/central", "fedvae/none", "privrec/central"])
def test_every_field_of_a_method_is_covered(name):
    """A field that nobody thought of is covered as well."""
    method = method_of(name)
    assert describe(method)["fields"].keys() == {f.name for f in fields(method)}


# --- Sentences and codes --------------------------------------------------------------

WORLD = mixed_world()


def _other(text: str) -> str:
    """Another sentence, each time."""
    return f"{text} {Key.from_os().generator().integers(1 << 60)}"


def _reworded(method: Method, monkeypatch) -> Method:
    """The same method, each sentence of whose phases and releases is another one."""
    cls, privacy = type(method), type(method.privacy)
    by_phase, released = getattr(cls, "phases", None), privacy.releases

    def phases(self, plan):
        return tuple(
            replace(p, what=_other(p.what), proof=_other(p.proof), leak=_other(p.leak))
            for p in by_phase(self, plan)
        )

    def releases(self, *given, **more):
        return tuple(
            replace(
                one,
                what=_other(one.what),
                seen_by=_other(one.seen_by),
                when=_other(one.when),
                cells={
                    name: replace(cell, reason=_other(cell.reason))
                    for name, cell in one.cells.items()
                },
            )
            for one in released(self, *given, **more)
        )

    if by_phase is not None:
        monkeypatch.setattr(cls, "phases", phases)
    monkeypatch.setattr(privacy, "releases", releases)
    return method


@pytest.mark.parametrize("case", [*cases()])
def test_no_sentence_is_in_a_digest_or_in_terms(case, monkeypatch):
    name, channel = case.rsplit("/", 1)
    method, plan = method_of(name), replace(PLAN, channel=channel)
    before = method.agreement(plan, CATALOG).digest, terms_of(method, plan)
    again = _reworded(method, monkeypatch)
    after = again.agreement(plan, replace(CATALOG)).digest, terms_of(again, plan)
    assert before[0] == after[0]
    assert write_terms(before[1]) != write_terms(after[1])
    assert agreed_terms(before[1]) == agreed_terms(after[1])


@pytest.mark.parametrize("channel", ["secure_sum", "two_servers", "direct", "shuffle"])
def test_a_better_sentence_refuses_no_client(channel, tmp_path, monkeypatch):
    plan = Plan(13, rounds=3, channel=channel, delta=1e-6, min_contributors=5)
    privacy = LocalPrivUnit(1.0) if channel == "shuffle" else CentralGaussian(3.0)
    method = FederatedPopularity(privacy=privacy)
    before = _joins(tmp_path, method, plan)
    assert _joins(tmp_path, _reworded(method, monkeypatch), plan) == before


def _joins(folder: Path, method: Method, plan: Plan) -> bytes:
    """The digest of what a client has agreed to; refused if it joined under another."""
    client = Client(
        folder / "ledger.sqlite",
        method,
        plan,
        catalog=WORLD.catalog,
        history=WORLD.shards.take([4]),
        run="the run",
    )
    client.close()
    return client.agreement.digest


def test_terms_come_back_with_their_sentences():
    plan = Plan(13, rounds=3, channel="secure_sum", delta=1e-6)
    terms = terms_of(FederatedPopularity(privacy=CentralGaussian(3.0)), plan)
    assert read_terms(write_terms(terms)) == terms


def _changed(release: Release) -> Iterator[Release]:
    """The release with one code, number or event changed, one after the other."""
    for name, cell in release.cells.items():
        others = [replace(cell, published_epsilon=0.25)]
        if cell.standing is Standing.NONE:
            others += [
                replace(cell, why_none=Code("one_machine")),
            ]
        else:
            others += [
                replace(cell, assumes=(*cell.assumes, Code("public_slates"))),
                replace(cell, assumes=cell.assumes[1:]) if cell.assumes else None,
                replace(cell, standing=Standing.CLAIMED),
                replace(cell, is_local=not cell.is_local),
                replace(cell, each=None if cell.each is not None else cell.event),
            ]
        for other in others:
            if other is not None and other != cell:
                yield replace(release, cells={**release.cells, name: other})
    yield replace(release, group="some")
    yield replace(release, rounds=range(1))


@pytest.mark.parametrize("channel", ["secure_sum", "two_servers", "direct", "shuffle"])
def test_another_code_is_refused(channel, tmp_path, monkeypatch):
    """An operator cannot move a joined client from one assumption to another."""
    plan = Plan(13, rounds=3, channel=channel, delta=1e-6, min_contributors=5)
    is_local = channel == "shuffle"
    privacy = LocalPrivUnit(1.0) if is_local else CentralGaussian(3.0)
    method = FederatedPopularity(privacy=privacy)
    digests = {_joins(tmp_path, method, plan)}
    [release] = method.releases(plan)
    changes = [*_changed(release)]
    assert len(changes) >= 2 * len(CELLS)
    for other in changes:
        monkeypatch.setattr(type(privacy), "releases", lambda *a, o=other, **k: (o,))
        found = method.agreement(replace(plan), Catalog.of_ids(WORLD.catalog.ids))
        digests.add(found.digest)
        if other.group == "everyone" and other.rounds is None:
            with pytest.raises(Refused, match="joined under other terms"):
                _joins(tmp_path, method, plan)
    assert len(digests) == 1 + len(changes)


if __name__ == "__main__":
    PINNED.write_text(json.dumps(pins(), indent=1) + "\n")

"""An audit says what it looked at and what not; with all of it, nothing is left."""

from __future__ import annotations

from dataclasses import replace

import pytest
from audits import broken_parts as parts
from audits.broken_parts import broken
from quick import slow, some_of

from tacit.audits.small_world import simulation_of
from tacit.errors import BadValue, Refused
from tacit.experiment.audit_subjects import Aspect, forms
from tacit.experiment.registry import method_names
from tacit.keys import Key
from tacit.mechanisms.clipping import clip_by_norm
from tacit.mechanisms.personal_budgets import ByClip
from tacit.mechanisms.randomized_response import RandomizedResponse
from tacit.runtime import ledger, rounds
from tacit.serving.query_mechanism import InterestResponse
from tacit.transport import shared_sum
from tacit.transport.channels import CHANNELS

KEY = Key.from_seed(1)


def words(aspects):
    return {(one.kind, one.name) for one in aspects}


def form(name):
    """The form of this name: its method is what stands before the comma."""
    return next(one for one in forms(name.split(",")[0]) if one.name == name)


def test_gram_under_central_noise_names_all_that_one_plan_leaves_out():
    made = form("gram, central")
    assert words(made.shows) == {
        ("channel", "secure_sum"),
        ("sampler", "everyone"),
        ("phases", "chosen as it goes"),
    }
    assert words(made.lacks) == {
        ("channel", "direct"),
        ("channel", "two_servers"),
        ("channel", "masked_sum"),
        ("groups", "over secure_sum"),
        ("groups", "over two_servers"),
        ("one machine", "both aggregators"),
        ("phases", "planned"),
        ("sampler", "poisson"),
        ("sampler", "poisson_by_group"),
        ("sampler", "fixed_size"),
        ("sampler", "once"),
    }
    assert words(form("gram").lacks) == {("serving", m) for m in ("krr", "dpa", "vdp")}


def test_what_needs_a_plan_of_its_own_is_named():
    assert ("mechanism", "published") in words(form("privrec").lacks)
    [only] = form("privrec").whole
    assert only.lacks == (Aspect("mechanism", "published"),)


@slow
@pytest.mark.parametrize("name", method_names())
def test_each_thing_that_is_lacking_has_a_subject_that_looks_at_it(name):
    for made in forms(name):
        shown = [words(one.shows) for one in made.whole[1:]]
        still = words(made.whole[0].lacks)
        for kind, what in words(made.lacks) - still:
            assert any((kind, what) in one for one in shown), (made.name, kind, what)
        assert {kind for kind, _ in still} <= {"mechanism"}


@pytest.mark.parametrize("name", some_of(["gram", *method_names()], 1))
def test_a_channel_that_is_not_named_is_one_that_no_run_begins_over(name):
    for made in forms(name):
        named = [*made.shows, *made.lacks]
        known = {what for kind, what in words(named) if kind == "channel"}
        for channel in {*CHANNELS} - known if made.lacks and made.shows else ():
            with pytest.raises((BadValue, Refused)):
                simulation_of(made.method, replace(made.plan, channel=channel))


# --- Broken code that the plan of a plain audit does not touch ------------------------


def _not_by_group(self, tree, groups=None):
    return clip_by_norm(tree, self.sensitivity)


def _louder(self, users, keys):
    loud = RandomizedResponse(2 * self.epsilon, len(self.interests))
    return loud.privatize(self.interests.nearest(users), keys)[:, None].astype("<u2")


CENTRAL = "federated_popularity, central"
BROKEN = {  # a form, what a plain audit leaves out of it, and what is broken there
    (CENTRAL, "one machine", "both aggregators"): broken(
        ledger, "of_one_operator", lambda releases, _: tuple(releases)
    ),
    (CENTRAL, "sampler", "poisson"): broken(rounds, "_cohort", parts._fixed_cohort),
    (CENTRAL, "channel", "two_servers"): broken(
        shared_sum, "_noisy", parts._helper_without_noise
    ),
    (CENTRAL, "groups", "over secure_sum"): broken(ByClip, "bound", _not_by_group),
    ("gram", "serving", "krr"): broken(InterestResponse, "release", _louder),
}
QUICK = [*BROKEN][:1]


def failed(subject):
    return [
        check.name
        for found in subject.audits(KEY, lambda: None)
        for check in found.checks
        if not check.ok
    ]


@pytest.mark.parametrize(
    "what",
    [
        pytest.param(one, id=", ".join(one), marks=() if one in QUICK else slow)
        for one in BROKEN
    ],
)
def test_what_a_plain_audit_does_not_touch_is_caught_with_all(what):
    name, *wanted = what
    [subject] = [
        one.subject()
        for one in form(name).further()
        if [one.aspect.kind, one.aspect.name] == wanted
    ]
    with BROKEN[what]():
        assert failed(subject)
    assert failed(subject) == []


@slow
@pytest.mark.parametrize("what", [one for one in BROKEN if one[0] == CENTRAL])
def test_a_plain_audit_does_not_see_it(what):
    """So it has to say that it did not look."""
    with BROKEN[what]():
        assert failed(form(CENTRAL)) == []

"""What an audit can look at: the forms of a method, and what each of them admits.

    form     a method under one of the mechanisms that it offers, with its noise
    aspect   a channel, groups, one machine, phases, a sampler or a way of being served
             that the form admits beside those of its plan

By default an audit looks at every form under one plan, and names all other aspects.
With `--all` it looks at each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from tacit.audits.audit_method import TICKS, audit, confirmed, groups_of, playable
from tacit.audits.canary_run import CANARIES, ROUNDS, Tick
from tacit.audits.checks import Audit, Check
from tacit.audits.claims import read_claims
from tacit.audits.cross_checks import check_books
from tacit.audits.one_machine import check_one_machine
from tacit.audits.sampled_cohorts import check_cohorts
from tacit.audits.served_queries import (
    check_entries,
    check_one_interaction,
    check_queries,
)
from tacit.audits.small_world import simulation_of, small_data
from tacit.errors import BadValue, Refused
from tacit.experiment.assemble import Assembled
from tacit.experiment.registry import method_class
from tacit.experiment.saved_run import load
from tacit.keys import Key
from tacit.method import CentralGaussian, Method, Queryable, SumMethod
from tacit.plans import Plan
from tacit.release import EVERYONE
from tacit.sampling import FixedSize, Once, Poisson, PoissonByGroup, Sampler
from tacit.serving.query import Mode
from tacit.serving.recommender import Recommender
from tacit.serving.settings import ServingSettings, served_model
from tacit.serving.trained_basis import basis_size
from tacit.transport.channels import CHANNELS

TARGET, DELTA = 4.0, 1e-6  # the guarantee that a method's noise is calibrated to
SCALE = {"strict": 0.5, "open": 1.0}  # bounds of groups, over the largest
GROUPS = {"strict": CANARIES // 2, "open": CANARIES - CANARIES // 2}
# Begin the names of what is not looked at: a paper's own mechanisms, and one that needs
# labels of a catalog and has no guarantee for a user.
_UNSEEN = ("published", "local_sensitive")
_ITEMS, _INTERESTS = 60, 3  # of the small model that queries are made for
_SAMPLERS: Mapping[str, Sampler] = {
    "poisson": Poisson(0.1),
    "poisson_by_group": PoissonByGroup({"strict": 0.05, "open": 0.1}),
    "fixed_size": FixedSize(CANARIES // 10),
    "once": Once(),
}


@dataclass(frozen=True)
class Aspect:
    """A word for one thing that an audit looked at, or did not."""

    kind: str  # channel, groups, one machine, phases, sampler, serving or mechanism
    name: str

    def to_json(self) -> dict[str, str]:
        """Kind and name as plain data."""
        return {"kind": self.kind, "name": self.name}


ONE_MACHINE = Aspect("one machine", "both aggregators")
PLANNED = Aspect("phases", "planned")
Checks = Callable[[Key, str], Iterable[Check]]  # of a key, for a member of a group


@dataclass(frozen=True)
class Subject:
    """A method with its noise, and the plan that its claims belong to."""

    name: str
    method: Method
    plan: Plan
    left_out: tuple[str, ...] = ()  # what else the run releases
    checks: Checks | None = None  # None: all that is claimed of the training
    shows: tuple[Aspect, ...] = ()  # what is looked at
    further: Callable[[], Iterable[Further]] = tuple  # what else may be looked at
    unknown: tuple[Aspect, ...] = ()  # what no audit of this subject can look at

    @property
    def groups(self) -> list[str]:
        """The public groups whose claims differ."""
        return groups_of(self.method, self.plan)

    @property
    def ticks(self) -> int:
        """The steps of a progress bar that the audits take at the most."""
        return TICKS * len(self.groups)

    @property
    def lacks(self) -> tuple[Aspect, ...]:
        """What the audits of this subject do not look at, though it may be had."""
        return (*(one.aspect for one in self.further()), *self.unknown)

    @property
    def whole(self) -> list[Subject]:
        """The subject, and another one for each thing that it admits beside."""
        found = [(one.aspect, one.subject()) for one in self.further()]
        lacking = tuple(aspect for aspect, subject in found if subject is None)
        unknown = (*lacking, *self.unknown)
        subjects = [subject for _, subject in found if subject is not None]
        return [replace(self, further=tuple, unknown=unknown), *subjects]

    def audits(self, key: Key, tick: Tick) -> Iterator[Audit]:
        """The audits of this subject, one per group."""
        for group in self.groups:
            name = self.name if group == EVERYONE else f"{self.name}, {group}"
            if self.checks is not None:
                yield Audit(name, (*self.checks(key.at(group), group),))
                continue
            found = audit(
                self.method,
                self.plan,
                key=key.at(group),
                group=group,
                subject=name,
                tick=tick,
            )
            yield replace(found, not_audited=(*found.not_audited, *self.left_out))


@dataclass(frozen=True)
class Further:
    """An aspect that a subject admits, and the subject that looks at it."""

    aspect: Aspect
    subject: Callable[[], Subject | None]  # None: no noise is enough for its plan


# --- Forms of a method ----------------------------------------------------------------


def forms(name: str) -> list[Subject]:
    """A method under each mechanism that it offers, calibrated; and a moving clip.

    The papers' own mechanisms have a mode and a plan of their own: audit a run of them.
    """
    cls, plan = method_class(name), _plan()
    unseen = [n for n in cls.mechanisms if n.startswith(_UNSEEN)]
    kinds = {n: k() for n, k in cls.mechanisms.items() if n not in unseen}
    if len(kinds) == 1:
        made = [_form(name, cls(), plan)]
    else:
        is_clipped = issubclass(cls, SumMethod) and any(
            phase.is_clipped for phase in cls().phases(plan)
        )
        if is_clipped and "central" in kinds:
            kinds |= {"central, moving clip": CentralGaussian(clip_quantile=0.5)}
        made = [
            _form(f"{name}, {label}", cls(privacy=kind), plan)  # type: ignore[call-arg]
            for label, kind in kinds.items()
        ]
    unknown = tuple(Aspect("mechanism", one) for one in unseen)
    whole = Subject(
        name,
        cls(),
        plan,
        checks=_nothing,
        further=lambda: _served(name, cls(), plan),
        unknown=unknown,
    )
    return [*made, whole] if unknown or isinstance(cls(), Queryable) else made


def _nothing(_: Key, __: str) -> Iterable[Check]:
    """No check: the subject is there for what it lacks."""
    return ()


def _form(name: str, bare: Method, plan: Plan) -> Subject:
    method = bare.calibrated(plan)
    plan = playable(method, plan)
    form = Subject(name, method, plan, shows=_shown(method, plan))
    return replace(form, further=lambda: _further(bare, form))


def _shown(method: Method, plan: Plan) -> tuple[Aspect, ...]:
    """What an audit of this method and plan looks at, in words."""
    words = [Aspect("channel", plan.channel), Aspect("sampler", _sampler(plan))]
    if len(plan.groups) > 1:
        words.append(Aspect("groups", f"over {plan.channel}"))
    if isinstance(method, SumMethod):
        chosen = "chosen as it goes" if method.chooses_phases else PLANNED.name
        words.append(Aspect("phases", chosen))
    return tuple(words)


def _sampler(plan: Plan) -> str:
    kinds = {type(sampler): name for name, sampler in _SAMPLERS.items()}
    return kinds.get(type(plan.sampler), "everyone")


# --- What a form admits beside its plan -----------------------------------------------


def _further(bare: Method, form: Subject) -> Iterator[Further]:
    """All that a form admits beside its plan, where it promises anything."""
    if _promises(form):
        yield from _other_channels(bare, form)
        yield from _with_groups(bare, form)
        yield from _on_one_machine(bare, form)
        yield from _with_planned_phases(bare, form)
        yield from _sampled(bare, form)


def _promises(form: Subject) -> bool:
    method = form.method.for_catalog(small_data(_ITEMS).catalog)
    found = read_claims(method, form.plan, group=form.groups[0])
    return any((found.mu, found.report_epsilon, found.report_mu))


def _admits(method: Method, plan: Plan) -> bool:
    """Whether a run of this method and plan would begin; its noise is some plan's."""
    try:
        simulation_of(method, plan)
        method.releases(plan)
    except (BadValue, Refused):
        return False
    return True


def _calibrated(name: str, bare: Method, plan: Plan) -> Subject | None:
    """The method with the noise of this plan; None if it has none that is enough."""
    try:
        method = bare.calibrated(plan)
    except (BadValue, Refused):
        return None
    return Subject(name, method, plan, shows=_shown(method, plan))


def _other_channels(bare: Method, form: Subject) -> Iterator[Further]:
    for channel in CHANNELS:
        plan = replace(form.plan, channel=channel)
        if plan.is_masked:  # it has an account for a least number of survivors only
            plan = replace(plan, min_contributors=plan.population)
        if channel != form.plan.channel and _admits(form.method, plan):
            name = f"{form.name}, over {channel}"
            yield Further(
                Aspect("channel", channel), partial(_calibrated, name, bare, plan)
            )


def _with_groups(bare: Method, form: Subject) -> Iterator[Further]:
    for channel in dict.fromkeys((form.plan.channel, "two_servers")):
        plan = replace(form.plan, channel=channel, groups=GROUPS)
        scaled = _scaled(form.method)
        if scaled is not None and _admits(scaled, plan):
            words = f"over {channel}"
            name = f"{form.name}, groups {words}"
            made = partial(_calibrated, name, _scaled(bare) or bare, plan)
            yield Further(Aspect("groups", words), made)


def _scaled(method: Any) -> Any:
    """The method with a bound for each group; None if its protection has no scale."""
    privacy = getattr(method, "privacy", None)
    if privacy is None or "scale" not in {field.name for field in fields(privacy)}:
        return None
    return replace(method, privacy=replace(privacy, scale=SCALE))


def _on_one_machine(bare: Method, form: Subject) -> Iterator[Further]:
    plan = replace(form.plan, channel="two_servers")
    if _admits(form.method, plan):
        name = f"{form.name}, one machine"

        def made() -> Subject | None:
            found = _calibrated(name, bare, plan)
            return None if found is None else _of_one_machine(found)

        yield Further(ONE_MACHINE, made)


def _of_one_machine(subject: Subject) -> Subject:
    def checks(_: Key, __: str) -> Iterator[Check]:
        return check_one_machine(subject.method, subject.plan)

    return replace(subject, checks=checks, shows=(ONE_MACHINE,))


def _with_planned_phases(bare: Method, form: Subject) -> Iterator[Further]:
    if not isinstance(bare, SumMethod) or not bare.chooses_phases:
        return
    try:
        planned = bare.with_planned_phases()
    except BadValue:  # it has no others
        return
    name = f"{form.name}, planned phases"
    yield Further(PLANNED, partial(_calibrated, name, planned, form.plan))


def _sampled(bare: Method, form: Subject) -> Iterator[Further]:
    for label, sampler in _SAMPLERS.items():
        by_group = isinstance(sampler, PoissonByGroup)
        groups = GROUPS if by_group else form.plan.groups
        plan = replace(form.plan, sampler=sampler, groups=groups)
        if _admits(form.method, plan) or _admits(_planned(bare), plan):
            aspect, name = Aspect("sampler", label), f"{form.name}, {label}"
            yield Further(aspect, partial(_of_cohorts, aspect, name, bare, plan))


def _planned(method: Any) -> Any:
    """The method with noise that is given, under which phases are planned."""
    privacy = getattr(method, "privacy", None)
    if not isinstance(privacy, CentralGaussian):
        return method
    return replace(method, privacy=replace(privacy, noise_multiplier=1.0))


def _of_cohorts(aspect: Aspect, name: str, bare: Method, plan: Plan) -> Subject | None:
    """Who is asked, and the account of that; the noise is that of the form."""
    found = _calibrated(name, bare, plan)
    if found is None:
        return None
    method = found.method.for_catalog(small_data(_ITEMS).catalog)

    def checks(key: Key, group: str) -> Iterator[Check]:
        yield from check_cohorts(method, plan, group=group, key=key)
        yield from check_books(method, plan, group=group)

    return replace(found, checks=checks, shows=(aspect,))


# --- Being served ---------------------------------------------------------------------


def _served(name: str, bare: Method, plan: Plan) -> Iterator[Further]:
    """A model of the method, ranked for by a server in every mode."""
    if not isinstance(bare, Queryable):
        return
    for mode in Mode:
        if mode is Mode.ON_DEVICE:  # nothing is sent
            continue
        has_own = mode is Mode.VDP or (mode is Mode.DPA and basis_size(bare))
        count = None if has_own else _INTERESTS
        settings = ServingSettings(mode, 1.0, interests=count)
        model = partial(_small_model, bare)
        made = partial(_serving, name, bare, plan, settings, model)
        yield Further(Aspect("serving", str(mode)), made)


def _serving(
    name: str,
    method: Method,
    plan: Plan,
    settings: ServingSettings,
    model: Callable[[], Recommender],
) -> Subject:
    looks = [check_queries, *([check_one_interaction] if settings.padding else [])]

    def checks(key: Key, _: str) -> Iterator[Check]:
        served = served_model(model(), settings)
        yield from confirmed(
            lambda key: [one(served.mechanism, key=key) for one in looks], key
        )
        yield check_entries(served)

    label = f"{name}, served by {settings.mode}"
    words = (Aspect("serving", str(settings.mode)),)
    return Subject(label, method, plan, checks=checks, shows=words)


def _small_model(method: Method) -> Recommender:
    """A model of the method on the audit's own world, whatever it has learnt."""
    data = small_data(_ITEMS)
    plan = playable(method, Plan(len(data.shards), ROUNDS))
    run = simulation_of(method.calibrated(plan), plan, n_items=_ITEMS)
    state = run.start()
    for after, _ in run.run(state):
        state = after
    return Recommender(run.method, run.method.broadcast(state.server), data.catalog)


# --- A run ----------------------------------------------------------------------------


def of_run(run: Assembled, path: str) -> list[Subject]:
    """The method of a run under its plan; other plans are no concern of it."""
    name, plan = run.experiment.method_name, run.plan
    left_out: tuple[str, ...] = ()
    if run.measured is not None:
        # Two numbers per run are too few to see the distribution of their noise.
        *_, metric = run.method.releases(plan)
        plan, left_out = plan.over(run.experiment.run.rounds), (metric.what,)
    return [
        Subject(
            name,
            run.learner,
            plan,
            left_out,
            shows=_shown(run.learner, plan),
            further=lambda: _of_the_run(run, name, plan, path),
        )
    ]


def _of_the_run(run: Assembled, name: str, plan: Plan, path: str) -> Iterator[Further]:
    """What a run's own plan has beside training: one machine, and being served."""
    if plan.noise_shares > 1:
        both = Subject(f"{name}, one machine", run.learner, plan)
        yield Further(ONE_MACHINE, partial(_of_one_machine, both))
    settings = run.experiment.serve.queries
    if settings is not None:
        made = partial(_serving, name, run.learner, plan, settings, partial(load, path))
        yield Further(Aspect("serving", str(settings.mode)), made)


def _plan() -> Plan:
    return Plan(
        CANARIES, ROUNDS, channel="secure_sum", delta=DELTA, target_epsilon=TARGET
    )

"""`tacit recommend`: one user's list, ranked on the device or from a private query."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tacit.cli import console
from tacit.cli.options import (
    UNSET,
    Axes,
    Delta,
    Interests,
    Json,
    ListFor,
    Noise,
    PaddingShare,
    RunPath,
    Theta,
)
from tacit.errors import BadValue
from tacit.text import shown

if TYPE_CHECKING:
    from tacit.serving.query_mechanism import QueryMechanism
    from tacit.serving.recommender import Holding, Recommendation, Recommender
    from tacit.serving.sensitive import Marks
    from tacit.serving.settings import ServingSettings
    from tacit.statement import Statement

_NOTHING = "nothing is sent: epsilon 0"


def recommend(
    run: RunPath,
    user: Annotated[
        str | None,
        typer.Option(
            help="The id of a user of the simulated data set.", show_default=False
        ),
    ] = None,
    history: Annotated[
        str | None,
        typer.Option(
            help="The item ids of somebody else's history, separated by commas.",
            show_default=False,
        ),
    ] = None,
    k: Annotated[
        int, typer.Option("-k", min=1, help="The number of items to recommend.")
    ] = 10,
    list_for: ListFor = None,
    serve: Annotated[
        Literal["on_device", "krr", "dpa", "vdp"],
        typer.Option(
            help="Where the ranking runs. on_device: nothing is sent. The others let a "
            "server rank, from the strongest interest by randomised response, from "
            "noisy attention, or from the noisy user vector."
        ),
    ] = "on_device",
    epsilon: Annotated[
        float | None,
        typer.Option(help="What one query may cost.", show_default=False),
    ] = None,
    delta: Delta = 0.0,
    interests: Interests = None,
    padding: PaddingShare = 0.0,
    axes: Axes = None,
    noise: Noise = "sound",
    theta: Theta = None,
    sensitive: Annotated[
        str | None,
        typer.Option(
            metavar="FEATURE=LABEL,…",
            help="Categories of items that the user marks as sensitive.",
            show_default=False,
        ),
    ] = None,
    protection: Annotated[
        Literal["all", "pad_sensitive", "leave_out"],
        typer.Option(
            help="What follows: everything is protected alike, padding may replace "
            "sensitive items only, or these do not enter the query at all."
        ),
    ] = "all",
    ledger: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Enter the query in this ledger; without it, the query is a trial.",
            show_default=False,
        ),
    ] = None,
    why: Annotated[
        bool,
        typer.Option(
            "--why", help="Also say which items of the history led to each one."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Recommend items to a user, by id or by history.

    It needs the model file and the history alone. By default nothing is sent anywhere;
    with --serve, client and server both run in this process, and the query that would
    leave the client is shown with what it costs.

    Example: tacit recommend run --history 1,260,1196 -k 5 --serve krr --epsilon 2
    """
    from tacit.experiment.saved_run import SavedRun, holding_of, load

    if (user is None) == (history is None):
        raise BadValue("give either --user ID or --history ID,ID,…")
    how: dict[str, Any] = {
        "delta": delta,
        "interests": interests,
        "padding": padding,
        "axes": axes,
        "noise": noise,
        "theta": theta,
    }
    settings = _settings(serve, epsilon, how, has_ledger=ledger is not None)
    if settings is not None and protection == "pad_sensitive":
        settings = replace(settings, pads="sensitive")
    recommender = load(run, list_for=list_for)
    own: Holding | list[str]
    if user is not None:
        # Only here are the data read: the model file knows no user.
        experiment = SavedRun.at(run).experiment.ranking_for(list_for)
        own = holding_of(recommender, experiment, user)
        held = own.ids(recommender.catalog)
    else:
        own = held = [i.strip() for i in (history or "").split(",") if i.strip()]
    if settings is None:
        answer = _Answer(recommender.recommend(own, k), {"says": _NOTHING}, _NOTHING)
    else:
        marks = _marks(recommender, sensitive, protection)
        answer = _served(recommender, own, k, settings, ledger, marks)
    because = {i.id: recommender.why(own, i.id) for i in answer.items if why}
    if json:
        items = [
            {**asdict(line), **({"because": because[line.id]} if why else {})}
            for line in answer.items
        ]
        told = {"user": user, "serve": serve, "items": items}
        console.print_json({**told, "privacy": answer.privacy})
        return
    from tacit.reporting.terminal import wrapped

    who = "this history" if user is None else f"user {shown(user)}"
    out = console.out()
    out.print(f"For {who} ({len(held)} items in the history):", markup=False)
    for place, line in enumerate(answer.items, start=1):
        title, name = shown(line.title), shown(line.id)
        out.print(f"{place:3}. {title}  ({name}, {line.score:.4f})")
        if why:
            reasons = "; ".join(shown(r.title) for r in because[line.id])
            out.print(f"     because of {reasons or 'what many have'}", markup=False)
    first, *others = answer.said.split("\n")
    width = console.width()
    console.tell(wrapped(f"{serve}: {first}", width, later="  "))
    for said in others:
        console.tell(wrapped(said, width, first="  ", later="    "))


@dataclass(frozen=True)
class _Answer:
    """A list, and what it cost, for a machine and for a reader."""

    items: list[Recommendation]
    privacy: dict[str, Any]
    said: str


def _settings(
    serve: str, epsilon: float | None, how: dict[str, Any], *, has_ledger: bool
) -> ServingSettings | None:
    """How a server ranks; None on the device, where nothing has a price."""
    if serve == "on_device":
        given = {"epsilon": epsilon, **how, "ledger": has_ledger}
        unused = [f"--{n}" for n, value in given.items() if value not in UNSET]
        if unused:
            raise BadValue(
                f"{', '.join(unused)}: on_device sends nothing, so that nothing is to "
                "be protected or entered; leave it out, or choose another --serve"
            )
        return None
    from tacit.serving.query import Mode
    from tacit.serving.settings import ServingSettings

    if epsilon is None:
        raise BadValue(f"--serve {serve} needs --epsilon: what one query may cost")
    return ServingSettings(Mode(serve), epsilon, **how)


def _served(
    recommender: Recommender,
    own: Holding | list[str],
    k: int,
    settings: ServingSettings,
    ledger: Path | None,
    marks: Marks | None,
) -> _Answer:
    """The list by a server in this process, from the query that would leave."""
    from tacit.serving.query_server import QueryServer
    from tacit.serving.serve import serve, trial
    from tacit.serving.serving_account import outlook, run_name
    from tacit.serving.serving_client import ServingClient
    from tacit.serving.settings import served_model

    model = served_model(recommender, settings)
    answer = QueryServer(model).answer
    lines = outlook(model.mechanism)
    facts: dict[str, Any] = {"query_bytes": model.query_bytes, "statements": lines}
    said = [f"a query of {model.query_bytes} bytes", *_costs(lines)]
    if marks is not None:
        said += _covered(marks, model.mechanism)
    if ledger is None:
        items = trial(recommender, own, k, model=model, ask=answer, marks=marks)
        said.append("a trial: it is in no ledger, and nothing left this process")
        return _Answer(items, {**facts, "ledger": None}, "\n".join(said))
    with ServingClient(ledger, model, run=run_name(model.mechanism)) as client:
        found = serve(recommender, own, k, client=client, ask=answer, marks=marks)
    if found.ranked_by == "client":
        said = [f"no query was made, the client ranked: {found.why}"]
    else:
        said.append(f"entered in {shown(str(ledger))}")
    facts |= {"ledger": ledger, "ranked_by": found.ranked_by, "why": found.why}
    return _Answer(found.items, facts, "\n".join(said))


def _marks(
    recommender: Recommender, sensitive: str | None, protection: str
) -> Marks | None:
    """The categories that the user marked; None where nothing was."""
    from tacit.serving.sensitive import Marks, Protection

    if sensitive is None:
        if protection != "all":
            raise BadValue(f"--protection {protection} needs --sensitive FEATURE=LABEL")
        return None
    feature, _, labels = sensitive.partition("=")
    named = [label.strip() for label in labels.split(",") if label.strip()]
    if not named:
        raise BadValue(f"--sensitive {sensitive}: write FEATURE=LABEL,LABEL")
    how = Protection[protection.upper()]
    return Marks.of(recommender.catalog, feature.strip(), named, protection=how)


def _covered(marks: Marks, mechanism: QueryMechanism) -> list[str]:
    """Which histories one query covers, and which no better than any two."""
    from tacit.accounting.events import PureDpEvent
    from tacit.release import Unit

    event = mechanism.event(Unit.USER)
    if not isinstance(event, PureDpEvent):
        return ["what marks add is stated for a delta of 0; see docs/serving.md"]
    return [
        *(
            f"one query covers {one.neighbours}: epsilon {one.epsilon:.4g} "
            f"({one.reason})"
            for one in marks.covered(event.epsilon, mechanism.padding)
        ),
        f"covered no better than any two histories: {marks.not_covered()}",
    ]


def _costs(lines: tuple[Statement, ...]) -> list[str]:
    """One line per horizon, for the server that ranks; another where items differ."""
    from tacit.release import Unit, View

    seen = [line for line in lines if line.view is View.SERVER]
    by_user = [line for line in seen if line.unit is Unit.USER]
    by_item = [line for line in seen if line.unit is Unit.ITEM]
    return [
        _cost(line)
        for user, item in zip(by_user, by_item, strict=True)
        for line in ([user] if item.epsilon == user.epsilon else [user, item])
    ]


def _cost(line: Statement) -> str:
    from tacit.reporting.plain_words import (
        about,
        meaning,
        observers,
        paper_claim,
        rounded_up,
    )

    if line.epsilon is None:
        return f"{line.what}: no promise ({line.reason})"
    assumed = "" if line.assumes == "nothing" else f"; assumes: {line.assumes}"
    claim = paper_claim(line)
    assumed += "" if claim is None else f"; {claim}, for one interaction"
    return (
        f"{line.what}: epsilon {rounded_up(line.epsilon)}, {line.standing} against "
        f"{observers([line.view], line)} ({about(line)}; delta {line.delta:g}; "
        f"{line.accountant}){assumed}; {meaning(line)}"
    )

"""`tacit client`: one user's client of a run over two servers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import caps, console
from tacit.cli.options import Json, ListFor
from tacit.codes import Code
from tacit.errors import MissingData
from tacit.text import shown

if TYPE_CHECKING:
    from tacit.service.federation.client import FederationClient, Outcome, Shown
    from tacit.service.federation.history import History
    from tacit.service.federation.leaving import Left

app = typer.Typer(
    help="Take part in a run over two servers, with a history that stays here.",
    no_args_is_help=True,
)
_MOST_SHOWN = 20  # releases on a terminal; --json has them all
_EVERY = 5.0  # seconds between two looks, with --wait

Wait = Annotated[bool, typer.Option("--wait", help="Go on until the run is over.")]
Folder = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="The folder of the client.",
        show_default="the system's own for such files",
    ),
]


@app.command()
def join(
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL", help="The address of the coordinator.", show_default=False
        ),
    ],
    history: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="The items that you have, in their order: one id per line, or a .csv "
            "or .tsv with a column of ids.",
            show_default=False,
        ),
    ],
    impressions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What a server has shown you, if the run learns from it: a .csv or "
            ".tsv with one line per shown item and columns impression, item and "
            "clicked (1 or 0).",
            show_default=False,
        ),
    ] = None,
    folder: Folder = None,
    item: Annotated[
        str, typer.Option(help="The column of item ids in a .csv or .tsv.")
    ] = "item",
    ledger: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The ledger to enter everything in, such as one that you have.",
            show_default="ledger.db in the folder",
        ),
    ] = None,
    ticket: Annotated[
        str | None,
        typer.Option(
            metavar="HEX",
            help="The ticket that the operator gave you: 32 digits.",
            show_default=False,
        ),
    ] = None,
    expect: Annotated[
        str | None,
        typer.Option(
            metavar="SHA256",
            help="Refuse any other invitation; take the digest from a place that the "
            "coordinator does not control.",
            show_default=False,
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="Your public group, if the plan has several.", show_default=False
        ),
    ] = None,
    least_uploads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Answer no round that is used with fewer than N reports, yours among "
            "them: a floor of your own above the plan's.",
            show_default="the plan's",
        ),
    ] = None,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait", help="Then answer every round, as `tacit client once --wait`."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Agree to a run and copy your history into a folder of yours; nothing is sent.

    With --wait every round is answered, until the run is over. A run that is over
    already is told first: its model can be fetched, and nothing is contributed.

    Items that the catalog does not have are left out and counted. If none is left you
    are warned here, and nobody else can tell.

    A run may learn from impressions: lists that its server has chosen and shown. Your
    clicks in them stay private, the lists do not. Give none that your own device has
    chosen: they tell of your history.

    Example: tacit client join https://films.example --history watched.txt
    """
    from tacit.service.federation.client import FederationClient
    from tacit.service.federation.exchange import read_ticket
    from tacit.service.federation.history import history_of
    from tacit.service.federation.history_file import read_ids, read_slates

    place = folder or _default_folder()
    if ledger is not None and not ledger.exists():
        raise MissingData(
            f"{ledger}: there is no such ledger, and none was made; leave --ledger out "
            "to begin one in the folder, or make it with: tacit ledger cap FILE --new"
        )
    # Read before anybody is asked: what a coordinator sees cannot depend on the file.
    ids = read_ids(history, column=item)
    slates = None if impressions is None else read_slates(impressions, column=item)
    found = FederationClient.join(
        place,
        url,
        lambda one: history_of(ids, one.catalog, slates),
        ledger=ledger,
        ticket=None if ticket is None else read_ticket(ticket),
        group=group,
        expected=expect,
        least_uploads=least_uploads,
    )
    with FederationClient(place) as client:
        told, ended = client.show(), client.ended()
        if not found.items:
            console.err().print(f"WARNING: {found.said_of_unknown()}", style="bold red")
        if not json:
            _print_joined(place, told, found, ended=ended, waits=wait)
        last = _answer(client, wait=True) if wait and not ended else None
    if json:
        joined = {"folder": place, "left_out": found.unknown, "ended": ended or None}
        joined |= {} if last is None else {"outcome": last}
        console.print_json(_document(told) | joined)
    elif last is not None:
        console.out().print(f"{last.kind}: {last.message}")
    _exit_if_refused(last)


def _print_joined(
    place: Path, told: Shown, history: History, *, ended: str, waits: bool
) -> None:
    if ended:
        console.out().print(shown(f"{ended}: nothing of yours is contributed"))
    console.out().print(f"joined: {shown(str(place))} has {told.n_items:,} items")
    if history.slates is not None:
        console.out().print(
            f"{len(history.slates):,} slates that you were shown: your clicks in them "
            "are protected, what was shown is not"
        )
    if history.unknown and history.items:
        console.out().print(shown(history.said_of_unknown()))
    _print_agreed(told)
    if not ended and not waits:
        console.out().print("next: tacit client once --wait")


@app.command()
def once(
    folder: Folder = None,
    now: Annotated[
        bool,
        typer.Option(
            "--now",
            help="Send at once, not at a random moment of the window: whoever sees "
            "when a report comes then knows when this ran.",
        ),
    ] = False,
    wait: Wait = False,
    spread: Annotated[
        float | None,
        typer.Option(
            help="Send within so many seconds.", show_default="any time in the window"
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Answer the round that is open, if there is one, or send what is due.

    It is safe to run it at any time, again and again, from a timer for instance: a
    round is answered once, and a report is sent again byte for byte.
    """
    from tacit.service.federation.client import FederationClient

    with FederationClient(folder or _default_folder(), spread=spread) as client:
        last = _answer(client, now=now, wait=wait)
    if json:
        console.print_json(last)
    else:
        console.out().print(f"{last.kind}: {last.message}")
    _exit_if_refused(last)


def _answer(client: FederationClient, *, now: bool = False, wait: bool) -> Outcome:
    """What came of looking last, once or until the run is over."""
    if not wait:
        return client.once(now=now)
    last: Outcome | None = None
    for outcome in client.outcomes(now=now, every=_EVERY):
        if last is None or outcome.message != last.message:
            console.note(outcome.message)
        last = outcome
    assert last is not None  # a run that is over says so
    return last


def _exit_if_refused(last: Outcome | None) -> None:
    from tacit.service.federation.client import Kind

    if last is not None and last.kind in (Kind.REFUSED, Kind.DROPPED):
        raise typer.Exit(1)


@app.command()
def show(folder: Folder = None, json: Json = False) -> None:
    """Show what was agreed, who can learn what from it, and what has been sent."""
    from tacit.service.federation.client import FederationClient

    with FederationClient(folder or _default_folder()) as client:
        told = client.show()
    if json:
        console.print_json(_document(told))
        return
    _print_agreed(told)
    _print_spent(told)


@app.command()
def cap(
    folder: Folder = None,
    epsilon: caps.Epsilon = None,
    delta: caps.Delta = 1e-6,
    unit: caps.ProtectedUnit = "user",
    view: caps.Looker = "server",
    remove: caps.Remove = False,
    json: Json = False,
) -> None:
    """Show or set your own limit: how much may ever be learnt about you.

    Before a round would pass it, the client refuses, and sends nothing. It counts all
    that is in your ledger, also what was sent before it was set. It says how many
    rounds of this run it still allows. Without options nothing is changed.

    Example: tacit client cap --epsilon 2
    """
    from tacit.service.federation.client import FederationClient

    with FederationClient(folder or _default_folder()) as client:
        caps.change(
            *(client.ledger, epsilon), delta=delta, unit=unit, view=view, remove=remove
        )
        limits = client.limits()
    if json:
        console.print_json(limits)
        return
    caps.show(limits.caps)
    rounds = "no round" if not limits.rounds_left else f"{limits.rounds_left:,} more"
    console.out().print(
        f"this run: {rounds} of at most {limits.rounds:,} may be answered"
    )
    if limits.next_refusal is not None:
        console.out().print(f"one more is refused: {limits.next_refusal}")


@app.command()
def leave(
    folder: Folder = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask for confirmation.")
    ] = False,
    json: Json = False,
) -> None:
    """Erase history, keys and unsent reports; say what past releases still hold.

    The ledger stays, so that nothing is answered twice; erase it as well with
    `tacit ledger forget FILE`. What cannot be read is erased unread, and said.
    """
    from tacit.service.federation.client_folder import ClientFolder
    from tacit.service.federation.leaving import leave as leave_folder

    place = folder or _default_folder()
    ClientFolder(place).refuse_without_files()
    if not yes:
        # On stderr: with --json, stdout has the document and nothing else.
        question = f"Erase the history in {place} and never answer again?"
        if not typer.confirm(question, err=True):
            console.note("nothing was changed")
            raise typer.Exit(1)
    left = leave_folder(place)
    if json:
        console.print_json(left)
    else:
        _print_left(left)


@app.command()
def recommend(
    folder: Folder = None,
    k: Annotated[
        int, typer.Option("-k", min=1, help="The number of items to recommend.")
    ] = 10,
    list_for: ListFor = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the model is published.")
    ] = False,
    json: Json = False,
) -> None:
    """Rank with the published model on this device; your history is not sent.

    Fetching the model is all that the coordinator sees, and all fetch the same.
    """
    from tacit.service.federation.client import FederationClient

    with FederationClient(folder or _default_folder()) as client:
        if wait:
            client.wait_for_model()
        items = client.recommend(k, list_for=list_for or "any")
    if json:
        console.print_json({"items": [*items], "sent": "nothing"})
        return
    for place, one in enumerate(items, start=1):
        said = shown(one.title) if one.title == one.id else _titled(one.id, one.title)
        console.out().print(f"{place:>3}  {said}")
    console.out().print("ranked on this device; the history was not sent")


def _titled(id_: str, title: str) -> str:
    return f"{shown(title)} ({shown(id_)})"


def _default_folder() -> Path:
    from tacit.files import state_folder

    return state_folder() / "client"


# --- What is shown --------------------------------------------------------------------


def _document(told: Shown) -> dict[str, Any]:
    from tacit.reporting.plain_words import in_words

    invitation, membership = told.invitation, told.membership
    plan = invitation.plan
    return {
        "url": membership.url,
        "title": invitation.title,
        "contact": invitation.contact,
        "run": invitation.run.hex(),
        "invitation": membership.invitation,
        "method": invitation.name,
        "items": told.n_items,
        "population": plan.population,
        "rounds": plan.rounds,
        "least_reports": invitation.least_reports,
        "least_uploads": membership.least_uploads,
        "one_operator": str(Code(why)) if (why := invitation.one_operator) else None,
        "keys": {
            "leader": membership.keys.leader.hex(),
            "helper": membership.keys.helper.hex(),
            "rotations": membership.keys.number,
        },
        "ledger": membership.ledger,
        "agreed": told.agreed,
        "words": in_words(told.agreed),
        "rounds_seen": {
            number: one.id.hex() for number, one in sorted(membership.rounds.items())
        },
        "releases": [
            {
                "at": one.at,
                "round": one.round,
                "what": one.what,
                "seen_by": one.release.seen_by,
                "sent": one.sent,
            }
            for one in told.entries
        ],
        "spent": told.spent,
        "caps": told.caps,
        "refusals": [
            {"run": run, "reason": reason, "times": times, "last": last}
            for run, reason, times, last in told.refusals
        ],
        "waiting": told.waiting,
        "doubt": told.doubt,
    }


def _print_agreed(told: Shown) -> None:
    from tacit.reporting.guarantees import in_short
    from tacit.reporting.terminal import wrapped

    invitation, membership = told.invitation, told.membership
    plan, keys = invitation.plan, membership.keys
    named = f"'{invitation.title}', " if invitation.title else ""
    sentences = [
        f"agreed: {named}{invitation.name} with {plan.population:,} users, at most "
        f"{plan.rounds} rounds; nothing is published of fewer than "
        f"{invitation.least_reports:,} reports",
        f"coordinator: {membership.url}",
        f"invitation: {membership.invitation}",
        f"leader signs with: {keys.leader.hex()}",
        f"helper signs with: {keys.helper.hex()}",
        f"ledger: {membership.ledger}",
    ]
    if (least := membership.least_uploads) is not None:
        sentences.insert(1, _said_of_floor(least, invitation.least_reports))
    if why := invitation.one_operator:
        sentences.insert(1, f"a trial: {Code(why)}")
    if invitation.contact:
        sentences.insert(1, f"contact: {invitation.contact}")
    for one in sentences:
        console.tell(wrapped(shown(one, longest=None), console.width(), later="  "))
    console.out().print("\nWho can learn what, if I answer every round", style="bold")
    console.tell([*in_short(told.agreed, console.width()), ""])


def _said_of_floor(least: int, agreed: int) -> str:
    found = f"your own floor: no round of fewer than {least:,} reports is answered"
    if least > agreed:
        found += f"; the plan allows rounds of {agreed:,}, and those are refused"
    return found


def _print_spent(told: Shown) -> None:
    from tacit.reporting.guarantees import in_short
    from tacit.reporting.ledger import Told, caps_table, entries_table, refusals_table
    from tacit.reporting.tables import to_rich

    out = console.out()
    if told.doubt is not None:
        out.print(f"the ledger is in doubt: {told.doubt}", style="red")
    if told.waiting:
        out.print(f"{told.waiting:,} reports wait to be sent")
    if told.entries:
        out.print(to_rich(entries_table(told.entries[-_MOST_SHOWN:])))
        out.print("All that the ledger has, together", style="bold")
        console.tell([*in_short(told.spent, console.width()), ""])
    else:
        out.print("nothing has left this device")
    if told.caps:
        out.print(to_rich(caps_table(told.caps, told.spent)))
    if told.refusals:
        of_all = Told(told.entries, told.spent, told.caps, told.refusals)
        out.print(to_rich(refusals_table(of_all)))


def _print_left(left: Left) -> None:
    from tacit.reporting.guarantees import in_short
    from tacit.reporting.terminal import wrapped

    for one in _left_sentences(left):
        console.tell(wrapped(shown(one, longest=None), console.width(), later="  "))
    if left.rounds != 0 and left.spent:
        console.tell([*in_short(left.spent, console.width()), ""])


def _left_sentences(left: Left) -> list[str]:
    many = "" if left.n_items is None else f" of {left.n_items:,} items"
    unsent = "" if left.never_sent is None else f" and {left.never_sent:,} reports"
    unsent += " that were never sent" if unsent else ""
    found = [
        f"erased: a history{many}, the keys, the ticket, the invitation{unsent}",
        *(f"not as it should be: {one}" for one in left.problems),
    ]
    if left.ledger.exists():
        found.append(
            f"kept: {left.ledger}, so that nothing is answered twice; erase it with: "
            f"tacit ledger forget {left.ledger}"
        )
    if left.rounds == 0:
        found.append("nothing of you was ever sent")
    elif left.rounds is None:
        found.append(
            "what was sent is not known without a sound ledger: reports of yours may "
            "be in sums that were or may be published. They cannot be taken out of "
            "these, nor out of models made of them"
        )
    else:
        noun = "round" if left.rounds == 1 else "rounds"
        found.append(
            f"reports of {left.rounds:,} {noun} are in sums that were or may be "
            "published. They cannot be taken out of these, nor out of models made of "
            "them; what they hold of you is at most what stands here:"
        )
    return found

"""`tacit flower`: the same methods on several machines, with Flower between them."""

from __future__ import annotations

import secrets
import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import console
from tacit.cli.options import Changes, ExperimentFile, Json, OutRun, Resume
from tacit.cli.signals import like_ctrl_c
from tacit.errors import BadRun, BadValue, Refused, Unanswered
from tacit.text import nth_round

if TYPE_CHECKING:
    from tacit.child_processes import ChildProcess
    from tacit.cli.flower_processes import Flwr
    from tacit.experiment.settings import Experiment
    from tacit.runtime.federation import Reply
    from tacit.transport.node_answer import Share

app = typer.Typer(
    help="Run an experiment on several machines, each with a share of the users.",
    no_args_is_help=True,
)

PORT = 9400

Folder = Annotated[
    Path,
    typer.Option(
        metavar="DIR", help="Where nodes keep data, stores and logs: private."
    ),
]
SuperLink = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="Where the SuperLink or its front is.")
]
Ca = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="ca.crt of `tacit flower keys`; without it there is no TLS.",
        show_default=False,
    ),
]
Keys = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="The folder of `tacit flower keys`, for TLS and known nodes only.",
        show_default=False,
    ),
]


@app.command()
@like_ctrl_c()
def up(
    experiment: ExperimentFile,
    nodes: Annotated[
        int, typer.Option(help="SuperNodes on this machine; 0: a SuperLink alone.")
    ] = 3,
    folder: Folder = Path("federation"),
    port: Annotated[
        int, typer.Option(help="The SuperLink's port; its nodes have those above.")
    ] = PORT,
    keys: Keys = None,
    changes: Changes = [],  # noqa: B006
    json: Json = False,
) -> None:
    """Start a SuperLink and some nodes on this machine, until Ctrl-C.

    Users are divided by a hash of their id. All of it listens on 127.0.0.1.

    Example: tacit flower up exp.toml --nodes 3

    Then, elsewhere: tacit flower run exp.toml --nodes 3 --out run
    """
    from tacit.cli.flower_processes import Flwr, Link, start_superlink, start_supernode

    ca = None if keys is None else keys / "ca.crt"
    link = Link(f"127.0.0.1:{port}", ca)
    _prepare_all(_read(experiment, changes), nodes, folder)
    with ExitStack() as running:
        processes = [start_superlink(folder, port=port, keys=keys)]
        running.callback(processes[0].stop)
        asked = Flwr(link, folder / "flwr")
        _wait_for_link(asked, processes[0])
        if keys is not None:
            for public in sorted(keys.glob("node-*.pub")):
                asked.register(public)
        for part in range(nodes):
            key = None if keys is None else keys / f"node-{part}.key"
            place = folder / f"node-{part}"
            made = start_supernode(place, link, port=port + 1 + part, key=key)
            running.callback(made.stop)
            processes.append(made)
        if nodes:
            asked.wait_for_nodes(nodes, processes)
        _tell_up(link.address, nodes, folder, json=json)
        _watch_over(processes[0], processes[1:])


def _prepare_all(settings: Experiment, nodes: int, folder: Path) -> None:
    """Read every share into a folder of its own."""
    from tacit.experiment.over_nodes import prepare_node
    from tacit.transport.node_answer import Share

    for part in range(nodes):
        prepare_node(settings, Share(part, nodes), folder / f"node-{part}")


def _tell_up(address: str, nodes: int, folder: Path, *, json: bool) -> None:
    if json:
        console.print_json({"superlink": address, "nodes": nodes, "folder": folder})
    else:
        console.out().print(f"{address}: a SuperLink and {nodes} nodes, until Ctrl-C")
    sys.stdout.flush()  # a pipe would show the address at the end only


def _wait_for_link(asked: Flwr, process: ChildProcess) -> None:
    """Wait until a SuperLink answers, or has ended."""
    ends = time.monotonic() + 60.0
    while time.monotonic() < ends:
        process.refuse_ended()
        try:
            asked.nodes()
        except Unanswered:
            time.sleep(0.5)
        else:
            return
    raise Unanswered(f"no SuperLink answers at {asked.link.address}: {process.log}")


def _watch_over(first: ChildProcess, others: Sequence[ChildProcess] = ()) -> None:
    """Wait for Ctrl-C; the end of the first is an error, that of another is told."""
    running = [*others]
    try:
        while True:
            first.refuse_ended()
            for process in [one for one in running if one.has_ended]:
                running.remove(process)
                _tell_ended(process, left=len(running), of=len(others))
            time.sleep(0.5)
    except KeyboardInterrupt:
        console.note("stopped")


def _tell_ended(process: ChildProcess, *, left: int, of: int) -> None:
    console.note(process.last_words())
    console.note(
        f"{left} of {of} nodes are left; a run goes on if its --min-nodes allow it. "
        "Start the node again with `tacit flower node`, on the same --folder and --port"
    )


@app.command()
def keys(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A new folder.", show_default=False)
    ],
    nodes: Annotated[int, typer.Option(help="For how many nodes.")] = 3,
    hosts: Annotated[
        list[str],
        typer.Option(
            "--host",
            help="A name or address of the SuperLink's machine; several are allowed.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    listen: Annotated[
        str, typer.Option(help="Where the front in nginx.conf listens.")
    ] = "0.0.0.0:443",
    superlink: SuperLink = f"127.0.0.1:{PORT}",
    json: Json = False,
) -> None:
    """Make certificates, one pair of keys per node, and the front's nginx.conf.

    Example: tacit flower keys keys --nodes 10 --host superlink.example.org
    """
    from tacit.cli.flower_keys import write_keys

    made = write_keys(
        folder, nodes=nodes, hosts=hosts, listen=listen, superlink=superlink
    )
    if json:
        console.print_json({"files": [str(path) for path in made]})
        return
    console.out().print(f"{len(made)} files in {folder}; *.key are secrets")
    console.note("next: give each node ca.crt and its own node-N.key")


@app.command()
@like_ctrl_c()
def node(
    experiment: ExperimentFile,
    share: Annotated[
        str, typer.Option(metavar="PART/PARTS", help="Which users: 0/4 to 3/4.")
    ],
    superlink: SuperLink = f"127.0.0.1:{PORT}",
    folder: Folder = Path("node"),
    ca: Ca = None,
    key: Annotated[
        Path | None,
        typer.Option(help="node-N.key of `tacit flower keys`.", show_default=False),
    ] = None,
    own: Annotated[
        bool,
        typer.Option(
            "--own",
            help="All users of the table are this node's, and on no other node; by "
            "default those whose hash falls into the share.",
        ),
    ] = False,
    runs: Annotated[
        int | None,
        typer.Option(
            help="How many runs may train on these users; each spends their budget.",
            show_default="1 in a release",
        ),
    ] = None,
    port: Annotated[int, typer.Option(help="A free port on 127.0.0.1.")] = PORT + 1,
    prepare: Annotated[
        bool, typer.Option("--prepare", help="Read the users, and start nothing.")
    ] = False,
    restored: Annotated[
        bool,
        typer.Option(
            "--restored",
            help="The node's store is gone or was put back from a backup: its runs "
            "are over.",
        ),
    ] = False,
    changes: Changes = [],  # noqa: B006
    json: Json = False,
) -> None:
    """Read this machine's users and answer rounds about them, until Ctrl-C.

    Example: tacit flower node exp.toml --share 0/4 --superlink HOST:443 --ca ca.crt
    --key node-0.key
    """
    from tacit.cli.flower_processes import Link, start_supernode
    from tacit.experiment.over_nodes import prepare_node

    link = Link(superlink, ca)
    settings, wanted = _read(experiment, changes), _share(share)
    if own:
        _refuse_own(settings)
    n = prepare_node(
        settings, wanted, folder, own=own, most_runs=runs, is_restored=restored
    )
    _tell_users(n, settings, wanted, folder, own=own, json=json)
    if prepare:
        return
    process = start_supernode(folder, link, port=port, key=key)
    try:
        _watch_over(process)
    finally:
        process.stop()


def _read(experiment: Path, changes: list[str]) -> Experiment:
    from tacit.experiment.settings import read_experiment

    # Absolute, because a node reads the experiment again from elsewhere.
    return read_experiment(experiment.resolve(), changes)


def _refuse_own(settings: Experiment) -> None:
    """Refuse --own where every node reads all users: each would count on all nodes."""
    if settings.table is None:
        raise BadValue(
            f"--own is for a table of events; data.source = '{settings.data.source}' "
            "is read whole by every node, and each keeps the users of its share"
        )


def _tell_users(
    n: int, settings: Experiment, share: Share, folder: Path, *, own: bool, json: bool
) -> None:
    """Say how many users a node has, and by which rule others of its table are not."""
    if json:
        console.print_json({"users": n, "share": _worded(share), "folder": folder})
    else:
        console.out().print(f"{n:,} users of share {_worded(share)} are in {folder}")
    # The others are not counted: their ids are never kept, not even for that.
    if settings.table is not None and not own and share.parts > 1:
        console.note(
            f"of {settings.table.path.name} only users whose hash falls into share "
            f"{_worded(share)} are this node's, about one in {share.parts}; where all "
            "users of the table are, and on no other node, say --own"
        )


def _worded(share: Share) -> str:
    return f"{share.part}/{share.parts}"


def _share(text: str) -> Share:
    from tacit.transport.node_answer import Share

    part, slash, parts = text.partition("/")
    if not slash or not part.isdigit() or not parts.isdigit():
        raise BadValue(f"share={text!r} must be PART/PARTS, such as 0/4")
    return Share(int(part), int(parts))


@app.command()
@like_ctrl_c()
def run(
    experiment: ExperimentFile,
    nodes: Annotated[
        int, typer.Option(help="Into how many shares the users are divided.")
    ],
    superlink: SuperLink = f"127.0.0.1:{PORT}",
    out: OutRun = Path("run"),
    resume: Resume = False,
    ca: Ca = None,
    deadline: Annotated[
        float, typer.Option(help="Seconds of a round; who is later does not count.")
    ] = 600.0,
    min_nodes: Annotated[
        int | None,
        typer.Option(
            help="How many nodes must answer in a round; with fewer the run stops, "
            "to be resumed.",
            show_default="all",
        ),
    ] = None,
    changes: Changes = [],  # noqa: B006
    json: Json = False,
) -> None:
    """Train an experiment over nodes, into a run directory where the SuperLink is.

    Sums are divided by the planned cohort, whoever answered: the promise
    stays that of the plan. A run that stopped goes on with --resume.

    Example: tacit flower run exp.toml --nodes 3 --out run
    """
    from tacit.cli import flower_watch
    from tacit.cli.flower_processes import Flwr, Link, write_bundle
    from tacit.experiment.over_nodes import gather_over

    # What would be refused is refused here, before the nodes are asked anything.
    wanted = _read(experiment, changes)
    gather_over(wanted, _Nobody(), shares=nodes, min_nodes=min_nodes)
    _refuse_other_run(out, resume=resume)
    asked = Flwr(Link(superlink, ca), out / "flower")
    settings = {
        "experiment": str(experiment.resolve()),
        "changes": "\n".join(changes),
        "out": str(out.resolve()),
        "resume": resume,
        "name": _name_of(out),
        "shares": nodes,
        "deadline": float(deadline),
        "min-nodes": min_nodes or 0,
    }
    again = _again()
    bundle = write_bundle(out / "flower", settings)
    try:
        number = asked.start_run(bundle)
    except KeyboardInterrupt:
        console.note(
            f"a run may have begun at {superlink}: `tacit flower status` shows it, and "
            "`tacit flower stop --run NUMBER` stops it"
        )
        raise
    flower_watch.note_started(out, number)
    try:
        with console.Bar("flower run") as bar:
            status = flower_watch.watched(asked, number, out, bar=bar, again=again)
    except KeyboardInterrupt:
        _stop(asked, number, out, again)
        raise
    if status["status"] != "finished:completed":
        raise Refused(
            f"run {number} ended as {status['status']}: {_reason(status)}; go on with: "
            f"{again}"
        )
    _tell_result(out, number, json=json)


def _again() -> str:
    """The command that was given, to be given once more and go on with its run."""
    words = [one for one in sys.argv[1:] if one != "--resume"]
    return shlex.join(["tacit", *words, "--resume"])


def _stop(asked: Flwr, number: int, out: Path, again: str) -> None:
    """Stop the run that this command has watched; say how to go on, or to try again."""
    from tacit.cli import flower_watch

    console.note(f"stopping run {number} at {asked.link.address}")
    try:
        flower_watch.stop(asked, number, out)
    except Unanswered as error:
        console.note(
            f"{error}; to stop the run, give --superlink and --ca as before to: tacit "
            f"flower stop --out {out}"
        )
    else:
        console.note(f"stopped; nothing is lost. Go on with:\n  {again}")


class _Nobody:
    """Nodes that are never asked: to see whether a run could be begun."""

    def ask(self, question: bytes, *, round: int, most_bytes: int) -> list[Reply]:
        """No reply at all, because nobody is there."""
        return []


def _refuse_other_run(out: Path, *, resume: bool) -> None:
    from tacit.cli import flower_watch

    if (out / "experiment.toml").exists() and not resume:
        raise BadRun(
            f"{out} holds a run already; continue it with --resume, or train into "
            "another directory"
        )
    flower_watch.refuse_other_run(out)


def _name_of(out: Path) -> str:
    """The name of the run in the stores of nodes: the same whenever it is resumed."""
    from tacit.documents import read_document, write_document

    path = out / "nodes.json"
    if path.exists():
        return str(read_document(path)["name"])
    name = secrets.token_hex(8)
    out.mkdir(parents=True, exist_ok=True)
    write_document(path, {"name": name})
    return name


def _reason(status: dict[str, Any]) -> str:
    said = str(status.get("status-details", ""))
    return said.removeprefix("ServerApp failed with exception: ") or "it gave no reason"


def _tell_result(out: Path, number: int, *, json: bool) -> None:
    from tacit.documents import read_document
    from tacit.experiment.build_report import statement_of
    from tacit.reporting.guarantees import in_short

    found = read_document(out / "result.json")
    if json:
        console.print_json({**found, "run": out, "superlink_run": number})
        return
    console.tell(in_short(map(statement_of, found["epsilons"]), console.width()))
    console.out().print(f"model: {out / 'model.safetensors'}")


@app.command()
def status(
    superlink: SuperLink = f"127.0.0.1:{PORT}",
    ca: Ca = None,
    out: OutRun = Path("run"),
    json: Json = False,
) -> None:
    """Show the nodes that are connected, the SuperLink's runs and a run's rounds.

    Example: tacit flower status --out run
    """
    from tacit.cli import flower_watch
    from tacit.cli.flower_processes import Flwr, Link

    flower_watch.refuse_other_run(out)
    asked = Flwr(Link(superlink, ca), out / "flower")
    found = {
        "nodes": asked.nodes(),
        "runs": asked.ask("list").get("runs", []),
        "rounds": [
            {"round": line["round"], **line["nodes"]}
            for line in flower_watch.rounds_of(out)
        ],
    }
    if json:
        console.print_json(found)
        return
    online = sum(one["status"] == "online" for one in found["nodes"])
    console.out().print(f"{superlink}: {online} of {len(found['nodes'])} nodes online")
    for one in found["runs"]:
        console.out().print(f"run {one['run-id']}: {one['status']}")
    for line in found["rounds"]:
        told = f"{nth_round(line['round'])}: {len(line['answered'])} nodes answered"
        dropped = "; ".join(f"{n}: {why}" for n, why in line["dropped"].items())
        console.out().print(told + (f"; {dropped}" if dropped else ""))


@app.command()
def stop(
    superlink: SuperLink = f"127.0.0.1:{PORT}",
    ca: Ca = None,
    out: OutRun = Path("run"),
    number: Annotated[
        int | None,
        typer.Option(
            "--run",
            help="The SuperLink's number of the run, as `status` shows it.",
            show_default="the last one of --out",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Stop the run of a directory at its SuperLink; --resume goes on with it.

    Ctrl-C in `tacit flower run` does the same.

    Example: tacit flower stop --out run
    """
    from tacit.cli import flower_watch
    from tacit.cli.flower_processes import Flwr, Link

    number = flower_watch.started(out) if number is None else number
    flower_watch.stop(Flwr(Link(superlink, ca), out / "flower"), number, out)
    if json:
        console.print_json({"superlink_run": number, "run": out})
        return
    console.out().print(
        f"run {number} is stopped; the same `tacit flower run` with --resume goes on"
    )

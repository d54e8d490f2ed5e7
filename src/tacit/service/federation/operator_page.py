"""The operator's own listener: a page without script, and metrics.

    GET /          the page; it is fetched anew every half minute
    GET /still     the same page, which stays as it is
    GET /metrics   the same figures for Prometheus

It has no secret and nothing about a person (`overview`). It is for the operator all the
same: keep its address on this machine, or on a network of your own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from starlette.types import Scope

from tacit.memory import in_words
from tacit.release import EVERYONE, View
from tacit.reporting import elements, plain_words, tables
from tacit.reporting.report_data import Lead
from tacit.service.federation.operator_client import Peer
from tacit.service.federation.operator_metrics import PROMETHEUS, metrics_text
from tacit.service.federation.overview import (
    Budget,
    Outcome,
    Overview,
    RoundLine,
    Traffic,
)
from tacit.service.federation.public_rounds import OPEN, moment
from tacit.service.http import Asked, Endpoint, Endpoints, Failure, Reply, header
from tacit.service.urls import host_of, is_address
from tacit.statement import Statement
from tacit.text import nth_round

REFRESH = 30  # seconds
_HTML = b"text/html; charset=utf-8"
_POLICY = (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'")
_HIDDEN, _FORGOTTEN = "hidden: too few", "erased"
_COARSE = (
    "Counts are shown down to the next 50 and not at all below the least number of "
    "reports of a round; what follows from arrivals has whole hours. Nothing here is "
    "about one person."
)


class OperatorPage:
    """The operator's listener of one service; `look` gives what is shown.

    It answers requests to an address, to localhost, and to `hosts`. A page of another
    name that resolves to this machine could read it in the operator's browser otherwise
    (DNS rebinding).
    """

    def __init__(
        self, look: Callable[[], Overview], hosts: Collection[str] = ()
    ) -> None:
        self._look, self._began = look, time.monotonic()
        self._hosts = {"localhost", *hosts}
        self.application = Endpoints(
            [
                Endpoint("page", "GET", "/", self._page),
                Endpoint("still", "GET", "/still", self._still),
                Endpoint("metrics", "GET", "/metrics", self._metrics),
            ],
            check=self._check_host,
        )

    def _check_host(self, scope: Scope) -> None:
        host = host_of((header(scope, b"host") or b"").decode("latin-1"))
        if host not in self._hosts and not is_address(host):
            raise Failure(
                *(421, "OtherHost"),
                f"this page is not served under the name {host[:80]!r}; use "
                "http://127.0.0.1 with its port, or name the host in plain_http_hosts",
            )

    async def _page(self, _: Asked) -> Reply:
        html = operator_page(await asyncio.to_thread(self._look))
        more = (_POLICY, (b"refresh", b"%d" % REFRESH))
        return Reply(200, html.encode(), _HTML, more)

    async def _still(self, _: Asked) -> Reply:
        html = operator_page(await asyncio.to_thread(self._look), is_still=True)
        return Reply(200, html.encode(), _HTML, (_POLICY,))

    async def _metrics(self, _: Asked) -> Reply:
        seen = await asyncio.to_thread(self._look)
        text = metrics_text(seen, up_seconds=time.monotonic() - self._began)
        return Reply(200, text.encode(), PROMETHEUS.encode())


def operator_page(seen: Overview, *, is_still: bool = False) -> str:
    """The page of a service, as HTML."""
    title = f"{seen.role.capitalize()}{f': {seen.title}' if seen.title else ''}"
    body = elements.head(title)
    body += elements.notice(f"{seen.state.text}.", good=seen.state.is_well)
    body += "".join(elements.notice(text) for text in _warnings(seen))
    body += elements.leads(_leads(seen)) + elements.paragraph(_COARSE, quiet=True)
    body += elements.section("rounds", "Rounds", _rounds(seen.rounds))
    if seen.traffic is not None:
        body += elements.section("work", "Work", _work(seen.traffic))
    if seen.traffic is not None and seen.traffic.refusals:
        body += elements.section("refusals", "Refusals", _refusals(seen.traffic))
    body += elements.section("service", "Service", _service(seen))
    if seen.budget is not None:
        body += elements.section("epsilon", "Epsilon", _budget(seen.budget))
    if seen.outcome is not None and seen.outcome.metrics:
        body += elements.section(
            "released", "Released metrics", _released(seen.outcome)
        )
    return elements.page(title, body + _refreshing(is_still))


def _leads(seen: Overview) -> Iterator[Lead]:
    if not seen.rounds:
        yield Lead("round", "none yet")
        return
    newest = seen.rounds[0]
    yield Lead("newest round", str(newest.number + 1), f"adds up {newest.leaf}")
    yield Lead("its reports", _reports(newest), f"at least {newest.least:,} needed")
    if newest.state == OPEN:
        day, hour = moment(newest.closes).split(" ", 1)
        yield Lead("its window ends", hour, f"on {day}; opened {moment(newest.opens)}")


def _warnings(seen: Overview) -> Iterator[str]:
    for name, peer in seen.peers.items():
        if peer.answers is False:
            since = "" if peer.seconds is None else f" for {_age(peer.seconds)}"
            yield f"No answer from the {name}{since}."
    for line in seen.rounds:
        if line.why and line.why not in seen.state.text:
            yield f"{nth_round(line.number).capitalize()} is {line.state}: {line.why}."


def _rounds(rounds: tuple[RoundLine, ...]) -> str:
    if not rounds:
        return elements.paragraph("No round has been opened yet.")
    rows = tuple(
        (
            f"{line.run} / {line.number + 1}",
            line.meaning,
            line.leaf,
            _reports(line),
            moment(line.opens),
            moment(line.closes),
        )
        for line in rounds
    )
    header = ("run / round", "state", "adds up", "reports", "opened", "window ends")
    return elements.table(tables.Table("The newest rounds", header, rows), heads=1)


def _work(traffic: Traffic) -> str:
    seconds = traffic.commit_seconds
    last = tables.MISSING if traffic.last_commit is None else _hour(traffic.last_commit)
    return elements.facts(
        [
            ("batches since the start", _count(traffic.batches)),
            ("last commit", last),
            ("commit, median", _milliseconds(seconds and seconds[0])),
            ("commit, 99th percentile", _milliseconds(seconds and seconds[1])),
            (
                f"queue, down to {in_words(traffic.queue_step)}",
                in_words(traffic.queue_bytes),
            ),
        ]
    )


def _refusals(traffic: Traffic) -> str:
    rows = tuple(
        (f"{status}: {traffic.reasons[status]}", _count(count))
        for status, count in traffic.refusals.items()
    )
    header = ("status and reason", "refused")
    table = tables.Table("Refused since the start", header, rows)
    return elements.table(table, heads=1)


def _service(seen: Overview) -> str:
    return elements.facts(
        [
            *((name, _answered(peer)) for name, peer in seen.peers.items()),
            ("disk free, down to 256 MiB", in_words(seen.disk_free)),
            ("restarts", f"{seen.starts - 1:,}"),
        ]
    )


def _answered(peer: Peer) -> str:
    if peer.answers is None:
        return "not asked yet"
    if peer.seconds is None:
        return "no answer yet"
    age = _age(peer.seconds)
    return f"answered {age} ago" if peer.answers else f"no answer for {age}"


def _age(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def _budget(budget: Budget) -> str:
    """One line for each unit and view: what was planned beside what is spent."""
    rows = [
        (
            said.group,
            plain_words.observers(map(View, views), replace(said, group=EVERYONE)),
            ", ".join(units),
            tables.epsilon(said),
            _spent(budget.spent, said, units, views),
            str(said.standing),
            tables.why(said),
        )
        for said, units, views in tables.merged(budget.planned)
    ]
    header = ("group", "who looks", "unit", "planned", "spent", "standing", "why")
    cut = 0 if len({row[0] for row in rows}) > 1 else 1
    table = tables.Table(
        "Planned: if all rounds are played. Spent: by a client that has answered every "
        "round so far",
        header[cut:],
        tuple(row[cut:] for row in rows),
    )
    return elements.table(table, heads=2 - cut)


def _spent(
    spent: Sequence[Statement], said: Statement, units: list[str], views: list[str]
) -> str:
    """What is spent where this was planned; more than one figure if they differ."""
    mine = [
        tables.epsilon(one)
        for one in spent
        if one.group == said.group and one.unit in units and one.view in views
    ]
    return "; ".join(dict.fromkeys(mine)) or "nothing before the first round opens"


def _released(outcome: Outcome) -> str:
    return elements.listing(plain_words.released(one) for one in outcome.metrics)


def _refreshing(is_still: bool) -> str:
    if is_still:
        said, link = "This page stays as it is.", '<a href="/">Refresh it</a>.'
    else:
        said = f"This page is fetched anew every {REFRESH} seconds."
        link = '<a href="/still">Keep it as it is</a>.'
    return f'<p class="quiet">{said} {link}</p>\n'


def _reports(line: RoundLine) -> str:
    return _FORGOTTEN if line.is_forgotten else _count(line.reports)


def _count(count: int | None) -> str:
    return _HIDDEN if count is None else f"{count:,}"


def _hour(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d, %H h UTC")


def _milliseconds(seconds: float | None) -> str:
    return tables.MISSING if seconds is None else f"{1000 * seconds:.0f} ms"

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
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from tacit.memory import in_words
from tacit.reporting import elements, plain_words, tables
from tacit.reporting.report_data import Lead
from tacit.service.federation.operator_metrics import PROMETHEUS, metrics_text
from tacit.service.federation.overview import (
    Budget,
    Outcome,
    Overview,
    RoundLine,
    Traffic,
)
from tacit.service.http import Asked, Endpoint, Endpoints, Reply

REFRESH = 30  # seconds
_HTML = b"text/html; charset=utf-8"
_POLICY = (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'")
_HIDDEN = "hidden: too few"
_COARSE = (
    "Counts are shown down to the next 50 and not at all below the least number of "
    "reports of a round; times are whole hours. Nothing here is about one person."
)


class OperatorPage:
    """The operator's listener of one service; `look` gives what is shown."""

    def __init__(self, look: Callable[[], Overview]) -> None:
        self._look, self._began = look, time.monotonic()
        self.application = Endpoints(
            [
                Endpoint("page", "GET", "/", self._page),
                Endpoint("still", "GET", "/still", self._still),
                Endpoint("metrics", "GET", "/metrics", self._metrics),
            ]
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
    body = elements.head(title, lead=_leads(seen), notes=[_COARSE])
    body += "".join(elements.notice(text) for text in _warnings(seen))
    body += elements.section("rounds", "Rounds", _rounds(seen.rounds))
    if seen.traffic is not None:
        body += elements.section("work", "Work", _work(seen.traffic))
    if seen.traffic is not None and seen.traffic.refusals:
        body += elements.section("refusals", "Refusals", _refusals(seen.traffic))
    body += elements.section("service", "Service", _service(seen))
    if seen.budget is not None:
        body += elements.section("epsilon", "Epsilon", _budget(seen.budget))
    if seen.outcome is not None:
        body += elements.section("released", "Released", _released(seen.outcome))
    return elements.page(title, body + _refreshing(is_still))


def _leads(seen: Overview) -> Iterator[Lead]:
    if not seen.rounds:
        yield Lead("round", "none yet")
        return
    newest = seen.rounds[0]
    yield Lead("round", str(newest.number), f"{newest.state}: {newest.leaf}")
    yield Lead("reports", _count(newest.reports), f"at least {newest.least:,} needed")
    yield Lead("closes", _moment(newest.closes), f"opened {_moment(newest.opens)}")


def _warnings(seen: Overview) -> Iterator[str]:
    if seen.trouble:
        yield seen.trouble
    away = [name for name, answers in seen.answers.items() if answers is False]
    if away and not seen.trouble:
        yield f"no answer from the {' and the '.join(away)} when last asked"
    if seen.outcome is not None and seen.outcome.withheld:
        yield f"the model is not published: {seen.outcome.withheld}"
    if seen.is_retired:
        yield "the run is retired: no other round opens"
    for line in seen.rounds:
        if line.why:
            yield f"round {line.number} is {line.state}: {line.why}"


def _rounds(rounds: tuple[RoundLine, ...]) -> str:
    if not rounds:
        return elements.paragraph("No round has been opened yet.")
    rows = tuple(
        (
            f"{line.run} / {line.number}",
            line.state,
            line.leaf,
            _moment(line.opens),
            _moment(line.closes),
            _count(line.reports),
        )
        for line in rounds
    )
    header = ("run / round", "state", "adds up", "opens", "closes", "reports")
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
        (status, traffic.reasons[status], _count(count))
        for status, count in traffic.refusals.items()
    )
    header = ("status", "reason", "refused")
    table = tables.Table("Refused since the start", header, rows)
    return elements.table(table, heads=1)


def _service(seen: Overview) -> str:
    said = {True: "answers", False: "does not answer", None: "not asked yet"}
    return elements.facts(
        [
            *((name, said[answers]) for name, answers in seen.answers.items()),
            ("disk free, down to 256 MiB", in_words(seen.disk_free)),
            ("restarts", f"{seen.starts - 1:,}"),
        ]
    )


def _budget(budget: Budget) -> str:
    planned = tables.privacy(
        budget.planned, caption="Planned: if all rounds are played"
    )
    if not budget.spent:
        return elements.table(planned, heads=1) + elements.paragraph(
            "Nothing is spent before the first round opens."
        )
    caption = "Spent: by somebody who answered every round so far"
    spent = tables.privacy(budget.spent, caption=caption)
    return elements.table(spent, heads=1) + elements.table(planned, heads=1)


def _released(outcome: Outcome) -> str:
    found = [f"model, SHA-256 {digest}" for digest in outcome.models]
    found += [plain_words.released(one) for one in outcome.metrics]
    if not found:
        return elements.paragraph("Nothing is released yet but the sums of rounds.")
    return elements.listing(found)


def _refreshing(is_still: bool) -> str:
    if is_still:
        said, link = "This page stays as it is.", '<a href="/">Refresh it</a>.'
    else:
        said = f"This page is fetched anew every {REFRESH} seconds."
        link = '<a href="/still">Keep it as it is</a>.'
    return f'<p class="quiet">{said} {link}</p>\n'


def _count(count: int | None) -> str:
    return _HIDDEN if count is None else f"{count:,}"


def _moment(seconds: int) -> str:
    """A time of the round's own window, which is public."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _hour(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d, %H h UTC")


def _milliseconds(seconds: float | None) -> str:
    return tables.MISSING if seconds is None else f"{1000 * seconds:.0f} ms"

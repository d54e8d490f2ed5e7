"""Groups: whoever waits is worked off together, and each gets its own answer."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tacit.service.grouped_work import GroupedWork, GroupLimits
from tacit.service.http import Failure

BROKEN = Failure(503, "Broken", "again")


DEFAULT = GroupLimits()


def asked(work, items, limits=DEFAULT, about=lambda item: b""):
    """The answers for items that all come at once."""

    async def all_of_them():
        with ThreadPoolExecutor(1) as worker:
            grouped = GroupedWork(work, worker, limits, otherwise=BROKEN)
            return await asyncio.gather(
                *(grouped.done(about(i), bytes([i]), i, size=1) for i in items),
                return_exceptions=True,
            )

    return asyncio.run(all_of_them())


def test_many_are_one_group_and_each_hears_its_own():
    groups = []

    def work(about, items):
        groups.append([*items])
        return [item * 10 for item in items]

    assert asked(work, range(5)) == [0, 10, 20, 30, 40]
    assert groups == [[0, 1, 2, 3, 4]]


def test_groups_have_limits_and_are_about_one_thing():
    groups = []

    def work(about, items):
        groups.append([*items])
        return items

    asked(work, range(5), GroupLimits(count=2))
    assert [len(one) for one in groups] == [2, 2, 1]
    groups.clear()
    asked(work, range(4), about=lambda item: bytes([item % 2]))
    assert sorted(map(sorted, groups)) == [[0, 2], [1, 3]]
    groups.clear()
    asked(work, range(4), GroupLimits(bytes=3))
    assert [len(one) for one in groups] == [3, 1]


def test_the_same_item_twice_is_worked_off_once():
    seen = []

    def work(about, items):
        seen.extend(items)
        return items

    assert asked(work, [1, 1, 2]) == [1, 1, 2]
    assert seen == [1, 2]


def test_refusals_reach_those_whom_they_are_for():
    refusal = Failure(409, "Closed", "late")
    found = asked(lambda _, items: [refusal if i else i for i in items], [0, 1])
    assert found == [0, refusal]


@pytest.mark.parametrize("error", [ValueError("canary"), BROKEN])
def test_a_failure_is_everybodys_and_its_text_nobodys(error, caplog):
    def work(about, items):
        raise error

    assert asked(work, [0, 1]) == [BROKEN, BROKEN]
    assert "canary" not in caplog.text


def test_the_work_is_done_in_the_thread_of_its_own():
    names = []

    def work(about, items):
        names.append(threading.current_thread().name)
        return items

    asked(work, [0])
    assert names != [threading.main_thread().name]

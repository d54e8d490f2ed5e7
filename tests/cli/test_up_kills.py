"""`tacit up` killed at random: itself or one of its processes, by each signal.

Two hundred lives in `make test-all`, five in `make test`, which has every stage, both
channels, the command and its processes among them.
"""

import os
import random
import signal
import time

import pytest
from cli.one_life import ROLES, STAGES, Life, assert_nothing_is_left

KILL, TERM, HUP = signal.SIGKILL, signal.SIGTERM, signal.SIGHUP
OF_COMMAND = (KILL, TERM, HUP, signal.SIGINT)
OF_CHILD = (KILL, TERM, signal.SIGABRT, signal.SIGSEGV)
LIVES, LONGEST_PAUSE = 200, 1.5  # seconds after a line


def lives():
    """The channel, what is killed, by what, after which line, and how long after it."""
    quick = [
        ("shuffle", None, KILL, 1),
        ("two_servers", None, TERM, 0),
        ("two_servers", "helper", KILL, 2),
        ("two_servers", None, HUP, 3),
        ("shuffle", "collector", signal.SIGSEGV, 1),
    ]
    draws = random.Random(43)
    for number in range(LIVES):
        channel = draws.choice([*ROLES])
        role = draws.choice([None, *ROLES[channel]])
        by = draws.choice(OF_COMMAND if role is None else OF_CHILD)
        drawn = (channel, role, by, draws.randrange(len(STAGES)))
        is_quick = number < len(quick)
        life = quick[number] if is_quick else drawn
        pause = draws.uniform(0, LONGEST_PAUSE)
        channel, role, by, stage = life
        name = f"{number}-{channel}-{role or 'up'}-{by.name}-{stage}"
        marks = () if is_quick else (pytest.mark.slow,)
        yield pytest.param(*life, pause, id=name, marks=marks)


@pytest.mark.parametrize(("channel", "role", "by", "stage", "pause"), [*lives()])
def test_nothing_is_left_and_one_sentence_says_why(
    channel, role, by, stage, pause, tmp_path
):
    life = Life(tmp_path, channel)
    try:
        life.wait_for(STAGES[stage])
        time.sleep(pause)
        killed = life.process.pid if role is None else life.child(role)
        ports = life.ports()
        os.kill(killed, by)
        code = life.end()
        assert_nothing_is_left(life, [*ports, *life.ports()])
    finally:
        life.kill()
    assert "Traceback" not in life.said
    if role is None and by is KILL:
        assert code == -KILL
        return
    [sentence] = life.sentences()
    if role is not None:
        assert code == 1, life.said
        assert sentence.startswith(f"error: {role} ")
        ways = (f"killed by {by.name}", "ended with code", "does not listen")
        assert any(way in sentence for way in ways)
    elif code:
        assert code == 128 + by, life.said
        assert by is signal.SIGINT or sentence == f"interrupted by {by.name}"
    else:
        assert sentence == "stopped"  # it was serving

"""One client in a process of its own: broadcast bytes in, report bytes out.

    python -m tacit.testing.client_process < client and broadcast > state and report

Standard input is a pickle of what a client owns (method, client state, history, key)
followed by the encoded broadcast; output is its new state and the encoded report. The
pickle stands for the client's own storage; only the broadcast and the report are
messages.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import dataclass

from tacit.data.shards import Shards
from tacit.keys import Keys
from tacit.method import Clients, Method, Unmetered, participate
from tacit.transport.codec import decode_broadcast, encode_reports


@dataclass(frozen=True)
class Client:
    """All that one client holds: a cohort of one."""

    method: Method
    state: Clients
    shard: Shards
    key: Keys


def answer_in_a_process(
    client: Client, broadcast: bytes
) -> tuple[Clients, list[bytes]]:
    """The next state and the messages of a client, from a fresh process."""
    done = subprocess.run(
        [sys.executable, "-m", "tacit.testing.client_process"],
        input=pickle.dumps((client, broadcast)),
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.decode())
    state, messages = pickle.loads(done.stdout)
    return state, messages


def answer(client: Client, message: bytes) -> tuple[Clients, list[bytes]]:
    """Take part in the round of an encoded broadcast: next state and messages."""
    broadcast = decode_broadcast(message)
    after, reports, _ = participate(
        client.method,
        broadcast,
        client.state,
        client.shard,
        client.key,
        ledger=Unmetered(),
    )
    return after, encode_reports(broadcast, reports)


def main() -> None:
    """Answer one broadcast from standard input."""
    client, broadcast = pickle.load(sys.stdin.buffer)
    pickle.dump(answer(client, broadcast), sys.stdout.buffer)


if __name__ == "__main__":
    # Under -m this file is __main__; the pickled Client belongs to the module.
    from tacit.testing import client_process as module

    module.main()

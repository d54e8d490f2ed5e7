"""One real device process: broadcast bytes in, Report bytes out.

    python -m tacit.testing.client_process < what the device holds, then a broadcast >
    state, report

Standard input is a pickle of what a device owns (method, client state, history, key)
followed by the encoded Broadcast; output is its new state and the encoded report. The
pickle stands for the device's own storage; only the broadcast and the report are
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
class Device:
    """All that one device holds: a cohort of one."""

    method: Method
    client: Clients
    shard: Shards
    key: Keys


def answer_in_a_process(
    device: Device, broadcast: bytes
) -> tuple[Clients, list[bytes]]:
    """Let a fresh process answer a broadcast: its next state and its messages."""
    done = subprocess.run(
        [sys.executable, "-m", "tacit.testing.client_process"],
        input=pickle.dumps((device, broadcast)),
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.decode())
    client, messages = pickle.loads(done.stdout)
    return client, messages


def answer(device: Device, message: bytes) -> tuple[Clients, list[bytes]]:
    """Take part in the round of an encoded Broadcast."""
    broadcast = decode_broadcast(message)
    after, reports, _ = participate(
        device.method,
        broadcast,
        device.client,
        device.shard,
        device.key,
        ledger=Unmetered(),
    )
    return after, encode_reports(broadcast, reports)


def main() -> None:
    """Answer one broadcast from standard input."""
    device, broadcast = pickle.load(sys.stdin.buffer)
    pickle.dump(answer(device, broadcast), sys.stdout.buffer)


if __name__ == "__main__":
    # Under -m this file is __main__; the pickled Device belongs to the module.
    from tacit.testing import client_process as module

    module.main()

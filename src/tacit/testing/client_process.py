"""One real device process: Cast bytes in, Report bytes out.

    python -m tacit.testing.client_process < what the device holds, then a Cast > state,
    report

Standard input is a pickle of what a device owns (method, client state, history, key)
followed by the encoded Cast; output is its new state and the encoded report. The pickle
stands for the device's own storage; only the Cast and the report are messages.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import dataclass

from tacit.data.shards import Shards
from tacit.keys import Keys
from tacit.method import Clients, Method, Unmetered, participate
from tacit.transport.codec import decode_cast, encode_reports


@dataclass(frozen=True)
class Device:
    """All that one device holds: a cohort of one."""

    method: Method
    client: Clients
    shard: Shards
    key: Keys


def answer_in_a_process(device: Device, cast: bytes) -> tuple[Clients, list[bytes]]:
    """Let a fresh process answer a Cast; its next client state and its messages."""
    done = subprocess.run(
        [sys.executable, "-m", "tacit.testing.client_process"],
        input=pickle.dumps((device, cast)),
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.decode())
    client, messages = pickle.loads(done.stdout)
    return client, messages


def answer(device: Device, message: bytes) -> tuple[Clients, list[bytes]]:
    """Take part in the round of an encoded Cast."""
    cast = decode_cast(message)
    after, reports, _ = participate(
        device.method, cast, device.client, device.shard, device.key, ledger=Unmetered()
    )
    return after, encode_reports(cast, reports)


def main() -> None:
    """Answer one Cast from standard input."""
    device, cast = pickle.load(sys.stdin.buffer)
    pickle.dump(answer(device, cast), sys.stdout.buffer)


if __name__ == "__main__":
    # Under -m this file is __main__; the pickled Device belongs to the module.
    from tacit.testing import client_process as module

    module.main()

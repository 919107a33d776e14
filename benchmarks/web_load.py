"""How does the server bear many clients, and clients that attack it?

    python -m benchmarks.web_load [--clients N] [--seconds N] [--slow N] [--events N]

Clients keep their connection and ask for pages, lists, tables and files, one in ten of them never
asked for before, with a pause between two requests as a person makes who clicks through pages. Then
the same while slow clients send a byte of a head each second. Clients run in processes of their
own, but on the same cores. Latencies count from the first byte sent to the last received; an answer
202 (still being worked out) is asked for again and counts as one request until it is there.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

PROCESSES = 2
PAUSE_S = (1.0, 7.0)
TABLES = ("steps", "operators", "operator-types", "modules", "step-statistics", "counters")


def targets(runs: list[str], rng: random.Random) -> str:
    """What somebody asks for next, as often as people do."""
    run = rng.choice(runs)
    kind = rng.random()
    if kind < 0.15:
        return rng.choice(("/", "/api/health"))
    if kind < 0.35:
        return "/api/runs"
    if kind < 0.50:
        return f"/api/runs/{run}/" + rng.choice(("summary", "advice"))
    if kind < 0.89:
        return f"/api/runs/{run}/table/{rng.choice(TABLES)}?limit=100"
    if kind < 0.99:  # never asked before
        return f"/api/runs/{run}/table/events?limit=50&offset={rng.randrange(100_000)}"
    return f"/api/runs/{run}/table/operators?format=csv"


class Client:
    def __init__(self, port: int, token: str, seed: int, runs: list[str]) -> None:
        self.port, self.runs = port, runs
        self.rng = random.Random(seed)
        self.head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
        self.seconds: list[float] = []
        self.statuses: Counter[str] = Counter()
        self.bytes = 0

    async def run(self, until: float) -> None:
        await asyncio.sleep(self.rng.uniform(0, PAUSE_S[1]))  # not all in the same moment
        streams = None
        while time.monotonic() < until:
            target = targets(self.runs, self.rng)
            begun = time.monotonic()
            try:
                streams = streams or await asyncio.open_connection("127.0.0.1", self.port)
                status = await self._until_answered(streams, target)
                self.statuses[str(status) if status == 200 else f"{status} {target}"] += 1
            except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError) as error:
                if isinstance(error, asyncio.IncompleteReadError) and not error.partial:
                    # The server closed an idle connection: a browser opens another one.
                    streams = None
                    continue
                self.statuses[type(error).__name__] += 1
                streams = None
            self.seconds.append(time.monotonic() - begun)
            await asyncio.sleep(self.rng.uniform(*PAUSE_S))

    async def _until_answered(
        self, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter], target: str
    ) -> int:
        wait = 0.15
        while True:
            status = await asyncio.wait_for(self._ask(*streams, target), 60)
            if status != 202:
                return status
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, 2.0)

    async def _ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str
    ) -> int:
        writer.write(f"GET {target} HTTP/1.1\r\n{self.head}".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        status = int(head.split(b" ", 2)[1])
        if b"\r\ntransfer-encoding: chunked" in head:
            while length := int((await reader.readuntil(b"\r\n")).strip(), 16):
                self.bytes += len(await reader.readexactly(length + 2))
            await reader.readexactly(2)
        else:
            length = int(head.split(b"\r\ncontent-length: ")[1].split(b"\r\n")[0])
            self.bytes += len(await reader.readexactly(length))
        return status


async def slow_client(port: int) -> float:
    """A byte of a head each second; seconds until the server had enough."""
    begun = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    closed = asyncio.create_task(reader.read())
    for byte in b"GET / HTTP/1.1\r\nX-Long: " + b"a" * 300:
        try:
            writer.write(bytes([byte]))
        except OSError:
            break
        done, _ = await asyncio.wait({closed}, timeout=1)
        if done:
            break
    closed.cancel()
    writer.close()
    return time.monotonic() - begun


async def crowd(given: dict) -> dict:
    until = time.monotonic() + given["seconds"]
    clients = [
        Client(given["port"], given["token"], seed, given["runs"]) for seed in given["seeds"]
    ]
    slow = [asyncio.create_task(slow_client(given["port"])) for _ in range(given["slow"])]
    await asyncio.gather(*(client.run(until) for client in clients))
    statuses: Counter[str] = sum((client.statuses for client in clients), Counter())
    return {
        "seconds": [second for client in clients for second in client.seconds],
        "statuses": dict(statuses),
        "bytes": sum(client.bytes for client in clients),
        "slow": await asyncio.gather(*slow),
    }


def measure(instance, runs: list[str], clients: int, slow: int, seconds: float) -> dict:
    """Several processes of clients at once; what they saw, together."""
    command = [sys.executable, "-m", "benchmarks.web_load", "--crowd"]
    started = []
    for number in range(PROCESSES):
        given = {
            "port": instance.port, "token": instance.token, "runs": runs, "seconds": seconds,
            "seeds": list(range(number, clients, PROCESSES)), "slow": slow // PROCESSES,
        }  # fmt: skip
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdin.write(json.dumps(given).encode())
        process.stdin.close()
        started.append(process)
    whole: dict = {"seconds": [], "statuses": Counter(), "bytes": 0, "slow": []}
    for process in started:
        told = json.loads(process.stdout.read())
        process.wait()
        whole["seconds"] += told["seconds"]
        whole["statuses"] += Counter(told["statuses"])
        whole["bytes"] += told["bytes"]
        whole["slow"] += told["slow"]
    return whole


def report(title: str, told: dict, seconds: float) -> None:
    times = sorted(told["seconds"])
    at = [times[min(len(times) - 1, int(len(times) * share))] * 1000 for share in (0.5, 0.95, 0.99)]
    wrong = {name: count for name, count in told["statuses"].items() if name != "200"}
    print(
        f"{title}: {len(times):,} requests, {len(times) / seconds:,.0f}/s,"
        f" {told['bytes'] / 1e6:,.0f} MB; p50 {at[0]:,.0f} ms, p95 {at[1]:,.0f} ms,"
        f" p99 {at[2]:,.0f} ms, longest {times[-1] * 1000:,.0f} ms; not answered: {wrong or 'none'}"
    )
    if told["slow"]:
        print(
            f"  {len(told['slow'])} slow clients: closed after {min(told['slow']):.1f} to"
            f" {max(told['slow']):.1f} s"
        )


def memory_bytes(pid: int) -> int:
    """The peak of a process, and what its workers hold now."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--slow", type=int, default=500)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--crowd", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args() if __name__ == "__main__" else parser.parse_args([])
    if args.crowd:
        print(json.dumps(asyncio.run(crowd(json.load(sys.stdin)))))
        return

    from benchmarks.drawn_run import draw
    from strobe.web import instances, starting
    from strobe.web.server import allow_many_files

    allow_many_files()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = os.environ["TMPDIR"] = folder
        base = Path(folder) / "base"
        base.mkdir()
        for number in range(3):
            run = draw(base, args.events, seed=number)
            run.rename(base / f"run-{number}")
        instance = starting.start(base, "127.0.0.1", starting.free_port("127.0.0.1"))
        try:
            runs = [f"run-{number}" for number in range(3)]
            report("warming up", measure(instance, runs, 20, 0, 20), 20)
            alone = measure(instance, runs, 20, 0, args.seconds / 3)
            report("20 clients", alone, args.seconds / 3)
            many = measure(instance, runs, args.clients, 0, args.seconds)
            report(f"{args.clients:,} clients", many, args.seconds)
            attacked = measure(instance, runs, 20, args.slow, args.seconds / 3)
            report(f"20 clients beside {args.slow} slow ones", attacked, args.seconds / 3)
            print(f"server: peak {memory_bytes(instance.pid) / 1e6:,.0f} MB")
        finally:
            instances.end(instance)


if __name__ == "__main__":
    main()

"""Clients that send a byte a second are closed, and disturb nobody."""

import asyncio
import contextlib
import time

import pytest

from strobe.web.timeouts import HEAD_S

pytest.importorskip("uvicorn")
SLOW, SILENT = 200, 20


async def slow_client(port: int, connected: asyncio.Event) -> float:
    """Sends a byte of a head each second; how long the server put up with it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    begun = time.monotonic()
    connected.set()
    closed = asyncio.create_task(reader.read())
    for byte in b"GET /api/health HTTP/1.1\r\nX-Long: " + b"a" * 100:
        try:
            writer.write(bytes([byte]))
            await writer.drain()
        except OSError:
            break
        done, _ = await asyncio.wait({closed}, timeout=1)
        if done:
            break
    closed.cancel()
    writer.close()
    return time.monotonic() - begun


async def silent_client(port: int, connected: asyncio.Event) -> float:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    begun = time.monotonic()
    connected.set()
    with contextlib.suppress(OSError):
        await asyncio.wait_for(reader.read(), 60)
    writer.close()
    return time.monotonic() - begun


def test_slow_clients_are_closed_while_others_are_answered(client):
    async def attack():
        clients = [*[slow_client] * SLOW, *[silent_client] * SILENT]
        events = [asyncio.Event() for _ in clients]
        slow = [
            asyncio.create_task(one(client.port, connected))
            for one, connected in zip(clients, events, strict=True)
        ]
        await asyncio.gather(*(connected.wait() for connected in events))
        answered = await asyncio.to_thread(client.ask, "/api/health")
        return answered, await asyncio.gather(*slow)

    answered, seconds = asyncio.run(attack())
    assert answered.status == 200
    # Each was put up with for a while, and none for long; the bound is generous to a busy machine.
    assert len(seconds) == SLOW + SILENT
    assert min(seconds) > HEAD_S / 2 and max(seconds) < 10 * HEAD_S


def test_a_second_request_on_a_connection_has_a_clock_too(client):
    async def attack():
        reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
        head = f"GET /api/health HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {client.instance.token}\r\n\r\n"  # noqa: E501
        writer.write(head.encode())
        first = await reader.readuntil(b"}")
        writer.write(b"GET /api/he")
        rest = await asyncio.wait_for(reader.read(), 60)
        writer.close()
        return first, rest

    first, rest = asyncio.run(attack())
    assert b" 200 " in first and rest == b""


def test_a_slow_body_of_a_change_is_not_waited_for(client, base):
    async def attack():
        reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
        head = (
            f"POST /api/runs/plain/tags HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\n"
            f"Authorization: Bearer {client.instance.token}\r\nX-Strobe: 1\r\n"
            f"Origin: http://127.0.0.1:{client.port}\r\nContent-Length: 20\r\n\r\n"
        )
        writer.write(head.encode() + b"{")
        answer = await asyncio.wait_for(reader.read(16), 60)
        writer.close()
        return answer

    assert b" 400" in asyncio.run(attack())
    assert not (base / "plain" / "tags.json").exists()

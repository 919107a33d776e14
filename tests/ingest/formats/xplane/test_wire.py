"""The wire format as columns, against the same one number at a time."""

import random

import numpy as np
import pytest

from strobe.ingest.formats.xplane import wire as xplane_wire
from strobe.ingest.formats.xplane.wire import Block, Broken, fields, header, records, step, varints
from tests.ingest.formats.xplane.xspace import message, put, varint


def test_numbers_of_every_length():
    rng = random.Random(3)
    numbers = [rng.getrandbits(bits) for bits in range(1, 65) for _ in range(40)]
    written = [varint(number) for number in numbers]
    at = np.cumsum([0, *map(len, written)])[:-1]
    value, size = varints(Block(b"".join(written)), at)
    assert value.tolist() == numbers
    assert size.tolist() == [len(one) for one in written]


def test_a_number_that_does_not_end():
    block = Block(b"\xff" * 30)
    _, size = varints(block, np.array([0, 5]))
    assert size.tolist() == [0, 0]
    with pytest.raises(Broken):
        xplane_wire.varint(b"\xff" * 30, 0)
    with pytest.raises(Broken):
        xplane_wire.varint(b"\xff", 0)


@pytest.mark.parametrize("largest", [3, 60, 300, 20_000])
def test_the_places_of_records(largest):
    """What the records hold looks like records."""
    rng = random.Random(largest)
    sizes = [rng.randrange(largest) for _ in range(300_000 // largest)]
    held = [bytes(rng.choices(b"\x22\x22\x08\x02\xff\x81", k=size)) for size in sizes]
    data = b"".join(put(4, one) for one in held)
    for before in (b"", b"\x22\x01"):
        block = Block(before + data)
        start, end, stop = records(block, 0x22, len(before))
        assert stop == block.size
        assert [block.text(a, b) for a, b in zip(start, end, strict=True)] == held


@pytest.mark.parametrize("break_at", [0, 1, 1999, 3999])
@pytest.mark.parametrize("damage", [b"\x1a", b"\x22\xff\xff\xff\xff\xff\xff", b"\x22\xff\x7f"])
def test_records_stop_where_they_break(break_at, damage):
    good = [put(4, bytes([8, number % 128]) * (number % 30)) for number in range(4000)]
    whole = b"".join(good[:break_at])
    start, _, stop = records(Block(whole + damage + b"\x08" * 9), 0x22, 0)
    assert (len(start), stop) == (break_at, len(whole))


def walked(data: bytes, start: int, end: int) -> tuple[int, int, int] | None:
    """One field, without numpy: number, wire type and where it ends; None where it is broken."""
    try:
        number, wire, _, _, after = header(data[:end], start)
    except Broken:
        return None
    return (number, wire, after) if after <= end else None


def test_a_step_agrees_with_one_field_at_a_time():
    rng = random.Random(11)
    pieces = [put(rng.choice([1, 4, 15, 16, 99]), value) for value in (7, 2**40, 1.5, b"abc")]
    pieces += [
        b"\x0b\x01",
        b"\x00\x01",
        b"\x25abcd",
        b"\xff" * 12,
        b"\x22\x99",
        b"\x1a\xff\xff\x7f",
    ]
    data = b"".join(rng.choice(pieces) for _ in range(3000))
    block = Block(data)
    at = np.array(sorted(rng.sample(range(len(data)), 2000)))
    end = np.minimum(at + np.array([rng.randrange(1, 40) for _ in at]), len(data))
    for rows in (np.arange(len(at)), *np.split(np.arange(len(at)), 500)):
        found = step(block, at[rows], end[rows])
        for row, place in enumerate(rows.tolist()):
            true = walked(data, int(at[place]), int(end[place]))
            assert bool(found.ok[row]) == (true is not None), (at[place], end[place])
            if true is not None:
                given = found.number[row], found.wire[row], found.after[row]
                assert tuple(map(int, given)) == true


def test_fields_before_a_break_are_given():
    told: list[int] = []
    data = message((1, 5), (2, "text")) + b"\x1a\x7fcut"
    assert list(fields(data, lambda: told.append(1))) == [(1, 5), (2, b"text"), (3, b"cut")]
    assert told == [1]

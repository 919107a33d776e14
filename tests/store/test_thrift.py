"""Against the examples of Thrift's own text on its compact protocol, and by hand."""

import pytest

from strobe.store import thrift


def test_integers_are_as_long_as_they_must_be():
    assert thrift.unsigned(50399) == bytes([0xDF, 0x89, 0x03])
    assert [thrift.zigzag(n) for n in (0, -1, 1, -2, 63, -64, 64)] == [
        b"\x00", b"\x01", b"\x02", b"\x03", b"\x7e", b"\x7f", b"\x80\x01",
    ]  # fmt: skip


def test_fields_are_told_by_how_far_their_numbers_are_apart():
    given = thrift.struct({1: thrift.i32(1), 4: thrift.i64(-1), 5: thrift.binary(b"ab")})
    assert given.data == bytes([0x15, 0x02, 0x36, 0x01, 0x18, 0x02]) + b"ab\0"


@pytest.mark.parametrize(("count", "head"), [(0, b"\x0c"), (14, b"\xec"), (15, b"\xfc\x0f")])
def test_a_long_list_has_its_length_beside_it(count, head):
    nothing = thrift.struct({})
    assert thrift.listed([nothing] * count).data == head + b"\0" * count


def test_a_field_is_found_behind_others_of_any_kind():
    inner = thrift.struct(
        {2: thrift.binary(b"\x15" * 300), 3: thrift.listed([thrift.i32(-9)] * 20)}
    )
    given = thrift.struct({1: thrift.listed([inner] * 16), 2: inner, 3: thrift.i64(-(2**40))})
    assert thrift.integer_field(given.data, 3) == -(2**40)
    # Others also write truths (1 and 2), bytes (3), doubles (7), and numbers of fields in full.
    rest = bytes([0x11, 0x12, 0x13, 0xFF, 0x17]) + bytes(8) + bytes([0x06, 0x28, 0x0E, 0x00])
    assert thrift.integer_field(rest, 20) == 7
    with pytest.raises(ValueError, match="no field 4"):
        thrift.integer_field(given.data, 4)

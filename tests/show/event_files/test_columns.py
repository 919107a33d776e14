import numpy as np

from strobe.ingest.formats.xplane.wire import fields, signed
from strobe.show.event_files import columns, messages

TAGS = ["loss", "", "ü" * 70]
CODES = np.array([0, 2, 1, 0, 2])
STEPS = np.array([0, 127, 128, -1, 2**62])
VALUES = np.array([0.5, np.nan, -0.0, np.inf, 1e-3])


def one_by_one(number):
    tag, step, value = TAGS[CODES[number]], int(STEPS[number]), float(VALUES[number])
    inside = messages.text(1, tag) + messages.float32(2, value)
    return b"".join((
        messages.double(1, value), messages.integer(2, step),
        messages.data(5, messages.data(1, inside)),
    ))  # fmt: skip


def side_by_side(rows):
    inside = columns.concatenated(
        columns.texts(1, columns.Texts(TAGS), CODES[rows]), columns.floats(2, VALUES[rows])
    )
    message = columns.concatenated(
        columns.doubles(1, VALUES[rows]), columns.integers(2, STEPS[rows]),
        columns.message(5, columns.message(1, inside)),
    )  # fmt: skip
    return columns.joined(message, len(CODES[rows]))


def test_columns_are_the_messages_of_the_rows_one_after_the_other():
    out, begins = side_by_side(np.arange(5))
    expected = [one_by_one(number) for number in range(5)]
    assert out.tobytes() == b"".join(expected)
    assert begins.tolist() == [sum(map(len, expected[:n])) for n in range(5)]


def test_one_row_and_rows_of_one_length():
    for rows in ([0], [0, 0, 0], [1]):
        out, _ = side_by_side(np.array(rows))
        assert out.tobytes() == b"".join(map(one_by_one, rows))


def test_a_message_of_constants_has_its_length_in_every_row():
    column = columns.message(4, columns.constant(b"\x08\x01"))
    assert columns.joined(column, 3)[0].tobytes() == messages.data(4, b"\x08\x01") * 3


def test_fields_are_what_was_given():
    def broken():
        raise AssertionError

    data = messages.integer(2, -3) + messages.text(300, "é")
    (number, value), (last, text) = fields(data, broken)
    assert (number, signed(value), last, text) == (2, -3, 300, "é".encode())

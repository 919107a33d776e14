import numpy as np

from strobe.timeline.packet import packed, unpacked


def test_columns_come_back_and_begin_where_typed_arrays_may():
    columns = {
        "bytes": np.arange(5, dtype=np.uint8),
        "words": np.array([1, 65_535], dtype=np.uint16),
        "none": np.zeros(0, dtype=np.uint32),
        "numbers": np.array([0.5, -2.0]),
    }
    body = packed({"shift": 3}, columns)
    about, back = unpacked(body)
    assert about == {"shift": 3}
    for name, column in columns.items():
        assert back[name].dtype == column.dtype
        assert back[name].tolist() == column.tolist()
    assert (4 + int.from_bytes(body[:4], "little")) % 8 == 0

import io
import json

import numpy as np
import pytest

from strobe.collect.metrics.arrays import image_job, picture, png, tensor_job


def made(job):
    action, size = job
    record, blob = action()
    return record, blob, size


def test_a_png_is_read_back_by_another_library():
    Image = pytest.importorskip("PIL.Image")
    for channels, mode in ((1, "L"), (2, "LA"), (3, "RGB"), (4, "RGBA")):
        pixels = np.random.default_rng(0).integers(0, 256, (5, 7, channels), dtype=np.uint8)
        image = Image.open(io.BytesIO(png(pixels)))
        assert image.mode == mode
        assert np.array_equal(np.asarray(image).reshape(5, 7, channels), pixels)


@pytest.mark.parametrize(
    ("shape", "order", "expected"),
    [
        ((5, 7), "", (5, 7, 1)), ((3, 5, 7), "", (5, 7, 3)), ((5, 7, 3), "", (5, 7, 3)),
        ((1, 5, 7), "", (5, 7, 1)), ((10, 3, 5, 7), "", (10, 56, 3)),
        ((2, 5, 7, 3), "", (5, 14, 3)),
        ((5, 7, 3), "HWC", (5, 7, 3)), ((3, 7, 5), "CWH", (5, 7, 3)),
    ],
)  # fmt: skip
def test_the_dimensions_of_an_image(shape, order, expected):
    assert picture(np.zeros(shape, dtype=np.uint8), order).shape == expected


def test_numbers_become_bytes():
    values = np.array([[0.0, 0.5, 1.0, 2.0, -1.0, np.nan]])
    assert picture(values)[0, :, 0].tolist() == [0, 128, 255, 255, 0, 0]
    assert picture(np.array([[True, False]]))[0, :, 0].tolist() == [255, 0]


@pytest.mark.parametrize("shape", [(5,), (2, 2, 2, 2, 2), (6, 5, 7), (0, 4)])
def test_what_is_no_image_is_refused(shape):
    with pytest.raises(ValueError, match="image"):
        picture(np.zeros(shape))


def test_a_tensor_keeps_its_precision():
    for dtype in ("int64", "float64", "float16", "bool", "complex64", "uint8"):
        array = np.array([[1, 0, 3]], dtype=dtype)
        record, (data, suffix), _ = made(tensor_job("t", array, 1))
        assert suffix == "npy"
        assert np.array_equal(np.load(io.BytesIO(data)), array)
        assert (record["dtype"], json.loads(record["shape"])) == (dtype, [1, 3])


def test_bfloat16_is_stored_as_its_bits():
    torch = pytest.importorskip("torch")
    record, (data, _), _ = made(tensor_job("t", torch.tensor([1.0, -2.0], dtype=torch.bfloat16), 1))
    assert record["dtype"] == "bfloat16"
    assert np.load(io.BytesIO(data)).tolist() == [0x3F80, 0xC000]


def test_a_later_change_of_the_array_is_not_logged():
    array = np.zeros(3)
    job = tensor_job("t", array, 1)
    array += 1
    _, (data, _), _ = made(job)
    assert np.load(io.BytesIO(data)).tolist() == [0, 0, 0]


def test_bytes_of_a_file_stay_as_they_are():
    data = png(np.zeros((2, 2, 3), dtype=np.uint8))
    record, blob, _ = made(image_job("i", data, 1))
    assert blob == (data, "png")
    assert record["format"] == "png"
    with pytest.raises(ValueError, match="neither a PNG"):
        made(image_job("i", b"text", 1))

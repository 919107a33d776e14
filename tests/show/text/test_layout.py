from rich.cells import cell_len

from strobe.show.text.layout import cut, wrapped


def test_names_are_cut_in_their_middle():
    assert cut("aten::native_layer_norm", 11) == "aten:…_norm"
    assert cut("short", 11) == "short"
    assert cut("encoder.layers.0.mlp", 11, tail_ratio=0.7) == "enc…s.0.mlp"


def test_wide_characters_count_twice():
    for width in range(1, 12):
        assert cell_len(cut("矩阵乘法矩阵乘法", width)) <= width


def test_headings_wrap_at_underscores():
    assert wrapped("cumulative_share", 10) == ["cumulative", "share"]
    assert wrapped("all_reduce", 10) == ["all_reduce"]

from tests.analyse.drawings import DEVICE, MODEL, MODEL_ARGS
from tests.helpers import make_run
from tests.show.text.test_summary import assert_chinese, page


def section(text, title):
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith(title))
    return lines[at : lines.index("", at)]


def test_on_a_device_operators_and_modules_are_ranked_by_its_time(tmp_path):
    """Two steps; 970 ns of work on the device."""
    drawing = DEVICE.replace("130..190     step=1", "130..190  step=1  scope=net")
    text = page(make_run(tmp_path, drawing))
    assert section(text, "Operators") == [
        "Operators, device time, host self time and calls per step",
        "  record_param_comms                175 ns     5 ns    36%  #####           0.5×",
        "  aten::mm                          100 ns    25 ns    21%  ###             0.5×",
        "  aten::add                          10 ns    10 ns   2.1%                  0.5×",
    ]
    assert section(text, "Modules") == [
        "Modules, own device time and host time per step",
        "  net.fc                                100 ns     0 ns    21%  ###",
        "  net                                    10 ns    10 ns   2.1%",
    ]


def test_without_a_device_by_self_time(tmp_path):
    text = page(make_run(tmp_path, MODEL, MODEL_ARGS))
    assert section(text, "Operators")[:2] == [
        "Operators, self time and calls per step",
        "  aten::mm                                     180 ns    38%  #####           1×",
    ]


def test_in_chinese(tmp_path, monkeypatch):
    monkeypatch.setenv("STROBE_LANG", "zh")
    drawing = DEVICE.replace("130..190     step=1", "130..190  step=1  scope=net")
    text = page(make_run(tmp_path / "device", drawing))
    untranslated = (str(tmp_path), "train.py --name", "ran to its end")
    assert_chinese(text, *untranslated)
    assert section(text, "核函数（kernel）")[:2] == [
        "核函数（kernel）：每个迭代的设备时间和调用次数",
        "  gemm ← mm                                250 ns    52%  #######           1 次",
    ]
    assert section(text, "算子") == [
        "算子：每个迭代的设备时间、主机自身时间和调用次数",
        "  record_param_comms              175 ns     5 ns    36%  #####           0.5 次",
        "  aten::mm                        100 ns    25 ns    21%  ###             0.5 次",
        "  aten::add                        10 ns    10 ns   2.1%                  0.5 次",
    ]
    assert section(text, "模块")[0] == "模块：每个迭代的自身设备时间和主机时间"
    text = page(
        make_run(tmp_path / "model", MODEL.replace("scope=net     ", "scope=   "), MODEL_ARGS)
    )
    assert_chinese(text, *untranslated)
    assert section(text, "模块")[0] == "模块：每个迭代中自身算子的时间"
    assert any(line.startswith("  （整个模型）  ") for line in section(text, "模块"))

from tests.analyse.drawings import DEVICE, MODEL, MODEL_ARGS
from tests.helpers import make_run
from tests.show.test_summary import page


def section(text, title):
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith(title))
    return lines[at : lines.index("", at)]


def test_on_a_device_operators_and_modules_are_ranked_by_its_time(tmp_path):
    """Two steps; 970 ns of work on the device."""
    drawing = DEVICE.replace("130..190     step=1", "130..190  step=1  scope=net")
    text = page(make_run(tmp_path, drawing))
    assert section(text, "Operators") == [
        "Operators, device time per step, host self time",
        "  record_param_comms               175 ns     5 ns    36%  #####           0.5 ×",
        "  aten::mm                         100 ns    25 ns    21%  ###             0.5 ×",
        "  aten::add                         10 ns    10 ns   2.1%                  0.5 ×",
    ]
    assert section(text, "Modules") == [
        "Modules, own device time per step, host time",
        "  net.fc                                100 ns     0 ns    21%  ###",
        "  net                                    10 ns    10 ns   2.1%",
    ]


def test_without_a_device_by_self_time(tmp_path):
    text = page(make_run(tmp_path, MODEL, MODEL_ARGS))
    assert section(text, "Operators")[:2] == [
        "Operators, self time per step",
        "  aten::mm                                    180 ns    38%  #####           1 ×",
    ]

import io

import pytest
from rich.cells import cell_len

from strobe.analyse.opened import OpenedRun
from strobe.show.text.step_summary import left_out_steps
from strobe.show.text.summary import print_summary
from tests.analyse.drawings import DEVICE, MODEL, MODEL_ARGS
from tests.analyse.test_steps import TWO_STEPS
from tests.helpers import make_run


def page(run, width=80):
    out = io.StringIO()
    with OpenedRun(run) as opened:
        opened.run.manifest.command = ["train.py", "--name", "a b"]
        print_summary(opened, out, width)
    return out.getvalue()


def test_the_step_to_scale_and_its_parts(tmp_path):
    lines = page(make_run(tmp_path, TWO_STEPS)).splitlines()
    assert lines[0].startswith("train.py --name 'a b'") and lines[0].endswith("finished")
    assert lines[3] == "One step takes 100 ns on average; median 100 ns, 95% below 100 ns"
    assert lines[4] == "all 2 counted steps were recorded in full, which makes steps slower"
    assert lines[5] == "The largest part, 35%, is the gap between steps, mostly waiting for data"
    assert any(line.startswith("A communication ") for line in lines)
    assert lines[6] == "g" * 28 + "F" * 20 + "B" * 26 + "A" * 2 + "U" * 3 + "r"
    assert lines[8:12] == [
        "  part                     mean   median      p95  share",
        "g gap                     35 ns    35 ns    40 ns    35%  #####",
        "    waiting for data      20 ns    20 ns    29 ns    20%  ###",
        "F forward                 25 ns    25 ns    30 ns    25%  ####",
    ]


def test_a_framework_whose_version_a_trace_does_not_tell(tmp_path):
    run = make_run(tmp_path / "x", TWO_STEPS)
    run.manifest.ranks[0].frameworks = {"torch": "", "cuda": "12.4"}
    assert page(run, 160).splitlines()[1].endswith("x · torch · cuda 12.4")


def test_passes_that_a_trace_does_not_tell_apart(tmp_path):
    drawing = """0/steps step:step~1 0..100 step=1
                 0/steps phase:gap  0..20  step=1
                 0/steps phase:rest 20..100 step=1"""
    assert "does not tell apart" in page(make_run(tmp_path, drawing)).splitlines()[4]


def test_operators_modules_and_what_was_recorded(tmp_path):
    text = page(make_run(tmp_path, MODEL, MODEL_ARGS))
    assert "  aten::mm  " in text and "  net.fc  " in text
    assert "  steps      2, 1 of them with every operator (1 window)\n" in text
    assert "\x1b" not in text


def test_problems_are_told(tmp_path):
    problems = {"rank": [0], "source": ["window-1"], "what": ["events were lost"], "count": [3]}
    text = page(make_run(tmp_path, TWO_STEPS, {"problems": problems}))
    assert "  events were lost (3 times): rank 0, window-1\n" in text


def test_a_run_without_steps_says_so_and_what_to_do(tmp_path):
    text = page(make_run(tmp_path, "0/main op:a 0..10"))
    assert "no training steps were found" in text and "strobe.step()" in text


@pytest.mark.parametrize("width", [60, 80, 160])
def test_the_page_keeps_to_its_width(tmp_path, width):
    drawing = MODEL.replace("net.fc", "net." + "encoder." * 12 + "注意力")
    text = page(make_run(tmp_path, drawing, MODEL_ARGS), width)
    assert max(cell_len(line) for line in text.splitlines()) <= width


def test_devices_to_scale_and_their_kernels(tmp_path):
    name = "void~at::native::gemm_kernel<4,~at::Half>(int,~char*)"
    lines = page(make_run(tmp_path, DEVICE.replace("kernel:gemm ", f"kernel:{name} "))).splitlines()
    at = lines.index("Devices, time in steps")
    assert lines[at + 1 : at + 7] == [
        "           length compute     comm.    memory      idle",
        "  cuda:0  2.00 µs     26% C     12% x    2.5% m     59% .  CCCCCxxxm............",
        "",
        "Kernels, device time per step",
        "  gemm_kernel ← mm                          250 ns    52%  #######           1 ×",
        "  nccl ← record_param_comms                 175 ns    36%  #####           0.5 ×",
    ]


def test_of_many_devices_the_first_are_shown(tmp_path):
    drawing = "\n".join(f"0/s7@cuda:{n} kernel:k 0..10" for n in range(12))
    text = page(make_run(tmp_path, drawing))
    assert "Devices, first to last kernel\n" in text
    assert text.count(" 100% C") == 8 and "  and 4 more: strobe show RUN device-time\n" in text


@pytest.mark.parametrize("width", [40, 60, 80, 160])
def test_devices_keep_to_the_width(tmp_path, width):
    drawing = DEVICE.replace("cuda:0", "accelerator:0").replace("gemm", "深層学習" * 12)
    drawing += "    1/s7@accelerator:1  kernel:k  0..10\n"
    text = page(make_run(tmp_path, drawing), width)
    told = text[text.index("Devices") : text.index("Operators")]
    assert max(cell_len(line) for line in told.splitlines()) <= max(width, 53)


def test_a_device_alone_changes_nothing_of_a_page_without_one(tmp_path):
    assert "Devices" not in page(make_run(tmp_path, MODEL, MODEL_ARGS))


def test_one_step_has_no_average(tmp_path):
    lines = page(make_run(tmp_path, "0/steps step:step~1 0..100 step=1")).splitlines()
    assert lines[3] == "One step was measured: 100 ns"


def test_averages_over_steps_that_were_recorded_in_full_say_so():
    def text(count, slowed, left_out=0):
        missing = {"slowed": left_out, "warm_up": 0}
        return left_out_steps({"count": count, "counted_slowed": slowed, "left_out": missing})

    assert text(20, 0) == ""
    assert text(20, 20) == ("all 20 counted steps were recorded in full, which makes steps slower")
    assert text(8, 1).startswith("1 of the 8 counted steps was recorded in full")
    assert text(15, 0, 5) == "15 of 20 steps counted; left out: 5 slowed by full recording"

import io
import re

import pytest
from rich.cells import cell_len

from strobe.reading import OpenedRun
from strobe.show.text.step_summary import counting_notes
from strobe.show.text.summary import print_summary
from tests.analyse.drawings import DEVICE, MODEL, MODEL_ARGS
from tests.analyse.tables.steps.test_steps import TWO_STEPS
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
    assert lines[3] == (
        "One step takes 100 ns on average. The median is 100 ns, and p95 is 100 ns."
    )
    assert lines[4] == "All 2 counted steps were recorded in full, which slows them down."
    assert lines[5] == "The largest part, 35%, is the gap between steps, mostly waiting for data."
    assert any(line.startswith("A communication ") for line in lines)
    assert lines[6] == "g" * 28 + "F" * 20 + "B" * 26 + "A" * 2 + "U" * 3 + "r"
    assert lines[8:12] == [
        "  part                     mean   median      p95  share",
        "g gap                     35 ns    35 ns    40 ns    35%  #####",
        "    waiting for data      20 ns    20 ns    29 ns    20%  ###",
        "F forward                 25 ns    25 ns    30 ns    25%  ####",
    ]


def test_a_framework_whose_version_is_not_in_the_trace(tmp_path):
    run = make_run(tmp_path / "x", TWO_STEPS)
    run.manifest.ranks[0].frameworks = {"torch": "", "cuda": "12.4"}
    assert page(run, 160).splitlines()[1].endswith("x · torch · cuda 12.4")


def test_passes_that_a_trace_does_not_divide(tmp_path):
    drawing = """0/steps step:step~1 0..100 step=1
                 0/steps phase:gap  0..20  step=1
                 0/steps phase:rest 20..100 step=1"""
    assert page(make_run(tmp_path, drawing)).splitlines()[4:6] == [
        "Most of a step, 80%, is computation that the trace does not divide into forward",
        "and backward.",
    ]


def test_operators_modules_and_what_was_recorded(tmp_path):
    text = page(make_run(tmp_path, MODEL, MODEL_ARGS))
    assert "  aten::mm  " in text and "  net.fc  " in text
    assert "  steps      2, 1 of them with all operators (1 window)\n" in text
    assert "\x1b" not in text


def test_problems_are_shown(tmp_path):
    problems = {"rank": [0], "source": ["window-1"], "what": ["events were lost"], "count": [3]}
    text = page(make_run(tmp_path, TWO_STEPS, {"problems": problems}))
    assert "  events were lost (3 times): rank 0, window-1\n" in text


def test_a_run_without_steps_says_so_and_what_to_do(tmp_path):
    text = page(make_run(tmp_path, "0/main op:a 0..10"))
    assert "No training steps found." in text and "strobe.step()" in text


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
        "             time compute     comm.    memory      idle",
        "  cuda:0  2.00 µs     26% C     12% x    2.5% m     59% .  CCCCCxxxm............",
        "",
        "Kernels, device time and calls per step",
        "  gemm_kernel ← mm                           250 ns    52%  #######           1×",
        "  nccl ← record_param_comms                  175 ns    36%  #####           0.5×",
    ]


def test_of_many_devices_the_first_are_shown(tmp_path):
    drawing = "\n".join(f"0/s7@cuda:{n} kernel:k 0..10" for n in range(12))
    text = page(make_run(tmp_path, drawing))
    assert "Devices, from the first to the last kernel\n" in text
    assert text.count(" 100% C") == 8 and "  and 4 more: strobe show RUN device-time\n" in text


@pytest.mark.parametrize("width", [40, 60, 80, 160])
def test_devices_keep_to_the_width(tmp_path, width):
    drawing = DEVICE.replace("cuda:0", "accelerator:0").replace("gemm", "深層学習" * 12)
    drawing += "    1/s7@accelerator:1  kernel:k  0..10\n"
    text = page(make_run(tmp_path, drawing), width)
    section = text[text.index("Devices") : text.index("Operators")]
    assert max(cell_len(line) for line in section.splitlines()) <= max(width, 53)


def test_a_device_alone_changes_nothing_of_a_page_without_one(tmp_path):
    assert "Devices" not in page(make_run(tmp_path, MODEL, MODEL_ARGS))


def test_one_step_has_no_average(tmp_path):
    lines = page(make_run(tmp_path, "0/steps step:step~1 0..100 step=1")).splitlines()
    assert lines[3] == "One step was measured: 100 ns."


def test_averages_over_steps_that_were_recorded_in_full_say_so():
    def notes(count, slowed, left_out=0, warm_up=0):
        missing = {"slowed": left_out, "warm_up": warm_up}
        return counting_notes({"count": count, "counted_slowed": slowed, "left_out": missing})

    assert notes(20, 0) == []
    assert notes(20, 20) == ["All 20 counted steps were recorded in full, which slows them down."]
    assert notes(1, 1) == ["The only counted step was recorded in full, which slows it down."]
    assert notes(8, 1)[0].startswith("1 of the 8 counted steps was recorded in full")
    assert notes(8, 2)[0].startswith("2 of the 8 counted steps were recorded in full")
    assert notes(15, 0, 5) == [
        "Averages cover 15 of 20 steps (excluded: 5 slowed by full recording)."
    ]
    assert notes(15, 1, 2, 3) == [
        "Averages cover 15 of 20 steps (excluded: 3 warm-up, 2 slowed by full recording).",
        "1 of the 15 counted steps was recorded in full, which slows it down.",
    ]


def counters(**values):
    """Two values of each counter, a second apart."""
    count = 2 * len(values)
    return {"counters": {
        "rank": [0] * count, "ts_ns": [0, 1_000_000_000] * len(values),
        "name": [name for name in values for _ in range(2)],
        "value": [value for pair in values.values() for value in pair],
    }}  # fmt: skip


MACHINE = counters(
    process_cpu_ns_total=(0, 1_250_000_000), cores_busy_milli=(1500, 1500),
    core_0_busy_permille=(900, 900), core_1_busy_permille=(600, 600),
    rss_bytes=(2 << 20, 1 << 20), page_faults_total=(0, 12345), page_faults_major_total=(0, 1),
    context_switches_total=(0, 67),
)  # fmt: skip


def test_the_machine(tmp_path):
    drawing = TWO_STEPS + "0/main gc:gc~0 10..30\n"
    lines = page(make_run(tmp_path, drawing, MACHINE)).splitlines()
    at = lines.index("Machine")
    assert lines[at + 1 : at + 6] == [
        "  CPU        1.25 cores used by training, 1.50 of 2 cores busy in total",
        "  memory     2.00 MiB resident at peak, 1.00 MiB at the end",
        "  system     page faults 12,345/s, major page faults 1/s, context switches 67/s",
        "  Python GC  1 pause, 20 ns in total, longest 20 ns",
        "",
    ]


def test_how_a_run_ended(tmp_path):
    run = make_run(tmp_path, "0/steps step:step~1 0..9 step=1\n1/steps step:step~1 0..9 step=1")
    run.manifest.state, run.manifest.ended_unix_ns = "failed", 12_000_000_000
    run.manifest.exit_code, run.manifest.ranks[1].state = 3, "killed"
    lines = page(run).splitlines()
    assert lines[0].endswith("  failed after 12.0 s")
    assert "  ended      ended by an exception or a non-zero exit code, exit code 3" in lines
    assert "  except     rank 0 finished, rank 1 killed" in lines
    assert "  steps      2 across all ranks, without operators" in lines


def outliers(folder, count):
    """What the page says of thirty steps of 100 ns, of which so many take 1 µs."""
    drawing, now = [], 0
    for step in range(1, 31):
        end = now + (1000 if 10 < step <= 10 + count else 100)
        drawing.append(f"0/steps step:step~{step} {now}..{end} step={step}")
        now = end
    paragraphs = page(make_run(folder, "\n".join(drawing))).split("\n\n")
    return next(p for p in paragraphs if "much longer" in p or "远长于" in p).replace("\n", " ")


def test_outliers(tmp_path, monkeypatch):
    assert outliers(tmp_path / "one", 1) == (
        "1 of 27 steps took much longer than the median: step 11 (1.00 µs)."
    )
    assert outliers(tmp_path / "two", 2) == (
        "2 of 27 steps took much longer than the median: step 11 (1.00 µs), step 12 (1.00 µs)."
    )
    assert outliers(tmp_path / "six", 6).startswith(
        "6 of 27 steps took much longer than the median. The longest are step "
    )
    monkeypatch.setenv("STROBE_LANG", "zh")
    assert outliers(tmp_path / "chinese", 2) == (
        "27 个迭代中有 2 个远长于中位数：迭代 11（1.00 µs）、迭代 12（1.00 µs）。"
    )


# Two English words in a row. Texts from analyse/, names and commands are not translated.
_ENGLISH = re.compile(r"[A-Za-z]{2,}[,;:]? +[a-z]{2,}")


def assert_chinese(text, *untranslated, width=80):
    assert max(cell_len(line) for line in text.splitlines()) <= width
    for each in untranslated:
        text = text.replace(each, "")
    assert re.search("[一-龥]", text) and not _ENGLISH.findall(text)


def test_in_chinese(tmp_path, monkeypatch):
    monkeypatch.setenv("STROBE_LANG", "zh")
    problems = {"rank": [0], "source": ["window-1"], "what": ["events were lost"], "count": [3]}
    extra = MODEL_ARGS | MACHINE | {"problems": problems}
    run = make_run(tmp_path / "model", MODEL + "0/main gc:gc~0 10..30\n", extra)
    run.manifest.ended_unix_ns = 12_000_000_000
    text = page(run)
    assert_chinese(text, str(tmp_path), "train.py --name", "ran to its end", "events were lost")
    lines = text.splitlines()
    assert lines[0].endswith("  已完成，用时 12.0 s") and cell_len(lines[0]) == 80
    at = lines.index("机器")
    assert lines[at + 1 : at + 5] == [
        "  CPU        训练使用 1.25 个核，整机 2 个核中共 1.50 个繁忙",
        "  内存       常驻内存峰值 2.00 MiB，结束时 1.00 MiB",
        "  系统       缺页 12,345 次/秒、major 缺页 1 次/秒、上下文切换 67 次/秒",
        "  垃圾回收   1 次暂停，共 20 ns，最长 20 ns",
    ]
    assert "  迭代       2 个，其中 1 个记录了所有算子（1 个窗口）" in lines
    assert "  events were lost（3 次）：rank 0，window-1" in lines


def test_steps_in_chinese(tmp_path, monkeypatch):
    monkeypatch.setenv("STROBE_LANG", "zh")
    text = page(make_run(tmp_path, TWO_STEPS))
    assert_chinese(text, str(tmp_path), "train.py --name", "ran to its end")
    lines = text.splitlines()
    assert lines[3] == "每个迭代（step）平均用时 100 ns。中位数为 100 ns，p95 为 100 ns。"
    at = next(number for number, line in enumerate(lines) if line.startswith("  部分"))
    assert lines[at : at + 4] == [
        "  部分                     平均   中位数      p95   占比",
        "g 迭代间隙                35 ns    35 ns    40 ns    35%  #####",
        "    等待数据              20 ns    20 ns    29 ns    20%  ###",
        "F 前向                    25 ns    25 ns    30 ns    25%  ####",
    ]
    assert_chinese(page(make_run(tmp_path / "none", "0/main op:a 0..10")), str(tmp_path),
                   "train.py --name", "ran to its end")  # fmt: skip


def test_devices_in_chinese(tmp_path, monkeypatch):
    monkeypatch.setenv("STROBE_LANG", "zh")
    drawing = DEVICE + "    1/s7@cuda:1  kernel:k  0..10  step=1\n"
    text = page(make_run(tmp_path, drawing))
    assert_chinese(text, str(tmp_path), "train.py --name", "ran to its end")
    lines = text.splitlines()
    at = lines.index("设备：迭代中的时间")
    assert lines[at + 1 : at + 4] == [
        "                    时长    计算      通信      拷贝      空闲",
        "  rank 0 cuda:0  2.00 µs     26% C     12% x    2.5% m     59% .  CCCxxm........",
        "  rank 1 cuda:1    10 ns    100% C      0% x      0% m      0% .  CCCCCCCCCCCCCC",
    ]
    many = "\n".join(f"0/s7@cuda:{n} kernel:k 0..10" for n in range(12))
    text = page(make_run(tmp_path / "many", many))
    assert_chinese(text, str(tmp_path), "train.py --name", "ran to its end", "strobe show RUN")
    assert "  另有 4 个设备：strobe show RUN device-time\n" in text

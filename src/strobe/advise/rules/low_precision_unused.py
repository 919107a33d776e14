"""Matrix products run in float32 on a device that is much faster in lower precision.

## What it is
Since 2017 devices have units for matrix products in half precision (tensor cores, matrix cores)
that are four to sixteen times as fast as float32. A model trained in plain float32 leaves them
unused.

## How it is judged
The names of kernels show the dtype in which they multiply. The time of those in float32 could at
least be halved: half as many bytes move, and the faster units do the rest. The step gains less if
the host cannot keep up. Memory-bound kernels (activations, normalization) gain too, but are not
counted, so the gain is a cautious estimate. A finding needs 5% of step time.

## How to fix
Put `with torch.autocast("cuda", dtype=torch.bfloat16):` around the forward pass and the loss. With
float16, scale the loss as well: `torch.amp.GradScaler`. On NVIDIA devices from 2020 on (A100, RTX
30), `torch.set_float32_matmul_precision("high")` is a single line, and everything except matrix
products stays in float32.
"""

import re

from strobe.advise.evidence.device_model import device_times, no_device
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.thresholds import SMALLEST_SHARE
from strobe.advise.training import Training
from strobe.frameworks import Framework
from strobe.messages import message
from strobe.units import percent

NAME = "low-precision-unused"


# Half the bytes: what even a memory-bound product saves.
GAIN_RATIO = 0.5

# NVIDIA devices without tensor cores: Kepler, Maxwell, Pascal, and GTX of any year.
_WITHOUT_UNITS = re.compile(r"GTX|TITAN X|Tesla [KMP]\d|\b[KMP]\d{1,3}\b|Quadro [KMP]\d")
# NVIDIA devices with TF32, which takes a single line to use.
_WITH_TF32 = re.compile(r"\b[ABHL]\d{1,3}\b|H\d00|RTX (?:A|[3-9]\d)|RTX PRO|GB\d00")

_KERNELS = """
    SELECT w.rank, w.device, w.name, a.precision, w.operator, w.dur_ns
    FROM device_work w JOIN kernel_args a ON a.event_id = w.id
    ASOF JOIN device_steps s ON s.rank = w.rank AND s.device = w.device AND s.ts_ns <= w.ts_ns
    WHERE w.ts_ns < s.end_ns AND w.kind = 'kernel'
"""


def check(training: Training) -> Verdict:
    times = device_times(training)
    if not times:
        return no_device(training)
    products = training.run.sql(f"""
        SELECT rank, device, precision, sum(dur_ns)::BIGINT FROM ({_KERNELS})
        WHERE precision IS NOT NULL GROUP BY ALL
    """).fetchall()
    if not products:
        return CannotTell(
            message("low-precision-unused.types-unknown"),
            message("low-precision-unused.check-manually"),
        )
    names = _device_names(training)
    if names and all(_WITHOUT_UNITS.search(name) for name in names):
        return Clear(message("low-precision-unused.no-units", device=names[0]))
    in_float32 = {
        (rank, device): ns for rank, device, precision, ns in products if precision == "float32"
    }
    total_ns = sum(time.total_ns for time in times)
    without_ns = sum(
        time.without_device_work_ns(
            GAIN_RATIO * min(in_float32.get((time.rank, time.device), 0), time.compute_ns)
        )
        for time in times
    )
    share = 1 - without_ns / max(1, total_ns)
    values = {
        "products": percent(sum(in_float32.values()) / max(1, total_ns)),
        "share": percent(share),
    }
    if share < SMALLEST_SHARE:
        return Clear(message("low-precision-unused.small", **values))
    return Finding(
        title=message("low-precision-unused.title", **values),
        why=message("low-precision-unused.why", **values),
        share=share,
        expected_speedup=total_ns / max(1, without_ns),
        fixes=_fixes(training.framework, names),
        evidence=(Evidence("kernels", tuple(_longest(training))),),
        where=_where(training),
        is_certain=False,
    )


def _device_names(training: Training) -> list[str]:
    """The names without their numbers: "Tesla V100" of "cuda:0 Tesla V100"."""
    devices = [device for rank in training.run.manifest.ranks for device in rank.devices]
    return [device.partition(" ")[2] for device in devices if " " in device]


def _fixes(framework: Framework, names: list[str]) -> tuple[str, ...]:
    if any(_WITH_TF32.search(name) for name in names):
        return (fix("use-tf32", framework), fix("use-bfloat16", framework))
    if any("V100" in name or "T4" in name or "RTX 20" in name for name in names):
        return (fix("use-float16", framework),)
    return (fix("use-bfloat16", framework),)


def _longest(training: Training) -> list[dict[str, object]]:
    return training.rows(f"""
        SELECT name, any_value(operator) AS operator, precision, count(*) AS calls,
               sum(dur_ns)::BIGINT AS total_ns
        FROM ({_KERNELS}) WHERE precision = 'float32'
        GROUP BY name, precision ORDER BY total_ns DESC, name LIMIT 10
    """)


def _where(training: Training) -> str | None:
    place = training.place("model call")
    return str(place) if place else None

"""Input pipelines, drawn: waits of the loop, batches of its loader, lengths of its queues."""

MS = 1_000_000


def batches(*rows: dict, loader: int = 1) -> dict[str, dict[str, list]]:
    """Extra columns for make_run; times in ms. `batch` counts within its pass."""
    whole = [
        {
            "rank": 0,
            "loader": loader,
            "worker": row.get("worker", -1),
            "batch": row.get("batch"),
            "ts_ns": int(row["ts"] * MS),
            "idle_ns": row.get("idle"),
            "fetch_ns": int(row.get("fetch", 0) * MS),
            "fetch_cpu_ns": int(row.get("cpu", 0) * MS),
            "fetch_queued_ns": int(row.get("queued", 0) * MS),
            "collate_ns": int(row.get("collate", 0) * MS),
            "send_ns": int(row["send"] * MS) if "send" in row else None,
            "items": 8,
            "bytes": None,
        }
        for row in rows
    ]
    return {"batches": columns(whole)}


def queues(*rows: tuple[float, str, int, int | None]) -> dict[str, dict[str, list]]:
    """(ms, name, length, capacity)"""
    return {
        "queues": columns([
            {"rank": 0, "ts_ns": int(ts * MS), "name": name, "length": length, "capacity": capacity}
            for ts, name, length, capacity in rows
        ])
    }  # fmt: skip


def wait(start: float, end: float, step: int, loader: int = 1, is_start: bool = False) -> str:
    """A wait of the loop, in ms."""
    name = f"loader~{loader}:~Items,~2~workers" + (",~starting" if is_start else "")
    return f"0/main data:{name} {int(start * MS)}..{int(end * MS)} step={step}\n"


def step(number: int, start: float, end: float, gap: float) -> str:
    """A step whose first `gap` ms are its gap."""
    first, middle, last = (int(ms * MS) for ms in (start, start + gap, end))
    return (
        f"0/steps step:step~{number} {first}..{last} step={number}\n"
        f"0/steps phase:gap {first}..{middle} step={number}\n"
        f"0/steps phase:forward {middle}..{last} step={number}\n"
    )


def columns(rows: list[dict]) -> dict[str, list]:
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}

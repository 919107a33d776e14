"""What XProf's overview page concludes from the windows of a run: `python xprof_says.py RUN`.

Run by a Python that has xprof. Prints one line; of several windows, that of the largest.
"""

import gzip
import json
import sys
import tempfile
from pathlib import Path


def main() -> None:
    from xprof.convert import raw_to_tool_data

    packed = max(Path(sys.argv[1]).glob("rank_0/raw/window-*.xplane.pb.gz"),
                 key=lambda path: path.stat().st_size, default=None)  # fmt: skip
    if packed is None:
        print("no window was recorded")
        return
    with tempfile.TemporaryDirectory() as folder:
        plane = Path(folder) / "host.xplane.pb"
        plane.write_bytes(gzip.decompress(packed.read_bytes()))
        data, _ = raw_to_tool_data.xspace_to_tool_data([str(plane)], "overview_page", {})
    told = [(table.get("p") or {}).get("input_conclusion") for table in json.loads(data)
            if isinstance(table, dict)]  # fmt: skip
    print(next(filter(None, told), "nothing"))


if __name__ == "__main__":
    main()

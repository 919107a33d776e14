import json
import subprocess
import sys
from pathlib import Path

import pytest

import strobe as package

# Edits its own file, as somebody would from elsewhere.
TRAIN = """
import json, sys, time, torch, strobe
torch.set_num_threads(1)
net = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
monitor = strobe.DynamicProfilerMonitor(cfg_path="dyn", output_path="data")
for step in range(1, 2001):
    optimizer.zero_grad()
    net(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
    monitor.step_end()
    time.sleep(0.01)
    if step == 150:
        config = json.load(open("dyn/profiler_config.json"))
        config.update(start_step=600, stop_step=601, profiler_level=0)
        json.dump(config, open("dyn/profiler_config.json", "w"))
    if step == 620:
        break
print(monitor.run_path)
"""


@pytest.mark.slow
def test_the_file_is_written_watched_and_obeyed(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    for run, command in (("data", []), ("run", ["-m", "strobe", "run", "-q", "-o", "run"])):
        subprocess.run([sys.executable, *command, "train.py"], cwd=tmp_path, check=True,
                       capture_output=True, timeout=240)  # fmt: skip
        facts = (tmp_path / run / "rank_0" / "raw" / "facts.jsonl").read_text().splitlines()
        asked = [fact for line in facts if (fact := json.loads(line))["type"] == "asked window"]
        assert asked[0]["steps"] == [600, 602] and asked[0]["by"] == "profiler_config.json"
        with package.open_run(tmp_path / run) as opened:
            # Under `strobe run`, its own first window is there too.
            query = "select step from steps where is_recorded and step > 20 order by 1"
            assert opened.sql(query).fetchall() == [(600,), (601,)]
        (Path(tmp_path) / "dyn" / "profiler_config.json").unlink()

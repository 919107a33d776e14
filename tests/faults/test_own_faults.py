"""A fault in any hook of ours: training goes on, bit for bit, and one line says what broke."""

import json
from pathlib import Path

import pytest

from tests.faults.processes import TRAINING, python, recorded, write

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

# Where a RuntimeError is put: class (or module) and function, and how often it is let through.
# In a hook that is one function with its wrapper, it is put where that leaves its mark.
HOOKS = [
    ("torch.hooks:TorchHooks.forward_began", 3),
    ("torch.hooks:TorchHooks.forward_began", 0),
    ("torch.hooks:TorchHooks.forward_ended", 3),
    ("torch.hooks:TorchHooks.takes_part", 0),
    ("torch.hooks:TorchHooks.know_loader", 0),
    ("torch.hooks:TorchHooks.know_optimizer", 0),
    ("torch.data:DataLoaders._number", 0),
    ("torch.data:DataLoaders.looked", 3),
    ("torch.data:DataLoaders.came", 3),
    ("torch.data:settings_of", 0),
    ("torch.batch_timing:Timing.end", 3),
    ("torch.batch_timing:Timing.packed", 3),
    ("torch.hooks:wrap_update", 0),
    ("torch.hooks:hook_waits", 0),
    ("mark:DATA_ASKED", 3),
    ("mark:DATA_CAME", 3),
    ("mark:BACKWARD_BEGAN", 3),
    ("mark:BACKWARD_ENDED", 3),
    ("mark:UPDATE_BEGAN", 3),
    ("mark:UPDATE_ENDED", 3),
    ("mark:ZERO_GRAD", 3),
    ("windows:Windows.begin", 0),
    ("windows:Windows.end", 0),
    ("torch.names:Names.label", 0),
    ("torch.names:Names._add_tree", 0),
    ("torch.spans:OpenSpans.begin", 0),
    ("window_export:Exporter._export", 0),
    ("torch.windows:compress", 0),
    ("recorder:Recorder.begin_training", 0),
    ("recorder:Recorder._introduce", 0),
    ("journal:Journal.mark", 50),
    ("journal:Journal.string", 3),
    ("host.sampler:Sampler._sample", 0),
    ("host.sampler:Sampler._sample_cores", 1),
    ("ranks:claim", 0),
]

# Forks a child for each hook, so that torch is imported once. A child hooks in by itself: the
# server has the session of `strobe run` in its environment but not yet the hooks.
SERVER = """
import atexit, functools, importlib, json, os, sys, tempfile, time
sys.modules["strobe.collect.start.autostart"].recorder.current = None  # the server records nothing
{training}
from torch.utils.data import DataLoader
from strobe.collect.start import autostart
from strobe.model.journal import Mark
train(1)  # torch imports much of itself only now

def put_fault(where, passes):
    module, path = where.split(":")
    code = None
    if module == "mark":
        code, module, path = Mark[path], "journal", "Journal.mark"
    owner = importlib.import_module("strobe.collect." + module)
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    original, calls = getattr(owner, name), [0]

    @functools.wraps(original)
    def broken(*args, **kwargs):
        if code is None or args[1] == code:
            calls[0] += 1
            if calls[0] > passes:
                raise RuntimeError("put here by a test")
        return original(*args, **kwargs)

    setattr(owner, name, broken)

def child(number, hook):
    if hook is not None:
        put_fault(*hook)
        autostart.recorder.current = None
        session = json.loads(os.environ["STROBE_SESSION"])
        session["run"] += f"/{{number}}"
        os.environ["STROBE_SESSION"] = json.dumps(session)
        autostart.start_from_environment()
    torch.manual_seed(0)
    for x in DataLoader(torch.randn(48, 8), batch_size=4):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
    print(loss.item(), flush=True)
    deadline = time.monotonic() + 10
    while hook is not None and "Sampler" in hook[0] and time.monotonic() < deadline:
        if os.fstat(2).st_size:  # its thread has said so
            break
        time.sleep(0.001)
    if hook is not None and hook[0].startswith("torch_"):
        sys.exit(3)  # a profiler left running crashes the process here
    atexit._run_exitfuncs()
    os._exit(3)  # the rest of the way out takes torch a second

def tell(pid, out, err):
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    out.seek(0), err.seek(0)
    print(json.dumps([code, out.read(), err.read()]), flush=True)

alive = []
for number, hook in enumerate(json.loads(sys.argv[1])):
    out, err = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
    pid = os.fork()
    if not pid:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        child(number, hook)
    alive.append((pid, out, err))
    if len(alive) == 2:
        tell(*alive.pop(0))
for each in alive:
    tell(*each)
"""


def test_a_fault_in_any_hook_ends_the_recording_only(tmp_path: Path):
    script = write(tmp_path, SERVER.format(training=TRAINING))
    hooks = [None, *HOOKS]
    done = python(*recorded(tmp_path / "run", "--steps=2:5", script, json.dumps(hooks)))
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(results) == len(hooks), done.stderr
    bare = results.pop(0)
    assert bare[0] == 3 and bare[2] == ""
    for hook, (code, out, err) in zip(HOOKS, results, strict=True):
        assert (code, out) == tuple(bare[:2]), (hook, err)
        lines = err.splitlines()
        assert len(lines) == 1 and lines[0].startswith("strobe: "), (hook, err)
        assert "put here by a test" in lines[0], (hook, err)

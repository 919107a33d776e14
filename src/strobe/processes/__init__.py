"""Work in other processes.

`process.py` makes processes. Two needs build on it: a function whose crash must not end the caller
(`process.run_apart`), and many pieces of work on all cores, with results in order
(`ordered_pool.py`).

The server has a pool of its own (`web/answering/pool.py`), because it needs the opposite of almost
everything here: its workers are asked from an event loop, live for hours with runs open, are chosen
by the run that they have open, are killed when they take too much memory or time, or when nobody
waits for the answer any more, and send JSON, because nothing that a worker sends may be unpickled
there.
"""

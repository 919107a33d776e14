"""MegEngine, of which only traces are read."""

from strobe.frameworks.framework import Framework

MEGENGINE = Framework(
    name="megengine",
    packages=("megengine",),
    forward_function="forward",
)

"""Python imports this at start-up in every child process of `strobe run` (it is on PYTHONPATH).

It leaves no trace: it removes its folder from sys.path, runs the sitecustomize that it shadows, if
there is one, and calls strobe.collect.start.autostart. Errors are reported, not raised.
"""


def _hand_over() -> None:
    import importlib.machinery
    import importlib.util
    import os
    import sys

    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != folder]
    shadowed = importlib.machinery.PathFinder.find_spec("sitecustomize")
    if shadowed is not None and shadowed.loader is not None:
        module = importlib.util.module_from_spec(shadowed)
        sys.modules["sitecustomize"] = module
        shadowed.loader.exec_module(module)
    if not os.environ.get("STROBE_SESSION"):
        return
    # The script may run in an environment without Strobe, so the package is loaded from ours.
    package = os.path.dirname(os.path.dirname(os.path.dirname(folder)))
    is_installed = importlib.machinery.PathFinder.find_spec("strobe") is not None
    if not is_installed:
        sys.path.append(package)
    try:
        from strobe.collect.start import autostart

        autostart.start_from_environment()
    except Exception as error:
        sys.stderr.write(f"strobe: not recording this process: {type(error).__name__}: {error}\n")
    finally:
        if not is_installed:
            sys.path.remove(package)


_hand_over()

"""Runs when a Python process starts that has this folder on its module path; the user's own runs as well.

Why this and no ``.pth`` file: nothing is installed, so only processes started by ``oortriage run`` (or with
its two variables) are touched; it works for the interpreter of any environment, also one that oortriage is
not installed in; and it goes on to child processes by itself.
"""

import os
import sys


def _start() -> None:
    if not os.environ.get("OORTRIAGE_CAPTURE"):
        return
    try:
        import oortriage_capture_hook

        oortriage_capture_hook.install()
    except Exception as problem:  # noqa: BLE001 (the user's program goes on whatever happens here)
        sys.stderr.write(f"oortriage capture: not installed: {type(problem).__name__}: {problem}\n")


def _users_own() -> None:
    """Run the sitecustomize that Python would have found without this folder; what it raises is Python's to report."""
    from _frozen_importlib import module_from_spec  # what importlib offers, without loading it
    from _frozen_importlib_external import PathFinder

    here = os.path.dirname(os.path.abspath(__file__))
    spec = PathFinder.find_spec("sitecustomize", [one for one in sys.path if os.path.abspath(one) != here])
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    ours = sys.modules.get("sitecustomize")
    sys.modules["sitecustomize"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if ours is not None:
            sys.modules["sitecustomize"] = ours
        raise


_start()
_users_own()

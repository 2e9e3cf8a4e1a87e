"""How many functions and files of Bellief one call passes through.

    python tools/trace_calls.py run                       # bellief.run("nchain", "bbi-paper")
    python tools/trace_calls.py evaluate                  # bellief.evaluate("example:clinic")
    python tools/trace_calls.py sweep                     # a sweep of one cell; what its worker does is not counted
    python tools/trace_calls.py "bellief.run('nchain')"   # any expression

Counts distinct functions (nested functions and comprehensions included) that are entered in any thread, importing
excluded: everything is imported, and compiled, by a first call that is not counted.
"""

import sys
import tempfile
import threading
from pathlib import Path

CALLS = {
    "evaluate": "bellief.evaluate('example:clinic')",
    "sweep": "sweep_one_cell()",
    "run": "bellief.run('nchain', 'bbi-paper', 100, 2, settings={'horizon': 3, 'mdps': 2, 'samples': 3, 'utility_samples': 2})",
}


def sweep_one_cell() -> None:
    """Compute one run of 20 steps into a folder that is removed afterwards."""
    from bellief.sweeps.spec import Spec
    from bellief.sweeps.sweep import run_sweep

    spec = Spec(name="one", steps=20, runs=1, environments=["nchain"], agents=["psrl-paper"])
    with tempfile.TemporaryDirectory() as folder:
        run_sweep(spec, Path(folder) / "one")


def trace(expression: str) -> tuple[set, set, int]:
    """Functions and files of Bellief that evaluating the expression enters, and calls between packages."""
    import jax

    import bellief

    root = str(Path(bellief.__file__).parent)
    functions, files, crossings = set(), set(), set()

    def package(name: str) -> str:
        return name.removeprefix(root).strip("/").partition("/")[0]

    def note(frame, event, _):
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(root) or code.co_name == "<module>":
            return
        functions.add((code.co_filename, code.co_qualname, code.co_firstlineno))
        files.add(code.co_filename)
        caller = frame.f_back
        if caller is not None and caller.f_code.co_filename.startswith(root):
            ends = package(caller.f_code.co_filename), package(code.co_filename)
            if ends[0] != ends[1]:
                crossings.add((caller.f_code.co_qualname, code.co_qualname))

    eval(expression)
    jax.clear_caches()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        eval(expression)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return functions, files, len(crossings)


def main(call: str = "run") -> None:
    functions, files, crossings = trace(CALLS.get(call, call))
    print(f"{len(functions)} functions in {len(files)} files, {crossings} calls across packages")


if __name__ == "__main__":
    import bellief  # noqa: F401  # for the expression

    main(*sys.argv[1:])

"""Coverage-guided fuzzing with Atheris: `python fuzz/run.py csv --seconds 600`. Needs the extras `fuzz` and `test`.

Inputs that reach new code are kept in `fuzz/corpus/TARGET` (small, committed); an input that makes anything but the
declared error is saved as `fuzz/crash-TARGET-...` and ends the run with code 77. To look at one:
`python fuzz/run.py csv FILE`.
"""

import argparse
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def main() -> None:
    """Fuzz one target, or run it on given files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("files", nargs="*", help="inputs to run once, instead of fuzzing")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--work", default=None, help="folder for what is found on the way (default: the corpus itself)")
    options = parser.parse_args()
    sys.path.insert(0, str(FOLDER))
    import atheris

    # Only our own code is followed; JAX and pandas are far too large for it.
    with atheris.instrument_imports(include=["bellief", "targets"]):
        import targets
    import seeds

    if options.target not in targets.TARGETS:
        parser.error(f"there is no target '{options.target}'; choose one of {', '.join(targets.TARGETS)}")
    target = targets.TARGETS[options.target]
    if options.files:
        for file in options.files:
            target(Path(file).read_bytes())
        return
    corpus = FOLDER / "corpus" / options.target
    corpus.mkdir(parents=True, exist_ok=True)
    beginning = targets._folder() / "seeds" / options.target
    beginning.mkdir(parents=True)
    for name, content in seeds.seeds(options.target).items():
        (beginning / name).write_bytes(content)
    work = [options.work] if options.work else []
    for folder in work:
        Path(folder).mkdir(parents=True, exist_ok=True)
    arguments = [sys.argv[0], *work, str(corpus), str(beginning), f"-max_total_time={options.seconds}", "-max_len=4096"]
    arguments += ["-timeout=30", "-rss_limit_mb=6000", f"-artifact_prefix={FOLDER}/crash-{options.target}-"]
    atheris.Setup(arguments, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

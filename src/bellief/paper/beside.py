"""A process that makes some of the paper's computations while others compute sweeps: `python -m bellief.paper.beside`.

Its one argument says which, at which scale and where, as JSON. It ends when whoever started it is gone, and what was
begun goes on part by part the next time.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

from bellief.paper.items import ITEMS
from bellief.paper.run_paper import Request, run_computations


def main(order: str) -> None:
    """Make what is asked for."""
    told = json.loads(order)
    parent = os.getppid()
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    items = [item for item in ITEMS.values() if set(item.computations) & set(told["names"])]
    request = Request(items, told["scale"], Path(told["out"]), [Path(one) for one in told["reuse"]], {})
    run_computations(request, lambda text: None)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(3)


if __name__ == "__main__":
    main(sys.argv[1])

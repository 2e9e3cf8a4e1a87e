"""Files that are there whole or not at all."""

import os
from pathlib import Path


def write_whole(path: Path, content: bytes) -> Path:
    """Write under another name beside `path`, then rename: a reader or a crash never meets half a file."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(content)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    return path

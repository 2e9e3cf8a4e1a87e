"""Files that a page sends: limited in size while they arrive, under generated names in a private folder."""

import os
from pathlib import Path
from urllib.parse import unquote

from starlette.requests import ClientDisconnect, Request

from bellief.app.workspaces import Workspace
from bellief.errors import UserError, shorten
from bellief.logs.paths import COMPRESSED, ENDINGS
from bellief.watch import Stopped

NAME_HEADER = "x-file-name"
LONGEST_NAME = 120
LARGEST_UPLOAD = 2_000  # megabytes
MEGABYTE = 1_000_000


class TooLarge(UserError):
    """An upload is larger than the server takes."""


def shown_name(request: Request) -> str:
    """What the person calls the file: the last part of its name, without characters that do not show."""
    given = unquote(request.headers.get(NAME_HEADER, ""), errors="replace").replace("\\", "/")
    last = "".join(letter for letter in given.rsplit("/", 1)[-1] if letter.isprintable()).strip()
    return shorten(last, LONGEST_NAME) if last.strip(". ") else "log.csv"


def stored_name(shown: str) -> str:
    """The name on disk: nothing of the given name but its known endings."""
    base, ending = os.path.splitext(shown.lower())
    packed = ending if ending in COMPRESSED else ""
    kind = os.path.splitext(base)[1] if packed else ending
    return f"log{kind if kind in ENDINGS else '.csv'}{packed}"


async def receive_file(request: Request, workspace: Workspace, most: int) -> tuple[Path, str]:
    """Write the body of a request into a new folder of the workspace; `most` is its cap in megabytes."""
    name = shown_name(request)
    sentence = f"{name} is larger than {most:,} MB: start 'bellief app' with the file's path, or with --max-upload."
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > most * MEGABYTE:
        raise TooLarge(sentence)
    path = workspace.new_folder() / stored_name(name)
    size = 0
    try:
        with open(path, "xb") as file:
            os.chmod(path, 0o600)
            async for piece in request.stream():
                size += len(piece)
                if size > most * MEGABYTE:
                    raise TooLarge(sentence)
                file.write(piece)
    except ClientDisconnect:
        path.unlink(missing_ok=True)
        raise Stopped from None
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path, name

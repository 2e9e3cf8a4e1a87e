"""The command that starts the local page."""

from typing import Annotated

import typer

from bellief.cli import failures
from bellief.cli.options import count, whole
from bellief.errors import UserError

NEEDED = "bellief app needs two more packages: pip install 'bellief[app]'."


def serve(
    log: Annotated[
        str | None,
        typer.Argument(
            metavar="LOG", show_default=False, help="A log to open: a CSV or Parquet file, or example:clinic."
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Address to listen on. The default lets only this machine in; the token is always needed.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(parser=whole("--port", 0, 65_535), metavar="N", help="Port; 0 takes a free one.")
    ] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the link and open no browser.")] = False,
    max_upload: Annotated[int, count("--max-upload", "Largest upload, in megabytes.")] = 2_000,
) -> None:
    """Open a local page: load a log, evaluate and compare policies, watch agents learn."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise UserError(NEEDED) from None
    from bellief.app.serve import serve as run_server

    run_server(
        log, host, port, not no_browser, max_upload, failures.debugging, lambda line: typer.echo(line, err=False)
    )

"""Files to download: the report of `--report`, the figure, the numbers, policies."""

import io
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import numpy as np
from starlette.responses import Response

from bellief.app.answers import Answer
from bellief.app.opened_log import OpenedLog
from bellief.errors import UserError
from bellief.evaluation.ends import only_ends
from bellief.files import to_csv
from bellief.policies import save_policy

TYPES = {"html": "text/html; charset=utf-8", "svg": "image/svg+xml", "csv": "text/csv; charset=utf-8"}


def attachment(content: bytes, name: str) -> Response:
    """A file that the browser saves and does not show."""
    ending = name.rpartition(".")[2]
    said = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    return Response(content, headers={"Content-Disposition": said}, media_type=TYPES[ending])


def build(answer: Answer, kind: str, file: str) -> Response:
    """`report.html`, `figure.svg` or `numbers.csv` of an answer."""
    makers = {"report.html": _report, "figure.svg": _figure, "numbers.csv": _numbers}
    if file not in makers:
        raise UserError(f"There is no file '{file}' to download; choose one of {', '.join(makers)}.")
    stem, _, ending = file.rpartition(".")
    return attachment(makers[file](answer), f"{kind}-{stem}.{ending}")


def _report(answer: Answer) -> bytes:
    from bellief import __version__
    from bellief.report.offline_page import write_report

    with tempfile.TemporaryDirectory(prefix="bellief-") as folder:
        return write_report(answer.result, Path(folder) / "report.html", answer.command, __version__).read_bytes()


def _figure(answer: Answer) -> bytes:
    result = answer.result
    axes = result.plot() if hasattr(result, "plot") else result.comparison.plot()
    content = io.BytesIO()
    axes.figure.savefig(content, format="svg", bbox_inches="tight")
    return content.getvalue()


def _numbers(answer: Answer) -> bytes:
    frame = answer.result.to_pandas()
    return to_csv(frame if frame.index.name is None else frame.reset_index())


def policy_file(log: OpenedLog, policies: Mapping[str, np.ndarray], file: str) -> Response:
    """A saved policy in the form that `--policy` reads."""
    name = file.removesuffix(".csv")
    if name not in policies:
        raise UserError("There is no such policy on this page.")
    with tempfile.TemporaryDirectory(prefix="bellief-") as folder:
        path = Path(folder) / "policy.csv"
        # States that are merely ends have no rows: no action is taken there.
        table = np.where(only_ends(log.tally)[:, None], 0.0, policies[name])
        save_policy(path, table, log.tally.state_labels, log.tally.action_labels)
        return attachment(path.read_bytes(), f"{name}.csv")

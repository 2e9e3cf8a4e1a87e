"""What each address answers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bellief.app import answers, downloads, opened_log
from bellief.app.jobs import compute
from bellief.app.questions import SAVED, read_policy_name, read_settings
from bellief.app.uploads import receive_file
from bellief.app.workspaces import Workspace
from bellief.errors import UserError
from bellief.evaluation.policy_forms import read_policy
from bellief.watch import pause_point

MOST_POLICIES = 8
# Policy files are small; a large one is probably a log.
LARGEST_POLICY = 50
LARGEST_TABLE = 10_000  # cells
LONGEST_NAME = 40
# Draws of a first answer while a slider is dragged.
FEWEST_DRAWS = 50


async def _read(request: Request, workspace: Workspace, path: Path, name: str, columns: dict[str, str]) -> Response:
    """Open a log, or say what is wrong with it beside the row."""
    workspace.forget()
    workspace.source = path, name

    def work() -> Any:
        try:
            log = opened_log.open_log(path, name, columns, pause_point)
            return log, opened_log.describe(log)
        except UserError as error:
            return None, opened_log.failure(path, name, columns, error)

    log, document = await compute(request, workspace, "log", work)
    workspace.log = log
    return JSONResponse(document)


async def first_log(request: Request, workspace: Workspace) -> Response:
    """The log that the command named, or the one that this tab had before it was loaded again."""
    if workspace.log is not None:
        return JSONResponse(opened_log.describe(workspace.log) | {"policies": list(workspace.policies)})
    given = request.app.state.first_log
    if given is None:
        return JSONResponse({"error": "No log was opened yet."})
    return await _read(request, workspace, *_named(given), {})


def _named(given: str) -> tuple[Path, str]:
    is_example = given.startswith(opened_log.PREFIX)
    return opened_log.example_source(given.removeprefix(opened_log.PREFIX)) if is_example else (Path(given), given)


async def upload_log(request: Request, workspace: Workspace) -> Response:
    """A log that was dropped on the page: the body is the file, a header its name."""
    path, name = await receive_file(request, workspace, request.app.state.most)
    return await _read(request, workspace, path, name, {})


async def open_example(request: Request, workspace: Workspace, question: dict[str, Any]) -> Response:
    """A log of the package."""
    path, name = opened_log.example_source(str(question.get("name")))
    return await _read(request, workspace, path, name, {})


async def choose_columns(request: Request, workspace: Workspace, question: dict[str, Any]) -> Response:
    """Read the same file again, with some columns assigned by hand."""
    if workspace.source is None:
        raise UserError("No log was opened yet: drop a file, or pick one.")
    given = question.get("columns")
    chosen = {str(role): str(column) for role, column in (given if isinstance(given, dict) else {}).items() if column}
    return await _read(request, workspace, *workspace.source, chosen)


def _log(workspace: Workspace) -> opened_log.OpenedLog:
    if workspace.log is None:
        raise UserError("No log was opened yet: drop a file, or pick one.")
    return workspace.log


async def _answer(request: Request, workspace: Workspace, kind: str, work: Callable[[], answers.Answer]) -> Response:
    answer = await compute(request, workspace, kind, work)
    workspace.answers[kind] = answer
    return JSONResponse(answer.document)


async def check_log(request: Request, workspace: Workspace, question: dict[str, Any]) -> Response:
    """Everything that `bellief check` says."""
    log = _log(workspace)
    return await _answer(request, workspace, "check", lambda: answers.ask_check(log))


async def value(request: Request, workspace: Workspace, question: dict[str, Any]) -> Response:
    """What a policy is worth; with few draws it is a first answer, which downloads do not use."""
    log, settings = _log(workspace), read_settings(question)
    policy = read_policy_name(question.get("policy"), log, workspace.policies)
    asked = question.get("draws", answers.DRAWS)
    draws = min(max(int(asked), FEWEST_DRAWS), answers.DRAWS) if isinstance(asked, int) else answers.DRAWS
    answer = await compute(request, workspace, "value", lambda: answers.ask_value(log, policy, settings, draws))
    if draws == answers.DRAWS:
        workspace.answers["value"], workspace.policy_of_value = answer, policy[1]
    return JSONResponse(answer.document)


async def state(request: Request, workspace: Workspace, question: dict[str, Any]) -> Response:
    """One state of the last answer."""
    log, last = _log(workspace), workspace.answers.get("value")
    number = question.get("state")
    if last is None or not isinstance(number, int) or not 0 <= number < log.tally.states:
        raise UserError("There is no such state in the last answer.")
    policy = workspace.policy_of_value
    shown = await compute(request, workspace, "state", lambda: answers.show_state(log, last.result, policy, number))
    return JSONResponse(shown)


async def collect(request: Request, workspace: Workspace, question: dict[str, Any]) -> Response:
    """Where the interval comes from."""
    log, settings = _log(workspace), read_settings(question)
    policy = read_policy_name(question.get("policy"), log, workspace.policies)
    return await _answer(request, workspace, "collect", lambda: answers.ask_collect(log, policy, settings))


async def compare(request: Request, workspace: Workspace, question: dict[str, Any]) -> Response:
    """Policies side by side."""
    log, settings = _log(workspace), read_settings(question)
    given = question.get("policies")
    if not isinstance(given, list) or not 2 <= len(given) <= MOST_POLICIES:
        raise UserError(f"Choose from two to {MOST_POLICIES} policies to compare.")
    policies = [read_policy_name(one, log, workspace.policies) for one in given]
    target = question.get("target", 0.95)
    if not isinstance(target, float) or not 0.5 <= target < 1:
        raise UserError("How sure is sure enough must lie between 50% and 100%.")
    return await _answer(request, workspace, "compare", lambda: answers.ask_compare(log, policies, settings, target))


async def improve(request: Request, workspace: Workspace, question: dict[str, Any]) -> Response:
    """A policy that the data recommend; it is kept under the name `improved`."""
    log, settings = _log(workspace), read_settings(question)
    objective = str(question.get("objective", "mean"))
    answer = await compute(request, workspace, "improve", lambda: answers.ask_improve(log, settings, objective))
    workspace.answers["improve"] = answer
    workspace.policies["improved"] = answer.result.probabilities
    return JSONResponse(answer.document | {"policies": list(workspace.policies)})


async def policy_table(request: Request, workspace: Workspace, question: dict[str, Any]) -> Response:
    """The probabilities of a policy, to be edited."""
    log = _log(workspace)
    _, given = read_policy_name(question.get("policy"), log, workspace.policies)
    table = read_policy(given, log.tally)
    shown = np.flatnonzero(log.tally.acting)[: answers.MOST_STATES]
    if len(shown) * log.tally.actions > LARGEST_TABLE:
        raise UserError("This table is too large to be edited here: make a CSV file with state, action, probability.")
    labels = opened_log.names(log.tally.states, log.tally.state_labels)
    rows = [
        {"state": str(labels[number]), "index": int(number), "probabilities": [float(p) for p in table[number]]}
        for number in shown
    ]
    return JSONResponse({"rows": rows, "more": max(0, int(log.tally.acting.sum()) - len(rows))})


async def save_policy(request: Request, workspace: Workspace, question: dict[str, Any]) -> Response:
    """Keep a policy that was edited on the page: the rows that were changed, on top of another policy."""
    log = _log(workspace)
    _, given = read_policy_name(question.get("base"), log, workspace.policies)
    table = np.array(read_policy(given, log.tally))
    rows = question.get("rows")
    for row in rows if isinstance(rows, list) else []:
        try:
            number, chances = int(row["index"]), [float(chance) for chance in row["probabilities"]]
            if number < 0:
                raise IndexError
            table[number] = chances
        except (TypeError, ValueError, LookupError):
            raise UserError("The table does not fit this log: load it again.") from None
    return _keep(workspace, question.get("name"), read_policy(table, log.tally))


async def upload_policy(request: Request, workspace: Workspace) -> Response:
    """A policy from a CSV file."""
    log = _log(workspace)
    path, name = await receive_file(request, workspace, LARGEST_POLICY)

    def work() -> np.ndarray:
        try:
            return read_policy(path, log.tally)
        except UserError as error:
            raise UserError(str(error).replace(str(path), name)) from None

    table = await compute(request, workspace, "policy", work)
    return _keep(workspace, Path(name).stem, table)


def _keep(workspace: Workspace, given: Any, table: np.ndarray) -> Response:
    kept = [letter for letter in str(given or "").strip() if letter.isalnum() or letter in " ._-"]
    name = "".join(kept[:LONGEST_NAME]).strip(" .")
    if not name:
        raise UserError("Give the policy a name of letters and digits.")
    if name not in workspace.policies and len(workspace.policies) >= MOST_POLICIES:
        raise UserError(f"There are {MOST_POLICIES} policies already: use the name of one of them.")
    workspace.policies[name] = table
    return JSONResponse({"saved": SAVED + name, "policies": list(workspace.policies)})


async def agents(request: Request, workspace: Workspace, question: dict[str, Any]) -> Response:
    """Let agents learn; progress is sent as events."""

    def work() -> Any:
        from bellief.app.experiment import Experiment

        workspace.stop("agents")
        workspace.experiment = Experiment(question, workspace.tell)
        workspace.experiment.start()
        return workspace.experiment

    begun = await compute(request, workspace, "agents-start", work)
    return JSONResponse({"command": begun.command(), "python": begun.python()})


async def agents_control(request: Request, workspace: Workspace, question: dict[str, Any]) -> Response:
    """Pause, resume, stop, or another pace."""
    if workspace.experiment is None:
        raise UserError("No agents are learning: start them first.")
    what = question.get("do")
    if what == "pace":
        workspace.experiment.set_pace(question.get("pace"))
    elif what in ("pause", "resume", "stop"):
        getattr(workspace.experiment, what)()
    else:
        raise UserError("Agents can be told to pause, to resume, to stop, or at which pace to go.")
    return JSONResponse({"done": what})


async def cancel(request: Request, workspace: Workspace, question: dict[str, Any]) -> Response:
    """Stop work of a kind."""
    workspace.stop(str(question.get("kind")))
    return JSONResponse({})


async def download(request: Request, workspace: Workspace) -> Response:
    """A file to take away."""
    kind, file = request.path_params["kind"], request.path_params["file"]
    if kind == "agents":
        if workspace.experiment is None:
            raise UserError("No agents have learned yet.")
        return downloads.attachment(workspace.experiment.table(), "curves.csv")
    if kind == "policy":
        return downloads.policy_file(_log(workspace), workspace.policies, file)
    if kind not in workspace.answers:
        raise UserError("There is no answer to take away yet.")
    answer = workspace.answers[kind]
    return await compute(request, workspace, f"download-{kind}-{file}", lambda: downloads.build(answer, kind, file))

"""Every mistake a user can make gets one sentence that names the row or the option, and exit code 2."""

import pytest

from bellief import experiments
from cli.conftest import HEADER, ROWS, RUN, assert_one_sentence

DATA_MISTAKES = {
    "missing column": ("state,action,next_state\n0,0,0\n", ["no column 'reward'"]),
    "negative state": (HEADER + "0,0,1,0\n-1,0,1,0\n", ["row 2", "state '-1'"]),
    "fractional state": (HEADER + "0,0,1,0\n0,0,1,0.5\n", ["row 2", "next_state '0.5'"]),
    "negative action": (HEADER + "0,-3,1,0\n", ["row 1", "action '-3'"]),
    "NaN reward": (HEADER + "0,0,1,0\n0,0,1,0\n0,0,nan,0\n", ["row 3", "reward 'nan'"]),
    "infinite reward": (HEADER + "0,0,-inf,0\n", ["row 1", "reward '-inf'"]),
    "reward too large to square": (HEADER + "0,0,1e200,0\n", ["row 1", "reward '1e200'"]),
    "text reward": (HEADER + "0,0,good,0\n", ["row 1", "reward 'good'"]),
    "missing cell": (HEADER + "0,0,1,0\n0,,1,0\n", ["row 2", "action ''"]),
    "short row": (HEADER + "0,0,1,0\n0,0,1\n", ["row 2", "next_state"]),
    "long row": (HEADER + "0,0,1,0\n0,0,1,0,7\n", ["line 3"]),
    "long rows throughout": (HEADER + "0,0,1,0,7\n1,1,0,0,7\n", ["line 2"]),
    "unclosed quote": (HEADER + '0,0,1,"0\n', ["not a well-formed CSV file"]),
    "empty file": ("", ["is empty", "state, action, reward, next_state"]),
    "blank file": ("\n \n\n", ["is empty"]),
    "header only": (HEADER, ["no transitions"]),
    "repeated column": ("state,action,reward,next_state,state\n0,0,1,0,1\n", ["'state'", "more than once"]),
    "huge index": (HEADER + "0,0,1,123456789012345678901234567890\n", ["row 1", "next_state '1234"]),
    "identifier for an index": (HEADER + "0,0,1,999999\n", ["2 of 1000000 states", "--labels"]),
    "not a flag": ("state,action,reward,next_state,terminated\n0,0,1,0,maybe\n", ["row 1", "terminated 'maybe'"]),
    "binary": (bytes(range(256)) * 4, ["data.csv"]),
    "other encoding": ((HEADER + ROWS).encode("utf-16"), ["UTF-8"]),
    "carriage returns alone": ((HEADER + ROWS).replace("\n", "\r"), ["data.csv: the header is no line of CSV"]),
    "name without end": ("x" * 200_000 + HEADER, ["data.csv: the header is no line of CSV"]),
    "semicolons": ((HEADER + ROWS).replace(",", ";"), ["no column 'state'"]),
}


@pytest.mark.parametrize("mistake", DATA_MISTAKES)
def test_data(call, table, mistake):
    content, fragments = DATA_MISTAKES[mistake]
    assert_one_sentence(call("evaluate", table(content)), *fragments)


def test_tables_that_fit_no_memory(call, table):
    result = call("evaluate", table(HEADER + "0,0,1,1\n1,0,1,0\n"), "--draws", "2000000000")
    assert_one_sentence(result, "2000000000 draws of 2 states' values", "GB of memory")


def test_a_long_cell_is_not_shown_whole(call, table):
    result = call("evaluate", table(HEADER + f'0,0,"{"x" * 5000}\ny",0\n'))
    assert_one_sentence(result, "row 1", "xxx...")
    assert len(result.err) < 400


def test_file_that_does_not_exist(call, tmp_path):
    assert_one_sentence(call("evaluate", tmp_path / "none.csv"), "none.csv does not exist")


def test_folder_instead_of_a_file(call, tmp_path):
    assert_one_sentence(call("evaluate", tmp_path), f"{tmp_path} is a folder")


def test_file_inside_a_file(call, data):
    assert_one_sentence(call("evaluate", data / "more.csv"), "more.csv cannot be read")


def test_file_that_may_not_be_read(call, data, monkeypatch):
    def refuse(file):
        raise PermissionError(13, "Permission denied", file.path)

    monkeypatch.setattr("bellief.logs.engine.open_binary", refuse)
    assert_one_sentence(call("evaluate", data), "data.csv cannot be read (Permission denied)")


POLICY_MISTAKES = {
    "action out of range": ("0,0,1\n1,2,1\n", ["row 2", "action '2'"]),
    "state out of range": ("0,0,1\n1,0,1\n2,0,1\n", ["row 3", "state '2'"]),
    "sum above one": ("0,0,0.7\n0,1,0.4\n1,0,1\n", ["state 0", "sum to 1.1"]),
    "state left out": ("0,0,1\n", ["state 1", "sum to 0"]),
    "negative probability": ("0,0,1.5\n0,1,-0.5\n1,0,1\n", ["row 1", "probability '1.5'"]),
    "not a probability": ("0,0,1\n1,0,often\n", ["row 2", "probability 'often'"]),
    "repeated pair": ("0,0,1\n1,0,1\n0,0,1\n", ["row 3", "repeats state 0, action 0"]),
    "no rows": ("", ["no rows"]),
}


@pytest.mark.parametrize("mistake", POLICY_MISTAKES)
def test_policy(call, data, table, mistake):
    rows, fragments = POLICY_MISTAKES[mistake]
    policy = table("state,action,probability\n" + rows, "policy.csv")
    assert_one_sentence(call("evaluate", data, "--policy", policy), "policy.csv", *fragments)


def test_policy_without_a_column(call, data, table):
    policy = table("state,action\n0,0\n", "policy.csv")
    assert_one_sentence(call("evaluate", data, "--policy", policy), "policy.csv", "no column 'probability'")


def test_policy_that_does_not_exist(call, data):
    assert_one_sentence(call("evaluate", data, "--policy", "behaviours"), "no policy 'behaviours'", "behaviour")


EVALUATE_MISTAKES = {
    "unknown option": (["--discuont", "0.9"], ["no option --discuont", "did you mean --discount?"]),
    "option like no other": (["--zzz"], ["no option --zzz", "bellief evaluate --help"]),
    "option without its value": (["--discount"], ["--discount"]),
    "discount as text": (["--discount", "abc"], ["--discount needs a number, not 'abc'"]),
    "discount above one": (["--discount", "1.5"], ["--discount must lie in (0, 1], not 1.5"]),
    "discount zero": (["--discount", "0"], ["--discount must lie in (0, 1], not 0"]),
    "discount NaN": (["--discount", "nan"], ["--discount", "nan"]),
    "discount one without an end": (["--discount", "1"], ["discount 1", "horizon"]),
    "accuracy zero": (["--accuracy", "0"], ["--accuracy must lie between 0.0001 and 0.5, not 0.0"]),
    "accuracy too small": (["--accuracy", "1e-5"], ["--accuracy must lie between 0.0001 and 0.5, not 1e-05"]),
    "accuracy too large": (["--accuracy", "0.6"], ["--accuracy must lie between 0.0001 and 0.5, not 0.6"]),
    "accuracy NaN": (["--accuracy", "nan"], ["--accuracy must lie between 0.0001 and 0.5, not nan"]),
    "accuracy as text": (["--accuracy", "abc"], ["--accuracy needs a number, not 'abc'"]),
    "level too large": (["--level", "2"], ["--level must lie in (0, 1), not 2"]),
    "level one": (["--level", "1"], ["--level must lie in (0, 1), not 1"]),
    "start outside": (["--start", "99"], ["start", "0 to 1", "99"]),
    "start negative": (["--start", "-1"], ["start must be one of the states 0 to 1, not -1"]),
    "thirty nines": (["--horizon", "9" * 30], ["--horizon must be at most 2147483647, not 9999"]),
    "horizon zero": (["--horizon", "0"], ["--horizon must be at least 1, not 0"]),
    "fractional draws": (["--draws", "2.5"], ["--draws needs a whole number, not '2.5'"]),
    "no MDPs": (["--mdps", "0"], ["--mdps must be at least 1, not 0"]),
    "lookahead zero": (["--lookahead", "0"], ["--lookahead must be at least 1"]),
    "negative seed": (["--seed", "-1"], ["--seed must lie between 0 and 4294967295"]),
    "unknown method": (["--method", "guess"], ["no method 'guess'", "joint"]),
    "unknown prior": (["--prior", "flat"], ["no prior 'flat'", "sparse"]),
    "unknown final value": (["--final", "one"], ["no final value 'one'", "pooled"]),
    "too few states": (["--states", "1"], ["data.csv", "row", "outside the 1 states"]),
    "too few actions": (["--actions", "1"], ["data.csv", "row 2", "outside the 1 actions"]),
    "two files": (["other.csv"], ["other.csv"]),
    "picture of no known kind": (["--plot", "curve.txt"], ["--plot", "curve.txt", ".png"]),
    "picture in no folder": (["--plot", "no/such/folder/a.png"], ["--plot", "a.png", "folder does not exist"]),
}


@pytest.mark.parametrize("mistake", EVALUATE_MISTAKES)
def test_evaluate_options(call, data, mistake):
    options, fragments = EVALUATE_MISTAKES[mistake]
    assert_one_sentence(call("evaluate", data, *options), *fragments)


RUN_MISTAKES = {
    "zero runs": (["--runs", "0"], ["--runs must be at least 1, not 0"]),
    "negative steps": (["--steps", "-5"], ["--steps", "-5"]),
    "more steps than can be counted": (["--steps", "3000000000"], ["--steps", "2147483647"]),
    "unknown environment": (["--env", "nchian"], ["no environment called 'nchian'", "nchain"]),
    "unknown agent": (["--agent", "zzz"], ["no agent called 'zzz'", "bbi"]),
    "setting without a value": (["--set", "horizon"], ["--set needs NAME=VALUE", "'horizon'"]),
    "setting without a name": (["--set", "=3"], ["--set needs NAME=VALUE", "'=3'"]),
    "setting twice": (["--set", "tail=0.1", "--set", "tail=0.2"], ["--set gives 'tail' twice"]),
    "unknown setting": (["--set", "depth=3"], ["no setting 'depth'", "horizon"]),
    "setting of another type": (["--set", "samples=many"], ["'samples' needs int", "'many'"]),
    "setting out of range": (["--set", "discount=2"], ["discount must lie in (0, 1]"]),
    "setting that is no number": (["--set", "optimism=nan"], ["'optimism' needs a number"]),
    "unknown parameter": (["--set", "env.slippery=1"], ["no parameter 'slippery'", "slip"]),
    "parameter out of range": (["--set", "env.slip=3"], ["'slip' is 3"]),
    "thirty nines of steps": (["--steps", "9" * 30], ["--steps must be at most 2147483647, not 9999"]),
    "thirty nines of runs": (["--runs", "9" * 30], ["--runs must be at most 2147483647, not 9999"]),
    "more digits than can be read": (["--runs", "9" * 5000], ["--runs needs a whole number, not '9999"]),
    "more runs than fit into memory": (
        ["--runs", "2000000000"],
        ["2000000000 runs of 30 steps need about"],
    ),
    "more plans than fit into memory": (
        ["--steps", "2147483647", "--longest-gap", "1"],
        ["steps need about", "of memory"],
    ),
    "thirty nines for a setting": (["--set", f"samples={'9' * 30}"], ["'samples' must be at most 2147483647"]),
    "thirty nines for an environment": (
        ["--env", "nchain", "--set", f"env.size={'9' * 30}"],
        ["'size' is 9999", "at most 20000"],
    ),
    "four hundred nines for a reward": (
        ["--set", f"env.small_reward={'9' * 400}"],
        ["'small_reward'", "finite number"],
    ),
    "half-life zero": (["--half-life", "0"], ["--half-life must be a finite number above 0, not 0"]),
    "half-life infinite": (["--half-life", "inf"], ["--half-life", "inf"]),
}


@pytest.mark.parametrize("mistake", RUN_MISTAKES)
def test_run_options(call, monkeypatch, mistake):
    monkeypatch.setattr("bellief.experiments.compiled_loop.run_batch", None)  # nothing may be computed
    options, fragments = RUN_MISTAKES[mistake]
    assert_one_sentence(call(*RUN, *options), *fragments)


def test_run_without_an_environment(call):
    assert_one_sentence(call("run"), "--env")


def test_out_folder_that_exists_is_told_before_computing(call, tmp_path, monkeypatch):
    monkeypatch.setattr(experiments, "run", None)
    (tmp_path / "old").mkdir()
    assert_one_sentence(call(*RUN, "--out", tmp_path / "old"), f"The folder {tmp_path / 'old'} exists already")
    assert list((tmp_path / "old").iterdir()) == []


def test_out_folder_inside_a_file_is_told_before_computing(call, data, monkeypatch):
    monkeypatch.setattr(experiments, "run", None)
    assert_one_sentence(call(*RUN, "--out", data / "new"), "data.csv is not a folder")


def test_unknown_command(call):
    # Newer versions of typer also suggest the nearest name.
    assert_one_sentence(call("evalute"), "'evalute'")


def test_unknown_list(call):
    assert_one_sentence(call("list", "policies"), "no list of 'policies'", "envs, agents, values")


def test_evaluate_without_data(call):
    assert_one_sentence(call("evaluate"), "DATA")

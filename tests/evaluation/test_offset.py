"""The paper's methods for rewards that all lie far from zero, and for very small and very large ones."""

import re

import numpy as np
import pytest

from bellief import Transitions, evaluate
from bellief.errors import UserError
from bellief.evaluation.offset import far_offset
from bellief.evaluation.problem import prepare
from bellief.priors import PAPER_PRIOR

DISCOUNT = 0.9


def log(shift=0.0, scale=1.0, **columns):
    """400 rows of four states; rewards are eighths, which survive an offset of 10^9 as they are."""
    generator = np.random.default_rng(1)
    state, after, action = generator.integers(0, 4, 400), generator.integers(0, 4, 400), generator.integers(0, 2, 400)
    reward = generator.integers(-8, 8, 400) / 8
    return Transitions.from_arrays(state, action, scale * reward + shift, after, **columns)


@pytest.mark.parametrize("options", [{}, {"final": "own"}, {"horizon": 7}, {"lookahead": 250}], ids=str)
@pytest.mark.parametrize("method", ["gaussian", "histogram"])
def test_an_offset_changes_nothing_else(method, options):
    """Values of 10^10, whose differences of a tenth must survive."""
    length = (1 - DISCOUNT**7) / (1 - DISCOUNT) if "horizon" in options else 1 / (1 - DISCOUNT)
    # Where nothing else is asked for, cutting off loses a thousandth of what rewards of at most 1 are worth.
    lost = 0.0 if options else 1e-3 * length
    plain = evaluate(log(), discount=DISCOUNT, method=method, draws=50, **options)
    for shift in (1e9, -1e9):
        offset = evaluate(log(shift), discount=DISCOUNT, method=method, draws=50, **options)
        np.testing.assert_allclose(offset.sd, plain.sd, rtol=1e-3)
        gap = offset.samples - shift * length - plain.samples
        assert np.abs(gap).max() < lost + 2e-5  # 10^10 has steps of 2e-6


@pytest.mark.parametrize("method", ["gaussian", "histogram"])
@pytest.mark.parametrize("scale", [2.0**-230, 1e-70, 1e-30, 1e12, 1e65])
def test_values_scale_with_rewards(method, scale):
    plain, other = (
        evaluate(log(scale=unit), discount=DISCOUNT, method=method, draws=50).samples for unit in (1.0, scale)
    )
    np.testing.assert_allclose(other / scale, plain, rtol=1e-9)


@pytest.mark.parametrize("method", ["gaussian", "histogram"])
@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e100])
def test_rewards_whose_squares_are_no_numbers_are_refused(method, scale):
    with pytest.raises(UserError, match="multiply all rewards" if scale < 1 else "divide all rewards") as refused:
        evaluate(log(scale=scale), discount=DISCOUNT, method=method, draws=50)
    factor = float(re.search("for example by (.*), and", str(refused.value))[1])
    advised = scale * factor if scale < 1 else scale / factor
    assert advised == pytest.approx(1.0)


@pytest.mark.parametrize("options", [{"discount": 0.999999}, {"discount": 0.9, "lookahead": 2_000_000_000}], ids=str)
@pytest.mark.parametrize("method", ["gaussian", "histogram", "joint"])
def test_an_induction_without_end_is_refused(method, options):
    with pytest.raises(UserError, match=r"An induction of \d+ steps would take too long"):
        evaluate(log(), method=method, final="zero", draws=50, **options)


def test_only_what_needs_it_is_moved():
    """Ordinary logs are computed with their own rewards; where episodes end an offset cannot be taken out."""

    def offset(data, prior="logged-0.1"):
        return far_offset(prepare(data, DISCOUNT, prior=prior))

    assert offset(log()) == offset(log(5.0)) == 0
    assert offset(log(1e9)) == pytest.approx(1e9)
    assert offset(log(1e9, terminated=[True] + [False] * 399)) == 0
    assert offset(log(1e9, scale=0.0)) == 0, "equal rewards are their own scale"
    assert offset(log(1e9), prior=PAPER_PRIOR) == 0, "this prior expects rewards around 0"


def test_what_is_said_about_the_prior_is_about_rewards_as_they_are():
    value = evaluate(log(1e9), discount=DISCOUNT, method="gaussian", draws=50)
    assert value.diagnostics["prior"]["reward"][0] == pytest.approx(1e9)
    assert value.diagnostics["lookahead"] == 66

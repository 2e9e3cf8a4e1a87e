"""The paper's sentences that can be tested, each with its place: what a claim quotes."""

from typing import NamedTuple


class Quote(NamedTuple):
    """A sentence as printed (mathematics and references in plain characters) and where it stands."""

    text: str
    place: str

    def __str__(self) -> str:
        return f"“{self.text}” ({self.place})"


RESULTS, CONCLUSION = "section 4.3, Experimental Results", "section 5, Discussion and Future Work"
ABSTRACT = "abstract"
QUOTES: dict[str, Quote] = {
    name: Quote(text, place)
    for name, text, place in (
        (
            "competitive",
            "We experimentally demonstrate that the proposed algorithm is competitive with respect to the state of the "
            "art.",
            ABSTRACT,
        ),
        ("similar", "BBI performs similarly to to MMBI and PSRL.", RESULTS),
        (
            "bss-worse",
            "The near-optimal Bayesian approximation performs slightly worse in this setting, perhaps because it was "
            "not feasible to increase the planning horizon sufficiently.",
            RESULTS,
        ),
        (
            "unsatisfactory",
            "Finally, the less principled approximations, like VDQN and BQL do not manage to have a satisfactory "
            "performance in these environments.",
            RESULTS,
        ),
        (
            "outperforms",
            "We see that BBI is competitive with state-of-the art methods like PSRL, and it significantly outperforms "
            "the algorithms relying on approximate inference, such as VDQN.",
            CONCLUSION,
        ),
        (
            "linear-gptd",
            "In Figure 4a it is evident that GPTD cannot leverage its sophisticated Gaussian Process model to learn as "
            "well as BBI.",
            RESULTS,
        ),
        ("linear-vdqn", "The same is true for VDQN, except for when the amount of data is very small.", RESULTS),
        (
            "pendulum",
            "Here our algorithm is competitive, and in particular performs much better than GPTD, while it performs "
            "similarly to VDQN, which is slightly worse initially and slightly better later in terms of average steps "
            "survived.",
            RESULTS,
        ),
        (
            "q-matters",
            "The choice of state distribution q(s) is of utmost importance in continuous environments.",
            "section 4.1, Experimental Setup",
        ),
        (
            "q-discrete",
            "As long as q has full support over the state space, any choice should be fine.",
            "section 2.1, footnote on q",
        ),
        (
            "mean-field",
            "This will eventually eliminate all the uncertainty about the correspondence between value function and "
            "underlying MDPs because it is equivalent to assuming the mean MDP obtained from the data D is true.",
            "section 2.2, A Parenthesis on Mean-field Approximation",
        ),
        ("memory", "This makes our space complexity much smaller.", "section 1.2, Bayes-optimal approximations"),
        (
            "psrl-mmbi",
            "In turn, PSRL can be seen as a special case of MMBI with just one sample.",
            RESULTS,
        ),
        (
            "bounds",
            "We observe that this is becomes closer to the upper bound as we obtain more data.",
            "appendix B.1, Bayesian Value Function Estimation",
        ),
        (
            "captures",
            "This shows that the estimate of Alg. 2 reasonably captures the uncertainty in the true distribution.",
            "appendix B.2, Value Function Distribution Estimation",
        ),
        (
            "falls",
            "There we can see that the distance to the true distribution decreases over time.",
            "appendix B.2, Value Function Distribution Estimation",
        ),
        (
            "distances",
            "Wasserstein distance to the true distribution of the value function, for Alg. 2 and the mean MDP model, "
            "for NChain.",
            "appendix B.2, Table 1",
        ),
        (
            "stable",
            "The results indicate that BSS is the most stable algorithm, followed by BBI, MMBI and PSRL, which "
            "nevertheless have better mean performance.",
            "appendix B.3, Variance in Performance",
        ),
        ("vdqn-unstable", "VDQN is quite unstable, however.", "appendix B.3, Variance in Performance"),
        (
            "horizon",
            "In Figure 5, we can see that varying the horizon has a very small impact for NChain and Maze "
            "environments.",
            "appendix A.2, Hyperparameters",
        ),
        (
            "rollouts",
            "In experiments, we have found no significant difference between them.",
            "appendix A.1, Computational Details of Rollouts",
        ),
        (
            "weights",
            "This is usually only a problem when very little data has been obtained.",
            "appendix A.2, Hyperparameters",
        ),
    )
}

import bellief_boltzmann

from bellief.testing import check_agent


def test_agent():
    check_agent(bellief_boltzmann)

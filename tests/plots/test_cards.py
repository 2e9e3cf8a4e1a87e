from html.parser import HTMLParser

import pytest

from bellief.plots.cards import posterior_card

VOID = {"br", "img", "path", "circle"}


class Balance(HTMLParser):
    """Checks that every element is closed, in order, and collects the text and the names."""

    def __init__(self):
        super().__init__()
        self.open, self.names, self.text = [], set(), ""

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(card):
    parser = Balance()
    parser.feed(card)
    parser.close()
    assert parser.open == []
    return parser


@pytest.mark.parametrize("kind", ["ordinary", "heavy", "equal", "single", "few", "wide", "spike", "huge", "tiny"])
def test_cards_of_every_kind_are_well_formed(make_posterior, draws, kind):
    parser = read(posterior_card(make_posterior(draws[kind])))
    assert {"svg", "table"} <= parser.names
    assert "nan" not in parser.text
    assert "inf" not in parser.text


def test_a_card_tells_the_summary(make_posterior, draws):
    posterior = make_posterior(draws["ordinary"])
    start = posterior.start_summary()
    text = read(posterior_card(posterior)).text
    assert f"{start['mean']:.4g}" in text
    assert f"90% interval {start['low']:.4g} to {start['high']:.4g}" in text
    assert "1,234 transitions" in text


def test_points_are_not_given_an_interval(make_posterior, draws):
    assert "one number without a spread" in read(posterior_card(make_posterior(draws["single"], "mean-mdp"))).text


def test_many_states_are_cut(make_posterior, draws):
    card = posterior_card(make_posterior(draws["wide"]))
    assert card.count("<tr") == 13
    assert "and 28 more states" in card


def test_nothing_from_outside_becomes_markup(make_posterior, draws):
    nasty = "<script>alert('x')</script>&\"<img src=x onerror=y>"
    card = posterior_card(make_posterior(draws["ordinary"], method=nasty, warnings=[nasty]))
    parser = read(card)
    assert not {"script", "img"} & parser.names
    assert parser.text.count(nasty) == 2


def test_a_card_loads_nothing(make_posterior, draws):
    card = posterior_card(make_posterior(draws["ordinary"], warnings=["careful"]))
    assert "http" not in card
    assert "<script" not in card
    assert "src=" not in card

"""Numbers and names in sentences."""

import pytest

from vqelites.words import counted, did_you_mean, listed


@pytest.mark.parametrize(("count", "text"), [(0, "0 elites"), (1, "1 elite"), (2, "2 elites")])
def test_one_is_singular(count, text):
    assert counted(count, "elite") == text


@pytest.mark.parametrize(("names", "text"), [("a", "a"), ("ab", "a and b"), ("abc", "a, b and c")])
def test_names_are_listed_as_a_sentence_has_them(names, text):
    assert listed(list(names)) == text


def test_the_nearest_names_are_asked_for():
    assert did_you_mean("cels", ["cells", "bells", "low"]) == " Did you mean cells or bells?"
    assert did_you_mean("cels", ["cells", "bells", "low"], most=1) == " Did you mean cells?"
    assert did_you_mean("xyz", ["cells"]) == ""

"""Each rule that ``make mutation`` takes out is still where it looks for it."""

import pytest

from tests.mutation.__main__ import CHECKOUT, MUTATIONS, Mutation


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.rule)
def test_the_text_of_a_rule_is_there_once(mutation: Mutation) -> None:
    """What was written anew elsewhere must be named anew here."""
    assert (CHECKOUT / mutation.file).read_text().count(mutation.text) == 1

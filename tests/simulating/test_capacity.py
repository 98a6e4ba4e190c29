import msgspec
import pytest

from antiphon.errors import SettingsError
from antiphon.simulating.capacity import fewest
from antiphon.simulating.report import report_of
from antiphon.simulating.simulation import Setup, simulate
from antiphon.simulating.trace import Arrival
from antiphon.testing.engine_models import clockwork


def bare_report():
    setup = Setup(engine=clockwork())
    one = Arrival(at=0.0, prompt_tokens=1, output_tokens=1, max_tokens=1)
    return report_of(simulate(setup, [one]), "bare")


def enough_from(number):
    """A report that is good with that many replicas."""
    report = bare_report()

    def run(replicas):
        share = 1.0 if replicas >= number else 0.5
        classes = tuple(
            msgspec.structs.replace(each, objective_s=1.0, good_share=share)
            for each in report.classes
        )
        return msgspec.structs.replace(report, classes=classes)

    return run


@pytest.mark.parametrize("guess", [1, 7, 100])
@pytest.mark.parametrize("number", [1, 2, 7, 40])
def test_the_fewest_replicas_are_found_from_any_guess(number, guess):
    found = fewest(enough_from(number), 0.99, guess=guess)

    assert found.replicas == number
    assert any(each.replicas == number and each.enough for each in found.tries)


def test_large_numbers_are_found_within_two_percent():
    found = fewest(enough_from(12_345), 0.99, guess=900)

    assert 12_345 <= found.replicas <= 12_345 * 1.02


def test_it_says_so_when_no_number_is_enough():
    with pytest.raises(SettingsError, match="not within"):
        fewest(enough_from(10**12), 0.99, guess=1)

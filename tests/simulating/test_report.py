import msgspec
import pytest

from antiphon.scheduling_settings import SchedulingSettings
from antiphon.simulating.plot import Chart, Line, distribution, svg
from antiphon.simulating.report import Report, encode_report, meets, quantiles, report_of
from antiphon.simulating.report_text import markdown, table
from antiphon.simulating.simulation import Setup, simulate
from antiphon.simulating.trace import Arrival
from antiphon.testing.engine_models import clockwork


def made(**fields):
    whole = {
        "engine": clockwork(accelerators=2),
        "scheduling": SchedulingSettings(interactive_objective_s=4.0, interactive_reserve=0.0),
        "admission": False,
    }
    arrivals = [
        Arrival(at=0.0, prompt_tokens=1, output_tokens=5, max_tokens=5),
        Arrival(at=0.0, prompt_tokens=1, output_tokens=5, max_tokens=5),
        Arrival(at=10.0, prompt_tokens=1, output_tokens=3, max_tokens=3, background=True),
    ]
    return report_of(simulate(Setup(**(whole | fields)), arrivals), "by hand", ("an assumption",))


def test_the_figures_are_those_of_the_run():
    report = made()

    interactive, background = report.classes
    assert interactive.first_token_s.p50 == pytest.approx(1.0)
    assert interactive.first_token_s.p99 == pytest.approx(6.0)
    assert interactive.between_tokens_s.p99 == pytest.approx(1.0)
    assert (interactive.good, interactive.good_share) == (1, 0.5)
    assert background.objective_s == 0.0
    assert report.total.finished == 3
    assert report.total.tokens_s == pytest.approx(13 / 13)
    [fleet] = report.fleets
    assert (fleet.busy_share, fleet.slot_share) == (1.0, 1.0)
    assert fleet.accelerators == 2


def test_an_answer_that_comes_too_slowly_is_not_good():
    assert made(between_s=0.5).classes[0].good == 0
    assert made(between_s=1.5).classes[0].good == 1


def test_objectives_are_met_by_every_class_that_has_one():
    report = made()

    assert meets(report, 0.5)
    assert not meets(report, 0.51)


def test_quantiles_are_by_nearest_rank():
    values = quantiles([float(number) for number in range(1, 101)])

    assert (values.p50, values.p90, values.p95, values.p99) == (50.0, 90.0, 95.0, 99.0)
    assert quantiles([]).p99 is None


def test_it_is_shown_as_a_table_as_markdown_and_as_json():
    report = made()

    assert msgspec.json.decode(encode_report(report), type=Report) == report
    shown = table(report)
    assert "interactive" in shown
    assert "50.0%" in shown
    assert "an assumption" in shown
    rows = [line for line in markdown(report).splitlines() if line.startswith("|")]
    assert rows[0].startswith("| class |")
    assert len({line.count("|") for line in rows[:4]}) == 1


def test_a_plot_is_one_svg_file_with_a_line_for_each_class():
    line = distribution("interactive", [0.1, 0.2, 0.4, 3.0])
    chart = Chart(
        title="a < b",
        x_label="seconds",
        y_label="share",
        lines=(line, Line(name="other", points=((0.1, 0.5), (1.0, 1.0)), dashed=True)),
        marks=(("objective", 0.5),),
        log_x=True,
    )

    drawn = svg(chart)

    assert drawn == svg(chart)
    assert drawn.count("<polyline") == 2
    assert "a &lt; b" in drawn
    assert "stroke-dasharray" in drawn
    assert line.points[-1] == (3.0, 1.0)


def test_a_plot_of_nothing_is_still_a_plot():
    empty = Chart(title="", x_label="", y_label="", lines=(distribution("none", []),), log_x=True)

    assert svg(empty).endswith("</svg>\n")

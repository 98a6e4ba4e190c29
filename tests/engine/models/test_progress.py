import io

from antiphon.engine.models.progress import BarProgress, LineProgress, progress_on


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_pipe_gets_one_line_a_step():
    out = io.StringIO()
    progress = progress_on(out)

    for fraction in (0.0, 0.5, 1.0):
        progress.advance("fetching tiny", fraction)
    progress.advance("preparing tiny", 0.0)

    assert isinstance(progress, LineProgress)
    assert out.getvalue() == "fetching tiny …\npreparing tiny …\n"


def test_a_terminal_gets_a_bar_that_ends_full():
    out = Terminal()
    progress = progress_on(out)

    for fraction in (0.0, 0.5, 0.4, 2.0):
        progress.advance("fetching tiny", fraction)
    progress.note("done")

    assert isinstance(progress, BarProgress)
    assert "fetching tiny" in out.getvalue()
    assert "100%" in out.getvalue()
    assert out.getvalue().endswith("\ndone\n")

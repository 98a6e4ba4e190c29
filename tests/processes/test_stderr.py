import io

from structlog.testing import capture_logs

from antiphon.processes.stderr import LINE_LIMIT, forward_lines


def forwarded(data: bytes) -> list:
    with capture_logs() as logs:
        forward_lines(io.BytesIO(data), 7, "host", "host_stderr")
    return logs


def test_the_hosts_own_lines_keep_their_event_level_and_fields():
    assert forwarded(b'{"event": "loaded", "level": "warning", "blocks": 3}\n') == [
        {"event": "loaded", "log_level": "warning", "blocks": 3, "host_pid": 7}
    ]


def test_what_a_native_library_prints_is_a_warning_with_its_text():
    assert forwarded(b"boom \xff\n\n{not json\n") == [
        {"event": "host_stderr", "log_level": "warning", "host_pid": 7, "line": "boom �"},
        {"event": "host_stderr", "log_level": "warning", "host_pid": 7, "line": "{not json"},
    ]


def test_an_endless_line_is_cut_and_the_next_one_is_not_lost():
    logs = forwarded(b"x" * (5 * LINE_LIMIT) + b"\nnext\n")

    assert [len(entry["line"]) for entry in logs] == [LINE_LIMIT, len("next")]


def test_a_field_named_like_an_argument_of_the_logger_does_no_harm():
    logs = forwarded(b'{"event": 5, "level": [], "host_pid": 1}\n')

    assert logs == [{"event": "5", "log_level": "info", "host_pid": 7}]

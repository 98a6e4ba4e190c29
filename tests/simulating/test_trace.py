import json

import pytest

from antiphon.errors import SettingsError
from antiphon.simulating.trace import Arrival, encode_arrivals, read_trace


def written(tmp_path, text, encoding="utf-8"):
    file = tmp_path / "trace"
    file.write_text(text, encoding=encoding)
    return file


def test_an_azure_trace_has_dates_and_token_counts(tmp_path):
    file = written(
        tmp_path,
        "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
        "2023-11-16 18:15:46.6805900,374,44\r\n"
        "2023-11-16 18:15:50.9951690,396,109\r\n",
    )

    trace = read_trace(file)

    assert [(each.prompt_tokens, each.output_tokens) for each in trace.arrivals] == [
        (374, 44),
        (396, 109),
    ]
    assert [each.at for each in trace.arrivals] == pytest.approx([0.0, 4.314579], abs=1e-5)
    assert (trace.broken, trace.failed) == ((), 0)


def test_an_azure_trace_of_2024_has_offsets_too(tmp_path):
    file = written(
        tmp_path,
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2024-05-10 00:00:00.009930+00:00,2162,5\n"
        "2024-05-10 00:00:01+00:00,2399,6\n",
    )

    assert [each.at for each in read_trace(file).arrivals] == pytest.approx(
        [0.0, 0.99007], abs=1e-5
    )


def test_a_burstgpt_trace_leaves_out_what_failed(tmp_path):
    file = written(
        tmp_path,
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
        "5,ChatGPT,472,18,490,Conversation log\n"
        "45,ChatGPT,1087,0,1087,Conversation log\n"
        "118,GPT-4,417,276,693,API log\n",
    )

    trace = read_trace(file)

    assert [each.at for each in trace.arrivals] == [0.0, 113.0]
    assert trace.failed == 1


def test_a_burstgpt_session_is_a_conversation(tmp_path):
    file = written(
        tmp_path,
        "Timestamp,Session ID,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
        "5,17,ChatGPT,472,18,490,Conversation log\n",
    )

    assert read_trace(file).arrivals[0].conversation == "17"


def test_mooncake_hashes_tell_who_goes_on_from_whom(tmp_path):
    lines = [
        {"timestamp": 0, "input_length": 1500, "output_length": 10, "hash_ids": [0, 1, 2]},
        {"timestamp": 500, "input_length": 1500, "output_length": 10, "hash_ids": [0, 3, 4]},
        {"timestamp": 2000, "input_length": 2100, "output_length": 9, "hash_ids": [0, 1, 2, 5, 6]},
        {
            "timestamp": 3000,
            "input_length": 2600,
            "output_length": 9,
            "hash_ids": [0, 1, 2, 5, 6, 7],
        },
    ]
    file = written(tmp_path, "\n".join(map(json.dumps, lines)))

    first, other, again, once_more = read_trace(file).arrivals

    assert first.conversation == again.conversation == once_more.conversation
    assert other.conversation != first.conversation
    assert (first.shared_tokens, again.shared_tokens, once_more.shared_tokens) == (0, 1536, 2560)
    assert (first.common_tokens, other.common_tokens) == (0, 512)
    assert again.at == 2.0


def test_our_own_format_is_read_as_it_is_written(tmp_path):
    arrivals = [
        Arrival(at=0.0, prompt_tokens=10, output_tokens=5, tenant="a", priority=1),
        Arrival(at=1.5, prompt_tokens=9, output_tokens=4, background=True, leaves_after_s=2.0),
    ]
    file = tmp_path / "trace"
    file.write_bytes(b"".join(encode_arrivals(arrivals)))

    assert read_trace(file).arrivals == arrivals


def test_arrivals_are_put_in_order_and_begin_at_zero(tmp_path):
    file = written(
        tmp_path,
        '{"at": 9, "prompt_tokens": 1, "output_tokens": 1}\n'
        '{"at": 7, "prompt_tokens": 2, "output_tokens": 1}\n',
    )

    assert [(each.at, each.prompt_tokens) for each in read_trace(file).arrivals] == [(0, 2), (2, 1)]


@pytest.mark.parametrize(
    "line",
    [
        "2023-11-16 18:15:50.9951690,396",
        "yesterday,396,109",
        "2023-11-16 18:15:50.9951690,many,109",
        "2023-11-16 18:15:50.9951690,-3,109",
        "2023-11-16 18:15:50.9951690,0,109",
        "2023-11-16 18:15:50.9951690,3960000000,109",
        '"unclosed',
    ],
)
def test_a_broken_line_of_csv_is_counted_and_left_out(tmp_path, line):
    file = written(
        tmp_path,
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        f"2023-11-16 18:15:46.6805900,374,44\n{line}\n\n2023-11-16 18:15:47.6805900,9,9\n",
    )

    trace = read_trace(file)

    assert trace.broken == (3,)
    assert len(trace.arrivals) == 2


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "7",
        '{"timestamp": 1}',
        '{"timestamp": "x", "input_length": 1, "output_length": 1}',
        '{"timestamp": 1, "input_length": 1, "output_length": 1, "hash_ids": 3}',
        '{"at": 1, "prompt_tokens": 1, "output_tokens": 1, "surprise": 1}',
        '{"at": 1e999, "prompt_tokens": 1, "output_tokens": 1}',
        '{"at": 1, "prompt_tokens": 1, "output_tokens": 1, "shared_tokens": -1}',
    ],
)
def test_a_broken_line_of_json_is_counted_and_left_out(tmp_path, line):
    good = '{"at": 1, "prompt_tokens": 1, "output_tokens": 1}'

    trace = read_trace(written(tmp_path, f"{good}\n{line}\n{good}\n"))

    assert trace.broken == (2,)
    assert len(trace.arrivals) == 2


@pytest.mark.parametrize("text", ["", "\n", "hello\nworld\n", "a,b,c\n1,2,3\n"])
def test_a_file_without_any_request_is_refused(tmp_path, text):
    with pytest.raises(SettingsError, match="no request"):
        read_trace(written(tmp_path, text))


def test_a_file_that_is_no_text_is_refused(tmp_path):
    file = tmp_path / "trace"
    file.write_bytes(b"\xff\xfe\x00\x01" * 10)

    with pytest.raises(SettingsError, match="cannot read"):
        read_trace(file)


def test_only_the_first_requests_are_read_where_there_is_a_limit(tmp_path):
    line = '{"at": 1, "prompt_tokens": 1, "output_tokens": 1}\n'

    assert len(read_trace(written(tmp_path, line * 10), limit=3).arrivals) == 3

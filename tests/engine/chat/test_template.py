import json
from datetime import datetime

import jinja2
import pytest

from antiphon.engine.chat.template import ChatTemplate
from antiphon.errors import InvalidRequest
from antiphon.events import Message


def _render(source, *messages, **special_tokens):
    return ChatTemplate(source, special_tokens=special_tokens).render(messages)


_USER = Message(role="user", content="hi")


def test_blocks_leave_no_blank_lines():
    source = (
        "{% for m in messages %}\n    {% if true %}\n{{ m.content }}\n    {% endif %}\n{% endfor %}"
    )

    assert _render(source, _USER, _USER) == "hi\nhi\n"


def test_the_prompt_ends_where_the_assistant_speaks():
    assert _render("{% if add_generation_prompt %}A:{% endif %}", _USER) == "A:"


def test_special_tokens_are_known_by_name_and_absent_ones_are_empty():
    assert _render("{{ bos_token }}|{{ unk_token }}", _USER, bos_token="<s>") == "<s>|"


def test_json_is_not_escaped_for_html():
    text = json.loads(
        _render("{{ messages | tojson(indent=2) }}", Message(role="user", content="<é>"))
    )

    assert text == [{"role": "user", "content": "<é>"}]
    assert _render("{{ messages[0].content | tojson }}", Message(role="user", content="<é>")) == (
        '"<é>"'
    )


def test_loop_controls_and_the_clock_are_there():
    assert _render("{% for m in messages %}{{ m.role }}{% break %}{% endfor %}", _USER, _USER) == (
        "user"
    )
    assert _render("{{ strftime_now('%Y') }}", _USER) == str(datetime.now().year)


def test_a_training_mark_renders_as_its_body():
    source = "{% generation %}{{ messages[0].content }}{% endgeneration %}!"

    assert _render(source, _USER) == "hi!"


def test_a_developer_is_a_system_where_the_template_knows_none():
    developer = Message(role="developer", content="x")

    assert _render("{{ messages[0].role }}", developer) == "system"
    assert _render("{# developer #}{{ messages[0].role }}", developer) == "developer"


def test_a_name_is_passed_on():
    named = Message(role="user", content="hi", name="Ann")

    assert _render("{{ messages[0].name }}", named) == "Ann"


@pytest.mark.parametrize(
    "source",
    [
        "{{ raise_exception('roles must alternate') }}",
        "{{ messages[0].content + 1 }}",
        "{{ messages[7].content }}",
        "{{ 1 // 0 }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.append(1) }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    ],
)
def test_a_template_that_fails_refuses_the_messages(source):
    with pytest.raises(InvalidRequest) as refusal:
        _render(source, _USER)

    assert refusal.value.param == "messages"


def test_the_templates_own_words_reach_the_client():
    with pytest.raises(InvalidRequest, match="roles must alternate"):
        _render("{{ raise_exception('roles must alternate') }}", _USER)


def test_a_malformed_template_is_found_when_it_is_loaded():
    with pytest.raises(jinja2.TemplateSyntaxError):
        ChatTemplate("{% if %}", special_tokens={})

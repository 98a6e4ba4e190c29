"""What a model says is text, whatever it says."""

import re


def test_a_hostile_answer_does_nothing_but_show(chat):
    asked: list[str] = []
    chat.page.on("request", lambda request: asked.append(request.url))
    text = chat.asked("hostile")

    assert [url for url in asked if not url.startswith(chat.url)] == []
    assert chat.alive == []
    assert "<script>window.hacked = 1</script>" in text
    assert '<img src=x onerror="window.hacked = 2">' in text
    assert "<style>body { display: none }</style>" in text
    assert chat.last.locator("td", has_text="<b>299</b>").count() == 1


def test_links_lead_to_pages_and_to_nothing_else(chat):
    chat.asked("hostile")
    links = chat.last.locator(".markdown a").evaluate_all(
        "all => all.map(a => [a.textContent, a.getAttribute('href'), a.rel, a.target])"
    )

    told = "noopener noreferrer nofollow"
    assert links == [
        ["picture", "https://example.invalid/x.png", told, "_blank"],
        ["good", 'https://example.com/a?b=1&c="2"', told, "_blank"],
    ]


def test_controls_are_seen_and_turn_nothing_around(chat):
    text = chat.asked("hostile")

    assert "bell ␇ escape ␛[31m null ␀ override �gnp.exe" in text
    assert not re.search("[\x00-\x08\x0e-\x1f\u202d\u202e]", text)


def test_a_hostile_message_and_title_are_text(chat):
    chat.asked("say <img src=x onerror='window.hacked=1'><script>window.hacked=2</script>")
    asked = chat.last.locator(".bubble").inner_text()
    chat.page.locator(".list a").first.wait_for()

    assert "<script>window.hacked=2</script>" in asked
    assert chat.page.evaluate("() => window.hacked") is None
    assert chat.page.locator(".list img").count() == 0


def test_nothing_that_is_no_file_of_ours_runs_whatever_got_into_the_page(chat):
    refused = chat.page.evaluate(
        """() => {
          const refused = (work) => { try { work(); return false } catch { return true } };
          const button = document.body.appendChild(document.createElement('button'));
          return [
            refused(() => { document.body.innerHTML = '<p>markup</p>' }),
            refused(() => button.setAttribute('onclick', 'window.hacked = 1')),
            refused(() => { document.createElement('script').text = 'window.hacked = 2' }),
            refused(() => { document.createElement('script').src = 'https://example.invalid' }),
          ];
        }"""
    )

    assert refused == [True, True, True, True]
    assert chat.page.evaluate("() => window.hacked") is None
    chat.problems.clear()

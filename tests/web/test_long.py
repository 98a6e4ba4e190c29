"""Long texts: nothing is lost of them, and nothing stands still for them."""

import re

import pytest

# A frame of a busy machine: this only has to tell slow from stuck.
LONGEST_FRAME_MS = 1000.0


def said(kind: str) -> str:
    """A text of 100,000 characters."""
    line = "The quick brown fox jumps over the lazy dog, number {}."
    match kind:
        case "paragraphs":
            return "\n\n".join(line.format(i) for i in range(1800))
        case "one paragraph":
            return " ".join(line.format(i) for i in range(1800))
        case "list":
            return "\n".join(f"{i + 1}. {line.format(i)}" for i in range(1800))
        case "code":
            return (
                "```python\n"
                + "\n".join(f"x{i} = '{line.format(i)}'" for i in range(1600))
                + "\n```"
            )
        case "table":
            rows = "\n".join(f"| {i} | {line.format(i)} |" for i in range(1700))
            return f"| n | text |\n|---|---|\n{rows}"
        case "one word":
            return "x" * 100_000
        case _:
            raise AssertionError(kind)


KINDS = ("paragraphs", "one paragraph", "list", "code", "table", "one word")


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_of_a_hundred_thousand_characters_is_shown_whole(chat, kind):
    """As one that was stored is: all of it at once."""
    text = said(kind)
    shown = chat.page.evaluate(
        """async (text) => {
          const script = document.querySelector('script[type=module]').src;
          const { Blocks } = await import(new URL('view/blocks.js', script).href);
          const place = document.createElement('div');
          place.className = 'markdown';
          document.querySelector('.turns').append(place);
          const blocks = new Blocks(place);
          blocks.set(text, true);
          while (!place.classList.contains('whole')) await new Promise(requestAnimationFrame);
          return place.textContent;
        }""",
        text,
    )

    assert squeezed(shown) == squeezed(plain(text))


@pytest.mark.parametrize("kind", KINDS)
def test_however_it_comes_in_pieces_it_ends_as_it_would_whole(chat, kind):
    text = said(kind)[:9_000]
    shown = chat.page.evaluate(
        """async (text) => {
          const script = document.querySelector('script[type=module]').src;
          const { Blocks } = await import(new URL('view/blocks.js', script).href);
          const draw = async (steps) => {
            const place = document.createElement('div');
            place.className = 'markdown';
            document.querySelector('.turns').append(place);
            const blocks = new Blocks(place);
            for (const end of steps) {
              blocks.set(text.slice(0, end), end === text.length);
              await new Promise(requestAnimationFrame);
            }
            while (!place.classList.contains('whole')) await new Promise(requestAnimationFrame);
            return place;
          };
          const steps = [];
          for (let end = 1; end < text.length; end += 37) steps.push(end);
          const place = await draw([...steps, text.length]);
          return [place.textContent, place.querySelectorAll('.code, .table').length];
        }""",
        text,
    )

    assert squeezed(shown[0]) == squeezed(plain(text))
    assert shown[1] == (1 if kind in {"code", "table"} else 0)


MIXED = """\
Some *text* before.

1. First
   - nested one
   - nested two

     with a paragraph
2. Second

   ```js
   const inner = `fence`;
   ```

Title
=====

| a | b |
|---|---|
| 1 | 2 |

~~~~ python
```
not the end
```
~~~~
> quote
> goes on

Last line."""


def test_a_text_of_every_kind_ends_as_it_would_whole(chat):
    same = chat.page.evaluate(
        """async (text) => {
          const script = document.querySelector('script[type=module]').src;
          const { Blocks } = await import(new URL('view/blocks.js', script).href);
          const draw = async (steps) => {
            const place = document.createElement('div');
            document.querySelector('.turns').append(place);
            const blocks = new Blocks(place);
            for (const end of steps) {
              blocks.set(text.slice(0, end), end === text.length);
              await new Promise(requestAnimationFrame);
            }
            while (!place.classList.contains('whole')) await new Promise(requestAnimationFrame);
            return place.textContent.replace(/\\s+/g, ' ');
          };
          const whole = await draw([text.length]);
          const grown = await draw([...text].map((_, index) => index + 1));
          return [whole, grown];
        }""",
        MIXED,
    )

    assert same[0] == same[1]
    assert "not the end" in same[0]


def test_a_message_of_a_hundred_thousand_characters_is_written_sent_and_unfolded(server, chat):
    text = "count 2 " + said("paragraphs")[:99_000]
    chat.watch_frames()
    chat.paste(text)
    assert len(chat.field.input_value()) == len(text)
    chat.page.keyboard.press("Enter")
    chat.until_idle()
    assert chat.last.locator(".bubble").inner_text().endswith("characters")
    chat.page.get_by_role("button", name=re.compile("Show all")).click()
    chat.page.wait_for_function(
        "() => document.querySelector('.turn:last-child .words').textContent.length > 98_000"
    )

    assert chat.longest_frame_ms < LONGEST_FRAME_MS


def plain(text: str) -> str:
    """Markdown of these kinds without its marks."""
    text = re.sub(r"^```\w*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\|[-|]*\|$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\d+\. ", "", text, flags=re.MULTILINE)
    return text.replace("|", " ")


def squeezed(text: str) -> str:
    return re.sub(r"\s+|^python", "", text)
